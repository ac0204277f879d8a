//! `read`: lines of a file.

use acpd_services::fs::{FsError, Lines, read_text_file};

use super::ReadArgs;
use super::folders::{Folders, Page, around};
use crate::failure::Failure;

/// Bytes of an answer, and of a line in it.
const ANSWER: usize = 64 << 10;
const LINE: usize = 2000;
/// Lines, if nothing is said, and whatever is said.
const USUAL: u32 = 500;
const MOST: u32 = 5000;

pub(super) fn read(folders: &Folders, args: &ReadArgs) -> Result<String, Failure> {
    let path = folders.named(&args.path);
    let first = args.from_line.unwrap_or(1).max(1);
    let most = args.lines.unwrap_or(USUAL).clamp(1, MOST);
    // One more tells whether there are more.
    let wanted = Lines { first: Some(first), limit: Some(most + 1) };
    let text = read_text_file(&folders.roots, &path, wanted, folders.effort())?;
    if text.contains('\0') {
        return Err(FsError::NotUtf8 { path }.into());
    }
    let mut page = Page::new(ANSWER);
    let mut next = first;
    let mut has_more = false;
    for line in text.lines() {
        let shown = || format!("{next:>6}\t{}", around(line, 0, LINE));
        if next - first == most || !page.line(&shown()) {
            has_more = true;
            break;
        }
        next += 1;
    }
    let note = match (next == first, has_more) {
        (true, _) if first == 1 => Some("the file is empty".to_owned()),
        (true, _) => Some(format!("the file has less than {first} lines")),
        (false, true) => Some(format!("there is more: `from_line` {next}")),
        (false, false) => None,
    };
    Ok(page.end(note.as_slice()))
}
