//! One process of ours tells another that something has changed which it knows how to look up: `SIGUSR1`.

use std::io;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;

/// Takes nudges from now on, and waits for each; else one would end the process.
pub fn nudges() -> io::Result<impl Iterator<Item = ()> + Send + use<>> {
    let mut signals = Signals::new([SIGUSR1])?;
    Ok(std::iter::from_fn(move || signals.forever().next().map(drop)))
}

/// Nudges this process, which takes that.
pub fn nudge(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().filter(|pid| *pid > 0) {
        // One that has ended needs no news.
        let _ = kill(Pid::from_raw(pid), Signal::SIGUSR1);
    }
}
