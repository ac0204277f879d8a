//! Prints the end of a log file and, with `--follow`, later lines.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::thread;
use std::time::Duration;

use acpd_client::open_file;
use acpd_sys::files::is_same;
use clap::Args;

use crate::error::{CommandError, Result};
use crate::text::text;
use crate::ui::Ui;

// Arguments of verbs that print a log.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Tail {
    /// Keep printing new lines.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Start with the last N lines.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub(crate) lines: usize,
}

const POLL: Duration = Duration::from_millis(250);
const BLOCK: u64 = 64 * 1024;

/// With `follow`, continues until Ctrl-C.
pub(crate) fn print(path: &Path, tail: Tail, ui: &mut Ui) -> Result {
    let failed = |error: io::Error| CommandError::file("read", path, &error);
    let (older, mut file) = match open_tail(path, tail.lines) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !tail.follow => {
            return ui.done(text!("`{}` does not exist yet", path));
        }
        Err(error) => return Err(failed(error)),
    };
    let mut unshown = Vec::new();
    if let Some(mut older) = older {
        copy(&mut older, &path.with_added_extension("1"), &mut unshown, ui)?;
    }
    copy(&mut file, path, &mut unshown, ui)?;
    if !tail.follow {
        return Ok(ui.relay_bytes(&unshown)?);
    }
    loop {
        ui.flush()?;
        thread::sleep(POLL);
        copy(&mut file, path, &mut unshown, ui)?;
        if let Some(newer) = replaced(&mut file, path).map_err(failed)? {
            copy(&mut file, path, &mut unshown, ui)?;
            ui.relay_bytes(&std::mem::take(&mut unshown))?;
            file = newer;
        }
    }
}

/// Returns the last lines of a log, including the rotated file; empty if the log cannot be read.
pub(crate) fn last(path: &Path, lines: usize) -> String {
    let Ok((older, newer)) = open_tail(path, lines) else { return String::new() };
    let mut bytes = Vec::new();
    for mut file in older.into_iter().chain([newer]) {
        file.read_to_end(&mut bytes).ok();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Opens a log at its last lines, and the rotated file if it has some of them.
fn open_tail(path: &Path, lines: usize) -> io::Result<(Option<File>, File)> {
    let mut file = open_file(path)?;
    let mut missing = begin(&mut file, lines)?;
    let older = if missing > 0 { open_file(&path.with_added_extension("1")).ok() } else { None };
    let Some(mut older) = older else { return Ok((None, file)) };
    // If the log was rotated just now, the opened file is the rotated one.
    if is_same(&older, &file)? {
        file = open_file(path)?;
        missing = begin(&mut file, lines)?;
    }
    begin(&mut older, missing)?;
    Ok((Some(older), file))
}

/// Seeks to the last lines. Returns the number of lines that the rotated file must provide.
fn begin(file: &mut File, lines: usize) -> io::Result<usize> {
    let size = file.seek(SeekFrom::End(0))?;
    let mut end = size;
    // A final newline ends the last line; it does not begin another.
    let mut missing = lines + 1;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        let mut block = Vec::new();
        Read::by_ref(file).take(end - start).read_to_end(&mut block)?;
        if end == size && !block.ends_with(b"\n") {
            missing -= 1;
        }
        for (at, _) in block.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            missing = missing.saturating_sub(1);
            if missing == 0 {
                file.seek(SeekFrom::Start(start + at as u64 + 1))?;
                return Ok(0);
            }
        }
        end = start;
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(missing.saturating_sub(1))
}

/// Prints everything from the current position; `unshown` has bytes that need the following ones.
fn copy(file: &mut File, path: &Path, unshown: &mut Vec<u8>, ui: &mut Ui) -> Result {
    loop {
        let read = Read::by_ref(file).take(BLOCK).read_to_end(unshown);
        match read.map_err(|error| CommandError::file("read", path, &error))? {
            0 => return Ok(()),
            _ => {
                let whole: Vec<u8> = unshown.drain(..whole_part(unshown)).collect();
                ui.relay_bytes(&whole)?;
            }
        }
    }
}

/// Returns the number of bytes that can be printed now: a character or a line end may be
/// incomplete.
fn whole_part(bytes: &[u8]) -> usize {
    let is_cut_off = |start: &usize| match std::str::from_utf8(&bytes[*start..]) {
        Err(error) => error.valid_up_to() == 0 && error.error_len().is_none(),
        Ok(_) => false,
    };
    let last = bytes.len().saturating_sub(3)..bytes.len();
    let end = last.rev().find(is_cut_off).unwrap_or(bytes.len());
    if bytes[..end].ends_with(b"\r") { end - 1 } else { end }
}

/// Returns the file that replaced this one by rotation or truncation.
fn replaced(file: &mut File, path: &Path) -> io::Result<Option<File>> {
    let newer = match open_file(path) {
        Ok(newer) => newer,
        // Between the two steps of a rotation.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_other = !is_same(file, &newer)?;
    let is_cut = newer.metadata()?.len() < file.stream_position()?;
    Ok((is_other || is_cut).then_some(newer))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_character_or_the_end_of_a_line_is_not_shown_by_halves() {
        for (bytes, whole) in [
            (&b""[..], 0),
            (b"abc", 3),
            ("a\u{20ac}".as_bytes(), 4),
            (b"a\xe2\x82", 1),
            (b"a\xe2", 1),
            (b"a\xf0\x9f\x98", 1),
            (b"\xf0\x9f\x98\x80", 4),
            // Invalid bytes are not waited for.
            (b"a\x82\xff", 3),
            (b"a\r", 1),
            (b"a\r\n", 3),
            (b"a\r\xe2", 1),
        ] {
            assert_eq!(whole_part(bytes), whole, "{bytes:?}");
        }
    }

    #[test]
    fn the_tail_begins_at_a_line() {
        let start = |text: &str, lines| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            begin(&mut file, lines).unwrap();
            file.stream_position().unwrap()
        };
        assert_eq!(start("a\nb\nc\n", 2), 2);
        assert_eq!(start("a\nb\nc", 2), 2);
        assert_eq!(start("a\nb\nc\n", 9), 0);
        assert_eq!(start("a\nb\n", 0), 4);
        assert_eq!(start("", 3), 0);
        let long = format!("{}\nlast\n", "x".repeat(200_000));
        assert_eq!(start(&long, 1), 200_001);
        assert_eq!(start(&long, 2), 0);
    }
}
