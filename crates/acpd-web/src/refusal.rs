//! Bodies as JSON, and error responses: a status, the error, and the way out. Wrong secrets have a
//! global rate limit: up to `MOST` failures in a minute.
//!
//! A secret is too long to be guessed; the limit bounds the cost of attempts. A client with a token
//! is let in despite the attempts of others, so no stranger can lock it out; a code waits.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::failure::Failure;

#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    why: Failure,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, why: &str, hint: &str) -> Refusal {
        Refusal { status, why: Failure::new(why).hint(hint) }
    }

    pub(crate) fn unknown() -> Refusal {
        let hint = "sign in with a code: `acpctl web pair` prints one";
        Refusal::new(StatusCode::UNAUTHORIZED, "you are not signed in", hint)
    }

    pub(crate) fn too_often() -> Refusal {
        let hint = "wait for a minute";
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong attempts", hint)
    }
}

/// A failure of the server.
impl From<Failure> for Refusal {
    fn from(why: Failure) -> Refusal {
        Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, why }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = json(self.status, &self.why);
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(RETRY_AFTER, WINDOW.as_secs().into());
        }
        response
    }
}

/// A response for programs, which must not be cached.
pub(crate) fn json(status: StatusCode, value: &impl serde::Serialize) -> Response {
    // Such values always serialize.
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    (status, headers, serde_json::to_vec(value).unwrap_or_default()).into_response()
}

/// Most bytes of a body.
const LONGEST: usize = 16 << 10;
/// Longest wait for a body.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads the body as JSON; `None` if it is something else, too long, or late.
pub(crate) async fn read_json<T: DeserializeOwned>(body: Body) -> Option<T> {
    let bytes = timeout(PATIENCE, to_bytes(body, LONGEST)).await.ok()?.ok()?;
    serde_json::from_slice(&bytes).ok()
}

const MOST: usize = 10;
/// Time for which a failure counts.
pub(crate) const WINDOW: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(crate) struct Guesses(Mutex<VecDeque<Instant>>);

impl Guesses {
    pub(crate) fn are_too_many(&self, now: Instant) -> bool {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while failures.front().is_some_and(|first| now.duration_since(*first) >= WINDOW) {
            failures.pop_front();
        }
        failures.len() >= MOST
    }

    /// Counts a failure. Returns whether it exceeds the limit.
    pub(crate) fn count(&self, now: Instant) -> bool {
        let are_too_many = self.are_too_many(now);
        if !are_too_many {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(now);
        }
        are_too_many
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_in_a_minute_are_enough() {
        let (guesses, start) = (Guesses::default(), Instant::now());
        for second in 0..10 {
            assert!(!guesses.count(start + Duration::from_secs(second)));
        }
        assert!(guesses.count(start + Duration::from_secs(59)));
        assert!(!guesses.are_too_many(start + WINDOW));
        assert!(!guesses.count(start + WINDOW));
        assert!(guesses.count(start + WINDOW));
    }
}
