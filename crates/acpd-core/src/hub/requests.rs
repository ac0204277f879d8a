//! Requests to agents: records until they are answered, given up, or lost with the process.

use std::mem::replace;

use acp_wire::{Id, build};
use serde::Serialize;

use crate::hub::Hub;
use crate::ids::{HostId, SessionKey, SlotId};
use crate::input::Effect;
use crate::mcp::{Brought, put_names};
use crate::process::slot::{Directory, Waiting};
use crate::profile::Profile;
use crate::record::{AskedRow, Purpose, Row, RowId};
use crate::requests::Asked;
use crate::timers::Timer;

/// Relayed requests that agents answer at once. Others may wait for a person, or are unknown.
const SOON: [&str; 2] = ["session/set_mode", "session/set_config_option"];

/// Time for an agent to list its sessions (ms).
const LIST_TIME: u64 = 3_000;

impl Hub {
    /// Registers a request and returns its id. The caller writes the request in the same batch.
    pub(crate) fn ask(&mut self, host: HostId, why: Purpose) -> u64 {
        let id = self.cx.ids.issue();
        self.watch_answer(id, host, &why);
        self.requests.ask(id, host, why, self.cx.now);
        self.save_asked(id);
        id
    }

    /// Sends a request to the process of a slot. Returns its id, or `None` without a usable process.
    pub(crate) fn request(
        &mut self,
        slot: SlotId,
        why: Purpose,
        method: &str,
        params: &impl Serialize,
    ) -> Option<u64> {
        self.request_with(slot, why, method, params, &Brought::default())
    }

    /// Like [`Hub::request`], with MCP servers that the daemon resolves.
    pub(crate) fn request_with(
        &mut self,
        slot: SlotId,
        why: Purpose,
        method: &str,
        params: &impl Serialize,
        servers: &Brought,
    ) -> Option<u64> {
        let ask = self.ask(self.processes[&slot].usable_host()?, why);
        let line = build::request(&Id::issued(ask), method, params);
        let line = put_names(&line, servers, self.processes.translator(slot).is_some());
        self.processes.write_named(&mut self.cx, slot, line);
        Some(ask)
    }

    /// Closes the request that this response answers, and returns its purpose.
    pub(crate) fn answered(&mut self, host: HostId, id: &Id) -> Option<Purpose> {
        let issued = id.as_issued()?;
        self.requests.get(issued).filter(|asked| asked.host == host)?;
        let why = self.requests.asked.remove(&issued)?.purpose;
        let meant = Id::issued(issued);
        if *id != meant && id.as_u64().is_none() {
            self.cx.note(host, &format!("answered request {meant} under the id {id}"));
        }
        self.cx.timers.clear(Timer::Asked(issued));
        self.cx.delete(RowId::Asked(issued));
        Some(why)
    }

    /// Returns the purposes of the dropped requests, oldest first.
    pub(crate) fn drop_requests_of(&mut self, host: HostId) -> Vec<Purpose> {
        let gone = self.requests.asked.extract_if(.., |_, asked| asked.host == host);
        let gone: Vec<_> = gone.collect();
        for (id, _) in &gone {
            self.cx.timers.clear(Timer::Asked(*id));
            self.cx.delete(RowId::Asked(*id));
        }
        gone.into_iter().map(|(_, asked)| asked.purpose).collect()
    }

    /// Stops waiting for an answer and returns the purpose.
    pub(crate) fn give_up_ask(&mut self, ask: u64) -> Option<(HostId, Purpose)> {
        self.cx.timers.clear(Timer::Asked(ask));
        let asked = self.requests.asked.get_mut(&ask)?;
        // The agent may still replay this session.
        let session = match &asked.purpose {
            Purpose::Adopt(adoption) => Some(adoption.id.clone()),
            Purpose::Restore { session, .. } => Some(self.sessions[session].row.agent_id.clone()),
            _ => None,
        };
        let was = (asked.host, replace(&mut asked.purpose, Purpose::GivenUp { session }));
        self.save_asked(ask);
        Some(was)
    }

    pub(crate) fn give_up_restore_step(&mut self, key: SessionKey) -> bool {
        let ask = self.requests.restore_ask(key);
        ask.and_then(|ask| self.give_up_ask(ask)).is_some()
    }

    /// Lets the answer to a prompt count only as the end of the turn.
    pub(crate) fn abandon_prompt(&mut self, key: SessionKey) {
        let session = self.session(key).row.agent_id.clone();
        let is_inserted = |asked: &Asked| match asked.purpose {
            Purpose::Prompt { session, inserted } if session == key => Some(inserted),
            _ => None,
        };
        let mut asked = self.requests.asked.iter_mut();
        let found = asked.find_map(|(ask, asked)| Some((ask, is_inserted(asked)?, asked)));
        let Some((ask, inserted, asked)) = found else { return };
        let (ask, host, why) = (*ask, asked.host, Purpose::Abandoned { session, inserted });
        asked.purpose = why.clone();
        self.watch_answer(ask, host, &why);
        self.save_asked(ask);
    }

    pub(crate) fn save_asked(&mut self, id: u64) {
        if let Some(&Asked { host, ref purpose, .. }) = self.requests.get(id) {
            let sender = purpose.requester().and_then(|to| self.clients.sender(to));
            let what = purpose.as_record(sender);
            self.cx.put(Row::Asked(AskedRow { id, host, what }));
        }
    }

    pub(crate) fn log_failure(
        &mut self,
        slot: SlotId,
        session: Option<SessionKey>,
        what: &str,
        code: Option<i64>,
    ) {
        let session = session.and_then(|key| self.sessions.get(&key));
        self.cx.send(Effect::Failure {
            agent: self.processes[&slot].profile().to_owned(),
            session: session.map(|session| session.row.public_id.clone()),
            what: what.to_owned(),
            code,
        });
    }

    /// Sets the time for an answer, if the purpose of the request has a limit.
    pub(crate) fn watch_answer(&mut self, ask: u64, host: HostId, why: &Purpose) {
        let Some(slot) = self.processes.slot_of(host) else { return };
        let Profile { restore_timeout, cancel_timeout, stall_notice, .. } = *self.profile_of(slot);
        // Without `stall_notice` nothing is noticed.
        let notice = Some(stall_notice).filter(|time| *time > 0);
        let time = match why {
            Purpose::List { .. } => Some(LIST_TIME),
            Purpose::Adopt(_) | Purpose::Preset { .. } | Purpose::LoginAgain => {
                Some(restore_timeout)
            }
            Purpose::Abandoned { .. } => Some(cancel_timeout),
            Purpose::NewSession(_) | Purpose::Steer(_) => notice,
            Purpose::Relay { method, .. } if SOON.contains(&method.as_str()) => notice,
            _ => None,
        };
        if let Some(time) = time {
            self.cx.timers.set(Timer::Asked(ask), self.cx.now.after(time));
        }
    }

    pub(crate) fn find_directory_for(&mut self, slot: SlotId, mut waiting: Waiting) {
        let Some(cwd) = waiting.what.cwd().map(str::to_owned) else { return };
        let question = self.cx.ids.issue();
        waiting.directory = Directory::Asked(question);
        let agent = self.processes[&slot].profile().to_owned();
        self.processes.wait(slot, waiting);
        self.cx.send(Effect::FindDirectory { question, agent, cwd });
    }

    /// Keeps messages on their way to the turn from beginning another one.
    pub(crate) fn take_back_steers(&mut self, key: SessionKey) {
        for ask in self.requests.take_back_steers(key) {
            self.save_asked(ask);
        }
    }
}
