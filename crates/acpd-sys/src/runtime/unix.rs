use std::io;

use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::socket::Stream;

#[cfg(feature = "daemon")]
pub use daemon::*;

pub type StreamReader = OwnedReadHalf;
pub type StreamWriter = OwnedWriteHalf;

pub fn halves(stream: Stream) -> io::Result<(StreamReader, StreamWriter)> {
    stream.set_nonblocking(true)?;
    Ok(UnixStream::from_std(stream)?.into_split())
}

#[cfg(feature = "daemon")]
mod daemon {
    use std::io;
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::path::Path;

    use interprocess::local_socket::tokio::{Listener, Stream};
    use interprocess::os::unix::uds_local_socket::tokio::Listener as UdsListener;
    use tokio::net::unix::pipe;

    use crate::socket::{self, peer_of};
    use crate::users::Peer;
    use crate::wait::never_block;

    /// A listening socket that can pass to the next program.
    pub type ListeningSocket = OwnedFd;
    pub type ShimStream = tokio::net::UnixStream;
    pub type PipeSender = pipe::Sender;
    pub type PipeReceiver = pipe::Receiver;

    /// Listens at this path, for this user only. The socket's file stays when the listener is
    /// dropped: a successor may have bound it.
    pub fn listen(path: &Path) -> io::Result<Listener> {
        listen_again(socket::Listener::bind(path)?.into())
    }

    pub fn listen_again(socket: ListeningSocket) -> io::Result<Listener> {
        never_block(&socket)?;
        UdsListener::try_from(socket)
            .map(Listener::from)
            .map_err(|error| io::Error::other(error.to_string()))
    }

    /// Returns the listening socket, if the system can pass it on.
    pub fn into_socket(listener: Listener) -> Option<ListeningSocket> {
        let Listener::UdSocket(listener) = listener;
        OwnedFd::try_from(listener).ok()
    }

    pub fn peer_of_client(stream: &Stream) -> io::Result<Peer> {
        let Stream::UdSocket(unix) = stream;
        peer_of(unix.as_fd())
    }

    pub async fn connect_to_shim(path: &Path) -> io::Result<ShimStream> {
        ShimStream::connect(path).await
    }

    pub fn peer_of_shim(stream: &ShimStream) -> io::Result<Peer> {
        peer_of(stream.as_fd())
    }

    pub fn pipe_sender(pipe: impl Into<OwnedFd>) -> io::Result<PipeSender> {
        PipeSender::from_owned_fd(pipe.into())
    }

    pub fn pipe_receiver(pipe: impl Into<OwnedFd>) -> io::Result<PipeReceiver> {
        PipeReceiver::from_owned_fd(pipe.into())
    }

    /// Reports removals in a directory and of the directory itself (Linux only).
    #[derive(Debug)]
    pub struct RemovalWatch(Option<pipe::Receiver>);

    impl RemovalWatch {
        pub fn of(dir: &Path) -> RemovalWatch {
            // Without a watch, the socket is checked from time to time.
            let events = removals(dir).ok().flatten();
            RemovalWatch(events.and_then(|fd| pipe::Receiver::from_owned_fd_unchecked(fd).ok()))
        }

        pub async fn next(&mut self) {
            let Some(events) = &self.0 else { return std::future::pending().await };
            let mut has_come = false;
            while events.readable().await.is_ok() {
                match events.try_read(&mut [0; 4096]) {
                    Ok(_) => has_come = true,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock && has_come => return,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
            std::future::pending::<()>().await;
        }
    }

    fn removals(dir: &Path) -> io::Result<Option<OwnedFd>> {
        #[cfg(target_os = "linux")]
        {
            use nix::sys::inotify::{AddWatchFlags as Flags, InitFlags, Inotify};
            let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
            let entries = Flags::IN_DELETE | Flags::IN_MOVED_FROM;
            let itself = Flags::IN_DELETE_SELF | Flags::IN_MOVE_SELF;
            inotify.add_watch(dir, entries | itself | Flags::IN_ONLYDIR)?;
            Ok(Some(inotify.as_fd().try_clone_to_owned()?))
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = dir;
            Ok(None)
        }
    }
}
