//! The verbs in a prompt: `[slow 5]`, `[tool Edit the file]`, or `/plan` at its start.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::{End, POLL, Step, Turn, fail};
use crate::session::{COMMANDS, terminal_output};
use crate::tool_server::ToolServer;
use crate::wire::{Failure, lock};

const SLOW: Duration = Duration::from_millis(100);

/// One thing that a prompt tells the agent to do.
pub(super) type Verb = Box<dyn FnOnce(&mut Turn) -> Step>;

/// Splits a prompt into its verbs and the text around them. Brackets without a verb are text.
pub(super) fn parse(prompt: &str) -> (Vec<Verb>, String) {
    if let Some(verb) = slash_command(prompt) {
        return (vec![verb], String::new());
    }
    let mut verbs = Vec::new();
    let mut text = String::new();
    let mut rest = prompt;
    while let Some((before, bracket)) = rest.split_once('[') {
        text.push_str(before);
        match bracket.split_once(']').and_then(|(inner, after)| Some((verb(inner)?, after))) {
            Some((verb, after)) => {
                verbs.push(verb);
                rest = after;
            }
            None => {
                text.push('[');
                rest = bracket;
            }
        }
    }
    text.push_str(rest);
    (verbs, text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn slash_command(prompt: &str) -> Option<Verb> {
    let command = prompt.trim().strip_prefix('/')?;
    let name = command.split_whitespace().next()?;
    COMMANDS.iter().any(|(known, ..)| *known == name).then(|| verb(command))?
}

/// Reads a verb; everything else in brackets is text.
fn verb(inner: &str) -> Option<Verb> {
    let (name, arg) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
    let arg = arg.trim();
    let text = || (!arg.is_empty()).then(|| arg.to_owned());
    Some(match name {
        // `[slow N]`: N chunks, one each 100 ms.
        "slow" => verb_of(arg.parse().ok()?, |turn, n: u64| {
            (1..=n).try_for_each(|tick| {
                turn.say(&format!("tick {tick}\n"));
                turn.wait(SLOW)
            })
        }),
        // `[chunks N]`: N numbered lines as fast as possible.
        "chunks" => verb_of(arg.parse().ok()?, |turn, n: u64| {
            (1..=n).try_for_each(|line| {
                turn.check()?;
                turn.say(&format!("line {line}\n"));
                Step::Continue(())
            })
        }),
        // `[number N NAME MICROS]`: N chunks `NAME/1`, `NAME/2`, … with a pause after each; the count
        // continues over the whole turn.
        "number" => {
            let mut words = arg.split_whitespace();
            let (count, name) = (words.next()?.parse().ok()?, words.next()?.to_owned());
            let pause = Duration::from_micros(words.next()?.parse().ok()?);
            verb_of(count, move |turn, count: u64| {
                (0..count).try_for_each(|_| {
                    turn.numbered += 1;
                    turn.say(&format!("{name}/{}\n", turn.numbered));
                    turn.wait(pause)
                })
            })
        }
        // `[big N]`: one chunk of N bytes.
        "big" => simple(arg.parse().ok()?, |turn, n| turn.say(&"x".repeat(n))),
        // `[think TEXT]`: a thought.
        "think" => simple(text()?, |turn, thought| {
            turn.send_chunk("agent_thought_chunk", &thought);
        }),
        // `[plan]`: a plan whose entries get done.
        "plan" => simple((), |turn, ()| turn.plan()),
        // `[tool TITLE]`: a tool call with a diff.
        "tool" => simple(text()?, |turn, title| turn.tool(&title)),
        // `[ask]`: asks for a permission.
        "ask" => verb_of((), |turn, ()| turn.ask()),
        // `[hang]`: never ends, not even when cancelled, nor by a cancel that came just before.
        "hang" => Box::new(|_| {
            loop {
                std::thread::park();
            }
        }),
        // `[hang-cancel]`: ends only when cancelled.
        "hang-cancel" => verb_of((), |turn, ()| {
            loop {
                turn.wait(Duration::from_hours(1))?;
            }
        }),
        // `[crash]`: exits with 3.
        "crash" => verb_of((), |turn, ()| turn.agent.wire.crash()),
        // `[crash-kill]`: kills itself with SIGKILL, through the shell, whose `kill` is built in.
        "crash-kill" => verb_of((), |turn, ()| {
            let kill = format!("kill -KILL {}", std::process::id());
            let _ = Command::new("sh").arg("-c").arg(kill).status();
            turn.agent.wire.crash()
        }),
        // `[half]`: exits with 3 within a line.
        "half" => verb_of((), |turn, ()| {
            turn.agent.wire.send_raw(br#"{"jsonrpc":"2.0","method":"session/upd"#);
            turn.agent.wire.crash()
        }),
        // `[noise]`: lines that are no messages, and messages in odd lines.
        "noise" => simple((), |turn, ()| turn.noise()),
        // `[auth]`: the prompt fails with -32000.
        "auth" => verb_of(Failure::auth_required(), |_, failure| fail(failure)),
        // `[error CODE TEXT]`: the prompt fails with this error.
        "error" => {
            let (code, message) = arg.split_once(' ').unwrap_or((arg, "error on demand"));
            verb_of(Failure::new(code.parse().ok()?, message), |_, failure| fail(failure))
        }
        // `[stop REASON]`: the turn ends with this stop reason.
        "stop" => verb_of(text()?, |_, reason| Step::Break(End::Stop(reason))),
        // `[child]`: leaves a process behind that holds stdout.
        "child" => simple((), |turn, ()| {
            let child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn();
            let child =
                child.map_or_else(|error| error.to_string(), |child| child.id().to_string());
            turn.say(&format!("child {child}\n"));
        }),
        // `[child-setsid]`: the same in a session of its own, whose parent is gone.
        "child-setsid" => simple((), |turn, ()| {
            let child = turn.daemonize();
            turn.say(&format!("child {child}\n"));
        }),
        // `[stderr N]`: N bytes on stderr.
        "stderr" => simple(arg.parse().ok()?, |_, bytes| flood_stderr(bytes)),
        // `[fs-read PATH]`: reads a file through the client.
        "fs-read" => verb_of(text()?, |turn, path| {
            let params = json!({"sessionId": turn.session.id, "path": path});
            let answer = match turn.request("fs/read_text_file", params)? {
                Ok(result) => format!("file: {}\n", result["content"].as_str().unwrap_or_default()),
                Err(failure) => format!("file error {}: {}\n", failure.code, failure.message),
            };
            turn.say(&answer);
            Step::Continue(())
        }),
        // `[terminal CALL FILE]`: `terminal/CALL` for the last terminal; `create` has its params in a
        // file, and shows the terminal in a tool call.
        "terminal" => {
            let (call, file) = arg.split_once(' ').unwrap_or((arg, ""));
            let words = [call, file].map(str::to_owned);
            verb_of(words, |turn, [call, file]| turn.terminal(&call, &file))
        }
        // `[foreground N]`: a command in a terminal of the agent that prints N lines, one each 100 ms
        // (version 2 only).
        "foreground" => verb_of(arg.parse().ok()?, Turn::foreground),
        // `[background N]`: the same, but its lines follow the end of the turn.
        "background" => verb_of(arg.parse().ok()?, Turn::background),
        // `[mcp-tool SERVER FILE]`: calls a tool of an MCP server that the agent starts; the file has
        // its name and arguments. A cancelled turn ends without notifying the server.
        "mcp-tool" => {
            let (server, file) = arg.split_once(' ')?;
            let words = [server, file].map(str::to_owned);
            verb_of(words, |turn, [server, file]| turn.mcp_tool(&server, &file))
        }
        // `[env NAME]`: reports an environment variable.
        "env" => simple(text()?, |turn, name| {
            let text = match std::env::var_os(&name) {
                Some(value) => format!("env {name}={}\n", value.to_string_lossy()),
                None => format!("env {name} is not set\n"),
            };
            turn.say(&text);
        }),
        // `[cost N]`: reports that the session has cost N US dollars more, and with the turn's end the
        // tokens of that.
        "cost" => simple(arg.parse().ok()?, |turn, more: f64| {
            lock(&turn.session.state).cost += more;
            turn.tells_tokens = true;
        }),
        // `[pause NAME]`: waits for the file `NAME.go`.
        "pause" => verb_of(text()?, |turn, name| turn.pause(&name)),
        // `[raw FILE]`: sends the bytes of a file, with the session's id for `$SESSION` and that of the
        // prompt's request for `$REQUEST`.
        "raw" => verb_of(text()?, |turn, file| turn.raw(&file)),
        // `[tool-run FILE]`: runs a file with `sh`, as a tool of the agent, and prints its output.
        "tool-run" => simple(text()?, |turn, file| turn.tool_run(&file)),
        _ => return None,
    })
}

/// A verb that a turn which was cancelled does not begin.
fn verb_of<T: 'static>(arg: T, perform: impl FnOnce(&mut Turn, T) -> Step + 'static) -> Verb {
    Box::new(move |turn| {
        turn.check()?;
        perform(turn, arg)
    })
}

/// The same for what no cancel interrupts.
fn simple<T: 'static>(arg: T, perform: impl FnOnce(&mut Turn, T) + 'static) -> Verb {
    verb_of(arg, |turn, arg| {
        perform(turn, arg);
        Step::Continue(())
    })
}

impl Turn {
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
        let (server, id) = match self.called(name, file) {
            Ok(called) => called,
            Err(error) => return fail(Failure::internal(format!("{name}: {error}"))),
        };
        let answer = loop {
            match server.answer(id) {
                Some(answer) => break Step::Continue(answer.ok()),
                None => {
                    if let Step::Break(end) = self.wait(POLL) {
                        break Step::Break(end);
                    }
                }
            }
        };
        lock(&self.session.state).tool_servers.insert(name.to_owned(), server);
        let said = answer?.map_or(Value::Null, |line| line["result"].clone());
        self.say(&format!("tool said: {said}\n"));
        Step::Continue(())
    }

    /// Calls the tool in a file; returns its server and the id of the call.
    fn called(&self, name: &str, file: &str) -> std::io::Result<(ToolServer, u64)> {
        let call: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
        // Removed while in use, so that no turn waits for the lock.
        let known = lock(&self.session.state).tool_servers.remove(name);
        let start = || {
            ToolServer::start(lock(&self.session.state).commands.get(name).unwrap_or(&Value::Null))
        };
        let mut server = known.map_or_else(start, Ok)?;
        let id = server.call(&call)?;
        Ok((server, id))
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
        let path = Path::new(&self.session.cwd).join("demo.txt");
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

    fn foreground(&mut self, lines: u64) -> Step {
        let (call, terminal) = self.open_terminal(lines, Value::Null)?;
        let step = (1..=lines).try_for_each(|line| {
            self.update(terminal_output(&terminal, line));
            self.wait(SLOW)
        });
        let (exit, status) = match step {
            Step::Continue(()) => (json!({"exitCode": 0}), "completed"),
            Step::Break(_) => (json!({}), "failed"),
        };
        self.update(json!({"sessionUpdate": "terminal_update", "terminalId": terminal,
            "exitStatus": exit}));
        self.tool_update(&call, status);
        step
    }

    fn background(&mut self, lines: u64) -> Step {
        let (call, terminal) = self.open_terminal(lines, json!({"cancel": {}}))?;
        self.tool_update(&call, "completed");
        self.agent.add_background(&self.session, &terminal, lines);
        self.say(&format!("in the background: {terminal}\n"));
        Step::Continue(())
    }

    /// Reports a terminal and the call that shows it; returns the ids of the call and the terminal.
    fn open_terminal(&mut self, lines: u64, capabilities: Value) -> Step<(String, String)> {
        if !self.agent.speaks_v2() {
            return Step::Break(End::Fail(Failure::internal("terminals need version 2")));
        }
        let terminal = format!("terminal-{}-{}", self.history, self.tools + 1);
        self.update(json!({"sessionUpdate": "terminal_update", "terminalId": terminal,
            "command": format!("count to {lines}"), "capabilities": capabilities}));
        let call = self.open_tool("Run a command");
        self.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": call,
            "kind": "execute", "status": "in_progress",
            "content": [{"type": "terminal", "terminalId": terminal}]}));
        Step::Continue((call, terminal))
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
            turn.chunk("agent_message_chunk", text).to_string()
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
