//! Start from the journal of the last daemon.
//!
//! ```text
//!  snapshot ─▶ what is known of each process ─▶ Adopt ─▶ Adopted ─▶ its output since, in order
//!                                                 └────▶ Lost ────▶ as if it had crashed
//! ```
//!
//! A process of the last daemon may still run, with its turns and questions: it does not know that
//! the daemon died. So sessions, turns and requests keep their state from disk until it is known
//! whether the process is there. Undispatched prompts stay queued. Clients with a token are waited
//! for; the others are gone.
//!
//! Architecture invariant: the hub sends nothing again. The shim knows which lines are missing.

use std::mem::swap;

use acp_wire::{Id, Message};
use acpd_api::TurnState;
use bytes::Bytes;

use crate::budget::Budget;
use crate::clients::Clients;
use crate::cx::Cx;
use crate::hub::Hub;
use crate::ids::{Requester, SessionKey, SlotId, Time};
use crate::input::Batch;
use crate::mcp::client_servers::{ClientServers, MESSAGE};
use crate::process::slot::{Asker, StopWhy};
use crate::process::table::Processes;
use crate::profile::Config;
use crate::prompt::prompt_text;
use crate::questions::Questions;
use crate::record::{
    AskedRow, Desired, EventKind, InteractionRow, PromptMessage, Purpose, Record, RowId, Sender,
    SessionRow, SessionState, Snapshot, Steer, TurnRow, TurnStage,
};
use crate::requests::Requests;
use crate::services::{AgentServices, RequestKind};
use crate::session::entities::Messages;
use crate::session::table::Sessions;
use crate::session::turn::{Queued, Running};
use crate::session::work::Work;
use crate::session::{Session, State};
use crate::tally::Tally;
use crate::watch::Watch;

impl Hub {
    /// Starts from a snapshot and adopts the processes of earlier daemons
    /// ([`Effect::Adopt`](crate::Effect::Adopt)). [`Hub::seal`] completes the batch.
    pub fn recover(mut snapshot: Snapshot, config: Config, now: Time, out: &mut Batch) -> Hub {
        let boot = snapshot.boot + 1;
        let mut hub = Hub {
            budget: Budget::new(&snapshot.spent, config.budget.as_ref()),
            cx: Cx::new(now, config, boot),
            processes: Processes::new(snapshot.agents, snapshot.auth, boot),
            sessions: Sessions::new(SessionKey(snapshot.last_session)),
            clients: Clients::recovered(snapshot.generation, snapshot.clients, now),
            naming: Vec::new(),
            prompt_keys: snapshot.prompt_keys,
            questions: Questions::new(snapshot.remembered.into_values().collect()),
            services: AgentServices::default(),
            client_servers: ClientServers::default(),
            requests: Requests::default(),
            watch: Watch::default(),
            tally: Tally::default(),
        };
        hub.cx.record(Record::Boot { boot });
        hub.cx.out.durable = true;
        let known: Vec<String> = hub.processes.all_known().map(|(name, _)| name.clone()).collect();
        for profile in &known {
            hub.take_quirks(profile);
        }
        hub.clients.wait_for_late(&mut hub.cx.timers);
        let mut slots = Vec::new();
        for state in snapshot.hosts.into_values() {
            let stopping = state.row.stopping;
            slots.push((hub.processes.recover(&mut hub.cx, state), stopping));
        }
        for (key, state) in snapshot.sessions {
            hub.recover_session(key, state);
        }
        for row in snapshot.asked.into_values() {
            hub.recover_asked(row);
        }
        for (place, row) in snapshot.turns {
            hub.recover_turn(row, snapshot.prompts.remove(&place));
        }
        for row in snapshot.interactions.into_values() {
            hub.recover_interaction(row);
            hub.route();
        }
        for (slot, stopping) in slots {
            hub.resume_stop(slot, stopping);
            hub.route();
        }
        hub.start_needed();
        for slot in hub.processes.keys().copied().collect::<Vec<_>>() {
            hub.watch_sleep(slot);
        }
        hub.arm_lifecycle(hub.cx.now);
        hub.watch_retention();
        hub.processes.watch_logins(&mut hub.cx);
        hub.route();
        swap(&mut hub.cx.out, out);
        hub
    }

    fn recover_session(&mut self, key: SessionKey, mut state: SessionState) {
        let row = &mut state.row;
        if row.removed.is_some() {
            return self.sessions.keep_aside(state, None);
        }
        if let Some(slot) = row.host.and_then(|host| self.processes.slot_of(host)) {
            if let Some(translator) = self.processes.translator(slot) {
                let row = &state.row;
                row.open_tools.iter().for_each(|call| translator.restore_call(&row.agent_id, call));
                translator.restore_background(&row.agent_id, row.background.clone());
                translator.restore_mode(&row.agent_id, row.mode.as_deref(), &row.options);
            }
            self.sessions.insert(Session::recovered(state, slot, State::Live));
            return self.sessions.route(key);
        }
        let slot = self.processes.slot_for(key, &row.agent, &self.cx.config, self.cx.now);
        row.host = None;
        row.children.clear();
        row.background.clear();
        self.sessions.insert(Session::recovered(state, slot, State::Dormant));
    }

    fn recover_asked(&mut self, row: AskedRow) {
        let AskedRow { id, host, what: mut why } = row;
        if let Some(to) = why.requester_mut() {
            let sender: Option<Sender> = to.clone().into();
            let back = sender.and_then(|sender| self.clients.requester(sender));
            *to = back.unwrap_or_else(Requester::nobody);
        }
        let slot = self.processes.slot_of(host);
        match (&why, slot) {
            (Purpose::Prompt { session, .. } | Purpose::Preset { session, .. }, _)
                if !self.sessions.contains_key(session) =>
            {
                why = Purpose::Farewell;
            }
            (Purpose::Restore { session, .. }, _) => {
                let key = *session;
                // The progress is unknown: start over, and take no replayed line for news.
                let session = self.sessions.get_mut(key).map(|session| {
                    session.doubtful = Some(host);
                    session.eager = true;
                    session.row.agent_id.clone()
                });
                why = Purpose::GivenUp { session };
            }
            (Purpose::GivenUp { session: Some(id) }, Some(slot)) => {
                let agent = self.processes[&slot].profile();
                let is_it = |row: &SessionRow| row.agent == agent && row.agent_id == *id;
                // A live session may have given up a setting only, which replays nothing.
                let rests = self.sessions.awake_mut().filter(|known| known.row.host.is_none());
                for session in rests.filter(|known| is_it(&known.row)) {
                    session.doubtful = Some(host);
                }
            }
            _ => {}
        }
        self.watch_answer(id, host, &why);
        self.recover_dialect(slot, id, &why);
        self.requests.ask(id, host, why, self.cx.now);
    }

    /// The answer means what the request meant.
    fn recover_dialect(&mut self, slot: Option<SlotId>, id: u64, why: &Purpose) {
        let agent_id = |key| self.sessions.get(&key).map(|session| session.row.agent_id.clone());
        let (method, session) = match why {
            Purpose::Adopt(adoption) => ("session/load", Some(adoption.id.clone())),
            Purpose::Abandoned { session, .. } => ("session/prompt", Some(session.clone())),
            why => (why.what(), why.session().and_then(agent_id)),
        };
        let Some(translator) = slot.and_then(|slot| self.processes.translator(slot)) else {
            return;
        };
        let id = Id::issued(id);
        translator.asked(id.clone(), method, session);
        if let Purpose::Prompt { inserted: true, .. } | Purpose::Abandoned { inserted: true, .. } =
            why
        {
            translator.inserted(&id);
        }
    }

    fn recover_turn(&mut self, row: TurnRow, line: Option<Bytes>) {
        let senders = row.senders.into_iter();
        let senders = senders.filter_map(|sender| self.clients.requester(sender)).collect();
        let Some(session) = self.sessions.get_mut(row.session) else { return };
        let is_known = line.is_some();
        let line = line.unwrap_or_default();
        let prompt = Queued { ticket: row.ticket, senders, line, at: row.at };
        match row.state {
            TurnStage::Queued if is_known => session.queue.push_back(prompt),
            TurnStage::Dispatched { chunk, message, open, .. } => {
                let (number, text) = (session.row.prompts, prompt_text(&prompt.line));
                session.told = match message {
                    Some(PromptMessage::Own(_)) => TurnState::Working,
                    _ => session.row.agent_state,
                };
                session.messages = Messages::recovered(open);
                session.running = Some(Box::new(Running {
                    added: self.requests.steers(row.session).map(Steer::text).collect(),
                    work: Work::recovered(row.cancelling),
                    whole: false,
                    message,
                    // Senders that want no more than an answer have it, and are no longer named.
                    is_promised: prompt.senders.is_empty(),
                    ..Running::new(prompt, (number, chunk), text, self.cx.now, false)
                }));
                self.arm_stall(row.session);
                if row.cancelling.is_some() {
                    self.arm_cancel(row.session);
                }
            }
            TurnStage::Queued => {}
        }
    }

    fn recover_interaction(&mut self, row: InteractionRow) {
        let line = row.line.clone();
        let (id, method) = match acp_wire::parse(&line) {
            Ok(Message::Request { id, method, .. }) => (id, method),
            // The last update of a tool call that an earlier daemon mirrored.
            Ok(Message::Notification { .. }) => {
                self.cx.delete(RowId::Interaction(row.id));
                if let Some(key) = row.session.filter(|key| self.sessions.contains_key(key)) {
                    self.append(key, EventKind::Update, row.line, None);
                }
                return;
            }
            _ => return self.cx.delete(RowId::Interaction(row.id)),
        };
        if let Some(kind) = RequestKind::of(&method) {
            return self.recover_agent_request(row, (id, kind));
        }
        if method == MESSAGE {
            return self.on_server_call(row, false);
        }
        let is_held = match row.session.map(|key| self.sessions.get(&key)) {
            Some(Some(session)) => session.row.host == Some(row.host),
            Some(None) => return self.cx.delete(RowId::Interaction(row.id)),
            None => true,
        };
        self.questions.recover(&mut self.cx, row, is_held);
    }

    fn resume_stop(&mut self, slot: SlotId, stopping: bool) {
        let profile = self.processes[&slot].profile().to_owned();
        if !self.cx.config.agents.contains_key(&profile) {
            self.begin_stop(slot, StopWhy::ByPerson, "it is not configured any more");
        } else if stopping {
            let down = self.processes.known(&profile).row.desired == Desired::Down;
            let why = if down { StopWhy::ByPerson } else { StopWhy::Restart };
            self.begin_stop(slot, why, "it was being stopped");
        }
    }

    fn start_needed(&mut self) {
        let mut up: Vec<String> = self.cx.config.agents.keys().cloned().collect();
        up.retain(|name| self.processes.known(name).row.desired == Desired::Up);
        for name in up {
            self.processes.shared(&name, self.cx.now);
        }
        let mut slots: Vec<SlotId> = self.processes.keys().copied().collect();
        slots.sort_by_key(|slot| self.processes.urgency(*slot, self.demand(*slot)));
        for slot in slots {
            let demand = self.demand(slot);
            let wanted = demand.is_some() || self.processes.is_needed(&self.cx, slot, demand);
            if wanted && let Err(fault) = self.need_agent(slot, Asker::Policy) {
                for key in self.sessions.of_slot(slot) {
                    self.session_mut(key).eager = false;
                    self.fail_queue(key, &fault);
                }
            }
        }
    }
}
