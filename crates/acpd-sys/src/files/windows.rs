//! A private file belongs to this user, and its access list names no other user, except the system
//! and administrators, who can do everything anyway.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::{AsHandle, AsRawHandle as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION};
use windows_sys::Win32::Security::Authorization::SE_FILE_OBJECT;
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, CreateDirectoryW, FILE_APPEND_DATA, FILE_BASIC_INFO,
    FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_GENERIC_READ,
    FILE_GENERIC_WRITE, FILE_READ_ATTRIBUTES, FILE_TYPE_DISK, FILE_WRITE_ATTRIBUTES, FileBasicInfo,
    GetFileInformationByHandle, GetFileInformationByHandleEx, GetFileType,
    MOVEFILE_REPLACE_EXISTING, MOVEFILE_WRITE_THROUGH, MoveFileExW, READ_CONTROL,
    SECURITY_IDENTIFICATION, SYNCHRONIZE, WRITE_DAC,
};

use super::{DirError, Stamp, Version, failed, no_regular_file, real_dir};
use crate::handle::check;
use crate::users::{ADMINISTRATORS, Access, Openness, PrivateTo, own_uid, who_may};

pub const NULL: &str = "NUL";
pub const LONGEST_PATH: usize = 32_767;
/// New files have the access list of their directory.
pub const HAS_MODES: bool = false;
/// No directory has pipes in it.
pub const NEVER_WAIT: u32 = 0;

/// Longest wait for readers of a file that is replaced, and the pause between two attempts.
const WHILE_READ: Duration = Duration::from_millis(500);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// From 1601, where Windows begins to count, to 1970, in units of 100 ns.
const EPOCH: i64 = 116_444_736_000_000_000;

pub fn private_dir(path: &Path) -> Result<(), DirError> {
    // A dangling link exists.
    if path.symlink_metadata().is_err() {
        make(path).map_err(|source| DirError::Create { path: path.to_owned(), source })?;
    }
    check_private_dir(path)
}

fn make(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty())
        && parent.symlink_metadata().is_err()
    {
        make(parent)?;
    }
    let private = PrivateTo::user_and_below()?;
    let text = path_of_any_length(path)?;
    // SAFETY: the text ends with a zero, and the attributes live as long as the call.
    match check(unsafe { CreateDirectoryW(text.as_ptr(), &private.attributes()) }) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn check_private_dir(path: &Path) -> Result<(), DirError> {
    real_dir(path)?;
    let mut options = OpenOptions::new();
    options.access_mode(READ_CONTROL | FILE_READ_ATTRIBUTES);
    options.custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT);
    let dir = options.open(path).map_err(|source| failed(path, source))?;
    let access = own_access(path, &dir)?;
    check_closed(path, access)
}

/// Does nothing: names are in the file system's own log.
pub fn sync_dir(_path: &Path) -> io::Result<()> {
    Ok(())
}

pub fn private_file(path: &Path) -> Result<File, DirError> {
    open_private(path, FILE_APPEND_DATA | FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES)
}

pub fn private_target(path: &Path) -> Result<File, DirError> {
    open_private(path, FILE_GENERIC_READ | FILE_GENERIC_WRITE)
}

fn open_private(path: &Path, rights: u32) -> Result<File, DirError> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    options.access_mode(rights | READ_CONTROL | WRITE_DAC | SYNCHRONIZE);
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).security_qos_flags(SECURITY_IDENTIFICATION);
    let file = match options.open(path) {
        Ok(file) => file,
        Err(_) if path.is_dir() => return Err(no_regular_file(path)),
        Err(source) => return Err(failed(path, source)),
    };
    if own_file(path, &file)?.other.is_some() {
        let closed = PrivateTo::user().and_then(|private| private.apply(&file));
        closed.map_err(|source| failed(path, source))?;
    }
    Ok(file)
}

pub fn secret_file(path: &Path) -> Result<File, DirError> {
    let mut options = OpenOptions::new();
    let file = options.read(true).security_qos_flags(SECURITY_IDENTIFICATION).open(path);
    let file = file.map_err(|source| failed(path, source))?;
    check_closed(path, own_file(path, &file)?)?;
    Ok(file)
}

fn own_file(path: &Path, file: &File) -> Result<Access, DirError> {
    let found = file.metadata().map_err(|source| failed(path, source))?;
    if found.is_symlink() {
        return Err(DirError::Symlink { path: path.to_owned() });
    }
    if !found.is_file() {
        return Err(no_regular_file(path));
    }
    own_access(path, file)
}

/// Returns the access of a file or directory that must belong to this user. The files of an
/// administrator's process may belong to all administrators.
fn own_access(path: &Path, file: &File) -> Result<Access, DirError> {
    let access = who_may(file.as_raw_handle(), SE_FILE_OBJECT);
    let access = access.map_err(|source| failed(path, source))?;
    if access.owner == own_uid() || access.owner == ADMINISTRATORS {
        return Ok(access);
    }
    Err(DirError::ForeignOwner { path: path.to_owned(), owner: access.owner })
}

fn check_closed(path: &Path, access: Access) -> Result<(), DirError> {
    match access.other {
        None => Ok(()),
        Some(mode) => Err(DirError::OpenToOthers { path: path.to_owned(), mode }),
    }
}

pub(super) fn openness(user: &Openness) -> String {
    format!("SID {user}")
}

pub fn close_command(path: &Path) -> String {
    let below = if path.is_dir() { "(OI)(CI)" } else { "" };
    let path = path.display();
    format!("icacls \"{path}\" /inheritance:r /grant:r \"*{}:{below}F\"", own_uid())
}

pub(super) fn move_command(path: &Path) -> String {
    let path = path.display();
    format!("move \"{path}\" \"{path}.old\"")
}

/// Options for a file that is as private as its directory.
pub fn private_options() -> OpenOptions {
    OpenOptions::new()
}

pub fn mode(_file: &impl AsHandle) -> io::Result<u32> {
    Ok(0)
}

pub fn set_mode(_file: &impl AsHandle, _mode: u32) -> io::Result<()> {
    Ok(())
}

pub(super) fn is_open_to_all(_file: &File) -> io::Result<bool> {
    Ok(false)
}

/// No directory has pipes or sockets in it.
pub fn is_no_file(_error: &io::Error) -> bool {
    false
}

/// A server of a pipe can identify this process, but not act as its user.
pub(super) fn open_to_read(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    match options.read(true).security_qos_flags(SECURITY_IDENTIFICATION).open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && path.is_dir() => Ok(None),
        Err(error) => Err(error),
        // SAFETY: the handle is open.
        Ok(file) if unsafe { GetFileType(file.as_raw_handle()) } == FILE_TYPE_DISK => {
            Ok(Some(file))
        }
        Ok(_) => Ok(None),
    }
}

/// Waits briefly for readers of the old file: an open file cannot be replaced.
pub fn put_in_place(file: &Path, of: &Path) -> io::Result<()> {
    let (file, of) = (path_of_any_length(file)?, path_of_any_length(of)?);
    let flags = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
    let end = Instant::now() + WHILE_READ;
    loop {
        // SAFETY: both names end with a zero.
        let moved = check(unsafe { MoveFileExW(file.as_ptr(), of.as_ptr(), flags) });
        let code = moved.as_ref().err().and_then(io::Error::raw_os_error).map(|code| code as u32);
        let is_open = matches!(code, Some(ERROR_ACCESS_DENIED | ERROR_SHARING_VIOLATION));
        if !is_open || Instant::now() >= end {
            return moved;
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Returns an absolute path with the prefix for paths of any length, ended by a zero.
pub(crate) fn path_of_any_length(path: &Path) -> io::Result<Vec<u16>> {
    let absolute = std::path::absolute(path)?;
    let text: Vec<u16> = absolute.as_os_str().encode_wide().collect();
    // A path without a drive has a prefix already, or is a server's.
    let has_drive = text.get(1) == Some(&u16::from(b':'));
    let prefix = if has_drive { r"\\?\" } else { "" };
    Ok(prefix.encode_utf16().chain(text).chain([0]).collect())
}

pub(crate) fn stamp_of(file: &File) -> io::Result<Stamp> {
    let mut info = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and the place is ours.
    check(unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut info) })?;
    let wide = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let index = wide(info.nFileIndexHigh, info.nFileIndexLow);
    let id = (u64::from(info.dwVolumeSerialNumber), index);
    Ok(Stamp { id, length: wide(info.nFileSizeHigh, info.nFileSizeLow) })
}

fn open_to_look(path: &Path, flags: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.access_mode(FILE_READ_ATTRIBUTES).security_qos_flags(SECURITY_IDENTIFICATION);
    options.custom_flags(FILE_FLAG_BACKUP_SEMANTICS | flags).open(path)
}

pub(super) fn stamp(path: &Path) -> io::Result<Stamp> {
    stamp_of(&open_to_look(path, FILE_FLAG_OPEN_REPARSE_POINT)?)
}

pub(super) fn version(path: &Path) -> io::Result<Version> {
    let file = open_to_look(path, 0)?;
    let mut info = FILE_BASIC_INFO::default();
    let size = size_of_val(&info) as u32;
    // SAFETY: the handle is open; the place is ours and of that size.
    check(unsafe {
        let place = (&raw mut info).cast();
        GetFileInformationByHandleEx(file.as_raw_handle(), FileBasicInfo, place, size)
    })?;
    let split = |time: i64| {
        let time = time - EPOCH;
        [time.div_euclid(10_000_000), time.rem_euclid(10_000_000) * 100]
    };
    let ([a, b], [c, d]) = (split(info.LastWriteTime), split(info.ChangeTime));
    Ok(Version { stamp: stamp_of(&file)?, changed: [a, b, c, d] })
}
