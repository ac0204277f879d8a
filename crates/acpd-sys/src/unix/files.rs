//! Files where systems differ: their permissions, how they are opened, and reading and writing at a place.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::libc::{O_NOCTTY, O_NONBLOCK, PATH_MAX, mode_t};
use nix::sys::stat::{Mode, fchmod, fstat};

/// The null device: takes everything, and reads as empty.
pub const NULL: &str = "/dev/null";

/// The length in bytes from which on a path cannot be opened by its name.
pub const LONGEST_PATH: usize = PATH_MAX as usize;

/// `true` where files have permission bits, and new ones are made for a umask.
pub const HAS_MODES: bool = true;

/// Flags of an open that never waits, for any kind of file.
pub const NEVER_WAIT: i32 = O_NONBLOCK | O_NOCTTY;

/// Options for a file that is for us alone, if it is made.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// The permission bits of an open file or directory.
pub fn mode(file: &impl AsFd) -> io::Result<u32> {
    Ok(fstat(file)?.st_mode as u32 & 0o7777)
}

pub fn set_mode(file: &impl AsFd, mode: u32) -> io::Result<()> {
    Ok(fchmod(file, Mode::from_bits_truncate(mode as mode_t))?)
}

/// Fills the buffer from this place of a file on.
pub fn read_exact_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(buffer, at)
}

/// Writes all of it to this place of a file.
pub fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)
}

/// The error for a path that is too long.
pub fn too_long() -> io::Error {
    Errno::ENAMETOOLONG.into()
}

/// The error for links that lead in circles.
pub fn too_many_links() -> io::Error {
    Errno::ELOOP.into()
}

/// Returns whether this is the error of opening a socket, or a pipe without a reader, like a file.
pub fn is_no_file(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ENXIO as i32)
}

/// The absolute path without links, as every program takes it.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}
