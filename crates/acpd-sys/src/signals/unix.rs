use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use nix::sys::signal::kill;
use nix::unistd::Pid;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::{SignalOnly, WithOrigin};
use signal_hook::iterator::{Signals, SignalsInfo};
use signal_hook::{flag, low_level};

use super::{ReceivedSignal, SeenSignals, Signal};
use crate::wait::Source;

pub(super) use signal_hook::consts::SIGCONT;

/// Signals that ask a server to exit. A hang-up without a sender reports a terminal that is gone.
pub const STOP_REQUESTS: [Signal; 3] = [Signal::HangUp, Signal::Interrupt, Signal::Terminate];

/// Catches these signals from now on. Each `next` blocks until one arrives.
pub fn watch(
    signals: &[Signal],
) -> io::Result<impl Iterator<Item = ReceivedSignal> + Send + use<>> {
    let signals = signals.to_vec();
    let mut source = SignalsInfo::<WithOrigin>::new(signals.iter().map(|one| one.number()))?;
    Ok(std::iter::from_fn(move || {
        let came = source.forever().next()?;
        let signal = *signals.iter().find(|one| one.number() == came.signal)?;
        let sender = came.process.and_then(|process| u32::try_from(process.pid).ok());
        Some(ReceivedSignal { signal, sender: sender.filter(|pid| *pid != 0) })
    }))
}

/// Ignores these signals from now on. Programs that this one starts get them.
pub fn ignore(signals: &[Signal]) -> io::Result<()> {
    let mut numbers = signals.iter().map(|signal| signal.number());
    numbers.try_for_each(|number| flag::register(number, Arc::default()).map(drop))
}

/// Catches nudges of other acpd processes from now on. Each `next` blocks until one arrives. A
/// nudge reports a change that this process can look up.
pub fn nudges() -> io::Result<impl Iterator<Item = ()> + Send + use<>> {
    let mut source = Signals::new([SIGUSR1])?;
    Ok(std::iter::from_fn(move || source.forever().next().map(drop)))
}

/// Nudges a process, which must catch nudges: SIGUSR1 ends others.
pub fn nudge(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().filter(|pid| *pid > 0) {
        let _ = kill(Pid::from_raw(pid), nix::sys::signal::Signal::SIGUSR1);
    }
}

/// Ends the process like the signal does by default.
pub fn end_by(signal: Signal) {
    // There is no other way if this fails.
    let _ = low_level::emulate_default_handler(signal.number());
}

/// Signals as a source for a [`Wait`](crate::wait::Wait), in a process of one thread.
#[derive(Debug)]
pub struct SignalPipe(SignalDelivery<UnixStream, SignalOnly>);

impl SignalPipe {
    /// Catches `SIGCHLD`, `SIGTERM` and `SIGHUP` from now on, and drops `SIGINT`.
    pub fn open() -> io::Result<SignalPipe> {
        let (read, write) = UnixStream::pair()?;
        flag::register(SIGINT, Arc::default())?;
        let caught = [SIGCHLD, SIGTERM, SIGHUP];
        Ok(SignalPipe(SignalDelivery::with_pipe(read, write, SignalOnly, caught)?))
    }

    /// Reports the end of this child; Unix reports every child.
    pub fn watch_child(&mut self, _child: u32) -> io::Result<()> {
        Ok(())
    }

    pub fn take(&mut self) -> SeenSignals {
        let (child, stop): (Vec<_>, Vec<_>) = self.0.pending().partition(|one| *one == SIGCHLD);
        SeenSignals { child: !child.is_empty(), stop: !stop.is_empty() }
    }
}

impl AsFd for SignalPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_read().as_fd()
    }
}

impl Source for SignalPipe {}
