//! Parents of sessions that agents create with the built-in MCP server.
//!
//! An agent starts its tools before its session has an id. So acpd issues a number with the server,
//! and the tool names its session by this number when it creates another one. Number and parent are
//! stored in an `_acpd` member of the session's params, which no client sets and no agent gets.

use acp_wire::{locate, set_member};
use acpd_api::{NAMESPACE, SessionRowKey};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::json;

const NUMBER: [&str; 2] = [NAMESPACE, "number"];
const PARENT: [&str; 2] = [NAMESPACE, "parent"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kin {
    pub(crate) number: Option<u64>,
    pub(crate) parent: Option<SessionRowKey>,
}

impl Kin {
    pub(crate) fn of(params: &[u8]) -> Kin {
        Kin { number: member(params, &NUMBER), parent: member(params, &PARENT) }
    }
}

fn member<T: DeserializeOwned>(params: &[u8], path: &[&str]) -> Option<T> {
    serde_json::from_slice(&params[locate(params, path)?]).ok()
}

pub(crate) fn with_parent(params: &Bytes, parent: &SessionRowKey) -> Bytes {
    set_member(params, &PARENT, json!(parent).to_string().as_bytes())
}

pub(crate) fn with_number(params: &Bytes, number: u64) -> Bytes {
    set_member(params, &NUMBER, number.to_string().as_bytes())
}
