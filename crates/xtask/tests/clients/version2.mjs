// A session over two lives of a client of version 2: `begin`, then `resume SESSION`. `begin` prints the
// SESSION with its conversation.
import assert from "node:assert/strict";
import { CANCELLED, run, sdk, text } from "./sdk.mjs";
import { View, values } from "./view2.mjs";

const [life, told] = process.argv.slice(2);
const version2 = await sdk("v2");
const { agent } = version2.acp.methods;
const CHANGED = { mode: "code", model: "demo-large", verbose: true };

async function begin({ request, notify, view, work }) {
  const made = await request(agent.session.new, { cwd: work, mcpServers: [] });
  const { sessionId } = made;
  assert.deepEqual(values(made), { mode: "ask", model: "demo-small", verbose: false });
  const say = (prompt) => request(agent.session.prompt, { sessionId, prompt: text(prompt) });

  let ended = view.until("end_turn");
  const { messageId } = await say("say #one [think hm] [plan] [tool Edit] [ask]");
  await ended;
  assert.deepEqual(view.states(), ["running", "requires_action", "running", "end_turn"]);
  const said = [...view.entities].map(([name, text]) => `${name}: ${text}`).join("\n");
  for (const part of [`user_message_chunk ${messageId}: say #one`, "permission: yes", "tags=one", ": completed"])
    assert.ok(said.includes(part), `${part}: ${said}`);

  for (const [configId, value] of Object.entries(CHANGED)) {
    const type = typeof value === "boolean" ? "boolean" : "id";
    const told = view.until("config_option_update");
    const set = await request(agent.session.setConfigOption, { sessionId, configId, type, value });
    await told;
    assert.deepEqual(values(set), view.values);
  }
  assert.deepEqual(view.values, CHANGED);

  const { asked, withdrawn } = view.hold();
  await say("say #two [ask]");
  await asked;
  const held = say("say #never");
  ended = view.until("cancelled");
  await notify(agent.session.cancel, { sessionId });
  await assert.rejects(held, { code: CANCELLED });
  await Promise.all([withdrawn, ended]);
  console.log("session", JSON.stringify({ sessionId, entities: [...view.entities] }));
}

async function resume({ request, view, work }) {
  const before = JSON.parse(told);
  const { sessionId } = before;
  const setup = { sessionId, cwd: work, mcpServers: [] };
  const idle = view.until("idle");
  const resumed = await request(agent.session.resume, { ...setup, replayFrom: { type: "start" } });
  await idle;
  assert.deepEqual(values(resumed), CHANGED);
  assert.deepEqual([...view.entities], before.entities);
  assert.deepEqual(view.states(), ["replay_complete", "idle"]);

  view.entities.clear();
  const ended = view.until("end_turn");
  await request(agent.session.prompt, { sessionId, prompt: text("say #three") });
  await ended;
  assert.match([...view.entities.values()].join(), /tags=one,two,three/);

  const { sessions } = await request(agent.session.list, {});
  assert.deepEqual(sessions.map((session) => session.sessionId), [sessionId]);
  assert.deepEqual(await request(agent.session.close, { sessionId }), {});
}

const lives = { begin, resume };
const info = { name: "acpd-test", version: "0" };
await run(lives[life], version2, new View(), { info, capabilities: {} });
