//! `acpctl` as a program of Windows, or under Wine, with a real daemon and the agent `demo`. The program `acpd` must have been
//! built before.
#![cfg(windows)]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::windows::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Once;

use acpd_sys::signals::{Signal, interrupt_console, watch};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Has a process start with a console of its own, without a window.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

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

/// `acpctl mcp`, and the program that has started it.
struct Host {
    program: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
}

impl Host {
    fn start(home: &Home) -> Host {
        let mut command = home.acpctl(&["mcp"]);
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (program.stdin.take().unwrap(), program.stdout.take().unwrap());
        Host { program, stdin, stdout: BufReader::new(stdout), last_id: 0 }
    }

    /// Returns the result of a request; lines before it are left out.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.stdin, "{request}").unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "it ended before an answer");
            let line: Value = serde_json::from_str(&line).expect("stdout is the protocol's");
            if line["id"] == id {
                assert!(line["error"].is_null(), "{line}");
                return line["result"].clone();
            }
        }
    }

    /// Returns the text of a tool's result.
    fn call(&mut self, tool: &str, arguments: &Value) -> String {
        let said = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert_eq!(said["isError"], false, "{said}");
        said["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Lets go of it.
    fn end(self) -> Done {
        let Host { mut program, stdin, mut stdout, .. } = self;
        drop(stdin);
        let mut out = String::new();
        stdout.read_to_string(&mut out).unwrap();
        Done { code: program.wait().unwrap().code(), out, err: String::new() }
    }
}

#[test]
fn tools_for_agents_are_served_until_the_host_is_gone() {
    let home = Home::new();
    fs::write(home.path("work").join("notes.txt"), format!("one\n{WORDS}\n")).unwrap();
    let mut host = Host::start(&home);
    let info = json!({"name": "host", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    assert_eq!(host.ask("initialize", &hello)["serverInfo"]["name"], "acpd");
    writeln!(host.stdin, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .unwrap();
    let tools = host.ask("tools/list", &json!({}));
    let tools: Vec<&str> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    for name in ["prompt", "list_agents", "search"] {
        assert!(tools.contains(&name), "{tools:?}");
    }

    // The first one that needs the daemon starts it.
    let agents: Value = serde_json::from_str(&host.call("list_agents", &json!({}))).unwrap();
    let agents = agents["agents"].as_array().unwrap();
    assert!(agents.iter().any(|agent| agent["name"] == "demo"), "{agents:?}");
    let work = json!({"session_name": "fix", "prompt": WORDS, "agent": "demo"});
    let report: Value = serde_json::from_str(&host.call("prompt", &work)).unwrap();
    assert_eq!(report["status"], "done", "{report}");
    assert!(report["answer"].as_str().unwrap().contains(WORDS), "{report}");
    let found = host.call("search", &json!({"pattern": "Größe"}));
    assert!(found.contains("notes.txt") && found.contains(WORDS), "{found}");

    let _ = host.end().ok();
    let shown = home.run(&["session", "show", "fix"]).ok();
    assert!(shown.contains(WORDS), "{shown}");
}

/// Where `acpctl web` is, and the code that it has printed.
struct Page {
    host: String,
    code: String,
}

impl Page {
    /// As it is printed.
    fn of(output: &mut BufReader<ChildStdout>) -> Page {
        let mut lines = output.lines().map(Result::unwrap);
        let line = lines.find(|line| line.contains("/#code=")).unwrap();
        let (address, code) = line.trim().split_once("/#code=").unwrap();
        let host = address.split_once("http://").unwrap().1.to_owned();
        Page { host, code: code.to_owned() }
    }

    /// A request, and a connection on which nothing has been read.
    fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let length = body.len().to_string();
        let own = [("host", &*self.host), ("content-length", &length)];
        let headers = own.iter().chain(headers).map(|(name, value)| format!("{name}: {value}\r\n"));
        let headers: String = headers.collect();
        write!(stream, "{line} HTTP/1.1\r\n{headers}\r\n{body}").unwrap();
        stream
    }

    /// The status and all of the answer.
    fn ask(&self, line: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut answer = Vec::new();
        let headers = [&[("connection", "close")], headers].concat();
        self.send(line, &headers, body).read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        self.ask(&format!("GET {path}"), headers, "")
    }
}

/// Reads until this has come.
fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read);
        if text.contains(wanted) {
            return text.into_owned();
        }
        let mut some = [0; 4096];
        let count = stream.read(&mut some).unwrap();
        assert_ne!(count, 0, "it ended before `{wanted}`: {text}");
        read.extend_from_slice(&some[..count]);
    }
}

/// `acpctl web` in a console of its own, with Ctrl-C in it when this program's standard input ends.
#[test]
#[ignore = "a helper process of the others"]
#[expect(clippy::print_stdout, reason = "the test reads what it says")]
fn console() {
    if std::env::var_os("ACPD_RUNTIME_DIR").is_none() {
        return;
    }
    let mut web = Command::new(env!("CARGO_BIN_EXE_acpctl"));
    web.args(["web", "--port", "0"]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut web = web.spawn().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
    // The interrupt reaches this process, too.
    let _own = watch(&[Signal::Interrupt]).unwrap();
    interrupt_console().unwrap();
    println!("<ended {:?}>", web.wait().unwrap().code());
}

#[test]
fn a_page_is_served_to_whoever_has_a_token_until_ctrl_c() {
    let home = Home::new();
    let _ = home.run(&["daemon", "start"]).ok();
    let own = Command::new(std::env::current_exe().unwrap());
    let mut console = home.at_home(own, &["--exact", "console", "--ignored", "--nocapture"]);
    console.creation_flags(CREATE_NO_WINDOW).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut console = console.spawn().unwrap();
    let mut output = BufReader::new(console.stdout.take().unwrap());
    let page = Page::of(&mut output);

    let (status, index) = page.get("/", &[]);
    assert_eq!(status, 200, "{index}");
    let main = index.split('"').find(|word| word.ends_with("/main.js")).expect("its program");
    let (status, program) = page.get(main, &[]);
    assert!(status == 200 && program.contains("content-type: text/javascript"), "{program}");
    assert_eq!(page.get("/me", &[]).0, 401);
    assert_eq!(page.get("/me", &[("authorization", "Bearer 00")]).0, 401);
    let code = json!({"code": page.code}).to_string();
    let origin = format!("http://{}", page.host);
    let own = [("origin", &*origin), ("content-type", "application/json")];
    assert_eq!(page.ask("POST /sign-in", &own, &code).0, 200);
    assert_eq!(page.ask("POST /sign-in", &own, &code).0, 401, "a code works once");

    let token = home.run(&["web", "token", "new", "ide"]).ok();
    let bearer = format!("Bearer {}", token.trim());
    let program = [("authorization", &*bearer)];
    assert_eq!(page.get("/me", &program).0, 200);
    let socket = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ];
    let mut socket = page.send("GET /acp", &[&program[..], &socket].concat(), "");
    let accepted = read_until(&mut socket, "\r\n\r\n");
    assert!(accepted.starts_with("HTTP/1.1 101 "), "{accepted}");
    let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
    let line = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let line = line.to_string();
    // A text in one piece, short, and with a mask that changes nothing.
    socket.write_all(&[0x81, 0x80 | u8::try_from(line.len()).unwrap(), 0, 0, 0, 0]).unwrap();
    socket.write_all(line.as_bytes()).unwrap();
    read_until(&mut socket, "\"protocolVersion\":1");

    drop(console.stdin.take());
    let mut last = Vec::new();
    socket.read_to_end(&mut last).unwrap();
    assert!(last.contains(&0x88), "it says goodbye: {last:?}");
    let mut said = String::new();
    output.read_to_string(&mut said).unwrap();
    assert!(said.contains("<ended Some(0)>"), "{said}");
    assert!(console.wait().unwrap().success());
    let _ = home.run(&["daemon", "status"]).ok();
}

#[test]
fn a_page_whose_acpctl_is_killed_is_gone() {
    let home = Home::new();
    let mut program = home.acpctl(&["web", "--port", "0"]);
    let mut program = program.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let page = Page::of(&mut BufReader::new(program.stdout.take().unwrap()));
    let mut open = TcpStream::connect(&page.host).unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    // A killed process leaves an end or an error on a connection.
    let _ = open.read(&mut [0]);
    TcpStream::connect(&page.host).expect_err("nobody listens");
    let pair = home.run(&["web", "pair"]);
    assert!(pair.err.contains("`acpctl web` does not run"), "{pair:?}");
    // The daemon that it has started is not its child.
    assert_eq!(home.run(&["daemon", "status"]).code, Some(0));
}
