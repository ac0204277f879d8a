//! Requests of the system, a terminal or another process to a program: signals. SIGTERM and SIGINT request an
//! end, SIGHUP a reload of the configuration.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;

pub use crate::news::{Request, Wish};

/// Requests, as they come.
#[derive(Debug)]
pub struct Requests(SignalsInfo<WithOrigin>);

impl Requests {
    /// Catches these signals, which have no other effect from now on.
    pub fn watch() -> io::Result<Requests> {
        SignalsInfo::<WithOrigin>::new([SIGTERM, SIGINT, SIGHUP]).map(Requests)
    }

    /// Waits for the next ones; blocks the thread. A SIGHUP that no process has sent is left out: a terminal went away.
    pub fn wait(&mut self) -> Vec<Request> {
        let requests = self.0.wait().filter_map(|origin| {
            let sender = origin.process.map_or(0, |process| process.pid);
            let name = signal_hook::low_level::signal_name(origin.signal).unwrap_or("a signal");
            let wish = match origin.signal {
                SIGHUP if sender == 0 => return None,
                SIGHUP => Wish::Reload,
                _ => Wish::Stop,
            };
            Some(Request { wish, name, sender })
        });
        requests.collect()
    }
}

/// Sets `stop` on a request to end, or when the terminal goes away.
pub fn on_stop(stop: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(stop))?;
    }
    Ok(())
}
