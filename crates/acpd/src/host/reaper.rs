//! The daemon's children, the ends of what dead shims have left, and looks at the process trees of
//! live ones ([`acpd_sys::tree::Tree`]).
//!
//! A look reads the process table, so each one has a thread for blocking calls.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use acpd_api::ShimInfo;
use acpd_core::ids::HostId;
use acpd_core::{ClientOrigin, HostEvent, LeftProcess};
use acpd_shim::frame::Release;
use acpd_shim::orphans::Orphans;
use acpd_sys::ladder::{Ladder, Step};
use acpd_sys::process::{ProcessId, discard, name_of, reap, reap_orphans, start};
use acpd_sys::tree::{Tree, Usage, Whose, nearest_above, runs_under_agent};
use tokio::task::spawn_blocking;

use super::HostEvents;
use crate::locked;

/// Time between looks at a tree that ends, at first and after some time.
const LOOK: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
/// Looks for the owner of a process while children are being started.
const LOOKS: usize = 50;
/// Longest time between two looks at a tree that does not end.
const LOOK_AT_LAST: Duration = Duration::from_secs(1);
/// Shortest time between two looks for orphans that nothing asks for.
const ORPHANS: Duration = Duration::from_secs(5);
/// Time from SIGTERM to SIGKILL for leftovers of an earlier daemon, and between two SIGKILLs.
const SWEEP_GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) struct KnownAgent {
    pub(super) marker: String,
    pub(super) leader: ProcessId,
    pub(super) release: Option<Release>,
}

/// Architecture invariant: the lock is free while a child is started. A start lasts until the exec
/// is done, which a disk may delay for ever, and the relay and each new connection take the lock.
#[derive(Debug, Clone)]
pub struct Reaper {
    events: HostEvents,
    family: Arc<Mutex<Family>>,
}

/// The daemon's children that have an owner, and the processes of agents.
#[derive(Debug, Default)]
struct Family {
    /// Number of children that are being started. Each may exist already without being listed here,
    /// so no orphan is reaped meanwhile: it could be one of them.
    starting: usize,
    /// Orphans are to be reaped when no child is being started.
    owes_orphans: bool,
    /// Time of the last look for orphans.
    looked: Option<Instant>,
    /// Children that an owner waits for. Any other child that ends is an orphan.
    children: BTreeSet<u32>,
    /// Those of `children` that are commands of the user.
    users: BTreeSet<u32>,
    /// Shims that the daemon talks with, also those of earlier daemons.
    shims: BTreeMap<HostId, KnownShim>,
    /// Processes without a shim that are being ended.
    swept: BTreeMap<HostId, Arc<Mutex<Orphans>>>,
}

#[derive(Debug)]
struct KnownShim {
    id: ProcessId,
    /// `None` before its hello, and for an agent that is only connected to.
    agent: Option<KnownAgent>,
}

impl Family {
    fn remove(&mut self, pid: u32) {
        self.children.remove(&pid);
        self.users.remove(&pid);
    }

    fn host_of(&self, id: ProcessId) -> Option<HostId> {
        self.shims.iter().find(|(_, shim)| shim.id == id).map(|(host, _)| *host)
    }

    /// Pids suffice for children: one that is not reaped keeps its pid.
    fn whose(&self, id: ProcessId) -> Option<Whose> {
        if self.users.contains(&id.pid) {
            return Some(Whose::Users);
        }
        self.shims.values().any(|shim| shim.id == id).then_some(Whose::Agents)
    }
}

/// Terminals start their children here.
impl acpd_services::terminal::Children for Reaper {
    fn start(&self, command: &mut Command) -> io::Result<Child> {
        self.start_child(command)
    }

    fn discard(&self, child: Child) {
        Reaper::discard(self, child);
    }

    fn reap(&self, pid: u32) {
        let mut family = self.family();
        // Fails only if other code has reaped the zombie.
        reap(pid).ok();
        family.remove(pid);
    }
}

impl Reaper {
    pub fn new(events: HostEvents) -> Reaper {
        Reaper { events, family: Arc::default() }
    }

    fn family(&self) -> MutexGuard<'_, Family> {
        locked(&self.family)
    }

    /// Starts a child that the caller has to reap or discard.
    pub(crate) fn start_child(&self, command: &mut Command) -> io::Result<Child> {
        self.start_one(command, false)
    }

    /// Like [`Reaper::start_child`], for a command of the user: its processes belong to no agent.
    pub(crate) fn start_users(&self, command: &mut Command) -> io::Result<Child> {
        self.start_one(command, true)
    }

    fn start_one(&self, command: &mut Command, is_users: bool) -> io::Result<Child> {
        self.family().starting += 1;
        let child = start(command);
        let mut family = self.family();
        if let Ok(child) = &child {
            family.children.insert(child.id());
            if is_users {
                family.users.insert(child.id());
            }
        }
        family.starting -= 1;
        let owes_orphans = family.starting == 0 && std::mem::take(&mut family.owes_orphans);
        drop(family);
        if owes_orphans {
            self.reap_orphans();
        }
        child
    }

    /// Returns whether a process is an agent's or descends from one, as far as that is visible.
    async fn runs_under_agent(&self, pid: u32) -> io::Result<bool> {
        for _ in 0..LOOKS {
            // Before the look: nothing is below a child that is started after it.
            let is_starting = self.family().starting > 0;
            let is_under = runs_under_agent(pid, |id| self.family().whose(id))?;
            if !(is_under && is_starting) {
                return Ok(is_under);
            }
            // The process may be below a command of the user that has just started and is not
            // listed yet.
            tokio::time::sleep(LOOK.0).await;
        }
        Ok(true)
    }

    pub(crate) async fn origin_of(&self, pid: u32) -> io::Result<ClientOrigin> {
        if !self.runs_under_agent(pid).await? {
            return Ok(ClientOrigin::User);
        }
        Ok(ClientOrigin::Agent(nearest_above(pid, |id| self.family().host_of(id))))
    }

    pub(super) fn know_shim(&self, host: HostId, id: ProcessId) {
        let mut family = self.family();
        family.shims.entry(host).or_insert(KnownShim { id, agent: None }).id = id;
    }

    pub(super) fn know_agent(&self, host: HostId, agent: KnownAgent) {
        if let Some(shim) = self.family().shims.get_mut(&host) {
            shim.agent = Some(agent);
        }
    }

    pub(super) fn forget_shim(&self, host: HostId) {
        self.family().shims.remove(&host);
    }

    pub fn shims_of(&self, agents: impl Fn(u32) -> bool) -> Vec<ShimInfo> {
        let family = self.family();
        let info = |shim: &KnownShim| {
            let agent = shim.agent.as_ref().filter(|agent| agents(agent.leader.pid))?;
            let version = agent.release.map(|release| release.to_string().into());
            Some(ShimInfo { pid: shim.id.pid, version })
        };
        family.shims.values().filter_map(info).collect()
    }

    /// Kills and reaps a child of [`Reaper::start_child`] and its group.
    pub(crate) fn discard(&self, child: Child) {
        let pid = child.id();
        discard(child);
        self.family().remove(pid);
    }

    /// Reaps the children without an owner, later if one is being started. Blocks the thread.
    pub(crate) fn reap_orphans(&self) {
        let mut family = self.family();
        if family.starting > 0 {
            family.owes_orphans = true;
        } else {
            family.looked = Some(Instant::now());
            reap_orphans(&family.children);
        }
    }

    fn reap_sometimes(&self) {
        let is_due = self.family().looked.is_none_or(|at| at.elapsed() >= ORPHANS);
        if is_due {
            self.reap_orphans();
        }
    }

    /// Ends the processes of a host without a shim, which `find` returns, then reports
    /// [`HostEvent::Gone`]. Call it on the runtime, also the next two.
    pub(super) fn sweep(&self, host: HostId, find: impl FnOnce() -> Orphans + Send + 'static) {
        self.forget_shim(host);
        let reaper = self.clone();
        spawn_blocking(move || {
            let swept = Arc::new(Mutex::new(find()));
            reaper.family().swept.insert(host, Arc::clone(&swept));
            let (begin, mut ladder) =
                (Instant::now(), Ladder::term_first(SWEEP_GRACE, SWEEP_GRACE));
            let mut pause = LOOK.0;
            while !locked(&swept).is_gone() {
                if let Some(signal) = ladder.step(Instant::now()).and_then(Step::signal) {
                    locked(&swept).signal(signal);
                }
                thread::sleep(pause);
                pause = (pause * 2).min((begin.elapsed() / 20).clamp(LOOK.1, LOOK_AT_LAST));
                reaper.reap_sometimes();
            }
            reaper.family().swept.remove(&host);
            reaper.reap_orphans();
            reaper.events.blocking_send((host, HostEvent::Gone)).ok();
        });
    }

    /// Reports the processes that are left of a host as [`HostEvent::Left`].
    pub(crate) fn find_left(&self, host: HostId) {
        let reaper = self.clone();
        spawn_blocking(move || {
            reaper.reap_sometimes();
            let left = reaper
                .alive(host)
                .into_iter()
                .map(|id| LeftProcess { pid: id.pid, name: name_of(id.pid).unwrap_or_default() });
            reaper.events.blocking_send((host, HostEvent::Left(left.collect()))).ok();
        });
    }

    /// Returns the usage of the trees with these leaders; zero for unknown ones.
    pub async fn usage(&self, leaders: Vec<u32>) -> Vec<Usage> {
        let reaper = self.clone();
        let look = move || {
            reaper.reap_sometimes();
            leaders.iter().map(|pid| reaper.usage_of(*pid)).collect()
        };
        spawn_blocking(look).await.unwrap_or_default()
    }

    fn alive(&self, host: HostId) -> Vec<ProcessId> {
        let family = self.family();
        let swept = family.swept.get(&host).cloned();
        let agent = family.shims.get(&host).and_then(|shim| shim.agent.clone());
        drop(family);
        match (swept, agent) {
            (Some(swept), _) => locked(&swept).alive(),
            (None, Some(agent)) => Tree::new(&agent.marker, agent.leader).alive(),
            (None, None) => Vec::new(),
        }
    }

    fn usage_of(&self, pid: u32) -> Usage {
        let known = self.family().shims.values().find_map(|shim| {
            let agent = shim.agent.clone().filter(|agent| agent.leader.pid == pid)?;
            Some((agent, shim.id))
        });
        known.map_or_else(Usage::default, |(agent, shim)| {
            Tree::new(&agent.marker, agent.leader).usage_below(shim)
        })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::process::Stdio;

    use acpd_sys::process::{detach_child, detach_child_into};
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn who_is_left_of_a_host_is_told_by_pid_and_name() {
        let (tell, mut events) = mpsc::channel(4);
        let reaper = Reaper::new(tell);
        let (host, nobody) = (HostId(1), HostId(2));
        let mut command = Command::new("sleep");
        command.arg("600").env("ACPD_HOST", "left-1").stdin(Stdio::null());
        detach_child(&mut command);
        let child = reaper.start_child(&mut command).unwrap();
        let leader = ProcessId::of(child.id()).unwrap();
        reaper.know_shim(host, leader);
        let marker = "left-1".to_owned();
        reaper.know_agent(host, KnownAgent { marker, leader, release: None });
        let sleep = LeftProcess { pid: child.id(), name: "sleep".to_owned() };
        for (host, left) in [(host, vec![sleep]), (nobody, vec![])] {
            reaper.find_left(host);
            match events.recv().await {
                Some((of, HostEvent::Left(found))) if of == host => assert_eq!(found, left),
                other => panic!("{other:?}"),
            }
        }
        reaper.discard(child);
    }

    /// A child that does not get to its exec before the socket is read.
    fn held_up(reaper: &Reaper) -> (UnixStream, thread::JoinHandle<Child>) {
        let (gate, mut full) = UnixStream::pair().unwrap();
        full.set_nonblocking(true).unwrap();
        while full.write(b"x").is_ok() {}
        full.set_nonblocking(false).unwrap();
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null());
        detach_child_into(&mut command, OwnedFd::from(full).into());
        let starter = reaper.clone();
        let start = thread::spawn(move || starter.start_users(&mut command).unwrap());
        while reaper.family().starting == 0 {
            thread::yield_now();
        }
        (gate, start)
    }

    #[tokio::test]
    async fn a_child_whose_exec_is_held_up_holds_up_nobody() {
        let (tell, _events) = mpsc::channel(4);
        let reaper = Reaper::new(tell);
        let (mut gate, start) = held_up(&reaper);
        let asker = reaper.clone();
        let own = std::process::id();
        let all = async move {
            assert!(!asker.runs_under_agent(1).await.unwrap(), "init is nobody's");
            // This process looks like one below the child that is being made.
            assert!(asker.runs_under_agent(own).await.unwrap());
            asker.know_shim(HostId(1), ProcessId::of(own).unwrap());
            asker.forget_shim(HostId(1));
            asker.reap_orphans();
            let mut other = Command::new("sleep");
            other.arg("600").stdin(Stdio::null());
            detach_child(&mut other);
            asker.discard(asker.start_users(&mut other).unwrap());
            // Looks are answered, too.
            asker.usage(vec![own]).await;
        };
        let done = tokio::time::timeout(Duration::from_secs(20), tokio::spawn(all)).await;
        // All of them: one byte each.
        assert!(gate.read(&mut [0; 4 << 10]).unwrap() > 0);
        let child = start.join().unwrap();
        assert!(done.is_ok_and(|done| done.is_ok()), "it waited for the child");
        assert!(!reaper.runs_under_agent(child.id()).await.unwrap(), "a command of the user's");
        reaper.discard(child);
    }
}
