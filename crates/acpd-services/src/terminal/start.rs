//! Starts a terminal from a request.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use acpd_sys::process::{ProcessId, detach_child, wait_leader};
use acpd_sys::tree::Tree;
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

use super::error::TerminalError;
use super::keeper::{Gone, Job, Keeper};
use super::output::{State, read};
use super::types::{Children, CreateTerminal, Exit, MOST_OUTPUT, USUAL_OUTPUT};

/// What the threads need at most, in bytes.
const STACK: usize = 256 << 10;

/// A terminal that runs. Dropped, it ends.
pub(super) struct Terminal {
    pub(super) owner: u64,
    jobs: mpsc::Sender<Job>,
    pub(super) state: watch::Receiver<State>,
    pub(super) gone: Gone,
}

impl Terminal {
    pub(super) fn end(&self) {
        // The thread is gone when the tree is.
        self.jobs.send(Job::End).ok();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.end();
    }
}

pub(super) fn start(
    request: &CreateTerminal,
    children: &Arc<dyn Children>,
    grace: Duration,
) -> Result<Terminal, TerminalError> {
    if !request.cwd.is_dir() {
        return Err(TerminalError::NoDirectory { cwd: request.cwd.clone() });
    }
    // It could pass for another mark, and its processes for another's.
    let is_bad = |name: &str| name.is_empty() || name.contains('=');
    if let Some((name, _)) = request.env.iter().find(|(name, _)| is_bad(name)) {
        return Err(TerminalError::BadVariable { name: name.clone() });
    }
    run(request, children, grace)
        .map_err(|source| TerminalError::Start { command: request.command.clone(), source })
}

fn run(
    request: &CreateTerminal,
    children: &Arc<dyn Children>,
    grace: Duration,
) -> io::Result<Terminal> {
    let (output, input) = io::pipe()?;
    let output = pipe::Receiver::from_owned_fd(OwnedFd::from(output))?;
    let mut command = command(request);
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
    let child = children.start(&mut command)?;
    // It has the other end of the pipe, which would never end.
    drop(command);

    let (exit, exited) = oneshot::channel();
    let (jobs, queue) = mpsc::channel();
    let (alive, gone) = watch::channel(());
    let look_after = || {
        let pid = child.id();
        // A child that nobody has waited for keeps its pid, so it is there to be looked at.
        let leader =
            ProcessId::of(pid).ok_or_else(|| io::Error::other("its start time cannot be read"))?;
        let keeper = Keeper {
            tree: Tree::new(&request.marker, leader),
            leader,
            ended: false,
            grace,
            children: Arc::clone(children),
            alive,
        };
        let ended = jobs.clone();
        spawn(format!("wait {pid}"), move || {
            let status = wait_leader(pid);
            // They may have gone already.
            exit.send(status.map(Exit::from).unwrap_or_default()).ok();
            ended.send(Job::Ended).ok();
        })?;
        spawn(format!("keep {pid}"), move || keeper.run(&queue))
    };
    if let Err(error) = look_after() {
        children.discard(child);
        return Err(error);
    }

    let limit = request.output_byte_limit.unwrap_or(USUAL_OUTPUT).min(MOST_OUTPUT);
    let (writer, state) = watch::channel(State::new(limit as usize));
    let gone = Gone::new(gone);
    tokio::spawn(read(output, writer, exited, gone.clone()));
    Ok(Terminal { owner: request.owner, jobs, state, gone })
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name).stack_size(STACK).spawn(work).map(drop)
}

fn command(request: &CreateTerminal) -> Command {
    let mut command = if is_line(request) {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&request.command);
        shell
    } else {
        Command::new(&request.command)
    };
    command
        .args(&request.args)
        .env_clear()
        .envs(request.base_env.iter().cloned())
        .envs(request.env.iter().cloned())
        .env("ACPD_HOST", &request.marker)
        .current_dir(&request.cwd);
    detach_child(&mut command);
    command
}

/// Returns whether the command is a line for a shell.
fn is_line(request: &CreateTerminal) -> bool {
    let has_space = request.command.contains(char::is_whitespace);
    let is_program = || which::which_in(&request.command, path(request), &request.cwd).is_ok();
    request.args.is_empty() && has_space && !is_program()
}

/// The `PATH` that it will have.
fn path(request: &CreateTerminal) -> Option<OsString> {
    let own = request.env.iter().rfind(|(name, _)| name == "PATH");
    let base = request.base_env.iter().rfind(|(name, _)| name == "PATH");
    own.map(|(_, path)| path.into()).or_else(|| base.map(|(_, path)| path.clone()))
}
