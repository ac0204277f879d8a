use std::io;
use std::path::Path;
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use nix::sys::utsname::uname;
use nix::time::{ClockId, clock_gettime};

/// A command that keeps the machine awake until its stdin ends.
#[cfg(not(target_os = "macos"))]
pub const AWAKE: &[&str] = &[
    "systemd-inhibit",
    "--what=sleep:idle",
    "--who=acpd",
    "--why=An agent works on a prompt",
    "--mode=block",
    "cat",
];
#[cfg(target_os = "macos")]
pub const AWAKE: &[&str] = &["caffeinate", "-i", "cat"];

/// The program that opens a file or an address as the user has configured.
pub const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Returns a command that shows a notification; `None` without a desktop.
#[cfg(not(target_os = "macos"))]
pub fn notification(title: &str, body: &str) -> Option<Vec<String>> {
    let own = || Some(Path::new(&std::env::var_os("XDG_RUNTIME_DIR")?).join("bus"));
    if std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_none() && !own()?.exists() {
        return None;
    }
    // The body can have marks like those of HTML.
    let body = body.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let words = ["notify-send", "--app-name=acpd", "--", title, &body];
    Some(words.map(str::to_owned).to_vec())
}

#[cfg(target_os = "macos")]
pub fn notification(title: &str, body: &str) -> Option<Vec<String>> {
    // The texts are arguments, not part of the script.
    const SCRIPT: &str = "on run argv
display notification (item 2 of argv) with title (item 1 of argv)
end run";
    let words = ["osascript", "-e", SCRIPT, "--", title, body];
    Some(words.map(str::to_owned).to_vec())
}

/// Returns the time since the start of the machine, sleep included; zero without such a clock.
pub fn since_boot() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::CLOCK_BOOTTIME;
    #[cfg(target_os = "macos")]
    let clock = ClockId::CLOCK_MONOTONIC;
    clock_gettime(clock).map(Duration::from).unwrap_or_default()
}

pub fn system() -> Option<String> {
    let system = uname().ok()?;
    let parts = [system.sysname(), system.release(), system.machine()];
    Some(parts.map(|part| part.to_string_lossy().into_owned()).join(" "))
}

pub fn host_name() -> Option<String> {
    nix::unistd::gethostname().ok()?.into_string().ok()
}

/// Returns the bytes that this user can still write to the disk of this directory.
pub fn free_space(directory: &Path) -> io::Result<u64> {
    let disk = statvfs(directory)?;
    // Systems differ in the width of these numbers.
    let free = u128::from(disk.blocks_available()) * u128::from(disk.fragment_size());
    Ok(u64::try_from(free).unwrap_or(u64::MAX))
}
