import { acting, fill, h } from "./dom.js";
import { ask } from "./api.js";
import { put, runs } from "./store.js";

/** start is the view that starts a run. */
export async function start(main) {
	const folders = [...new Set([...runs.values()].map(r => r.cwd))].slice(0, 50);
	const field = (label, node, id) => { node.id = id; return [h("label", { for: id }, label), node]; };
	const agent = h("select", { required: true }), prompt = h("textarea", { rows: 5 }), cwd = h("input", { list: "folders", required: true, value: folders[0] ?? "" });
	const approve = h("select", {}, [["ask", "ask me"], ["rules", "by my rules, else ask"], ["deny", "deny"], ["auto", "approve all"]].map(([value, label]) => h("option", { value }, label)));
	const name = h("input"), model = h("input", { list: "models" }), models = h("datalist", { id: "models" });
	const check = label => { const box = h("input", { type: "checkbox" }); return { box, node: h("label", { class: "check" }, box, label) }; };
	const talk = check("a conversation: it takes more prompts"), tree = check("in a git worktree of its own");
	fill(main, h("h1", {}, "Start a run"), h("form", { class: "wide", onsubmit: acting(async () => {
		const run = await ask("POST", "/v1/runs", {
			agent: agent.value, cwd: cwd.value, approve: approve.value, prompt: prompt.value, conversation: talk.box.checked, worktree: tree.box.checked,
			...name.value && { name: name.value }, ...model.value && { model: model.value },
		});
		put(run);
		location.hash = `#/runs/${run.run_id}`;
	}) },
	field("Agent", agent, "agent"), field("Prompt", prompt, "prompt"), field("Folder", cwd, "cwd"), h("datalist", { id: "folders" }, folders.map(f => h("option", { value: f }))),
	field("When it asks permission", approve, "approve"), field("Model (or the agent's own choice)", model, "model"), models, field("Name (or none)", name, "name"), talk.node, tree.node,
	h("div", { class: "row" }, h("button", { class: "first" }, "Start"))));
	const { agents } = await ask("GET", "/v1/agents");
	const ready = a => a.agent && a.installed && !a.problem;
	fill(agent, agents.filter(a => a.agent).sort((a, b) => ready(b) - ready(a)).map(a => h("option", { value: a.agent, disabled: !ready(a) }, ready(a) ? a.name : `${a.name} (${a.problem ? "cannot be used" : "not installed"})`)));
	const offer = () => fill(models, (agents.find(a => a.agent === agent.value)?.models ?? []).map(m => h("option", { value: m.id }, m.name)));
	agent.addEventListener("change", offer);
	offer();
	return () => {};
}
