//! Watches sessions until they are idle, or until their turn is over.
//!
//! A notice may be older than the current state. So each relevant notice makes [`Watch`] request
//! the session, and the last answer counts.

use acp_wire::{ErrorObject, Id, Message, Outcome as Answer, code, lossy_at};
use acpd_api::{
    ExitCode, Outcome, RestoreLevel, Restored, Role, SessionInfo, SessionState, TurnEnded,
    TurnState, Untrusted, method,
};
use acpd_view::cut_short;
use serde_json::value::RawValue;

use crate::error::{CommandError, Result};
use crate::live::Live;
use crate::text::{Text, shell_word, text};
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Watch {
    /// From the daemon's last answer.
    pub(crate) session: SessionInfo,
    /// When the first observed turn began.
    began: u64,
    asked: Option<Id>,
    /// The end of the last turn since then.
    ended: Option<TurnEnded>,
    /// The level of a restore since then.
    restored: Option<RestoreLevel>,
    is_removed: bool,
    /// For `wait`: the end that was printed, and whether the user was told of a question.
    pub(crate) end: Option<End>,
    pub(crate) is_reported: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) struct End {
    /// The exit code of `run`.
    pub(crate) code: ExitCode,
    /// The stop reason, or the kind of outcome, for programs.
    pub(crate) word: Untrusted,
    pub(crate) error: Option<Text>,
    pub(crate) hint: Option<Text>,
}

impl Watch {
    pub(crate) fn begin(session: &SessionInfo, live: &mut Live, ui: &mut Ui) -> Result<Watch> {
        live.attach(session.exactly(), None, Role::Observer, ui).map(Watch::of)
    }

    /// Watches a session that is already attached.
    pub(crate) fn of(session: SessionInfo) -> Watch {
        let began = session.turn.since;
        Watch {
            session,
            began,
            asked: None,
            ended: None,
            restored: None,
            is_removed: false,
            end: None,
            is_reported: false,
        }
    }

    pub(crate) fn look(&mut self, live: &mut Live) -> Result {
        self.asked = Some(live.writer.request(method::SESSION_SHOW, &self.session.exactly())?);
        Ok(())
    }

    pub(crate) fn hear(&mut self, message: &Message<'_>, live: &mut Live) -> Result {
        match message {
            Message::Notification { method, params: Some(params) } => {
                let id = lossy_at(params.get().as_bytes(), &["sessionId"]);
                let is_ours = id.is_some_and(|id| id == self.session.session_id.raw());
                if is_ours { self.notice(method, params, live) } else { Ok(()) }
            }
            Message::Response { id, outcome } if self.asked.as_ref() == Some(id) => {
                self.asked = None;
                match outcome {
                    Answer::Result(result) => {
                        if let Ok(session) = serde_json::from_str(result.get()) {
                            self.session = session;
                        }
                    }
                    Answer::Error(error) => {
                        match CommandError::rpc(&ErrorObject::from_raw(error)) {
                            error if error.code() == ExitCode::NotFound => self.is_removed = true,
                            error => return Err(error),
                        }
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn notice(&mut self, name: &str, params: &RawValue, live: &mut Live) -> Result {
        let params = params.get();
        match name {
            method::TURN_ENDED => self.ended = serde_json::from_str(params).ok(),
            method::RESTORED => {
                let restored = serde_json::from_str(params).ok();
                self.restored = restored.map(|restored: Restored| restored.level);
            }
            method::SESSION_REMOVED => self.is_removed = true,
            _ => {}
        }
        let is_change = [method::TURN_ENDED, method::SESSION_STATE].contains(&name);
        if is_change { self.look(live) } else { Ok(()) }
    }

    /// Returns the end of the first observed turn.
    pub(crate) fn turn_over(&self) -> Option<End> {
        let is_next = self.session.turn.since != self.began;
        if self.ended.is_some() || is_next { Some(self.end()) } else { self.idle() }
    }

    /// Returns the end of the last turn if the session is idle.
    pub(crate) fn idle(&self) -> Option<End> {
        let is_idle = self.session.turn.state == TurnState::Idle && self.session.queued == 0;
        (self.is_removed || is_idle && self.asked.is_none()).then(|| self.end())
    }

    fn end(&self) -> End {
        let session = &self.session;
        let end = |code, word: &str, error: Option<Text>, hint: Option<Text>| {
            let error = error.map(|error| text!("{}: {}", session.handle(), error));
            End { code, word: word.into(), error, hint }
        };
        if self.is_removed {
            let error = Some("the session was deleted".into());
            return end(ExitCode::NotFound, "removed", error, None);
        }
        // A prompt that could not begin leaves no turn.
        let stuck = match session.state {
            SessionState::Blocked => Some((ExitCode::Error, "blocked")),
            SessionState::Lost => Some((ExitCode::ContextLost, "lost")),
            _ => None,
        };
        if let Some((code, word)) = stuck.filter(|_| self.ended.is_none()) {
            let reason = session.reason.as_ref().map(|reason| text!(": {}", reason));
            let error = text!("the session is {}{}", word, reason);
            return end(code, word, Some(error), session.hint.as_ref().map(Text::from));
        }
        let outcome = self.ended.as_ref().map(|ended| &ended.outcome);
        let last = session.turn.last.as_ref().map(Untrusted::raw);
        let Some(last) = outcome.map(Outcome::word).or(last) else {
            return end(ExitCode::Ok, "unused", None, None);
        };
        let why = outcome.and_then(|outcome| match outcome {
            Outcome::Error { message, .. } => Some(message.raw()),
            outcome => outcome.reason(),
        });
        let why = why.map(|why| text!(": {}", Untrusted::from(why)));
        let cut = self.ended.as_ref().and_then(|ended| ended.cut_short.as_ref());
        let (code, error): (ExitCode, Text) = match (last, self.restored) {
            ("cancelled", _) => {
                let cut = cut.map(|cut| text!("the turn was cut short: {}", cut_short(cut)));
                (ExitCode::Cancelled, cut.unwrap_or_else(|| "the turn was cancelled".into()))
            }
            ("unwedged", _) => {
                let error = "the turn was cancelled; the agent did not react and was stopped";
                (ExitCode::Cancelled, error.into())
            }
            ("refusal", _) => (ExitCode::Refused, "the agent refused".into()),
            ("interrupted", _) => (ExitCode::Interrupted, text!("the turn was interrupted{}", why)),
            ("outcome_unknown", _) => {
                let error = text!("unknown whether the agent got the prompt{}", why);
                (ExitCode::OutcomeUnknown, error)
            }
            ("error", _) => {
                let is_login =
                    matches!(outcome, Some(Outcome::Error { code: code::AUTH_REQUIRED, .. }));
                let code = if is_login { ExitCode::NeedsLogin } else { ExitCode::Error };
                (code, text!("the agent failed{}", why))
            }
            (_, Some(RestoreLevel::Partial)) => {
                let error = "the agent may have only part of the conversation";
                (ExitCode::ContextLost, error.into())
            }
            (_, Some(RestoreLevel::Reseeded)) => {
                let error = "the agent lost the conversation and continued in a new session";
                (ExitCode::ContextLost, error.into())
            }
            _ => return end(ExitCode::Ok, last, None, None),
        };
        let word = shell_word(session.handle());
        let hint = text!("see its last turn: `acpctl session log {} --last`", word);
        end(code, last, Some(error), Some(hint))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn watch(more: &Value) -> Watch {
        let mut session = json!({"sessionId": "s-1", "name": "fix", "agent": "demo", "cwd": "/w",
            "state": "live", "turn": {"state": "idle", "since": 0, "last": "end_turn"}, "queued": 0,
            "clients": 0, "prompts": 1, "seq": 4, "created": 0, "updated": 0});
        session.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Watch::of(serde_json::from_value(session).unwrap())
    }

    #[test]
    fn the_end_of_a_turn_has_the_exit_code_that_run_has() {
        let ended = |last: &str| {
            let turn = json!({"turn": {"state": "idle", "since": 0, "last": last}});
            watch(&turn).idle().unwrap().code
        };
        assert_eq!(ended("end_turn"), ExitCode::Ok);
        assert_eq!(ended("max_tokens"), ExitCode::Ok);
        assert_eq!(ended("refusal"), ExitCode::Refused);
        assert_eq!(ended("cancelled"), ExitCode::Cancelled);
        assert_eq!(ended("unwedged"), ExitCode::Cancelled);
        assert_eq!(ended("interrupted"), ExitCode::Interrupted);
        assert_eq!(ended("outcome_unknown"), ExitCode::OutcomeUnknown);
        assert_eq!(ended("error"), ExitCode::Error);
        let mut login = watch(&json!({"turn": {"state": "idle", "since": 0, "last": "error"}}));
        let outcome = json!({"kind": "error", "code": -32000, "message": "who are you?"});
        let ended =
            json!({"sessionId": "s-1", "turn": 1, "startedAt": 0, "at": 1, "outcome": outcome});
        login.ended = Some(serde_json::from_value(ended).unwrap());
        assert_eq!(login.idle().unwrap().code, ExitCode::NeedsLogin);
        for less in [RestoreLevel::Partial, RestoreLevel::Reseeded] {
            let mut restored = watch(&json!({}));
            restored.restored = Some(less);
            assert_eq!(restored.idle().unwrap().code, ExitCode::ContextLost);
        }
    }
}
