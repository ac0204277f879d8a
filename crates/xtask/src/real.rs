//! `cargo xtask real`, and the fixtures of the tests with real agents.
//!
//! `crates/xtask/real` installs the agents from npm and PyPI. They talk to a stand-in for the model
//! providers on loopback: no account, no model, no money.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::home::{ChildGuard, Home};
use crate::workspace::{self, cargo_command, succeed};
use crate::{Result, test};

/// If set, the tests with real agents pass without a try. Not in continuous integration.
pub const SKIP: &str = "ACPD_SKIP_REAL";

/// The package of the client with the Rust SDK.
const RUST_CLIENT: &str = r#"
[package]
name = "rust-sdk"
version = "0.0.0"
edition = "2024"

[dependencies]
agent-client-protocol = { version = "=5.2.0", features = ["process", "unstable_protocol_v2"] }
agent-client-protocol-http = { version = "=5.0.0", features = ["client"] }
reqwest = { version = "0.13", default-features = false }
serde_json = "1"
tokio = { version = "1", features = ["macros", "rt", "sync", "time"] }

[workspace]
"#;

/// Runs real agents under acpd; without names, those that `cargo xtask test` runs.
pub fn run(agents: &[String]) -> Result {
    needs()?;
    workspace::build(workspace::Profile::Debug)?;
    let names = if agents.is_empty() { &["zedcodex".into(), "copilot".into()] } else { agents };
    let mut command = cargo_command(&["test", "-p", "xtask", "--test", "real_agents", "--"]);
    command.args(["--nocapture", "--test-threads=1", "--include-ignored", "--exact"]).args(names);
    succeed(&mut command)
}

/// Fails with what is missing to run real agents.
pub fn needs() -> Result<Scripts> {
    if !test::on_path("python3") {
        return Err("python3 is missing, which installs agents and plays the model provider".into());
    }
    Ok(Scripts { dir: workspace::root().join("crates/xtask/real"), store: store() })
}

/// Installs these agents and clients, and returns the scripts. Otherwise prints the reason and
/// returns `None`; in continuous integration that is an error.
pub fn ready(programs: &[&str]) -> Result<Option<Scripts>> {
    let names = programs.join(", ");
    if env::var_os(SKIP).is_some() && !workspace::in_ci() {
        return workspace::skip(&names, format!("{SKIP} is set")).map(|()| None);
    }
    let installed = needs().and_then(|scripts| {
        let mut install = Command::new(scripts.run_agent());
        succeed(install.arg("--install").args(programs).env("REAL_DIR", &scripts.store))?;
        Ok(scripts)
    });
    match installed {
        Ok(scripts) => Ok(Some(scripts)),
        Err(missing) => workspace::skip(&names, missing).map(|()| None),
    }
}

/// A home with this agent, and the stand-in for its model provider; `None` as from [`ready`].
pub fn home_with(agent: &str) -> Result<Option<(Home, Model)>> {
    let Some(scripts) = ready(&[agent])? else { return Ok(None) };
    let model = scripts.start_model()?;
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    scripts.configure(&home, agent, &model, "")?;
    Ok(Some((home, model)))
}

/// Builds the client with the Rust SDK. It is a package of its own in the store, with a lock file of its own, so acpd
/// depends on no part of it. `None` as from [`ready`].
pub fn rust_client() -> Result<Option<PathBuf>> {
    if ready(&[])?.is_none() {
        return Ok(None);
    }
    let package = store().join("rustsdk");
    let built = build_rust_client(&package).map(|()| package.join("target/debug/rust-sdk"));
    built.map(Some).or_else(|error| workspace::skip("the Rust SDK", error).map(|()| None))
}

fn build_rust_client(package: &Path) -> Result {
    fs::create_dir_all(package.join("src"))?;
    // Several tests may build it at once.
    let lock = File::create(package.join("building"))?;
    lock.lock()?;
    let source = workspace::root().join("crates/xtask/tests/clients/rust_sdk.rs");
    let files =
        [("Cargo.toml", RUST_CLIENT.to_owned()), ("src/main.rs", fs::read_to_string(source)?)];
    for (name, text) in files {
        let file = package.join(name);
        if fs::read_to_string(&file).unwrap_or_default() != text {
            fs::write(file, text)?;
        }
    }
    let mut cargo = cargo_command(&["build", "--quiet"]);
    // Built by itself, with any target folder of acpd's tests.
    cargo.env("CARGO_TARGET_DIR", package.join("target")).env_remove("RUSTFLAGS");
    succeed(cargo.current_dir(package))
}

/// The folder of installed agents and clients.
pub fn store() -> PathBuf {
    env::var_os("REAL_DIR").map_or_else(|| "/tmp/agents".into(), PathBuf::from)
}

#[derive(Debug)]
pub struct Scripts {
    dir: PathBuf,
    store: PathBuf,
}

impl Scripts {
    /// The Node of the agents.
    pub fn node(&self) -> PathBuf {
        self.store.join("py-node/node-bin/node")
    }

    /// The program that becomes an agent.
    pub fn run_agent(&self) -> PathBuf {
        self.dir.join("agent.py")
    }

    /// Environment of the agent's program for this home and this stand-in.
    pub fn environment(&self, home: &Home, model: &Model) -> [(&'static str, String); 3] {
        [
            ("REAL_DIR", self.store.display().to_string()),
            ("PROVIDER_PORT", model.port.to_string()),
            ("AGENT_HOME", home.path("agent").display().to_string()),
        ]
    }

    /// Writes a configuration with this agent; `more` is added to its table.
    pub fn configure(&self, home: &Home, agent: &str, model: &Model, more: &str) -> Result {
        home.configure(&(self.profile(home, model, agent, &self.command(agent), &[]) + more))
    }

    /// The command that becomes an agent, as `agent.py` names it.
    pub fn command(&self, agent: &str) -> Vec<String> {
        vec![self.run_agent().display().to_string(), agent.to_owned()]
    }

    /// The table of an agent with this command, which may set variables for it itself.
    pub fn profile(
        &self,
        home: &Home,
        model: &Model,
        name: &str,
        command: &[String],
        variables: &[(&'static str, String)],
    ) -> String {
        let env = self.environment(home, model).into_iter().chain(variables.iter().cloned());
        let env: BTreeMap<&str, String> = env.collect();
        let env: Vec<String> =
            env.iter().map(|(key, value)| format!("{key} = {value:?}")).collect();
        format!("[agents.{name}]\ncommand = {command:?}\nenv = {{ {} }}\n", env.join(", "))
    }

    pub fn store(&self) -> &Path {
        &self.store
    }

    pub fn start_model(&self) -> Result<Model> {
        let mut command = Command::new("python3");
        command.arg(self.dir.join("provider.py")).stdin(Stdio::null());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut child = ChildGuard(child);
        let stdout = child.0.stdout.take().ok_or("a pipe is missing")?;
        // The first line is its address, "http://127.0.0.1:PORT".
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        let port = port.ok_or_else(|| format!("provider.py printed {line:?}"))?;
        Ok(Model { _child: child, port })
    }
}

/// A running stand-in. Dropping it ends it.
#[derive(Debug)]
pub struct Model {
    _child: ChildGuard,
    port: u16,
}

impl Model {
    /// The agents' requests so far, without those for the stand-in itself.
    pub fn asked(&self) -> Result<Vec<Value>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(b"GET /_log HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, log) = answer.split_once("\r\n\r\n").ok_or("the stand-in sent no log")?;
        let mut log: Vec<Value> = serde_json::from_str(log)?;
        log.retain(|request| request["side"] == false);
        Ok(log)
    }
}
