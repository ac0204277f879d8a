//! `acpctl chat`: a conversation on the full screen, or line by line.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, IsTerminal as _};
use std::iter::successors;
use std::path::Path;
use std::sync::Arc;

use acp_wire::acp::{AgentCapabilities, InitializeResult, NewSessionResult};
use acp_wire::{ErrorObject, Id, Message, Outcome, parse};
use acpd_api::{
    AnswerParams, CancelParams, Empty, ExitCode, InteractionInfo, InteractionList,
    Outcome as TurnOutcome, Question, QuestionAnswered, Role, SessionInfo, SessionRef, TurnEnded,
    TurnState, Untrusted, method,
};
use acpd_client::{Connection, attachment, connect_lasting, rejoin};
use acpd_tui::{Choice, ChoiceEffect, Opens, Scene, ScreenError, ScreenResult, ScreenStart, Theme};
use acpd_view::Settings;
use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::dirs::current_dir;
use crate::error::{CommandError, Result};
use crate::info::session::current_activity;
use crate::live::{Event, Live, me};
use crate::lookup::{Care, Wanted, last_used};
use crate::permission::needs_action;
use crate::screen::Screen;
use crate::text::{Role as Look, Text, shell_word, text};
use crate::ui::Ui;
use crate::user_programs::{Edited, pager};
use crate::{default_agent, human, terminal};

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl chat" => "Continue the last used session of this directory, or start one",
    "acpctl chat --new -a claude" => "Start a session with this agent",
    "acpctl chat main --plain" => "Read and write line by line, for a screen reader",
))]
pub(super) struct Chat {
    /// Name, id, unique prefix of either, words of the title, or `-` for the last used session [default: the
    /// last used session of this directory, else a new one].
    session: Option<String>,
    /// Look only among sessions of this agent; the agent of a new session.
    #[arg(short, long)]
    agent: Option<String>,
    /// Start a new session.
    #[arg(long, conflicts_with = "session")]
    new: bool,
    /// Print line by line instead of on a full screen: for screen readers and simple terminals.
    #[arg(long)]
    plain: bool,
}

pub(super) fn chat(args: &Chat, ui: &mut Ui) -> Result<ExitCode> {
    let instead = "without one: `acpctl chat --plain`, `acpctl run`, `acpctl attach`";
    let screen = (!args.plain).then(|| start_screen(ui, instead)).transpose()?;
    let mut connection = ui.door().connect()?;
    let found = find(args, &mut connection, ui)?;
    let agent = match &found {
        Some(session) => session.agent.raw().to_owned(),
        None => agent(args, &mut connection, ui)?,
    };
    drop(connection);
    let Some(mut start) = screen else { return plain(found, agent, ui) };
    start.opens = match found {
        Some(SessionInfo { session_id, seq, .. }) => {
            Opens::Session { agent, session_id: session_id.into_raw(), seq }
        }
        None => Opens::New { agent },
    };
    run_screen(start, ui)?;
    Ok(ExitCode::Ok)
}

/// Returns none to begin a session.
fn find(args: &Chat, connection: &mut Connection, ui: &mut Ui) -> Result<Option<SessionInfo>> {
    if args.new {
        return Ok(None);
    }
    let (agent, cwd) = (args.agent.as_deref(), ui.place_of(&current_dir()?)?);
    let Some(text) = &args.session else {
        return last_used(Some(&cwd), agent, connection);
    };
    let wanted = Wanted::new(text, agent, cwd);
    let list = wanted.list(connection)?;
    wanted.choose(list, Care::Guess, |note| ui.note(note)).map(Some)
}

/// Returns the agent of a new session: the named one, the user's choice, or the default.
fn agent(args: &Chat, connection: &mut Connection, ui: &mut Ui) -> Result<String> {
    if let Some(agent) = &args.agent {
        return Ok(agent.clone());
    }
    let daemon = default_agent::daemon_for(&ui.place_of(&current_dir()?)?, connection)?;
    if let Some(chosen) = default_agent::ask_if_found(&daemon, connection, ui)? {
        return Ok(chosen);
    }
    if let Some(note) = default_agent::note(&daemon) {
        ui.note(note);
    }
    Ok(daemon.default_agent.into_raw())
}

/// Columns of questions if the terminal's width is unknown.
const WIDTH: usize = 80;
/// Characters that may follow `@path` in a sentence.
const PUNCTUATION: [char; 9] = ['.', ',', ';', ':', '!', '?', ')', '"', '\''];

fn plain(found: Option<SessionInfo>, agent: String, ui: &mut Ui) -> Result<ExitCode> {
    let mut live = Live::new(ui.door().connect_lasting()?)?;
    let hello = live.bind(&agent.as_str().into(), Role::Controller, [], ui)?;
    let can = InitializeResult::from_raw(&hello).map(|hello| hello.capabilities);
    let session = match found {
        Some(session) => session.exactly(),
        None => {
            let params = json!({"cwd": ui.place_of(&current_dir()?)?, "mcpServers": []});
            let new: Box<RawValue> = live.call(ui, "session/new", &params)?;
            SessionRef::to(&agent, &NewSessionResult::from_raw(&new)?.session_id)
        }
    };
    let info = live.attach(session, None, Role::Controller, ui)?;
    let mut screen = Screen::plain();
    let settings = Settings::default();
    screen.transcript.open(&info.session_id, &info.cwd, Some(&hello), settings);
    let now = current_activity(&info, human::now());
    ui.say(text!("{} with {} in {}; now: {}", info.handle(), info.agent, info.cwd, now));
    ui.say(
        "each line is a prompt; a number answers a question, an empty line leaves it open; Ctrl-C \
         cancels the turn, Ctrl-D exits",
    );
    let turn = info.turn.state;
    let mut chat = PlainChat {
        live,
        info,
        can: can.unwrap_or_default(),
        typed: Vec::new(),
        prompts: HashSet::new(),
        asked: None,
        questions: VecDeque::new(),
        printed: HashSet::new(),
        answers: HashMap::new(),
        code: ExitCode::Ok,
        is_left_open: false,
        is_running: turn != TurnState::Idle,
        is_at_end: false,
    };
    if turn == TurnState::NeedsAction {
        chat.look()?;
    }
    chat.live.listen_to_keys()?;
    let left = chat.follow(&mut screen, ui);
    // Print the received part of an unfinished answer.
    screen.finish(ui)?;
    left
}

/// `acpctl chat --plain`: a conversation line by line, for screen readers and simple terminals.
/// Printed text never changes: no full screen, no spinner, no preview.
///
/// A line is a prompt. While a question is open, a number answers it, and an empty line leaves it
/// open:
///
/// ```text
///            ┌──────────── acpd: answered, or its turn is over ───────────────┐
///            │                                                                ▼
///  none ──asked──▶ shown ──number──▶ sent ──────────────────────────────────▶ none
///                  │   ▲ ▲                              │
///       empty line ▼   │ ? └─────────refused─────────────┘
///                 left open: lines are prompts
/// ```
struct PlainChat {
    live: Live,
    info: SessionInfo,
    can: AgentCapabilities,
    typed: Vec<u8>,
    /// This client's prompts without an answer.
    prompts: HashSet<Id>,
    asked: Option<Id>,
    /// The session's open questions; the first one was shown last.
    questions: VecDeque<InteractionInfo>,
    printed: HashSet<Untrusted>,
    /// The requests with unconfirmed answers, and their questions.
    answers: HashMap<Id, Untrusted>,
    /// The exit code of the last error.
    code: ExitCode,
    is_left_open: bool,
    is_running: bool,
    is_at_end: bool,
}

impl PlainChat {
    fn follow(&mut self, screen: &mut Screen, ui: &mut Ui) -> Result<ExitCode> {
        loop {
            match self.live.next(ui)? {
                Event::Line(line) => self.line(&line, screen, ui)?,
                Event::Key(terminal::END) => {
                    if io::stdin().is_terminal() {
                        return Ok(self.left(ui));
                    }
                    // In a pipe, the last line may have no end, and earlier requests still get
                    // their answers.
                    self.is_at_end = true;
                    let line = std::mem::take(&mut self.typed);
                    if !line.is_empty() {
                        self.typed(String::from_utf8_lossy(&line).trim(), ui)?;
                    }
                }
                Event::Key(b'\n') => {
                    let line = std::mem::take(&mut self.typed);
                    self.typed(String::from_utf8_lossy(&line).trim(), ui)?;
                }
                Event::Key(byte) => self.typed.push(byte),
                Event::Detach => return Ok(self.left(ui)),
                Event::Interrupt => self.interrupt(ui)?,
                Event::Late | Event::Link(_) => {}
                Event::Ended(error) => return Err(error.into()),
            }
            if self.is_at_end && self.prompts.is_empty() {
                return Ok(self.left(ui));
            }
        }
    }

    fn left(&self, ui: &mut Ui) -> ExitCode {
        let handle = self.info.handle();
        let word = shell_word(handle);
        let back = "keeps running; come back with: acpctl chat --plain";
        ui.say(text!("left {}, which {} {}", handle, back, word));
        self.code
    }

    fn typed(&mut self, line: &str, ui: &mut Ui) -> Result {
        match (line, self.questions.front().filter(|_| !self.is_left_open)) {
            ("", Some(_)) => {
                self.is_left_open = true;
                ui.say("left open; `?` shows it again");
            }
            ("", None) => {}
            ("?", _) => {
                self.is_left_open = false;
                self.ask(ui);
            }
            (line, Some(question)) => {
                let choices = acpd_tui::answers(question);
                let count = choices.len();
                let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                match number.and_then(|number| choices.into_iter().nth(number)) {
                    Some(choice) => self.answer(choice, ui)?,
                    None => ui.say(text!(
                        "type a number from 1 to {}, or an empty line to leave the question open",
                        count
                    )),
                }
            }
            (line, None) => match self.blocks(line) {
                Ok(blocks) => {
                    let prompt = json!({"sessionId": self.info.session_id, "prompt": blocks});
                    self.prompts.insert(self.live.writer.request("session/prompt", &prompt)?);
                }
                Err(error) => {
                    ui.talk(&error.render());
                    if !io::stdin().is_terminal() {
                        self.code = error.code();
                    }
                }
            },
        }
        Ok(())
    }

    fn blocks(&self, line: &str) -> Result<Vec<Value>> {
        let cwd = Path::new(self.info.cwd.raw());
        let mut blocks = vec![json!({"type": "text", "text": line})];
        for name in mentions(line, |name| cwd.join(name).is_file()) {
            blocks.push(attachment::mentioned(&cwd.join(name), name, self.can)?);
        }
        Ok(blocks)
    }

    fn answer(&mut self, choice: Choice, ui: &mut Ui) -> Result {
        let Choice { label, says_why, does: ChoiceEffect::Answer(answer), .. } = choice else {
            return Ok(());
        };
        let Some(question) = self.questions.pop_front() else { return Ok(()) };
        ui.say(text!("answered: {}", label));
        if says_why {
            ui.say("type the reason as the next line");
        }
        let id = question.id.raw().to_owned();
        let params = AnswerParams { id, answer, by: Some(me()), parent: None };
        let request = self.live.writer.request(method::INTERACTION_ANSWER, &params)?;
        self.answers.insert(request, question.id);
        if !self.questions.is_empty() {
            self.ask(ui);
        }
        Ok(())
    }

    fn look(&mut self) -> Result {
        self.asked = Some(self.live.writer.request(method::INTERACTION_LIST, &Empty {})?);
        Ok(())
    }

    fn open(&mut self, list: InteractionList, ui: &mut Ui) {
        let SessionInfo { agent, session_id, .. } = &self.info;
        self.questions =
            list.interactions.into_iter().filter(|open| open.is_of(agent, session_id)).collect();
        if self.questions.iter().any(|open| !self.printed.contains(&open.id)) {
            self.is_left_open = false;
            self.ask(ui);
        }
    }

    /// Shows the whole first question, with nothing chosen.
    fn ask(&mut self, ui: &mut Ui) {
        let Some(question) = self.questions.front() else {
            return ui.say("there is no open question");
        };
        // Earlier input is no answer.
        self.typed.clear();
        acpd_sys::terminal::forget_typed();
        let width = ui.out_width().unwrap_or(WIDTH);
        let home = acpd_sys::paths::home();
        let head = text!("question: {}", acpd_tui::asks(question, home.as_deref()));
        ui.warn(head);
        ui.talk(&Text::lines(&acpd_tui::rows(question, width)));
        let choices = acpd_tui::answers(question).into_iter().enumerate();
        let choices = choices.flat_map(|(at, choice)| {
            let label = Text::of(Look::Plain, text!("  {}  {}", at + 1, choice.label));
            let note = choice.note.map(|note| Text::of(Look::Dim, text!("     {}", note)));
            std::iter::once(label).chain(note)
        });
        ui.talk(&Text::lines(&choices.collect::<Vec<_>>()));
        if matches!(question.question, Question::Form { .. }) {
            ui.say(text!("to fill it in, in another terminal: acpctl answer {}", question.id));
        }
        let more = self.questions.len() - 1;
        let more = (more > 0).then(|| text!(" ({} more)", more));
        ui.note(text!("type a number, or an empty line to leave the question open{}", more));
        self.printed.insert(question.id.clone());
    }

    fn interrupt(&mut self, ui: &mut Ui) -> Result {
        if !self.is_running {
            return ui.done("no turn is running; Ctrl-D exits");
        }
        let session = self.info.exactly();
        let params = CancelParams { session, turn_only: false, background: false, by: Some(me()) };
        self.live.writer.request(method::SESSION_CANCEL, &params)?;
        ui.done("cancelling the turn and its queued prompts; Ctrl-C exits now")
    }

    fn line(&mut self, line: &[u8], screen: &mut Screen, ui: &mut Ui) -> Result {
        let Ok(message) = parse(line) else { return Ok(()) };
        match message {
            Message::Notification { method, params } => {
                let params = params.unwrap_or(RawValue::NULL);
                screen.show(ui, &method, params.get())?;
                self.notice(&method, params, ui)?;
            }
            // Questions are answered by their number, here or elsewhere.
            Message::Request { method, .. } if method == "session/request_permission" => {}
            Message::Request { id, method, .. } => self.live.refuse(&id, &method)?,
            Message::Response { id, outcome } => match outcome {
                Outcome::Result(result) if self.asked.as_ref() == Some(&id) => {
                    let list = read::<InteractionList>(result).unwrap_or_default();
                    self.open(list, ui);
                }
                Outcome::Result(_) => {
                    self.prompts.remove(&id);
                    self.answers.remove(&id);
                }
                Outcome::Error(error) => {
                    let error = CommandError::rpc(&ErrorObject::from_raw(error));
                    ui.talk(&error.render());
                    if self.prompts.remove(&id) && !io::stdin().is_terminal() {
                        self.code = error.code();
                    }
                    if let Some(question) = self.answers.remove(&id) {
                        // The question may still be open: show it again.
                        self.printed.remove(&question);
                        self.look()?;
                    }
                }
            },
        }
        Ok(())
    }

    fn notice(&mut self, name: &str, params: &RawValue, ui: &mut Ui) -> Result {
        match name {
            method::TURN_STARTED => self.is_running = true,
            method::TURN_ENDED => {
                self.is_running = false;
                self.questions.clear();
                // The transcript prints any other end.
                let is_done = read::<TurnEnded>(params).is_some_and(|ended| {
                    matches!(ended.outcome, TurnOutcome::Stopped { stop_reason } if stop_reason == "end_turn")
                });
                if is_done {
                    ui.say("done");
                }
            }
            name if needs_action(name, params) => self.look()?,
            method::ANSWERED => {
                let answered = read::<QuestionAnswered>(params);
                self.questions.retain(|open| answered.as_ref().is_none_or(|it| it.id != open.id));
            }
            method::SESSION_REMOVED => {
                return Err(CommandError::new(ExitCode::NotFound, "the session was deleted"));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns the files that words such as `@src/main.rs` mention, each once. Punctuation after a word
/// may belong to the sentence.
fn mentions<'a>(line: &'a str, is_file: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let mut names = Vec::new();
    for word in line.split_whitespace().filter_map(|word| word.strip_prefix('@')) {
        let shorter = |name: &&'a str| name.strip_suffix(PUNCTUATION);
        let name = successors(Some(word), shorter).find(|name| is_file(name));
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

fn read<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// Fails without a suitable terminal, with the hint `instead`.
pub(super) fn start_screen(ui: &Ui, instead: &'static str) -> Result<ScreenStart> {
    if !can_show_screen() {
        let error = "this needs a terminal that can show a full screen";
        return Err(CommandError::usage(error).hint(instead));
    }
    let theme =
        Theme { is_coloured: ui.out_is_coloured, is_unicode: acpd_sys::terminal::has_unicode() };
    let options = ui.door().options()?;
    let cwd = ui.place_of(&current_dir()?)?;
    Ok(ScreenStart {
        scene: Scene { theme, home: acpd_sys::paths::home(), cwd, who: me() },
        opens: Opens::Top,
        pager: pager(),
        editor: |text| match Edited::of(text) {
            Ok(edited) => Ok(edited.text.trim_end_matches('\n').to_owned()),
            Err(error) => Err(error.message),
        },
        door: Arc::new(move |may_start| {
            let connect = if may_start { connect_lasting } else { rejoin };
            connect(&options, options.place.patience())?.split()
        }),
    })
}

pub(super) fn run_screen(start: ScreenStart, ui: &mut Ui) -> Result {
    let ScreenResult { session, unsent } = match acpd_tui::run(start) {
        Ok(left) => left,
        Err(ScreenError::Connect(error)) => return Err(error.into()),
        Err(ScreenError::Terminal(error)) => {
            return Err(CommandError::because(ExitCode::Error, &error));
        }
        Err(ScreenError::NotBegun { error, unsent }) => {
            print_unsent(unsent, ui);
            return Err(CommandError::rpc(&error));
        }
    };
    print_unsent(unsent, ui);
    if let Some(session) = session {
        let word = shell_word(&session);
        ui.say(text!("{} keeps running; come back with: acpctl chat {}", session, word));
    }
    Ok(())
}

/// Prints drafts that would be lost with this process.
fn print_unsent(unsent: Vec<String>, ui: &mut Ui) {
    for unsent in unsent.into_iter().map(Untrusted::from) {
        ui.say(text!("not sent: {}", unsent.prose()));
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing is printed")]
pub(crate) fn can_show_screen() -> bool {
    acpd_sys::terminal::can_show_full_screen()
        && io::stdin().is_terminal()
        && io::stdout().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_name_files_are_mentions() {
        let is_file = |name: &str| ["a.rs", "b.mp3", "c."].contains(&name);
        let of = |line| mentions(line, is_file);
        assert_eq!(of("see @a.rs, then @b.mp3; @a.rs again"), ["a.rs", "b.mp3"]);
        assert_eq!(of("is it @c.?"), ["c."]);
        assert!(of("ada@a.rs says @ada and @ are not").is_empty());
    }
}
