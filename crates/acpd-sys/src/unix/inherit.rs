//! Descriptors that pass from one program to the next in the same process: from a service manager to
//! us, and from us to the program that takes our place.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::path::Path;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::lock::{InstanceLock, LockError, failed, held, is_at, sign};
use crate::os;

/// A descriptor of our own for what was handed over under this number. The number itself stays open.
///
/// To be called at the start, for a number that a service manager names: nothing else has closed or
/// taken it by then.
pub fn duplicate(handed_over: RawFd) -> io::Result<OwnedFd> {
    handed(handed_over)?.try_clone_to_owned()
}

/// The descriptor that the program before us has left under this number. To be called once, at the
/// start.
pub fn take(left: RawFd) -> io::Result<OwnedFd> {
    fcntl(handed(left)?, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    // SAFETY: it is open, as the call above has shown, and was left to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(left) })
}

/// Leaves a descriptor open for the program that takes our place; its number.
pub fn leave(fd: BorrowedFd<'_>) -> io::Result<RawFd> {
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(fd.as_raw_fd())
}

/// Like [`leave`], for the descriptor that was handed over to us under this number.
pub fn leave_number(handed_over: RawFd) -> io::Result<()> {
    leave(handed(handed_over)?).map(drop)
}

/// Keeps every descriptor but the standard ones from the next program: our parent may have left files, locks
/// and pipes open that are none of its business. Safe between fork and exec.
pub(crate) fn keep_from_next_program() {
    if os::keep_from_next_program() {
        return;
    }
    for number in 3..LAST_DESCRIPTOR {
        // SAFETY: as above; a number that is not open is refused.
        unsafe { nix::libc::fcntl(number, nix::libc::F_SETFD, nix::libc::FD_CLOEXEC) };
    }
}

/// Where the system cannot mark all descriptors at once, those below this number are.
const LAST_DESCRIPTOR: RawFd = 4_096;

/// A descriptor that another program has left open for us under this number.
pub(crate) fn handed<'a>(number: RawFd) -> io::Result<BorrowedFd<'a>> {
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: it is only looked at and copied, by calls that refuse a closed one.
    Ok(unsafe { BorrowedFd::borrow_raw(number) })
}

impl AsFd for InstanceLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl InstanceLock {
    /// Takes over the lock of this process's earlier program: no other process can get it in between.
    pub fn inherited(fd: OwnedFd, path: &Path) -> Result<InstanceLock, LockError> {
        let mut file = File::from(fd);
        let failed = |source| failed(path, source);
        if !is_at(&file, path).map_err(failed)? {
            return Err(held(path));
        }
        // Held already, so this changes nothing; a file that is not is locked, or refused.
        file.try_lock().map_err(|_| held(path))?;
        sign(&mut file).map_err(failed)?;
        Ok(InstanceLock { file })
    }
}
