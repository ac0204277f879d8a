// The TypeScript SDK's own WebSocket transport on `acpctl web`: a session, a question, a turn. Ends with PASS, or FAIL
// with the reason.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const dist = pathToFileURL(
  `${process.env.REAL_DIR}/npm-tssdk/node_modules/@agentclientprotocol/sdk/dist/`,
);
const acp = await import(new URL("v1/stable/acp.js", dist));
const { createWebSocketStream } = await import(new URL("transports/ws-stream.js", dist));

/** The transport hands headers over as the package `ws` takes them; Node's own class has them beside the protocols. */
class Socket extends WebSocket {
  constructor(url, protocols, { headers }) {
    super(url, { protocols, headers });
  }
}
const { agent, client } = acp.methods;

try {
  let said = "";
  const stream = createWebSocketStream(process.env.URL, {
    WebSocket: Socket,
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
