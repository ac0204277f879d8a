//! Lines from agents, routed to sessions or requests, and answers by the purpose of their request.
//!
//! Architecture invariant: no line of an agent is fatal. Unreadable lines are noted and skipped;
//! others are forwarded byte for byte, except for ids, if the agent speaks version 1.

use std::borrow::Cow;

use acp_wire::acp::cancelled_request;
use acp_wire::bound::LONGEST_ID;
use acp_wire::dialect::Heard;
use acp_wire::{
    Body, ErrorObject, Frame, Head, Id, Malformed, Message, Outcome, build, code, str_at,
};
use acpd_api::{NAMESPACE, Reason, Skipped, is_own, method};
use bytes::Bytes;
use serde_json::value::{RawValue, to_raw_value};

use crate::fault::{Fault, Refusal, renewed_fault};
use crate::hub::Hub;
use crate::ids::{HostId, InteractionId, Process, Requester, SessionKey, SlotId};
use crate::mcp::client_servers::MESSAGE;
use crate::process::logins::{reported_account, reported_login};
use crate::process::slot::{OutputEnd, State};
use crate::read_line::ReadLine;
use crate::record::{EventKind, InteractionRow, LineForm, Purpose};
use crate::session::replay::HISTORY_BYTES;

/// How the engine has got a line.
#[derive(Debug, Clone, Copy)]
struct Received<'l> {
    /// Nothing was removed from the agent's line.
    is_intact: bool,
    form: LineForm,
    /// The line as an agent of version 2 has sent it.
    original: Option<&'l Bytes>,
}

impl Hub {
    pub(crate) fn on_host_line(&mut self, host: HostId, frame: Frame) {
        let Some(slot) = self.processes.slot_of(host) else { return };
        let process = Process { slot, host };
        let inside = match frame.body {
            Body::Line(line) => {
                self.read_line(process, &line);
                false
            }
            Body::Oversized { head, len, inside } => {
                self.line_skipped(process, &head, len);
                inside
            }
        };
        let end = OutputEnd { offset: frame.end, inside };
        self.processes.on_read(&mut self.cx, host, end);
    }

    fn read_line(&mut self, process: Process, line: &Bytes) {
        acp_wire::receive(line, Some(NAMESPACE), |message, tidied, is_intact| {
            if !is_intact {
                let cut = line.len() - tidied.len();
                self.cx.note(process.host, &format!("took {cut} bytes out of a line: members that only acpd may say, or that came twice"));
            }
            match message {
                Ok(message) => match self.processes.heard(process.slot, tidied) {
                    Some(heard) => self.take_heard(process, heard, (message, tidied), is_intact),
                    None => {
                        let form = LineForm::default();
                        let received = Received { is_intact, form, original: None };
                        self.read_message(process, message, tidied, received);
                    }
                },
                Err(malformed) => self.unreadable(process, tidied, &malformed),
            }
        });
    }

    /// `own`: the agent's line.
    fn take_heard(
        &mut self,
        process: Process,
        heard: Vec<Heard>,
        own: (Message<'_>, &Bytes),
        is_intact: bool,
    ) {
        let is_request = matches!(own.0, Message::Request { .. });
        // A request is shown as it is, with all that it tells.
        let mut form = if is_request { LineForm::First } else { LineForm::default() };
        for heard in heard {
            let is_intact = is_intact && !matches!(heard, Heard::Part(_));
            let received = Received { is_intact, form, original: Some(own.1) };
            match heard {
                Heard::Same => {
                    let same = Received { form: LineForm::Same, ..received };
                    self.read_message(process, own.0.clone(), own.1, same);
                }
                Heard::Original => {
                    self.keep_original(process, own.1, LineForm::Second);
                    form = LineForm::Meaning;
                }
                Heard::Echo => self.keep_original(process, own.1, LineForm::Echo),
                Heard::State(session, state) => {
                    self.state_told(process, &session, state, own.1);
                    form = LineForm::Meaning;
                }
                Heard::Line(line) | Heard::Part(line) => match acp_wire::parse(&line) {
                    Ok(message) => self.read_message(process, message, &line, received),
                    Err(malformed) => self.unreadable(process, &line, &malformed),
                },
                Heard::Inserted(id, message) => self.prompt_inserted(process.host, &id, message),
                Heard::Background { session, work } => {
                    self.background_told(process.slot, &session, work);
                }
            }
        }
    }

    fn unreadable(&mut self, process: Process, line: &[u8], malformed: &Malformed) {
        self.processes.on_no_message(process.slot, line);
        self.cx.note(process.host, &format!("skipped a line of {} bytes: {malformed}", line.len()));
        let text = format!("the agent's answer cannot be read: {malformed}");
        let fault = Fault::new(Reason::AgentProtocol, text);
        let refusal = ErrorObject::new(malformed.code(), malformed.to_string());
        self.line_lost(process, &Head::of(line), &fault, refusal);
    }

    /// Ends the request that a lost line answered with `fault`, or refuses the one that it was with
    /// `refusal`. Without an id nothing ends, because the request may still be worked on.
    fn line_lost(&mut self, process: Process, head: &Head, fault: &Fault, refusal: ErrorObject) {
        let Some(id) = &head.id else { return };
        if head.has_method {
            self.processes.write(&mut self.cx, process.slot, build::error(id, &refusal));
        } else if let Some(why) = self.answered(process.host, id) {
            if let Some(translator) = self.processes.translator(process.slot) {
                translator.forget(id);
            }
            let had_parked = why.parks_lines();
            self.answer_lost(process.slot, why, fault);
            self.request_ended(process, id, had_parked);
        }
    }

    fn read_message(
        &mut self,
        process: Process,
        message: Message<'_>,
        line: &Bytes,
        received: Received<'_>,
    ) {
        if matches!(message, Message::Request { .. }) {
            self.touch_turns(process.slot, line);
        }
        match message {
            Message::Notification { method, .. } if is_own(&method) => {
                self.cx
                    .note(process.host, &format!("skipped a `{method}`, which only acpd may say"));
            }
            Message::Notification { method, params } => {
                // Before the update is shown: no rule may answer a question that it changes.
                if !received.is_intact {
                    self.doubt_call(process.slot, line);
                }
                self.agent_notified(process, &method, params, line, received.form);
            }
            Message::Request { id, method, .. }
                if matches!(&*method, "session/request_permission" | "elicitation/create") =>
            {
                let Received { is_intact, original, .. } = received;
                self.on_agent_question(process, &id, (line, original), is_intact);
            }
            Message::Request { method, .. }
                if method == "initialize"
                    && self.processes[&process.slot].state == State::Initializing =>
            {
                self.processes.on_echo(&mut self.cx, process.slot);
            }
            Message::Request { method, .. } if method == MESSAGE => {
                let (host, line, at) = (process.host, line.clone(), self.cx.now);
                let id = InteractionId(self.cx.ids.issue());
                let row = InteractionRow {
                    id,
                    session: None,
                    host,
                    line,
                    original: None,
                    at,
                    frozen: None,
                };
                self.on_server_call(row, true);
            }
            Message::Request { id, method, .. }
                if !is_own(&method) && self.on_agent_request(process, &id, &method, line) => {}
            Message::Request { id, method, .. } => {
                self.cx.note(process.host, &format!("asked for `{method}`, which is not on offer"));
                let text = format!("`{method}` is not offered by this client");
                let error = ErrorObject::new(code::METHOD_NOT_FOUND, text);
                self.processes.write(&mut self.cx, process.slot, build::error(&id, &error));
            }
            Message::Response { id, outcome } => match self.answered(process.host, &id) {
                Some(why) => {
                    let had_parked = why.parks_lines();
                    self.agent_answered(process, why, line, outcome);
                    self.request_ended(process, &id, had_parked);
                }
                None => {
                    let text = format!("answered a request that is not open: id {id}");
                    self.cx.note(process.host, &text);
                }
            },
        }
    }

    fn agent_notified(
        &mut self,
        process: Process,
        method: &str,
        params: Option<&RawValue>,
        line: &Bytes,
        form: LineForm,
    ) {
        if matches!(method, "$/cancel_request" | "$/cancelRequest") {
            if let Some(id) = params.and_then(cancelled_request) {
                self.withdraw_request(process, &id);
            }
            return;
        }
        if method == "elicitation/complete" {
            return self.questions.on_page_done(&mut self.cx, process.host, line);
        }
        let Some(read) = ReadLine::new(method, params, line) else {
            return self.on_notification_without_session(process, method, params, line);
        };
        match self.sessions.routed(process.slot, &read.session) {
            Some(key) => self.session_notified(process, key, &read, form),
            None => self.park(process, &read),
        }
    }

    /// Keeps a line for an unknown session while an open request may name that session.
    fn park(&mut self, process: Process, read: &ReadLine<'_>) {
        let (session, len) = (&*read.session, read.line.len());
        if let Some(bytes) = self.extend_adoption(process, session) {
            if bytes + len > HISTORY_BYTES {
                return self.adoption_too_long(process, session);
            }
        } else {
            let requests = &self.requests;
            let is_new = |session: &str| requests.adoption_ask(process.host, session).is_none();
            // Lines of a deleted session's turn do not belong to a session that gets its id.
            if !requests.may_name_session(process.host)
                || self.works_on(process.slot, session)
                || !self.processes.has_room_for(process.slot, len, is_new)
            {
                return self.processes.skip(&mut self.cx, process, session);
            }
        }
        self.processes.park(&mut self.cx, process, session, read.line);
    }

    fn on_notification_without_session(
        &mut self,
        process: Process,
        method: &str,
        params: Option<&RawValue>,
        line: &Bytes,
    ) {
        match (method, params) {
            ("session/update" | MESSAGE, _) => {
                // The owner is unknown, so no client gets it.
                let text = format!("skipped a `{method}` without a session");
                return self.cx.note(process.host, &text);
            }
            ("auth/status_update", Some(params)) => {
                self.login_reported(process.slot, reported_login(params));
            }
            ("_auth/status_update", Some(params)) => {
                self.login_reported(process.slot, reported_account(params));
            }
            _ => {}
        }
        let profile = self.processes[&process.slot].profile().to_owned();
        self.clients.tell_profile(&mut self.cx, &profile, line, false);
    }

    fn line_skipped(&mut self, process: Process, head: &Bytes, len: u64) {
        let limit = self.cx.config.line_limit;
        let text = format!("skipped a line of {len} bytes, over the limit of {limit}");
        self.cx.note(process.host, &text);
        let text = format!("the agent's answer of {len} bytes is over the limit of {limit}");
        let fault = Fault::new(Reason::LineTooLong, text)
            .hint("raise `line_limit` under `[daemon]` in the configuration");
        let text = format!("a line of {len} bytes is over the limit of {limit}");
        let refusal = ErrorObject::new(code::INVALID_REQUEST, text);
        let said = Head::of(head);
        self.line_lost(process, &said, &fault, refusal);
        if said.has_method
            && let Some(session) = head_text(head, b"\"sessionId\":")
            && let Some(key) = self.sessions.routed(process.slot, session)
        {
            let session_id = self.session(key).row.public_id.clone();
            let skipped = Skipped { session_id: session_id.into(), bytes: len, limit };
            let line = build::notification(method::SKIPPED, &skipped);
            self.append(key, EventKind::Notice, line, None);
        }
    }

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
            Purpose::Prompt { session, .. } => self.prompt_answered(session, line, outcome),
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
            Purpose::GivenUp { .. }
            | Purpose::Title { .. }
            | Purpose::EndWork { .. }
            | Purpose::Farewell => {}
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
            Purpose::Prompt { session, .. } => {
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
                let params = params.as_deref().unwrap_or_default().as_bytes();
                match (method, known) {
                    ("authenticate", _) => {
                        let with = str_at(params, &["methodId"]).map(Cow::into_owned);
                        self.authenticated(slot, with);
                    }
                    ("logout", _) => self.processes.on_logout(&mut self.cx, slot),
                    ("auth/status", _) => self.login_reported(slot, reported_login(result)),
                    ("session/set_mode", Some(key)) => {
                        let mode = str_at(params, &["modeId"]);
                        if let Some(mode) = mode.filter(|mode| mode.len() <= LONGEST_ID) {
                            self.tell_mode(key, &mode, Some(to.client));
                        }
                    }
                    ("session/set_config_option", Some(key)) => {
                        self.tell_options(key, result, Some(to.client));
                    }
                    _ => {}
                }
            }
        }
        let sets = ["session/set_mode", "session/set_config_option"].contains(&method);
        if let (Outcome::Result(_), Some(key)) = (outcome, known.filter(|_| sets))
            && self.clients.version_of(to.client).has_modes_as_option()
        {
            return self.send_values(&to, key, String::new());
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

/// Returns the plain string after a key in an incomplete line.
fn head_text<'a>(head: &'a [u8], key: &[u8]) -> Option<&'a str> {
    let at = head.windows(key.len()).position(|window| window == key)?;
    let rest = head[at + key.len()..].trim_ascii_start().strip_prefix(b"\"")?;
    let end = rest.iter().position(|b| *b == b'"')?;
    std::str::from_utf8(&rest[..end]).ok()
}
