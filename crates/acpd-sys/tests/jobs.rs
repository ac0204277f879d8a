//! Windows, or Wine: processes that outlive a Job without breakaway, as some editors and terminals use.
#![cfg(windows)]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::ptr::null;
use std::thread;
use std::time::{Duration, Instant};

use acpd_sys::process::{Liveness, ProcessId, StopSignal, clear_environment, signal_one};
use acpd_sys::startup::{PipedProcess, StartupOutcome, is_bound, spawn_daemon, startup_notifier};
use acpd_sys::wait::{End, Interest};
use tempfile::TempDir;
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
    SetInformationJobObject,
};

/// Longer than any machine takes; a passing test never waits for it.
const LONG: Duration = Duration::from_mins(1);
/// From one look at something that does not tell to the next.
const LOOK: Duration = Duration::from_millis(10);

/// A word for a command line, which names no test …
const PLAIN: &str = "no-test";
/// … and one that only the system's usual way of starting programs takes.
const ODD: &str = "no\"test";

// ---- the parts of helper processes

#[test]
#[ignore = "a helper process of the others"]
#[expect(clippy::print_stdout, reason = "the test reads what it says")]
fn helper() {
    let Some(part) = common::part() else { return };
    let (part, rest) = part.split_once(' ').unwrap_or((&part, ""));
    match part {
        // In the place of the user's shell.
        "shell" => wait_for_input(),
        // A client, which is in the Job when it hears a word, and starts a daemon then.
        "client" => {
            wait_for_input();
            let (word, rest) = rest.split_once(' ').unwrap();
            let (exe, home) = (std::env::current_exe().unwrap(), Path::new(rest));
            // SAFETY: no other thread reads the environment of this process now.
            unsafe { std::env::set_var(common::PART, format!("daemon {rest}")) };
            let args = common::HELPER_ARGS.into_iter().chain([word]);
            let started = spawn_daemon(&exe, args, &home.join("log").join("acpd.log")).unwrap();
            let is_bound = started.is_bound;
            assert_eq!(started.wait(LONG), StartupOutcome::Ready);
            println!("<bound {is_bound}>");
            stay();
        }
        "daemon" => {
            let notifier = startup_notifier().unwrap();
            println!("goes to the log");
            fs::write(Path::new(rest).join("pid"), std::process::id().to_string()).unwrap();
            notifier.ready();
            stay();
        }
        // The daemon, which starts a shim with this word and talks with it.
        "host" => {
            wait_for_input();
            assert!(is_bound());
            let mut command = Command::new(std::env::current_exe().unwrap());
            clear_environment(command.args(common::HELPER_ARGS).arg(rest).current_dir("/"));
            let mut shim = PipedProcess::start({
                command.env(common::PART, "shim");
                command
            })
            .unwrap();
            let end = Instant::now() + LONG;
            assert!(shim.input.until(Interest::Write, end).unwrap());
            assert_eq!(shim.input.write(b"hello\n").unwrap(), 6);
            println!("<{} {}>", line_of(&mut shim.output, end), shim.is_bound);
            stay();
        }
        "shim" => {
            let mut word = String::new();
            std::io::stdin().read_line(&mut word).unwrap();
            let is_bare = std::env::var_os("USERPROFILE").is_none();
            let (word, pid) = (word.trim(), std::process::id());
            println!("<{word} to {pid} {is_bare} {}>", is_bound());
            stay();
        }
        other => unreachable!("{other}"),
    }
}

fn wait_for_input() {
    let _ = std::io::stdin().read(&mut [0]);
}

/// Waits until another process ends this one.
fn stay() {
    loop {
        thread::park();
    }
}

/// Returns the text between these brackets; a test program prints other things, too.
fn line_of(from: &mut End, end: Instant) -> String {
    let mut said = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&said);
        if let Some((_, rest)) = text.split_once('<')
            && let Some((word, _)) = rest.split_once('>')
        {
            return word.to_owned();
        }
        assert!(from.until(Interest::Read, end).unwrap(), "{text}");
        let mut piece = [0; 256];
        let count = from.read(&mut piece).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&piece[..count]);
    }
}

// ---- Jobs

/// A Job that ends all its processes when it goes, and lets none go.
struct Job(OwnedHandle);

impl Job {
    fn new() -> Job {
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        // SAFETY: the struct is the one that goes with the number, and of that size; the handle is made for us.
        unsafe {
            let job = CreateJobObjectW(null(), null());
            assert!(!job.is_null());
            let size = size_of_val(&limits) as u32;
            let (what, limits) = (JobObjectExtendedLimitInformation, (&raw const limits).cast());
            assert_ne!(SetInformationJobObject(job, what, limits, size), 0);
            Job(OwnedHandle::from_raw_handle(job))
        }
    }

    /// Starts a helper, which does its part in the Job.
    fn start(&self, part: &str) -> Child {
        let mut helper = common::helper(part);
        let mut helper = helper.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // SAFETY: both handles are open.
        let put =
            unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), helper.as_raw_handle()) };
        assert_ne!(put, 0);
        helper.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        helper
    }
}

/// Returns the text that a helper prints between brackets.
fn word_of(helper: &mut Child) -> String {
    let lines = BufReader::new(helper.stdout.as_mut().unwrap()).lines();
    let word = lines.map(Result::unwrap).find_map(|line| {
        let (_, rest) = line.split_once('<')?;
        Some(rest.split_once('>')?.0.to_owned())
    });
    word.expect("a word")
}

/// A client in a Job starts a daemon with this word, and the Job ends: whether the client was told that the daemon would
/// end with it, and the daemon.
fn start_in_a_job(word: &str) -> (bool, ProcessId) {
    let (home, job) = (TempDir::new().unwrap(), Job::new());
    let mut client = job.start(&format!("client {word} {}", home.path().display()));
    let word = word_of(&mut client);
    let pid = fs::read_to_string(home.path().join("pid")).unwrap();
    let daemon = ProcessId::of(pid.parse().unwrap()).expect("it runs");
    assert!(
        fs::read_to_string(home.path().join("log").join("acpd.log"))
            .unwrap()
            .contains("goes to the log")
    );
    drop(job);
    client.wait().unwrap();
    (word == "bound true", daemon)
}

/// Like [`start_in_a_job`], for a daemon in a Job and its shim.
fn start_shim_in_a_job(word: &str) -> (bool, ProcessId) {
    let job = Job::new();
    let mut host = job.start(&format!("host {word}"));
    let said = word_of(&mut host);
    let said = said.strip_prefix("hello to ").expect("an answer");
    let [pid, is_bare, finds_itself_bound, is_bound] =
        said.split(' ').collect::<Vec<_>>().try_into().expect("four words");
    assert_eq!((is_bare, finds_itself_bound), ("true", is_bound));
    let shim = ProcessId::of(pid.parse().unwrap()).expect("it runs");
    drop(job);
    host.wait().unwrap();
    (is_bound == "true", shim)
}

fn await_end(process: ProcessId) {
    let end = Instant::now() + LONG;
    while process.is_alive() == Liveness::Alive {
        assert!(Instant::now() < end, "it goes on");
        thread::sleep(LOOK);
    }
}

fn kill(process: ProcessId) {
    assert_eq!(process.is_alive(), Liveness::Alive, "it has ended");
    signal_one(process, StopSignal::Kill);
    await_end(process);
}

/// A replacement of the user's shell where there is none: this program under its name.
struct Shell {
    process: Child,
    _dir: TempDir,
}

impl Shell {
    fn start() -> Shell {
        let dir = TempDir::new().unwrap();
        let own = std::env::current_exe().unwrap();
        let exe: PathBuf = dir.path().join("explorer.exe");
        fs::copy(&own, &exe).unwrap();
        // The library that Wine lacks is next to the tests.
        let library = "bcryptprimitives.dll";
        fs::copy(own.with_file_name(library), dir.path().join(library)).ok();
        let mut command = Command::new(exe);
        command.args(common::HELPER_ARGS).env(common::PART, "shell");
        let process = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        Shell { process, _dir: dir }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
fn what_is_to_outlive_us_outlives_a_job_that_nobody_may_leave() {
    let _shell = Shell::start();
    let (is_bound, daemon) = start_in_a_job(PLAIN);
    assert!(!is_bound);
    kill(daemon);

    let (is_bound, shim) = start_shim_in_a_job(PLAIN);
    assert!(!is_bound);
    kill(shim);
}

#[test]
fn what_cannot_leave_a_job_ends_with_it_and_that_is_said() {
    let (is_bound, daemon) = start_in_a_job(ODD);
    assert!(is_bound);
    await_end(daemon);

    let (is_bound, shim) = start_shim_in_a_job(ODD);
    assert!(is_bound);
    await_end(shim);
}
