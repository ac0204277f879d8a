use std::time::Duration;

use axum::body::{Body, to_bytes};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

/// Most bytes of a body.
const LONGEST: usize = 16 << 10;
/// Longest wait for a body.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads the body as JSON; `None` if it is something else, too long, or late.
pub(crate) async fn json<T: DeserializeOwned>(body: Body) -> Option<T> {
    let bytes = timeout(PATIENCE, to_bytes(body, LONGEST)).await.ok()?.ok()?;
    serde_json::from_slice(&bytes).ok()
}
