"""Two clients of the Python SDK at once on one session: the second comes in the middle of a turn, and
a question goes to both. Ends with PASS, or FAIL with the reason."""

import asyncio
import logging
import os
import re
import shlex
import sys
import traceback

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.connection import StreamDirection
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

COMMAND, WORK = shlex.split(os.environ["AGENT_CMD"]), os.environ["WORK"]
WITHDRAWN = "$/cancel_request"


class Problems(logging.Handler):
    """The SDK logs what it cannot take, and goes on. Here the first problem is the end."""

    def __init__(self):
        super().__init__()
        self.all = []
        self.found = asyncio.Event()

    def emit(self, record):
        message = self.format(record)
        # The SDK does not know this notification, of which the protocol says that one may ignore it.
        if f"method={WITHDRAWN}" not in message:
            self.all.append(message)
            self.found.set()


class Viewer:
    """What a person would see of the session, and what is asked."""

    def __init__(self, answer):
        self.answer = answer
        self.said, self.prompts, self.questions, self.withdrawn = "", [], [], []
        self.changed = asyncio.Condition()

    async def request_permission(self, session_id, tool_call, options, **_):
        return RequestPermissionResponse(outcome=await self.answer(options))

    async def session_update(self, session_id, update, **_):
        if update.session_update == "agent_message_chunk":
            self.said += update.content.text
        if update.session_update == "user_message_chunk":
            self.prompts.append(update.content.text)
        await self.notify()

    async def observe(self, event):
        """Sees the raw messages, which have ids."""
        message = event.message
        if event.direction is StreamDirection.OUTGOING:
            return
        if message.get("method") == "session/request_permission":
            self.questions.append(message["id"])
        if message.get("method") == WITHDRAWN:
            self.withdrawn.append(message["params"]["requestId"])
        if "error" in message:
            logging.error("an error came: %s", message)
        await self.notify()

    async def notify(self):
        async with self.changed:
            self.changed.notify_all()

    async def until(self, condition):
        async with self.changed:
            await self.changed.wait_for(condition)

    def connect(self):
        environment = dict(os.environ)
        return spawn_agent_process(self, *COMMAND, env=environment, cwd=WORK, observers=[self.observe])


def equal(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {found!r}, not {wanted!r}")


def whole_answer(viewer, count):
    """The numbered pieces of a slow answer: each once and in order."""
    wanted = [f"tick {n}/{count}" for n in range(1, count + 1)]
    equal(re.findall(r"tick \d+/\d+", viewer.said), wanted, "pieces")


async def conversation():
    async def wait_until_withdrawn(_):
        await one.until(lambda: one.withdrawn)
        return DeniedOutcome(outcome="cancelled")

    async def allow_when_both_are_asked(options):
        await one.until(lambda: one.questions)
        allow = next(option for option in options if option.kind == "allow_once")
        return AllowedOutcome(outcome="selected", option_id=allow.option_id)

    one, two = Viewer(wait_until_withdrawn), Viewer(allow_when_both_are_asked)
    async with one.connect() as (first, process), two.connect() as (second, other):
        for connection in (first, second):
            await connection.initialize(protocol_version=PROTOCOL_VERSION)
        session = (await first.new_session(cwd=WORK, mcp_servers=[])).session_id

        def say(prompt):
            return first.prompt(session_id=session, prompt=[text_block(prompt)])

        async def catch_up():
            # Nothing overtakes: what was sent before these answers is here.
            for connection in (first, second):
                listed = (await connection.list_sessions()).sessions
                equal([s.cwd for s in listed if s.session_id == session], [WORK], "list")

        # The second one comes while the turn of the first runs.
        turn = asyncio.create_task(say("say #one [slow 30]"))
        await one.until(lambda: "tick 5/30" in one.said)
        await second.load_session(cwd=WORK, session_id=session, mcp_servers=[])
        equal(turn.done(), False, "the turn is over")
        equal(two.prompts, ["say #one [slow 30]"], "prompts that were loaded")
        equal((await turn).stop_reason, "end_turn", "stop reason")
        await two.until(lambda: two.said.endswith("tags=one"))
        await catch_up()
        whole_answer(one, 30)
        whole_answer(two, 30)

        # Both are asked. The second one answers, and the first one's question is over.
        answered = await say("say #two [tool bash echo done > two.txt]")
        equal(answered.stop_reason, "end_turn", "stop reason")
        await two.until(lambda: two.said.endswith("tags=one,two"))
        await catch_up()
        equal((len(one.questions), len(two.questions)), (1, 1), "questions")
        equal((one.withdrawn, two.withdrawn), (one.questions, []), "questions that were withdrawn")
        with open(os.path.join(WORK, "two.txt")) as file:
            equal(file.read(), "done\n", "file")
        equal(one.prompts, [], "its own prompts are not shown to a client")
        equal(two.prompts[1:], ["say #two [tool bash echo done > two.txt]"], "prompts of the other")
        equal(one.said, two.said, "what both saw")
    for ended in (process, other):
        equal(ended.returncode, 0, "how the agent's process ended")


async def main():
    problems = Problems()
    logging.basicConfig(handlers=[problems])
    story, watch = asyncio.create_task(conversation()), asyncio.create_task(problems.found.wait())
    await asyncio.wait((story, watch), return_when=asyncio.FIRST_COMPLETED)
    for task in (story, watch):
        task.cancel()
    failure, _ = await asyncio.gather(story, watch, return_exceptions=True)
    if failure is None and not problems.all:
        print("PASS")
        return 0
    print("FAIL", *problems.all, sep="\n")
    if failure:
        traceback.print_exception(failure, file=sys.stdout)
    return 1


sys.exit(asyncio.run(main()))
