//! `find`: names of files.

use acpd_services::fs::Kind;

use super::FindArgs;
use super::folders::{Folders, Page, Wanted};
use crate::failure::Failure;

/// Most bytes of an answer.
const ANSWER: usize = 32 << 10;

pub(super) fn find(folders: &Folders, args: &FindArgs) -> Result<String, Failure> {
    let glob = folders.glob(Some(&args.glob))?;
    let wanted = Wanted { path: args.path.as_deref(), ignored: args.ignored };
    let mut page = Page::new(ANSWER);
    let (mut shown, mut left_out) = (0_usize, 0_usize);
    let more = folders.walk(wanted, |found| {
        let is_one = found.kind != Kind::Directory && !glob.matched(&found.path, false).is_ignore();
        if is_one {
            // After the first name that does not fit, shorter ones are left out, too.
            let fits = left_out == 0 && page.line(&folders.shown(&found.path));
            *(if fits { &mut shown } else { &mut left_out }) += 1;
        }
        true
    })?;
    let mut notes = vec![format!("{shown} files")];
    if left_out > 0 {
        notes.push(format!("cut: {left_out} more"));
    }
    notes.extend(more.map(str::to_owned));
    Ok(page.end(&notes))
}
