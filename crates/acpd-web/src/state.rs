//! The server's state, for all handlers of requests.

use std::sync::Arc;
use std::time::Duration;

use acpd_client::ConnectError;
use acpd_sys::socket::Stream;
use tokio::sync::{Semaphore, watch};

use crate::failure::Failure;
use crate::guess::Guesses;
use crate::invitation::Invitation;
use crate::made::Made;
use crate::names::Names;
use crate::store::Store;

/// Most bytes of a message, in however many frames. A longer one is not read to its end.
pub(crate) const LONGEST_MESSAGE: usize = 32 << 20;
/// Longest time for a client to take the reason of its end.
pub(crate) const GOODBYE: Duration = Duration::from_secs(2);

/// Limits of number and time; tests have smaller ones.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Open connections.
    pub connections: usize,
    /// Open sockets, each with a connection to the daemon, which takes 64 in all.
    pub sockets: usize,
    /// Longest time for the head of a request, or a handshake.
    pub head: Duration,
    /// Time between pings.
    pub ping: Duration,
    /// Longest time in which a client neither sends nor takes anything.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let seconds = Duration::from_secs;
        Limits {
            connections: 256,
            sockets: 48,
            head: seconds(10),
            ping: seconds(20),
            silence: seconds(60),
        }
    }
}

/// Events for the user who has started the server.
#[derive(Debug)]
pub enum Event {
    Listening(Invitation),
    SignedIn {
        /// The name of the new token.
        name: String,
    },
}

pub(crate) struct Server {
    pub(crate) names: Names,
    pub(crate) store: Store,
    /// The name of the cookie. Cookies are shared between ports, so the port is in it.
    pub(crate) cookie: String,
    pub(crate) wrong_codes: Guesses,
    pub(crate) wrong_keys: Guesses,
    pub(crate) sockets: Arc<Semaphore>,
    pub(crate) limits: Limits,
    pub(crate) tell: Box<dyn Fn(Event) + Send + Sync>,
    pub(crate) daemon: acpd_client::Options,
    /// Changes when tokens may have changed: every socket checks its token.
    pub(crate) tokens: watch::Sender<()>,
    /// Becomes true to end every socket.
    pub(crate) end: watch::Sender<bool>,
    pub(crate) made: Made,
}

impl Server {
    /// Runs blocking work on a thread of its own.
    pub(crate) async fn off<R: Send + 'static>(
        self: &Arc<Server>,
        work: impl FnOnce(&Server) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, Failure> {
        let server = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&server)).await;
        done.unwrap_or_else(|error| Err(Failure::new(error)))
    }

    /// Opens a connection to the daemon. A daemon that was stopped has removed its socket, and is
    /// not started. One that died has left its socket, if the system allows that, and is replaced.
    pub(crate) fn daemon(&self) -> Result<Stream, Failure> {
        let has_died = self.daemon.place.has_socket();
        let spawn = self.daemon.spawn && has_died;
        let options = acpd_client::Options { spawn, ..self.daemon.clone() };
        acpd_client::open_socket(&options).map_err(|error| match error {
            ConnectError::NotRunning => {
                Failure::new(error).hint("start it with `acpctl daemon start`")
            }
            other => other.into(),
        })
    }
}
