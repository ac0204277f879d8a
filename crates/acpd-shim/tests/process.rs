//! Shims as processes, with a test in the daemon's place.
//!
//! This program is the tests, and the shims and some of the agents in them: so it has no harness.

mod common;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use acpd_shim::frame::{PIECE, Stage, Status, Step, ToShim, WINDOW};
use acpd_shim::launch::{How, StartError};
use acpd_shim::orphans::Orphans;
use acpd_shim::shim_dir::Identity;
use acpd_sys::process::{ExitKind, Liveness, ProcessId, StopSignal, pss_bytes, reap};

use common::{Heard, Host, program, sh, wait_until};

const TESTS: &[(&str, fn())] = &[
    ("what_goes_in_comes_out_and_nothing_stays", what_goes_in_comes_out_and_nothing_stays),
    ("a_new_daemon_goes_on_in_the_middle", a_new_daemon_goes_on_in_the_middle),
    ("the_last_daemon_is_the_daemon", the_last_daemon_is_the_daemon),
    ("a_flood_while_nobody_is_there_is_held_back", a_flood_while_nobody_is_there_is_held_back),
    ("a_blocked_agent_blocks_nothing_else", a_blocked_agent_blocks_nothing_else),
    ("a_stop_finds_every_descendant", a_stop_finds_every_descendant),
    ("a_daemon_below_an_agent_outlives_it", a_daemon_below_an_agent_outlives_it),
    ("leftovers_of_an_agent_that_died_are_ended", leftovers_of_an_agent_that_died_are_ended),
    ("an_exit_is_told_until_it_is_recorded", an_exit_is_told_until_it_is_recorded),
    ("a_lease_that_runs_out_leaves_what_is_unread", a_lease_that_runs_out_leaves_what_is_unread),
    ("a_disk_that_takes_nothing_is_waited_for", a_disk_that_takes_nothing_is_waited_for),
    ("a_stop_goes_on_without_the_daemon", a_stop_goes_on_without_the_daemon),
    ("a_terminated_shim_stops_its_agent", a_terminated_shim_stops_its_agent),
    ("a_killed_shim_leaves_orphans_that_are_found", a_killed_shim_leaves_orphans_that_are_found),
    ("an_agent_that_cannot_start_says_why", an_agent_that_cannot_start_says_why),
    ("an_agent_sees_its_own_environment_alone", an_agent_sees_its_own_environment_alone),
    ("stderr_is_heard_and_quoted", stderr_is_heard_and_quoted),
    ("a_connected_agent_ends_with_its_connection", a_connected_agent_ends_with_its_connection),
    ("an_agent_with_a_port_is_waited_for", an_agent_with_a_port_is_waited_for),
    ("a_daemon_of_an_older_release_is_served", a_daemon_of_an_older_release_is_served),
];

#[expect(clippy::print_stdout, reason = "it is its own harness")]
fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["shim", dir] => return acpd_shim::run(Path::new(dir)),
        ["serve", port] => return serve(port.parse().unwrap()),
        _ => {}
    }
    if args.iter().any(|arg| arg == "--list") {
        // None is ignored. A runner that asks for those and hears of all would run none.
        let is_asked = !args.iter().any(|arg| arg == "--ignored");
        for (name, _) in TESTS.iter().filter(|_| is_asked) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let words: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(*word));
    let mut failed = 0;
    for (name, test) in TESTS.iter().filter(|(name, _)| wanted(name)) {
        let passed = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += usize::from(!passed);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// An agent that answers on a port: says back what it hears.
fn serve(port: u16) -> ExitCode {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut copy = stream.try_clone().unwrap();
    std::io::copy(&mut stream, &mut copy).ok();
    ExitCode::SUCCESS
}

fn what_goes_in_comes_out_and_nothing_stays() {
    let host = Host::start(sh("exec cat"));
    let Identity::Alive(record) = host.shim_dir.verify() else { panic!("it runs") };
    assert_eq!(Some(record.shim), Some(host.started.shim));
    assert_eq!(record.agent, host.started.agent);
    let mut daemon = host.connect();
    let hello = daemon.hello(0);
    assert_eq!((hello.shim, hello.agent), (record.shim.pid, record.agent.unwrap().pid));
    assert_eq!((hello.base, hello.end, hello.chunk, hello.at, hello.written), (0, 0, 1, 0, 0));
    assert_eq!(hello.credit, WINDOW);
    daemon.write_chunk(1, b"one\n");
    daemon.write_chunk(2, b"two\n");
    daemon.read_output(0, b"one\ntwo\n");
    daemon.wait_written(2);
    daemon.say(&ToShim::Ack { offset: 8 });
    daemon.say(&ToShim::Signal(Step::CloseStdin));
    daemon.end(Status::Code(0));
    host.assert_clean();
}

fn a_new_daemon_goes_on_in_the_middle() {
    let host = Host::start(sh("exec cat"));
    let mut first = host.connect();
    first.hello(0);
    first.say(&ToShim::In { chunk: 1, at: 0, last: false, bytes: b"hel" });
    first.read_output(0, b"hel");
    drop(first);

    let mut second = host.connect();
    let hello = second.hello(1);
    assert_eq!((hello.base, hello.end), (1, 3));
    assert_eq!((hello.chunk, hello.at, hello.written), (1, 3, 0));
    second.read_output(1, b"el");
    // What was sent before and what was not: nothing is lost, nothing comes twice.
    second.say(&ToShim::In { chunk: 1, at: 0, last: false, bytes: b"he" });
    second.say(&ToShim::In { chunk: 1, at: 1, last: true, bytes: b"ello\n" });
    second.say(&ToShim::In { chunk: 1, at: 0, last: true, bytes: b"hello\n" });
    second.read_output(3, b"lo\n");
    second.wait_written(1);
    // A gap is a mistake.
    second.say(&ToShim::In { chunk: 3, at: 0, last: true, bytes: b"?" });
    second.wait_for(&Heard::Lost);
    drop(second);

    let mut third = host.connect();
    assert_eq!(third.hello(6).written, 1);
    third.say(&ToShim::Signal(Step::Kill));
    third.end(Status::Signal(9));
    host.assert_clean();
}

fn the_last_daemon_is_the_daemon() {
    let host = Host::start(sh("exec cat"));
    let mut first = host.connect();
    first.hello(0);
    // Who says nothing replaces nobody.
    let silent = host.connect();
    first.write_chunk(1, b"1\n");
    first.read_output(0, b"1\n");
    drop(silent);
    let mut second = host.connect();
    second.hello(2);
    first.wait_for(&Heard::Lost);
    // Who does not say hello is no daemon.
    let mut rude = host.connect();
    rude.say(&ToShim::Signal(Step::Kill));
    rude.wait_for(&Heard::Lost);
    second.write_chunk(2, b"2\n");
    second.read_output(2, b"2\n");
    second.say(&ToShim::Signal(Step::Term));
    second.end(Status::Signal(15));
    host.assert_clean();
}

fn a_flood_while_nobody_is_there_is_held_back() {
    const LINES: u64 = 34_500_000;
    let host = Host::start(sh(&format!("seq {LINES}; exec cat")));
    let spool = host.shim_dir.path().join("spool");
    let full = host.launch.spool;
    let length = || spool.metadata().map_or(0, |found| found.len());
    wait_until(|| length() >= full);
    let mut daemon = host.connect();
    let hello = daemon.hello(0);
    assert!(hello.end <= full + host.launch.memory, "{} bytes are kept", hello.end);
    let pss = pss_bytes(hello.shim).unwrap();
    assert!(pss < 10 << 20, "{pss} bytes of memory");
    let (mut line, mut expected, mut offset) = (0_u64, Vec::new(), 0_u64);
    while line < LINES || !expected.is_empty() {
        let Heard::Out(at, bytes) = daemon.next() else { continue };
        assert_eq!(at, offset);
        offset += bytes.len() as u64;
        while expected.len() < bytes.len() && line < LINES {
            line += 1;
            writeln!(expected, "{line}").unwrap();
        }
        assert!(expected.starts_with(&bytes), "before offset {offset}, line {line}");
        expected.drain(..bytes.len());
        assert!(length() <= full + 8);
        daemon.say(&ToShim::Ack { offset });
    }
    assert!(offset > full + host.launch.memory);
    wait_until(|| !spool.exists());
    daemon.say(&ToShim::Signal(Step::CloseStdin));
    daemon.end(Status::Code(0));
    host.assert_clean();
}

fn a_blocked_agent_blocks_nothing_else() {
    let host = Host::start(sh("echo up; exec tail -f /dev/null"));
    let mut daemon = host.connect();
    daemon.hello(0);
    daemon.read_output(0, b"up\n");
    let piece = vec![b'x'; PIECE];
    let pieces = WINDOW / PIECE as u32;
    for number in 0..pieces {
        let at = number * PIECE as u32;
        daemon.say(&ToShim::In { chunk: 1, at, last: false, bytes: &piece });
    }
    daemon.say(&ToShim::Ack { offset: 3 });
    daemon.say(&ToShim::Lease { ms: 0 });
    let hello = daemon.hello(0);
    assert_eq!((hello.base, hello.at), (3, WINDOW));
    assert!(hello.credit < WINDOW);
    // Beyond the credit there is no place for it.
    for number in 0..pieces {
        let at = WINDOW + number * PIECE as u32;
        daemon.say(&ToShim::In { chunk: 1, at, last: false, bytes: &piece });
    }
    daemon.wait_for(&Heard::Lost);
    let mut daemon = host.connect();
    daemon.hello(3);
    daemon.say(&ToShim::Signal(Step::Term));
    daemon.end(Status::Signal(15));
    host.assert_clean();
}

/// Says its pid and stays.
const STAY: &str = "echo $$; exec tail -f /dev/null";

fn a_stop_finds_every_descendant() {
    let script = "sh -c 'STAY' & setsid sh -c 'STAY' & (setsid sh -c 'STAY' &)
        env -i PATH=\"$PATH\" setsid sh -c '(setsid sh -c \"STAY\" &) ; STAY' & STAY";
    let host = Host::start(sh(&script.replace("STAY", STAY).replace("\"echo $$", "\"echo \\$\\$")));
    let mut daemon = host.connect();
    daemon.hello(0);
    let ids: Vec<ProcessId> = daemon.read_pids(6);
    daemon.say(&ToShim::Signal(Step::Kill));
    daemon.end(Status::Signal(9));
    for id in ids {
        assert_eq!(id.is_alive(), Liveness::Gone);
    }
    host.assert_clean();
}

fn a_daemon_below_an_agent_outlives_it() {
    let host = Host::start(sh(&format!("(ACPD_HOST=- setsid sh -c '{STAY}' &) ; {STAY}")));
    let mut daemon = host.connect();
    daemon.hello(0);
    let leader = host.started.agent.unwrap();
    let ids = daemon.read_pids(2);
    daemon.say(&ToShim::Signal(Step::Kill));
    daemon.end(Status::Signal(9));
    let stranger = ids.into_iter().find(|id| *id != leader).unwrap();
    assert_eq!(stranger.is_alive(), Liveness::Alive);
    let pid = nix::unistd::Pid::from_raw(stranger.pid as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    host.assert_clean();
}

fn leftovers_of_an_agent_that_died_are_ended() {
    let stubborn = "trap \"\" TERM; echo $$; while :; do tail -f /dev/null; done";
    let host = Host::start(sh(&format!("setsid sh -c '{stubborn}' & read line; exit 3")));
    let mut daemon = host.connect();
    daemon.hello(0);
    let ids = daemon.read_pids(1);
    daemon.write_chunk(1, b"\n");
    assert_eq!(daemon.exit(Stage::Ended), Status::Code(3));
    assert_eq!(host.shim_dir.exit().unwrap(), Some(Status::Code(3)));
    daemon.end(Status::Code(3));
    assert_eq!(ids[0].is_alive(), Liveness::Gone);
    host.assert_clean();
}

fn an_exit_is_told_until_it_is_recorded() {
    let host = Host::start(sh("echo bye; exit 4"));
    for _ in 0..2 {
        let mut daemon = host.connect();
        daemon.hello(0);
        daemon.read_output(0, b"bye\n");
        assert_eq!(daemon.exit(Stage::Ended), Status::Code(4));
        assert_eq!(daemon.exit(Stage::Gone), Status::Code(4));
    }
    let mut daemon = host.connect();
    assert_eq!(daemon.hello(4).base, 4);
    daemon.end(Status::Code(4));
    host.assert_clean();
}

fn a_lease_that_runs_out_leaves_what_is_unread() {
    let host = Host::start_with(sh("echo kept; cat; echo end"), |launch| {
        launch.lease = Some(Duration::from_millis(1));
    });
    assert_eq!(reap(host.started.shim.pid).unwrap(), ExitKind::Code(0));
    assert_eq!(host.shim_dir.verify(), Identity::Dead);
    assert!(!host.launch.socket.exists());
    assert_eq!(host.shim_dir.exit().unwrap(), Some(Status::Code(0)));
    let mut left = host.shim_dir.leftover(2).unwrap().unwrap();
    let mut text = String::new();
    left.bytes.read_to_string(&mut text).unwrap();
    assert_eq!((left.offset, text.as_str()), (2, "pt\nend\n"));
    assert!(Orphans::of(&host.shim_dir).is_gone());
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
    assert_eq!(reap(host.started.shim.pid).unwrap(), ExitKind::Code(0));
    assert_eq!(host.shim_dir.exit().unwrap(), Some(Status::Code(0)));
}

fn a_stop_goes_on_without_the_daemon() {
    let host = Host::start_with(sh("echo up; exec tail -f /dev/null"), |launch| {
        launch.ladder.eof = Duration::from_millis(1);
    });
    let mut daemon = host.connect();
    daemon.hello(0);
    daemon.read_output(0, b"up\n");
    daemon.say(&ToShim::Signal(Step::CloseStdin));
    drop(daemon);
    wait_until(|| host.shim_dir.exit().unwrap() == Some(Status::Signal(15)));
    let mut daemon = host.connect();
    daemon.hello(3);
    daemon.end(Status::Signal(15));
    host.assert_clean();
}

fn a_terminated_shim_stops_its_agent() {
    let host = Host::start(sh("exec cat"));
    let pid = nix::unistd::Pid::from_raw(host.started.shim.pid as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(reap(host.started.shim.pid).unwrap(), ExitKind::Code(0));
    assert_eq!(host.shim_dir.exit().unwrap(), Some(Status::Code(0)));
}

fn a_killed_shim_leaves_orphans_that_are_found() {
    let script = format!("env -i PATH=\"$PATH\" setsid sh -c '{STAY}' & {STAY}");
    let host = Host::start(sh(&script));
    let mut daemon = host.connect();
    daemon.hello(0);
    let ids = daemon.read_pids(2);
    // One without a mark and in a session of its own is known by the record alone.
    wait_until(|| host.has_recorded(&ids));
    let pid = nix::unistd::Pid::from_raw(host.started.shim.pid as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    assert_eq!(reap(host.started.shim.pid).unwrap(), ExitKind::Signal(9));
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

fn an_agent_that_cannot_start_says_why() {
    let refused = |how, permanent, word: &str| {
        let error = Host::try_start(how, |_| {}).unwrap_err();
        assert!(matches!(error, StartError::Agent { .. }), "{error:?}");
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!(error.is_permanent(), permanent);
    };
    let stdio = |program: &str, cwd: &str| {
        How::Stdio(acpd_shim::launch::Program { cwd: cwd.into(), ..common::program(program, &[]) })
    };
    refused(stdio("/no/such/agent", "/"), true, "/no/such/agent");
    refused(stdio("/bin/sh", "/no/such/dir"), true, "/no/such/dir");
    refused(stdio("/dev/null", "/"), true, "/dev/null");
    let port = common::free_port();
    let timeout = Duration::from_millis(1);
    let silent = program("/bin/sh", &["-c", "exec tail -f /dev/null"]);
    refused(How::TcpSpawn { program: silent, port, timeout }, false, "127.0.0.1");
    let addr = (Ipv4Addr::LOCALHOST, port).into();
    refused(How::TcpConnect { addr, timeout: Duration::from_secs(9) }, false, "127.0.0.1");
}

fn an_agent_sees_its_own_environment_alone() {
    let host = Host::start(How::Stdio(program("/usr/bin/env", &[])));
    let expected = format!("PATH={}\nACPD_HOST={}\n", common::path(), host.launch.marker);
    let mut lines: Vec<&str> = expected.lines().collect();
    lines.sort_unstable();
    let mut daemon = host.connect();
    daemon.hello(0);
    let text = daemon.read_bytes(expected.len());
    let mut found: Vec<&str> = text.lines().collect();
    found.sort_unstable();
    assert_eq!(found, lines);
    daemon.end(Status::Code(0));
    host.assert_clean();
}

fn stderr_is_heard_and_quoted() {
    let host = Host::start(sh("echo oops >&2; read line; echo again >&2; exit 1"));
    let mut daemon = host.connect();
    daemon.hello(0);
    daemon.wait_for(&Heard::Err(b"oops\n".to_vec()));
    daemon.write_chunk(1, b"\n");
    daemon.wait_for(&Heard::Exit(Stage::Ended, Status::Code(1), b"oops\nagain\n".to_vec()));
    daemon.end(Status::Code(1));
    host.assert_clean();
}

fn a_connected_agent_ends_with_its_connection() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    let host = Host::start(How::TcpConnect { addr, timeout: Duration::from_secs(9) });
    assert_eq!(host.started.agent, None);
    let (mut agent, _) = listener.accept().unwrap();
    let mut daemon = host.connect();
    assert_eq!(daemon.hello(0).agent, 0);
    daemon.write_chunk(1, b"hi\n");
    let mut heard = [0; 3];
    agent.read_exact(&mut heard).unwrap();
    agent.write_all(&heard).unwrap();
    daemon.read_output(0, b"hi\n");
    drop(agent);
    daemon.end(Status::Closed);
    host.assert_clean();
}

fn an_agent_with_a_port_is_waited_for() {
    let port = common::free_port();
    let exe = std::env::current_exe().unwrap();
    let program = program(exe.to_str().unwrap(), &["serve", &port.to_string()]);
    let host = Host::start(How::TcpSpawn { program, port, timeout: Duration::from_mins(1) });
    assert!(host.started.agent.is_some());
    let mut daemon = host.connect();
    daemon.hello(0);
    daemon.write_chunk(1, b"hi\n");
    daemon.read_output(0, b"hi\n");
    daemon.say(&ToShim::Signal(Step::CloseStdin));
    // Not that it has closed the connection: that is how it ends.
    daemon.end(Status::Code(0));
    host.assert_clean();
}

/// What a daemon of each release has said (see `releases.rs`), said again to a shim whose agent echoes.
fn a_daemon_of_an_older_release_is_served() {
    /// What the shim of that time had put out before, and what it was to take.
    const BEFORE: (usize, u64) = (2294, 3);
    for release in ["0.1.0", "0.2.0"] {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/releases"));
        let said = std::fs::read(path.join(release).join("to-shim")).unwrap();
        let host = Host::start(How::Stdio(program("cat", &[])));
        let mut daemon = host.connect();
        daemon.hello(0);
        let line = [vec![b'x'; BEFORE.0 - 5], b"\n".to_vec()].concat();
        for (chunk, line) in (1..).zip([&b"a\n"[..], b"b\n", &line]) {
            daemon.write_chunk(chunk, line);
        }
        daemon.wait_written(BEFORE.1);
        drop(daemon);

        let mut daemon = host.connect();
        // The two orders at the end come when what was asked for before is there.
        let (first, rest) = said.split_at(said.len() - 11);
        daemon.say_bytes(first);
        let Heard::Hello(hello) = daemon.next() else { panic!("no hello") };
        assert_eq!((hello.chunk, hello.written), (BEFORE.1 + 1, BEFORE.1));
        daemon.wait_for(&Heard::Exit(Stage::Gone, Status::Code(0), Vec::new()));
        daemon.say_bytes(rest);
        daemon.wait_for(&Heard::Lost);
        host.assert_clean();
    }
}
