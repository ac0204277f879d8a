//! All clients but the one with a token: the editor behind the bridge, `acpctl run`, `acpctl
//! attach`, and an observer on the socket without a token.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;

use serde_json::{Value, json};

use super::lines::{Event, Who, read};
use super::view::{Heard, View, numbered};
use crate::home::Result;
use crate::peer::request;
use crate::process::ChildGuard;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    /// Output of the program on stderr.
    pub(super) complaint: String,
    pub(super) killed: bool,
}

impl Ended {
    /// Returns whether the program had done nothing yet, because its new daemon was killed too
    /// early. A user would call it again.
    pub(super) fn never_began(&self) -> bool {
        self.code == Some(1) && self.complaint.contains("acpd ended while it started")
    }
}

/// A program whose output is read line by line. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) child: ChildGuard,
    /// The kill loop ended it.
    pub(super) killed: bool,
}

impl Program {
    pub(super) fn start(
        mut command: Command,
        who: Who,
        life: u32,
        to: &Sender<Event>,
    ) -> Result<Program> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("a pipe is missing")?;
        read(who, life, stdout, to.clone());
        Ok(Program { child: ChildGuard(child), killed: false })
    }

    pub(super) fn kill(&mut self) {
        self.killed = true;
        // The child is not reaped, so its pid is its own.
        self.child.0.kill().ok();
    }

    pub(super) fn end(&mut self) -> Result<Ended> {
        let code = self.child.0.wait()?.code();
        let mut text = String::new();
        if let Some(mut stderr) = self.child.0.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut text)?;
        }
        Ok(Ended { code, complaint: text.trim().to_owned(), killed: self.killed })
    }
}

/// An editor: it speaks plain ACP with a bridge, and starts another bridge when one has died. Each
/// second life speaks version 2.
pub(super) struct Editor {
    pub(super) program: Program,
    last_id: u64,
    open: BTreeSet<u64>,
    asked: BTreeSet<String>,
    is_second: bool,
    /// In version 2, the message of the turn that runs, as far as the editor has seen.
    message: Option<String>,
    /// In version 2, prompts by their messages, and the ends of their turns.
    prompts: BTreeMap<String, u64>,
    ends: BTreeMap<String, Value>,
    /// All numbered chunks of its session, in order.
    pub(super) chunks: Vec<String>,
    pub(super) answers: BTreeMap<u64, Value>,
}

impl Editor {
    pub(super) fn start(mut command: Command, life: u32, to: &Sender<Event>) -> Result<Editor> {
        command.stdin(Stdio::piped());
        let mut editor = Editor {
            program: Program::start(command, Who::Editor, life, to)?,
            // The next bridge must not use the same ids.
            last_id: u64::from(life) * 1_000_000,
            open: BTreeSet::new(),
            asked: BTreeSet::new(),
            is_second: life % 2 == 1,
            message: None,
            prompts: BTreeMap::new(),
            ends: BTreeMap::new(),
            chunks: Vec::new(),
            answers: BTreeMap::new(),
        };
        let info = if editor.is_second {
            json!({"protocolVersion": 2, "info": {"name": "editor", "version": "1"}})
        } else {
            json!({"protocolVersion": 1, "clientCapabilities": {}})
        };
        editor.request("initialize", &info);
        Ok(editor)
    }

    /// Opens its session and gets its conversation.
    pub(super) fn load(&mut self, session: &str, cwd: &Path) {
        let mut params = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
        if self.is_second {
            params["replayFrom"] = json!({"type": "start"});
            self.request("session/resume", &params);
        } else {
            self.request("session/load", &params);
        }
    }

    /// Returns the id.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.open.insert(id);
        self.write(&request(id, method, params));
        id
    }

    /// Returns the id. `params`: as in version 1.
    pub(super) fn prompt(&mut self, mut params: Value, key: &str) -> u64 {
        if self.is_second {
            params["_meta"].take();
            params["idempotencyKey"] = key.into();
        }
        self.request("session/prompt", &params)
    }

    pub(super) fn close(&mut self) {
        self.program.killed = true;
        self.program.child.0.stdin = None;
    }

    fn write(&mut self, message: &Value) {
        if let Some(stdin) = &mut self.program.child.0.stdin {
            // The bridge may just have been killed; its end comes as the next event.
            stdin.write_all(format!("{message}\n").as_bytes()).ok();
        }
    }

    pub(super) fn line(&mut self, message: Value) -> Heard {
        match (message.get("id"), message["method"].as_str()) {
            (Some(id), None) => {
                let id = id.as_u64().unwrap_or_default();
                if !self.open.remove(&id) {
                    return Err(format!("an answer to nothing that is open: {message}"));
                }
                match message["result"]["messageId"].as_str() {
                    Some(inserted) => drop(self.prompts.insert(inserted.to_owned(), id)),
                    None => drop(self.answers.insert(id, message)),
                }
                self.end_prompts();
            }
            (Some(id), Some("session/request_permission")) => {
                if !self.asked.insert(id.to_string()) {
                    return Err(format!("asked twice: {message}"));
                }
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
                self.write(&json!({"jsonrpc": "2.0", "id": id, "result": outcome}));
            }
            (None, Some(method)) if method.starts_with("_acpd/") => {
                return Err(format!("the editor did not ask for {message}"));
            }
            (None, Some(_)) => {
                self.chunks.extend(numbered(&message).map(str::to_owned));
                self.follow_turn(&message["params"]["update"])?;
            }
            _ => return Err(format!("unexpected: {message}")),
        }
        Ok(())
    }

    fn follow_turn(&mut self, update: &Value) -> Heard {
        if !self.is_second {
            return Ok(());
        }
        if update["sessionUpdate"] == "user_message_chunk" {
            self.message = update["messageId"].as_str().map(str::to_owned);
        }
        if update["state"] != "idle" {
            return Ok(());
        }
        let message = self.message.take();
        if let Some(reason) = update["stopReason"].as_str() {
            let end = match reason {
                "error" => json!({"error": update["error"]}),
                reason => json!({"result": {"stopReason": reason}}),
            };
            let message = message.ok_or_else(|| format!("no turn ends: {update}"))?;
            if self.ends.insert(message, end).is_some() {
                return Err(format!("the turn ends twice: {update}"));
            }
        }
        self.end_prompts();
        Ok(())
    }

    /// Answers prompts as version 1 does: at the end of their turns.
    fn end_prompts(&mut self) {
        for (message, id) in std::mem::take(&mut self.prompts) {
            if let Some(end) = self.ends.get(&message) {
                self.answers.insert(id, end.clone());
            } else if self.message.as_ref() == Some(&message) {
                self.prompts.insert(message, id);
            } else {
                // Another life has seen its turn.
                self.answers.insert(id, json!({"result": {"messageId": message}}));
            }
        }
    }
}

pub(super) struct Run {
    pub(super) program: Program,
    pub(super) tag: String,
    pub(super) chunks: Vec<String>,
    pub(super) ended: Option<Ended>,
    /// The client repeats a prompt of a killed one: it may see a part of the turn.
    pub(super) came_late: bool,
}

impl Run {
    pub(super) fn line(&mut self, message: &Value) {
        self.chunks.extend(numbered(message).map(str::to_owned));
    }
}

/// `acpctl attach --json`, from the beginning of the session.
pub(super) struct Attach {
    pub(super) program: Program,
    pub(super) view: View,
}

impl Attach {
    pub(super) fn start(command: Command, life: u32, to: &Sender<Event>) -> Result<Attach> {
        let program = Program::start(command, Who::Attach, life, to)?;
        Ok(Attach { program, view: View::default() })
    }
}

/// Watches all sessions over one connection, and attaches again behind the last line.
#[derive(Debug, Default)]
pub(super) struct Observer {
    pub(super) stream: Option<UnixStream>,
    pub(super) views: BTreeMap<String, View>,
}

impl Observer {
    pub(super) fn up(&mut self, mut stream: UnixStream) {
        let meta = json!({"_acpd": {"agent": "one", "notices": true, "seq": true}});
        let params = json!({"protocolVersion": 1, "clientCapabilities": {}, "_meta": meta});
        let hello = request(0, "initialize", &params);
        let attach = (1..).zip(&self.views).map(|(id, (session, view))| {
            let params = json!({"ref": {"session": session}, "after": view.cursor(),
                "role": "observer"});
            request(id, "_acpd/session/attach", &params)
        });
        let lines = std::iter::once(hello).chain(attach).map(|line| format!("{line}\n"));
        // The daemon may just have died; its end comes as the next event.
        stream.write_all(lines.collect::<String>().as_bytes()).ok();
        self.stream = Some(stream);
    }

    pub(super) fn close(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.shutdown(std::net::Shutdown::Both).ok();
        }
    }

    pub(super) fn line(&mut self, message: Value) -> Heard {
        if message.get("error").is_some() {
            let going = message["error"]["data"]["_acpd"]["reason"] == "shutting_down";
            return if going { Ok(()) } else { Err(format!("it cannot watch: {message}")) };
        }
        let session = message["params"]["sessionId"].as_str().unwrap_or_default();
        self.views.get_mut(session).map_or(Ok(()), |view| view.hear(message).map(drop))
    }
}
