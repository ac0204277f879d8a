use acp_wire::{ErrorObject, Version, code};
use acpd_api::{ErrorData, NAMESPACE, Reason, StoreState, Untrusted};
use serde_json::json;

/// Maximum length of a quoted line of an agent's error, in characters.
const LINE: usize = 300;

/// Describes an agent's error: the first lines of its message and data, and its code.
pub(crate) fn in_words(error: &ErrorObject) -> String {
    let said = error.texts();
    let lines = said.iter().filter_map(|text| text.trim().lines().next());
    let lines: Vec<String> = lines.map(|line| line.chars().take(LINE).collect()).collect();
    if lines.is_empty() {
        return format!("error {}", error.code);
    }
    format!("{} ({})", lines.join(": "), error.code)
}

/// An error of acpd: message, machine-readable reason, way out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Fault {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: ErrorData,
    /// The client's protocol version, if acpd does not support it, and the newest that it does.
    pub(crate) requested_version: Option<(u16, Version)>,
}

impl Fault {
    /// `-32603` with a reason: acpd has no error codes of its own.
    pub fn new(reason: Reason, message: impl Into<String>) -> Fault {
        let data = ErrorData::new(reason);
        Fault { code: code::INTERNAL, message: message.into(), data, requested_version: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Fault {
        Fault { code: code::INVALID_PARAMS, ..Fault::new(Reason::Invalid, message) }
    }

    /// `-32022` with the supported versions, as protocol version 2 requires.
    pub(crate) fn version(requested: u16, newest: Version) -> Fault {
        let text = format!("protocol version {requested} does not exist");
        let fault = Fault::invalid(text).with_code(code::VERSION);
        Fault { requested_version: Some((requested, newest)), ..fault }
    }

    pub fn with_code(mut self, code: i64) -> Fault {
        self.code = code;
        self
    }

    pub fn hint(mut self, hint: impl Into<Untrusted>) -> Fault {
        self.data.hint = Some(hint.into());
        self
    }

    pub(crate) fn session(mut self, public_id: &str) -> Fault {
        self.data.session_id = Some(public_id.into());
        self
    }

    pub(crate) fn stderr(mut self, tail: &str) -> Fault {
        if !tail.is_empty() {
            self.data.stderr = Some(tail.into());
        }
        self
    }

    /// `-32002` with `data.sessionId`, as the protocol requires.
    pub(crate) fn no_session(session: &str) -> Fault {
        Fault::new(Reason::SessionNotFound, format!("no session `{session}`"))
            .with_code(code::NOT_FOUND)
            .session(session)
            .hint("`acpctl session ls` lists the sessions")
    }

    pub fn object(&self) -> ErrorObject {
        let error = ErrorObject::new(self.code, self.message.clone());
        let mut data = json!({ NAMESPACE: self.data });
        if let Some(id) = &self.data.session_id {
            data["sessionId"] = json!(id);
        }
        if let Some((requested, newest)) = self.requested_version {
            data["requested"] = requested.into();
            data["supported"] = (1..=newest as u16).collect::<Vec<_>>().into();
        }
        error.with_data(&data)
    }
}

pub(crate) fn name_taken(name: &str, cwd: &str) -> Fault {
    let text = format!("a session named `{name}` exists in `{cwd}`");
    Fault::new(Reason::NameTaken, text).with_code(code::INVALID_PARAMS)
}

/// Returns `None` while the journal can be written.
pub(crate) fn store_fault(store: &StoreState) -> Option<Fault> {
    let StoreState::Failing { reason, hint, .. } = store else { return None };
    let text = format!("the journal cannot be written: {}", reason.raw());
    let mut fault = Fault::new(Reason::StoreFailed, text);
    fault.data.hint.clone_from(hint);
    Some(fault)
}

pub(crate) fn renewed_fault() -> Fault {
    let text = "the agent's login has run out and is being renewed";
    Fault::new(Reason::Interrupted, text).hint("try again")
}

pub(crate) fn login_hint(agent: &str) -> String {
    format!("`acpctl auth login {agent}`, then try again")
}

/// Meaning of an agent's refusal of a request for its login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Other,
    NeedsLogin,
    Renewed,
}

/// Returns a sentence about an agent, from a reason such as "it ended with exit code 3".
pub(crate) fn about_agent(profile: &str, reason: &str) -> String {
    match reason.strip_prefix("it ") {
        Some(predicate) => format!("agent `{profile}` {predicate}"),
        None => format!("agent `{profile}`: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_error_is_told_by_its_first_lines_and_its_code() {
        let said = |message: &str, data: &serde_json::Value| {
            in_words(&ErrorObject::new(-32603, message).with_data(data))
        };
        let gemini = json!({"details": "Invalid session\n  Searched for it"});
        assert_eq!(said("Internal error", &gemini), "Internal error: Invalid session (-32603)");
        assert_eq!(said("it is gone", &json!({"reason": "gone"})), "it is gone (-32603)");
        assert_eq!(said("", &json!({})), "error -32603");
        assert!(said(&"x".repeat(9_999), &json!(null)).len() < 400);
    }
}
