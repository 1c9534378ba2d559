// The page of amux serve --http in a real browser: what a person does on it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import test, { after, afterEach, before } from "node:test";
import axe from "axe-core";
import { chromium } from "playwright-core";

const { AMUX, WORK, TOKEN_FILE, SHOT, CHROMIUM } = process.env;
const patience = 30_000;

let server, url, token, browser, page;
const wrong = []; // what any page has complained about

// serve starts the server on a port, and waits until it is there.
async function serve(port = 0) {
	server = spawn(AMUX, ["serve", `--http=127.0.0.1:${port}`], { cwd: WORK, stdio: ["ignore", "ignore", "pipe"] });
	let said = "";
	url = await new Promise((done, fail) => {
		server.stderr.on("data", data => {
			said += data;
			const found = said.match(/serving HTTP on (http:\/\/127\.0\.0\.1:\d+);/);
			if (found) done(found[1]);
		});
		server.on("exit", code => fail(new Error(`amux serve ended with ${code}: ${said}`)));
	});
	token = fs.readFileSync(TOKEN_FILE, "utf8").trim();
}

function kill() {
	return new Promise(done => {
		server.removeAllListeners("exit");
		server.on("exit", done);
		server.kill("SIGKILL");
	});
}

async function api(method, where, body) {
	const answer = await fetch(url + where, {
		method, headers: { Authorization: `Bearer ${token}`, ...body && { "Content-Type": "application/json" } }, body: body && JSON.stringify(body),
	});
	const text = await answer.text();
	assert.ok(answer.ok, `${method} ${where}: ${answer.status} ${text}`);
	return text ? JSON.parse(text) : null;
}

const run = (prompt, more = {}) => api("POST", "/v1/runs", { agent: "demo", prompt, cwd: WORK, ...more });
const link = async () => url + (await api("POST", "/v1/links")).path;

// The terminal's own style elements are refused, as they should be: the page gives the
// browser what they say.
const expected = /ERR_CONNECTION_REFUSED|net::ERR_|Failed to load resource|Applying inline style/;

// enter opens the page in a browser of its own, signed in by a link.
async function enter(options = {}) {
	const context = await browser.newContext({ ...options });
	context.setDefaultTimeout(patience);
	const page = await context.newPage();
	page.on("console", message => { if (["error", "warning"].includes(message.type()) && !expected.test(message.text())) wrong.push(message.text()); });
	page.on("pageerror", error => wrong.push(String(error)));
	await page.goto(await link());
	await page.getByRole("heading", { name: /^Live/ }).waitFor({ state: "attached" });
	return page;
}

// wait waits until something is so.
async function until(what, is) {
	for (const end = Date.now() + patience; ;) {
		const seen = await is();
		if (seen) return seen;
		assert.ok(Date.now() < end, `never: ${what}`);
		await new Promise(done => setTimeout(done, 50));
	}
}

// usable fails for what axe-core finds serious.
async function usable(page, where) {
	await page.evaluate(axe.source);
	const found = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
	const serious = found.violations.filter(v => ["serious", "critical"].includes(v.impact)).map(v => `${v.id}: ${v.nodes.map(n => n.html.slice(0, 200)).join(" ")}`);
	assert.deepEqual(serious, [], where);
}

before(async () => {
	await serve();
	browser = await chromium.launch({ executablePath: CHROMIUM, args: process.getuid() === 0 ? ["--no-sandbox"] : [] });
	page = await enter();
});
after(async () => {
	await browser?.close();
	if (server) await kill();
	assert.deepEqual(wrong, [], "what the pages complained about");
});

test("a link works once, and a cookie is half of it", async () => {
	const once = await link();
	const first = await (await browser.newContext()).newPage();
	await first.goto(once);
	await first.getByRole("heading", { name: /^Live/ }).waitFor();
	assert.ok(!first.url().includes("sign-in"), "the code is still in the address");
	await first.goto("about:blank");
	await first.goto(once); // the same browser opens it again
	await first.getByRole("heading", { name: /^Live/ }).waitFor();
	const second = await (await browser.newContext()).newPage();
	await second.goto(once);
	await second.getByText("the link is not valid").waitFor();
	// The token signs in too.
	await second.getByLabel("Token").fill("wrong");
	await second.getByRole("button", { name: "Sign in" }).click();
	await second.getByText("the token is wrong").waitFor();
	await second.getByLabel("Token").fill(token);
	await second.getByRole("button", { name: "Sign in" }).click();
	await second.getByRole("heading", { name: /^Live/ }).waitFor();
	const [cookie] = await first.context().cookies();
	assert.equal(cookie.httpOnly && cookie.sameSite, "Strict");
	const status = headers => fetch(`${url}/v1/runs`, { headers }).then(a => a.status);
	const key = await first.evaluate(() => localStorage.getItem("amux-key"));
	const mine = `${cookie.name}=${cookie.value}`;
	assert.equal(await status({ Cookie: mine, "Amux-Key": key }), 200);
	assert.equal(await status({ Cookie: mine }), 401, "another server of this machine gets the cookie");
	assert.equal(await status({ "Amux-Key": key }), 401);
	assert.equal(await status({ Cookie: mine, "Amux-Key": await second.evaluate(() => localStorage.getItem("amux-key")) }), 401);
	assert.equal(await status({ Cookie: mine.replace(/\.\d+\./, ".9999999999."), "Amux-Key": key }), 401, "an expiry that was changed");
	await first.getByRole("button", { name: "Sign out" }).click();
	await first.getByRole("heading", { name: "Sign in" }).waitFor();
	assert.deepEqual(await first.context().cookies(), []);
	await first.context().close();
	await second.context().close();
});

test("start a run and watch it", async () => {
	await page.getByRole("link", { name: "Start a run" }).first().click();
	await page.getByLabel("Agent", { exact: true }).selectOption("demo");
	await page.getByLabel("Prompt", { exact: true }).fill("[think:well][say:one][sleep:1][say:<b>two</b>\u202e]");
	await page.getByLabel("Folder", { exact: true }).fill(WORK);
	assert.equal(await page.locator("#models option").first().getAttribute("value"), "demo-small");
	await usable(page, "the form");
	await page.getByRole("button", { name: "Start" }).click();
	await page.getByText("one", { exact: true }).waitFor();
	await until("it is said to run", async () => await page.locator(".head .state").textContent() === "running");
	await page.getByText("<b>two</b>⟨202e⟩", { exact: true }).waitFor();
	await until("it has ended", async () => await page.locator(".head .state").textContent() === "completed");
	await page.getByText(/\d+ tokens in, \d+ out, \$/).waitFor();
	await usable(page, "a run");
});

test("an approval after its diff, seen in a second browser", async () => {
	fs.writeFileSync(path.join(WORK, "greeting.txt"), "Good morning.\n");
	const { run_id } = await run("make the greeting friendlier", { agent: "claude", approve: "ask" });
	const other = await enter({ colorScheme: "dark" });
	await other.goto(`${url}/#/inbox`);
	await page.goto(`${url}/#/runs/${run_id}`);
	const card = page.locator(".card");
	await card.locator(".diff .added").first().waitFor();
	await other.locator(".card").getByText("Approve", { exact: true }).waitFor();
	await usable(other, "the questions, dark");
	await page.getByRole("link", { name: /^Questions \(1\)/ }).waitFor();
	// By keys alone.
	await card.getByRole("button", { name: "Approve", exact: true }).focus();
	await page.keyboard.press("Enter");
	await other.getByText("No agent asks anything").waitFor();
	await page.getByText("approved", { exact: true }).waitFor();
	await until("it goes on", async () => (await api("GET", `/v1/runs/${run_id}`)).state === "completed");
	assert.equal(fs.readFileSync(path.join(WORK, "greeting.txt"), "utf8"), "Good <b>evening</b>.\nHow are you?\n");
	await page.locator(".card").waitFor({ state: "detached" });
	// A question in words.
	const asks = await run("[ask:Which colour?]", { approve: "ask" });
	await other.getByRole("heading", { name: "Which colour?" }).waitFor();
	await other.locator(".card input").last().fill("green");
	await other.getByRole("button", { name: "Answer" }).click();
	await page.goto(`${url}/#/runs/${asks.run_id}`);
	await page.getByText(/green/).first().waitFor();
	// Two at once, with choices.
	const both = await run("what do you like?", { agent: "claude", approve: "ask" });
	await other.getByLabel("green").check();
	await other.getByLabel("small").check();
	await other.getByLabel("large").check();
	await usable(other, "two questions");
	await other.getByRole("button", { name: "Answer" }).click();
	await page.goto(`${url}/#/runs/${both.run_id}`);
	await page.getByText('You said {"Which colour?":"green","Which sizes?":"small, large"}').waitFor();
	await other.context().close();
});

test("the server is killed and comes back: nothing is lost", async () => {
	const { run_id } = await run("[lines:3][sleep:1][say:before][sleep:3][say:after][sleep:1]");
	await page.goto(`${url}/#/runs/${run_id}`);
	await page.getByText("before", { exact: true }).waitFor();
	const port = new URL(url).port;
	await kill();
	await page.getByText("the server does not answer").waitFor();
	await new Promise(done => setTimeout(done, 3000));
	await serve(port);
	await page.getByText("after", { exact: true }).waitFor();
	await until("it has ended", async () => await page.locator(".head .state").textContent() === "completed");
	for (const text of ["before", "after"]) assert.equal(await page.locator(".item.message", { hasText: new RegExp(`^Agent${text}$`) }).count(), 1);
	await page.getByText("the server does not answer").waitFor({ state: "detached" });
});

test("who clicks slowly on a list that changes hits it", async () => {
	const prompt = "[say:x][sleep:0.2]".repeat(15);
	const begun = await Promise.all([run(prompt), run(prompt), run(prompt)]);
	const row = page.locator(`#side a[href="#/runs/${begun[1].run_id}"]`);
	await row.click({ delay: 1500 });
	await until("its run is shown", async () => page.url().endsWith(begun[1].run_id));
	// Who is on it with the keyboard stays there when it ends.
	await row.focus();
	await until("it has ended", async () => /completed/.test(await row.textContent()));
	assert.ok(await row.evaluate(node => node === document.activeElement));
});

test("a conversation, stopped", async () => {
	const { run_id } = await run("[say:first]", { conversation: true, name: "talk" });
	await page.goto(`${url}/#/runs/talk`);
	await page.getByText("first", { exact: true }).waitFor();
	await page.getByRole("textbox", { name: "Prompt" }).fill("[say:second]");
	await page.keyboard.press("Control+Enter");
	await page.getByText("second", { exact: true }).waitFor();
	await page.getByRole("button", { name: "Stop" }).click();
	await until("it has ended", async () => (await api("GET", `/v1/runs/${run_id}`)).ended);
	await page.getByRole("button", { name: "Send" }).waitFor({ state: "detached" });
});

test("a terminal is typed in", async () => {
	const { run_id } = JSON.parse(process.env.SHELL_RUN);
	await page.goto(`${url}/#/runs/${run_id}/terminal`);
	await page.locator(".terminal textarea").waitFor({ state: "attached" });
	await page.getByRole("button", { name: "Take the keyboard" }).click();
	await page.getByText("the keyboard is yours").waitFor();
	await page.keyboard.type("echo $((40+2))here > typed.txt; echo $((40+2))seen\n");
	await until("the shell has done it", () => fs.existsSync(path.join(WORK, "typed.txt")) && fs.readFileSync(path.join(WORK, "typed.txt"), "utf8") === "42here\n");
	await page.locator(".xterm-rows").getByText("42seen").first().waitFor();
	// Rows are as high as the terminal says, so its styles are there.
	assert.ok(await page.locator(".xterm-rows > div").first().evaluate(row => row.offsetHeight) > 8);
	await page.keyboard.type("exit\n");
	await until("it has ended", async () => (await api("GET", `/v1/runs/${run_id}`)).ended);
});

afterEach(async ({ error, passed }) => {
	if (passed === false || error) console.log(`# the page shows: ${(await page.innerText("body")).replaceAll("\n", " | ").slice(0, 1500)}`);
});

test("a diff, the cost, a phone", async () => {
	const { runs } = await api("GET", "/v1/runs?all=true&agent=claude");
	const { run_id } = runs.at(-1);
	await page.goto(`${url}/#/runs/${run_id}/diff`);
	await page.getByText("+Good <b>evening</b>.").waitFor();
	await usable(page, "the diff");
	await page.goto(`${url}/#/usage`);
	await page.getByRole("row", { name: /demo/ }).waitFor();
	await usable(page, "the usage");
	const phone = await enter({ viewport: { width: 360, height: 740 }, hasTouch: true });
	for (const at of ["#/", `#/runs/${run_id}`, "#/inbox", "#/new", "#/usage", `#/runs/${run_id}/diff`]) {
		await phone.goto(`${url}/${at}`);
		await phone.waitForTimeout(300);
		assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${at} is wider than a phone`);
		await usable(phone, `${at} on a phone`);
	}
	await phone.context().close();
});

test("little to load", async () => {
	const fresh = await enter();
	let bytes = 0;
	const session = await fresh.context().newCDPSession(fresh);
	await session.send("Network.enable");
	session.on("Network.loadingFinished", e => { bytes += e.encodedDataLength; });
	await session.send("Network.setCacheDisabled", { cacheDisabled: true });
	const times = [];
	for (let i = 0; i < 3; i++) {
		const began = Date.now();
		await fresh.reload();
		await fresh.getByRole("heading", { name: /^Live/ }).waitFor();
		times.push(Date.now() - began);
	}
	console.log(`# ${Math.round(bytes / 3 / 1024)} KiB, ${Math.min(...times)} ms`);
	assert.ok(bytes / 3 < 200 * 1024, `${bytes / 3} bytes`);
	await fresh.context().close();
});

test("an event of a type that the page does not know changes nothing", async () => {
	const items = await page.evaluate(async () => {
		const { Transcript } = await import("/transcript.js");
		const list = { items: [], add(item) { this.items.push(item); }, change() {} };
		const all = new Transcript(list);
		["note", "add", "take", "tool", "constructor", "__proto__", "seq", "of_tomorrow"].forEach((type, i) => all.take({ type, seq: i + 1, text: "x" }));
		return list.items.length;
	});
	assert.equal(items, 0);
});

test("a hundred thousand events", async () => {
	const { run_id } = await run("[say:x]".repeat(9000), { conversation: true });
	for (let i = 0; i < 3; i++) await api("POST", `/v1/runs/${run_id}/prompts`, { prompt: "[say:y]".repeat(9000) });
	await api("POST", `/v1/runs/${run_id}/prompts`, { end: true });
	await until("it has ended", async () => (await api("GET", `/v1/runs/${run_id}`)).ended);
	const { events } = await api("GET", `/v1/runs/${run_id}`);
	assert.ok(events >= 99_000, `${events} events`);
	await page.goto(`${url}/#/runs/${run_id}`);
	await page.evaluate(() => {
		globalThis.longest = 0;
		new PerformanceObserver(list => { for (const e of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, e.duration); }).observe({ type: "longtask" });
	});
	const began = Date.now();
	await page.getByText(/^completed \(/).waitFor();
	const read = Date.now() - began;
	const size = () => page.evaluate(() => document.querySelectorAll(".item").length);
	assert.ok(await size() < 1000, `${await size()} elements at the end`);
	for (const to of [0, 0.5, 0.25, 1]) {
		await page.locator(".scroll").evaluate((node, to) => { node.scrollTop = node.scrollHeight * to; }, to);
		await page.waitForTimeout(200);
		const seen = await page.evaluate(() => {
			const box = document.querySelector(".scroll").getBoundingClientRect();
			return document.elementFromPoint(box.left + 60, box.top + box.height / 2)?.closest(".item")?.textContent ?? "";
		});
		assert.ok(seen !== "", `nothing is drawn at ${to}`);
		assert.ok(await size() < 1000, `${await size()} elements at ${to}`);
	}
	console.log(`# ${events} events read in ${read} ms, the longest task ${Math.round(await page.evaluate(() => globalThis.longest))} ms`);
});

test("a picture", { skip: !SHOT }, async () => {
	await run("[sleep:60]", { name: "upgrade-dependencies" });
	fs.writeFileSync(path.join(WORK, "greeting.txt"), "Good morning.\n");
	const { run_id } = await run("make the greeting friendlier", { agent: "claude", approve: "ask" });
	const at = await enter({ viewport: { width: 1100, height: 640 } });
	await at.goto(`${url}/#/runs/${run_id}`);
	await at.locator(".card .diff").waitFor();
	await at.waitForTimeout(500);
	await at.screenshot({ path: SHOT });
});
