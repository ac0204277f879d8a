//! Cases of Unix alone: signals, sessions, environments that others can read.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::Duration;

use acpd_shim::frame::{Stage, Status, Step, ToShim};
use acpd_shim::launch::{How, Program};
use acpd_shim::orphans::Orphans;
use acpd_shim::shim_dir::{Identity, ShimDir};
use acpd_sys::process::{ExitKind, Liveness, ProcessId, StopSignal};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::common::{Heard, Host, agent, launch, program, shim, wait_until};
use crate::leaves_nothing;

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("a_request_to_end_is_passed_on", a_request_to_end_is_passed_on),
    ("a_command_leaves_processes_until_its_stop", a_command_leaves_processes_until_its_stop),
    ("a_command_ends_with_its_daemon", a_command_ends_with_its_daemon),
    ("a_stop_finds_every_descendant", a_stop_finds_every_descendant),
    ("a_daemon_below_an_agent_outlives_it", a_daemon_below_an_agent_outlives_it),
    ("leftovers_of_an_agent_that_died_are_ended", leftovers_of_an_agent_that_died_are_ended),
    ("a_disk_that_takes_nothing_is_waited_for", a_disk_that_takes_nothing_is_waited_for),
    ("a_terminated_shim_stops_its_agent", a_terminated_shim_stops_its_agent),
    ("a_killed_shim_leaves_orphans_that_are_found", a_killed_shim_leaves_orphans_that_are_found),
    (
        "an_agent_that_was_not_reported_was_never_there",
        an_agent_that_was_not_reported_was_never_there,
    ),
];

fn sh(script: &str) -> How {
    How::Stdio(program("/bin/sh", &["-c", script]))
}

fn pid(id: ProcessId) -> Pid {
    Pid::from_raw(id.pid as i32)
}

/// Says its pid and stays.
const STAY: &str = "echo $$; exec tail -f /dev/null";

fn a_stop_finds_every_descendant() {
    let script = "sh -c 'STAY' & setsid sh -c 'STAY' & (setsid sh -c 'STAY' &)
        env -i PATH=\"$PATH\" setsid sh -c '(setsid sh -c \"STAY\" &) ; STAY' & STAY";
    let (host, mut daemon) =
        Host::greeted(sh(&script.replace("STAY", STAY).replace("\"echo $$", "\"echo \\$\\$")));
    let ids: Vec<ProcessId> = daemon.read_pids(6);
    daemon.say(&ToShim::Signal(Step::Kill));
    daemon.end(Status::Signal(9));
    for id in ids {
        assert_eq!(id.is_alive(), Liveness::Gone);
    }
    host.assert_clean();
}

fn a_daemon_below_an_agent_outlives_it() {
    // No `exec` after its pid: during one a process shows no mark, and would count as the agent's.
    let below = "fifo=$(mktemp -u); mkfifo $fifo; exec 3<>$fifo; rm $fifo
        (ACPD_HOST=- setsid sh -c 'echo $$; read line <&3' &)";
    let (host, mut daemon) = Host::greeted(sh(&format!("{below}; {STAY}")));
    let leader = host.started.agent.unwrap();
    let ids = daemon.read_pids(2);
    daemon.say(&ToShim::Signal(Step::Kill));
    daemon.end(Status::Signal(9));
    let stranger = ids.into_iter().find(|id| *id != leader).unwrap();
    assert_eq!(stranger.is_alive(), Liveness::Alive);
    kill(pid(stranger), Signal::SIGKILL).unwrap();
    host.assert_clean();
}

fn leftovers_of_an_agent_that_died_are_ended() {
    let stubborn = "trap \"\" TERM; echo $$; while :; do tail -f /dev/null; done";
    leaves_nothing(sh(&format!("setsid sh -c '{stubborn}' & read line; exit 3")));
}

fn a_disk_that_takes_nothing_is_waited_for() {
    let host = Host::start(sh("exec cat"));
    let agent = host.started.agent.unwrap();
    let in_the_way = host.shim_dir.path().join("exit.new");
    std::fs::create_dir(&in_the_way).unwrap();
    let mut daemon = host.connect();
    daemon.hello(0);
    daemon.say(&ToShim::Lease { ms: 1 });
    drop(daemon);
    // Not even a zombie, so its end was to be written.
    wait_until(|| ProcessId::of(agent.pid) != Some(agent));
    std::fs::remove_dir(&in_the_way).unwrap();
    assert_eq!(host.exit(), ExitKind::Code(0));
    assert_eq!(host.shim_dir.exit().unwrap(), Some(Status::Code(0)));
}

fn a_terminated_shim_stops_its_agent() {
    let host = Host::start(sh("exec cat"));
    kill(pid(host.started.shim), Signal::SIGINT).unwrap();
    kill(pid(host.started.shim), Signal::SIGTERM).unwrap();
    assert_eq!(host.exit(), ExitKind::Code(0));
    assert_eq!(host.shim_dir.exit().unwrap(), Some(Status::Code(0)));
}

fn a_killed_shim_leaves_orphans_that_are_found() {
    let script = format!("env -i PATH=\"$PATH\" setsid sh -c '{STAY}' & {STAY}");
    let (host, mut daemon) = Host::greeted(sh(&script));
    let ids = daemon.read_pids(2);
    // One without a mark and in a session of its own is known by the record alone.
    let has_cgroup = host.shim_dir.record().unwrap().unwrap().cgroup.is_some();
    let is_recorded = || {
        let tree = host.shim_dir.tree().unwrap();
        ids.iter().all(|id| tree.contains(id))
    };
    wait_until(|| has_cgroup || is_recorded());
    assert_eq!(host.kill(), ExitKind::Signal(9));
    daemon.wait_for(&Heard::Lost);
    assert_eq!(host.shim_dir.verify(), Identity::Dead);
    let mut orphans = Orphans::of(&host.shim_dir);
    assert!(!orphans.is_gone());
    orphans.signal(StopSignal::Kill);
    wait_until(|| orphans.is_gone());
    for id in ids {
        assert_eq!(id.is_alive(), Liveness::Gone);
    }
    assert_eq!(host.shim_dir.exit().unwrap(), None);
}

/// The daemon is killed while it waits for the word that the agent runs. The next one, which looks at this
/// moment, must not take the agent for one that ran and failed.
fn an_agent_that_was_not_reported_was_never_there() {
    let state = TempDir::new().unwrap();
    let launch = launch(sh("exec tail -f /dev/null"), state.path());
    let kept = ShimDir::create(state.path(), "kept").unwrap();
    let shim_dir = ShimDir::of(state.path(), &launch.marker);
    // The shim removes the link in place of the directory, whose last state stays.
    symlink(kept.path(), shim_dir.path()).unwrap();
    let mut child = shim(&shim_dir).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let body = launch.encode();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&(body.len() as u32).to_le_bytes()).unwrap();
    stdin.write_all(&body).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(!shim_dir.path().exists());
    let agent = kept.record().unwrap().unwrap().agent.unwrap();
    assert_eq!(agent.is_alive(), Liveness::Gone);
    assert_eq!(kept.exit().unwrap(), None);
}

fn a_request_to_end_is_passed_on() {
    let (host, mut daemon) = Host::greeted(agent("say up;stay"));
    daemon.read_output(0, b"up\n");
    daemon.say(&ToShim::Signal(Step::Term));
    daemon.end(Status::Signal(15));
    host.assert_clean();
}

/// A command that is a line.
fn command(line: &str) -> How {
    How::Command { program: Program { program: line.into(), ..program("", &[]) }, is_line: true }
}

fn a_command_leaves_processes_until_its_stop() {
    let dir = TempDir::new().unwrap();
    let go = dir.path().join("go");
    let late = format!("until [ -e '{}' ]; do sleep 0.1; done; {STAY}", go.display());
    let line = "cat; echo one; echo two >&2; (setsid sh -c \"LATE\" &); exit 7";
    let late = late.replace('$', "\\$");
    let (host, mut daemon) = Host::greeted(command(&line.replace("LATE", &late)));
    daemon.read_output(0, b"one\ntwo\n");
    assert_eq!(daemon.exit(Stage::Ended), Status::Code(7));
    std::fs::write(&go, "").unwrap();
    let Heard::Out(8, pid) = daemon.next() else { panic!("it is not heard any more") };
    let pid = std::str::from_utf8(&pid).unwrap().trim().parse().unwrap();
    let left = ProcessId::of(pid).unwrap();
    assert_eq!(left.is_alive(), Liveness::Alive);
    daemon.say(&ToShim::Signal(Step::Term));
    daemon.end(Status::Code(7));
    assert_eq!(left.is_alive(), Liveness::Gone);
    host.assert_clean();
}

fn a_command_ends_with_its_daemon() {
    let line = format!("setsid sh -c 'trap \"\" TERM; {STAY}' & {STAY}");
    let host = Host::start_with(command(&line), |launch| {
        (launch.ladder.eof, launch.ladder.term) = (Duration::ZERO, Duration::from_millis(1));
    });
    let mut daemon = host.connect();
    daemon.hello(0);
    let ids = daemon.read_pids(2);
    daemon.say(&ToShim::Lease { ms: 1 });
    drop(daemon);
    host.assert_clean();
    assert!(ids.iter().all(|id| id.is_alive() == Liveness::Gone));
}
