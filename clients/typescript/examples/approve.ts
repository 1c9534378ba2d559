// Start a run, approve what it asks, print the answer:
// npm run build && node dist/examples/approve.js demo '[approve]'
import { check, Client } from "amux";

const [agent = "demo", prompt = "[approve]"] = process.argv.slice(2);
const run = await new Client().run({ agent, prompt, approve: "ask" });
try {
  for await (const event of run) {
    switch (event.type) {
      case "approval_request":
        console.error(`approved ${event.action}: ${event.detail}`);
        await run.approve(event.interaction_id);
        break;
      case "input_required":
        await run.answer("as you like", event.interaction_id);
        break;
    }
  }
  console.log(check(await run.wait()).text);
} finally {
  await run.close();
}
