//! Worktrees of git that sessions work in: beside the repository, in `REPOSITORY.worktrees/NAME`, each on a
//! branch of its own, `acpd/NAME`. Git itself remembers them; which branch one came from is in git's
//! configuration, as `branch.acpd/NAME.acpdFrom`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde::Serialize;

mod error;

pub use error::{Error, Result};

/// What our branches begin with.
const PREFIX: &str = "acpd/";
/// Variables by which git would work elsewhere, as in a hook of git.
const ELSEWHERE: [&str; 4] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"];

/// A worktree of a session, as `session worktree --json` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Worktree {
    /// Its directory.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// The branch that it came from; `None` if it came from none.
    pub from: Option<String>,
    /// Files with changes that are not committed.
    pub changed: usize,
    /// Commits that no other branch has.
    pub unmerged: usize,
}

impl Worktree {
    /// Makes one for this name, or for the first number that is free.
    ///
    /// # Errors
    /// When the directory is in no repository that has a commit, the name is no good or taken, or git fails.
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
        git(dir, &["worktree", "add", "--quiet", "-b", &branch, &path, "HEAD"])?;
        if let Some(from) = &from {
            git(dir, &["config", &from_key(&branch), from])?;
        }
        Ok(Worktree { path, branch, from, changed: 0, unmerged: 0 })
    }

    /// The one that this directory is in.
    ///
    /// # Errors
    /// When git fails.
    pub fn of(dir: &Path) -> Result<Option<Worktree>> {
        let Some(path) = try_git(dir, &["rev-parse", "--show-toplevel"])? else { return Ok(None) };
        let Some(branch) = current_branch(dir)?.filter(|branch| branch.starts_with(PREFIX)) else {
            return Ok(None);
        };
        let from = try_git(dir, &["config", "--get", &from_key(&branch)])?;
        let changed = git(dir, &["status", "--porcelain"])?.lines().count();
        let others = format!("--exclude={branch}");
        let count = ["rev-list", "--count", &branch, "--not", &others, "--branches", "--remotes"];
        let unmerged = git(dir, &count)?.parse().unwrap_or(usize::MAX);
        Ok(Some(Worktree { path, branch, from, changed, unmerged }))
    }

    /// Where a session works that was begun in this directory of the repository.
    ///
    /// # Errors
    /// When git fails.
    pub fn inside(&self, dir: &Path) -> Result<PathBuf> {
        let below = git(dir, &["rev-parse", "--show-prefix"])?;
        let path = PathBuf::from(&self.path);
        // It ends with a slash, and is empty at the top.
        let inside = path.join(below.trim_end_matches('/'));
        Ok(if !below.is_empty() && inside.is_dir() { inside } else { path })
    }

    /// Merges its branch into the one that it came from, wherever that is checked out; returns that one.
    ///
    /// # Errors
    /// When there is none, it is checked out nowhere, something there is not committed, or git cannot merge.
    pub fn merge(&self) -> Result<&str> {
        let dir = Path::new(&self.path);
        let from = self.from.as_ref().ok_or_else(|| Error::FromNone(self.branch.clone()))?;
        let place = checked_out(dir, from)?.ok_or_else(|| Error::NotCheckedOut(from.clone()))?;
        // What a failed merge leaves is taken back below; nothing of the person's may go with it.
        let is_merging = try_git(&place, &["rev-parse", "--verify", "--quiet", "MERGE_HEAD"])?;
        if is_merging.is_some() || has_changes(&place)? {
            return Err(Error::Changes(place));
        }
        if let Err(error) = git(&place, &["merge", "--quiet", "--no-edit", &self.branch]) {
            // Nothing is left half merged; there may be no merge to end.
            try_git(&place, &["merge", "--abort"])?;
            let branch = self.branch.clone();
            return Err(Error::NotMerged { place, branch, why: Box::new(error) });
        }
        Ok(from)
    }

    /// Removes the directory and the branch, with whatever is in them.
    ///
    /// # Errors
    /// When git fails.
    pub fn remove(&self) -> Result {
        let common = common_dir(Path::new(&self.path))?;
        git(&common, &["worktree", "remove", "--force", &self.path])?;
        git(&common, &["branch", "--quiet", "-D", &self.branch])?;
        Ok(())
    }
}

/// The worktree that this directory is in, if its path looks like that of one: git is asked only then.
///
/// # Errors
/// When git fails.
pub fn worktree_of(dir: &Path) -> Result<Option<Worktree>> {
    let is_beside = |part: std::path::Component<'_>| {
        part.as_os_str().to_str().is_some_and(|name| name.ends_with(".worktrees"))
    };
    if dir.components().any(is_beside) && dir.is_dir() { Worktree::of(dir) } else { Ok(None) }
}

/// Whether files that git knows have changes that are not committed.
///
/// # Errors
/// When git fails.
pub fn has_changes(dir: &Path) -> Result<bool> {
    Ok(!git(dir, &["status", "--porcelain", "--untracked-files=no"])?.is_empty())
}

/// Where the worktrees of a directory's repository are.
fn place(dir: &Path) -> Result<PathBuf> {
    let common = common_dir(dir)?;
    let top = match common.parent() {
        Some(parent) if common.ends_with(".git") => parent.to_owned(),
        // A submodule.
        _ => PathBuf::from(top(dir)?),
    };
    if try_git(dir, &["rev-parse", "--verify", "--quiet", "HEAD"])?.is_none() {
        return Err(Error::NoCommit(top));
    }
    let name = top.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(top.with_file_name(format!("{name}.worktrees")))
}

/// The name, if a directory and a branch can have it.
fn checked(dir: &Path, name: &str) -> Result<String> {
    let branch = format!("{PREFIX}{name}");
    let is_branch = try_git(dir, &["check-ref-format", "--branch", &branch])?.is_some();
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
    Ok(try_git(dir, &["rev-parse", "--verify", "--quiet", &reference])?.is_some())
}

fn from_key(branch: &str) -> String {
    format!("branch.{branch}.acpdFrom")
}

fn current_branch(dir: &Path) -> Result<Option<String>> {
    try_git(dir, &["symbolic-ref", "--short", "--quiet", "HEAD"])
}

fn top(dir: &Path) -> Result<String> {
    git(dir, &["rev-parse", "--show-toplevel"])
}

/// The directory of the repository itself, which all of its worktrees share.
fn common_dir(dir: &Path) -> Result<PathBuf> {
    let common = try_git(dir, &["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    common.map(PathBuf::from).ok_or_else(|| Error::NoRepository(dir.to_owned()))
}

/// The directory in which a branch is checked out.
fn checked_out(dir: &Path, branch: &str) -> Result<Option<PathBuf>> {
    let list = git(dir, &["worktree", "list", "--porcelain"])?;
    let wanted = format!("branch refs/heads/{branch}");
    let found = list.split("\n\n").find(|one| one.lines().any(|line| line == wanted));
    let path = found.and_then(|one| one.lines().find_map(|line| line.strip_prefix("worktree ")));
    Ok(path.map(PathBuf::from))
}

/// Runs git; what it prints, without the last newline.
fn git(dir: &Path, args: &[&str]) -> Result<String> {
    let output = output(dir, args)?;
    if output.status.success() {
        return printed(&output.stdout);
    }
    let mut said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if said.is_empty() {
        // Conflicts are told on stdout.
        String::from_utf8_lossy(&output.stdout).trim().clone_into(&mut said);
    }
    let verb = args.first().copied().unwrap_or_default().to_owned();
    Err(Error::Failed { verb, said })
}

/// The same, where git says no by its exit code.
fn try_git(dir: &Path, args: &[&str]) -> Result<Option<String>> {
    let output = output(dir, args)?;
    if output.status.success() { printed(&output.stdout).map(Some) } else { Ok(None) }
}

fn printed(bytes: &[u8]) -> Result<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.trim_end_matches('\n').to_owned()),
        Err(_) => Err(Error::NotUtf8),
    }
}

fn output(dir: &Path, args: &[&str]) -> Result<Output> {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(args).stdin(Stdio::null());
    for name in ELSEWHERE {
        command.env_remove(name);
    }
    command.output().map_err(Error::CannotRun)
}

fn utf8(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| Error::Path(path.to_owned()))
}
