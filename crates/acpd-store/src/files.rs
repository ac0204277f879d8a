//! Notices when the files of an open database are removed, replaced or cut.
//!
//! SQLite keeps writing into such files, and the next daemon finds nothing of it. What is looked at is the length: a cut that
//! a checkpoint has filled up again before the next commit is not noticed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use acpd_sys::files::{Stamp, stamp};

use crate::error::StoreError;

/// The database, its write-ahead log, and the index of that.
#[derive(Debug)]
pub(crate) struct Files {
    database: Watched,
    /// The database file never gets shorter than this.
    shortest: u64,
    /// The database has become shorter than its file, which is cut to `shortest` or more when the log is emptied.
    is_cut_expected: bool,
    others: [Watched; 2],
}

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    /// As it was when it was last looked at; none before it is there.
    seen: Option<Stamp>,
}

impl Files {
    /// Of the database at this path, which is open and has been read. With its log it has this length.
    pub(crate) fn of(path: &Path, length: u64) -> Files {
        let others = ["-wal", "-shm"].map(|end| Watched::of(with_end(path, end)));
        let database = Watched::of(path.to_owned());
        // A daemon may have died between what it gave back and the cut.
        let on_disk = database.length();
        let (shortest, is_cut_expected) = (on_disk.min(length), on_disk > length);
        Files { database, shortest, is_cut_expected, others }
    }

    /// Makes sure that what is written now is there afterwards. Costs three looks at the file system. The error
    /// names the file that is another one by now.
    pub(crate) fn check(&mut self) -> Result<(), StoreError> {
        self.database.check(self.shortest)?;
        if !self.is_cut_expected {
            self.shortest = self.database.length();
        }
        self.others.iter_mut().try_for_each(|file| file.check(0))
    }

    /// The database has become shorter, and has this length now. Its file follows at any time.
    pub(crate) fn gets_shorter(&mut self, length: u64) {
        self.shortest = self.shortest.min(length);
        self.is_cut_expected = true;
    }

    /// Returns whether the file may still be cut.
    pub(crate) fn is_cut_expected(&self) -> bool {
        self.is_cut_expected
    }

    /// Takes the length of the database while its log is not emptied: a file that is not longer is no longer cut.
    pub(crate) fn has_length(&mut self, length: u64) -> Result<(), StoreError> {
        self.database.check(self.shortest)?;
        self.is_cut_expected = self.database.length() > length;
        Ok(())
    }
}

impl Watched {
    fn of(path: PathBuf) -> Watched {
        // One that cannot be looked at now is looked at later.
        let seen = stamp(&path).ok().flatten();
        Watched { path, seen }
    }

    fn length(&self) -> u64 {
        self.seen.as_ref().map_or(0, |seen| seen.length)
    }

    fn check(&mut self, shortest: u64) -> Result<(), StoreError> {
        let gone = |what: &str| {
            Err(StoreError::Gone(format!("`{}` was {what} while acpd runs", self.path.display())))
        };
        let now = stamp(&self.path).map_err(|error| StoreError::Io(error.to_string()))?;
        match (&self.seen, now) {
            (Some(_), None) => return gone("removed"),
            (Some(seen), Some(now)) if seen.id != now.id => return gone("replaced"),
            (Some(_), Some(now)) if now.length < shortest => return gone("cut"),
            (_, Some(now)) => self.seen = Some(now),
            (None, None) => {}
        }
        Ok(())
    }
}

/// Returns the name of a file next to another one.
pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Removes the files that have the name of this one with each of these ends, if they are there. The error comes with the
/// file.
pub(crate) fn remove_files(path: &Path, ends: &[&str]) -> Result<(), (PathBuf, io::Error)> {
    for end in ends {
        let file = with_end(path, end);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err((file, error)),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_file_is_cut_as_far_as_the_database_became_shorter_and_no_further() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("acpd.db");
        let file = File::create(&path).unwrap();
        let is_cut = |files: &mut Files, length: u64| {
            file.set_len(length).unwrap();
            files.check().is_err_and(|error| error.to_string().contains("was cut"))
        };
        file.set_len(100).unwrap();
        let mut files = Files::of(&path, 100);
        assert!(!is_cut(&mut files, 120) && is_cut(&mut files, 110));
        assert!(!is_cut(&mut files, 120));

        files.gets_shorter(80);
        files.gets_shorter(60);
        assert!(is_cut(&mut files, 59) && !is_cut(&mut files, 80));
        files.has_length(60).unwrap();
        assert!(files.is_cut_expected(), "it is cut further");
        // A file that has grown again before it was cut is not cut.
        files.has_length(90).unwrap();
        assert!(!files.is_cut_expected());
        assert!(!is_cut(&mut files, 80) && is_cut(&mut files, 79));

        // Room that a daemon has given back which died before the cut.
        file.set_len(100).unwrap();
        let mut files = Files::of(&path, 60);
        assert!(!is_cut(&mut files, 60) && is_cut(&mut files, 50));
    }
}
