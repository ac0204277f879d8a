//! Notices when the files of an open database are removed, replaced or cut.
//!
//! SQLite keeps writing into such files, and the next daemon finds nothing of it.

use std::path::{Path, PathBuf};

use acpd_sys::file::{Stamp, stamp};

use crate::error::StoreError;

/// The database, its write-ahead log, and the index of that.
#[derive(Debug)]
pub(crate) struct Files(Vec<Watched>);

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    /// As it was when it was last looked at; none before it is there.
    seen: Option<Stamp>,
    /// It never gets shorter.
    only_grows: bool,
}

impl Files {
    /// Of the database at this path, which is open and has been read.
    pub(crate) fn of(path: &Path) -> Files {
        let beside = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let files = [(path.to_owned(), true), (beside("-wal"), false), (beside("-shm"), false)];
        let watched = files.map(|(path, only_grows)| {
            // One that cannot be looked at now is looked at later.
            let seen = stamp(&path).ok().flatten();
            Watched { path, seen, only_grows }
        });
        Files(watched.into())
    }

    /// Makes sure that what is written now is there afterwards. Costs three looks at the file system. The error
    /// names the file that is another one by now.
    pub(crate) fn check(&mut self) -> Result<(), StoreError> {
        self.0.iter_mut().try_for_each(Watched::check)
    }
}

impl Watched {
    fn check(&mut self) -> Result<(), StoreError> {
        let gone = |what: &str| {
            Err(StoreError::Gone(format!("`{}` was {what} while acpd runs", self.path.display())))
        };
        let now = stamp(&self.path).map_err(|error| StoreError::Io(error.to_string()))?;
        match (&self.seen, now) {
            (Some(_), None) => return gone("removed"),
            (Some(seen), Some(now)) if seen.id != now.id => return gone("replaced"),
            (Some(seen), Some(now)) if self.only_grows && now.length < seen.length => {
                return gone("cut");
            }
            (_, Some(now)) => self.seen = Some(now),
            (None, None) => {}
        }
        Ok(())
    }
}
