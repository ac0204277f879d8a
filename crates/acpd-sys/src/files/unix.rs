use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

use nix::libc::{ELOOP, ENXIO, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, PATH_MAX, mode_t};
use nix::sys::stat::{Mode, fchmod, fstat};
use nix::unistd::{AccessFlags, access};

use super::{DirError, Stamp, Version, failed, no_regular_file, real_dir};
use crate::users::{Openness, own_uid};

pub const NULL: &str = "/dev/null";

/// Length in bytes from which on a path cannot be opened by its name.
pub const LONGEST_PATH: usize = PATH_MAX as usize;

pub const HAS_MODES: bool = true;

/// Flags to open any kind of file without waiting.
pub const NEVER_WAIT: i32 = O_NONBLOCK | O_NOCTTY;

const OTHERS: u32 = 0o077;

/// Creates the directory with its parents (mode 0700) if it is missing. Then checks that it is a
/// real directory, owned by this user, closed to others and writable.
pub fn private_dir(path: &Path) -> Result<(), DirError> {
    // A dangling link exists.
    if path.symlink_metadata().is_err() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|source| DirError::Create { path: path.to_owned(), source })?;
    }
    check_private_dir(path)?;
    access(path, AccessFlags::W_OK | AccessFlags::X_OK).map_err(|error| {
        let (path, source) = (path.to_owned(), error.into());
        DirError::NotWritable { path, source }
    })
}

/// Checks like [`private_dir`], except for the right to write.
pub(crate) fn check_private_dir(path: &Path) -> Result<(), DirError> {
    let found = real_dir(path)?;
    check_owner(path, &found)?;
    check_closed(path, &found)
}

/// Flushes created, renamed and removed entries of a directory to the disk.
pub fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Opens a file for appending, and creates it with mode 0600; a looser mode is tightened. The
/// directory must exist. A symbolic link or a foreign file is refused.
pub fn private_file(path: &Path) -> Result<File, DirError> {
    // A blocking open of a pipe waits for a reader.
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(O_NOFOLLOW | O_NONBLOCK)
        .open(path)
        .map_err(|source| match source.raw_os_error() {
            Some(ELOOP) => DirError::Symlink { path: path.to_owned() },
            _ if is_no_file(&source) => no_regular_file(path),
            _ => failed(path, source),
        })?;
    let found = own_file(path, &file)?;
    if found.mode() & OTHERS != 0 {
        file.set_permissions(Permissions::from_mode(0o600))
            .map_err(|source| failed(path, source))?;
    }
    Ok(file)
}

/// Opens like [`private_file`], with the rights to truncate and to lock the file.
pub fn private_target(path: &Path) -> Result<File, DirError> {
    private_file(path)
}

/// Opens a file with a secret, if it belongs to this user and is closed to others. A link may lead
/// to it.
pub fn secret_file(path: &Path) -> Result<File, DirError> {
    let file = OpenOptions::new().read(true).custom_flags(NEVER_WAIT).open(path);
    let file = file.map_err(|source| failed(path, source))?;
    check_closed(path, &own_file(path, &file)?)?;
    Ok(file)
}

fn own_file(path: &Path, file: &File) -> Result<Metadata, DirError> {
    let found = file.metadata().map_err(|source| failed(path, source))?;
    if !found.is_file() {
        return Err(no_regular_file(path));
    }
    check_owner(path, &found)?;
    Ok(found)
}

fn check_owner(path: &Path, found: &Metadata) -> Result<(), DirError> {
    let owner = found.uid();
    if owner == own_uid() {
        return Ok(());
    }
    Err(DirError::ForeignOwner { path: path.to_owned(), owner })
}

fn check_closed(path: &Path, found: &Metadata) -> Result<(), DirError> {
    let mode = found.mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    Err(DirError::OpenToOthers { path: path.to_owned(), mode })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as on Windows, where it is a text")]
pub(super) fn openness(mode: &Openness) -> String {
    format!("mode {mode:04o}")
}

pub fn close_command(path: &Path) -> String {
    format!("chmod {} {}", if path.is_dir() { 700 } else { 600 }, shell_word(path))
}

pub(super) fn move_command(path: &Path) -> String {
    let word = shell_word(path);
    format!("mv {word} {word}.old")
}

fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Options for a file that is created closed to others.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

pub fn mode(file: &impl AsFd) -> io::Result<u32> {
    Ok(fstat(file)?.st_mode as u32 & 0o7777)
}

pub fn set_mode(file: &impl AsFd, mode: u32) -> io::Result<()> {
    Ok(fchmod(file, Mode::from_bits_truncate(mode as mode_t))?)
}

pub(super) fn is_open_to_all(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.mode() & 0o002 != 0)
}

/// Returns whether the opened path was a socket, or a pipe without a reader.
pub fn is_no_file(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ENXIO)
}

/// Opens for reading without waiting. Returns `None` for a socket; other special files are opened.
pub(super) fn open_to_read(path: &Path) -> io::Result<Option<File>> {
    match OpenOptions::new().read(true).custom_flags(NEVER_WAIT).open(path) {
        Err(error) if is_no_file(&error) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Renames a complete file over another one. After a kill or a loss of power the name has one of
/// them; after the return it has the new one.
pub fn put_in_place(file: &Path, of: &Path) -> io::Result<()> {
    fs::rename(file, of)?;
    sync_dir(of.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

pub(crate) fn stamp_of(file: &File) -> io::Result<Stamp> {
    Ok(Stamp::from(&file.metadata()?))
}

pub(super) fn stamp(path: &Path) -> io::Result<Stamp> {
    Ok(Stamp::from(&path.symlink_metadata()?))
}

pub(super) fn version(path: &Path) -> io::Result<Version> {
    let found = path.metadata()?;
    let changed = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
    Ok(Version { stamp: Stamp::from(&found), changed })
}

impl From<&Metadata> for Stamp {
    fn from(found: &Metadata) -> Stamp {
        Stamp { id: (found.dev(), found.ino()), length: found.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_quote_paths_that_a_shell_would_split() {
        assert_eq!(shell_word(Path::new("/run/user/1/acpd")), "/run/user/1/acpd");
        assert_eq!(shell_word(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}
