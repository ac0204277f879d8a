//! Why git did not do something. The way out depends on who asks, so it is theirs to say.

use std::io;
use std::path::PathBuf;

pub type Result<T = ()> = std::result::Result<T, Error>;

/// Why something was not done. Its words may quote git, names and files: escape them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The place of a new worktree is taken.
    #[error("`{0}` exists")]
    Exists(String),
    /// The directory of the worktree cannot be made.
    #[error("cannot make `{}`: {source}", .path.display())]
    CannotMake { path: PathBuf, source: io::Error },
    #[error("the branch `{0}` exists")]
    BranchExists(String),
    /// No branch can have the name.
    #[error("`{0}` cannot name a branch")]
    BadName(String),
    /// The directory is in no repository.
    #[error("`{}` is in no git repository", .0.display())]
    NoRepository(PathBuf),
    /// The repository has no commit.
    #[error("the repository `{}` has no commit yet", .0.display())]
    NoCommit(PathBuf),
    /// This branch was not made from another one.
    #[error("{0} came from no branch")]
    FromNone(String),
    /// The branch that it came from is not there to merge into.
    #[error("the branch `{0}` is checked out nowhere")]
    NotCheckedOut(String),
    /// A merge might lose what is there.
    #[error("`{}` has changes that are not committed", .0.display())]
    Changes(PathBuf),
    /// A merge was taken back.
    #[error("{why}")]
    NotMerged { place: PathBuf, branch: String, why: Box<Error> },
    /// JSON cannot hold a path.
    #[error("`{}` is not valid UTF-8", .0.display())]
    Path(PathBuf),
    /// A path that git printed, and that JSON cannot hold.
    #[error("git told a path that is not valid UTF-8")]
    NotUtf8,
    #[error("git {verb} failed: {said}")]
    Failed { verb: String, said: String },
    /// There is no git, or it cannot be started.
    #[error("cannot run `git`: {0}")]
    CannotRun(#[source] io::Error),
}
