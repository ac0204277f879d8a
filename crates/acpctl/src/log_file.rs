//! Prints the end of a log file and, with `--follow`, later lines.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
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
/// The part of a log in which the last lines are.
const MAX_TAIL: u64 = 64 << 20;

/// With `follow`, continues until Ctrl-C.
pub(crate) fn print(path: &Path, tail: Tail, ui: &mut Ui) -> Result {
    let failed = |error: io::Error| CommandError::file("read", path, &error);
    let (mut unshown, mut file) = match read_tail(path, tail.lines) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !tail.follow => {
            return ui.done(text!("`{}` does not exist yet", path));
        }
        Err(error) => return Err(failed(error)),
    };
    if !tail.follow {
        return Ok(ui.relay_bytes(&unshown)?);
    }
    loop {
        let whole: Vec<u8> = unshown.drain(..whole_part(&unshown)).collect();
        ui.relay_bytes(&whole)?;
        ui.flush()?;
        thread::sleep(POLL);
        file.read_to_end(&mut unshown).map_err(failed)?;
        if let Some(newer) = replaced(&mut file, path).map_err(failed)? {
            file.read_to_end(&mut unshown).map_err(failed)?;
            ui.relay_bytes(&std::mem::take(&mut unshown))?;
            file = newer;
        }
    }
}

/// Returns the last lines of a log, including the rotated file; empty if the log cannot be read.
pub(crate) fn last(path: &Path, lines: usize) -> String {
    let bytes = read_tail(path, lines).map(|(bytes, _)| bytes).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the last lines of a log, some of which may be in the rotated file, and the log after
/// them.
fn read_tail(path: &Path, lines: usize) -> io::Result<(Vec<u8>, File)> {
    let mut file = open_file(path)?;
    let mut text = read_end(&mut file)?;
    if start_of(&text, lines).is_none()
        && let Ok(mut older) = open_file(&path.with_added_extension("1"))
        // If the log was rotated just now, the opened file is the rotated one.
        && !is_same(&older, &file)?
    {
        let newer = std::mem::replace(&mut text, read_end(&mut older)?);
        text.extend_from_slice(&newer);
    }
    text.drain(..start_of(&text, lines).unwrap_or(0));
    Ok((text, file))
}

fn read_end(file: &mut File) -> io::Result<Vec<u8>> {
    let size = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(size.saturating_sub(MAX_TAIL)))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(text)
}

/// Returns where the last lines begin; none if there are fewer.
fn start_of(text: &[u8], lines: usize) -> Option<usize> {
    let Some(others) = lines.checked_sub(1) else { return Some(text.len()) };
    // A final newline ends the last line; it does not begin another.
    let before = &text[..text.len().saturating_sub(1)];
    let mut ends = before.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    ends.nth(others).map(|(at, _)| at + 1)
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
        let start = |text: &str, lines| start_of(text.as_bytes(), lines).unwrap_or(0);
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
