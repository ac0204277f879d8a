//! Names of clients, for other clients.

use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// Why a turn was cut short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutShort {
    /// Reason in words: `cancelled`, ``agent `demo`: stopped by a person``.
    pub why: Untrusted,
    /// The client that did it, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ClientName>,
}

/// The client's name for itself, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientName {
    /// `clientInfo.name` of its `initialize`.
    pub name: Untrusted,
    /// Title of the client: `clientInfo.title`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Untrusted>,
    /// Place of the client's user: `place` of `_meta._acpd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Untrusted>,
}
