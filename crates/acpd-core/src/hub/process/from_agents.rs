//! Lines from agents, routed to sessions, requests or nowhere.
//!
//! Architecture invariant: no line of an agent is fatal. What cannot be understood is noted and
//! skipped; what is understood is forwarded byte for byte, but for ids.

use std::borrow::Cow;

use acp_wire::acp::{NewSessionResult, UpdateHead, cancelled_request};
use acp_wire::bound::LONGEST_ID;
use acp_wire::{
    Body, ErrorObject, Frame, Head, Id, Malformed, Message, Outcome, StateKey, UpdateClass, build,
    classify_update, code, locate, lossy_at, remove_member, set_id, set_member, str_at,
    with_one_outcome,
};
use acpd_api::{DoingKind, ErrorData, NAMESPACE, Reason, Skipped, is_own, method};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::auth::Refusal;
use crate::cx::Cx;
use crate::fault::{Fault, renewed_fault};
use crate::hash::hash;
use crate::hub::Hub;
use crate::ids::{HostId, InteractionId, Process, Requester, SessionKey, SlotId};
use crate::input::{Batch, Effect, ReadStyle};
use crate::mcp::client_servers::MESSAGE;
use crate::mcp::server_list::undeclared;
use crate::own::OWN;
use crate::params::raw_at;
use crate::process::slot::{Parked, WaitFor, Waiting};
use crate::process::table::OutputEnd;
use crate::record::{EventKind, InteractionRow, Record};
use crate::requests::purpose::{NewSession, Purpose};
use crate::session::State;
use crate::session::replay::HISTORY_BYTES;
use crate::session::turn::is_work;
use crate::tool_calls::call::update_in;
use crate::views::without_boolean_options;

/// Most bytes parked for new sessions of one process; an adoption has a limit of its own.
const PARKED_BYTES: usize = 4 << 20;

/// Characters of a line of a program that is no agent that are told.
const PRINTED: usize = 200;

impl Hub {
    pub(crate) fn on_host_line(&mut self, host: HostId, frame: Frame, out: &mut Batch) {
        let Some(slot) = self.processes.slot_of(host) else { return };
        let process = Process { slot, host };
        let inside = match frame.body {
            Body::Line(line) => {
                self.read_line(process, &line, out);
                false
            }
            Body::Oversized { head, len, inside } => {
                self.line_skipped(process, &head, len, out);
                inside
            }
        };
        let end = OutputEnd { offset: frame.end, inside };
        let notice = self.processes.on_read(&mut cx!(self, out), host, end);
        self.route(notice.into_iter().collect::<Vec<_>>(), out);
    }

    /// A line that is no message: what begins like that may be no agent, and the line tells what it is.
    fn printed(&mut self, slot: SlotId, line: &[u8]) {
        let agent = self.slot_mut(slot);
        if agent.printed.is_some() || agent.is_up() {
            return;
        }
        let line = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        let shown = line.chars().take(PRINTED).map(|c| if c.is_control() { ' ' } else { c });
        agent.printed = Some(shown.collect()).filter(|shown: &String| !shown.trim().is_empty());
    }

    fn read_line(&mut self, process: Process, line: &Bytes, out: &mut Batch) {
        acp_wire::receive(line, Some(&OWN), |message, tidied, is_intact| {
            if !is_intact {
                let cut = line.len() - tidied.len();
                out.note(process.host, &format!("took {cut} bytes out of a line: members that only acpd may say, or that came twice"));
            }
            match message {
                Ok(message) => self.read_message(process, message, tidied, is_intact, out),
                Err(malformed) => self.unreadable(process, tidied, &malformed, out),
            }
        });
    }

    /// A line that is no message. Who waits for the answer that it was to be, or was to get one, is told.
    fn unreadable(
        &mut self,
        process: Process,
        line: &[u8],
        malformed: &Malformed,
        out: &mut Batch,
    ) {
        self.printed(process.slot, line);
        out.note(process.host, &format!("skipped a line of {} bytes: {malformed}", line.len()));
        let text = format!("the agent's answer cannot be read: {malformed}");
        let fault = Fault::new(Reason::AgentProtocol, text);
        let refusal = ErrorObject::new(malformed.code(), malformed.to_string());
        self.line_lost(process, &Head::of(line), &fault, refusal, out);
    }

    /// A line is lost: the request that it answered ends with `fault`, the request that it was with
    /// `refusal`. Without an id nothing ends, because the request may still be worked on.
    fn line_lost(
        &mut self,
        process: Process,
        head: &Head,
        fault: &Fault,
        refusal: ErrorObject,
        out: &mut Batch,
    ) {
        let Some(id) = &head.id else { return };
        if head.has_method {
            self.processes.write(process.slot, build::error(id, &refusal), out);
        } else if let Some(why) = self.answered(process.host, id, out) {
            let had_parked = why.parks_lines();
            self.answer_lost(process.slot, why, fault, out);
            self.request_ended(process, id, had_parked, out);
        }
    }

    /// `is_intact`: the line is as the agent wrote it.
    fn read_message(
        &mut self,
        process: Process,
        message: Message<'_>,
        line: &Bytes,
        is_intact: bool,
        out: &mut Batch,
    ) {
        if matches!(message, Message::Request { .. }) {
            self.touch_turns(process.slot, line);
        }
        match message {
            Message::Notification { method, .. } if is_own(&method) => {
                out.note(process.host, &format!("skipped a `{method}`, which only acpd may say"));
            }
            Message::Notification { method, params } => {
                // Before it is told: no rule may answer a question that it changes.
                if !is_intact {
                    self.doubt_call(process.slot, line, out);
                }
                self.agent_notified(process, &method, params, line, out);
            }
            Message::Request { id, method, .. }
                if matches!(&*method, "session/request_permission" | "elicitation/create") =>
            {
                self.person_asked(process, &id, line, is_intact, out);
            }
            Message::Request { method, .. }
                if method == "initialize" && self.processes[&process.slot].is_initializing() =>
            {
                let events = self.processes.on_echo(&mut cx!(self, out), process.slot);
                self.route(events, out);
            }
            Message::Request { method, .. } if method == MESSAGE => {
                let (host, line, at) = (process.host, line.clone(), self.now);
                let id = InteractionId(self.ids.issue());
                let row = InteractionRow { id, session: None, host, line, at, frozen: None };
                self.on_server_call(row, true, out);
            }
            Message::Request { id, method, .. }
                if !is_own(&method) && self.on_agent_request(process, &id, &method, line, out) => {}
            Message::Request { id, method, .. } => {
                out.note(process.host, &format!("asked for `{method}`, which is not on offer"));
                let error = ErrorObject::new(
                    code::METHOD_NOT_FOUND,
                    format!("`{method}` is not offered by this client"),
                );
                self.processes.write(process.slot, build::error(&id, &error), out);
            }
            Message::Response { id, outcome } => match self.answered(process.host, &id, out) {
                Some(why) => {
                    let had_parked = why.parks_lines();
                    self.agent_answered(process, why, line, outcome, out);
                    self.request_ended(process, &id, had_parked, out);
                }
                None => {
                    out.note(
                        process.host,
                        &format!("answered a request that is not open: id {id}"),
                    );
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
        out: &mut Batch,
    ) {
        if matches!(method, "$/cancel_request" | "$/cancelRequest") {
            if let Some(id) = params.and_then(cancelled_request) {
                self.withdraw_request(process, &id, out);
            }
            return;
        }
        if method == "elicitation/complete" {
            return self.page_done(process.host, line, out);
        }
        let Some(session) = str_at(line, &["params", "sessionId"]) else {
            return self.told_about_profile(process, method, params, line, out);
        };
        match self.sessions.routed(process.slot, &session) {
            Some(key) => self.told_about_session(process, key, &session, method, line, out),
            None => self.park(process, session, line, out),
        }
    }

    /// A notification without a session, for all clients of this agent.
    fn told_about_profile(
        &mut self,
        process: Process,
        method: &str,
        params: Option<&RawValue>,
        line: &Bytes,
        out: &mut Batch,
    ) {
        match (method, params) {
            ("session/update" | MESSAGE, _) => {
                // The owner is unknown, so no client gets it.
                return out.note(process.host, &format!("skipped a `{method}` without a session"));
            }
            ("auth/status_update", Some(told)) => self.auth_status_told(process.slot, told, out),
            ("_auth/status_update", Some(told)) => self.account_told(process.slot, told, out),
            _ => {}
        }
        let profile = self.processes[&process.slot].profile.clone();
        self.forward_to_profile(&profile, line, out);
    }

    /// A notification about a session, or about a subagent in it; `session` is the agent's id.
    fn told_about_session(
        &mut self,
        process: Process,
        key: SessionKey,
        session: &str,
        method: &str,
        line: &Bytes,
        out: &mut Batch,
    ) {
        let is_update = method == "session/update";
        let update = is_update.then(|| str_at(line, &["params", "update", "sessionUpdate"]));
        let update = update.flatten();
        if let Some(kind) = &update
            && classify_update(kind) == UpdateClass::NotAsked
        {
            return out.note(process.host, &format!("skipped a `{kind}`, which nobody asked for"));
        }
        let child = match update.as_deref() {
            Some("subagent_update") => match self.announce_child(process.slot, key, line, out) {
                Ok(child) => child,
                Err(reason) => {
                    let text = format!("skipped a `subagent_update`: {reason}");
                    return out.note(process.host, &text);
                }
            },
            _ => None,
        };
        let line = self.sessions.to_public_id(key, line.clone());
        let is_list = is_update && update.is_none();
        if let Some(lines) = is_list.then(|| each_update(&line)).flatten() {
            for line in lines {
                self.told_about_session(process, key, session, method, &line, out);
            }
            return;
        }
        if self.session(key).row.children.contains_key(session) {
            self.child_told(key, line, out);
        } else if is_update {
            self.on_update(key, update.as_deref(), line, out);
        } else {
            self.append(key, EventKind::Extension, line, None, out);
        }
        if let Some(child) = child {
            self.deliver_parked(process, child, out);
        }
    }

    /// Keeps a line for an unknown session while an open request may name that session; drops it otherwise.
    fn park(&mut self, process: Process, session: Cow<'_, str>, line: &Bytes, out: &mut Batch) {
        if let Some(bytes) = self.adoption_goes_on(process, &session) {
            if bytes + line.len() > HISTORY_BYTES {
                return self.adoption_too_long(process, &session, out);
            }
        } else if !self.may_park(process, line.len()) {
            if let Some(parked) = self.slot_mut(process.slot).parked.get_mut(&*session) {
                parked.cut();
            }
            let text = format!("skipped a line for the unknown session `{session}`");
            return out.note(process.host, &text);
        }
        let session = session.into_owned();
        let parked = &mut self.slot_mut(process.slot).parked;
        parked.entry(session.clone()).or_default().push(line.clone());
        out.records.push(Record::Parked { host: process.host, session, line: line.clone() });
    }

    /// Returns whether bytes of a possibly new session can be kept.
    fn may_park(&self, process: Process, len: usize) -> bool {
        let of_new =
            |(id, _): &(&String, &Parked)| self.requests.adoption_ask(process.host, id).is_none();
        let parked = self.processes[&process.slot].parked.iter().filter(of_new);
        let bytes: usize = parked.map(|(_, parked)| parked.bytes()).sum();
        self.requests.may_name_session(process.host) && bytes + len <= PARKED_BYTES
    }

    /// A `session/update` of a session, with its public id; `update` is its kind.
    fn on_update(&mut self, key: SessionKey, update: Option<&str>, line: Bytes, out: &mut Batch) {
        let class = update.map_or(UpdateClass::Other, classify_update);
        let is_user = update == Some("user_message_chunk");
        if matches!(self.session(key).state, State::Restoring(_)) {
            return self.update_while_restoring(key, line, class, is_user, out);
        }
        let now = self.now;
        let session = self.session_mut(key);
        session.activity.heard(now);
        if let Some(running) = session.running.as_mut() {
            running.last_line = now;
            let mut said = running.echo.iter().chain(&running.added);
            // For a turn that an earlier daemon began, acpd knows only the hash of the last text sent.
            let is_last = || !running.whole && is_said(&line, session.row.last_prompt);
            if is_user && (said.any(|said| is_echo(&line, said)) || is_last()) {
                return;
            }
            let first = is_work(class).then(|| running.touch(now)).flatten();
            if matches!(class, UpdateClass::Conversation | UpdateClass::ToolCall) {
                running.echo = None;
                self.sessions.note_spoken(key);
            }
            self.tally.first_update(first);
            self.note_said(key, update, &line);
            self.note_failure(key, &line);
        } else if self.sessions.is_late_replay(key, class, is_user) {
            return;
        }
        self.journal_update(key, line, class, out);
    }

    /// Appends an update of the agent and remembers what of it counts later.
    pub(crate) fn journal_update(
        &mut self,
        key: SessionKey,
        mut line: Bytes,
        class: UpdateClass,
        out: &mut Batch,
    ) {
        let kind = match class {
            UpdateClass::Conversation | UpdateClass::Other => EventKind::Update,
            UpdateClass::ToolCall => {
                self.note_tool(key, &line);
                EventKind::Update
            }
            UpdateClass::Live | UpdateClass::NotAsked => EventKind::Live,
            UpdateClass::State(state_key) => {
                self.note_state(key, state_key, &line, out);
                if state_key == StateKey::Info {
                    line = self.sessions.with_title_that_counts(key, line);
                    line = self.sessions.merge_info(key, line);
                }
                EventKind::State(state_key)
            }
        };
        self.append(key, kind, line.clone(), None, out);
        if class == UpdateClass::ToolCall {
            self.mirror_terminals(key, &line, out);
            self.call_told(key, &line, out);
        }
    }

    /// Updates the current work of the turn from the agent's texts and thoughts.
    fn note_said(&mut self, key: SessionKey, update: Option<&str>, line: &Bytes) {
        let kind = match update {
            Some("agent_message_chunk") => DoingKind::Writing,
            Some("agent_thought_chunk") => DoingKind::Thinking,
            _ => return,
        };
        let now = self.now;
        self.session_mut(key).activity.says(kind, now, line);
    }

    fn note_tool(&mut self, key: SessionKey, line: &Bytes) {
        let Some(params) = raw_at(line, &["params"]) else { return };
        let Ok(head) = UpdateHead::from_raw(params) else { return };
        let Some(id) = &head.tool_call_id else { return };
        let is_told = self.sessions.note_call(key, id, update_in(line));
        let now = self.now;
        self.session_mut(key).follow_tool(id, &head, is_told, now);
    }

    fn note_state(&mut self, key: SessionKey, state_key: StateKey, line: &Bytes, out: &mut Batch) {
        let restoring = matches!(self.session(key).state, State::Restoring(_));
        match state_key {
            StateKey::Mode if !restoring => {
                let mode = str_at(line, &["params", "update", "currentModeId"])
                    .or_else(|| str_at(line, &["params", "update", "modeId"]));
                if let Some(mode) = mode.filter(|mode| mode.len() <= LONGEST_ID) {
                    self.session_mut(key).note_mode(mode.into_owned());
                }
            }
            StateKey::Options => {
                let options = raw_at(line, &["params", "update", "configOptions"]);
                self.sessions.take_values(key, None, options, !restoring, out);
            }
            StateKey::Info => self.sessions.note_title(key, line),
            StateKey::Usage => self.note_usage(key, line, out),
            StateKey::Mode | StateKey::Plan | StateKey::Commands => {}
        }
    }

    fn agent_answered(
        &mut self,
        process: Process,
        why: Purpose,
        line: &Bytes,
        outcome: Outcome<'_>,
        out: &mut Batch,
    ) {
        let result = match outcome {
            Outcome::Result(result) => Some(result),
            Outcome::Error(error) => {
                let code = Some(ErrorObject::from_raw(error).code);
                self.log_failure(process.slot, why.session(), why.what(), code, out);
                None
            }
        };
        match why {
            Purpose::Initialize => self.agent_initialized(process.slot, outcome, out),
            Purpose::NewSession(new) => self.session_made(process, new, line, outcome, out),
            Purpose::List { to, wanted } => self.listed(process.slot, &to, &wanted, result, out),
            Purpose::Adopt(adoption) => self.adopted(process, &adoption, line, outcome, out),
            Purpose::Prompt { session } => self.prompt_answered(session, line, outcome, out),
            Purpose::Abandoned { .. } => self.abandoned_ended(process.slot, out),
            Purpose::AuthStatus => {
                // One that fails says nothing.
                if let Some(result) = result {
                    self.auth_status_told(process.slot, result, out);
                }
            }
            Purpose::LoginAgain => self.logged_in_again(process.slot, result.is_some(), out),
            Purpose::Restore { session, .. } => self.restore_answered(session, outcome, out),
            Purpose::Steer(steer) => self.steered(process.slot, *steer, line, outcome, out),
            Purpose::Preset { session, preset } => {
                self.preset_answered(session, &preset, &outcome, out);
            }
            Purpose::Relay { to, session, method, params } => {
                self.relay_answered(process.slot, to, session, &method, params, line, outcome, out);
            }
            Purpose::GivenUp { .. } | Purpose::Title { .. } | Purpose::Farewell => {}
        }
    }

    pub(crate) fn log_failure(
        &self,
        slot: SlotId,
        session: Option<SessionKey>,
        what: &str,
        code: Option<i64>,
        out: &mut Batch,
    ) {
        let session = session.and_then(|key| self.sessions.get(&key));
        out.effects.push(Effect::Failure {
            agent: self.processes[&slot].profile.clone(),
            session: session.map(|session| session.row.public_id.clone()),
            what: what.to_owned(),
            code,
        });
    }

    /// The answer to a client's `session/new` or `session/fork`.
    fn session_made(
        &mut self,
        process: Process,
        new: NewSession,
        line: &Bytes,
        outcome: Outcome<'_>,
        out: &mut Batch,
    ) {
        let unusable = |text| Fault::new(Reason::AgentProtocol, text);
        let result = match outcome {
            Outcome::Error(error) => {
                return self.new_session_refused(process.slot, new, line, error, out);
            }
            Outcome::Result(result) => result,
        };
        match NewSessionResult::from_raw(result) {
            Err(error) => {
                let method = new.method();
                let text = format!("the agent's answer to `{method}` cannot be used: {error}");
                self.refuse(&new.to, &unusable(text), out);
            }
            Ok(made) if !self.claim_id(process.slot, &made.session_id, out) => {
                let text = format!("the agent gave the id `{}` to two sessions", made.session_id);
                self.refuse(&new.to, &unusable(text), out);
            }
            Ok(made) => self.open_made_session(process, new, &made, line, out),
        }
    }

    /// The agent makes no session: the next process is asked the same, or the client gets the error.
    fn new_session_refused(
        &mut self,
        slot: SlotId,
        new: NewSession,
        line: &Bytes,
        error: &RawValue,
        out: &mut Batch,
    ) {
        let error = ErrorObject::from_raw(error);
        if self.note_refusal(slot, new.method(), &error, out) != Refusal::Renewed {
            let line = self.for_client(slot, &new.to, line);
            return self.respond(&new.to, None, line, out);
        }
        if new.fork.is_some() {
            return self.fork_again(new, out);
        }
        let new = NewSession { params: undeclared(&new.params), ..new };
        let waiting = Waiting { to: new.to.clone(), what: WaitFor::New(new) };
        self.slot_mut(slot).waiting.push(waiting);
    }

    /// A session that the agent has made belongs to acpd and to its client.
    fn open_made_session(
        &mut self,
        process: Process,
        new: NewSession,
        made: &NewSessionResult<'_>,
        line: &Bytes,
        out: &mut Batch,
    ) {
        self.note_success(process.slot, new.method(), out);
        let key = self.adopt_new(process.slot, &new, &made.session_id, out);
        if let Some(point) = &new.fork {
            self.begin_forked(key, point, out);
        }
        self.sessions.take_values(key, made.modes, made.config_options, true, out);
        let mut line = self.for_client(process.slot, &new.to, line);
        let row = &self.session(key).row;
        if row.public_id != row.agent_id {
            let id = json!(row.public_id).to_string();
            line = set_member(&line, &["result", "sessionId"], id.as_bytes());
        }
        let to = new.to;
        if new.fork.is_some() {
            // Where it begins to follow, for a client that comes back before it has the answer.
            self.tell_cursor(to.client, key, out);
        }
        self.respond(&to, Some(key), line, out);
        self.attach(to.client, key, acpd_api::Role::Controller, None, ReadStyle::Resume, out);
        for text in new.notices {
            self.notice(key, "warning", &text, out);
        }
        if new.fork.is_none() {
            self.note_default_mode(key);
            self.preset(key, made.modes, made.config_options, out);
        }
        if let Some(point) = &new.fork {
            self.drop_replay_of_fork(key, point.session);
        }
        self.deliver_parked(process, self.session(key).row.agent_id.clone(), out);
    }

    /// Reads the lines that were parked for a session, which acpd knows now.
    pub(crate) fn deliver_parked(&mut self, process: Process, agent_id: String, out: &mut Batch) {
        let Some(mut parked) = self.slot_mut(process.slot).parked.remove(&agent_id) else { return };
        let gone = Record::Unparked { host: process.host, session: Some(agent_id.clone()) };
        out.records.push(gone);
        for line in parked.take().0 {
            // Only notifications about a session are parked.
            if let Some(key) = self.sessions.routed(process.slot, &agent_id)
                && let Ok(Message::Notification { method, .. }) = acp_wire::parse(&line)
            {
                self.told_about_session(process, key, &agent_id, &method, &line, out);
            }
        }
    }

    /// Drops all parked lines once no open request can name a session any more.
    pub(crate) fn drop_parked(&mut self, process: Process, out: &mut Batch) {
        if self.requests.may_name_session(process.host) {
            return;
        }
        let parked = std::mem::take(&mut self.slot_mut(process.slot).parked);
        if !parked.is_empty() {
            out.records.push(Record::Unparked { host: process.host, session: None });
        }
        for (session, parked) in parked {
            let count = parked.lines().len();
            out.note(
                process.host,
                &format!("skipped {count} lines for the unknown session `{session}`"),
            );
        }
    }

    /// The answer to a client's relayed request.
    #[expect(clippy::too_many_arguments, reason = "the parts of one answered request")]
    fn relay_answered(
        &mut self,
        slot: SlotId,
        to: Requester,
        session: Option<SessionKey>,
        method: &str,
        params: Option<Bytes>,
        line: &Bytes,
        outcome: Outcome<'_>,
        out: &mut Batch,
    ) {
        match outcome {
            Outcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                if self.note_refusal(slot, method, &error, out) == Refusal::Renewed {
                    return self.refuse(&to, &renewed_fault(), out);
                }
            }
            Outcome::Result(result) => {
                match method {
                    "authenticate" => {
                        let params = params.as_deref().unwrap_or_default();
                        let with = str_at(params, &["methodId"]).map(Cow::into_owned);
                        self.authenticated(slot, with, out);
                    }
                    "logout" => self.logged_out(slot, out),
                    "auth/status" => self.auth_status_told(slot, result, out),
                    _ => {}
                }
                if let Some(key) = session.filter(|key| self.sessions.contains_key(key)) {
                    self.setting_changed(key, to.client, method, params.as_deref(), result, out);
                }
            }
        }
        let line = self.for_client(slot, &to, line);
        let line = match session.filter(|key| self.sessions.contains_key(key)) {
            Some(key) => self.sessions.to_public_id_in_error(key, line),
            None => line,
        };
        self.respond(&to, session, line, out);
    }

    /// An agent's response as this client gets it: its own id, no options that it did not say it can
    /// show, and the way to log in when that is what the agent wants. What a client that is away can
    /// show is known when it comes back.
    pub(crate) fn for_client(&self, slot: SlotId, to: &Requester, line: &Bytes) -> Bytes {
        let mut line = with_one_outcome(&set_id(line, &to.id));
        let here = self.clients.get(&to.client);
        if here.is_some_and(|client| !client.view.boolean_options) {
            line = without_boolean_options(&line, &["result", "configOptions"]);
        }
        let error = raw_at(&line, &["error"]).map(ErrorObject::from_raw);
        if error.is_some_and(|error| {
            self.processes.login_source(slot, "", &error, &self.config).is_some()
        }) {
            let data =
                ErrorData::new(Reason::NeedsLogin).with_hint(self.processes.login_hint(slot));
            // The agent's text there is not overwritten.
            let own = locate(&line, &["error", "data"]).map(|at| line[at.start]);
            if own.is_none_or(|first| matches!(first, b'{' | b'n')) {
                let data = json!(data).to_string();
                line = set_member(&line, &["error", "data", NAMESPACE], data.as_bytes());
            }
        }
        line
    }

    /// A line of an agent was over the limit and is gone; who waits for it must not hang.
    fn line_skipped(&mut self, process: Process, head: &Bytes, len: u64, out: &mut Batch) {
        let limit = self.config.line_limit;
        out.note(
            process.host,
            &format!("skipped a line of {len} bytes, over the limit of {limit}"),
        );
        let fault = Fault::new(
            Reason::LineTooLong,
            format!("the agent's answer of {len} bytes is over the limit of {limit}"),
        )
        .hint("raise `line_limit` under `[daemon]` in the configuration");
        let text = format!("a line of {len} bytes is over the limit of {limit}");
        let refusal = ErrorObject::new(code::INVALID_REQUEST, text);
        let said = Head::of(head);
        self.line_lost(process, &said, &fault, refusal, out);
        if said.has_method
            && let Some(session) = head_text(head, b"\"sessionId\":")
            && let Some(key) = self.sessions.routed(process.slot, session)
        {
            let session_id = self.session(key).row.public_id.clone();
            let skipped = Skipped { session_id: session_id.into(), bytes: len, limit };
            let line = build::notification(method::SKIPPED, &skipped);
            self.append(key, EventKind::Notice, line, None, out);
        }
    }

    /// The answer to a request has come and cannot be had: who waits for it must not hang.
    fn answer_lost(&mut self, slot: SlotId, why: Purpose, fault: &Fault, out: &mut Batch) {
        self.log_failure(slot, why.session(), why.what(), None, out);
        let error = fault.object();
        match why {
            Purpose::Initialize => {
                let error = to_raw_value(&error).unwrap_or_default();
                self.agent_initialized(slot, Outcome::Error(&error), out);
            }
            Purpose::Prompt { session } => {
                let line = build::error(&Id::from(0), &error);
                if let Ok(Message::Response { outcome, .. }) = acp_wire::parse(&line) {
                    self.prompt_answered(session, &line, outcome, out);
                }
            }
            Purpose::NewSession(new) => self.refuse(&new.to, fault, out),
            Purpose::Relay { to, .. } => self.refuse(&to, fault, out),
            Purpose::Steer(steer) => self.refuse(&steer.to, fault, out),
            Purpose::List { to, wanted } => self.listed(slot, &to, &wanted, None, out),
            Purpose::Adopt(adoption) => self.refuse_adoption(&adoption, fault, out),
            Purpose::Restore { session, .. } => {
                self.timers.clear(crate::timers::Timer::Restore(session));
                self.restore_failed(session, fault.data.reason, &fault.message, out);
            }
            Purpose::Abandoned { .. } => self.abandoned_ended(slot, out),
            Purpose::Preset { session, .. } => self.wake_session(session, out),
            Purpose::LoginAgain => self.logged_in_again(slot, false, out),
            Purpose::GivenUp { .. }
            | Purpose::AuthStatus
            | Purpose::Title { .. }
            | Purpose::Farewell => {}
        }
    }

    /// Consequences of the end of any request; `had_parked`: lines may have been parked for it.
    fn request_ended(&mut self, process: Process, id: &Id, had_parked: bool, out: &mut Batch) {
        if had_parked {
            self.drop_parked(process, out);
        }
        if self.processes.contains_key(&process.slot) {
            self.check_idle(process.slot, out);
        }
        self.forget_questions_about(id, out);
    }
}

/// The lines of an older form of updates, `updates` with a list, each with its one `update`.
fn each_update(line: &Bytes) -> Option<Vec<Bytes>> {
    let list = raw_at(line, &["params", "updates"])?;
    if locate(line, &["params", "update"]).is_some() {
        return None;
    }
    let updates: Vec<&RawValue> = serde_json::from_str(list.get()).ok()?;
    let line = remove_member(line, &["params", "updates"]);
    let one = |update: &RawValue| set_member(&line, &["params", "update"], update.get().as_bytes());
    Some(updates.into_iter().map(one).collect())
}

/// Returns whether the text of a line, which may be empty, is a part of `said`: some agents echo the prompt
/// in pieces, and acpd has journalled it already.
fn is_echo(line: &[u8], said: &str) -> bool {
    let text = lossy_at(line, &["params", "update", "content", "text"]);
    text.is_some_and(|text| said.contains(text.trim()))
}

/// Returns whether a line repeats the message with this hash.
fn is_said(line: &[u8], said: u64) -> bool {
    let text = lossy_at(line, &["params", "update", "content", "text"]);
    text.is_some_and(|text| hash(&text) == said)
}

/// The plain string after a key in the head of a line that is not complete.
fn head_text<'a>(head: &'a [u8], key: &[u8]) -> Option<&'a str> {
    let rest = after(head, key)?.strip_prefix(b"\"")?;
    let end = rest.iter().position(|b| *b == b'"')?;
    std::str::from_utf8(&rest[..end]).ok()
}

fn after<'a>(head: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let at = head.windows(key.len()).position(|window| window == key)?;
    Some(head[at + key.len()..].trim_ascii_start())
}
