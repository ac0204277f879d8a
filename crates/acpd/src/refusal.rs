//! The only line to a connection that is closed before it becomes a client.

use acp_wire::{ErrorObject, Id, build};
use acpd_api::Reason;
use acpd_core::Fault;
use acpd_sys::limits::MORE_FILES;
use interprocess::local_socket::tokio::Stream;
use tokio::io::AsyncWriteExt as _;

pub(crate) fn no_descriptors() -> ErrorObject {
    too_many(
        "acpd has no file descriptors left for another connection",
        &format!("close a client, or {MORE_FILES}"),
    )
}

pub(crate) fn silent_for_too_long() -> ErrorObject {
    too_many(
        "the connection was closed: it sent nothing, and other connections came",
        "connect again, and send a request at once",
    )
}

fn too_many(text: &str, hint: &str) -> ErrorObject {
    Fault::new(Reason::TooMany, text).hint(hint).object()
}

/// Sends the only line to a connection, which has room for it.
pub(crate) async fn tell(mut stream: &Stream, why: &ErrorObject) {
    let mut line = build::error(&Id::null(), why).to_vec();
    line.push(b'\n');
    // The connection is closed in any case.
    stream.write_all(&line).await.ok();
}
