"""The Python SDK's own WebSocket transport on `acpctl web`: a session, a question, a turn. Ends with PASS, or FAIL
with the reason."""

import asyncio
import os
import sys
import traceback

from acp import PROTOCOL_VERSION, connect_to_agent, text_block
from acp.schema import AllowedOutcome, RequestPermissionResponse
from acp.ws import create_websocket_stream


class Person:
    """Allows what it is asked, and keeps what it hears."""

    said = ""

    async def request_permission(self, session_id, tool_call, options, **_):
        allow = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=allow.option_id))

    async def session_update(self, session_id, update, **_):
        if update.session_update == "agent_message_chunk":
            self.said += update.content.text

    def on_connect(self, connection):
        pass


async def main():
    person = Person()
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
    transport = await create_websocket_stream(os.environ["URL"], headers=headers)
    agent = connect_to_agent(person, transport)
    hello = await agent.initialize(protocol_version=PROTOCOL_VERSION)
    assert hello.protocol_version == PROTOCOL_VERSION
    session = await agent.new_session(cwd=os.environ["WORK"], mcp_servers=[])
    turn = await agent.prompt(session_id=session.session_id, prompt=[text_block("say #one [ask]")])
    assert turn.stop_reason == "end_turn", turn
    assert "permission: yes" in person.said and "tags=one" in person.said, person.said
    await transport.close()


try:
    asyncio.run(asyncio.wait_for(main(), 60))
    print("PASS")
except BaseException:
    print("FAIL", traceback.format_exc())
    sys.exit(1)
