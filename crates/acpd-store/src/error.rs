use std::path::PathBuf;

use rusqlite::ErrorCode;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("disk is full: {0}")]
    DiskFull(String),
    #[error("database file cannot be read or written: {0}")]
    Io(String),
    /// The lock was not free in time, or the file system has no locks.
    #[error("database cannot be locked: {0}")]
    Busy(String),
    /// The files were moved or replaced: new writes would be lost.
    #[error("{0}")]
    Gone(String),
    #[error("database is damaged: {0}")]
    Damaged(String),
    /// A session or position beyond the range of a journal key.
    #[error("journal has no room for position {seq} of session {session}")]
    Range { session: u32, seq: u64 },
    /// SQLite refused for a reason that should not occur.
    #[error("database error: {0}")]
    Other(String),
}

impl StoreError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            StoreError::DiskFull(_) => {
                Some("free space on the disk; acpd then continues by itself")
            }
            StoreError::Gone(_) => Some(GONE_HINT),
            StoreError::Io(_) => Some("check the disk and the permissions of the state directory"),
            StoreError::Busy(_) => Some(
                "close the other program that has acpd.db open; on a network file system (NFS), which may have no \
                     locks, set ACPD_STATE_DIR to a directory on a local disk",
            ),
            StoreError::Damaged(_) => Some(DAMAGED_HINT),
            StoreError::Range { .. } | StoreError::Other(_) => None,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::DiskFull(text),
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied,
            ) => StoreError::Io(text),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy(text),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged(text),
            Some(_) => StoreError::Other(text),
            // A column does not hold what the schema says.
            None => StoreError::Damaged(text),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    File(#[from] acpd_sys::files::DirError),
    #[error("`{path}` is empty, but it held a journal before")]
    Emptied { path: PathBuf },
    /// A database of another program, or of an acpd before its first release.
    #[error("`{path}` was not written by a released acpd, and cannot be read")]
    Unreleased { path: PathBuf },
    #[error("`{path}` has schema {found}, this acpd knows schemas up to {known}")]
    Newer { path: PathBuf, found: u32, known: u32 },
    /// The file system has no shared memory for the write-ahead log (network file systems).
    #[error("`{path}` does not support a write-ahead log (journal mode is {mode})")]
    NoLog { path: PathBuf, mode: String },
    /// A migration failed; nothing was changed.
    #[error("schema of `{path}` could not be brought up to date: {source}")]
    Migrate { path: PathBuf, source: rusqlite::Error },
    #[error("`{path}` could not be opened: {source}")]
    Store { path: PathBuf, source: StoreError },
    #[error("a thread for `{path}` could not be started: {source}")]
    Thread { path: PathBuf, source: std::io::Error },
}

impl OpenError {
    pub fn hint(&self) -> Option<String> {
        match self {
            OpenError::File(error) => error.hint(),
            OpenError::Migrate { .. } | OpenError::Thread { .. } => None,
            OpenError::Emptied { path } => Some(format!(
                "put a backup in its place, or remove `{}` to start an empty journal",
                path.display()
            )),
            OpenError::Unreleased { path } => {
                Some(format!("move `{}` away to start with an empty journal", path.display()))
            }
            OpenError::Newer { path, .. } => Some(format!(
                "run the acpd that wrote it or a newer one, or move `{}` away to start with an \
                 empty journal",
                path.display()
            )),
            OpenError::NoLog { .. } => Some("put the state directory on a local disk".to_owned()),
            OpenError::Store { source, .. } => source.hint().map(str::to_owned),
        }
    }
}

const GONE_HINT: &str = "put that same file back, and acpd continues by itself; `acpctl daemon restart` continues with \
                         what is there now, and what is not there is lost";
const DAMAGED_HINT: &str = "put a backup in its place with `acpctl restore FILE`, or move acpd.db, acpd.db-wal and \
                            acpd.db-shm away and start again without what they hold";
