import { fill, h } from "./dom.js";
import { ask } from "./api.js";

/** usage is the view of what runs have used. */
export async function usage(main) {
	const at = h("div"), days = h("select", { id: "days", onchange: () => draw() }, [[1, "the last day"], [7, "the last week"], [30, "the last 30 days"]].map(([value, label]) => h("option", { value, selected: value === 7 }, label)));
	fill(main, h("h1", {}, "Tokens and cost"), h("label", { for: "days" }, "Runs that ended in"), days, at);
	const draw = async () => {
		const { agents } = await ask("GET", `/v1/usage?since=${encodeURIComponent(new Date(Date.now() - days.value * 86400e3).toISOString())}`);
		const head = ["Runs", "Tokens in", "Tokens out", "Cost"];
		fill(at, agents.length === 0 ? h("p", {}, "No run has ended.") : h("table", {},
			h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Agent"), head.map(t => h("th", { scope: "col", class: "number" }, t)))),
			h("tbody", {}, agents.map(a => h("tr", {}, h("th", { scope: "row" }, a.agent), [a.runs, a.input_tokens, a.output_tokens, a.cost_usd == null ? "unknown" : `$${a.cost_usd.toFixed(4)}${a.priced_runs < a.runs ? ` of ${a.priced_runs} runs` : ""}`].map(v => h("td", { class: "number" }, v)))))));
	};
	await draw();
	return () => {};
}
