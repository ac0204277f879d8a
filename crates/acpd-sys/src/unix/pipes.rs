//! Pipes to children, on the runtime.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};

use tokio::net::unix::pipe;

/// What a child reads from.
pub type Sender = pipe::Sender;

/// What a child writes to.
pub type Receiver = pipe::Receiver;

/// Our end of a pipe that a child reads from. To be called on the runtime.
pub fn sender(pipe: impl Into<OwnedFd>) -> io::Result<Sender> {
    Sender::from_owned_fd(pipe.into())
}

/// Our end of a pipe that a child writes to. To be called on the runtime.
pub fn receiver(pipe: impl Into<OwnedFd>) -> io::Result<Receiver> {
    Receiver::from_owned_fd(pipe.into())
}

/// Reads what a pipe holds at this moment, and no more than `most`. Past the runtime, which may not have heard yet that
/// there is something to read.
#[expect(clippy::unused_async, reason = "as on Windows, where it waits")]
pub async fn what_is_there(pipe: &mut Receiver, most: usize) -> io::Result<Vec<u8>> {
    let mut pipe = File::from(pipe.as_fd().try_clone_to_owned()?);
    let mut bytes = vec![0; most];
    let mut len = 0;
    while len < most {
        match pipe.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}
