//! Shims as processes, with a test in the daemon's place.
//!
//! This program is the tests, and the shims and the agents in them: so it has no harness.

mod common;

#[path = "parts/agent.rs"]
mod script;
#[cfg_attr(unix, path = "parts/unix.rs")]
#[cfg_attr(windows, path = "parts/windows.rs")]
mod system;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use acpd_shim::frame::{PIECE, Stage, Status, Step, ToShim, WINDOW};
use acpd_shim::launch::{How, Program, StartError};
use acpd_shim::orphans::Orphans;
use acpd_shim::shim_dir::Identity;
use acpd_sys::process::{ExitKind, Liveness, rss_bytes};

use common::{Heard, Host, KILLED, agent, own, program, wait_until};

const TESTS: &[(&str, fn())] = &[
    ("what_goes_in_comes_out_and_nothing_stays", what_goes_in_comes_out_and_nothing_stays),
    ("a_new_daemon_goes_on_in_the_middle", a_new_daemon_goes_on_in_the_middle),
    ("the_last_daemon_is_the_daemon", the_last_daemon_is_the_daemon),
    ("a_flood_without_a_daemon_is_held_back", a_flood_without_a_daemon_is_held_back),
    ("a_blocked_agent_blocks_nothing_else", a_blocked_agent_blocks_nothing_else),
    ("an_exit_is_told_until_it_is_recorded", an_exit_is_told_until_it_is_recorded),
    ("a_stop_ends_what_an_agent_has_started", a_stop_ends_what_an_agent_has_started),
    ("what_an_agent_leaves_is_ended", what_an_agent_leaves_is_ended),
    ("a_lease_that_runs_out_leaves_what_is_unread", a_lease_that_runs_out_leaves_what_is_unread),
    ("a_stop_goes_on_without_the_daemon", a_stop_goes_on_without_the_daemon),
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
        ["agent", script] => return script::play(script),
        ["serve", port] => return serve(port.parse().unwrap()),
        _ => {}
    }
    if args.iter().any(|arg| arg == "--list") {
        // None is ignored. A runner that asks for those and hears of all would run none.
        let is_asked = !args.iter().any(|arg| arg == "--ignored");
        for (name, _) in tests().filter(|_| is_asked) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let (mut words, mut skipped, mut rest) = (Vec::new(), Vec::new(), args.iter());
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--skip" => skipped.extend(rest.next()),
            option if option.starts_with('-') => {}
            _ => words.push(arg),
        }
    }
    let is_in = |words: &[&String], name: &str| words.iter().any(|word| name.contains(*word));
    let wanted = |name: &str| (words.is_empty() || is_in(&words, name)) && !is_in(&skipped, name);
    let mut failed = 0;
    for (name, test) in tests().filter(|(name, _)| wanted(name)) {
        let passed = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += usize::from(!passed);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tests() -> impl Iterator<Item = &'static (&'static str, fn())> {
    TESTS.iter().chain(system::TESTS)
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
    let host = Host::start(agent("cat"));
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
    let (host, mut first) = Host::greeted(agent("cat"));
    first.say(&ToShim::In { chunk: 1, at: 0, last: false, bytes: b"hel" });
    first.read_output(0, b"hel");
    drop(first);

    let mut second = host.connect();
    let hello = second.hello(1);
    assert_eq!((hello.base, hello.end), (1, 3));
    assert_eq!((hello.chunk, hello.at, hello.written), (1, 3, 0));
    second.read_output(1, b"el");
    // Nothing is lost, nothing comes twice, whether it was sent before or not.
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
    third.end(KILLED.into());
    host.assert_clean();
}

fn the_last_daemon_is_the_daemon() {
    let (host, mut first) = Host::greeted(agent("cat"));
    // A silent connection replaces no daemon.
    let silent = host.connect();
    first.write_chunk(1, b"1\n");
    first.read_output(0, b"1\n");
    drop(silent);
    let mut second = host.connect();
    second.hello(2);
    first.wait_for(&Heard::Lost);
    // A connection without a hello is no daemon's.
    let mut rude = host.connect();
    rude.say(&ToShim::Signal(Step::Kill));
    rude.wait_for(&Heard::Lost);
    second.write_chunk(2, b"2\n");
    second.read_output(2, b"2\n");
    second.say(&ToShim::Signal(Step::Kill));
    second.end(KILLED.into());
    host.assert_clean();
}

fn a_flood_without_a_daemon_is_held_back() {
    /// More than is kept and the pipe holds, in lines.
    const LINES: u64 = 3_300_000;
    const KEPT: (u64, u64) = (4 << 20, 16 << 20);
    // Memory of a shim that keeps nothing: a program's own pages, and more under a sanitizer.
    let idle = Host::start(agent("cat"));
    let idle_bytes = rss_bytes(idle.started.shim.pid).unwrap();
    let mut daemon = idle.connect();
    daemon.hello(0);
    daemon.say(&ToShim::Signal(Step::CloseStdin));
    daemon.end(Status::Code(0));
    idle.assert_clean();

    let host = Host::start_with(agent(&format!("count {LINES};cat")), |launch| {
        (launch.memory, launch.spool) = KEPT;
    });
    let (memory, full) = KEPT;
    let spool = host.shim_dir.path().join("spool");
    let length = || spool.metadata().map_or(0, |found| found.len());
    wait_until(|| length() >= full);
    let mut daemon = host.connect();
    let hello = daemon.hello(0);
    assert!(hello.end <= full + memory, "{} bytes are kept", hello.end);
    let grown = rss_bytes(hello.shim).unwrap().saturating_sub(idle_bytes);
    assert!(grown < 2 * memory, "{grown} bytes more than an idle one, which has {idle_bytes}");
    let (mut line, mut expected, mut offset) = (0_u64, Vec::new(), 0_u64);
    while line < LINES || !expected.is_empty() {
        let (at, bytes) = match daemon.next() {
            Heard::Out(at, bytes) => (at, bytes),
            end @ (Heard::Exit(..) | Heard::Lost) => panic!("after {offset} bytes: {end:?}"),
            _ => continue,
        };
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
    assert!(offset > full + memory);
    wait_until(|| !spool.exists());
    daemon.say(&ToShim::Signal(Step::CloseStdin));
    daemon.end(Status::Code(0));
    host.assert_clean();
}

fn a_blocked_agent_blocks_nothing_else() {
    let (host, mut daemon) = Host::greeted(agent("say up;stay"));
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
    daemon.say(&ToShim::Signal(Step::Kill));
    daemon.end(KILLED.into());
    host.assert_clean();
}

fn a_stop_ends_what_an_agent_has_started() {
    let (host, mut daemon) = Host::greeted(agent("child pid,stay;child deaf,pid,stay;pid;stay"));
    let ids = daemon.read_pids(3);
    daemon.say(&ToShim::Signal(Step::Kill));
    daemon.end(KILLED.into());
    assert!(ids.iter().all(|id| id.is_alive() == Liveness::Gone));
    host.assert_clean();
}

fn what_an_agent_leaves_is_ended() {
    leaves_nothing(agent("child deaf,pid,stay;read;exit 3"));
}

/// The agent starts a process that says who it is and stays, reads a line and ends with code 3.
pub(crate) fn leaves_nothing(how: How) {
    let (host, mut daemon) = Host::greeted(how);
    let ids = daemon.read_pids(1);
    daemon.write_chunk(1, b"\n");
    assert_eq!(daemon.exit(Stage::Ended), Status::Code(3));
    assert_eq!(host.shim_dir.exit().unwrap(), Some(Status::Code(3)));
    daemon.end(Status::Code(3));
    assert_eq!(ids[0].is_alive(), Liveness::Gone);
    host.assert_clean();
}

fn an_exit_is_told_until_it_is_recorded() {
    let host = Host::start(agent("say bye;exit 4"));
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
    let host = Host::start_with(agent("say kept;cat;say end"), |launch| {
        launch.lease = Some(Duration::from_millis(1));
    });
    assert_eq!(host.exit(), ExitKind::Code(0));
    assert_eq!(host.shim_dir.verify(), Identity::Dead);
    assert!(!host.launch.socket.exists());
    assert_eq!(host.shim_dir.exit().unwrap(), Some(Status::Code(0)));
    let mut left = host.shim_dir.leftover(2).unwrap().unwrap();
    let mut text = String::new();
    left.bytes.read_to_string(&mut text).unwrap();
    assert_eq!((left.offset, text.as_str()), (2, "pt\nend\n"));
    assert!(Orphans::of(&host.shim_dir).is_gone());
}

fn a_stop_goes_on_without_the_daemon() {
    let host = Host::start_with(agent("deaf;say up;stay"), |launch| {
        launch.ladder.eof = Duration::from_millis(1);
        launch.ladder.term = Duration::from_millis(1);
    });
    let mut daemon = host.connect();
    daemon.hello(0);
    daemon.read_output(0, b"up\n");
    daemon.say(&ToShim::Signal(Step::CloseStdin));
    drop(daemon);
    let killed = KILLED.into();
    wait_until(|| host.shim_dir.exit().unwrap() == Some(killed));
    let mut daemon = host.connect();
    daemon.hello(3);
    daemon.end(killed);
    host.assert_clean();
}

fn an_agent_that_cannot_start_says_why() {
    let refused = |how, permanent, word: &str| {
        let error = Host::try_start(how, |_| {}).unwrap_err();
        assert!(matches!(error, StartError::Agent { .. }), "{error:?}");
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!(error.is_permanent(), permanent);
    };
    let stdio =
        |path: &str, cwd: &str| How::Stdio(Program { cwd: cwd.into(), ..program(path, &[]) });
    let no_program = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    refused(stdio("/no/such/agent", "/"), true, "/no/such/agent");
    refused(stdio(&own(), "/no/such/dir"), true, "/no/such/dir");
    refused(stdio(no_program, "/"), true, no_program);
    let port = common::free_port();
    let timeout = Duration::from_millis(1);
    let silent = program(&own(), &["agent", "stay"]);
    refused(How::TcpSpawn { program: silent, port, timeout }, true, "127.0.0.1");
    let addr = (Ipv4Addr::LOCALHOST, port).into();
    refused(How::TcpConnect { addr, timeout: Duration::from_secs(9) }, true, "127.0.0.1");
}

fn an_agent_sees_its_own_environment_alone() {
    let host = Host::start(agent("env;say end"));
    let (path, marker) = (format!("PATH={}", common::path()), &host.launch.marker);
    let mut daemon = host.connect();
    daemon.hello(0);
    let text = daemon.read_up_to("end\n");
    // Windows and Wine give these to every process.
    let is_theirs = |line: &str| ["System", "WINE"].iter().any(|start| line.starts_with(start));
    let mut found: Vec<&str> = text.lines().filter(|line| !is_theirs(line)).collect();
    found.sort_unstable();
    assert_eq!(found, [&format!("ACPD_HOST={marker}"), &path, "end"]);
    daemon.end(Status::Code(0));
    host.assert_clean();
}

fn stderr_is_heard_and_quoted() {
    let (host, mut daemon) = Host::greeted(agent("err oops;read;err again;exit 1"));
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
    let program = program(&own(), &["serve", &port.to_string()]);
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

/// Frames of a daemon of each release (see `releases.rs`), said again to a shim whose agent echoes.
fn a_daemon_of_an_older_release_is_served() {
    /// Output of the shim of that time, and its input.
    const BEFORE: (usize, u64) = (2294, 3);
    for release in ["0.1.0", "0.2.0"] {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/releases"));
        let said = std::fs::read(path.join(release).join("to-shim")).unwrap();
        let (host, mut daemon) = Host::greeted(agent("cat"));
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
