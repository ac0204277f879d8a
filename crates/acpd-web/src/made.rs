//! Git worktrees that were made for sessions, in case a session does not begin.
//!
//! Worktrees are made one at a time: two must not find the same free number.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use acpd_client::worktree::{Error, Worktree};

/// Worktrees to remember; beyond them, the oldest can no longer be removed.
const REMEMBERED: usize = 64;

/// Recent worktrees, each with the id of the token for which it was made.
#[derive(Debug, Default)]
pub(crate) struct Made(Mutex<Vec<(String, Worktree)>>);

#[derive(Debug)]
pub(crate) enum Stays {
    NotYours,
    /// The worktree has changes or commits that are not merged.
    HasWork,
    Git(Error),
}

impl Made {
    /// Makes a worktree for a session in this directory. Returns also the directory of the session.
    pub(crate) fn make(
        &self,
        token: String,
        dir: &Path,
        name: Option<&str>,
    ) -> Result<(PathBuf, Worktree), Error> {
        let mut made = self.lock();
        let worktree = Worktree::make(dir, name)?;
        let inside = worktree.inside(dir).inspect_err(|_| {
            worktree.remove().ok();
        })?;
        if made.len() == REMEMBERED {
            made.remove(0);
        }
        made.push((token, worktree.clone()));
        Ok((inside, worktree))
    }

    /// Removes a worktree without work in it.
    pub(crate) fn remove(&self, token: &str, path: &str) -> Result<(), Stays> {
        let mut made = self.lock();
        let at = made.iter().position(|(of, worktree)| of == token && worktree.path == path);
        let at = at.ok_or(Stays::NotYours)?;
        let now = Worktree::of(Path::new(path)).map_err(Stays::Git)?;
        if !now.is_some_and(|now| now.changed == 0 && now.unmerged == 0) {
            return Err(Stays::HasWork);
        }
        let (_, worktree) = made.remove(at);
        worktree.remove().map_err(Stays::Git)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, Worktree)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
