//! `acpctl` as a user or an editor runs it.

use std::fs::File;
use std::io::{Read, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use nix::pty::{Winsize, openpty};
use nix::sys::signal::Signal;

use super::client::Client;
use super::{DEADLINE, until};
use crate::lock;
use crate::process::ChildGuard;

#[derive(Debug, Clone)]
pub struct Output {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

impl Output {
    #[expect(clippy::return_self_not_must_use, reason = "the check is the use")]
    pub fn success(self) -> Output {
        self.code(0)
    }

    #[expect(clippy::return_self_not_must_use, reason = "the check is the use")]
    pub fn code(self, code: i32) -> Output {
        assert!(self.code_is(code), "expected exit code {code}: {self:#?}");
        self
    }

    pub fn code_is(&self, code: i32) -> bool {
        self.status.code() == Some(code)
    }

    pub fn stdout(&self) -> &str {
        &self.stdout
    }

    pub fn stderr(&self) -> &str {
        &self.stderr
    }

    #[expect(clippy::return_self_not_must_use, reason = "the check is the use")]
    pub fn explains(self, words: &[&str]) -> Output {
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is missing on stderr: {self:#?}");
        }
        self
    }
}

/// Output of a pipe so far, and whether more can come.
type Shared = Arc<(Mutex<(String, bool)>, Condvar)>;

/// A running program. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    child: ChildGuard,
    stdout: Shared,
    stderr: Shared,
    /// The user's end of its terminal.
    terminal: Option<File>,
}

impl Running {
    pub fn start(mut command: Command) -> Running {
        let mut child = spawn(&mut command);
        let stdout = collect(child.0.stdout.take().expect("stdout is a pipe"));
        let stderr = collect(child.0.stderr.take().expect("stderr is a pipe"));
        Running { child, stdout, stderr, terminal: None }
    }

    /// Starts a command on a terminal of its own, whose output counts as stdout.
    pub fn on_terminal(mut command: Command) -> Running {
        let (child, terminal, _) = on_terminal(&mut command, None);
        let stdout = collect(terminal.try_clone().expect("a descriptor"));
        Running { child, stdout, stderr: collect(std::io::empty()), terminal: Some(terminal) }
    }

    pub fn types(&mut self, keys: &str) {
        let terminal = self.terminal.as_mut().expect("it is on a terminal");
        terminal.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Starts a command that speaks the protocol on stdin and stdout, and returns the other end.
    pub fn start_editor(mut command: Command) -> (Running, Client) {
        let (editor, program) = UnixStream::pair().expect("a pair of sockets");
        let mut child = spawn(command.stdin(Stdio::piped()).stdout(OwnedFd::from(program)));
        let stdin = child.0.stdin.take().expect("stdin is a pipe");
        let stderr = collect(child.0.stderr.take().expect("stderr is a pipe"));
        let running = Running { child, stdout: collect(std::io::empty()), stderr, terminal: None };
        (running, Client::over(stdin, editor))
    }

    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    pub fn wait_stdout(&mut self, text: &str) -> String {
        wait_until(text, &self.stdout, |all, _| all.contains(text))
    }

    pub fn wait_stderr(&mut self, text: &str) -> String {
        wait_until(text, &self.stderr, |all, _| all.contains(text))
    }

    pub fn interrupt(&self) {
        super::signal(self.pid(), Signal::SIGINT);
    }

    pub fn kill(&mut self) {
        self.child.kill();
    }

    #[must_use = "look at what it did"]
    pub fn finish(mut self) -> Output {
        let status = until("a command to end", || self.child.0.try_wait().expect("a child"));
        let text = |shared| wait_until("the end of a pipe", shared, |_, ended| ended);
        let stderr = text(&self.stderr);
        Output { status, stdout: text(&self.stdout), stderr }
    }
}

fn spawn(command: &mut Command) -> ChildGuard {
    ChildGuard(command.spawn().unwrap_or_else(|e| panic!("cannot run {command:?}: {e}")))
}

/// Starts a command on a terminal of its own: the program, and the user's and the program's end.
pub(super) fn on_terminal(
    command: &mut Command,
    size: Option<&Winsize>,
) -> (ChildGuard, File, OwnedFd) {
    let pty = openpty(size, None).expect("a terminal");
    let end = || Stdio::from(pty.slave.try_clone().expect("a descriptor"));
    let command = command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end());
    (spawn(command), File::from(pty.master), pty.slave)
}

fn collect(mut pipe: impl Read + Send + 'static) -> Shared {
    let shared = Shared::default();
    let theirs = Arc::clone(&shared);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut block = [0; 8 << 10];
        loop {
            let count = pipe.read(&mut block).unwrap_or(0);
            bytes.extend_from_slice(&block[..count]);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            *lock(&theirs.0) = (text, count == 0);
            theirs.1.notify_all();
            if count == 0 {
                return;
            }
        }
    });
    shared
}

fn wait_until(what: &str, shared: &Shared, enough: impl Fn(&str, bool) -> bool) -> String {
    let waits = |(text, ended): &mut (String, bool)| !*ended && !enough(text, *ended);
    let waited = shared.1.wait_timeout_while(lock(&shared.0), DEADLINE, waits);
    let inner = waited.unwrap_or_else(PoisonError::into_inner).0;
    assert!(enough(&inner.0, inner.1), "{what} did not come: {:?}", inner.0);
    inner.0.clone()
}
