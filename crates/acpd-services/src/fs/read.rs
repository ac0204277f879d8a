//! `fs/read_text_file`: reads lines of a file, bounded in bytes and in time.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cap_std::fs::OpenOptions;

use super::error::FsError;
use super::roots::{Roots, open_regular};

/// Longest text that is returned, in bytes.
pub const MOST_BYTES: u64 = 16 << 20;
/// Maximum bytes to read in search of the requested lines.
const MOST_LOOKED_AT: u64 = 256 << 20;
const MOST_TIME: Duration = Duration::from_secs(5);

/// Lines of a file; by default all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lines {
    /// Counts from 1.
    pub first: Option<u32>,
    pub limit: Option<u32>,
}

/// Limits on one read. A sparse file can be far larger than its disk.
#[derive(Debug, Clone)]
pub struct Effort {
    pub bytes: u64,
    pub until: Instant,
    /// Set when the text is no longer needed.
    pub cancelled: Arc<AtomicBool>,
}

impl Effort {
    /// Returns the largest allowed effort; its time begins now.
    pub fn most(cancelled: Arc<AtomicBool>) -> Effort {
        Effort { bytes: MOST_LOOKED_AT, until: Instant::now() + MOST_TIME, cancelled }
    }
}

/// Returns lines of a file. Lines keep their ends, `\r\n` too; a byte order mark stays. Lines past
/// the end are empty text, not an error (`fs/read_text_file`). Only the returned part must be
/// UTF-8, and it may lie in a file of any size, within the effort.
pub fn read_text_file(
    roots: &Roots,
    path: &Path,
    wanted: Lines,
    effort: Effort,
) -> Result<String, FsError> {
    let file = open(roots, path, effort)?;
    let read = || -> io::Result<_> {
        let size = file.file.metadata()?.len();
        let first = wanted.first.unwrap_or(1).max(1);
        // A file that is too long to be returned is not read.
        let whole = first == 1 && wanted.limit.is_none();
        let text =
            if whole && size > MOST_BYTES { None } else { lines(file, first, wanted.limit)? };
        Ok((size, text))
    };
    let given_up = |error: io::Error| error.downcast::<FsError>();
    let read = read().map_err(|e| given_up(e).unwrap_or_else(|error| roots.error(path, error)));
    match read? {
        (bytes, None) => Err(FsError::TooBig { path: path.to_owned(), bytes, limit: MOST_BYTES }),
        (_, Some(text)) => {
            String::from_utf8(text).map_err(|_| FsError::NotUtf8 { path: path.to_owned() })
        }
    }
}

/// Returns `None` if the lines are longer than [`MOST_BYTES`].
fn lines(file: Bounded, first: u32, limit: Option<u32>) -> io::Result<Option<Vec<u8>>> {
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut text = Vec::new();
    for _ in 1..first {
        if reader.skip_until(b'\n')? == 0 {
            return Ok(Some(text));
        }
    }
    let mut rest = reader.take(MOST_BYTES + 1);
    match limit {
        None => drop(rest.read_to_end(&mut text)?),
        Some(limit) => {
            for _ in 0..limit {
                if rest.read_until(b'\n', &mut text)? == 0 {
                    break;
                }
            }
        }
    }
    Ok(Some(text).filter(|text| text.len() as u64 <= MOST_BYTES))
}

/// Opens a regular file of any size and content.
pub fn open(roots: &Roots, path: &Path, effort: Effort) -> Result<Bounded, FsError> {
    let place = roots.locate(path)?;
    let not_a_file = || FsError::NotAFile { path: path.to_owned() };
    if place.path.as_os_str().is_empty() {
        return Err(not_a_file());
    }
    let file = open_regular(place.dir, &place.path, OpenOptions::new().read(true));
    let file = file.map_err(|error| roots.error(path, error))?.ok_or_else(not_a_file)?;
    Ok(Bounded { path: path.to_owned(), file, looked_at: 0, effort })
}

/// A file whose reads fail beyond the effort.
#[derive(Debug)]
pub struct Bounded {
    path: PathBuf,
    file: File,
    looked_at: u64,
    effort: Effort,
}

impl Read for Bounded {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let path = || self.path.clone();
        if self.effort.cancelled.load(Ordering::Relaxed) {
            return Err(io::Error::other(FsError::Cancelled { path: path() }));
        }
        if Instant::now() >= self.effort.until {
            return Err(io::Error::other(FsError::TooSlow { path: path() }));
        }
        let left = self.effort.bytes - self.looked_at;
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        if most == 0 && !buf.is_empty() {
            return Err(io::Error::other(FsError::TooFar { path: path(), bytes: self.looked_at }));
        }
        let count = self.file.read(&mut buf[..most])?;
        self.looked_at += count as u64;
        Ok(count)
    }
}
