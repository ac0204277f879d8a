use std::path::{Path, PathBuf};

use etcetera::base_strategy::BaseStrategy;

/// `sun_path` has 108 bytes, the last one a zero; 104 on macOS.
pub(super) const SOCKET_PATH_LIMIT: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

pub(super) const HOME: &str = "HOME";

pub(super) fn state_base(base: &impl BaseStrategy) -> PathBuf {
    // macOS has no state directory.
    base.state_dir().unwrap_or_else(|| base.data_dir())
}

#[cfg(not(target_os = "macos"))]
pub(super) fn fallback_runtime_dir() -> PathBuf {
    PathBuf::from(format!("/tmp/acpd-{}", crate::users::own_uid()))
}

/// Returns a directory in which launchd can listen. Not in `TMPDIR`, which is emptied at each start
/// of the system.
#[cfg(target_os = "macos")]
pub(super) fn fallback_runtime_dir() -> PathBuf {
    runtime_dir(std::env::home_dir(), &std::env::temp_dir(), SOCKET_PATH_LIMIT)
}

/// Returns a directory that survives a restart of the system, or a temporary one if a socket's path
/// would be too long.
#[cfg(any(target_os = "macos", test))]
fn runtime_dir(home: Option<PathBuf>, temporary: &Path, limit: usize) -> PathBuf {
    let below = home.filter(|home| home.is_absolute());
    let below = below.map(|home| home.join("Library/Application Support/acpd/run"));
    let fits = |dir: &PathBuf| dir.join("acpd.sock").as_os_str().len() <= limit;
    below.filter(fits).unwrap_or_else(|| temporary.join("acpd"))
}

/// No file name means a device here.
pub(super) fn is_device(_name: &str) -> bool {
    false
}

pub(crate) fn socket_at(dir: &Path, name: &str) -> PathBuf {
    dir.join(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Paths;

    fn paths(runtime: &str) -> Paths {
        Paths { runtime: runtime.into(), state: "/s".into(), config: "/c".into() }
    }

    #[test]
    fn a_socket_path_beyond_the_limit_is_refused_with_a_fix() {
        let longest = "/".to_owned() + &"r".repeat(SOCKET_PATH_LIMIT - "//acpd.sock".len());
        paths(&longest).check_socket().unwrap();
        let error = paths(&(longest + "r")).check_socket().unwrap_err();
        assert!(error.to_string().contains(&SOCKET_PATH_LIMIT.to_string()));
        assert!(error.hint().unwrap().contains("ACPD_RUNTIME_DIR"));
    }

    #[test]
    fn a_runtime_directory_survives_a_reboot_if_its_path_is_short_enough() {
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
