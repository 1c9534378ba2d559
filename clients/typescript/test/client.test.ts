// The client against the built amux and its demo agent.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";

import { check, Client, isKnown, ProcessTransport, type AmuxError, type Run, type RunSpec } from "amux";

import { Desk, gone, patience, range, reach, refused, until } from "./harness.js";

const desk = new Desk();
const { client } = desk;
before(() => desk.open());
after(() => desk.close());

/** The process of amux that a run's events come from. */
function amuxOf(run: Run): { pid?: number | undefined; stdoutHeld: number } {
  const child = (run.channel as unknown as { child: { process: { pid: number; stdout: { readableLength: number } } } }).child;
  return { pid: child.process.pid, stdoutHeld: child.process.stdout.readableLength };
}

function killAmuxOf(run: Run): void {
  try {
    process.kill(amuxOf(run).pid ?? 0, "SIGKILL");
  } catch {
    // it has ended
  }
}

async function using<T>(run: Promise<Run>, work: (run: Run) => Promise<T>): Promise<T> {
  const started = await run;
  try {
    return await work(started);
  } finally {
    await started.close();
  }
}

/** The command lines of all processes. */
function commandLines(): string {
  if (!existsSync("/proc/self")) return execFileSync("ps", ["-Aww", "-o", "args"], { encoding: "utf8" });
  const lines = readdirSync("/proc").map((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
    } catch {
      return ""; // no process, or it has ended
    }
  });
  return lines.join("\n");
}

describe("a run of this program", { timeout: patience }, () => {
  test("approve", () =>
    using(client.run({ agent: "demo", prompt: "[approve]", approve: "ask" }), async (run) => {
      assert.equal(run.id, undefined);
      const request = await reach(run, "approval_request");
      await run.approve(request.interaction_id, { content: "changed" });
      assert.equal((await reach(run, "tool_result")).output, 'wrote "changed"');
      const result = check(await run.wait());
      assert.deepEqual([result.text, result.end.state, result.runId], ["Done.", "completed", request.run_id]);
      assert.deepEqual(desk.errors, []);
    }));

  test("conversation", () =>
    using(client.run({ agent: "demo", conversation: true, approve: "ask" }), async (run) => {
      await run.send("[approve][ask:which?]");
      await reach(run, "approval_request");
      await run.deny(undefined, "not today");
      assert.equal((await reach(run, "tool_error")).error, "denied: not today");
      const question = await reach(run, "input_required");
      await run.answer("the blue one\nwith 'quotes'", question.interaction_id);
      assert.match((await reach(run, "message_stop")).text, /the blue one\nwith 'quotes'/);
      await reach(run, "turn_end");
      await run.setModel("large");
      await run.send("[sleep:1000]");
      await reach(run, "turn_start");
      await run.interrupt();
      await reach(run, "turn_end");
      await run.send("[say:last]");
      await run.finish();
      assert.equal(check(await run.wait()).end.turns, 3);
    }));

  test("what amux does not accept", async () => {
    desk.errors.length = 0;
    await using(client.run({ agent: "demo", prompt: "[approve]", approve: "ask" }), async (run) => {
      await reach(run, "approval_request");
      await run.approve("nobody-asked");
      await run.approve();
      await run.wait();
    });
    assert.deepEqual(desk.errors.splice(0).map((e) => [e.code, e.inputLine]), [["INTERACTION_NOT_FOUND", 2]]);
  });

  test("a run that fails", () =>
    using(client.run({ agent: "demo", prompt: "[fail:RATE_LIMITED]" }), async (run) => {
      const result = await run.wait();
      assert.equal(result.ok, false);
      assert.throws(() => check(result), (problem: AmuxError) => problem.code === "RATE_LIMITED" && problem.runId === run.id);
    }));

  test("runs that cannot start", async () => {
    const cases: [string, number, Partial<RunSpec>][] = [
      ["VALIDATION_ERROR", 2, { flags: ["--nonsense"] }],
      ["VALIDATION_ERROR", 2, { timeout: -1 }],
      ["VALIDATION_ERROR", 2, { approve: "perhaps" as "ask" }],
      ["AGENT_NOT_FOUND", 3, { agent: "nobody" }],
      ["AGENT_NOT_FOUND", 3, { agent: "--version" }],
    ];
    for (const [code, exitCode, more] of cases) {
      const spec = { agent: "demo", prompt: "x", ...more };
      await using(client.run(spec), async (run) => {
        assert.equal((await refused(code, run.wait())).exitCode, exitCode);
        await refused(code, run.wait()); // again, not an end without an error
      });
      assert.equal((await refused(code, client.detach(spec))).exitCode, exitCode);
    }
    await refused("VALIDATION_ERROR", client.run({ agent: "demo" }));
    await refused("VALIDATION_ERROR", client.run({ agent: "demo", prompt: "x", cwd: join(desk.home, "nowhere") }));
    const nowhere = new ProcessTransport({ program: join(desk.home, "amux") });
    await refused("PROGRAM_NOT_FOUND", new Client(nowhere).run({ agent: "demo", prompt: "x" }));
  });

  test("secrets and prompts do not show on the command line", () =>
    using(client.run({ agent: "demo", prompt: "--version [sleep:1000]", env: { SECRET: "hunter2" } }), async (run) => {
      assert.equal((await reach(run, "user_message")).text, "--version [sleep:1000]");
      const listed = commandLines();
      assert(listed.includes("--monitor-stdin"));
      assert(!listed.includes("hunter2") && !listed.includes("--version [sleep"), listed);
    }));

  test("close stops the run", async () => {
    const run = await client.run({ agent: "demo", prompt: "[spawn:daemon][ignore-term][sleep:1000]", flags: ["--grace=100ms"] });
    const pid = Number(/pid (\d+)/.exec(String((await reach(run, "tool_result")).output))?.[1]);
    await Promise.all([run.close(), run.close()]);
    assert(gone(pid));
    assert.equal((await client.inspect(run.id ?? "")).state, "canceled");
    await refused("RUN_NOT_ACTIVE", run.send("more"));
    await refused("ABORTED", run.wait());
  });

  test("close while another call reads", async () => {
    const run = await client.run({ agent: "demo", prompt: "[sleep:1000]" });
    await reach(run, "turn_start");
    const reader = run.wait();
    await Promise.all([refused("ABORTED", reader), run.close()]);
  });

  test("amux killed in the middle", async () => {
    const run = await client.run({ agent: "demo", prompt: "[spawn:daemon][sleep:1000]" });
    const pid = Number(/pid (\d+)/.exec(String((await reach(run, "tool_result")).output))?.[1]);
    killAmuxOf(run);
    assert.equal((await refused("HOST_GONE", run.wait())).runId, run.id);
    await run.close();
    await until(() => gone(pid), "what the agent started is gone");
    // What was not read is in the record, and goes on behind what was.
    await using(client.open(run.id ?? "", { after: run.seq }), async (rest) => assert.equal((await rest.wait()).ok, false));
  });

  test("a slow reader holds no memory, delays no run, and loses nothing", () =>
    using(client.run({ agent: "demo", prompt: "[lines:30000]" }), async (run) => {
      await reach(run, "text_delta");
      await until(async () => (await client.inspect(run.id ?? "")).ended !== undefined, "the run has ended");
      assert(amuxOf(run).stdoutHeld < 2 << 20);
      let count = 1;
      for await (const event of run) if (event.type === "text_delta") count++;
      assert(count >= 30_000);
      assert.equal((await client.inspect(run.id ?? "")).events, run.seq);
    }));

  test("a long event", () =>
    using(client.run({ agent: "demo", prompt: `[bigline:${8 << 20}]` }), async (run) => {
      let longest = 0;
      for await (const event of run) if (event.type === "message_stop") longest = Math.max(longest, event.text.length);
      assert.equal(longest, 8 << 20);
    }));

  test("the example of README", () => {
    const example = join(import.meta.dirname, "..", "examples", "approve.js");
    const out = execFileSync(process.execPath, [example, "demo", "[approve]"], {
      env: { ...desk.env, AMUX_PROGRAM: desk.program },
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    assert.equal(out, "Done.\n");
  });
});

describe("a detached run", { timeout: patience }, () => {
  test("control", async () => {
    await using(client.detach({ agent: "demo", prompt: "[approve][ask][sleep:1000]", approve: "ask", tags: ["ctl"] }), async (run) => {
      const request = await reach(run, "approval_request");
      assert.deepEqual((await client.list({ tags: ["ctl"] })).map((r) => [r.runId, r.agent]), [[run.id, "demo"]]);
      await refused("INTERACTION_NOT_FOUND", run.approve("nobody-asked"));
      await run.approve(request.interaction_id, { content: "-x" });
      await reach(run, "input_required");
      await run.answer("--version");
      assert.match((await reach(run, "message_stop")).text, /--version/);
      await refused("STDIN_NOT_AVAILABLE", run.send("more"));
      await refused("CAPABILITY_ERROR", run.setModel("large"));
      await run.stop();
      const { end } = await run.wait();
      assert.deepEqual([end.state, end.reason], ["canceled", "stopped"]);
    });
    assert.deepEqual(await client.list({ tags: ["ctl"] }), []);
    const ended = await client.list({ ended: true, tags: ["ctl"], filters: { state: "canceled" } });
    assert.deepEqual(ended.map((r) => r.state), ["canceled"]);
    await refused("VALIDATION_ERROR", client.list({ filters: { colour: "blue" } }));
    await refused("VALIDATION_ERROR", client.inspect("no-such-run"));
    await using(client.open("no-such-run"), (run) => refused("VALIDATION_ERROR", run.wait()));
  });

  test("a closed reader leaves the run", async () => {
    const run = await client.detach({ agent: "demo", prompt: "[sleep:1000]" });
    await reach(run, "turn_start");
    const reader = run.wait();
    await Promise.all([refused("ABORTED", reader), run.close()]);
    const id = run.id ?? "";
    assert.equal((await client.inspect(id)).state, "running");
    const seq = await using(client.open(id), async (again) => {
      await again.interrupt();
      return (await again.wait()).end.seq;
    });
    await using(client.open(id, { after: seq }), async (rest) => {
      for await (const event of rest) assert.fail(`event ${event.seq} behind the end`);
      await refused("RUN_NOT_ACTIVE", rest.wait());
    });
  });

  test("a reader that is killed, and another that goes on", async () => {
    const run = await client.detach({ agent: "demo", prompt: "[lines:500][ask][lines:500]", approve: "ask" });
    await run.close();
    const program = `
      import { Client, ProcessTransport } from "amux";
      for await (const event of await new Client(new ProcessTransport({ program: process.argv[1] })).open(process.argv[2])) {
        console.log(event.seq);
        if (event.seq === 400) await new Promise(() => setInterval(() => {}, 1000)); // before the question
      }`;
    const reader = spawn(process.execPath, ["--input-type=module", "-e", program, desk.program, run.id ?? ""], {
      env: desk.env,
      cwd: join(import.meta.dirname, ".."),
      stdio: ["ignore", "pipe", "inherit"],
    });
    const seen: number[] = [];
    for await (const line of createInterface(reader.stdout)) {
      if (seen.push(Number(line)) === 300) reader.kill("SIGKILL");
    }
    assert(seen.length >= 300 && seen.length <= 400);
    await using(client.open(run.id ?? "", { after: seen.at(-1) ?? 0 }), async (rest) => {
      for await (const event of rest) {
        seen.push(event.seq);
        if (event.type === "input_required") await rest.answer("go on");
      }
      assert.deepEqual(seen, range(rest.end?.seq ?? 0));
      assert(seen.length > 1000);
    });
  });

  test("amux logs is killed and started again", () =>
    using(client.detach({ agent: "demo", prompt: "[lines:300][ask][lines:300]", approve: "ask" }), async (run) => {
      const seen: number[] = [];
      for await (const event of run) {
        seen.push(event.seq);
        assert(isKnown(event));
        if (seen.length === 50 || seen.length === 250 || event.type === "input_required") killAmuxOf(run);
        if (event.type === "input_required") await run.answer("go on");
      }
      assert.deepEqual(seen, range(run.end?.seq ?? 0));
    }));
});
