//! A throw-away home, a daemon that a thread of the test plays, and `acpctl` run against both.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};

use acpd_api::method;
use serde_json::{Value, json};

/// A home of its own; removed at the end.
pub(crate) struct Home {
    dir: tempfile::TempDir,
}

#[must_use = "look at what it did"]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Home {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        Home { dir }
    }

    /// A home in which the test plays the daemon: its socket.
    pub(crate) fn listening() -> (Home, UnixListener) {
        let home = Home::new();
        let listener = home.listen();
        (home, listener)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path("work").canonicalize().unwrap()
    }

    /// `acpctl` with these arguments, in the work directory, with nothing of our environment.
    pub(crate) fn acpctl(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpctl"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PATH", "/usr/bin:/bin")
            .env("TZ", "UTC")
            .env("ACPD_RUNTIME_DIR", self.path("run"))
            .env("ACPD_STATE_DIR", self.path("state"))
            .env("ACPD_CONFIG_DIR", self.path("config"))
            .env("ACPD_EXE", self.path("acpd"))
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `acpctl` to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.done(self.acpctl(args).output().unwrap())
    }

    /// Waits for a child, and returns its output and exit code.
    pub(crate) fn wait(&self, child: Child) -> Done {
        self.done(child.wait_with_output().unwrap())
    }

    fn done(&self, output: Output) -> Done {
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            text.replace(self.dir.path().to_str().unwrap(), "[HOME]")
        };
        Done { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// A daemon that serves one connection.
    pub(crate) fn daemon<T: Send + 'static>(
        &self,
        serve: impl FnOnce(Client) -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let listener = self.listen();
        thread::spawn(move || serve(Client::accept(&listener)))
    }

    pub(crate) fn listen(&self) -> UnixListener {
        let run = self.path("run");
        std::fs::create_dir_all(&run).unwrap();
        set_mode(&run, 0o700);
        UnixListener::bind(run.join("acpd.sock")).unwrap()
    }

    /// A program in the daemon's place.
    pub(crate) fn install_daemon(&self, script: &str) {
        let path = self.path("acpd");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        set_mode(&path, 0o700);
    }
}

/// Runs `acpctl` in a home of its own, against a daemon that serves one connection.
pub(crate) fn run_against<T: Send + 'static>(
    args: &[&str],
    serve: impl FnOnce(Client) -> T + Send + 'static,
) -> Done {
    let home = Home::new();
    let daemon = home.daemon(serve);
    let done = home.run(args);
    daemon.join().unwrap();
    done
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// The daemon's end of a connection.
pub(crate) struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    pub(crate) fn accept(listener: &UnixListener) -> Client {
        Client { stream: BufReader::new(listener.accept().unwrap().0) }
    }

    /// The connection of a `run` on a terminal, which asks for the default agent first.
    pub(crate) fn accept_on_terminal(listener: &UnixListener) -> Client {
        let mut client = Client::accept(listener);
        client.answer(method::STATUS, status(1, 1));
        client
    }

    /// The next message; `None` at the end.
    pub(crate) fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap()),
        }
    }

    /// The next message, which must be of this method.
    pub(crate) fn expect(&mut self, method: &str) -> Value {
        let mut message = self.read().unwrap_or_else(|| panic!("no {method} came"));
        // Asked in addition to what matters here: `run` does on a terminal, and continues after a refusal.
        if message["method"] == method::STATUS && method != method::STATUS {
            let refused = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}});
            self.send(refused);
            message = self.read().unwrap_or_else(|| panic!("no {method} came"));
        }
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// Expects a request and answers it.
    pub(crate) fn answer(&mut self, method: &str, result: Value) -> Value {
        let request = self.expect(method);
        self.result(&request, result);
        request
    }

    /// Serves everything up to the prompt of an unnamed session.
    pub(crate) fn begins(&mut self) -> Value {
        self.answer("initialize", capable());
        self.answer("session/new", json!({"sessionId": "s-1"}));
        self.expect("session/prompt")
    }

    /// Lists one session, which should be the one that is meant.
    pub(crate) fn finds(&mut self, session: &Value) -> Value {
        self.lists(&[session])
    }

    /// Lists all sessions that may be meant.
    pub(crate) fn lists(&mut self, sessions: &[&Value]) -> Value {
        let asked = self.answer(method::SESSION_LIST, json!({"sessions": sessions}));
        assert_eq!(asked["params"]["archived"], "include");
        asked
    }

    /// Serves everything up to a session that is there and is followed.
    pub(crate) fn follows(&mut self, session: &Value) -> Value {
        self.finds(session);
        self.answer("initialize", capable());
        self.answer(method::SESSION_ATTACH, json!({"session": session}))
    }

    /// Expects a request and answers it with an error of acpd.
    pub(crate) fn fail(&mut self, method: &str, message: &str, data: Value) -> Value {
        let request = self.expect(method);
        self.error(&request, message, data);
        request
    }

    pub(crate) fn result(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    pub(crate) fn error(&mut self, request: &Value, message: &str, data: Value) {
        let error = json!({"code": -32603, "message": message, "data": {"_acpd": data}});
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
    }

    pub(crate) fn send(&mut self, message: Value) {
        // The client may be gone: then its output shows what went wrong.
        let _ = writeln!(self.stream.get_mut(), "{message}");
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// Sends a `session/update` for session `s-1`.
    pub(crate) fn update(&mut self, update: Value) {
        let params = json!({"sessionId": "s-1", "update": update});
        self.send(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    /// Sends a piece of the agent's answer.
    pub(crate) fn says(&mut self, text: &str) {
        self.update(json!({"sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": text}}));
    }

    /// Sends a notice about session `s-1`.
    pub(crate) fn notice(&mut self, method: &str, mut params: Value) {
        params["sessionId"] = json!("s-1");
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Announces and lists open questions of sessions `s-1`, by agent and id.
    pub(crate) fn has_questions(&mut self, questions: &[(&str, &str)]) {
        let now = json!({"state": "live", "turn": "needs_action", "queued": 0});
        self.notice(method::SESSION_STATE, now);
        let question = |(agent, id): &(&str, &str)| {
            json!({"id": id, "agent": agent, "sessionId": "s-1", "at": 1,
                "question": {"kind": "form", "message": "Which?", "schema": {}}})
        };
        let open: Vec<Value> = questions.iter().map(question).collect();
        self.answer(method::INTERACTION_LIST, json!({"interactions": open}));
    }

    /// Asks about a call of session `s-1`; options are `(id, name, kind)`.
    pub(crate) fn asks(
        &mut self,
        id: u64,
        call: &Value,
        meta: &Value,
        options: &[(&str, &str, &str)],
    ) {
        let option = |(id, name, kind): &(&str, &str, &str)| -> Value {
            json!({"optionId": id, "name": name, "kind": kind})
        };
        let options: Vec<Value> = options.iter().map(option).collect();
        let params =
            json!({"sessionId": "s-1", "toolCall": call, "_meta": meta, "options": options});
        let method = "session/request_permission";
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Waits until the client is gone.
    pub(crate) fn closed(mut self) {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest);
        assert_eq!(String::from_utf8_lossy(&rest), "", "nothing more should have come");
    }
}

/// The daemon's description of a call in the `_meta` of its question.
pub(crate) fn about(title: &str, commands: &[&str]) -> Value {
    let shown = json!({"kind": "execute", "title": title, "commands": commands, "paths": [],
        "urls": [], "diffs": [], "unclear": []});
    json!({"_acpd": {"shown": shown, "changed": 0}})
}

/// The answer of an agent that takes everything.
pub(crate) fn capable() -> Value {
    json!({"protocolVersion": 1, "agentInfo": {"name": "demo", "version": "1"},
        "agentCapabilities": {"promptCapabilities": {"image": true, "embeddedContext": true}}})
}

/// The status of a daemon of this version, without agents and sessions.
pub(crate) fn status(pid: u32, boot: u64) -> Value {
    json!({"daemon": {"version": env!("CARGO_PKG_VERSION"), "api": 1, "pid": pid, "boot": boot,
        "since": 1, "clients": 1, "store": {"state": "ok"}, "defaultAgent": "demo", "socket": "/s",
        "database": "/d", "log": "/l", "config": "/c"}, "agents": [], "sessions": []})
}

/// How a command names session `s-1` when it has found it.
pub(crate) fn exactly() -> Value {
    json!({"session": "s-1", "agent": "demo"})
}

/// A session as the daemon reports it.
pub(crate) fn session(id: &str) -> Value {
    json!({"sessionId": id, "agent": "demo", "name": "fix", "cwd": "/work", "state": "live",
        "turn": {"state": "idle", "since": 0}, "queued": 0, "clients": 0, "prompts": 1, "seq": 4,
        "created": 1_000, "updated": 2_000})
}
