//! Starts a terminal from a request.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use acpd_sys::keeper::{Control, wrap};
use acpd_sys::process::{
    ProcessId, StopSignal, detach_child, is_same_variable, shell, wait_leader,
};
use acpd_sys::tree::Tree;
use acpd_sys::wait::pipe;
use tokio::sync::watch;

use super::error::TerminalError;
use super::keeper::{Job, keep};
use super::output::{State, read};
use super::types::{Children, CreateTerminal, Exit, Gone, MOST_OUTPUT, USUAL_OUTPUT};

/// Stack size of the threads in bytes.
const STACK: usize = 256 << 10;

/// A running terminal; dropping it ends it.
pub(super) struct Terminal {
    pub(super) owner: u64,
    jobs: mpsc::Sender<Job>,
    pub(super) state: watch::Receiver<State>,
    pub(super) gone: Gone,
}

impl Terminal {
    pub(super) fn end(&self) {
        // The thread ends with the tree.
        self.jobs.send(Job::EndTree).ok();
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
    exe: Option<&Path>,
) -> Result<Terminal, TerminalError> {
    if !request.cwd.is_dir() {
        return Err(TerminalError::NoDirectory { cwd: request.cwd.clone() });
    }
    // A name with a `=` could set `ACPD_HOST`, the mark of a tree, to that of another one.
    let is_bad = |name: &str| name.is_empty() || name.contains('=');
    if let Some((name, _)) = request.env.iter().find(|(name, _)| is_bad(name)) {
        return Err(TerminalError::BadVariable { name: name.clone() });
    }
    run(request, children, grace, exe)
        .map_err(|source| TerminalError::Start { command: request.command.clone(), source })
}

fn run(
    request: &CreateTerminal,
    children: &Arc<dyn Children>,
    grace: Duration,
    exe: Option<&Path>,
) -> io::Result<Terminal> {
    let (output, input) = pipe()?;
    let (mut command, mut control) = command(request, exe)?;
    command.stdout(input.try_clone()?).stderr(input);
    let child = children.start(&mut command)?;
    // `command` holds the child's ends of the pipe and of the connection, which would never close.
    drop(command);
    let (kept, lease) = match control.as_mut().map(Control::begin).transpose() {
        Ok(started) => started.unzip(),
        Err(error) => {
            children.discard(child);
            return Err(error);
        }
    };

    let child = Arc::new(child);
    let limit = request.output_byte_limit.unwrap_or(USUAL_OUTPUT).min(MOST_OUTPUT);
    let (writer, state) = watch::channel(State::new(limit as usize));
    let (exit, exited) = mpsc::channel();
    let (jobs, queue) = mpsc::channel();
    let (alive, gone) = watch::channel(());
    let until_gone = gone.clone();
    let look_after = || {
        let pid = child.id();
        let (bell, mut wake) = pipe()?;
        let id = ProcessId::of_child(&child)?;
        let tree = Tree::new(&request.marker, kept.unwrap_or(id));
        let mut tree = tree.with_keeper(kept.map(|_| pid));
        let (children, mut gone_wake) = (Arc::clone(children), wake.try_clone()?);
        // On Windows, the pid is not reused while this exists.
        let held = Arc::clone(&child);
        let ended = jobs.clone();
        spawn(format!("read {pid}"), move || read(output, bell, &writer, &exited, &until_gone))?;
        spawn(format!("wait {pid}"), move || {
            let status = match control {
                Some(mut control) => control.wait(),
                None => wait_leader(pid).ok(),
            };
            exit.send(status.map(Exit::from).unwrap_or_default()).ok();
            wake.write_all(b"!").ok();
            ended.send(Job::Ended).ok();
        })?;
        spawn(format!("keep {pid}"), move || {
            keep(&mut tree, kept.map(|_| id), grace, &queue);
            children.reap(held.id());
            // Last: without its lease, a keeper process ends the tree.
            drop((alive, lease));
            gone_wake.write_all(b"!").ok();
        })
    };
    if let Err(error) = look_after() {
        if let Some(leader) = kept {
            // Without its tree and its connection a keeper ends. A killed one would leave the tree.
            Tree::new(&request.marker, leader).signal_all(StopSignal::Kill);
            wait_leader(child.id()).ok();
            children.reap(child.id());
        } else if let Some(child) = Arc::into_inner(child) {
            children.discard(child);
        }
        return Err(error);
    }
    Ok(Terminal { owner: request.owner, jobs, state, gone })
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name).stack_size(STACK).spawn(work).map(drop)
}

fn command(request: &CreateTerminal, exe: Option<&Path>) -> io::Result<(Command, Option<Control>)> {
    let mut plain =
        if needs_shell(request) { shell(&request.command) } else { Command::new(&request.command) };
    plain.args(&request.args).stdin(Stdio::null());
    let (mut command, control) = wrap(exe, plain)?;
    command
        .env_clear()
        .envs(request.base_env.iter().cloned())
        .envs(request.env.iter().cloned())
        .env("ACPD_HOST", &request.marker)
        .current_dir(&request.cwd);
    detach_child(&mut command);
    Ok((command, control))
}

fn needs_shell(request: &CreateTerminal) -> bool {
    let has_space = request.command.contains(char::is_whitespace);
    let is_program = || which::which_in(&request.command, path_of(request), &request.cwd).is_ok();
    request.args.is_empty() && has_space && !is_program()
}

fn path_of(request: &CreateTerminal) -> Option<OsString> {
    let is_path = |name: &OsStr| is_same_variable(name, OsStr::new("PATH"));
    let own = request.env.iter().rfind(|(name, _)| is_path(name.as_ref()));
    let base = request.base_env.iter().rfind(|(name, _)| is_path(name));
    own.map(|(_, path)| path.into()).or_else(|| base.map(|(_, path)| path.clone()))
}
