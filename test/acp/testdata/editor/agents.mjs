// Two editors made with the official SDK, one after the other, on one session of an agent.
// What they receive is checked by the SDK's own schema. It prints one line of JSON.
// Arguments: amux, the folder, the prompts (JSON), the options of amux acp.
import { spawn, spawnSync } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";

const [program, cwd, prompts, ...options] = process.argv.slice(2);
const { text, asks, hangs } = JSON.parse(prompts);
const seen = { asked: [], updates: {}, reasons: {}, errors: {} };

/** What one editor is told while it is open. */
async function edit(work) {
  const amux = spawn(program, ["acp", ...options], { stdio: ["pipe", "pipe", "inherit"] });
  const told = { text: "", user: "", tools: new Set(), ended: new Set(), hold: false, heard: () => {} };
  const editor = client({ name: "test" })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      seen.asked.push({ kinds: params.options.map((o) => o.kind), title: params.toolCall.title, kind: params.toolCall.kind });
      return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
    })
    .onRequest(methods.client.elicitation.create, () => ({ action: "cancel" }))
    .onNotification(methods.client.session.update, ({ params: { update } }) => {
      const kind = update.sessionUpdate;
      seen.updates[kind] = (seen.updates[kind] ?? 0) + 1;
      if (kind === "agent_message_chunk" && update.content.type === "text") told.text += update.content.text;
      if (kind === "user_message_chunk") told.user += update.content.text;
      if (kind === "tool_call") told.tools.add(update.toolCallId);
      if (update.status === "completed" || update.status === "failed") told.ended.add(update.toolCallId);
      told.heard();
    });
  const stream = ndJsonStream(Writable.toWeb(amux.stdin), Readable.toWeb(amux.stdout));
  try {
    await editor.connectWith(stream, async (ctx) => {
      const init = await ctx.request(methods.agent.initialize, {
        protocolVersion: 1,
        clientCapabilities: { session: { notices: {}, compaction: {} }, elicitation: { form: {} } },
      });
      seen.version = init.protocolVersion;
      await work(ctx, told);
    });
  } finally {
    amux.stdin.end();
    amux.kill("SIGKILL"); // an editor's death costs nothing
  }
}

/** Waits until what was told is enough. */
const until = (told, enough) =>
  new Promise((done) => {
    told.heard = () => enough() && done();
    told.heard();
  });

/** Waits until nothing more is told. */
const quiet = async (told) => {
  for (let had = -1; had !== told.text.length; ) {
    had = told.text.length;
    await new Promise((done) => setTimeout(done, 300));
  }
};

let sessionId, begun;
const say = async (ctx, name, prompt) => {
  const turn = ctx.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: prompt }] });
  const { stopReason } = await turn.catch((error) => ((seen.errors[name] = error.message), {}));
  seen.reasons[name] = stopReason;
};

await edit(async (ctx, told) => {
  const session = await ctx.request(methods.agent.session.new, { cwd, mcpServers: [] });
  sessionId = seen.session = session.sessionId;
  begun = new Date().getMinutes();
  seen.modes = session.modes?.availableModes.map((m) => m.id);
  seen.options = (session.configOptions ?? []).map((o) => o.id);
  await say(ctx, "text", text);
  await say(ctx, "tool", asks);
  const model = session.configOptions?.find((o) => o.id === "model");
  // What opencode's maker serves is behind the network, which tests have none of.
  const other = model?.options.find((o) => o.value !== model.currentValue && o.value !== "default" && !o.value.startsWith("opencode/"));
  if (other) {
    const set = await ctx.request(methods.agent.session.setConfigOption, { sessionId, configId: "model", value: other.value });
    seen.model = set.configOptions.find((o) => o.id === "model").currentValue === other.value;
  }
  await quiet(told);
  seen.text = told.text;
  seen.open = [...told.tools].filter((id) => !told.ended.has(id));
  seen.tools = told.tools.size;
});
await edit(async (ctx, told) => {
  const { sessions } = await ctx.request(methods.agent.session.list, { cwd });
  seen.listed = sessions.map((s) => s.sessionId);
  const loaded = await ctx.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  await quiet(told);
  seen.same = told.text === seen.text;
  seen.user = told.user;
  const before = told.text.length;
  if (loaded.modes) {
    await ctx.request(methods.agent.session.setMode, { sessionId, modeId: "auto" });
    seen.mode = "auto";
  }
  if (hangs) {
    const waiting = say(ctx, "cancelled", hangs);
    await until(told, () => told.text.length > before);
    await ctx.notify(methods.agent.session.cancel, { sessionId });
    await waiting;
    await say(ctx, "after", text);
  }
  await ctx.request(methods.agent.session.close, { sessionId });
});

// What was closed goes on in another run, and is one session.
spawnSync(program, ["wait", sessionId], { timeout: 60_000 }); // however it has ended
while (options.includes("gemini") && new Date().getMinutes() === begun) // it names its files by the minute, and overwrites what it opens again in the same
  await new Promise((done) => setTimeout(done, 1000));
await edit(async (ctx, told) => {
  await ctx.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  await quiet(told);
  const before = told.text.length;
  const { stopReason } = await ctx.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  const { sessions } = await ctx.request(methods.agent.session.list, { cwd });
  if (stopReason !== "end_turn" || told.text.length === before || sessions.length !== seen.listed.length)
    throw new Error(`after its end the session goes on to ${stopReason}, says ${told.text.slice(before)}, and there are ${sessions.length} sessions`);
  await ctx.request(methods.agent.session.close, { sessionId });
});
spawnSync(program, ["wait", "--tag", `acp-${sessionId}`], { timeout: 60_000 });
console.log(JSON.stringify(seen));
