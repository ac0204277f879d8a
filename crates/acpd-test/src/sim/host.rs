//! Model hosts: the shims between the daemon and processes, and their state that outlives the
//! daemon.
//!
//! A host numbers the output of its agent and keeps it until it is acknowledged, takes numbered
//! lines once, and reports to each new daemon how the agent has ended. A host that dies leaves
//! processes to be swept.

use std::collections::VecDeque;

use acp_wire::{Body, Frame};
use acpd_core::ids::HostId;
use acpd_core::record::{HostRow, HostState, SessionRow};
use acpd_core::{HostEvent, Input, LeftProcess, SpawnError, StopStep};
use bytes::Bytes;
use serde_json::Value;

use super::agent::{Cx, Process, Took};
use super::agent2::Edge;
use super::world::World;

/// Unacknowledged output above which a shim does not read its agent.
const BUDGET: u64 = 3_000;
const LONG: u64 = 5_000;

#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) agent: String,
    pub(super) process: Process,
    edge: Edge,
    pid: u32,
    pub(super) leader: Leader,
    stdin: VecDeque<Bytes>,
    closed: bool,
    /// Last line that was taken completely, and the beginning of the next one.
    taken: u64,
    part: Vec<u8>,
    /// Unacknowledged output of the agent, each piece with the offset of its end.
    said: VecDeque<(Said, u64)>,
    written: u64,
    acked: u64,
    /// The acknowledged end of the last line over the limit.
    dropped: u64,
    /// The host is unreachable.
    lost: bool,
    /// A step of the stop ladder was made.
    pub(super) stopped: bool,
    /// Ignores the end of stdin and SIGTERM.
    stubborn: bool,
    /// A process of the tree survives SIGKILL.
    pub(super) undying: bool,
    /// The process broke by itself, or never became ready.
    pub(super) failed: bool,
    link: Option<Link>,
}

/// One daemon's view of a host.
#[derive(Debug, Default)]
struct Link {
    started: bool,
    exited: bool,
    gone: bool,
    /// Offset of the delivered output.
    handed: u64,
    /// Last line that the host reported as written.
    told: u64,
    /// Lines on their way.
    chunks: VecDeque<(u64, Bytes)>,
}

#[derive(Debug)]
enum Said {
    Line(Bytes),
    /// The first bytes of a line over the limit.
    Long(Bytes),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Leader {
    #[default]
    Runs,
    /// Has ended; descendants live.
    Ended,
    Gone,
}

/// A process to take over, and the lines for it.
#[derive(Debug)]
pub(super) struct Adopting {
    adopt: HostState,
    steps: Vec<StopStep>,
}

impl Adopting {
    /// Returns whether this process stops as soon as it can be reached.
    pub(super) fn has_order(&self, host: HostId) -> bool {
        self.adopt.row.host == host && !self.steps.is_empty()
    }
}

impl Host {
    /// Returns whether only the agent's answer may end a turn of this process.
    pub(super) fn is_well(&self) -> bool {
        self.leader == Leader::Runs && !self.lost && !self.stopped
    }

    /// Returns whether the daemon lacks some of its output.
    pub(super) fn is_behind(&self) -> bool {
        let link = self.link.as_ref().filter(|_| !self.lost);
        link.is_some_and(|link| link.handed < self.written)
    }

    fn say(&mut self, said: Said) {
        self.written += match &said {
            Said::Line(line) => line.len() as u64 + 1,
            Said::Long(_) => LONG,
        };
        self.said.push_back((said, self.written));
    }

    /// Drops committed output up to this offset, and the rest of a line over the limit.
    fn acknowledge(&mut self, offset: u64) {
        self.acked = self.acked.max(offset);
        let handed = self.link.as_ref().map_or(0, |link| link.handed);
        while let Some((said, end)) = self.said.front() {
            let dropped = matches!(said, Said::Long(_)) && *end <= handed;
            if *end > self.acked && !(dropped && self.acked > *end - LONG) {
                break;
            }
            if *end > self.acked {
                self.acked = *end;
                self.dropped = *end;
            }
            self.said.pop_front();
        }
    }

    /// Kills the shim: undelivered output is lost, and the agent with it.
    fn lose(&mut self) {
        self.lost = true;
        self.said.clear();
        self.stdin.clear();
        self.closed = true;
        if let Some(link) = &mut self.link {
            link.handed = self.written;
            link.chunks.clear();
        }
    }

    pub(super) fn cut_off(&mut self, survives: bool) {
        if !survives {
            self.lose();
        }
        self.link = None;
    }

    fn step(&mut self, step: StopStep) {
        self.stopped = true;
        match step {
            StopStep::CloseStdin => self.closed = true,
            StopStep::Term if self.stubborn => {}
            StopStep::Term | StopStep::Kill => {
                self.stdin.clear();
                self.leader = match self.leader {
                    Leader::Ended if self.undying => Leader::Ended,
                    Leader::Runs => Leader::Ended,
                    Leader::Ended | Leader::Gone => Leader::Gone,
                };
                self.stubborn &= step != StopStep::Kill;
            }
        }
    }
}

impl World {
    pub(super) fn spawn(&mut self, id: HostId, agent: String) -> Result<(), String> {
        if self.faults && self.rng.permille(if self.calm { 20 } else { 80 }) {
            self.truth.hit("start refused");
            let permanent = self.rng.permille(200);
            self.refusals.push_back((id, permanent));
            return Ok(());
        }
        let is_there = |host: &Host| !host.link.as_ref().is_some_and(|link| link.gone);
        let mut others = self.hosts.iter().filter(|(_, host)| host.agent == agent);
        let old = others.find(|(_, host)| is_there(host)).filter(|_| agent != "solo");
        if let Some((old, _)) = old {
            return Err(format!("{id:?} of {agent} starts while {old:?} is not gone"));
        }
        self.next_pid += 1;
        if self.rng.permille(100)
            && let Some(disk) = self.disks.get_mut(&agent)
        {
            self.truth.hit("session used elsewhere");
            disk.goes_on_elsewhere(&format!("X{}.", self.next_pid));
        }
        let mut process = Process::new(&agent, self.quirks[&agent].clone());
        if self.faults && self.days.hangs && self.rng.permille(150) {
            process.start_silent(&mut self.rng);
        }
        *self.starts.entry(agent.clone()).or_default() += 1;
        let edge = Edge::new(process.quirks.second);
        let host = Host {
            agent,
            process,
            edge,
            pid: self.next_pid,
            stubborn: self.rng.permille(200),
            // Not drawn from the seed, so that older seeds still find what they found.
            undying: self.faults && self.days.hangs && self.next_pid.is_multiple_of(9),
            link: Some(Link::default()),
            ..Host::default()
        };
        self.hosts.insert(id, host);
        self.truth.hit("process started");
        Ok(())
    }

    pub(super) fn refuse(&mut self) -> Result<bool, String> {
        let Some((host, permanent)) = self.refusals.pop_front() else { return Ok(false) };
        let message = "it cannot be started".to_owned();
        let error = SpawnError { message, hint: None, permanent };
        let agent = self.store.snapshot.hosts.get(&host).map(|state| state.row.agent.clone());
        self.has_failed(&agent.unwrap_or_default());
        self.feed(Input::Host(host, HostEvent::Refused(error)))?;
        Ok(true)
    }

    /// A process of an earlier daemon is to be taken over, which takes time.
    pub(super) fn begin_adoption(&mut self, adopt: HostState) {
        self.adopting.push(Adopting { adopt, steps: Vec::new() });
    }

    /// Takes over one of the processes of an earlier daemon, or fails.
    pub(super) fn adopt(&mut self) -> Result<bool, String> {
        if self.adopting.is_empty() || self.store.failing {
            return Ok(false);
        }
        let at = self.rng.below(self.adopting.len());
        let Adopting { adopt, steps } = self.adopting.swap_remove(at);
        let id = adopt.row.host;
        let fails = self.survives && self.faults && self.rng.permille(30);
        let lost = Input::Host(id, HostEvent::Lost { reason: "it cannot be reached".to_owned() });
        let Some(host) = self.hosts.get_mut(&id) else {
            self.truth.hit("nothing to adopt");
            self.feed(lost)?;
            self.feed(Input::Host(id, HostEvent::Gone))?;
            return Ok(true);
        };
        if adopt.row.pid != 0 && adopt.row.pid != host.pid {
            return Err(format!("{id:?} is adopted under another pid"));
        }
        if host.lost || fails {
            if fails {
                self.truth.hit("adoption failed");
            }
            host.link =
                Some(Link { started: true, exited: true, handed: host.written, ..Link::default() });
            host.lose();
            self.feed(lost)?;
            return Ok(true);
        }
        let HostRow { offset, inside, .. } = adopt.row;
        let inside = inside && (offset >= host.acked || host.acked == host.dropped);
        if (offset < host.acked && !inside) || offset > host.written {
            return Err(format!("{id:?}: output wanted from {offset}, {host:?}"));
        }
        let mut handed = offset.max(host.acked);
        if adopt.row.inside
            && let Some((_, end)) = host.said.iter().find(|(_, end)| *end > handed)
            && handed > host.acked.max(*end - LONG)
        {
            self.truth.hit("adopted inside a long line");
            handed = *end;
        }
        let chunks = adopt.outbox.into_iter().collect();
        host.link = Some(Link { started: true, handed, chunks, ..Link::default() });
        // Output that is not requested again is committed.
        host.acknowledge(offset);
        if host.written > handed {
            self.truth.hit("adopted with output");
        }
        let (pid, end) = (host.pid, host.written);
        for step in steps {
            host.step(step);
        }
        self.truth.hit("adopted");
        self.feed(Input::Host(id, HostEvent::Adopted { pid, start: u64::from(pid), end }))?;
        Ok(true)
    }

    pub(super) fn write(&mut self, id: HostId, chunk: u64, line: Bytes) {
        if let Some(waits) = self.adopting.iter_mut().find(|waits| waits.adopt.row.host == id) {
            waits.adopt.outbox.insert(chunk, line);
        } else if let Some(host) = self.hosts.get_mut(&id).filter(|host| !host.lost)
            && let Some(link) = &mut host.link
        {
            link.chunks.push_back((chunk, line));
        }
    }

    pub(super) fn ack(&mut self, id: HostId, offset: u64) -> Result<(), String> {
        let committed = self.store.snapshot.hosts.get(&id).map_or(offset, |state| state.row.offset);
        let Some(host) = self.hosts.get_mut(&id) else { return Ok(()) };
        let Some(link) = &host.link else { return Err(format!("{id:?}: ack before adoption")) };
        // Dropped bytes of a line over the limit are acknowledged without the daemon.
        let known = host.acked == host.dropped;
        if (offset < host.acked && !known) || offset > link.handed || offset > committed {
            return Err(format!(
                "{id:?}: ack of {offset} after {}, handed over {}, committed {committed}",
                host.acked, link.handed
            ));
        }
        host.acknowledge(offset);
        Ok(())
    }

    pub(super) fn stop(&mut self, id: HostId, step: StopStep) {
        if step == StopStep::Kill {
            self.truth.hit("killed");
        }
        if let Some(waits) = self.adopting.iter_mut().find(|waits| waits.adopt.row.host == id) {
            waits.steps.push(step);
        } else if let Some(host) = self.hosts.get_mut(&id) {
            host.step(step);
        }
    }

    pub(super) fn forget(&mut self, id: HostId) -> Result<(), String> {
        if self.store.snapshot.hosts.contains_key(&id) {
            return Err(format!("{id:?} is forgotten before its end is committed"));
        }
        let adopting = self.adopting.iter().position(|waits| waits.adopt.row.host == id);
        let adopting = adopting.map(|at| self.adopting.swap_remove(at));
        if let Some(host) = self.hosts.remove(&id)
            && host.leader != Leader::Gone
        {
            if host.undying {
                self.truth.hit("left behind, as it does not end");
                return Ok(());
            }
            // A daemon that tries to reach the process continues, and kills it then.
            if adopting.is_some_and(|waits| waits.steps.contains(&StopStep::Kill)) {
                self.truth.hit("left behind, as it does not answer");
                return Ok(());
            }
            return Err(format!("{id:?} is forgotten, and is still {:?}", host.leader));
        }
        Ok(())
    }

    /// Processes remain after a kill, unless they are gone by now.
    pub(super) fn look_for_leftovers(&mut self, host: HostId) -> Result<(), String> {
        let is_left = |host: &&Host| host.leader != Leader::Gone;
        let Some(pid) = self.hosts.get(&host).filter(is_left).map(|host| host.pid) else {
            return Ok(());
        };
        self.truth.hit("survived SIGKILL");
        let left = vec![LeftProcess { pid, name: "undying".to_owned() }];
        self.feed(Input::Host(host, HostEvent::Left(left)))
    }

    /// Checks that a process without a row is over, or was forgotten.
    pub(super) fn check_hosts(&mut self) -> Result<(), String> {
        let rows = &self.store.snapshot.hosts;
        let unknown = self.hosts.extract_if(.., |id, _| !rows.contains_key(id));
        for (id, host) in unknown {
            if host.leader != Leader::Gone && !host.undying {
                return Err(format!("no row names {id:?}, which is {:?}", host.leader));
            }
        }
        Ok(())
    }

    /// Kills a host; the daemon ends the rest of its tree.
    pub(super) fn kill_host(&mut self) {
        let ids: Vec<_> = self.hosts.keys().copied().collect();
        let Some(id) = self.rng.pick(&ids) else { return };
        if let Some(host) = self.hosts.get_mut(id).filter(|host| !host.lost) {
            self.truth.hit("host killed");
            if host.link.as_ref().is_some_and(|link| link.handed < host.written) {
                self.truth.hit("host killed with output");
            }
            host.lose();
            if host.leader == Leader::Runs {
                host.leader = Leader::Ended;
                host.failed = true;
            }
            if let Some(disk) = self.disks.get_mut(&host.agent) {
                disk.lose();
            }
        }
    }

    /// Lets a process or its host act, and returns whether there was anything to do.
    pub(super) fn run(&mut self, id: HostId) -> Result<bool, String> {
        if self.rng.permille(500) && self.hear(id)? {
            return Ok(true);
        }
        let Some(host) = self.hosts.get_mut(&id) else { return Ok(false) };
        match host.leader {
            Leader::Runs if host.lost && host.link.is_some() => {
                host.leader = Leader::Ended;
                Ok(true)
            }
            Leader::Runs => Ok(self.work(id)? || self.hear(id)?),
            Leader::Ended if host.undying => self.hear(id),
            Leader::Ended => {
                let told = host.link.as_ref().is_none_or(|link| link.exited);
                if told && self.rng.permille(300) {
                    host.leader = Leader::Gone;
                    return Ok(true);
                }
                Ok(self.hear(id)? || told)
            }
            Leader::Gone => self.hear(id),
        }
    }

    /// Delivers something between a host and the daemon.
    fn hear(&mut self, id: HostId) -> Result<bool, String> {
        let Some(host) = self.hosts.get_mut(&id) else { return Ok(false) };
        let Some(link) = host.link.as_mut().filter(|link| !link.gone) else { return Ok(false) };
        if !link.started {
            link.started = true;
            let (pid, start) = (host.pid, u64::from(host.pid));
            self.feed(Input::Host(id, HostEvent::Started { pid, start }))?;
            return Ok(true);
        }
        if link.told < host.taken && !host.lost {
            let news = host.taken - link.told;
            // A host that is taken over reports all at once.
            let some = if link.told == 0 { news } else { 1 + self.rng.below(news as usize) as u64 };
            link.told += some;
            let chunk = link.told;
            self.feed(Input::Host(id, HostEvent::Written { chunk }))?;
            return Ok(true);
        }
        if !link.chunks.is_empty() && (self.rng.permille(500) || host.leader != Leader::Runs) {
            return self.take(id);
        }
        // Output goes to the daemon, but not while the store fails.
        if link.handed < host.written {
            return if self.store.failing { Ok(false) } else { self.deliver(id) };
        }
        if host.leader != Leader::Runs && !link.exited {
            link.exited = true;
            let (ending, stderr) = ("ended with exit status 1".to_owned(), "oh no".to_owned());
            self.feed(Input::Host(id, HostEvent::Exited { ending, stderr }))?;
            return Ok(true);
        }
        if host.leader == Leader::Gone {
            link.gone = true;
            self.truth.hit("process gone");
            if host.failed || !host.process.initialized {
                let agent = host.agent.clone();
                self.has_failed(&agent);
            }
            self.feed(Input::Host(id, HostEvent::Gone))?;
            return Ok(true);
        }
        if link.chunks.is_empty() { Ok(false) } else { self.take(id) }
    }

    fn take(&mut self, id: HostId) -> Result<bool, String> {
        let Some(host) = self.hosts.get_mut(&id) else { return Ok(false) };
        let Some(link) = &mut host.link else { return Ok(false) };
        let Some((chunk, line)) = link.chunks.front() else { return Ok(false) };
        let chunk = *chunk;
        if chunk <= host.taken {
            self.truth.hit("line for an agent taken already");
            link.chunks.pop_front();
            return Ok(true);
        }
        if chunk != host.taken + 1 {
            return Err(format!("{id:?}: chunk {chunk} after {}", host.taken));
        }
        if self.store.outbox.get(&(id, chunk)) != Some(line) || !line.starts_with(&host.part) {
            return Err(format!("{id:?}: chunk {chunk} is not what was committed"));
        }
        if host.part.is_empty() && self.rng.permille(200) {
            host.part = line[..self.rng.below(line.len())].to_vec();
            return Ok(true);
        }
        let line = line.clone();
        link.chunks.pop_front();
        host.part.clear();
        host.taken = chunk;
        if !host.closed {
            host.stdin.push_back(line);
        }
        Ok(true)
    }

    fn deliver(&mut self, id: HostId) -> Result<bool, String> {
        let Some(host) = self.hosts.get_mut(&id) else { return Ok(false) };
        let Some(link) = &mut host.link else { return Ok(false) };
        let Some((said, end)) = host.said.iter().find(|(_, end)| *end > link.handed) else {
            return Err(format!("{id:?}: nothing is kept after {}", link.handed));
        };
        let end = *end;
        let frame = match said {
            Said::Line(line) => {
                link.handed = end;
                Frame { end, body: Body::Line(line.clone()) }
            }
            Said::Long(head) if link.handed <= end - LONG => {
                let inside = self.rng.permille(500);
                let seen = if inside { end - 1_000 } else { end };
                let head = head.clone();
                link.handed = seen;
                let len = LONG - (end - seen);
                Frame { end: seen, body: Body::Oversized { head, len, inside } }
            }
            Said::Long(_) => {
                link.handed = end;
                let committed = host.acked;
                host.acknowledge(committed);
                return Ok(true);
            }
        };
        self.feed(Input::Host(id, HostEvent::Output(vec![frame])))?;
        Ok(true)
    }

    fn work(&mut self, id: HostId) -> Result<bool, String> {
        let (faults, days) = (self.faults, self.days);
        let Some(host) = self.hosts.get_mut(&id) else { return Ok(false) };
        let Some(disk) = self.disks.get_mut(&host.agent) else { return Ok(false) };
        let (rng, truth) = (&mut self.rng, &mut self.truth);
        let rare = if self.calm { 1 } else { 4 };
        if faults && rng.permille(rare) {
            truth.hit("agent crash");
            if host.link.is_none() {
                truth.hit("agent crash without a daemon");
            }
            disk.lose();
            host.leader = Leader::Ended;
            host.failed = true;
            return Ok(true);
        }
        if faults && rng.permille(2) {
            host.process.hang();
            truth.hit("agent hung");
        }
        if faults && rng.permille(2) {
            host.process.ignores_cancel = true;
        }
        if host.stdin.is_empty() && host.closed && !host.stubborn {
            host.leader = Leader::Ended;
            return Ok(true);
        }
        if self.survives && host.written - host.acked > BUDGET {
            truth.hit("agent held back");
            return Ok(false);
        }
        if faults && days.hangs && rng.permille(5) {
            host.process.go_silent(rng, truth);
        }
        if faults && days.lies && rng.permille(3) {
            host.process.forget_one(rng);
        }
        if host.process.hung {
            return Ok(false);
        }
        if faults && rng.permille(5) {
            truth.hit("garbage line");
            host.say(Said::Line(Bytes::from_static(b"npm WARN something")));
        }
        if faults && rng.permille(3) {
            truth.hit("line over the limit");
            host.say(Said::Long(Bytes::from_static(b"npm WARN something long")));
        }
        let reads = !host.process.deaf
            && !host.stdin.is_empty()
            && (!host.process.is_busy() || rng.permille(500));
        let mut said = Vec::new();
        let read = if reads { host.stdin.pop_front() } else { None };
        if let Some(line) = &read {
            let line = serde_json::from_slice(line);
            let line: Value = line.map_err(|e| format!("agent got no JSON: {e}"))?;
            let line = host.edge.read(&line).map_err(|e| format!("{id:?}: {e}"))?;
            let mut cx = Cx { disk, rng, truth, out: &mut said };
            host.process.read(&line, &mut cx).map_err(|e| format!("{id:?}: {e}"))?;
            said = host.edge.write(said);
            if host.process.took.is_some() {
                host.edge.insert(&line, (rng, truth), &mut said);
            } else {
                host.edge.note_refused(&line, &said, truth);
            }
        } else if host.process.is_busy() {
            said = host.edge.write(host.process.work(disk, rng, truth));
        } else {
            return Ok(false);
        }
        if host.link.is_none() && !said.is_empty() && !host.lost {
            truth.hit("agent went on without a daemon");
        }
        for line in &said {
            host.say(Said::Line(Bytes::from(Value::to_string(line))));
        }
        if host.lost {
            // No daemon reads it.
            host.said.clear();
        }
        if std::mem::take(&mut host.process.wanted_login) {
            *self.refused_starts.entry(host.agent.clone()).or_default() += 1;
        }
        if let Some(took) = host.process.took.take() {
            self.check_context(id, &took)?;
        }
        self.check_holders(id)
    }

    /// Checks that no agent continues with less than the conversation says. A session that it
    /// falsely reported as restored is its own fault.
    fn check_context(&mut self, id: HostId, took: &Took) -> Result<(), String> {
        let agent = &self.hosts[&id].agent;
        let mut sessions = self.store.snapshot.sessions.values();
        let is_it = |row: &SessionRow| {
            row.agent == *agent && row.agent_id == took.session && row.host == Some(id)
        };
        let Some(session) = sessions.find(|session| is_it(&session.row)) else { return Ok(()) };
        let Some(journal) = self.store.journals.get_mut(&session.row.key) else { return Ok(()) };
        if took.lied {
            self.truth.hit("prompt taken without its context by a liar");
            return Ok(());
        }
        let taken = journal.known.iter().filter(|known| self.truth.received.contains(*known));
        let mut missing =
            taken.filter(|known| **known != took.text && !took.knows.contains(*known));
        if let Some(missing) = missing.next() {
            let text = &took.text;
            return Err(format!("{id:?} took {text} without {missing}, and nothing says so"));
        }
        if std::mem::take(&mut journal.owes_summary) && !took.summed_up {
            return Err(format!(
                "{id:?} took {} without the summary that it was to get",
                took.text
            ));
        }
        self.truth.hit("context seen to be whole");
        Ok(())
    }

    /// Checks that no session is held by two processes.
    fn check_holders(&self, id: HostId) -> Result<bool, String> {
        let host = &self.hosts[&id];
        let runs = |other: &Host| other.leader == Leader::Runs && other.agent == host.agent;
        let mut others = self.hosts.iter().filter(|(of, other)| **of != id && runs(other));
        let both = others.find(|(_, other)| {
            let mut held = other.process.held.keys();
            !host.process.quirks.from_zero && held.any(|held| host.process.held.contains_key(held))
        });
        match both {
            Some((other, _)) => Err(format!("{id:?} and {other:?} hold the same session")),
            None => Ok(true),
        }
    }
}
