// An editor made with the official SDK. It checks what it receives by the SDK's own schema,
// and prints one line of JSON: what it has seen.
import { execFileSync, spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";

const [program, cwd] = process.argv.slice(2);
const amux = spawn(program, ["acp", "--agent", "demo"], { stdio: ["pipe", "pipe", "inherit"] });
const stream = ndJsonStream(Writable.toWeb(amux.stdin), Readable.toWeb(amux.stdout));

const seen = { updates: {}, text: "", asked: [], forms: [], reasons: [] };
// The SDK hands a response on before the notifications that came ahead of it are dealt with.
const quiet = async () => {
  for (let had = -1; had !== seen.text.length; ) {
    had = seen.text.length;
    await new Promise((done) => setTimeout(done, 100));
  }
};
const editor = client({ name: "test" })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    seen.asked.push(params.options.map((o) => o.kind));
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  })
  .onRequest(methods.client.elicitation.create, ({ params }) => {
    seen.forms.push(params.message);
    const [name, field] = Object.entries(params.requestedSchema.properties)[0];
    return { action: "accept", content: { [name]: field.oneOf ? field.oneOf[0].const : "blue" } };
  })
  .onNotification(methods.client.session.update, ({ params }) => {
    const kind = params.update.sessionUpdate;
    seen.updates[kind] = (seen.updates[kind] ?? 0) + 1;
    if (kind === "agent_message_chunk") seen.text += params.update.content.text;
  });

await editor.connectWith(stream, async (ctx) => {
  const say = async (sessionId, text) => {
    const { stopReason } = await ctx.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    seen.reasons.push(stopReason);
  };
  const init = await ctx.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: { session: { notices: {}, compaction: {} }, elicitation: { form: {} } },
  });
  seen.version = init.protocolVersion;
  const { sessionId, configOptions } = await ctx.request(methods.agent.session.new, { cwd, mcpServers: [] });
  const shown = (options) => options.map((o) => `${o.id}: ${o.currentValue} of ${o.options.map((c) => c.value).join(" ")}`).join("; ");
  const choose = (value) => ctx.request(methods.agent.session.setConfigOption, { sessionId, configId: "model", value });
  seen.options = [shown(configOptions)];
  seen.options.push(shown((await choose("demo-large")).configOptions));
  seen.refused = await choose("no-such-model").then(() => "", (error) => error.message);
  await ctx.request(methods.agent.session.setConfigOption, { sessionId, configId: "mode", value: "auto" });
  await ctx.request(methods.agent.session.setMode, { sessionId, modeId: "ask" });
  await say(sessionId, "hello");
  await say(sessionId, "[approve][think:hm][say:bye]");
  await say(sessionId, "[ask:which colour?]");
  await quiet();
  const before = seen.text;
  seen.text = "";
  const loaded = await ctx.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  seen.options.push(shown(loaded.configOptions));
  await quiet();
  seen.same = seen.text === before;
  const waiting = say(sessionId, "[sleep:600]");
  setTimeout(() => ctx.notify(methods.agent.session.cancel, { sessionId }), 300);
  await waiting;
  const { sessions } = await ctx.request(methods.agent.session.list, {});
  seen.sessions = sessions.length;
  const logs = execFileSync(program, ["logs", "--json", sessionId], { encoding: "utf8" });
  seen.model = /"type":"token_usage".*"model":"([^"]*)"/.exec(logs)?.[1];
  await ctx.request(methods.agent.session.close, { sessionId });
  await ctx.request(methods.agent.session.delete, { sessionId });
  await ctx.request(methods.agent.session.delete, { sessionId });
  seen.left = (await ctx.request(methods.agent.session.list, {})).sessions.length;
});
console.log(JSON.stringify(seen));
amux.stdin.end();
