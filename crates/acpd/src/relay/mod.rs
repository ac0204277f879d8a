//! The relay: drains what is ready, steps the hub, commits, then acts.
//!
//! ```text
//!  clients ─┐                    ┌─▶ store thread ── committed ─┐
//!  hosts ───┼─▶ hub ─▶ batch ────┤                              ▼
//!  time ────┘                    └─▶ pending effects ──▶ clients, hosts, journal reads
//! ```
//!
//! One task owns the hub; nothing else decides anything. While a batch is being committed, the next
//! one grows, so the size of a transaction follows the load.
//!
//! Architecture invariant: the effects of a batch run after its records are committed, and batches
//! in order. `urgent` effects are excepted: they never wait. While the store fails, hosts are held
//! back, and nothing else goes out.

mod commits;
mod effects;
mod hosts;
mod inputs;
mod opening;
mod sinks;
mod trace;

use std::io;
use std::time::Duration;

use acpd_api::Environment;
use acpd_core::ids::{ClientId, HostId};
use acpd_core::record::{Record, Row, RowId};
use acpd_core::{Batch, ClientEvent, HostEvent, Hub, Input};
use acpd_store::{Report, Tidied, Writer};
use acpd_sys::limits;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::commits::{Commits, WriterDied};
use self::hosts::Hosts;
use self::opening::Opening;
use self::sinks::Sinks;
use self::trace::Traces;
use crate::awake::Awake;
use crate::check::Tried;
use crate::clients::FromClient;
use crate::clock::{Clock, SuspendWatch, until};
use crate::credentials::{Credentials, Ready};
use crate::helper_process::Helpers;
use crate::hooks::Hooks;
use crate::host::Agents;
use crate::journal::{Journal, Sizes};
use crate::login_shell::LoginShell;
use crate::logins::Logins;
use crate::search::SearchIndex;
use crate::service::Pulse;
use crate::services::Services;
use crate::signals::{Call, Calls};
use crate::terminals::Terminals;

/// Rounds of one drain; each takes at most one client event and one host event.
const ROUNDS: usize = 256;
/// Client lines in one drain: an answer can be far longer than its question, and lines for a client
/// are counted only when the batch goes out.
const LINES: usize = 1024;
/// Idle time after which unused memory returns to the system.
const IDLE: Duration = Duration::from_secs(5);
/// Longest wait of a daemon that leaves its agents for its last effects.
const LEAVING: Duration = Duration::from_secs(1);

pub struct Readers {
    pub journal: Journal,
    pub index: SearchIndex,
}

#[derive(Debug)]
pub struct Sources {
    pub clients: mpsc::Receiver<(ClientId, FromClient)>,
    pub hosts: mpsc::Receiver<(HostId, HostEvent)>,
    pub reports: mpsc::UnboundedReceiver<Report>,
    pub calls: Calls,
    /// When the service manager expects a sign of life.
    pub pulse: Pulse,
}

#[derive(Debug)]
pub struct Ended {
    pub writer: Writer,
    /// Ends when all connections are closed, after their last lines.
    pub clients: mpsc::Receiver<(ClientId, FromClient)>,
    /// The daemon restarts, with these variables if the configuration names them.
    pub restart: Option<Environment>,
}

pub struct Relay {
    hub: Hub,
    clock: Clock,
    suspend: SuspendWatch,
    agents: Agents,
    commits: Commits,
    readers: Readers,
    services: Services,
    sizes: Sizes,
    /// Figures of work on the journal in idle times.
    tidied: Tidied,
    terminals: Terminals,
    logins: Logins,
    credentials: Credentials,
    /// For hooks, credentials and checks of programs.
    helpers: Helpers,
    /// Results of services, terminals and logins.
    served: mpsc::UnboundedReceiver<Input>,
    hooks: Hooks,
    /// `None` unless configured.
    awake: Option<Awake>,
    tasks: JoinSet<TaskResult>,
    sinks: Sinks,
    traces: Traces,
    hosts: Hosts,
    opening: Opening,
    /// When unused memory is returned; `None` after that.
    idle_at: Option<Instant>,
    end: Option<End>,
    /// A restart follows the end, with the variables of the request.
    restart: Option<Environment>,
}

/// Results that the relay awaits.
enum TaskResult {
    /// The credentials of an agent that is to be started.
    Ready(Ready),
    /// The check of the program for a restart.
    Tried(Tried),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// All agents are gone.
    Done,
    /// Agents continue without a daemon.
    Left,
    /// All agents are ended first.
    Aborted,
}

impl Relay {
    /// Prepares the relay; [`Relay::run`] does the work. `first` has the effects of the hub's
    /// recovery. `open` gets a message when clients are accepted: agents of an earlier daemon are
    /// found, or do not answer.
    pub fn new(
        hub: Hub,
        first: Batch,
        clock: Clock,
        agents: Agents,
        writer: Writer,
        readers: Readers,
        open: oneshot::Sender<()>,
    ) -> io::Result<Relay> {
        let (done, served) = mpsc::unbounded_channel();
        let (reaper, exe) = (&agents.reaper, &agents.exe);
        let daemon = &agents.config.daemon;
        let helpers = Helpers::new(reaper.clone());
        let login_shell = LoginShell::new(daemon.login_shell, agents.managed, exe.clone());
        let mut relay = Relay {
            terminals: Terminals::new(done.clone()),
            services: Services::new(done.clone()),
            sizes: Sizes::new(agents.paths.database(), done.clone())?,
            logins: Logins::new(done),
            served,
            credentials: Credentials::new(helpers.clone(), login_shell),
            hooks: Hooks::new(&agents.config.hooks, helpers.clone()),
            awake: daemon.keep_awake.then(|| Awake::new(reaper.clone())),
            tasks: JoinSet::new(),
            helpers,
            sinks: Sinks::new(daemon),
            hub,
            clock,
            suspend: SuspendWatch::start(),
            agents,
            commits: Commits::new(writer),
            readers,
            tidied: Tidied::default(),
            traces: Traces::default(),
            hosts: Hosts::default(),
            opening: Opening::new(open, &first),
            idle_at: Some(Instant::now() + IDLE),
            end: None,
            restart: None,
        };
        relay.submit(first);
        Ok(relay)
    }

    /// Runs until the hub says that everything is over, or the daemon leaves.
    pub async fn run(mut self, mut from: Sources) -> Ended {
        while self.end.is_none() {
            self.opening.open_if_ready(self.commits.is_empty());
            let (opening, idle) = (self.opening.by(), self.idle_at);
            let mut out = Batch::default();
            let deadline = self.hub.deadline();
            let at = deadline.map(|time| self.clock.instant(time));
            let hosts_may = self.commits.has_room();
            tokio::select! {
                biased;
                report = from.reports.recv() => match report {
                    Some(report) => self.reported(report, &mut from.pulse, &mut out),
                    None => self.writer_died(),
                },
                Some(call) = from.calls.recv() => match call {
                    Call::Stop => self.leave(),
                    Call::Reload => self.try_program(None, Environment::default()),
                },
                () = from.pulse.due() => self.pulse(&mut from.pulse),
                Some((client, event)) = from.clients.recv() => {
                    self.client_event(client, event, &mut out);
                }
                Some((host, event)) = from.hosts.recv(), if hosts_may => {
                    self.host_event(host, event, &mut out);
                }
                Some(Ok(result)) = self.tasks.join_next() => match result {
                    TaskResult::Ready(ready) => self.spawn(ready, &mut out),
                    TaskResult::Tried(tried) => self.tried(tried, &mut out),
                },
                Some(input) = self.served.recv() => self.input(input, &mut out),
                () = until(at) => self.input(Input::Tick, &mut out),
                () = until(opening) => {}
                () = until(idle) => {
                    self.idle_at = None;
                    limits::give_back_unused();
                }
            }
            self.drain(&mut from, hosts_may, &mut out);
            if !out.is_empty() {
                self.idle_at = Some(Instant::now() + IDLE);
            }
            self.hub.seal(&mut out);
            self.submit(out);
        }
        self.wind_down(from).await
    }

    /// Ends what still runs, as the end requires, and closes the connections.
    async fn wind_down(mut self, mut from: Sources) -> Ended {
        match self.end {
            Some(End::Aborted) => self.hosts.end_all(&mut from.hosts).await,
            Some(End::Left) => {
                // The next daemon does the rest.
                tokio::time::timeout(LEAVING, self.last_effects(&mut from)).await.ok();
            }
            Some(End::Done) => self.agents.end_others().await,
            None => {}
        }
        // In parallel: each may wait for processes that do not end.
        let awake = async {
            if let Some(awake) = self.awake {
                awake.end().await;
            }
        };
        tokio::join!(self.helpers.end(), self.terminals.end(), awake);
        // Without their sinks the writers end after their queued lines.
        self.sinks.clear();
        let restart = self.restart.filter(|_| self.end != Some(End::Aborted));
        Ended { writer: self.commits.into_writer(), clients: from.clients, restart }
    }

    /// Ends the daemon only: agents continue under their shims.
    fn leave(&mut self) {
        self.end = self.end.or(Some(End::Left));
        self.hub.write_all();
    }

    /// Takes all other events that are ready, so that one commit covers them.
    fn drain(&mut self, from: &mut Sources, hosts_may: bool, out: &mut Batch) {
        let mut asked = 0;
        for _ in 0..ROUNDS {
            let mut idle = true;
            while let Ok(report) = from.reports.try_recv() {
                self.reported(report, &mut from.pulse, out);
            }
            if asked < LINES
                && let Ok((client, event)) = from.clients.try_recv()
            {
                if let FromClient::Event(ClientEvent::Lines(lines)) = &event {
                    asked += lines.len();
                }
                self.client_event(client, event, out);
                idle = false;
            }
            if hosts_may && let Ok((host, event)) = from.hosts.try_recv() {
                self.host_event(host, event, out);
                idle = false;
            }
            if idle {
                return;
            }
        }
    }

    /// Sends an empty commit through the store, whose report is the sign of life for the service
    /// manager.
    fn pulse(&mut self, pulse: &mut Pulse) {
        if self.commits.is_failing() {
            // The store has answered: it tries again by itself, and reports nothing until it
            // succeeds.
            return pulse.answer();
        }
        pulse.asked = true;
        if let Err(WriterDied) = self.commits.push_nothing() {
            self.writer_died();
        }
    }

    /// Gives a batch to the store, and executes the effects that do not wait for it.
    fn submit(&mut self, mut batch: Batch) {
        let is_about_work = |record: &Record| match record {
            Record::Put(row) => matches!(row, Row::Turn(_) | Row::Interaction(_)),
            Record::Delete(id) => matches!(id, RowId::Turn(..) | RowId::Interaction(_)),
            record => matches!(record, Record::Boot { .. }),
        };
        if let Some(awake) = &mut self.awake
            && batch.records.iter().any(is_about_work)
        {
            awake.set(self.hub.is_working());
        }
        let mut after = Batch::default();
        self.perform_all(std::mem::take(&mut batch.urgent), &mut after);
        match self.commits.push(batch) {
            Ok(effects) => self.perform_all(effects, &mut after),
            Err(WriterDied) => self.writer_died(),
        }
        // Effects can fail at once (a process that cannot be started), which is news for the hub.
        if !after.is_empty() {
            self.hub.seal(&mut after);
            self.submit(after);
        }
    }

    fn writer_died(&mut self) {
        tracing::error!("the thread that writes the journal has died");
        self.end = Some(End::Aborted);
    }

    /// Executes committed effects, without taking new events.
    async fn last_effects(&mut self, from: &mut Sources) {
        while !self.commits.is_empty() {
            let Some(report) = from.reports.recv().await else { return };
            self.reported(report, &mut from.pulse, &mut Batch::default());
        }
    }
}
