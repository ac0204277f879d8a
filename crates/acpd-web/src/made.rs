//! Git worktrees that were made for sessions, in case a session does not begin.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use acpd_client::worktree::{Error, Worktree};
use axum::http::StatusCode;

use crate::refusal::Refusal;

/// Worktrees to remember; beyond them, the oldest can no longer be removed.
const REMEMBERED: usize = 64;

/// Recent worktrees, each with the id of the token for which it was made. They are made one at a
/// time: two must not find the same free number.
#[derive(Debug, Default)]
pub(crate) struct Made(Mutex<Vec<(String, Worktree)>>);

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
    pub(crate) fn remove(&self, token: &str, path: &str) -> Result<(), Refusal> {
        let stays = |why| {
            let hint = "`acpctl session worktree` shows and removes worktrees";
            Refusal::new(StatusCode::CONFLICT, why, hint)
        };
        let mut made = self.lock();
        let at = made.iter().position(|(of, worktree)| of == token && worktree.path == path);
        let at = at.ok_or_else(|| stays("no worktree was made there for you just now"))?;
        let now = Worktree::of(Path::new(path))?;
        if !now.is_some_and(|now| now.changed == 0 && now.unmerged == 0) {
            return Err(stays("the worktree has work in it"));
        }
        let (_, worktree) = made.remove(at);
        Ok(worktree.remove()?)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, Worktree)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
