use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::libc::O_NOFOLLOW;

use super::{InstanceLock, LockError, failed, held, is_at, sign};

/// Opens or creates a lock file. Links are not followed.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).custom_flags(O_NOFOLLOW).open(path)
}

pub(super) fn try_lock(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

pub(super) fn try_lock_shared(file: &File) -> Result<(), TryLockError> {
    file.try_lock_shared()
}

pub(super) fn unlock(file: &File) -> io::Result<()> {
    file.unlock()
}

impl AsFd for InstanceLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl InstanceLock {
    /// Takes over the lock of the previous program in this process. No other process can get it in
    /// between.
    pub fn inherited(fd: OwnedFd, path: &Path) -> Result<InstanceLock, LockError> {
        let mut file = File::from(fd);
        let failed = |source| failed(path, source);
        if !is_at(&file, path).map_err(failed)? {
            return Err(held(path));
        }
        // Changes nothing if the lock is held. A file without a lock is locked or refused.
        file.try_lock().map_err(|_| held(path))?;
        sign(&mut file).map_err(failed)?;
        Ok(InstanceLock { file })
    }
}
