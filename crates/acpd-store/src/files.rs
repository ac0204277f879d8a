//! Notices when the files of an open database are removed, replaced or cut.
//!
//! SQLite keeps writing into such files, and the next daemon would not find these writes. A file
//! that was cut is recognized by its length. If a checkpoint makes it longer again before the next
//! commit, the cut is not noticed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use acpd_sys::files::{Stamp, stamp};

use crate::error::StoreError;

/// The database, its write-ahead log, and the index of that log.
#[derive(Debug)]
pub(crate) struct Files {
    database: Watched,
    /// Least length of the database file.
    shortest: u64,
    /// The database has become shorter than its file: emptying the log will cut the file.
    is_cut_expected: bool,
    others: [Watched; 2],
}

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    /// State at the last check; `None` before the file exists.
    seen: Option<Stamp>,
}

impl Files {
    /// Takes the files of the open database. `length` counts its log.
    pub(crate) fn of(path: &Path, length: u64) -> Files {
        let others = ["-wal", "-shm"].map(|end| Watched::of(with_end(path, end)));
        let database = Watched::of(path.to_owned());
        // A daemon may have died after it returned pages, before the file was cut.
        let on_disk = database.length();
        let (shortest, is_cut_expected) = (on_disk.min(length), on_disk > length);
        Files { database, shortest, is_cut_expected, others }
    }

    /// Checks that new writes will be found. The error names the file that was replaced. Costs
    /// three `stat` calls.
    pub(crate) fn check(&mut self) -> Result<(), StoreError> {
        self.database.check(self.shortest)?;
        if !self.is_cut_expected {
            self.shortest = self.database.length();
        }
        self.others.iter_mut().try_for_each(|file| file.check(0))
    }

    /// Notes that the database now has this length; its file is cut at any time from now on.
    pub(crate) fn gets_shorter(&mut self, length: u64) {
        self.shortest = self.shortest.min(length);
        self.is_cut_expected = true;
    }

    pub(crate) fn is_cut_expected(&self) -> bool {
        self.is_cut_expected
    }

    /// Compares the file with the length of the database, while nothing empties the log. A file that
    /// is longer will still be cut; one that is not was cut already.
    pub(crate) fn has_length(&mut self, length: u64) -> Result<(), StoreError> {
        self.database.check(self.shortest)?;
        self.is_cut_expected = self.database.length() > length;
        Ok(())
    }
}

impl Watched {
    fn of(path: PathBuf) -> Watched {
        // A file that cannot be read now is read by the next check.
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

pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Removes the files whose names are this one plus each of these ends. The error has the path.
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
