//! `fs/read_text_file` and `fs/write_text_file` on disk, confined to a session's directories.
//!
//! A path is first looked up as the system sees it, to learn where it leads and in which directory
//! of the session that is. The result is only a guess: the path is then opened through that
//! directory's handle, which refuses all that leads out of it, however quickly a symbolic link is
//! put in place in between. A file with a second hard link outside, and another file system mounted
//! inside, cannot be told apart from inside files.
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
