//! Functions that Linux and macOS share.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use etcetera::base_strategy::BaseStrategy;
use nix::errno::Errno;
use nix::libc::{ENXIO, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;

use crate::process_table::{ExitKind, ProcessId, StopSignal};
use crate::stamp::{Stamp, Version};
use crate::user::Openness;

/// `true` where all that is below the process of one agent belongs to that agent.
pub(crate) const WHAT_IS_BELOW_US_IS_ITS: bool = true;

/// The variable that names the home directory.
pub(crate) const HOME: &str = "HOME";

/// Where what a program keeps for itself is.
pub(crate) fn state_base(base: &impl BaseStrategy) -> PathBuf {
    // macOS has no state directory of its own kind.
    base.state_dir().unwrap_or_else(|| base.data_dir())
}

/// The directory of sockets where the system has none of its own: beside what the program keeps, which stays when the system
/// starts again; where the path to it is too long for a socket, a temporary one.
#[cfg(any(target_os = "macos", test))]
pub(crate) fn runtime_dir(home: Option<PathBuf>, temporary: &Path, limit: usize) -> PathBuf {
    let below = home.filter(|home| home.is_absolute());
    let below = below.map(|home| home.join("Library/Application Support/acpd/run"));
    let fits = |dir: &PathBuf| dir.join("acpd.sock").as_os_str().len() <= limit;
    below.filter(fits).unwrap_or_else(|| temporary.join("acpd"))
}

/// No name of a file means a device here.
pub(crate) fn is_device(_name: &str) -> bool {
    false
}

/// The socket of this name below the runtime directory.
pub(crate) fn socket_at(dir: &Path, name: &str) -> PathBuf {
    dir.join(name)
}

/// How `DirError` says who else may enter.
pub(crate) fn openness(mode: Openness) -> String {
    format!("mode {mode:04o}")
}

/// The command that closes a directory to others.
pub(crate) fn closing(path: &str) -> String {
    format!("chmod 700 {path}")
}

/// The command that moves a file away.
pub(crate) fn moving_away(path: &str) -> String {
    format!("mv {path} {path}.old")
}

/// A path as a person would type it in a shell.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

pub(crate) fn as_nix(signal: StopSignal) -> Signal {
    match signal {
        StopSignal::Term => Signal::SIGTERM,
        StopSignal::Kill => Signal::SIGKILL,
    }
}

/// A pid that names one process: 0 and negative numbers mean groups to the kernel, 1 is init.
pub(crate) fn child(pid: u32) -> io::Result<Pid> {
    i32::try_from(pid)
        .ok()
        .filter(|pid| *pid > 1)
        .map(Pid::from_raw)
        .ok_or_else(|| Errno::ECHILD.into())
}

impl fmt::Display for ExitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitKind::Code(code) => write!(f, "exit code {code}"),
            ExitKind::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "signal {number} ({signal})"),
                Err(_) => write!(f, "signal {number}"),
            },
        }
    }
}

impl From<ExitStatus> for ExitKind {
    fn from(status: ExitStatus) -> ExitKind {
        match (status.code(), status.signal()) {
            (Some(code), _) => ExitKind::Code(code),
            (None, signal) => ExitKind::Signal(signal.unwrap_or_default()),
        }
    }
}

pub(crate) fn exit_kind(status: WaitStatus) -> Option<ExitKind> {
    match status {
        WaitStatus::Exited(_, code) => Some(ExitKind::Code(code)),
        WaitStatus::Signaled(_, signal, _) => Some(ExitKind::Signal(signal as i32)),
        _ => None,
    }
}

/// Signals the group that this process has founded; one that is gone is fine. `has_members` is whether
/// anything of it runs.
pub(crate) fn signal_group(
    leader: ProcessId,
    signal: StopSignal,
    has_members: bool,
) -> io::Result<()> {
    match killpg(child(leader.pid)?, as_nix(signal)) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        // macOS returns this for a group that has only zombies in it.
        Err(Errno::EPERM) if !has_members => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the processes that the system itself counts to the tree of this process: none.
pub(crate) fn members(_leader: ProcessId) -> Vec<u32> {
    Vec::new()
}

pub(crate) fn is_open_to_all(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.mode() & 0o002 != 0)
}

/// Opens a path for reading, without waiting; `None` if the system shows at once that it is no file.
pub(crate) fn open_to_read(path: &Path) -> io::Result<Option<File>> {
    // Not blocking: the other end of a pipe may never be opened.
    match OpenOptions::new().read(true).custom_flags(O_NONBLOCK | O_NOCTTY).open(path) {
        // The system's error for a socket.
        Err(error) if error.raw_os_error() == Some(ENXIO) => Ok(None),
        opened => opened.map(Some),
    }
}

/// The stamp of an open file.
pub(crate) fn stamp_of(file: &File) -> io::Result<Stamp> {
    Ok(Stamp::from(&file.metadata()?))
}

/// The stamp of what is at this path, links not followed.
pub(crate) fn stamp(path: &Path) -> io::Result<Stamp> {
    Ok(Stamp::from(&path.symlink_metadata()?))
}

/// The version of what this path leads to.
pub(crate) fn version(path: &Path) -> io::Result<Version> {
    let found = path.metadata()?;
    let changed = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
    Ok(Version { stamp: Stamp::from(&found), changed })
}

impl From<&Metadata> for Stamp {
    fn from(found: &Metadata) -> Stamp {
        Stamp { id: (found.dev(), found.ino()), length: found.len() }
    }
}

/// Opens a lock file, and makes it if it is missing. Links are not followed.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).custom_flags(O_NOFOLLOW).open(path)
}

pub(crate) fn put_in_place(file: &Path, of: &Path) -> io::Result<()> {
    fs::rename(file, of)?;
    let dir = of.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}

pub(crate) fn lock(file: &File) -> io::Result<()> {
    file.lock()
}

pub(crate) fn try_lock(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

pub(crate) fn try_lock_shared(file: &File) -> Result<(), TryLockError> {
    file.try_lock_shared()
}

pub(crate) fn unlock(file: &File) -> io::Result<()> {
    file.unlock()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::SOCKET_PATH_LIMIT;
    use crate::paths::Paths;

    #[test]
    fn hints_quote_paths_that_a_shell_would_split() {
        assert_eq!(shell_word(Path::new("/run/user/1/acpd")), "/run/user/1/acpd");
        assert_eq!(shell_word(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }

    fn paths(runtime: &str) -> Paths {
        Paths { runtime: runtime.into(), state: "/s".into(), config: "/c".into() }
    }

    #[test]
    fn a_socket_path_beyond_the_limit_is_refused_with_the_way_out() {
        let longest = "/".to_owned() + &"r".repeat(SOCKET_PATH_LIMIT - "//acpd.sock".len());
        paths(&longest).check_socket().unwrap();
        let error = paths(&(longest + "r")).check_socket().unwrap_err();
        assert!(error.to_string().contains(&SOCKET_PATH_LIMIT.to_string()));
        assert!(error.hint().unwrap().contains("ACPD_RUNTIME_DIR"));
    }

    #[test]
    fn the_socket_of_a_shim_is_in_the_directory_of_those_sockets() {
        let paths = paths("/r");
        assert_eq!(paths.shim_socket("m").parent(), Some(&*paths.shim_sockets()));
    }

    #[test]
    fn sockets_are_where_the_next_start_of_the_system_finds_their_directory_if_that_is_short_enough()
     {
        const LIMIT: usize = 103;
        let temporary = Path::new("/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T");
        let dir = |home: &str| runtime_dir(Some(home.into()), temporary, LIMIT);
        assert_eq!(dir("/Users/ada"), Path::new("/Users/ada/Library/Application Support/acpd/run"));
        let socket = |home: &str| dir(home).join("acpd.sock").as_os_str().len();
        let longest = format!("/Users/a{}", "a".repeat(LIMIT - socket("/Users/a")));
        assert_eq!(socket(&longest), LIMIT);
        for odd in [format!("{longest}a"), "ada".to_owned(), String::new()] {
            assert_eq!(dir(&odd), temporary.join("acpd"), "{odd}");
        }
        assert_eq!(runtime_dir(None, temporary, LIMIT), temporary.join("acpd"));
    }
}
