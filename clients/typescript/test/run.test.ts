// Runs over a transport of the test's own.
import assert from "node:assert/strict";
import { test } from "node:test";

import { AmuxError, Client, isKnown, Run, type Channel, type InputLine, type Transport } from "amux";

import { refused } from "./harness.js";

const head = { run_id: "01M888HCKMYGJ6WQWXV9RSHYH8", time: "2026-11-25T02:28:43Z", agent: "a" };
const end = { ...head, type: "run_end", state: "completed", reason: "completed", code: "", exit_code: 0, turns: 1, cost: null };

/** A channel that gives what it has, then nothing for ever. */
class Fake implements Channel {
  readonly sent: InputLine[] = [];
  readonly values: unknown[];

  constructor(...values: unknown[]) {
    this.values = values;
  }

  async next(): Promise<unknown> {
    return this.values.length === 0 ? new Promise(() => undefined) : this.values.shift();
  }

  async send(line: InputLine): Promise<void> {
    this.sent.push(line);
  }

  async close(): Promise<void> {}
}

const say = (seq: number, text: string, more: object = {}): object => ({ type: "message_stop", ...head, seq, text, ...more });

test("the text is the last message of the main conversation", async () => {
  const fake = new Fake(say(1, "a"), say(2, "b"), say(3, "of a sub-agent", { parent_id: "c" }), say(4, "cut", { aborted: true }), { ...end, seq: 5 });
  assert.equal((await new Run(fake, undefined).wait()).text, "b");
});

test("a gap, a repeat, nonsense", async () => {
  for (const values of [[say(1, "a"), say(3, "b")], [say(1, "a"), say(1, "a")], [say(2, "a")], [{ type: "x" }], [{}], [7], [null]]) {
    const run = new Run(new Fake(...values), undefined);
    await refused("PARSE_ERROR", run.wait());
    await refused("PARSE_ERROR", run.next()); // it does not go on as if nothing had been
  }
});

test("one call reads", async () => {
  const run = new Run(new Fake(), undefined);
  void run.next();
  await assert.rejects(run.next(), /another call reads/);
});

test("events of types that are not known arrive as they are", async () => {
  const event = await new Run(new Fake({ ...head, type: "hologram", seq: 1, depth: 3 }), undefined).next();
  assert(event !== undefined && !isKnown(event));
  assert.equal((event as { depth: number }).depth, 3);
});

test("input lines", async () => {
  const fake = new Fake();
  const run = new Run(fake, undefined);
  await run.send("p");
  await run.approve();
  await run.approve("i", { a: 1 });
  await run.deny("i", "no");
  await run.answer("t", "i");
  await run.interrupt();
  await run.setModel("m");
  await run.setApprove("auto");
  await run.finish();
  await run.stop();
  assert.deepEqual(fake.sent, [
    { type: "prompt", text: "p" },
    { type: "approve" },
    { type: "approve", interaction_id: "i", updated_input: { a: 1 } },
    { type: "deny", interaction_id: "i", reason: "no" },
    { type: "answer", interaction_id: "i", text: "t" },
    { type: "interrupt" },
    { type: "set_model", model: "m" },
    { type: "set_approve", approve: "auto" },
    { type: "end" },
    { type: "stop" },
  ]);
});

test("another transport", async () => {
  const other: Transport = {
    start: async () => new Fake({ ...end, seq: 1 }),
    detach: async () => "r",
    open: async () => new Fake({ ...end, seq: 8 }),
    list: async () => [{ run_id: "r", agent: "a", state: "running" }, { agent: "a" }],
    inspect: async () => null,
  };
  const client = new Client(other);
  assert((await (await client.run({ agent: "a", prompt: "p" })).wait()).ok);
  assert((await (await client.open("r", { after: 7 })).wait()).ok);
  await refused("PARSE_ERROR", client.list());
  await refused("PARSE_ERROR", client.inspect("r"));
});

test("lines of errors", () => {
  assert.equal(AmuxError.fromLine('{"type":"error","code":"LOST","message":"m","input_line":3}')?.inputLine, 3);
  for (const line of ["", "amux: warning: x", "{", '{"type":"error","seq":1}', '{"type":"x"}', "[]", "null"]) {
    assert.equal(AmuxError.fromLine(line), undefined, line);
  }
});
