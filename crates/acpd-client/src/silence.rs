//! A daemon that does not answer, told from one that waits for an agent.
//!
//! Many requests are answered late for a good reason. So who waits asks the daemon itself, after
//! [`QUIET`] and on a connection of its own: [`method::PING`] is answered at once, whatever agents and
//! disks do. A daemon that does not answer that either is stopped or hangs, and the system tells which.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use acp_wire::{Id, build};
use acpd_api::{Empty, method};
use acpd_sys::lock;
use acpd_sys::paths::Paths;
use acpd_sys::process::{Condition, condition};
use interprocess::local_socket::Stream;
use interprocess::local_socket::traits::Stream as _;
use thiserror::Error;

use crate::connect::{Options, open};
use crate::connection::{read_block, write_line};
use crate::error::ConnectError;

/// How long an answer is waited for before the daemon is asked whether it is there.
pub(crate) const QUIET: Duration = Duration::from_secs(2);
/// How long it may take to say so.
const ANSWER: Duration = Duration::from_secs(3);
/// How long a daemon that does not take up connections is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// While it is there, it is asked less and less often, but not less often than this.
const SELDOM: Duration = Duration::from_mins(1);

/// A daemon is there, and says nothing.
#[derive(Debug, Error)]
#[error("acpd does not answer{}", .process.map(|(pid, condition)| format!(" (pid {pid}, {condition})")).unwrap_or_default())]
pub struct NotAnswering {
    /// Which process it is, as far as its lock file tells, and what that does.
    process: Option<(u32, Condition)>,
    log: PathBuf,
}

impl NotAnswering {
    /// What is known of the daemon at this moment.
    pub(crate) fn now(paths: &Paths) -> NotAnswering {
        // The pid that nobody stands for may be anybody's by now.
        let is_held = lock::is_held(&paths.lock()).unwrap_or(false);
        let signature = is_held.then(|| lock::signature(&paths.lock())).flatten();
        let pid = signature.map(|signature| signature.pid);
        let process = pid.and_then(|pid| Some((pid, condition(pid)?)));
        NotAnswering { process, log: paths.daemon_log() }
    }

    /// The way out, as a sentence without its period.
    pub fn hint(&self) -> String {
        let log = self.log.display();
        match self.process {
            Some((pid, Condition::Stopped)) => format!("`kill -CONT {pid}` lets it go on"),
            Some((pid, _)) => format!(
                "look into its log `{log}`; `kill -9 {pid}` ends it, and the next command starts another one"
            ),
            None => format!("look into its log `{log}`"),
        }
    }
}

/// The daemon, if a signal or a debugger has stopped it.
pub fn stopped_daemon(paths: &Paths) -> Option<NotAnswering> {
    let found = NotAnswering::now(paths);
    matches!(found.process, Some((_, Condition::Stopped))).then_some(found)
}

/// The daemon, if it does not say that it is there. That may take some seconds.
pub fn silent_daemon(paths: &Paths) -> Option<NotAnswering> {
    check_answers(&Options { spawn: false, paths: paths.clone() }).err()
}

/// When the daemon is to be asked whether it is there: less and less often in one silence.
#[derive(Debug, Clone, Copy)]
pub struct Doubt(Duration);

impl Doubt {
    /// The doubt at the beginning of a silence: the daemon is to be asked first after `first` of it.
    pub fn new(first: Duration) -> Doubt {
        Doubt(first)
    }

    /// The length of the silence at which the daemon is to be asked next.
    pub fn after(self) -> Duration {
        self.0
    }

    /// The daemon is asked now.
    pub fn asked(&mut self) {
        self.0 += self.0.min(SELDOM);
    }

    /// It was silent for that long: makes sure that it is there.
    pub(crate) fn check(&mut self, options: &Options) -> Result<(), NotAnswering> {
        self.asked();
        check_answers(options)
    }
}

/// Makes sure that the daemon answers. One that is not there any more is not silent: whoever is connected
/// to it hears that.
pub(crate) fn check_answers(options: &Options) -> Result<(), NotAnswering> {
    let stream = match open(options) {
        Ok(Some(stream)) => stream,
        Err(ConnectError::NotAnswering(silent)) => return Err(silent),
        Ok(None) | Err(_) => return Ok(()),
    };
    match ping(&stream) {
        Err(error) if is_timeout(&error) => Err(NotAnswering::now(&options.paths)),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Waits for any word.
fn ping(stream: &Stream) -> io::Result<usize> {
    stream.set_send_timeout(Some(ANSWER))?;
    stream.set_recv_timeout(Some(ANSWER))?;
    write_line(stream, &build::request(&Id::from(1), method::PING, &Empty {}))?;
    read_block(stream, &mut [0; 1024])
}

pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_is_there_is_asked_less_and_less_often_but_every_minute() {
        let mut doubt = Doubt::new(Duration::from_secs(2));
        let asked = std::iter::repeat_with(|| {
            let at = doubt.after().as_secs();
            doubt.asked();
            at
        });
        assert_eq!(asked.take(9).collect::<Vec<_>>(), [2, 4, 8, 16, 32, 64, 124, 184, 244]);
    }
}
