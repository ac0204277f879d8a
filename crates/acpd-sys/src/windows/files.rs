//! Files where systems differ: their permissions, how they are opened, and reading and writing at a place.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::FileExt as _;
use std::os::windows::io::AsHandle;
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::{ERROR_CANT_RESOLVE_FILENAME, ERROR_FILENAME_EXCED_RANGE};

/// The null device: takes everything, and reads as empty.
pub const NULL: &str = "NUL";

/// A path of this length in bytes cannot be opened by its name, even with the prefix for long paths.
pub const LONGEST_PATH: usize = 32_767;

/// `true` where files have permission bits: here new ones have the access list of their directory.
pub const HAS_MODES: bool = false;

/// Flags of an open that never waits: no directory has pipes in it.
pub const NEVER_WAIT: u32 = 0;

/// Options for a file that is for us alone, as its directory is.
pub fn private_options() -> OpenOptions {
    OpenOptions::new()
}

/// There are no permission bits.
pub fn mode(_file: &impl AsHandle) -> io::Result<u32> {
    Ok(0)
}

pub fn set_mode(_file: &impl AsHandle, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Fills the buffer from this place of a file on.
pub fn read_exact_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.seek_read(buffer, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                at += count as u64;
                buffer = &mut buffer[count..];
            }
        }
    }
    Ok(())
}

/// Writes all of it to this place of a file.
pub fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, at)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => {
                at += count as u64;
                bytes = &bytes[count..];
            }
        }
    }
    Ok(())
}

/// The error for a path that is too long.
pub fn too_long() -> io::Error {
    io::Error::from_raw_os_error(ERROR_FILENAME_EXCED_RANGE as i32)
}

/// The error for links that lead in circles.
pub fn too_many_links() -> io::Error {
    io::Error::from_raw_os_error(ERROR_CANT_RESOLVE_FILENAME as i32)
}

/// No directory has pipes or sockets in it.
pub fn is_no_file(_error: &io::Error) -> bool {
    false
}

/// The absolute path without links, as every program takes it: without the prefix `\\?\`, if it names the same without.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().map(plain)
}

fn plain(path: PathBuf) -> PathBuf {
    const SHORT: usize = 260;
    let Some(rest) = path.to_str().and_then(|path| path.strip_prefix(r"\\?\")) else {
        return path;
    };
    let plain = match rest.strip_prefix(r"UNC\") {
        Some(share) => PathBuf::from(format!(r"\\{share}")),
        None if rest.as_bytes().get(1) == Some(&b':') => PathBuf::from(rest),
        None => return path,
    };
    // The system reads names of devices, and dots and blanks at the end of names, as something else.
    let is_same = plain.as_os_str().len() < SHORT
        && std::path::absolute(&plain).is_ok_and(|read| read.as_os_str() == plain.as_os_str());
    if is_same { plain } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_no_prefix_that_it_does_not_need() {
        let plain = |path: &str| plain(PathBuf::from(path)).to_str().unwrap().to_owned();
        for (path, wanted) in [
            (r"\\?\C:\work\ö 語", r"C:\work\ö 語"),
            (r"\\?\UNC\host\share\a", r"\\host\share\a"),
            (r"C:\work", r"C:\work"),
        ] {
            assert_eq!(plain(path), wanted);
        }
        let long = format!(r"\\?\C:\{}", r"long\".repeat(60));
        for path in [r"\\?\C:\work.", r"\\?\Volume{1}\a", r"\\.\pipe\a", &long] {
            assert_eq!(plain(path), path);
        }
    }
}
