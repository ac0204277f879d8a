//! Errors of git as errors of verbs ([`acpd_client::worktree`]).

use std::io;

use acpd_api::{ExitCode, Untrusted};
use acpd_client::worktree::Error;
pub(crate) use acpd_client::worktree::{Worktree, has_changes, worktree_of};

use crate::error::CommandError;
use crate::text::{Text, shell_word, text};

impl From<Error> for CommandError {
    fn from(error: Error) -> CommandError {
        let message = Text::from(Untrusted::from(error.to_string()));
        let usage = || CommandError::usage(message.clone());
        match error {
            Error::Exists(_) => usage().hint(
                "continue its session with `acpctl run --resume SESSION …`, or choose another name: \
                 `--worktree=NAME`",
            ),
            Error::BranchExists(branch) => usage().hint(text!(
                "choose another name: `--worktree=NAME`; or delete it: git branch -d {}",
                shell_word(&branch.into())
            )),
            Error::BadName(_) => {
                usage().hint("choose a name of letters, digits and dashes: `--worktree=NAME`")
            }
            Error::NoRepository(_) => {
                usage().hint("create one with `git init`, or leave out `--worktree`")
            }
            Error::NoCommit(_) => usage().hint("commit something first"),
            Error::FromNone(branch) => {
                usage().hint(text!("merge it yourself: git merge {}", shell_word(&branch.into())))
            }
            Error::NotCheckedOut(_) => usage().hint("check it out (git switch), then try again"),
            Error::Changes(_) => {
                usage().hint("commit or stash them, then try again")
            }
            Error::NotMerged { place, branch, why } => CommandError::from(*why).hint(text!(
                "nothing was merged; merge it yourself in `{}`: git merge {}",
                place,
                Untrusted::from(branch)
            )),
            Error::Path(_) | Error::NotUtf8 => {
                usage().hint("agents need paths that JSON can hold; rename it")
            }
            Error::Failed { .. } | Error::CannotMake { .. } => CommandError::new(ExitCode::Error, message),
            Error::CannotRun(error) => {
                let failed = CommandError::new(ExitCode::Error, message);
                match error.kind() {
                    io::ErrorKind::NotFound => failed.hint("install git, or leave out `--worktree`"),
                    _ => failed,
                }
            }
        }
    }
}
