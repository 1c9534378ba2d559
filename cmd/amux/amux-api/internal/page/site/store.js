import { ask, follow } from "./api.js";

// What is known of all runs, as the server says it; views ask to be told of changes.

export const runs = new Map(); // by id
export const questions = new Map(); // by run and id, the first asked first
export let reached = true;
export let more = false; // there are older runs that are not here

const listeners = new Set();
let planned = false;

/** listen has a function called after changes, once a frame; it returns what ends that. */
export function listen(to) {
	listeners.add(to);
	return () => listeners.delete(to);
}

function changed() {
	if (planned) return;
	planned = true;
	setTimeout(() => {
		planned = false;
		for (const to of listeners) to();
	}, 16);
}

export const keyOf = (run, id) => `${run} ${id}`;

/** older fetches runs that ended before those that are here. */
export async function older() {
	const ended = [...runs.keys()].sort();
	const answer = await ask("GET", `/v1/runs?all=true&limit=50${ended.length && more ? `&after=${ended[0]}` : ""}`);
	for (const run of answer.runs) if (!runs.has(run.run_id)) runs.set(run.run_id, run);
	more = answer.more;
	changed();
}

/** put has what an answer says of a run, unless the stream was faster and has said more. */
export function put(run) {
	const have = runs.get(run.run_id);
	if (have && (have.ended || have.events > run.events)) return;
	runs.set(run.run_id, run);
	changed();
}

/** answered takes a question away that this page has answered, before the server says so. */
export function answered(run, id) {
	questions.delete(keyOf(run, id));
	changed();
}

/** watch keeps all of this as the server has it, until the signal. */
export async function watch(signal) {
	runs.clear();
	questions.clear();
	await older();
	let began = null; // what the server has named since the connection began
	await follow("/v1/watch", {
		signal,
		begin() { began = { runs: new Set(), questions: new Set() }; },
		reached(yes) { reached = yes; changed(); },
		take(batch) {
			for (const { data } of batch) {
				const c = JSON.parse(data);
				switch (c.type) {
				case "run":
					runs.set(c.run.run_id, c.run);
					began?.runs.add(c.run.run_id);
					break;
				case "gone":
					runs.delete(c.run_id);
					break;
				case "question":
					questions.set(keyOf(c.run_id, c.interaction_id), c.question);
					began?.questions.add(keyOf(c.run_id, c.interaction_id));
					break;
				case "answered":
					questions.delete(keyOf(c.run_id, c.interaction_id));
					break;
				case "current":
					for (const key of questions.keys()) if (!began.questions.has(key)) questions.delete(key);
					for (const run of runs.values()) if (!run.ended && !began.runs.has(run.run_id)) refresh(run.run_id);
					began = null;
				}
			}
			changed();
		},
	});
}

async function refresh(id) {
	try {
		runs.set(id, await ask("GET", `/v1/runs/${id}`));
	} catch {
		runs.delete(id);
	}
	changed();
}
