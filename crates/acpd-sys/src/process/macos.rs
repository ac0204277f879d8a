//! The process table of macOS: libproc. There is no subreaper and no readable environment, so a
//! process that leaves its parent and its session between two looks is lost.

use std::io;
use std::mem::{MaybeUninit, size_of};

use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::unistd::{Pid, getsid};

use super::{Condition, Entry, ProcessId};
use crate::users::own_uid;

pub(crate) const HAS_SUBREAPER: bool = false;

#[expect(clippy::unnecessary_wraps, reason = "as on Linux, where it can fail")]
pub fn become_subreaper() -> io::Result<()> {
    Ok(())
}

pub(crate) fn look_up(pid: u32) -> io::Result<Option<Entry>> {
    match pid_info::<libc::proc_bsdinfo>(pid, libc::PROC_PIDTBSDINFO) {
        Ok(info) => Ok(Some(Entry {
            id: ProcessId { pid, start: info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec },
            parent: info.pbi_ppid,
            group: info.pbi_pgid,
            session: getsid(Some(Pid::from_raw(pid as i32)))
                .map_or(0, |session| session.as_raw() as u32),
            is_ours: info.pbi_uid == own_uid(),
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

pub(crate) fn scan() -> io::Result<Vec<Entry>> {
    // SAFETY: the buffer is the caller's and has that many bytes; without one the call only counts.
    let pids = pids(|buffer, bytes| unsafe { libc::proc_listallpids(buffer, bytes) })?;
    Ok(pids.into_iter().filter_map(|pid| look_up(pid).ok()?).collect())
}

/// Orphans are no longer below a process of their tree.
pub(crate) fn children(pid: u32) -> io::Result<Vec<u32>> {
    // SAFETY: as above.
    pids(|buffer, bytes| unsafe { libc::proc_listchildpids(pid as c_int, buffer, bytes) })
}

fn pids(list: impl Fn(*mut libc::c_void, c_int) -> c_int) -> io::Result<Vec<u32>> {
    let count = Errno::result(list(std::ptr::null_mut(), 0))? as usize;
    // Room for those that start between the two calls.
    let mut found: Vec<c_int> = vec![0; count + 256];
    let bytes = (found.len() * size_of::<c_int>()) as c_int;
    let count = Errno::result(list(found.as_mut_ptr().cast(), bytes))?;
    found.truncate(count as usize);
    Ok(found.into_iter().filter_map(|pid| u32::try_from(pid).ok()).collect())
}

/// Without a subreaper, orphans may be anywhere.
pub(crate) fn scan_below() -> io::Result<Vec<Entry>> {
    scan()
}

#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
pub(crate) fn environ(_pid: u32) -> io::Result<Option<Vec<u8>>> {
    Ok(None)
}

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

pub(super) fn name_of(pid: u32) -> Option<String> {
    let info = pid_info::<libc::proc_bsdinfo>(pid, libc::PROC_PIDTBSDINFO).ok()?;
    let name = info.pbi_comm.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0);
    Some(String::from_utf8_lossy(&name.collect::<Vec<_>>()).into_owned())
}

pub fn rss_bytes(pid: u32) -> io::Result<u64> {
    let info = pid_info::<libc::proc_taskinfo>(pid, libc::PROC_PIDTASKINFO)?;
    Ok(info.pti_resident_size)
}

/// Structs of plain numbers that `proc_pidinfo` fills in.
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
