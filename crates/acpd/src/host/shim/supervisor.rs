//! Supervises one shim, from its start or its adoption to the removal of its directory.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::sync::Once;
use std::time::Duration;

use acp_wire::Frame;
use acpd_core::ids::HostId;
use acpd_core::record::HostState;
use acpd_core::{HostEvent, SpawnError, StopStep, ToHost};
use acpd_shim::frame::{Hello, Status};
use acpd_shim::launch;
use acpd_shim::orphans::Orphans;
use acpd_shim::shim_dir::{Identity, Leftover, Record, ShimDir};
use acpd_sys::process::{ProcessId, StopSignal};
use acpd_sys::tree::Tree;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::link::{End, Link};
use super::output::{self, Gap, Output};
use super::stdin::Stdin;
use super::{Command, Place, Start};
use crate::clock::until;
use crate::crash;
use crate::host::reaper::KnownAgent;

/// First and longest pause between attempts to reach a shim.
const AGAIN: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(500));
/// Silence of a shim after which it is logged.
const SILENT: Duration = Duration::from_secs(1);
/// Time for a shim to kill its agent; then it is killed with the agent.
const PATIENCE: Duration = Duration::from_secs(3);
const LAST: Duration = Duration::from_secs(5);
/// Predicate for the end of an agent that was not observed.
const DEATH: &str = "ended with the death of its shim process";
const BOUND: &str = "agents are in a Job of Windows that nobody may leave, and end with it";
/// Bytes per read of leftover output.
const PIECE: u64 = 64 << 10;

/// The last report to the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reported {
    /// None: the shim of an earlier daemon is being looked for.
    Nothing,
    Running,
    /// The leader has ended, or is lost.
    Ended,
    /// Nothing is left.
    Gone,
}

enum Found {
    Reached(Link, Hello),
    Dead,
    Dropped,
}

pub(super) struct Supervisor {
    pub(super) host: HostId,
    pub(super) shim_dir: ShimDir,
    pub(super) place: Place,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) stdin: Stdin,
    /// Lines that the last daemon may have sent with other bytes.
    remade: BTreeSet<u64>,
    pub(super) output: Output,
    written: u64,
    /// The furthest step that was ordered.
    pub(super) step: Option<StopStep>,
    /// In milliseconds; 0: no limit.
    pub(super) lease: u64,
    /// When the shim is killed: set by a kill order, postponed while the shim talks or is not read.
    pub(super) force_at: Option<Instant>,
    /// The log says already that the shim cannot be verified, and so not killed.
    unverified: bool,
    pub(super) forget: bool,
    pub(super) dismiss: bool,
    pub(super) reported: Reported,
    /// Output or input was lost: the agent is being killed, and its further output is discarded.
    pub(super) given_up: bool,
    leader: ProcessId,
}

impl Supervisor {
    pub(super) fn new(
        host: HostId,
        marker: &str,
        place: Place,
    ) -> (mpsc::UnboundedSender<Command>, Supervisor) {
        let (requests, commands) = mpsc::unbounded_channel();
        let supervisor = Supervisor {
            host,
            shim_dir: ShimDir::of(&place.state, marker),
            commands,
            stdin: Stdin::new(),
            remade: BTreeSet::new(),
            output: Output::from(0, false, place.line_limit),
            written: 0,
            step: None,
            lease: place.idle_lease,
            force_at: None,
            unverified: false,
            forget: false,
            dismiss: false,
            reported: Reported::Nothing,
            given_up: false,
            leader: ProcessId::default(),
            place,
        };
        (requests, supervisor)
    }

    pub(super) async fn start(mut self, start: Start) {
        crash::point("before-spawn");
        let shim_dir = self.shim_dir.clone();
        let Start { exe, launch, deadline, hint } = start;
        let state = self.place.state.clone();
        // Off the runtime, because it takes some milliseconds.
        let started = tokio::task::spawn_blocking(move || {
            let refused =
                |message: String, permanent, hint| SpawnError { message, hint, permanent };
            if let Err(error) = ShimDir::create(&state, &launch.marker) {
                let hint = "check the free space and the permissions there".to_owned();
                return Err(refused(with_sources(&error), false, Some(hint)));
            }
            let mut command = std::process::Command::new(exe);
            command.arg("shim").arg(shim_dir.path());
            launch::start(command, &launch, deadline).map_err(|error| {
                // The next attempt must not meet the processes of this one.
                while !end_now(&shim_dir) {}
                refused(with_sources(&error), error.is_permanent(), Some(way_out(&error, hint)))
            })
        });
        let started = started.await.unwrap_or_else(|_| {
            let message = "the agent's shim could not be started".to_owned();
            Err(SpawnError { message, hint: None, permanent: false })
        });
        match started {
            Ok(started) => {
                crash::point("after-spawn");
                self.leader = started.agent.unwrap_or(self.leader);
                self.reported = Reported::Running;
                if started.is_bound {
                    // Once for all agents.
                    static SAID: Once = Once::new();
                    SAID.call_once(|| tracing::warn!("{BOUND}"));
                }
                let ProcessId { pid, start } = self.leader;
                self.report(HostEvent::Started { pid, start }).await;
                self.supervise().await;
            }
            Err(error) => {
                self.place.reaper.reap_orphans();
                self.report(HostEvent::Refused(error)).await;
            }
        }
    }

    pub(super) async fn adopt(mut self, adopt: HostState, remade: BTreeSet<u64>) {
        self.remade = remade;
        self.leader = ProcessId { pid: adopt.row.pid, start: adopt.row.start };
        self.output = Output::from(adopt.row.offset, adopt.row.inside, self.place.line_limit);
        for (chunk, line) in adopt.outbox {
            self.stdin.push(chunk, line);
        }
        if self.shim_dir.path().is_dir() {
            return self.supervise().await;
        }
        // The agent was never started, was a child of a daemon of 0.2 or earlier, or the journal is
        // a restored copy.
        self.reported = Reported::Ended;
        let reason = "its process is gone".to_owned();
        self.report(HostEvent::Lost { reason }).await;
        // Pid 0 if the leader is unknown: then only the mark finds its processes.
        let (marker, leader) = (self.shim_dir.marker().to_owned(), self.leader);
        let events = self.place.events.clone();
        self.place.reaper.sweep(self.host, move || Orphans::marked(&marker, leader), events);
    }

    async fn supervise(mut self) {
        let mut wait = AGAIN.0;
        loop {
            match self.connect().await {
                Found::Dropped => return,
                Found::Dead => return self.bury().await,
                Found::Reached(link, hello) => {
                    let (before, force_at) = (self.progress(), self.force_at);
                    if let Err(lost) = self.greeted(&hello).await {
                        self.give_up(lost).await;
                    }
                    match self.talk(link).await {
                        End::Dropped => return,
                        End::Lost(_) if self.progress() != before => wait = AGAIN.0,
                        End::Lost(error) => {
                            let next = (wait * 2).min(AGAIN.1);
                            if next == AGAIN.1 && wait < next {
                                let host = self.host.0;
                                tracing::warn!(host, %error, "the connection to an agent's shim breaks again and again");
                            }
                            // A connection without progress is like silence.
                            self.force_at = force_at.or(self.force_at);
                            tokio::select! {
                                () = until(self.force_at) => self.force().await,
                                () = tokio::time::sleep(wait) => {}
                            }
                            wait = next;
                        }
                        End::Dismissed => return self.send_away().await,
                        End::Forgotten => return self.clean_up().await,
                    }
                }
            }
        }
    }

    /// Does not change in a connection that achieves nothing.
    fn progress(&self) -> (u64, u64, u64, Reported) {
        (self.output.received(), self.output.acked(), self.written, self.reported)
    }

    /// Tries to reach the shim until it answers or is dead.
    async fn connect(&mut self) -> Found {
        let since = Instant::now();
        let mut silent = false;
        let mut wait = AGAIN.0;
        loop {
            while let Ok(command) = self.commands.try_recv() {
                self.take(command);
            }
            match self.shim_dir.verify() {
                Identity::Dead => return Found::Dead,
                Identity::Alive(record) => {
                    let is_command = self.place.command.is_some();
                    self.place.reaper.know_shim(self.host, record.shim, is_command);
                    match Link::open(&record, self.output.acked()).await {
                        Ok((link, hello)) => return Found::Reached(link, hello),
                        Err(error) => tracing::debug!(host = self.host.0, %error, "no answer"),
                    }
                }
                Identity::Unverifiable => {}
            }
            if !silent && since.elapsed() >= SILENT {
                silent = true;
                tracing::warn!(
                    host = self.host.0,
                    shim_dir = %self.shim_dir.path().display(),
                    "the shim of an agent does not answer; waiting for it"
                );
            }
            let force = self.force_at;
            tokio::select! {
                command = self.commands.recv(), if !self.forget => match command {
                    Some(command) => self.take(command),
                    None => return Found::Dropped,
                },
                () = until(force) => self.force().await,
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(AGAIN.1),
            }
        }
    }

    pub(super) fn take(&mut self, command: Command) {
        let order = match command {
            Command::Tell(order) => order,
            Command::Dismiss => return self.dismiss = true,
        };
        match order {
            ToHost::Write { chunk, line } => self.stdin.push(chunk, line),
            ToHost::Ack(offset) => self.output.ack(offset),
            ToHost::Lease(busy) => {
                let Place { idle_lease, busy_lease, .. } = self.place;
                self.lease = if busy { busy_lease } else { idle_lease };
            }
            ToHost::Forget => self.forget = true,
            ToHost::Stop(step) => self.stop(step),
            ToHost::Note(text) => self.place.log.line(&format!("acpd: {text}")),
        }
    }

    fn stop(&mut self, step: StopStep) {
        self.step = self.step.max(Some(step));
        if step == StopStep::Kill {
            self.force_at.get_or_insert(Instant::now() + PATIENCE);
        }
    }

    /// Handles the shim's hello. Fails if data is lost: `output` must never be. `input` may be the
    /// rest of a line with MCP servers, which only the last daemon knew (`acpd_core::mcp`).
    async fn greeted(&mut self, hello: &Hello) -> Result<(), &'static str> {
        crash::point("after-hello");
        self.be_patient();
        self.output.start_at(hello.base).map_err(|Gap| "output")?;
        if self.reported == Reported::Nothing && hello.at > 0 && self.remade.contains(&hello.chunk)
        {
            return Err("input");
        }
        if hello.agent != 0 {
            self.leader = ProcessId { pid: hello.agent, start: hello.start };
            let (marker, leader) = (self.shim_dir.marker().to_owned(), self.leader);
            let agent = KnownAgent { marker, leader, release: hello.release };
            self.place.reaper.know_agent(self.host, agent);
        }
        self.stdin.resume(hello.chunk, hello.at, hello.credit);
        if self.reported == Reported::Nothing {
            self.reported = Reported::Running;
            let ProcessId { pid, start } = self.leader;
            self.report(HostEvent::Adopted { pid, start, end: hello.end }).await;
        }
        if let Some(event) = self.wrote(hello.written) {
            self.report(event).await;
        }
        Ok(())
    }

    pub(super) fn wrote(&mut self, chunk: u64) -> Option<HostEvent> {
        if chunk <= self.written {
            return None;
        }
        self.written = chunk;
        self.stdin.written(chunk);
        Some(HostEvent::Written { chunk })
    }

    /// Ends an agent of which nothing that follows can be trusted.
    async fn give_up(&mut self, what: &str) {
        tracing::error!(
            host = self.host.0,
            what,
            "a part of an agent's input or output is missing; ending the agent"
        );
        self.stop(StopStep::Kill);
        let event = match self.reported {
            Reported::Nothing => {
                HostEvent::Lost { reason: format!("a part of its {what} was lost") }
            }
            Reported::Running => {
                let ending = format!("ended with a loss of its {what}");
                HostEvent::Exited { ending, stderr: String::new() }
            }
            Reported::Ended | Reported::Gone => return self.given_up = true,
        };
        self.report(event).await;
        self.reported = Reported::Ended;
        self.given_up = true;
    }

    /// Postpones the kill: the shim talks, or was not read.
    pub(super) fn be_patient(&mut self) {
        self.force_at = self.force_at.map(|_| Instant::now() + PATIENCE);
    }

    /// Kills the shim, which does not obey, if it is shown to be the recorded one. The rest of its
    /// agent is ended after that.
    pub(super) async fn force(&mut self) {
        // Not repeated at once, even if this fails.
        self.be_patient();
        match self.shim_dir.verify() {
            Identity::Alive(Record { shim, .. }) => {
                tracing::warn!(host = self.host.0, pid = shim.pid, "killing the shim of an agent");
                let marker = self.shim_dir.marker().to_owned();
                // If this fails, the shim still runs, which is noticed.
                let kill = move || Tree::leftovers(marker, shim, &[]).signal_all(StopSignal::Kill);
                tokio::task::spawn_blocking(kill).await.ok();
            }
            // Noticed elsewhere.
            Identity::Dead => {}
            Identity::Unverifiable if self.unverified => {}
            Identity::Unverifiable => {
                self.unverified = true;
                let lock = self.shim_dir.path().join("lock");
                let text = format!(
                    "the agent cannot be killed: its shim cannot be verified; end the process that \
                     holds `{}` by hand",
                    lock.display()
                );
                tracing::error!(host = self.host.0, "{text}");
                self.place.log.line(&format!("acpd: {text}"));
            }
        }
    }

    /// Reads what a dead shim left, and ends the rest of its agent.
    async fn bury(mut self) {
        let record = self.shim_dir.record();
        if matches!(record, Ok(None)) && self.reported == Reported::Nothing {
            // The shim may be starting at this moment; without its directory it gives up.
            self.remove_dir().await;
        }
        let agent = record.ok().flatten().and_then(|record| record.agent);
        let exit = self.shim_dir.exit().ok().flatten();
        let leftover = self.leftover();
        if self.reported == Reported::Nothing {
            // A shim of an earlier daemon.
            let event = if exit.is_some() || leftover.is_some() {
                self.reported = Reported::Running;
                let ProcessId { pid, start } = agent.unwrap_or(self.leader);
                let length = leftover.as_ref().map_or(0, |leftover| leftover.bytes.limit());
                HostEvent::Adopted { pid, start, end: self.output.received() + length }
            } else {
                self.reported = Reported::Ended;
                HostEvent::Lost { reason: "the agent's shim process was killed".to_owned() }
            };
            self.report(event).await;
        }
        if self.reported == Reported::Running {
            self.report_end(exit, leftover).await;
        }
        if self.reported == Reported::Ended {
            self.reported = Reported::Gone;
            // The reaper reports when nothing is left.
            let shim_dir = self.shim_dir.clone();
            let events = self.place.events.clone();
            self.place.reaper.sweep(self.host, move || Orphans::of(&shim_dir), events);
        }
        while !self.forget {
            if self.dismiss {
                return self.report(HostEvent::Gone).await;
            }
            match self.commands.recv().await {
                Some(command) => self.take(command),
                None => return,
            }
        }
        self.clean_up().await;
    }

    async fn report_end(&mut self, exit: Option<Status>, leftover: Option<Leftover>) {
        let mut ending = exit.map_or_else(|| DEATH.to_owned(), Status::predicate);
        if let Some(leftover) = leftover
            && let Err(error) = self.read_leftover(leftover).await
        {
            let (host, dir) = (self.host.0, self.shim_dir.path().display());
            tracing::error!(host, %dir, %error, "the last output of an agent cannot be read");
            ending.push_str(", and a part of its output could not be read");
        }
        for event in self.last_words(ending, String::new()) {
            self.report(event).await;
        }
    }

    /// Returns the output that the dead shim kept, if nothing is missing before it.
    fn leftover(&mut self) -> Option<Leftover> {
        let found = self.shim_dir.leftover(self.output.received());
        let leftover = found.inspect_err(|error| {
            let error = with_sources(error);
            tracing::error!(
                host = self.host.0,
                error,
                "the last output of an agent cannot be read"
            );
        });
        let leftover = leftover.ok().flatten()?;
        self.output.start_at(leftover.offset).ok()?;
        Some(leftover)
    }

    async fn read_leftover(&mut self, leftover: Leftover) -> io::Result<()> {
        let mut bytes = leftover.bytes;
        loop {
            while !self.output.has_room() {
                match self.commands.recv().await {
                    Some(command) => self.take(command),
                    None => return Ok(()),
                }
            }
            let read = move || {
                let mut piece = Vec::new();
                bytes.by_ref().take(PIECE).read_to_end(&mut piece).map(|_| (bytes, piece))
            };
            let (rest, piece) =
                tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
            if piece.is_empty() {
                return Ok(());
            }
            bytes = rest;
            let at = self.output.received();
            // Each piece begins where the last one ended.
            if self.output.push(at, &piece).is_ok() {
                let frames = self.output.frames();
                if let Some(event) = self.lines(frames) {
                    self.report(event).await;
                }
            }
        }
    }

    pub(super) fn last_words(&mut self, ending: String, stderr: String) -> Vec<HostEvent> {
        if self.reported >= Reported::Ended {
            return Vec::new();
        }
        self.reported = Reported::Ended;
        let mut events = Vec::new();
        let frames = self.output.finish();
        if !frames.is_empty() {
            events.push(HostEvent::Output(frames));
        }
        events.push(HostEvent::Exited { ending, stderr });
        events
    }

    pub(super) fn lines(&self, frames: Vec<Frame>) -> Option<HostEvent> {
        if output::dropped(&frames) {
            tracing::warn!(host = self.host.0, "an agent wrote a line over the limit");
        }
        (!frames.is_empty()).then_some(HostEvent::Output(frames))
    }

    async fn report(&self, event: HostEvent) {
        self.place.events.send((self.host, event)).await.ok();
    }

    /// Makes the shim write its data to disk and exit.
    async fn send_away(self) {
        if let Identity::Alive(record) = self.shim_dir.verify() {
            // The shim leads its own group, without its agent.
            let end = move || Tree::leftovers("", record.shim, &[]).stop(StopSignal::Term, false);
            tokio::task::spawn_blocking(end).await.ok();
        }
        self.wait_for_shim_end().await;
        self.report(HostEvent::Gone).await;
    }

    /// Waits up to [`LAST`] until the shim has exited. Returns whether it has.
    async fn wait_for_shim_end(&self) -> bool {
        let end = Instant::now() + LAST;
        let mut wait = AGAIN.0;
        while self.shim_dir.verify() != Identity::Dead {
            if Instant::now() >= end {
                return false;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(AGAIN.1);
        }
        true
    }

    /// Removes what is left of a shim that is dead, or knows that its end is on disk.
    async fn clean_up(self) {
        // The shim removes its directory itself, unless it was killed.
        if !self.wait_for_shim_end().await {
            tracing::warn!(host = self.host.0, "an agent has ended, but its shim still runs");
            return;
        }
        self.remove_dir().await;
        crash::point("after-forget");
        self.place.reaper.reap_orphans();
    }

    async fn remove_dir(&self) {
        let shim_dir = self.shim_dir.clone();
        tokio::task::spawn_blocking(move || remove(&shim_dir)).await.ok();
    }
}

/// Returns the hint for an error; `agent` is the hint for a fault of the agent itself.
fn way_out(error: &launch::StartError, agent: String) -> String {
    use launch::StartError;
    match error {
        StartError::Agent { .. } => return agent,
        StartError::TooLong(_) => "give the agent fewer or shorter arguments and variables",
        // The program may have been replaced or moved.
        StartError::Exec { .. } | StartError::Shim(_) => "run `acpctl daemon restart`",
        StartError::Died | StartError::TimedOut => "`acpctl daemon logs` may say more",
    }
    .to_owned()
}

/// Ends what a failed or dead shim left running, then removes its directory. Returns false if
/// something still runs after some seconds: the next daemon finds it by the directory. Blocks the
/// thread.
pub(in crate::host) fn end_now(shim_dir: &ShimDir) -> bool {
    let end = std::time::Instant::now() + LAST;
    let may_wait = || {
        std::thread::sleep(AGAIN.0);
        std::time::Instant::now() < end
    };
    let dir = shim_dir.path().display();
    // A killed shim may still be making its socket.
    while matches!(shim_dir.is_held(), Ok(true)) {
        if !may_wait() {
            tracing::warn!(%dir, "the shim of an agent still runs");
            return false;
        }
    }
    let mut orphans = Orphans::of(shim_dir);
    while !orphans.is_gone() {
        orphans.signal(StopSignal::Kill);
        if !may_wait() {
            tracing::warn!(%dir, "processes of an agent still run");
            return false;
        }
    }
    remove(shim_dir);
    true
}

fn remove(shim_dir: &ShimDir) {
    if let Err(error) = shim_dir.remove() {
        tracing::warn!(error = with_sources(&error), "cannot remove the directory of a dead shim");
    }
}

pub(in crate::host) fn with_sources(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |source| source.source());
    sources.map(ToString::to_string).fold(error.to_string(), |text, reason| {
        if text.contains(&reason) { text } else { format!("{text}: {reason}") }
    })
}
