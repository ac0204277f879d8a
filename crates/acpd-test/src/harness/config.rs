//! Configurations for tests: scripted agents with short deadlines.

use std::fmt::Write as _;

use serde_json::json;

use super::TestEnv;

#[derive(Debug, Clone, Default)]
pub struct Config {
    daemon: String,
    tables: String,
    agents: Vec<Agent>,
}

impl Config {
    /// The first agent is the default.
    pub fn new(agents: impl IntoIterator<Item = Agent>) -> Config {
        Config { agents: agents.into_iter().collect(), ..Config::default() }
    }

    #[must_use]
    pub fn tables(mut self, toml: &str) -> Config {
        let _ = writeln!(self.tables, "{toml}");
        self
    }

    #[must_use]
    pub fn daemon(mut self, key: &str, value: &str) -> Config {
        let _ = writeln!(self.daemon, "{key} = {value}");
        self
    }

    pub(super) fn render(&self, env: &TestEnv) -> String {
        let mut text = String::new();
        if let Some(agent) = self.agents.first() {
            let _ = writeln!(text, "default_agent = {}", json!(agent.name));
        }
        let _ = write!(text, "\n[daemon]\n{}", self.daemon);
        let _ = write!(text, "\n{}\n{DEFAULTS}", self.tables);
        for agent in &self.agents {
            text.push_str(&agent.render(env));
        }
        text
    }
}

/// Short where a test waits for it, long where only a failing test does.
const DEFAULTS: &str = "
[defaults]
idle_timeout = \"0\"
start_timeout = \"20s\"
restore_timeout = \"20s\"
cancel_timeout = \"300ms\"
stop.eof = \"10s\"
stop.term = \"10s\"
stop.leftovers = \"200ms\"
restart_delay = \"20ms\"
restart_max_delay = \"100ms\"
";

/// An agent profile, by default of the scripted agent.
#[derive(Debug, Clone)]
pub struct Agent {
    name: String,
    command: Option<Vec<String>>,
    script: Option<String>,
    flags: Vec<String>,
    keys: String,
    recorded: bool,
}

impl Agent {
    pub fn new(name: &str) -> Agent {
        let (name, keys) = (name.to_owned(), String::new());
        Agent { name, command: None, script: None, flags: Vec::new(), keys, recorded: true }
    }

    /// Flags of the scripted agent, separated by blanks, without dashes.
    #[must_use]
    pub fn flags(mut self, flags: &str) -> Agent {
        self.flags.extend(flags.split_whitespace().map(|flag| format!("--{flag}")));
        self
    }

    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Agent {
        let _ = writeln!(self.keys, "{key} = {value}");
        self
    }

    #[must_use]
    pub fn command(mut self, command: &[&str]) -> Agent {
        self.command = Some(command.iter().map(|word| (*word).to_owned()).collect());
        self
    }

    /// Runs this script in a shell first; the agent then replaces the shell.
    #[must_use]
    pub fn after_script(mut self, script: &str) -> Agent {
        self.script = Some(script.to_owned());
        self
    }

    /// Keeps no record of lines, for floods.
    #[must_use]
    pub fn unrecorded(mut self) -> Agent {
        self.recorded = false;
        self
    }

    fn render(&self, env: &TestEnv) -> String {
        let command = self.command.clone().unwrap_or_else(|| {
            let path = |path: std::path::PathBuf| path.display().to_string();
            let mut command = Vec::new();
            if let Some(script) = &self.script {
                let script = format!("{script}\nexec \"$@\"");
                command.extend(["sh", "-c", &script, "sh"].map(str::to_owned));
            }
            command.push(path(env.program("acpd-scripted-agent")));
            command.extend(["--state".to_owned(), path(env.agent_state(&self.name))]);
            if self.recorded {
                command.extend(["--record".to_owned(), path(env.record_file(&self.name))]);
            }
            command.extend(self.flags.iter().cloned());
            command
        });
        let points = env.points().display().to_string();
        format!(
            "\n[agents.{}]\ncommand = {}\nenv = {{ ACPD_TEST_POINTS = {} }}\n{}",
            self.name,
            json!(command),
            json!(points),
            self.keys
        )
    }
}
