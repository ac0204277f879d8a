//! Ways out that a person is told, where systems have other words for them.

use std::path::Path;

/// What gives a program more files that it may have open.
pub const MORE_FILES: &str = "start acpd with a higher limit of open files (`ulimit -n`)";

/// The command that ends a process.
pub fn ending(pid: u32) -> String {
    format!("kill -9 {pid}")
}

/// What lets a stopped process go on, as a sentence without its period.
pub fn continuing(pid: u32) -> String {
    format!("`kill -CONT {pid}` continues it")
}

/// What closes a file to others.
pub fn closing(_file: &Path) -> String {
    "run `chmod 600` on it".to_owned()
}
