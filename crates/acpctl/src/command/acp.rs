//! `acpctl acp`: an ACP agent on stdin and stdout that relays to the daemon.
//!
//! Bytes pass as they are. Only the editor's `initialize` is told which agent it means, and, with a
//! session name, each `session/new` which session. A restart of the daemon is no more than a pause to
//! the editor. The process ends when the editor closes stdin and has its answers, or at once when it
//! closes stdout, and any signal may kill it. Unless it is killed, it tells acpd that nobody comes back.

use std::io::{self, Read, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use acp_wire::{Body, Framer, Message, parse, set_member};
use acpd_api::{ExitCode, NAMESPACE, NewSessionMeta};
use acpd_client::{Incoming, LinkError, LinkReader, LinkWriter};
use bytes::Bytes;
use serde_json::json;

use super::Door;
use crate::cli;
use crate::error::{CommandError, Result, gone};
use crate::signal;

/// Bytes read at once.
const BLOCK: usize = 64 * 1024;
/// How long answers are waited for after the editor has closed stdin.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// How long the last words to the daemon may take: that answers have arrived, and that we leave.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Why the relay ends.
enum End {
    /// The editor closed stdin: it asks no more.
    Asking,
    /// The editor closed stdout, or has its last answer.
    Editor,
    /// The daemon closed the connection, and it cannot be taken up again.
    Daemon,
    /// The daemon did not come back.
    Lost(LinkError),
    /// Stdin or stdout broke in another way.
    Broken(io::Error),
}

/// Relays until one side goes away.
pub(super) fn acp(args: &cli::Acp, door: Door) -> Result<ExitCode> {
    // The connection comes first: an editor waits for the answer to `initialize`.
    let (reader, writer) = door.lasting_link()?;
    let terminated = writer.clone();
    signal::before_end(move || leave(&terminated))?;
    let rewriter = Rewriter::new(args);
    let (ended, end) = mpsc::channel();
    let up = ended.clone();
    let wanted = Arc::new(Wanted::new());
    let asked = Arc::clone(&wanted);
    let up_writer = writer.clone();
    thread::Builder::new()
        .name("up".to_owned())
        .spawn(move || drop(up.send(to_daemon(io::stdin(), &up_writer, rewriter, &asked))))?;
    thread::Builder::new()
        .name("down".to_owned())
        .spawn(move || drop(ended.send(to_editor(reader, &wanted))))?;
    let why = end.recv();
    if let Ok(End::Asking) = why {
        // However it ends: the editor has left already.
        drop(end.recv_timeout(LAST_ANSWERS));
    }
    leave(&writer);
    // Returning ends the process, whatever the other thread is blocked in.
    match why {
        Ok(End::Editor | End::Asking) => Ok(ExitCode::Ok),
        Ok(End::Lost(error)) => Err(error.into()),
        Ok(End::Daemon) | Err(_) => Err(gone()),
        Ok(End::Broken(error)) => {
            Err(CommandError::new(ExitCode::Error, format!("the editor's pipe broke: {error}")))
        }
    }
}

/// The last words to the daemon.
fn leave(daemon: &LinkWriter) {
    daemon.leave();
    daemon.flush(LAST_WORDS);
}

/// How much the editor still wants: to speak, and an answer to each request.
struct Wanted(AtomicI64);

impl Wanted {
    fn new() -> Wanted {
        Wanted(AtomicI64::new(1))
    }

    /// The editor sent a line.
    fn sent(&self, line: &[u8]) {
        if matches!(parse(line), Ok(Message::Request { id, .. }) if !id.is_null()) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The editor closed stdin; whether it wants no more.
    fn ended(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) <= 1
    }

    /// The editor is given this line; whether it wants no more.
    fn given(&self, line: &[u8]) -> bool {
        let is_answer = matches!(parse(line), Ok(Message::Response { id, .. }) if !id.is_null());
        is_answer && self.0.fetch_sub(1, Ordering::Relaxed) <= 1
    }
}

fn to_daemon(
    mut stdin: impl Read,
    daemon: &LinkWriter,
    mut rewriter: Rewriter,
    wanted: &Wanted,
) -> End {
    let mut framer = Framer::new(usize::MAX);
    let mut block = vec![0; BLOCK];
    loop {
        let count = match stdin.read(&mut block) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return End::Broken(error),
        };
        framer.push(&block[..count]);
        let at_end = count == 0;
        while let Some(frame) = if at_end { framer.finish() } else { framer.next_frame() } {
            let Body::Line(line) = frame.body else { continue };
            wanted.sent(&line);
            if !daemon.send(rewriter.rewrite(line)) {
                return End::Daemon;
            }
        }
        if at_end {
            daemon.flush(LAST_ANSWERS);
            return if wanted.ended() { End::Editor } else { End::Asking };
        }
    }
}

/// Passes on lines, as many at once as there are.
fn to_editor(mut daemon: LinkReader, wanted: &Wanted) -> End {
    let mut stdout = io::stdout();
    let mut lines = Vec::new();
    let mut had_last = false;
    loop {
        match daemon.recv() {
            Ok(Incoming::Line(line)) => {
                had_last |= wanted.given(&line);
                lines.extend_from_slice(&line);
                lines.push(b'\n');
            }
            Ok(Incoming::Lost | Incoming::Back) => {}
            Ok(Incoming::Closed) => return End::Daemon,
            Err(error) => return End::Lost(error),
        }
        if daemon.is_ready() && lines.len() < BLOCK {
            continue;
        }
        match write(&mut stdout, &lines) {
            Ok(()) if had_last => return End::Editor,
            Ok(()) => lines.clear(),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return End::Editor,
            Err(error) => return End::Broken(error),
        }
        // A long line is seldom followed by another one.
        lines.shrink_to(2 * BLOCK);
    }
}

fn write(stdout: &mut io::Stdout, lines: &[u8]) -> io::Result<()> {
    stdout.write_all(lines)?;
    stdout.flush()
}

/// What acpctl adds to the editor's requests.
struct Rewriter {
    /// JSON text for the first `initialize`.
    agent: Option<String>,
    /// JSON text for every `session/new`.
    session: Option<String>,
}

impl Rewriter {
    fn new(args: &cli::Acp) -> Rewriter {
        let session = args.session.clone().map(|name| {
            let meta = NewSessionMeta { name: Some(name), reuse: true };
            json!(meta).to_string()
        });
        Rewriter { agent: args.agent.as_ref().map(|agent| json!(agent).to_string()), session }
    }

    fn rewrite(&mut self, line: Bytes) -> Bytes {
        if self.agent.is_none() && self.session.is_none() {
            return line;
        }
        let Ok(Message::Request { method, .. }) = parse(&line) else { return line };
        match &*method {
            "initialize" => match self.agent.take() {
                Some(agent) => {
                    let path = ["params", "_meta", NAMESPACE, "agent"];
                    set_member(&line, &path, agent.as_bytes())
                }
                None => line,
            },
            "session/new" => match &self.session {
                Some(meta) => set_member(&line, &["params", "_meta", NAMESPACE], meta.as_bytes()),
                None => line,
            },
            _ => line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(
        agent: Option<&str>,
        session: Option<&str>,
        lines: &[&'static str],
    ) -> Vec<String> {
        let args =
            cli::Acp { agent: agent.map(str::to_owned), session: session.map(str::to_owned) };
        let mut rewriter = Rewriter::new(&args);
        let text = |line: &&'static str| {
            let line = rewriter.rewrite(Bytes::from_static(line.as_bytes()));
            String::from_utf8(line.to_vec()).unwrap()
        };
        lines.iter().map(text).collect()
    }

    const INITIALIZE: &str = r#"{"id":0, "method":"initialize","params":{"protocolVersion":1}}"#;
    const NEW: &str = r#"{"id":1,"method":"session/new","params":{"cwd":"/w","_meta":{"x":1}}}"#;

    #[test]
    fn without_arguments_nothing_is_changed() {
        assert_eq!(rewritten(None, None, &[INITIALIZE, NEW, "junk"]), [INITIALIZE, NEW, "junk"]);
    }

    #[test]
    fn the_agent_goes_into_the_first_initialize_only() {
        let lines = rewritten(Some("a\"b"), None, &["[]", INITIALIZE, INITIALIZE, NEW]);
        let with = r#"{"id":0, "method":"initialize","params":{"protocolVersion":1,"_meta":{"_acpd":{"agent":"a\"b"}}}}"#;
        assert_eq!(lines, ["[]", with, INITIALIZE, NEW]);
    }

    #[test]
    fn the_name_goes_into_every_new_session() {
        let with = r#"{"id":1,"method":"session/new","params":{"cwd":"/w","_meta":{"x":1,"_acpd":{"name":"fix","reuse":true}}}}"#;
        assert_eq!(rewritten(None, Some("fix"), &[INITIALIZE, NEW, NEW]), [INITIALIZE, with, with]);
    }
}
