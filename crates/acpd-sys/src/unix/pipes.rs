//! Pipes to children, on the runtime.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe;

/// Our end of a pipe that a child reads from.
pub type Sender = pipe::Sender;

/// Our end of a pipe that a child writes to.
pub type Receiver = pipe::Receiver;

/// Our end of a pipe that a child reads from. To be called on the runtime.
pub fn sender(pipe: impl Into<OwnedFd>) -> io::Result<Sender> {
    Sender::from_owned_fd(pipe.into())
}

/// Our end of a pipe that a child writes to. To be called on the runtime.
pub fn receiver(pipe: impl Into<OwnedFd>) -> io::Result<Receiver> {
    Receiver::from_owned_fd(pipe.into())
}
