// The client over HTTP, against the built amux and its demo agent.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";

import { check, Client, HTTPTransport } from "amux";

import { Desk, patience, reach, refused } from "./harness.js";

const desk = new Desk();
let http: ChildProcess;
let port = 0;

/** Starts a server of HTTP and resolves to where it says that it is. */
async function serve(flag: string): Promise<[ChildProcess, string]> {
  const server = spawn(desk.program, ["serve", flag], { env: desk.env, stdio: ["ignore", "ignore", "pipe"] });
  assert(server.stderr);
  const [line] = (await once(createInterface(server.stderr), "line")) as [string];
  return [server, line.split("serving HTTP on ")[1] ?? ""];
}

async function begin(): Promise<void> {
  const [server, where] = await serve(`--http=127.0.0.1:${port}`);
  http = server;
  port = Number(/:(\d+);/.exec(where)?.[1]);
}

async function end(server: ChildProcess): Promise<void> {
  const ended = once(server, "exit");
  server.kill("SIGKILL");
  await ended;
}

const token = (): string => readFileSync(join(desk.home, ".agent-mux", "http.token"), "utf8").trim();
const over = (): Client => new Client(new HTTPTransport({ url: `http://127.0.0.1:${port}`, token: token() }));
const cwd = desk.home;

before(async () => {
  await desk.open();
  await begin();
});
after(async () => {
  await end(http);
  await desk.close();
});

describe("over HTTP", { timeout: patience }, () => {
  test("approve", async () => {
    const run = await over().run({ agent: "demo", prompt: "[approve]", cwd, name: "one", tags: ["a", "b"] });
    const request = await reach(run, "approval_request");
    await run.approve(request.interaction_id, { content: "changed" });
    assert.equal((await reach(run, "tool_result")).output, 'wrote "changed"');
    const result = check(await run.wait());
    await run.close();
    assert.equal((await over().inspect("one")).runId, result.runId);
    for (const [tags, found] of [[["a"], 1], [["a", "b"], 1], [["a", "c"], 0]] as const) {
      assert.equal((await over().list({ ended: true, tags, filters: { agent: "demo" } })).length, found);
    }
    await refused("VALIDATION_ERROR", over().list({ filters: { bogus: "x" } }));
    await refused("VALIDATION_ERROR", over().run({ agent: "demo", prompt: "x", flags: ["--retry=3"] }));
    await refused("VALIDATION_ERROR", over().open("nope"));
  });

  test("conversation", async () => {
    const run = await over().run({ agent: "demo", conversation: true, cwd });
    await run.send("[approve][ask:which?]");
    await reach(run, "approval_request");
    await run.deny(undefined, "not today");
    await reach(run, "input_required");
    await run.answer("blue");
    const said = await reach(run, "message_stop");
    await reach(run, "turn_end");
    await run.finish();
    check(await run.wait());
    await run.close();
    assert.match(said.text, /You answered: blue/);
  });

  test("a run ends with its client", async () => {
    const run = await over().run({ agent: "demo", prompt: "[sleep:600]", cwd });
    await reach(run, "session_start");
    await run.close();
    const watched = await over().open(run.id ?? "", { after: run.seq });
    assert.equal((await watched.wait()).end.state, "canceled");
  });

  test("the server is killed", async () => {
    const run = await over().detach({ agent: "demo", prompt: "[lines:20][sleep:0.1]".repeat(20), cwd });
    for await (const event of run) {
      if (event.seq === 50 || event.seq === 200) {
        await end(http);
        await begin();
      }
    }
    assert.equal(run.end?.state, "completed"); // Run checks that there is no gap
    const again = await over().open(run.id ?? "", { after: run.seq });
    for await (const event of again) assert.fail(JSON.stringify(event));
  });

  test("token and socket", async () => {
    await refused("AUTH_ERROR", new Client(new HTTPTransport({ url: `http://127.0.0.1:${port}`, token: "wrong" })).list());
    await refused("NETWORK_ERROR", new Client(new HTTPTransport({ socket: join(desk.home, "nothing") })).list());
    const [own, socket] = await serve("--http");
    try {
      assert(Array.isArray(await new Client(new HTTPTransport({ socket })).list()));
    } finally {
      await end(own);
    }
  });
});
