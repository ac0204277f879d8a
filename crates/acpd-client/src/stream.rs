use std::io::{self, IoSlice, Read, Write};

use acpd_sys::socket::Stream;

pub(crate) fn read_block(mut stream: &Stream, block: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(block) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The daemon died with unread bytes: an end like any other.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(0),
            read => return read,
        }
    }
}

pub(crate) fn write_line(mut stream: &Stream, line: &[u8]) -> io::Result<()> {
    // Nearly always both go out at once, without a copy.
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
