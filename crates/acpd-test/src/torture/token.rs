//! A client on the socket that resumes by the letter of `docs/protocol.md`, "Resuming a
//! connection". Written independently of `acpd-client`: a mistake there is not repeated here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write as _;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::view::{Heard, View};
use crate::peer::request;

/// Replaces an answered request whose line is not safe, so that it is not sent again.
const NO_OP: &str = r#"{"jsonrpc":"2.0","method":"_acpd/client/answered","params":{"ids":[]}}"#;

#[derive(Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Away,
    Greeting,
    Up,
}

#[derive(Debug, Default)]
pub(super) struct Token {
    name: String,
    agent: &'static str,
    stream: Option<UnixStream>,
    phase: Phase,
    generation: Option<String>,
    last_id: u64,
    hello: u64,
    /// Number of safe lines.
    safe: u64,
    lines: VecDeque<String>,
    /// Open requests: the number of the line, and the line.
    open: BTreeMap<u64, (u64, String)>,
    /// Questions, and the number of the line that answered them.
    asked: BTreeMap<String, Option<u64>>,
    answered: BTreeSet<u64>,
    /// Answers without a receiver yet.
    pub(super) answers: Vec<(u64, Value)>,
    pub(super) views: BTreeMap<String, View>,
}

impl Token {
    pub(super) fn new(name: String, agent: &'static str) -> Token {
        Token { name, agent, ..Token::default() }
    }

    pub(super) fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }

    pub(super) fn cut(&self) {
        if let Some(stream) = &self.stream {
            // The connection may be gone already.
            stream.shutdown(Shutdown::Both).ok();
        }
    }

    /// Takes a connection: introduces the client with its state.
    pub(super) fn up(&mut self, stream: UnixStream) {
        self.stream = Some(stream);
        self.phase = Phase::Greeting;
        self.last_id += 1;
        self.hello = self.last_id;
        let resume = self.generation.as_ref().map(|generation| {
            let sessions: BTreeMap<_, _> =
                self.views.iter().map(|(session, view)| (session, view.cursor())).collect();
            let open: Vec<_> = self.open.keys().collect();
            let asked: Vec<Value> = self.asked.keys().map(|id| parse(id)).collect();
            json!({"generation": generation, "sessions": sessions, "open": open, "asked": asked})
        });
        let meta = json!({"agent": self.agent, "notices": true,
            "client": {"token": self.name, "resume": resume}});
        let params =
            json!({"protocolVersion": 1, "clientCapabilities": {}, "_meta": {"_acpd": meta}});
        self.write(&request(self.hello, "initialize", &params).to_string());
    }

    pub(super) fn down(&mut self) {
        self.stream = None;
        self.phase = Phase::Away;
    }

    /// Sends a request, now or when there is a connection; returns its id.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        let line = request(id, method, params).to_string();
        let number = self.send(line.clone());
        self.open.insert(id, (number, line));
        id
    }

    pub(super) fn line(&mut self, message: Value) -> Heard {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        match (message.get("id").cloned(), method.as_str()) {
            (Some(id), "") => self.answer(&id, message),
            (Some(id), method) => self.question(&id, method),
            (None, "_acpd/client/received") => {
                self.committed(message["params"]["lines"].as_u64().unwrap_or_default())
            }
            (None, "$/cancel_request") => {
                self.asked.remove(&message["params"]["requestId"].to_string());
                Ok(())
            }
            (None, method) => {
                let session =
                    message["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
                let known = self.views.contains_key(&session);
                let heard = self.views.entry(session.clone()).or_default().hear(message)?;
                if !heard && !known {
                    self.views.remove(&session);
                }
                if !heard && method == "session/update" {
                    return Err("an update without a number".to_owned());
                }
                Ok(())
            }
        }
    }

    fn answer(&mut self, id: &Value, message: Value) -> Heard {
        let id = id.as_u64().ok_or("an answer to no request of ours")?;
        if id == self.hello && self.phase == Phase::Greeting {
            return self.welcome(&message);
        }
        let Some((number, _)) = self.open.remove(&id) else {
            let again = if self.answered.contains(&id) { "answered twice" } else { "not open" };
            return Err(format!("request {id} is {again}: {message}"));
        };
        if number > self.safe {
            let at = (number - self.safe - 1) as usize;
            NO_OP.clone_into(&mut self.lines[at]);
        }
        self.answered.insert(id);
        self.answers.push((id, message));
        let ids = json!([id]);
        let line =
            json!({"jsonrpc": "2.0", "method": "_acpd/client/answered", "params": {"ids": ids}});
        self.send(line.to_string());
        Ok(())
    }

    /// Takes the answer to `initialize`: sends again what acpd lacks.
    fn welcome(&mut self, message: &Value) -> Heard {
        let ours = &message["result"]["agentCapabilities"]["_meta"]["_acpd"];
        let (generation, received) = (ours["generation"].as_str(), ours["received"].as_u64());
        let (Some(generation), Some(received)) = (generation, received) else {
            return Err(format!("it cannot be come back to: {message}"));
        };
        if self.generation.as_deref().is_some_and(|old| old != generation) {
            return Err(format!("the generation is {generation}, not {:?}", self.generation));
        }
        let known = self.generation.replace(generation.to_owned()).is_some();
        if known && received < self.safe {
            return Err(format!("{} lines were safe, and {received} came back", self.safe));
        }
        self.committed(received)?;
        self.phase = Phase::Up;
        for line in self.lines.clone() {
            self.write(&line);
        }
        let again: Vec<u64> = ours["again"]
            .as_array()
            .map_or_else(Vec::new, |ids| ids.iter().filter_map(Value::as_u64).collect());
        for id in again {
            let Some((number, line)) = self.open.get(&id).cloned() else {
                return Err(format!("request {id} is wanted again and was not open"));
            };
            if number <= self.safe {
                let number = self.send(line.clone());
                self.open.insert(id, (number, line));
            }
        }
        Ok(())
    }

    fn committed(&mut self, lines: u64) -> Heard {
        let sent = self.safe + self.lines.len() as u64;
        if lines > sent {
            return Err(format!("{lines} lines are safe, and {sent} were sent"));
        }
        while self.safe < lines {
            self.lines.pop_front();
            self.safe += 1;
        }
        let safe = self.safe;
        self.asked.retain(|_, answered| answered.is_none_or(|number| number > safe));
        Ok(())
    }

    fn question(&mut self, id: &Value, method: &str) -> Heard {
        if method != "session/request_permission" {
            return Err(format!("an unknown request {method}"));
        }
        if self.asked.contains_key(&id.to_string()) {
            return Err(format!("question {id} was asked twice"));
        }
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
        let line = json!({"jsonrpc": "2.0", "id": id, "result": outcome});
        let number = self.send(line.to_string());
        self.asked.insert(id.to_string(), Some(number));
        Ok(())
    }

    /// Counts a line, and sends it over a connection if there is one.
    fn send(&mut self, line: String) -> u64 {
        if self.phase == Phase::Up {
            self.write(&line);
        }
        self.lines.push_back(line);
        self.safe + self.lines.len() as u64
    }

    fn write(&mut self, line: &str) {
        if let Some(stream) = &mut self.stream {
            // The daemon may just have died; its end comes as the next event.
            stream.write_all(format!("{line}\n").as_bytes()).ok();
        }
    }
}

fn parse(id: &str) -> Value {
    serde_json::from_str(id).unwrap_or_default()
}
