//! Distinguishes a daemon that does not answer from one that waits for an agent.
//!
//! Many answers are late for a good reason. So after [`QUIET`] a waiting client sends
//! [`method::PING`] on another connection, which a daemon answers at once, however slow agents and
//! disks are. A daemon that does not answer is stopped or hangs; the system reports which.

use std::io;
use std::time::{Duration, Instant};

use acp_wire::{Id, build};
use acpd_api::{Empty, method};
use acpd_sys::paths::Paths;
use acpd_sys::socket::Stream;

use crate::connect::{Options, open};
use crate::error::{ConnectError, NotAnswering};
use crate::stream::{is_timeout, read_block, write_line};

/// Wait for an answer before the daemon is pinged.
pub(crate) const QUIET: Duration = Duration::from_secs(2);
/// Time between two checks of a silent daemon while its user watches.
const LOOK: Duration = Duration::from_secs(5);
/// Longest wait for the answer to a ping.
const ANSWER: Duration = Duration::from_secs(3);
/// Longest time between two pings of a daemon that answers.
const SELDOM: Duration = Duration::from_mins(1);

/// The daemon, if a signal or a debugger has stopped it.
pub fn stopped_daemon(paths: &Paths) -> Option<NotAnswering> {
    let found = NotAnswering::seen(paths);
    found.is_stopped().then_some(found)
}

/// A silence of the daemon while nothing is due, for a client whose user watches.
#[derive(Debug)]
pub(crate) struct Silence {
    since: Instant,
    doubt: Doubt,
    /// The daemon that did not answer a ping. It may have sent a line since.
    found: Option<NotAnswering>,
    is_reported: bool,
}

impl Silence {
    pub(crate) fn begin() -> Silence {
        let doubt = Doubt::new(LOOK);
        Silence { since: Instant::now(), doubt, found: None, is_reported: false }
    }

    /// Longest wait of a read before the next [`look`](Silence::look).
    pub(crate) fn limit(&self) -> Option<Duration> {
        match self.found {
            Some(_) => Some(Duration::from_millis(1)),
            None => (!self.is_reported).then_some(LOOK),
        }
    }

    /// Returns a daemon that is stopped, or that does not answer a due ping. Returns it once, if no
    /// line has come since.
    pub(crate) fn look(&mut self, options: &Options) -> Option<NotAnswering> {
        if let Some(found) = self.found.take() {
            self.is_reported = true;
            return Some(found);
        }
        if !self.is_reported && self.since.elapsed() >= LOOK {
            let is_due = self.since.elapsed() >= self.doubt.after();
            let ping = || if is_due { self.doubt.check(options).err() } else { None };
            self.found = stopped_daemon(&options.paths).or_else(ping);
        }
        None
    }
}

/// The schedule of pings during one silence: less and less often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doubt(Duration);

impl Doubt {
    pub(crate) fn new(first: Duration) -> Doubt {
        Doubt(first)
    }

    /// The length of the silence at which the next ping is due.
    pub(crate) fn after(self) -> Duration {
        self.0
    }

    /// Checks that the daemon answers. A daemon that has ended does not count as silent: its
    /// clients notice the end of their connections.
    pub(crate) fn check(&mut self, options: &Options) -> Result<(), NotAnswering> {
        self.ping_later();
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

    fn ping_later(&mut self) {
        self.0 += self.0.min(SELDOM);
    }
}

/// Waits for any answer.
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
            doubt.ping_later();
            at
        });
        assert_eq!(asked.take(9).collect::<Vec<_>>(), [2, 4, 8, 16, 32, 64, 124, 184, 244]);
    }
}
