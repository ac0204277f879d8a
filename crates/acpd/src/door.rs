//! The socket: who may connect, and the connections that have not said anything yet.
//!
//! ```text
//!  a connection comes ─┬─ of another user ─────────────────────────────▶ told and closed
//!                      ├─ no descriptor is left for it ────────────────▶ told and closed
//!                      └─▶ silent ── its first line ─▶ heard: the hub says who may stay
//!                            └─ the oldest of too many ────────────────▶ told and closed
//! ```
//!
//! The hub learns of a connection with its first line, and counts it only then (`acpd-core/src/clients/admission.rs`).
//! So a connection that sends nothing takes no client's place.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acp_wire::{ErrorObject, code};
use acpd_api::Reason;
use acpd_core::Fault;
use acpd_core::ids::ClientId;
use acpd_sys::files::private_dir;
use acpd_sys::limits::Spare;
use acpd_sys::runtime::{self, ListeningSocket, RemovalWatch};
use acpd_sys::socket::{self, SocketFile};
use acpd_sys::users::{Peer, own_uid};
use interprocess::local_socket::tokio::prelude::*;
use interprocess::local_socket::tokio::{Listener, Stream};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};

use crate::clients::{Service, serve};
use crate::clock::until;
use crate::refusal::{no_descriptors, tell};

/// How often the socket file is looked at.
const CHECK: Duration = Duration::from_mins(1);
/// The time from a removal in the directory of the socket file to the look at it.
const SETTLE: Duration = Duration::from_millis(50);
/// How often a socket is tried that cannot be made again.
const AGAIN: Duration = Duration::from_secs(2);
/// Connections that may be there without having said a line.
const SILENT: usize = 64;
/// The most connections that may wait to be accepted.
const BACKLOG: usize = 128;
/// The first and the longest pause after a connection that could not be accepted.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// The socket that connections come in by.
#[derive(Debug)]
pub struct Door {
    /// The path, if we have bound it: the file of a socket that was handed over is not ours.
    place: Option<(PathBuf, Option<SocketFile>)>,
    listener: Listener,
}

impl Door {
    /// Binds the socket, which only its owner can reach, under any umask. To be called under the instance
    /// lock, on the runtime.
    ///
    /// # Errors
    /// When the path is taken by something else or cannot be bound.
    pub fn open(path: PathBuf) -> Result<Door, String> {
        socket::clear_stale_socket(&path).map_err(|error| error.to_string())?;
        let listener = runtime::listen(&path)
            .map_err(|error| format!("cannot listen on `{}`: {error}", path.display()))?;
        let file = SocketFile::at(&path);
        Ok(Door { place: Some((path, file)), listener })
    }

    /// Takes over a socket that listens already: with the path of its file if that is ours to look
    /// after. To be called on the runtime.
    ///
    /// # Errors
    /// When it is no such socket.
    pub fn given(socket: ListeningSocket, path: Option<PathBuf>) -> Result<Door, String> {
        let listener = runtime::listen_again(socket)
            .map_err(|error| format!("cannot use the socket that was handed over: {error}"))?;
        let place = path.map(|path| (path.clone(), SocketFile::at(&path)));
        Ok(Door { place, listener })
    }

    /// The socket itself, which goes on listening where it passes to the next daemon. To be called on the runtime.
    pub fn into_socket(self) -> Option<ListeningSocket> {
        runtime::into_socket(self.listener)
    }

    /// The file that goes with the daemon.
    pub fn own_path(&self) -> Option<PathBuf> {
        self.place.as_ref().map(|(path, _)| path.clone())
    }

    fn removals(&self) -> RemovalWatch {
        let dir = self.place.as_ref().and_then(|(path, _)| path.parent());
        RemovalWatch::of(dir.unwrap_or(Path::new("")))
    }

    /// Binds again if the file is gone or another one: cleaners of temporary directories do that, and the system at the
    /// last logout. Returns whether the file is there.
    fn check(&mut self) -> bool {
        let Some((path, file)) = &self.place else { return true };
        if SocketFile::at(path) == *file && file.is_some() {
            // An old file looks abandoned to a cleaner.
            socket::touch(path).ok();
            return true;
        }
        let runtime = path.parent().unwrap_or(path);
        let again = private_dir(runtime)
            .map_err(|error| error.to_string())
            .and_then(|()| Door::open(path.clone()));
        match again {
            Ok(door) => {
                tracing::warn!("the socket was removed; acpd has made it again");
                *self = door;
                true
            }
            Err(error) => {
                if file.is_some() {
                    tracing::error!(error, "the socket was removed and cannot be made again");
                }
                // Said once.
                self.place = Some((path.clone(), None));
                false
            }
        }
    }
}

/// Accepts connections until `stop` changes.
pub async fn accept(mut door: Door, service: Service, mut stop: watch::Receiver<bool>) -> Door {
    let mut next = 0;
    let mut silent = Silent::default();
    let mut shortage = Shortage::new();
    let mut check = tokio::time::interval(CHECK);
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut removals = door.removals();
    loop {
        let accepted = tokio::select! {
            accepted = door.listener.accept(), if shortage.until.is_none() => accepted,
            () = until(shortage.until) => {
                shortage.until = None;
                continue;
            }
            _ = check.tick() => {
                if !door.check() {
                    check.reset_after(AGAIN);
                }
                removals = door.removals();
                continue;
            }
            () = removals.next() => {
                // A removal of the whole directory should come to its end.
                check.reset_after(SETTLE);
                continue;
            }
            _ = stop.changed() => return door,
        };
        match accepted {
            Ok(stream) => {
                shortage.ends();
                if let Some(why) = stranger(&stream) {
                    tracing::warn!(why = why.message, "a connection was refused");
                    tokio::spawn(async move { tell(&stream, &why).await });
                    continue;
                }
                next += 1;
                let silence = silent.admit();
                tokio::spawn(serve(ClientId(next), stream, service.clone(), silence));
            }
            Err(error) => {
                shortage.begins(&error);
                // A silent connection goes first; else those that wait get an error.
                if !silent.let_go_oldest() {
                    shortage.tell_all(&door.listener).await;
                }
            }
        }
    }
}

/// The connections that have sent nothing, in the order in which they came.
#[derive(Debug, Default)]
struct Silent(VecDeque<oneshot::Sender<()>>);

impl Silent {
    /// One more: what it gets ends its silence. The oldest goes if there are too many.
    fn admit(&mut self) -> oneshot::Receiver<()> {
        self.0.retain(|one| !one.is_closed());
        if self.0.len() >= SILENT {
            self.let_go_oldest();
        }
        let (let_go, silence) = oneshot::channel();
        self.0.push_back(let_go);
        silence
    }

    /// Returns whether there was one to let go.
    fn let_go_oldest(&mut self) -> bool {
        while let Some(oldest) = self.0.pop_front() {
            if oldest.send(()).is_ok() {
                return true;
            }
        }
        false
    }
}

/// A time in which connections cannot be accepted: most likely there are no descriptors.
#[derive(Debug)]
struct Shortage {
    /// When the next attempt is made.
    until: Option<Instant>,
    pause: Option<Duration>,
    spare: Spare,
}

impl Shortage {
    fn new() -> Shortage {
        Shortage { until: None, pause: None, spare: Spare::new() }
    }

    fn begins(&mut self, error: &io::Error) {
        // Said once: it is the same error again and again.
        if self.pause.is_none() {
            tracing::error!(%error, "connections cannot be accepted; trying again");
        }
        let pause = self.pause.map_or(PAUSE.0, |pause| (pause * 2).min(PAUSE.1));
        self.pause = Some(pause);
        self.until = Some(Instant::now() + pause);
    }

    fn ends(&mut self) {
        if self.pause.is_none() {
            return;
        }
        // The descriptor may have been taken when it was given away.
        self.spare.refill();
        // With the last one a connection is only told that there is none.
        if Spare::new().release() {
            self.pause = None;
            tracing::info!("connections are accepted again");
        }
    }

    /// Tells all connections that wait that there is no descriptor for them, by means of the spare one.
    async fn tell_all(&mut self, listener: &Listener) {
        if !self.spare.release() {
            return;
        }
        let why = no_descriptors();
        for _ in 0..BACKLOG {
            match tokio::time::timeout(Duration::ZERO, listener.accept()).await {
                Ok(Ok(stream)) => tell(&stream, &why).await,
                Ok(Err(_)) | Err(_) => break,
            }
        }
        self.spare.refill();
    }
}

/// Why a connection is refused before a byte of it is read.
fn stranger(stream: &Stream) -> Option<ErrorObject> {
    let peer = runtime::peer_of_client(stream).ok();
    if peer.as_ref().is_some_and(Peer::is_ours) {
        return None;
    }
    let who =
        peer.map_or_else(|| "an unknown user".to_owned(), |peer| format!("user {}", peer.uid));
    let text = format!("this acpd belongs to user {}, not to {who}", own_uid());
    let fault = Fault::new(Reason::Other, text).with_code(code::INVALID_REQUEST);
    Some(fault.hint("each user runs an acpd of their own").object())
}
