//! Signals, with the process that sent them.

use std::io;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use tokio::sync::mpsc;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// An end: SIGTERM, SIGINT.
    Stop,
    /// The configuration as it is now: SIGHUP.
    Reload,
}

/// What signals ask for.
pub type Calls = mpsc::UnboundedReceiver<Call>;

/// Starts the thread that waits for signals. A SIGHUP that no process has sent is ignored: a terminal went away.
pub fn watch() -> io::Result<Calls> {
    let mut signals = SignalsInfo::<WithOrigin>::new([SIGTERM, SIGINT, SIGHUP])?;
    let (tell, calls) = mpsc::unbounded_channel();
    thread::Builder::new().name("signals".to_owned()).stack_size(128 << 10).spawn(move || {
        for origin in &mut signals {
            let sender = origin.process.map_or(0, |process| process.pid);
            let signal = signal_hook::low_level::signal_name(origin.signal).unwrap_or("a signal");
            tracing::info!(signal, sender, "signal received");
            let call = match origin.signal {
                SIGHUP if sender == 0 => continue,
                SIGHUP => Call::Reload,
                _ => Call::Stop,
            };
            if tell.send(call).is_err() {
                return;
            }
        }
    })?;
    Ok(calls)
}
