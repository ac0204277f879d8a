//! Which session has begun which: the agent of a session may begin others by the built-in MCP server.
//!
//! An agent starts its tools before its session has an id. So the session has a number for them, which acpd issues when
//! it lends the server, and by which the tool names the session for which it begins another one. Both are kept with the
//! params of the session, in a member of acpd's own that no agent sees.

use acp_wire::{locate, remove_member, set_member};
use acpd_api::{NAMESPACE, Parent};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::json;

const NUMBER: [&str; 2] = [NAMESPACE, "number"];
const PARENT: [&str; 2] = [NAMESPACE, "parent"];

/// Facts about a session in its params.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kin {
    /// The number by which its tools name it.
    pub(crate) number: Option<u64>,
    /// The session that has begun it.
    pub(crate) parent: Option<Parent>,
}

impl Kin {
    pub(crate) fn of(params: &[u8]) -> Kin {
        Kin { number: member(params, &NUMBER), parent: member(params, &PARENT) }
    }
}

fn member<T: DeserializeOwned>(params: &[u8], path: &[&str]) -> Option<T> {
    serde_json::from_slice(&params[locate(params, path)?]).ok()
}

/// The params without what a client must not set: number and parent.
pub(crate) fn unrelated(params: &Bytes) -> Bytes {
    remove_member(params, &[NAMESPACE])
}

/// The params of a session that another one begins.
pub(crate) fn with_parent(params: &Bytes, parent: &Parent) -> Bytes {
    set_member(params, &PARENT, json!(parent).to_string().as_bytes())
}

/// The params of a session whose tools name it by this number.
pub(crate) fn with_number(params: &Bytes, number: u64) -> Bytes {
    set_member(params, &NUMBER, number.to_string().as_bytes())
}
