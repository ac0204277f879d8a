//! Questions and policies in few words.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

pub mod lines;

use acp_wire::acp::PermissionRequest;
use acpd_policy::{
    By, Decision, Policy, PolicyConfig, PolicyError, Remembered, Situation, Subject, Understanding,
    Verdict, decide,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Set where paths begin with a drive.
pub const IS_WINDOWS: bool = std::path::MAIN_SEPARATOR == '\\';
pub const HOME: &str = if IS_WINDOWS { r"C:\home\me" } else { "/home/me" };
pub const CWD: &str = if IS_WINDOWS { r"C:\home\me\src\app" } else { "/home/me/src/app" };

/// The path where this system may have it; the tests write `/x`.
pub fn place(path: &str) -> String {
    let drive = if IS_WINDOWS && path.starts_with('/') { "C:" } else { "" };
    format!("{drive}{path}")
}

/// The text with the paths between such quotes as this system has them; programs stay where they are.
fn with_places(text: &str, quote: char) -> String {
    let starts = ["/home/", "/tmp/", "/x/", "/y/", "/etc/", "/work"];
    starts.iter().filter(|_| IS_WINDOWS).fold(text.to_owned(), |text, start| {
        text.replace(&format!("{quote}{start}"), &format!("{quote}C:{start}"))
    })
}

/// Compiles what stands under `[policy]`.
pub fn compile(text: &str) -> Result<Policy, PolicyError> {
    let config: PolicyConfig = toml::from_str(&with_places(text, '\'')).expect("it is a policy");
    Policy::new(&config, Some(HOME))
}

pub fn policy(text: &str) -> Policy {
    compile(text).expect("the rules are sound")
}

/// One `allow` rule with these conditions, over a default of `ask`.
pub fn allow(conditions: &str) -> Policy {
    policy(&format!("[[rules]]\ndecision = 'allow'\n{conditions}"))
}

/// One `reject` rule with these conditions, over a default of `ask`.
pub fn reject(conditions: &str) -> Policy {
    policy(&format!("[[rules]]\ndecision = 'reject'\n{conditions}"))
}

/// The params of a question about this tool call, with the usual four answers.
pub fn params(mut call: Value) -> Box<RawValue> {
    call["toolCallId"] = json!("t");
    with_options(call, &["allow_always", "allow_once", "reject_once", "reject_always"])
}

/// The params of a question with one answer of each of these kinds; its id is `id-KIND`.
pub fn with_options(call: Value, kinds: &[&str]) -> Box<RawValue> {
    let options = kinds.iter().enumerate().map(|(at, kind)| {
        let again = if kinds[..at].contains(kind) { "-2" } else { "" };
        json!({"optionId": format!("id-{kind}{again}"), "name": "x", "kind": kind})
    });
    let options: Vec<Value> = options.collect();
    raw(&json!({"sessionId": "s", "toolCall": call, "options": options}))
}

pub fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(with_places(&value.to_string(), '"')).expect("it is JSON")
}

pub fn request(params: &RawValue) -> PermissionRequest<'_> {
    PermissionRequest::from_raw(params).expect("it is readable")
}

pub fn here() -> Situation<'static> {
    Situation { agent: "claude", cwd: CWD, once: None }
}

/// Decides the call by the policy, without anything remembered.
pub fn outcome(policy: &Policy, call: Value) -> Option<Verdict> {
    verdict(&decide(policy, &[], &here(), &request(&params(call))))
}

pub fn verdict(decision: &Decision) -> Option<Verdict> {
    match decision {
        Decision::Ask { .. } => None,
        Decision::Answer { verdict, .. } => Some(*verdict),
    }
}

pub fn by(decision: &Decision) -> Option<&By> {
    match decision {
        Decision::Ask { .. } => None,
        Decision::Answer { by, .. } => Some(by),
    }
}

pub fn subject(call: Value) -> Option<Subject> {
    subject_of(&params(call))
}

pub fn subject_of(params: &RawValue) -> Option<Subject> {
    Understanding::of(&request(params)).subject
}

pub fn remember(id: i64, call: Value, verdict: Verdict, at: u64) -> Remembered {
    let subject = subject(call).expect("it can be remembered");
    Remembered { id, agent: "claude".into(), workspace: CWD.into(), subject, verdict, at }
}

/// A call that runs a command, as Claude asks for it.
pub fn run(line: &str) -> Value {
    json!({"kind": "execute", "title": format!("`{line}`"),
        "rawInput": {"command": line, "description": "does it"}})
}

/// A call that changes these files.
pub fn edit(paths: &[&str]) -> Value {
    let diffs = paths.iter().map(|path| json!({"type": "diff", "path": path, "newText": ""}));
    json!({"kind": "edit", "title": "Edit", "content": diffs.collect::<Vec<_>>()})
}

/// Returns the verdict on a command that is allowed: on Windows, a line with quotes of bash may be one for another
/// shell.
pub fn in_a_line_of_bash(input: &Value) -> Option<Verdict> {
    let line = input["command"].as_str().unwrap_or_default();
    (!(IS_WINDOWS && line.contains('\''))).then_some(Verdict::Allow)
}
