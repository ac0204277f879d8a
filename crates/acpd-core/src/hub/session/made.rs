//! Sessions that an agent has just made, or that acpd takes over (`adopt.rs`).

use acp_wire::{ErrorObject, Outcome, remove_member, set_member};
use acpd_api::Reason;
use bytes::Bytes;
use serde_json::json;

use crate::fault::{Fault, Refusal, renewed_fault};
use crate::hub::Hub;
use crate::hub::session::adopt::last_prompt;
use crate::ids::{ClientId, NOBODY, Process, SessionKey, SlotId};
use crate::input::ReadStyle;
use crate::mcp::undeclared;
use crate::process::slot::{Directory, WaitFor, Waiting};
use crate::record::{Adoption, Counter, NewSession, Row, SessionRow, SessionState, Used};
use crate::session::restore::values_of;
use crate::session::{Session, State, numbered};
use crate::timers::Timer;

impl Hub {
    pub(crate) fn session_made(
        &mut self,
        process: Process,
        new: NewSession,
        line: &Bytes,
        outcome: Outcome<'_>,
    ) {
        let slot = process.slot;
        let result = match outcome {
            Outcome::Result(result) => result,
            Outcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                if self.note_refusal(slot, new.method(), &error) != Refusal::Renewed {
                    let line = self.for_client(slot, &new.to, line);
                    return self.respond(&new.to, None, line);
                }
                if new.fork.is_some() {
                    return self.fork_again(new);
                }
                let new = NewSession { params: undeclared(&new.params), ..new };
                let (to, directory) = (new.to.clone(), Directory::There);
                return self
                    .processes
                    .wait(slot, Waiting { to, what: WaitFor::New(new), directory });
            }
        };
        let made = match self.made_in(slot, new.method(), result) {
            Ok(made) => made,
            Err(text) => return self.refuse(&new.to, &Fault::new(Reason::AgentProtocol, text)),
        };
        self.processes.on_success(&mut self.cx, slot, new.method());
        let (agent_id, name, labels) = (made.session_id.into_owned(), new.name, new.labels);
        let (cwd, params) = (new.cwd, new.params);
        let given = SessionRow { agent_id, name, cwd, params, labels, ..SessionRow::default() };
        let key = self.adopt_new(slot, new.to.client, given);
        if let Some(point) = &new.fork {
            self.begin_forked(key, point);
        }
        let values = (made.modes, made.config_options);
        self.sessions.session_mut(key).take_values(&mut self.cx, values);
        let mut line = self.for_client(slot, &new.to, line);
        let row = &self.session(key).row;
        if row.public_id != row.agent_id {
            let id = json!(row.public_id).to_string();
            line = set_member(&line, &["result", "sessionId"], id.as_bytes());
        }
        let to = new.to;
        line = self.clients.version_of(to.client).opened(line);
        if new.fork.is_some() {
            // A client that comes back must know its place in the journal before it has the answer.
            let journal = self.sessions[&key].journal();
            self.clients.tell_cursor(&mut self.cx, to.client, journal);
        }
        self.respond(&to, Some(key), line);
        self.attach(to.client, key, acpd_api::Role::Controller, None, ReadStyle::Resume);
        for text in new.notices {
            self.notice(key, "warning", &text);
        }
        match &new.fork {
            Some(point) => self.drop_replay_of_fork(key, point.session),
            None => {
                self.note_default_mode(key);
                self.preset(key, values);
            }
        }
        let id = self.session(key).row.agent_id.clone();
        self.deliver_parked(process, &id);
    }

    pub(crate) fn adopted(
        &mut self,
        process: Process,
        adoption: &Adoption,
        line: &Bytes,
        outcome: Outcome<'_>,
    ) {
        let result = match outcome {
            Outcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                if self.note_refusal(process.slot, "session/load", &error) == Refusal::Renewed {
                    return self.refuse_adoption(adoption, &renewed_fault());
                }
                for opener in &adoption.openers {
                    let line = self.for_client(process.slot, &opener.to, line);
                    self.respond(&opener.to, None, line);
                }
                return;
            }
            Outcome::Result(result) => result,
        };
        if !self.claim_id(process.slot, &adoption.id) {
            let text = format!("the agent holds another session under the id `{}`", adoption.id);
            let fault = Fault::new(Reason::AgentProtocol, text);
            return self.refuse_adoption(adoption, &fault);
        }
        self.processes.on_success(&mut self.cx, process.slot, "session/load");
        let (agent_id, cwd) = (adoption.id.clone(), adoption.cwd.clone());
        let params = remove_member(&adoption.params, &["sessionId"]);
        let given = SessionRow { agent_id, cwd, params, ..SessionRow::default() };
        let profile = self.processes[&process.slot].profile().to_owned();
        let was_loaded = self.load_method(&profile, ReadStyle::History).is_some();
        let key = self.adopt_new(process.slot, NOBODY, given);
        // After a late replay the last prompt is unknown, so the next replay has no news.
        let late = self.profile_of(process.slot).late_replay;
        let parked = self.processes.parked(process.slot, &adoption.id).filter(|_| !late);
        let last_prompt = last_prompt(parked.map_or(&[], |parked| parked.lines.as_slice()));
        let row = self.session_mut(key).row.edit();
        // Never create an adopted session again: the agent may have more of it than it has shown.
        row.heard = true;
        row.last_prompt = last_prompt;
        // Cost from before the adoption does not count.
        row.usage = Used::default();
        self.sessions.session_mut(key).take_values(&mut self.cx, values_of(result));
        self.deliver_parked(process, &adoption.id);
        let session = self.session_mut(key);
        // All turns are over, so no call is open.
        session.calls.clear();
        session.row.edit().open_tools.clear();
        if !was_loaded {
            let text = "what was said before acpd took the session over is not shown: the agent cannot load it";
            self.notice(key, "warning", text);
        }
        self.open_adopted(&adoption.openers, key);
        for text in &adoption.notices {
            self.notice(key, "warning", text);
        }
    }

    /// `given`: the session's facts, with the params from the client.
    fn adopt_new(&mut self, slot: SlotId, maker: ClientId, given: SessionRow) -> SessionKey {
        let agent = self.processes[&slot].profile().to_owned();
        let key = self.sessions.next_key();
        // Some agents count from 0 after each start: the second "0" gets another public id.
        let taken = self.sessions.is_taken(&agent, &given.agent_id);
        let public_id = if taken { numbered(&given.agent_id, key) } else { given.agent_id.clone() };
        let mcp_servers = acp_wire::locate(&given.params, &["mcpServers"])
            .map(|range| Bytes::copy_from_slice(&given.params[range]));
        let row = SessionRow {
            key,
            agent,
            public_id,
            params: remove_member(&given.params, &["mcpServers"]),
            host: self.processes[&slot].host().map(|host| host.id),
            client_meta: self.offer_of_maker(slot, maker),
            usage: Used { counter: Counter::NewProcess(None), ..Used::default() },
            created: self.cx.now,
            updated: self.cx.now,
            ..given
        };
        self.cx.put(Row::Session(Box::new(row.clone())));
        if let Some(servers) = &mcp_servers {
            self.cx.put(Row::Secret { session: key, mcp_servers: servers.clone() });
        }
        self.cx.out.durable = true;
        let held_since = self.cx.now;
        let state = SessionState { row, mcp_servers, ..SessionState::default() };
        let session = Session { held_since, ..Session::recovered(state, slot, State::Live) };
        if self.processes[&slot].dedicated.is_some() {
            self.processes.dedicate(&mut self.cx, slot, key);
        }
        self.sessions.insert(session);
        self.sessions.route(key);
        self.watch_sleep(slot);
        self.clients.note_made(maker, key);
        if let Some(at) = self.next_look(self.session(key)) {
            self.cx.timers.advance(Timer::Lifecycle, at);
        }
        key
    }
}
