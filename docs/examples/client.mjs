// A client of `acpctl acp`, with nothing but Node: node client.mjs AGENT SESSION PROMPT...
//
// It goes on in the session of that name here, or begins it. `acpctl acp` starts the daemon, finds the
// socket and comes back by itself when the daemon restarts; docs/protocol.md explains each message.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [agent, name, ...words] = process.argv.slice(2);
const acpd = spawn("acpctl", ["acp", agent, "--session", name], { stdio: ["pipe", "pipe", "inherit"] });
const keyboard = createInterface({ input: process.stdin });
const answers = keyboard[Symbol.asyncIterator]();
const open = new Map(); // Our requests that have no answer yet, by id.

const send = (message) => acpd.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");

const ask = (method, params) =>
  new Promise((resolve, reject) => {
    const id = open.size + 1;
    open.set(id, { resolve, reject });
    send({ id, method, params });
  });

async function person(choices) {
  for (let said; !(said = await answers.next()).done; ) {
    if (choices[said.value - 1]) return choices[said.value - 1];
  }
  console.error("error: nobody answers here; the question waits for another client");
  process.exit(1);
}

async function received({ id, method, params, result, error }) {
  if (method === undefined) return error ? open.get(id)?.reject(error) : open.get(id)?.resolve(result);
  if (params?.update?.sessionUpdate === "agent_message_chunk") {
    process.stdout.write(params.update.content.text ?? "");
  } else if (method === "session/request_permission") {
    console.error(`\n${params.toolCall.title ?? "a tool"}?`);
    params.options.forEach((option, at) => console.error(`  ${at + 1} ${option.name}`));
    const optionId = await person(params.options.map((option) => option.optionId));
    send({ id, result: { outcome: { outcome: "selected", optionId } } });
  } else if (id !== undefined) {
    send({ id, error: { code: -32601, message: "not here" } }); // We did not say that we can do it.
  }
}

createInterface({ input: acpd.stdout }).on("line", (line) => received(JSON.parse(line)));
acpd.on("exit", (code) => (process.exitCode ||= code));
try {
  await ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = await ask("session/new", { cwd: process.cwd(), mcpServers: [] });
  const { stopReason } = await ask("session/prompt", {
    sessionId, prompt: [{ type: "text", text: words.join(" ") }],
  });
  console.error(`\n${stopReason}`);
} catch ({ message, data }) {
  console.error(`error: ${message}\n${data?._acpd?.hint ?? ""}`);
  process.exitCode = 1;
}
acpd.stdin.end();
keyboard.close();
