//! The hub owns all machines and handles one input at a time. A file here gathers facts for one
//! machine, or is a sequence of several. `recover.rs` has the constructor.
//!
//! ```text
//!  input ─▶ handler ─▶ machine ── events ─▶ route, until no event is left ─▶ settle ─▶ batch
//! ```
//!
//! A handler runs to its end before the reactions to its events, except for closed questions
//! (`react_to_closed`) and where `route` is called in between. No files call each other in a
//! circle: `facts.rs` is the lowest; the answers of agents, the requests of clients and the
//! deadlines are the highest.

mod clients;
mod facts;
mod hook;
mod process;
mod questions;
mod recover;
mod requests;
mod retention;
mod route;
mod services;
mod session;
mod shutdown;
mod status;
mod trace;

use std::collections::BTreeMap;
use std::mem::swap;

use acpd_api::{AuthSource, StoreState, TurnState};

use crate::budget::Budget;
use crate::clients::{Clients, Naming};
use crate::cx::Cx;
use crate::ids::{ClientId, HostId, SessionKey, Time};
use crate::input::{Batch, ClientEvent, HostEvent, Input};
use crate::mcp::client_servers::ClientServers;
use crate::process::slot::Slot;
use crate::process::table::Processes;
use crate::questions::Questions;
use crate::record::{Dormant, PromptKeyRow, Row};
use crate::requests::Requests;
use crate::services::AgentServices;
use crate::session::table::Sessions;
use crate::tally::Tally;
use crate::watch::Watch;

/// All state of the daemon.
#[derive(Debug)]
pub struct Hub {
    cx: Cx,
    processes: Processes,
    sessions: Sessions,
    clients: Clients,
    /// In the order of their requests.
    naming: Vec<Naming>,
    questions: Questions,
    services: AgentServices,
    client_servers: ClientServers,
    requests: Requests,
    budget: Budget,
    prompt_keys: BTreeMap<(SessionKey, String), PromptKeyRow>,
    watch: Watch,
    tally: Tally,
}

impl Hub {
    /// Feeds one input. Records and effects are added to `out`; [`Hub::seal`] completes the batch.
    pub fn handle(&mut self, now: Time, input: Input, out: &mut Batch) {
        swap(&mut self.cx.out, out);
        self.step(now, input);
        debug_assert!(self.cx.is_routed());
        swap(&mut self.cx.out, out);
    }

    fn step(&mut self, now: Time, input: Input) {
        let before = self.cx.now;
        self.cx.now = before.max(now);
        if self.cx.is_failing() && self.cx.now > before {
            // Deadlines stand still, also those set meanwhile.
            let passed = self.cx.now.since(before);
            self.cx.timers.delay(passed);
            self.clients.wait_longer(passed);
        }
        match input {
            Input::Client(client, event) => self.on_client(client, event),
            Input::Host(host, event) => self.on_host(host, event),
            Input::Slept(time) => self.processes.on_slept(time),
            Input::LoginSeen(agent) => {
                if self.processes.auth_state(&agent).wants_login() {
                    self.login_found(&agent, AuthSource::LoginFile);
                }
            }
            Input::Served { request, result } => self.on_served(request, result),
            Input::DirectoryFound { question, exists } => {
                self.on_directory_found(question, exists);
            }
            Input::Summary { session, text } => self.on_summary(session, text),
            Input::Measured { look, sizes } => self.on_measured(look, sizes),
            Input::TerminalEnded { terminal, end } => {
                let row = |key: SessionKey| &*self.sessions[&key].row;
                self.services.on_terminal_end(&mut self.cx, row, terminal, end);
            }
            Input::TerminalSeen { terminal, tail } => {
                let row = |key: SessionKey| &*self.sessions[&key].row;
                self.services.on_terminal_output(&mut self.cx, row, terminal, tail);
            }
            Input::StoreFailing { reason, hint } => {
                let since = match self.cx.store {
                    StoreState::Failing { since, .. } => since,
                    StoreState::Ok => self.cx.now.0,
                };
                let (reason, hint) = (reason.into(), hint.map(Into::into));
                self.cx.store = StoreState::Failing { reason, hint, since };
            }
            Input::StoreWorks => self.cx.store = StoreState::Ok,
            Input::Stop => self.begin_shutdown(),
            Input::Tick => self.on_tick(),
        }
        self.settle();
    }

    fn on_client(&mut self, client: ClientId, event: ClientEvent) {
        match event {
            ClientEvent::Opened(origin) => {
                self.clients.connect(client, origin);
            }
            ClientEvent::DefaultFound(agent) => {
                if self.cx.config.default_is_found {
                    self.cx.config.default_agent = agent;
                }
            }
            ClientEvent::Lines(lines) => {
                for body in lines {
                    self.on_client_line(client, body);
                    self.settle();
                }
            }
            ClientEvent::Lagged => {
                self.clients.on_lagged(client, |key| self.sessions[&key].head);
            }
            ClientEvent::Drained => {
                let journal = |key: SessionKey| self.sessions[&key].journal();
                self.clients.on_drained(&mut self.cx, client, journal);
            }
            ClientEvent::ReadDone { session, upto } => {
                let journal = self.sessions.get(&session).map(|session| session.journal());
                self.clients.on_read_done(&mut self.cx, client, (session, journal), upto);
            }
            ClientEvent::RowsWritten => self.watch.written(client),
            ClientEvent::Closed => self.clients.on_closed(&mut self.cx, client),
        }
    }

    fn on_host(&mut self, host: HostId, event: HostEvent) {
        match event {
            HostEvent::CredentialsGood { left } => {
                self.processes.on_credentials_good(host, self.cx.now.after(left));
            }
            HostEvent::Started { pid, start } => {
                self.processes.on_started(&mut self.cx, host, pid, start);
            }
            HostEvent::Refused(error) => self.processes.on_refused(&mut self.cx, host, error),
            HostEvent::Adopted { pid, start, end } => {
                self.processes.on_adopted(&mut self.cx, host, (pid, start), end);
            }
            HostEvent::Lost { reason } => self.processes.on_lost(&mut self.cx, host, &reason),
            HostEvent::Output(frames) => {
                for frame in frames {
                    self.on_host_line(host, frame);
                    self.settle();
                }
            }
            HostEvent::Written { chunk } => self.processes.on_written(&mut self.cx, host, chunk),
            HostEvent::ServersLeftOut { request, servers } => {
                self.on_servers_left_out(host, &request, servers);
            }
            HostEvent::Exited { ending, stderr } => {
                self.processes.on_exited(&mut self.cx, host, &ending, &stderr);
            }
            HostEvent::Left(left) => self.processes.on_leftovers(&mut self.cx, host, &left),
            HostEvent::Gone => self.processes.on_gone(&mut self.cx, host),
        }
    }

    /// Starts work that the last line or event has made possible. Called for each line, mostly for
    /// nothing: a part runs only if something waits for it.
    fn settle(&mut self) {
        type Part = (fn(&Hub) -> bool, fn(&mut Hub));
        let parts: [Part; 5] = [
            (|hub| !hub.naming.is_empty(), Hub::settle_names),
            (|hub| hub.cx.config.budget.is_some(), Hub::settle_budget),
            (|hub| hub.processes.has_waiting(), Hub::next_logins),
            (|hub| hub.processes.has_queued(), Hub::start_queued),
            (|hub| hub.sessions.has_restores(), Hub::restore_queued),
        ];
        self.route();
        for (is_wanted, part) in parts {
            if is_wanted(self) {
                part(self);
                self.route();
            }
        }
    }

    /// Completes a batch with the changed rows and the offsets of read output.
    pub fn seal(&mut self, out: &mut Batch) {
        swap(&mut self.cx.out, out);
        self.complete();
        debug_assert!(self.cx.is_routed());
        swap(&mut self.cx.out, out);
    }

    fn complete(&mut self) {
        self.note_touched();
        let (clients, questions) = (&self.clients, &self.questions);
        let is_needed = |key| clients.is_attended(key) || questions.are_open(key);
        for row in self.sessions.take_changed(is_needed) {
            self.cx.put(Row::Session(Box::new(row)));
        }
        self.tell_watchers();
        self.processes.commit_read(&mut self.cx);
        if self.cx.is_pressing() {
            self.clients.commit_received(&mut self.cx);
            self.cx.release_records();
        } else if !self.cx.out.records.is_empty() || self.clients.has_counted() {
            self.cx.hold_records();
        }
    }

    /// Returns whether an agent works on a prompt without waiting for a person.
    pub fn is_working(&self) -> bool {
        let mut sessions = self.sessions.awake();
        sessions.any(|(key, session)| {
            session.turn_state(self.questions.are_open(key)) == TurnState::Working
        })
    }

    /// Time of the next [`Input::Tick`]; `None` while the store fails and acpd reads no peers.
    pub fn deadline(&self) -> Option<Time> {
        self.cx.timers.next().filter(|_| !self.cx.is_failing())
    }

    /// Agents in a crash loop, one entry per process slot; for tests.
    #[doc(hidden)]
    pub fn crash_loops(&self) -> impl Iterator<Item = &str> {
        self.processes.values().filter(|slot| slot.is_crash_loop()).map(Slot::profile)
    }

    /// Sessions that are restoring, busy but not live, or eager but parked; for tests.
    #[doc(hidden)]
    pub fn unsettled(&self) -> Vec<String> {
        let stuck = self.sessions.values().filter(|session| {
            let busy = !session.queue.is_empty() || session.running.is_some();
            let restoring = session.is_restoring();
            restoring
                || (busy && !session.is_live())
                || (session.eager && session.row.rest == Dormant::Parked)
        });
        stuck.map(|session| format!("{}: {:?}", session.row.public_id, session.state)).collect()
    }
}
