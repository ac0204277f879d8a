//! launchd: one launch agent, controlled by `launchctl`. It listens for the daemon, and starts it
//! at login.

use std::path::{Path, PathBuf};
use std::process::Command;

use acpd_client::own_uid;

use super::{Dirs, Order, State, UnitFile};
use crate::error::Result;
use crate::programs::output_of;

const PLIST: &str = include_str!("../../../../launchd/dev.acpd.acpd.plist");
const LABEL: &str = "dev.acpd.acpd";
const PROGRAM: &str = "<string>/usr/local/bin/acpd</string>";
const LOG: &str = "<string>/Users/YOU/Library/Logs/acpd.log</string>";
const SOCKET: &str = "<string>/Users/YOU/Library/Application Support/acpd/run/acpd.sock</string>";
/// The part for listening. It is removed if the socket's directory does not survive a reboot.
const LISTENS: [&str; 2] = ["    <!-- launchd listens for the daemon", "    <key>RunAtLoad</key>"];
const END: &str = "</dict>\n</plist>\n";

/// The launch agent; `listen` is the socket if its directory survives a reboot.
pub(super) fn file(home: &Path, program: &str, dirs: &Dirs, listen: Option<&str>) -> UnitFile {
    let string = |text: &str| format!("<string>{}</string>", escaped(text));
    let log = log(home).to_string_lossy().into_owned();
    let mut text = PLIST.replace(PROGRAM, &string(program)).replace(LOG, &string(&log));
    match listen {
        Some(socket) => text = text.replace(SOCKET, &string(socket)),
        None => {
            let [from, to] = LISTENS.map(|part| text.find(part));
            if let (Some(from), Some(to)) = (from, to) {
                text.replace_range(from..to, "");
            }
        }
    }
    if !dirs.is_empty() {
        let pair = |(name, dir): &(&str, String)| {
            format!("        <key>{name}</key>\n        {}\n", string(dir))
        };
        let pairs: String = dirs.iter().map(pair).collect();
        let dict = "    <key>EnvironmentVariables</key>\n    <dict>\n";
        text = text.replace(END, &format!("{dict}{pairs}    </dict>\n{END}"));
    }
    UnitFile { path: home.join("Library/LaunchAgents").join(format!("{LABEL}.plist")), text }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(super) fn log(home: &Path) -> PathBuf {
    home.join("Library/Logs/acpd.log")
}

fn domain() -> String {
    format!("gui/{}", own_uid())
}

/// The words after `launchctl`.
pub(super) fn start(file: &Path) -> [String; 3] {
    ["bootstrap".to_owned(), domain(), file.display().to_string()]
}

pub(super) fn run(order: Order, file: &Path) -> Result {
    match order {
        Order::Listen | Order::Start => {
            // launchd ignores files that it already knows.
            stop()?;
            output_of(Command::new("launchctl").args(start(file))).map(drop)
        }
        // launchd listens as long as it knows the service.
        Order::Stop | Order::IgnoreClients => stop(),
        // launchd reads the file at start, and does not give up.
        Order::Enable | Order::Forgive | Order::Disable | Order::Forget => Ok(()),
    }
}

fn stop() -> Result {
    if !state().enabled {
        return Ok(());
    }
    launchctl("bootout").map(drop)
}

pub(super) fn state() -> State {
    // The command fails for an unknown service.
    launchctl("print").map_or_else(|_| State::default(), |text| read_state(&text))
}

fn launchctl(verb: &str) -> Result<String> {
    let service = format!("{}/{LABEL}", domain());
    output_of(Command::new("launchctl").args([verb, &service]))
}

fn read_state(text: &str) -> State {
    let lines = || text.lines().map(str::trim);
    let pid = lines().find_map(|line| line.strip_prefix("pid = "));
    let listens = lines().any(|line| line == "sockets = {");
    State { enabled: true, listens, pid: pid.and_then(|pid| pid.parse().ok()), failed: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By descriptions of `launchctl print`, not by its output for acpd.
    #[test]
    fn launchctl_tells_whether_it_listens_and_what_runs() {
        let text = "gui/501/dev.acpd.acpd = {\n\tactive count = 1\n\tstate = running\n\tpid = 812\n\n\tsockets = {\n\t\t\
                    \"control\" = {\n\t\t\ttype = stream\n\t\t}\n\t}\n}\n";
        assert_eq!(
            read_state(text),
            State { enabled: true, listens: true, pid: Some(812), failed: false }
        );
        let idle = "gui/501/dev.acpd.acpd = {\n\tstate = not running\n}\n";
        assert_eq!(read_state(idle), State { enabled: true, ..State::default() });
    }
}
