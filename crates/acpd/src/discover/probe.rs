//! Starts one agent, sends it `initialize` only, and ends it with all its processes.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use acp_wire::acp::{Implementation, InitializeResult, Services, initialize_params};
use acp_wire::{ErrorObject, Id, Message, Outcome, build, parse};
use acpd_shim::launch::Program;
use acpd_sys::ladder::{Ladder, Patience, Pauses, Step};
use acpd_sys::process::{ProcessId, detach_child, reap, reap_orphans, start, try_wait_leader};
use acpd_sys::tree::Tree;

/// Longest time for an answer.
const LIMIT: Duration = Duration::from_secs(20);
/// Time between checks for Ctrl-C, and for the end of all processes.
const LOOK: Duration = Duration::from_millis(50);
/// Time between the steps of the end: input closed, SIGTERM, SIGKILL.
const STEP: Duration = Duration::from_secs(1);
const ENDED: &str = "it ended before it answered `initialize`";
/// Longest quote of an agent's last line on stderr, in characters.
const WORDS: usize = 200;

/// The agent's answer, or why there is none.
type Answer = Result<InitializeResult, String>;

/// Fails if `stop` is set: by Ctrl-C.
pub(super) fn ask(launch: &Program, offers: Services, stop: &AtomicBool) -> io::Result<Answer> {
    let marker = format!("discover-{}", std::process::id());
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.args)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .env("ACPD_HOST", &marker)
        .current_dir(&launch.cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    detach_child(&mut command);
    let mut child = match start(&mut command) {
        Ok(child) => child,
        Err(error) => return Ok(Err(format!("it cannot be started: {error}"))),
    };
    // A child that is not reaped keeps its pid; without a start time only kills are refused.
    let leader = ProcessId::of(child.id()).unwrap_or(ProcessId { pid: child.id(), start: 0 });
    let mut tree = Tree::below_us(marker, leader);
    let mut stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let words = child.stderr.take().map(last_words);
    // An agent that does not read has ended, or will not answer.
    stdin.as_mut().map(|stdin| stdin.write_all(&question(offers))).transpose().ok();
    let answer = match stdout {
        Some(stdout) => wait(stdout, leader.pid, stop),
        None => Ok(Err("it has no output".to_owned())),
    };
    drop(stdin);
    end(&mut tree);
    reap(leader.pid).ok();
    reap_orphans(&BTreeSet::new());
    // All writers have ended, except escaped processes, which are not waited for.
    let words = || words?.recv_timeout(LOOK).ok();
    Ok(answer?.map_err(|why| match words() {
        Some(words) => format!("{why}: {words}"),
        None => why,
    }))
}

/// Returns the last line on stderr once stderr has ended; nothing if there was none.
fn last_words(stderr: ChildStderr) -> Receiver<String> {
    let (sender, words) = sync_channel(1);
    thread::spawn(move || {
        let lines = BufReader::new(stderr).split(b'\n').map_while(Result::ok);
        let last = lines.filter(|line| !line.trim_ascii().is_empty()).last();
        if let Some(line) = last {
            let line = String::from_utf8_lossy(line.trim_ascii()).into_owned();
            sender.send(line.chars().take(WORDS).collect()).ok();
        }
    });
    words
}

fn question(offers: Services) -> Vec<u8> {
    let implementation = Implementation {
        name: "acpd".to_owned(),
        title: Some("acpd".to_owned()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let params = initialize_params(&implementation, offers, false);
    let mut line = build::request(&Id::from(1_u64), "initialize", &params).to_vec();
    line.push(b'\n');
    line
}

fn wait(stdout: ChildStdout, leader: u32, stop: &AtomicBool) -> io::Result<Answer> {
    let end = Instant::now() + LIMIT;
    let (sender, answers) = sync_channel(1);
    // The thread ends with the agent.
    thread::spawn(move || sender.send(read_answer(stdout)));
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let why = match answers.recv_timeout(LOOK) {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => ENDED.to_owned(),
            // Leftover processes may keep the output open.
            Err(RecvTimeoutError::Timeout) if matches!(try_wait_leader(leader), Ok(Some(_))) => {
                ENDED.to_owned()
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() < end => continue,
            Err(RecvTimeoutError::Timeout) => {
                format!("no answer to `initialize` within {} s", LIMIT.as_secs())
            }
        };
        return Ok(Err(why));
    }
}

/// Reads up to the answer to `initialize`; `None` if the output ends before.
fn read_answer(stdout: ChildStdout) -> Option<Answer> {
    let mut lines = BufReader::new(stdout).split(b'\n').map_while(Result::ok);
    lines.find_map(|line| match parse(&line) {
        // Some agents answer with the id as a string.
        Ok(Message::Response { id, outcome }) if id.as_issued() == Some(1) => {
            Some(answer_of(outcome))
        }
        _ => None,
    })
}

fn answer_of(outcome: Outcome<'_>) -> Answer {
    match outcome {
        Outcome::Result(result) if result.get() == "null" => Err("its answer is empty".to_owned()),
        Outcome::Result(result) => InitializeResult::from_raw(result)
            .map_err(|error| format!("its answer is unusable: {error}")),
        Outcome::Error(error) => {
            let ErrorObject { code, message, .. } = ErrorObject::from_raw(error);
            Err(format!("`initialize` failed: {message} ({code})"))
        }
    }
}

/// Waits for the end of all processes, whose input is closed; later with signals.
fn end(tree: &mut Tree) {
    let patience = Patience { eof: STEP, term: STEP, kill: STEP };
    let pauses = Pauses { first: LOOK / 10, longest: LOOK / 10 };
    let begin = Instant::now();
    Ladder::new(patience, Step::CloseStdin, begin).climb(pauses, |signal| {
        if let Some(signal) = signal {
            tree.signal_all(signal);
        }
        tree.is_empty() || begin.elapsed() >= 3 * STEP
    });
}
