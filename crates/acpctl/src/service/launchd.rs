//! launchd: one launch agent, controlled by `launchctl`. It listens for the daemon, and starts it
//! at login.

use std::path::{Path, PathBuf};

use acpd_client::own_uid;

use super::{Order, Place, State, UnitFile, run_to_end};
use crate::error::Result;

const PLIST: &str = include_str!("../../../../launchd/dev.acpd.acpd.plist");
const LABEL: &str = "dev.acpd.acpd";
const PROGRAM: &str = "<string>/usr/local/bin/acpd</string>";
const LOG: &str = "<string>/Users/YOU/Library/Logs/acpd.log</string>";
const SOCKET: &str = "<string>/Users/YOU/Library/Application Support/acpd/run/acpd.sock</string>";
/// The part for listening. It is removed if the socket's directory does not survive a reboot.
const LISTENS: [&str; 2] = ["    <!-- launchd listens for the daemon", "    <key>RunAtLoad</key>"];
const END: &str = "</dict>\n</plist>\n";

pub(super) fn files(place: &Place<'_>) -> Vec<UnitFile> {
    let string = |text: &str| format!("<string>{}</string>", escaped(text));
    let log = log(place.home).to_string_lossy().into_owned();
    let mut text = PLIST.replace(PROGRAM, &string(place.program)).replace(LOG, &string(&log));
    match &place.listen {
        Some(socket) => text = text.replace(SOCKET, &string(socket)),
        None => {
            let [from, to] = LISTENS.map(|part| text.find(part));
            if let (Some(from), Some(to)) = (from, to) {
                text.replace_range(from..to, "");
            }
        }
    }
    if !place.dirs.is_empty() {
        let pair = |(name, dir): &(&str, String)| {
            format!("        <key>{name}</key>\n        {}\n", string(dir))
        };
        let pairs: String = place.dirs.iter().map(pair).collect();
        let dict = "    <key>EnvironmentVariables</key>\n    <dict>\n";
        text = text.replace(END, &format!("{dict}{pairs}    </dict>\n{END}"));
    }
    let path = place.home.join("Library/LaunchAgents").join(format!("{LABEL}.plist"));
    vec![UnitFile { path, text }]
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

pub(super) fn start(file: &Path) -> Vec<String> {
    ["launchctl".to_owned(), "bootstrap".to_owned(), domain(), file.display().to_string()].into()
}

pub(super) fn run(order: Order, file: &Path) -> Result {
    match order {
        Order::Listen | Order::Start => {
            // launchd ignores files that it already knows.
            stop()?;
            let words = start(file);
            let args: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
            run_to_end(Path::new(&words[0]), &args).map(drop)
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
    let service = format!("{}/{LABEL}", domain());
    run_to_end(Path::new("launchctl"), &["bootout", &service]).map(drop)
}

pub(super) fn state() -> State {
    let service = format!("{}/{LABEL}", domain());
    // The command fails for an unknown service.
    run_to_end(Path::new("launchctl"), &["print", &service])
        .map_or_else(|_| State::default(), |text| read_state(&text))
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
