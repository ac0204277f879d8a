// A turn in the middle of which something happens to the daemon: prints `streaming` when it may. The
// client must see the whole answer, each piece once, and the session must go on.
import assert from "node:assert/strict";
import { agent, run, text, wholeAnswer } from "./sdk.mjs";

await run(async ({ request, view, work }) => {
  const { sessionId } = await request(agent.session.new, { cwd: work, mcpServers: [] });
  const say = (prompt) => request(agent.session.prompt, { sessionId, prompt: text(prompt) });

  const turn = say("say #long [slow 30]");
  await view.until("tick 5/30");
  console.log("streaming");
  assert.equal((await turn).stopReason, "end_turn");
  wholeAnswer(view.said, 30);

  assert.equal((await say("say #after")).stopReason, "end_turn");
  // What comes again after all would have come by now.
  wholeAnswer(view.said, 30);
  assert.match(view.said, /tags=long,after$/);
  assert.deepEqual(view.prompts, []);
});
