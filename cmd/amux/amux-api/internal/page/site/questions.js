import { acting, diff, fill, h, say } from "./dom.js";
import { ask, Problem } from "./api.js";
import { answered, keyOf, listen, questions } from "./store.js";

// card is a question with what a person needs to judge it, and the answers.
function card(q, level) {
	const e = q.event;
	const send = body => acting(async () => {
		try {
			await ask("POST", `/v1/runs/${q.run_id}/questions/${encodeURIComponent(q.interaction_id)}`, typeof body === "function" ? body() : body);
			say(q.approval ? "answered" : "sent");
		} catch (error) {
			if (!(error instanceof Problem) || (error.status !== 409 && error.status !== 404)) throw error;
			say("it was answered already");
		}
		answered(q.run_id, q.interaction_id);
	});
	const head = h(`h${level}`, {}, q.approval ? `${e.action}: ${e.detail}` : e.question);
	const from = h("div", { class: "faint" }, `${q.agent} in ${q.cwd} · `, h("a", { href: `#/runs/${q.run_id}` }, q.name || "its run"), q.why ? ` · ${q.why}` : "");
	return h("article", { class: "card", "data-question": q.interaction_id }, head, from, q.approval ? approval(q, e, send) : text(e, send));
}

function approval(q, e, send) {
	const reason = h("input", { "aria-label": "Reason, if you deny", placeholder: "reason, if you deny" });
	const input = e.input == null ? null : JSON.stringify(e.input, null, 2);
	const edit = q.editable && input ? h("textarea", { rows: 6, spellcheck: "false", "aria-label": "Changed input", value: input }) : null;
	return [
		q.diff ? diff(q.diff) : null,
		input ? h("details", { open: !q.diff }, h("summary", {}, "Input"), h("pre", { tabindex: 0 }, input)) : null,
		h("div", { class: "row" },
			h("button", { class: "first", onclick: send({ answer: "approve" }) }, "Approve"),
			(q.rules ?? []).map(rule => h("button", { onclick: send({ answer: "approve", allow_rules: [rule] }) }, `Approve ${rule} in this run`)),
			h("button", { onclick: send(() => ({ answer: "deny", ...reason.value && { text: reason.value } })) }, "Deny"), reason),
		edit ? h("details", {}, h("summary", {}, "Approve with another input"), edit, h("div", { class: "row" },
			h("button", { onclick: send(() => ({ answer: "approve", updated_input: JSON.parse(edit.value) })) }, "Approve with this input"))) : null,
	];
}

function text(e, send) {
	const all = e.questions?.length ? e.questions : [{ question: e.question, options: [] }];
	const read = all.map((asks, i) => {
		const other = h("input", { "aria-label": asks.question, placeholder: asks.options?.length ? "another answer" : "answer" });
		const kind = asks.multiple ? "checkbox" : "radio";
		const boxes = (asks.options ?? []).map(option => h("input", { type: kind, name: `answer-${i}`, "data-option": option }));
		const node = h("fieldset", {}, h("legend", {}, asks.header || asks.question), boxes.map(b => h("label", { class: "check" }, b, b.dataset.option)), other);
		return { node, question: asks.question, value: () => [...boxes.filter(b => b.checked).map(b => b.dataset.option), other.value].filter(Boolean).join(", ") };
	});
	// Several are answered by an object: question → answer.
	const answer = () => e.questions?.length ? JSON.stringify(Object.fromEntries(read.map(r => [r.question, r.value()]))) : read[0].value();
	return h("form", { onsubmit: send(() => ({ answer: "answer", text: answer() })) },
		e.context ? h("p", {}, e.context) : null, read.map(r => r.node), h("button", { class: "first" }, "Answer"));
}

/** cards keeps the open questions in an element: those of a run, or all. It returns what ends that. */
export function cards(at, { run, level = 2, empty = "" }) {
	const shown = new Map();
	const draw = () => {
		for (const [key, node] of shown) {
			if (questions.has(key)) continue;
			const held = node.contains(document.activeElement);
			node.remove();
			shown.delete(key);
			if (held) (at.querySelector("button") ?? document.getElementById("main")).focus();
		}
		for (const q of questions.values()) {
			const key = keyOf(q.run_id, q.interaction_id);
			if (run && q.run_id !== run || shown.has(key)) continue;
			if (shown.size === 0) at.replaceChildren();
			const node = card(q, level);
			shown.set(key, node);
			at.append(node);
		}
		if (shown.size === 0) fill(at, empty && h("p", {}, empty));
	};
	draw();
	return listen(draw);
}

/** inbox is the view of all questions. */
export function inbox(main) {
	const at = h("div");
	fill(main, h("h1", {}, "Questions"), at);
	return cards(at, { empty: "No agent asks anything." });
}
