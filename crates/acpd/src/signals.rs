//! Requests that come by no connection: signals, with the process that sent them; on Windows those of the console and the
//! system.

use std::io;
use std::thread;

use acpd_sys::requests::Requests;
use tokio::sync::mpsc;

pub use acpd_sys::requests::Wish as Call;

/// Requests that came as signals.
pub type Calls = mpsc::UnboundedReceiver<Call>;

/// Starts the thread that waits for them.
pub fn watch() -> io::Result<Calls> {
    let mut requests = Requests::watch()?;
    let (tell, calls) = mpsc::unbounded_channel();
    thread::Builder::new().name("signals".to_owned()).stack_size(128 << 10).spawn(move || {
        loop {
            for request in requests.wait() {
                let (signal, sender) = (request.name, request.sender);
                tracing::info!(signal, sender, "signal received");
                if tell.send(request.wish).is_err() {
                    return;
                }
            }
        }
    })?;
    Ok(calls)
}
