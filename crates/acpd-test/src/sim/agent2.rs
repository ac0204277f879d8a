//! Version 2 at the edge of a model agent: what its process reads and writes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::bad::text_of;
use super::truth::Truth;
use crate::rng::Rng;

/// The conversation of one process.
#[derive(Debug, Default)]
pub(super) struct Edge {
    /// The process speaks version 2 if it is asked to.
    offers: bool,
    speaks: bool,
    /// Methods of the model, by the id of the open request; with the session.
    asked: BTreeMap<String, (String, String)>,
    /// Requests whose prompts are in the history, and the text of each.
    inserted: BTreeMap<String, String>,
    /// Mode and model of each session.
    values: BTreeMap<String, (String, String)>,
    /// Sessions with an open question.
    waits: BTreeMap<String, String>,
}

impl Edge {
    pub(super) fn new(offers: bool) -> Edge {
        Edge { offers, ..Edge::default() }
    }

    /// Returns the line as the model reads it.
    pub(super) fn read(&mut self, line: &Value) -> Result<Value, String> {
        let mut line = line.clone();
        let method = line["method"].as_str().unwrap_or_default().to_owned();
        if method == "initialize" && !line["params"]["info"].is_null() {
            self.speaks = self.offers && line["params"]["protocolVersion"] == 2;
        }
        if !self.speaks {
            return Ok(line);
        }
        let params = &mut line["params"];
        let is_typed = |server: &Value| server["type"].is_string();
        let servers = params["mcpServers"].as_array().is_none_or(|all| all.iter().all(is_typed));
        let changed = match method.as_str() {
            "session/load" | "session/set_mode" | "authenticate" | "logout" => {
                return Err(format!("version 2 has no `{method}`"));
            }
            _ if !servers => return Err(format!("a server without a type: {line}")),
            "auth/login" => "authenticate",
            "session/resume" if !params["replayFrom"].is_null() => "session/load",
            "session/set_config_option" => {
                if params["type"] != "id" {
                    return Err(format!("an option without a type: {line}"));
                }
                params["type"].take();
                if params["configId"] == "how" {
                    params["modeId"] = params["value"].clone();
                    "session/set_mode"
                } else {
                    "session/set_config_option"
                }
            }
            same => same,
        };
        line["method"] = changed.into();
        if method.is_empty() {
            line.as_object_mut().expect("an object").remove("method");
            let answered = line["id"].to_string();
            self.waits.retain(|_, id| *id != answered);
        } else if !line["id"].is_null() {
            let session = line["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
            if let Some(value) = line["params"]["value"].as_str() {
                let (mode, model) = self.values_of(&session);
                value.clone_into(if changed == "session/set_mode" { mode } else { model });
            }
            self.asked.insert(line["id"].to_string(), (changed.to_owned(), session));
        }
        Ok(line)
    }

    /// The model has taken a prompt: it is in the history.
    pub(super) fn insert(
        &mut self,
        line: &Value,
        cx: (&mut Rng, &mut Truth),
        said: &mut Vec<Value>,
    ) {
        if !self.speaks || line["method"] != "session/prompt" {
            return;
        }
        let (rng, truth) = cx;
        truth.hit("prompt inserted by its agent");
        let (id, session) = (&line["id"], &line["params"]["sessionId"]);
        let text = text_of(&line["params"]).0;
        let message = format!("u-{text}");
        let echo = json!({"sessionUpdate":"user_message","messageId":message,
            "content":line["params"]["prompt"]});
        let mut lines = vec![
            update(session, echo),
            json!({"jsonrpc":"2.0","id":id,"result":{"messageId":message}}),
            update(session, json!({"sessionUpdate":"state_update","state":"running"})),
        ];
        if rng.permille(500) {
            lines.rotate_right(1);
        }
        if rng.permille(100) {
            truth.hit("end of other work before a prompt");
            lines.insert(0, update(session, idle("end_turn")));
        }
        self.inserted.insert(id.to_string(), text);
        said.splice(0..0, lines);
    }

    /// Notes a prompt that the model has refused: it is in no history, and may come again.
    pub(super) fn note_refused(&self, line: &Value, said: &[Value], truth: &mut Truth) {
        let is_refusal = |said: &Value| said["id"] == line["id"] && !said["error"].is_null();
        if self.speaks && line["method"] == "session/prompt" && said.iter().any(is_refusal) {
            let text = text_of(&line["params"]).0;
            truth.repeated.remove(&text);
            truth.refused.insert(text);
        }
    }

    /// Returns the model's lines as the process writes them.
    pub(super) fn write(&mut self, said: Vec<Value>) -> Vec<Value> {
        if !self.speaks {
            return said;
        }
        said.into_iter().flat_map(|line| self.written(line)).collect()
    }

    fn written(&mut self, mut line: Value) -> Vec<Value> {
        let session = line["params"]["sessionId"].clone();
        match line["method"].as_str() {
            Some("session/update") => {
                let is_shown = self.updated(&session, &mut line["params"]["update"]);
                is_shown.then_some(line).into_iter().collect()
            }
            Some("session/request_permission") => {
                let call = line["params"]["toolCall"].take();
                line["params"].as_object_mut().expect("an object").remove("toolCall");
                line["params"]["title"] = call["title"].clone();
                line["params"]["subject"] = json!({"type":"tool_call","toolCall":call});
                let waits = json!({"sessionUpdate":"state_update","state":"requires_action"});
                let name = session.as_str().unwrap_or_default().to_owned();
                self.waits.insert(name, line["id"].to_string());
                vec![update(&session, waits), line]
            }
            _ => self.answered(line),
        }
    }

    /// Returns whether version 2 has the update.
    fn updated(&mut self, session: &Value, update: &mut Value) -> bool {
        let name = session.as_str().unwrap_or_default().to_owned();
        let text = update["content"]["text"].as_str().unwrap_or_default();
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "user_message_chunk" => {
                if self.inserted.values().any(|said| said == text) {
                    return false;
                }
                update["messageId"] = format!("u-{text}").into();
            }
            "agent_message_chunk" => {
                let message = text.split('#').next().unwrap_or_default();
                update["messageId"] = format!("a-{message}").into();
            }
            "tool_call" => update["sessionUpdate"] = "tool_call_update".into(),
            "current_mode_update" => {
                let mode = update["currentModeId"].take();
                update.as_object_mut().expect("an object").remove("currentModeId");
                mode.as_str().unwrap_or_default().clone_into(self.values_of(&name).0);
                update["sessionUpdate"] = "config_option_update".into();
                update["configOptions"] = self.options(&name);
            }
            _ => {}
        }
        true
    }

    fn answered(&mut self, mut line: Value) -> Vec<Value> {
        let id = line["id"].to_string();
        let Some((method, session)) = self.asked.remove(&id) else { return vec![line] };
        let result = &mut line["result"];
        if result.is_null() && !self.inserted.contains_key(&id) {
            return vec![line];
        }
        match method.as_str() {
            "session/prompt" => {
                let mut state = match result["stopReason"].as_str() {
                    Some(stop) => idle(stop),
                    None => idle("end_turn"),
                };
                if self.inserted.remove(&id).is_none() {
                    // A lie: it is answered, and nothing comes of it.
                    let answer =
                        json!({"jsonrpc":"2.0","id":line["id"],"result":{"messageId":"l"}});
                    return vec![answer, update(&session.into(), state)];
                }
                if !line["error"].is_null() {
                    state["stopReason"] = "error".into();
                    state["error"] = line["error"].clone();
                }
                let withdrawn = self.waits.remove(&session);
                let withdrawn = withdrawn.map(|id| {
                    let id: Value = serde_json::from_str(&id).expect("an id");
                    json!({"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":id}})
                });
                withdrawn.into_iter().chain([update(&session.into(), state)]).collect()
            }
            "initialize" if !result["agentCapabilities"].is_null() => {
                let capabilities = json!({"session":{"fork":{}}});
                let more = result["_meta"].take();
                *result = json!({"protocolVersion":2,"info":result["agentInfo"],
                    "capabilities":capabilities,"authMethods":[],"_meta":more});
                vec![line]
            }
            _ if method.starts_with("session/set_") => {
                result["configOptions"] = self.options(&session);
                vec![line]
            }
            _ if !result["modes"].is_null() => {
                result.as_object_mut().expect("an object").remove("modes");
                let made = result["sessionId"].as_str().map_or(session, str::to_owned);
                self.values.remove(&made);
                line["result"]["configOptions"] = self.options(&made);
                vec![line]
            }
            _ => vec![line],
        }
    }

    fn values_of(&mut self, session: &str) -> (&mut String, &mut String) {
        let first = || ("ask".to_owned(), "a".to_owned());
        let (mode, model) = self.values.entry(session.to_owned()).or_insert_with(first);
        (mode, model)
    }

    fn options(&mut self, session: &str) -> Value {
        let (mode, model) = self.values_of(session);
        let choices = |values: [&str; 2]| values.map(|value| json!({"value":value,"name":value}));
        json!([
            {"configId":"how","name":"Mode","category":"mode","type":"select","currentValue":mode,
                "options":choices(["ask", "code"])},
            {"configId":"model","name":"Model","type":"select","currentValue":model,
                "options":choices(["a", "b"])},
        ])
    }
}

fn update(session: &Value, update: Value) -> Value {
    json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":session,"update":update}})
}

fn idle(stop: &str) -> Value {
    json!({"sessionUpdate":"state_update","state":"idle","stopReason":stop})
}
