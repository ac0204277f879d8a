//! Linux: `/proc`, `SO_PEERCRED`, subreaper.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io::{self, Read as _};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, SysconfVar, sysconf};

use crate::process::{Entry, ExitKind, ProcessId, exit_kind};
use crate::socket::{Peer, own_uid};

pub(crate) use crate::unix::*;

/// `sun_path` has 108 bytes, the last one a zero.
pub(crate) const SOCKET_PATH_LIMIT: usize = 107;

/// Bits of [`ProcessId::start`] that count clock ticks: enough for 348 years at 100 Hz.
const TICK_BITS: u32 = 40;

/// Bits above them that tell boots apart; together they fit in an `i64`.
const BOOT_BITS: u32 = 23;

pub(crate) fn fallback_runtime_dir() -> PathBuf {
    PathBuf::from(format!("/tmp/acpd-{}", own_uid()))
}

pub(crate) fn peer_of(fd: BorrowedFd<'_>) -> io::Result<Peer> {
    let found = getsockopt(&fd, sockopt::PeerCredentials)?;
    Ok(Peer { uid: found.uid(), pid: u32::try_from(found.pid()).ok().filter(|pid| *pid != 0) })
}

pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

#[cfg(target_env = "gnu")]
pub(crate) fn return_large_buffers() {
    const LARGE: i32 = 1 << 20;
    // SAFETY: it sets a number in the allocator, under the allocator's own lock.
    unsafe { nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, LARGE) };
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn return_large_buffers() {}

pub(crate) fn wait_leader(pid: Pid) -> io::Result<ExitKind> {
    loop {
        match waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(status) => {
                if let Some(exit) = exit_kind(status) {
                    return Ok(exit);
                }
            }
        }
    }
}

/// The process with this pid; `None` if there is none, an error if `/proc` cannot tell.
pub(crate) fn look_up(pid: u32) -> io::Result<Option<Entry>> {
    let boot = boot_bits()?;
    match read_stat(pid).and_then(|stat| entry(pid, boot, &Stat::parse(&stat)?)) {
        Ok(entry) => Ok(Some(entry)),
        Err(error) if is_gone(&error) => {
            // "No such file" means "no such process" only where /proc is what it should be.
            fs::metadata("/proc/self/stat").map(|_| None)
        }
        Err(error) => Err(error),
    }
}

/// Every process that can be seen, those of the kernel left out.
pub(crate) fn scan() -> io::Result<Vec<Entry>> {
    let boot = boot_bits()?;
    let mut found = Vec::new();
    for item in fs::read_dir("/proc")? {
        let name = item?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        match scan_one(pid, boot) {
            Ok(entry) => found.extend(entry),
            // Processes end while we look, and some systems hide those of others.
            Err(error) if is_gone(&error) || error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn scan_one(pid: u32, boot: u64) -> io::Result<Option<Entry>> {
    let stat = read_stat(pid)?;
    let stat = Stat::parse(&stat)?;
    if stat.is_of_kernel() { Ok(None) } else { entry(pid, boot, &stat).map(Some) }
}

/// The environment that the process was started with, entries ended by zero bytes; `None` if it
/// is hidden, or not there yet in the middle of an exec.
pub(crate) fn environ(pid: u32) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ")).ok().filter(|bytes| !bytes.is_empty())
}

/// Whether the process was started since this boot.
pub(crate) fn is_of_this_boot(id: ProcessId) -> bool {
    boot_bits().is_ok_and(|boot| id.start >> TICK_BITS == boot >> TICK_BITS)
}

pub(crate) fn rss_bytes(pid: u32) -> io::Result<u64> {
    let pages: u64 = Stat::parse(&read_stat(pid)?)?.number(24)?;
    let page = sysconf(SysconfVar::PAGE_SIZE)?.unwrap_or(4096);
    Ok(pages * page as u64)
}

pub(crate) fn pss_bytes(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|number| number.trim().parse::<u64>().ok())
        .map(|kib| kib * 1024)
        .ok_or_else(unreadable)
}

/// `/proc/PID/stat` in one read: it is always short, and tells no size beforehand.
fn read_stat(pid: u32) -> io::Result<Vec<u8>> {
    let mut line = vec![0; 1024];
    let length = File::open(format!("/proc/{pid}/stat"))?.read(&mut line)?;
    line.truncate(length);
    Ok(line)
}

fn entry(pid: u32, boot: u64, stat: &Stat<'_>) -> io::Result<Entry> {
    // The directory belongs to the effective user, even where its files are root's.
    let uid = fs::metadata(format!("/proc/{pid}"))?.uid();
    let state = stat.field(3)?;
    // A first thread that ended before the others looks like a zombie, but the process runs.
    let lone = stat.number::<u64>(20)? <= 1;
    Ok(Entry {
        id: ProcessId { pid, start: boot | (stat.number::<u64>(22)? & ((1 << TICK_BITS) - 1)) },
        parent: stat.number(4)?,
        group: stat.number(5)?,
        session: stat.number(6)?,
        uid,
        zombie: lone && matches!(state, "Z" | "X"),
    })
}

/// A line of `/proc/PID/stat`, its fields numbered as in proc_pid_stat(5).
struct Stat<'a>(Vec<&'a str>);

impl<'a> Stat<'a> {
    fn parse(line: &'a [u8]) -> io::Result<Stat<'a>> {
        // The second field is the name: any bytes, in parentheses, parentheses included.
        let end = line.iter().rposition(|byte| *byte == b')');
        let rest = &line[end.ok_or_else(unreadable)? + 1..];
        let rest = std::str::from_utf8(rest).map_err(|_| unreadable())?;
        Ok(Stat(rest.split_ascii_whitespace().collect()))
    }

    fn field(&self, number: usize) -> io::Result<&'a str> {
        self.0.get(number - 3).copied().ok_or_else(unreadable)
    }

    /// Whether it is a thread of the kernel (`PF_KTHREAD`).
    fn is_of_kernel(&self) -> bool {
        self.number::<u64>(9).is_ok_and(|flags| flags & 0x0020_0000 != 0)
    }

    fn number<T: std::str::FromStr>(&self, number: usize) -> io::Result<T> {
        self.field(number)?.parse().map_err(|_| unreadable())
    }
}

fn unreadable() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "unexpected text in /proc")
}

fn is_gone(error: &io::Error) -> bool {
    // A process that ends between open and read gives ESRCH.
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::ESRCH as i32)
}

/// This boot's bits of [`ProcessId::start`], in their place. They are stored across restarts of
/// the daemon, so the hash must not be seeded.
fn boot_bits() -> io::Result<u64> {
    static BOOT: OnceLock<u64> = OnceLock::new();
    if let Some(bits) = BOOT.get() {
        return Ok(*bits);
    }
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(id.trim());
    Ok(*BOOT.get_or_init(|| (hash >> (64 - BOOT_BITS)) << TICK_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_be_named_like_the_rest_of_its_line() {
        let line = b"7 (a) Z 1 (b) S 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0 12";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(stat.field(3).unwrap(), "S");
        assert_eq!(stat.number::<u32>(4).unwrap(), 3);
        assert_eq!(stat.number::<u64>(22).unwrap(), 99);
    }

    #[test]
    fn a_start_fits_in_a_signed_number() {
        let own = look_up(std::process::id()).unwrap().unwrap();
        assert!(i64::try_from(own.id.start).is_ok());
        assert!(is_of_this_boot(own.id));
        let other_boot = ProcessId { start: own.id.start ^ (1 << TICK_BITS), ..own.id };
        assert!(!is_of_this_boot(other_boot));
    }
}
