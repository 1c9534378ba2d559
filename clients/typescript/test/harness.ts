import assert from "node:assert/strict";
import { spawn, execFileSync, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { AmuxError, Client, ProcessTransport, type Event, type Run } from "amux";

export const patience = 60_000;

/** The built amux, in a home of its own, with an amux serve. */
export class Desk {
  readonly program = process.env["AMUX_PROGRAM"] ?? join(import.meta.dirname, "..", "..", "..", "..", "bin", "amux");
  readonly home = mkdtempSync(join(tmpdir(), "ac")); // short: sockets are in it
  readonly env: NodeJS.ProcessEnv;
  readonly errors: AmuxError[] = [];
  readonly client: Client;
  #serve: ChildProcess | undefined;

  constructor() {
    if (!existsSync(this.program)) throw new Error(`${this.program} is not there: make build`);
    const run = join(this.home, "run");
    mkdirSync(run, { mode: 0o700 });
    this.env = { HOME: this.home, XDG_RUNTIME_DIR: run, PATH: process.env["PATH"], TMPDIR: this.home };
    this.client = new Client(new ProcessTransport({ program: this.program, env: this.env, onError: (e) => this.errors.push(e) }));
  }

  async open(): Promise<void> {
    this.#serve = spawn(this.program, ["serve", "--idle", "0s"], { env: this.env, stdio: "ignore" });
    await until(() => existsSync(join(this.home, "run", "amux", "serve.sock")), "amux serve listens");
  }

  async close(): Promise<void> {
    for (const run of this.amux("ps", "-q").split("\n")) if (run !== "") this.amux("kill", run); // of tests that failed
    const serve = this.#serve;
    if (serve !== undefined && serve.exitCode === null) {
      const ended = new Promise((resolve) => serve.once("exit", resolve));
      serve.kill("SIGTERM");
      await ended;
    }
    rmSync(this.home, { recursive: true, force: true });
  }

  amux(...args: string[]): string {
    return execFileSync(this.program, args, { env: this.env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  }
}

export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (const deadline = Date.now() + patience; !(await condition()); await sleep(10)) {
    if (Date.now() > deadline) throw new Error(`not in ${patience} ms: ${what}`);
  }
}

/** Reads on to an event of that type. */
export async function reach<T extends Event["type"]>(run: Run, type: T): Promise<Extract<Event, { type: T }>> {
  for await (const event of run) if (event.type === type) return event as Extract<Event, { type: T }>;
  throw new Error(`the run ended without ${type}`);
}

export async function refused(code: string, call: Promise<unknown>): Promise<AmuxError> {
  try {
    await call;
  } catch (problem) {
    assert(problem instanceof AmuxError, String(problem));
    assert.equal(problem.code, code, problem.message);
    return problem;
  }
  throw new Error(`it was not refused with ${code}`);
}

export function gone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

export function range(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i + 1);
}
