#[cfg(target_os = "linux")]
use std::fs;
use std::io;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::stat::{Mode, umask};

static FOUND_NOFILE: OnceLock<(rlim_t, rlim_t)> = OnceLock::new();
static FOUND_CORE: OnceLock<(rlim_t, rlim_t)> = OnceLock::new();
static FOUND_UMASK: OnceLock<Mode> = OnceLock::new();

pub const MORE_FILES: &str = "start acpd with a higher limit of open files (`ulimit -n`)";

/// Raises the soft limit on open files to the hard one, for this process only: programs that use
/// `select` break with more than 1024.
pub fn raise_nofile_limit() -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    FOUND_NOFILE.get_or_init(|| (soft, hard));
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}

/// Forbids core dumps of this process, which would hold transcripts and keys.
pub fn no_core_dumps() -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_CORE)?;
    FOUND_CORE.get_or_init(|| (soft, hard));
    // A child could not raise a lowered hard limit.
    Ok(setrlimit(Resource::RLIMIT_CORE, 0, hard)?)
}

/// Closes new files of this process to other users.
pub fn private_files() {
    let found = umask(Mode::from_bits_truncate(0o077));
    FOUND_UMASK.get_or_init(|| found);
}

/// Returns the original umask of this process.
#[allow(clippy::useless_conversion, reason = "modes have 16 bits on macOS")]
pub fn found_umask() -> u32 {
    u32::from(FOUND_UMASK.get().copied().unwrap_or(Mode::from_bits_truncate(0o077)).bits())
}

/// Restores the original limits and umask, in a child. Async-signal-safe.
pub(crate) fn restore() -> io::Result<()> {
    if let Some(&found) = FOUND_UMASK.get() {
        umask(found);
    }
    for (resource, found) in
        [(Resource::RLIMIT_NOFILE, &FOUND_NOFILE), (Resource::RLIMIT_CORE, &FOUND_CORE)]
    {
        if let Some(&(soft, hard)) = found.get() {
            setrlimit(resource, soft, hard)?;
        }
    }
    Ok(())
}

/// Returns blocks of at least this size to the system as soon as they are freed; the GNU allocator
/// keeps them by default. Threads that start afterwards share one heap.
pub fn return_buffers(at_least: i32) {
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = at_least;
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: they set numbers in the allocator, under the allocator's own lock.
    unsafe {
        nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, at_least);
        // Each heap keeps free memory of its own.
        nix::libc::mallopt(nix::libc::M_ARENA_MAX, 1);
    }
}

/// Returns memory that a waiting process does not need: free memory, and its program text, which
/// comes back from the system's cache within microseconds.
pub fn give_back_unused() {
    #[cfg(target_os = "linux")]
    {
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
}

/// Returns the addresses in a line of `/proc/self/maps`, if they are program text or the start of a
/// program file, which is never relocated.
#[cfg(target_os = "linux")]
fn text_range(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (rights, offset) = (fields.next()?, fields.next()?);
    let is_text = rights == "r-xp" || (rights == "r--p" && offset == "00000000");
    let address = |text| usize::from_str_radix(text, 16).ok();
    (is_text && fields.nth(2)?.starts_with('/')).then_some((address(start)?, address(end)?))
}
