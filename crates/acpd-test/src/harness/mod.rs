//! A hermetic home for tests with the real programs: tests neither read nor touch the user's files,
//! and leave no process.
//!
//! [`TestEnv`] is a throw-away home with a configuration. `acpctl` starts its daemon on demand, as
//! for a user. Tests use `acpctl` ([`TestEnv::acpctl`]) or the socket ([`TestEnv::client`]), and
//! steer the scripted agent with pause points. No test sleeps for a fixed time: a wait is for an
//! event, and fails with its name after [`DEADLINE`].

mod client;
mod config;
mod ctl;
mod process;
mod screen;
mod sshd;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use acpd_demo::read_record;
use serde_json::{Value, json};

pub use acpd_demo::{Direction, RecordLine};
pub use client::{Client, chunk_text, reason, seq_of};
pub use config::{Agent, Config};
pub use ctl::{Output, Running};
pub use process::{Process, exists, kill9, peak_rss, rss, signal};
pub use screen::Screen;
pub use sshd::Sshd;

use crate::process::within;

/// Limit for any wait of a test. Generous: only a failing test reaches it.
pub const DEADLINE: Duration = Duration::from_secs(30);
/// Longest time for a process to end after its goodbye.
const SOON: Duration = Duration::from_secs(5);

/// Calls `look` until it returns something.
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(DEADLINE, look).unwrap_or_else(|| panic!("waited {DEADLINE:?} in vain for {what}"))
}

/// A throw-away home. Dropping it stops its daemon, and fails the test if a process is left over.
#[derive(Debug)]
pub struct TestEnv {
    dir: tempfile::TempDir,
    root: PathBuf,
    acpd: PathBuf,
}

impl TestEnv {
    /// A home for `acpd`, the daemon's program, with `acpctl` and `acpd-scripted-agent` next to it.
    pub fn new(acpd: impl Into<PathBuf>, config: &Config) -> TestEnv {
        let dir =
            tempfile::Builder::new().prefix("acpd-").tempdir().expect("a temporary directory");
        let root = dir.path().canonicalize().expect("the temporary directory");
        let env = TestEnv { dir, root, acpd: acpd.into() };
        for name in ["home", "run", "state", "config", "points", "work", "agents", "bin"] {
            let path = env.path(name);
            fs::create_dir(&path).expect("a directory of the test");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("its mode");
        }
        for program in ["acpctl", "acpd-scripted-agent"] {
            env.program(program);
        }
        env.configure(config);
        env
    }

    /// Writes another configuration; a running daemon does not read it.
    pub fn configure(&self, config: &Config) {
        self.write_config(&config.render(self));
    }

    pub fn write_config(&self, text: &str) {
        fs::write(self.path("config").join("config.toml"), text).expect("the configuration");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The working directory of that name; made on first use.
    pub fn work(&self, name: &str) -> PathBuf {
        let dir = self.path("work").join(name);
        fs::create_dir_all(&dir).expect("a working directory");
        dir
    }

    pub fn socket(&self) -> PathBuf {
        self.path("run").join("acpd.sock")
    }

    /// A program next to the daemon's.
    pub fn program(&self, name: &str) -> PathBuf {
        let path = self.acpd.with_file_name(name);
        assert!(path.is_file(), "{} is missing: run `cargo build` first", path.display());
        path
    }

    /// Puts an executable shell script where commands of this home look first; returns its path.
    pub fn install(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("its mode");
        path
    }

    /// A command in `work/main` of this home, without the user's environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.path("home"))
            // Agents of the machine are in other directories: one would become the default.
            .env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()))
            .env("TZ", "UTC")
            // As if a shell has started it.
            .env("SHLVL", "1")
            .env("COLUMNS", "100")
            .env("ACPD_RUNTIME_DIR", self.path("run"))
            .env("ACPD_STATE_DIR", self.path("state"))
            .env("ACPD_CONFIG_DIR", self.path("config"))
            .env("ACPD_EXE", &self.acpd)
            .current_dir(self.work("main"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn acpctl_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(self.program("acpctl"));
        command.args(args);
        command
    }

    #[must_use = "look at what it did"]
    pub fn acpctl(&self, args: &[&str]) -> Output {
        self.spawn_acpctl(args).finish()
    }

    /// Returns what `acpctl` prints with `--json`.
    pub fn json(&self, args: &[&str]) -> Value {
        let done = self.acpctl(&[args, &["--json"]].concat()).success();
        serde_json::from_str(done.stdout()).expect("JSON")
    }

    pub fn spawn_acpctl(&self, args: &[&str]) -> Running {
        Running::start(self.acpctl_command(args))
    }

    /// The daemon in the foreground: its output has a start-up failure.
    pub fn acpd_command(&self) -> Command {
        let mut command = self.command(&self.acpd);
        command.arg("run");
        command
    }

    /// A silent connection. Starts the daemon if none runs.
    pub fn connect(&self) -> Client {
        let stream = UnixStream::connect(self.socket()).unwrap_or_else(|_| {
            self.acpctl(&["daemon", "start"]).success();
            UnixStream::connect(self.socket()).expect("the daemon's socket")
        });
        Client::over(stream.try_clone().expect("a descriptor"), stream)
    }

    /// A client of this agent with notices and sequence numbers.
    pub fn client(&self, agent: &str) -> Client {
        self.client_with(json!({"agent": agent, "notices": true, "seq": true}))
    }

    /// A client with these members in `_meta._acpd` of its `initialize`.
    pub fn client_with(&self, meta: Value) -> Client {
        let mut client = self.connect();
        client.initialize(meta);
        client
    }

    /// `acpctl acp`, and the editor's end of it.
    pub fn bridge(&self, args: &[&str]) -> (Running, Client) {
        Running::start_editor(self.acpctl_command(&[&["acp"], args].concat()))
    }

    /// Waits until the scripted agent has come to `[pause NAME]`.
    pub fn wait_point(&self, name: &str) {
        let hit = self.path("points").join(format!("{name}.hit"));
        until(&format!("the pause point {name}"), || hit.exists().then_some(()));
    }

    /// Lets the scripted agent continue from `[pause NAME]`.
    pub fn release(&self, name: &str) {
        fs::write(self.path("points").join(format!("{name}.go")), "").expect("the pause point");
    }

    /// `_acpd/status` over a new connection.
    pub fn status(&self) -> Value {
        self.connect().ok("_acpd/status", json!({}))
    }

    pub fn agent(&self, name: &str) -> Value {
        self.connect().ok("_acpd/agent/show", json!({"agent": name}))
    }

    pub fn agent_pid(&self, name: &str) -> Option<u32> {
        Some(self.agent(name)["pid"].as_u64()? as u32)
    }

    pub fn wait_agent(&self, name: &str, state: &str) -> Value {
        until(&format!("agent {name} to be {state}"), || {
            Some(self.agent(name)).filter(|agent| agent["state"] == state)
        })
    }

    /// Kills the agent's process and waits until the next one is ready.
    pub fn kill_agent(&self, name: &str) {
        let old = self.agent_pid(name).expect("a running agent");
        kill9(old);
        until("the next process of the agent", || {
            let agent = self.agent(name);
            (agent["state"] == "ready" && agent["pid"] != old).then_some(())
        });
    }

    pub fn wait_questions(&self) -> Vec<Value> {
        until("a question", || {
            let list = self.connect().ok("_acpd/interaction/list", json!({}));
            list["interactions"].as_array().filter(|open| !open.is_empty()).cloned()
        })
    }

    pub fn session(&self, session: &str) -> Value {
        self.connect().ok("_acpd/session/show", json!({"session": session}))
    }

    pub fn daemon_pid(&self) -> u32 {
        self.status()["daemon"]["pid"].as_u64().expect("a pid") as u32
    }

    pub fn kill_daemon(&self) {
        let pid = self.daemon_pid();
        kill9(pid);
        until("the killed daemon to be gone", || (!exists(pid)).then_some(()));
    }

    /// Kills the daemon, and then the shims: the next daemon finds their remains.
    pub fn kill_daemon_and_shims(&self) {
        self.kill_daemon();
        for shim in self.shims() {
            kill9(shim.pid);
        }
        until("the killed shims to be gone", || self.shims().is_empty().then_some(()));
    }

    pub fn tree(&self) -> Vec<Process> {
        process::tree_of_home(self.as_ref())
    }

    pub fn shims(&self) -> Vec<Process> {
        process::shims_of(&self.path("state"))
    }

    fn everything(&self) -> Vec<Process> {
        let mut found = self.tree();
        found.extend(self.shims());
        found
    }

    /// A session's whole journal: positions and lines.
    pub fn journal(&self, session: &str) -> Vec<(u64, Value)> {
        let mut client = self.connect();
        let mut journal = Vec::new();
        let mut after = 0;
        loop {
            let params = json!({"ref": {"session": session}, "after": after});
            let page = client.ok("_acpd/session/log", params);
            let entries = page["entries"].as_array().expect("entries");
            journal.extend(
                entries.iter().map(|e| (e["seq"].as_u64().expect("a seq"), e["line"].clone())),
            );
            match page["next"].as_u64() {
                Some(next) => after = next,
                None => return journal,
            }
        }
    }

    /// The agent's message chunks in the journal.
    pub fn said(&self, session: &str) -> String {
        let journal = self.journal(session);
        journal.iter().filter_map(|(_, line)| chunk_text(line)).collect()
    }

    pub fn agent_state(&self, agent: &str) -> PathBuf {
        self.path("agents").join(agent)
    }

    /// Every line that the scripted agent of this name received and sent.
    pub fn record(&self, agent: &str) -> Vec<RecordLine> {
        read_record(self.record_file(agent))
    }

    pub fn received(&self, agent: &str, method: &str) -> Vec<Value> {
        let lines = self.record(agent).into_iter().filter(|line| line.dir == Direction::In);
        let messages = lines.filter_map(|line| serde_json::from_str::<Value>(&line.line).ok());
        messages.filter(|message| message["method"] == method).collect()
    }

    fn record_file(&self, agent: &str) -> PathBuf {
        self.path("agents").join(format!("{agent}.record"))
    }

    pub fn daemon_log(&self) -> String {
        fs::read_to_string(self.path("state").join("log").join("acpd.log")).unwrap_or_default()
    }

    pub fn points(&self) -> PathBuf {
        self.path("points")
    }

    fn kill_everything(&self) {
        until("every process of the test to be gone", || {
            let left = self.everything();
            for process in &left {
                kill9(process.pid);
            }
            left.is_empty().then_some(())
        });
    }

    fn explain(&self) {
        #[expect(clippy::print_stderr, reason = "the test has failed: this says why")]
        {
            eprintln!("--- processes left\n{:#?}", self.everything());
            eprintln!("--- daemon log\n{}", self.daemon_log());
        }
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.explain();
            return self.kill_everything();
        }
        let stopped = self.acpctl(&["daemon", "stop"]);
        let left = within(SOON, || self.everything().is_empty().then_some(()));
        if stopped.code_is(0) && left.is_some() {
            return;
        }
        self.explain();
        let left = self.everything();
        self.kill_everything();
        panic!("`acpctl daemon stop` left processes: {left:#?}\n{stopped:?}");
    }
}

impl AsRef<Path> for TestEnv {
    fn as_ref(&self) -> &Path {
        self.dir.path()
    }
}
