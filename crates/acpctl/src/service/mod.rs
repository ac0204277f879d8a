//! acpd as a service: the files that a service manager reads, and the commands for it.
//!
//! The texts have one owner, the files in `systemd/` and `launchd/`: what is written differs from them in the path
//! of the program, and in directories that are not the usual ones.

mod launchd;
mod systemd;

use std::env;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use acpd_api::ExitCode;
use acpd_client::{Connection, Paths, daemon_exe};
use serde::Serialize;

use crate::error::{CommandError, Result};
use crate::log_file::{self, Tail};
use crate::programs;
use crate::stop::running;
use crate::text::{Text, text};
use crate::ui::Ui;

/// acpd as a service of this user.
#[derive(Debug)]
pub(crate) struct Service {
    manager: Manager,
    /// The program that the service runs.
    pub(crate) program: PathBuf,
    /// Files for the manager.
    pub(crate) files: Vec<UnitFile>,
    /// The socket is where one that a package has installed has it, too.
    is_usual: bool,
}

/// The service manager of this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Manager {
    Systemd,
    Launchd,
}

/// Orders to the service manager.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// Read the files, and start the service with each login.
    Enable,
    /// Listen for clients, which start the daemon.
    Listen,
    /// Listen for clients, and start the daemon at once.
    Start,
    /// Forget that the daemon has failed, and try as often as at first.
    Forgive,
    /// Start no daemon for a client. One that runs stays, or leaves its agents to the next one.
    IgnoreClients,
    /// End the daemon of the service, which leaves its agents to the next one.
    Stop,
    /// Start nothing at login. The service brings its socket along.
    Disable,
    /// Forget files that are gone.
    Forget,
}

/// State of the service in the manager.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct State {
    /// The manager starts the daemon at login.
    pub(crate) enabled: bool,
    /// The manager listens for the daemon, which starts with the first connection.
    pub(crate) listens: bool,
    /// The daemon that the manager has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    /// The daemon has failed: the manager starts it again later, or has given up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) failed: bool,
}

/// A file of the service, as it should be.
#[derive(Debug)]
pub(crate) struct UnitFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// A file compared with its intended text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileState {
    /// As it should be.
    Current,
    /// An older one, or changed.
    Other,
    Missing,
}

/// Inputs of the files.
struct Place<'a> {
    home: &'a Path,
    program: &'a str,
    /// Variables for directories that are not the usual ones.
    dirs: Vec<(&'static str, String)>,
    /// The socket, if it is not at the usual place.
    socket: Option<String>,
    /// The socket, if its directory is there when the system has started again.
    listen: Option<String>,
}

impl Service {
    /// The service for the daemon's program next to this one, and for the directories of this environment.
    pub(crate) fn here(paths: &Paths) -> Result<Service> {
        let home = home()?;
        let program = program()?;
        let text = utf8(&program)?;
        let (dirs, socket, listen) = (dirs(paths)?, socket(paths)?, lasting_socket(paths)?);
        let is_usual = socket.is_none();
        let place = Place { home: &home, program: &text, dirs, socket, listen };
        let manager = match env::consts::OS {
            "macos" => Manager::Launchd,
            _ => Manager::Systemd,
        };
        let files = match manager {
            Manager::Systemd => systemd::files(&place),
            Manager::Launchd => launchd::files(&place),
        };
        Ok(Service { manager, program, files, is_usual })
    }

    pub(crate) fn manager(&self) -> Manager {
        self.manager
    }

    /// Returns whether any of its files is there.
    pub(crate) fn is_installed(&self) -> bool {
        self.files.iter().any(|file| file.state() != FileState::Missing)
    }

    /// Makes sure that the daemon could start, before anything of the running one is touched.
    pub(crate) fn check_program(&self) -> Result {
        tell(&self.program, &["check"]).map(drop)
    }

    /// Returns the state of the service in the manager.
    pub(crate) fn state(&self) -> Result<State> {
        match self.manager {
            Manager::Systemd => systemd::state(),
            Manager::Launchd => Ok(launchd::state()),
        }
    }

    /// State of a service that may be installed or not. A package has its files elsewhere; where there is none of that
    /// either, there need not be a manager.
    pub(crate) fn known(&self) -> Result<State> {
        if self.is_installed() {
            return self.state();
        }
        Ok(if self.is_usual { self.state().unwrap_or_default() } else { State::default() })
    }

    /// The commands that follow the writing of the files, for a person to read.
    pub(crate) fn steps(&self) -> Vec<String> {
        match self.manager {
            Manager::Systemd => {
                let steps = [Order::Enable, Order::Listen].map(systemd::commands);
                steps.concat().iter().map(|words| words.join(" ")).collect()
            }
            Manager::Launchd => vec![launchd::start(&self.files[0].path).join(" ")],
        }
    }

    pub(crate) fn order(&self, order: Order) -> Result {
        match self.manager {
            Manager::Systemd => systemd::run(order),
            Manager::Launchd => launchd::run(order, &self.files[0].path),
        }
    }

    /// Removes the files, and has the manager forget the service. Give [`Order::Stop`] first.
    pub(crate) fn remove(&self) -> Result {
        self.order(Order::Disable)?;
        for file in &self.files {
            remove_file(&file.path)?;
            remove_folders(&file.path);
        }
        self.order(Order::Forget)
    }

    /// The service whose manager listens for clients, and what else it knows of it.
    pub(crate) fn listening(paths: &Paths) -> Option<(Service, State)> {
        Service::with(paths, |state| state.listens)
    }

    /// The service whose manager has started the daemon that runs, and so has its log.
    pub(crate) fn with_log(paths: &Paths) -> Option<Service> {
        Service::with(paths, |state| state.pid.is_some()).map(|(service, _)| service)
    }

    fn with(paths: &Paths, is_so: impl Fn(&State) -> bool) -> Option<(Service, State)> {
        let service = Service::here(paths).ok()?;
        let state = service.known().ok().filter(is_so)?;
        Some((service, state))
    }

    /// Place of the log: a command or a file.
    pub(crate) fn log_place(&self) -> Result<Text> {
        match self.manager {
            Manager::Systemd => Ok(Text::from(systemd::LOG)),
            Manager::Launchd => log_file().map(|file| text!("{}", file)),
        }
    }

    /// Prints what the manager has kept of the daemon's log.
    pub(crate) fn print_log(&self, tail: Tail, ui: &mut Ui) -> Result {
        let Some(mut command) = self.log_command(tail.follow, tail.lines) else {
            return log_file::print(&log_file()?, tail, ui);
        };
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
        if status.success() { Ok(()) } else { Err(CommandError::told()) }
    }

    /// The command that prints the log, where the manager keeps it.
    pub(crate) fn log_command(&self, follow: bool, lines: usize) -> Option<Command> {
        (self.manager == Manager::Systemd).then(|| systemd::log_command(follow, lines))
    }

    /// Returns whether the service continues without a login session; `None` where that cannot be chosen.
    pub(crate) fn lingers(&self) -> Option<bool> {
        (self.manager == Manager::Systemd).then(systemd::lingers)
    }
}

impl State {
    /// A connection to the daemon, if one runs. Where the manager listens for it, looking would start it.
    pub(crate) fn running(&self, paths: &Paths) -> Result<Option<Connection>> {
        if self.listens && self.pid.is_none() { Ok(None) } else { running(paths) }
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

    /// Writes it, with its folders.
    pub(crate) fn write(&self) -> Result {
        let failed = |error| CommandError::file("write", &self.path, &error);
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::write(&self.path, &self.text).map_err(failed)
    }
}

pub(crate) fn home() -> Result<PathBuf> {
    env::home_dir().filter(|home| home.is_absolute()).ok_or_else(|| {
        CommandError::new(ExitCode::Error, "the home directory is unknown").hint("set HOME")
    })
}

/// A folder that a variable names, else one below the home directory.
pub(crate) fn base(variable: &str, usual: &str) -> Result<PathBuf> {
    let named = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    named.map_or_else(|| Ok(home()?.join(usual)), Ok)
}

/// The file that the log is in, where the manager keeps none itself.
pub(crate) fn log_file() -> Result<PathBuf> {
    Ok(launchd::log(&home()?))
}

/// Removes a file that may be gone already.
pub(crate) fn remove_file(path: &Path) -> Result {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CommandError::file("remove", path, &error))
        }
        _ => Ok(()),
    }
}

/// Removes the folders that were made for something in them, unless there is something else.
pub(crate) fn remove_folders(of: &Path) {
    let folders = of.ancestors().skip(1).take(2);
    folders.take_while(|folder| fs::remove_dir(folder).is_ok()).for_each(drop);
}

/// The path of the daemon's program. A link in `PATH` is better than what it leads to: package managers keep each
/// version in a folder of its own, and an upgrade removes the old one.
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

/// Directories that a service manager, which does not have this environment, would look for elsewhere.
fn dirs(paths: &Paths) -> Result<Vec<(&'static str, String)>> {
    let all = [
        ("ACPD_RUNTIME_DIR", None, &paths.runtime),
        ("ACPD_STATE_DIR", Some("XDG_STATE_HOME"), &paths.state),
        ("ACPD_CONFIG_DIR", Some("XDG_CONFIG_HOME"), &paths.config),
    ];
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let moved = all.into_iter().filter(|(own, base, _)| is_set(own) || base.is_some_and(is_set));
    moved.map(|(own, _, path)| Ok((own, utf8(path)?))).collect()
}

/// The socket, if it is not where managers look for it.
fn socket(paths: &Paths) -> Result<Option<String>> {
    let is_set = env::var_os("ACPD_RUNTIME_DIR").is_some_and(|value| !value.is_empty());
    is_set.then(|| utf8(&paths.socket())).transpose()
}

/// The socket, if its directory is there when the system has started again.
fn lasting_socket(paths: &Paths) -> Result<Option<String>> {
    let lasts = !paths.runtime.starts_with(env::temp_dir());
    lasts.then(|| utf8(&paths.socket())).transpose()
}

/// A path as a file of a manager can hold it.
fn utf8(path: &Path) -> Result<String> {
    let text = path.to_str().filter(|path| !path.contains(char::is_control));
    text.map(str::to_owned).ok_or_else(|| {
        CommandError::usage(text!("`{}` cannot be used in a service file", path))
            .hint("rename it: plain characters only")
    })
}

/// Runs a command to its end; what it prints.
fn tell(program: &Path, args: &[&str]) -> Result<String> {
    let output = programs::output_of(Command::new(program).args(args))?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(program: &str, moved: bool) -> Place<'_> {
        let dirs = [("ACPD_STATE_DIR", "/data/my state"), ("ACPD_CONFIG_DIR", "/c&d/100%")];
        let dirs = dirs.into_iter().filter(|_| moved).map(|(name, dir)| (name, dir.to_owned()));
        let socket = moved.then(|| "/run/other/acpd.sock".to_owned());
        let (home, listen) = (Path::new("/home/me"), Some("/a&b/acpd.sock".to_owned()));
        Place { home, program, dirs: dirs.collect(), socket, listen }
    }

    #[test]
    fn a_package_installs_the_same_units() {
        for (file, text) in systemd::files(&place("/usr/bin/acpd", false)).iter().zip([
            include_str!("../../../../systemd/acpd.service"),
            include_str!("../../../../systemd/acpd.socket"),
        ]) {
            assert_eq!(file.text, text);
        }
    }

    #[test]
    fn units_name_the_program_and_directories_that_are_not_the_usual_ones() {
        let files = systemd::files(&place("/opt/my \"tools\"/100%/acpd", true));
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
        let files = launchd::files(&place("/opt/<tools>/acpd", true));
        assert_eq!(files[0].path, Path::new("/home/me/Library/LaunchAgents/dev.acpd.acpd.plist"));
        for line in [
            "<string>/opt/&lt;tools&gt;/acpd</string>",
            "<string>/home/me/Library/Logs/acpd.log</string>",
            "<key>SockPathName</key>\n            <string>/a&amp;b/acpd.sock</string>",
            "<key>EnvironmentVariables</key>",
            "<key>ACPD_CONFIG_DIR</key>\n        <string>/c&amp;d/100%</string>",
        ] {
            assert!(files[0].text.contains(line), "{line} is not in {}", files[0].text);
        }
        assert!(!launchd::files(&place("/a/acpd", false))[0].text.contains("Environment"));
    }

    #[test]
    fn launchd_listens_where_the_directory_lasts_and_nowhere_else() {
        let text = |listen: Option<&str>| {
            let place = Place { listen: listen.map(str::to_owned), ..place("/a/acpd", false) };
            launchd::files(&place).remove(0).text
        };
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
