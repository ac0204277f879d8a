//! The thread that ends what dead shims have left, and looks at the process trees of live ones
//! ([`acpd_sys::tree::Tree`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use acpd_api::ShimInfo;
use acpd_core::ids::HostId;
use acpd_core::{ClientOrigin, HostEvent, LeftProcess};
use acpd_shim::frame::Release;
use acpd_shim::orphans::Orphans;
use acpd_sys::ladder::{Ladder, Step};
use acpd_sys::process::{ProcessId, discard, name_of, reap_orphans, start};
use acpd_sys::tree::{Tree, Usage, Whose, nearest_above, runs_under_agent};
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::spawn_blocking;

use super::HostEvents;
use crate::locked;

/// Time between looks at a tree that ends, at first and after some time.
const LOOK: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
/// Looks for the owner of a process while children are being started.
const LOOKS: usize = 50;
/// Longest time between two looks at a tree that does not end.
const LOOK_AT_LAST: Duration = Duration::from_secs(1);
/// Shortest time between two looks for orphans that no job asks for.
const ORPHANS: Duration = Duration::from_secs(5);
/// Time from SIGTERM to SIGKILL for leftovers of an earlier daemon, and between two SIGKILLs.
const SWEEP_GRACE: Duration = Duration::from_secs(1);

type Find = Box<dyn FnOnce() -> Orphans + Send>;

enum Job {
    /// Finds and ends processes that an earlier daemon, or a dead shim, left behind.
    Sweep {
        host: HostId,
        find: Find,
        events: HostEvents,
    },
    FindLeft {
        host: HostId,
    },
    ReapOrphans,
}

#[derive(Debug, Clone)]
pub(super) struct KnownAgent {
    pub(super) marker: String,
    pub(super) leader: ProcessId,
    pub(super) release: Option<Release>,
}

#[derive(Debug, Clone)]
pub struct Reaper {
    jobs: Sender<Job>,
    family: Arc<Mutex<Family>>,
}

/// The daemon's children that have an owner.
///
/// Architecture invariant: the lock is free while a child is started. A start lasts until the exec
/// is done, which a disk may delay for ever, and the relay and each new connection take the lock.
#[derive(Debug, Default)]
struct Family {
    /// Number of children that are being started. Each may exist already without being listed here,
    /// so no orphan is reaped meanwhile: it could be one of them.
    starting: usize,
    /// Orphans are to be reaped when no child is being started.
    owes_orphans: bool,
    /// Commands of the user, which an owner waits for. Any other child that ends is an orphan.
    children: BTreeSet<u32>,
    /// Shims that the daemon talks with, also those of earlier daemons.
    shims: BTreeMap<HostId, KnownShim>,
}

#[derive(Debug)]
struct KnownShim {
    id: ProcessId,
    /// The agent is a command in a terminal.
    is_command: bool,
    /// `None` before its hello, and for an agent that is only connected to.
    agent: Option<KnownAgent>,
}

impl Family {
    fn host_of(&self, id: ProcessId) -> Option<HostId> {
        let mut agents = self.shims.iter().filter(|(_, shim)| !shim.is_command);
        agents.find(|(_, shim)| shim.id == id).map(|(host, _)| *host)
    }

    /// Pids suffice for children: one that is not reaped keeps its pid.
    fn whose(&self, id: ProcessId) -> Option<Whose> {
        if self.children.contains(&id.pid) {
            return Some(Whose::Users);
        }
        self.shims.values().any(|shim| shim.id == id).then_some(Whose::Agents)
    }
}

fn reap_others(family: &Mutex<Family>) {
    let mut family = locked(family);
    if family.starting > 0 {
        family.owes_orphans = true;
    } else {
        reap_orphans(&family.children);
    }
}

struct Swept {
    left: Orphans,
    ladder: Ladder,
    events: HostEvents,
}

type Trees = BTreeMap<HostId, Swept>;
/// Waiting reports: the thread answers questions while the receiver takes nothing.
type Unreported = VecDeque<(HostEvents, (HostId, HostEvent))>;

impl Reaper {
    /// The thread ends with the last handle.
    pub fn start(events: HostEvents) -> io::Result<Reaper> {
        let (jobs, queue) = channel();
        let family = Arc::<Mutex<Family>>::default();
        let kept = Arc::clone(&family);
        thread::Builder::new()
            .name("reaper".to_owned())
            .stack_size(256 << 10)
            .spawn(move || run(&queue, &kept, &events))?;
        Ok(Reaper { jobs, family })
    }

    fn lock(&self) -> MutexGuard<'_, Family> {
        locked(&self.family)
    }

    /// Starts a command of the user, whose processes belong to no agent. The caller has to discard
    /// it.
    pub(crate) fn start_users(&self, command: &mut Command) -> io::Result<Child> {
        self.lock().starting += 1;
        let child = start(command);
        let mut family = self.lock();
        if let Ok(child) = &child {
            family.children.insert(child.id());
        }
        family.starting -= 1;
        if family.starting == 0 && std::mem::take(&mut family.owes_orphans) {
            self.reap_orphans();
        }
        child
    }

    /// Returns whether a process is an agent's or descends from one, as far as that is visible.
    async fn runs_under_agent(&self, pid: u32) -> io::Result<bool> {
        for _ in 0..LOOKS {
            // Before the look: nothing is below a child that is started after it.
            let is_starting = self.lock().starting > 0;
            let is_under = runs_under_agent(pid, |id| self.lock().whose(id))?;
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
        Ok(ClientOrigin::Agent(nearest_above(pid, |id| self.lock().host_of(id))))
    }

    pub(super) fn know_shim(&self, host: HostId, id: ProcessId, is_command: bool) {
        let mut family = self.lock();
        family.shims.entry(host).or_insert(KnownShim { id, is_command, agent: None }).id = id;
    }

    pub(super) fn know_agent(&self, host: HostId, agent: KnownAgent) {
        if let Some(shim) = self.lock().shims.get_mut(&host) {
            shim.agent = Some(agent);
        }
    }

    pub fn shims_of(&self, agents: impl Fn(u32) -> bool) -> Vec<ShimInfo> {
        let family = self.lock();
        let info = |shim: &KnownShim| {
            let agent = shim.agent.as_ref().filter(|agent| agents(agent.leader.pid))?;
            let version = agent.release.map(|release| release.to_string().into());
            Some(ShimInfo { pid: shim.id.pid, version })
        };
        family.shims.values().filter_map(info).collect()
    }

    /// Kills and reaps a child of [`Reaper::start_users`] and its group.
    pub(crate) fn discard(&self, child: Child) {
        let pid = child.id();
        discard(child);
        self.lock().children.remove(&pid);
    }

    fn send(&self, job: Job) {
        self.jobs.send(job).ok();
    }

    /// Ends what is left of a host, then reports [`HostEvent::Gone`].
    pub(super) fn sweep(
        &self,
        host: HostId,
        find: impl FnOnce() -> Orphans + Send + 'static,
        events: HostEvents,
    ) {
        self.forget_shim(host);
        self.send(Job::Sweep { host, find: Box::new(find), events });
    }

    /// Reports the processes that are left of a host as [`HostEvent::Left`].
    pub(crate) fn find_left(&self, host: HostId) {
        self.send(Job::FindLeft { host });
    }

    pub(super) fn forget_shim(&self, host: HostId) {
        self.lock().shims.remove(&host);
    }

    pub(crate) fn reap_orphans(&self) {
        self.send(Job::ReapOrphans);
    }

    /// Returns the usage of the trees with these leaders; zero for unknown ones.
    pub async fn usage(&self, leaders: Vec<u32>) -> Vec<Usage> {
        let reaper = self.clone();
        let look = move || leaders.into_iter().map(|leader| reaper.usage_of(leader)).collect();
        spawn_blocking(look).await.unwrap_or_default()
    }

    fn usage_of(&self, leader: u32) -> Usage {
        let known = self.lock().shims.values().find_map(|shim| {
            let agent = shim.agent.clone().filter(|agent| agent.leader.pid == leader)?;
            Some((agent, shim.id))
        });
        known.map_or_else(Usage::default, |(agent, shim)| {
            Tree::new(&agent.marker, agent.leader).usage_below(shim)
        })
    }
}

fn run(queue: &Receiver<Job>, family: &Mutex<Family>, events: &HostEvents) {
    let mut trees = Trees::new();
    let mut unreported = Unreported::new();
    let mut look = LOOK.0;
    let mut done = Instant::now();
    let mut reaped = Instant::now();
    loop {
        let job = match (trees.is_empty(), unreported.is_empty()) {
            (false, _) => queue.recv_timeout(look),
            (true, false) => queue.recv_timeout(LOOK.1),
            (true, true) => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match job {
            Ok(job) => {
                // A question changes nothing.
                if !matches!(job, Job::FindLeft { .. }) {
                    (look, done) = (LOOK.0, Instant::now());
                }
                work(job, &mut trees, family, events, &mut unreported);
            }
            Err(RecvTimeoutError::Timeout) => {
                look = (look * 2).min((done.elapsed() / 20).clamp(LOOK.1, LOOK_AT_LAST));
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if reaped.elapsed() >= ORPHANS {
            reaped = Instant::now();
            reap_others(family);
        }
        for (host, swept) in take_gone(&mut trees) {
            reap_others(family);
            unreported.push_back((swept.events, (host, HostEvent::Gone)));
        }
        while let Some((events, next)) = unreported.pop_front() {
            if let Err(TrySendError::Full(next)) = events.try_send(next) {
                unreported.push_front((events, next));
                break;
            }
        }
    }
}

fn work(
    job: Job,
    trees: &mut Trees,
    family: &Mutex<Family>,
    events: &HostEvents,
    unreported: &mut Unreported,
) {
    match job {
        Job::Sweep { host, find, events } => {
            let left = find();
            let ladder = Ladder::term_first(SWEEP_GRACE, SWEEP_GRACE);
            trees.insert(host, Swept { left, ladder, events });
        }
        Job::FindLeft { host } => {
            let left = alive(trees, family, host)
                .into_iter()
                .map(|id| LeftProcess { pid: id.pid, name: name_of(id.pid).unwrap_or_default() });
            unreported.push_back((events.clone(), (host, HostEvent::Left(left.collect()))));
        }
        Job::ReapOrphans => reap_others(family),
    }
}

fn alive(trees: &mut Trees, family: &Mutex<Family>, host: HostId) -> Vec<ProcessId> {
    if let Some(swept) = trees.get_mut(&host) {
        return swept.left.alive();
    }
    let agent = locked(family).shims.get(&host).and_then(|shim| shim.agent.clone());
    agent.map_or_else(Vec::new, |agent| Tree::new(&agent.marker, agent.leader).alive())
}

/// Removes trees of which nothing is left, and sends the others the signal that is due.
fn take_gone(trees: &mut Trees) -> Vec<(HostId, Swept)> {
    let is_gone = |_: &HostId, swept: &mut Swept| {
        if swept.left.is_gone() {
            return true;
        }
        if let Some(signal) = swept.ladder.step(Instant::now()).and_then(Step::signal) {
            swept.left.signal(signal);
        }
        false
    };
    trees.extract_if(.., is_gone).collect()
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

    #[test]
    fn who_is_left_of_a_host_is_told_by_pid_and_name() {
        let (tell, mut events) = mpsc::channel(4);
        let reaper = Reaper::start(tell).unwrap();
        let (host, nobody) = (HostId(1), HostId(2));
        let mut command = Command::new("sleep");
        command.arg("600").env("ACPD_HOST", "left-1").stdin(Stdio::null());
        detach_child(&mut command);
        let child = reaper.start_users(&mut command).unwrap();
        let leader = ProcessId::of(child.id()).unwrap();
        reaper.know_shim(host, leader, false);
        let marker = "left-1".to_owned();
        reaper.know_agent(host, KnownAgent { marker, leader, release: None });
        let mut left = |host| {
            reaper.find_left(host);
            match events.blocking_recv() {
                Some((of, HostEvent::Left(left))) if of == host => left,
                other => panic!("{other:?}"),
            }
        };
        let sleep = LeftProcess { pid: child.id(), name: "sleep".to_owned() };
        assert_eq!(left(host), [sleep]);
        assert_eq!(left(nobody), []);
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
        while reaper.lock().starting == 0 {
            thread::yield_now();
        }
        (gate, start)
    }

    #[tokio::test]
    async fn a_child_whose_exec_is_held_up_holds_up_nobody() {
        let (tell, _events) = mpsc::channel(4);
        let reaper = Reaper::start(tell).unwrap();
        let (mut gate, start) = held_up(&reaper);
        let asker = reaper.clone();
        let own = std::process::id();
        let all = async move {
            assert!(!asker.runs_under_agent(1).await.unwrap(), "init is nobody's");
            // This process looks like one below the child that is being made.
            assert!(asker.runs_under_agent(own).await.unwrap());
            asker.know_shim(HostId(1), ProcessId::of(own).unwrap(), false);
            asker.forget_shim(HostId(1));
            asker.reap_orphans();
            let mut other = Command::new("sleep");
            other.arg("600").stdin(Stdio::null());
            detach_child(&mut other);
            asker.discard(asker.start_users(&mut other).unwrap());
            // The thread answers, too.
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
