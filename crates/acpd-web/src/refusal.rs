//! An error response: a status, the error, and the way out.

use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};

use crate::failure::Failure;
use crate::guess::WINDOW;

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
