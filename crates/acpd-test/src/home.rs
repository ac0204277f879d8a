//! A throw-away home with `acpctl`, of which nothing is left at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use acpd_sys::process::{ProcessId, StopSignal};
use acpd_sys::tree::{Tree, nearest_above};

pub use crate::process::ChildGuard;
use crate::process::{command_of, environ_of, is_shim, pids, within};

pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Longest time for processes to end.
const GOING: Duration = Duration::from_secs(2);

/// Private directories for acpd, its agents and their sessions. On drop the daemon is stopped and
/// everything is removed.
#[derive(Debug)]
pub struct Home {
    dir: tempfile::TempDir,
    bins: PathBuf,
}

impl Home {
    pub fn new(bins: &Path) -> Result<Home> {
        let dir = tempfile::Builder::new().prefix("acpd-").tempdir()?;
        for name in ["work", "config"] {
            fs::create_dir(dir.path().join(name))?;
        }
        Ok(Home { dir, bins: bins.to_owned() })
    }

    /// Keeps the directory, to find out what went wrong.
    pub fn keep(&mut self) {
        self.dir.disable_cleanup(true);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("run/acpd.sock")
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.bins.join(name)
    }

    pub fn configure(&self, text: &str) -> Result {
        Ok(fs::write(self.path("config/config.toml"), text)?)
    }

    /// A program with this home and no other part of the environment.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.path("work")).stdin(Stdio::null());
        for name in ["PATH", "TERM", "COLORTERM", "LANG", "NO_COLOR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .env("HOME", self.dir.path())
            // As if a shell has started it.
            .env("SHLVL", "1")
            .env("ACPD_RUNTIME_DIR", self.path("run"))
            .env("ACPD_STATE_DIR", self.path("state"))
            .env("ACPD_CONFIG_DIR", self.path("config"))
            .env("ACPD_EXE", self.program("acpd"));
        command
    }

    pub fn acpctl(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.program("acpctl"));
        command.args(args);
        command
    }

    pub fn read(&self, args: &[&str]) -> Result<String> {
        let output = self.acpctl(args).output()?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`acpctl {}`: {}", args.join(" "), error.trim()).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    pub fn read_json(&self, args: &[&str]) -> Result<serde_json::Value> {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        Ok(serde_json::from_str(&self.read(&args)?)?)
    }

    pub fn agent(&self, name: &str) -> Result<ProcessId> {
        let info = self.read_json(&["agent", "show", name])?;
        let pid = info["pid"].as_u64().ok_or_else(|| format!("agent `{name}` does not run"))?;
        Ok(ProcessId::of(pid as u32).ok_or("the agent has just ended")?)
    }

    pub fn daemon(&self) -> Result<ProcessId> {
        let pid = self.read_json(&["status"])?["daemon"]["pid"].as_u64();
        let pid = pid.ok_or("the daemon tells no process id")?;
        Ok(ProcessId::of(pid as u32).ok_or("the daemon has just ended")?)
    }

    /// The shim of an agent; none if the daemon has started it.
    pub fn shim(&self, leader: u32) -> Option<ProcessId> {
        nearest_above(leader, |above| {
            (is_shim(&command_of(above.pid)) && self.owns(above.pid)).then_some(above)
        })
    }

    /// Living processes of this home: by their environment, and shims, which have none, by their
    /// arguments. Always empty on a system without `/proc`.
    pub fn processes(&self) -> Vec<ProcessId> {
        let others = pids().filter(|pid| *pid != std::process::id());
        others.filter(|pid| self.owns(*pid)).filter_map(ProcessId::of).collect()
    }

    pub fn owns(&self, pid: u32) -> bool {
        let mark = self.dir.path().as_os_str().as_encoded_bytes();
        let has = |text: &[u8]| text.windows(mark.len()).any(|window| window == mark);
        let command = command_of(pid);
        (is_shim(&command) && has(&command)) || has(&environ_of(pid))
    }

    /// Processes that are still alive after `GOING`.
    pub fn leftovers(&self) -> Vec<ProcessId> {
        let gone = within(GOING, || self.processes().is_empty().then(Vec::new));
        gone.unwrap_or_else(|| self.processes())
    }

    /// Stops the daemon and checks that no process is left.
    pub fn stop(&self) -> Result {
        self.read(&["daemon", "stop"])?;
        let left = self.leftovers();
        if left.is_empty() { Ok(()) } else { Err(format!("still alive: {left:?}").into()) }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.processes().is_empty() {
            return;
        }
        let mut stop = self.acpctl(&["--no-spawn", "daemon", "stop"]);
        // The daemon may have been stopped before; remaining processes are ended below.
        stop.stdout(Stdio::null()).stderr(Stdio::null()).status().ok();
        for process in self.leftovers() {
            kill_tree(process);
        }
    }
}

/// Waits until `is_so`. The error after `patience` names `what`.
pub fn wait_for(what: &str, patience: Duration, mut is_so: impl FnMut() -> bool) -> Result {
    let seen = within(patience, || is_so().then_some(()));
    seen.ok_or_else(|| format!("waited {patience:?} in vain for {what}").into())
}

/// Kills a process and everything below it at once; returns all that were killed.
pub fn kill_tree(leader: ProcessId) -> Vec<ProcessId> {
    let mut tree = tree(leader);
    let alive = tree.alive();
    tree.signal_all(StopSignal::Kill);
    alive
}

/// A process and everything below it. Processes of an agent count by acpd's mark: without it they
/// would be strangers.
pub fn tree(leader: ProcessId) -> Tree {
    let environ = environ_of(leader.pid);
    let mark = environ.split(|byte| *byte == 0).find_map(|pair| pair.strip_prefix(b"ACPD_HOST="));
    let mark = mark.map_or("looked at by acpd-test".into(), String::from_utf8_lossy);
    Tree::new(mark, leader)
}
