//! A host whose process is a child of the daemon.
//!
//! It dies with the daemon: its stdin closes then, and the next daemon ends what is left. It is for
//! containers and debugging.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use acp_wire::{Body, Frame, Framer};
use acpd_core::ids::HostId;
use acpd_core::{HostEvent, SpawnError, StopStep, ToHost};
use acpd_shim::LastWords;
use acpd_sys::pipes::{Receiver, Sender, receiver, sender, what_is_there};
use acpd_sys::process::{ExitKind, ProcessId, detach_child, wait_leader};
use acpd_sys::program::is_no_program;
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::agent_host::{AgentHost, HostEvents};
use super::reaper::Reaper;
use crate::clock::until;
use crate::log::BoundedLog;

/// Output that may be unacknowledged before the process is held back, in bytes.
const UNACKED: u64 = 4 << 20;
/// The most that a pipe holds, in bytes.
const PIPE: usize = 1 << 20;
/// How long a process may run after it has closed its stdin or stdout: nobody can talk with it any
/// more. Then it gets SIGTERM, and after that time again SIGKILL.
const CUT_OFF: Duration = Duration::from_secs(2);

/// The question for the last lines of stderr.
type Asked = oneshot::Receiver<oneshot::Sender<String>>;

/// Everything that is needed to start an agent.
#[derive(Debug)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    /// Identifies its processes in the process table.
    pub marker: String,
    pub log: BoundedLog,
    /// Longest line in bytes.
    pub line_limit: usize,
}

/// The handle of a child process.
#[derive(Debug)]
pub struct Direct {
    host: HostId,
    stdin: Option<mpsc::UnboundedSender<(u64, Bytes)>>,
    last_chunk: u64,
    flow: Arc<Flow>,
    reaper: Reaper,
    log: BoundedLog,
}

/// How far output was read and acknowledged.
#[derive(Debug, Default)]
struct Flow {
    acked: AtomicU64,
    moved: Notify,
    /// The process takes no input any more.
    deaf: Notify,
    /// Somebody stops it already.
    stopping: AtomicBool,
}

impl Direct {
    /// Starts a process. The tasks report to `events`; call it on the runtime.
    ///
    /// # Errors
    /// When the process cannot be made; nothing is reported then.
    pub fn spawn(
        host: HostId,
        launch: Launch,
        reaper: &Reaper,
        events: &HostEvents,
    ) -> Result<Direct, SpawnError> {
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.args)
            .env_clear()
            .envs(launch.env)
            .env("ACPD_HOST", &launch.marker)
            .current_dir(&launch.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        detach_child(&mut command);
        let refused = |error: io::Error| refusal(&launch.program, &launch.cwd, &error);
        let mut child = reaper.start_child(&mut command).map_err(refused)?;
        let Started { leader, stdin, stdout, stderr, exited } = match take_over(&mut child) {
            Ok(started) => started,
            Err(error) => {
                reaper.discard(child);
                return Err(refused(error));
            }
        };
        reaper.watch(host, launch.marker, leader);

        let flow = Arc::new(Flow::default());
        let (lines, queue) = mpsc::unbounded_channel();
        let log = launch.log.clone();
        let (ask_stderr, asked) = oneshot::channel();
        tokio::spawn(keep_stderr(stderr, launch.log, asked));
        tokio::spawn(write_stdin(host, stdin, queue, events.clone(), Arc::clone(&flow)));
        tokio::spawn(
            Output {
                host,
                start: leader.start,
                pid: leader.pid,
                stdout,
                framer: Framer::new(launch.line_limit),
                handed: 0,
                flow: Arc::clone(&flow),
                events: events.clone(),
                reaper: reaper.clone(),
                stderr: ask_stderr,
            }
            .run(exited),
        );
        Ok(Direct { host, stdin: Some(lines), last_chunk: 0, flow, reaper: reaper.clone(), log })
    }
}

impl AgentHost for Direct {
    fn tell(&mut self, order: ToHost) {
        match order {
            ToHost::Write { chunk, line } if chunk > self.last_chunk => {
                self.last_chunk = chunk;
                if let Some(stdin) = &self.stdin {
                    // The writer is gone when the process has closed its stdin: its exit tells the rest.
                    stdin.send((chunk, line)).ok();
                }
            }
            ToHost::Ack { offset } => {
                self.flow.acked.fetch_max(offset, Ordering::Relaxed);
                self.flow.moved.notify_one();
            }
            ToHost::Stop(step) => {
                self.flow.stopping.store(true, Ordering::Relaxed);
                match step {
                    StopStep::CloseStdin => self.stdin = None,
                    StopStep::Term | StopStep::Kill => self.reaper.stop(self.host, step),
                }
            }
            ToHost::Note(text) => self.log.line(&format!("acpd: {text}")),
            // It has that line, never outlives the daemon, and keeps nothing on disk.
            ToHost::Write { .. } | ToHost::Lease { .. } | ToHost::Forget => {}
        }
    }

    fn dismiss(&mut self) -> bool {
        false
    }
}

/// A child, ready to be talked with.
struct Started {
    leader: ProcessId,
    stdin: Sender,
    stdout: Receiver,
    stderr: Receiver,
    exited: oneshot::Receiver<io::Result<ExitKind>>,
}

fn take_over(child: &mut Child) -> io::Result<Started> {
    let pid = child.id();
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(io::Error::other("its pipes are missing"));
    };
    let (stdin, stdout, stderr) = (sender(stdin)?, receiver(stdout)?, receiver(stderr)?);
    // A child that we have not waited for keeps its pid, so it is there to be looked at.
    let leader =
        ProcessId::of(pid).ok_or_else(|| io::Error::other("its start time cannot be read"))?;
    let (exit, exited) = oneshot::channel();
    thread::Builder::new()
        .name(format!("wait {pid}"))
        .stack_size(64 << 10)
        .spawn(move || exit.send(wait_leader(pid)))?;
    Ok(Started { leader, stdin, stdout, stderr, exited })
}

fn refusal(program: &std::path::Path, cwd: &std::path::Path, error: &io::Error) -> SpawnError {
    let permanent = matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidInput
    ) || is_no_program(error);
    let (what, hint) = if cwd.is_dir() {
        let hint = "check `command` in the configuration, or the permissions of that file";
        (format!("cannot start `{}`: {error}", program.display()), hint)
    } else {
        let hint = "make that directory, or set `cwd` in the configuration";
        (format!("cannot start in `{}`: {error}", cwd.display()), hint)
    };
    SpawnError { message: what, hint: Some(hint.to_owned()), permanent }
}

/// Reads stdout, in order, and tells of the exit when everything before it was handed over.
struct Output {
    host: HostId,
    pid: u32,
    start: u64,
    stdout: Receiver,
    framer: Framer,
    /// End of the last line that was handed over. What is dropped of a line over the limit does not
    /// count: nobody acknowledges it before the line is over.
    handed: u64,
    flow: Arc<Flow>,
    events: HostEvents,
    reaper: Reaper,
    stderr: oneshot::Sender<oneshot::Sender<String>>,
}

impl Output {
    async fn run(mut self, mut exited: oneshot::Receiver<io::Result<ExitKind>>) {
        let started = HostEvent::Started { pid: self.pid, start: self.start };
        self.report(started).await;
        let mut open = true;
        let mut cut_off: Option<Instant> = None;
        let mut steps = [StopStep::Term, StopStep::Kill].into_iter();
        let exit = loop {
            let room = self.handed < self.flow.acked.load(Ordering::Relaxed) + UNACKED;
            tokio::select! {
                exit = &mut exited => break exit,
                read = self.stdout.read_buf(self.framer.read_buf()), if open && room => {
                    open = matches!(read, Ok(n) if n > 0);
                    self.hand_over().await;
                    if !open {
                        cut_off.get_or_insert(Instant::now() + CUT_OFF);
                    }
                }
                () = self.flow.moved.notified(), if open && !room => {}
                () = self.flow.deaf.notified() => {
                    cut_off.get_or_insert(Instant::now() + CUT_OFF);
                }
                () = until(cut_off) => cut_off = self.end_it(steps.next()),
            }
        };
        // What the leader wrote before its end is in the pipe already. What others add does not count.
        if open && let Ok(rest) = what_is_there(&mut self.stdout, PIPE).await {
            self.framer.push(&rest);
            self.hand_over().await;
        }
        while let Some(frame) = self.framer.finish() {
            self.report(HostEvent::Output(vec![frame])).await;
        }
        let status = match exit {
            Ok(Ok(exit)) => exit.to_string(),
            Ok(Err(error)) => format!("an unknown status ({error})"),
            Err(_) => "an unknown status".to_owned(),
        };
        let (reply, answer) = oneshot::channel();
        let (ask, _) = oneshot::channel();
        let ask = std::mem::replace(&mut self.stderr, ask);
        ask.send(reply).ok();
        let stderr = answer.await.unwrap_or_default();
        self.report(HostEvent::Exited { status, stderr }).await;
        // Not before: what the reaper reports comes last.
        self.reaper.exited(self.host);
        // Whoever holds stdout now is being ended; until then it must not block on a full pipe.
        let mut sink = [0; 8 << 10];
        while matches!(self.stdout.read(&mut sink).await, Ok(n) if n > 0) {}
    }

    /// Takes a step of the stop ladder. Returns when the next one is due.
    fn end_it(&self, step: Option<StopStep>) -> Option<Instant> {
        let step = step.filter(|_| !self.flow.stopping.load(Ordering::Relaxed))?;
        tracing::warn!(
            host = self.host.0,
            "an agent has closed its stdin or stdout but still runs"
        );
        self.reaper.stop(self.host, step);
        Some(Instant::now() + CUT_OFF)
    }

    async fn hand_over(&mut self) {
        let mut frames: Vec<Frame> = Vec::new();
        while let Some(frame) = self.framer.next_frame() {
            frames.push(frame);
        }
        let Some(last) = frames.last() else { return };
        self.handed = last.end;
        let whole = frames.iter().all(|frame| matches!(frame.body, Body::Line(_)));
        if !whole {
            tracing::warn!(host = self.host.0, "an agent wrote a line over the limit");
        }
        self.report(HostEvent::Output(frames)).await;
    }

    async fn report(&self, event: HostEvent) {
        // The relay is gone only when the daemon ends.
        self.events.send((self.host, event)).await.ok();
    }
}

/// Writes lines to stdin and reports how far it got; closes stdin when the queue is closed.
async fn write_stdin(
    host: HostId,
    mut stdin: Sender,
    mut queue: mpsc::UnboundedReceiver<(u64, Bytes)>,
    events: HostEvents,
    flow: Arc<Flow>,
) {
    while let Some((mut chunk, line)) = queue.recv().await {
        let mut buffer = Vec::with_capacity(line.len() + 1);
        buffer.extend_from_slice(&line);
        buffer.push(b'\n');
        while let Ok((next, line)) = queue.try_recv() {
            chunk = next;
            buffer.extend_from_slice(&line);
            buffer.push(b'\n');
        }
        if stdin.write_all(&buffer).await.is_err() || stdin.flush().await.is_err() {
            return flow.deaf.notify_one();
        }
        if events.send((host, HostEvent::Written { chunk })).await.is_err() {
            return;
        }
    }
}

/// Copies stderr to the agent's log. Asked for it, it tells the last lines written so far.
async fn keep_stderr(mut stderr: Receiver, mut log: BoundedLog, mut asked: Asked) {
    let mut last = LastWords::default();
    let mut keep = |bytes: &[u8], last: &mut LastWords| {
        log.write(bytes);
        last.push(bytes, Instant::now().into_std());
    };
    let words = |last: &mut LastWords| {
        last.end(Instant::now().into_std());
        String::from_utf8_lossy(last.get()).trim().to_owned()
    };
    let mut buffer = vec![0; 4 << 10];
    let mut pending = true;
    loop {
        tokio::select! {
            reply = &mut asked, if pending => {
                pending = false;
                if let Ok(rest) = what_is_there(&mut stderr, PIPE).await && !rest.is_empty() {
                    keep(&rest, &mut last);
                }
                if let Ok(reply) = reply {
                    reply.send(words(&mut last)).ok();
                }
            }
            read = stderr.read(&mut buffer) => match read {
                Ok(n) if n > 0 => keep(&buffer[..n], &mut last),
                _ => break,
            },
        }
    }
    if pending && let Ok(reply) = asked.await {
        reply.send(words(&mut last)).ok();
    }
}
