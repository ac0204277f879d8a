//! The JSON-RPC envelope of a line, borrowed from the line.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::bound::LONGEST_ID;
use crate::build::code;
use crate::id::Id;
use crate::scan::json;

/// A message. The raw values are slices of the parsed line.
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// A message that needs an answer under its id.
    Request {
        /// The sender's id; `null` is allowed in protocol v1.
        id: Id,
        /// Name of the method.
        method: Cow<'a, str>,
        /// The parameters; an explicit `null` is kept.
        params: Option<&'a RawValue>,
    },
    /// A message without an answer.
    Notification {
        /// Name of the method.
        method: Cow<'a, str>,
        /// The parameters; an explicit `null` is kept.
        params: Option<&'a RawValue>,
    },
    /// The answer to a request.
    Response {
        /// The id of the request.
        id: Id,
        /// The result or the error.
        outcome: Outcome<'a>,
    },
}

/// Outcome of a request.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'a> {
    /// The result; `null` if the answer had neither a result nor an error.
    Result(&'a RawValue),
    /// The error of the request.
    Error(&'a RawValue),
}

/// Reasons why a line is not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes are not UTF-8.
    #[error("the line is not valid UTF-8")]
    InvalidUtf8,
    /// The text is not JSON; with a short reason.
    #[error("the line is not JSON: {0}")]
    NotJson(String),
    /// A bare number, string, boolean or `null`.
    #[error("the line is a bare JSON value, not a message object")]
    Scalar,
    /// A batch: the protocol has none.
    #[error("the line is a JSON array, and the protocol has no batches")]
    Array,
    /// An object with neither a method name nor an id.
    #[error("the object has neither a method nor an id")]
    NotAMessage,
    /// The id is neither an integer nor a string nor `null`, or it is too long.
    #[error("the id is neither null nor an integer or a string of at most {LONGEST_ID} bytes")]
    BadId,
    /// The name of the method is too long.
    #[error("the name of the method has more than {LONGEST_ID} bytes")]
    LongMethod,
    /// An answer has both a result and an error.
    #[error("the answer has both a result and an error")]
    TwoOutcomes,
    /// A member of the envelope, or the session in the params, is duplicate, so receivers could
    /// read it differently.
    #[error("the object has its member `{0}` twice")]
    Duplicate(&'static str),
    /// There are too many members.
    #[error("the object has too many members")]
    TooMuch,
}

impl Malformed {
    /// The JSON-RPC error code to answer with: -32700 if the line is not JSON, else -32600.
    pub fn code(&self) -> i64 {
        match self {
            Self::InvalidUtf8 | Self::NotJson(_) => code::PARSE,
            _ => code::INVALID_REQUEST,
        }
    }
}

/// Reads the envelope of a line.
///
/// `jsonrpc` is optional, and a `null` method, result or error counts as absent.
/// [`tidy`](crate::tidy()) checks for duplicate members below the envelope.
pub fn parse(line: &[u8]) -> Result<Message<'_>, Malformed> {
    let text = std::str::from_utf8(line).map_err(|_| Malformed::InvalidUtf8)?;
    match line.get(json::skip_space(line, 0)) {
        Some(b'{') => {}
        first => {
            serde_json::from_str::<IgnoredAny>(text).map_err(|error| not_json(&error))?;
            return Err(match first {
                Some(b'[') => Malformed::Array,
                _ => Malformed::Scalar,
            });
        }
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| not_json(&error))?;
    envelope.into_message()
}

fn not_json(error: &serde_json::Error) -> Malformed {
    Malformed::NotJson(error.to_string())
}

#[derive(Default)]
struct Envelope<'a> {
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    duplicate: Option<&'static str>,
}

impl<'a> Envelope<'a> {
    fn into_message(self) -> Result<Message<'a>, Malformed> {
        if let Some(name) = self.duplicate {
            return Err(Malformed::Duplicate(name));
        }
        let id = match self.id {
            Some(raw) => Some(Id::from_raw(raw).ok_or(Malformed::BadId)?),
            None => None,
        };
        let params = self.params;
        let method = match self.method.filter(not_null) {
            Some(raw) => Some(json::decode(raw.get()).ok_or(Malformed::NotAMessage)?),
            None => None,
        };
        if method.as_ref().is_some_and(|method| method.len() > LONGEST_ID) {
            return Err(Malformed::LongMethod);
        }
        match (id, method) {
            (Some(id), Some(method)) => Ok(Message::Request { id, method, params }),
            (None, Some(method)) => Ok(Message::Notification { method, params }),
            (Some(id), None) => {
                let outcome = match (self.result.filter(not_null), self.error.filter(not_null)) {
                    (Some(_), Some(_)) => return Err(Malformed::TwoOutcomes),
                    (None, Some(error)) => Outcome::Error(error),
                    (result, None) => Outcome::Result(result.unwrap_or(RawValue::NULL)),
                };
                Ok(Message::Response { id, outcome })
            }
            (None, None) => Err(Malformed::NotAMessage),
        }
    }
}

fn not_null(raw: &&RawValue) -> bool {
    raw.get() != "null"
}

// By hand: a derived reader takes an explicit `null` for an absent member, and refuses the whole
// message for a key that is no text (a lone surrogate).
impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(key) = map.next_key::<&RawValue>()? {
            let Envelope { id, method, params, result, error, duplicate } = &mut envelope;
            let slots = [("id", id), ("method", method), ("params", params), ("result", result)];
            let mut slots = slots.into_iter().chain([("error", error)]);
            let found = slots.find(|(name, _)| json::is_key(key.get().as_bytes(), name));
            let Some((name, slot)) = found else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if slot.replace(map.next_value()?).is_some() {
                *duplicate = Some(name);
            }
        }
        Ok(envelope)
    }
}
