//! A connection on the runtime, in two halves that are read and written at the same time.

use std::io;
use std::os::windows::io::{IntoRawHandle as _, OwnedHandle};

use tokio::io::{ReadHalf, WriteHalf, split};
use tokio::net::windows::named_pipe::NamedPipeClient;

use crate::socket::Stream;

/// The half that receives from the other end.
pub type Reader = ReadHalf<NamedPipeClient>;

/// The half that sends to it.
pub type Writer = WriteHalf<NamedPipeClient>;

/// Brings a connection to the runtime, where this is to be called.
pub fn halves(stream: Stream) -> io::Result<(Reader, Writer)> {
    let pipe = OwnedHandle::from(stream).into_raw_handle();
    // SAFETY: it is an open pipe for overlapped calls, of which none is under way: each was waited for. From here on it is
    // the runtime's, which closes it, also if this fails.
    Ok(split(unsafe { NamedPipeClient::from_raw_handle(pipe) }?))
}
