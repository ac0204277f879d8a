//! acpd as a service: the files for a service manager, and its commands.
//!
//! The texts are the files in `systemd/` and `launchd/`. Written files differ in the path of the
//! program, and in unusual directories.

mod launchd;
mod systemd;

use std::env;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use acpd_api::{DaemonInfo, ExitCode};
use acpd_client::{Connection, Paths, daemon_exe};
use serde::Serialize;

use crate::daemon::{info_if, running};
use crate::error::{CommandError, Result};
use crate::log_file::{self, Tail};
use crate::programs::output_of;
use crate::text::{Text, text};
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) manager: Manager,
    pub(crate) program: PathBuf,
    pub(crate) files: Vec<UnitFile>,
    /// The socket is at the usual place, which a package's service also uses.
    is_usual: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Manager {
    Systemd,
    Launchd,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// Read the files, and start the service at each login.
    Enable,
    Listen,
    /// Listen for clients, and start the daemon now.
    Start,
    /// Forget failures, and allow all attempts again.
    Forgive,
    /// Start no daemon for clients. A running daemon stays, or leaves its agents to the next one.
    IgnoreClients,
    /// End the service's daemon, which leaves its agents to the next one.
    Stop,
    /// Start nothing at login. The socket goes with the service.
    Disable,
    Forget,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct State {
    pub(crate) enabled: bool,
    /// The manager listens, and the first connection starts the daemon.
    pub(crate) listens: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    /// The daemon failed; the manager starts it later, or has given up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) failed: bool,
}

#[derive(Debug)]
pub(crate) struct UnitFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileState {
    Current,
    Other,
    Missing,
}

/// Variables with directories.
type Dirs = [(&'static str, String)];

impl Service {
    /// Returns the service for the daemon's program next to this one, and for this environment's
    /// directories.
    pub(crate) fn here(paths: &Paths) -> Result<Service> {
        let home = home()?;
        let program = program()?;
        let is_usual = !is_set("ACPD_RUNTIME_DIR");
        let (text, dirs, socket) = (utf8(&program)?, dirs(paths)?, utf8(&paths.socket())?);
        let (manager, files) = if env::consts::OS == "macos" {
            let lasts = !paths.runtime.starts_with(env::temp_dir());
            let listen = lasts.then_some(&*socket);
            (Manager::Launchd, vec![launchd::file(&home, &text, &dirs, listen)])
        } else {
            let folder = base("XDG_CONFIG_HOME", ".config")?.join("systemd/user");
            let socket = (!is_usual).then_some(&*socket);
            (Manager::Systemd, systemd::files(&folder, &text, &dirs, socket))
        };
        Ok(Service { manager, program, files, is_usual })
    }

    pub(crate) fn is_installed(&self) -> bool {
        self.present().next().is_some()
    }

    pub(crate) fn present(&self) -> impl Iterator<Item = &UnitFile> {
        self.files.iter().filter(|file| file.state() != FileState::Missing)
    }

    /// Returns the files that an installation writes.
    pub(crate) fn stale(&self) -> impl Iterator<Item = &UnitFile> {
        self.files.iter().filter(|file| file.state() != FileState::Current)
    }

    /// Checks that the daemon can start, before the running one is touched.
    pub(crate) fn check_program(&self) -> Result {
        output_of(Command::new(&self.program).arg("check")).map(drop)
    }

    pub(crate) fn state(&self) -> Result<State> {
        match self.manager {
            Manager::Systemd => systemd::state(),
            Manager::Launchd => Ok(launchd::state()),
        }
    }

    /// Returns the state of a service that may not be installed. A package has its files elsewhere;
    /// without a package, there may be no manager.
    pub(crate) fn known(&self) -> Result<State> {
        if self.is_installed() {
            return self.state();
        }
        Ok(if self.is_usual { self.state().unwrap_or_default() } else { State::default() })
    }

    /// Returns the commands after writing the files, for the user.
    pub(crate) fn steps(&self) -> Vec<String> {
        match self.manager {
            Manager::Systemd => {
                let steps = [Order::Enable, Order::Listen].map(systemd::commands).concat();
                steps.iter().map(|words| format!("systemctl --user {}", words.join(" "))).collect()
            }
            Manager::Launchd => {
                vec![format!("launchctl {}", launchd::start(&self.files[0].path).join(" "))]
            }
        }
    }

    pub(crate) fn order(&self, order: Order) -> Result {
        match self.manager {
            Manager::Systemd => systemd::run(order),
            Manager::Launchd => launchd::run(order, &self.files[0].path),
        }
    }

    /// Removes the files, and has the manager forget the service. Needs [`Order::Stop`] first.
    pub(crate) fn remove(&self) -> Result {
        self.order(Order::Disable)?;
        for file in &self.files {
            remove_file(&file.path)?;
            remove_folders(&file.path);
        }
        self.order(Order::Forget)
    }

    /// Returns the service whose manager started the running daemon and has its log.
    pub(crate) fn with_log(paths: &Paths) -> Option<Service> {
        Service::with(paths, |state| state.pid.is_some()).map(|(service, _)| service)
    }

    pub(crate) fn with(paths: &Paths, is_so: impl Fn(&State) -> bool) -> Option<(Service, State)> {
        let service = Service::here(paths).ok()?;
        let state = service.known().ok().filter(is_so)?;
        Some((service, state))
    }

    pub(crate) fn log_place(&self) -> Result<Text> {
        match self.manager {
            Manager::Systemd => Ok(Text::from(systemd::LOG)),
            Manager::Launchd => Ok(text!("{}", launchd::log(&home()?))),
        }
    }

    /// Returns the end of the log; empty if it cannot be read.
    pub(crate) fn last_log(&self, lines: usize) -> String {
        match self.manager {
            Manager::Systemd => {
                // One that fails may have printed something.
                let output = systemd::log_command(false, lines).stdin(Stdio::null()).output();
                let text = |output: Output| String::from_utf8_lossy(&output.stdout).into_owned();
                output.map(text).unwrap_or_default()
            }
            Manager::Launchd => home()
                .map_or_else(|_| String::new(), |home| log_file::last(&launchd::log(&home), lines)),
        }
    }

    pub(crate) fn print_log(&self, tail: Tail, ui: &mut Ui) -> Result {
        if self.manager == Manager::Launchd {
            return log_file::print(&launchd::log(&home()?), tail, ui);
        }
        let mut command = systemd::log_command(tail.follow, tail.lines);
        let program = command.get_program().to_owned();
        let failed = |error| CommandError::file("run", program.as_ref(), &error);
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut lines = child.stdout.take().map(BufReader::new);
        let mut line = Vec::new();
        while let Some(lines) = &mut lines
            && lines.read_until(b'\n', &mut line).map_err(failed)? > 0
        {
            ui.relay_bytes(&std::mem::take(&mut line))?;
            ui.flush()?;
        }
        // The program has printed its error.
        let status = child.wait().map_err(failed)?;
        CommandError::printed_unless(status.success())
    }

    /// Returns whether the service continues after logout; none if that cannot be chosen.
    pub(crate) fn lingers(&self) -> Option<bool> {
        (self.manager == Manager::Systemd).then(systemd::lingers)
    }
}

impl State {
    /// Does not connect if the manager listens without a daemon, because that would start one.
    pub(crate) fn running(&self, paths: &Paths) -> Result<Option<Connection>> {
        if self.listens && self.pid.is_none() { Ok(None) } else { running(paths) }
    }

    pub(crate) fn serving(&self, paths: &Paths) -> Result<Option<DaemonInfo>> {
        info_if(self.running(paths)?)
    }
}

impl UnitFile {
    pub(crate) fn state(&self) -> FileState {
        match fs::read(&self.path) {
            Ok(bytes) if bytes == self.text.as_bytes() => FileState::Current,
            Err(error) if error.kind() == io::ErrorKind::NotFound => FileState::Missing,
            Ok(_) | Err(_) => FileState::Other,
        }
    }

    pub(crate) fn write(&self) -> Result {
        let made = self.path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&self.path, &self.text))
            .map_err(|error| CommandError::file("write", &self.path, &error))
    }
}

pub(crate) fn home() -> Result<PathBuf> {
    env::home_dir().filter(|home| home.is_absolute()).ok_or_else(|| {
        CommandError::new(ExitCode::Error, "the home directory is unknown").hint("set HOME")
    })
}

/// Returns the folder in a variable, or else one in the home directory.
pub(crate) fn base(variable: &str, usual: &str) -> Result<PathBuf> {
    let named = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    named.map_or_else(|| Ok(home()?.join(usual)), Ok)
}

pub(crate) fn remove_file(path: &Path) -> Result {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CommandError::file("remove", path, &error))
        }
        _ => Ok(()),
    }
}

/// Removes the folders around a file if they are empty.
pub(crate) fn remove_folders(of: &Path) {
    let folders = of.ancestors().skip(1).take(2);
    folders.take_while(|folder| fs::remove_dir(folder).is_ok()).for_each(drop);
}

/// Returns the path of the daemon's program. A link in `PATH` is preferred to its target: package
/// managers keep each version in its own folder, and an upgrade removes the old one.
fn program() -> Result<PathBuf> {
    let exe = daemon_exe();
    let is_bare = exe.components().count() == 1;
    let real = exe.canonicalize().ok();
    let is_it = |path: &PathBuf| {
        path.is_absolute() && path.is_file() && (is_bare || path.canonicalize().ok() == real)
    };
    let path = env::var_os("PATH").unwrap_or_default();
    let name = exe.file_name().unwrap_or(exe.as_os_str());
    let linked = env::split_paths(&path).map(|folder| folder.join(name)).find(is_it);
    linked.or_else(|| exe.is_file().then(|| std::path::absolute(&exe).ok())?).ok_or_else(|| {
        CommandError::new(ExitCode::NotFound, text!("cannot find the program `{}`", exe))
            .hint("install it: `cargo install acpd`")
    })
}

/// Returns directories that a service manager without this environment would not find.
fn dirs(paths: &Paths) -> Result<Vec<(&'static str, String)>> {
    let all = [
        ("ACPD_RUNTIME_DIR", None, &paths.runtime),
        ("ACPD_STATE_DIR", Some("XDG_STATE_HOME"), &paths.state),
        ("ACPD_CONFIG_DIR", Some("XDG_CONFIG_HOME"), &paths.config),
    ];
    let moved = all.into_iter().filter(|(own, base, _)| is_set(own) || base.is_some_and(is_set));
    moved.map(|(own, _, path)| Ok((own, utf8(path)?))).collect()
}

fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn utf8(path: &Path) -> Result<String> {
    let text = path.to_str().filter(|path| !path.contains(char::is_control));
    text.map(str::to_owned).ok_or_else(|| {
        CommandError::usage(text!("`{}` cannot be used in a service file", path))
            .hint("rename it: plain characters only")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs() -> [(&'static str, String); 2] {
        let dirs = [("ACPD_STATE_DIR", "/data/my state"), ("ACPD_CONFIG_DIR", "/c&d/100%")];
        dirs.map(|(name, dir)| (name, dir.to_owned()))
    }

    fn launch_agent(program: &str, dirs: &Dirs, listen: Option<&str>) -> UnitFile {
        launchd::file(Path::new("/home/me"), program, dirs, listen)
    }

    #[test]
    fn a_package_installs_the_same_units() {
        let files = systemd::files(Path::new("/units"), "/usr/bin/acpd", &[], None);
        for (file, text) in files.iter().zip([
            include_str!("../../../../systemd/acpd.service"),
            include_str!("../../../../systemd/acpd.socket"),
        ]) {
            assert_eq!(file.text, text);
        }
    }

    #[test]
    fn units_name_the_program_and_directories_that_are_not_the_usual_ones() {
        let (program, socket) = ("/opt/my \"tools\"/100%/acpd", "/run/other/acpd.sock");
        let files = systemd::files(Path::new("/units"), program, &dirs(), Some(socket));
        let lines = |of: &str, start: &str| -> Vec<String> {
            let file = files.iter().find(|file| file.path.ends_with(of)).unwrap();
            let lines = file.text.lines().filter(|line| line.starts_with(start));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(
            lines("acpd.service", "ExecStart"),
            [r#"ExecStart="/opt/my \"tools\"/100%%/acpd" run"#]
        );
        assert_eq!(
            lines("acpd.service", "Environment"),
            [
                r#"Environment="ACPD_STATE_DIR=/data/my state""#,
                r#"Environment="ACPD_CONFIG_DIR=/c&d/100%%""#
            ]
        );
        assert_eq!(lines("acpd.socket", "Listen"), ["ListenStream=/run/other/acpd.sock"]);
    }

    #[test]
    fn a_launch_agent_names_the_same() {
        let file = launch_agent("/opt/<tools>/acpd", &dirs(), Some("/a&b/acpd.sock"));
        assert_eq!(file.path, Path::new("/home/me/Library/LaunchAgents/dev.acpd.acpd.plist"));
        for line in [
            "<string>/opt/&lt;tools&gt;/acpd</string>",
            "<string>/home/me/Library/Logs/acpd.log</string>",
            "<key>SockPathName</key>\n            <string>/a&amp;b/acpd.sock</string>",
            "<key>EnvironmentVariables</key>",
            "<key>ACPD_CONFIG_DIR</key>\n        <string>/c&amp;d/100%</string>",
        ] {
            assert!(file.text.contains(line), "{line} is not in {}", file.text);
        }
        assert!(!launch_agent("/a/acpd", &[], Some("/s")).text.contains("Environment"));
    }

    #[test]
    fn launchd_listens_where_the_directory_lasts_and_nowhere_else() {
        let text = |listen: Option<&str>| launch_agent("/a/acpd", &[], listen).text;
        let (with, without) = (text(Some("/s")), text(None));
        assert!(with.contains("<key>Sockets</key>") && !with.contains("YOU"));
        assert!(!without.contains("Sock") && !without.contains("YOU"));
        for text in [with, without] {
            let count = |word: &str| text.matches(word).count();
            assert_eq!(count("<dict>"), count("</dict>"));
            assert_eq!(count("<string>"), count("</string>"));
            assert!(text.contains("</array>\n    <") && text.contains("<key>RunAtLoad</key>"));
            assert!(!text.contains("/usr/local/bin") && !text.contains("/tmp/"));
        }
    }
}
