//! What a connection is told that is closed before it is anybody's.

use acp_wire::{ErrorObject, Id, build};
use acpd_api::Reason;
use acpd_core::Fault;
use interprocess::local_socket::tokio::Stream;
use tokio::io::AsyncWriteExt as _;

/// For a connection for which nothing is left.
pub(crate) fn no_descriptors() -> ErrorObject {
    too_many(
        "acpd has no file descriptors left for another connection",
        "close a client, or start acpd with a higher limit of open files (`ulimit -n`)",
    )
}

/// For a connection that has said nothing for too long.
pub(crate) fn silent_for_too_long() -> ErrorObject {
    too_many(
        "the connection was closed: it has said nothing, and others came",
        "connect again, and say something",
    )
}

fn too_many(text: &str, hint: &str) -> ErrorObject {
    Fault::new(Reason::TooMany, text).hint(hint).object()
}

/// The only line to a connection that is closed after it: there is room for it.
pub(crate) async fn tell(mut stream: &Stream, why: &ErrorObject) {
    let mut line = build::error(&Id::null(), why).to_vec();
    line.push(b'\n');
    // It is going to be closed either way.
    stream.write_all(&line).await.ok();
}
