import type { InputLine } from "./types.js";

/** What to run, and how. What is left out is chosen by the settings of amux. */
export interface RunSpec {
  agent: string;
  prompt?: string;
  /** Take more prompts, until finish. */
  conversation?: boolean;
  model?: string;
  effort?: string;
  system?: string;
  /** Session of the agent to resume. */
  resume?: string;
  approve?: "ask" | "auto" | "deny" | "rules";
  allow?: readonly string[];
  deny?: readonly string[];
  cwd?: string;
  /** Added to the agent's environment. */
  env?: Readonly<Record<string, string>>;
  files?: readonly string[];
  maxTurns?: number;
  /** Dollars. */
  maxCost?: number;
  maxTokens?: number;
  /** Seconds. */
  timeout?: number;
  /** Seconds. */
  idleTimeout?: number;
  name?: string;
  runId?: string;
  tags?: readonly string[];
  /** More flags of amux run, as --retry=3. */
  flags?: readonly string[];
}

/** Which runs to list. */
export interface ListOptions {
  /** Ended ones too. */
  ended?: boolean;
  tags?: readonly string[];
  /** Those of amux ps --filter, as { agent: "claude" }. */
  filters?: Readonly<Record<string, string>>;
}

/** The connection to one run. */
export interface Channel {
  /**
   * Resolves to the next line's value, or to undefined if the run has ended and there are
   * no more. Rejects with an AmuxError if the stream ends before the run. One call at a time.
   */
  next(): Promise<unknown>;
  /** Sends an input line, as docs/schema/input.schema.json has it. */
  send(line: InputLine): Promise<void>;
  /** Lets go of the connection. A run that belongs to it is stopped. */
  close(): Promise<void>;
}

/**
 * How a client reaches amux. ProcessTransport starts the amux command, HTTPTransport asks
 * amux serve --http.
 */
export interface Transport {
  /** Starts a run that ends with this connection. */
  start(spec: RunSpec): Promise<Channel>;
  /** Starts a run that goes on without a client, and returns its id. */
  detach(spec: RunSpec): Promise<string>;
  /** Watches a run, from the event behind number after. */
  open(runId: string, after: number): Promise<Channel>;
  /** Returns the runs, newest first. */
  list(options: ListOptions): Promise<unknown[]>;
  /** Returns one run. */
  inspect(runId: string): Promise<unknown>;
}
