//! Sessions that an agent has just made.

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::acp::NewSessionResult;
use acp_wire::{ErrorObject, Outcome, remove_member, set_member};
use acpd_api::Reason;
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::auth::Refusal;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{Process, SessionKey, SlotId};
use crate::input::ReadStyle;
use crate::mcp::server_list::undeclared;
use crate::process::slot::{WaitFor, Waiting};
use crate::record::{Counter, Dormant, Record, Replayable, SessionRow, Used};
use crate::requests::purpose::NewSession;
use crate::session::{Session, State, numbered};

impl Hub {
    pub(crate) fn session_made(
        &mut self,
        process: Process,
        new: NewSession,
        line: &Bytes,
        outcome: Outcome<'_>,
    ) {
        let unusable = |text| Fault::new(Reason::AgentProtocol, text);
        let result = match outcome {
            Outcome::Error(error) => {
                return self.new_session_refused(process.slot, new, line, error);
            }
            Outcome::Result(result) => result,
        };
        match NewSessionResult::from_raw(result) {
            Err(error) => {
                let method = new.method();
                let text = format!("the agent's answer to `{method}` cannot be used: {error}");
                self.refuse(&new.to, &unusable(text));
            }
            Ok(made) if !self.claim_id(process.slot, &made.session_id) => {
                let text = format!("the agent gave the id `{}` to two sessions", made.session_id);
                self.refuse(&new.to, &unusable(text));
            }
            Ok(made) => self.open_made_session(process, new, &made, line),
        }
    }

    pub(crate) fn new_session_refused(
        &mut self,
        slot: SlotId,
        new: NewSession,
        line: &Bytes,
        error: &RawValue,
    ) {
        let error = ErrorObject::from_raw(error);
        if self.note_refusal(slot, new.method(), &error) != Refusal::Renewed {
            let line = self.for_client(slot, &new.to, line);
            return self.respond(&new.to, None, line);
        }
        if new.fork.is_some() {
            return self.fork_again(new);
        }
        let new = NewSession { params: undeclared(&new.params), ..new };
        let waiting = Waiting { to: new.to.clone(), what: WaitFor::New(new) };
        self.processes.wait(slot, waiting);
    }

    pub(crate) fn open_made_session(
        &mut self,
        process: Process,
        new: NewSession,
        made: &NewSessionResult<'_>,
        line: &Bytes,
    ) {
        self.note_success(process.slot, new.method());
        let key = self.adopt_new(process.slot, &new, &made.session_id);
        if let Some(point) = &new.fork {
            self.begin_forked(key, point);
        }
        self.sessions.take_values(&mut self.cx, key, made.modes, made.config_options, true);
        let mut line = self.for_client(process.slot, &new.to, line);
        let row = &self.session(key).row;
        if row.public_id != row.agent_id {
            let id = json!(row.public_id).to_string();
            line = set_member(&line, &["result", "sessionId"], id.as_bytes());
        }
        let to = new.to;
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
        if new.fork.is_none() {
            self.note_default_mode(key);
            self.preset(key, made.modes, made.config_options);
        }
        if let Some(point) = &new.fork {
            self.drop_replay_of_fork(key, point.session);
        }
        let id = self.session(key).row.agent_id.clone();
        self.deliver_parked(process, &id);
    }

    pub(crate) fn adopt_new(
        &mut self,
        slot: SlotId,
        new: &NewSession,
        agent_id: &str,
    ) -> SessionKey {
        let agent = self.processes[&slot].profile().to_owned();
        let key = self.sessions.next_key();
        // Some agents count from 0 after each start: the second "0" gets another public id.
        let taken = self.sessions.is_taken(&agent, agent_id);
        let public_id = if taken { numbered(agent_id, key) } else { agent_id.to_owned() };
        let mcp_servers = acp_wire::locate(&new.params, &["mcpServers"])
            .map(|range| Bytes::copy_from_slice(&new.params[range]));
        let row = SessionRow {
            key,
            agent,
            public_id,
            agent_id: agent_id.to_owned(),
            name: new.name.clone(),
            cwd: new.cwd.clone(),
            params: remove_member(&new.params, &["mcpServers"]),
            host: self.processes[&slot].host().map(|host| host.id),
            rest: Dormant::Parked,
            reason: None,
            restore: None,
            mode: None,
            options: BTreeMap::new(),
            open_tools: BTreeSet::new(),
            children: BTreeMap::new(),
            title: None,
            own_title: None,
            info: None,
            archived: false,
            removed: None,
            client_meta: self.offer_of_maker(slot, new.to.client),
            prompts: 0,
            heard: false,
            last_prompt: 0,
            replayable: Replayable::default(),
            last_outcome: None,
            usage: Used { counter: Counter::NewProcess(None), ..Used::default() },
            created: self.cx.now,
            updated: self.cx.now,
        };
        self.cx.record(Record::Session(Box::new(row.clone())));
        if let Some(servers) = &mcp_servers {
            self.cx.record(Record::Secret { session: key, mcp_servers: servers.clone() });
        }
        self.cx.out.durable = true;
        let held_since = self.cx.now;
        let session = Session { mcp_servers, held_since, ..Session::new(row, slot, State::Live) };
        if self.processes[&slot].dedicated().is_some() {
            self.processes.dedicate(&mut self.cx, slot, key);
        }
        self.sessions.insert(session);
        self.sessions.route(key);
        self.watch_sleep(slot);
        self.clients.note_made(new.to.client, key);
        self.arm_lifecycle_for(key);
        key
    }
}
