//! `find` and `tree`: names of files.

use acpd_services::fs::Kind;

use super::folders::{Folders, Page, Wanted};
use super::{FindArgs, TreeArgs};
use crate::failure::Failure;

/// Bytes of an answer.
const ANSWER: usize = 32 << 10;
/// Levels of a tree, if nothing is said, and whatever is said.
const USUAL_DEPTH: usize = 3;
const MOST_DEPTH: usize = 20;

pub(super) fn find(folders: &Folders, args: &FindArgs) -> Result<String, Failure> {
    let glob = folders.glob(Some(&args.glob))?;
    let wanted = Wanted { path: args.path.as_deref(), ignored: args.ignored, depth: None };
    let mut listed = Listed::new("files");
    let more = folders.walk(wanted, |found| {
        let is_one = found.kind != Kind::Directory && !glob.matched(&found.path, false).is_ignore();
        if is_one {
            listed.add(&folders.shown(&found.path));
        }
        true
    })?;
    Ok(listed.end(more))
}

pub(super) fn tree(folders: &Folders, args: &TreeArgs) -> Result<String, Failure> {
    let depth = args.depth.unwrap_or(USUAL_DEPTH).clamp(1, MOST_DEPTH);
    let wanted = Wanted { path: args.path.as_deref(), ignored: args.ignored, depth: Some(depth) };
    let mut listed = Listed::new("files and folders");
    let more = folders.walk(wanted, |found| {
        let above = found.path.parent().filter(|_| found.depth == 1);
        if let Some(top) = above.filter(|top| listed.top.as_deref() != Some(*top)) {
            listed.head(&format!("{}/", folders.shown(top)));
            listed.top = Some(top.to_owned());
        }
        let name = folders.shown(found.path.file_name().unwrap_or_default().as_ref());
        let slash = if found.kind == Kind::Directory { "/" } else { "" };
        listed.add(&format!("{}{name}{slash}", "  ".repeat(found.depth)));
        true
    })?;
    Ok(listed.end(more))
}

/// Names, as many as fit, and how many do not.
struct Listed {
    page: Page,
    what: &'static str,
    /// The folder that the names are below.
    top: Option<std::path::PathBuf>,
    count: usize,
    left_out: usize,
}

impl Listed {
    fn new(what: &'static str) -> Listed {
        Listed { page: Page::new(ANSWER), what, top: None, count: 0, left_out: 0 }
    }

    fn head(&mut self, line: &str) {
        self.page.line(line);
    }

    fn add(&mut self, line: &str) {
        // Behind the first one that does not fit, no shorter one is taken.
        let fits = self.left_out == 0 && self.page.line(line);
        *(if fits { &mut self.count } else { &mut self.left_out }) += 1;
    }

    fn end(self, more: Option<&str>) -> String {
        let mut notes = vec![format!("{} {}", self.count, self.what)];
        if self.left_out > 0 {
            notes.push(format!("cut: {} more", self.left_out));
        }
        notes.extend(more.map(str::to_owned));
        self.page.end(&notes)
    }
}
