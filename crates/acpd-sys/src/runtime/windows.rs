use std::io;
use std::os::windows::io::{IntoRawHandle as _, OwnedHandle};

use tokio::io::{ReadHalf, WriteHalf, split};
use tokio::net::windows::named_pipe::NamedPipeClient;

use crate::socket::Stream;

#[cfg(feature = "daemon")]
pub use daemon::*;

pub type StreamReader = ReadHalf<NamedPipeClient>;
pub type StreamWriter = WriteHalf<NamedPipeClient>;

pub fn halves(stream: Stream) -> io::Result<(StreamReader, StreamWriter)> {
    let pipe = OwnedHandle::from(stream).into_raw_handle();
    // SAFETY: it is an open pipe for overlapped calls, of which none is under way: each was waited for. From here on
    // it is the runtime's, which closes it, also if this fails.
    Ok(split(unsafe { NamedPipeClient::from_raw_handle(pipe) }?))
}

#[cfg(feature = "daemon")]
mod daemon {
    use std::convert::Infallible;
    use std::io;
    use std::os::windows::io::{AsHandle as _, AsRawHandle as _, OwnedHandle};
    use std::path::Path;
    use std::time::Duration;

    use interprocess::local_socket::tokio::{Listener, Stream};
    use interprocess::os::windows::ToWtf16 as _;
    use interprocess::os::windows::named_pipe::PipeListenerOptions;
    use interprocess::os::windows::named_pipe::local_socket::tokio::Listener as PipeListener;
    use interprocess::os::windows::named_pipe::pipe_mode::Bytes;
    use interprocess::os::windows::security_descriptor::{
        AsSecurityDescriptorExt as _, BorrowedSecurityDescriptor,
    };
    use tokio::fs::File;
    use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient};
    use windows_sys::Win32::Foundation::ERROR_PIPE_BUSY;

    use crate::named_pipe::BUFFER;
    use crate::socket::{client_of, server_of};
    use crate::users::{Peer, PrivateTo};

    /// No listener passes from one process to the next.
    pub type ListeningSocket = Infallible;
    pub type ShimStream = NamedPipeClient;
    /// Written bytes are on their way; [`flush`](tokio::io::AsyncWriteExt::flush) returns whether they got there.
    pub type PipeSender = File;
    pub type PipeReceiver = File;

    /// Pause before a busy pipe is tried again.
    const BUSY: Duration = Duration::from_millis(2);

    pub fn listen(path: &Path) -> io::Result<Listener> {
        let private = PrivateTo::user()?;
        // SAFETY: it is whole, and lives longer than this copy is made.
        let private =
            unsafe { BorrowedSecurityDescriptor::from_ptr(private.as_ptr()) }.to_owned_sd()?;
        let mut options = PipeListenerOptions::new();
        options.path = path.to_wtf_16().map_err(io::Error::other)?;
        options.security_descriptor = Some(private);
        options.accept_remote = false;
        (options.input_buffer_size_hint, options.output_buffer_size_hint) = (BUFFER, BUFFER);
        // The first instance of its name, or nothing.
        let listener = options.create_tokio_duplex::<Bytes>()?;
        Ok(PipeListener::from(listener).into())
    }

    pub fn listen_again(socket: ListeningSocket) -> io::Result<Listener> {
        match socket {}
    }

    /// Frees the name, which the successor takes.
    pub fn into_socket(listener: Listener) -> Option<ListeningSocket> {
        drop(listener);
        None
    }

    pub fn peer_of_client(stream: &Stream) -> io::Result<Peer> {
        let Stream::NamedPipe(pipe) = stream;
        client_of(pipe.as_handle().as_raw_handle())
    }

    /// The server can identify this process, but not act as its user.
    pub async fn connect_to_shim(path: &Path) -> io::Result<ShimStream> {
        loop {
            match ClientOptions::new().open(path) {
                Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY as i32) => {
                    tokio::time::sleep(BUSY).await;
                }
                opened => return opened,
            }
        }
    }

    pub fn peer_of_shim(stream: &ShimStream) -> io::Result<Peer> {
        server_of(stream.as_raw_handle())
    }

    #[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
    pub fn pipe_sender(pipe: impl Into<OwnedHandle>) -> io::Result<PipeSender> {
        Ok(File::from_std(std::fs::File::from(pipe.into())))
    }

    #[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
    pub fn pipe_receiver(pipe: impl Into<OwnedHandle>) -> io::Result<PipeReceiver> {
        Ok(File::from_std(std::fs::File::from(pipe.into())))
    }

    /// No process can remove the name.
    #[derive(Debug)]
    pub struct RemovalWatch(());

    impl RemovalWatch {
        pub fn of(_dir: &Path) -> RemovalWatch {
            RemovalWatch(())
        }

        pub async fn next(&mut self) {
            std::future::pending().await
        }
    }
}
