//! The bytes of a connection.

use std::io::{self, IoSlice, Read, Write};

use acpd_sys::socket::Stream;

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

pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
