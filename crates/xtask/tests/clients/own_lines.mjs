// A session of a client and an agent of version 2 over two lives of the client: `begin`, in which the daemon dies when
// `streaming` is printed, then `resume SESSION`, in which the agent dies. `background AGENT` is a session of its own;
// when it prints `left SESSION`, the command that runs is for the reader to end, if the agent lists it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { REFUSED, run, sdk, text, wholeAnswer } from "./sdk.mjs";
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

/** A prompt that leaves a command behind, which does not end by itself. */
const LEAVES = {
  claude: '[call Bash {"command":"tail -f /dev/null","description":"wait","run_in_background":true}]',
  codex: '[call exec_command {"cmd":"tail -f /dev/null","yield_time_ms":250}]',
};

async function background(client) {
  const { request, notify, view, work } = client;
  const { sessionId } = await request(agent.session.new, { cwd: work, mcpServers: [] });
  const leave = async (tag) => {
    const { ended } = await say(client, sessionId, `say #${tag} ${LEAVES[told]}`);
    assert.equal(await ended, "end_turn");
    const [terminalId, runs] = [...view.terminals].at(-1);
    assert.ok(runs);
    return terminalId;
  };
  const listed = (terminalId) => assert.deepEqual(view.background, [{ type: "terminal", terminalId }]);
  const over = (id) => view.when(() => !view.terminals.get(id) && view.background.length === 0);
  const cancel = (terminalId) => request(agent.terminal.cancel, { sessionId, terminalId });

  const first = await leave("one");
  if (told === "claude") {
    listed(first);
    let ended = over(first);
    console.log("left", sessionId);
    await ended;
    const second = await leave("two");
    listed(second);
    ended = over(second);
    assert.deepEqual(await cancel(second), {});
    await ended;
  } else {
    // This agent lists no work, and no request ends a command alone.
    assert.equal(view.background, undefined);
    console.log("left", sessionId);
    await assert.rejects(cancel(first), { code: REFUSED });
  }

  const { asked, withdrawn } = view.hold();
  const { ended } = await say(client, sessionId, "say #ask [tool bash touch made]");
  await asked;
  await notify(agent.session.cancel, { sessionId });
  await withdrawn;
  assert.equal(await ended, "cancelled");
}

const info = { name: "acpd-test", version: "0" };
await run({ begin, resume, background }[life], version2, new View(), { info, capabilities: {} });
