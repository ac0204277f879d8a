//! The daemon and the agent `demo` as programs of Windows, or under Wine: arguments of agents, and the deaths of agents and
//! daemons.
#![cfg(windows)]

use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use acpd_client::{LinkEvent, LinkWriter, Options, Place, connect};
use acpd_sys::paths::Paths;
use acpd_sys::process::{Liveness, ProcessId};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than any machine takes; a passing test never waits for it.
const DEADLINE: Duration = Duration::from_mins(1);
/// From one look at something that does not tell to the next.
const LOOK: Duration = Duration::from_millis(20);

/// A home of its own, with a daemon in it. When it goes, nothing of it is left.
struct Home {
    dir: TempDir,
    daemon: RefCell<Option<Child>>,
}

impl Home {
    fn new() -> Home {
        Home::with(|_| String::new())
    }

    /// With more of a configuration, by the directory of its programs.
    fn with(more: impl FnOnce(&Path) -> String) -> Home {
        let dir = TempDir::new().unwrap();
        let home = Home { dir, daemon: RefCell::new(None) };
        let config = home.path("config");
        fs::create_dir_all(&config).unwrap();
        fs::create_dir_all(home.path("work")).unwrap();
        fs::create_dir_all(home.path("bin")).unwrap();
        let more = more(&home.path("bin"));
        let text = "default_agent = \"demo\"\n[daemon]\nlog_level = \"debug\"\n";
        fs::write(config.join("config.toml"), text.to_owned() + &more).unwrap();
        home.start();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn paths(&self) -> Paths {
        let path = |name| self.path(name);
        Paths { runtime: path("run"), state: path("state"), config: path("config") }
    }

    /// Starts the daemon, and waits until it listens.
    fn start(&self) {
        lend_libraries();
        let paths = self.paths();
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpd"));
        command.args(["run", "--background"]);
        command.env("ACPD_RUNTIME_DIR", &paths.runtime).env("ACPD_STATE_DIR", &paths.state);
        command.env("ACPD_CONFIG_DIR", &paths.config);
        let errors = OpenOptions::new().create(true).append(true).open(self.path("errors"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors.unwrap());
        *self.daemon.borrow_mut() = Some(command.spawn().unwrap());
        drop(self.client());
    }

    fn kill(&self) {
        let mut daemon = self.daemon.borrow_mut().take().unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// A connection, as soon as there is a daemon.
    fn client(&self) -> Client {
        let options = Options { spawn: false, place: Place::Here(self.paths()) };
        let connection = until("a daemon that answers", || connect(&options).ok());
        let (mut reader, writer) = connection.split().unwrap();
        let (send, lines) = channel();
        thread::spawn(move || {
            while let Ok(LinkEvent::Line(line)) = reader.recv() {
                if send.send(serde_json::from_slice(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Client { writer, lines, seen: Vec::new(), from: 0 }
    }

    /// A client of ACP.
    fn editor(&self) -> Client {
        let mut client = self.client();
        let info = json!({"name": "test", "version": "0"});
        client.ok(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": info,
                "_meta": {"_acpd": {"agent": "demo"}}}),
        );
        client
    }

    /// Why a session cannot be made.
    fn refusal(&self, agent: &str) -> String {
        let mut client = self.client();
        let info = json!({"name": "test", "version": "0"});
        let params = json!({"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": info,
            "_meta": {"_acpd": {"agent": agent}}});
        let id = client.request("initialize", &params);
        let answer = client.answer_or_error(id);
        let params = json!({"cwd": self.path("work"), "mcpServers": []});
        let id = client.request("session/new", &params);
        let answer = if answer["error"].is_null() { client.answer_or_error(id) } else { answer };
        answer["error"].to_string()
    }

    fn session(&self, client: &mut Client) -> String {
        let params = json!({"cwd": self.path("work"), "mcpServers": []});
        client.ok("session/new", params)["sessionId"].as_str().unwrap().to_owned()
    }

    fn daemon_pid(&self) -> u32 {
        self.client().ok("_acpd/status", json!({}))["daemon"]["pid"].as_u64().unwrap() as u32
    }

    /// The process of the agent.
    fn agent(&self) -> ProcessId {
        let status = self.client().ok("_acpd/status", json!({}));
        let agents = status["agents"].as_array().unwrap();
        let pid = agents.iter().find(|agent| agent["name"] == "demo").unwrap()["pid"].as_u64();
        ProcessId::of(pid.expect("a process of the agent") as u32).expect("it is there")
    }

    /// All lines of a session's journal.
    fn journal(&self, session: &str) -> Vec<Value> {
        let (mut client, mut lines, mut after) = (self.client(), Vec::new(), Some(0));
        while let Some(from) = after {
            let params = json!({"ref": {"session": session}, "after": from});
            let page = client.ok("_acpd/session/log", params);
            let entries = page["entries"].as_array().unwrap();
            lines.extend(entries.iter().map(|entry| entry["line"].clone()));
            after = page["next"].as_u64();
        }
        lines
    }

    /// How the turns of a session ended.
    fn outcomes(&self, session: &str) -> Vec<String> {
        let journal = self.journal(session);
        let ends = journal.iter().filter(|line| line["method"] == "_acpd/turn_ended");
        ends.map(|line| line["params"]["outcome"]["kind"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the agent's text in a session.
    fn said(&self, session: &str) -> String {
        self.journal(session).iter().filter_map(chunk_text).collect()
    }

    /// Returns the shim directories on disk.
    fn left(&self) -> Vec<PathBuf> {
        let shims = fs::read_dir(self.path("state").join("shims")).into_iter().flatten();
        shims.map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Home {
    #[expect(clippy::print_stderr, reason = "whoever looks why a test failed needs it")]
    fn drop(&mut self) {
        if thread::panicking() {
            let errors = fs::read_to_string(self.path("errors")).unwrap_or_default();
            let log = fs::read_to_string(self.paths().daemon_log()).unwrap_or_default();
            eprintln!("{log}\non stderr of the daemons:\n{errors}");
        }
        let pid = self.daemon_pid();
        self.client().ok("_acpd/daemon/stop", json!({}));
        // A process keeps its pid as long as there is a handle to it, such as ours.
        let is_gone =
            || ProcessId::of(pid).is_none_or(|daemon| daemon.is_alive() == Liveness::Gone);
        until("the daemon to be gone", || is_gone().then_some(()));
        if thread::panicking() {
            return;
        }
        until("nothing to be left of shims", || self.left().is_empty().then_some(()));
    }
}

/// Returns the first result of `look`, which is called again and again.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited for {what}");
        thread::sleep(LOOK);
    }
}

/// Libraries next to the tests for Wine must be next to the programs, too.
fn lend_libraries() {
    static LENT: Once = Once::new();
    let own = library(&std::env::current_exe().unwrap());
    let lent = library(Path::new(env!("CARGO_BIN_EXE_acpd")));
    LENT.call_once(|| {
        if own.exists() && !lent.exists() {
            fs::copy(&own, &lent).unwrap();
        }
    });
}

fn library(program: &Path) -> PathBuf {
    program.with_file_name("bcryptprimitives.dll")
}

fn kill(process: ProcessId) {
    let pid = process.pid.to_string();
    let killed = Command::new("taskkill").args(["/F", "/PID", &pid]).output().unwrap();
    assert!(killed.status.success(), "{killed:?}");
}

/// Returns the text of an agent's message.
fn chunk_text(message: &Value) -> Option<&str> {
    let update = &message["params"]["update"];
    let is_chunk = update["sessionUpdate"] == "agent_message_chunk";
    update["content"]["text"].as_str().filter(|_| is_chunk)
}

/// One end of a connection.
struct Client {
    writer: LinkWriter,
    lines: Receiver<Value>,
    seen: Vec<Value>,
    /// The next message to look at.
    from: usize,
}

impl Client {
    /// The next message that fits, after the one that this gave last; `None` at the end of the connection.
    fn find(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let end = Instant::now() + DEADLINE;
        loop {
            while let Some(message) = self.seen.get(self.from) {
                self.from += 1;
                if fits(message) {
                    return Some(message.clone());
                }
            }
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("waited for {what}: {:?}", self.seen),
            }
        }
    }

    fn next(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.find(what, fits).unwrap_or_else(|| panic!("the connection ended before {what}"))
    }

    fn hear(&mut self, text: &str) {
        self.next(text, |message| chunk_text(message).is_some_and(|said| said.contains(text)));
    }

    fn wait_closed(&mut self) {
        while self.find("the end of the connection", |_| true).is_some() {}
    }

    fn answer_or_error(&mut self, id: u64) -> Value {
        self.next("an answer", |message| message["id"] == id && message["method"].is_null())
    }

    fn answer(&mut self, id: u64) -> Value {
        let message = self.answer_or_error(id);
        assert!(message["error"].is_null(), "{message}");
        message["result"].clone()
    }

    fn request(&self, method: &str, params: &Value) -> u64 {
        self.writer.request(method, params).unwrap().as_u64().unwrap()
    }

    fn ok(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, &params);
        self.answer(id)
    }

    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": session, "prompt": prompt});
        self.request("session/prompt", &params)
    }

    fn say(&mut self, session: &str, text: &str) {
        let id = self.prompt(session, text);
        assert_eq!(self.answer(id)["stopReason"], "end_turn");
    }
}

#[test]
fn an_agent_that_is_killed_in_mid_turn_comes_back_with_its_session() {
    let home = Home::new();
    let mut client = home.editor();
    let session = home.session(&mut client);
    client.say(&session, "hello");
    let turn = client.prompt(&session, "[number 1 n 0] [hang]");
    client.hear("n/1");
    let before = home.agent();
    kill(before);
    client.next("the end of the turn", |message| message["id"] == turn);
    client.say(&session, "again");
    assert_ne!(home.agent(), before);
    assert_eq!(home.outcomes(&session), ["stopped", "interrupted", "stopped"]);
}

/// `ACPD_KILL_ROUNDS` asks for more rounds.
#[test]
fn a_daemon_that_is_killed_again_and_again_loses_nothing_and_says_nothing_twice() {
    /// Numbers that the agent counts between two kills.
    const PIECE: usize = 20;
    let rounds = std::env::var("ACPD_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds: usize = rounds.unwrap_or(3);
    let home = Home::new();
    let mut client = home.editor();
    let session = home.session(&mut client);
    let numbers = (rounds + 1) * PIECE;
    client.prompt(&session, &format!("[number {numbers} n 20000]"));
    for round in 0..rounds {
        let mut client = home.editor();
        client.ok("_acpd/session/attach", json!({"ref": {"session": session}, "after": 0}));
        client.hear(&format!("n/{}\n", round * PIECE + 1));
        home.kill();
        home.start();
    }
    until("the turn to end", || (home.outcomes(&session) == ["stopped"]).then_some(()));
    let said = home.said(&session);
    let told: Vec<usize> =
        said.split("n/").skip(1).map(|n| n.lines().next().unwrap().parse().unwrap()).collect();
    assert_eq!(told, (1..=numbers).collect::<Vec<_>>());
}

#[test]
fn a_restart_is_another_process_and_keeps_agents_and_turns() {
    let home = Home::new();
    let mut client = home.editor();
    let session = home.session(&mut client);
    client.prompt(&session, "[number 20 n 50000]");
    client.hear("n/1");
    let (daemon, agent) = (home.daemon_pid(), home.agent());
    home.client().ok("_acpd/daemon/restart", json!({}));
    client.wait_closed();
    let ended = home.daemon.borrow_mut().take().unwrap().wait().unwrap();
    assert!(ended.success(), "{ended}");
    until("the turn to end", || (home.outcomes(&session) == ["stopped"]).then_some(()));
    assert_ne!(home.daemon_pid(), daemon);
    assert_eq!(home.agent(), agent, "it is the same process");
}

#[test]
fn a_script_of_npm_is_started_as_its_program_and_another_one_is_refused() {
    const SCRIPT: &str = r#"@ECHO off
GOTO start
:find_dp0
SET dp0=%~dp0
EXIT /b
:start
SETLOCAL
CALL :find_dp0

IF EXIST "%dp0%\node.exe" (
  SET "_prog=%dp0%\node.exe"
) ELSE (
  SET "_prog=node"
  SET PATHEXT=%PATHEXT:;.JS;=;%
)

endLocal & goto #_undefined_# 2>NUL || title %COMSPEC% & "%_prog%"  "%dp0%\cli.js" %*
"#;
    lend_libraries();
    let home = Home::with(|bin| {
        fs::write(bin.join("npms.cmd"), SCRIPT.replace('\n', "\r\n")).unwrap();
        fs::write(bin.join("cli.js"), "").unwrap();
        fs::write(bin.join("other.bat"), "@echo off\r\n").unwrap();
        says_what_it_is_told(bin, "node.exe");
        let command = |name: &str| bin.join(name).display().to_string();
        format!(
            "[agents.npms]\ncommand = '{}'\n[agents.other]\ncommand = ['{}', 'a b']\n",
            command("npms.cmd"),
            command("other.bat")
        )
    });
    let npms = home.refusal("npms");
    assert!(npms.contains("cli.js"), "{npms}");
    let other = home.refusal("other");
    assert!(
        other.contains("it is a script for a shell") && other.contains("[agents.other]"),
        "{other}"
    );
}

/// A program that ends with the first word that it does not know.
fn says_what_it_is_told(bin: &Path, name: &str) {
    let acpd = Path::new(env!("CARGO_BIN_EXE_acpd"));
    for (file, name) in [(acpd, name), (&library(acpd), "bcryptprimitives.dll")] {
        if file.exists() {
            fs::copy(file, bin.join(name)).unwrap();
        }
    }
}

#[test]
fn an_argument_comes_to_an_agent_as_it_is_written() {
    const WORDS: [&str; 5] = [
        r#"a "b" \"c\\" d\\"#,
        r"%PATH% %%PATH%% !PATH! ^& ^^ & | < > ( ) ; , = ` $x 'q' *.* ~",
        r#"" & calc & ""#,
        r"C:\a b\",
        "é \u{1f600} \u{201c}q\u{201d}",
    ];
    lend_libraries();
    let home = Home::with(|bin| {
        says_what_it_is_told(bin, "tells.exe");
        let program = bin.join("tells.exe").display().to_string();
        let agents = WORDS.iter().enumerate().map(|(at, word)| {
            let command = json!([program, word]);
            format!("[agents.a{at}]\ncommand = {command}\n")
        });
        // Words that are empty are words, too.
        let empty = json!([program, "", "after"]);
        agents.collect::<String>() + &format!("[agents.empty]\ncommand = {empty}\n")
    });
    for (at, word) in WORDS.iter().enumerate() {
        let said = home.refusal(&format!("a{at}"));
        let written = json!(word).to_string();
        assert!(said.contains(written.trim_matches('"')), "{word}: {said}");
    }
    let empty = home.refusal("empty");
    assert!(empty.contains("''") && !empty.contains("after"), "{empty}");
}
