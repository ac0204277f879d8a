//! One byte far behind the end of the file is locked: a locked range cannot be read.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::AsRawHandle as _;
use std::path::Path;

use windows_sys::Win32::Foundation::ERROR_LOCK_VIOLATION;
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_OPEN_REPARSE_POINT, LOCK_FILE_FLAGS, LOCKFILE_EXCLUSIVE_LOCK,
    LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, SECURITY_IDENTIFICATION, UnlockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

use crate::handle::check;

pub(super) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.security_qos_flags(SECURITY_IDENTIFICATION);
    let file = options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path)?;
    if file.metadata()?.file_type().is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is a symbolic link"))
    }
}

fn place() -> OVERLAPPED {
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.OffsetHigh = 0x4000_0000;
    place
}

fn try_lock_with(file: &File, flags: LOCK_FILE_FLAGS) -> Result<(), TryLockError> {
    let flags = flags | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the handle is open; it was not opened for overlapped calls, so the place is not used
    // after the call.
    let locked = check(unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &mut place()) });
    locked.map_err(|error| {
        if error.raw_os_error() == Some(ERROR_LOCK_VIOLATION as i32) {
            TryLockError::WouldBlock
        } else {
            TryLockError::Error(error)
        }
    })
}

pub(super) fn try_lock(file: &File) -> Result<(), TryLockError> {
    try_lock_with(file, LOCKFILE_EXCLUSIVE_LOCK)
}

pub(super) fn try_lock_shared(file: &File) -> Result<(), TryLockError> {
    try_lock_with(file, 0)
}

pub(super) fn unlock(file: &File) -> io::Result<()> {
    // SAFETY: as above.
    check(unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &mut place()) })
}
