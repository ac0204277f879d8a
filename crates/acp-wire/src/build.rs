//! Lines that acpd originates, with `"jsonrpc":"2.0"` and without a newline.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::acp::Reader;
use crate::id::Id;
use crate::plain_words::plain_words;

/// Error codes.
pub mod code {
    /// The line is not JSON.
    pub const PARSE: i64 = -32700;
    /// The JSON is not a request, or not one for this moment.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method does not exist or was not advertised.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters are wrong.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The receiver failed; acpd's reasons are in `error.data`.
    pub const INTERNAL: i64 = -32603;
    /// The agent wants a login first.
    pub const AUTH_REQUIRED: i64 = -32000;
    /// The file or session does not exist.
    pub const NOT_FOUND: i64 = -32002;
    /// None of the requested protocol versions is supported; `error.data.supported` lists those
    /// that are.
    pub const VERSION: i64 = -32022;
    /// The request was cancelled.
    pub const CANCELLED: i64 = -32800;
}

/// The notification that the answer to this request is no longer needed.
pub fn cancel_request(id: &Id) -> Bytes {
    notification("$/cancel_request", &serde_json::json!({ "requestId": id }))
}

/// The `error` member of a response.
///
/// Reading is lenient and never fails: a missing member or one of the wrong type becomes
/// [`code::INTERNAL`], an empty message or no data; a bare string becomes the message.
#[derive(Debug, Clone, Serialize)]
pub struct ErrorObject {
    /// The error code, see [`code`].
    pub code: i64,
    /// Message of the error, for people.
    pub message: String,
    /// Additional data for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl ErrorObject {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds data to the error.
    #[must_use]
    pub fn with_data(mut self, data: &impl Serialize) -> Self {
        let raw = serde_json::value::to_raw_value(data);
        self.data = Some(raw.expect("acpd's own values serialize"));
        self
    }

    /// Reads any value that a peer put into `error`.
    pub fn from_raw(raw: &RawValue) -> Self {
        let error = Reader::new(raw);
        Self {
            code: error.integer(&["code"]).unwrap_or(code::INTERNAL),
            message: error
                .lossy(&["message"])
                .or_else(|| error.lossy(&[]))
                .unwrap_or_default()
                .into_owned(),
            data: error.raw(&["data"]).map(ToOwned::to_owned),
        }
    }

    /// The text in its data: many agents put the reason there, and nothing into the message.
    pub fn detail(&self) -> Option<String> {
        let data = Reader::new(self.data.as_ref()?);
        let members = ["message", "details", "detail", "error", "reason"];
        let said = data.lossy(&[]).or_else(|| members.iter().find_map(|name| data.lossy(&[name])));
        let nested = || {
            let inside = ["error", "details", "detail"];
            inside.iter().find_map(|name| data.lossy(&[name, "message"]))
        };
        let said = said.or_else(nested).filter(|text| !text.trim().is_empty())?;
        Some(plain_words(&said).into_owned())
    }

    /// Texts for people: the message, and additions from the data.
    pub fn texts(&self) -> Vec<String> {
        let message = plain_words(&self.message).into_owned();
        let detail = self.detail().filter(|detail| !message.contains(detail.as_str()));
        let texts = [Some(message), detail].into_iter().flatten();
        texts.filter(|text| !text.trim().is_empty()).collect()
    }

    /// Returns whether `pattern` matches the error: its code, or a text in message or data,
    /// ignoring case.
    pub fn is_like(&self, pattern: &str) -> bool {
        if let Ok(code) = pattern.parse::<i64>() {
            return self.code == code;
        }
        let pattern = pattern.to_lowercase();
        let data = self.data.as_ref().map_or("", |data| data.get());
        [&self.message, data].iter().any(|text| text.to_lowercase().contains(&pattern))
    }
}

impl<'de> Deserialize<'de> for ErrorObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self::from_raw(&raw))
    }
}

/// A request. Parameters that serialize to `null` are left out.
pub fn request(id: &Id, method: &str, params: &impl Serialize) -> Bytes {
    let mut line = start();
    member(&mut line, "id", id);
    call(line, method, params)
}

/// A notification. Parameters that serialize to `null` are left out.
pub fn notification(method: &str, params: &impl Serialize) -> Bytes {
    call(start(), method, params)
}

/// The successful answer to a request.
pub fn response(id: &Id, result: &impl Serialize) -> Bytes {
    answer(id, "result", result)
}

/// The failed answer to a request.
pub fn error(id: &Id, error: &ErrorObject) -> Bytes {
    answer(id, "error", error)
}

fn answer(id: &Id, name: &str, value: &impl Serialize) -> Bytes {
    let mut line = start();
    member(&mut line, "id", id);
    member(&mut line, name, value);
    finish(line)
}

fn call(mut line: Vec<u8>, method: &str, params: &impl Serialize) -> Bytes {
    member(&mut line, "method", method);
    let bare = line.len();
    member(&mut line, "params", params);
    if &line[bare..] == b",\"params\":null" {
        line.truncate(bare);
    }
    finish(line)
}

fn start() -> Vec<u8> {
    br#"{"jsonrpc":"2.0""#.to_vec()
}

fn member(line: &mut Vec<u8>, name: &str, value: &(impl Serialize + ?Sized)) {
    line.extend_from_slice(format!(",\"{name}\":").as_bytes());
    serde_json::to_writer(line, value).expect("acpd's own values serialize");
}

fn finish(mut line: Vec<u8>) -> Bytes {
    line.push(b'}');
    line.into()
}
