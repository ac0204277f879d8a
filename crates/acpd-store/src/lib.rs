//! The journal on disk: everything that acpd must still know after it was killed.
//!
//! The only SQL of the project. One SQLite file, three connections, each on a thread of its own, and
//! next to it an index that can always be rebuilt:
//!
//! - [`Writer`] applies batches of records, one transaction per wake-up, and reports each batch when
//!   it is committed.
//! - The checkpoint thread copies what is committed from the write-ahead log into the database, so
//!   that no commit has to wait for it.
//! - [`Reader`] reads journals in short transactions.
//! - [`Index`] keeps what was said in a second file, to be searched; it reads the journal in the same way.
//!
//! A journal is copied and put in its place again by `copy`, without a daemon.
//!
//! [`acpd_core::record::Snapshot::apply`] defines what a record means; a property test holds the
//! SQL to it.
//!
//! Architecture invariant: `mcpServers` of a client are in the table `secrets`, in `outbox` for as long
//! as a line with them is not written to its agent, in `asked` for as long as a request with them is not
//! answered, and nowhere else.

mod apply;
mod checkpoint;
mod chores;
mod code;
mod connection;
mod copy;
mod error;
mod files;
mod open;
mod reader;
mod schema;
mod search;
mod shared;
mod sizes;
mod snapshot;
mod usage;
mod writer;

pub use chores::Tidied;
pub use copy::{Copied, CopyError, Stage, back_up, look, restore};
pub use error::{OpenError, StoreError};
pub use open::{check, check_file, open, size_on_disk};
pub use reader::Reader;
pub use search::{Found, Index};
pub use sizes::Sizes;
pub use writer::{CommitBatch, Report, Writer};
