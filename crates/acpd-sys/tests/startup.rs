//! The start of the daemon, both ends of the pipe, with this program as the daemon.
#![cfg(unix)]

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use acpd_sys::startup::{SpawnError, StartupOutcome, StartupPipe, spawn_daemon, startup_notifier};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, raise};
use nix::sys::stat::Mode;
use nix::unistd::{getpid, getppid, getsid, mkfifo};
use tempfile::TempDir;

/// Longer than any machine takes; a passing test never waits for it.
const LONG: Duration = Duration::from_mins(1);

/// Starts a daemon with a part to play: the part's name, and the fifo `hold` in `home`.
fn start(part: &str, home: &Path) -> StartupPipe {
    static ENVIRONMENT: Mutex<()> = Mutex::new(());
    let _guard = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    let hold = home.join("hold");
    if !hold.exists() {
        mkfifo(&hold, Mode::S_IRWXU).unwrap();
    }
    // SAFETY: all tests of this program that touch the environment do so under the lock.
    unsafe {
        let part = format!("{part} {} {}", std::process::id(), hold.display());
        std::env::set_var(common::PART, part);
        std::env::set_var("ACPD_HOST", "an agent's mark");
    }
    let exe = std::env::current_exe().unwrap();
    spawn_daemon(&exe, common::HELPER_ARGS, &home.join("log/acpd.log")).unwrap()
}

fn set_inherited(file: &File) {
    fcntl(file, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
}

/// Returns whether this descriptor is open, and is that file.
fn is_the_hold(number: i32, fifo: &str) -> bool {
    let file = std::fs::metadata(format!("/dev/fd/{number}"));
    let fifo = std::fs::metadata(fifo).unwrap();
    file.is_ok_and(|file| (file.dev(), file.ino()) == (fifo.dev(), fifo.ino()))
}

/// Blocks until the test opens the other end, and then until it closes it.
fn hold(path: &str) {
    let _ = File::open(path).unwrap().read(&mut [0]);
}

fn release(home: &Path) {
    let hold = home.join("hold");
    drop(OpenOptions::new().write(true).open(hold).unwrap());
}

#[test]
#[ignore = "a helper process of the others"]
#[expect(clippy::print_stdout, reason = "the daemon's stdout is looked at")]
fn helper() {
    let Some(part) = common::part() else { return };
    let (part, rest) = part.split_once(' ').unwrap();
    let (starter, fifo) = rest.split_once(' ').unwrap();
    let notifier = startup_notifier().unwrap();
    assert!(startup_notifier().is_none());
    match part {
        "ready" => {
            notifier.ready();
            hold(fifo);
        }
        "failed" => notifier.failed("no database\nthe disk is full\n"),
        "describe" => println!(
            "<<cwd {}, our child {}, session leader {}, mark {:?}, {} foreign descriptors>>",
            std::env::current_dir().unwrap().display(),
            getppid().to_string() == starter,
            getsid(None).unwrap() == getpid(),
            std::env::var("ACPD_HOST").unwrap(),
            (3..64).filter(|number| is_the_hold(*number, fifo)).count(),
        ),
        "agent" => {
            let script = format!("read line < {fifo}");
            let mut agent = Command::new("sh");
            drop(agent.args(["-c", &script]).stdout(Stdio::null()).spawn());
            raise(Signal::SIGKILL).unwrap();
        }
        _ => hold(fifo),
    }
}

#[test]
fn a_daemon_that_is_ready_says_so_and_goes_on() {
    let home = TempDir::new().unwrap();
    let pipe = start("ready", home.path());
    assert_eq!(pipe.wait(LONG), StartupOutcome::Ready);
    // Blocks unless the daemon is still there to read.
    release(home.path());
}

#[test]
fn a_daemon_that_gives_up_says_why_in_as_many_lines_as_it_takes() {
    let home = TempDir::new().unwrap();
    let outcome = start("failed", home.path()).wait(LONG);
    let reason = "no database\nthe disk is full".to_owned();
    assert_eq!(outcome, StartupOutcome::Failed(reason));
}

#[test]
fn a_daemon_is_detached_and_its_output_is_in_the_log() {
    let home = TempDir::new().unwrap();
    mkfifo(&home.path().join("hold"), Mode::S_IRWXU).unwrap();
    // The starting process may have something open that is not the daemon's business.
    let open = OpenOptions::new().read(true).write(true).open(home.path().join("hold")).unwrap();
    set_inherited(&open);
    let outcome = start("describe", home.path()).wait(LONG);
    drop(open);
    assert_eq!(outcome, StartupOutcome::Died);
    let log = fs::read_to_string(home.path().join("log/acpd.log")).unwrap();
    let expected =
        "<<cwd /, our child false, session leader true, mark \"-\", 0 foreign descriptors>>";
    assert!(log.contains(expected), "{log}");
}

#[test]
fn a_daemon_that_dies_is_noticed_though_its_agents_live() {
    let home = TempDir::new().unwrap();
    let outcome = start("agent", home.path()).wait(LONG);
    assert_eq!(outcome, StartupOutcome::Died);
    // Blocks unless the agent is there to read.
    release(home.path());
}

#[test]
fn a_silent_daemon_is_not_waited_for_beyond_the_deadline() {
    let home = TempDir::new().unwrap();
    let outcome = start("silent", home.path()).wait(Duration::ZERO);
    assert_eq!(outcome, StartupOutcome::TimedOut);
    release(home.path());
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let home = TempDir::new().unwrap();
    let exe = home.path().join("acpd");
    let error = spawn_daemon(&exe, [""; 0], &home.path().join("log/acpd.log")).unwrap_err();
    assert!(matches!(error, SpawnError::Exec { .. }));
    assert!(error.to_string().contains(exe.to_str().unwrap()));
    assert!(error.hint().is_some());
}
