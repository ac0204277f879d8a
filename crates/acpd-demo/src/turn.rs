//! One turn: executes the prompt's verbs, then echoes its text.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Agent;
use crate::session::{Session, Signal, chunk, tags, title};
use crate::store::{Entry, prompt_text};
use crate::tool_server::ToolServer;
use crate::verbs::{Verb, parse};
use crate::wire::{Failure, lock, response, update};

const SLOW: Duration = Duration::from_millis(100);
const POLL: Duration = Duration::from_millis(5);

/// Ends of a turn before its text.
enum End {
    Stop(String),
    Fail(Failure),
}

type Step<T = ()> = ControlFlow<End, T>;

pub(crate) struct Turn {
    pub(crate) agent: Arc<Agent>,
    pub(crate) session: Arc<Session>,
    pub(crate) prompt: Vec<Value>,
    /// Number of prompts before this one.
    pub(crate) history: usize,
    pub(crate) inbox: Receiver<Signal>,
    /// For answers to the turn's own requests.
    pub(crate) sender: Sender<Signal>,
    /// All message text so far, for the store.
    pub(crate) answer: String,
    /// Number of tool calls so far.
    pub(crate) tools: u32,
    /// Number of numbered chunks so far.
    pub(crate) numbered: u64,
    pub(crate) tells_tokens: bool,
    pub(crate) terminal: String,
    /// The id of the prompt's request, as JSON text.
    pub(crate) request: String,
}

impl Turn {
    pub(crate) fn run(mut self, request: &Value) {
        let outcome = match self.play() {
            ControlFlow::Continue(()) => Ok(json!({"stopReason": "end_turn"})),
            ControlFlow::Break(End::Stop(reason)) => Ok(json!({"stopReason": reason})),
            ControlFlow::Break(End::Fail(failure)) => Err(failure),
        };
        let outcome = outcome.map(|mut result| {
            if self.tells_tokens {
                let (input, output) = (prompt_text(&self.prompt).len(), self.answer.len());
                result["usage"] = json!({"totalTokens": input + output, "inputTokens": input,
                    "outputTokens": output});
            }
            result
        });
        self.finish();
        self.agent.wire.send(&response(request, outcome));
    }

    fn play(&mut self) -> Step {
        let (verbs, text) = parse(&prompt_text(&self.prompt));
        for verb in verbs {
            // A hanging turn ignores a cancel that came just before, too.
            if verb != Verb::Hang {
                self.check()?;
            }
            self.perform(verb)?;
        }
        self.check()?;
        let tags = tags(&lock(&self.session.state).prompts);
        let said = if text.is_empty() { "Done.".to_owned() } else { format!("You said: {text}") };
        let words: Vec<&str> = said.split_inclusive(' ').collect();
        for words in words.chunks(4) {
            self.say(&words.concat());
        }
        self.say(&format!(" | history={} tags={tags}", self.history));
        Step::Continue(())
    }

    /// Stores the answer, sends the messages that end each turn, and lets the next turn in.
    fn finish(&mut self) {
        if !self.answer.is_empty() {
            let entry = Entry::Agent { text: self.answer.clone() };
            // A session that was deleted meanwhile has no file.
            let _ = self.agent.store.append(&self.session.id, &entry);
        }
        let (prompts, cost) = {
            let state = lock(&self.session.state);
            (state.prompts.clone(), state.cost)
        };
        let title = title(prompts.first().map_or("", String::as_str));
        let used = prompts.iter().map(String::len).sum::<usize>() + self.answer.len();
        self.update(json!({"sessionUpdate": "session_info_update", "title": title}));
        let mut usage = json!({"sessionUpdate": "usage_update", "used": used, "size": 200_000});
        if cost > 0.0 {
            usage["cost"] = json!({"amount": cost, "currency": "USD"});
        }
        self.update(usage);
        lock(&self.session.state).turn = None;
    }

    fn perform(&mut self, verb: Verb) -> Step {
        match verb {
            Verb::Slow(n) => {
                for tick in 1..=n {
                    self.say(&format!("tick {tick}\n"));
                    self.wait(SLOW)?;
                }
            }
            Verb::Chunks(n) => {
                for line in 1..=n {
                    self.check()?;
                    self.say(&format!("line {line}\n"));
                }
            }
            Verb::Number(count, name, micros) => {
                for _ in 0..count {
                    self.numbered += 1;
                    self.say(&format!("{name}/{}\n", self.numbered));
                    self.wait(Duration::from_micros(micros))?;
                }
            }
            Verb::Big(bytes) => self.say(&"x".repeat(bytes)),
            Verb::Think(text) => self.send_chunk("agent_thought_chunk", &text_block(&text)),
            Verb::Plan => self.plan(),
            Verb::Tool(title) => self.tool(&title),
            Verb::Ask => self.ask()?,
            Verb::Hang => loop {
                std::thread::park();
            },
            Verb::HangCancel => loop {
                self.wait(Duration::from_hours(1))?;
            },
            Verb::Crash => self.agent.wire.crash(),
            Verb::CrashKill => self.kill_self(),
            Verb::Half => {
                self.agent.wire.send_raw(br#"{"jsonrpc":"2.0","method":"session/upd"#);
                self.agent.wire.crash()
            }
            Verb::Noise => self.noise(),
            Verb::Auth => return fail(Failure::auth_required()),
            Verb::Error(code, text) => return fail(Failure::new(code, text)),
            Verb::Stop(reason) => return Step::Break(End::Stop(reason)),
            Verb::Child => {
                let child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn();
                let child =
                    child.map_or_else(|error| error.to_string(), |child| child.id().to_string());
                self.say(&format!("child {child}\n"));
            }
            Verb::ChildSetsid => {
                let child = self.daemonize();
                self.say(&format!("child {child}\n"));
            }
            Verb::Stderr(bytes) => flood_stderr(bytes),
            Verb::FsRead(path) => {
                let params = json!({"sessionId": self.session.id, "path": path});
                let answer = match self.request("fs/read_text_file", params)? {
                    Ok(result) => {
                        format!("file: {}\n", result["content"].as_str().unwrap_or_default())
                    }
                    Err(failure) => format!("file error {}: {}\n", failure.code, failure.message),
                };
                self.say(&answer);
            }
            Verb::Terminal(call, file) => self.terminal(&call, &file)?,
            Verb::McpTool(server, file) => self.mcp_tool(&server, &file)?,
            Verb::Env(name) => {
                let text = match std::env::var_os(&name) {
                    Some(value) => format!("env {name}={}\n", value.to_string_lossy()),
                    None => format!("env {name} is not set\n"),
                };
                self.say(&text);
            }
            Verb::Cost(more) => {
                lock(&self.session.state).cost += more;
                self.tells_tokens = true;
            }
            Verb::Pause(name) => self.pause(&name)?,
            Verb::Raw(file) => self.raw(&file)?,
            Verb::ToolRun(file) => self.tool_run(&file),
        }
        Step::Continue(())
    }

    /// Sends the bytes of a file, with the ids of the session and the request filled in.
    fn raw(&self, file: &str) -> Step {
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) => return fail(Failure::internal(format!("cannot read `{file}`: {error}"))),
        };
        let names = [("$SESSION", &self.session.id), ("$REQUEST", &self.request)];
        let mut rest = &bytes[..];
        let mut said = Vec::with_capacity(bytes.len());
        while let Some((first, more)) = rest.split_first() {
            let name = names.iter().find(|(name, _)| rest.starts_with(name.as_bytes()));
            rest = match name {
                Some((name, value)) => {
                    said.extend_from_slice(value.as_bytes());
                    &rest[name.len()..]
                }
                None => {
                    said.push(*first);
                    more
                }
            };
        }
        self.agent.wire.send_raw(&said);
        Step::Continue(())
    }

    fn tool_run(&mut self, file: &str) {
        let run = Command::new("sh").arg(file).stdin(Stdio::null()).output();
        let said = match run {
            Ok(run) => [&run.stdout[..], &run.stderr, run.status.to_string().as_bytes()].concat(),
            Err(error) => error.to_string().into_bytes(),
        };
        self.say(&format!("tool: {}\n", String::from_utf8_lossy(&said)));
    }

    /// Calls a tool of a server that the agent starts, and reports the result.
    fn mcp_tool(&mut self, name: &str, file: &str) -> Step {
        let failed =
            |error: &dyn std::fmt::Display| fail(Failure::internal(format!("{name}: {error}")));
        let call = std::fs::read_to_string(file).map_err(|error| error.to_string());
        let call = call.and_then(|text| serde_json::from_str(&text).map_err(|e| e.to_string()));
        let call: Value = match call {
            Ok(call) => call,
            Err(error) => return failed(&error),
        };
        // Removed while in use, so that no turn waits for the lock.
        let known = lock(&self.session.state).tool_servers.remove(name);
        let started = known.map_or_else(
            || {
                ToolServer::start(
                    lock(&self.session.state).commands.get(name).unwrap_or(&Value::Null),
                )
            },
            Ok,
        );
        let mut server = match started {
            Ok(server) => server,
            Err(error) => return failed(&error),
        };
        let id = match server.call(&call) {
            Ok(id) => id,
            Err(error) => return failed(&error),
        };
        let mut waited = Step::Continue(());
        let answer = loop {
            match server.answer(id) {
                Some(answer) => break Some(answer),
                None => waited = self.wait(POLL),
            }
            if waited.is_break() {
                break None;
            }
        };
        lock(&self.session.state).tool_servers.insert(name.to_owned(), server);
        waited?;
        let said = answer.and_then(Result::ok).map_or(Value::Null, |line| line["result"].clone());
        self.say(&format!("tool said: {said}\n"));
        Step::Continue(())
    }

    fn plan(&self) {
        const STEPS: [&str; 3] = ["Read the code", "Change it", "Run the tests"];
        for done in 0..=STEPS.len() {
            let entries: Vec<Value> = STEPS
                .iter()
                .enumerate()
                .map(|(n, content)| {
                    let status = match n.cmp(&done) {
                        std::cmp::Ordering::Less => "completed",
                        std::cmp::Ordering::Equal => "in_progress",
                        std::cmp::Ordering::Greater => "pending",
                    };
                    json!({"content": content, "priority": "medium", "status": status})
                })
                .collect();
            self.update(json!({"sessionUpdate": "plan", "entries": entries}));
        }
    }

    fn tool(&mut self, title: &str) {
        let call = self.open_tool(title);
        self.tool_update(&call, "in_progress");
        let path = self.demo_file();
        let diff = json!({"type": "diff", "path": path, "oldText": "old\n", "newText": "new\n"});
        self.update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed",
            "content": [diff], "locations": [{"path": path, "line": 1}]}),
        );
    }

    fn terminal(&mut self, call: &str, file: &str) -> Step {
        let mut params = json!({"terminalId": self.terminal});
        if call == "create" {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            params = serde_json::from_str(&text).unwrap_or_else(|_| json!({"command": text}));
        }
        params["sessionId"] = json!(self.session.id);
        let answer = match self.request(&format!("terminal/{call}"), params)? {
            Ok(result) => result,
            Err(failure) => json!({"error": failure.message}),
        };
        if let Some(id) = answer["terminalId"].as_str() {
            id.clone_into(&mut self.terminal);
            let content = json!([{"type": "terminal", "terminalId": id}]);
            let tool = self.open_tool("Run a command");
            self.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": tool,
                "status": "in_progress", "content": content}));
        }
        self.say(&format!("terminal {call}: {answer}\n"));
        Step::Continue(())
    }

    fn open_tool(&mut self, title: &str) -> String {
        self.tools += 1;
        let call = format!("call-{}-{}", self.history, self.tools);
        self.update(json!({"sessionUpdate": "tool_call", "toolCallId": call, "title": title,
            "kind": "edit", "status": "pending"}));
        call
    }

    fn tool_update(&self, call: &str, status: &str) {
        self.update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status}),
        );
    }

    fn demo_file(&self) -> String {
        Path::new(&self.session.cwd).join("demo.txt").to_string_lossy().into_owned()
    }

    fn ask(&mut self) -> Step {
        let call = self.open_tool("Write demo.txt");
        let options = [
            ("yes", "Allow", "allow_once"),
            ("always", "Always allow", "allow_always"),
            ("no", "Reject", "reject_once"),
            ("never", "Always reject", "reject_always"),
        ];
        let options =
            options.map(|(id, name, kind)| json!({"optionId": id, "name": name, "kind": kind}));
        let params = json!({"sessionId": self.session.id, "options": options,
            "toolCall": {"toolCallId": call, "title": "Write demo.txt", "kind": "edit", "status": "pending"}});
        let (answer, step) = match self.request("session/request_permission", params) {
            Step::Continue(Ok(result)) => {
                let option = result["outcome"]["optionId"].as_str().unwrap_or("cancelled");
                (option.to_owned(), Step::Continue(()))
            }
            Step::Continue(Err(failure)) => (format!("error {}", failure.code), Step::Continue(())),
            Step::Break(end) => ("cancelled".to_owned(), Step::Break(end)),
        };
        let allowed = matches!(answer.as_str(), "yes" | "always");
        self.tool_update(&call, if allowed { "completed" } else { "failed" });
        self.say(&format!("permission: {answer}\n"));
        step
    }

    fn noise(&mut self) {
        let message = |turn: &mut Self, text: &str| {
            turn.answer.push_str(text);
            turn.chunk("agent_message_chunk", &text_block(text)).to_string()
        };
        let titled = message(self, "glued to a window title\n");
        let crlf = message(self, "ends with CRLF\n");
        let bom = message(self, "starts with a BOM\n");
        let lines = [
            b"Update available! Run the updater to get it.\n".to_vec(),
            b"42\n".to_vec(),
            b"[]\n".to_vec(),
            format!("\x1b]0;title\x07{titled}\n").into_bytes(),
            format!("{crlf}\r\n").into_bytes(),
            format!("\u{feff}{bom}\n").into_bytes(),
            b"\xff\xfe not UTF-8 \xc3\x28\n".to_vec(),
            b"\n".to_vec(),
            b"\r\n".to_vec(),
            b"{\"id\":1}\n".to_vec(),
        ];
        for line in lines {
            self.agent.wire.send_raw(&line);
        }
    }

    fn pause(&mut self, name: &str) -> Step {
        let Some(points) = self.agent.options.points.clone() else {
            return fail(Failure::internal("[pause] needs ACPD_TEST_POINTS"));
        };
        if let Err(error) = std::fs::write(points.join(format!("{name}.hit")), "") {
            return fail(Failure::internal(format!("cannot mark the pause point {name}: {error}")));
        }
        self.say(&format!("paused at {name}\n"));
        while !points.join(format!("{name}.go")).exists() {
            self.wait(POLL)?;
        }
        Step::Continue(())
    }

    /// SIGKILL through the shell, whose `kill` is built in.
    fn kill_self(&self) -> ! {
        let _ =
            Command::new("sh").arg("-c").arg(format!("kill -KILL {}", std::process::id())).status();
        self.agent.wire.crash()
    }

    /// Leaves a process in a session of its own, which inherits stdout; so its pid comes in a file.
    fn daemonize(&self) -> String {
        let file = self.agent.store.root().join(format!("child-{}.pid", self.session.id));
        let script = r#"setsid sleep 600 </dev/null & echo $! >"$0""#;
        let shell =
            Command::new("sh").arg("-c").arg(script).arg(&file).stdin(Stdio::null()).status();
        match shell.and_then(|_| std::fs::read_to_string(&file)) {
            Ok(pid) => pid.trim().to_owned(),
            Err(error) => error.to_string(),
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Step<Result<Value, Failure>> {
        let id = self.agent.send_request(method, params, self.sender.clone());
        loop {
            match self.inbox.recv() {
                Ok(Signal::Answer(answer)) => return Step::Continue(answer),
                Ok(Signal::Steer(text)) => self.hear(&text),
                Ok(Signal::Cancel) | Err(_) => {
                    self.agent.forget_request(&id);
                    return cancelled();
                }
            }
        }
    }

    fn wait(&mut self, time: Duration) -> Step {
        let end = Instant::now() + time;
        loop {
            match self.inbox.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Signal::Answer(_)) => {}
                Ok(Signal::Steer(text)) => self.hear(&text),
                Err(RecvTimeoutError::Timeout) => return Step::Continue(()),
                Ok(Signal::Cancel) | Err(RecvTimeoutError::Disconnected) => return cancelled(),
            }
        }
    }

    fn check(&mut self) -> Step {
        self.wait(Duration::ZERO)
    }

    fn hear(&mut self, text: &str) {
        self.say(&format!("heard: {text}\n"));
    }

    fn say(&mut self, text: &str) {
        self.answer.push_str(text);
        self.send_chunk("agent_message_chunk", &text_block(text));
    }

    fn send_chunk(&self, kind: &str, content: &Value) {
        self.agent.wire.send(&self.chunk(kind, content));
    }

    fn chunk(&self, kind: &str, content: &Value) -> Value {
        chunk(&self.session.id, kind, content, &format!("{kind}-{}", self.history))
    }

    fn update(&self, body: Value) {
        self.agent.wire.send(&update(&self.session.id, body));
    }
}

fn fail(failure: Failure) -> Step {
    Step::Break(End::Fail(failure))
}

fn cancelled<T>() -> Step<T> {
    Step::Break(End::Stop("cancelled".to_owned()))
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn flood_stderr(bytes: usize) {
    const LINE: &[u8; 64] = b"a line of log output that nobody reads, 64 bytes with its end..\n";
    let mut stderr = std::io::stderr().lock();
    let mut left = bytes;
    while left > 0 {
        let part = left.min(LINE.len());
        let _ = stderr.write_all(&LINE[..part]);
        left -= part;
    }
}
