//! Only acpd speaks for acpd: nothing under [`NAMESPACE`] passes that it did not make.
//!
//! ```text
//!  agent  ── read: members taken out, methods refused ──▶ hub ──▶ clients, journal
//!  agent  ◀── written: members taken out ── hub ◀── client, which says to acpd what it wants
//!                                            └── prompts: members taken out ──▶ journal
//! ```
//!
//! So clients need no proof: a method, a member of `_meta` or one of `error.data` under that name is
//! acpd's own. Text is not: an agent can write anything there.
//!
//! Architecture invariant: what an agent has put under that name is in no line that the hub reads, and
//! so in none that it keeps or passes on; what a client has put there reaches no agent and no journal.

use std::sync::LazyLock;

use acp_wire::Reserved;
use acpd_api::NAMESPACE;
use bytes::Bytes;

/// The members that only acpd may say.
pub(crate) static OWN: LazyLock<Reserved> = LazyLock::new(|| Reserved::new(NAMESPACE));

/// A line of a client as others may have it.
pub(crate) fn without_own(line: &Bytes) -> Bytes {
    OWN.without(line).unwrap_or_else(|| line.clone())
}
