//! Answers of agents, by the purpose of their request.

use std::borrow::Cow;

use acp_wire::{ErrorObject, Id, Message, Outcome, build, str_at};
use bytes::Bytes;
use serde_json::value::to_raw_value;

use crate::auth::Refusal;
use crate::fault::{Fault, renewed_fault};
use crate::hub::Hub;
use crate::ids::{Process, Requester, SessionKey, SlotId};
use crate::process::logins::reported_login;
use crate::record::purpose::Purpose;

impl Hub {
    pub(crate) fn agent_answered(
        &mut self,
        process: Process,
        why: Purpose,
        line: &Bytes,
        outcome: Outcome<'_>,
    ) {
        let result = match outcome {
            Outcome::Result(result) => Some(result),
            Outcome::Error(error) => {
                let code = Some(ErrorObject::from_raw(error).code);
                self.log_failure(process.slot, why.session(), why.what(), code);
                None
            }
        };
        match why {
            Purpose::Initialize => {
                self.processes.on_initialized(&mut self.cx, process.slot, outcome);
            }
            Purpose::NewSession(new) => self.session_made(process, new, line, outcome),
            Purpose::List { to, wanted } => self.listed(process.slot, &to, &wanted, result),
            Purpose::Adopt(adoption) => self.adopted(process, &adoption, line, outcome),
            Purpose::Prompt { session } => self.prompt_answered(session, line, outcome),
            Purpose::Abandoned { .. } => self.on_abandoned_ended(process.slot),
            // A failed request says nothing about the login.
            Purpose::AuthStatus => {
                self.login_reported(process.slot, result.and_then(reported_login));
            }
            Purpose::LoginAgain => self.logged_in_again(process.slot, result.is_some()),
            Purpose::Restore { session, .. } => self.restore_answered(session, outcome),
            Purpose::Steer(steer) => self.steered(process.slot, *steer, line, outcome),
            Purpose::Preset { session, preset } => {
                self.preset_answered(session, &preset, Some(outcome));
            }
            Purpose::Relay { to, session, method, params } => {
                self.relay_answered(process.slot, to, session, &method, params, line, outcome);
            }
            Purpose::GivenUp { .. } | Purpose::Title { .. } | Purpose::Farewell => {}
        }
    }

    /// Ends a request whose answer came but cannot be read: no client may hang.
    pub(crate) fn answer_lost(&mut self, slot: SlotId, why: Purpose, fault: &Fault) {
        self.log_failure(slot, why.session(), why.what(), None);
        let error = fault.object();
        match why {
            Purpose::Initialize => {
                let error = to_raw_value(&error).unwrap_or_default();
                self.processes.on_initialized(&mut self.cx, slot, Outcome::Error(&error));
            }
            Purpose::Prompt { session } => {
                let line = build::error(&Id::from(0), &error);
                if let Ok(Message::Response { outcome, .. }) = acp_wire::parse(&line) {
                    self.prompt_answered(session, &line, outcome);
                }
            }
            Purpose::Steer(steer) => self.refuse(&steer.to, fault),
            Purpose::Restore { session, .. } => {
                self.cx.timers.clear(crate::timers::Timer::Restore(session));
                self.restore_failed(session, fault.data.reason, &fault.message);
            }
            Purpose::Abandoned { .. } => self.on_abandoned_ended(slot),
            Purpose::Preset { session, .. } => self.wake_session(session),
            Purpose::LoginAgain => self.logged_in_again(slot, false),
            why => self.refuse_askers(slot, why, fault),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one answered request")]
    fn relay_answered(
        &mut self,
        slot: SlotId,
        to: Requester,
        session: Option<SessionKey>,
        method: &str,
        params: Option<String>,
        line: &Bytes,
        outcome: Outcome<'_>,
    ) {
        let known = session.filter(|key| self.sessions.contains_key(key));
        match outcome {
            Outcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                if self.note_refusal(slot, method, &error) == Refusal::Renewed {
                    return self.refuse(&to, &renewed_fault());
                }
            }
            Outcome::Result(result) => {
                match method {
                    "authenticate" => {
                        let params = params.as_deref().unwrap_or_default();
                        let with = str_at(params.as_bytes(), &["methodId"]).map(Cow::into_owned);
                        self.authenticated(slot, with);
                    }
                    "logout" => self.processes.on_logout(&mut self.cx, slot),
                    "auth/status" => self.login_reported(slot, reported_login(result)),
                    _ => {}
                }
                if let Some(key) = known {
                    self.setting_changed(key, to.client, method, params.as_deref(), result);
                }
            }
        }
        let mut line = self.for_client(slot, &to, line);
        if let Some(key) = known {
            line = self.sessions.to_public_id_in_error(key, line);
        }
        self.respond(&to, session, line);
    }

    /// `had_parked`: lines may have been parked for the request.
    pub(crate) fn request_ended(&mut self, process: Process, id: &Id, had_parked: bool) {
        if had_parked && !self.requests.may_name_session(process.host) {
            self.processes.drop_parked(&mut self.cx, process);
        }
        if self.processes.contains_key(&process.slot) {
            self.check_idle(process.slot);
        }
        self.cancel_questions(self.questions.about(id));
    }
}
