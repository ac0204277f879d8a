use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use cap_std::fs::OpenOptions;

use super::roots::open_regular;
use super::{FsError, Roots};

/// The longest text that is read, in bytes.
pub const MOST_BYTES: u64 = 16 << 20;

/// The text of a file: `limit` lines from `line` on, which counts from 1, or all there are. Lines
/// end after `\n` and keep their ends, `\r\n` too; a byte order mark stays. Past the end there is
/// no text, which is no error (`fs/read_text_file`). Of a file of any size a part can be read.
///
/// # Errors
/// See [`FsError`]; a part is to be text, the rest of the file may be anything.
pub fn read_text_file(
    roots: &Roots,
    path: &Path,
    line: Option<u32>,
    limit: Option<u32>,
) -> Result<String, FsError> {
    let place = roots.locate(path)?;
    let not_a_file = || FsError::NotAFile { path: path.to_owned() };
    if place.path.as_os_str().is_empty() {
        return Err(not_a_file());
    }
    let read = || -> io::Result<_> {
        let mut options = OpenOptions::new();
        let Some(file) = open_regular(place.dir, &place.path, options.read(true))? else {
            return Ok(None);
        };
        let size = file.metadata()?.len();
        let first = line.unwrap_or(1).max(1);
        // What cannot be told is not read first.
        let whole = first == 1 && limit.is_none();
        let text = if whole && size > MOST_BYTES { None } else { lines(file, first, limit)? };
        Ok(Some((size, text)))
    };
    match read().map_err(|error| roots.error(path, error))? {
        None => Err(not_a_file()),
        Some((bytes, None)) => {
            Err(FsError::TooBig { path: path.to_owned(), bytes, limit: MOST_BYTES })
        }
        Some((_, Some(text))) => {
            String::from_utf8(text).map_err(|_| FsError::NotUtf8 { path: path.to_owned() })
        }
    }
}

/// The bytes of these lines, or `None` if they are too many.
fn lines(file: File, first: u32, limit: Option<u32>) -> io::Result<Option<Vec<u8>>> {
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
