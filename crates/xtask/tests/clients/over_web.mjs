// The TypeScript SDK's own WebSocket transport on `acpctl web`: a session, a question, a turn. Ends with PASS, or FAIL
// with the reason.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const modules = pathToFileURL(`${process.env.PEERS}/node_modules/`);
const dist = new URL("@agentclientprotocol/sdk/dist/", modules);
const acp = await import(new URL("v1/stable/acp.js", dist));
const { createWebSocketStream } = await import(new URL("transports/ws-stream.js", dist));
const { WebSocket } = await import(new URL("ws/wrapper.mjs", modules));
const { agent, client } = acp.methods;

try {
  let said = "";
  const stream = createWebSocketStream(process.env.URL, {
    WebSocket,
    headers: { authorization: `Bearer ${process.env.TOKEN}` },
  });
  const app = acp
    .client({ name: "acpd-test" })
    .onRequest(client.session.requestPermission, ({ params }) => {
      const { optionId } = params.options.find((option) => option.kind === "allow_once");
      return { outcome: { outcome: "selected", optionId } };
    })
    .onNotification(client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === "agent_message_chunk") said += update.content.text;
    });
  const connection = app.connect(stream);
  const request = (method, params) => connection.agent.request(method, params);
  const hello = await request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  assert.equal(hello.protocolVersion, acp.PROTOCOL_VERSION);
  const { sessionId } = await request(agent.session.new, { cwd: process.env.WORK, mcpServers: [] });
  const prompt = [{ type: "text", text: "say #one [ask]" }];
  assert.equal((await request(agent.session.prompt, { sessionId, prompt })).stopReason, "end_turn");
  assert.match(said, /permission: yes/);
  assert.match(said, /tags=one/);
  console.log("PASS");
  process.exit(0);
} catch (error) {
  console.log("FAIL", error.stack ?? error);
  process.exit(1);
}
