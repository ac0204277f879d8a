//! `acpctl acp`: an ACP agent on stdin and stdout that relays to the daemon.
//!
//! Lines pass unchanged, with these exceptions: `initialize` gets the agent's name, or else the
//! editor's working directory. With a session name, each `session/new` gets that name. With
//! `--continue` and `--attach`, the first `session/new` becomes a `session/resume` of the last used
//! or named session, and its answer becomes that of a `session/new`. For an agent on another machine,
//! more changes: see [`far`].
//!
//! To the editor, a restart of the daemon is only a pause. The process ends after the editor closed
//! stdin and got its answers, or when the editor closes stdout. Any signal may kill it. Unless it
//! is killed, it notifies acpd that it will not reconnect.

mod far;

use std::io::{self, IsTerminal as _, Read, Write as _};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use acp_wire::acp::SessionParams;
use acp_wire::{Body, Framer, Id, Message, Outcome, locate, parse, set_member};
use acpd_api::{ExitCode, NAMESPACE, NewSessionMeta, SessionInfo, escape, json};
use acpd_client::{LinkError, LinkEvent, LinkReader, LinkWriter};
use bytes::Bytes;
use clap::Args;
use serde_json::json;
use serde_json::value::RawValue;

use self::far::FarRewriter;
use crate::default_agent::daemon_for;
use crate::dirs::current_dir;
use crate::error::{CommandError, Result};
use crate::live::{Door, leave};
use crate::lookup::{self, Care};
use crate::terminal;
use crate::text::text;
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl acp claude" => "Start this in an editor as its agent",
    "acpctl acp claude -s main" => "Use the session `main`, which others can follow",
    "acpctl --host box acp claude" => "Use the agent of the machine `box`",
))]
pub(super) struct Acp {
    /// The agent [default: the configured one].
    agent: Option<String>,
    /// Name new sessions; if the name exists, continue that session.
    #[arg(short, long, value_name = "NAME")]
    session: Option<String>,
    /// Continue the last used session of the editor's directory instead of its first new session.
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    goes_on: bool,
    /// Continue this session (name, id or unique prefix) instead of the editor's first new session.
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["session", "goes_on"])]
    attach: Option<String>,
}

const BLOCK: usize = 64 * 1024;
/// Maximum wait for answers after the editor closed stdin.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

pub(super) fn acp(args: &Acp, ui: &mut Ui) -> Result {
    let door = ui.door();
    // Without a directory, the daemon's default applies.
    let dir = current_dir().ok();
    let here = dir.as_deref().and_then(|dir| ui.place_of(dir).ok());
    let far = ui.machine.take();
    let far = far.map(|machine| Arc::new(FarRewriter::new(machine, &dir.unwrap_or_default())));
    let first = match &args.attach {
        Some(wanted) => {
            let cwd = here.clone().unwrap_or_default();
            let wanted = lookup::Wanted::new(wanted, args.agent.as_deref(), cwd);
            let list = wanted.list(&mut door.connect()?)?;
            // Stderr belongs to the editor, so a guess is not reported.
            First::This(Box::new(wanted.choose(list, Care::Guess, drop)?))
        }
        None if args.goes_on => {
            let (agent, here) = (args.agent.clone(), here.clone());
            let door = door.clone();
            let find = move |cwd: &str| last_used(&door, cwd, agent.as_deref(), here.as_deref());
            First::LastUsed(Box::new(find))
        }
        None => First::New,
    };
    // The connection comes first: an editor waits for the answer to `initialize`.
    let (reader, writer) = door.connect_lasting()?.split()?;
    let terminated = writer.clone();
    terminal::before_end(move || leave(&terminated))?;
    let resumed = Arc::new(Resumed::default());
    let rewriter = Rewriter::new(args, here, first, Arc::clone(&resumed));
    let (ended, end) = mpsc::channel();
    let up = ended.clone();
    let wanted = Arc::new(Wanted(AtomicI64::new(1)));
    let asked = Arc::clone(&wanted);
    let (up_writer, down_writer) = (writer.clone(), writer.clone());
    let near = far.clone();
    thread::Builder::new().name("up".to_owned()).spawn(move || {
        drop(up.send(to_daemon(io::stdin(), &up_writer, near.as_deref(), rewriter, &asked)));
    })?;
    thread::Builder::new().name("down".to_owned()).spawn(move || {
        let far = far.as_deref().map(|far| (far, &down_writer));
        drop(ended.send(to_editor(reader, far, &wanted, &resumed)));
    })?;
    let why = end.recv().unwrap_or_else(|_| Err(LinkError::Closed.into()));
    if matches!(why, Ok(true)) {
        // The result does not matter: the editor has left.
        drop(end.recv_timeout(LAST_ANSWERS));
    }
    leave(&writer);
    // Returning ends the process, even if the other thread is blocked.
    why.map(drop)
}

fn broken(error: &io::Error) -> CommandError {
    CommandError::new(ExitCode::Error, text!("the editor's pipe broke: {}", error))
}

/// Counts the editor's needs: stdin, and an answer to each request.
struct Wanted(AtomicI64);

impl Wanted {
    fn sent(&self, line: &[u8]) {
        if matches!(parse(line), Ok(Message::Request { id, .. }) if !id.is_null()) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts an answer, or the end of stdin. Returns whether the editor needs nothing more.
    fn is_served(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) <= 1
    }
}

/// Returns after the editor closed stdin: whether it still waits for answers.
fn to_daemon(
    mut stdin: impl Read,
    daemon: &LinkWriter,
    far: Option<&FarRewriter>,
    mut rewriter: Rewriter,
    wanted: &Wanted,
) -> Result<bool> {
    let mut framer = Framer::new(usize::MAX);
    let mut block = vec![0; BLOCK];
    loop {
        let count = match stdin.read(&mut block) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // The editor's end of a socket, closed with unread lines.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            Err(error) => return Err(broken(&error)),
        };
        framer.push(&block[..count]);
        let at_end = count == 0;
        while let Some(frame) = if at_end { framer.finish() } else { framer.next_frame() } {
            let Body::Line(line) = frame.body else { continue };
            let line = match far {
                Some(far) => far.rewrite_for_daemon(line),
                None => line,
            };
            wanted.sent(&line);
            daemon.send(rewriter.rewrite(line)?)?;
        }
        if at_end {
            daemon.flush(LAST_ANSWERS);
            return Ok(!wanted.is_served());
        }
    }
}

/// Returns `false` after the editor closed stdout, or has its last answer.
fn to_editor(
    mut daemon: LinkReader,
    far: Option<(&FarRewriter, &LinkWriter)>,
    wanted: &Wanted,
    resumed: &Resumed,
) -> Result<bool> {
    #[expect(clippy::disallowed_methods, reason = "an editor gets every byte")]
    let mut stdout = io::stdout();
    let is_terminal = stdout.is_terminal();
    let mut lines = Vec::new();
    let mut had_last = false;
    loop {
        if let LinkEvent::Line(line) = daemon.recv()? {
            // Nearly all lines have a method, which is found without reading the rest.
            let is_answer = locate(&line, &["method"]).is_none()
                && matches!(parse(&line), Ok(Message::Response { id, .. }) if !id.is_null());
            had_last |= is_answer && wanted.is_served();
            let line = resumed.answer(line);
            let line = match far {
                Some((far, daemon)) => pass_or_refuse(far.rewrite_for_editor(line), daemon)?,
                None => Some(line),
            };
            if let Some(mut line) = line {
                if is_terminal {
                    line = shown(&line);
                }
                lines.extend_from_slice(&line);
                lines.push(b'\n');
            }
        }
        if daemon.is_ready() && lines.len() < BLOCK {
            continue;
        }
        match stdout.write_all(&lines).and_then(|()| stdout.flush()) {
            Ok(()) if had_last => return Ok(false),
            Ok(()) => lines.clear(),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
            Err(error) => return Err(broken(&error)),
        }
        // A long line is seldom followed by another one.
        lines.shrink_to(2 * BLOCK);
    }
}

/// Returns the line for the editor, or answers the daemon, from another thread: sending may wait for
/// lines that this one reads.
fn pass_or_refuse(line: Result<Bytes, Bytes>, daemon: &LinkWriter) -> Result<Option<Bytes>> {
    let refusal = match line {
        Ok(line) => return Ok(Some(line)),
        Err(refusal) => refusal,
    };
    let daemon = daemon.clone();
    // Fails after the connection has ended, which this thread sees, too.
    let refuse = move || drop(daemon.send(refusal));
    thread::Builder::new().name("refusal".to_owned()).spawn(refuse)?;
    Ok(None)
}

/// Escapes a line for a user who types instead of an editor.
fn shown(line: &[u8]) -> Bytes {
    match serde_json::from_slice::<&RawValue>(line).and_then(json::line) {
        Ok(line) => line.into(),
        Err(_) => escape::verbatim(&String::from_utf8_lossy(line)).to_string().into(),
    }
}

/// Returns the id of the last used session in a directory, of `agent` or else of the agent for
/// `here`.
fn last_used(
    door: &Door,
    cwd: &str,
    agent: Option<&str>,
    here: Option<&str>,
) -> Result<Option<String>> {
    let mut connection = door.connect()?;
    let agent = match agent {
        Some(agent) => agent.to_owned(),
        None => daemon_for(here.unwrap_or_default(), &mut connection)?.default_agent.into_raw(),
    };
    let session = lookup::last_used(Some(cwd), Some(&agent), &mut connection)?;
    Ok(session.map(|session| session.session_id.into_raw()))
}

/// The request that became a `session/resume`, and its session.
#[derive(Debug, Default)]
struct Resumed(Mutex<Option<(Id, String)>>);

impl Resumed {
    /// Turns the answer into that of a `session/new`, with the session's id.
    fn answer(&self, line: Bytes) -> Bytes {
        let mut resumed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((asked, session)) = &*resumed else { return line };
        let line = match parse(&line) {
            Ok(Message::Response { id, outcome }) if id == *asked => match outcome {
                Outcome::Result(_) => {
                    let session = json!(session).to_string();
                    set_member(&line, &["result", "sessionId"], session.as_bytes())
                }
                Outcome::Error(_) => line,
            },
            _ => return line,
        };
        *resumed = None;
        line
    }
}

/// Finds the id of the last used session of a directory.
type FindLast = Box<dyn FnOnce(&str) -> Result<Option<String>> + Send>;

enum First {
    New,
    LastUsed(FindLast),
    This(Box<SessionInfo>),
}

struct Rewriter {
    /// Member for the first `initialize`, and its text.
    hello: Option<(&'static str, String)>,
    /// JSON text for every `session/new`.
    session: Option<String>,
    first: First,
    resumed: Arc<Resumed>,
}

impl Rewriter {
    fn new(args: &Acp, here: Option<String>, first: First, resumed: Arc<Resumed>) -> Rewriter {
        let session = args.session.clone().map(|name| {
            let meta =
                NewSessionMeta { name: Some(name), reuse: true, ..NewSessionMeta::default() };
            json!(meta).to_string()
        });
        let agent = match &first {
            First::This(info) => Some(info.agent.raw().to_owned()),
            First::New | First::LastUsed(_) => args.agent.clone(),
        };
        let hello = agent.map(|agent| ("agent", agent)).or(here.map(|here| ("cwd", here)));
        Rewriter { hello, session, first, resumed }
    }

    fn rewrite(&mut self, line: Bytes) -> Result<Bytes> {
        if self.hello.is_none() && self.session.is_none() && matches!(self.first, First::New) {
            return Ok(line);
        }
        let Ok(Message::Request { id, method, params }) = parse(&line) else { return Ok(line) };
        Ok(match (&*method, &self.session) {
            ("initialize", _) => match self.hello.take() {
                Some((member, text)) => {
                    let path = ["params", "_meta", NAMESPACE, member];
                    set_member(&line, &path, json!(text).to_string().as_bytes())
                }
                None => line,
            },
            ("session/new", Some(meta)) => {
                set_member(&line, &["params", "_meta", NAMESPACE], meta.as_bytes())
            }
            ("session/new", None) => match std::mem::replace(&mut self.first, First::New) {
                First::New => line,
                First::LastUsed(find) => {
                    let cwd = params.and_then(|params| SessionParams::from_raw(params).cwd);
                    let Some(cwd) = cwd else { return Ok(line) };
                    match find(&cwd)? {
                        Some(session) => self.resume(&line, id, session),
                        None => line,
                    }
                }
                First::This(info) => {
                    // The session keeps its directory.
                    let cwd = json!(info.cwd).to_string();
                    let line = set_member(&line, &["params", "cwd"], cwd.as_bytes());
                    self.resume(&line, id, info.session_id.into_raw())
                }
            },
            _ => line,
        })
    }

    fn resume(&self, line: &Bytes, id: Id, session: String) -> Bytes {
        let line = set_member(line, &["method"], br#""session/resume""#);
        let text = json!(session).to_string();
        let line = set_member(&line, &["params", "sessionId"], text.as_bytes());
        let mut resumed = self.resumed.0.lock().unwrap_or_else(PoisonError::into_inner);
        *resumed = Some((id, session));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewriter(args: &Acp, first: First) -> Rewriter {
        Rewriter::new(args, Some("/here".to_owned()), first, Arc::default())
    }

    fn last_used() -> First {
        First::LastUsed(Box::new(|cwd| Ok((cwd == "/w").then(|| "s-1".to_owned()))))
    }

    fn demo() -> Acp {
        Acp { agent: Some("demo".to_owned()), session: None, goes_on: false, attach: None }
    }

    fn rewritten(
        agent: Option<&str>,
        session: Option<&str>,
        lines: &[&'static str],
    ) -> Vec<String> {
        let (agent, session) = (agent.map(str::to_owned), session.map(str::to_owned));
        let args = Acp { agent, session, goes_on: false, attach: None };
        let mut rewriter = rewriter(&args, First::New);
        let text = |line: &&'static str| {
            let line = rewriter.rewrite(Bytes::from_static(line.as_bytes())).unwrap();
            String::from_utf8(line.to_vec()).unwrap()
        };
        lines.iter().map(text).collect()
    }

    const INITIALIZE: &str = r#"{"id":0, "method":"initialize","params":{"protocolVersion":1}}"#;
    const NEW: &str = r#"{"id":1,"method":"session/new","params":{"cwd":"/w","_meta":{"x":1}}}"#;

    #[test]
    fn without_arguments_only_the_directory_is_told() {
        let with = r#"{"id":0, "method":"initialize","params":{"protocolVersion":1,"_meta":{"_acpd":{"cwd":"/here"}}}}"#;
        let lines = ["junk", INITIALIZE, INITIALIZE, NEW];
        assert_eq!(rewritten(None, None, &lines), ["junk", with, INITIALIZE, NEW]);
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
        assert_eq!(rewritten(None, Some("fix"), &[NEW, NEW]), [with, with]);
    }

    #[test]
    fn the_first_new_session_goes_on_in_the_last_used_one() {
        let mut rewriter = rewriter(&demo(), last_used());
        let mut rewritten = |line: &'static str| {
            let line = rewriter.rewrite(Bytes::from_static(line.as_bytes())).unwrap();
            String::from_utf8(line.to_vec()).unwrap()
        };
        rewritten(INITIALIZE);
        let resume = r#"{"id":1,"method":"session/resume","params":{"cwd":"/w","_meta":{"x":1},"sessionId":"s-1"}}"#;
        assert_eq!(rewritten(NEW), resume);
        assert_eq!(rewritten(NEW), NEW);

        let answers = [
            (r#"{"id":2,"result":{}}"#, r#"{"id":2,"result":{}}"#),
            (r#"{"method":"x"}"#, r#"{"method":"x"}"#),
            (
                r#"{"id":1,"result":{"modes":1}}"#,
                r#"{"id":1,"result":{"modes":1,"sessionId":"s-1"}}"#,
            ),
            (r#"{"id":1,"result":{}}"#, r#"{"id":1,"result":{}}"#),
        ];
        for (line, expected) in answers {
            let line = rewriter.resumed.answer(Bytes::from_static(line.as_bytes()));
            assert_eq!(line, expected);
        }
    }

    #[test]
    fn where_there_is_no_session_one_begins() {
        let new = r#"{"id":1,"method":"session/new","params":{"cwd":"/elsewhere"}}"#;
        let line =
            rewriter(&demo(), last_used()).rewrite(Bytes::from_static(new.as_bytes())).unwrap();
        assert_eq!(line, new);
    }
}
