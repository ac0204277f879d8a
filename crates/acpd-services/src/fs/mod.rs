//! `fs/read_text_file` and `fs/write_text_file` on disk, confined to a session's directories.
//!
//! A path is first resolved, to find the session directory that has it. The path may change
//! afterwards, so it is then opened through that directory's handle, which never leads out of the
//! directory. Two things look like files inside and are not refused: a hard link to a file outside,
//! and a file system mounted inside.
//!
//! All functions block; none waits for another process, and a read is bounded in bytes and in time.

mod error;
mod read;
mod roots;
mod write;

pub use error::FsError;
pub use read::{Bounded, Effort, Lines, MOST_BYTES, open, read_text_file};
pub use roots::{Kind, Roots};
pub use write::write_text_file;
