//! Sockets and pipes on the tokio runtime; all functions need the runtime.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

#[cfg(feature = "daemon")]
pub use system::{
    ListeningSocket, PipeReceiver, PipeSender, RemovalWatch, ShimStream, connect_to_shim,
    into_socket, listen, listen_again, peer_of_client, peer_of_shim, pipe_receiver, pipe_sender,
};
pub use system::{StreamReader, StreamWriter, halves};
