import { fill, h, plain } from "./dom.js";
import { socket } from "./api.js";
import { Terminal } from "./xterm/xterm.mjs";
import { FitAddon } from "./xterm/addon-fit.mjs";

// The terminal writes style elements, which the policy of this page ignores. What they say
// is given to the browser as sheets, which it allows.
function sheets(within) {
	const known = new Map();
	const read = () => {
		for (const element of within.querySelectorAll("style")) {
			let sheet = known.get(element);
			if (!sheet) {
				known.set(element, sheet = new CSSStyleSheet());
				document.adoptedStyleSheets.push(sheet);
			}
			sheet.replaceSync(element.textContent);
		}
	};
	const watch = new MutationObserver(read);
	watch.observe(within, { childList: true, subtree: true, characterData: true });
	read();
	return () => {
		watch.disconnect();
		const mine = new Set(known.values());
		document.adoptedStyleSheets = document.adoptedStyleSheets.filter(s => !mine.has(s));
	};
}

/** open shows the screen of a run in an element, and returns what ends that. */
export function open(at, id) {
	if (!document.querySelector("link[href='/xterm/xterm.css']")) document.head.append(h("link", { rel: "stylesheet", href: "/xterm/xterm.css" }));
	const term = new Terminal({ scrollback: 10_000, screenReaderMode: true, fontSize: 14 });
	const fit = new FitAddon();
	term.loadAddon(fit);
	const box = h("div", { class: "terminal" }), line = h("span", { role: "status" }, "connecting …");
	let to, held = false, left = false, wait = 200;
	const say = message => to?.readyState === WebSocket.OPEN && to.send(JSON.stringify(message));
	const resize = () => { if (held && box.clientWidth > 0) { const size = fit.proposeDimensions(); if (size) say({ type: "resize", ...size }); } };
	const take = h("button", { onclick: () => { say({ type: "take", steal: true }); term.focus(); } }, "Take the keyboard");
	const give = h("button", { hidden: true, onclick: () => say({ type: "give" }) }, "Give it back");
	fill(at, h("div", { class: "row" }, take, give, line), box);
	term.open(box);
	const unstyle = sheets(box);
	const bytes = new TextEncoder();
	term.onData(data => to?.readyState === WebSocket.OPEN && to.send(bytes.encode(data)));
	const sized = new ResizeObserver(resize);
	sized.observe(box);
	const connect = () => {
		to = socket(`/v1/runs/${encodeURIComponent(id)}/screen`);
		let fresh = true;
		to.onopen = () => { wait = 200; line.textContent = "connected"; };
		to.onmessage = ({ data }) => {
			if (fresh) { term.reset(); fresh = false; } // each connection begins with all that is on it
			if (typeof data !== "string") { term.write(new Uint8Array(data)); return; }
			const message = JSON.parse(data);
			switch (message.type) {
			case "size":
				term.resize(message.cols, message.rows);
				if (message.opened) term.reset();
				break;
			case "holder":
				held = Boolean(message.held);
				give.hidden = !held;
				line.textContent = held ? "the keyboard is yours" : "";
				resize();
				break;
			case "error":
				line.textContent = plain(message.message);
			}
		};
		to.onclose = ({ code, reason }) => {
			held = false;
			give.hidden = true;
			if (left) return;
			if (code === 1000) { if (reason) line.textContent = reason; take.hidden = true; return; }
			line.textContent = "not connected";
			setTimeout(() => { if (!left) connect(); }, wait);
			wait = Math.min(wait * 2, 3000);
		};
	};
	connect();
	return () => {
		left = true;
		sized.disconnect();
		to.close();
		unstyle();
		term.dispose();
	};
}
