//! How files are told apart, and their contents.

/// Which file is at a path, and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Device and inode, or what the system has instead: they tell it from every other file that there is at this moment.
    pub id: (u64, u64),
    /// Size of the file in bytes.
    pub length: u64,
}

/// Which content a path leads to, as far as that can be seen without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    pub(crate) stamp: Stamp,
    /// Seconds and nanoseconds of the last change of the content, and of the file itself.
    pub(crate) changed: [i64; 4],
}

impl Version {
    /// When the content was changed (ms since the epoch).
    pub fn changed_at(&self) -> u64 {
        let [seconds, nanoseconds, ..] = self.changed;
        (seconds * 1000 + nanoseconds / 1_000_000).try_into().unwrap_or(0)
    }
}
