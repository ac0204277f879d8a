//! `acpctl service …`: acpd as a service of the user.
//!
//! Installation:
//!
//! ```text
//!  acpd check ─▶ files, enable ─▶ no client may start a daemon ─▶ the running one leaves its agents
//!                                    └─▶ the manager listens ◀──────┘ and starts the next, which takes them over
//! ```

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use acpd_api::{ExitCode, Untrusted};
use acpd_client::{Paths, hold_starts};
use acpd_sys::lock;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::args::Json;
use crate::confirm::{ADD_YES_OR_DRY_RUN, confirm};
use crate::daemon::{detach, info, running, serving, stop};
use crate::error::{CommandError, Result};
use crate::human::{self, word};
use crate::log_file::Tail;
use crate::service::{
    FileState, Manager, Order, Service, State, UnitFile, base, home, remove_file, remove_folders,
};
use crate::text::{Text, key_values, text};
use crate::ui::Ui;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum ServiceCommand {
    /// Install acpd as a user service (systemd; launchd on macOS). A running daemon, its agents and turns continue.
    #[command(after_long_help = examples!(
        "acpctl service install --dry-run" => "Show the files and the commands first",
        "acpctl service install" => "Start acpd at login from now on",
    ))]
    Install {
        /// Print the files and the commands, and do nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Remove the service; the running daemon continues.
    #[command(after_long_help = examples!(
        "acpctl service uninstall" => "Remove the service; the running daemon continues",
        "acpctl service uninstall --purge --dry-run" =>
            "Show what removing all of acpd would delete",
    ))]
    Uninstall(Uninstall),
    /// Show the service; exits with 3 if there is none.
    #[command(after_long_help = examples!(
        "acpctl service status" => "Check whether acpd is a service",
    ))]
    Status(Json),
    /// Print the log of the service.
    #[command(after_long_help = examples!(
        "acpctl service logs -f" => "Follow the log",
    ))]
    Logs(Tail),
}

pub(super) fn service(command: ServiceCommand, ui: &mut Ui) -> Result {
    if env::consts::OS == "windows" {
        let error = "there is no service on Windows";
        return Err(CommandError::usage(error).hint("commands start acpd when they need it"));
    }
    let paths = Paths::discover()?;
    let service = Service::here(&paths)?;
    match command {
        ServiceCommand::Install { dry_run: true } => show(&service, &paths, ui),
        ServiceCommand::Install { dry_run: false } => install(&service, &paths, ui),
        ServiceCommand::Uninstall(args) => uninstall(args, &service, &paths, ui),
        ServiceCommand::Status(json) => status(&service, &paths, json, ui),
        ServiceCommand::Logs(_) if !service.is_installed() => {
            Err(not_installed()
                .hint("the log of a daemon that a client started: `acpctl daemon logs`"))
        }
        ServiceCommand::Logs(tail) => service.print_log(tail, ui),
    }
}

fn show(service: &Service, paths: &Paths, ui: &mut Ui) -> Result {
    for UnitFile { path, text } in &service.files {
        ui.print(text!("# {}\n{}\n", path, Untrusted::from(text).prose()))?;
    }
    for line in service.steps() {
        ui.print(text!("$ {}\n", Untrusted::from(line)))?;
    }
    // A connection would start a daemon if a package's manager listens. In a dry run, an unreadable
    // lock is no failure.
    if !service.is_installed()
        && lock::is_held(&paths.lock()).unwrap_or(false)
        && let Some(holder) = lock::signature(&paths.lock())
    {
        let pid = holder.pid;
        ui.say(text!("acpd is running (pid {}): the service takes it over", pid));
    }
    Ok(())
}

/// Does nothing if acpd is a current service.
fn install(service: &Service, paths: &Paths, ui: &mut Ui) -> Result {
    service.check_program()?;
    let before = service.state()?;
    let stale: Vec<_> = service.stale().collect();
    // launchd listens only if the socket's directory is permanent.
    let listens = before.listens || service.manager == Manager::Launchd;
    // A manager neither starts to listen for a running daemon nor gives it new files.
    let works = stale.is_empty() && listens && !before.failed;
    let held = hold_starts(paths)?;
    let serving = before.serving(paths)?;
    let is_ours = serving.as_ref().is_some_and(|daemon| before.pid == Some(daemon.pid));
    if works && before.enabled && (serving.is_none() || is_ours) {
        ui.say("acpd is already installed as a service");
        lingering(service, ui);
        return Ok(());
    }
    let continues = serving.is_some() && !(is_ours && works);
    for file in stale {
        let did = if file.state() == FileState::Other { "replaced" } else { "wrote" };
        file.write()?;
        ui.say(text!("{} {}", did, file.path));
    }
    service.order(Order::Enable)?;
    if !works {
        // This also ends a delayed start, which would come too late.
        service.order(Order::Stop)?;
    }
    if before.failed {
        service.order(Order::Forgive)?;
    }
    if continues && !is_ours {
        detach(paths, ui)?;
    }
    let now = continues || before.failed || before.pid.is_some();
    if let Err(error) = service.order(if now { Order::Start } else { Order::Listen }) {
        // So that clients can start the daemon, as before.
        service.order(Order::Stop).ok();
        return Err(error);
    }
    drop(held);
    let daemon = if now { running(paths)? } else { None };
    match daemon {
        Some(mut daemon) => {
            let pid = info(&mut daemon)?.pid;
            let word = if continues { "continues" } else { "runs" };
            ui.say(text!("acpd {} as a service (pid {})", word, pid));
        }
        None => ui.say("acpd is installed: it starts at login or with its first client"),
    }
    lingering(service, ui);
    Ok(())
}

/// A user's service ends with the last logout, unless the user enables lingering.
fn lingering(service: &Service, ui: &mut Ui) {
    if service.lingers() == Some(false) {
        ui.say("to keep it running after logout: loginctl enable-linger");
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ServiceInfo {
    manager: Manager,
    /// The program that the service runs or would run.
    program: Untrusted,
    files: Vec<File>,
    #[serde(flatten)]
    state: State,
    /// The pid of the daemon that serves clients. It is not the service's if a client started the
    /// daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    serving: Option<u32>,
    /// The service continues after logout; none if that cannot be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    lingers: Option<bool>,
}

#[derive(Debug, Serialize)]
struct File {
    path: Untrusted,
    state: FileState,
}

fn status(service: &Service, paths: &Paths, json: Json, ui: &mut Ui) -> Result {
    let state = service.known()?;
    let serving = state.serving(paths)?;
    let files = service
        .files
        .iter()
        .map(|file| File { path: Untrusted::of(file.path.display()), state: file.state() });
    let found = ServiceInfo {
        manager: service.manager,
        program: Untrusted::of(service.program.display()),
        files: files.collect(),
        state,
        serving: serving.map(|daemon| daemon.pid),
        lingers: service.lingers(),
    };
    ui.show(json.json, &found, card(&found))?;
    if service.is_installed() || found.state != State::default() {
        return Ok(());
    }
    Err(not_installed())
}

fn not_installed() -> CommandError {
    CommandError::new(ExitCode::NotFound, "acpd is not installed as a service")
        .hint("install it: `acpctl service install`; `--dry-run` shows the files")
}

fn card(found: &ServiceInfo) -> Text {
    let manager = Untrusted::from(word(&found.manager));
    let State { enabled, listens, pid, failed } = found.state;
    let starts = match (enabled, listens) {
        (true, true) => "at login, or with its first client",
        (true, false) => "at login",
        (false, true) => "with its first client",
        (false, false) => "only by a client",
    };
    let daemon = match (pid, found.serving) {
        (Some(pid), Some(serving)) if pid == serving => {
            text!("pid {}, started by the service", pid)
        }
        (_, Some(serving)) => {
            text!("pid {}, started by a client: `acpctl service install` takes it over", serving)
        }
        (Some(pid), None) => text!("pid {}, not serving clients", pid),
        (None, None) => "not running".into(),
    };
    let mut rows: Vec<(&'static str, Text)> =
        vec![("manager", manager.into()), ("program", (&found.program).into())];
    let is_packages = found.files.iter().all(|file| file.state == FileState::Missing)
        && found.state != State::default();
    if is_packages {
        rows.push(("files", "from a package".into()));
    }
    for file in found.files.iter().filter(|_| !is_packages) {
        let state = match file.state {
            FileState::Current => "",
            FileState::Other => " (differs)",
            FileState::Missing => " (missing)",
        };
        rows.push(("file", text!("{}{}", file.path, state)));
    }
    if found.files.iter().any(|file| file.state == FileState::Other) {
        rows.push(("", "`acpctl service install` replaces files that differ".into()));
    }
    rows.extend([("starts", starts.into()), ("daemon", daemon)]);
    if failed {
        rows.push((
            "failed",
            "acpd could not start: see `acpctl doctor` and `acpctl service logs`".into(),
        ));
        rows.push(("", "after fixing it: `acpctl service install`".into()));
    }
    rows.extend(found.lingers.map(|lingers| {
        let text =
            if lingers { "yes" } else { "no, it stops when you log out: loginctl enable-linger" };
        ("lingers", text.into())
    }));
    key_values(&rows)
}

#[derive(Debug, Clone, Copy, Args)]
pub(super) struct Uninstall {
    /// Also stop acpd and all agents, and delete all data: conversations, logs, configuration, completions, and
    /// additions to its units.
    #[arg(long)]
    purge: bool,
    /// Print what would be deleted, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long, requires = "purge")]
    yes: bool,
}

fn uninstall(args: Uninstall, service: &Service, paths: &Paths, ui: &mut Ui) -> Result {
    let traces = if args.purge { Traces::find(paths)? } else { Traces::default() };
    if !service.is_installed() && traces.is_empty() {
        return ui.done("acpd is not installed as a service");
    }
    let units = service.present().map(|file| text!("{}\n", file.path)).collect::<Text>();
    let all = text!("{}{}", units, traces.list());
    if args.dry_run {
        ui.print(all)?;
        return Ok(());
    }
    if !args.purge {
        return take_out(service, paths, ui);
    }
    if args.yes {
        ui.say("stopping all agents and deleting all conversations:");
        ui.talk(&all);
    } else {
        let prompt = "stop all agents and delete all this, with all conversations? y/n > ";
        confirm(ui, "deleting all data of acpd", ADD_YES_OR_DRY_RUN, &all, prompt)?;
    }
    purge(service, paths, ui)
}

/// Agents and turns continue under a daemon without a manager.
fn take_out(service: &Service, paths: &Paths, ui: &mut Ui) -> Result {
    let state = service.state()?;
    let held = hold_starts(paths)?;
    let ran = state.running(paths)?.is_some();
    service.order(Order::Stop)?;
    remove(service, ui)?;
    drop(held);
    if !ran || !ui.may_start {
        return Ok(());
    }
    let pid = info(&mut ui.door().connect()?)?.pid;
    ui.done(text!("acpd keeps running without the service (pid {})", pid))
}

fn purge(service: &Service, paths: &Paths, ui: &mut Ui) -> Result {
    // A package's service no longer starts; its files belong to the package.
    let is_known = service.is_installed() || service.known()? != State::default();
    if is_known {
        service.order(Order::IgnoreClients)?;
    }
    stop(paths, false, ui.may_start, ui)?;
    let held = hold_starts(paths)?;
    if serving(paths)?.is_some() {
        let text = "a client restarted acpd";
        return Err(CommandError::new(ExitCode::Error, text)
            .hint("close editors and screens that use it, then try again"));
    }
    if is_known {
        service.order(Order::Stop)?;
    }
    // New data goes too; additions go before their units, so that the folder becomes empty.
    let traces = Traces::find(paths)?;
    for kept in traces.remove()? {
        ui.say(text!("kept {}: it has other files", kept));
    }
    if is_known {
        remove(service, ui)?;
    } else {
        // Without a manager, no program read the additions.
        service.order(Order::Forget).ok();
    }
    drop(held);
    for file in mentions() {
        ui.say(text!("kept a line with `acpctl completions` in {}", file));
    }
    ui.done("everything but the programs of acpd is deleted")
}

fn remove(service: &Service, ui: &mut Ui) -> Result {
    let found: Vec<_> = service.present().collect();
    service.remove()?;
    for file in found {
        ui.say(text!("removed {}", file.path));
    }
    Ok(())
}

/// acpd's data in a home: directories, additions to units, and completions.
///
/// Architecture invariant: only acpd's own files are deleted, by name, and the user's additions to
/// acpd's units, which are listed one by one. So a wrong directory in a variable loses nothing
/// else.
#[derive(Debug, Default)]
struct Traces {
    /// acpd's directories, and acpd's files in them.
    dirs: Vec<(PathBuf, Vec<PathBuf>)>,
    /// Directories next to acpd's units, with the user's files in them.
    additions: Vec<(PathBuf, Vec<PathBuf>)>,
    files: Vec<PathBuf>,
}

impl Traces {
    fn find(paths: &Paths) -> Result<Traces> {
        let is_runtime = |name: &str| ["acpd.sock", "acpd.start.lock", "s"].contains(&name);
        // The `demo` agent always uses this directory.
        let demo = base("XDG_STATE_HOME", ".local/state")?.join("acpd");
        let dirs = [
            own(&paths.state, &is_state)?,
            own(&paths.config, &|name| ["config.toml", "config.schema.json"].contains(&name))?,
            own(&paths.runtime, &is_runtime)?,
            own(&demo, &|name| name == "demo")?.filter(|_| demo != paths.state),
        ];
        // `systemctl --user edit acpd` creates these.
        let units = base("XDG_CONFIG_HOME", ".config")?.join("systemd/user");
        let is_addition = |name: &str| Path::new(name).extension().is_some_and(|end| end == "conf");
        let additions = [
            own(&units.join("acpd.service.d"), &is_addition)?,
            own(&units.join("acpd.socket.d"), &is_addition)?,
        ];
        let completions = [
            base("XDG_DATA_HOME", ".local/share")?.join("bash-completion/completions/acpctl"),
            base("XDG_CONFIG_HOME", ".config")?.join("fish/completions/acpctl.fish"),
            base("XDG_DATA_HOME", ".local/share")?.join("zsh/site-functions/_acpctl"),
            home()?.join(".zfunc/_acpctl"),
        ];
        Ok(Traces {
            dirs: dirs.into_iter().flatten().collect(),
            additions: additions.into_iter().flatten().collect(),
            files: completions.into_iter().filter(|file| file.is_file()).collect(),
        })
    }

    fn is_empty(&self) -> bool {
        self.dirs.is_empty() && self.additions.is_empty() && self.files.is_empty()
    }

    fn list(&self) -> Text {
        let dir = |(dir, own): &(PathBuf, Vec<PathBuf>)| {
            let size = own.iter().map(|path| size(path)).sum();
            text!("{}  {}\n", dir, human::bytes(size))
        };
        let files = self.additions.iter().flat_map(|(_, own)| own).chain(&self.files);
        self.dirs.iter().map(dir).chain(files.map(|file| text!("{}\n", file))).collect()
    }

    /// Returns the directories with other files.
    fn remove(&self) -> Result<Vec<&Path>> {
        let mut kept = Vec::new();
        for (dir, own) in self.dirs.iter().chain(&self.additions) {
            for path in own {
                let failed = |error| CommandError::file("remove", path, &error);
                // A link to a directory is removed as a link.
                if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                    fs::remove_dir_all(path).map_err(failed)?;
                } else {
                    remove_file(path)?;
                }
            }
            // A link in place of a configuration directory is removed; its target stays.
            let link = dir.symlink_metadata().is_ok_and(|found| found.is_symlink());
            let removed = if link { fs::remove_file(dir) } else { fs::remove_dir(dir) };
            match removed {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => kept.push(&**dir),
                Err(error) => return Err(CommandError::file("remove", dir, &error)),
                Ok(()) => {}
            }
        }
        for (dir, _) in &self.additions {
            remove_folders(dir);
        }
        for file in &self.files {
            remove_file(file)?;
        }
        Ok(kept)
    }
}

/// Returns the user's shell files that still run `acpctl completions`.
fn mentions() -> Vec<PathBuf> {
    let Ok(home) = home() else { return Vec::new() };
    let files = [
        ".bashrc",
        ".bash_profile",
        ".profile",
        ".zshrc",
        ".config/fish/config.fish",
        ".config/powershell/profile.ps1",
        ".config/powershell/Microsoft.PowerShell_profile.ps1",
    ];
    let mentions = |file: &PathBuf| {
        fs::read_to_string(file).is_ok_and(|text| text.contains("acpctl completions"))
    };
    files.iter().map(|file| home.join(file)).filter(mentions).collect()
}

fn is_state(name: &str) -> bool {
    let is_dir = ["log", "shims", "web", "demo"].contains(&name);
    is_dir || ["acpd.", "search.db", Paths::KEPT_ASIDE].iter().any(|own| name.starts_with(own))
}

/// Returns a directory, if there is one, and its entries with acpd's names.
fn own(dir: &Path, is_own: &dyn Fn(&str) -> bool) -> Result<Option<(PathBuf, Vec<PathBuf>)>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(CommandError::file("read", dir, &error)),
    };
    let own = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_own));
    let mut own: Vec<PathBuf> = own.map(|entry| entry.path()).collect();
    own.sort();
    Ok(Some((dir.to_owned(), own)))
}

fn size(path: &Path) -> u64 {
    let Ok(found) = path.symlink_metadata() else { return 0 };
    if !found.is_dir() {
        return found.len();
    }
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_acpd_makes_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        fs::create_dir_all(state.join("log/agents")).unwrap();
        fs::create_dir_all(state.join("letters")).unwrap();
        let kept = "acpd-before-restore-1.db";
        for name in ["acpd.db", "acpd.db-wal", kept, "search.db", "log/acpd.log", "letters/mum"] {
            fs::write(state.join(name), "x").unwrap();
        }
        let dirs = || own(&state, &is_state).unwrap().into_iter().collect();
        let traces = || Traces { dirs: dirs(), ..Traces::default() };
        assert_eq!(traces().remove().unwrap(), [&*state]);
        let left: Vec<_> = fs::read_dir(&state).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["letters"]);
        fs::remove_dir_all(state.join("letters")).unwrap();
        assert!(traces().remove().unwrap().is_empty());
        assert!(!state.exists());
    }
}
