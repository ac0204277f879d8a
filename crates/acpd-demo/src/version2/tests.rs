use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use agent_client_protocol_schema::v2;
use clap::Parser as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;
use crate::options::Options;
use crate::wire::Wire;

/// A client in memory. Every line from the agent must be official.
struct Client {
    agent: Arc<Agent>,
    lines: Receiver<Vec<u8>>,
    state: PathBuf,
    /// Methods of the requests, by id.
    requests: Vec<&'static str>,
    seen: Vec<Value>,
    session: Value,
}

struct Output(Sender<Vec<u8>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.send(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.state);
    }
}

impl Client {
    /// A client with a session.
    fn open(name: &str, flags: &str) -> Client {
        let state = std::env::temp_dir().join(format!("acpd-demo-{name}-{}", std::process::id()));
        let mut options =
            Options::parse_from(["agent"].into_iter().chain(flags.split_whitespace()));
        options.state.clone_from(&state);
        let (sender, lines) = mpsc::channel();
        let wire = Wire::new(Box::new(Output(sender)), None).expect("it has no record");
        let agent = Arc::new(Agent::new(options, wire));
        let (requests, seen) = (Vec::new(), Vec::new());
        let mut client = Client { agent, lines, state, requests, seen, session: Value::Null };
        let info = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": 2, "info": info, "capabilities": {}});
        assert_eq!(client.ok("initialize", hello)["protocolVersion"], 2);
        let opened = client.ok("session/new", json!({"cwd": "/"}));
        assert_eq!(opened["configOptions"][0]["category"], "mode");
        client.session = opened["sessionId"].clone();
        client
    }

    fn send(&self, message: Value) {
        self.agent.receive(message.to_string().as_bytes());
    }

    /// Returns the id. A session that is not named is the client's.
    fn request(&mut self, method: &'static str, mut params: Value) -> Value {
        if params["sessionId"].is_null() {
            params["sessionId"] = self.session.clone();
        }
        let id = json!(self.requests.len());
        self.requests.push(method);
        self.send(json!({"id": id, "method": method, "params": params}));
        id
    }

    fn prompt(&mut self, text: &str) -> Value {
        self.request("session/prompt", json!({"prompt": [{"type": "text", "text": text}]}))
    }

    fn line(&mut self) -> Value {
        let line = self.lines.recv_timeout(Duration::from_secs(20)).expect("a line is due");
        let line: Value = serde_json::from_slice(&line).expect("it is JSON");
        let (params, result) = (&line["params"], &line["result"]);
        match line["method"].as_str() {
            Some("session/update") => assert_official::<v2::UpdateSessionNotification>(params),
            Some("session/request_permission") => {
                assert_official::<v2::RequestPermissionRequest>(params);
            }
            Some(method) => assert_eq!(method, "$/cancel_request"),
            None if line["error"].is_object() => {}
            None => match self.requests[line["id"].as_u64().expect("an id") as usize] {
                "initialize" => assert_official::<v2::InitializeResponse>(result),
                "session/new" => assert_official::<v2::NewSessionResponse>(result),
                "session/resume" => assert_official::<v2::ResumeSessionResponse>(result),
                "session/prompt" => assert_official::<v2::PromptResponse>(result),
                _ => assert_eq!(*result, json!({})),
            },
        }
        self.seen.push(line.clone());
        line
    }

    /// Returns the labels of all lines up to this one.
    fn until(&mut self, last: &str) -> Vec<String> {
        let mut labels = Vec::new();
        while labels.last().is_none_or(|label| label != last) {
            labels.push(label(&self.line()));
        }
        labels
    }

    /// Returns the result or the code of the error.
    fn answer(&mut self, id: &Value) -> Result<Value, Value> {
        loop {
            let mut line = self.line();
            match &line["error"]["code"] {
                _ if line["id"] != *id || !line["method"].is_null() => {}
                Value::Null => return Ok(line["result"].take()),
                code => return Err(code.clone()),
            }
        }
    }

    fn ask(&mut self, method: &'static str, params: Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        self.answer(&id)
    }

    fn ok(&mut self, method: &'static str, params: Value) -> Value {
        self.ask(method, params).expect("it succeeds")
    }

    fn last(&self) -> &Value {
        self.seen.last().expect("a line came")
    }

    /// Kinds and ids of the messages since the nth line.
    fn messages(&self, since: usize) -> Vec<(&str, &str)> {
        let updates = self.seen[since..].iter().map(|line| &line["params"]["update"]);
        let mut all: Vec<_> = updates
            .filter_map(|update| {
                let kind = update["sessionUpdate"].as_str()?.trim_end_matches("_chunk");
                Some((kind, update["messageId"].as_str()?))
            })
            .collect();
        all.dedup();
        all
    }
}

/// A state with its reason, the kind of an update, a method, `answer`, or the code of an error.
fn label(line: &Value) -> String {
    let update = &line["params"]["update"];
    let names = [&update["state"], &update["sessionUpdate"], &line["method"]];
    let name = names.into_iter().find_map(Value::as_str).unwrap_or("answer");
    let more = [&update["stopReason"], &line["error"]["code"]];
    let more = more.into_iter().find(|more| !more.is_null());
    more.map_or(name.to_owned(), |more| format!("{name} {more}").replace('"', ""))
}

/// Makes sure that the official type loses no member.
#[track_caller]
fn assert_official<T: DeserializeOwned + Serialize>(written: &Value) {
    let typed: T = serde_json::from_value(written.clone()).expect("the official type takes it");
    let kept = serde_json::to_value(typed).expect("it serializes");
    assert_eq!(pruned(kept), pruned(written.clone()));
}

fn pruned(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            members.values_mut().for_each(|member| *member = pruned(member.take()));
            members.retain(|_, member| !member.is_null() && *member != json!([]));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = pruned(item.take())),
        _ => {}
    }
    value
}

#[test]
fn replay_repeats_ids_of_live_turns() {
    let mut client = Client::open("claude", "--v2 --replay-complete");
    let since = client.seen.len();
    client.prompt("say #one [think hm] [plan] [tool Edit] [cost 1] [ask]");
    let labels = client.until("session/request_permission");
    assert_eq!(labels[..4], ["user_message", "answer", "running", "agent_thought_chunk"]);
    assert_eq!(labels[labels.len() - 2], "requires_action");
    let outcome = json!({"outcome": "selected", "optionId": "yes"});
    client.send(json!({"id": client.last()["id"], "result": {"outcome": outcome}}));
    assert_eq!(client.until("tool_call_update"), ["running", "tool_call_update"]);
    client.until("idle end_turn");
    client.prompt("[error -32603 broken]");
    client.until("idle error");

    let at = client.seen.len();
    client.ok("session/resume", json!({"cwd": "/", "replayFrom": {"type": "start"}}));
    let (live, replayed) = (client.messages(since), client.messages(at));
    assert_eq!(live[1].1, live[2].1, "thoughts share the id of the answer");
    assert_eq!(replayed, [live[0], live[2], live[3]]);
    let labels: Vec<String> = client.seen[at..].iter().map(label).collect();
    assert_eq!(labels[..2], ["user_message", "user_message_chunk"]);
    assert_eq!(labels[labels.len() - 3..], ["replay_complete", "idle", "answer"]);
}

#[test]
fn held_prompts_run_in_order_or_are_cancelled() {
    let mut client = Client::open("codex", "--v2=codex");
    let [_, held, _] = ["[ask]", "a", "b"].map(|text| client.prompt(text));
    let labels = client.until("session/request_permission");
    assert_eq!(labels[..3], ["running", "user_message_chunk", "answer"]);
    client.send(json!({"method": "$/cancel_request", "params": {"requestId": held}}));
    assert_eq!(client.answer(&held), Err(json!(-32800)));
    client.send(json!({"method": "session/cancel", "params": {"sessionId": client.session}}));
    let labels = client.until("idle cancelled");
    assert_eq!(labels[..3], ["answer -32800", "$/cancel_request", "running"]);

    let [first, second] = ["[slow 2]", "d"].map(|text| client.prompt(text));
    client.answer(&first).expect("it is inserted");
    assert!(!client.until("idle end_turn").contains(&"answer".to_owned()));
    client.answer(&second).expect("it is inserted after the first");
    client.until("idle end_turn");
}

#[test]
fn background_work_outlives_its_turn() {
    let mut client = Client::open("background", "--v2");
    client.prompt("[foreground 1] [background 2]");
    let labels = client.until("idle end_turn");
    assert_eq!(labels[3..5], ["terminal_update", "tool_call_update"]);
    let output = "terminal_output_chunk";
    assert_eq!(client.until("idle"), [output, output, "terminal_update", "idle"]);
    assert_eq!(client.last()["params"]["update"]["background"], json!([]));

    client.prompt("[background 1000]");
    client.until("idle end_turn");
    let terminal = &client.last()["params"]["update"]["background"][0]["terminalId"];
    let cancel = json!({"terminalId": terminal});
    client.ok("terminal/cancel", cancel.clone());
    assert_eq!(client.ask("terminal/cancel", cancel), Err(json!(-32602)));

    client.prompt("[background 1000] [hang-cancel]");
    client.until("agent_message_chunk");
    client.request("session/close", json!({}));
    assert_eq!(client.until("idle cancelled")[0], "terminal_update");
    assert_eq!(client.until("answer"), ["answer"]);
    client.ok("session/close", json!({}));
}
