//! Windows, or Wine: pipes, Jobs, private directories and the start of the daemon, with real processes.
#![cfg(windows)]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::windows::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use acpd_sys::files::{
    DirError, ReadError, private_dir, private_file, put_secret, read, secret_file, stamp, version,
};
use acpd_sys::paths::Paths;
use acpd_sys::process::{
    self, ExitKind, Liveness, ProcessId, StopSignal, detach_child, discard, wait_leader,
};
use acpd_sys::signals::{Signal, interrupt_console, watch};
use acpd_sys::socket::{
    Listener, StaleError, Stream, clear_stale_socket, connect, hang_up, other_end,
};
use acpd_sys::startup::{StartupOutcome, StartupPipe, spawn_daemon, startup_notifier};
use acpd_sys::tree::Tree;
use acpd_sys::users::own_uid;
use tempfile::TempDir;
use windows_sys::Win32::System::Threading::CREATE_NO_WINDOW;

/// Longer than any machine takes; a passing test never waits for it.
const LONG: Duration = Duration::from_mins(1);
/// Less than anything takes that is waited for, and more than nothing.
const SOON: Duration = Duration::from_millis(20);

fn is_wine() -> bool {
    Path::new(r"C:\windows\system32\winecfg.exe").exists()
}

#[expect(clippy::print_stderr, reason = "a test that did not run must be seen")]
fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
}

fn paths(home: &TempDir) -> Paths {
    let place = |name: &str| home.path().join(name);
    Paths { runtime: place("run"), state: place("state"), config: place("config") }
}

// ---- the parts of helper processes

#[test]
#[ignore = "a helper process of the others"]
#[expect(clippy::print_stdout, reason = "the test reads what it says")]
fn helper() {
    let Some(part) = common::part() else { return };
    let (part, rest) = part.split_once(' ').unwrap_or((&part, ""));
    match part {
        // Until the test kills us, or ends.
        "stay" => {
            println!("up");
            let _ = std::io::stdin().read(&mut [0]);
        }
        "parent" => {
            // The child reads our stdin, so it stays as long as the test does.
            let child = common::helper("stay").stdout(Stdio::piped()).spawn();
            let mut child = child.unwrap();
            await_up(&mut child);
            println!("child {}", child.id());
            println!("up");
            let _ = std::io::stdin().read(&mut [0]);
            drop(child);
        }
        "late" => {
            println!("up");
            let _ = std::io::stdin().read(&mut [0]);
            // The child continues when we are gone.
            let child = common::helper("stay").stdout(Stdio::null()).spawn().unwrap();
            println!("child {}", child.id());
            println!("up");
        }
        "keeper" => {
            // Keeps an agent, and prints its pid.
            let mut command = common::helper("stay");
            detach_child(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
            let mut child = process::start(&mut command).unwrap();
            await_up(&mut child);
            println!("child {}", child.id());
            println!("up");
            let _ = std::io::stdin().read(&mut [0]);
        }
        "ask" => asks_itself(),
        "code" => std::process::exit(rest.parse().unwrap()),
        "ready" => startup_notifier().unwrap().ready(),
        "failed" => startup_notifier().unwrap().failed("no database\nthe disk is full\n"),
        "dies" => {}
        other => unreachable!("{other}"),
    }
}

/// Has its console ask it twice, and tells which of its parts hear of it.
#[expect(clippy::print_stdout, reason = "the test reads what it says")]
fn asks_itself() {
    let mut all = watch(&Signal::ENDING).unwrap();
    for part in ["first", "second"] {
        let mut own = watch(&[Signal::Interrupt]).unwrap();
        interrupt_console().unwrap();
        let signals = [all.next().unwrap().signal, own.next().unwrap().signal];
        println!("heard the {part}: {signals:?}");
    }
}

/// Waits until a helper says that it is up; what it said before.
fn await_up(child: &mut Child) -> Vec<String> {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    lines.map(Result::unwrap).take_while(|line| line != "up").collect()
}

fn start(part: &str) -> (Child, ProcessId, Vec<String>) {
    let mut command = common::helper(part);
    detach_child(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut child = process::start(&mut command).unwrap();
    let id = ProcessId::of_child(&child).unwrap();
    let said = await_up(&mut child);
    (child, id, said)
}

fn pid_in(said: &[String]) -> u32 {
    let line = said.iter().find_map(|line| line.split_once("child ")).expect("a pid");
    line.1.trim().parse().unwrap()
}

// ---- processes

#[test]
fn the_end_of_a_child_is_returned() {
    let mut command = common::helper("code 7");
    detach_child(command.stdout(Stdio::null()));
    let mut child = process::start(&mut command).unwrap();
    let id = ProcessId::of_child(&child).unwrap();
    assert_eq!(id.pid, child.id());
    assert_eq!(wait_leader(child.id()).unwrap(), ExitKind::Code(7));
    assert_eq!(id.is_alive(), Liveness::Gone);
    child.wait().unwrap();
}

#[test]
fn a_console_asks_and_whoever_listens_hears_of_it() {
    let mut command = common::helper("ask");
    // A console of its own: events there reach no other program.
    let done = command.creation_flags(CREATE_NO_WINDOW).output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{said} {}", String::from_utf8_lossy(&done.stderr));
    let heard: Vec<&str> = said.lines().filter(|line| line.starts_with("heard")).collect();
    let both = "[Interrupt, Interrupt]";
    assert_eq!(heard, [format!("heard the first: {both}"), format!("heard the second: {both}")]);
}

#[test]
fn a_tree_is_seen_and_killed_as_a_whole() {
    let (mut parent, id, said) = start("parent");
    let below = ProcessId::of(pid_in(&said)).unwrap();
    let mut tree = Tree::new("m", id);
    let alive = tree.alive();
    assert!(alive.contains(&id) && alive.contains(&below), "{alive:?}");
    let own = ProcessId::of(std::process::id()).unwrap();
    assert!(tree.usage_below(own).bytes > 0);
    tree.stop(StopSignal::Kill, false);
    wait_leader(id.pid).unwrap();
    parent.wait().unwrap();
    while !tree.is_empty() {
        thread::yield_now();
    }
    assert_eq!(below.is_alive(), Liveness::Gone);
}

#[test]
fn what_has_lost_its_parent_is_still_of_the_tree() {
    let (mut parent, id, said) = start("parent");
    let below = ProcessId::of(pid_in(&said)).unwrap();
    // Waiting for the parent would close what its child reads.
    let _stdin = parent.stdin.take();
    parent.kill().unwrap();
    parent.wait().unwrap();
    let mut tree = Tree::new("m", id);
    assert_eq!(tree.alive(), [below], "the leader is gone, its job is not");
    tree.stop(StopSignal::Kill, true);
    while !tree.is_empty() {
        thread::yield_now();
    }
}

/// The system gives the pid of an ended process to others, and goes on naming it as the parent of what that has started: a tree
/// whose leader had the pid of an ended daemon would take in the shims which that has left.
#[test]
fn what_names_an_ended_process_as_its_parent_is_of_no_tree() {
    // Nothing else keeps the two together: there is no Job.
    let mut parent =
        common::helper("late").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    await_up(&mut parent);
    let leader = ProcessId::of(parent.id()).unwrap();
    let mut tree = Tree::new("m", leader);
    assert!(tree.alive().contains(&leader));
    let mut stdin = parent.stdin.take().unwrap();
    stdin.write_all(b".").unwrap();
    let below = ProcessId::of(pid_in(&await_up(&mut parent))).unwrap();
    parent.wait().unwrap();
    drop(parent);
    assert_eq!(below.is_alive(), Liveness::Alive);
    let alive = tree.alive();
    assert!(!alive.contains(&leader) && !alive.contains(&below), "{alive:?}");
    // With its input it ends.
    drop(stdin);
    while below.is_alive() == Liveness::Alive {
        thread::yield_now();
    }
}

#[test]
fn an_agent_ends_with_whoever_keeps_it() {
    let mut keeper =
        common::helper("keeper").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let said = await_up(&mut keeper);
    let agent = ProcessId::of(pid_in(&said)).unwrap();
    keeper.kill().unwrap();
    keeper.wait().unwrap();
    while agent.is_alive() == Liveness::Alive {
        thread::yield_now();
    }
}

#[test]
fn what_was_started_and_not_wanted_is_gone() {
    let (child, id, _) = start("stay");
    discard(child);
    assert_ne!(id.is_alive(), Liveness::Alive);
}

// ---- pipes

fn pair(path: &Path) -> (Listener, Stream, Stream) {
    let listener = Listener::bind(path).unwrap();
    let client = connect(path, LONG).unwrap();
    let server = listener.accept_until(Instant::now() + LONG).unwrap();
    (listener, client, server)
}

#[test]
fn both_ends_know_each_other() {
    let home = TempDir::new().unwrap();
    let (_listener, client, server) = pair(&paths(&home).socket());
    for end in [&client, &server] {
        let peer = other_end(end).unwrap();
        assert_eq!(peer.uid, own_uid());
        assert_eq!(peer.pid, Some(std::process::id()));
    }
}

#[test]
fn bytes_go_both_ways_at_the_same_time_and_end_with_the_other_end() {
    let home = TempDir::new().unwrap();
    let (_listener, client, server) = pair(&paths(&home).socket());
    let big: Vec<u8> = (0..1_000_000_u32).map(|number| number as u8).collect();
    thread::scope(|scope| {
        for (from, to) in [(&client, &server), (&server, &client)] {
            let big = &big;
            scope.spawn(move || (&*from).write_all(big).unwrap());
            scope.spawn(move || {
                let mut got = vec![0; big.len()];
                (&*to).read_exact(&mut got).unwrap();
                assert!(got == *big);
            });
        }
    });
    (&client).write_all(b"last").unwrap();
    drop(client);
    let mut rest = Vec::new();
    (&server).read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"last");
    assert_eq!((&server).write(b"x").unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn a_name_has_one_server() {
    let home = TempDir::new().unwrap();
    let path = paths(&home).socket();
    clear_stale_socket(&path).unwrap();
    let listener = Listener::bind(&path).unwrap();
    if is_wine() {
        skip("Wine lets a second server have the same name");
    } else {
        Listener::bind(&path).unwrap_err();
    }
    assert!(matches!(clear_stale_socket(&path), Err(StaleError::InUse { .. })));
    drop(listener);
    assert_eq!(connect(&path, SOON).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    Listener::bind(&path).unwrap();
}

#[test]
fn a_read_gives_up_after_its_limit_and_loses_nothing() {
    let home = TempDir::new().unwrap();
    let (_listener, client, server) = pair(&paths(&home).socket());
    client.set_read_timeout(Some(SOON)).unwrap();
    let late = (&client).read(&mut [0; 8]).unwrap_err();
    assert_eq!(late.kind(), std::io::ErrorKind::TimedOut);
    (&server).write_all(b"word").unwrap();
    let mut word = [0; 4];
    (&client).read_exact(&mut word).unwrap();
    assert_eq!(&word, b"word");
    client.set_write_timeout(Some(SOON)).unwrap();
    let full = loop {
        if let Err(error) = (&client).write(&[0; 64 << 10]) {
            break error;
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::TimedOut);
}

#[test]
fn a_connection_that_is_hung_up_ends_for_who_reads_from_it() {
    let home = TempDir::new().unwrap();
    let (_listener, client, _server) = pair(&paths(&home).socket());
    thread::scope(|scope| {
        let reader = scope.spawn(|| (&client).read(&mut [0]));
        hang_up(&client);
        assert_eq!(reader.join().unwrap().unwrap(), 0);
    });
    assert_eq!((&client).read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_connection_that_nobody_takes_up_waits() {
    let home = TempDir::new().unwrap();
    let path = paths(&home).socket();
    let listener = Listener::bind(&path).unwrap();
    let _first = connect(&path, SOON).unwrap();
    assert_eq!(connect(&path, SOON).unwrap_err().kind(), std::io::ErrorKind::TimedOut);
    let _server = listener.accept_until(Instant::now() + LONG).unwrap();
    connect(&path, LONG).unwrap();
}

// ---- files

#[test]
fn a_private_directory_and_what_is_in_it_are_ours_alone() {
    let home = TempDir::new().unwrap();
    let dir = home.path().join("a").join("b");
    private_dir(&dir).unwrap();
    private_dir(&dir).unwrap();
    let path = dir.join("log");
    private_file(&path).unwrap().write_all(b"one ").unwrap();
    private_file(&path).unwrap().write_all(b"two").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one two");
    secret_file(&path).unwrap();
    assert!(matches!(private_dir(&path), Err(DirError::WrongKind { .. })));
    assert!(matches!(private_file(&dir), Err(DirError::WrongKind { .. })));
    assert!(matches!(
        private_dir(&path.join("below")),
        Err(DirError::Create { .. } | DirError::Open { .. })
    ));
}

#[test]
fn a_file_that_was_open_to_others_is_closed_whatever_its_directory_hands_down() {
    let home = TempDir::new().unwrap();
    let (made, found) = (home.path().join("made"), home.path().join("found"));
    fs::write(&found, "x").unwrap();
    for path in [made, found] {
        drop(private_file(&path).unwrap());
        secret_file(&path).unwrap();
    }
}

#[test]
fn a_path_of_any_length_is_made() {
    let home = TempDir::new().unwrap();
    let deep: PathBuf = (0..8).map(|number| format!("{number}{}", "d".repeat(60))).collect();
    let dir = home.path().join(deep);
    assert!(dir.as_os_str().len() > 400);
    private_dir(&dir).unwrap();
    private_file(&dir.join("log")).unwrap();
}

#[test]
fn a_file_is_told_apart_from_its_successor() {
    let home = TempDir::new().unwrap();
    let (path, other) = (home.path().join("file"), home.path().join("other"));
    assert_eq!(stamp(&path).unwrap(), None);
    fs::write(&path, "12345").unwrap();
    fs::write(&other, "12345").unwrap();
    let first = stamp(&path).unwrap().unwrap();
    assert_eq!(first.length, 5);
    assert_ne!(first.id, stamp(&other).unwrap().unwrap().id);
    let before = version(&path).unwrap();
    assert!(before.changed_at() > 1_600_000_000_000);
    fs::rename(&other, &path).unwrap();
    assert_ne!(stamp(&path).unwrap().unwrap().id, first.id);
    assert_ne!(version(&path), Some(before));
    assert_eq!(read(&path, 5).unwrap(), b"12345");
    assert!(matches!(read(&path, 4), Err(ReadError::TooLong { limit: 4 })));
    for place in [home.path(), Path::new("NUL")] {
        assert!(matches!(read(place, 4), Err(ReadError::NotAFile)), "{}", place.display());
    }
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_not_read() {
    let home = TempDir::new().unwrap();
    let path = paths(&home).socket();
    let _listener = Listener::bind(&path).unwrap();
    assert!(matches!(read(&path, 4), Err(ReadError::NotAFile)));
}

// ---- the start of the daemon

/// Starts a daemon with a part to play.
fn start_daemon(part: &str, home: &TempDir) -> StartupPipe {
    static ENVIRONMENT: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = ENVIRONMENT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // SAFETY: all tests of this program that change the environment do so under the lock, and the system's own calls
    // for it may be made by any thread.
    unsafe { std::env::set_var(common::PART, part) };
    let exe = std::env::current_exe().unwrap();
    let started =
        spawn_daemon(&exe, common::HELPER_ARGS, &home.path().join("log").join("acpd.log"));
    // SAFETY: as above.
    unsafe { std::env::remove_var(common::PART) };
    started.unwrap()
}

#[test]
fn a_daemon_tells_its_client_how_its_start_went() {
    let home = TempDir::new().unwrap();
    assert_eq!(start_daemon("ready", &home).wait(LONG), StartupOutcome::Ready);
    let failed = StartupOutcome::Failed("no database\nthe disk is full".to_owned());
    assert_eq!(start_daemon("failed", &home).wait(LONG), failed);
    assert_eq!(start_daemon("dies", &home).wait(LONG), StartupOutcome::Died);
    assert_eq!(start_daemon("ready", &home).wait(Duration::ZERO), StartupOutcome::TimedOut);
    let missing = spawn_daemon(Path::new(r"C:\no\such.exe"), ["run"], &home.path().join("x.log"));
    assert!(missing.is_err());
}

#[test]
fn the_directories_are_the_users_own() {
    let paths = Paths::discover().unwrap();
    for dir in [&paths.runtime, &paths.state, &paths.config] {
        assert!(dir.is_absolute(), "{}", dir.display());
        assert!(dir.components().any(|part| part.as_os_str() == "acpd"), "{}", dir.display());
    }
    let local = std::env::var_os("LOCALAPPDATA").unwrap();
    assert!(paths.state.starts_with(&local) && paths.runtime.starts_with(&local));
}

#[test]
fn a_file_is_replaced_as_soon_as_nobody_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret");
    put_secret(&path, b"0").unwrap();
    let (tell, opened) = channel();
    thread::scope(|scope| {
        for number in 1..=20 {
            let tell = tell.clone();
            let path = &path;
            scope.spawn(move || {
                let mut file = fs::File::open(path).unwrap();
                tell.send(()).unwrap();
                file.read_to_end(&mut Vec::new()).unwrap();
            });
            opened.recv().unwrap();
            put_secret(path, number.to_string().as_bytes()).unwrap();
        }
    });
    assert_eq!(fs::read(&path).unwrap(), b"20");
}
