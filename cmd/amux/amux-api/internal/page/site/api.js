// Requests to the server of this page. The cookie is the browser's half of the sign-in; the
// key is the page's, which is kept for this address and port alone.

let key = localStorage.getItem("amux-key") ?? "";

/** signedOut is called when the server does not know this browser. */
export const events = { signedOut() {} };

/** Problem is an answer that is an error. */
export class Problem extends Error {
	constructor(status, body) {
		super(body.message ?? `the server answered ${status}`);
		Object.assign(this, { status, code: body.code, hint: body.hint });
	}
}

async function request(method, path, { body, headers, signal } = {}) {
	const answer = await fetch(path, {
		method, signal, headers: { "Amux-Key": key, ...body && { "Content-Type": "application/json" }, ...headers },
		body: body && JSON.stringify(body),
	}).catch(error => { throw signal?.aborted ? error : new Problem(0, { message: "the server does not answer" }); });
	if (answer.ok) return answer;
	const problem = new Problem(answer.status, await answer.json().catch(() => ({})));
	if (answer.status === 401 && path !== "/v1/sign-in") events.signedOut();
	throw problem;
}

/** ask sends a request and returns what is answered. */
export async function ask(method, path, body, signal) {
	const answer = await request(method, path, { body, signal });
	return answer.status === 204 ? null : answer.json();
}

/** signIn uses a code of a link, or the token. */
export async function signIn(how) {
	key = (await ask("POST", "/v1/sign-in", how)).key;
	localStorage.setItem("amux-key", key);
}

export async function signOut() {
	await ask("DELETE", "/v1/sign-in");
	localStorage.removeItem("amux-key");
	events.signedOut();
}

/** socket opens the WebSocket at a path. */
export function socket(path) {
	const to = new WebSocket(`ws://${location.host}${path}`, ["amux.screen", `amux.key.${key}`]);
	to.binaryType = "arraybuffer";
	return to;
}

const pause = (ms, signal) => new Promise(done => {
	const timer = setTimeout(done, ms);
	signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

/** silent is after how long a stream without a sign of life is opened again. */
const silent = 40_000;

/**
 * follow reads server-sent events until the signal, or until the server says that there are
 * no more. take gets all that came at once, as { id, data }. A stream that breaks is opened
 * again behind the last event that had an id. reached is told whether the server is there.
 */
export async function follow(path, { signal, take, reached = () => {}, begin = () => {} }) {
	let last = "", wait = 200;
	while (!signal.aborted) {
		const broken = new AbortController();
		const both = AbortSignal.any([signal, broken.signal]);
		let watch = setTimeout(() => broken.abort(), silent);
		try {
			const answer = await request("GET", path, { signal: both, headers: last && { "Last-Event-ID": last } });
			if (answer.status === 204) return;
			begin();
			reached(true);
			wait = 200;
			let rest = "";
			const from = answer.body.pipeThrough(new TextDecoderStream()).getReader();
			for (;;) {
				const { done, value } = await from.read();
				if (done) break;
				clearTimeout(watch);
				watch = setTimeout(() => broken.abort(), silent);
				const parts = value.split("\n\n");
				parts[0] = rest + parts[0];
				rest = parts.pop();
				const batch = [];
				for (const part of parts) {
					const event = { id: "", data: "" };
					for (const line of part.split("\n")) {
						if (line.startsWith("data: ")) event.data = line.slice(6);
						else if (line.startsWith("id: ")) event.id = line.slice(4);
					}
					if (event.data) batch.push(event);
				}
				if (batch.length === 0) continue;
				last = batch.at(-1).id || last;
				take(batch);
				if (both.aborted) break;
			}
		} catch (error) {
			if (signal.aborted) return;
			if (error instanceof Problem && error.status >= 400 && error.status < 500) throw error;
		} finally {
			clearTimeout(watch);
		}
		if (signal.aborted) return;
		reached(false);
		await pause(wait, signal);
		wait = Math.min(wait * 2, 3000);
	}
}
