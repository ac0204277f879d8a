//! Names of the clients that did something, for other clients.

use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// Why a turn was cut short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CutShort {
    /// In words: `cancelled`, ``agent `demo`: stopped by a person``.
    pub why: Untrusted,
    /// The client that did it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ClientName>,
}

/// A client, for people: as it calls itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientName {
    /// `clientInfo.name` of its `initialize`.
    pub name: Untrusted,
    /// Title of the client: `clientInfo.title`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Untrusted>,
    /// Where its person is: `place` of `_meta._acpd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Untrusted>,
}
