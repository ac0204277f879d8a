//! The simulator: the hub among model agents, model clients and a model store, all driven by one
//! seed.
//!
//! The seed chooses every step: a client requests something, a process sends something, a batch is
//! committed, one effect is performed, time passes, something breaks. The daemon can die between
//! any two effects. The promises are checked where they apply: by the store for each journal, by
//! each client for its view, by each agent for its input. In the end faults stop, time continues,
//! and everything has to come to rest.
//!
//! In about half of the runs shims outlive the daemon: the next one takes them over, and output is
//! lost only if a shim itself is killed. In the others all shims die with the daemon, and the next
//! one sweeps their processes. About half of the clients have a token: they lose their connection
//! at any moment and resume by the rules of `docs/protocol.md`, or never.
//!
//! The promises:
//!
//! - Every line that an agent sends for a prompt is in the journal once and in order; a turn that
//!   the agent ended itself has all of them. A turn ends as interrupted only if its process has
//!   ended, was told to, or cannot be reached; or by a person.
//! - Every line for an agent is committed once under its number, reaches it at most once, whole,
//!   and if the agent lives to the end, at all. A prompt reaches agents once, and so does the
//!   answer to a question, which a client has given.
//! - A message into a running turn reaches agents once. It is in the journal when its sender hears
//!   that the agent has taken it, and only then; a returned message reaches no agent. No agent may
//!   begin a turn with one. Archived sessions are closed.
//! - Output is acknowledged when it is committed; a daemon gets again all that it requests again. A
//!   process starts when the last one of its agent is gone, is never without a row, and is
//!   forgotten when its end is committed. No session is held by two processes.
//! - The view of a client that knows positions has no gap and nothing twice, over all its
//!   connections; and in the end nothing is missing. A replay has everything that history shows.
//! - A request is answered once, over all connections. Lines are reported as safe when they are
//!   committed.
//! - A client of version 2 knows the state of a session at each position. Its replay has one end,
//!   then one state, then the answer. A prompt is answered with the id of its message in the
//!   journal, behind it, and always the same; a refused one is not there. Nothing about a session
//!   comes after the client has left it.
//! - No agent takes a prompt with less context than the conversation says, except one that falsely
//!   reported a restored session or an accepted prompt. A promised summary is given.
//! - While a login is missing or nothing is answered (`rest.rs`, the evening), agents are not
//!   restarted again and again, no agent is given up before it has failed as often as that takes,
//!   and only what needs a person waits for ever: a login, an answer, or an agent that hangs in a
//!   turn, in `session/new`, or in a request that is relayed unchanged.
//! - When nothing moves, a watching connection knows what a new one gets, and rows never pile up
//!   for one that does not read.
//! - In the end everything is at rest: no turn, request, line or process is unfinished. Sessions
//!   that waited for a login or a directory are restored, and every session that was not lost takes
//!   a prompt.
//!
//! A client with a token works only in sessions that it has opened, and does not load a session
//! while its own requests there are open: it could not distinguish the replay from other lines.

mod agent;
mod agent2;
mod bad;
mod client;
mod client2;
mod digest;
mod folded;
mod host;
mod people;
mod rest;
mod ride;
mod store;
mod truth;
mod watcher;
mod world;

use std::collections::BTreeMap;

use acpd_core::Input;

use bad::Loss;
use digest::Digester;
pub use digest::Digests;
use people::DIRECTORIES;
use world::{AGENTS, World};

/// Statistics of a run without a broken promise.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of times each fault and state occurred.
    pub hits: BTreeMap<&'static str, u64>,
    /// Steps until the run came to rest.
    pub steps: u64,
    pub digests: Option<Digests>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Watch {
    /// An error ends with the last events.
    pub trace: bool,
    pub digest: bool,
}

/// Runs one seed for a number of steps with faults, then until everything is at rest. The error has
/// the broken promise and its step.
pub fn run(seed: u64, steps: u64, watch: Watch) -> Result<Report, String> {
    let mut world = World::new(seed, watch);
    let stepped = (0..steps)
        .try_for_each(|step| world.step().map_err(|error| format!("step {step}: {error}")));
    let settled =
        stepped.and_then(|()| world.settle().map_err(|error| format!("after the faults: {error}")));
    match settled {
        Ok(settling) => Ok(Report {
            hits: world.truth.hits,
            steps: steps + settling,
            digests: world.digester.as_ref().map(Digester::digests),
        }),
        Err(error) => {
            let trace: Vec<String> = world.trace.into_iter().flatten().collect();
            Err(format!("{error}\n{}", trace.join("\n")))
        }
    }
}

impl World {
    fn step(&mut self) -> Result<(), String> {
        if self.hub.is_none() {
            if self.rng.permille(if self.survives { 15 } else { 100 }) {
                self.boot()?;
            } else {
                self.agents_step()?;
            }
            return Ok(());
        }
        self.watchers_step()?;
        match self.rng.below(100) {
            0..8 if self.rng.permille(100) => {
                // A client may be back before the daemon saw the end of its last connection.
                let came_first = self.rng.permille(300) && self.come_back()?;
                if !came_first && !self.see_closed()? {
                    self.come_back()?;
                }
            }
            0..8 => self.person()?,
            8..38 => {
                let ids: Vec<_> = self.clients.keys().copied().collect();
                if let Some(id) = self.rng.pick(&ids).copied() {
                    let slow = self.clients.get(&id).is_some_and(|client| client.slow);
                    for _ in 0..if slow { 1 } else { 6 } {
                        self.serve(id)?;
                        if self.rng.permille(500) {
                            self.flush(id)?;
                        }
                    }
                }
            }
            38..52 => {
                self.seal();
                self.commit()?;
            }
            52..72 => {
                for _ in 0..=self.rng.below(4) {
                    if let Some(effect) = self.effects.pop_front() {
                        self.perform(effect)?;
                    }
                }
            }
            72..93 => self.agents_step()?,
            93..97 => {
                let most = if self.rng.permille(100) { 60_000 } else { 1_000 };
                self.pass(most)?;
            }
            _ => self.fault()?,
        }
        Ok(())
    }

    fn agents_step(&mut self) -> Result<(), String> {
        self.refuse()?;
        if self.rng.permille(100) {
            self.adopt()?;
        }
        if self.rng.permille(200) {
            self.find_directory()?;
        }
        let ids: Vec<_> = self.hosts.keys().copied().collect();
        if let Some(id) = self.rng.pick(&ids).copied() {
            for _ in 0..=self.rng.below(4) {
                self.run(id)?;
            }
        }
        Ok(())
    }

    /// Breaks or repairs something.
    fn fault(&mut self) -> Result<(), String> {
        if self.calm && !self.store.failing && self.rng.permille(800) {
            return Ok(());
        }
        match self.rng.below(100) {
            0..4 => self.crash(),
            4..12 if !self.store.failing => self.fail_store()?,
            12..60 if self.store.failing => {
                self.store.failing = false;
                self.feed(Input::StoreWorks)?;
            }
            60..70 => {
                let disks: Vec<String> = self.disks.keys().cloned().collect();
                let name = self.rng.pick(&disks).cloned().unwrap_or_default();
                let what = self.rng.below(4);
                let tries = self.rng.below(4) as u32;
                if let Some(disk) = self.disks.get_mut(&name) {
                    match what {
                        0 => disk.login = Some(Loss::draw(&mut self.rng)),
                        1 => disk.bad_loads = tries,
                        2 => disk.breaks = true,
                        _ => disk.forgets = true,
                    }
                }
            }
            70..71 => self.feed(Input::Stop)?,
            71..74 if self.survives => self.kill_host(),
            74..82 if self.days.logins => self.change_login()?,
            82..88 if self.days.lies => {
                for disk in self.disks.values_mut() {
                    disk.change_lies(&mut self.rng);
                }
            }
            88..93 if self.days.directories => {
                let cwd = self.rng.pick(&DIRECTORIES).copied().unwrap_or_default().to_owned();
                if !self.missing.remove(&cwd) {
                    self.missing.insert(cwd);
                }
            }
            93..96 if self.days.jumps => {
                // The machine was asleep: every deadline passes at once, and late.
                self.truth.hit("clock jumped forward");
                let most = if self.rng.permille(500) { 600_000 } else { 18_000_000 };
                self.now += 60_000 + self.rng.below(most) as u64;
            }
            _ => {}
        }
        Ok(())
    }

    /// A login runs out, or is there again.
    fn change_login(&mut self) -> Result<(), String> {
        let agent = self.rng.pick(&AGENTS).copied().unwrap_or_default();
        if self.rng.permille(600) {
            return self.log_in_elsewhere(agent);
        }
        let loss = Loss::draw(&mut self.rng);
        if let Some(disk) = self.disks.get_mut(agent) {
            disk.login = Some(loss);
        }
        Ok(())
    }
}
