//! `cargo xtask real`, and what the tests with real agents need.
//!
//! The agents come from their public packages by way of the scripts in `../shared/real`, and talk
//! to a stand-in for the model providers on loopback: no account, no model, no money.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::home::Home;
use crate::workspace::{self, cargo_command, succeed};
use crate::{Result, test};

/// Set in the environment, this variable makes the tests with real agents pass without a try. Not in
/// continuous integration.
pub const SKIP: &str = "ACPD_SKIP_REAL";

/// The MCP Inspector, a client by those who make MCP; the scripts do not install it.
pub const INSPECTOR: &str = "inspector";
const INSPECTOR_PACKAGE: &str = "@modelcontextprotocol/inspector@2.12.0";

/// Runs real agents under acpd; without names, those that `cargo xtask test` runs.
pub fn run(agents: &[String]) -> Result {
    needs()?;
    workspace::build(workspace::Profile::Debug)?;
    let names = if agents.is_empty() { &["zedcodex".into(), "copilot".into()] } else { agents };
    let mut command = cargo_command(&["test", "-p", "xtask", "--test", "real_agents", "--"]);
    command.args(["--nocapture", "--test-threads=1", "--include-ignored", "--exact"]).args(names);
    succeed(&mut command)
}

/// Says what is missing to run real agents.
///
/// # Errors
/// When something is missing.
pub fn needs() -> Result<Scripts> {
    let shared = workspace::shared()
        .ok_or("the scripts in `../shared/real` are missing; clone them, or set ACPD_SHARED")?;
    let store = env::var_os("REAL_DIR").map_or_else(|| "/tmp/agents".into(), PathBuf::from);
    if !test::on_path("npm") && !store.join("py-node/node-bin/npm").exists() {
        return Err("npm is missing, which installs them".into());
    }
    if !test::on_path("python3") {
        return Err("python3 is missing, which plays the model provider".into());
    }
    Ok(Scripts { dir: shared.join("real"), store })
}

/// Installs these agents and clients, and returns the scripts. Where that is not possible, prints why and
/// returns `None`; in continuous integration that is an error.
///
/// # Errors
/// In continuous integration, when something is missing.
pub fn ready(programs: &[&str]) -> Result<Option<Scripts>> {
    let names = programs.join(", ");
    if env::var_os(SKIP).is_some() && !workspace::in_ci() {
        println!("SKIPPED {names}: {SKIP} is set");
        return Ok(None);
    }
    let installed = needs().and_then(|scripts| {
        programs.iter().try_for_each(|program| scripts.install(program))?;
        Ok(scripts)
    });
    match installed {
        Ok(scripts) => Ok(Some(scripts)),
        Err(missing) if workspace::in_ci() => Err(missing),
        Err(missing) => {
            println!("SKIPPED {names}: {missing}");
            Ok(None)
        }
    }
}

/// The scripts, and where they install to.
#[derive(Debug)]
pub struct Scripts {
    dir: PathBuf,
    store: PathBuf,
}

impl Scripts {
    /// Installs an agent or a client if it is not there yet. One at a time, whoever calls.
    fn install(&self, program: &str) -> Result {
        fs::create_dir_all(&self.store)?;
        let lock = File::create(self.store.join("xtask.lock"))?;
        lock.lock()?;
        // A Python package has no such folder; its installer sees by itself that nothing is to do.
        if self.store.join(format!("npm-{program}/node_modules")).is_dir() {
            return Ok(());
        }
        let install = |program| {
            let mut script = Command::new(self.script("install.sh"));
            succeed(script.arg(program).env("REAL_DIR", &self.store))
        };
        if program != INSPECTOR {
            return install(program);
        }
        install("node")?;
        let folder = self.store.join(format!("npm-{INSPECTOR}"));
        fs::create_dir_all(&folder)?;
        let mut npm = self.node("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error", INSPECTOR_PACKAGE]);
        succeed(npm.arg("--prefix").arg(folder))
    }

    /// A program of the Node that the agents run by, which finds the others.
    fn node(&self, program: &str) -> Command {
        let bin = self.store.join("py-node/node-bin");
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([bin.clone()].into_iter().chain(env::split_paths(&path)));
        let mut command = Command::new(bin.join(program));
        command.env("PATH", path.unwrap_or_default());
        command
    }

    /// The command line of the MCP Inspector, in this home.
    pub fn inspector(&self, home: &Home) -> Command {
        let main = format!("npm-{INSPECTOR}/node_modules/.bin/mcp-inspector");
        let mut command = home.command(self.node("node").get_program().as_ref());
        command.arg(self.store.join(main)).arg("--cli");
        command
    }

    /// One of the scripts.
    pub fn script(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The program that becomes an agent.
    pub fn run_agent(&self) -> PathBuf {
        self.script("run_agent.sh")
    }

    /// What that program wants in its environment to live in this home and talk to this stand-in.
    pub fn environment(&self, home: &Home, model: &Model) -> [(&'static str, String); 3] {
        [
            ("REAL_DIR", self.store.display().to_string()),
            ("FAKE_LLM_PORT", model.port.to_string()),
            ("AGENT_HOME", home.path("agent").display().to_string()),
        ]
    }

    /// Writes a configuration with this agent in it, of whose table `more` is a part.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn configure(&self, home: &Home, agent: &str, model: &Model, more: &str) -> Result {
        let env = self.environment(home, model);
        let env: Vec<String> =
            env.iter().map(|(key, value)| format!("{key} = {value:?}")).collect();
        let program = self.run_agent().display().to_string();
        home.configure(&format!(
            "[daemon]\nhost = \"shim\"\n[agents.{agent}]\ncommand = [{program:?}, {agent:?}]\n{more}\n\
             env = {{ {} }}\n",
            env.join(", ")
        ))
    }

    /// Where the agents are installed.
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// Starts a stand-in for the model providers: the script, with what `model.py` adds to it.
    pub fn start_model(&self) -> Result<Model> {
        let mut command = Command::new("python3");
        command.arg(workspace::root().join("crates/xtask/src/model.py"));
        command.arg(self.script("fake_llm.py")).args(["--port", "0"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().ok_or("a pipe is missing")?;
        let mut model = Model { child, port: 0 };
        // Its first line is "fake-llm on http://127.0.0.1:PORT".
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        model.port = port.ok_or_else(|| format!("fake_llm.py said {line:?}"))?;
        Ok(model)
    }
}

/// A running stand-in; ends on drop.
#[derive(Debug)]
pub struct Model {
    child: Child,
    port: u16,
}

impl Model {
    /// What agents have asked it so far, but for what they ask on their own.
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

impl Drop for Model {
    fn drop(&mut self) {
        // It is our child and was not waited for, so it is there to be killed.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
