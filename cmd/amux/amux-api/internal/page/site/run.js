import { acting, diff, failure, fill, h, say } from "./dom.js";
import { ask, follow } from "./api.js";
import { List } from "./list.js";
import { Transcript } from "./transcript.js";
import { cards } from "./questions.js";
import { listen, put, runs } from "./store.js";

const who = { user: "You", message: "Agent", question: "It asks" };

// body is what an item has below its heading.
function body(item) {
	switch (item.kind) {
	case "thinking":
		return h("details", {}, h("summary", { class: "faint" }, "Thinking"), h("div", { class: "text" }, item.text));
	case "tool":
		return h("details", { open: item.open ?? false, ontoggle: e => { item.open = e.currentTarget.open; } },
			h("summary", {}, h("span", { class: `state state-${item.state === "failed" ? "failed" : "completed"}` }, { runs: "… ", done: "✓ ", failed: "✗ " }[item.state]), `${item.name} `, h("code", {}, (item.title ?? "").slice(0, 300)), h("span", { class: "faint" }, { runs: " (works)", done: "", failed: " (failed)" }[item.state])),
			item.diff ? diff(item.diff) : null,
			item.input ? h("pre", { tabindex: 0 }, item.input) : null,
			item.output ? h("pre", { tabindex: 0, "data-output": "" }, item.output) : null);
	case "question":
		return [h("div", { class: "text" }, item.text), item.diff && item.state !== "open" ? diff(item.diff) : null, h("span", { class: `state state-${item.state === "open" ? "waiting" : ""}` }, item.state)];
	}
	return h("div", { class: "text" }, item.text, item.aborted ? " (broken off)" : "");
}

function drawItem(item) {
	return h("div", { class: `item ${item.kind}${item.bad ? " bad" : ""}`, role: "listitem" }, who[item.kind] ? h("div", { class: "who" }, item.parent ? `${who[item.kind]} (below)` : who[item.kind]) : null, body(item));
}

function redrawItem(item, element) {
	const at = element.querySelector(":scope > .text");
	// A message that grows gets what is new.
	if (at && (item.kind === "message" || item.kind === "log") && !item.aborted) {
		const version = String(item.version ?? 0);
		const shown = at.dataset.version === version ? Number(at.dataset.shown) : 0;
		if (shown === 0) at.replaceChildren();
		at.dataset.version = version;
		at.append(...fill(h("span"), item.text.slice(shown)).childNodes);
		at.dataset.shown = item.text.length;
		return;
	}
	const open = element.querySelector(":scope > details")?.open;
	const fresh = drawItem(item);
	const details = fresh.querySelector(":scope > details");
	if (details && open !== undefined) details.open = open;
	element.replaceChildren(...fresh.childNodes);
	element.className = fresh.className;
}

/** heading is the top of each view of a run. It returns what ends its updates. */
function heading(at, id, tab, view = { transcript: null }) {
	const act = (verb, label, sure) => h("button", { "data-act": verb, onclick: acting(async () => {
		if (sure && !confirm(sure)) return;
		put(await ask("POST", `/v1/runs/${id}/${verb}`));
	}) }, label);
	const buttons = {
		interrupt: act("interrupt", "Interrupt"), pause: act("pause", "Pause"), resume: act("resume", "Resume"),
		stop: act("stop", "Stop"), kill: act("kill", "Kill", "Kill the agent and all its processes?"),
	};
	const title = h("h1"), about = h("div", { class: "faint" }), spent = h("span", { class: "faint" }), row = h("div", { class: "row" }, Object.values(buttons));
	const link = (name, label) => h("a", { href: `#/runs/${id}${name && `/${name}`}`, "aria-current": name === tab ? "page" : null }, label);
	fill(at, title, about, row, h("nav", { class: "tabs", "aria-label": "Of this run" }, link("", "What happened"), link("diff", "Diff"), link("terminal", "Terminal"), spent));
	const draw = () => {
		const run = runs.get(id);
		if (!run) return;
		fill(title, run.name || run.prompt || "a conversation");
		fill(about, h("span", { class: `state state-${run.state}` }, run.state.replace("_", " ")), ` · ${run.agent} · ${run.cwd} · ${run.run_id}`, run.message ? ` · ${run.message}` : "");
		for (const b of Object.values(buttons)) b.hidden = Boolean(run.ended);
		buttons.pause.hidden ||= run.state === "paused";
		buttons.resume.hidden ||= run.state !== "paused";
		buttons.interrupt.hidden ||= run.state !== "running";
		const u = view.transcript?.usage;
		if (u && u.input + u.output > 0) fill(spent, `${u.input} tokens in, ${u.output} out${u.usd == null ? "" : `, $${u.usd.toFixed(4)}`}`);
	};
	draw();
	return { draw, end: listen(draw) };
}

/** known makes sure that a run is in the store, and returns its id; the address may have its name. */
async function known(ref) {
	if (runs.has(ref)) return ref;
	const run = await ask("GET", `/v1/runs/${encodeURIComponent(ref)}`);
	put(run);
	return run.run_id;
}

// composer sends more prompts to a conversation.
function composer(at, id) {
	const prompt = h("textarea", { rows: 3, "aria-label": "Prompt", placeholder: "another prompt (Ctrl-Enter sends)" });
	const send = body => acting(async () => {
		const sent = body();
		if (sent.prompt === "") return;
		put(await ask("POST", `/v1/runs/${id}/prompts`, sent));
		if (sent.prompt) prompt.value = "";
	});
	const form = h("form", { onsubmit: send(() => ({ prompt: prompt.value })) }, prompt, h("div", { class: "row" }, h("button", { class: "first" }, "Send"), h("button", { type: "button", onclick: send(() => ({ end: true })) }, "End the conversation")));
	prompt.addEventListener("keydown", e => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) form.requestSubmit(); });
	const draw = () => {
		const run = runs.get(id);
		const wanted = Boolean(run?.conversation && !run.ended);
		if (wanted !== form.isConnected) wanted ? at.append(form) : form.remove();
	};
	draw();
	return listen(draw);
}

/** transcript is the view of what a run does, live. */
export async function transcript(main, ref) {
	const id = await known(ref);
	const list = new List(drawItem, redrawItem);
	const view = { transcript: new Transcript(list) };
	const head = h("div", { class: "head" }), open = h("div"), foot = h("div", { class: "foot" }, open);
	main.className = "whole";
	fill(main, head, list.node, foot);
	const top = heading(head, id, "", view);
	const ends = [top.end, cards(open, { run: id }), composer(foot, id), () => list.leave()];
	const leaving = new AbortController();
	follow(`/v1/runs/${id}/events`, {
		signal: leaving.signal,
		take(batch) {
			for (const { data } of batch) view.transcript.take(JSON.parse(data));
			top.draw();
		},
	}).catch(error => say(failure(error)));
	return () => {
		leaving.abort();
		for (const end of ends) end();
	};
}

/** changes is the view of what a run has changed in its work tree. */
export async function changes(main, ref) {
	const id = await known(ref);
	const head = h("div", { class: "head" }), at = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Diff" });
	main.className = "whole";
	fill(main, head, at);
	const top = heading(head, id, "diff");
	const draw = async () => {
		const d = await ask("GET", `/v1/runs/${id}/diff?patch=true`);
		const files = d.patch ? d.patch.split(/^(?=diff --git )/m) : [];
		fill(at, h("div", { class: "row" }, h("button", { onclick: acting(draw) }, "Look again"), h("span", { class: "faint" }, `${d.files.length + (d.more_files ?? 0)} files in ${d.root}`)),
			h("ul", {}, d.files.map(f => h("li", {}, `${f.status} `, h("code", {}, f.old_path ? `${f.old_path} → ${f.path}` : f.path), f.binary ? " (binary)" : ` +${f.added} −${f.deleted}`))),
			files.map(f => diff(f)), d.truncated ? h("p", {}, "This is not all: amux diff has the rest.") : null);
	};
	await draw().catch(error => fill(at, h("p", {}, failure(error))));
	return top.end;
}

/** terminal is the view of the screen of a run. */
export async function terminal(main, ref) {
	const id = await known(ref);
	const head = h("div", { class: "head" }), at = h("div", { class: "screen" });
	main.className = "whole";
	fill(main, head, at);
	const top = heading(head, id, "terminal");
	const { open } = await import("./terminal.js");
	const close = open(at, id);
	return () => { top.end(); close(); };
}
