import { acting, ago, failure, fill, h, plain, say } from "./dom.js";
import { ask, events, signIn, signOut } from "./api.js";
import { listen, more, older, questions, reached, runs, watch } from "./store.js";
import { inbox } from "./questions.js";
import { changes, terminal, transcript } from "./run.js";
import { start } from "./start.js";
import { usage } from "./usage.js";

const main = document.getElementById("main"), side = document.getElementById("side"), nav = document.getElementById("nav");
document.getElementById("skip").onclick = () => main.focus();

let leave = () => {}, shown = 0, watching = null;

// route shows the view that the address names.
async function route() {
	const turn = ++shown;
	const [, page, id, tab] = location.hash.split("/");
	const [show, view] = page === "runs" && id ? [{ diff: changes, terminal }[tab] ?? transcript, "run"] : { inbox: [inbox, "inbox"], new: [start, "new"], usage: [usage, "usage"] }[page] ?? [home, "home"];
	leave();
	leave = () => {};
	document.body.dataset.view = view;
	main.className = "";
	drawSide();
	try {
		const end = await show(main, id && decodeURIComponent(id));
		if (turn === shown) leave = end;
		else end();
	} catch (error) {
		if (turn === shown) fill(main, h("h1", {}, "This cannot be shown"), h("p", {}, failure(error)));
	}
}

function home() {
	fill(main, h("h1", {}, "amux"), h("p", {}, "Choose a run, or ", h("a", { href: "#/new" }, "start one"), "."),
		h("h2", {}, "This browser"), h("div", { class: "row" },
			h("button", { onclick: acting(async () => {
				const { path } = await ask("POST", "/v1/links");
				fill(link, h("label", { for: "link" }, "Open this in the other browser, within ten minutes. It works once."), h("input", { id: "link", readonly: true, value: location.origin + path }));
			}) }, "Sign another browser in"),
			h("button", { onclick: acting(signOut) }, "Sign out")), link);
	return () => {};
}
const link = h("div");

// The list of runs keeps its elements while it changes, so that who clicks on one hits it.
const rows = new Map(); // by id
const liveTitle = h("h2"), liveRuns = h("ul", { class: "runs" }), endedRuns = h("ul", { class: "runs" });
const olderRow = h("div", { class: "row" }, h("button", { onclick: acting(older) }, "Older ones"));
fill(side, liveTitle, liveRuns, h("h2", {}, "Ended"), endedRuns, olderRow);

const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };

function row(run, open) {
	let r = rows.get(run.run_id);
	if (!r) {
		r = { title: h("span", { class: "title" }), state: h("span"), more: h("span", { class: "faint" }) };
		r.link = h("a", { href: `#/runs/${run.run_id}` }, r.title, r.state, r.more);
		r.node = h("li", {}, r.link);
		rows.set(run.run_id, r);
	}
	write(r.title, plain(run.name || run.prompt || "a conversation"));
	write(r.state, run.state.replace("_", " "));
	r.state.className = `state state-${run.state}${run.state === "running" ? " live" : ""}`;
	write(r.more, plain(` · ${run.agent} · ${ago(run.ended ?? run.created)}`));
	run.run_id === open ? r.link.setAttribute("aria-current", "page") : r.link.removeAttribute("aria-current");
	return r.node;
}

function place(list, nodes) {
	if (nodes.length === list.children.length && nodes.every((n, i) => n === list.children[i])) return;
	list.replaceChildren(...nodes);
}

function drawSide() {
	const open = location.hash.split("/")[2];
	const sorted = [...runs.values()].sort((a, b) => a.run_id < b.run_id ? 1 : -1);
	const held = document.activeElement;
	const live = sorted.filter(r => !r.ended), ended = sorted.filter(r => r.ended).slice(0, 500);
	for (const id of rows.keys()) if (!runs.has(id)) rows.delete(id);
	write(liveTitle, `Live (${live.length})`);
	place(liveRuns, live.map(r => row(r, open)));
	place(endedRuns, ended.map(r => row(r, open)));
	if (held !== document.activeElement && side.contains(held)) held.focus();
	olderRow.hidden = !more || ended.length === 500;
}

let told = "";
function draw() {
	drawSide();
	drawNav();
}

function drawNav() {
	const count = questions.size;
	document.title = count ? `(${count}) amux` : "amux";
	const page = location.hash.split("/")[1] ?? "";
	const entry = (name, label) => h("a", { href: `#/${name}`, "aria-current": page === name ? "page" : null }, label);
	const state = `${page} ${count} ${reached}`;
	if (state === told) return;
	told = state;
	const held = nav.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
	fill(nav, entry("", "Runs"), entry("inbox", count ? `Questions (${count})` : "Questions"), entry("new", "Start a run"), entry("usage", "Usage"),
		reached ? null : h("strong", { class: "last" }, "the server does not answer; this page goes on when it is back"));
	if (held) nav.querySelector(`a[href="${held}"]`)?.focus();
}

// enter shows the sign-in.
function enter(why) {
	watching?.abort();
	leave();
	leave = () => {};
	document.body.dataset.signed = "no";
	main.className = "";
	const token = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
	fill(main, h("h1", {}, "Sign in to amux"), why ? h("p", { role: "alert" }, why) : null,
		h("p", {}, "Open the link that amux serve has printed, or give the token: it is in the file http.token in the folder ~/.agent-mux."),
		h("form", { onsubmit: acting(async () => { await signIn({ token: token.value.trim() }); begin(); }) },
			h("label", { for: "token" }, "Token"), token, h("div", { class: "row" }, h("button", { class: "first" }, "Sign in"))));
}

async function begin() {
	document.body.dataset.signed = "yes";
	watching = new AbortController();
	const signal = watching.signal;
	events.signedOut = () => { if (!signal.aborted) enter(); };
	route();
	drawNav();
	try {
		await watch(signal);
	} catch (error) {
		if (!signal.aborted) say(failure(error));
	}
}

async function load() {
	const code = location.hash.match(/^#sign-in=(.+)$/)?.[1];
	if (code) {
		history.replaceState(null, "", "#/");
		try {
			await signIn({ code });
		} catch (error) {
			// The link of a browser that is signed in may be opened again.
			if (!await ask("GET", "/v1/health").catch(() => null)) {
				enter(failure(error));
				return;
			}
		}
	}
	begin();
}

listen(draw);
addEventListener("hashchange", () => {
	if (location.hash.startsWith("#sign-in=")) load();
	else if (document.body.dataset.signed === "yes") { route(); drawNav(); }
});
load();
