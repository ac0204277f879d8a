//! Resuming after a lost connection: the state that client and acpd exchange.

use std::borrow::Cow;
use std::collections::BTreeMap;

use acp_wire::Id;
use serde::{Deserialize, Serialize};

/// `client` in [`crate::ClientMeta`]: a client that resumes after a lost connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientToken {
    /// Identity of the client over all its connections: 16 to 64 random characters of
    /// `[A-Za-z0-9_-]`.
    pub token: String,
    /// Send numbered lines with a [`LinePosition`], and without `_meta._acpd.seq`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub positions: bool,
    /// State of earlier connections; absent or null on the first one.
    pub resume: Option<Resume>,
}

/// Session and sequence number of a line, in front of it: `["demo-ed19",7]{"jsonrpc":…}`. A client
/// that passes lines on finds both without reading the line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinePosition<'a>(#[serde(borrow)] pub Cow<'a, str>, pub u64);

impl<'a> LinePosition<'a> {
    /// Returns the line with its position.
    pub fn before(&self, line: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(line.len() + self.0.len() + 32);
        serde_json::to_writer(&mut out, self).expect("acpd's own values serialize");
        out.extend_from_slice(line);
        out
    }

    /// Splits a line with a position. Returns `None` for other lines: no JSON text continues after
    /// its array.
    pub fn split(line: &'a [u8]) -> Option<(LinePosition<'a>, &'a [u8])> {
        line.strip_prefix(b"[")?;
        let mut values = serde_json::Deserializer::from_slice(line).into_iter();
        let position = values.next()?.ok()?;
        let line = &line[values.byte_offset()..];
        (!line.is_empty()).then_some((position, line))
    }
}

/// State of a client that resumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The last [`Resumed::generation`].
    pub generation: String,
    /// Last received sequence number of each followed session.
    #[serde(default)]
    pub sessions: BTreeMap<String, u64>,
    /// Sessions that the client is leaving, without an answer yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub leaving: BTreeMap<String, Leaving>,
    /// Open requests of the client.
    #[serde(default)]
    pub open: Vec<Id>,
    /// acpd's requests that the client has not answered.
    #[serde(default)]
    pub asked: Vec<Id>,
}

/// A session that a client is leaving: the client still follows it if the request fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    /// Last received sequence number.
    pub seq: u64,
    /// Open requests of the client to close, delete, archive or detach the session.
    pub requests: Vec<Id>,
}

/// `agentCapabilities._meta._acpd` in the answer to `initialize`, for a client with a token. A
/// daemon without it cannot resume connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Identity of the journal. Another journal has other sessions and numbers.
    pub generation: String,
    /// Number of safe lines of the client, as in [`Received`].
    pub received: u64,
    /// Open requests that acpd no longer knows, to send again as new lines.
    #[serde(default)]
    pub again: Vec<Id>,
}

/// Number of the client's safe lines: acpd has committed them or does not need them.
///
/// Lines are counted from 1 after the first `initialize`; lines `initialize` never count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Number of safe lines since the first `initialize`.
    pub lines: u64,
}

/// Answers that the client has received; acpd may forget them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The ids of their requests.
    pub ids: Vec<Id>,
}

/// `_meta._acpd` of a client's `session/load`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LoadMeta {
    /// Replay only lines after this sequence number, for a load that was cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}
