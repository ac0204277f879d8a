//! Commands that acpd runs for agents (`terminal/*`). Each is the agent of a shim that does not
//! outlive its daemon, without input; stdout and stderr are one pipe.
//!
//! Architecture invariant: the answer to a request comes before the end of the command that it has
//! started.

mod kept;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use acp_wire::{Body, ErrorObject, code};
use acpd_core::ids::{HostId, InteractionId};
use acpd_core::{
    HostEvent, Input, NewTerminal, SpawnError, StopStep, TerminalEnd, TerminalTail, ToHost,
};
use acpd_shim::frame::Status;
use acpd_shim::launch::{How, Program};
use acpd_sys::process::{is_same_variable, signal_name};
use bytes::Bytes;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::clock::until;
use crate::host::{Agents, COMMAND_GRACE, Shim};
use crate::locked;
use kept::Kept;

/// Longest wait of an ending daemon for its commands.
const END: Duration = Duration::from_secs(3);
/// Bytes of output shown in a conversation when a command has ended.
const SHOWN: usize = 16 << 10;
/// Bytes of output shown while the command runs.
const GROWING: usize = 4 << 10;
/// Terminals of one agent at a time.
const MOST_OF_OWNER: usize = 64;
/// Terminals of all agents at a time, including released ones that still end.
const MOST_IN_ALL: usize = 256;
/// Bytes of output kept by default.
const USUAL_OUTPUT: u64 = 1 << 20;
/// Bytes of output kept at most.
const MOST_OUTPUT: u64 = 2 << 20;
/// Reports of a shim that may wait.
const EVENTS: usize = 8;

type Done = mpsc::UnboundedSender<Input>;
/// Closed when nothing of a command is left. Nothing is ever sent.
type Gone = watch::Receiver<()>;

pub struct Terminals {
    done: Done,
    held: BTreeMap<InteractionId, Terminal>,
    /// Released terminals, of which something may still run.
    ending: Vec<Gone>,
}

struct Terminal {
    owner: HostId,
    /// A message, or the end of the channel, ends the command.
    stop: mpsc::UnboundedSender<()>,
    state: Arc<Mutex<State>>,
    gone: Gone,
}

struct State {
    kept: Kept,
    exit: Option<Exit>,
    is_refused: bool,
}

/// Code and name of the signal; both are missing if the exit is unknown.
type Exit = (Option<u32>, Option<String>);

/// Returns the last output as text, whether there was more before, and the exit. The lock is held
/// for a copy of the bytes only: the runtime waits for it.
fn output_of(state: &Mutex<State>) -> (String, bool, Option<Exit>) {
    let (kept, exit) = {
        let state = locked(state);
        (state.kept.clone(), state.exit.clone())
    };
    let (text, truncated) = kept.text(exit.is_some());
    (text, truncated, exit)
}

impl Terminals {
    pub fn new(done: Done) -> Terminals {
        Terminals { done, held: BTreeMap::new(), ending: Vec::new() }
    }

    /// Runs a command in the agent's environment, and answers the request. Call it on the runtime.
    pub fn create(&mut self, terminal: InteractionId, new: NewTerminal, agents: &mut Agents) {
        if let Err(why) = self.room_for(new.host) {
            return answer(&self.done, terminal, Err(why));
        }
        let (stop, stopped) = mpsc::unbounded_channel();
        let (alive, gone) = watch::channel(());
        let limit = new.output_byte_limit.unwrap_or(USUAL_OUTPUT).min(MOST_OUTPUT);
        let kept = Kept::new(limit as usize);
        let state = Arc::new(Mutex::new(State { kept, exit: None, is_refused: false }));
        let (events, heard) = mpsc::channel(EVENTS);
        let base_env = agents.environment(&new.agent);
        let (start, exit) = agents.command(HostId(terminal.0), &new.agent, events);
        let running =
            Running { terminal, done: self.done.clone(), state: Arc::clone(&state), exit };
        self.held.insert(terminal, Terminal { owner: new.host, stop, state, gone });
        tokio::spawn(async move {
            let _alive = alive;
            // Off the runtime: the directory may be on a disk that does not answer.
            let how = spawn_blocking(move || how(new, base_env)).await;
            let how = how
                .unwrap_or_else(|error| Err(ErrorObject::new(code::INTERNAL, error.to_string())));
            match how.and_then(|how| start(how).map_err(refusal)) {
                Ok(shim) => running.keep(shim, heard, stopped).await,
                Err(why) => running.refuse(why),
            }
        });
    }

    /// Fails if there are too many terminals.
    fn room_for(&mut self, owner: HostId) -> Result<(), ErrorObject> {
        self.held.retain(|_, held| !locked(&held.state).is_refused);
        self.ending.retain(|gone| gone.has_changed().is_ok());
        let of_owner = self.held.values().filter(|held| held.owner == owner).count();
        let most = if of_owner >= MOST_OF_OWNER {
            format!("this agent has {MOST_OF_OWNER} terminals")
        } else if self.held.len() + self.ending.len() >= MOST_IN_ALL {
            format!("all agents together have {MOST_IN_ALL} terminals")
        } else {
            return Ok(());
        };
        let hint = "release terminals that are not needed any more";
        Err(ErrorObject::new(code::INTERNAL, format!("{most}, which is the limit; {hint}")))
    }

    pub fn output(&self, request: InteractionId, terminal: InteractionId) {
        let done = self.done.clone();
        let Some(held) = self.held.get(&terminal) else {
            let text = format!("terminal `{}` does not exist or was released", terminal.0);
            return answer(&done, request, Err(ErrorObject::new(code::NOT_FOUND, text)));
        };
        let state = Arc::clone(&held.state);
        // Off the runtime: it may be long.
        spawn_blocking(move || {
            let (output, truncated, exit) = output_of(&state);
            let mut result = json!({ "output": output, "truncated": truncated });
            if let Some((code, signal)) = exit {
                result["exitStatus"] = json!({ "exitCode": code, "signal": signal });
            }
            answer(&done, request, Ok(result.to_string().into()));
        });
    }

    /// Reports the end of a command's output, unless the command was released.
    pub fn look(&self, terminal: InteractionId) {
        let Some(held) = self.held.get(&terminal) else { return };
        let (state, done) = (Arc::clone(&held.state), self.done.clone());
        spawn_blocking(move || {
            let (text, truncated, _) = output_of(&state);
            let tail = tail_of((text, truncated), GROWING);
            done.send(Input::TerminalSeen { terminal, tail }).ok();
        });
    }

    /// Ends a command: SIGTERM to its group, or to all that is left if the command has ended by
    /// itself; after the grace SIGKILL to its tree. Output and exit stay available.
    pub fn kill(&self, terminal: InteractionId) {
        if let Some(held) = self.held.get(&terminal) {
            held.stop.send(()).ok();
        }
    }

    pub fn release(&mut self, terminal: InteractionId) {
        self.ending.extend(self.held.remove(&terminal).map(|held| held.gone));
    }

    /// Ends all commands, and waits for that up to 3 s.
    pub async fn end(self) {
        let held = self.held.into_values().map(|held| held.gone);
        let all: Vec<Gone> = held.chain(self.ending).collect();
        let end = async {
            for mut gone in all {
                gone.changed().await.ok();
            }
        };
        if tokio::time::timeout(END, end).await.is_err() {
            tracing::error!("some commands of agents did not end");
        }
    }
}

/// A command that is started, until nothing of it is left.
struct Running {
    terminal: InteractionId,
    done: Done,
    state: Arc<Mutex<State>>,
    /// Empty if the exit is unknown.
    exit: Arc<OnceLock<Status>>,
}

impl Running {
    async fn keep(
        self,
        shim: Shim,
        mut heard: mpsc::Receiver<(HostId, HostEvent)>,
        mut stopped: mpsc::UnboundedReceiver<()>,
    ) {
        let mut is_stopped = false;
        let mut kill_at = None;
        loop {
            tokio::select! {
                event = heard.recv() => match event {
                    Some((_, HostEvent::Started { .. })) => {
                        answer(&self.done, self.terminal, Ok(Bytes::from_static(b"{}")));
                    }
                    Some((_, HostEvent::Refused(error))) => return self.refuse(refusal(error)),
                    Some((_, HostEvent::Output(pieces))) => {
                        let mut state = locked(&self.state);
                        for piece in pieces {
                            if let Body::Line(bytes) = piece.body {
                                state.kept.push(&bytes);
                            }
                        }
                    }
                    Some((_, HostEvent::Exited { .. })) => self.ended(),
                    Some((_, HostEvent::Gone)) => return shim.tell(ToHost::Forget),
                    Some(_) => {}
                    // The task that talks with the shim has died.
                    None => return self.ended(),
                },
                _ = stopped.recv(), if !is_stopped => {
                    is_stopped = true;
                    kill_at = Some(Instant::now() + COMMAND_GRACE);
                    shim.tell(ToHost::Stop(StopStep::Term));
                }
                () = until(kill_at) => {
                    kill_at = None;
                    shim.tell(ToHost::Stop(StopStep::Kill));
                }
            }
        }
    }

    fn refuse(&self, why: ErrorObject) {
        locked(&self.state).is_refused = true;
        answer(&self.done, self.terminal, Err(why));
    }

    fn ended(&self) {
        let (code, signal) = match self.exit.get() {
            Some(Status::Code(code)) => (Some(code.cast_unsigned()), None),
            Some(Status::Signal(number)) => (None, Some(signal_name(*number))),
            Some(Status::Closed | Status::Unknown) | None => (None, None),
        };
        {
            let mut state = locked(&self.state);
            // The end was reported before.
            if state.exit.is_some() {
                return;
            }
            state.exit = Some((code, signal.clone()));
        }
        let (text, truncated, _) = output_of(&self.state);
        let end = TerminalEnd { code, signal, tail: tail_of((text, truncated), SHOWN) };
        self.done.send(Input::TerminalEnded { terminal: self.terminal, end }).ok();
    }
}

fn answer(done: &Done, request: InteractionId, result: Result<Bytes, ErrorObject>) {
    done.send(Input::Served { request, result }).ok();
}

fn tail_of((text, truncated): (String, bool), most: usize) -> TerminalTail {
    let from = text.ceil_char_boundary(text.len().saturating_sub(most));
    TerminalTail { output: text[from..].to_owned(), truncated: truncated || from > 0 }
}

fn refusal(error: SpawnError) -> ErrorObject {
    let code = if error.permanent { code::INVALID_PARAMS } else { code::INTERNAL };
    let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    ErrorObject::new(code, format!("{}{hint}", error.message))
}

/// Several agents send a line for the system's shell instead of a program: it has no arguments,
/// contains white space, and is not the name of a program. Blocks the thread.
fn how(new: NewTerminal, base_env: Vec<(OsString, OsString)>) -> Result<How, ErrorObject> {
    let invalid = |text| Err(ErrorObject::new(code::INVALID_PARAMS, text));
    let cwd = PathBuf::from(new.cwd);
    if !cwd.is_dir() {
        let cwd = cwd.display();
        return invalid(format!("cannot run a command in `{cwd}`: it is not a directory"));
    }
    // A name with a `=` could set `ACPD_HOST`, the mark of a tree, to that of another one.
    let is_bad = |name: &str| name.is_empty() || name.contains('=');
    if let Some((name, _)) = new.env.iter().find(|(name, _)| is_bad(name)) {
        return invalid(format!(
            "`{name}` cannot be the name of an environment variable: it is empty or has a `=`"
        ));
    }
    let mut env = base_env;
    env.extend(new.env.into_iter().map(|(name, value)| (name.into(), value.into())));
    let path = env.iter().rfind(|(name, _)| is_same_variable(name, OsStr::new("PATH")));
    let path = path.map(|(_, path)| path);
    let has_space = new.command.contains(char::is_whitespace);
    let is_line =
        new.args.is_empty() && has_space && which::which_in(&new.command, path, &cwd).is_err();
    let args = new.args.into_iter().map(Into::into).collect();
    let program = Program { program: new.command.into(), args, env, cwd };
    Ok(How::Command { program, is_line })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn held(owner: u64) -> Terminal {
        let state = State { kept: Kept::new(0), exit: None, is_refused: false };
        let (stop, gone) = (mpsc::unbounded_channel().0, watch::channel(()).1);
        Terminal { owner: HostId(owner), stop, state: Arc::new(Mutex::new(state)), gone }
    }

    #[test]
    fn terminals_are_limited_by_agent_and_in_all() {
        let mut terminals = Terminals::new(mpsc::unbounded_channel().0);
        let mut refusal = |owner, next: u64| {
            let refusal = terminals.room_for(HostId(owner)).err();
            terminals.held.insert(InteractionId(next), held(owner));
            refusal.map(|error| error.message)
        };
        let (of_owner, in_all) = (MOST_OF_OWNER as u64, MOST_IN_ALL as u64);
        for number in 0..in_all {
            assert_eq!(refusal(number / of_owner, number), None);
        }
        assert!(refusal(0, in_all).is_some_and(|why| why.contains("this agent has 64 terminals")));
        assert!(refusal(9, in_all).is_some_and(|why| why.contains("all agents together")));
        for number in 0..=in_all {
            let held = terminals.held.get(&InteractionId(number)).unwrap();
            locked(&held.state).is_refused = true;
        }
        terminals.room_for(HostId(0)).unwrap();
    }

    /// Returns how a request is run: a program or a line, and its environment.
    fn how_to_run(change: impl FnOnce(&mut NewTerminal)) -> Result<(bool, String), String> {
        let mut new = NewTerminal {
            agent: String::new(),
            host: HostId(0),
            command: "sh".to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: "/".to_owned(),
            output_byte_limit: None,
        };
        change(&mut new);
        let how = how(new, vec![("A".into(), "1".into())]).map_err(|error| error.message)?;
        let How::Command { program, is_line } = how else { unreachable!() };
        Ok((is_line, format!("{:?}", program.env)))
    }

    #[test]
    fn a_line_without_arguments_goes_to_the_shell_unless_it_is_a_program() {
        let is_line = |command: &str, args: &[&str]| {
            let (command, args) = (command.to_owned(), args.iter().map(|&arg| arg.to_owned()));
            let args = args.collect();
            how_to_run(|new| (new.command, new.args) = (command, args)).unwrap().0
        };
        assert!(is_line("echo 3 4", &[]));
        assert!(!is_line("echo", &[]));
        assert!(!is_line("echo 3 4", &["5"]));
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("my program");
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        assert!(!is_line(program.to_str().unwrap(), &[]));
    }

    #[test]
    fn a_request_adds_to_the_agents_environment() {
        let env = vec![("A".to_owned(), "2".to_owned())];
        let (_, all) = how_to_run(|new| new.env = env).unwrap();
        assert_eq!(all, r#"[("A", "1"), ("A", "2")]"#);
        for name in ["", "ACPD_HOST=forged"] {
            let env = vec![(name.to_owned(), String::new())];
            assert!(how_to_run(|new| new.env = env).unwrap_err().contains("cannot be the name"));
        }
        let refusal = how_to_run(|new| new.cwd = "/gone".to_owned()).unwrap_err();
        assert_eq!(refusal, "cannot run a command in `/gone`: it is not a directory");
    }
}
