//! Pipes to children, on the runtime. They may be of any kind, so another thread waits for each, as for a file.

use std::io;
use std::os::windows::io::OwnedHandle;

use tokio::fs::File;

/// Our end of a pipe that a child reads from. Written bytes are on their way;
/// [`flush`](tokio::io::AsyncWriteExt::flush) returns whether they got there.
pub type Sender = File;

/// Our end of a pipe that a child writes to.
pub type Receiver = File;

/// Our end of a pipe that a child reads from. To be called on the runtime.
#[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
pub fn sender(pipe: impl Into<OwnedHandle>) -> io::Result<Sender> {
    Ok(File::from_std(std::fs::File::from(pipe.into())))
}

/// Our end of a pipe that a child writes to. To be called on the runtime.
#[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
pub fn receiver(pipe: impl Into<OwnedHandle>) -> io::Result<Receiver> {
    Ok(File::from_std(std::fs::File::from(pipe.into())))
}
