import { AmuxError } from "./errors.js";
import { ProcessTransport } from "./process.js";
import type { Channel, ListOptions, RunSpec, Transport } from "./transport.js";
import { eventTypes, type Event, type EventBase, type InputLine, type Json, type RunEnd } from "./types.js";

/** How a run ended. text is the last message that was read of the main conversation. */
export interface Result {
  runId: string;
  end: RunEnd;
  text: string;
  ok: boolean;
}

/** A run in a list; json has all that amux says of it. */
export interface RunInfo {
  runId: string;
  agent: string;
  state: string;
  name: string | undefined;
  prompt: string;
  created: string;
  ended: string | undefined;
  events: number;
  json: Readonly<Record<string, unknown>>;
}

const known: ReadonlySet<string> = new Set(eventTypes);

/** Reports whether an event is of a type that this client knows. */
export function isKnown(event: EventBase): event is Event {
  return known.has(event.type);
}

/** Throws the AmuxError of a run that did not complete; else returns the result. */
export function check(result: Result): Result {
  if (result.ok) return result;
  const { code, message, state, hint } = result.end;
  throw new AmuxError(code, message ?? `the run ended ${state}`, { hint, runId: result.runId });
}

/**
 * A run and the place in its events. `for await` gives the events that were not read yet,
 * to the end of the run; leaving the loop does not close the run. One loop reads at a time.
 */
export class Run implements AsyncIterable<Event> {
  /** The run's id; undefined until the first event of a run started by Client.run. */
  id: string | undefined;
  /** The number of the last event that was read. Client.open(id, { after: seq }) goes on behind it. */
  seq: number;
  /** The last event, once it was read. */
  end: RunEnd | undefined;
  /** @internal */
  readonly channel: Channel;
  #reading = false;
  #over = false;
  #error: AmuxError | undefined;
  #text = "";

  constructor(channel: Channel, id: string | undefined, after = 0) {
    this.channel = channel;
    this.id = id;
    this.seq = after;
  }

  [Symbol.asyncIterator](): AsyncIterator<Event> {
    return {
      next: async () => {
        const value = await this.next();
        return value === undefined ? { done: true, value } : { done: false, value };
      },
    };
  }

  /**
   * Resolves to the next event, or to undefined behind the last one. Rejects with an
   * AmuxError if the run cannot start, or the stream ends before the run.
   */
  async next(): Promise<Event | undefined> {
    if (this.end !== undefined || this.#over) return undefined;
    if (this.#error !== undefined) throw this.#error;
    if (this.#reading) throw new Error("another call reads the events of this run");
    this.#reading = true;
    try {
      const value = await this.channel.next();
      if (value === undefined) {
        this.#over = true;
        return undefined;
      }
      return this.#take(value);
    } catch (problem) {
      if (problem instanceof AmuxError) {
        problem.runId ??= this.id;
        this.#error = problem;
      }
      throw problem;
    } finally {
      this.#reading = false;
    }
  }

  #take(value: unknown): Event {
    const base = value as Partial<EventBase> | null;
    if (typeof base !== "object" || base === null || typeof base.type !== "string" || typeof base.run_id !== "string" || typeof base.seq !== "number") {
      throw new AmuxError("PARSE_ERROR", "amux printed a line that is no event");
    }
    if (base.seq !== this.seq + 1) throw new AmuxError("PARSE_ERROR", `event ${base.seq} came after event ${this.seq}`);
    const event = value as Event;
    this.id = event.run_id;
    this.seq = event.seq;
    if (event.type === "message_stop" && event.parent_id === undefined && !event.aborted) this.#text = event.text;
    if (event.type === "run_end") this.end = event;
    return event;
  }

  /** Reads the remaining events and resolves to how the run ended. */
  async wait(): Promise<Result> {
    while ((await this.next()) !== undefined);
    if (this.end === undefined || this.id === undefined) {
      throw new AmuxError("RUN_NOT_ACTIVE", "the run ended before the event that this reader begins with", {
        hint: "see Client.inspect",
        runId: this.id,
      });
    }
    return { runId: this.id, end: this.end, text: this.#text, ok: this.end.code === "" };
  }

  /** Sends a prompt. */
  send(text: string): Promise<void> {
    return this.#send({ type: "prompt", text });
  }

  /** Approves a request. Without an id it is the only one that is open. */
  approve(interactionId?: string, updatedInput?: Json): Promise<void> {
    return this.#send({ type: "approve", ...about(interactionId), ...(updatedInput === undefined ? {} : { updated_input: updatedInput }) });
  }

  /** Denies a request. */
  deny(interactionId?: string, reason?: string): Promise<void> {
    return this.#send({ type: "deny", ...about(interactionId), ...(reason === undefined ? {} : { reason }) });
  }

  /** Answers a question. */
  answer(text: string, interactionId?: string): Promise<void> {
    return this.#send({ type: "answer", ...about(interactionId), text });
  }

  /** Cancels the current turn. */
  interrupt(): Promise<void> {
    return this.#send({ type: "interrupt" });
  }

  /** Changes the model. */
  setModel(model: string): Promise<void> {
    return this.#send({ type: "set_model", model });
  }

  /** Changes who answers from now on: ask, auto, deny or rules. */
  setApprove(approve: string): Promise<void> {
    return this.#send({ type: "set_approve", approve });
  }

  /** Ends the conversation when the agent has finished. */
  finish(): Promise<void> {
    return this.#send({ type: "end" });
  }

  /** Stops the run. It ends in state canceled. */
  stop(): Promise<void> {
    return this.#send({ type: "stop" });
  }

  #send(line: InputLine): Promise<void> {
    return this.channel.send(line);
  }

  /** Closes the connection; a run started by Client.run ends with it, a detached one goes on. */
  close(): Promise<void> {
    return this.channel.close();
  }
}

function about(id: string | undefined): { interaction_id?: string } {
  return id === undefined ? {} : { interaction_id: id };
}

/** amux, reached by a transport; by default by starting the amux command. */
export class Client {
  readonly transport: Transport;

  constructor(transport: Transport = new ProcessTransport()) {
    this.transport = transport;
  }

  /** Starts a run that ends with this client. */
  async run(spec: RunSpec): Promise<Run> {
    return new Run(await this.transport.start(spec), undefined);
  }

  /** Starts a run that goes on when this client ends. */
  async detach(spec: RunSpec & { prompt: string }): Promise<Run> {
    return this.open(await this.transport.detach(spec));
  }

  /** Watches and controls a run of any process, from the event behind number after. */
  async open(runId: string, options: { after?: number } = {}): Promise<Run> {
    const after = options.after ?? 0;
    return new Run(await this.transport.open(runId, after), runId, after);
  }

  /** Lists live runs, or all, newest first. */
  async list(options: ListOptions = {}): Promise<RunInfo[]> {
    return (await this.transport.list(options)).map(runInfo);
  }

  /** Returns one run. */
  async inspect(runId: string): Promise<RunInfo> {
    return runInfo(await this.transport.inspect(runId));
  }
}

function runInfo(value: unknown): RunInfo {
  const raw = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  const text = (name: string): string | undefined => {
    const member = raw[name];
    return typeof member === "string" ? member : undefined;
  };
  const [runId, agent, state, events] = [text("run_id"), text("agent"), text("state"), raw["events"]];
  if (runId === undefined || agent === undefined || state === undefined) {
    throw new AmuxError("PARSE_ERROR", "amux listed a run without run_id, agent or state");
  }
  return {
    ...{ runId, agent, state, name: text("name"), prompt: text("prompt") ?? "", created: text("created") ?? "" },
    ...{ ended: text("ended"), events: typeof events === "number" ? events : 0, json: raw },
  };
}
