// A session of a client and an agent of version 2 over two lives of the client: `begin`, in which the daemon dies when
// `streaming` is printed, then `resume SESSION`, in which the agent dies.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { run, sdk, text, wholeAnswer } from "./sdk.mjs";
import { View } from "./view2.mjs";

const [life, told] = process.argv.slice(2);
const version2 = await sdk("v2");
const { agent } = version2.acp.methods;

/** Sends a prompt; returns the end of its turn, which nobody waits for yet. */
async function say({ request, view }, sessionId, prompt) {
  const ended = Promise.race(["end_turn", "error", "cancelled"].map((word) => view.until(word)));
  const { messageId } = await request(agent.session.prompt, { sessionId, prompt: text(prompt) });
  return { messageId, ended: ended.then(() => view.words.findLast((word) => ENDS.has(word))) };
}
const ENDS = new Set(["end_turn", "error", "cancelled"]);

async function begin(client) {
  const { request, view, work } = client;
  const { sessionId } = await request(agent.session.new, { cwd: work, mcpServers: [] });
  for (const [prompt, tags] of [
    ["say #one", "tags=one"],
    ["say #two [tool bash echo ran > ran.txt]", "tags=one,two"],
  ]) {
    const { messageId, ended } = await say(client, sessionId, prompt);
    assert.equal(await ended, "end_turn");
    const shown = [...view.entities].find(([name]) => name.endsWith(` ${messageId}`));
    assert.ok(shown?.[0].startsWith("user_message"), `${messageId}: ${[...view.entities.keys()]}`);
    assert.match(shown[1], new RegExp(prompt.slice(0, 8)));
    assert.ok(view.answers().includes(tags), view.answers());
  }
  assert.equal(await readFile(`${work}/ran.txt`, "utf8"), "ran\n");

  const { ended } = await say(client, sessionId, "say #long [slow 30]");
  await view.hears("tick 5/30");
  console.log("streaming");
  assert.equal(await ended, "end_turn");
  wholeAnswer(view.answers(), 30);
  const names = [...view.entities.keys()];
  assert.ok(names.some((name) => name.startsWith("tool_call_update")), names.join());
  assert.deepEqual(names.filter((name) => / acpd-|~/.test(name)), [], "ids of acpd");
  console.log("session", JSON.stringify({ sessionId, entities: [...view.entities] }));
}

async function resume(client) {
  const { request, view, work } = client;
  const { sessionId, entities } = JSON.parse(told);
  const setup = { sessionId, cwd: work, mcpServers: [] };
  const idle = view.until("idle");
  await request(agent.session.resume, { ...setup, replayFrom: { type: "start" } });
  await idle;
  assert.deepEqual([...view.entities], entities);
  assert.deepEqual(view.states(), ["replay_complete", "idle"]);

  view.entities.clear();
  const { ended } = await say(client, sessionId, "say #lost [slow 30]");
  await view.hears("tick 5/30");
  console.log("streaming");
  assert.equal(await ended, "error");
  const after = await say(client, sessionId, "say #after");
  assert.equal(await after.ended, "end_turn");
  assert.match(view.answers(), /tags=one,two,long,lost,after/);
}

const info = { name: "acpd-test", version: "0" };
await run({ begin, resume }[life], version2, new View(), { info, capabilities: {} });
