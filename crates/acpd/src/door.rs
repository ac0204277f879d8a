//! The socket, its users, and the connections that have sent nothing yet.
//!
//! ```text
//!  a connection comes ─┬─ of another user ─────────────────────────────▶ error line, closed
//!                      ├─ no descriptor is left for it ────────────────▶ error line, closed
//!                      └─▶ silent ── its first line ─▶ heard: the hub says who may stay
//!                            └─ the oldest of too many ────────────────▶ error line, closed
//! ```
//!
//! The hub learns of a connection with its first line, and counts it only then
//! (`acpd-core/src/clients/admission.rs`). So a connection that sends nothing takes no client's
//! place.

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
use acpd_sys::socket;
use acpd_sys::users::{Peer, own_uid};
use interprocess::local_socket::tokio::prelude::*;
use interprocess::local_socket::tokio::{Listener, Stream};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};

use crate::clients::{Service, no_descriptors, serve, tell};
use crate::clock::until;

/// Time between checks of the socket's file.
const CHECK: Duration = Duration::from_mins(1);
/// Time from a removal in the directory of the socket's file to the check.
const SETTLE: Duration = Duration::from_millis(50);
/// Pause before another attempt to make the socket again.
const AGAIN: Duration = Duration::from_secs(2);
/// Maximum number of connections that have sent nothing.
const SILENT: usize = 64;
/// Maximum number of connections that wait to be accepted.
const BACKLOG: usize = 128;
/// First and longest pause after a failed accept.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

#[derive(Debug)]
pub struct Door {
    /// The path of the socket's file, if the file is this daemon's, with its
    /// [identity](socket::file_id): another file at the path has another one. `None` if it is
    /// missing.
    place: Option<(PathBuf, Option<(u64, u64)>)>,
    listener: Listener,
}

impl Door {
    /// Binds the socket, which only its owner can reach, under any umask. Call it under the
    /// instance lock, on the runtime.
    pub fn open(path: PathBuf) -> Result<Door, String> {
        socket::clear_stale_socket(&path).map_err(|error| error.to_string())?;
        let listener = runtime::listen(&path)
            .map_err(|error| format!("cannot listen on `{}`: {error}", path.display()))?;
        let file = socket::file_id(&path);
        Ok(Door { place: Some((path, file)), listener })
    }

    /// Takes over a listening socket, with the path of its file if this daemon looks after the
    /// file. Call it on the runtime.
    pub fn given(socket: ListeningSocket, path: Option<PathBuf>) -> Result<Door, String> {
        let listener = runtime::listen_again(socket)
            .map_err(|error| format!("cannot use the socket that was handed over: {error}"))?;
        let place = path.map(|path| (path.clone(), socket::file_id(&path)));
        Ok(Door { place, listener })
    }

    /// Returns the listening socket, if it can pass to the next daemon. Call it on the runtime.
    pub fn into_socket(self) -> Option<ListeningSocket> {
        runtime::into_socket(self.listener)
    }

    pub fn own_path(&self) -> Option<PathBuf> {
        self.place.as_ref().map(|(path, _)| path.clone())
    }

    fn removals(&self) -> RemovalWatch {
        let dir = self.place.as_ref().and_then(|(path, _)| path.parent());
        RemovalWatch::of(dir.unwrap_or(Path::new("")))
    }

    /// Binds again if the file was removed or replaced: cleaners of temporary directories do that,
    /// and the system at the last logout. Returns whether the file is there.
    fn check(&mut self) -> bool {
        let Some((path, file)) = &self.place else { return true };
        if socket::file_id(path) == *file && file.is_some() {
            // A cleaner removes a file that looks old.
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
                // Logged once.
                self.place = Some((path.clone(), None));
                false
            }
        }
    }
}

pub async fn accept(mut door: Door, service: Service, mut stop: watch::Receiver<bool>) -> Door {
    let mut next = 0;
    let mut silent = Silent::default();
    let mut shortage = Shortage::default();
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
                // The removal of the whole directory may be in progress.
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
                // A silent connection is closed first; without one, those that wait get an error.
                if !silent.let_go_oldest() {
                    shortage.tell_all(&door.listener).await;
                }
            }
        }
    }
}

/// Connections that have sent nothing, the oldest first.
#[derive(Debug, Default)]
struct Silent(VecDeque<oneshot::Sender<()>>);

impl Silent {
    /// Adds a connection, and closes the oldest if there are too many. A message on the result
    /// closes the new one.
    fn admit(&mut self) -> oneshot::Receiver<()> {
        self.0.retain(|one| !one.is_closed());
        if self.0.len() >= SILENT {
            self.let_go_oldest();
        }
        let (let_go, silence) = oneshot::channel();
        self.0.push_back(let_go);
        silence
    }

    fn let_go_oldest(&mut self) -> bool {
        while let Some(oldest) = self.0.pop_front() {
            if oldest.send(()).is_ok() {
                return true;
            }
        }
        false
    }
}

/// A time in which connections cannot be accepted, most likely for lack of descriptors.
#[derive(Debug, Default)]
struct Shortage {
    until: Option<Instant>,
    pause: Option<Duration>,
    spare: Spare,
}

impl Shortage {
    fn begins(&mut self, error: &io::Error) {
        // Logged once, because the error repeats.
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
        // The descriptor may have been lost when it was released.
        self.spare.refill();
        // With the last descriptor, a connection would only get an error.
        if Spare::default().release() {
            self.pause = None;
            tracing::info!("connections are accepted again");
        }
    }

    /// Sends all waiting connections an error, by means of the spare descriptor.
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

/// Returns why a connection is refused before anything of it is read.
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
