#!/usr/bin/env node
// Speaks as Claude Code does where it asks whether it may write a file, and writes it; or,
// if the prompt has a question mark, where it asks two questions at once.
import fs from "node:fs";
import readline from "node:readline";

if (process.argv.includes("--version")) {
	console.log("2.1.274 (Claude Code)");
	process.exit(0);
}
const say = line => console.log(JSON.stringify(line));
const session_id = "11111111-2222-4333-8444-555555555555";
const input = { file_path: `${process.cwd()}/greeting.txt`, content: "Good <b>evening</b>.\nHow are you?\n" };
const asks = { questions: [
	{ question: "Which colour?", header: "Colour", multiSelect: false, options: [{ label: "red", description: "warm" }, { label: "green", description: "calm" }] },
	{ question: "Which sizes?", header: "Sizes", multiSelect: true, options: [{ label: "small", description: "1" }, { label: "large", description: "2" }] },
] };
for await (const text of readline.createInterface({ input: process.stdin })) {
	const line = JSON.parse(text);
	if (line.type === "control_request") {
		say({ type: "control_response", response: { subtype: "success", request_id: line.request_id, response: {} } });
	} else if (line.type === "user") {
		say({ type: "system", subtype: "init", session_id, cwd: process.cwd(), model: "claude-test", tools: ["Write"], mcp_servers: [], permissionMode: "default", claude_code_version: "2.1.274" });
		const message = content => say({ type: "assistant", session_id, message: { id: "msg_1", type: "message", role: "assistant", model: "claude-test", content, usage: { input_tokens: 120, output_tokens: 30 } } });
		if (JSON.stringify(line.message).includes("?")) {
			message([{ type: "tool_use", id: "toolu_1", name: "AskUserQuestion", input: asks }]);
			say({ type: "control_request", request_id: "ask-1", request: { subtype: "can_use_tool", tool_name: "AskUserQuestion", input: asks, tool_use_id: "toolu_1" } });
			continue;
		}
		message([{ type: "text", text: "I make the greeting friendlier." }]);
		message([{ type: "tool_use", id: "toolu_1", name: "Write", input }]);
		say({ type: "control_request", request_id: "ask-1", request: { subtype: "can_use_tool", tool_name: "Write", input, tool_use_id: "toolu_1" } });
	} else if (line.type === "control_response") {
		const answers = line.response.response.updatedInput?.answers;
		if (answers) say({ type: "assistant", session_id, message: { id: "msg_2", type: "message", role: "assistant", model: "claude-test", content: [{ type: "text", text: `You said ${JSON.stringify(answers)}` }], usage: { input_tokens: 1, output_tokens: 1 } } });
		else if (line.response.response.behavior === "allow") fs.writeFileSync(input.file_path, input.content);
		say({ type: "user", session_id, message: { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: line.response.response.behavior }] } });
		say({ type: "result", subtype: "success", is_error: false, session_id, num_turns: 1, result: "written", total_cost_usd: 0.01, usage: { input_tokens: 120, output_tokens: 30 } });
	}
}
