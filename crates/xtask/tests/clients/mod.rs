//! A stage for clients that are not ours: a home, a real agent behind `acpctl acp`, and the programs
//! that play on it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};

use acpd_sys::process::ProcessId;
use xtask::home::{ChildGuard, Home};
use xtask::real::{Model, Scripts, ready};
use xtask::{Result, workspace};

/// Seconds after which a client hangs.
const LIMIT: &str = "120";

/// One agent and the clients of one kind, as `agents.toml` names them.
pub(crate) struct Stage {
    pub(crate) home: Home,
    /// Ends with the stage.
    _model: Option<Model>,
    agent: &'static str,
}

impl Stage {
    /// `None`, after a line that says why, when this cannot be had here.
    pub(crate) fn new(agent: &'static str, client: &str) -> Result<Option<Stage>> {
        Stage::with_profile(agent, client, "")
    }

    /// The same with more behind the agent's profile.
    pub(crate) fn with_profile(
        agent: &'static str,
        client: &str,
        more: &str,
    ) -> Result<Option<Stage>> {
        let Some(scripts) = ready(&[agent, client])? else { return Ok(None) };
        let model = scripts.start_model()?;
        let home = home_with_clients(&scripts)?;
        scripts.configure(&home, agent, &model, more)?;
        Ok(Some(Stage { home, _model: Some(model), agent }))
    }

    /// The same with the built-in agent and this configuration.
    pub(crate) fn with_demo(client: &str, config: &str) -> Result<Option<Stage>> {
        let Some(scripts) = ready(&[client])? else { return Ok(None) };
        let home = home_with_clients(&scripts)?;
        home.configure(config)?;
        Ok(Some(Stage { home, _model: None, agent: "demo" }))
    }

    /// Command that a client starts as its agent.
    pub(crate) fn agent_command(&self) -> String {
        format!("{} acp {}", self.home.program("acpctl").display(), self.agent)
    }

    /// Starts one of the TypeScript clients in this folder.
    pub(crate) fn typescript(&self, script: &str, args: &[&str]) -> Result<Client> {
        let script = source(script);
        let args: Vec<&str> = [&[path(&script)?], args].concat();
        self.start(&self.node(), &args)
    }

    /// Starts one of the Python clients in this folder.
    pub(crate) fn python(&self, script: &str) -> Result<Client> {
        self.start(&self.home.path("real/py-pysdk/bin/python"), &[path(&source(script))?])
    }

    /// Runs acpx in the session's directory; what it printed. It tells of a message that it cannot take
    /// on stderr, and succeeds.
    pub(crate) fn acpx(&self, args: &[&str]) -> Result<String> {
        let program = self.home.path("real/npm-acpx/node_modules/acpx/dist/cli.js");
        let (agent, work) = (self.agent_command(), self.home.path("work"));
        let own = [path(&program)?, "--agent", &agent, "--cwd", path(&work)?, "--approve-all"];
        let client = self.start(&self.node(), &[&own, args].concat())?;
        let stderr = client.stderr.clone();
        let said = client.finish().map_err(|error| format!("acpx {}: {error}", args.join(" ")))?;
        let told = fs::read_to_string(stderr)?;
        let complains = told.lines().any(|line| !line.starts_with("[acpx] "));
        if complains { Err(told.into()) } else { Ok(said) }
    }

    /// The process that acpx leaves behind for a session, which has the agent.
    pub(crate) fn acpx_owner(&self) -> Result<ProcessId> {
        let is_acpx = |process: &ProcessId| {
            let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1).is_some_and(|word| word.ends_with(b"cli.js"))
        };
        Ok(self.home.processes().into_iter().find(is_acpx).ok_or("acpx left no process behind")?)
    }

    fn node(&self) -> PathBuf {
        self.home.path("real/py-node/node-bin/node")
    }

    /// Starts a client that is a program.
    pub(crate) fn start(&self, program: &Path, args: &[&str]) -> Result<Client> {
        let mut command = self.home.command(Path::new("timeout"));
        command.arg(LIMIT).arg(program).args(args);
        command.env("REAL_DIR", self.home.path("real")).env("WORK", self.home.path("work"));
        command.env("AGENT_CMD", self.agent_command());
        let stderr = self.home.path("client.stderr");
        command.stdout(Stdio::piped()).stderr(File::create(&stderr)?);
        let mut child = command.spawn()?;
        let stdout = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        Ok(Client { child: ChildGuard(child), stdout, said: String::new(), stderr })
    }
}

/// A client that runs. One that did not end by itself is killed: what it started the home ends.
pub(crate) struct Client {
    child: ChildGuard,
    stdout: BufReader<ChildStdout>,
    said: String,
    stderr: PathBuf,
}

impl Client {
    /// Reads up to a line that begins with `mark`; its rest.
    pub(crate) fn read_to(&mut self, mark: &str) -> Result<String> {
        loop {
            let begin = self.said.len();
            if self.stdout.read_line(&mut self.said)? == 0 {
                return Err(format!("no `{mark}` came: {}", self.told()).into());
            }
            if let Some(rest) = self.said[begin..].strip_prefix(mark) {
                return Ok(rest.trim().to_owned());
            }
        }
    }

    /// Waits for its end, which has to be a good one; all that it printed.
    pub(crate) fn pass(self) -> Result<String> {
        let said = self.finish()?;
        let last = said.lines().last().unwrap_or_default();
        if last.starts_with("PASS") {
            Ok(said)
        } else {
            Err(format!("no PASS at the end: {said}").into())
        }
    }

    /// Waits for its end; all that it printed.
    fn finish(mut self) -> Result<String> {
        self.stdout.read_to_string(&mut self.said)?;
        let status = self.child.0.wait()?;
        if !status.success() {
            return Err(format!("{status}: {}", self.told()).into());
        }
        Ok(self.said)
    }

    fn told(&self) -> String {
        let stderr = fs::read_to_string(&self.stderr).unwrap_or_default();
        format!("{}\n{stderr}", self.said)
    }
}

/// A home with the installed clients in their own folder: some keep their state next to it.
fn home_with_clients(scripts: &Scripts) -> Result<Home> {
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    fs::create_dir(home.path("real"))?;
    for entry in fs::read_dir(scripts.store())? {
        let entry = entry?;
        let name = entry.file_name();
        if ["npm-", "py-"].iter().any(|kind| name.to_string_lossy().starts_with(kind)) {
            std::os::unix::fs::symlink(entry.path(), home.path("real").join(name))?;
        }
    }
    Ok(home)
}

fn source(script: &str) -> PathBuf {
    workspace::root().join("crates/xtask/tests/clients").join(script)
}

fn path(path: &Path) -> Result<&str> {
    Ok(path.to_str().ok_or("a path is not UTF-8")?)
}
