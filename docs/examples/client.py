"""A client on acpd's socket, with nothing but Python: python3 client.py AGENT SESSION PROMPT...

It goes on in the session of that name here, or begins it. docs/protocol.md explains each message.
"""
import itertools, json, os, socket, subprocess, sys

agent, session_name, prompt = sys.argv[1], sys.argv[2], " ".join(sys.argv[3:])
status = json.loads(subprocess.check_output(["acpctl", "ps", "--json"]))  # Starts acpd if need be.
acpd = socket.socket(socket.AF_UNIX)
acpd.connect(status["daemon"]["socket"])
lines, ids = acpd.makefile(encoding="utf-8", newline="\n"), itertools.count(1)

def send(message):
    acpd.sendall((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())

def ask(method, params):
    """Sends a request, and takes what comes before its answer."""
    mine = next(ids)
    send({"id": mine, "method": method, "params": params})
    for message in map(json.loads, lines):
        if "method" in message:
            received(message)
        elif message["id"] == mine and "error" in message:
            hint = (message["error"].get("data") or {}).get("_acpd", {}).get("hint", "")
            sys.exit(f"error: {message['error']['message']}\n{hint}")
        elif message["id"] == mine:
            return message["result"]
    sys.exit("error: the connection was lost")  # The turn goes on, and the journal has it.

def person(choices):
    for answer in sys.stdin:
        if answer.strip() in map(str, range(1, len(choices) + 1)):
            return choices[int(answer) - 1]
    sys.exit("error: nobody answers here; the question waits for another client")

def received(message):
    params = message.get("params") or {}
    update = params.get("update", {})
    if update.get("sessionUpdate") == "agent_message_chunk":
        print(update["content"].get("text", ""), end="", flush=True)
    elif message["method"] == "session/request_permission":
        print(f"\n{params['toolCall'].get('title', 'a tool')}?", file=sys.stderr)
        for number, option in enumerate(params["options"], 1):
            print(f"  {number} {option['name']}", file=sys.stderr)
        choice = person([option["optionId"] for option in params["options"]])
        send({"id": message["id"], "result": {"outcome": {"outcome": "selected", "optionId": choice}}})
    elif "id" in message:  # A request that this client did not say it can do.
        send({"id": message["id"], "error": {"code": -32601, "message": "not here"}})

ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}, "_meta": {"_acpd": {"agent": agent}}})
name = {"name": session_name, "reuse": True}
session = ask("session/new", {"cwd": os.getcwd(), "mcpServers": [], "_meta": {"_acpd": name}})["sessionId"]
done = ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]})
print(f"\n{done['stopReason']}", file=sys.stderr)
