//! Linux: `/proc`, `SO_PEERCRED`, subreaper.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socket, sockopt};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};

use crate::process_table::{Condition, Entry, ExitKind, Peer, ProcessId, own_uid};
pub(crate) use crate::unix::*;

/// `sun_path` has 108 bytes, the last one a zero.
pub(crate) const SOCKET_PATH_LIMIT: usize = 107;

/// Bits of [`ProcessId::start`] that count clock ticks: enough for 348 years at 100 Hz.
const TICK_BITS: u32 = 40;

/// Bits above them that tell boots apart; together they fit in an `i64`.
const BOOT_BITS: u32 = 23;

/// `cat` ends with its input, and with it the inhibition.
pub(crate) const AWAKE: &[&str] = &[
    "systemd-inhibit",
    "--what=sleep:idle",
    "--who=acpd",
    "--why=An agent works on a prompt",
    "--mode=block",
    "cat",
];

/// libnotify's program, where there is a session bus. A body may have marks like those of HTML.
/// As desktops agree on it.
pub(crate) const OPENER: &str = "xdg-open";

pub(crate) fn notification(title: &str, body: &str) -> Option<Vec<String>> {
    let own = || Some(PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?).join("bus"));
    if std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_none() && !own()?.exists() {
        return None;
    }
    let body = body.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let words = ["notify-send", "--app-name=acpd", "--", title, &body];
    Some(words.map(str::to_owned).to_vec())
}

pub(crate) fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or_default()
}

pub(crate) fn fallback_runtime_dir() -> PathBuf {
    PathBuf::from(format!("/tmp/acpd-{}", own_uid()))
}

/// Returns `None`: on Linux, a service manager that listens for us reports it in the environment.
#[cfg(feature = "daemon")]
pub(crate) fn activated_socket(_name: &str) -> Option<OwnedFd> {
    None
}

pub(crate) fn peer_of(fd: BorrowedFd<'_>) -> io::Result<Peer> {
    let found = getsockopt(&fd, sockopt::PeerCredentials)?;
    Ok(Peer { uid: found.uid(), pid: u32::try_from(found.pid()).ok().filter(|pid| *pid != 0) })
}

/// A Unix socket that no other program inherits.
pub(crate) fn stream_socket() -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    Ok(socket(AddressFamily::Unix, SockType::Stream, flags, None)?)
}

/// Marks every descriptor but the standard ones; `false` if the kernel is too old for it.
pub(crate) fn keep_from_next_program() -> bool {
    use nix::libc::{CLOSE_RANGE_CLOEXEC, SYS_close_range, c_uint, syscall};
    // SAFETY: it marks descriptors and touches no memory.
    unsafe { syscall(SYS_close_range, 3, c_uint::MAX, CLOSE_RANGE_CLOEXEC) == 0 }
}

/// A descriptor that can be read when something in a directory, or the directory itself, is removed or moved.
#[cfg(feature = "daemon")]
pub(crate) fn removals(dir: &Path) -> io::Result<Option<OwnedFd>> {
    use std::ffi::CString;
    use std::os::fd::{AsRawFd as _, FromRawFd as _};
    use std::os::unix::ffi::OsStrExt as _;

    use nix::libc;

    let mask = libc::IN_DELETE | libc::IN_MOVED_FROM | libc::IN_DELETE_SELF | libc::IN_MOVE_SELF;
    let dir = CString::new(dir.as_os_str().as_bytes())?;
    // SAFETY: it makes a descriptor, which has no other owner.
    let inotify = unsafe {
        let raw = Errno::result(libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC))?;
        OwnedFd::from_raw_fd(raw)
    };
    // SAFETY: the path ends with a NUL byte and lives longer than the call.
    Errno::result(unsafe {
        libc::inotify_add_watch(inotify.as_raw_fd(), dir.as_ptr(), mask | libc::IN_ONLYDIR)
    })?;
    Ok(Some(inotify))
}

/// `true` where orphans can become children of a process of ours.
pub(crate) const HAS_SUBREAPER: bool = true;

pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

#[cfg(target_env = "gnu")]
pub(crate) fn return_buffers(at_least: i32) {
    // SAFETY: they set numbers in the allocator, under the allocator's own lock.
    unsafe {
        nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, at_least);
        // Each heap keeps free memory of its own.
        nix::libc::mallopt(nix::libc::M_ARENA_MAX, 1);
    }
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn return_buffers(_at_least: i32) {}

pub(crate) fn give_back_unused() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let texts: Vec<(usize, usize)> = maps.lines().filter_map(text_range).collect();
    drop(maps);
    for (start, end) in texts {
        // SAFETY: the range is mapped from a file, and never written to: its pages are the file's,
        // before and after.
        unsafe { nix::libc::madvise(start as *mut _, end - start, nix::libc::MADV_DONTNEED) };
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: it works on free memory, under the allocator's own lock.
    unsafe {
        nix::libc::malloc_trim(0)
    };
}

/// The addresses of a line of `/proc/self/maps`, if it is program text, or the start of a program
/// file: what is there is never relocated.
fn text_range(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (rights, offset) = (fields.next()?, fields.next()?);
    let is_text = rights == "r-xp" || (rights == "r--p" && offset == "00000000");
    let address = |text| usize::from_str_radix(text, 16).ok();
    (is_text && fields.nth(2)?.starts_with('/')).then_some((address(start)?, address(end)?))
}

/// The user that listens on this port of this machine, as far as the tables say.
pub(crate) fn listener_uid(addr: SocketAddr) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let mut lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    lines.find_map(|line| listener(line, addr))
}

/// The user of a line of these tables, if it is of a socket that listens there.
fn listener(line: &str, addr: SocketAddr) -> Option<u32> {
    const LISTEN: &str = "0A";
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, port) = fields.next()?.split_once(':')?;
    let state = fields.nth(1)?;
    if state != LISTEN || u16::from_str_radix(port, 16) != Ok(addr.port()) {
        return None;
    }
    let any = local.bytes().all(|digit| digit == b'0');
    (any || local.ends_with(&hex(addr))).then(|| fields.nth(3)?.parse().ok()).flatten()
}

/// An address as the tables have it: words of 32 bits in hexadecimal, as the processor stores them.
/// An IPv4 address is also the last word of the IPv6 address that it is mapped to.
fn hex(addr: SocketAddr) -> String {
    let word = |bytes: &[u8]| {
        let word = bytes.try_into().map_or(0, u32::from_ne_bytes);
        format!("{word:08X}")
    };
    match addr.ip() {
        IpAddr::V4(ip) => word(&ip.octets()),
        IpAddr::V6(ip) => ip.octets().chunks(4).map(word).collect(),
    }
}

/// The exit of our child, which stays a zombie; `None` if it runs and is not to be waited for.
pub(crate) fn wait_leader(pid: Pid, block: bool) -> io::Result<Option<ExitKind>> {
    let mut flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    flags.set(WaitPidFlag::WNOHANG, !block);
    loop {
        match waitid(Id::Pid(pid), flags) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(status) => return Ok(exit_kind(status)),
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

/// Every process below this one; more where the kernel does not list children.
pub(crate) fn scan_below() -> io::Result<Vec<Entry>> {
    let boot = boot_bits()?;
    let mut found = Vec::new();
    let Ok(mut todo) = children(std::process::id()) else { return scan() };
    while let Some(pid) = todo.pop() {
        // The process may have ended since its parent was looked at; its children have another parent then.
        todo.extend(children(pid).unwrap_or_default());
        match scan_one(pid, boot) {
            Ok(entry) => found.extend(entry),
            Err(error) if is_gone(&error) || error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The pids of a process's children, zombies included. An error without `CONFIG_PROC_CHILDREN`.
pub(crate) fn children(pid: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(thread?.path().join("children"))?;
        found.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
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
pub(crate) fn environ(pid: u32) -> io::Result<Option<Vec<u8>>> {
    // The size is not known before: with room for most, the file is read at once.
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

/// Returns whether the process was started since this boot.
pub(crate) fn is_of_this_boot(id: ProcessId) -> bool {
    boot_bits().is_ok_and(|boot| id.start >> TICK_BITS == boot >> TICK_BITS)
}

/// A path to the program of this process that other processes have, too, even if its file is gone.
pub(crate) fn running_program(_path: &Path) -> PathBuf {
    format!("/proc/{}/exe", std::process::id()).into()
}

/// Reads the process's `comm`, which is there in any state: the command line may not be readable.
pub(crate) fn name_of(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii()).into_owned())
}

pub(crate) fn rss_bytes(pid: u32) -> io::Result<u64> {
    let pages: u64 = Stat::parse(&read_stat(pid)?)?.number(24)?;
    let page = sysconf(SysconfVar::PAGE_SIZE)?.unwrap_or(4096);
    Ok(pages * page as u64)
}

pub(crate) fn pss_bytes(pid: u32) -> io::Result<u64> {
    memory_of(pid, "Pss:")
}

pub(crate) fn anonymous_bytes(pid: u32) -> io::Result<u64> {
    memory_of(pid, "Anonymous:")
}

fn memory_of(pid: u32, kind: &str) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    text.lines()
        .find_map(|line| line.strip_prefix(kind))
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
    if state == "X" {
        // The kernel is just letting go of it, and shows no parent, group and session any more.
        return Err(Errno::ESRCH.into());
    }
    // A first thread that ended before the others looks like a zombie, but the process runs.
    let lone = stat.number::<u64>(20)? <= 1;
    Ok(Entry {
        id: ProcessId { pid, start: boot | (stat.number::<u64>(22)? & ((1 << TICK_BITS) - 1)) },
        parent: stat.number(4)?,
        group: stat.number(5)?,
        session: stat.number(6)?,
        uid,
        condition: match state {
            "Z" if lone => Condition::Ended,
            "T" | "t" => Condition::Stopped,
            "D" => Condition::Blocked,
            _ => Condition::Running,
        },
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

    /// Returns whether it is a thread of the kernel (`PF_KTHREAD`).
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
    fn a_process_that_the_kernel_lets_go_of_is_gone() {
        let line = b"7 (a) X 0 -1 -1 0 -1 4228108 0 0 0 0 0 0 0 0 20 0 0 0 99 0 0";
        let gone = entry(std::process::id(), 0, &Stat::parse(line).unwrap()).unwrap_err();
        assert!(is_gone(&gone), "{gone}");
    }

    #[test]
    fn a_listener_is_found_by_address_and_port() {
        let addr = "127.0.0.1:631".parse().unwrap();
        let line = |local: &str, state: &str| {
            format!(
                "   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 12 1"
            )
        };
        if cfg!(target_endian = "little") {
            assert_eq!(listener(&line("0100007F:0277", "0A"), addr), Some(1000));
            assert_eq!(listener(&line("0200007F:0277", "0A"), addr), None);
        }
        assert_eq!(listener(&line("00000000:0277", "0A"), addr), Some(1000));
        assert_eq!(listener(&line("00000000:0277", "01"), addr), None);
        assert_eq!(listener(&line("00000000:0278", "0A"), addr), None);
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
