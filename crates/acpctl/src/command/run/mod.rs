//! `acpctl run`: prompt an agent and stream its answer; `session handoff` does it with a transcript.

mod handoff;
mod place;
mod report;
mod set_up;
mod steer;
mod turn;

use std::borrow::Cow;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use acp_wire::acp::{AgentCapabilities, InitializeResult, NewSessionResult, stop_reason};
use acp_wire::{ErrorObject, locate, str_at};
use acpd_api::{
    AgentInfo, AgentRef, AttachParams, AttachResult, ClientMeta, ExitCode, NAMESPACE,
    NewSessionMeta, PromptMeta, Reason, RestoreLevel, Role, SessionInfo, SessionList, SessionRef,
    Status, StatusParams, Untrusted, escape, method,
};
use acpd_client::attachment::{self, Attachment};
use acpd_client::error_data;
use acpd_sys::terminal::input_is_fed;
use acpd_view::{Settings, cut_short};
use clap::{Args, ValueHint};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::dirs::{current_dir, directory, utf8};
use crate::door::{Door, initialize_params};
use crate::error::{CommandError, Result};
use crate::git::{self, Worktree};
use crate::live::Live;
use crate::lookup::{Care, Named, Wanted};
use crate::text::{Role as Look, Text, shell_word, text};
use crate::ui::Ui;
use crate::{default_agent, human, info, install, last, lookup, signal};
use report::Report;
use set_up::{SetUp, set_up, set_up_new};
use turn::{Ended, Turn, TurnArgs};

pub(super) use handoff::{Handoff, handoff};

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
Without PROMPT, or with only `-`, the prompt is read from stdin. With PROMPT, a file or a pipe on stdin is attached. \
PROMPT followed by `-` adds stdin to the text. `-N` ignores stdin, for scripts and loops.

The answer goes to stdout, everything else to stderr. If no turn starts, stdout is empty. With --json, stdout is one \
object at the end of the turn, also after an error:

  sessionId, agent         the session
  answer                   the agent's answer
  stopReason               end_turn, max_tokens, max_turn_requests, refusal, cancelled
  error                    message, reason and hint, instead of stopReason
  exitCode                 exit code of the command
  turn, startedAt, at      number, start and end of the turn (ms since the epoch)
  tools, files             number of tool calls, and the files that they changed
  usage                    tokens and cost, if the agent reported them";
    "acpctl run -s fix 'make the tests pass'" =>
        "Prompt the session `fix` of this directory, or start it",
    "git diff | acpctl run 'review this'" => "Attach the output of another program",
    "id=$(acpctl run -N --detach --worktree=docs --yes 'update the docs')" =>
        "Work in a new worktree, and keep the session's id for `acpctl wait`",
))]
pub(super) struct Run {
    /// Use this agent [default: the session's agent, else the configured one].
    #[arg(short, long)]
    agent: Option<String>,
    /// Continue the session with this name or full id, or start one with this name.
    #[arg(short, long, value_name = "NAME")]
    session: Option<String>,
    /// Continue this session, never start one: name, id, unique prefix of either, words of the title, or `-`
    /// for the last used session.
    #[arg(short, long, value_name = "SESSION", conflicts_with = "session")]
    resume: Option<String>,
    /// Continue the last used session of this directory (and agent).
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["session", "resume"])]
    goes_on: bool,
    #[command(flatten)]
    turn: TurnArgs,
    /// Work in this directory [default: the current one].
    #[arg(short = 'C', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    /// Start a session in its own git worktree, `../REPOSITORY.worktrees/NAME`, on the branch `acpd/NAME`
    /// [default: the session's name, else a number].
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true,
        conflicts_with_all = ["resume", "goes_on", "steer"])]
    #[expect(clippy::option_option, reason = "that is how clap tells an option without its value")]
    worktree: Option<Option<String>>,
    #[command(flatten)]
    set_up: SetUp,
    /// Read the prompt from this file; `-` is stdin. PROMPT comes after it.
    #[arg(long = "prompt-file", value_name = "PATH", value_hint = ValueHint::FilePath)]
    prompt_files: Vec<PathBuf>,
    /// Attach a file, or lines of it: PATH, PATH:10 or PATH:10-20.
    #[arg(short = 'F', long = "file", value_name = "PATH[:LINES]", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Attach an image.
    #[arg(short, long = "image", value_name = "FILE", value_hint = ValueHint::FilePath)]
    images: Vec<PathBuf>,
    /// Attach audio.
    #[arg(long = "audio", value_name = "FILE", value_hint = ValueHint::FilePath)]
    sounds: Vec<PathBuf>,
    /// Send the prompt into the running turn. Without `--session` or `--continue`, the first PROMPT is the
    /// session: name, id or unique prefix.
    #[arg(long, conflicts_with_all = ["detach", "thoughts", "json_stream", "yes", "deny", "model", "mode", "set"])]
    steer: bool,
    /// Run the prompt at most once per key and session: a repeated command waits for the first turn or returns
    /// its outcome. Needs `-s` or `-r`.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["steer", "goes_on", "worktree"])]
    key: Option<String>,
    /// The prompt; words are joined.
    #[arg(value_name = "PROMPT")]
    pub(super) prompt: Vec<String>,
}

/// Time after which a slow stdin is reported.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn run(mut args: Run, door: Door, ui: &mut Ui) -> Result<ExitCode> {
    if args.steer {
        return steer::steer(&args, door, ui);
    }
    // Everything that can be wrong with the arguments is found before the daemon is bothered.
    if args.key.is_some() && args.session.is_none() && args.resume.is_none() {
        return Err(CommandError::usage("`--key` needs a session")
            .hint("name a new or existing session: `acpctl run -s NAME --key KEY …`"));
    }
    let begins = args.session.is_none() && args.resume.is_none() && !args.goes_on;
    let cwd = directory(&args.cwd.clone().map_or_else(current_dir, Ok)?)
        .map_err(|error| if begins { error } else { moved(error) })?;
    let said = Said::read(&args, &args.prompt, ui)?;
    let place = args.worktree.take();
    args.session = args.session.or_else(|| place.clone().flatten());
    ui.spin("starting");
    if ui.can_ask() && args.agent.is_none() && args.resume.is_none() && !args.goes_on {
        args.agent = choose_agent(args.session.as_deref(), &utf8(&cwd)?, door, ui)?;
    }
    let live = Live::new(door.connect_lasting()?)?;
    let mut turn = Turn::new(live, ui, &args.turn);
    let target = match place {
        Some(name) => Target::in_worktree(&mut turn, &args, &cwd, name.as_deref())?,
        None => Target::find(&mut turn, &args, &cwd)?,
    };
    let blocks = target.blocks(&said)?;
    let name = args.session.as_deref().filter(|name| *name != "-");
    let meta = PromptMeta { idempotency_key: args.key.clone(), ..PromptMeta::default() };
    target.prompt(turn, blocks, &args.turn, meta, name)
}

/// Asks for the agent of a new session if none is configured and several are installed.
fn choose_agent(
    session: Option<&str>,
    cwd: &str,
    door: Door,
    ui: &mut Ui,
) -> Result<Option<String>> {
    let mut connection = door.connect()?;
    let daemon = last::daemon_for(cwd, &mut connection)?;
    if !daemon.default_is_found {
        return Ok(None);
    }
    if let Some(name) = session {
        let list: SessionList = connection.call(method::SESSION_LIST, &lookup::all())?;
        let named = Wanted::new(name, None, cwd.to_owned()).named(list);
        if !matches!(named, Ok(Named::New(_))) {
            return Ok(None);
        }
    }
    default_agent::ask_if_found(&daemon, &mut connection, ui)
}

/// Prints what a script needs to come back to a turn that was begun.
fn left_behind(session: &SessionInfo, json: bool, ui: &mut Ui) -> Result<ExitCode> {
    ui.stop_spinning();
    if json {
        ui.json(session)?;
    } else {
        ui.relay_line(&session.session_id)?;
    }
    Ok(ExitCode::Ok)
}

/// A directory that is gone may have got another name.
fn moved(error: CommandError) -> CommandError {
    match error.code() {
        ExitCode::NotFound => error
            .hint("if it was moved, update its sessions: `acpctl session move SESSION --cwd DIR`"),
        _ => error,
    }
}

/// The session to prompt and what its agent can take.
struct Target {
    session_id: String,
    /// The agent's name in the configuration, if it is known.
    profile: Option<String>,
    agent: String,
    can: AgentCapabilities,
}

impl Target {
    fn find(turn: &mut Turn<'_>, args: &Run, cwd: &Path) -> Result<Target> {
        let cwd = utf8(cwd)?;
        let found = existing(turn, args, &cwd)?;
        Target::open(turn, args, &cwd, found)
    }

    /// Takes part in a session that was found, or begins one.
    fn open(
        turn: &mut Turn<'_>,
        args: &Run,
        cwd: &str,
        found: Option<SessionInfo>,
    ) -> Result<Target> {
        let known = found.as_ref().map(|session| session.agent.raw().to_owned());
        let agent = known.or(args.agent.clone());
        let mut target = Target::of(turn, agent.clone(), cwd)?;
        target.session_id = match found {
            Some(session) => {
                let session = attach(turn, session.session_id.into_raw(), agent.clone())?;
                set_up(turn, &session, &args.set_up)?;
                session.session_id.into_raw()
            }
            None => {
                let id = begin(turn, args, cwd, agent.clone())?;
                let line = match &args.session {
                    Some(name) => text!("new session {}", Untrusted::from(name)),
                    None => {
                        let shown = Untrusted::from(&id);
                        let how = match utf8(&current_dir()?) {
                            Ok(here) if here == cwd => "-c".into(),
                            _ => text!("-s {}", shell_word(&shown)),
                        };
                        text!("session {}; continue with: acpctl run {} ...", shown, how)
                    }
                };
                if args.session.is_some() || turn.ui.can_ask() && !args.turn.detach {
                    turn.ui.say(Text::styled(Look::Dim, line));
                }
                if agent.is_none() || turn.ui.can_ask() {
                    tell_config(turn, agent.is_none().then_some(cwd))?;
                }
                id
            }
        };
        Ok(target)
    }

    /// Begins a session in its own worktree, which goes again if that fails.
    fn in_worktree(
        turn: &mut Turn<'_>,
        args: &Run,
        dir: &Path,
        name: Option<&str>,
    ) -> Result<Target> {
        let worktree = Worktree::make(dir, name.or(args.session.as_deref()))?;
        let target = worktree.inside(dir).map_err(CommandError::from).and_then(|cwd| {
            let cwd = utf8(&cwd)?;
            match existing(turn, args, &cwd)? {
                Some(session) => {
                    let text = text!("session {} exists", session.handle());
                    Err(CommandError::usage(text)
                        .hint("`--worktree` starts a new session; choose another name"))
                }
                None => Target::open(turn, args, &cwd, None),
            }
        });
        let target = target.map_err(|error| match worktree.remove() {
            Ok(()) => error,
            Err(_) => error.hint(text!(
                "remove its worktree: git worktree remove {}",
                shell_word(&Untrusted::from(&worktree.path))
            )),
        })?;
        let (path, branch) = (Untrusted::from(&worktree.path), Untrusted::from(&worktree.branch));
        turn.ui.say(Text::styled(Look::Dim, text!("worktree {}, branch {}", path, branch)));
        if let Some(warning) = &worktree.warning {
            let warning = Untrusted::from(warning);
            turn.ui.say(text!("warning: the worktree was created, but a hook failed: {}", warning));
        }
        if git::has_changes(dir)? {
            let line = "uncommitted changes are not in the worktree";
            turn.ui.say(Text::styled(Look::Dim, line));
        }
        Ok(target)
    }

    /// Initializes the agent, without a session yet.
    fn of(turn: &mut Turn<'_>, profile: Option<String>, cwd: &str) -> Result<Target> {
        let meta = ClientMeta {
            agent: profile.clone(),
            // The directory decides which agent that is.
            cwd: profile.is_none().then(|| cwd.to_owned()),
            notices: true,
            seq: true,
            ..ClientMeta::default()
        };
        if let Some(agent) = &profile {
            offer_to_install(turn, agent)?;
        }
        let raw: Box<RawValue> = turn.call("initialize", &initialize_params(&meta))?;
        let known = InitializeResult::from_raw(&raw)?;
        // As people know it; what it calls itself is no name in commands.
        let path = ["agentCapabilities", "_meta", NAMESPACE, "agent"];
        let told = str_at(raw.get().as_bytes(), &path);
        let name = profile.clone().or(told.map(Cow::into_owned));
        let name = name.or(known.agent_info.map(|info| info.name));
        let target = Target {
            session_id: String::new(),
            profile,
            agent: name.unwrap_or_else(|| "the agent".to_owned()),
            can: known.capabilities,
        };
        turn.screen.transcript.heed(raw);
        Ok(target)
    }

    /// Sends the prompt and shows the turn to its end, or leaves it alone.
    fn prompt(
        &self,
        mut turn: Turn<'_>,
        blocks: Vec<Value>,
        how: &TurnArgs,
        mut meta: PromptMeta,
        name: Option<&str>,
    ) -> Result<ExitCode> {
        let mut params = json!({"sessionId": self.session_id, "prompt": blocks});
        // The answer to every permission question of the turn.
        meta.permissions = match (how.yes, how.deny) {
            (true, _) => Some("allow".to_owned()),
            (_, true) => Some("reject".to_owned()),
            _ => None,
        };
        if meta != PromptMeta::default() {
            params["_meta"] = json!({ NAMESPACE: meta });
        }
        if how.detach {
            let session = SessionRef {
                session: self.session_id.clone(),
                agent: self.profile.clone(),
                ..SessionRef::default()
            };
            let (session, ui) = turn.leave_behind(&session, &params)?;
            return left_behind(&session, how.json, ui);
        }
        let id = Untrusted::from(&self.session_id);
        let word = shell_word(&name.map_or(id, Untrusted::from));
        let line =
            text!("the turn continues in the background; come back with: acpctl attach {}", word);
        signal::say_at_end(Some(line.clone()));
        let ended = turn.prompt(&self.session_id, &params);
        signal::say_at_end(None);
        match ended {
            Ok(Ended::Answered(answer)) => {
                if let Some(turn_before) = repeated(&answer) {
                    turn.ui.say(Text::styled(
                        Look::Dim,
                        text!(
                            "this prompt was already executed as turn {}; see: acpctl session log {}",
                            turn_before,
                            word
                        ),
                    ));
                }
                let stop = answer.as_ref().ok().and_then(|result| stop_reason(result));
                let stop = stop.map(Untrusted::from);
                let done = match &answer {
                    Ok(result) => Ok(end(&mut turn, result)),
                    Err(error) => Err(CommandError::of_agent(&self.agent, error)),
                };
                self.print(&mut turn, stop, &done)?;
                done
            }
            Ok(Ended::Left) => {
                turn.ui.say(line);
                Ok(ExitCode::Ok)
            }
            // The reader has enough, as in `acpctl run … | head`; the agent continues.
            Err(error) if error.is_broken_pipe() => {
                turn.ui.say(line);
                Ok(ExitCode::OutcomeUnknown)
            }
            Err(error) => Err(error),
        }
    }

    /// Prints what a script wants to know of the turn, if it does.
    fn print(
        &self,
        turn: &mut Turn<'_>,
        stop_reason: Option<Untrusted>,
        done: &Result<ExitCode>,
    ) -> Result {
        let Some(answer) = turn.screen.kept() else { return Ok(()) };
        let (answer, ended) = (Untrusted::from(answer), turn.ended.take());
        let report = Report::new(self, answer, stop_reason, ended, done);
        Ok(turn.ui.json(&report)?)
    }

    fn blocks(&self, said: &Said) -> Result<Vec<Value>> {
        let mut blocks = Vec::new();
        if !said.prompt.trim().is_empty() {
            blocks.push(json!({"type": "text", "text": said.prompt}));
        }
        for attachment in &said.attachments {
            let refused = match attachment {
                Attachment::Image { .. } if !self.can.image => {
                    Some(("images", "leave out `--image`"))
                }
                Attachment::Audio { .. } if !self.can.audio => {
                    Some(("audio", "leave out `--audio`"))
                }
                Attachment::Blob { .. } if !self.can.embedded_context => {
                    Some(("binary files", "write the file's path in the prompt"))
                }
                _ => None,
            };
            if let Some((what, instead)) = refused {
                let agent = escape::one_line(&self.agent);
                return Err(CommandError::usage(text!("{} does not accept {}", agent, what))
                    .hint(text!("choose another agent with `--agent`, or {}", instead)));
            }
            blocks.extend(attachment.blocks(self.can.embedded_context));
        }
        Ok(blocks)
    }
}

/// The session that the command line names, if it is there.
fn existing(turn: &mut Turn<'_>, args: &Run, cwd: &str) -> Result<Option<SessionInfo>> {
    let agent = args.agent.as_deref();
    if args.goes_on {
        return last_used(turn, agent, cwd).map(Some);
    }
    let wanted = |text| Wanted::new(text, agent, cwd.to_owned());
    match (&args.resume, &args.session) {
        (Some(session), _) => {
            let list: SessionList = turn.call(method::SESSION_LIST, &lookup::all())?;
            Ok(Some(wanted(session).choose(list, Care::Guess)?.told(turn.ui)))
        }
        (None, Some(name)) => {
            let list: SessionList = turn.call(method::SESSION_LIST, &lookup::all())?;
            let beside = wanted(name).of_others(&list).cloned();
            match wanted(name).named(list)? {
                Named::Found(choice) => Ok(Some(choice.told(turn.ui))),
                Named::New(others) => {
                    if let Some(other) = beside {
                        turn.ui.say(Text::styled(Look::Dim, text!(
                            "{} also has a session `{}` here: name the agent from now on (`-a`)",
                            other.agent,
                            escape::one_line(name)
                        )));
                    }
                    tell_others(turn.ui, &others, name);
                    Ok(None)
                }
            }
        }
        (None, None) => Ok(None),
    }
}

/// A name counts in its directory, but the one of another may have been meant all the same.
fn tell_others(ui: &mut Ui, others: &[SessionInfo], name: &str) {
    let line = match others {
        [other] if !Path::new(other.cwd.raw()).is_dir() => Some(text!(
            "new session `{}`; to move the one of `{}`, which is gone: \
             acpctl session move {} --cwd DIR",
            escape::one_line(name),
            other.cwd,
            shell_word(&other.session_id)
        )),
        others => lookup::elsewhere(others, name),
    };
    if let Some(line) = line {
        ui.say(Text::styled(Look::Dim, line));
    }
}

/// Reports that a new session may be with another agent than expected: the configuration has changed, or
/// names no agent, and none is installed.
/// `default_in`: the session has the default agent of this directory.
fn tell_config(turn: &mut Turn<'_>, default_in: Option<&str>) -> Result {
    let params = StatusParams { cwd: default_in.map(str::to_owned) };
    // Errors are ignored.
    let Ok(status) = turn.try_call::<Status>(method::STATUS, &params)? else { return Ok(()) };
    if let Some(changed) = &status.daemon.config_changed {
        let line = info::daemon::config_changed(changed, human::now());
        turn.ui.say(Text::styled(Look::Dim, line));
    }
    let note = default_agent::note(&status.daemon).filter(|_| default_in.is_some());
    if let Some(note) = note {
        turn.ui.say(Text::styled(Look::Dim, note));
    }
    Ok(())
}

/// Installs an agent that is not there, if the person at the terminal wants that: nothing is downloaded without.
fn offer_to_install(turn: &mut Turn<'_>, agent: &str) -> Result {
    if !turn.ui.can_ask() {
        return Ok(());
    }
    let agent = AgentRef { agent: agent.to_owned() };
    match turn.try_call::<AgentInfo>(method::AGENT_SHOW, &agent)? {
        Ok(info) if install::can_install(&info) => {
            turn.ui.stop_spinning();
            install::install(&info, false, turn.ui)
        }
        // An unknown agent is reported by what follows.
        _ => Ok(()),
    }
}

fn last_used(turn: &mut Turn<'_>, agent: Option<&str>, cwd: &str) -> Result<SessionInfo> {
    let list = turn.call(method::SESSION_LIST, &last::of(cwd, agent))?;
    let session = last::used(list).ok_or_else(|| last::none(cwd, agent))?;
    if turn.ui.can_ask() {
        let line = text!("continuing {} ({})", session.handle(), session.agent);
        turn.ui.say(Text::styled(Look::Dim, line));
    }
    Ok(session)
}

/// Begins a session, or joins one that another client has begun by that name since we looked.
fn begin(turn: &mut Turn<'_>, args: &Run, cwd: &str, agent: Option<String>) -> Result<String> {
    let error = match make(turn, args.session.as_deref(), cwd, &args.set_up)? {
        Ok(id) => return Ok(id),
        Err(error) => error,
    };
    match error_data(&error) {
        Some(data) if data.reason == Reason::NameTaken && data.session_id.is_some() => {
            let id = data.session_id.unwrap_or_default().into_raw();
            let session = attach(turn, id, agent)?;
            set_up(turn, &session, &args.set_up)?;
            Ok(session.session_id.into_raw())
        }
        _ => Err(CommandError::rpc(&error)),
    }
}

/// Makes a session and sets it up; returns its id, or why the daemon or the agent did not make it.
fn make(
    turn: &mut Turn<'_>,
    name: Option<&str>,
    cwd: &str,
    wanted: &SetUp,
) -> Result<std::result::Result<String, ErrorObject>> {
    let mut params = json!({"cwd": cwd, "mcpServers": []});
    if let Some(name) = name {
        let meta = NewSessionMeta { name: Some(name.to_owned()), ..NewSessionMeta::default() };
        params["_meta"] = json!({NAMESPACE: meta});
    }
    let result = match turn.try_call::<Box<RawValue>>("session/new", &params)? {
        Ok(result) => result,
        Err(error) => return Ok(Err(error)),
    };
    let new = NewSessionResult::from_raw(&result)?;
    let settings = Settings::from_raw(&result);
    turn.screen.transcript.within(cwd.into());
    turn.screen.transcript.know(settings.clone());
    set_up_new(turn, &new.session_id, settings, wanted)?;
    Ok(Ok(new.session_id.into_owned()))
}

/// Takes part in a session from now on.
fn attach(turn: &mut Turn<'_>, session_id: String, agent: Option<String>) -> Result<SessionInfo> {
    let session = SessionRef { session: session_id, agent, ..SessionRef::default() };
    let params = AttachParams { session, after: None, role: Role::Controller };
    let result: AttachResult = turn.call(method::SESSION_ATTACH, &params)?;
    turn.join(&result.session)?;
    Ok(result.session)
}

/// The turn whose outcome this is, if the prompt was executed before under its key.
fn repeated(answer: &std::result::Result<Box<RawValue>, ErrorObject>) -> Option<u64> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Mark {
        repeated: bool,
        turn: u64,
    }
    let own = match answer {
        Ok(result) => raw_at(result, &["_meta", NAMESPACE]),
        Err(error) => raw_at(error.data.as_deref()?, &[NAMESPACE]),
    };
    let mark: Mark = serde_json::from_str(own?).ok()?;
    mark.repeated.then_some(mark.turn)
}

fn raw_at<'a>(value: &'a RawValue, path: &[&str]) -> Option<&'a str> {
    locate(value.get().as_bytes(), path).map(|at| &value.get()[at])
}

/// Prints the end of a turn and returns the exit code.
fn end(turn: &mut Turn<'_>, result: &RawValue) -> ExitCode {
    let stop = stop_reason(result).unwrap_or_default();
    let note: Option<Text> = match &*stop {
        "refusal" => Some("the agent refused".into()),
        "max_tokens" => Some("stopped: the answer reached the length limit of the agent".into()),
        "max_turn_requests" => {
            Some("stopped: the turn reached the request limit of the agent".into())
        }
        "cancelled" => Some("cancelled".into()),
        "end_turn" if turn.is_cancelled => Some("the turn ended before the cancel".into()),
        "end_turn" => None,
        "" => Some("stopped: the agent gave no reason".into()),
        other => Some(text!("stopped: {}", Untrusted::from(other))),
    };
    let cut = turn.ended.as_ref().and_then(|ended| ended.cut_short.as_ref());
    let others = cut.filter(|_| stop == "cancelled" && !turn.is_cancelled);
    match (others.map(cut_short), note) {
        (Some(others), _) => turn.ui.say(others),
        (None, Some(note)) => turn.ui.say(note),
        (None, None) => {}
    }
    match &*stop {
        "refusal" => ExitCode::Refused,
        "cancelled" => ExitCode::Cancelled,
        // After a cancel, `&&` must not continue, even if the turn was quicker.
        _ if turn.is_cancelled => ExitCode::Cancelled,
        _ if turn.restored.is_some_and(RestoreLevel::is_less) => ExitCode::ContextLost,
        _ => ExitCode::Ok,
    }
}

/// The prompt of the command line.
struct Said {
    prompt: String,
    attachments: Vec<Attachment>,
}

impl Said {
    /// Reads it from these words of the command line, from stdin and from files.
    fn read(args: &Run, words: &[String], ui: &mut Ui) -> Result<Said> {
        let files = args.files.iter().map(|path| Attachment::file(path));
        let images = args.images.iter().map(|path| Attachment::image(path));
        let sounds = args.sounds.iter().map(|path| Attachment::audio(path));
        let attachments = files.chain(images).chain(sounds);
        let mut attachments = attachments.collect::<std::result::Result<Vec<_>, _>>()?;
        let (prompt, piped) = prompt(words, &args.prompt_files, !args.turn.no_stdin, ui)?;
        attachments.extend(piped);
        if prompt.trim().is_empty() && attachments.is_empty() {
            let hint = match &args.prompt_files[..] {
                [] => {
                    "give a prompt: `acpctl run 'explain this project'`, or `-` to read it from stdin"
                }
                _ => "the file of `--prompt-file` is empty",
            };
            return Err(CommandError::usage("no prompt given").hint(hint));
        }
        Ok(Said { prompt, attachments })
    }
}

/// Returns the text and the attachment from stdin.
///
/// With words or files, stdin is attached; without, or where a `-` asks for it, it is part of the prompt.
fn prompt(
    words: &[String],
    files: &[PathBuf],
    reads_stdin: bool,
    ui: &mut Ui,
) -> Result<(String, Option<Attachment>)> {
    let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
    let (words, is_asked) = match words.split_last() {
        Some((last, words)) if last == "-" => (words, true),
        _ => (words, false),
    };
    let asked = files.iter().filter(|path| is_stdin(path)).count() + usize::from(is_asked);
    if asked > 1 {
        return Err(CommandError::usage("stdin can be read only once").hint("use one `-`"));
    }
    if asked > 0 && !reads_stdin {
        return Err(
            CommandError::usage("`-` contradicts `--no-stdin`").hint("leave out one of them")
        );
    }
    let mut parts = Vec::new();
    for path in files {
        let said = if is_stdin(path) { stdin(ui)? } else { attachment::prompt_file(path)? };
        parts.push(said.trim_end().to_owned());
    }
    let is_all = words.is_empty() && files.is_empty() && !io::stdin().is_terminal();
    parts.push(words.join(" "));
    let mut piped = None;
    if is_asked || is_all && reads_stdin {
        parts.push(stdin(ui)?.trim_end().to_owned());
    } else if asked == 0 && reads_stdin && input_is_fed() {
        piped = Attachment::piped(stdin(ui)?);
        // The stdin of a script or a loop may not be meant for the agent.
        if let Some(piped) = &piped {
            let size = human::bytes(piped.size());
            let line = text!("attached stdin, {}; `acpctl run -N` ignores it", size);
            ui.say(Text::styled(Look::Dim, line));
        }
    }
    parts.retain(|part| !part.is_empty());
    Ok((parts.join("\n\n"), piped))
}

/// Reads stdin. If that takes long, prints what the command waits for.
fn stdin(ui: &mut Ui) -> Result<String> {
    let (sender, read) = mpsc::channel();
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || drop(sender.send(attachment::stdin())))?;
    let read = match read.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => {
            let line = "waiting for the end of stdin; `acpctl run -N` ignores it";
            ui.say(Text::styled(Look::Dim, line));
            read.recv().map_err(RecvTimeoutError::from)
        }
        read => read,
    };
    let (text, is_mended) =
        read.map_err(|_| CommandError::new(ExitCode::Error, "cannot read stdin"))??;
    if is_mended {
        let line = "stdin is not valid UTF-8: invalid bytes become U+FFFD";
        ui.say(Text::styled(Look::Warning, line));
    }
    Ok(text)
}
