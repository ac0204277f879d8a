//! The journal on disk: everything that acpd must still know after it was killed.
//!
//! The only SQL of the project. One SQLite file has three connections, each on a thread of its own:
//!
//! - [`Writer`] applies batches of records, one transaction per wake-up, and reports each committed
//!   batch.
//! - The checkpoint thread copies commits from the write-ahead log into the database, so that no
//!   commit has to wait for it.
//! - [`Reader`] reads journals in short transactions.
//!
//! [`Index`] is a second file for searches, which can be rebuilt from the journal. `copy` makes and
//! restores backups without a daemon.
//!
//! [`acpd_core::record::Snapshot::apply`] defines what a record means; a property test compares the
//! SQL with it.
//!
//! Architecture invariant: `mcpServers` of a client are in rows of kind `SECRET`, in `OUTBOX` until
//! the line with them is written to its agent, in `ASKED` until the request with them is answered,
//! and nowhere else.

mod apply;
mod checkpoint;
mod chores;
mod code;
mod connection;
mod copy;
mod error;
mod files;
mod lines;
mod open;
mod pack;
mod reader;
mod schema;
mod search;
mod sizes;
mod state;
mod usage;
mod writer;

pub use chores::Tidied;
pub use copy::{CopyError, Stage, back_up, look, restore};
pub use error::{OpenError, StoreError};
pub use open::{check, check_file, open, size_on_disk};
pub use reader::Reader;
pub use search::{Found, Index};
pub use sizes::Sizes;
pub use writer::{CommitBatch, Report, Writer};
