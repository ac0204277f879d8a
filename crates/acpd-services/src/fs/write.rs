//! `fs/write_text_file`: replaces a file in one step.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::Path;

use acpd_sys::files::{HAS_MODES, mode, set_mode};
use cap_std::fs::{Dir, OpenOptions};
use cap_tempfile::TempFile;

use super::error::FsError;
use super::roots::{Roots, open_regular};

/// Replaces the text of a file, or creates it with its directories (`fs/write_text_file`). At any
/// moment, and after an error, the file has either the old text or the new one. It keeps its
/// permissions. A symbolic link stays, and its target is written. A read-only file is not replaced.
pub fn write_text_file(roots: &Roots, path: &Path, content: &str) -> Result<(), FsError> {
    let place = roots.locate(path)?;
    let not_a_file = || FsError::NotAFile { path: path.to_owned() };
    let (Some(above), Some(name)) = (place.path.parent(), place.path.file_name()) else {
        return Err(not_a_file());
    };
    let umask = roots.umask;
    let write = || -> io::Result<bool> {
        // One handle from here on, so the text goes to the checked file even if its path changes.
        let dir = directory(place.dir, above, umask)?;
        let Some(mode) = new_mode(&dir, name, umask)? else { return Ok(false) };
        let mut file = TempFile::new(&dir)?;
        file.write_all(content.as_bytes())?;
        set_mode(file.as_file(), mode)?;
        file.replace(name)?;
        Ok(true)
    };
    let written = write().map_err(|error| roots.error(path, error))?;
    written.then_some(()).ok_or_else(not_a_file)
}

fn directory(top: &Dir, path: &Path, umask: u32) -> io::Result<Dir> {
    let mut dir = top.try_clone()?;
    for name in path {
        dir = match dir.open_dir(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(&dir, name, umask)?,
            opened => opened?,
        };
    }
    Ok(dir)
}

fn make(dir: &Dir, name: &OsStr, umask: u32) -> io::Result<Dir> {
    match dir.create_dir(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return dir.open_dir(name),
        made => made?,
    }
    let made = dir.open_dir(name)?;
    if HAS_MODES {
        let handle = made.open(".")?;
        // Inherited bits like setgid stay; only the permissions are set.
        set_mode(&handle, mode(&handle)? & 0o7000 | (0o777 & !umask))?;
    }
    Ok(made)
}

/// Returns the mode for the new file: that of the old one if there is one. `None` if the name is
/// that of something else.
fn new_mode(dir: &Dir, name: &OsStr, umask: u32) -> io::Result<Option<u32>> {
    let found = match dir.symlink_metadata(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(0o666 & !umask)),
        found => found?,
    };
    if !found.is_file() {
        // Opening a device can have effects.
        return Ok(None);
    }
    let file = open_regular(dir, Path::new(name), OpenOptions::new().write(true))?;
    file.map(|file| Ok(mode(&file)? & 0o777)).transpose()
}
