//! Process trees, with real processes that hide the way agents do.
//!
//! All of them read a pipe that this program holds open, so none outlives it, even if a test fails.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use acpd_sys::process::{
    Condition, ExitKind, Liveness, ProcessId, StopSignal, become_subreaper, condition,
    detach_child, reap, reap_orphans, wait_leader,
};
use acpd_sys::tree::{Tree, Whose, nearest_above, runs_under_agent};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, getpgid};

/// A shell that starts others and says `up` once for each that is ready.
struct Agent {
    child: Child,
    id: ProcessId,
    marker: String,
    /// These tests count the children of this program.
    _alone: MutexGuard<'static, ()>,
}

/// Ready, and there until it is killed: what each process of a script ends as.
const STAY: &str = "echo up; exec cat <&3";

fn start(script: &str) -> Agent {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    become_subreaper().unwrap();
    // Unique among all that run at this moment, as markers have to be.
    let marker = format!("test-{}", std::process::id());
    let script = format!("exec 3<&0\n{}", script.replace("STAY", STAY));
    let mut sh = Command::new("sh");
    sh.args(["-c", &script]).env("ACPD_HOST", &marker).stdin(Stdio::piped()).stdout(Stdio::piped());
    detach_child(&mut sh);
    let mut child = sh.spawn().unwrap();
    let ready = script.matches("echo up").count();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.take(ready).map_while(Result::ok).count(), ready);
    let id = ProcessId::of(child.id()).unwrap();
    Agent { child, id, marker, _alone: alone }
}

impl Agent {
    /// Kills the leader and nothing else, and leaves it a zombie.
    fn kill_leader(&mut self) {
        self.child.kill().unwrap();
        assert_eq!(wait_leader(self.id.pid).unwrap(), ExitKind::Signal(9));
    }
}

/// All that are left end, become zombies of ours and are reaped.
fn kill_all(tree: &mut Tree, leader: ProcessId, expected: usize) {
    let left = tree.alive();
    assert_eq!(left.len(), expected, "{left:?}");
    assert_eq!(tree.signal_all(StopSignal::Kill), expected);
    for id in left {
        assert_eq!(wait_leader(id.pid).unwrap(), ExitKind::Signal(9));
        assert_eq!(id.is_alive(), Liveness::Gone);
    }
    assert!(tree.is_empty());
    assert_eq!(reap_orphans(&BTreeSet::from([leader.pid])), expected);
}

fn assert_no_children() {
    assert_eq!(waitpid(None, None), Err(Errno::ECHILD));
}

/// A child in the group; a tool in a session of its own; a daemon by double fork that has the
/// mark; one without the mark, in a group of its own, that lost its parent.
const HIDING: &str = "
sh -c 'STAY' &
setsid sh -c 'STAY' &
(setsid sh -c 'STAY' &)
env -i PATH=\"$PATH\" setsid sh -c '(STAY) & STAY' &
STAY";

#[test]
fn killing_the_leader_leaves_a_tree_that_is_found_and_emptied() {
    let mut agent = start(HIDING);
    let mut tree = Tree::new(&agent.marker, agent.id);
    assert_eq!(tree.refresh(), 6);
    agent.kill_leader();
    kill_all(&mut tree, agent.id, 5);
    assert_eq!(reap(agent.id.pid).unwrap(), ExitKind::Signal(9));
    assert_no_children();
}

#[test]
fn a_later_daemon_finds_what_is_left_by_the_mark_and_by_what_was_recorded() {
    let script = "
(setsid sh -c 'STAY' &)
(env -i PATH=\"$PATH\" sh -c 'STAY' &)
STAY";
    let mut agent = start(script);
    let recorded = Tree::new(&agent.marker, agent.id).alive();
    agent.kill_leader();
    reap(agent.id.pid).unwrap();
    // The session alone shows nothing: the leader's pid may have been another's since.
    assert_eq!(Tree::leftovers(&agent.marker, agent.id, &[]).refresh(), 1);
    let mut tree = Tree::leftovers(&agent.marker, agent.id, &recorded);
    kill_all(&mut tree, agent.id, 2);
    assert!(Tree::leftovers(&agent.marker, agent.id, &[]).is_empty());
    assert_no_children();
}

#[test]
fn what_has_another_mark_is_a_stranger_and_so_is_all_below_it() {
    let script = "
ACPD_HOST=\"$ACPD_HOST-other\" setsid sh -c '(STAY) & STAY' &
(STAY) &
STAY";
    let agent = start(script);
    let mut trees = [
        Tree::new(&agent.marker, agent.id),
        Tree::below_us(&agent.marker, agent.id),
        Tree::leftovers(&agent.marker, agent.id, &[]),
    ];
    assert_eq!(trees.each_mut().map(Tree::refresh), [2; 3]);
    let [tree, ..] = &mut trees;
    assert_eq!(tree.signal_all(StopSignal::Kill), 2);
    assert_eq!(reap(agent.id.pid).unwrap(), ExitKind::Signal(9));
    // These two have no other parent than us now, and are strangers all the same.
    let below = &mut trees[1];
    while !below.is_empty() {}
    let mut strangers = Tree::new(format!("{}-other", agent.marker), agent.id);
    let left = strangers.alive();
    assert_eq!(left.len(), 2);
    assert_eq!(strangers.signal_all(StopSignal::Kill), 2);
    for id in left {
        wait_leader(id.pid).unwrap();
    }
    reap_orphans(&BTreeSet::new());
    assert_no_children();
}

#[test]
fn the_subreaper_finds_all_without_marks_and_the_record_too() {
    let script = "
env -i PATH=\"$PATH\" setsid sh -c '(setsid sh -c \"STAY\") & STAY' &
STAY";
    let mut agent = start(script);
    let mut below = Tree::below_us(&agent.marker, agent.id);
    assert_eq!(below.refresh(), 3);
    let recorded = below.alive();
    agent.kill_leader();
    reap(agent.id.pid).unwrap();
    assert_eq!(below.refresh(), 2);
    assert_eq!(Tree::leftovers(&agent.marker, agent.id, &[]).refresh(), 0);
    let mut left = Tree::leftovers(&agent.marker, agent.id, &recorded);
    assert_eq!(left.alive(), below.alive());
    kill_all(&mut left, agent.id, 2);
    assert_no_children();
}

#[test]
fn what_a_tree_takes_is_counted_below_its_subreaper_and_strangers_are_left_out() {
    let own = ProcessId::of(std::process::id()).unwrap();
    // No `exec` after `up`: during one a process shows no mark, and would count as the agent's.
    let stay = "echo up; read -r line <&3";
    let stranger = format!("ACPD_HOST=\"$ACPD_HOST-other\" setsid sh -c '({stay}) & {stay}' &\n");
    let mut agent = start(&format!("{stranger}{}", HIDING.trim_start()));
    let mut tree = Tree::new(&agent.marker, agent.id);
    let usage = tree.usage_below(own);
    assert!(usage.bytes > 6 * 4096 && usage.processes == 6, "{usage:?}");
    // Seen before their parent is gone.
    tree.refresh();
    agent.kill_leader();
    assert_eq!(tree.usage_below(own).processes, 5);
    let gone = ProcessId { start: own.start - 1, ..own };
    assert_eq!(tree.usage_below(gone).processes, 0);

    let mut strangers = Tree::new(format!("{}-other", agent.marker), agent.id);
    kill_all(&mut strangers, agent.id, 2);
    kill_all(&mut tree, agent.id, 5);
    assert_eq!(reap(agent.id.pid).unwrap(), ExitKind::Signal(9));
    assert_no_children();
}

#[test]
fn a_group_signal_reaches_the_group_and_no_further() {
    let agent = start("sh -c 'STAY' &\nsetsid sh -c 'STAY' &\nSTAY");
    let mut tree = Tree::new(&agent.marker, agent.id);
    assert_eq!(tree.refresh(), 3);
    tree.signal_group(StopSignal::Term).unwrap();
    assert_eq!(reap(agent.id.pid).unwrap(), ExitKind::Signal(15));
    let own_session = |id: &ProcessId| getpgid(Some(pid(*id))) == Ok(pid(*id));
    let (apart, group): (Vec<_>, Vec<_>) = tree.alive().into_iter().partition(own_session);
    assert_eq!(apart.len(), 1);
    // The rest of the group may still be on its way out.
    for id in group {
        assert_eq!(wait_leader(id.pid).unwrap(), ExitKind::Signal(15));
    }
    reap_orphans(&BTreeSet::new());
    kill_all(&mut tree, agent.id, 1);
    tree.signal_group(StopSignal::Kill).unwrap();
    assert_no_children();
}

fn pid(id: ProcessId) -> Pid {
    Pid::from_raw(id.pid as i32)
}

#[test]
fn trees_do_not_mix() {
    let mut agent = start("STAY");
    let own = ProcessId::of(std::process::id()).unwrap();
    // This program is the leader's parent, and a leader of nothing.
    assert_eq!(Tree::new("two", agent.id).alive(), [agent.id]);
    assert!(Tree::new("two", ProcessId { start: 1, ..own }).is_empty());
    agent.kill_leader();
    reap(agent.id.pid).unwrap();
    assert_no_children();
}

#[test]
fn a_pid_that_is_used_again_is_another_process() {
    let own = ProcessId::of(std::process::id()).unwrap();
    assert_eq!(own.is_alive(), Liveness::Alive);
    let earlier = ProcessId { start: own.start - 1, ..own };
    assert_eq!(earlier.is_alive(), Liveness::Gone);
    assert_eq!(ProcessId::of(0), None);
    assert_eq!(ProcessId::of(u32::MAX), None);
}

#[test]
fn a_zombie_is_gone_but_keeps_its_pid_until_it_is_reaped() {
    let mut agent = start("STAY");
    agent.kill_leader();
    assert_eq!(agent.id.is_alive(), Liveness::Gone);
    assert_eq!(ProcessId::of(agent.id.pid), Some(agent.id));
    reap(agent.id.pid).unwrap();
    assert_eq!(ProcessId::of(agent.id.pid), None);
    wait_leader(agent.id.pid).unwrap_err();
}

#[test]
fn l16_the_system_tells_whether_a_process_is_stopped() {
    let mut agent = start("STAY");
    let pid = agent.id.pid;
    let is = |wanted: Condition| while condition(pid) != Some(wanted) {};
    is(Condition::Running);
    kill(self::pid(agent.id), Signal::SIGSTOP).unwrap();
    is(Condition::Stopped);
    kill(self::pid(agent.id), Signal::SIGCONT).unwrap();
    is(Condition::Running);
    agent.kill_leader();
    is(Condition::Ended);
    reap(pid).unwrap();
    assert_eq!(condition(pid), None);
    assert_eq!(Condition::Stopped.to_string(), "stopped");
}

#[test]
fn l1_what_is_below_this_process_is_an_agents_unless_it_is_known_to_be_nobodys() {
    let mut agent = start("env -i sh -c 'STAY' &\nSTAY");
    let mut tree = Tree::new(&agent.marker, agent.id);
    let alive = tree.alive();
    let (leader, below) = (agent.id, alive.iter().find(|id| **id != agent.id).copied().unwrap());
    let unknown = |_| None;
    let known = |whose| move |id| (id == leader).then_some(whose);
    for id in [leader, below] {
        assert!(runs_under_agent(id.pid, unknown).unwrap());
        assert!(runs_under_agent(id.pid, known(Whose::Agents)).unwrap());
    }
    assert!(!runs_under_agent(leader.pid, known(Whose::Users)).unwrap());
    assert!(!runs_under_agent(below.pid, known(Whose::Users)).unwrap());
    let owner = |id| (id == leader).then_some(7);
    assert_eq!(nearest_above(leader.pid, owner), Some(7));
    assert_eq!(nearest_above(below.pid, owner), Some(7));
    assert_eq!(nearest_above(std::process::id(), owner), None);
    // An orphan is a child of this process, and its owner is unknown.
    agent.kill_leader();
    assert!(runs_under_agent(below.pid, |id| (id == leader).then_some(Whose::Users)).unwrap());
    kill_all(&mut tree, leader, 1);
    reap(leader.pid).unwrap();
}

#[test]
fn l1_who_has_ended_is_not_shown_to_be_outside() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    assert!(runs_under_agent(pid, |_| None).unwrap());
    assert!(!runs_under_agent(1, |_| None).unwrap(), "init is nobody's");
}
