//! Connections to acpd for the command line and for plugins: blocking, without a runtime.
//!
//! [`connect`] finds the daemon's socket, makes sure that it is the user's own, and starts the
//! daemon if there is none. A [`Connection`] is good for requests one after another
//! ([`Connection::call`]); split into [`Reader`] and [`Writer`] it carries anything, from two threads.
//!
//! A [`link()`] carries anything, too, and outlives the daemon's process: it connects again, and neither
//! side misses a line or gets one twice.
//!
//! A connection speaks ACP and `_acpd/…` methods. The latter need no `initialize`.

pub mod attachment;
mod connect;
mod connection;
mod error;
mod link;
mod program;
mod request;
pub mod resume;
mod silence;
mod stream;
pub mod worktree;

pub use acpd_sys::file::open as open_file;
pub use acpd_sys::paths::{PathError, Paths, beside};
pub use acpd_sys::socket::own_uid;
pub use connect::{Options, hold_starts, open_socket, wait_until_gone};
pub use connection::{Connection, Reader, Writer, connect, initialize_params};
pub use error::{CallError, ConnectError, NotAnswering, chain, error_data};
pub use link::{Incoming, LinkError, LinkReader, LinkWriter, PATIENCE, link, rejoin};
pub use program::{daemon_exe, program_error};
pub use silence::{Doubt, silent_daemon, stopped_daemon};
