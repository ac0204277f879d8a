//! Git worktrees for sessions: next to the repository in `REPOSITORY.worktrees/NAME`, each on a
//! branch of its own, `acpd/NAME`. Git's configuration names the branch that it came from, as
//! `branch.acpd/NAME.acpdFrom`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Serialize;

mod error;
mod git;

pub use error::{Error, Result};
use git::{change, count_changes, look, or_no};

const PREFIX: &str = "acpd/";

/// A worktree of a session, as `session worktree --json` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Worktree {
    pub path: String,
    pub branch: String,
    pub from: Option<String>,
    /// Files with uncommitted changes.
    pub changed: usize,
    /// Commits that no other branch has.
    pub unmerged: usize,
    /// Git's error if a hook of the repository failed after the worktree was made.
    #[serde(skip)]
    pub warning: Option<String>,
}

impl Worktree {
    /// Makes a worktree with this name, or with the first free number.
    pub fn make(dir: &Path, name: Option<&str>) -> Result<Worktree> {
        let place = place(dir)?;
        let name = match name {
            Some(name) => checked(dir, name)?,
            None => free_number(dir, &place)?,
        };
        let (path, branch) = (utf8(&place.join(&name))?, format!("{PREFIX}{name}"));
        if place.join(&name).exists() {
            return Err(Error::Exists(path));
        }
        if has_branch(dir, &name)? {
            return Err(Error::BranchExists(branch));
        }
        let from = current_branch(dir)?;
        let cannot = |source| Error::CannotMake { path: place.join(&name), source };
        fs::create_dir_all(&place).map_err(cannot)?;
        // Creating the directory first makes it ours: a failure below must not remove that of
        // another command.
        fs::create_dir(place.join(&name)).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists(path.clone()),
            _ => cannot(error),
        })?;
        if let Err(error) = change(dir, &["branch", "--quiet", "--no-track", &branch, "HEAD"]) {
            fs::remove_dir(&path).ok();
            return Err(error);
        }
        let mut made = Worktree { path, branch, from, changed: 0, unmerged: 0, warning: None };
        match made.check_out(dir) {
            Ok(()) => Ok(made),
            // Git fails if a `post-checkout` hook fails, although the worktree is complete.
            Err(error @ Error::Failed { .. }) if made.is_whole() => {
                made.warning = Some(error.to_string());
                Ok(made)
            }
            Err(error) => {
                made.take_back(dir).ok();
                Err(error)
            }
        }
    }

    fn check_out(&self, dir: &Path) -> Result {
        if let Some(from) = &self.from {
            change(dir, &["config", &from_key(&self.branch), from])?;
        }
        change(dir, &["worktree", "add", "--quiet", &self.path, &self.branch])?;
        Ok(())
    }

    /// Returns whether the branch is checked out there with all files.
    fn is_whole(&self) -> bool {
        let dir = Path::new(&self.path);
        let is_there = |branch| branch == Some(self.branch.clone());
        dir.is_dir()
            && current_branch(dir).is_ok_and(is_there)
            && look(dir, &["ls-files", "--deleted"]).is_ok_and(|missing| missing.is_empty())
            && look(dir, &["diff-index", "--cached", "--name-only", "HEAD"])
                .is_ok_and(|other| other.is_empty())
    }

    /// Removes a worktree that is made in part.
    fn take_back(&self, dir: &Path) -> Result {
        or_no(change(dir, &["worktree", "remove", "--force", &self.path]))?;
        // Git has removed a complete worktree.
        fs::remove_dir_all(&self.path).ok();
        or_no(change(dir, &["worktree", "prune"]))?;
        // This also removes the branch's part of the configuration.
        or_no(change(dir, &["branch", "--quiet", "-D", &self.branch]))?;
        Ok(())
    }

    /// The worktree that this directory is in.
    pub fn of(dir: &Path) -> Result<Option<Worktree>> {
        let Some(path) = or_no(look(dir, &["rev-parse", "--show-toplevel"]))? else {
            return Ok(None);
        };
        let Some(branch) = current_branch(dir)?.filter(|branch| branch.starts_with(PREFIX)) else {
            return Ok(None);
        };
        let from = or_no(look(dir, &["config", "--get", &from_key(&branch)]))?;
        let changed = count_changes(dir, true)?;
        let others = format!("--exclude={branch}");
        let count = ["rev-list", "--count", &branch, "--not", &others, "--branches", "--remotes"];
        let unmerged = look(dir, &count)?.parse().unwrap_or(usize::MAX);
        Ok(Some(Worktree { path, branch, from, changed, unmerged, warning: None }))
    }

    /// The directory in the worktree that corresponds to this one in the repository.
    pub fn inside(&self, dir: &Path) -> Result<PathBuf> {
        let below = look(dir, &["rev-parse", "--show-prefix"])?;
        let path = PathBuf::from(&self.path);
        // Ends with a slash; empty at the top.
        let inside = path.join(below.trim_end_matches('/'));
        Ok(if !below.is_empty() && inside.is_dir() { inside } else { path })
    }

    /// Merges the branch into the one that it came from, wherever that is checked out; returns that
    /// one.
    pub fn merge(&self) -> Result<&str> {
        let dir = Path::new(&self.path);
        let from = self.from.as_ref().ok_or_else(|| Error::FromNone(self.branch.clone()))?;
        let place = checked_out(dir, from)?.ok_or_else(|| Error::NotCheckedOut(from.clone()))?;
        // A failed merge is undone below; no work of the user may go with it.
        let is_merging = or_no(look(&place, &["rev-parse", "--verify", "--quiet", "MERGE_HEAD"]))?;
        if is_merging.is_some() || has_changes(&place)? {
            return Err(Error::Changes(place));
        }
        if let Err(error) = change(&place, &["merge", "--quiet", "--no-edit", &self.branch]) {
            // There may be no merge to abort.
            or_no(change(&place, &["merge", "--abort"]))?;
            let branch = self.branch.clone();
            return Err(Error::NotMerged { place, branch, why: Box::new(error) });
        }
        Ok(from)
    }

    /// Removes the directory and the branch, with all their content.
    pub fn remove(&self) -> Result {
        let common = common_dir(Path::new(&self.path))?;
        change(&common, &["worktree", "remove", "--force", &self.path])?;
        change(&common, &["branch", "--quiet", "-D", &self.branch])?;
        Ok(())
    }
}

/// The worktree that this directory is in. Git is asked only if the path looks like one.
pub fn worktree_of(dir: &Path) -> Result<Option<Worktree>> {
    let is_beside = |part: std::path::Component<'_>| {
        part.as_os_str().to_str().is_some_and(|name| name.ends_with(".worktrees"))
    };
    if dir.components().any(is_beside) && dir.is_dir() { Worktree::of(dir) } else { Ok(None) }
}

/// Returns whether tracked files have uncommitted changes.
pub fn has_changes(dir: &Path) -> Result<bool> {
    Ok(count_changes(dir, false)? > 0)
}

fn place(dir: &Path) -> Result<PathBuf> {
    let common = common_dir(dir)?;
    let top = match common.parent() {
        Some(parent) if common.ends_with(".git") => parent.to_owned(),
        // A submodule.
        _ => PathBuf::from(look(dir, &["rev-parse", "--show-toplevel"])?),
    };
    if or_no(look(dir, &["rev-parse", "--verify", "--quiet", "HEAD"]))?.is_none() {
        return Err(Error::NoCommit(top));
    }
    let name = top.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(top.with_file_name(format!("{name}.worktrees")))
}

/// Checks that a directory and a branch can have the name.
fn checked(dir: &Path, name: &str) -> Result<String> {
    let branch = format!("{PREFIX}{name}");
    let is_branch = or_no(look(dir, &["check-ref-format", "--branch", &branch]))?.is_some();
    if is_branch && !name.contains('/') {
        return Ok(name.to_owned());
    }
    Err(Error::BadName(name.to_owned()))
}

fn free_number(dir: &Path, place: &Path) -> Result<String> {
    let mut number = 1_u32;
    loop {
        let name = number.to_string();
        if !place.join(&name).exists() && !has_branch(dir, &name)? {
            return Ok(name);
        }
        number += 1;
    }
}

fn has_branch(dir: &Path, name: &str) -> Result<bool> {
    let reference = format!("refs/heads/{PREFIX}{name}");
    Ok(or_no(look(dir, &["rev-parse", "--verify", "--quiet", &reference]))?.is_some())
}

fn from_key(branch: &str) -> String {
    format!("branch.{branch}.acpdFrom")
}

fn current_branch(dir: &Path) -> Result<Option<String>> {
    or_no(look(dir, &["symbolic-ref", "--short", "--quiet", "HEAD"]))
}

/// The directory of the repository itself, which all of its worktrees share.
fn common_dir(dir: &Path) -> Result<PathBuf> {
    let common = or_no(look(dir, &["rev-parse", "--path-format=absolute", "--git-common-dir"]))?;
    common.map(PathBuf::from).ok_or_else(|| Error::NoRepository(dir.to_owned()))
}

fn checked_out(dir: &Path, branch: &str) -> Result<Option<PathBuf>> {
    let list = look(dir, &["worktree", "list", "--porcelain"])?;
    let wanted = format!("branch refs/heads/{branch}");
    let found = list.split("\n\n").find(|one| one.lines().any(|line| line == wanted));
    let path = found.and_then(|one| one.lines().find_map(|line| line.strip_prefix("worktree ")));
    Ok(path.map(PathBuf::from))
}

fn utf8(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| Error::Path(path.to_owned()))
}
