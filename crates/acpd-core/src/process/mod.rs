//! The processes of agents: slots, what runs in them, what waits for them, and in which order they start.
//! [`table::Processes`] owns them; the hub's `process` files have the sequences.

pub(crate) mod outbox;
pub(crate) mod slot;
pub(crate) mod table;
mod writing;
