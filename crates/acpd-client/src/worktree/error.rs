use std::io;
use std::path::PathBuf;

pub type Result<T = ()> = std::result::Result<T, Error>;

/// Messages may quote git, names and files: escape them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{0}` exists")]
    Exists(String),
    #[error("cannot make `{}`: {source}", .path.display())]
    CannotMake { path: PathBuf, source: io::Error },
    #[error("the branch `{0}` exists")]
    BranchExists(String),
    #[error("`{0}` cannot name a branch")]
    BadName(String),
    #[error("`{}` is in no git repository", .0.display())]
    NoRepository(PathBuf),
    #[error("the repository `{}` has no commit yet", .0.display())]
    NoCommit(PathBuf),
    #[error("{0} came from no branch")]
    FromNone(String),
    #[error("the branch `{0}` is checked out nowhere")]
    NotCheckedOut(String),
    #[error("`{}` has changes that are not committed", .0.display())]
    Changes(PathBuf),
    #[error("{why}")]
    NotMerged { place: PathBuf, branch: String, why: Box<Error> },
    #[error("`{}` is not valid UTF-8", .0.display())]
    Path(PathBuf),
    /// Git printed a path that JSON cannot hold.
    #[error("git told a path that is not valid UTF-8")]
    NotUtf8,
    #[error("git {verb} failed: {said}")]
    Failed { verb: String, said: String },
    #[error("cannot run `git`: {0}")]
    CannotRun(#[source] io::Error),
}
