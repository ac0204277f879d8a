//! Checks each line of a client against the scopes of its token before the daemon gets it.
//!
//! ```text
//!  line ──▶ one message? ──▶ method in scope? ──▶ members in scope? ──▶ the daemon
//!               │ no               │ no                │ no
//!               ▼                  ▼                   ▼
//!             error      error, to a request; a notification is dropped
//! ```
//!
//! The result of a client that may not answer becomes an error, so that the daemon does not wait
//! for it.
//!
//! A line is read as the daemon reads it: of duplicate members the last one counts, and the others
//! are removed before any check. So the daemon finds nothing that was not checked.

use acp_wire::{
    ErrorObject, Id, Message, Outcome, build, code, locate, receive, remove_member, set_member,
};
use acpd_api::{ErrorData, NAMESPACE, Reason, Scope, method};
use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::scope::Scopes;

const CHANGES: [&str; 3] = [method::SESSION_QUEUE_EDIT, "_session/steering", "session/inject"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// To the daemon.
    Pass(Bytes),
    /// To the client.
    Answer(Bytes),
    Drop,
}

#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) scopes: Scopes,
    /// The agent of a client that cannot name it.
    pub(crate) agent: Option<String>,
    /// The place of its user.
    pub(crate) place: String,
}

impl Client {
    pub(crate) fn check(&self, line: &Bytes) -> Verdict {
        receive(line, None, |message, line, _| match message {
            // As the daemon answers such a line.
            Err(why) => {
                let error = ErrorObject::new(why.code(), why.to_string());
                Verdict::Answer(build::error(&Id::null(), &error))
            }
            // An error decides nothing: the daemon turns to another client, and waits for none.
            Ok(Message::Response { id, outcome: Outcome::Result(_) })
                if !self.scopes.has(Scope::Answer) =>
            {
                let why = "this client may not answer";
                Verdict::Pass(build::error(&id, &ErrorObject::new(code::INVALID_REQUEST, why)))
            }
            Ok(Message::Response { .. }) => Verdict::Pass(line.clone()),
            Ok(Message::Notification { method, .. }) => match self.refuses(&method, line) {
                Some(_) => Verdict::Drop,
                None => Verdict::Pass(line.clone()),
            },
            Ok(Message::Request { id, method, .. }) => match self.refuses(&method, line) {
                Some(why) => Verdict::Answer(refused(&id, &why)),
                None if method == "initialize" => Verdict::Pass(self.introduce(line)),
                // The daemon knows which prompts have a prepared answer.
                None if CHANGES.contains(&&*method) && !self.scopes.has(Scope::Answer) => {
                    let path = ["params", "_meta", NAMESPACE, "answers"];
                    Verdict::Pass(set_member(line, &path, b"false"))
                }
                None => Verdict::Pass(line.clone()),
            },
        })
    }

    /// Returns why the client may not send this.
    fn refuses(&self, method: &str, line: &[u8]) -> Option<String> {
        let Some(scope) = Scope::of_method(method) else {
            return Some(format!("`{method}` is not for clients from elsewhere"));
        };
        let member = |path: &[&str]| {
            locate(line, path).map(|at| &line[at]).filter(|value| *value != b"null")
        };
        let has_any = |name| {
            let list = member(&["params", name]).map(serde_json::from_slice::<Vec<IgnoredAny>>);
            // A value that is no list may be one for another reader.
            list.is_some_and(|list| list.map_or(true, |list| !list.is_empty()))
        };
        let mut needed = vec![(scope, method)];
        // Commands that the agent runs without asking.
        needed.extend(has_any("mcpServers").then_some((Scope::Answer, "mcpServers")));
        // Folders in which files are read and written for the agent.
        needed.extend(
            has_any("additionalDirectories").then_some((Scope::Prompt, "additionalDirectories")),
        );
        // Answers to questions that are not asked yet.
        let is_beforehand = member(&["params", "_meta", NAMESPACE, "permissions"]).is_some();
        needed.extend(is_beforehand.then_some((Scope::Answer, "permissions")));
        let (scope, what) = needed.into_iter().find(|(scope, _)| !self.scopes.has(*scope))?;
        let word = scope.word();
        Some(format!("`{what}` needs the scope `{word}`, which this token does not have"))
    }

    /// Adds to `initialize` facts that the client does not give, and removes capabilities that it
    /// cannot have.
    fn introduce(&self, line: &Bytes) -> Bytes {
        let mut line = line.clone();
        let mut add = |name: &str, value: &str| {
            let path = ["params", "_meta", NAMESPACE, name];
            if locate(&line, &path).is_none() {
                line = set_member(&line, &path, Value::from(value).to_string().as_bytes());
            }
        };
        add("place", &self.place);
        if let Some(agent) = &self.agent {
            add("agent", agent);
        }
        if !self.scopes.has(Scope::Answer) {
            // The answers of this client would be dropped, and an agent would wait for them.
            for name in ["fs", "terminal", "elicitation"] {
                line = remove_member(&line, &["params", "clientCapabilities", name]);
                line = remove_member(&line, &["params", "capabilities", name]);
            }
        }
        line
    }
}

fn refused(id: &Id, why: &str) -> Bytes {
    let hint = "do it at the terminal, or pair again with more scopes: `acpctl web pair --scope …`";
    let data = ErrorData::new(Reason::OutOfScope).with_hint(hint);
    let error = ErrorObject::new(code::INVALID_PARAMS, why);
    build::error(id, &error.with_data(&json!({NAMESPACE: data})))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(scopes: &str) -> Client {
        let scopes: Scopes = serde_json::from_str(scopes).unwrap();
        Client { scopes, agent: Some("demo".to_owned()), place: "phone".to_owned() }
    }

    fn watcher() -> Client {
        client("[]")
    }

    fn check(client: &Client, line: &str) -> Verdict {
        client.check(&Bytes::copy_from_slice(line.as_bytes()))
    }

    fn passes(client: &Client, line: &str) -> bool {
        match check(client, line) {
            Verdict::Pass(passed) => {
                assert_eq!(passed, line.as_bytes());
                true
            }
            _ => false,
        }
    }

    fn request(method: &str, params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
    }

    #[test]
    fn what_decides_beforehand_or_runs_commands_needs_the_scope_for_answers() {
        let (watch, prompt, all) =
            (watcher(), client(r#"["prompt"]"#), client(r#"["prompt","answer"]"#));
        let yes = request("session/prompt", r#"{"_meta":{"_acpd":{"permissions":"allow"}}}"#);
        let hidden = yes.replace("_acpd", r"\u005facpd");
        for line in [&yes, &hidden] {
            assert!(!passes(&prompt, line) && passes(&all, line), "{line}");
        }
        for method in ["session/set_mode", "session/set_config_option", "_acpd/interaction/answer"]
        {
            let line = request(method, "{}");
            assert!(!passes(&prompt, &line) && passes(&all, &line), "{method}");
        }
        for method in ["session/load", "session/resume"] {
            let server = request(method, r#"{"mcpServers":[{"name":"x","command":"sh"}]}"#);
            assert!(!passes(&watch, &server) && !passes(&prompt, &server) && passes(&all, &server));
            assert!(!passes(&watch, &request(method, r#"{"additionalDirectories":["/"]}"#)));
            assert!(passes(&watch, &request(method, r#"{"mcpServers":[ ]}"#)));
            assert!(!passes(&watch, &request(method, r#"{"mcpServers":{"x":1}}"#)));
        }
        // Of duplicate members, the checked one is passed on.
        let twice = request("session/load", r#"{"mcpServers":[],"mcpServers":[1]}"#);
        assert!(!passes(&watch, &twice));
        let Verdict::Pass(line) =
            check(&watch, &request("session/load", r#"{"mcpServers":[1],"mcpServers":[]}"#))
        else {
            panic!()
        };
        assert_eq!(line, request("session/load", r#"{"mcpServers":[]}"#).as_bytes());
    }

    #[test]
    fn edit_without_answer_scope_says_so_to_the_daemon() {
        let (prompt, all) = (client(r#"["prompt"]"#), client(r#"["prompt","answer"]"#));
        for method in CHANGES {
            let line = request(method, r#"{"prompt":[],"_meta":{"_acpd":{"answers":true}}}"#);
            assert!(passes(&all, &line), "{method}");
            let marked = line.replace("true", "false");
            assert_eq!(check(&prompt, &line), Verdict::Pass(Bytes::from(marked)), "{method}");
        }
    }

    #[test]
    fn answers_need_their_scope_and_what_is_no_message_is_told() {
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        let instead = br#"{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"this client may not answer"}}"#;
        let told = Verdict::Pass(Bytes::from_static(instead));
        assert_eq!(check(&client(r#"["prompt"]"#), answer), told);
        assert!(passes(
            &watcher(),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}"#
        ));
        assert!(passes(&client(r#"["answer"]"#), answer));
        assert_eq!(check(&watcher(), r#"{"method":"session/cancel","params":{}}"#), Verdict::Drop);
        for line in ["", "[]", "{", r#"{"id":1,"method":"session/list","method":"session/prompt"}"#]
        {
            assert!(matches!(check(&watcher(), line), Verdict::Answer(_)), "{line}");
        }
    }

    #[test]
    fn a_client_is_introduced_with_what_it_does_not_say() {
        let introduced = |client: &Client, params: &str| -> Value {
            match check(client, &request("initialize", params)) {
                Verdict::Pass(line) => {
                    serde_json::from_slice::<Value>(&line).unwrap()["params"].take()
                }
                other => panic!("{other:?}"),
            }
        };
        let own = introduced(&watcher(), r#"{"protocolVersion":1}"#);
        assert_eq!(own["_meta"]["_acpd"], json!({"place": "phone", "agent": "demo"}));
        let said = r#"{"_meta":{"_acpd":{"place":"desk","agent":"other","seq":true}},"clientCapabilities":{"fs":{},"plan":{}},"capabilities":{"elicitation":{"form":{}},"auth":{}}}"#;
        let told = introduced(&client(r#"["answer"]"#), said);
        assert_eq!(told, serde_json::from_str::<Value>(said).unwrap());
        assert_eq!(introduced(&watcher(), said)["clientCapabilities"], json!({"plan": {}}));
    }
}
