//! A real user service manager: `acpctl service install` makes acpd a service of it, it starts acpd on the first
//! connection and again when it is killed, and no turn is lost by any of that, nor by installing and uninstalling.
//!
//! Needs systemd's program, and the folder by which it knows that it may run. Outside of continuous
//! integration the test is skipped, with a line that says so, when something is missing.
#![cfg(target_os = "linux")]

mod builds;
mod program;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use builds::{Build, Run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use xtask::home::{Home, wait_for};
use xtask::{Result, workspace};

const MANAGER: &str = "/usr/lib/systemd/systemd";
const BOOTED: &str = "/run/systemd/system";
const AGENTS: usize = 8;
/// How long the manager may take for anything.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_service_manager_may_kill_and_restart_acpd_at_any_time() {
    with_manager(service);
}

#[test]
fn an_installation_has_a_service_that_failed_run_again_and_cuts_no_turn_of_one_that_runs() {
    with_manager(failed);
}

#[test]
fn a_look_at_units_of_a_package_starts_nothing_and_a_purge_leaves_these_alone() {
    with_manager(packaged);
}

fn with_manager(test: fn() -> Result) {
    match missing() {
        Some(missing) => workspace::skip("user service", missing),
        None => test(),
    }
    .unwrap();
}

fn missing() -> Option<String> {
    if !Path::new(MANAGER).exists() {
        return Some(format!("`{MANAGER}` is missing"));
    }
    if workspace::in_ci() {
        fs::create_dir_all(BOOTED).ok();
    }
    (!Path::new(BOOTED).is_dir()).then(|| format!("`{BOOTED}` is missing"))
}

fn service() -> Result {
    let user = User::start()?;

    // Installed in a home in which there is nothing, it waits for its first client.
    let said = user.told(&["service", "install"])?;
    assert!(said.contains("it starts at login or with its first client"), "{said}");
    let status = user.read(&["service", "status"])?;
    assert_eq!([&status["enabled"], &status["listens"]], [true, true], "{status}");
    assert_eq!((status["pid"].as_u64(), status["serving"].as_u64()), (None, None), "{status}");

    // The first command of a client starts the daemon, which is the manager's.
    let pid = user.daemon()?;
    assert_eq!(user.main_pid()?, pid);
    assert!(user.told(&["service", "install"])?.contains("already installed as a service"));
    assert_eq!(user.daemon()?, pid);

    // Killed in the middle of an answer, it is started again by the manager, and the answer ends.
    let mut one = user.run("agent0", "one", 60)?;
    one.read_to(5)?;
    kill(pid, Signal::SIGKILL)?;
    one.finish()?;
    let next = user.daemon()?;
    assert_ne!(next, pid);
    assert_eq!(user.main_pid()?, next);

    // Upgraded while every agent streams: the old program is gone, and the new one takes its place under the same pid.
    let before = user.daemon()?;
    let runs: Result<Vec<Run>> =
        (0..AGENTS).map(|n| user.run(&format!("agent{n}"), "upgraded", 150)).collect();
    let mut runs = runs?;
    for run in &mut runs {
        run.read_to(5)?;
    }
    let other = Build::other(&user.build, &user.home.path("other"))?;
    other.install(user.programs.path())?;
    user.told(&["daemon", "restart"])?;
    for run in runs {
        run.finish()?;
    }
    let status = user.read(&["status"])?;
    assert_eq!(status["daemon"]["version"], other.version.as_str());
    assert_eq!((user.daemon()?, user.main_pid()?), (before, before));

    // Taken out and put back in the middle of an answer: first a client's daemon takes over, then the manager's.
    let mut long = user.run("agent1", "long", 300)?;
    long.read_to(5)?;
    let said = user.told(&["service", "uninstall"])?;
    assert!(said.contains("acpd keeps running without the service"), "{said}");
    for unit in ["acpd.service", "acpd.socket"] {
        assert!(!user.unit(unit).exists(), "{unit}");
    }
    assert!(user.systemctl(&["start", "acpd.socket"]).is_err(), "it is forgotten");
    let alone = user.daemon()?;
    long.read_to(100)?;
    let said = user.told(&["service", "install"])?;
    assert!(said.contains("acpd continues as a service"), "{said}");
    let taken = user.daemon()?;
    assert_ne!(taken, alone);
    assert_eq!(user.main_pid()?, taken);
    long.finish()?;

    restored_while_clients_come(&user)?;

    // Stopped, it leaves the agents; purged, it leaves nothing.
    let agent = user.read(&["agent", "show", "agent0"])?;
    user.systemctl(&["stop", "acpd.service"])?;
    assert_eq!(user.read(&["agent", "show", "agent0"])?["pid"], agent["pid"]);
    user.told(&["service", "uninstall", "--purge", "--yes"])?;
    assert!(user.home.leftovers().iter().all(|left| left.pid == user.manager.id()));
    for left in ["state", "config", "systemd", ".local/state/acpd", "xdg/acpd"] {
        assert!(!user.home.path(left).exists(), "{left} is left");
    }
    user.stop()
}

/// A service that could not start acpd, or whose socket does not listen.
fn failed() -> Result {
    let user = User::start()?;
    user.told(&["service", "install"])?;
    let socket =
        |state: &str| user.property("acpd.socket", "ActiveState").is_ok_and(|s| s == state);
    let service = |state: &str| user.property("acpd.service", "SubState").is_ok_and(|s| s == state);

    // Given up, mended, and started by a person: its socket does not listen yet.
    user.add("[Unit]\nStartLimitBurst=2\n")?;
    kill(user.daemon_that_breaks()?, Signal::SIGKILL)?;
    wait_for("both units to fail", PATIENCE, || service("failed") && socket("failed"))?;
    let doctor = user.doctor()?;
    assert!(doctor.contains("acpd has failed") && !doctor.contains("first client"), "{doctor}");
    user.configure()?;
    user.systemctl(&["reset-failed", "acpd.service"])?;
    user.systemctl(&["start", "acpd.service"])?;
    assert!(socket("failed"));
    let doctor = user.doctor()?;
    assert!(!doctor.contains("failed"), "{doctor}");
    let mut run = user.run("agent0", "mended", 150)?;
    run.read_to(5)?;
    let said = user.told(&["service", "install"])?;
    assert!(said.contains("acpd continues as a service"), "{said}");
    run.finish()?;
    assert!(socket("active"), "{said}");

    // The socket was stopped by a person.
    let mut run = user.run("agent0", "stopped", 150)?;
    run.read_to(5)?;
    user.systemctl(&["stop", "acpd.socket"])?;
    let said = user.told(&["service", "install"])?;
    assert!(said.contains("acpd continues as a service"), "{said}");
    run.finish()?;
    assert!(socket("active"), "{said}");

    // The manager waits before it tries again; an installation does not.
    user.add("[Service]\nRestartSec=1h\n")?;
    kill(user.daemon_that_breaks()?, Signal::SIGKILL)?;
    wait_for("a restart that waits", PATIENCE, || service("auto-restart"))?;
    user.configure()?;
    let said = user.told(&["service", "install"])?;
    assert!(said.contains("acpd runs as a service"), "{said}");
    assert_eq!(user.main_pid()?, user.daemon()?);

    user.told(&["service", "uninstall", "--purge", "--yes"])?;
    user.stop()
}

/// Units that a package has installed, and the user has enabled.
fn packaged() -> Result {
    let user = User::start()?;
    let units = user.home.path(".local/share/systemd/user");
    fs::create_dir_all(&units)?;
    let program = user.home.program("acpd").display().to_string();
    for name in ["acpd.service", "acpd.socket"] {
        let text = fs::read_to_string(workspace::root().join("systemd").join(name))?;
        fs::write(units.join(name), text.replace("/usr/bin/acpd", &program))?;
    }
    user.add("[Service]\nEnvironment=ADDED=1\n")?;
    user.systemctl(&["enable", "acpd.service"])?;
    user.systemctl(&["start", "acpd.socket"])?;
    for (look, found) in [
        (&["service", "install", "--dry-run"][..], "$ systemctl --user"),
        (&["service", "status"], "from a package"),
        (&["doctor"], "installed, and starts at login"),
    ] {
        let done = user.acpctl(look).output()?;
        let said = String::from_utf8(done.stdout)?;
        assert!(done.status.success() && said.contains(found), "{look:?}: {said}");
        assert_eq!(user.property("acpd.service", "MainPID")?, "0", "{look:?}");
    }
    assert_eq!(user.daemon()?, user.main_pid()?);
    assert_ne!(user.property("acpd.service", "DropInPaths")?, "");

    user.told(&["service", "uninstall", "--purge", "--yes"])?;
    assert_eq!(user.property("acpd.service", "DropInPaths")?, "");
    assert_eq!(user.property("acpd.socket", "ActiveState")?, "inactive");
    for left in ["state", "config", "systemd", "xdg/acpd"] {
        assert!(!user.home.path(left).exists(), "{left} is left");
    }
    assert!(units.join("acpd.service").exists());
    user.stop()
}

/// A client's connection has the manager start the daemon, also while another journal is put in the place of its own.
/// There is the old one or the new one, whole, and what is put aside stays.
fn restored_while_clients_come(user: &User) -> Result {
    let backup = user.home.path("backup.db").display().to_string();
    user.told(&["backup", &backup])?;
    user.run("agent0", "since", 3)?.finish()?;
    let (before, over) = (user.sessions()?, AtomicBool::new(false));
    assert!(before.contains("since"), "{before:?}");
    let said = thread::scope(|scope| {
        for _ in 0..2 {
            // An answer or a refusal: what matters is that they come all the time.
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    user.acpctl(&["status"]).output().ok();
                }
            });
        }
        let mut command = in_home(&user.home, &user.home.program("acpctl"));
        let said = command.args(["restore", &backup, "--yes", "--force"]).output();
        over.store(true, Relaxed);
        said
    })?;
    let (succeeded, said) = (said.status.success(), String::from_utf8(said.stderr)?);
    assert!(succeeded, "{said}");
    let after = user.sessions()?;
    assert!(
        after.is_subset(&before) && !after.contains("since") && after.contains("long"),
        "{after:?}"
    );
    assert_eq!(user.main_pid()?, user.daemon()?, "it is the manager's");
    let (_, kept) = said.split_once("the previous journal is kept: `").ok_or(said.clone())?;
    let kept = kept.split('`').next().unwrap_or_default();
    user.told(&["restore", kept, "--yes", "--force"])?;
    assert_eq!(user.sessions()?, before);
    // The next command of a client starts it, as always.
    user.systemctl(&["stop", "acpd.service"])?;
    assert_eq!(user.daemon()?, user.main_pid()?);
    Ok(())
}

/// A user's manager in a home of its own.
struct User {
    home: Home,
    build: Build,
    /// Where the programs are installed.
    programs: tempfile::TempDir,
    manager: Child,
}

impl User {
    fn start() -> Result<User> {
        let (build, programs) = (Build::own()?, tempfile::tempdir()?);
        build.install(programs.path())?;
        let home = Home::new(programs.path())?;
        let runtime = home.path("xdg");
        fs::create_dir(&runtime)?;
        fs::set_permissions(&runtime, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        let mut command = in_home(&home, Path::new(MANAGER));
        command.arg("--user").stdout(Stdio::null()).stderr(Stdio::null());
        let user = User { manager: command.spawn()?, home, build, programs };
        let ready = user.home.path("xdg/systemd/private");
        wait_for("the manager's socket", PATIENCE, || ready.exists())?;
        user.systemctl(&["is-system-running", "--wait"])?;
        user.configure()?;
        Ok(user)
    }

    fn configure(&self) -> Result {
        // Agents are programs of their own, which no upgrade of acpd touches.
        let program = self.build.dir.join("acpd").display().to_string();
        let agents = (0..AGENTS)
            .map(|n| format!("[agents.agent{n}]\ncommand = [{program:?}, \"scripted-agent\"]\n"));
        let agents: String = agents.collect();
        self.home.configure(&agents)
    }

    /// The daemon, which could not start again.
    fn daemon_that_breaks(&self) -> Result<Pid> {
        let pid = self.daemon()?;
        self.home.configure("broken")?;
        Ok(pid)
    }

    /// Adds to the service's unit, as `systemctl --user edit` does.
    fn add(&self, text: &str) -> Result {
        fs::create_dir_all(self.unit("acpd.service.d"))?;
        fs::write(self.unit("acpd.service.d/override.conf"), text)?;
        self.systemctl(&["daemon-reload"]).map(drop)
    }

    /// Returns the doctor's findings.
    fn doctor(&self) -> Result<String> {
        Ok(String::from_utf8(self.acpctl(&["doctor"]).output()?.stdout)?)
    }

    fn systemctl(&self, args: &[&str]) -> Result<String> {
        let mut command = in_home(&self.home, Path::new("systemctl"));
        let output = command.arg("--user").args(args).output()?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("systemctl {}: {error}", args.join(" ")).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    fn main_pid(&self) -> Result<Pid> {
        Ok(Pid::from_raw(self.property("acpd.service", "MainPID")?.parse()?))
    }

    fn property(&self, unit: &str, name: &str) -> Result<String> {
        let value = self.systemctl(&["show", unit, "--property", name, "--value"])?;
        Ok(value.trim().to_owned())
    }

    /// `acpctl` that starts no daemon itself.
    fn acpctl(&self, args: &[&str]) -> Command {
        let mut command = in_home(&self.home, &self.home.program("acpctl"));
        command.arg("--no-spawn").args(args);
        command
    }

    fn read(&self, args: &[&str]) -> Result<serde_json::Value> {
        let output = self.acpctl(args).arg("--json").output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "acpctl {}: {error}", args.join(" "));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Returns the output of `acpctl`, which may start a daemon.
    fn told(&self, args: &[&str]) -> Result<String> {
        let mut command = in_home(&self.home, &self.home.program("acpctl"));
        let output = command.args(args).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "acpctl {}: {said}", args.join(" "));
        Ok(said)
    }

    /// The names of all sessions.
    fn sessions(&self) -> Result<BTreeSet<String>> {
        let list = self.read(&["session", "ls", "--all"])?;
        let sessions = list["sessions"].as_array().ok_or("no sessions")?;
        Ok(sessions.iter().filter_map(|one| one["name"].as_str()).map(str::to_owned).collect())
    }

    fn run(&self, agent: &str, session: &str, lines: usize) -> Result<Run> {
        Run::start(self.acpctl(&[]), agent, session, lines)
    }

    /// Where the unit of that name is written.
    fn unit(&self, name: &str) -> PathBuf {
        self.home.path("systemd/user").join(name)
    }

    fn daemon(&self) -> Result<Pid> {
        let status = self.read(&["status"])?;
        let pid = status["daemon"]["pid"].as_i64().ok_or("no pid")?;
        Ok(Pid::from_raw(i32::try_from(pid)?))
    }

    /// Ends the manager and checks that nothing is left.
    fn stop(mut self) -> Result {
        self.end()?;
        let left = self.home.leftovers();
        if left.is_empty() { Ok(()) } else { Err(format!("still alive: {left:?}").into()) }
    }

    fn end(&mut self) -> Result {
        if self.manager.try_wait()?.is_none() {
            kill(Pid::from_raw(i32::try_from(self.manager.id())?), Signal::SIGTERM)?;
            self.manager.wait()?;
        }
        Ok(())
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // Remaining processes are ended by the home.
        self.end().ok();
    }
}

/// A program that has this home's own runtime directory, as after a login.
fn in_home(home: &Home, program: &Path) -> Command {
    let mut command = home.command(program);
    command.env_remove("ACPD_RUNTIME_DIR").env("XDG_RUNTIME_DIR", home.path("xdg"));
    command.env("XDG_CONFIG_HOME", home.path(""));
    command
}
