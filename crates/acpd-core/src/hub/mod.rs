//! The hub: it owns all machines and is stepped by inputs. Each file here gathers facts for a machine, or is a
//! sequence in which several take part. The constructor is in `recover.rs`.

/// The surroundings of a machine that handles an input.
macro_rules! cx {
    ($hub:ident, $out:ident) => {
        Cx {
            now: $hub.now,
            config: &$hub.config,
            ids: &mut $hub.ids,
            timers: &mut $hub.timers,
            out: $out,
            events: Vec::new(),
        }
    };
}

/// Lets a machine handle an input, and the others react to its events. Returns what its method returns.
macro_rules! step {
    ($hub:ident.$machine:ident.$method:ident($($argument:expr),* $(,)?), $out:ident) => {{
        let mut cx = cx!($hub, $out);
        let result = $hub.$machine.$method(&mut cx, $($argument),*);
        let events = cx.take_events();
        drop(cx);
        $hub.route(events, $out);
        result
    }};
}

mod clients;
mod hook;
mod names;
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
mod unwritten;
mod watch;

use std::collections::BTreeMap;

use acpd_api::TurnState;

use crate::budget::Budget;
use crate::clients::Clients;
use crate::cx::Cx;
use crate::ids::{ClientId, HostId, IdSource, SessionKey, Time};
use crate::input::{Batch, ClientEvent, HostEvent, Input};
use crate::mcp::client_servers::{CallEnd, ClientServers};
use crate::process::slot::Slot;
use crate::process::table::Processes;
use crate::profile::Config;
use crate::questions::Questions;
use crate::record::{Dormant, PromptKeyRow, Record};
use crate::requests::Requests;
use crate::retention::Looks;
use crate::services::AgentServices;
use crate::session::State;
use crate::session::table::Sessions;
use crate::shutdown::Shutdown;
use crate::store_health::StoreHealth;
use crate::tally::Tally;
use crate::timers::{Timer, Timers};
use crate::watch::Watch;

/// All state of the daemon. See the crate's documentation.
#[derive(Debug)]
pub struct Hub {
    now: Time,
    config: Config,
    ids: IdSource,
    processes: Processes,
    sessions: Sessions,
    clients: Clients,
    questions: Questions,
    services: AgentServices,
    client_servers: ClientServers,
    requests: Requests,
    budget: Budget,
    /// Outcomes of prompts with an idempotency key.
    prompt_keys: BTreeMap<(SessionKey, String), PromptKeyRow>,
    looks: Looks,
    timers: Timers,
    store_health: StoreHealth,
    shutdown: Shutdown,
    watch: Watch,
    tally: Tally,
}

impl Hub {
    /// Feeds one input. Records and effects are added to `out`; [`Hub::seal`] completes the batch.
    pub fn handle(&mut self, now: Time, input: Input, out: &mut Batch) {
        let before = self.now;
        self.now = before.max(now);
        if self.store_health.is_failing() && self.now > before {
            // Deadlines stand still; one that is set meanwhile stands still from then on.
            let passed = self.now.since(before);
            self.timers.delay(passed);
            self.clients.wait_longer(passed);
        }
        match input {
            Input::Client(client, event) => self.on_client(client, event, out),
            Input::Host(host, event) => self.on_host(host, event, out),
            Input::Slept { time } => self.processes.on_slept(time),
            Input::LoginSeen { agent } => self.on_login_seen(&agent, out),
            Input::Served { request, result } => self.on_served(request, result, out),
            Input::DirectoryFound { question, exists } => {
                self.on_directory_found(question, exists, out);
            }
            Input::Summary { session, text } => self.on_summary(session, text, out),
            Input::Measured { question, sizes } => self.on_measured(question, sizes, out),
            Input::TerminalEnded { terminal, end } => self.on_terminal_ended(terminal, end, out),
            Input::TerminalSeen { terminal, tail } => self.on_terminal_seen(terminal, tail, out),
            Input::StoreFailing { reason, hint } => self.store_health.fails(self.now, reason, hint),
            Input::StoreWorks => self.store_health.works(),
            Input::Stop => self.begin_shutdown(out),
            Input::Tick => self.on_tick(out),
        }
        self.settle(out);
    }

    fn on_client(&mut self, client: ClientId, event: ClientEvent, out: &mut Batch) {
        match event {
            ClientEvent::Opened(origin) => {
                self.clients.connect(client, origin);
            }
            ClientEvent::DefaultFound(agent) => {
                if self.config.default_is_found {
                    self.config.default_agent = agent;
                }
            }
            ClientEvent::Lines(lines) => {
                for body in lines {
                    self.on_client_line(client, body, out);
                    self.settle(out);
                }
            }
            ClientEvent::Lagged => {
                self.clients.on_lagged(client, |key| self.sessions[&key].head);
            }
            ClientEvent::Drained => self.on_drained(client, out),
            ClientEvent::ReadDone { session, upto } => {
                self.on_read_done(client, session, upto, out);
            }
            ClientEvent::RowsWritten => self.watch.written(client),
            ClientEvent::Closed => step!(self.clients.on_closed(client), out),
        }
    }

    fn on_host(&mut self, host: HostId, event: HostEvent, out: &mut Batch) {
        match event {
            HostEvent::CredentialsGood { left } => {
                self.processes.on_credentials_good(host, self.now.after(left));
            }
            HostEvent::Started { pid, start } => {
                step!(self.processes.on_started(host, pid, start), out);
            }
            HostEvent::Refused(error) => step!(self.processes.on_refused(host, error), out),
            HostEvent::Adopted { pid, start, end } => {
                step!(self.processes.on_adopted(host, (pid, start), end), out);
            }
            HostEvent::Lost { reason } => step!(self.processes.on_lost(host, &reason), out),
            HostEvent::Output(frames) => {
                for frame in frames {
                    self.on_host_line(host, frame, out);
                    self.settle(out);
                }
            }
            HostEvent::Written { chunk } => self.processes.on_written(host, chunk, out),
            HostEvent::ServersLeftOut { request, servers } => {
                self.on_servers_left_out(host, &request, servers, out);
            }
            HostEvent::Exited { ending, stderr } => {
                step!(self.processes.on_exited(host, &ending, &stderr), out);
            }
            HostEvent::Left(left) => step!(self.processes.on_leftovers(host, &left), out),
            HostEvent::Gone => step!(self.processes.on_gone(host), out),
        }
    }

    /// Does what the last line, or another event, has made possible.
    fn settle(&mut self, out: &mut Batch) {
        self.answer_new_watchers(out);
        self.settle_names(out);
        self.settle_budget(out);
        self.next_logins(out);
        self.start_queued(out);
        self.restore_queued(out);
    }

    /// Completes a batch: rows that changed, and the output that it commits.
    pub fn seal(&mut self, out: &mut Batch) {
        self.note_touched();
        let changed = self.sessions.take_changed();
        out.records.extend(changed.into_iter().map(|row| Record::Session(Box::new(row))));
        self.tell_watchers(out);
        self.processes.commit_read(out);
        // While the store fails, a batch that changes nothing confirms no lines to clients: a confirmation is
        // a record, too, and these would pile up.
        if !self.store_health.is_failing() || !out.records.is_empty() {
            self.clients.commit_received(out);
        }
    }

    /// Returns whether an agent works on a prompt without waiting for a person.
    pub fn is_working(&self) -> bool {
        let mut sessions = self.sessions.iter();
        sessions.any(|(key, session)| {
            session.turn_state(self.questions.are_open(*key)) == TurnState::Working
        })
    }

    /// Returns the time of the next [`Input::Tick`]. `None` while the store fails: acpd reads no
    /// peers then, so none is late.
    pub fn deadline(&self) -> Option<Time> {
        self.timers.next().filter(|_| !self.store_health.is_failing())
    }

    fn on_tick(&mut self, out: &mut Batch) {
        if self.store_health.is_failing() {
            return;
        }
        while let Some(timer) = self.timers.pop_due(self.now) {
            match timer {
                Timer::Slot(id) if self.processes.contains_key(&id) => {
                    self.on_slot_timer(id, out);
                }
                Timer::Idle(id) if self.processes.contains_key(&id) => self.on_idle(id, out),
                Timer::Restore(key) if self.sessions.contains_key(&key) => {
                    self.on_restore_timer(key, out);
                }
                Timer::Cancel(key) if self.sessions.contains_key(&key) => {
                    self.on_cancel_timeout(key, out);
                }
                Timer::Stall(key) if self.sessions.contains_key(&key) => {
                    self.on_stall_timer(key, out);
                }
                Timer::Sleep(key) if self.sessions.contains_key(&key) => {
                    self.on_sleep_timer(key, out);
                }
                Timer::Limit(key) if self.sessions.contains_key(&key) => self.limit_over(key, out),
                Timer::Asked(ask) => self.on_asked_timer(ask, out),
                Timer::Terminal(terminal) => {
                    self.services.on_terminal_deadline(&mut cx!(self, out), terminal);
                }
                Timer::Lent(call) => {
                    self.end_server_calls(&CallEnd::Deadline(call), out);
                }
                Timer::Lifecycle => self.on_lifecycle_timer(out),
                Timer::Retention => self.on_retention_timer(out),
                Timer::Resumable => self.on_resumable_timer(out),
                // The end of the batch tells them.
                Timer::Watch
                | Timer::Slot(_)
                | Timer::Idle(_)
                | Timer::Restore(_)
                | Timer::Cancel(_)
                | Timer::Limit(_)
                | Timer::Sleep(_)
                | Timer::Stall(_) => {}
            }
        }
    }

    /// Number of this daemon on its journal; the upper half of every number that it issues.
    pub fn incarnation(&self) -> u64 {
        self.ids.boot()
    }

    /// Agents that were given up because they failed again and again, one entry for each process
    /// slot; for tests.
    #[doc(hidden)]
    pub fn crash_loops(&self) -> impl Iterator<Item = &str> {
        self.processes.values().filter(|slot| slot.is_crash_loop()).map(Slot::profile)
    }

    /// Sessions that have not settled: being restored, with work but not live, or wanted back but parked; for
    /// tests.
    #[doc(hidden)]
    pub fn unsettled(&self) -> Vec<String> {
        let stuck = self.sessions.values().filter(|session| {
            let busy = !session.queue.is_empty() || session.running.is_some();
            let restoring = matches!(session.state, State::Restoring(_));
            restoring
                || (busy && !matches!(session.state, State::Live))
                || (session.eager && session.row.rest == Dormant::Parked)
        });
        stuck.map(|session| format!("{}: {:?}", session.row.public_id, session.state)).collect()
    }
}
