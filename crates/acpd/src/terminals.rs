//! Commands that acpd runs for agents. A thread owns them and executes the relay's orders, so a
//! start in a directory that does not answer blocks nothing else.
//!
//! Architecture invariant: the thread executes orders in order, and the answer to a request comes
//! before the end of the command that it has started.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use acp_wire::{ErrorObject, code};
use acpd_core::ids::InteractionId;
use acpd_core::{Input, NewTerminal, TerminalEnd, TerminalTail};
use acpd_services::terminal::{
    CreateTerminal, Exit, Output, TerminalError, Terminals as Held, end_leftovers,
};
use bytes::Bytes;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::host::Reaper;
use crate::services::refused;
use crate::worker::Worker;

/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// Longest wait of an ending daemon for its commands.
const END: Duration = Duration::from_secs(3);
/// Bytes of output shown in a conversation when a command has ended.
const SHOWN: usize = 16 << 10;
/// Bytes of output shown while the command runs.
const GROWING: usize = 4 << 10;

type Done = mpsc::UnboundedSender<Input>;

pub struct Terminals {
    worker: Worker<(Held, Done)>,
    marks: String,
}

impl Terminals {
    /// `exe` is the file of this program. Ends commands that earlier daemons of this journal left.
    pub fn start(
        generation: &str,
        incarnation: u64,
        reaper: Reaper,
        exe: PathBuf,
        done: Done,
    ) -> io::Result<Terminals> {
        let marks = format!("{generation}-t");
        let prefix = marks.clone();
        let is_left = move |mark: &str| {
            let number = mark.strip_prefix(&prefix).and_then(|number| number.parse::<u64>().ok());
            number.is_some_and(|number| number >> 32 < incarnation)
        };
        let swept = thread::Builder::new()
            .name("leftovers".to_owned())
            .stack_size(256 << 10)
            .spawn(move || end_leftovers(is_left, GRACE));
        if let Err(error) = swept {
            tracing::error!(%error, "commands of an earlier daemon may still run");
        }
        let held = Held::new(Arc::new(reaper), GRACE, Some(exe));
        Ok(Terminals { worker: Worker::start("terminals", (held, done))?, marks })
    }

    /// Runs a command in the agent's environment, and answers the request. Call it on the runtime.
    pub fn create(
        &self,
        terminal: InteractionId,
        new: NewTerminal,
        base_env: Vec<(OsString, OsString)>,
    ) {
        let request = CreateTerminal {
            id: id(terminal),
            owner: new.host.0,
            command: new.command,
            args: new.args,
            base_env,
            env: new.env,
            cwd: new.cwd.into(),
            output_byte_limit: new.output_byte_limit,
            marker: format!("{}{}", self.marks, terminal.0),
        };
        let runtime = Handle::current();
        self.worker.order(move |(held, done)| {
            match held.create(request).and_then(|()| held.wait(&id(terminal))) {
                Ok(ended) => {
                    answer(done, terminal, Ok(Bytes::from_static(b"{}")));
                    let done = done.clone();
                    runtime.spawn(async move {
                        let end = terminal_end(ended.await);
                        done.send(Input::TerminalEnded { terminal, end }).ok();
                    });
                }
                Err(error) => answer(done, terminal, Err(refusal(&error))),
            }
        });
    }

    pub fn output(&self, request: InteractionId, terminal: InteractionId) {
        self.worker.order(move |(held, done)| {
            let output = held.output(&id(terminal));
            answer(done, request, output.map(result).map_err(|error| refusal(&error)));
        });
    }

    /// Reports the end of a command's output, unless the command was released.
    pub fn look(&self, terminal: InteractionId) {
        self.worker.order(move |(held, done)| {
            if let Ok(output) = held.output(&id(terminal)) {
                let tail = tail_of(&output, GROWING);
                done.send(Input::TerminalSeen { terminal, tail }).ok();
            }
        });
    }

    pub fn kill(&self, terminal: InteractionId) {
        // The hub may not know yet that its start failed.
        self.worker.order(move |(held, _)| drop(held.kill(&id(terminal))));
    }

    pub fn release(&self, terminal: InteractionId) {
        self.worker.order(move |(held, _)| drop(held.release(&id(terminal))));
    }

    /// Ends all commands, and waits for that up to 3 s.
    pub async fn end(self) {
        let end = async {
            if let Some(ended) = self.worker.ask(|(held, _)| held.end()).await {
                ended.await;
            }
        };
        if tokio::time::timeout(END, end).await.is_err() {
            tracing::error!("some commands of agents did not end");
        }
    }
}

fn id(terminal: InteractionId) -> String {
    terminal.0.to_string()
}

fn answer(done: &Done, request: InteractionId, result: Result<Bytes, ErrorObject>) {
    done.send(Input::Served { request, result }).ok();
}

fn result(output: Output) -> Bytes {
    let Output { text, truncated, exit } = output;
    let mut result = json!({ "output": text, "truncated": truncated });
    if let Some(Exit { code, signal }) = exit {
        result["exitStatus"] = json!({ "exitCode": code, "signal": signal });
    }
    result.to_string().into()
}

fn terminal_end(output: Output) -> TerminalEnd {
    let tail = tail_of(&output, SHOWN);
    let Exit { code, signal } = output.exit.unwrap_or_default();
    TerminalEnd { code, signal, tail }
}

fn tail_of(output: &Output, most: usize) -> TerminalTail {
    let text = &output.text;
    let from = text.ceil_char_boundary(text.len().saturating_sub(most));
    TerminalTail { output: text[from..].to_owned(), truncated: output.truncated || from > 0 }
}

fn refusal(error: &TerminalError) -> ErrorObject {
    let code = match error {
        TerminalError::Unknown { .. } => code::NOT_FOUND,
        TerminalError::NoDirectory { .. } | TerminalError::BadVariable { .. } => {
            code::INVALID_PARAMS
        }
        TerminalError::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            code::INVALID_PARAMS
        }
        _ => code::INTERNAL,
    };
    refused(code, error, error.hint())
}
