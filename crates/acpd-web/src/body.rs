//! The body of a request.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

/// The longest body that is read.
const LONGEST: usize = 16 << 10;
/// How long it may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// The body as JSON; nothing if it is none, too long, or does not come.
pub(crate) async fn json<T: DeserializeOwned>(body: Body) -> Option<T> {
    let bytes = timeout(PATIENCE, to_bytes(body, LONGEST)).await.ok()?.ok()?;
    serde_json::from_slice(&bytes).ok()
}
