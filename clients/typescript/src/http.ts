import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import type { ListAnswer, NewRun, Problem, QuestionsAnswer, Run as APIRun } from "./api.js";
import { AmuxError } from "./errors.js";
import type { Channel, ListOptions, RunSpec, Transport } from "./transport.js";
import type { InputLine } from "./types.js";

const mostText = 128 << 20; // characters of an event, or of an answer
const retryTime = 30_000; // without an event, until a broken stream is an error

/** Where amux serve --http is. */
export interface HTTPOptions {
  /** The path of the socket http.sock. */
  socket?: string;
  /** http://127.0.0.1:PORT */
  url?: string;
  /** For url; by default that of the user's ~/.agent-mux/http.token. */
  token?: string;
}

type Json = Record<string, unknown>;

/**
 * Reaches amux by HTTP. Runs do not end with this client, however it ends: a run of
 * Client.run is stopped when it is closed, and cannot be if this process is killed.
 */
export class HTTPTransport implements Transport {
  readonly #where: { socketPath: string } | { host: string; port: string };
  readonly #token: string | undefined;

  constructor(options: HTTPOptions) {
    if (options.socket !== undefined) {
      this.#where = { socketPath: options.socket };
      return;
    }
    if (options.url === undefined || !URL.canParse(options.url) || new URL(options.url).port === "") {
      throw new AmuxError("VALIDATION_ERROR", `invalid url ${JSON.stringify(options.url)}`, { hint: "http://127.0.0.1:PORT" });
    }
    const url = new URL(options.url);
    this.#where = { host: url.hostname.replace(/^\[|\]$/g, ""), port: url.port };
    try {
      this.#token = options.token ?? readFileSync(join(homedir(), ".agent-mux", "http.token"), "utf8").trim();
    } catch (problem) {
      throw new AmuxError("CONFIG_ERROR", `no token: ${String(problem)}`, { hint: "amux serve --http=127.0.0.1:PORT makes one" });
    }
  }

  /** Sends a request; resolves when the head of the answer is there. */
  async send(method: string, path: string, body?: Json, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<IncomingMessage> {
    const data = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const outgoing = request({
      ...this.#where,
      method,
      path,
      agent: false,
      ...(signal ? { signal } : {}),
      headers: {
        ...headers,
        ...(this.#token ? { Authorization: `Bearer ${this.#token}` } : {}),
        ...(data ? { "Content-Type": "application/json", "Content-Length": data.length } : {}),
      },
    });
    outgoing.end(data);
    let answer: IncomingMessage;
    try {
      [answer] = (await once(outgoing, "response")) as [IncomingMessage];
    } catch (problem) {
      throw broken(problem);
    }
    if ((answer.statusCode ?? 0) < 300) return answer;
    const text = await whole(answer);
    let raw: Partial<Problem> = {};
    try {
      raw = JSON.parse(text) as Partial<Problem>;
    } catch {
      // no answer of amux
    }
    throw new AmuxError(
      typeof raw.code === "string" ? raw.code : "INTERNAL",
      typeof raw.message === "string" ? raw.message : `amux answered with status ${answer.statusCode}`,
      { hint: typeof raw.hint === "string" ? raw.hint : undefined },
    );
  }

  /** Sends a request and resolves to the value of its answer. */
  async ask(method: string, path: string, body?: Json): Promise<unknown> {
    const text = await whole(await this.send(method, path, body));
    return text === "" ? undefined : JSON.parse(text);
  }

  async start(spec: RunSpec): Promise<Channel> {
    return new HTTPChannel(this, await this.detach(spec), 0, true);
  }

  async detach(spec: RunSpec): Promise<string> {
    for (const name of ["runId", "idleTimeout", "flags"] as const) {
      if (spec[name] !== undefined) throw new AmuxError("VALIDATION_ERROR", `${name} cannot be given over HTTP`);
    }
    const run = (await this.ask("POST", "/v1/runs", {
      agent: spec.agent,
      prompt: spec.prompt,
      conversation: spec.conversation,
      cwd: spec.cwd ?? process.cwd(),
      name: spec.name,
      tags: spec.tags,
      model: spec.model,
      effort: spec.effort,
      system: spec.system,
      resume: spec.resume,
      approve: spec.approve,
      allow: spec.allow,
      deny: spec.deny,
      files: spec.files,
      env: spec.env,
      max_turns: spec.maxTurns,
      max_cost_usd: spec.maxCost,
      max_tokens: spec.maxTokens,
      timeout_seconds: spec.timeout,
    } satisfies NewRun)) as APIRun;
    return run.run_id;
  }

  async open(runId: string, after: number): Promise<Channel> {
    const run = await this.inspect(runId);
    return new HTTPChannel(this, run.run_id, after, false);
  }

  async list(options: ListOptions): Promise<APIRun[]> {
    const query = new URLSearchParams({ limit: "1000" });
    for (const [name, value] of Object.entries(options.filters ?? {})) {
      if (name !== "agent" && name !== "state") {
        throw new AmuxError("VALIDATION_ERROR", `no filter ${name} over HTTP`, { hint: "agent, state and tags" });
      }
      query.set(name, value);
    }
    if (options.ended) query.set("all", "true");
    const tags = options.tags ?? [];
    if (tags[0] !== undefined) query.set("tag", tags[0]);
    const found: APIRun[] = [];
    for (;;) {
      const page = (await this.ask("GET", `/v1/runs?${query}`)) as ListAnswer;
      found.push(...page.runs.filter((run) => tags.every((tag) => run.tags?.includes(tag))));
      const last = page.runs.at(-1);
      if (!page.more || last === undefined) return found;
      query.set("after", last.run_id);
    }
  }

  async inspect(runId: string): Promise<APIRun> {
    return (await this.ask("GET", path(runId))) as APIRun;
  }
}

function path(...parts: string[]): string {
  return ["/v1/runs", ...parts.map(encodeURIComponent)].join("/");
}

function broken(problem: unknown): AmuxError {
  return new AmuxError("NETWORK_ERROR", `amux serve --http does not answer: ${problem instanceof Error ? problem.message : String(problem)}`);
}

async function whole(answer: IncomingMessage): Promise<string> {
  answer.setEncoding("utf8");
  let text = "";
  try {
    for await (const piece of answer) {
      text += piece as string;
      if (text.length > mostText) throw new Error("the answer is too long");
    }
  } catch (problem) {
    throw broken(problem);
  }
  return text;
}

/** The events of one run, which go on behind the last one when the stream breaks. */
class HTTPChannel implements Channel {
  readonly #events: AsyncGenerator<unknown>;
  readonly #closing = new AbortController();
  #over = false;

  constructor(
    readonly transport: HTTPTransport,
    readonly runId: string,
    after: number,
    readonly owned: boolean,
  ) {
    this.#events = this.#read(after);
  }

  async *#read(after: number): AsyncGenerator<unknown> {
    let since = Date.now();
    while (!this.#closing.signal.aborted) {
      let problem = new AmuxError("HOST_GONE", "the stream of events broke, and does not come back", { runId: this.runId });
      try {
        const answer = await this.transport.send("GET", path(this.runId, "events"), undefined, { "Last-Event-ID": String(after) }, this.#closing.signal);
        if (answer.statusCode === 204) return;
        for await (const line of lines(answer)) {
          if (!line.startsWith("data: ")) continue;
          const event = JSON.parse(line.slice(6)) as { type: string; seq: number };
          after = event.seq;
          since = Date.now();
          yield event;
          if (event.type === "run_end") return;
        }
      } catch (found) {
        if (found instanceof AmuxError && found.code !== "NETWORK_ERROR") throw found;
        if (found instanceof AmuxError) problem = found;
      }
      if (Date.now() - since > retryTime) throw problem;
      await sleep(100);
    }
  }

  async next(): Promise<unknown> {
    const found = await this.#events.next();
    this.#over ||= found.done === true;
    return found.done ? undefined : found.value;
  }

  async send(line: InputLine): Promise<void> {
    switch (line.type) {
      case "prompt":
        await this.transport.ask("POST", path(this.runId, "prompts"), { prompt: line.text });
        return;
      case "end":
        await this.transport.ask("POST", path(this.runId, "prompts"), { end: true });
        return;
      case "interrupt":
      case "stop":
        await this.transport.ask("POST", path(this.runId, line.type));
        return;
      case "set_model":
        await this.transport.ask("PUT", path(this.runId, "model"), { model: line.model });
        return;
      case "set_approve":
        await this.transport.ask("PUT", path(this.runId, "approve"), { approve: line.approve });
        return;
      case "approve":
      case "deny":
      case "answer": {
        const given = line as unknown as Json;
        const id = typeof given["interaction_id"] === "string" ? given["interaction_id"] : await this.#only();
        await this.transport.ask("POST", path(this.runId, "questions", id), {
          answer: line.type,
          text: given["reason"] ?? given["text"],
          updated_input: given["updated_input"],
        });
      }
    }
  }

  /** The id of the only open question. */
  async #only(): Promise<string> {
    const { questions } = (await this.transport.ask("GET", path(this.runId, "questions"))) as QuestionsAnswer;
    const [first, second] = questions;
    if (first === undefined || second !== undefined) {
      throw new AmuxError(first === undefined ? "NO_PENDING_INTERACTION" : "VALIDATION_ERROR", `the run asks ${questions.length} questions`, {
        hint: "give the interaction_id",
        runId: this.runId,
      });
    }
    return first.interaction_id;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    if (!this.owned || this.#over) return;
    try {
      await this.transport.ask("POST", path(this.runId, "stop"));
    } catch (problem) {
      if (!(problem instanceof AmuxError)) throw problem; // else it has ended
    }
  }
}

async function* lines(answer: IncomingMessage): AsyncGenerator<string> {
  answer.setEncoding("utf8");
  let rest = "";
  for await (const piece of answer) {
    const all = (rest + (piece as string)).split("\n");
    rest = all.pop() ?? "";
    if (rest.length > mostText) throw new Error("an event is too long");
    yield* all;
  }
}
