//! launchd: one launch agent, told by `launchctl`. It starts the daemon at login and does not listen for it.

use std::path::{Path, PathBuf};

use acpd_client::own_uid;

use super::{Place, State, UnitFile, tell};
use crate::error::Result;

const PLIST: &str = include_str!("../../../../launchd/dev.acpd.acpd.plist");
const LABEL: &str = "dev.acpd.acpd";
/// What in the text depends on the place.
const PROGRAM: &str = "<string>/usr/local/bin/acpd</string>";
const LOG: &str = "<string>/tmp/acpd.log</string>";
const END: &str = "</dict>\n</plist>\n";

/// The launch agent.
pub(super) fn files(place: &Place<'_>) -> Vec<UnitFile> {
    let string = |text: &str| format!("<string>{}</string>", escaped(text));
    let log = log(place.home).to_string_lossy().into_owned();
    let mut text = PLIST.replace(PROGRAM, &string(place.program)).replace(LOG, &string(&log));
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

/// Where launchd writes the daemon's log.
pub(super) fn log(home: &Path) -> PathBuf {
    home.join("Library/Logs/acpd.log")
}

fn domain() -> String {
    format!("gui/{}", own_uid())
}

/// The command that starts the agent in this file.
pub(super) fn start(file: &Path) -> Vec<String> {
    ["launchctl".to_owned(), "bootstrap".to_owned(), domain(), file.display().to_string()].into()
}

pub(super) fn run(words: &[String]) -> Result {
    let args: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    tell(Path::new(&words[0]), &args).map(drop)
}

pub(super) fn stop() -> Result {
    // What it does not know need not be stopped.
    if !state().enabled {
        return Ok(());
    }
    let service = format!("{}/{LABEL}", domain());
    tell(Path::new("launchctl"), &["bootout", &service]).map(drop)
}

pub(super) fn state() -> State {
    let service = format!("{}/{LABEL}", domain());
    // It fails for a service that it does not know.
    tell(Path::new("launchctl"), &["print", &service]).map_or_else(
        |_| State::default(),
        |text| {
            let pid = text.lines().find_map(|line| line.trim().strip_prefix("pid = "));
            State { enabled: true, listens: false, pid: pid.and_then(|pid| pid.parse().ok()) }
        },
    )
}
