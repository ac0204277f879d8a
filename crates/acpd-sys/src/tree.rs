//! All processes of an agent, or of a command in a terminal.
//!
//! Real agents start themselves again under another pid, run their tools in their own sessions, and
//! daemonise. So a process belongs to the tree if
//!
//! - it is the leader, the process that was started, or
//! - its environment has the mark (`ACPD_HOST`), or
//! - its parent belongs, or its session or group was founded by one that belongs,
//!
//! and once it was seen to belong, it always does. A process that leaves its parent, its session
//! and its environment between two looks is not found. Without readable environments (macOS),
//! parents, sessions and groups decide alone.
//!
//! A process with another mark is a stranger, and so are all processes below it: a daemon started
//! by an agent's tool does not end with that agent.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use crate::ladder::{Ladder, Pauses};
use crate::process::{
    self, Entry, Liveness, ProcessId, StopSignal, look_up, rss_bytes, signal_one,
};

/// Variable that marks an agent's processes.
pub(crate) const MARK: &str = "ACPD_HOST";

/// Pauses between looks at a tree that ends.
const LOOK: Pauses = Pauses { first: Duration::from_millis(1), longest: Duration::from_millis(50) };

/// Looks of [`Tree::signal_all`]. A tree that still grows then forks faster than it is killed.
const MAX_ROUNDS: usize = 100;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Resident memory in bytes; shared pages count once per process.
    pub bytes: u64,
    pub processes: u32,
}

/// The processes of an agent. Never includes this process, init, or a process of another user.
#[derive(Debug, Default)]
pub struct Tree {
    marker: String,
    leader: ProcessId,
    /// Everything below this process belongs; nothing else is looked at.
    below_us: bool,
    /// Does not belong, but everything below it does.
    keeper: Option<u32>,
    /// Other trees have the same mark, so it says nothing.
    shares_mark: bool,
    /// Processes with another mark; not read again.
    strangers: HashSet<ProcessId>,
    /// Seen to belong, and still running or still named as the founder of a session or group.
    known: HashSet<ProcessId>,
    /// Recorded as members, but not seen alive here. Their pids may be reused, so a process does
    /// not belong because it names one.
    unseen: HashSet<ProcessId>,
    /// Read, and without the mark.
    unmarked: HashSet<ProcessId>,
    alive: Vec<ProcessId>,
}

impl Tree {
    /// `leader` is a child just started with [`detach_child`] and `ACPD_HOST=marker`. Markers are
    /// unique among agent starts.
    ///
    /// [`detach_child`]: crate::process::detach_child
    pub fn new(marker: impl Into<String>, leader: ProcessId) -> Tree {
        let known = HashSet::from([leader]);
        Tree { marker: marker.into(), leader, known, ..Tree::default() }
    }

    /// The tree of a child just started with [`detach_child`], which has the mark of this process,
    /// if any. Other processes with that mark do not belong.
    ///
    /// [`detach_child`]: crate::process::detach_child
    pub fn below(leader: ProcessId) -> Tree {
        let marker = std::env::var(MARK).unwrap_or_default();
        Tree { shares_mark: true, ..Tree::new(marker, leader) }
    }

    /// The leftovers of a tree whose daemon is gone, with recorded members. Members and leader may
    /// be long dead. Of their children, sessions and groups only processes with the mark or with a
    /// hidden environment belong.
    pub fn leftovers(marker: impl Into<String>, leader: ProcessId, recorded: &[ProcessId]) -> Tree {
        let mut tree = Tree::new(marker, leader);
        tree.known.extend(recorded);
        tree.unseen.clone_from(&tree.known);
        tree.refresh();
        tree
    }

    /// The tree of the only agent of this process, its subreaper: all processes below it belong. On
    /// Linux no others are looked at, so a look costs no more than the tree is large. On Windows
    /// the agent's Job decides.
    pub fn below_us(marker: impl Into<String>, leader: ProcessId) -> Tree {
        Tree { below_us: process::ALL_BELOW_BELONGS, ..Tree::new(marker, leader) }
    }

    /// Adds a [keeper](crate::keeper) as the parent of leader and orphans.
    #[must_use]
    pub fn with_keeper(self, keeper: Option<u32>) -> Tree {
        Tree { keeper, ..self }
    }

    /// Looks at the process table, and returns the number of the tree's processes. If the table
    /// cannot be read, the last look counts.
    pub fn refresh(&mut self) -> usize {
        self.look().ok();
        self.alive.len()
    }

    fn look(&mut self) -> io::Result<()> {
        let entries = if self.below_us { process::scan_below()? } else { process::scan()? };
        self.update(&Table::new(entries));
        Ok(())
    }

    pub fn alive(&mut self) -> Vec<ProcessId> {
        self.refresh();
        self.alive.clone()
    }

    /// Looks, and returns whether no process runs; `false` if the look fails.
    pub fn is_empty(&mut self) -> bool {
        self.look().is_ok() && self.alive.is_empty()
    }

    /// Signals the leader's group, if that group is still the leader's.
    pub fn signal_group(&mut self, signal: StopSignal) -> io::Result<()> {
        self.refresh();
        if !self.known.contains(&self.leader) || self.unseen.contains(&self.leader) {
            return Ok(());
        }
        process::signal_group(self.leader, signal, !self.alive.is_empty())
    }

    /// Signals each process once, and looks again until there is no new one. Returns the number of
    /// signalled processes.
    pub fn signal_all(&mut self, signal: StopSignal) -> usize {
        let mut done = HashSet::new();
        for _ in 0..MAX_ROUNDS {
            self.refresh();
            let before = done.len();
            for id in &self.alive {
                if done.insert(*id) {
                    signal_one(*id, signal);
                }
            }
            if done.len() == before {
                break;
            }
        }
        done.len()
    }

    /// Signals the group, then every process outside of it. Those outside are left out while the
    /// leader runs and is only asked to end: it ends its children itself.
    pub fn stop(&mut self, signal: StopSignal, leader_ended: bool) {
        // After a failure the stop continues until the tree is empty.
        self.signal_group(signal).ok();
        if leader_ended || signal == StopSignal::Kill {
            self.signal_all(signal);
        }
    }

    /// Asks all processes to end, kills those that are left after `grace`, and returns when none is.
    /// Blocks the thread.
    pub fn end(&mut self, grace: Duration, leader_ended: bool) {
        Ladder::term_first(grace, LOOK.longest).climb(LOOK, |signal| {
            if let Some(signal) = signal {
                self.stop(signal, leader_ended);
            }
            self.is_empty()
        });
    }

    /// Resources of the tree below its subreaper `root`, which does not count.
    pub fn usage_below(&mut self, root: ProcessId) -> Usage {
        if root.is_alive() != Liveness::Alive {
            return Usage::default();
        }
        if let Ok(roots) = process::children(root.pid) {
            return take_stock(roots, &self.marker);
        }
        // The system does not list children.
        self.refresh();
        let sizes = self.alive.iter().map(|id| rss_bytes(id.pid).unwrap_or(0));
        Usage { bytes: sizes.sum(), processes: self.alive.len() as u32 }
    }

    fn update(&mut self, table: &Table) {
        self.known.retain(|id| table.has_trace_of(*id));
        self.unmarked.retain(|id| table.has(*id));
        self.strangers.retain(|id| table.has(*id));
        self.unseen.retain(|id| self.known.contains(id) && !table.has(*id));
        let seen = self.known.difference(&self.unseen);
        self.take_in(table, seen.map(|id| id.pid).collect());
        let unseen = self.unseen.iter().filter_map(|id| table.by_founder.get(&id.pid)).flatten();
        // Processes with the mark are found by it.
        let silent = unseen.filter(|pid| environ(**pid).is_none());
        self.take_in(table, silent.copied().collect());
        self.take_in(table, process::members(self.leader));
        let marked = self.marked(table);
        self.take_in(table, marked);
        if let Some(parent) = self.keeper.or(self.below_us.then(std::process::id)) {
            let children = table.by_pid.values().filter(|entry| entry.parent == parent);
            self.take_in(table, children.map(|entry| entry.id.pid).collect());
        }

        self.alive.clear();
        let runs = |id: &&ProcessId| {
            table.by_pid.get(&id.pid).is_some_and(|entry| entry.id == **id && !entry.is_zombie())
        };
        self.alive.extend(self.known.iter().filter(runs));
        self.alive.sort_unstable();
    }

    /// Adds the processes with these pids, and all that name them as parent, session or group. The
    /// walk continues through another user's process (`sudo`), which does not belong.
    fn take_in(&mut self, table: &Table, pids: Vec<u32>) {
        let own_pid = std::process::id();
        let mut seen = HashSet::from([0, 1, own_pid, self.keeper.unwrap_or(own_pid)]);
        let mut todo = pids;
        while let Some(pid) = todo.pop() {
            if !seen.insert(pid) {
                continue;
            }
            let entry = table.by_pid.get(&pid).filter(|entry| entry.is_ours);
            if entry.is_some_and(|entry| self.is_stranger(entry.id)) {
                continue;
            }
            todo.extend(table.by_founder.get(&pid).into_iter().flatten());
            self.known.extend(entry.map(|entry| entry.id));
        }
    }

    /// Checks known processes too: between fork and exec a process has its parent's environment.
    fn is_stranger(&mut self, id: ProcessId) -> bool {
        if id == self.leader {
            return false;
        }
        if self.strangers.contains(&id) {
            return true;
        }
        let strange = has_other_mark(id.pid, &self.marker);
        if strange {
            self.known.remove(&id);
            self.strangers.insert(id);
        }
        strange
    }

    fn marked(&mut self, table: &Table) -> Vec<u32> {
        if self.shares_mark {
            return Vec::new();
        }
        let mut found = Vec::new();
        for entry in table.by_pid.values() {
            if !entry.is_ours
                || entry.is_zombie()
                || self.known.contains(&entry.id)
                || self.unmarked.contains(&entry.id)
            {
                continue;
            }
            if let Some(environ) = environ(entry.id.pid) {
                if has_mark(&environ, &self.marker) {
                    found.push(entry.id.pid);
                } else {
                    self.unmarked.insert(entry.id);
                }
            }
        }
        found
    }
}

/// Sums up these processes and all below them, without strangers and those below strangers. The
/// cost depends on the tree only.
fn take_stock(roots: Vec<u32>, marker: &str) -> Usage {
    let mut usage = Usage::default();
    let (mut todo, mut seen) = (roots, HashSet::new());
    while let Some(pid) = todo.pop() {
        if !seen.insert(pid) || has_other_mark(pid, marker) {
            continue;
        }
        // The process may have ended; its children have another parent then.
        todo.extend(process::children(pid).unwrap_or_default());
        let runs = |entry: &Entry| entry.is_ours && !entry.is_zombie();
        if look_up(pid).ok().flatten().is_some_and(|entry| runs(&entry)) {
            usage.bytes += rss_bytes(pid).unwrap_or(0);
            usage.processes += 1;
        }
    }
    usage
}

/// A hidden environment shows no mark.
fn environ(pid: u32) -> Option<Vec<u8>> {
    process::environ(pid).ok().flatten()
}

fn has_mark(environ: &[u8], marker: &str) -> bool {
    mark(environ) == Some(marker.as_bytes())
}

fn mark(environ: &[u8]) -> Option<&[u8]> {
    let mut entries = environ.split(|byte| *byte == 0);
    let value =
        entries.find_map(|entry| entry.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
    Some(value).filter(|value| !value.is_empty())
}

/// Returns whether the environment of a process shows that it belongs to another tree.
pub fn has_other_mark(pid: u32, marker: &str) -> bool {
    environ(pid).is_some_and(|environ| is_other_mark(&environ, marker))
}

fn is_other_mark(environ: &[u8], marker: &str) -> bool {
    mark(environ).is_some_and(|mark| mark != marker.as_bytes())
}

/// Returns whether the environment of this process has the mark of an agent. A program can hide it.
pub fn is_marked() -> bool {
    std::env::var_os(MARK).is_some_and(|mark| !mark.is_empty() && mark != NO_AGENT)
}

/// Returns whether a process is an agent's or below one: the process or one above it has the mark
/// of an agent or shim, or was started by this process for agents.
///
/// A process that cleared its environment and left its parents is still below the shim, or below
/// this process as its subreaper. So every process below this one counts, except for those that are
/// the user's by `whose`, which returns `None` for unknown processes. Fails if a process cannot be
/// looked at.
pub fn runs_under_agent(pid: u32, whose: impl Fn(ProcessId) -> Option<Whose>) -> io::Result<bool> {
    find_above(pid, whose, look_up)
}

fn find_above(
    pid: u32,
    whose: impl Fn(ProcessId) -> Option<Whose>,
    look_up: impl Fn(u32) -> io::Result<Option<Entry>>,
) -> io::Result<bool> {
    // Processes of other users may be hidden.
    let look_up = |pid| match look_up(pid) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        other => other,
    };
    // Parents end meanwhile. A process whose parents keep changing counts as an agent's.
    let mut last = Ok(true);
    for _ in 0..TRIES {
        last = match is_below_agent(pid, &whose, look_up) {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => Ok(true),
            Err(error) => Err(error),
        };
    }
    last
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Agents,
    Users,
}

/// Attempts to walk up from a process.
const TRIES: usize = 8;
/// Most processes above one of a user; an agent can make more.
const HIGHEST: usize = 256;

/// Returns `None` if the processes change during the walk.
fn is_below_agent(
    pid: u32,
    whose: impl Fn(ProcessId) -> Option<Whose>,
    look_up: impl Fn(u32) -> io::Result<Option<Entry>>,
) -> io::Result<Option<bool>> {
    let mut next = pid;
    let mut below: Option<Entry> = None;
    for _ in 0..HIGHEST {
        if next == std::process::id() {
            return Ok(Some(true));
        }
        if next <= 1 {
            return Ok(Some(false));
        }
        let Some(entry) = look_up(next)? else {
            // A process that has ended reveals nothing about its connections.
            let Some(child) = below else { return Ok(Some(true)) };
            let again = look_up(child.id.pid)?.filter(|again| again.id == child.id);
            let Some(Entry { parent, .. }) = again else { return Ok(None) };
            if parent == next {
                // The parent exists and is hidden, so it is another user's.
                return Ok(Some(false));
            }
            next = parent;
            continue;
        };
        match whose(entry.id) {
            Some(Whose::Agents) => return Ok(Some(true)),
            Some(Whose::Users) => return Ok(Some(false)),
            None => {}
        }
        if process::environ(next)?.is_some_and(|environ| is_other_mark(&environ, NO_AGENT)) {
            return Ok(Some(true));
        }
        next = entry.parent;
        below = Some(entry);
    }
    Ok(Some(true))
}

pub fn nearest_above<T>(pid: u32, owner: impl Fn(ProcessId) -> Option<T>) -> Option<T> {
    for _ in 0..TRIES {
        let mut next = pid;
        for _ in 0..HIGHEST {
            if next <= 1 || next == std::process::id() {
                return None;
            }
            // A process that has ended leaves its children to another one: look again.
            let Ok(Some(entry)) = look_up(next) else { break };
            if let Some(found) = owner(entry.id) {
                return Some(found);
            }
            next = entry.parent;
        }
    }
    None
}

/// Mark of a daemon, which belongs to no agent, even if an agent started it.
pub(crate) const NO_AGENT: &str = "-";

struct Table {
    by_pid: HashMap<u32, Entry>,
    /// Pid to the pids that name it as parent, session or group.
    by_founder: HashMap<u32, Vec<u32>>,
}

impl Table {
    fn new(entries: Vec<Entry>) -> Table {
        let mut by_founder: HashMap<u32, Vec<u32>> = HashMap::new();
        for entry in &entries {
            for founder in [entry.parent, entry.session, entry.group] {
                if founder != entry.id.pid {
                    by_founder.entry(founder).or_default().push(entry.id.pid);
                }
            }
        }
        let by_pid = entries.into_iter().map(|e| (e.id.pid, e)).collect();
        Table { by_pid, by_founder }
    }

    fn has(&self, id: ProcessId) -> bool {
        self.by_pid.get(&id.pid).is_some_and(|e| e.id == id)
    }

    /// Returns whether the process runs, or its pid still names a session or group that it founded,
    /// which keeps the pid from being reused.
    fn has_trace_of(&self, id: ProcessId) -> bool {
        match self.by_pid.get(&id.pid) {
            Some(entry) => entry.id == id,
            None => self.by_founder.contains_key(&id.pid) && process::is_of_this_boot(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Condition;

    const LEADER: u32 = 4_000_000;

    fn id(pid: u32, start: u64) -> ProcessId {
        let own = ProcessId::of(std::process::id()).expect("own identity");
        // Of this boot, and some ticks later.
        let start = own.start + start;
        ProcessId { pid, start }
    }

    fn entry(pid: u32, parent: u32, group: u32, session: u32) -> Entry {
        let condition = Condition::Running;
        Entry { id: id(pid, 0), parent, group, session, is_ours: true, condition }
    }

    fn look(tree: &mut Tree, entries: Vec<Entry>) -> Vec<u32> {
        tree.update(&Table::new(entries));
        tree.alive.iter().map(|id| id.pid).collect()
    }

    #[test]
    fn a_process_that_was_seen_below_the_leader_is_never_lost() {
        let mut tree = Tree::new("m", id(LEADER, 0));
        let (a, b) = (LEADER + 1, LEADER + 2);
        let leader = entry(LEADER, 7, LEADER, LEADER);
        assert_eq!(
            look(&mut tree, vec![leader, entry(a, LEADER, a, a), entry(b, a, b, b)]),
            [LEADER, a, b]
        );
        // All parents are gone, each is in a session of its own.
        assert_eq!(look(&mut tree, vec![entry(b, 1, b, b)]), [b]);
        // A founder that was never seen alive together with its late child is remembered.
        assert_eq!(look(&mut tree, vec![entry(b + 1, 1, b, b)]), [b + 1]);
    }

    #[test]
    fn a_pid_that_was_given_to_a_stranger_is_not_of_the_tree() {
        let mut tree = Tree::new("m", id(LEADER, 0));
        let mut stranger = entry(LEADER, 1, LEADER, LEADER);
        stranger.id = id(LEADER, 500);
        let below = entry(LEADER + 1, LEADER, LEADER, LEADER);
        assert!(look(&mut tree, vec![stranger, below]).is_empty());
        assert!(tree.known.is_empty());
    }

    #[test]
    fn a_leader_of_another_boot_founds_nothing() {
        let mut leader = id(LEADER, 0);
        leader.start ^= 1 << 62;
        let mut tree = Tree::new("m", leader);
        assert!(look(&mut tree, vec![entry(LEADER + 1, 1, LEADER, LEADER)]).is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn processes_of_a_reused_pid_need_the_mark() {
        use std::io::{Read as _, Write as _};
        use std::process::{Command, Stdio};

        for (mark, belongs) in [("m", true), ("", false)] {
            let mut cat = Command::new("cat");
            let cat = cat.env(MARK, mark).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = cat.spawn().unwrap();
            // It runs, so its environment is there.
            child.stdin.as_mut().unwrap().write_all(b".").unwrap();
            child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            let mut tree = Tree::new("m", id(LEADER, 0));
            tree.unseen.insert(tree.leader);
            let mut member = entry(child.id(), 1, LEADER, LEADER);
            member.id = ProcessId::of(child.id()).unwrap();
            assert_eq!(look(&mut tree, vec![member]) == [child.id()], belongs);
            assert!(tree.unseen.contains(&tree.leader), "its group is not signalled");
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn neither_we_nor_init_nor_other_users_are_ever_of_a_tree() {
        let mut tree = Tree::new("m", id(LEADER, 0));
        let own = std::process::id();
        let mut sudo = entry(LEADER + 1, LEADER, LEADER, LEADER);
        sudo.is_ours = false;
        let found = look(
            &mut tree,
            vec![
                entry(LEADER, 7, LEADER, LEADER),
                entry(own, LEADER, LEADER, LEADER),
                entry(LEADER + 3, own, LEADER + 3, LEADER + 3),
                entry(1, LEADER, LEADER, LEADER),
                entry(LEADER + 4, 1, LEADER + 4, LEADER + 4),
                sudo,
                entry(LEADER + 2, LEADER + 1, LEADER + 2, LEADER + 2),
            ],
        );
        assert_eq!(found, [LEADER, LEADER + 2]);
    }

    /// Returns whether a process descends from the agent, where the parent of each has the next pid, and
    /// only the first `looks` succeed.
    fn is_below(pid: u32, agent: u32, looks: usize) -> io::Result<bool> {
        let done = std::cell::Cell::new(0);
        let look_up = |pid| {
            done.set(done.get() + 1);
            if done.get() > looks {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            Ok(Some(entry(pid, pid + 1, pid, pid)))
        };
        find_above(pid, |id| (id.pid == agent).then_some(Whose::Agents), look_up)
    }

    #[test]
    fn a_failed_look_is_an_error() {
        assert!(is_below(LEADER, LEADER + 2, 3).unwrap());
        for looks in 0..3 {
            let error = is_below(LEADER, LEADER + 2, looks).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        }
    }

    #[test]
    fn a_process_with_too_many_above_it_is_an_agents() {
        let looks = 256;
        assert!(is_below(LEADER, 0, looks).unwrap());
        assert!(is_below(LEADER, 0, looks - 1).is_err());
    }

    #[test]
    fn a_mark_counts_only_as_a_whole_entry() {
        assert!(has_mark(b"A=1\0ACPD_HOST=m1\0B=2\0", "m1"));
        assert!(!has_mark(b"A=1\0ACPD_HOST=m12\0", "m1"));
        assert!(!has_mark(b"XACPD_HOST=m1\0A=ACPD_HOST=m1\0", "m1"));
        assert_eq!(mark(b"A=1\0ACPD_HOST=-\0"), Some(&b"-"[..]));
        assert_eq!(mark(b"ACPD_HOST=\0"), None);
    }
}
