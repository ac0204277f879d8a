//! Asks the agent of a session for a summary, for another one that continues. That is a turn of the session like any
//! other, but what the agent wants to do in it is refused.

use acp_wire::acp::stop_reason;
use acpd_api::{
    ExitCode, NAMESPACE, PromptMeta, Role, SessionInfo, SessionState, TurnState, Untrusted,
};
use acpd_view::{Content, Kind, Message, Turn};
use serde_json::json;
use serde_json::value::RawValue;

use crate::door::Door;
use crate::error::Result;
use crate::live::Live;
use crate::paint::DIM;
use crate::text::{Text, text};
use crate::transcript::read;
use crate::ui::Ui;
use crate::watch::bind;

/// Returns what the agent wrote, or why it wrote nothing.
///
/// # Errors
/// When the person does not want to wait any longer; then the agent is told.
pub(super) fn ask(
    old: &SessionInfo,
    to: &str,
    door: Door,
    ui: &mut Ui,
) -> Result<std::result::Result<String, Text>> {
    if let Some(why) = silent(old) {
        return Ok(Err(why));
    }
    let line = text!("asking {} ({}) for a summary; Ctrl-C ends it", old.handle(), old.agent);
    ui.say(ui.err_paint().apply(DIM, line));
    ui.spin("summarizing");
    let said = said(to);
    let mut live = Live::new(door.lasting_link()?)?;
    let asked = bind(old, Role::Controller, &mut live, ui).and_then(|()| {
        let permissions = Some("reject".to_owned());
        let meta = json!({NAMESPACE: PromptMeta { permissions, ..PromptMeta::default() }});
        let prompt = [json!({"type": "text", "text": said})];
        let params = json!({"sessionId": old.session_id, "prompt": prompt, "_meta": meta});
        let id = live.request("session/prompt", &params)?;
        let result: Result<Box<RawValue>> = live.result(ui, "session/prompt", &id);
        if matches!(&result, Err(error) if error.code() == ExitCode::Cancelled) {
            live.notify("$/cancel_request", &json!({"requestId": id}))?;
        }
        result
    });
    ui.stop_spinning();
    match asked {
        Ok(result) if stop_reason(&result).is_some_and(|why| why == "end_turn") => {}
        Ok(result) => {
            let why = stop_reason(&result).unwrap_or_default();
            return Ok(Err(text!("its turn ended with `{}`", Untrusted::from(&*why))));
        }
        Err(error) if error.code() == ExitCode::Cancelled => return Err(error),
        Err(error) => return Ok(Err(error.message().clone())),
    }
    let mut written = None;
    read(old, old.seq, &mut door.connect()?, |turn| {
        written = answer(&turn, &said).or(written.take());
        Ok(())
    })?;
    Ok(written.ok_or_else(|| "it wrote nothing".into()))
}

/// Why an agent is not even asked.
fn silent(old: &SessionInfo) -> Option<Text> {
    if old.turn.state == TurnState::NeedsAction {
        return Some("it waits for an answer of yours".into());
    }
    match old.state {
        SessionState::Lost => Some("it has lost the conversation".into()),
        SessionState::Blocked => {
            let why = old.reason.as_ref().map(|reason| text!(": {}", reason));
            Some(text!("the session is blocked{}", why))
        }
        _ if old.limited_until.is_some() => Some("its usage limit is reached".into()),
        _ => None,
    }
}

/// What the agent is asked.
fn said(to: &str) -> String {
    format!(
        "Another agent, `{to}`, takes over this work, in the same directory. Write a summary for it, without using \
         tools: what I want, what was done and why, which files matter, what was tried and did not work, what is \
         open, and what comes next. Change nothing."
    )
}

/// What the agent said in the turn of this prompt, if this is it.
fn answer(turn: &Turn, prompt: &str) -> Option<String> {
    let is_it = |message: &Message| texts(message) == prompt;
    let is_asked = turn.blocks.iter().any(|b| matches!(&b.kind, Kind::Prompt(m) if is_it(m)));
    let answers = turn.blocks.iter().filter_map(|block| match &block.kind {
        Kind::Answer(message) => Some(texts(message)),
        _ => None,
    });
    let answer = answers.collect::<Vec<_>>().join("\n\n");
    (is_asked && !answer.trim().is_empty()).then_some(answer)
}

fn texts(message: &Message) -> String {
    let texts = message.content.iter().filter_map(|part| match part {
        Content::Text(text) => Some(text.raw()),
        Content::Other(_) => None,
    });
    texts.collect()
}
