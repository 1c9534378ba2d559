// What people read of a run is made of its events: a message of its pieces, a call of a tool
// with its result. It grows with what is shown, not with the events.

/** most is how many characters of one text are kept; the log has all. */
const most = 1 << 20;

const cut = text => text.length > most ? `${text.slice(0, most)}\n… (the log has the rest)` : text;

const text = value => typeof value === "string" ? value : value == null ? "" : JSON.stringify(value, null, 2);

/** Transcript makes items of events. list.add(item) and list.change(item) get them. */
export class Transcript {
	constructor(list) {
		Object.assign(this, { list, seq: 0, open: new Map(), tools: new Map(), asked: new Map(), usage: { input: 0, output: 0, usd: null } });
	}

	add(kind, more) {
		const item = { kind, text: "", ...more };
		this.list.add(item);
		return item;
	}

	note(text, bad) { this.add("note", { text, bad }); }

	// piece adds to the text that is being written by one speaker.
	piece(kind, event, delta) {
		const key = `${kind} ${event.parent_id ?? ""}`;
		let item = this.open.get(key);
		if (!item) this.open.set(key, item = this.add(kind, { parent: event.parent_id }));
		if (item.text.length < most) item.text = cut(item.text + delta);
		this.list.change(item);
	}

	whole(kind, event, all) {
		const key = `${kind} ${event.parent_id ?? ""}`;
		const item = this.open.get(key) ?? (all ? this.add(kind, { parent: event.parent_id }) : null);
		this.open.delete(key);
		if (!item) return;
		if (all && cut(all) !== item.text) { // the agent took something back
			item.text = cut(all);
			item.version = (item.version ?? 0) + 1;
		}
		item.aborted = event.aborted;
		this.list.change(item);
	}

	tool(event) {
		let item = this.tools.get(event.tool_call_id);
		if (!item) {
			item = this.add("tool", { name: event.tool_name ?? "tool", state: "runs", input: "", output: "", diff: "", parent: event.parent_id });
			if (event.tool_call_id) this.tools.set(event.tool_call_id, item);
		}
		this.list.change(item);
		return item;
	}

	question(event) {
		const item = this.asked.get(event.interaction_id);
		if (item) this.list.change(item);
		return item ?? {};
	}

	/** take takes an event, parsed. One that it has had is left out. */
	take(event) {
		if (event.seq <= this.seq) return;
		this.seq = event.seq;
		this[`on_${event.type}`]?.(event); // a type that is not known is left out
	}

	on_user_message(e) { this.add("user", { text: cut(e.text), parent: e.parent_id }); }
	on_text_delta(e) { this.piece("message", e, e.delta); }
	on_message_stop(e) { this.whole("message", e, e.text); }
	on_thinking_delta(e) { this.piece("thinking", e, e.delta); }
	on_thinking_stop(e) { this.whole("thinking", e, e.thinking); }

	on_tool_call_start(e) { this.tool(e); }
	on_tool_call_ready(e) { const t = this.tool(e); t.name = e.tool_name; t.input = cut(text(e.input)); t.title = t.title ?? title(e.input); }
	on_tool_result(e) { const t = this.tool(e); t.state = "done"; t.output ||= cut(text(e.output)); this.tools.delete(e.tool_call_id); }
	on_tool_error(e) { const t = this.tool(e); t.state = "failed"; t.output ||= cut(e.error); this.tools.delete(e.tool_call_id); }
	on_shell_start(e) { if (this.tools.has(e.tool_call_id)) this.tool(e).title = e.command; }
	on_shell_stdout_delta(e) { if (this.tools.has(e.tool_call_id)) { const t = this.tool(e); if (t.output.length < most) t.output = cut(t.output + e.delta); } }
	on_shell_stderr_delta(e) { this.on_shell_stdout_delta(e); }
	on_file_patch(e) { const t = this.tools.has(e.tool_call_id) ? this.tool(e) : this.add("tool", { name: "patch", state: "done", input: "", output: "", diff: "" }); t.title = e.path; t.diff = cut(t.diff + e.diff); }

	on_approval_request(e) { this.asked.set(e.interaction_id, this.add("question", { text: `${e.action}: ${e.detail}`, state: "open" })); }
	on_input_required(e) { this.asked.set(e.interaction_id, this.add("question", { text: e.question, state: "open" })); }
	on_approval_preview(e) { this.question(e).diff = cut(e.diff); }
	on_approval_granted(e) { this.question(e).state = "approved"; }
	on_approval_denied(e) { this.question(e).state = e.reason ? `denied: ${e.reason}` : "denied"; }
	on_input_answered(e) { this.question(e).state = e.cancelled ? "withdrawn" : "answered"; }

	on_todo_update(e) { this.add("todo", { text: e.items.map(i => `${i.status === "completed" ? "☑" : "☐"} ${i.text}`).join("\n") }); }
	on_subagent_spawn(e) { this.note(`${e.agent_name} begins: ${cut(e.prompt)}`); }
	on_subagent_result(e) { this.note(`${e.agent_name} has finished`); }
	on_subagent_error(e) { this.note(`${e.agent_name} failed: ${e.error}`, true); }
	on_token_usage(e) { this.usage.input += e.input_tokens ?? 0; this.usage.output += e.output_tokens ?? 0; }
	on_cost(e) { this.usage.usd = (this.usage.usd ?? 0) + e.cost.usd; }
	on_retry(e) { this.note(`tries again (${e.attempt}): ${e.reason}`); }
	on_rate_limited() { this.note("the provider asks it to wait"); }
	on_context_compacted() { this.note("it has summed up the conversation"); }
	on_interrupted() { this.note("interrupted"); }
	on_stream_fallback(e) { this.note(`it asks the model again: ${e.reason}`); }
	on_paused() { this.note("paused"); }
	on_resumed() { this.note("goes on"); }
	on_auth_error(e) { this.note(`${e.message}. ${e.guidance}`, true); }
	on_crash(e) { this.note(`the agent ended by itself (${e.signal ?? e.exit_code}) ${e.stderr}`, true); }
	on_error(e) { this.note(e.hint ? `${e.message}. ${e.hint}` : e.message, true); }

	on_log(e) {
		const last = this.list.items.at(-1);
		if (last?.kind === "log" && last.lines < 50) {
			last.text += `\n${e.line}`;
			last.lines++;
			this.list.change(last);
		} else this.add("log", { text: e.line, lines: 1 });
	}

	on_run_end(e) {
		const spent = e.cost ? `, $${e.cost.usd.toFixed(4)}` : "";
		this.note(`${e.state}${e.message ? `: ${e.message}` : ""} (${(e.duration_ms / 1000).toFixed(1)} s${spent})`, e.code !== "");
	}
}

// title is what a tool is about, of its input.
function title(input) {
	for (const name of ["command", "file_path", "path", "pattern", "query", "url", "description"]) {
		if (typeof input?.[name] === "string") return input[name];
	}
}
