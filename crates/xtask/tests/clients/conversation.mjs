// One session over three lives of a client: `begin`, then `load SESSION`, then `resume SESSION`.
// `begin` prints the SESSION that the others take, with all that was said.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { agent, run, text } from "./sdk.mjs";

const [life, told] = process.argv.slice(2);
const before = told && JSON.parse(told);
const PROMPTS = ["say #one", "say #two [tool write WORK/two.txt written]", "say #slow [slow 50]"];

const lives = { begin, load, resume };
await run(lives[life]);

async function begin({ request, notify, view, work }) {
  const { sessionId } = await request(agent.session.new, { cwd: work, mcpServers: [] });
  const prompts = PROMPTS.map((prompt) => prompt.replace("WORK", work));
  const say = (prompt) => request(agent.session.prompt, { sessionId, prompt: text(prompt) });

  assert.equal((await say(prompts[0])).stopReason, "end_turn");
  assert.match(view.said, /history=0 tags=one/);

  assert.equal((await say(prompts[1])).stopReason, "end_turn");
  assert.equal(view.asked, 1, "questions for permission");
  assert.equal((await readFile(`${work}/two.txt`, "utf8")).trim(), "written");
  assert.match(view.said, /history=1 tags=one,two/);

  const slow = say(prompts[2]);
  await view.until("tick 3/50");
  await notify(agent.session.cancel, { sessionId });
  assert.equal((await slow).stopReason, "cancelled");
  assert.doesNotMatch(view.said, /tick 50\/50/);

  await listed(request, sessionId, work);
  assert.deepEqual(view.prompts, [], "its own prompts are not shown to a client");
  console.log("session", JSON.stringify({ sessionId, prompts, said: view.said }));
}

async function load({ request, view, work }) {
  const { sessionId } = before;
  await request(agent.session.load, { sessionId, cwd: work, mcpServers: [] });
  assert.deepEqual(view.prompts, before.prompts);
  assert.equal(view.said, before.said);
  assert.ok(view.kinds.includes("tool_call"), "the tool's call is in the history");
  await next(request, view, "say #three", "tags=one,two,slow,three");
  assert.equal(view.asked, 0, "questions that were answered before");
}

async function resume({ request, view, work }) {
  const { sessionId } = before;
  await request(agent.session.resume, { sessionId, cwd: work, mcpServers: [] });
  // Nothing overtakes: what was sent before this answer is here.
  await listed(request, sessionId, work);
  assert.deepEqual(view.conversation(), []);
  await next(request, view, "say #four", "tags=one,two,slow,three,four");
  assert.deepEqual(view.prompts, []);

  await request(agent.session.close, { sessionId });
  await listed(request, sessionId, work);
}

/** A turn in which nothing of the earlier ones is said again. */
async function next(request, view, prompt, tags) {
  const said = view.said.length;
  const { stopReason } = await request(agent.session.prompt, {
    sessionId: before.sessionId,
    prompt: text(prompt),
  });
  assert.equal(stopReason, "end_turn");
  const answer = view.said.slice(said);
  assert.ok(answer.startsWith(`echo: ${prompt} |`), answer);
  assert.ok(answer.endsWith(tags), answer);
}

async function listed(request, sessionId, cwd) {
  const { sessions } = await request(agent.session.list, {});
  const found = sessions.filter((session) => session.sessionId === sessionId);
  assert.deepEqual(found.map((session) => session.cwd), [cwd]);
}
