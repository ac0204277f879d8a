//! Windows: processes by handle, Job Objects, SIDs, named pipes.
//!
//! What takes the place of what:
//!
//! | Unix | here | where |
//! | --- | --- | --- |
//! | user id | the SID of the process's token | `user` |
//! | mode 0700 | a protected DACL with one entry, for that SID | `security`, `dir` |
//! | Unix socket | a named pipe; its owner is the user, its DACL admits that SID alone | `socket` |
//! | process group, subreaper | a Job Object that ends with its last handle | `job` |
//! | `SIGTERM` to the group | `CTRL_BREAK` to the console's group | `job` |
//! | `SIGKILL` | `TerminateJobObject`, `TerminateProcess` | `job`, `child` |
//! | zombie | an open handle keeps the pid | `child` |
//! | `flock` | `LockFileEx` behind the end of the file, so that the file stays readable | here |
//! | fork twice, `setsid` | no console, a group of its own, out of the caller's Job | `startup` |
//!
//! Handles are [`OwnedHandle`]s from the call that makes them on. `unsafe` is a call of the system and nothing else;
//! what it gets lives longer than the call.

pub(crate) mod job;
mod security;

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io;
use std::net::SocketAddr;
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use etcetera::base_strategy::BaseStrategy;
use windows_sys::Wdk::System::Threading::{NtQueryInformationProcess, ProcessBasicInformation};
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_INVALID_PARAMETER, ERROR_LOCK_VIOLATION, ERROR_SHARING_VIOLATION,
    FILETIME, WAIT_OBJECT_0,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_BASIC_INFO, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_READ_ATTRIBUTES, FILE_TYPE_DISK, FileBasicInfo,
    GetFileInformationByHandle, GetFileInformationByHandleEx, GetFileType, LOCK_FILE_FLAGS,
    LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, MOVEFILE_REPLACE_EXISTING,
    MOVEFILE_WRITE_THROUGH, MoveFileExW, SECURITY_IDENTIFICATION, UnlockFileEx,
};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::IO::OVERLAPPED;
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::RemoteDesktop::ProcessIdToSessionId;
use windows_sys::Win32::System::SystemInformation::{GetSystemTimeAsFileTime, GetTickCount64};
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, PROCESS_BASIC_INFORMATION, PROCESS_NAME_WIN32,
    PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, QueryFullProcessImageNameW,
    WaitForSingleObject,
};

use crate::handle::{check, open_process, owned};
use crate::process_table::{Condition, Entry, ExitKind, ProcessId};
use crate::stamp::{Stamp, Version};
use crate::user::{Openness, UserId, own_user, user_of_process};

pub(crate) use job::{members, signal_group};
pub(crate) use security::{Access, PrivateTo, who_may};

/// How long a file may be open that another one is to replace, and from one look at that to the next.
const WHILE_READ: Duration = Duration::from_millis(500);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The longest name of a pipe, in characters.
pub(crate) const SOCKET_PATH_LIMIT: usize = 256;

/// Nothing is run for this yet.
pub(crate) const AWAKE: &[&str] = &[];

/// Opens files and addresses with the programs that the user has chosen.
pub(crate) const OPENER: &str = "explorer";

/// `true` where all below an agent's process is the agent's: the system's process for our console is not.
pub(crate) const WHAT_IS_BELOW_US_IS_ITS: bool = false;

/// The variable that names the home directory.
pub(crate) const HOME: &str = "USERPROFILE";

/// From 1601, where Windows begins to count, to 1970, in units of 100 nanoseconds.
const EPOCH: i64 = 116_444_736_000_000_000;

/// Position of the locked byte: one that no lock file will ever have, since locked bytes cannot be read.
const LOCKED_AT: u32 = 0x4000_0000;

/// Nothing shows notifications yet.
pub(crate) fn notification(_title: &str, _body: &str) -> Option<Vec<String>> {
    None
}

pub(crate) fn since_boot() -> Duration {
    // SAFETY: it only returns a number.
    Duration::from_millis(unsafe { GetTickCount64() })
}

/// Below the user's local data: there is no directory that ends with the login.
pub(crate) fn fallback_runtime_dir() -> PathBuf {
    let local = std::env::var_os("LOCALAPPDATA").map_or_else(std::env::temp_dir, PathBuf::from);
    local.join("acpd").join("run")
}

/// Local data, and not roaming data: a database is no file to be copied at each login.
pub(crate) fn state_base(base: &impl BaseStrategy) -> PathBuf {
    base.cache_dir()
}

/// The pipe that stands for the socket of this name below the runtime directory. Names of pipes are the
/// machine's, so this one has the user, the login and the directory in it.
pub(crate) fn socket_at(dir: &Path, name: &str) -> PathBuf {
    let session = session_of(std::process::id());
    // Paths are compared by the system without regard to case.
    let place = dir.as_os_str().to_ascii_lowercase();
    let place = BuildHasherDefault::<DefaultHasher>::default().hash_one(place);
    format!(r"\\.\pipe\acpd-{}-{session}-{place:016x}-{name}", own_user()).into()
}

/// The number of the login that a process belongs to.
pub(crate) fn session_of(pid: u32) -> u32 {
    let mut session = 0;
    // SAFETY: it writes a number to where it is told.
    unsafe { ProcessIdToSessionId(pid, &raw mut session) };
    session
}

/// Returns whether Windows takes a file of this name for a device, with any ending.
pub(crate) fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = |prefix| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|digit| digit.is_ascii_digit()))
    };
    ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&&*stem)
        || numbered("COM")
        || numbered("LPT")
}

pub(crate) fn openness(who: Openness) -> String {
    format!("SID {who}")
}

/// The command that closes a directory to others.
pub(crate) fn closing(path: &str) -> String {
    format!("icacls {path} /inheritance:r /grant:r \"*{}:(OI)(CI)F\"", own_user())
}

/// The command that moves a file away.
pub(crate) fn moving_away(path: &str) -> String {
    format!("move {path} {}.old\"", path.trim_end_matches('"'))
}

/// A path as a person would type it: no path has a quotation mark in it.
pub(crate) fn shell_word(path: &Path) -> String {
    format!("\"{}\"", path.display())
}

impl fmt::Display for ExitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The codes of the system are negative here, and known by their hexadecimal digits.
            ExitKind::Code(code) if *code < 0 => write!(f, "exit code {:#010x}", *code as u32),
            ExitKind::Code(code) => write!(f, "exit code {code}"),
            ExitKind::Signal(number) => write!(f, "signal {number}"),
        }
    }
}

impl From<ExitStatus> for ExitKind {
    fn from(status: ExitStatus) -> ExitKind {
        ExitKind::Code(status.code().unwrap_or_default())
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as on Linux, where it can fail")]
pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// Opens a process to look at it, and to wait for its end.
pub(crate) fn open(pid: u32) -> io::Result<OwnedHandle> {
    open_process(pid, PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE)
}

/// The process with this pid; `None` if there is none, an error if the system does not say.
pub(crate) fn look_up(pid: u32) -> io::Result<Option<Entry>> {
    let process = match open(pid) {
        Ok(process) => process,
        Err(error) if error.raw_os_error() == Some(ERROR_INVALID_PARAMETER as i32) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let id = ProcessId { pid, start: started_at(&process)? };
    let condition = if has_ended(&process) { Condition::Ended } else { Condition::Running };
    // A process that ends no longer has a token; its user does not matter then.
    let uid = match user_of_process(&process) {
        Err(_) if has_ended(&process) => own_user(),
        user => user?,
    };
    let parent = parent_of(&process, id.start)?;
    // Nothing here is a group or a session: each process counts as its own.
    Ok(Some(Entry { id, parent, group: pid, session: pid, uid, condition }))
}

/// When the process was started: units of 100 nanoseconds since 1601.
pub(crate) fn started_at(process: &OwnedHandle) -> io::Result<u64> {
    let mut times = [FILETIME::default(); 4];
    let [created, exited, kernel, user] = &mut times;
    // SAFETY: the handle is open, and the four places are ours.
    check(unsafe { GetProcessTimes(process.as_raw_handle(), created, exited, kernel, user) })?;
    Ok(number(*created))
}

fn number(time: FILETIME) -> u64 {
    u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)
}

pub(crate) fn has_ended(process: &OwnedHandle) -> bool {
    // SAFETY: the handle is open.
    unsafe { WaitForSingleObject(process.as_raw_handle(), 0) == WAIT_OBJECT_0 }
}

/// The pid of the process that started this one; 0 if that has ended, or is hidden. The system goes on naming who has ended, and
/// gives its pid to others: who is younger than its child is not its parent. Where the clock was set back between the two starts,
/// a parent is not known as one.
fn parent_of(process: &OwnedHandle, start: u64) -> io::Result<u32> {
    let mut info = PROCESS_BASIC_INFORMATION::default();
    // SAFETY: the handle is open; the place is ours and of the size that is given.
    let status = unsafe {
        NtQueryInformationProcess(
            process.as_raw_handle(),
            ProcessBasicInformation,
            (&raw mut info).cast(),
            size_of_val(&info) as u32,
            std::ptr::null_mut(),
        )
    };
    if status < 0 {
        return Err(io::Error::other(format!("NTSTATUS {status:#010x}")));
    }
    let pid = info.InheritedFromUniqueProcessId as u32;
    let is_there = open(pid).is_ok_and(|parent| {
        !has_ended(&parent) && started_at(&parent).is_ok_and(|started| started <= start)
    });
    Ok(if is_there { pid } else { 0 })
}

/// Every process that can be looked at.
pub(crate) fn scan() -> io::Result<Vec<Entry>> {
    // Processes that end meanwhile or are hidden are left out.
    Ok(pids()?.into_iter().filter_map(|pid| look_up(pid).ok().flatten()).collect())
}

pub(crate) fn pids() -> io::Result<Vec<u32>> {
    // SAFETY: it only returns a handle.
    let snapshot = owned(unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) })?;
    let size = size_of::<PROCESSENTRY32W>() as u32;
    let mut line = PROCESSENTRY32W { dwSize: size, ..PROCESSENTRY32W::default() };
    let mut found = Vec::new();
    // SAFETY: the handle is open, and the line says its own size; as below.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut line) };
    while more != 0 {
        found.push(line.th32ProcessID);
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut line) };
    }
    Ok(found)
}

/// There are no subreapers here: processes below us may be anywhere.
pub(crate) fn scan_below() -> io::Result<Vec<Entry>> {
    scan()
}

/// Children are not listed here: the caller looks at all processes.
pub(crate) fn children(_pid: u32) -> io::Result<Vec<u32>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Environments of others are in their memory alone.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
pub(crate) fn environ(_pid: u32) -> io::Result<Option<Vec<u8>>> {
    Ok(None)
}

/// Returns whether the process was started since this boot, as far as clocks tell.
pub(crate) fn is_of_this_boot(id: ProcessId) -> bool {
    let mut now = FILETIME::default();
    // SAFETY: the place is ours.
    unsafe { GetSystemTimeAsFileTime(&raw mut now) };
    let (now, up) = (number(now), since_boot().as_millis() as u64 * 10_000);
    (now.saturating_sub(up)..=now).contains(&id.start)
}

/// A program that runs cannot be replaced, so its path leads to it.
pub(crate) fn running_program(path: &Path) -> PathBuf {
    path.to_owned()
}

pub(crate) fn name_of(pid: u32) -> Option<String> {
    let process = open(pid).ok()?;
    let mut name = [0; 1024];
    let mut length = name.len() as u32;
    // SAFETY: the handle is open, and the buffer is ours and of that length.
    let told = unsafe {
        let (process, name) = (process.as_raw_handle(), name.as_mut_ptr());
        QueryFullProcessImageNameW(process, PROCESS_NAME_WIN32, name, &raw mut length)
    };
    check(told).ok()?;
    let path = PathBuf::from(String::from_utf16_lossy(&name[..length as usize]));
    Some(path.file_stem()?.to_string_lossy().into_owned())
}

pub(crate) fn rss_bytes(pid: u32) -> io::Result<u64> {
    Ok(memory_of(pid)?.WorkingSetSize as u64)
}

pub(crate) fn anonymous_bytes(pid: u32) -> io::Result<u64> {
    Ok(memory_of(pid)?.PagefileUsage as u64)
}

fn memory_of(pid: u32) -> io::Result<PROCESS_MEMORY_COUNTERS> {
    let process = open(pid)?;
    let mut counters = PROCESS_MEMORY_COUNTERS::default();
    let size = size_of_val(&counters) as u32;
    // SAFETY: the handle is open; the place is ours and of that size.
    check(unsafe { K32GetProcessMemoryInfo(process.as_raw_handle(), &raw mut counters, size) })?;
    Ok(counters)
}

pub(crate) fn pss_bytes(pid: u32) -> io::Result<u64> {
    rss_bytes(pid)
}

/// There is no table that is looked in.
pub(crate) fn listener_uid(_addr: SocketAddr) -> Option<UserId> {
    None
}

/// Opens for reading what may be no file at all; `None` if it shows that it is none.
pub(crate) fn is_open_to_all(_file: &File) -> io::Result<bool> {
    Ok(false)
}

pub(crate) fn open_to_read(path: &Path) -> io::Result<Option<File>> {
    // A process that serves a pipe instead of the file learns who we are, and cannot act as us.
    let mut options = OpenOptions::new();
    match options.read(true).security_qos_flags(SECURITY_IDENTIFICATION).open(path) {
        // The system's error for a directory.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && path.is_dir() => Ok(None),
        Err(error) => Err(error),
        // SAFETY: the handle is open.
        Ok(file) if unsafe { GetFileType(file.as_raw_handle()) } == FILE_TYPE_DISK => {
            Ok(Some(file))
        }
        Ok(_) => Ok(None),
    }
}

/// The stamp of an open file.
pub(crate) fn stamp_of(file: &File) -> io::Result<Stamp> {
    let mut info = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and the place is ours.
    check(unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut info) })?;
    let wide = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let index = wide(info.nFileIndexHigh, info.nFileIndexLow);
    let id = (u64::from(info.dwVolumeSerialNumber), index);
    Ok(Stamp { id, length: wide(info.nFileSizeHigh, info.nFileSizeLow) })
}

/// Opens what is at this path only to look at it.
fn open_to_look(path: &Path, flags: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.access_mode(FILE_READ_ATTRIBUTES).security_qos_flags(SECURITY_IDENTIFICATION);
    options.custom_flags(FILE_FLAG_BACKUP_SEMANTICS | flags).open(path)
}

/// The stamp of what is at this path, links not followed.
pub(crate) fn stamp(path: &Path) -> io::Result<Stamp> {
    stamp_of(&open_to_look(path, FILE_FLAG_OPEN_REPARSE_POINT)?)
}

/// The version of what this path leads to.
pub(crate) fn version(path: &Path) -> io::Result<Version> {
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

/// Opens a lock file, and makes it if it is missing. Links are not followed.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
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

/// An absolute path with a zero behind it; one that begins with a drive behind the prefix that allows any length.
pub(crate) fn path_of_any_length(path: &Path) -> io::Result<Vec<u16>> {
    let absolute = std::path::absolute(path)?;
    let text: Vec<u16> = absolute.as_os_str().encode_wide().collect();
    // Others have a prefix already, or are a server's.
    let has_drive = text.get(1) == Some(&u16::from(b':'));
    let prefix = if has_drive { r"\\?\" } else { "" };
    Ok(prefix.encode_utf16().chain(text).chain([0]).collect())
}

/// A directory cannot be synced by a user; the system waits for the disk itself. It replaces no file that is open: who
/// only reads one is waited for.
pub(crate) fn put_in_place(file: &Path, of: &Path) -> io::Result<()> {
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

fn lock_with(file: &File, flags: LOCK_FILE_FLAGS) -> io::Result<()> {
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.OffsetHigh = LOCKED_AT;
    // SAFETY: the handle is open; it was not opened for overlapped calls, so `place` is not used afterwards.
    check(unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut place) })
}

fn try_lock_with(file: &File, flags: LOCK_FILE_FLAGS) -> Result<(), TryLockError> {
    lock_with(file, flags | LOCKFILE_FAIL_IMMEDIATELY).map_err(|error| {
        if error.raw_os_error() == Some(ERROR_LOCK_VIOLATION as i32) {
            TryLockError::WouldBlock
        } else {
            TryLockError::Error(error)
        }
    })
}

pub(crate) fn lock(file: &File) -> io::Result<()> {
    lock_with(file, LOCKFILE_EXCLUSIVE_LOCK)
}

pub(crate) fn try_lock(file: &File) -> Result<(), TryLockError> {
    try_lock_with(file, LOCKFILE_EXCLUSIVE_LOCK)
}

pub(crate) fn try_lock_shared(file: &File) -> Result<(), TryLockError> {
    try_lock_with(file, 0)
}

pub(crate) fn unlock(file: &File) -> io::Result<()> {
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.OffsetHigh = LOCKED_AT;
    // SAFETY: as above.
    check(unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &raw mut place) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_apart_from_others_and_of_this_boot() {
        let own = look_up(std::process::id()).unwrap().unwrap();
        assert_eq!(own.uid, own_user());
        assert!(is_of_this_boot(own.id) && !own.is_zombie());
        assert!(i64::try_from(own.id.start).is_ok());
        assert!(!is_of_this_boot(ProcessId { start: own.id.start / 2, ..own.id }));
        assert!(scan().unwrap().iter().any(|entry| entry.id == own.id));
        assert!(rss_bytes(own.id.pid).unwrap() > 0);
        assert!(name_of(own.id.pid).unwrap().starts_with("acpd_sys"));
    }

    #[test]
    fn a_pid_that_nobody_has_is_nobodys() {
        // Pids are divisible by four.
        assert!(look_up(0xffff_fff0).unwrap().is_none());
    }

    #[test]
    fn a_pipe_is_named_after_the_user_the_login_and_the_directory() {
        let name = |dir: &str| socket_at(Path::new(dir), "acpd.sock").display().to_string();
        let first = name(r"C:\Users\me\run");
        assert!(first.starts_with(&format!(r"\\.\pipe\acpd-{}-", own_user())), "{first}");
        assert_eq!(first, name(r"c:\users\ME\run"));
        assert_ne!(first, name(r"C:\Users\you\run"));
        assert!(first.len() < SOCKET_PATH_LIMIT);
        assert!(Path::new(&first).is_absolute());
    }

    #[test]
    fn names_of_devices_are_known_whatever_their_ending_is() {
        for name in ["nul", "NUL.log", "con", "Aux.txt.log", "com1", "LPT9.log", "prn ", "conin$"] {
            assert!(is_device(name), "{name}");
        }
        for name in ["null", "com", "com10", "claude", "xcon", "", "lpta"] {
            assert!(!is_device(name), "{name}");
        }
    }
}
