//! Ways out that a person is told, where systems have other words for them.

use std::path::Path;

use crate::os::shell_word;
use crate::user::own_user;

/// The hint for a program that cannot open enough files: the only limit here is memory.
pub const MORE_FILES: &str = "end programs that you do not need";

/// The command that ends a process.
pub fn ending(pid: u32) -> String {
    format!("taskkill /F /PID {pid}")
}

/// The hint for continuing a stopped process, as a sentence without its period.
pub fn continuing(pid: u32) -> String {
    format!("`resmon` lists it as process {pid} and continues it")
}

/// The hint for closing a file to others.
pub fn closing(file: &Path) -> String {
    format!("run `icacls {} /inheritance:r /grant:r \"*{}:F\"`", shell_word(file), own_user())
}
