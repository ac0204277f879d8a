//! Connections to acpd for the command line and for plugins: blocking, without a runtime.
//!
//! [`connect`] finds the daemon's socket, checks that it is the user's own, and starts the daemon
//! if none runs. A [`Connection`] speaks ACP and `_acpd/…` methods; the latter need no
//! `initialize`.
//!
//! ```text
//!  connect ─▶ connected ── lost ─▶ reconnecting, or stopped ─▶ resumed ─▶ connected
//!                 │                          │
//!                 │ closed, dismissed,       │ gave up, or the daemon
//!                 │ silent, or left          │ no longer knows the client
//!                 └──────────────────────────┴─▶ ended
//! ```
//!
//! | state | requests and lines of the user | event |
//! | --- | --- | --- |
//! | connected | are sent at once | [`LinkEvent::Line`] |
//! | reconnecting | are kept until resumed; a daemon that died is started | [`LinkEvent::Reconnecting`] |
//! | stopped by the user | those that the daemon knew are over; no daemon is started | [`LinkEvent::Stopped`] |
//! | connected, and silent | are sent | [`LinkEvent::Silent`], after [`LinkReader::report_silence`] |
//! | resumed | uncommitted lines are sent again, each once | [`LinkEvent::Resumed`] |
//! | ended | are refused with the reason, a [`LinkError`] | an error |
//!
//! A connection of [`connect`] is never resumed: it ends with the daemon's process. A connection of
//! [`connect_lasting`] or [`rejoin`] is resumed as [`resume`] says: from `initialize` on, each line
//! comes once in both directions.
//!
//! | threads | use |
//! | --- | --- |
//! | one | [`Connection::call`] for requests one after another, then [`LinkReader::recv`] |
//! | several | [`Connection::split`]: a [`LinkReader`] for events, [`LinkWriter`]s for requests, whose answers are events |
//!
//! Errors: [`ConnectError`] if there is no connection, [`LinkError`] if it has ended, [`CallError`]
//! if a request has no result. All are final, and have a hint with the way out.

pub mod attachment;
mod connect;
mod connection;
mod error;
mod host;
mod link;
mod machines;
mod program;
mod request;
pub mod resume;
mod silence;
mod stream;
pub mod worktree;

pub use acpd_sys::files::open as open_file;
pub use acpd_sys::paths::{PathError, Paths, beside};
pub use acpd_sys::users::own_uid;
pub use connect::{Join, Options, PATIENCE, Place, hold_starts, open_socket, wait_until_gone};
pub use connection::{
    Connection, connect, connect_lasting, initialize_params, read_answer, read_result, rejoin,
};
pub use error::{CallError, ConnectError, LinkError, NotAnswering, chain, error_data};
pub use host::Host;
pub use link::{LinkEvent, LinkReader, LinkWriter};
pub use machines::Machines;
pub use program::{daemon_exe, program_error};
pub use silence::stopped_daemon;
