//! The processes of agents: slots, what runs in them, what waits for them, and in which order they start.
//! The hub's `process` files change these values.

pub(crate) mod outbox;
pub(crate) mod slot;
pub(crate) mod start_queue;
