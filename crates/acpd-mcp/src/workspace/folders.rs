//! The folders of a session, and the walk through them.
//!
//! The walk goes by paths, because git's ignore rules do. So an entry is only a guess until the
//! handle of the folder finds it, too ([`acpd_services::fs`]): a folder that becomes a link during
//! the walk shows nothing of the link's target.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use acpd_api::escape;
use acpd_services::fs::{Effort, FsError, Kind, Roots};
use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};

use crate::failure::Failure;

/// Most files and folders of one walk.
const MOST: usize = 200_000;
/// Longest time of a walk.
const TIME: Duration = Duration::from_secs(10);
/// Most bytes of a file to search.
const BYTES: u64 = 256 << 20;
/// The tools create no files.
const UMASK: u32 = 0o077;

#[derive(Debug)]
pub(super) struct Folders {
    /// Canonical paths, the working directory first.
    all: Vec<PathBuf>,
    pub(super) roots: Roots,
    until: Instant,
}

impl Folders {
    pub(super) fn open(named: &[PathBuf]) -> Result<Folders, Failure> {
        let real = |path: &PathBuf| {
            let error = |error| Failure::new(format!("`{}`: {error}", path.display()));
            path.canonicalize().map_err(error)
        };
        let all = named.iter().map(real).collect::<Result<Vec<_>, _>>()?;
        let (cwd, more) = all.split_first().ok_or_else(|| Failure::new("there is no folder"))?;
        let roots = Roots::open(cwd, more, UMASK)?;
        Ok(Folders { all, roots, until: Instant::now() + TIME })
    }

    pub(super) fn cwd(&self) -> &Path {
        &self.all[0]
    }

    /// Returns whether a canonical path is in one of the folders.
    pub(super) fn contain(&self, path: &Path) -> bool {
        self.all.iter().any(|folder| path.starts_with(folder))
    }

    pub(super) fn named(&self, path: &Path) -> PathBuf {
        self.cwd().join(path)
    }

    /// A path as an agent gets it: relative if it is in the working directory.
    pub(super) fn shown(&self, path: &Path) -> String {
        let path = match path.strip_prefix(self.cwd()) {
            Ok(inside) if !inside.as_os_str().is_empty() => inside,
            _ => path,
        };
        escape::one_line(&path.to_string_lossy()).to_string()
    }

    /// The most work for one file.
    pub(super) fn effort(&self) -> Effort {
        Effort { bytes: BYTES, until: self.until, cancelled: Arc::default() }
    }

    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Calls `each` for a file, for all below a folder, or for all in all folders, in order of their
    /// names, until it returns `false`; with `ignored` also for files that git ignores. Returns why
    /// there may be more.
    pub(super) fn walk(
        &self,
        path: Option<&Path>,
        ignored: bool,
        mut each: impl FnMut(&Path, Kind) -> bool,
    ) -> Result<Option<&'static str>, Failure> {
        let starts = match path {
            Some(path) => vec![self.named(path)],
            None => self.all.clone(),
        };
        let mut count = 0;
        for start in starts {
            // Reveals nothing about paths outside of the folders.
            let kind = self.roots.kind(&start)?;
            // Files in `.git` may hold logins, and are no part of the work.
            if self.is_in_git(&start) {
                continue;
            }
            if kind == Kind::File {
                each(&start, kind);
                continue;
            }
            let mut walk = WalkBuilder::new(&start);
            walk.standard_filters(!ignored).hidden(false);
            walk.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
            walk.sort_by_file_name(Ord::cmp).current_dir(self.cwd());
            // Unreadable entries do not exist for this agent.
            for entry in walk.build().flatten().filter(|entry| entry.depth() > 0) {
                count += 1;
                if count > MOST {
                    return Ok(Some("there are too many files to look at all"));
                }
                if self.is_late() {
                    return Ok(Some("it took too long to look at all files"));
                }
                let path = entry.into_path();
                let Ok(kind) = self.roots.kind(&path) else { continue };
                if !each(&path, kind) {
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// Returns whether a path is below the `.git` of a repository, within the folders of the
    /// session.
    fn is_in_git(&self, path: &Path) -> bool {
        let below = self.all.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
        below.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
    }

    /// A glob for paths relative to the working directory.
    pub(super) fn glob(&self, glob: Option<&str>) -> Result<Override, Failure> {
        let mut globs = OverrideBuilder::new(self.cwd());
        let bad = |error: ignore::Error| Failure::new(format!("`glob`: {error}"));
        if let Some(glob) = glob {
            globs.add(glob).map_err(bad)?;
        }
        globs.build().map_err(bad)
    }
}

impl From<FsError> for Failure {
    fn from(error: FsError) -> Failure {
        let failure = Failure::new(error.to_string());
        match error {
            FsError::Outside { .. } => failure.hint("use a path in one of these directories"),
            _ => failure,
        }
    }
}

#[derive(Debug)]
pub(super) struct Page {
    text: String,
    most: usize,
}

impl Page {
    pub(super) fn new(most: usize) -> Page {
        Page { text: String::new(), most }
    }

    /// Adds a line. Returns whether it fits.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let fits = self.text.len() + line.len() < self.most;
        if fits {
            self.text.push_str(line);
            self.text.push('\n');
        }
        fits
    }

    /// The text, and notes in brackets.
    pub(super) fn end(mut self, notes: &[String]) -> String {
        if !notes.is_empty() {
            self.text.extend(["[", &notes.join("; "), "]\n"]);
        }
        self.text
    }
}

/// A part of a line around a place in it, up to `most` bytes, with `…` for text that is left out.
pub(super) fn around(line: &str, at: usize, most: usize) -> String {
    if line.len() <= most {
        return line.to_owned();
    }
    let from = line.floor_char_boundary(at.saturating_sub(most / 4));
    let to = line.floor_char_boundary((from + most).min(line.len()));
    let before = if from > 0 { "…" } else { "" };
    let behind = if to < line.len() { "…" } else { "" };
    format!("{before}{}{behind}", &line[from..to])
}

#[cfg(all(test, unix))]
mod links {
    use std::fs;
    use std::os::unix::fs::symlink;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn however_a_path_is_spelled_it_leads_nowhere_else(
            parts in vec(prop_oneof![
                Just(".."), Just("."), Just("a"), Just("b"), Just("out"), Just("up"), Just("secret"), Just("none"), Just(""),
            ], 0..9),
            is_absolute: bool,
        ) {
            let home = tempfile::tempdir().unwrap();
            let home = home.path().canonicalize().unwrap();
            let work = home.join("work");
            fs::create_dir_all(work.join("a/b")).unwrap();
            fs::write(home.join("secret"), "").unwrap();
            fs::write(work.join("a/secret"), "").unwrap();
            symlink(&home, work.join("out")).unwrap();
            symlink("..", work.join("a/b/up")).unwrap();
            let folders = Folders::open(std::slice::from_ref(&work)).unwrap();
            let mut path = PathBuf::from(parts.join("/").trim_start_matches('/'));
            if is_absolute {
                path = work.join(path);
            }
            let real = folders.named(&path).canonicalize();
            let mut seen = Vec::new();
            let walked = folders.walk(Some(&path), true, |path, _| {
                seen.push(path.canonicalize().unwrap());
                true
            });
            prop_assert!(seen.iter().all(|path| path.starts_with(&work)), "{path:?}: {seen:?}");
            if real.as_ref().is_ok_and(|real| real.starts_with(&work)) {
                prop_assert!(walked.is_ok(), "{path:?}: {walked:?}");
            } else {
                prop_assert!(walked.is_err() && seen.is_empty(), "{path:?}: {walked:?}");
            }
        }
    }

    #[test]
    fn no_name_from_outside_is_listed_however_a_link_is_swapped() {
        let home = tempfile::tempdir().unwrap();
        let [work, outside] = ["work", "outside"].map(|name| home.path().join(name));
        fs::create_dir_all(work.join("a")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(work.join("a/inside"), "").unwrap();
        fs::write(work.join("0"), "").unwrap();
        fs::write(outside.join("secret"), "").unwrap();
        let folders = Folders::open(std::slice::from_ref(&work)).unwrap();
        let mut seen = Vec::new();
        let walked = folders.walk(None, false, |path, _| {
            if path.ends_with("0") {
                // The folder was one when its name was read, and leads out when the walk enters it.
                fs::rename(work.join("a"), work.join("b")).unwrap();
                symlink(&outside, work.join("a")).unwrap();
            }
            seen.push(folders.shown(path));
            true
        });
        assert_eq!(walked.unwrap(), None);
        assert_eq!(seen, ["0"]);
        fs::remove_file(work.join("a")).unwrap();
        fs::rename(work.join("b"), work.join("a")).unwrap();
        seen.clear();
        folders
            .walk(None, false, |path, _| {
                seen.push(folders.shown(path));
                true
            })
            .unwrap();
        assert_eq!(seen, ["0", "a", "a/inside"]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_page_is_no_longer_than_it_may_be_and_a_part_of_a_line_is_around_its_place(
            lines in vec(".{0,60}", 0..30), most in 1_usize..400, at in 0_usize..60,
        ) {
            let mut page = Page::new(most);
            let kept: Vec<bool> = lines.iter().map(|line| page.line(line)).collect();
            let text = page.end(&[]);
            prop_assert!(text.len() <= most);
            prop_assert_eq!(kept.iter().filter(|kept| **kept).count(), text.matches('\n').count());
            for line in &lines {
                let at = line.floor_char_boundary(at.min(line.len()));
                let part = around(line, at, most);
                prop_assert!(part.len() <= most + 2 * '…'.len_utf8());
                let inside = part.trim_start_matches('…').trim_end_matches('…');
                prop_assert!(line.contains(inside));
            }
        }
    }
}
