//! The server's state, for all handlers of requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use acpd_client::ConnectError;
use acpd_sys::socket::{self, Stream};
use tokio::sync::{Semaphore, watch};

use crate::failure::Failure;
use crate::guess::Guesses;
use crate::invitation::Invitation;
use crate::made::Made;
use crate::names::Names;
use crate::store::Store;

/// How much the server takes, and how long it waits.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections that are open at the same time.
    pub connections: usize,
    /// Those of them that are sockets, each with a connection to the daemon, which takes 64 in all.
    pub sockets: usize,
    /// The longest message, in bytes, in however many frames. A longer one is not read to its end.
    pub message: usize,
    /// For how long the head of a request may come, and a handshake last.
    pub head: Duration,
    /// Time between the questions whether a client is there.
    pub ping: Duration,
    /// How long a client may neither say nor take anything.
    pub silence: Duration,
    /// How long a client may take to hear why its socket ends.
    pub goodbye: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let seconds = Duration::from_secs;
        Limits {
            connections: 256,
            sockets: 48,
            message: 32 << 20,
            head: seconds(10),
            ping: seconds(20),
            silence: seconds(60),
            goodbye: seconds(2),
        }
    }
}

/// Events for the user who has started the server.
#[derive(Debug)]
pub enum Event {
    Listening(Invitation),
    /// A browser has used a code.
    SignedIn {
        /// The name of the new token.
        name: String,
    },
}

/// State that all requests share.
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
    pub(crate) news: News,
    pub(crate) made: Made,
}

/// Changes that open sockets wait for.
#[derive(Debug, Default)]
pub(crate) struct News {
    tokens: watch::Sender<()>,
    end: watch::Sender<bool>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Server {
    /// Does something that may wait for the disk or the daemon, on a thread of its own.
    pub(crate) async fn off<R: Send + 'static>(
        self: &Arc<Server>,
        work: impl FnOnce(&Server) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, Failure> {
        let server = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&server)).await;
        done.unwrap_or_else(|error| Err(Failure::new(error)))
    }

    /// A new connection to the daemon. One that was stopped stays so: it has removed its socket. One that died
    /// has left it where the system leaves anything, and is replaced.
    pub(crate) fn daemon(&self) -> Result<Stream, Failure> {
        let has_died = socket::is_left(&self.daemon.paths.socket());
        let spawn = self.daemon.spawn && has_died;
        let options = acpd_client::Options { spawn, ..self.daemon.clone() };
        acpd_client::open_socket(&options).map_err(|error| match error {
            ConnectError::NotRunning { .. } => {
                Failure::new(error).hint("start it with `acpctl daemon start`")
            }
            other => other.into(),
        })
    }
}

impl News {
    /// Every socket looks whether its token is still there.
    pub(crate) fn tokens_changed(&self) {
        self.tokens.send_replace(());
    }

    /// Tells when tokens may have changed.
    pub(crate) fn of_tokens(&self) -> watch::Receiver<()> {
        self.tokens.subscribe()
    }

    /// The server ends, and so does every socket.
    pub(crate) fn end(&self) {
        self.end.send_replace(true);
    }

    /// Tells when the server ends.
    pub(crate) fn of_the_end(&self) -> watch::Receiver<bool> {
        self.end.subscribe()
    }
}
