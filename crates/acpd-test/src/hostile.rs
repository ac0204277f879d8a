//! An agent whose every text is hostile: escape sequences, invisible characters, lines that imitate
//! acpd. Each text begins with the name of its field, so that a test can check which fields it has
//! seen.
//!
//! The prompt selects what a turn does: `say` (updates of all kinds), `ask`, `plain` (a yes or no),
//! `form`, `page`, `fail` and `die`.

use std::io::{self, BufRead as _, Write as _};
use std::process::ExitCode;

use serde_json::{Value, json};

/// Characters that must not reach a terminal: OSC 52, colours, C0, C1, DEL, bidi, zero width,
/// fillers, tags.
pub const EVIL: &str = "\u{1b}]52;c;eA==\u{7}\u{1b}[31m\u{1b}[2J\u{9b}1m\u{7f}\u{8}\u{ad}\u{61c}\u{115f}\
    \u{180e}\u{200b}\u{200e}\u{202e}\u{2028}\u{2066}\u{2800}\u{3164}\u{fe05}\u{feff}\u{fff9}\u{e000}\
    \u{1d173}\u{e0041}\u{e0101}\r";
/// Beginning of a line that an agent has forged.
pub const FORGED: &str = "forged";

pub fn evil(field: &str) -> String {
    format!("{field}{EVIL}\n{FORGED} {field}")
}

/// Runs the agent on stdin and stdout until stdin ends. With `broken` it cannot be initialized.
pub fn run(broken: bool) -> ExitCode {
    let mut agent = Agent { lines: io::stdin().lock().lines(), broken, asked: 0, sessions: 0 };
    while let Some(message) = agent.next() {
        if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
            match agent.answer(method, id, &message["params"]) {
                Ok(result) => send(&json!({"jsonrpc": "2.0", "id": id, "result": result})),
                Err(error) => send(&json!({"jsonrpc": "2.0", "id": id, "error": error})),
            }
        }
    }
    ExitCode::SUCCESS
}

struct Agent {
    lines: io::Lines<io::StdinLock<'static>>,
    broken: bool,
    asked: u64,
    sessions: u64,
}

impl Agent {
    fn next(&mut self) -> Option<Value> {
        loop {
            if let Ok(message) = serde_json::from_str(&self.lines.next()?.ok()?) {
                return Some(message);
            }
        }
    }

    fn answer(&mut self, method: &str, id: &Value, params: &Value) -> Result<Value, Value> {
        complain();
        match method {
            "initialize" if self.broken => Err(error("initialize error")),
            "initialize" => Ok(initialize_result()),
            "authenticate" => {
                let scope = json!({"requestId": id});
                self.ask("elicitation/create", &form(scope.clone()));
                self.ask("elicitation/create", &page(scope));
                Err(error("authenticate error"))
            }
            "session/new" | "session/fork" => {
                self.sessions += 1;
                let mut result = settings();
                result["sessionId"] = json!(format!("{}{}", evil("session id"), self.sessions));
                Ok(result)
            }
            "session/load" | "session/resume" => Ok(settings()),
            "session/set_config_option" => {
                Ok(json!({"configOptions": settings()["configOptions"]}))
            }
            "session/prompt" => self.turn(params),
            _ => Ok(json!({})),
        }
    }

    fn turn(&mut self, params: &Value) -> Result<Value, Value> {
        let session = &params["sessionId"];
        let scope = || json!({"sessionId": session});
        match params["prompt"][0]["text"].as_str().unwrap_or_default() {
            "ask" => {
                self.ask("session/request_permission", &permission(session));
            }
            "plain" => {
                let mut question = permission(session);
                // Only a user may choose an option of an unknown kind.
                question["options"].as_array_mut().map(Vec::pop);
                self.ask("session/request_permission", &question);
            }
            "form" => {
                self.ask("elicitation/create", &form(scope()));
            }
            "page" => {
                self.ask("elicitation/create", &page(scope()));
            }
            "fail" => return Err(error("prompt error")),
            "die" => {
                complain();
                std::process::exit(3);
            }
            _ => {
                for update in updates() {
                    say(session, &update);
                }
                return Ok(json!({"stopReason": evil("stop reason")}));
            }
        }
        Ok(json!({"stopReason": "end_turn"}))
    }

    fn ask(&mut self, method: &str, params: &Value) {
        self.asked += 1;
        let id = json!(self.asked);
        send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        while self
            .next()
            .is_some_and(|message| message.get("method").is_some() || message["id"] != id)
        {}
    }
}

fn send(message: &Value) {
    // A reader that is gone ends the agent by the end of its stdin.
    let _ = writeln!(io::stdout(), "{message}");
}

fn say(session: &Value, update: &Value) {
    let params = json!({"sessionId": session, "update": update});
    send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
}

/// Writes to stderr, and a line on stdout that is no message.
fn complain() {
    let _ = writeln!(io::stderr(), "stderr {EVIL}");
    let _ = writeln!(io::stdout(), "no message {EVIL}");
}

fn error(field: &str) -> Value {
    let details = evil(&format!("{field} details"));
    json!({"code": -32603, "message": evil(field), "data": {"details": details}})
}

fn initialize_result() -> Value {
    json!({
        "protocolVersion": 1,
        "agentInfo": {"name": evil("agent name"), "title": evil("agent title"),
            "version": evil("agent version")},
        "agentCapabilities": {"loadSession": true, "auth": {"logout": {}}, "sessionCapabilities":
            {"list": {}, "resume": {}, "close": {}, "delete": {}, "fork": {}}},
        "authMethods": [
            {"id": evil("login id"), "name": evil("login name"), "description": evil("login text")},
            {"id": "second", "name": evil("second login")}],
    })
}

fn settings() -> Value {
    json!({
        "modes": {"currentModeId": evil("mode id"), "availableModes": [{"id": evil("mode id"),
            "name": evil("mode name"), "description": evil("mode text")}, {"id": "m2"}]},
        "configOptions": [{"id": evil("option id"), "name": evil("option name"), "type": "select",
            "description": evil("option text"), "category": evil("option category"),
            "currentValue": evil("value"), "options": [
                {"value": evil("value"), "name": evil("value name")}, {"value": "v2"}]}],
    })
}

fn call() -> Value {
    json!({"toolCallId": evil("call id"), "title": evil("call title"), "kind": "execute",
        "rawInput": {"command": evil("command"), "cwd": evil("folder")},
        "locations": [{"path": evil("place"), "line": 3}],
        "content": [{"type": "diff", "path": evil("diff path"), "oldText": "a\n",
            "newText": format!("new line {EVIL}\n")}]})
}

fn permission(session: &Value) -> Value {
    let option = |id: &str, kind: &str| json!({"optionId": evil(id), "name": evil(&format!("{id} name")), "kind": kind});
    json!({"sessionId": session, "toolCall": call(), "options": [option("yes", "allow_once"),
        option("no", "reject_once"), option("other", &evil("option kind"))]})
}

fn form(mut scope: Value) -> Value {
    scope["mode"] = json!("form");
    scope["message"] = json!(evil("form message"));
    // Sorted by name, as a map of JSON may be.
    let properties = json!({
        "choice": {"type": "string", "oneOf": [
            {"const": evil("choice"), "title": evil("choice title")}, {"const": "b"}]},
        evil("field"): {"type": "string", "title": evil("field title"),
            "description": evil("field text"), "default": evil("field default"),
            "format": evil("field format")}});
    scope["requestedSchema"] = json!({"type": "object", "title": evil("form title"),
        "description": evil("form text"), "properties": properties});
    scope
}

fn page(mut scope: Value) -> Value {
    scope["mode"] = json!("url");
    scope["message"] = json!(evil("page message"));
    scope["url"] = json!(format!("https://page.example/{}", evil("page url")));
    scope["elicitationId"] = json!(evil("page id"));
    scope
}

fn updates() -> Vec<Value> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let chunk = |kind: &str, content: Value| json!({"sessionUpdate": kind, "content": content});
    let mut begun = call();
    begun["sessionUpdate"] = json!("tool_call");
    let ended = |id: &str, kind: &str, status: &str| {
        json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "title": evil("ended call"),
            "kind": kind, "status": status, "content": [{"type": "content",
                "content": text(&format!("printed {EVIL}\n"))}]})
    };
    let mut options = settings()["configOptions"].clone();
    options[0]["currentValue"] = json!(evil("new value"));
    vec![
        chunk("agent_thought_chunk", text(&format!("thought {EVIL}\n"))),
        chunk("agent_message_chunk", text(&format!("answer {EVIL}\n"))),
        chunk(
            "agent_message_chunk",
            json!({"type": "resource_link", "uri": evil("link"),
            "name": evil("link name")}),
        ),
        chunk(
            "agent_message_chunk",
            json!({"type": "image", "data": "", "mimeType": evil("mime")}),
        ),
        begun,
        ended(&evil("call id"), "execute", "completed"),
        json!({"sessionUpdate": "tool_call", "toolCallId": evil("other call id")}),
        ended("second", &evil("kind"), "failed"),
        ended("third", "other", &evil("status")),
        json!({"sessionUpdate": "plan", "entries": [{"content": evil("plan entry"),
            "priority": evil("priority"), "status": evil("plan status")}]}),
        json!({"sessionUpdate": "current_mode_update", "currentModeId": evil("new mode")}),
        json!({"sessionUpdate": "config_option_update", "configOptions": options}),
        json!({"sessionUpdate": "notice", "severity": evil("severity"), "title": evil("notice"),
            "description": evil("notice text")}),
        json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "failed", "error": evil("compaction")}),
        json!({"sessionUpdate": "subagent_update", "sessionId": evil("subagent id"),
            "title": evil("subagent"), "state": {"state": evil("subagent state")}}),
        json!({"sessionUpdate": "available_commands_update", "availableCommands": [{
            "name": evil("slash"), "description": evil("slash text"),
            "input": {"hint": evil("slash hint")}}]}),
        json!({"sessionUpdate": "session_info_update", "title": evil("session title")}),
        json!({"sessionUpdate": "usage_update", "used": 1, "size": 2,
            "cost": {"amount": 1.0, "currency": evil("currency")}}),
        json!({"sessionUpdate": evil("update"), "text": evil("unknown")}),
    ]
}
