use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};

use etcetera::base_strategy::BaseStrategy;

use crate::users::{login_of, own_uid};

/// The longest name of a pipe, in characters.
pub(super) const SOCKET_PATH_LIMIT: usize = 256;
pub(super) const HOME: &str = "USERPROFILE";

/// Local data, because roaming data is copied at each login.
pub(super) fn state_base(base: &impl BaseStrategy) -> PathBuf {
    base.cache_dir()
}

pub(super) fn fallback_runtime_dir() -> PathBuf {
    let local = std::env::var_os("LOCALAPPDATA").map_or_else(std::env::temp_dir, PathBuf::from);
    local.join("acpd").join("run")
}

/// Returns whether Windows takes the name for a device, with any extension.
pub(super) fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = |prefix| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|digit| digit.is_ascii_digit()))
    };
    ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&&*stem)
        || numbered("COM")
        || numbered("LPT")
}

/// Returns the name of a pipe. Such names are shared by the machine, so it contains user, login and
/// directory.
pub(crate) fn socket_at(dir: &Path, name: &str) -> PathBuf {
    let login = login_of(std::process::id());
    // The system compares paths without regard to case.
    let place = dir.as_os_str().to_ascii_lowercase();
    let place = BuildHasherDefault::<DefaultHasher>::default().hash_one(place);
    format!(r"\\.\pipe\acpd-{}-{login}-{place:016x}-{name}", own_uid()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_named_after_the_user_the_login_and_the_directory() {
        let name = |dir: &str| socket_at(Path::new(dir), "acpd.sock").display().to_string();
        let first = name(r"C:\Users\me\run");
        assert!(first.starts_with(&format!(r"\\.\pipe\acpd-{}-", own_uid())), "{first}");
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
