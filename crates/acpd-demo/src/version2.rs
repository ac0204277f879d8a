//! Version 2 of the protocol: scripts make updates of version 1, which are rewritten here.
//!
//! Messages whose order matters are sent while the session's state is locked.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::options::MessageOrder;
use crate::session::{Session, Signal, State, chunk, terminal_output};
use crate::turn::Turn;
use crate::wire::{Failure, lock, response, update};
use crate::{Agent, text};

const LINE_PERIOD: Duration = Duration::from_millis(100);

impl Agent {
    pub(crate) fn speaks_v2(&self) -> bool {
        self.speaks_v2.load(Ordering::Relaxed)
    }

    fn is_codex(&self) -> bool {
        self.options.flags.v2 == Some(MessageOrder::Codex)
    }

    /// Answers `initialize` in version 2 if the request has its members, too.
    pub(crate) fn negotiate(&self, params: &Value) -> Value {
        let is_v2 = self.options.flags.v2.is_some()
            && params["protocolVersion"].as_u64() >= Some(2)
            && params["info"].is_object()
            && params["capabilities"].is_object();
        self.speaks_v2.store(is_v2, Ordering::Relaxed);
        let mut v1 = self.initialize(params);
        if !is_v2 {
            return v1;
        }
        self.boolean_options.store(true, Ordering::Relaxed);
        let mut session = json!({"prompt": {"image": {}, "embeddedContext": {}},
            "mcp": {"stdio": {}}, "delete": {}, "fork": {}});
        if self.options.flags.mcp_http {
            session["mcp"]["http"] = json!({});
        }
        let mut methods = v1["authMethods"].take();
        for method in methods.as_array_mut().into_iter().flatten() {
            rename(method, "id", "methodId");
            if method["type"].is_null() {
                method["type"] = json!("agent");
            }
        }
        json!({"protocolVersion": self.options.flags.protocol.unwrap_or(2),
            "info": v1["agentInfo"], "capabilities": {"session": session}, "authMethods": methods})
    }

    pub(crate) fn notification_v2(&self, method: &str, params: &Value) {
        match method {
            "session/cancel" => {
                if let Ok(session) = self.session(params) {
                    self.cancel_prompts(&mut lock(&session.state));
                }
            }
            "$/cancel_request" if self.is_codex() => {
                let id = &params["requestId"];
                for session in lock(&self.sessions).values() {
                    let held = &mut lock(&session.state).work.held;
                    if let Some(at) = held.iter().position(|(held, _)| held == id) {
                        held.remove(at);
                        self.refuse_held(id);
                    }
                }
            }
            _ => {}
        }
    }

    pub(crate) fn request_v2(self: &Arc<Self>, id: &Value, method: &str, params: &Value) {
        let mut params = params.clone();
        if let Some(params) = params.as_object_mut() {
            params.entry("mcpServers").or_insert_with(|| json!([]));
        }
        // Has the commands of a session that was opened.
        let mut after = Vec::new();
        let outcome = match method {
            "auth/login" => self.authenticate(&params),
            "auth/logout" => self.logout(),
            "session/new" => self.new_session(&params, &mut after),
            "session/fork" => self.fork_session(&params, &mut after),
            "session/resume" => self.resume(&params, &mut after),
            "session/list" => Ok(self.list_sessions(&params)),
            "session/set_config_option" => self.set_option_v2(&params),
            "session/prompt" if params["prompt"] == json!([]) => {
                Err(Failure::invalid_params("prompt is empty"))
            }
            "session/prompt" => match self.start_turn(id, &params) {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            "session/close" => return self.close(id, &params),
            "session/delete" => {
                if let Ok(session) = self.session(&params) {
                    self.end_work(&session, &mut lock(&session.state));
                }
                self.delete_session(&params)
            }
            "terminal/cancel" => self.cancel_terminal(&params),
            _ => Err(Failure {
                data: Some(json!({"method": method})),
                ..Failure::new(-32601, format!("method not found: {method}"))
            }),
        };
        let outcome = outcome.map(|result| match after.pop() {
            Some(commands) => opened(result, commands),
            None => result,
        });
        self.wire.send(&response(id, outcome));
    }

    fn resume(&self, params: &Value, after: &mut Vec<Value>) -> Result<Value, Failure> {
        let flags = &self.options.flags;
        let replays = match (&params["replayFrom"], params["replayFrom"]["type"].as_str()) {
            (Value::Null, _) => false,
            (_, Some("start")) => true,
            _ => return Err(Failure::invalid_params("replayFrom is unknown")),
        };
        if let (true, Some(code)) = (replays, flags.load_error) {
            return Err(Failure::new(code, "load fails on demand"));
        }
        let (session, result) = self.restore(params, after)?;
        let mut state = lock(&session.state);
        if replays {
            self.replay_v2(&session.id);
            if flags.replay_complete {
                let complete = json!({"sessionUpdate": "replay_complete"});
                self.wire.send(&update(&session.id, complete));
            }
        }
        self.send_same_state(&session.id, &mut state);
        Ok(result)
    }

    /// Sends the conversation with the message ids of the live turns.
    fn replay_v2(&self, session: &str) {
        let mut prompts = 0;
        for entry in self.store.read(session).unwrap_or_default().messages {
            let (kind, blocks) = entry.content();
            prompts += usize::from(kind == "user_message_chunk");
            let id = self.message_id(kind, prompts.saturating_sub(1));
            let message = json!({"sessionUpdate": kind.trim_end_matches("_chunk"),
                "messageId": id, "content": []});
            self.wire.send(&update(session, message));
            for block in blocks {
                self.wire.send(&chunk(session, kind, &block, &id));
            }
        }
    }

    fn set_option_v2(&self, params: &Value) -> Result<Value, Failure> {
        let session = self.session(params)?;
        let (option, value) = (text(params, "configId")?, &params["value"]);
        match (text(params, "type")?, value) {
            ("id", Value::String(_)) | ("boolean", Value::Bool(_)) => {}
            (kind, _) => {
                return Err(Failure::invalid_params(format!("{value} is no value of type {kind}")));
            }
        }
        let mut state = lock(&session.state);
        match (option, value) {
            ("mode", Value::String(mode)) => state.settings.set_mode(mode)?,
            _ => state.settings.set_option(option, value)?,
        }
        self.store_settings(&session, &state);
        let options = options(&self.settings(&state));
        let news = json!({"sessionUpdate": "config_option_update", "configOptions": options});
        self.wire.send(&update(&session.id, news));
        Ok(json!({"configOptions": options}))
    }

    /// Answers a prompt that has become part of the conversation.
    pub(crate) fn insert(&self, session: &str, state: &mut State, id: &Value, turn: &Turn) {
        let message = self.message_id("user_message_chunk", turn.history);
        let answer = response(id, Ok(json!({"messageId": message})));
        if self.is_codex() {
            self.send_state(session, state, "running", json!({}));
            for block in &turn.prompt {
                self.wire.send(&chunk(session, "user_message_chunk", block, &message));
            }
            self.wire.send(&answer);
        } else {
            let user = json!({"sessionUpdate": "user_message", "messageId": message,
                "content": turn.prompt});
            self.wire.send(&update(session, user));
            self.wire.send(&answer);
            self.send_state(session, state, "running", json!({}));
        }
    }

    /// Sends the end of a turn, starts its work in the background, and inserts the next prompt.
    pub(crate) fn settle(
        self: &Arc<Self>,
        session: &Arc<Session>,
        state: &mut State,
        outcome: Result<Value, Failure>,
    ) {
        let end = outcome.unwrap_or_else(|failure| {
            let error = response(&Value::Null, Err(failure))["error"].take();
            json!({"stopReason": "error", "error": error})
        });
        self.send_state(&session.id, state, "idle", end);
        if let Some(id) = state.work.closing.take() {
            self.wire.send(&response(&id, Ok(json!({}))));
        }
        for (terminal, lines) in std::mem::take(&mut state.work.starting) {
            let (agent, session) = (Arc::clone(self), Arc::clone(session));
            thread::spawn(move || agent.run_background(&session, &terminal, lines));
        }
        while let Some((id, prompt)) = state.work.held.pop_front() {
            match self.begin_turn(session, state, &id, prompt) {
                Ok(()) => return,
                Err(failure) => self.wire.send(&response(&id, Err(failure))),
            }
        }
    }

    fn cancel_prompts(&self, state: &mut State) {
        for (id, _) in state.work.held.drain(..) {
            self.refuse_held(&id);
        }
        if let Some(turn) = &state.turn {
            let _ = turn.send(Signal::Cancel);
        }
    }

    fn refuse_held(&self, id: &Value) {
        self.wire.send(&response(id, Err(Failure::new(-32800, "Request cancelled"))));
    }

    fn end_work(&self, session: &Session, state: &mut State) {
        for terminal in state.work.background.clone().unwrap_or_default() {
            self.end_terminal(session, state, &terminal, json!({}));
        }
        self.cancel_prompts(state);
    }

    fn close(&self, id: &Value, params: &Value) {
        if let Ok(session) = self.session(params) {
            lock(&self.sessions).remove(&session.id);
            let mut state = lock(&session.state);
            self.end_work(&session, &mut state);
            if state.turn.is_some() {
                state.work.closing = Some(id.clone());
                return;
            }
        }
        self.wire.send(&response(id, Ok(json!({}))));
    }

    fn send_state(&self, session: &str, state: &mut State, name: &'static str, mut body: Value) {
        state.work.activity = Some(name);
        body["sessionUpdate"] = json!("state_update");
        body["state"] = json!(name);
        if let Some(terminals) = &state.work.background {
            let work = |id| json!({"type": "terminal", "terminalId": id});
            body["background"] = terminals.iter().map(work).collect();
        }
        self.wire.send(&update(session, body));
    }

    fn send_same_state(&self, session: &str, state: &mut State) {
        let name = state.work.activity.unwrap_or("idle");
        self.send_state(session, state, name, json!({}));
    }

    /// Rewrites a permission request and reports that the turn waits for it.
    pub(crate) fn before_request(
        &self,
        session: &Session,
        method: &str,
        mut params: Value,
    ) -> Result<Value, Failure> {
        if !self.speaks_v2() {
            return Ok(params);
        }
        if method != "session/request_permission" {
            return Err(Failure::new(-32601, format!("version 2 has no {method}")));
        }
        self.send_state(&session.id, &mut lock(&session.state), "requires_action", json!({}));
        let call = params["toolCall"].take();
        Ok(json!({"sessionId": session.id, "title": call["title"], "options": params["options"],
            "subject": {"type": "tool_call", "toolCall": call}}))
    }

    pub(crate) fn after_request(&self, session: &Session) {
        if self.speaks_v2() {
            self.send_state(&session.id, &mut lock(&session.state), "running", json!({}));
        }
    }

    pub(crate) fn withdraw(&self, session: &Session, id: &Value) {
        if self.speaks_v2() {
            self.wire.send(&json!({"jsonrpc": "2.0", "method": "$/cancel_request",
                "params": {"requestId": id}}));
            if self.is_codex() {
                self.after_request(session);
            }
        }
    }

    pub(crate) fn message_id(&self, kind: &str, turn: usize) -> String {
        let shares_id = self.speaks_v2() && !self.is_codex() && kind == "agent_thought_chunk";
        format!("{}-{turn}", if shares_id { "agent_message_chunk" } else { kind })
    }

    /// Rewrites an update of version 1 for the version of the connection.
    pub(crate) fn dialect(&self, update: Value) -> Value {
        if self.speaks_v2() { update_to_v2(update) } else { update }
    }

    /// Adds a terminal that prints after the end of the turn.
    pub(crate) fn add_background(&self, session: &Session, terminal: &str, lines: u64) {
        let mut state = lock(&session.state);
        state.work.starting.push((terminal.to_owned(), lines));
        state.work.background.get_or_insert_default().push(terminal.to_owned());
        self.send_same_state(&session.id, &mut state);
    }

    fn run_background(&self, session: &Session, terminal: &str, lines: u64) {
        for line in 1..=lines {
            thread::sleep(LINE_PERIOD);
            let state = lock(&session.state);
            if !state.work.runs(terminal) {
                return;
            }
            self.wire.send(&update(&session.id, terminal_output(terminal, line)));
        }
        let mut state = lock(&session.state);
        self.end_terminal(session, &mut state, terminal, json!({"exitCode": 0}));
    }

    /// Returns whether the terminal was running.
    fn end_terminal(&self, at: &Session, state: &mut State, terminal: &str, exit: Value) -> bool {
        let was_running = state.work.runs(terminal);
        if was_running {
            state.work.background.iter_mut().for_each(|list| list.retain(|id| id != terminal));
            self.wire.send(&update(
                &at.id,
                json!({"sessionUpdate": "terminal_update", "terminalId": terminal,
                    "exitStatus": exit, "capabilities": null}),
            ));
            self.send_same_state(&at.id, state);
        }
        was_running
    }

    fn cancel_terminal(&self, params: &Value) -> Result<Value, Failure> {
        let session = self.session(params)?;
        let terminal = text(params, "terminalId")?;
        let mut state = lock(&session.state);
        if self.end_terminal(&session, &mut state, terminal, json!({})) {
            return Ok(json!({}));
        }
        Err(Failure::invalid_params(format!("terminal cannot be cancelled: {terminal}")))
    }
}

fn rename(object: &mut Value, from: &str, to: &str) {
    if let Some(object) = object.as_object_mut()
        && let Some(value) = object.remove(from)
    {
        object.insert(to.to_owned(), value);
    }
}

/// The result of a request that opened a session. `commands` is the update about them.
fn opened(mut result: Value, mut commands: Value) -> Value {
    result["configOptions"] = options(&result);
    result["availableCommands"] =
        update_to_v2(commands["params"]["update"].take())["availableCommands"].take();
    result.as_object_mut().map(|result| result.remove("modes"));
    result
}

/// Modes and options of version 1 as options of version 2.
fn options(settings: &Value) -> Value {
    let modes = &settings["modes"];
    let mut choices = modes["availableModes"].clone();
    for mode in choices.as_array_mut().into_iter().flatten() {
        rename(mode, "id", "value");
    }
    let mut options = vec![json!({"id": "mode", "name": "Mode", "category": "mode",
        "type": "select", "currentValue": modes["currentModeId"], "options": choices})];
    options.extend(settings["configOptions"].as_array().into_iter().flatten().cloned());
    for option in &mut options {
        rename(option, "id", "configId");
    }
    options.into()
}

fn update_to_v2(mut update: Value) -> Value {
    match update["sessionUpdate"].as_str().unwrap_or_default() {
        "tool_call" | "tool_call_update" => {
            update["sessionUpdate"] = json!("tool_call_update");
            if let Some(content) = update.get_mut("content").and_then(Value::as_array_mut) {
                let diffs = content.iter_mut().filter(|item| item["type"] == "diff");
                diffs.for_each(|item| *item = diff(item));
            }
        }
        "plan" => {
            let plan = json!({"type": "items", "planId": "plan", "entries": update["entries"]});
            update = json!({"sessionUpdate": "plan_update", "plan": plan});
        }
        "available_commands_update" => {
            let commands = update["availableCommands"].as_array_mut();
            for command in commands.into_iter().flatten() {
                command["type"] = json!("command");
                if let Some(input) = command.get_mut("input") {
                    input["type"] = json!("text");
                }
            }
        }
        _ => {}
    }
    update
}

/// A changed file, as a patch that replaces all of its lines.
fn diff(v1: &Value) -> Value {
    let path = v1["path"].as_str().unwrap_or_default();
    let lines = |name: &str, mark: &str| {
        let lines = v1[name].as_str().unwrap_or_default().lines();
        let lines: Vec<String> = lines.map(|line| format!("{mark}{line}\n")).collect();
        (lines.len(), lines.concat())
    };
    let ((old, removed), (new, added)) = (lines("oldText", "-"), lines("newText", "+"));
    let head = format!("diff --git {path} {path}\n--- {path}\n+++ {path}\n");
    json!({
        "type": "diff",
        "changes": [{"operation": "modify", "path": path, "fileType": "text"}],
        "patch": {
            "format": "git_patch",
            "text": format!("{head}@@ -1,{old} +1,{new} @@\n{removed}{added}"),
        },
    })
}

#[cfg(test)]
mod tests;
