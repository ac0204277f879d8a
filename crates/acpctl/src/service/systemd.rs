//! systemd: two units of the user's manager, controlled by `systemctl --user`.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use acpd_api::Untrusted;
use acpd_client::own_uid;

use super::{Dirs, Order, State, UnitFile};
use crate::error::{CommandError, Result};
use crate::programs::output_of;
use crate::text::text;

const SERVICE: &str = include_str!("../../../../systemd/acpd.service");
const SOCKET: &str = include_str!("../../../../systemd/acpd.socket");
const START_LINE: &str = "ExecStart=/usr/bin/acpd run\n";
const USUAL_SOCKET: &str = "%t/acpd/acpd.sock";

/// The words after `systemctl --user`.
pub(super) fn commands(order: Order) -> &'static [&'static [&'static str]] {
    match order {
        Order::Enable => &[&["daemon-reload"], &["enable", "acpd.service"]],
        Order::Listen => &[&["start", "acpd.socket"]],
        Order::Start => &[&["start", "acpd.socket", "acpd.service"]],
        Order::Forgive => &[&["reset-failed", "acpd.service", "acpd.socket"]],
        Order::IgnoreClients => &[&["stop", "acpd.socket"]],
        Order::Stop => &[&["stop", "acpd.socket", "acpd.service"]],
        Order::Disable => &[&["disable", "acpd.service"]],
        Order::Forget => &[&["daemon-reload"]],
    }
}

/// The units; `socket` is its path if that is unusual.
pub(super) fn files(
    folder: &Path,
    program: &str,
    dirs: &Dirs,
    socket: Option<&str>,
) -> Vec<UnitFile> {
    let mut start = format!("ExecStart={} run\n", word(program));
    for (name, dir) in dirs {
        start += &["Environment=", &quoted(&format!("{name}={dir}")), "\n"].concat();
    }
    // The whole line is the path: it has no quotes, and `%` begins a specifier.
    let socket = socket.map_or(USUAL_SOCKET.to_owned(), |socket| socket.replace('%', "%%"));
    vec![
        UnitFile { path: folder.join("acpd.service"), text: SERVICE.replace(START_LINE, &start) },
        UnitFile { path: folder.join("acpd.socket"), text: SOCKET.replace(USUAL_SOCKET, &socket) },
    ]
}

fn word(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/._-+@~".contains(char);
    if text.chars().all(is_plain) { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    let text = text.replace('\\', r"\\").replace('"', r#"\""#).replace('%', "%%");
    format!("\"{text}\"")
}

pub(super) fn run(order: Order) -> Result {
    commands(order).iter().try_for_each(|words| systemctl(words).map(drop))
}

fn systemctl(words: &[&str]) -> Result<String> {
    output_of(Command::new("systemctl").arg("--user").args(words)).map_err(explained)
}

fn explained(error: CommandError) -> CommandError {
    let said = error.message.as_str();
    if said.contains("cannot run") {
        return error
            .hint("this needs systemd (on macOS launchd); without it, commands start acpd");
    }
    if said.contains("connect to bus") {
        return error.hint(text!(
            "log in on this machine or by SSH, not with `su` or `sudo`; or set \
             XDG_RUNTIME_DIR=/run/user/{}",
            Untrusted::of(own_uid())
        ));
    }
    error.hint("see `acpctl service logs`")
}

pub(super) fn state() -> Result<State> {
    let names = "--property=Id,UnitFileState,ActiveState,SubState,MainPID";
    Ok(read_state(&systemctl(&["show", names, "acpd.service", "acpd.socket"])?))
}

/// Reads `systemctl show`: one block of lines per unit.
fn read_state(text: &str) -> State {
    let value = |id: &str, name: &str| {
        let is_it = |block: &&str| block.lines().any(|line| line.strip_prefix("Id=") == Some(id));
        let mut lines = text.split("\n\n").find(is_it).unwrap_or_default().lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_default().to_owned()
    };
    let has_failed = |id: &str| {
        value(id, "ActiveState") == "failed" || value(id, "SubState").starts_with("auto-restart")
    };
    let pid = value("acpd.service", "MainPID").parse().ok().filter(|pid| *pid != 0);
    State {
        enabled: value("acpd.service", "UnitFileState") == "enabled",
        listens: value("acpd.socket", "ActiveState") == "active",
        pid,
        // A failed socket does not matter if the user has started a daemon since.
        failed: pid.is_none() && (has_failed("acpd.service") || has_failed("acpd.socket")),
    }
}

/// Returns whether the user's manager continues after the last logout.
pub(super) fn lingers() -> bool {
    let name = env::var_os("USER").or_else(|| env::var_os("LOGNAME")).unwrap_or_default();
    !name.is_empty() && fs::exists(Path::new("/var/lib/systemd/linger").join(name)).unwrap_or(false)
}

pub(super) const LOG: &str = "journalctl --user -u acpd";

pub(super) fn log_command(follow: bool, lines: usize) -> Command {
    let mut command = Command::new("journalctl");
    command.args(["--user", "--quiet", "--unit", "acpd.service", "--lines", &lines.to_string()]);
    command.args(follow.then_some("--follow")).stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systemctl_shows_is_read_by_unit() {
        let text = "MainPID=812\nId=acpd.service\nActiveState=active\nUnitFileState=enabled\n\n\
                    Id=acpd.socket\nActiveState=active\nUnitFileState=enabled\n";
        let working = State { enabled: true, listens: true, pid: Some(812), failed: false };
        assert_eq!(read_state(text), working);
        let text = "MainPID=0\nId=acpd.service\nActiveState=inactive\nUnitFileState=\n\n\
                    Id=acpd.socket\nActiveState=failed\nUnitFileState=\n";
        assert_eq!(read_state(text), State { failed: true, ..State::default() });
        let text = "MainPID=0\nId=acpd.service\nActiveState=activating\nSubState=auto-restart\n\n\
                    Id=acpd.socket\nActiveState=active\nSubState=running\n";
        assert_eq!(read_state(text), State { listens: true, failed: true, ..State::default() });
        let text = "MainPID=812\nId=acpd.service\nActiveState=active\nUnitFileState=enabled\n\n\
                    Id=acpd.socket\nActiveState=failed\nUnitFileState=enabled\n";
        assert_eq!(read_state(text), State { listens: false, ..working });
        assert_eq!(read_state(""), State::default());
    }
}
