// Elements are made of text and of other elements. What others wrote never becomes markup.

// hidden are characters that a reader cannot see, or that change what is read where: a
// command could look like another one. They are shown by their numbers.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** plain is a text whose hidden characters are shown. @param {unknown} text */
export function plain(text) {
	return String(text ?? "").replace(/\r\n/g, "\n").replace(hidden, c => `⟨${c.codePointAt(0).toString(16).padStart(4, "0")}⟩`);
}

/**
 * h makes an element. Properties that begin with "on" are listeners; true and false set and
 * leave out an attribute. Children are elements and texts.
 */
export function h(name, props = {}, ...children) {
	const node = document.createElement(name);
	for (const [key, value] of Object.entries(props)) {
		if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
		else if (key === "value") node.value = value;
		else if (value === true) node.setAttribute(key, "");
		else if (value !== false && value != null) node.setAttribute(key, value);
	}
	node.append(...nodes(children));
	return node;
}

const nodes = children => children.flat().filter(c => c != null && c !== false).map(c => c instanceof Node ? c : plain(c));

/** fill replaces what an element has. */
export function fill(node, ...children) {
	node.replaceChildren(...nodes(children));
	return node;
}

let quiet;

/** say tells something for a while, also to a screen reader. */
export function say(text) {
	const at = document.getElementById("status");
	at.textContent = plain(text);
	clearTimeout(quiet);
	quiet = setTimeout(() => at.replaceChildren(), 8000);
}

/** failure is an error as a line, with the way out. */
export const failure = error => error.hint ? `${error.message}. ${error.hint}` : error.message;

/** acting runs what a button is for, without a second time meanwhile, and says what failed. */
export const acting = action => async event => {
	event.preventDefault();
	const by = event.submitter ?? event.currentTarget;
	if (by.disabled) return;
	by.disabled = true;
	try {
		await action(event);
	} catch (error) {
		say(failure(error));
	} finally {
		by.disabled = false;
	}
};

/** ago is how long something is past, in the largest unit. */
export function ago(time) {
	const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
	for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
		if (seconds >= length) return `${Math.floor(seconds / length)} ${unit} ago`;
	}
	return "now";
}

/** diff shows a unified diff. */
export function diff(text) {
	return h("pre", { class: "diff", tabindex: 0, role: "group", "aria-label": "Diff" }, text.replace(/\n$/, "").split("\n").map(line => {
		const kind = /^(\+\+\+|---|@@|diff |index )/.test(line) ? "place" : line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : null;
		return h("span", { class: kind }, line);
	}));
}
