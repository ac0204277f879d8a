//! Distinguishes a daemon that does not answer from one that waits for an agent.
//!
//! Many answers are late for a good reason. So a client that waits asks the daemon itself, after [`QUIET`]
//! and on a connection of its own: [`method::PING`] is answered at once, however slow agents and disks are.
//! A daemon that does not answer that either is stopped or hangs, and the system reports which.

use std::io;
use std::time::Duration;

use acp_wire::{Id, build};
use acpd_api::{Empty, method};
use acpd_sys::paths::Paths;
use acpd_sys::socket::Stream;

use crate::connect::{Options, open};
use crate::error::{ConnectError, NotAnswering};
use crate::stream::{is_timeout, read_block, write_line};

/// How long an answer is waited for before the daemon is asked whether it is there.
pub(crate) const QUIET: Duration = Duration::from_secs(2);
/// How long it may take to say so.
const ANSWER: Duration = Duration::from_secs(3);
/// While it is there, it is asked less and less often, but not less often than this.
const SELDOM: Duration = Duration::from_mins(1);

/// The daemon, if a signal or a debugger has stopped it.
pub fn stopped_daemon(paths: &Paths) -> Option<NotAnswering> {
    let found = NotAnswering::seen(paths);
    found.is_stopped().then_some(found)
}

/// The daemon, if it does not say that it is there. That may take some seconds.
pub fn silent_daemon(paths: &Paths) -> Option<NotAnswering> {
    check_answers(&Options { spawn: false, paths: paths.clone() }).err()
}

/// Schedules the pings during one silence of the daemon: less and less often.
#[derive(Debug, Clone, Copy)]
pub struct Doubt(Duration);

impl Doubt {
    /// The doubt at the beginning of a silence: the first ping is due after `first`.
    pub fn new(first: Duration) -> Doubt {
        Doubt(first)
    }

    /// The length of the silence at which the next ping is due.
    pub fn after(self) -> Duration {
        self.0
    }

    /// A ping is sent now.
    pub fn asked(&mut self) {
        self.0 += self.0.min(SELDOM);
    }

    /// Pings the daemon because it was silent for that long.
    pub(crate) fn check(&mut self, options: &Options) -> Result<(), NotAnswering> {
        self.asked();
        check_answers(options)
    }
}

/// Makes sure that the daemon answers. A daemon that has ended does not count as silent: its clients notice
/// the end of their connections.
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
    stream.set_write_timeout(Some(ANSWER))?;
    stream.set_read_timeout(Some(ANSWER))?;
    write_line(stream, &build::request(&Id::from(1), method::PING, &Empty {}))?;
    read_block(stream, &mut [0; 1024])
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
