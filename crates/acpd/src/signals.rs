//! Signals, with the process that sent them.

use std::io;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use tokio::sync::mpsc;

/// Calls for an end.
pub type Stops = mpsc::UnboundedReceiver<()>;

/// Starts the thread that waits for signals: SIGTERM and SIGINT ask for an end, SIGHUP (a terminal
/// that went away) is ignored.
pub fn watch() -> io::Result<Stops> {
    let mut signals = SignalsInfo::<WithOrigin>::new([SIGTERM, SIGINT, SIGHUP])?;
    let (stop, stops) = mpsc::unbounded_channel();
    thread::Builder::new().name("signals".to_owned()).stack_size(128 << 10).spawn(move || {
        for origin in &mut signals {
            let sender = origin.process.map_or(0, |process| process.pid);
            let signal = signal_hook::low_level::signal_name(origin.signal).unwrap_or("a signal");
            tracing::info!(signal, sender, "signal received");
            if origin.signal != SIGHUP && stop.send(()).is_err() {
                return;
            }
        }
    })?;
    Ok(stops)
}
