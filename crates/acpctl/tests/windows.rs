//! `acpctl` as a program of Windows, or under Wine, with a real daemon and the agent `demo`. The program `acpd` must have been
//! built before.
#![cfg(windows)]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;

use serde_json::Value;
use tempfile::TempDir;

/// Letters of one, two, three and four bytes.
const WORDS: &str = "Größe, 語, 🙂";

/// A home of its own. When it goes, its daemon is gone.
struct Home {
    dir: TempDir,
}

#[must_use = "look at what it did"]
#[derive(Debug)]
struct Done {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Done {
    /// Returns the standard output of a command that must have succeeded.
    fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }
}

impl Home {
    fn new() -> Home {
        lend_libraries();
        let home = Home { dir: TempDir::new().unwrap() };
        for name in ["config", "work"] {
            fs::create_dir(home.path(name)).unwrap();
        }
        fs::write(home.path("config").join("config.toml"), "default_agent = \"demo\"\n").unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn acpctl(&self, args: &[&str]) -> Command {
        self.at_home(Command::new(env!("CARGO_BIN_EXE_acpctl")), args)
    }

    /// Sets the arguments of a command, and this home in its environment.
    fn at_home(&self, mut command: Command, args: &[&str]) -> Command {
        command.args(args).current_dir(self.path("work")).stdin(Stdio::null());
        command.env("ACPD_EXE", daemon()).env("ACPD_RUNTIME_DIR", self.path("run"));
        command.env("ACPD_STATE_DIR", self.path("state"));
        command.env("ACPD_CONFIG_DIR", self.path("config"));
        command
    }

    fn run(&self, args: &[&str]) -> Done {
        let done = self.acpctl(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Done { code: done.status.code(), out: text(done.stdout), err: text(done.stderr) }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.run(&["daemon", "stop", "--no-spawn"]);
    }
}

fn daemon() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_acpctl")).with_file_name("acpd.exe");
    assert!(path.is_file(), "there is no `{}`: build acpd first", path.display());
    path
}

/// Wine 8 lacks a library that lies next to this test, and must lie next to the programs. Windows has it.
fn lend_libraries() {
    static LENT: Once = Once::new();
    let library = |program: &Path| program.with_file_name("bcryptprimitives.dll");
    let own = library(&std::env::current_exe().unwrap());
    let lent = library(Path::new(env!("CARGO_BIN_EXE_acpctl")));
    LENT.call_once(|| {
        if own.exists() && !lent.exists() {
            fs::copy(&own, &lent).unwrap();
        }
    });
}

#[test]
fn what_an_agent_says_arrives_whole_in_pipes_and_files_and_is_kept() {
    let home = Home::new();
    let said = home.run(&["run", "--agent", "demo", WORDS]).ok();
    assert!(said.starts_with(&format!("You said: {WORDS} |")), "{said}");

    let file = home.path("said.txt");
    let mut again = home.acpctl(&["run", "--agent", "demo", WORDS]);
    assert!(again.stdout(File::create(&file).unwrap()).status().unwrap().success());
    assert!(fs::read_to_string(&file).unwrap().contains(WORDS));

    let list = home.run(&["session", "ls", "--json"]).json();
    let sessions = list["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2, "{list}");
    let id = sessions[0]["sessionId"].as_str().unwrap();
    assert_eq!(sessions[0]["title"], WORDS);
    assert_eq!(
        sessions[0]["cwd"],
        home.path("work").to_str().unwrap(),
        "as other programs take it"
    );
    let table = home.run(&["session", "ls"]).ok();
    assert!(table.contains(id) && table.contains(WORDS), "{table}");
    let shown = home.run(&["session", "show", id]).ok();
    assert!(shown.contains(WORDS), "{shown}");
    let exported = home.run(&["session", "export", id]).ok();
    assert_eq!(
        exported.matches(WORDS).count(),
        3,
        "its title, what was said and answered: {exported}"
    );
    let items = home.run(&["session", "export", id, "--json"]).json();
    let types: Vec<&str> =
        items.as_array().unwrap().iter().filter_map(|item| item["type"].as_str()).collect();
    assert_eq!(types, ["session", "turn_started", "user", "agent", "turn_ended"], "{items}");
}

#[test]
fn a_daemon_is_started_shown_restarted_and_stopped() {
    let home = Home::new();
    let absent = home.run(&["daemon", "status"]);
    assert_eq!(absent.code, Some(3), "{absent:?}");
    assert!(absent.err.starts_with("error: acpd is not running\n\nhint: "), "{absent:?}");

    let agents = home.run(&["agent", "ls"]).ok();
    assert!(agents.lines().any(|line| line.starts_with("demo ")), "{agents}");
    let before = home.run(&["daemon", "status", "--json"]).json();
    assert_eq!(before["config"], home.path("config").join("config.toml").to_str().unwrap());
    assert!(Path::new(before["log"].as_str().unwrap()).is_file(), "{before}");
    let status = home.run(&["daemon", "status"]).ok();
    assert!(status.contains(before["log"].as_str().unwrap()), "{status}");
    let checked = home.run(&["doctor"]).ok();
    assert!(checked.lines().all(|line| line.starts_with("ok ")), "{checked}");

    let _ = home.run(&["daemon", "restart"]).ok();
    let after = home.run(&["daemon", "status", "--json"]).json();
    assert_ne!(before["pid"], after["pid"], "there it is another process");
    let _ = home.run(&["daemon", "stop"]).ok();
    assert_eq!(home.run(&["daemon", "status"]).code, Some(3));
}

#[test]
fn help_completions_and_errors_are_those_of_this_system() {
    let home = Home::new();
    let help = home.run(&["--help"]).ok();
    assert!(help.contains("Usage: acpctl [OPTIONS] <COMMAND>"), "{help}");
    let script = home.run(&["completions", "powershell"]).ok();
    assert!(script.contains("Register-ArgumentCompleter"), "{script}");
    let wrong = home.run(&["session", "show", "nope"]);
    assert_eq!(wrong.code, Some(3), "{wrong:?}");
    assert!(wrong.err.contains("hint: list the sessions with `acpctl session ls`"), "{wrong:?}");
    let service = home.run(&["service", "install"]);
    assert_eq!(service.code, Some(2), "{service:?}");
    let told =
        "error: there is no service on Windows\n\nhint: commands start acpd when they need it\n";
    assert_eq!(service.err, told);
}

/// The server is a program of its own.
#[test]
fn a_page_whose_acpctl_is_killed_is_gone() {
    let home = Home::new();
    let mut program = home.acpctl(&["web", "--port", "0"]);
    let mut program = program.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("/#code=")).unwrap();
    let address = line.split_once("/#code=").unwrap().0;
    let host = address.split_once("http://").unwrap().1;
    let mut open = TcpStream::connect(host).unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    // A killed process leaves an end or an error on a connection.
    let _ = open.read(&mut [0]);
    TcpStream::connect(host).expect_err("nobody listens");
    let pair = home.run(&["web", "pair"]);
    assert!(pair.err.contains("`acpctl web` does not run"), "{pair:?}");
    // The daemon that it has started is not its child.
    assert_eq!(home.run(&["daemon", "status"]).code, Some(0));
}
