//! The Agent Client Protocol on the wire: framing, the JSON-RPC envelope, ids, the meaning of
//! updates, and the few shapes that acpd reads or originates.
//!
//! Bytes stay bytes: a forwarded message is the received line. [`frame`] cuts a byte stream into
//! lines, [`envelope`] borrows the routing facts from a line, [`mod@tidy`] removes members that are
//! forbidden to the sender or ambiguous, [`locate()`] finds a value, [`legible()`] makes JSON that
//! every reader takes, [`splice()`] changes one value and nothing else, and [`dialect`] converts
//! lines for clients of version 2. The structs of [`acp`] are never used to re-emit traffic.
//!
//! This crate does no I/O.

#![warn(missing_docs)]

pub mod acp;
pub mod bound;
pub mod build;
pub mod dialect;
pub mod envelope;
pub mod frame;
pub mod head;
pub mod id;
pub mod legible;
pub mod locate;
pub mod method;
pub mod plain_words;
mod scan;
mod splice;
pub mod tidy;
pub mod version;

pub use bound::clipped;
pub use build::{ErrorObject, code};
pub use envelope::{Malformed, Message, Outcome, parse};
pub use frame::{Body, Frame, Framer};
pub use head::Head;
pub use id::Id;
pub use legible::{is_legible, legible, read_legible};
pub use locate::{count_at, locate, lossy_at, message_id, session_and_kind, str_at, strs_lossy_at};
pub use method::{StateKey, UpdateClass, classify_update};
pub use plain_words::plain_words;
pub use splice::{remove_member, set_id, set_member, splice, with_one_outcome};
pub use tidy::{receive, tidy, without_members};
pub use version::{Version, Versions};
