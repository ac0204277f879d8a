//! Signals to the daemon, from the system, a terminal or another process.

use std::io;
use std::thread;

use acpd_sys::signals::{self, ReceivedSignal, Signal};
use tokio::sync::mpsc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Stop,
    /// Reads the configuration again.
    Reload,
}

pub type Calls = mpsc::UnboundedReceiver<Call>;

pub fn watch() -> io::Result<Calls> {
    let received = signals::watch(&signals::STOP_REQUESTS)?;
    let (tell, calls) = mpsc::unbounded_channel();
    thread::Builder::new().name("signals".to_owned()).stack_size(128 << 10).spawn(move || {
        for ReceivedSignal { signal, sender } in received {
            let call = match (signal, sender) {
                // The terminal in which the daemon was started is gone.
                (Signal::HangUp, None) => continue,
                (Signal::HangUp, Some(_)) => Call::Reload,
                _ => Call::Stop,
            };
            tracing::info!(signal = signal.name(), sender = sender.unwrap_or(0), "signal received");
            if tell.send(call).is_err() {
                return;
            }
        }
    })?;
    Ok(calls)
}
