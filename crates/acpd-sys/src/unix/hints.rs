//! Ways out that a person is told, where systems have other words for them.

use std::path::Path;

/// The hint for a program that may not open enough files.
pub const MORE_FILES: &str = "start acpd with a higher limit of open files (`ulimit -n`)";

/// The command that ends a process.
pub fn ending(pid: u32) -> String {
    format!("kill -9 {pid}")
}

/// The hint for continuing a stopped process, as a sentence without its period.
pub fn continuing(pid: u32) -> String {
    format!("`kill -CONT {pid}` continues it")
}

/// The hint for closing a file to others.
pub fn closing(_file: &Path) -> String {
    "run `chmod 600` on it".to_owned()
}
