//! Lines of a peer that is broken or hostile: messages of every method, taken apart and put together
//! wrongly. Also used by the tests of the daemon.

use std::collections::BTreeMap;

use acp_wire::{Message, Outcome};
use acpd_api::method as own;
use acpd_api::under_agent::ACP;
use acpd_test::fuzz::Dice;
use bytes::Bytes;
use serde_json::{Value, json};

/// Requests that end the daemon, or that the hub alone does not answer.
const NOT_HERE: [&str; 3] = [own::DAEMON_STOP, own::DAEMON_RESTART, own::SESSION_SEARCH];

/// A method of acpd's own that a client may send.
fn own_method(dice: &mut Dice<'_>) -> &'static str {
    let (name, ..) = *dice.pick(own::METHODS);
    if NOT_HERE.contains(&name) { "_acpd/no/such" } else { name }
}

/// A message of a client: `id` is its own, `named` are sessions and ids that it has heard of.
pub(crate) fn of_client(id: &Value, agent: &str, named: &[Value], dice: &mut Dice<'_>) -> Value {
    let session = dice.pick(named).clone();
    let reference = json!({"session":session,"exactName":false});
    match dice.below(8) {
        0 => {
            let result = json!({"outcome":{"outcome":"selected","optionId":"y"}});
            json!({"jsonrpc":"2.0","id":dice.pick(named),"result":result})
        }
        1..=3 => {
            let answer = json!({"kind":"allow","always":true});
            let call = json!({"toolCallId":"t","kind":"execute","rawInput":{"command":"ls"}});
            let params = json!({"agent":agent,"session":session,"ref":reference,"cwd":"/w",
                "after":0,"limit":3,"role":"observer","name":null,"id":session,"answer":answer,
                "toolCall":call,"ids":[1],"title":"T"});
            json!({"jsonrpc":"2.0","id":id,"method":own_method(dice),"params":params})
        }
        _ => {
            let (method, ..) = *dice.pick(ACP);
            let own = json!({"agent":agent,"notices":true,"seq":true,"maxLine":9_000,"reuse":true,
                "client":{"token":"0123456789abcdef","resume":null}});
            let mut params = json!({"sessionId":session,"cwd":"/w","mcpServers":[],"modeId":"m",
                "prompt":[{"type":"text","text":"go"}],"configId":"c","value":"v","requestId":id,
                "protocolVersion":1,"clientCapabilities":{"plan":{},"session":{"notices":{}}}});
            if dice.below(4) == 3 {
                params["_meta"] = json!({"_acpd":own});
            }
            let mut line = json!({"jsonrpc":"2.0","method":method,"params":params});
            if dice.below(8) < 7 {
                line["id"] = id.clone();
            }
            line
        }
    }
}

/// JSON as it is written: members keep their order, and may come twice.
enum Json {
    Text(String),
    /// Members of an object, or with empty names the items of a list.
    Parts(bool, Vec<(String, Json)>),
}

impl Json {
    fn of(value: &Value) -> Json {
        match value {
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| {
                    let name = Value::from(name.as_str()).to_string();
                    (name, Json::of(value))
                });
                Json::Parts(true, members.collect())
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| (String::new(), Json::of(item)));
                Json::Parts(false, items.collect())
            }
            other => Json::Text(other.to_string()),
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Json::Text(text) => out.push_str(text),
            Json::Parts(is_object, parts) => {
                out.push(if *is_object { '{' } else { '[' });
                for (at, (name, part)) in parts.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(name);
                    out.push_str(if *is_object { ":" } else { "" });
                    part.write(out);
                }
                out.push(if *is_object { '}' } else { ']' });
            }
        }
    }

    /// One of its parts, and of theirs: the list that it is in and its place there.
    fn part(&mut self, dice: &mut Dice<'_>) -> Option<(&mut Vec<(String, Json)>, usize)> {
        let Json::Parts(_, parts) = self else { return None };
        if parts.is_empty() {
            return None;
        }
        let at = dice.below(parts.len());
        let deeper = matches!(&parts[at].1, Json::Parts(_, inner) if !inner.is_empty());
        if deeper && dice.below(4) > 0 {
            return parts[at].1.part(dice);
        }
        Some((parts, at))
    }
}

/// A value that does not belong there.
fn odd(named: &[Value], dice: &mut Dice<'_>) -> String {
    const ODD: &str = r#"null true 0 -1 1.5 1e400 4294967296 18446744073709551615
        123456789012345678901234567890 "" "\ud800" "\u0000" "\u0073" "../../etc/passwd"
        [] {} [{}] {"sessionId":"s"} "controller" "-" {"_acpd":7}
        {"_acpd":{"after":99999999999,"name":"n"}}"#;
    match dice.below(26) {
        22 => format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)),
        23 => format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200)),
        24 => format!("\"{}\"", "x".repeat(70_000)),
        25 => dice.pick(named).to_string(),
        at => ODD.split_whitespace().nth(at).expect("one of 22").to_owned(),
    }
}

/// The line, with up to three things wrong in it. It holds no line feed.
pub(crate) fn mangle(line: &Value, named: &[Value], dice: &mut Dice<'_>) -> Vec<u8> {
    let mut json = Json::of(line);
    let mut after: Vec<(usize, usize, u8)> = Vec::new();
    for _ in 0..dice.below(4) {
        let kind = dice.below(8);
        if kind >= 6 {
            let byte = *dice.pick(b"\0\r\xff\xc3\"\\{}[],:0 \x1b");
            after.push((kind, dice.below(1 << 16), byte));
            continue;
        }
        let value = odd(named, dice);
        let Some((parts, at)) = json.part(dice) else { continue };
        match kind {
            0 => drop(parts.remove(at)),
            1 => {
                let name = parts[at].0.clone();
                parts.insert(at, (name, Json::Text(value)));
            }
            2 => {
                let name = parts[at].0.clone();
                parts.push((name, Json::Text(value)));
            }
            _ => parts[at].1 = Json::Text(value),
        }
    }
    let mut text = String::new();
    json.write(&mut text);
    let mut bytes = text.into_bytes();
    for (kind, at, byte) in after {
        let at = at % bytes.len().max(1);
        match bytes.get_mut(at) {
            Some(place) if kind == 6 => *place = byte,
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// Requests of one peer and their answers, by the JSON text of the ids.
#[derive(Debug, Default)]
pub(crate) struct Account {
    asked: BTreeMap<String, usize>,
    answered: BTreeMap<String, usize>,
    /// The peer may get an answer twice or not at all: it named itself, and may have resumed or
    /// left.
    pub(crate) named: bool,
}

impl Account {
    /// The peer says a line.
    pub(crate) fn says(&mut self, line: &[u8]) {
        let id = acp_wire::receive(&Bytes::copy_from_slice(line), None, |said, _, _| match said {
            Ok(Message::Request { id, method, params }) => {
                let named = params.is_some_and(|params| params.get().contains("\"token\""));
                self.named |= method == "initialize" && named;
                Some(id.raw().to_owned())
            }
            Ok(Message::Notification { .. } | Message::Response { .. }) => None,
            Err(_) => Some("null".to_owned()),
        });
        let Some(id) = id else { return };
        *self.asked.entry(id).or_default() += 1;
    }

    /// The peer gets a line.
    pub(crate) fn gets(&mut self, line: &str) {
        let Message::Response { id, outcome } = acp_wire::parse(line.as_bytes()).expect(line)
        else {
            return;
        };
        if let Outcome::Error(error) = outcome {
            let error: Value = serde_json::from_str(error.get()).expect(line);
            assert!(error["code"].is_i64() && error["message"].is_string(), "{line}");
        }
        let answered = self.answered.entry(id.raw().to_owned()).or_default();
        *answered += 1;
        let asked = self.asked.get(id.raw()).copied().unwrap_or_default();
        assert!(*answered <= asked || (self.named && asked > 0), "answered too often: {line}");
    }

    /// Requests that have no answer yet, as far as that can be told.
    pub(crate) fn open(&self) -> Vec<&str> {
        let open = self.asked.iter().filter(|(id, n)| self.answered.get(*id) != Some(n));
        open.filter(|_| !self.named).map(|(id, _)| id.as_str()).collect()
    }
}
