//! Pipes to children, on the runtime. They may be of any kind, so another thread waits for each, as for a file.

use std::io;
use std::os::windows::io::OwnedHandle;
use std::time::Duration;

use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

/// What a child reads from. What is written is on its way; [`flush`](tokio::io::AsyncWriteExt::flush) tells whether it
/// got there.
pub type Sender = File;

/// What a child writes to.
pub type Receiver = File;

/// How long nothing may come from a pipe that is to be read to where it is now.
const SILENCE: Duration = Duration::from_millis(50);

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

/// Reads what a pipe holds at this moment, and no more than `most`. A read is under way, so what comes until there is a
/// moment of silence counts.
pub async fn what_is_there(pipe: &mut Receiver, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 8 << 10];
    while bytes.len() < most {
        match tokio::time::timeout(SILENCE, pipe.read(&mut piece)).await {
            Ok(Ok(count)) if count > 0 => bytes.extend_from_slice(&piece[..count]),
            Ok(Ok(_)) | Err(_) => break,
            Ok(Err(error)) => return Err(error),
        }
    }
    Ok(bytes)
}
