//! The simulator: the hub among model agents, model clients and a model store, all driven by one
//! seed.
//!
//! Every step is chosen by the seed: a client asks something, a process says something, a batch is
//! committed, one effect is performed, time passes, something breaks. The daemon can die between any
//! two effects. What must always hold is checked where it happens: by the store for each journal, by
//! each client for its view, by each agent for what it is told. In the end faults stop, time runs
//! on, and everything has to come to rest.
//!
//! In about half of the runs hosts are shims: what they hold outlives the daemon, is taken over by
//! the next one, and is lost only if the shim itself is killed. In the others processes are children
//! of the daemon, and with its death leftovers, to be swept. About half of the clients have a token:
//! they lose their connection at any moment and come back by the rules of `docs/protocol.md`, or
//! never.
//!
//! What is held:
//!
//! - Every line that an agent says to a prompt is in the journal once and in its order; at the end of
//!   a turn that the agent ended itself there are as many as it said. A turn ends as interrupted only
//!   if its process has ended, was told to, or cannot be reached; or by a person.
//! - Every line for an agent is committed once under its number, reaches it at most once, whole, and
//!   if it lives to the end, at all. A prompt reaches agents once, and so does the answer to a question,
//!   which somebody has given.
//! - Output is acknowledged when it is committed; what a daemon wants to have again is there. A
//!   process starts when the last one of its agent is gone, is never without a row, and is forgotten
//!   when its end is committed. No session is held by two processes.
//! - The view of a client that knows positions has no gap and nothing twice, over all its connections;
//!   and in the end nothing is missing. A replay has everything that history shows.
//! - A request is answered once, over all connections. Lines are called safe when they are committed.
//! - In the end everything is at rest: no turn, request, line or process is left half done.
//!
//! A client with a token works only in sessions that it has opened, and does not load a session while
//! its own requests there are open: it could not tell the replay from what else it is shown.

mod agent;
mod client;
mod host;
mod people;
mod ride;
mod rng;
mod store;
mod truth;
mod world;

use std::collections::BTreeMap;

use acpd_core::Input;

use host::Leader;
use world::World;

/// What a run that held its promises went through.
#[derive(Debug, Default)]
pub struct Report {
    /// How often each fault and state occurred.
    pub hits: BTreeMap<&'static str, u64>,
    /// Steps until it had come to rest.
    pub steps: u64,
}

/// Runs one seed for so many steps with faults, then until everything is at rest. With `trace` an
/// error ends with what happened last.
///
/// # Errors
/// The promise that was broken, and at which step.
pub fn run(seed: u64, steps: u64, trace: bool) -> Result<Report, String> {
    let mut world = World::new(seed, trace);
    let mut done = Ok(0);
    for step in 0..steps {
        done = world.step().map(|()| 0).map_err(|error| format!("step {step}: {error}"));
        if done.is_err() {
            break;
        }
    }
    if done.is_ok() {
        done = world.settle().map_err(|error| format!("after the faults: {error}"));
    }
    match done {
        Ok(settling) => Ok(Report { hits: world.truth.hits, steps: steps + settling }),
        Err(error) => {
            let trace: Vec<String> = world.trace.into_iter().flatten().collect();
            Err(format!("{error}\n{}", trace.join("\n")))
        }
    }
}

/// Steps in which everything has to come to rest.
const SETTLE: u64 = 60_000;

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
        match self.rng.below(100) {
            0..8 if self.rng.permille(100) => {
                let _ = self.see_closed()? || self.come_back()?;
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
        let ids: Vec<_> = self.hosts.keys().copied().collect();
        if let Some(id) = self.rng.pick(&ids).copied() {
            for _ in 0..=self.rng.below(4) {
                self.run(id)?;
            }
        }
        Ok(())
    }

    /// Something breaks, or is repaired.
    fn fault(&mut self) -> Result<(), String> {
        if self.calm && !self.store.failing && self.rng.permille(800) {
            return Ok(());
        }
        match self.rng.below(100) {
            0..4 => self.crash(),
            4..12 if !self.store.failing => {
                self.store.failing = true;
                self.truth.hit("store failing");
                self.feed(Input::StoreFailing { reason: "disk full".to_owned() })?;
            }
            12..60 if self.store.failing => {
                self.store.failing = false;
                self.feed(Input::StoreWorks)?;
            }
            60..70 => {
                let disks: Vec<String> = self.disks.keys().cloned().collect();
                let name = self.rng.pick(&disks).cloned().unwrap_or_default();
                let what = self.rng.below(3);
                let tries = self.rng.below(4) as u32;
                if let Some(disk) = self.disks.get_mut(&name) {
                    match what {
                        0 => disk.logged_out = true,
                        1 => disk.bad_loads = tries,
                        _ => disk.forgets = true,
                    }
                }
            }
            70..71 => self.feed(Input::Stop)?,
            71..74 if self.survives => self.kill_host(),
            _ => {}
        }
        Ok(())
    }

    /// No more faults: time runs on until nothing moves. Every promise to a client is kept then.
    fn settle(&mut self) -> Result<u64, String> {
        self.faults = false;
        if self.store.failing {
            self.store.failing = false;
            self.feed(Input::StoreWorks)?;
        }
        for disk in self.disks.values_mut() {
            disk.logged_out = false;
            disk.bad_loads = 0;
        }
        for host in self.hosts.values_mut() {
            host.process.ignores_cancel = false;
        }
        let mut quiet = 0;
        let mut rounds = 0;
        let end = self.now + 3_600_000;
        for step in 0..SETTLE {
            if self.hub.is_none() {
                self.boot()?;
            }
            let mut moved = false;
            self.seal();
            while self.commit()? {
                moved = true;
            }
            while let Some(effect) = self.effects.pop_front() {
                self.perform(effect)?;
                moved = true;
            }
            moved |= self.see_closed()? | self.come_back()?;
            for id in self.clients.keys().copied().collect::<Vec<_>>() {
                moved |= self.flush(id)?;
                moved |= self.serve(id)?;
                moved |= self.answer_one(id)?;
            }
            moved |= self.refuse()? | self.adopt()?;
            for id in self.hosts.keys().copied().collect::<Vec<_>>() {
                moved |= self.run(id)?;
            }
            if moved {
                quiet = 0;
                continue;
            }
            if self.now < end && self.pass(60_000)? {
                quiet += 1;
            } else {
                quiet += 10;
            }
            if quiet > 40 {
                if rounds == 2 {
                    self.at_rest()?;
                    return Ok(step);
                }
                // People come back once more, answer what is asked and end what hangs.
                rounds += 1;
                quiet = 0;
                self.tidy_up(rounds == 2)?;
            }
        }
        Err(format!(
            "no rest within {SETTLE} steps; {:?}",
            self.hub.as_ref().map(acpd_core::Hub::unsettled)
        ))
    }

    fn at_rest(&mut self) -> Result<(), String> {
        let unsettled = self.hub.as_ref().map(acpd_core::Hub::unsettled).unwrap_or_default();
        if !unsettled.is_empty() {
            return Err(format!("not at rest: {unsettled:?}"));
        }
        if let Some((place, turn)) = self.store.snapshot.turns.first_key_value() {
            return Err(format!("turn {place:?} has not ended: {:?}", turn.state));
        }
        for (key, journal) in &self.store.journals {
            if !journal.is_at_rest() && self.store.snapshot.sessions.contains_key(key) {
                return Err(format!("{key:?}: a turn has no end in the journal"));
            }
        }
        for (id, client) in &self.clients {
            if let Some((request, asked)) = client.open.first_key_value() {
                return Err(format!("client {} waits for {request}: {asked:?}", id.0));
            }
            client.missed(&self.store).map_err(|error| format!("client {}: {error}", id.0))?;
        }
        for (id, state) in &self.store.snapshot.hosts {
            if let Some((chunk, _)) = state.outbox.first_key_value() {
                return Err(format!("{id:?}: chunk {chunk} was never written"));
            }
        }
        let stuck = self.hosts.iter().find(|(_, host)| host.leader != Leader::Runs);
        match stuck {
            Some((id, host)) => Err(format!("{id:?} is still {:?}", host.leader)),
            None => Ok(()),
        }
    }
}
