//! The bytes of a connection.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use interprocess::local_socket::Stream;

/// Reads some bytes; 0 at the end.
pub(crate) fn read_block(mut stream: &Stream, block: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(block) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The daemon died with something unread: the end all the same.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(0),
            read => return read,
        }
    }
}

/// Writes a line and its newline.
pub(crate) fn write_line(mut stream: &Stream, line: &[u8]) -> io::Result<()> {
    // Nearly always everything goes out at once, without a copy.
    let sent = stream.write_vectored(&[IoSlice::new(line), IoSlice::new(b"\n")])?;
    if sent <= line.len() {
        stream.write_all(&line[sent..])?;
        stream.write_all(b"\n")?;
    }
    stream.flush()
}

/// The socket itself, for who has a runtime.
pub(crate) fn into_socket(stream: Stream) -> io::Result<UnixStream> {
    let Stream::UdSocket(stream) = stream;
    stream.as_fd().try_clone_to_owned().map(UnixStream::from)
}

/// Ends a connection, also for whoever reads from it just now.
pub(crate) fn hang_up(stream: &Stream) {
    let Stream::UdSocket(stream) = stream;
    // One that has ended already needs nothing.
    let copy = stream.as_fd().try_clone_to_owned().map(UnixStream::from);
    let _ = copy.and_then(|copy| copy.shutdown(Shutdown::Both));
}

pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
