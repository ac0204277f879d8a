//! macOS: libproc, `getpeereid`. There is no subreaper and no environment to read, so a process
//! that leaves its parent and its session between two looks is out of sight.

#[cfg(feature = "daemon")]
use std::ffi::{CString, c_char};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::SocketAddr;
#[cfg(feature = "daemon")]
use std::os::fd::FromRawFd as _;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc::{self, c_int};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socket, sockopt};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, getpeereid, getsid};

use crate::process_table::{Condition, Entry, ExitKind, Peer, ProcessId};
pub(crate) use crate::unix::*;

/// `sun_path` has 104 bytes, the last one a zero.
pub(crate) const SOCKET_PATH_LIMIT: usize = 103;

/// `cat` ends with its input, and with it the assertion.
pub(crate) const AWAKE: &[&str] = &["caffeinate", "-i", "cat"];

pub(crate) const OPENER: &str = "open";

/// The texts are arguments of the script and no part of it.
pub(crate) fn notification(title: &str, body: &str) -> Option<Vec<String>> {
    const SCRIPT: &str = "on run argv
display notification (item 2 of argv) with title (item 1 of argv)
end run";
    let words = ["osascript", "-e", SCRIPT, "--", title, body];
    Some(words.map(str::to_owned).to_vec())
}

pub(crate) fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default()
}

/// Where launchd can listen, see [`runtime_dir`]. `TMPDIR`, which the system sets to a directory of the user, is emptied at
/// each start of the system.
pub(crate) fn fallback_runtime_dir() -> PathBuf {
    runtime_dir(std::env::home_dir(), &std::env::temp_dir(), SOCKET_PATH_LIMIT)
}

#[cfg(feature = "daemon")]
unsafe extern "C" {
    /// Returns the descriptors that launchd listens on for us under this name, in memory that is ours then.
    /// Works once in the life of a process, even across an exec.
    fn launch_activate_socket(
        name: *const c_char,
        descriptors: *mut *mut c_int,
        count: *mut usize,
    ) -> c_int;
}

/// The socket that launchd listens on for us under this name, if it has started us and does.
#[cfg(feature = "daemon")]
pub(crate) fn activated_socket(name: &str) -> Option<OwnedFd> {
    let name = CString::new(name).ok()?;
    let (mut descriptors, mut count) = (std::ptr::null_mut::<c_int>(), 0);
    // SAFETY: the name ends with a zero, and both places are ours.
    let error =
        unsafe { launch_activate_socket(name.as_ptr(), &raw mut descriptors, &raw mut count) };
    if error != 0 || descriptors.is_null() {
        return None;
    }
    // SAFETY: the call has put `count` descriptors there, each of them open and without another owner.
    let sockets: Vec<OwnedFd> = unsafe {
        std::slice::from_raw_parts(descriptors, count)
            .iter()
            .map(|number| OwnedFd::from_raw_fd(*number))
            .collect()
    };
    // SAFETY: the memory is ours, and was made with malloc.
    unsafe { libc::free(descriptors.cast()) };
    // One is listened on; others would be closed.
    sockets.into_iter().next()
}

pub(crate) fn peer_of(fd: BorrowedFd<'_>) -> io::Result<Peer> {
    let (uid, _) = getpeereid(fd)?;
    let pid = getsockopt(&fd, sockopt::LocalPeerPid).ok();
    Ok(Peer { uid: uid.as_raw(), pid: pid.and_then(|pid| u32::try_from(pid).ok()) })
}

/// A Unix socket that no other program inherits.
pub(crate) fn stream_socket() -> io::Result<OwnedFd> {
    let made = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None)?;
    fcntl(&made, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    Ok(made)
}

/// There is no call that marks all.
pub(crate) fn keep_from_next_program() -> bool {
    false
}

/// Nothing tells of removals here.
#[cfg(feature = "daemon")]
#[expect(clippy::unnecessary_wraps, reason = "as on Linux, where it can fail")]
pub(crate) fn removals(_dir: &Path) -> io::Result<Option<OwnedFd>> {
    Ok(None)
}

/// `true` where orphans can become children of a process of ours.
pub(crate) const HAS_SUBREAPER: bool = false;

#[expect(clippy::unnecessary_wraps, reason = "as on Linux, where it can fail")]
pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(())
}

pub(crate) fn return_buffers(_at_least: i32) {}

pub(crate) fn give_back_unused() {}

/// There is no table to look in.
pub(crate) fn listener_uid(_addr: SocketAddr) -> Option<u32> {
    None
}

/// The exit of our child, which stays a zombie; `None` if it runs and is not to be waited for.
pub(crate) fn wait_leader(pid: Pid, block: bool) -> io::Result<Option<ExitKind>> {
    let wait = if block { 0 } else { libc::WNOHANG };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    loop {
        // SAFETY: `info` is ours and has room for what the call writes.
        let result = unsafe {
            libc::waitid(
                libc::P_PID,
                pid.as_raw() as libc::id_t,
                info.as_mut_ptr(),
                libc::WEXITED | libc::WNOWAIT | wait,
            )
        };
        match Errno::result(result) {
            Ok(_) => break,
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // SAFETY: all zeroes is a value of this plain struct, and the call filled it in.
    let info = unsafe { info.assume_init() };
    Ok(match info.si_code {
        // Nothing was filled in: it runs.
        0 => None,
        libc::CLD_EXITED => Some(ExitKind::Code(info.si_status)),
        _ => Some(ExitKind::Signal(info.si_status)),
    })
}

/// The process with this pid; `None` if there is none, an error if the system does not say.
pub(crate) fn look_up(pid: u32) -> io::Result<Option<Entry>> {
    match pid_info::<libc::proc_bsdinfo>(pid, libc::PROC_PIDTBSDINFO) {
        Ok(info) => Ok(Some(Entry {
            id: ProcessId { pid, start: info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec },
            parent: info.pbi_ppid,
            group: info.pbi_pgid,
            session: getsid(Some(Pid::from_raw(pid as i32)))
                .map_or(0, |session| session.as_raw() as u32),
            uid: info.pbi_uid,
            condition: match info.pbi_status {
                libc::SZOMB => Condition::Ended,
                libc::SSTOP => Condition::Stopped,
                _ => Condition::Running,
            },
        })),
        Err(Errno::ESRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Every process that can be seen.
pub(crate) fn scan() -> io::Result<Vec<Entry>> {
    // SAFETY: the buffer is the caller's and has `bytes` bytes; without one the call only counts.
    let pids = pids(|buffer, bytes| unsafe { libc::proc_listallpids(buffer, bytes) })?;
    Ok(pids.into_iter().filter_map(|pid| look_up(pid).ok()?).collect())
}

/// The pids of a process's children. An orphan is no longer below anything of its tree.
pub(crate) fn children(pid: u32) -> io::Result<Vec<u32>> {
    // SAFETY: as above.
    pids(|buffer, bytes| unsafe { libc::proc_listchildpids(pid as c_int, buffer, bytes) })
}

/// The pids that a call of libproc writes into a buffer, whose size in bytes it gets.
fn pids(list: impl Fn(*mut libc::c_void, c_int) -> c_int) -> io::Result<Vec<u32>> {
    let count = Errno::result(list(std::ptr::null_mut(), 0))? as usize;
    // Room for those that start between the two calls.
    let mut found: Vec<c_int> = vec![0; count + 256];
    let bytes = (found.len() * size_of::<c_int>()) as c_int;
    let count = Errno::result(list(found.as_mut_ptr().cast(), bytes))?;
    found.truncate(count as usize);
    Ok(found.into_iter().filter_map(|pid| u32::try_from(pid).ok()).collect())
}

/// There are no subreapers here: processes below us may be anywhere.
pub(crate) fn scan_below() -> io::Result<Vec<Entry>> {
    scan()
}

#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
pub(crate) fn environ(_pid: u32) -> io::Result<Option<Vec<u8>>> {
    Ok(None)
}

/// Returns whether the process was started since this boot.
pub(crate) fn is_of_this_boot(id: ProcessId) -> bool {
    let mut boot = MaybeUninit::<libc::timeval>::zeroed();
    let mut size = size_of::<libc::timeval>();
    // SAFETY: the name ends in a zero byte, the buffer is ours and `size` is its size.
    let result = unsafe {
        libc::sysctlbyname(
            c"kern.boottime".as_ptr(),
            boot.as_mut_ptr().cast(),
            &raw mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    // SAFETY: all zeroes is a value of this plain struct.
    let boot = unsafe { boot.assume_init() };
    result == 0 && id.start >= boot.tv_sec as u64 * 1_000_000
}

/// There is no such way: a program is known by its path alone.
pub(crate) fn running_program(path: &Path) -> PathBuf {
    path.to_owned()
}

pub(crate) fn name_of(pid: u32) -> Option<String> {
    let info = pid_info::<libc::proc_bsdinfo>(pid, libc::PROC_PIDTBSDINFO).ok()?;
    let name = info.pbi_comm.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0);
    Some(String::from_utf8_lossy(&name.collect::<Vec<_>>()).into_owned())
}

pub(crate) fn rss_bytes(pid: u32) -> io::Result<u64> {
    let info = pid_info::<libc::proc_taskinfo>(pid, libc::PROC_PIDTASKINFO)?;
    Ok(info.pti_resident_size)
}

pub(crate) fn pss_bytes(pid: u32) -> io::Result<u64> {
    rss_bytes(pid)
}

pub(crate) fn anonymous_bytes(pid: u32) -> io::Result<u64> {
    rss_bytes(pid)
}

/// The plain structs that `proc_pidinfo` fills in.
trait PidInfo {}
impl PidInfo for libc::proc_bsdinfo {}
impl PidInfo for libc::proc_taskinfo {}

fn pid_info<T: PidInfo>(pid: u32, flavor: c_int) -> Result<T, Errno> {
    let mut info = MaybeUninit::<T>::zeroed();
    let size = size_of::<T>() as c_int;
    // SAFETY: the buffer is ours and `size` is its size.
    let written =
        unsafe { libc::proc_pidinfo(pid as c_int, flavor, 0, info.as_mut_ptr().cast(), size) };
    if written != size {
        return Err(Errno::last());
    }
    // SAFETY: the call filled it in, and all zeroes is a value of these plain structs.
    Ok(unsafe { info.assume_init() })
}
