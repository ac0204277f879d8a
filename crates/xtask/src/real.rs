//! `cargo xtask real`, and the fixtures of the tests with real agents.
//!
//! `crates/xtask/real` installs the agents from npm and PyPI. They talk to a stand-in for the model
//! providers on loopback: no account, no model, no money.

use std::collections::BTreeMap;
use std::env;
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
