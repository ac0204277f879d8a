//! Worktrees of git that were made for sessions, while those may still not begin.
//!
//! One is made at a time: two must not find the same free number.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use acpd_client::worktree::{Error, Worktree};

/// Worktrees that are remembered; of more the first one cannot be taken back.
const REMEMBERED: usize = 64;

/// Recent worktrees, each with the id of the token for which it was made.
#[derive(Debug, Default)]
pub(crate) struct Made(Mutex<Vec<(String, Worktree)>>);

#[derive(Debug)]
pub(crate) enum Stays {
    /// No such worktree was made for this token.
    NotYours,
    /// The worktree has changes or commits that are not merged.
    HasWork,
    Git(Error),
}

impl Made {
    /// Makes one for a session in this directory. Returns where the session works, too.
    pub(crate) fn make(
        &self,
        token: String,
        dir: &Path,
        name: Option<&str>,
    ) -> Result<(PathBuf, Worktree), Error> {
        let mut made = self.lock();
        let worktree = Worktree::make(dir, name)?;
        let inside = worktree.inside(dir).inspect_err(|_| {
            // Nothing works in it.
            worktree.remove().ok();
        })?;
        if made.len() == REMEMBERED {
            made.remove(0);
        }
        made.push((token, worktree.clone()));
        Ok((inside, worktree))
    }

    /// Removes one in which nothing is.
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
