// What the TypeScript clients share: the SDK as it was installed, an agent's process, and an eye on
// every message. The last line of such a client is PASS, or FAIL with the reason.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const dist = pathToFileURL(
  `${process.env.REAL_DIR}/npm-tssdk/node_modules/@agentclientprotocol/sdk/dist/`,
);
const work = process.env.WORK;
const version1 = await sdk("v1");
export const { agent } = version1.acp.methods;

/** The SDK for a version of the protocol, with the shapes of what acpd sends. */
export async function sdk(version) {
  const acp = await import(new URL(`${version}/stable/acp.js`, dist));
  const schema = await import(new URL(`${version}/schema/zod.gen.js`, dist));
  const { agent, client } = acp.methods;
  const results = {
    [agent.initialize]: schema.zInitializeResponse,
    [agent.session.new]: schema.zNewSessionResponse,
    [agent.session.load]: schema.zLoadSessionResponse,
    [agent.session.resume]: schema.zResumeSessionResponse,
    [agent.session.list]: schema.zListSessionsResponse,
    [agent.session.close]: schema.zCloseSessionResponse,
    [agent.session.prompt]: schema.zPromptResponse,
    [agent.session.setConfigOption]: schema.zSetSessionConfigOptionResponse,
    [agent.terminal?.cancel]: schema.zCancelTerminalResponse,
  };
  const calls = {
    [client.session.update]: schema.zSessionNotification ?? schema.zUpdateSessionNotification,
    [client.session.requestPermission]: schema.zRequestPermissionRequest,
    [acp.methods.protocol?.cancelRequest]: schema.zCancelRequestNotification,
  };
  return { acp, results, calls };
}

export const CANCELLED = -32800;
export const REFUSED = -32602;

// The SDK reports on the console what it cannot take, and goes on. Here the first problem is the end.
let problem;
const failed = new Promise((_, reject) => (problem = (text) => reject(new Error(text))));
console.error = (...words) => problem(words.map(String).join(" "));

/** Starts the agent, initializes, lets `flow` work with the connection, and leaves. */
export async function run(flow, version = version1, view = new View(), hello = { clientCapabilities: {} }) {
  try {
    await Promise.race([live(flow, version, view, hello), failed]);
    console.log("PASS");
  } catch (error) {
    console.log("FAIL", error.stack);
    process.exit(1);
  }
}

async function live(flow, { acp, results, calls }, view, hello) {
  const child = spawn("/bin/sh", ["-c", `exec ${process.env.AGENT_CMD}`], {
    stdio: ["pipe", "pipe", "inherit"],
    cwd: work,
  });
  const end = new Promise((resolve) => child.on("close", (code, signal) => resolve(code ?? signal)));
  const { sent, received } = checks(results, calls);
  const output = eye(sent);
  // It ends with the connection, and how that ended is told by the other direction.
  output.readable.pipeTo(Writable.toWeb(child.stdin)).catch(() => {});
  const input = Readable.toWeb(child.stdout).pipeThrough(eye(received));
  const connection = app(acp, view).connect(acp.ndJsonStream(output.writable, input));
  const request = (method, params) => connection.agent.request(method, params);
  const protocolVersion = acp.PROTOCOL_VERSION;
  const known = await request(agent.initialize, { protocolVersion, ...hello });
  assert.equal(known.protocolVersion, protocolVersion);
  await flow({ request, view, work, notify: (...what) => connection.agent.notify(...what) });
  child.stdin.end();
  assert.equal(await end, 0, "how the agent's process ended");
  await connection.closed;
}

function app(acp, view) {
  const { client } = acp.methods;
  return acp
    .client({ name: "acpd-test" })
    .onRequest(client.session.requestPermission, ({ params, signal }) => view.answer(params, signal))
    .onNotification(client.session.update, ({ params }) => view.take(params.update));
}

/** What a person would see of the session. */
class View {
  said = "";
  prompts = [];
  kinds = [];
  asked = 0;
  #waiting = [];

  answer(question) {
    this.asked += 1;
    return allow(question);
  }

  take(update) {
    this.kinds.push(update.sessionUpdate);
    if (update.sessionUpdate === "agent_message_chunk") this.said += update.content.text;
    if (update.sessionUpdate === "user_message_chunk") this.prompts.push(update.content.text);
    this.#waiting = this.#waiting.filter(({ text, found }) => !this.said.includes(text) || found());
  }

  /** Resolves when the agent has said this. */
  until(text) {
    return new Promise((found) => this.#waiting.push({ text, found }));
  }

  /** Updates that are part of a conversation, and not of the session's state. */
  conversation() {
    return this.kinds.filter((kind) => /_chunk$|^tool_call|^plan$/.test(kind));
  }
}

export function allow({ options }) {
  const { optionId } = options.find((option) => option.kind === "allow_once");
  return { outcome: { outcome: "selected", optionId } };
}

/** Checks the numbered pieces of a slow answer: each once and in order. */
export function wholeAnswer(said, count) {
  const pieces = [...said.matchAll(/tick \d+\/\d+/g)].map(([piece]) => piece);
  assert.deepEqual(pieces, Array.from({ length: count }, (_, n) => `tick ${n + 1}/${count}`));
}

export const text = (text) => [{ type: "text", text }];

/** What holds every message, either way, against the SDK's own schema. */
function checks(results, calls) {
  const open = new Map();
  const sent = (message) => {
    if (message.method && message.id !== undefined) open.set(message.id, message.method);
    assert.ok(!message.error, "something that the client could not take");
  };
  const received = (message) => {
    // Agents say more than the protocol knows.
    if (message.method?.startsWith("_") && message.id === undefined) return;
    if (message.method) return matches(calls[message.method], message.params, message);
    const method = open.get(message.id);
    assert.ok(method, "an answer to no open request");
    open.delete(message.id);
    if ([CANCELLED, REFUSED].includes(message.error?.code)) return;
    assert.ok(!message.error, `${method} failed`);
    matches(results[method], message.result, message);
  };
  return { sent, received };
}

/** Passes bytes on as they are, and shows each line's message to `look`. */
function eye(look) {
  const decoder = new TextDecoder();
  let rest = "";
  return new TransformStream({
    transform(bytes, next) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        try {
          look(JSON.parse(line));
        } catch (error) {
          problem(`${error.message} in ${line}`);
        }
      }
      next.enqueue(bytes);
    },
    flush() {
      if (rest) problem(`half a line: ${rest}`);
    },
  });
}

function matches(shape, value, message) {
  assert.ok(shape, "a method that nobody offered");
  assert.equal(message.jsonrpc, "2.0");
  const { data, error } = shape.safeParse(value);
  assert.ok(!error, String(error));
  // The schema puts a default in the place of a member that it cannot read, and drops an element.
  assert.ok(kept(data, value), "a value that the schema replaces");
}

/** Whether everything that was read is as it was written, but for what nobody knows. */
function kept(read, written) {
  if (written === null) return true;
  if (read === null || typeof read !== "object") return read === written;
  if (Array.isArray(read) && read.length !== written.length) return false;
  return Object.keys(read).every((key) => !Object.hasOwn(written, key) || kept(read[key], written[key]));
}
