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

use crate::connect::{Options, Place, open};
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

fn stopped(place: &Place) -> Option<NotAnswering> {
    match place {
        Place::Here(paths) => stopped_daemon(paths),
        Place::Host(_) | Place::Machines(_) => None,
    }
}

/// A silence of the daemon while nothing is due, for a client whose user watches.
#[derive(Debug)]
pub(crate) struct Silence {
    since: Instant,
    /// The length of the silence at which the next ping is due.
    ping_after: Duration,
    /// The daemon that did not answer a ping. It may have sent a line since.
    found: Option<NotAnswering>,
    is_reported: bool,
}

impl Silence {
    pub(crate) fn begin() -> Silence {
        Silence { since: Instant::now(), ping_after: LOOK, found: None, is_reported: false }
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
            let ping = || check_if_due(&mut self.ping_after, self.since, options).err();
            self.found = stopped(&options.place).or_else(ping);
        }
        None
    }
}

/// Pings a daemon that has been silent for `after`, counted from `since`; the pings of one silence
/// come less and less often. A daemon that has ended does not count as silent: its clients notice
/// the end of their connections.
pub(crate) fn check_if_due(
    after: &mut Duration,
    since: Instant,
    options: &Options,
) -> Result<(), NotAnswering> {
    if since.elapsed() < *after {
        return Ok(());
    }
    *after = next_ping(*after);
    // ssh itself checks that another machine is there.
    let Place::Here(paths) = &options.place else { return Ok(()) };
    let stream = match open(paths) {
        Ok(Some(stream)) => stream,
        Err(ConnectError::NotAnswering(silent)) => return Err(silent),
        Ok(None) | Err(_) => return Ok(()),
    };
    match ping(&stream) {
        Err(error) if is_timeout(&error) => Err(NotAnswering::now(paths)),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn next_ping(after: Duration) -> Duration {
    after + after.min(SELDOM)
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
        let first = Some(Duration::from_secs(2));
        let asked = std::iter::successors(first, |after| Some(next_ping(*after)));
        let asked: Vec<u64> = asked.take(9).map(|after| after.as_secs()).collect();
        assert_eq!(asked, [2, 4, 8, 16, 32, 64, 124, 184, 244]);
    }
}
