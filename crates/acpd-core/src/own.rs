//! Only acpd sends anything in its [`NAMESPACE`].
//!
//! ```text
//!  agent  ── read: members taken out, methods refused ──▶ hub ──▶ clients, journal
//!  agent  ◀── written: members taken out ── hub ◀── client, which says to acpd what it wants
//!                                            └── prompts: members taken out ──▶ journal
//! ```
//!
//! So clients need no proof: a method, a member of `_meta` or of `error.data` with that name is
//! from acpd. Text is not: an agent can write anything there.
//!
//! Architecture invariant: the hub reads, keeps and forwards no member with that name from an
//! agent, and no such member of a client reaches an agent or a journal.

use acp_wire::without_members;
use acpd_api::NAMESPACE;
use bytes::Bytes;

pub(crate) fn without_own(line: &Bytes) -> Bytes {
    without_members(line, NAMESPACE).unwrap_or_else(|| line.clone())
}
