#!/usr/bin/env python3
"""Stand-in for model providers on loopback, so that real agents work without a model.

usage: provider.py [PORT]      (0, the default, takes a free port; the first line of output names it)

Serves the APIs of OpenAI (chat completions, responses), Anthropic and Gemini, streamed and whole.
The server keeps no conversation. Its answer is made of the request alone:

    echo: LAST PROMPT | history=NUMBER OF EARLIER PROMPTS tags=a,b

`tags` are the distinct `#words` of all prompts in the request, so they prove what the agent remembers.

Directives in the last prompt:
    [err CODE]                fail with this HTTP status
    [hang]                    send headers, then only comments
    [cut N]                   drop the connection after N pieces
    [think]                   send some reasoning first
    [slow N]                  send N numbered pieces first, one per 100 ms
    [big N]                   send N KiB of filler first
    [tool bash COMMAND]       call the agent's shell; directives for tools are done in turn
    [tool write PATH TEXT]    call its tool that writes files
    [call NAME {JSON}]        call a tool by name
Requests without tools are the agent's own (titles, summaries): they get a short answer at once.

GET /_log returns the requests so far. A request that takes this server for a proxy is refused and
logged, so the log shows which hosts an agent wanted to reach.
"""
import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

MODELS = ["fake-1", "fake-2"]
TAG = re.compile(r"(?<![\w&/#])#([A-Za-z][\w-]*)")
# The bracket that ends a directive is the last character of a word.
TOOL = re.compile(r"\[(tool (?:bash|write) [^\]]*|call \S+ \{.*?\})\](?=\s|$)", re.S)
# Text that agents add to what the user wrote: elements, and whole messages with these beginnings.
ADDED = re.compile(
    r"<(system[-_]\w+|environment_\w+|user_in\w+|INSTRUCTIONS|env|context|session_context|reminder|cwd|current_datetime|"
    r"available_skills|\w+[_ ]instructions|local-command-\w+|command-\w+|todo_status|task_progress|memories|"
    r"collaboration_mode|sql_tables|vibe_\w+)\b[^>]*>.*?</\1>", re.S)
OWN = ("# AGENTS.md", "Warning:", "Caveat:", "[Request interrupted", "[SYSTEM", "<turn_aborted",
       "This is the ", "Here is the current", "Got it.", "Previous conversation",
       "Generate a title", "Please write a 5-10")
TOOL_NAMES = {
    "bash": ["bash", "shell", "run_shell_command", "shell_command", "exec_command", "terminal", "execute"],
    "write": ["write", "write_file", "create_file", "create"],
}
ARGUMENTS = {
    "command": ["command", "cmd", "script"],
    "path": ["file_path", "filePath", "path", "absolute_path"],
    "text": ["content", "file_text", "contents", "text"],
}


def text_of(content):
    """Text in a message's content: a string, or parts in any dialect."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        inner = next((content[key] for key in ("text", "content", "output", "response") if key in content), "")
        return inner if isinstance(inner, str) else text_of(inner) or json.dumps(inner)
    return "\n".join(text_of(part) for part in content or [])


def messages_of(dialect, body):
    """Yields (role, text): the roles are user, assistant and tool."""
    if dialect == "gemini":
        for message in body.get("contents") or []:
            for part in message.get("parts") or []:
                if "functionResponse" in part:
                    yield "tool", text_of(part["functionResponse"])
                elif isinstance(part.get("text"), str):
                    yield "assistant" if message.get("role") == "model" else "user", part["text"]
        return
    listed = body.get("input" if dialect == "responses" else "messages") or []
    for message in [{"role": "user", "content": listed}] if isinstance(listed, str) else listed:
        role, content = message.get("role"), message.get("content")
        if message.get("type", "").endswith("_output"):
            yield "tool", text_of(message.get("output"))
        elif role == "user":
            # A prompt without an answer and the next one can be two parts of one message.
            for part in content if isinstance(content, list) else [content]:
                is_result = isinstance(part, dict) and part.get("type") == "tool_result"
                yield "tool" if is_result else "user", text_of(part)
        elif role in ("assistant", "tool"):
            yield role, text_of(content)


def tools_of(dialect, body):
    """Tools by name: the schema of the arguments, and the namespace that a call has to give."""
    found = {}
    for tool in body.get("tools") or []:
        if tool.get("type") == "namespace":
            for inner in tool.get("tools") or []:
                found[inner["name"]] = (inner.get("parameters") or {}, tool["name"])
            continue
        for function in tool.get("functionDeclarations") or [tool.get("function") or tool]:
            schema = next((function[key] for key in ("parameters", "input_schema", "parametersJsonSchema")
                           if function.get(key)), {})
            found[function.get("name") or function.get("type", "")] = (schema, None)
    return found


def prompt_of(text):
    """The part of a user message that the user wrote, or an empty text."""
    text = ADDED.sub("", re.sub(r"</?user_query>", "", text or "")).strip()
    return "" if text.startswith(OWN) else text


def least(schema):
    """A small value that a JSON schema allows."""
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return least(schema[key][0])
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = str(kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        properties = schema.get("properties") or {}
        return {name: least(properties.get(name) or {}) for name in schema.get("required") or []}
    return {"array": [], "number": 1, "integer": 1, "boolean": False}.get(kind, "fake")


def arguments_for(schema, given):
    """Arguments of a tool, under the names that its schema has for them."""
    properties = schema.get("properties") or {}
    arguments = least({**schema, "type": "object", "anyOf": None, "oneOf": None, "allOf": None})
    for meaning, value in given.items():
        name = next((name for name in ARGUMENTS[meaning] if name in properties), None)
        if name:
            is_list = "array" in str(properties[name].get("type"))
            arguments[name] = ["bash", "-lc", value] if is_list else value
    if "sandbox_permissions" in properties:
        # Codex: leave the sandbox, which asks the user.
        arguments.update(sandbox_permissions="require_escalated", justification="the test wants it")
    return arguments


class Answer:
    """An answer, decided from a request."""

    def __init__(self, dialect, body):
        messages, tools = list(messages_of(dialect, body)), tools_of(dialect, body)
        prompts = [(at, prompt_of(text)) for at, (role, text) in enumerate(messages) if role == "user"]
        prompts = [(at, text) for at, text in prompts if text]
        last_at, last = prompts[-1] if prompts else (-1, "")
        results = [text for role, text in messages[last_at + 1:] if role == "tool"]
        tags = dict.fromkeys(tag for _, text in prompts for tag in TAG.findall(TOOL.sub("", text)))
        memory = f" | history={max(len(prompts) - 1, 0)} tags={','.join(tags)}"
        self.side = not tools
        self.facts = {"side": self.side, "user": last, "tags": list(tags), "tools": list(tools)}
        self.error = self.cut = self.call = None
        self.hang = self.think = False
        self.pieces = []
        schema = self.wanted_schema(body)
        if schema or self.side:
            self.side = self.facts["side"] = True
            self.text = json.dumps(least(schema)) if schema else "A title" + memory
            return

        def number(word):
            found = re.findall(rf"\[{word} (\d+)\]", last)
            return int(found[-1]) if found else None
        self.error, self.cut = number("err"), number("cut")
        self.hang, self.think = "[hang]" in last, "[think]" in last
        calls = TOOL.findall(last)
        if len(results) < len(calls):
            self.call = self.called(calls[len(results)], tools)
        slow = max(number("slow") or 0, (self.cut or -5) + 5)
        self.pieces = [(0.1, f"tick {n}/{slow} ") for n in range(1, slow + 1)]
        self.pieces += [(0, f"{n:06d} " + "x" * 1016 + "\n") for n in range(number("big") or 0)]
        told = " | tool result: " + " // ".join(text.strip()[:200] for text in results) if results else ""
        self.text = f"echo: {last[:200]}{told}{memory}"

    @staticmethod
    def wanted_schema(body):
        """The schema of an answer in JSON, if one is wanted."""
        for of in (body.get("response_format"), (body.get("text") or {}).get("format"),
                   (body.get("output_config") or {}).get("format"), body.get("output_format")):
            schema = isinstance(of, dict) and (of.get("schema") or (of.get("json_schema") or {}).get("schema"))
            if schema:
                return schema
        config = body.get("generationConfig") or {}
        if config.get("responseMimeType") == "application/json":
            return config.get("responseJsonSchema") or config.get("responseSchema") or {"type": "object"}
        return None

    @staticmethod
    def called(directive, tools):
        """The call of a tool that a directive wants: its name, arguments and namespace."""
        verb, what, rest = directive.split(" ", 2)
        if verb == "call":
            name = next((name for name in tools if name.lower() == what.lower()), what)
            return name, json.loads(rest), tools.get(name, ({}, None))[1]
        given = {"command": rest}
        if what == "write":
            path, _, text = rest.partition(" ")
            given = {"path": path, "text": text + "\n"}
        known = {name.lower(): name for name in reversed(tools)}
        name = next((known[name] for name in TOOL_NAMES[what] if name in known), None)
        if name is None:
            raise ValueError(f"no tool for {what} among {', '.join(tools)}")
        schema, space = tools[name]
        return name, arguments_for(schema, given), space

    def stream(self):
        """Yields the pieces of the text, each in its time."""
        words = re.findall(r"\S+\s*", self.text)
        tail = [(0, "".join(words[at:at + 4])) for at in range(0, len(words), 4)]
        for at, (pause, piece) in enumerate(self.pieces + tail):
            if at == self.cut:
                raise BrokenPipeError("cut off as the prompt wants it")
            time.sleep(pause)
            yield piece


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log, lock = [], threading.Lock()

    def log_message(self, *_):
        pass

    def note(self, **facts):
        with self.lock:
            self.log.append({"path": self.path, **facts})
            return len(self.log)

    def send_json(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self):
        self.note(side=True, outside=True)
        self.close_connection = True
        self.send_json({"error": "this is no proxy"}, 403)

    do_CONNECT = refuse

    def do_GET(self):
        path = urlsplit(self.path).path
        if path == "/_log":
            with self.lock:
                return self.send_json(self.log)
        if not self.path.startswith("/"):
            return self.refuse()
        if "/models" not in path:
            return self.send_json({"error": {"message": f"not found: {path}"}}, 404)
        models = [{"id": name, "slug": name, "name": f"models/{name}", "display_name": name, "object": "model",
                   "type": "model", "created": 0, "created_at": "2026-01-01T00:00:00Z", "owned_by": "nobody",
                   "context_window": 200000, "max_context_window": 200000, "inputTokenLimit": 200000,
                   "outputTokenLimit": 32000, "supportedGenerationMethods": ["generateContent"]}
                  for name in MODELS]
        self.send_json(models[0] if "/models/" in path else
                       {"object": "list", "data": models, "models": models, "has_more": False})

    do_HEAD = do_GET

    def body(self):
        if (self.headers.get("transfer-encoding") or "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def do_POST(self):
        path = urlsplit(self.path).path
        if not self.path.startswith("/"):
            return self.refuse()
        body = json.loads(self.body() or b"{}")
        if path.endswith("count_tokens") or path.endswith(":countTokens"):
            return self.send_json({"input_tokens": 100, "totalTokens": 100})
        dialects = {"/chat/completions": "chat", "/responses": "responses", "/messages": "anthropic",
                    ":generateContent": "gemini", ":streamGenerateContent": "gemini"}
        dialect = next((dialect for end, dialect in dialects.items() if path.endswith(end)), None)
        if dialect is None:
            self.note(side=True)
            return self.send_json({"error": {"message": f"not found: {path}"}}, 404)
        try:
            answer = Answer(dialect, body)
        except ValueError as error:
            self.note(side=False, user=str(error), tags=[], tools=[])
            return self.send_json({"error": {"message": str(error)}}, 400)
        number = self.note(**answer.facts)
        if answer.error:
            text = {401: "Incorrect API key provided", 429: "Rate limit reached"}.get(answer.error, "the provider failed")
            message = {"message": text, "type": "test", "code": answer.error}
            return self.send_json({"type": "error", "error": message}, answer.error)
        self.streams = bool(body.get("stream")) or "stream" in path
        try:
            if self.streams:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
            while answer.hang:
                time.sleep(0.25)
                self.chunk(": waiting\n\n")
            base = {"model": body.get("model") or MODELS[0]}
            whole = getattr(self, f"say_{dialect}")(answer, number, base, body)
            if self.streams:
                self.wfile.write(b"0\r\n\r\n")
            else:
                self.send_json(whole)
        except (BrokenPipeError, ConnectionResetError):
            # The agent has cancelled, or the prompt wants a cut.
            self.close_connection = True

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, value, name=None):
        if self.streams:
            text = value if isinstance(value, str) else json.dumps(value)
            self.chunk((f"event: {name}\n" if name else "") + f"data: {text}\n\n")

    def text(self, answer, send):
        """Sends each piece of the text; returns the whole."""
        whole = ""
        for piece in answer.stream():
            whole += piece
            send(piece)
        return whole

    def say_chat(self, answer, number, base, body):
        base.update(id=f"chatcmpl-{number}", created=0)
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        chunk = "chat.completion.chunk"

        def delta(delta, finish=None):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            self.event({**base, "object": chunk, "choices": [choice]})
        message, finish = {"role": "assistant", "content": None}, "stop"
        delta({"role": "assistant", "content": ""})
        if answer.think:
            delta({"reasoning_content": "I think."})
        if answer.call:
            name, arguments, _ = answer.call
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": f"call_{number}", "type": "function", "function": function}
            message["tool_calls"], finish = [call], "tool_calls"
            delta({"tool_calls": [{"index": 0, **call}]})
        else:
            message["content"] = self.text(answer, lambda piece: delta({"content": piece}))
        delta({}, finish)
        if (body.get("stream_options") or {}).get("include_usage"):
            self.event({**base, "object": chunk, "choices": [], "usage": usage})
        self.event("[DONE]")
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {**base, "object": "chat.completion", "usage": usage, "choices": [choice]}

    def say_responses(self, answer, number, base, body):
        response = {**base, "id": f"resp_{number}", "object": "response", "created_at": 0, "status": "in_progress",
                    "output": [], "error": None, "incomplete_details": None, "instructions": None, "tools": [],
                    "tool_choice": "auto", "parallel_tool_calls": True, "temperature": 1, "top_p": 1, "metadata": {}}
        count = iter(range(1 << 30))

        def event(name, **members):
            self.event({"type": f"response.{name}", "sequence_number": next(count), **members}, f"response.{name}")
        event("created", response=response)
        if answer.think:
            summary = {"type": "summary_text", "text": "I think."}
            item = {"type": "reasoning", "id": f"rs_{number}", "summary": [summary]}
            part = {"item_id": item["id"], "output_index": 0, "summary_index": 0}
            event("output_item.added", output_index=0, item={**item, "summary": []})
            event("reasoning_summary_part.added", **part, part={**summary, "text": ""})
            event("reasoning_summary_text.delta", **part, delta=summary["text"])
            event("output_item.done", output_index=0, item=item)
        if answer.call:
            name, arguments, space = answer.call
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name,
                    "arguments": json.dumps(arguments), "status": "completed"}
            if space:
                item["namespace"] = space
            event("output_item.added", output_index=0, item={**item, "arguments": "", "status": "in_progress"})
        else:
            part = {"type": "output_text", "text": "", "annotations": []}
            item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}
            at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            event("output_item.added", output_index=0, item={**item, "content": [], "status": "in_progress"})
            event("content_part.added", **at, part=dict(part))
            part["text"] = self.text(answer, lambda piece: event("output_text.delta", **at, delta=piece))
            event("content_part.done", **at, part=part)
        event("output_item.done", output_index=0, item=item)
        usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110}
        response = {**response, "status": "completed", "output": [item], "usage": usage}
        event("completed", response=response)
        return response

    def say_anthropic(self, answer, number, base, body):
        message = {**base, "id": f"msg_{number:08d}", "type": "message", "role": "assistant", "content": [],
                   "stop_reason": None, "stop_sequence": None,
                   "usage": {"input_tokens": 100, "output_tokens": 1, "cache_creation_input_tokens": 0,
                             "cache_read_input_tokens": 0}}

        def event(name, **members):
            self.event({"type": name, **members}, name)

        def block(content, empty, deltas):
            index = len(message["content"])
            event("content_block_start", index=index, content_block={**content, **empty})
            deltas(lambda kind, **members: event("content_block_delta", index=index, delta={"type": kind, **members}))
            event("content_block_stop", index=index)
            message["content"].append(content)
        event("message_start", message=message)
        if answer.think and body.get("thinking"):
            block({"type": "thinking", "thinking": "I think.", "signature": "ZmFrZQ=="}, {"thinking": "", "signature": ""},
                  lambda delta: delta("thinking_delta", thinking="I think."))
        if answer.call:
            name, arguments, _ = answer.call
            block({"type": "tool_use", "id": f"toolu_{number:08d}", "name": name, "input": arguments}, {"input": {}},
                  lambda delta: delta("input_json_delta", partial_json=json.dumps(arguments)))
        else:
            content = {"type": "text", "text": ""}

            def say(delta):
                content["text"] = self.text(answer, lambda piece: delta("text_delta", text=piece))
            block(content, {}, say)
        message.update(stop_reason="tool_use" if answer.call else "end_turn")
        event("message_delta", delta={"stop_reason": message["stop_reason"], "stop_sequence": None},
              usage={"output_tokens": 10})
        event("message_stop")
        return message

    def say_gemini(self, answer, number, base, body):
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}

        def candidate(part, finish=None):
            content = {"content": {"role": "model", "parts": [part]}, "index": 0}
            if finish:
                content["finishReason"] = finish
            value = {"candidates": [content], "modelVersion": base["model"], "responseId": f"r{number}"}
            if finish:
                value["usageMetadata"] = usage
            self.event(value)
            return value
        if answer.think:
            candidate({"text": "**Thinking** about it.", "thought": True})
        if answer.call:
            name, arguments, _ = answer.call
            return candidate({"functionCall": {"name": name, "args": arguments}}, "STOP")
        text = self.text(answer, lambda piece: candidate({"text": piece}))
        return candidate({"text": "" if self.streams else text}, "STOP")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (BrokenPipeError, ConnectionResetError)):
            super().handle_error(request, client_address)


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
