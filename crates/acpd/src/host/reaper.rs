//! One thread that ends process trees and knows when they are gone.
//!
//! The leader's exit is learned with a wait that leaves it a zombie, so its group id cannot pass to a
//! stranger before the group was signalled; it is reaped when its whole tree is gone. What escaped
//! from the group is found by walking the process table ([`acpd_sys::process::Tree`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use acpd_core::StopStep;
use acpd_core::ids::HostId;
use acpd_sys::process::{ProcessId, StopSignal, Tree, discard, reap, reap_orphans};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

use super::{HostEvent, HostEvents};

/// How often a tree that is going down is looked at, at first and at last.
const LOOK: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
/// How often running trees are looked at, to know what they start before it hides.
const WALK: Duration = Duration::from_secs(5);
/// From SIGTERM to SIGKILL for what an earlier daemon left behind.
const SWEEP_GRACE: Duration = Duration::from_secs(1);

enum Job {
    Watch { host: HostId, marker: String, leader: ProcessId },
    Exited { host: HostId },
    Stop { host: HostId, step: StopStep },
    Sweep { host: HostId, marker: String, leader: ProcessId },
    Memory { hosts: Vec<u32>, reply: oneshot::Sender<Vec<u64>> },
}

/// Handle of the thread.
#[derive(Debug, Clone)]
pub struct Reaper {
    jobs: Sender<Job>,
    children: Children,
}

/// The children of the daemon that somebody waits for; every other one that ends is an orphan that
/// was given to it. Locked from before a child is made until it is in here, or it could be reaped
/// in between.
#[derive(Debug, Clone, Default)]
struct Children(Arc<Mutex<BTreeSet<u32>>>);

impl Children {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reap_others(&self) {
        reap_orphans(&self.lock());
    }
}

struct Watched {
    tree: Tree,
    leader: ProcessId,
    /// Our own child, to be reaped.
    child: bool,
    /// The leader has ended: from now on the question is when the tree is empty.
    ended: bool,
    /// When SIGKILL is due, for a sweep.
    kill_at: Option<Instant>,
}

impl Reaper {
    /// Starts the thread; it ends when the last handle is dropped.
    pub fn start(events: HostEvents) -> io::Result<Reaper> {
        let (jobs, queue) = channel();
        let children = Children::default();
        let kept = children.clone();
        thread::Builder::new()
            .name("reaper".to_owned())
            .stack_size(256 << 10)
            .spawn(move || run(&queue, &kept, &events))?;
        Ok(Reaper { jobs, children })
    }

    /// Starts a child that is not reaped before its tree is gone: it has to be watched or discarded.
    pub(super) fn start_child(&self, command: &mut Command) -> io::Result<Child> {
        let mut children = self.children.lock();
        let child = command.spawn()?;
        children.insert(child.id());
        Ok(child)
    }

    /// Kills and reaps a child that was just started and cannot be used.
    pub(super) fn discard(&self, child: Child) {
        let pid = child.id();
        discard(child);
        self.children.lock().remove(&pid);
    }

    fn send(&self, job: Job) {
        // The thread lives as long as any handle does.
        self.jobs.send(job).ok();
    }

    /// Takes charge of a tree that was just started.
    pub(super) fn watch(&self, host: HostId, marker: String, leader: ProcessId) {
        self.send(Job::Watch { host, marker, leader });
    }

    /// The leader has ended and waits to be reaped.
    pub(super) fn exited(&self, host: HostId) {
        self.send(Job::Exited { host });
    }

    /// SIGTERM or SIGKILL.
    pub(super) fn stop(&self, host: HostId, step: StopStep) {
        self.send(Job::Stop { host, step });
    }

    /// Ends what an earlier daemon left of a host, then reports [`HostEvent::Gone`].
    pub fn sweep(&self, host: HostId, marker: String, leader: ProcessId) {
        self.send(Job::Sweep { host, marker, leader });
    }

    /// Memory in RAM of the trees with these leaders, in bytes; 0 for unknown ones.
    pub async fn memory(&self, leaders: Vec<u32>) -> Vec<u64> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Memory { hosts: leaders, reply });
        answer.await.unwrap_or_default()
    }
}

fn run(queue: &Receiver<Job>, children: &Children, events: &HostEvents) {
    let mut trees: BTreeMap<HostId, Watched> = BTreeMap::new();
    // Gone, and not told yet: this thread has other questions to answer while the relay takes nothing.
    let mut untold: VecDeque<HostId> = VecDeque::new();
    let mut look = LOOK.0;
    let mut walked = Instant::now();
    loop {
        let ending = trees.values().any(|watched| watched.ended);
        let wait = match (ending, trees.is_empty()) {
            (true, _) => Some(look),
            (false, _) if !untold.is_empty() => Some(LOOK.1),
            (false, false) => Some(WALK),
            (false, true) => None,
        };
        let job = match wait {
            None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(wait) => queue.recv_timeout(wait),
        };
        match job {
            Ok(job) => {
                look = LOOK.0;
                work(job, &mut trees);
            }
            Err(RecvTimeoutError::Timeout) => look = (look * 2).min(LOOK.1),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if walked.elapsed() >= WALK {
            walked = Instant::now();
            for watched in trees.values_mut() {
                watched.tree.refresh();
            }
            children.reap_others();
        }
        let gone: Vec<HostId> = trees
            .iter_mut()
            .filter_map(|(host, watched)| is_gone(watched).then_some(*host))
            .collect();
        for host in gone {
            if let Some(watched) = trees.remove(&host) {
                children.reap_others();
                if watched.child {
                    let mut children = children.lock();
                    reap(watched.leader.pid).ok();
                    children.remove(&watched.leader.pid);
                }
                untold.push_back(host);
            }
        }
        while let Some(host) = untold.front() {
            // The relay may be gone already; then nobody needs to know.
            if let Err(TrySendError::Full(_)) = events.try_send((*host, HostEvent::Gone)) {
                break;
            }
            untold.pop_front();
        }
    }
}

fn work(job: Job, trees: &mut BTreeMap<HostId, Watched>) {
    match job {
        Job::Watch { host, marker, leader } => {
            let tree = Tree::new(marker, leader);
            let watched = Watched { tree, leader, child: true, ended: false, kill_at: None };
            trees.insert(host, watched);
        }
        Job::Exited { host } => {
            if let Some(watched) = trees.get_mut(&host) {
                watched.ended = true;
            }
        }
        Job::Stop { host, step } => {
            if let Some(watched) = trees.get_mut(&host) {
                signal(watched, step);
            }
        }
        Job::Sweep { host, marker, leader } => {
            let tree = Tree::leftovers(marker, leader);
            let kill_at = Some(Instant::now() + SWEEP_GRACE);
            let mut watched = Watched { tree, leader, child: false, ended: true, kill_at };
            signal(&mut watched, StopStep::Term);
            trees.insert(host, watched);
        }
        Job::Memory { hosts, reply } => {
            let memory = |pid: &u32| {
                let tree = trees.values_mut().find(|watched| watched.leader.pid == *pid);
                tree.map_or(0, |watched| watched.tree.rss_bytes())
            };
            // The asker may have gone away.
            reply.send(hosts.iter().map(memory).collect()).ok();
        }
    }
}

fn signal(watched: &mut Watched, step: StopStep) {
    let signal = match step {
        StopStep::CloseStdin => return,
        StopStep::Term => StopSignal::Term,
        StopStep::Kill => StopSignal::Kill,
    };
    // The group first, in one go; then whatever is outside of it.
    watched.tree.signal_group(signal).ok();
    if step == StopStep::Kill || watched.ended {
        watched.tree.signal_all(signal);
    }
}

fn is_gone(watched: &mut Watched) -> bool {
    if !watched.ended {
        return false;
    }
    if watched.tree.is_empty() {
        return true;
    }
    if watched.kill_at.is_some_and(|at| Instant::now() >= at) {
        watched.kill_at = Some(Instant::now() + SWEEP_GRACE);
        watched.tree.signal_all(StopSignal::Kill);
    }
    false
}
