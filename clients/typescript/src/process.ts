import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import type { Readable } from "node:stream";

import { AmuxError } from "./errors.js";
import type { Channel, ListOptions, RunSpec, Transport } from "./transport.js";
import type { InputLine } from "./types.js";

const longestEvent = 1 << 29; // about the longest string of Node.js
const longestNote = 1 << 16;
const restarts = 5; // of amux logs in a row, without an event between them

/** Returns the path of amux: $AMUX_PROGRAM, the one in PATH, or ~/.local/bin/amux. */
export function findProgram(env: NodeJS.ProcessEnv = process.env): string {
  if (env["AMUX_PROGRAM"]) return env["AMUX_PROGRAM"];
  const name = process.platform === "win32" ? "amux.exe" : "amux";
  for (const folder of [...(env["PATH"] ?? "").split(delimiter), join(homedir(), ".local", "bin")]) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      if (folder !== "" && statSync(path).isFile()) return path;
    } catch {
      continue;
    }
  }
  throw new AmuxError("PROGRAM_NOT_FOUND", "amux is not in PATH", {
    hint: "install it, or set AMUX_PROGRAM to the path of the program",
  });
}

export interface ProcessOptions {
  /** The path of amux; default: findProgram. */
  program?: string;
  configDir?: string;
  /** The environment of amux, and so of the agents; default: that of this process. */
  env?: NodeJS.ProcessEnv;
  /** Called with what amux did not accept of the lines that were sent to a run; default: console.warn. */
  onError?: (error: AmuxError) => void;
  /** Called with other lines that amux printed on stderr. */
  onNote?: (line: string) => void;
  /** Milliseconds that a run has for its end when it is closed; default: 15000. */
  grace?: number;
}

/** Starts amux for each run and each question. */
export class ProcessTransport implements Transport {
  readonly #options: ProcessOptions;

  constructor(options: ProcessOptions = {}) {
    this.#options = options;
  }

  async start(spec: RunSpec): Promise<Channel> {
    if (spec.prompt === undefined && !spec.conversation) {
      throw new AmuxError("VALIDATION_ERROR", "the run has neither a prompt nor conversation: true");
    }
    const one = spec.prompt !== undefined && !spec.conversation;
    const argv = ["run", "--json", "--input=ndjson", "--monitor-stdin", ...flags(spec), "--", spec.agent, ...(one ? ["-"] : [])];
    const channel = new Foreground(await this.stream(argv, spec), this.#options.grace ?? 15_000);
    if (spec.prompt !== undefined) {
      // If amux has ended already, next says why.
      await channel.send({ type: "prompt", text: spec.prompt }).catch(() => undefined);
    }
    return channel;
  }

  async detach(spec: RunSpec): Promise<string> {
    if (spec.prompt === undefined || spec.conversation) {
      throw new AmuxError("CAPABILITY_ERROR", "a detached run takes one prompt", { hint: "give prompt, without conversation" });
    }
    return (await this.command(["run", "--detach", ...flags(spec), "--", spec.agent, "-"], spec.prompt, spec)).trim();
  }

  async open(runId: string, after: number): Promise<Channel> {
    return new Watch(this, runId, after);
  }

  async list(options: ListOptions): Promise<unknown[]> {
    const argv = ["ps", "--json", ...(options.ended ? ["--all"] : [])];
    for (const tag of options.tags ?? []) argv.push(`--tag=${tag}`);
    for (const [name, value] of Object.entries(options.filters ?? {})) argv.push(`--filter=${name}=${value}`);
    const runs = document(await this.command(argv));
    if (!Array.isArray(runs)) throw new AmuxError("PARSE_ERROR", "amux ps printed no array");
    return runs;
  }

  async inspect(runId: string): Promise<unknown> {
    return document(await this.command(["inspect", "--json", "--", runId]));
  }

  /** @internal Starts amux; its stdout is events. */
  async stream(argv: readonly string[], spec?: RunSpec): Promise<Child> {
    return new Child(await this.#spawn(argv, spec), this.#options);
  }

  /** @internal Runs a command of amux to its end, and returns its stdout. */
  async command(argv: readonly string[], stdin = "", spec?: RunSpec): Promise<string> {
    const child = await this.#spawn(argv, spec);
    const ended = new Promise<Exit>((resolve) => child.once("close", (code, signal) => resolve({ code, signal })));
    child.stdin.end(stdin);
    const [out, notes, exit] = await Promise.all([all(child.stdout), all(child.stderr), ended]);
    if (exit.code === 0) return out;
    for (const line of notes.split("\n")) {
      const error = AmuxError.fromLine(line);
      if (error !== undefined) {
        error.exitCode = exit.code ?? undefined;
        throw error;
      }
    }
    throw died(exit, `amux ${argv[0]}`);
  }

  async #spawn(argv: readonly string[], spec?: RunSpec): Promise<ChildProcessWithoutNullStreams> {
    const env = { ...(this.#options.env ?? process.env), ...spec?.env, AMUX_ERRORS: "json" };
    const program = this.#options.program ?? findProgram();
    const options = this.#options.configDir === undefined ? [] : [`--config-dir=${this.#options.configDir}`];
    if (spec?.cwd !== undefined && !isFolder(spec.cwd)) {
      throw new AmuxError("VALIDATION_ERROR", `cwd ${JSON.stringify(spec.cwd)} is not a folder`);
    }
    let child: ChildProcessWithoutNullStreams;
    try {
      child = spawn(program, [...options, ...argv], { env, cwd: spec?.cwd, windowsHide: true });
    } catch (problem) {
      throw new AmuxError("VALIDATION_ERROR", `start amux: ${message(problem)}`); // a NUL byte
    }
    child.stdin.on("error", () => undefined); // of a write: its callback has it
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (problem) => reject(new AmuxError("PROGRAM_NOT_FOUND", `start ${program}: ${message(problem)}`)));
    });
    child.on("error", () => undefined); // of a signal to a process that has ended
    return child;
  }
}

function flags(spec: RunSpec): string[] {
  const argv: string[] = [];
  const seconds = (value?: number): string | undefined => (value === undefined ? undefined : `${value}s`);
  const single: Record<string, string | number | undefined> = {
    model: spec.model,
    effort: spec.effort,
    system: spec.system,
    resume: spec.resume,
    approve: spec.approve,
    "max-turns": spec.maxTurns,
    "max-cost": spec.maxCost,
    "max-tokens": spec.maxTokens,
    timeout: seconds(spec.timeout),
    "idle-timeout": seconds(spec.idleTimeout),
    name: spec.name,
    "run-id": spec.runId,
  };
  for (const [name, value] of Object.entries(single)) if (value !== undefined) argv.push(`--${name}=${value}`);
  const many = { allow: spec.allow, deny: spec.deny, file: spec.files, tag: spec.tags };
  for (const [name, values] of Object.entries(many)) for (const value of values ?? []) argv.push(`--${name}=${value}`);
  return [...argv, ...(spec.flags ?? [])];
}

interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

function died(exit: Exit, what: string): AmuxError {
  if (exit.signal !== null) return new AmuxError("HOST_GONE", `${what} was killed by ${exit.signal}`);
  return new AmuxError("INTERNAL", `${what} exited with ${exit.code} and did not say why`, { exitCode: exit.code ?? undefined });
}

function closed(): AmuxError {
  return new AmuxError("ABORTED", "the connection to the run was closed");
}

function document(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (problem) {
    throw new AmuxError("PARSE_ERROR", `amux printed no JSON: ${message(problem)}`);
  }
}

function message(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

async function all(stream: Readable): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString("utf8");
}

/** Lines of a stream, read when somebody asks for one: a slow reader holds up the writer, not the memory. */
class Lines {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #longest: number;
  #chunk: Buffer = Buffer.alloc(0);
  #over = false;

  constructor(stream: Readable, longest: number) {
    this.#chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    this.#longest = longest;
  }

  /** Resolves to a line without its end; undefined at the end of the stream. A torn last line is dropped. */
  async next(): Promise<string | undefined> {
    const pieces: Buffer[] = [];
    let size = 0;
    for (;;) {
      const end = this.#chunk.indexOf(10);
      if (end >= 0) {
        pieces.push(this.#chunk.subarray(0, end));
        this.#chunk = this.#chunk.subarray(end + 1);
        return Buffer.concat(pieces).toString("utf8");
      }
      size += this.#chunk.length;
      if (size > this.#longest) throw new AmuxError("PARSE_ERROR", `amux printed a line of more than ${this.#longest} bytes`);
      pieces.push(this.#chunk);
      this.#chunk = Buffer.alloc(0);
      if (this.#over) return undefined;
      try {
        const read = await this.#chunks.next();
        if (read.done) this.#over = true;
        else this.#chunk = read.value;
      } catch {
        this.#over = true; // closed meanwhile
      }
    }
  }
}

/** A process of amux whose stdout is events. */
class Child {
  readonly process: ChildProcessWithoutNullStreams;
  readonly #lines: Lines;
  readonly #exited: Promise<Exit>;
  readonly #notes: Promise<void>;
  #error: AmuxError | undefined; // the last that is not about an input line

  constructor(child: ChildProcessWithoutNullStreams, options: ProcessOptions) {
    this.process = child;
    this.#lines = new Lines(child.stdout, longestEvent);
    this.#exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
    this.#notes = this.#readNotes(options);
  }

  async #readNotes(options: ProcessOptions): Promise<void> {
    const lines = new Lines(this.process.stderr, longestNote);
    for (;;) {
      let line: string | undefined;
      try {
        line = await lines.next();
      } catch (problem) {
        if (problem instanceof AmuxError) continue; // what is too long is passed over
        return;
      }
      if (line === undefined) return;
      const error = AmuxError.fromLine(line);
      if (error === undefined) options.onNote?.(line);
      else if (error.inputLine === undefined) this.#error = error;
      else if (options.onError) options.onError(error);
      else console.warn(`amux: ${error.message}`);
    }
  }

  /** Resolves to the next value of stdout, or to undefined at its end. */
  async next(): Promise<unknown> {
    const line = await this.#lines.next();
    return line === undefined ? undefined : document(line);
  }

  /** Waits for the process, and resolves to why it ended without run_end. */
  async ended(what: string): Promise<{ exit: Exit; error: AmuxError }> {
    const exit = await this.#exited;
    await this.#notes;
    if (this.#error === undefined || exit.signal !== null) return { exit, error: died(exit, what) };
    this.#error.exitCode = exit.code ?? undefined;
    return { exit, error: this.#error };
  }

  /** Waits for the process without reading its events; kills it when grace milliseconds are over. */
  async reap(grace: number): Promise<void> {
    const timer = setTimeout(() => this.process.kill("SIGKILL"), grace);
    this.process.stdout.destroy();
    await this.#exited;
    clearTimeout(timer);
    await this.#notes;
  }
}

/** A run that amux hosts for this client. */
class Foreground implements Channel {
  readonly child: Child;
  readonly #grace: number;
  #closed: Promise<void> | undefined;

  constructor(child: Child, grace: number) {
    this.child = child;
    this.#grace = grace;
  }

  async next(): Promise<unknown> {
    const value = await this.child.next();
    const failure = AmuxError.fromJson(value);
    if (value !== undefined && failure === undefined) return value;
    const { exit, error } = await this.child.ended("amux run");
    if (failure === undefined) throw this.#closed === undefined ? error : closed();
    failure.exitCode = exit.code ?? undefined;
    throw failure;
  }

  async send(line: InputLine): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.child.process.stdin.write(JSON.stringify(line) + "\n", (problem) =>
        problem ? reject(new AmuxError("RUN_NOT_ACTIVE", "amux run has ended")) : resolve(),
      );
    });
  }

  close(): Promise<void> {
    if (this.#closed === undefined) {
      this.child.process.stdin.end(); // by --monitor-stdin that stops a run that goes on
      this.#closed = this.child.reap(this.#grace);
    }
    return this.#closed;
  }
}

/** A run that another process hosts: amux logs -f, and a command for each input line. */
class Watch implements Channel {
  readonly #transport: ProcessTransport;
  readonly #runId: string;
  #after: number;
  #failed = 0;
  #closed = false;
  child: Child | undefined;

  constructor(transport: ProcessTransport, runId: string, after: number) {
    this.#transport = transport;
    this.#runId = runId;
    this.#after = after;
  }

  async next(): Promise<unknown> {
    for (;;) {
      if (this.#closed) throw closed();
      if (this.child === undefined) {
        this.child = await this.#transport.stream(["logs", "--follow", "--json", `--from=${this.#after + 1}`, "--", this.#runId]);
        this.child.process.stdin.end();
        if (this.#closed) {
          await this.close(); // it was closed meanwhile
          continue;
        }
      }
      const child = this.child;
      const value = await child.next();
      if (value !== undefined) {
        const failure = AmuxError.fromJson(value);
        if (failure !== undefined) {
          failure.exitCode = (await child.ended("amux logs")).exit.code ?? undefined;
          throw failure;
        }
        const seq = (value as { seq?: unknown }).seq;
        if (typeof seq === "number") {
          if (seq <= this.#after) continue;
          this.#after = seq;
          this.#failed = 0;
        }
        return value;
      }
      this.child = undefined;
      if (this.#closed) continue;
      const { exit, error } = await child.ended("amux logs");
      if (exit.code === 0 && (await this.#isOver())) return undefined;
      this.#failed++;
      if ((exit.code ?? 0) > 0 || this.#failed > restarts) throw error;
      // Somebody killed amux logs: go on behind the last event.
    }
  }

  /** Resolves to whether the run has ended, and all its events were read. */
  async #isOver(): Promise<boolean> {
    const info = (await this.#transport.inspect(this.#runId)) as { ended?: unknown; events?: unknown };
    return typeof info.ended === "string" && typeof info.events === "number" && info.events <= this.#after;
  }

  async send(line: InputLine): Promise<void> {
    const run = this.#runId;
    const id = "interaction_id" in line && line.interaction_id !== undefined ? [line.interaction_id] : [];
    const command = (argv: string[], stdin = ""): Promise<string> => this.#transport.command(argv, stdin);
    switch (line.type) {
      case "prompt":
        await command(["send", "--", run, "-"], line.text);
        return;
      case "approve": {
        const input = line.updated_input === undefined ? [] : [`--input=${JSON.stringify(line.updated_input)}`];
        await command(["approve", ...input, "--", run, ...id]);
        return;
      }
      case "deny":
        await command(["deny", ...(line.reason === undefined ? [] : [`--reason=${line.reason}`]), "--", run, ...id]);
        return;
      case "answer":
        await command(["answer", "--", run, ...id, line.text]);
        return;
      case "interrupt":
      case "stop":
        await command([line.type, "--", run]);
        return;
      case "end":
        await command(["send", "--end", "--", run]);
        return;
      case "set_model":
      case "set_approve":
        throw new AmuxError("CAPABILITY_ERROR", `${line.type} is for a run that this client has started`);
    }
  }

  async close(): Promise<void> {
    const child = this.child;
    this.#closed = true;
    this.child = undefined;
    if (child !== undefined) {
      child.process.kill("SIGKILL"); // it only reads
      await child.reap(1000);
    }
  }
}
