//! The process table of Linux: `/proc`.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::unistd::{SysconfVar, sysconf};

use super::{Condition, Entry, ProcessId};
use crate::users::own_uid;

/// Bits of [`ProcessId::start`] that count clock ticks: enough for 348 years at 100 Hz.
const TICK_BITS: u32 = 40;

/// Bits above them that identify the boot. All of them fit in an `i64`.
const BOOT_BITS: u32 = 23;

/// A process can adopt orphans.
pub(crate) const HAS_SUBREAPER: bool = true;

/// Makes this process, instead of init, the parent of orphans below it. Does nothing on other
/// systems.
pub fn become_subreaper() -> io::Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

/// An error if `/proc` does not say.
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

/// Returns every visible process, except those of the kernel.
pub(crate) fn scan() -> io::Result<Vec<Entry>> {
    let names = fs::read_dir("/proc")?.map(|item| Ok(item?.file_name()));
    let names = names.collect::<io::Result<Vec<_>>>()?;
    let pids = names.iter().filter_map(|name| name.to_str()?.parse().ok());
    pids.filter_map(|pid| scan_one(pid).transpose()).collect()
}

/// Returns every process below this one, or all if the kernel does not list children.
pub(crate) fn scan_below() -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    let Ok(mut todo) = children(std::process::id()) else { return scan() };
    while let Some(pid) = todo.pop() {
        // The process may have ended; its children have another parent then.
        todo.extend(children(pid).unwrap_or_default());
        found.extend(scan_one(pid)?);
    }
    Ok(found)
}

/// Returns the children of a process, zombies included. Fails without `CONFIG_PROC_CHILDREN`.
pub(crate) fn children(pid: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(thread?.path().join("children"))?;
        found.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Ok(found)
}

/// Returns `None` for a process of the kernel, a hidden one, and one that has ended.
fn scan_one(pid: u32) -> io::Result<Option<Entry>> {
    let boot = boot_bits()?;
    let read = read_stat(pid).and_then(|stat| {
        let stat = Stat::parse(&stat)?;
        if stat.is_of_kernel() { Ok(None) } else { entry(pid, boot, &stat).map(Some) }
    });
    match read {
        Err(error) if is_gone(&error) || error.kind() == io::ErrorKind::PermissionDenied => {
            Ok(None)
        }
        read => read,
    }
}

/// Returns the environment with which the process was started, entries ended by zero bytes; `None`
/// if it is hidden, or during an exec.
pub(crate) fn environ(pid: u32) -> io::Result<Option<Vec<u8>>> {
    // Enough for most in one read; the size is unknown.
    let mut bytes = Vec::with_capacity(16 << 10);
    let opened = File::open(format!("/proc/{pid}/environ"));
    match opened.and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes).filter(|bytes| !bytes.is_empty())),
        Err(error) if is_gone(&error) || error.kind() == io::ErrorKind::PermissionDenied => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn is_of_this_boot(id: ProcessId) -> bool {
    boot_bits().is_ok_and(|boot| id.start >> TICK_BITS == boot >> TICK_BITS)
}

/// Reads `comm`, which works in any state of the process, unlike the command line.
pub(super) fn name_of(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii()).into_owned())
}

/// Returns resident memory in bytes. Shared pages count in full.
pub fn rss_bytes(pid: u32) -> io::Result<u64> {
    let pages: u64 = Stat::parse(&read_stat(pid)?)?.number(24)?;
    let page = sysconf(SysconfVar::PAGE_SIZE)?.unwrap_or(4096);
    Ok(pages * page as u64)
}

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
    if state == "X" {
        // The kernel is releasing the process, and no longer shows its parent, group and session.
        return Err(Errno::ESRCH.into());
    }
    // A first thread that ended before the others looks like a zombie, but the process runs.
    let lone = stat.number::<u64>(20)? <= 1;
    Ok(Entry {
        id: ProcessId { pid, start: boot | (stat.number::<u64>(22)? & ((1 << TICK_BITS) - 1)) },
        parent: stat.number(4)?,
        group: stat.number(5)?,
        session: stat.number(6)?,
        is_ours: uid == own_uid(),
        condition: match state {
            "Z" if lone => Condition::Ended,
            "T" | "t" => Condition::Stopped,
            "D" => Condition::Blocked,
            _ => Condition::Running,
        },
    })
}

/// A line of `/proc/PID/stat`; field numbers as in proc_pid_stat(5).
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

    /// `PF_KTHREAD`.
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

/// Returns the bits of this boot in [`ProcessId::start`]. Later daemons compare them, so the hash
/// must not be seeded.
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
    fn a_process_that_the_kernel_releases_is_gone() {
        let line = b"7 (a) X 0 -1 -1 0 -1 4228108 0 0 0 0 0 0 0 0 20 0 0 0 99 0 0";
        let gone = entry(std::process::id(), 0, &Stat::parse(line).unwrap()).unwrap_err();
        assert!(is_gone(&gone), "{gone}");
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
