//! The home of some rounds: configuration, programs, and the processes that can be struck.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use acpd_sys::process::{Liveness, ProcessId, StopSignal, signal_one};
use serde_json::json;

use super::plan::AGENTS;
use crate::home::{Home, Result};
use crate::process::{environ_of, shown_command};

/// Longest time for a killed process to be gone, and for a program to do its work.
const SOON: Duration = Duration::from_secs(10);

pub(super) struct Scene {
    pub(super) home: Home,
    /// The daemon's program for clients: it takes the next crash point.
    launcher: PathBuf,
}

impl Scene {
    pub(super) fn new(bins: &Path) -> Result<Scene> {
        let home = Home::new(bins)?;
        let launcher = home.path("acpd.sh");
        let scene = Scene { home, launcher };
        scene.write_launcher()?;
        scene.home.configure(&scene.config())?;
        fs::create_dir(scene.home.path("agents"))?;
        Ok(scene)
    }

    fn write_launcher(&self) -> Result {
        // The point is for one daemon only, and `exec` keeps the process id.
        let script = format!(
            r#"#!/bin/sh
if [ "$1" = run ] && mv "$HOME/point" "$HOME/point.$$" 2>/dev/null; then
    ACPD_CRASH=$(cat "$HOME/point.$$")
    export ACPD_CRASH
    echo "$$ $ACPD_CRASH" >>"$HOME/armed"
fi
exec "{}" "$@"
"#,
            self.home.program("acpd").display()
        );
        fs::write(&self.launcher, script)?;
        Ok(fs::set_permissions(&self.launcher, fs::Permissions::from_mode(0o755))?)
    }

    fn config(&self) -> String {
        let mut text = r#"default_agent = "one"
[daemon]
protocols = ["1", "2"]
log_level = "debug"
compress_after = "0s"
[defaults]
idle_timeout = "0"
start_timeout = "20s"
restore_timeout = "20s"
cancel_timeout = "300ms"
stop.eof = "200ms"
stop.term = "200ms"
stop.leftovers = "50ms"
restart_delay = "10ms"
restart_max_delay = "50ms"
restart_budget = 1000
ready_after = "1ms"
"#
        .to_owned();
        for (agent, version) in AGENTS.iter().zip([None, Some("--v2=claude"), Some("--v2=codex")]) {
            let mut command = json!([
                self.home.program("acpd-scripted-agent"),
                "--look-around",
                "--state",
                self.home.path("agents").join(agent),
                "--record",
                self.ledger(agent),
            ]);
            if let (Some(version), Some(command)) = (version, command.as_array_mut()) {
                command.push(version.into());
            }
            let mark = json!(self.mark(agent));
            let env = format!("env = {{ ACPD_AGENT_MARK = {mark} }}");
            let profile = format!("[agents.{agent}]\nprotocol = \"auto\"\ncommand = {command}\n");
            text.extend([&profile, &env, "\n"]);
        }
        text
    }

    /// The record of an agent.
    pub(super) fn ledger(&self, agent: &str) -> PathBuf {
        self.home.path("agents").join(format!("{agent}.ledger"))
    }

    fn mark(&self, agent: &str) -> String {
        self.home.path(agent).display().to_string()
    }

    pub(super) fn acpctl(&self, args: &[&str]) -> Command {
        let mut command = self.home.acpctl(args);
        command.env("ACPD_EXE", &self.launcher);
        command
    }

    pub(super) fn spawn(&self, args: &[&str]) -> Result<Child> {
        let mut command = self.acpctl(args);
        Ok(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
    }

    /// Starts the daemon if none runs. It may fail: the new daemon may have to die.
    pub(super) fn start_daemon(&self) {
        let mut start = self.acpctl(&["daemon", "start"]);
        start.stdout(Stdio::null()).stderr(Stdio::null()).status().ok();
    }

    /// Makes the next daemon die at this point.
    pub(super) fn arm(&self, point: &str, count: u32) -> Result {
        // Renamed, so that a process that starts now never finds half of it.
        let (made, place) = (self.home.path("point.new"), self.home.path("point"));
        fs::write(&made, format!("{point}:{count}"))?;
        Ok(fs::rename(made, place)?)
    }

    pub(super) fn armed(&self) -> Vec<(u32, String)> {
        let text = fs::read_to_string(self.home.path("armed")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.filter_map(|(pid, point)| Some((pid.parse().ok()?, point.to_owned()))).collect()
    }

    /// The daemon, by its lock file.
    pub(super) fn daemon(&self) -> Option<ProcessId> {
        let text = fs::read_to_string(self.home.path("state/acpd.lock")).ok()?;
        let pid = text.lines().next()?.trim().parse().ok()?;
        self.ours(pid)
    }

    pub(super) fn children(&self, agent: usize, leader: u32) -> Vec<ProcessId> {
        let mark = format!("ACPD_AGENT_MARK={}", self.mark(AGENTS[agent]));
        let processes = self.home.processes().into_iter();
        let others = processes.filter(|process| process.pid != leader);
        // A leader that is just starting is not in the ledger yet.
        let others = others.filter(|process| !describe(process.pid).contains(" --look-around "));
        let is_marked = |process: &ProcessId| {
            environ_of(process.pid).split(|byte| *byte == 0).any(|one| one == mark.as_bytes())
        };
        others.filter(is_marked).collect()
    }

    /// A process, if it belongs to this home: no other process is ever struck.
    pub(super) fn ours(&self, pid: u32) -> Option<ProcessId> {
        ProcessId::of(pid).filter(|_| self.home.owns(pid))
    }

    /// Everything that `acpctl daemon stop` must not leave.
    pub(super) fn leftovers(&self) -> Vec<String> {
        let mut left: Vec<String> =
            self.home.leftovers().iter().map(|process| describe(process.pid)).collect();
        let mut look = |dir: &str, unwanted: &dyn Fn(&str) -> bool| {
            for entry in fs::read_dir(self.home.path(dir)).into_iter().flatten().flatten() {
                if unwanted(&entry.file_name().to_string_lossy()) {
                    left.push(entry.path().display().to_string());
                }
            }
        };
        look("state/shims", &|_| true);
        look("run", &|name| name.contains(".sock"));
        look("run/shims", &|_| true);
        look("state", &|name| name.contains("spool"));
        left
    }
}

pub(super) fn describe(pid: u32) -> String {
    format!("process {pid} {}", shown_command(pid))
}

pub(super) fn kill9(process: ProcessId) -> Result {
    signal_one(process, StopSignal::Kill);
    let deadline = Instant::now() + SOON;
    while process.is_alive() == Liveness::Alive {
        if Instant::now() > deadline {
            return Err(format!("{} survived SIGKILL", describe(process.pid)).into());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}
