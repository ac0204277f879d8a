//! A connection on the runtime, in two halves that are read and written at the same time.

use std::io;

use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::socket::Stream;

/// The half that receives from the other end.
pub type Reader = OwnedReadHalf;

/// The half that sends to it.
pub type Writer = OwnedWriteHalf;

/// Brings a connection to the runtime, where this is to be called.
pub fn halves(stream: Stream) -> io::Result<(Reader, Writer)> {
    stream.set_nonblocking(true)?;
    Ok(UnixStream::from_std(stream)?.into_split())
}
