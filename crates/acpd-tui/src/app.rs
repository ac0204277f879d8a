//! Everything that is known and shown, and what happens to it: `update` takes an event and says what to do,
//! without doing it.
//!
//! ```text
//!  keys, lines of the daemon, time ──▶ update(&mut State, Event) ──▶ effects ──▶ driver
//!                                            │
//!                                            ▼
//!                               view(&State, &mut Cache, &mut Frame)
//! ```

mod chat;
mod help;
mod requests;
mod said;
#[cfg(test)]
mod tests;
mod today;
mod top;
mod view;

use std::collections::HashMap;

use acp_wire::acp::AgentCapabilities;
use acp_wire::{ErrorObject, Message, Outcome, code, parse};
use acpd_api::{
    AnswerParams, CancelParams, CancelResult, ClientName, Empty, GivenAnswer, SessionRowKey,
    TurnState, Untrusted, Watched, method,
};
use acpd_view::text::Text;
use acpd_view::{Id, Line, Role, text};
use bytes::Bytes;
use crossterm::event::{KeyEvent, KeyEventKind};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::canvas::Theme;
use crate::fleet::Fleet;
use crate::keymap::{self, Action, Place};
use crate::question::{Card, Drawn};
use chat::{Chat, Editor, Files};
use requests::{Outbox, Purpose};
use today::Today;
use top::Top;

pub(crate) use requests::{CLIENT, Link};
pub(crate) use view::{Cache, view};

/// How long a short message stays.
const FLASH: u64 = 4000;
/// How long acpd may be away before somebody is told.
const AWAY: u64 = 1000;

#[derive(Debug)]
pub(crate) enum Event {
    /// A key was pressed.
    Key(KeyEvent),
    Paste(String),
    /// The wheel was turned by so many lines; down, if it is not negative.
    Wheel(isize),
    /// A row of the screen was clicked.
    Click(u16),
    /// What was to be done outside has failed.
    Failed(Text),
    /// Somebody looks at the terminal, or no longer.
    Focused(bool),
    /// A connection got a line.
    Line(Link, Bytes),
    /// A connection was lost, and is being taken up again.
    Lost(Link),
    /// A person has stopped the daemon of this connection.
    Stopped(Link),
    Back(Link),
    /// It has ended for good.
    Ended(Link, Text),
    /// A directory was read.
    Files {
        directory: String,
        /// The files in it.
        paths: Vec<String>,
    },
    /// The files of a prompt were read: their content, or why one cannot be sent.
    AttachedRead(PromptFiles, Result<Vec<Value>, UnfitFile>),
    /// The person has left the editor.
    Edited(Result<String, Text>),
    /// This is on the screen now.
    Drawn(OnScreen),
    /// Some time has passed, or the screen has to be drawn again.
    Time,
}

/// What was drawn, as far as keys depend on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OnScreen {
    pub(crate) question: Option<Drawn>,
    /// Rows of the list or of the conversation.
    pub(crate) page: usize,
    /// Older lines of the conversation are wanted soon.
    pub(crate) is_near_beginning: bool,
    /// What can be clicked, by the rows of the screen.
    pub(crate) spots: Vec<(u16, Spot)>,
}

/// Something that can be clicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spot {
    /// A row of the list.
    Row(usize),
    /// A row of the conversation, by its first block.
    Block(Id),
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Open(Link),
    Start,
    Send(Link, Bytes),
    /// End a connection; acpd need not keep anything of it.
    Leave(Link),
    /// Show a text in the pager of the person.
    Page(String),
    /// Take the mouse, or give it back.
    Mouse(bool),
    /// Put a text into the clipboard of the terminal.
    Copy(String),
    /// Read which files are in a directory.
    ReadFiles(String),
    /// Read the files of a prompt.
    ReadAttached(PromptFiles),
    /// Let the person edit a text.
    Edit(String),
    /// Draw all of the screen again.
    Redraw,
    /// Stop the process, as Ctrl-Z does.
    Suspend,
    Quit,
}

/// Files of a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PromptFiles {
    /// The session that is prompted.
    pub(crate) key: SessionRowKey,
    /// In the order of the prompt's blocks.
    pub(crate) files: Vec<PromptFile>,
    pub(crate) can: AgentCapabilities,
}

/// A file of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptFile {
    /// The absolute path.
    pub(crate) path: String,
    /// The path in the session's directory.
    pub(crate) name: String,
}

/// Why a file cannot be sent, and the way out.
#[derive(Debug)]
pub(crate) struct UnfitFile {
    pub(crate) why: Text,
    pub(crate) hint: Option<Text>,
}

/// Where and for whom this runs.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) theme: Theme,
    /// The person's home directory.
    pub(crate) home: Option<String>,
    /// The directory that new sessions work in.
    pub(crate) cwd: String,
    /// Who others are told did something.
    pub(crate) who: ClientName,
}

/// What is on the screen first.
#[derive(Debug, Clone)]
pub enum Opens {
    Top,
    /// A conversation, whose journal ends at `seq`.
    Session {
        /// The agent of the session.
        agent: String,
        session_id: String,
        /// The last line of its journal.
        seq: u64,
    },
    /// A conversation that begins.
    New {
        agent: String,
    },
}

/// Whether the daemon is there.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Presence {
    Connecting,
    There,
    AwaySince(u64),
    /// A person has stopped the daemon.
    Stopped,
    Gone(Text),
}

/// A short message, until then.
#[derive(Debug)]
struct Flash {
    line: Line,
    until: u64,
}

/// All that is known and shown.
#[derive(Debug)]
pub(crate) struct State {
    scene: Scene,
    /// Milliseconds since the epoch.
    now: u64,
    fleet: Fleet,
    presence: Presence,
    /// Requests and other effects of this step.
    out: Outbox,
    top: Top,
    /// The conversation that is in front of the list.
    chat: Option<Chat>,
    /// What was written and not sent, by conversation.
    drafts: HashMap<SessionRowKey, Editor>,
    /// What was said in this run, the oldest first.
    said: Vec<String>,
    /// The files of the directory that a prompt named some of last.
    files: Files,
    /// The conversation that was left at the end of the program.
    left: Option<Untrusted>,
    /// Why the session that was asked for on the command line does not begin.
    not_begun: Option<ErrorObject>,
    /// The page of keys, scrolled by so many rows.
    help: Option<usize>,
    flash: Option<Flash>,
    on_screen: OnScreen,
    is_focused: bool,
    has_mouse: bool,
    /// What this day has used.
    today: Today,
}

impl State {
    /// Nothing is known yet; the effects open the connection.
    pub(crate) fn new(scene: Scene, opens: Opens, now: u64) -> (State, Vec<Effect>) {
        let theme = scene.theme;
        let mut state = State {
            scene,
            now,
            fleet: Fleet::default(),
            presence: Presence::Connecting,
            out: Outbox::default(),
            top: Top::default(),
            chat: None,
            drafts: HashMap::new(),
            said: Vec::new(),
            files: Files::default(),
            left: None,
            not_begun: None,
            help: None,
            flash: None,
            on_screen: OnScreen::default(),
            is_focused: true,
            has_mouse: false,
            today: Today::default(),
        };
        if !theme.is_unicode {
            let words = "no UTF-8 locale: marks are ASCII; acpctl chat --plain goes line by line";
            state.flash(Role::Plain, words);
        }
        state.out.push(Effect::Open(Link::Fleet));
        state.watch();
        match opens {
            Opens::Top => {}
            Opens::Session { agent, session_id, seq } => {
                let key = SessionRowKey { agent: agent.into(), session_id: session_id.into() };
                state.open_chat(key, seq, false);
            }
            Opens::New { agent } => state.begin(&agent.into(), None, false),
        }
        let effects = state.out.take();
        (state, effects)
    }

    pub(crate) fn update(&mut self, now: u64, event: Event) -> Vec<Effect> {
        self.now = now;
        if self.flash.as_ref().is_some_and(|flash| flash.until <= now) {
            self.flash = None;
        }
        match event {
            Event::Key(key) if key.kind == KeyEventKind::Press => self.key(&key),
            Event::Key(_) | Event::Time => {}
            Event::Paste(text) if self.chat.is_some() => self.paste_into_chat(&text),
            Event::Paste(text) => self.top.paste(&text),
            Event::Wheel(lines) => self.wheel(lines),
            Event::Click(y) => self.click(y),
            Event::Failed(why) => self.flash(Role::Bad, why),
            Event::Files { directory, paths } => {
                self.files.take(directory, paths, now);
                self.look_up();
            }
            Event::Focused(is_focused) => self.is_focused = is_focused,
            Event::Line(link, line) => self.line(link, &line),
            Event::Lost(Link::Fleet) => self.presence = Presence::AwaySince(now),
            Event::Lost(link) => drop(self.on_chat(link, |chat| chat.lost(now))),
            Event::Stopped(link) => self.stopped(link),
            Event::Back(Link::Fleet) => {
                self.presence = Presence::There;
                self.watch();
            }
            Event::Back(link) => {
                self.on_chat(link, Chat::back);
                self.search_goes_on();
            }
            Event::Ended(link, why) => self.ended(link, why),
            Event::AttachedRead(of, read) => self.on_files_read(&of, read),
            Event::Edited(edited) => self.edited(edited),
            Event::Drawn(on_screen) => {
                if let Some(drawn) = &on_screen.question {
                    self.card().drawn(drawn);
                }
                self.on_screen = on_screen;
                self.look_around();
            }
        }
        self.top.settle(&self.fleet, self.now);
        if let Some(chat) = &mut self.chat {
            chat.settle(&self.fleet);
        }
        self.out.take()
    }

    /// A connection has ended for good.
    fn ended(&mut self, link: Link, why: Text) {
        match link {
            Link::Fleet => self.presence = Presence::Gone(why),
            Link::Chat(_) => {
                self.out.forget(link);
                self.on_chat(link, |chat| chat.over(why));
            }
            Link::Errand(_) => {
                let error = ErrorObject::new(code::INTERNAL, why.as_str());
                if self.errand_failed(link, &error) {
                    return;
                }
                let undone = self.out.forget(link);
                if !undone.is_empty() {
                    self.not_done(undone, &error);
                }
            }
        }
    }

    /// A person has stopped the daemon: what it was asked for does not come, and it is not started again by itself.
    fn stopped(&mut self, link: Link) {
        self.out.forget(link);
        match link {
            Link::Fleet => self.presence = Presence::Stopped,
            link => drop(self.on_chat(link, Chat::stopped)),
        }
    }

    /// In one sentence, that the daemon is not running and which key starts it.
    fn start_hint(&self, place: Place) -> Text {
        text!("acpd is not running. Start it: {}", self.key_of(place, Action::Start))
    }

    /// Starts the daemon that a person has stopped, and opens the conversation again.
    fn start(&mut self) {
        let reopens = self.chat.as_mut().is_some_and(Chat::reopen);
        match self.presence {
            Presence::Stopped => {
                self.flash(Role::Plain, "starting acpd");
                self.out.push(Effect::Start);
            }
            _ if reopens => self.reopen_chat(),
            _ => self.flash(Role::Plain, "acpd is running"),
        }
    }

    /// The key of an action, as it is written in a sentence.
    pub(crate) fn key_of(&self, place: Place, action: Action) -> Text {
        keymap::key_of(place, action, self.scene.theme.is_unicode)
    }

    /// What people call the conversation that was left at the end.
    pub(crate) fn left(&self) -> Option<&Untrusted> {
        self.left.as_ref()
    }

    /// Why the session that was asked for on the command line does not begin.
    pub(crate) fn not_begun(&self) -> Option<&ErrorObject> {
        self.not_begun.as_ref()
    }

    /// Whether what the program was started for is there to be drawn.
    pub(crate) fn is_filled(&self) -> bool {
        self.fleet.is_known() && self.chat.as_ref().is_none_or(Chat::is_filled)
    }

    /// When the screen changes without an event.
    pub(crate) fn wakes_at(&self) -> Option<u64> {
        let flash = self.flash.as_ref().map(|flash| flash.until);
        let away = match self.presence {
            Presence::AwaySince(since) => Some(since + AWAY).filter(|at| *at > self.now),
            _ => None,
        };
        let is_running = self.chat_session().is_some_and(|s| s.turn.state != TurnState::Idle)
            || self.chat.as_ref().is_some_and(Chat::is_starting);
        let pace = if is_running { 1000 } else { self.fleet.pace(self.now) };
        // Nobody looks at ages in a terminal that is behind another one.
        let ages = if self.is_focused { pace } else { pace.max(60_000) };
        [flash, away, Some(self.now + ages)].into_iter().flatten().min()
    }

    fn watch(&mut self) {
        self.out.send(Link::Fleet, method::WATCH, &Empty {}, Purpose::Watch);
    }

    /// Tells something for a moment.
    pub(crate) fn flash(&mut self, role: Role, words: impl Into<Text>) {
        let line = Line::of(role, words);
        self.flash = Some(Flash { line, until: self.now + FLASH });
    }

    /// Scrolls what is on the screen.
    fn wheel(&mut self, lines: isize) {
        match (&mut self.help, &mut self.chat) {
            (Some(scroll), _) => *scroll = scroll.saturating_add_signed(lines),
            (None, Some(chat)) => chat.scroll(lines),
            (None, None) => self.top_wheel(lines),
        }
    }

    /// Chooses what is on a row of the screen.
    fn click(&mut self, y: u16) {
        let spot = self.on_screen.spots.iter().find(|(at, _)| *at == y).map(|(_, spot)| *spot);
        match (spot, &mut self.chat) {
            (Some(Spot::Block(id)), Some(chat)) => chat.click(id),
            (Some(Spot::Row(at)), None) => self.top_click(at),
            _ => {}
        }
    }

    fn key(&mut self, key: &KeyEvent) {
        let place = self.place();
        let action = keymap::action(place, key);
        if let Some(scroll) = &mut self.help {
            match action {
                Some(Action::Back) => self.help = None,
                Some(Action::Detach) => {
                    self.help = None;
                    if self.chat.is_some() {
                        self.detach();
                    } else {
                        self.out.push(Effect::Quit);
                    }
                }
                Some(Action::Down) => *scroll += 1,
                Some(Action::Up) => *scroll = scroll.saturating_sub(1),
                Some(Action::PageDown) => *scroll += self.on_screen.page,
                Some(Action::PageUp) => *scroll = scroll.saturating_sub(self.on_screen.page),
                Some(Action::Suspend) => self.out.push(Effect::Suspend),
                Some(Action::Redraw) => self.out.push(Effect::Redraw),
                _ => {}
            }
            return;
        }
        match action {
            Some(Action::Suspend) => self.out.push(Effect::Suspend),
            Some(Action::Redraw) => self.out.push(Effect::Redraw),
            Some(Action::Keys) => self.help = Some(0),
            Some(Action::Mouse) => {
                self.has_mouse = !self.has_mouse;
                self.flash(
                    Role::Plain,
                    if self.has_mouse {
                        let key = self.key_of(place, Action::Mouse);
                        text!("the wheel scrolls and a click chooses; {} gives the mouse back", key)
                    } else {
                        "the terminal has the mouse: select and copy as everywhere".into()
                    },
                );
                self.out.push(Effect::Mouse(self.has_mouse));
            }
            Some(Action::Quit) => self.out.push(Effect::Quit),
            Some(Action::Start) => self.start(),
            Some(Action::Top) => self.close_chat(),
            action if self.chat.is_some() => self.chat_key(place, action, key),
            action => self.top_key(action, key),
        }
    }

    /// What keys mean now.
    fn place(&self) -> Place {
        match &self.chat {
            _ if self.help.is_some() => Place::Help,
            Some(chat) => chat.place(),
            None => self.top.place(),
        }
    }

    /// The question on the screen.
    fn card(&mut self) -> &mut Card {
        match &mut self.chat {
            Some(chat) => &mut chat.card,
            None => &mut self.top.card,
        }
    }

    /// Does something with the conversation, if this is its connection.
    fn on_chat(&mut self, link: Link, step: impl FnOnce(&mut Chat)) -> bool {
        self.chat.as_mut().filter(|chat| chat.is_on(link)).map(step).is_some()
    }

    fn line(&mut self, link: Link, line: &Bytes) {
        let Ok(message) = parse(line) else { return };
        match message {
            Message::Response { id, outcome } => {
                let Some(purpose) = self.out.answered(link, &id) else { return };
                match outcome {
                    Outcome::Result(result) => self.result(link, purpose, result),
                    Outcome::Error(error) => {
                        self.error(link, purpose, &ErrorObject::from_raw(error));
                    }
                }
            }
            Message::Notification { method, params: Some(params) }
                if link == Link::Fleet && method == method::CHANGED =>
            {
                if let Some(changed) = read(params) {
                    self.fleet.changed(changed);
                }
                self.ask_usage();
                // The directory of a session that has just begun, perhaps.
                self.look_up();
            }
            Message::Notification { method, .. } => {
                if self.chat.as_ref().is_some_and(|chat| chat.is_on(link)) {
                    self.chat_line(&method, line);
                    self.look_up();
                }
            }
            // Questions are answered over the connection that watches.
            Message::Request { .. } => {}
        }
    }

    fn result(&mut self, link: Link, purpose: Purpose, result: &RawValue) {
        match purpose {
            Purpose::Watch => {
                if let Some(told) = read::<Watched>(result) {
                    self.fleet.snapshot(told);
                    self.presence = Presence::There;
                    self.ask_usage();
                    self.reopen_chat();
                }
            }
            Purpose::Usage => self.today.take(read(result), self.now),
            Purpose::Restart => self.flash(Role::Good, "restarted; its sessions come back"),
            Purpose::Answer(_) => self.flash(Role::Good, "answered"),
            Purpose::Cancel => {
                let done = read::<CancelResult>(result);
                self.flash(
                    Role::Good,
                    match done.map_or(0, |done| done.taken_back) {
                        0 => text!("cancelled; the agent ends its turn"),
                        1 => text!("cancelled, with 1 queued prompt; the agent ends its turn"),
                        back => {
                            text!(
                                "cancelled, with {} queued prompts; the agent ends its turn",
                                back
                            )
                        }
                    },
                );
            }
            Purpose::New => self.begun(link, result),
            Purpose::NextWaiting => self.say_next(),
            Purpose::Prompted | Purpose::Prompt(Some(_)) => {
                self.flash(Role::Good, "sent");
                self.out.leave(link);
            }
            Purpose::Prompt(None) => self.prompt_ended(link, None),
            Purpose::Steer(words) => self.steered(link, words, result),
            Purpose::Queue(key) => self.queue(&key, result),
            Purpose::TakeBack(words) => self.taken_back(words),
            Purpose::Hello => self.greeted(link, result),
            Purpose::Attach => self.attached(result),
            Purpose::Older(key) => self.older(&key, result),
            Purpose::Rename => self.flash(Role::Good, "renamed"),
            Purpose::Options(key) => self.options(link, &key, result),
            Purpose::Set(_) => drop(self.out.leave(link)),
        }
    }

    fn error(&mut self, link: Link, purpose: Purpose, error: &ErrorObject) {
        let why = Untrusted::from(error.message.as_str());
        if matches!(purpose, Purpose::NextWaiting) {
            return self.say_next();
        }
        if self.errand_failed(link, error) {
            return;
        }
        match (link, purpose) {
            (Link::Errand(_), purpose) => {
                let mut undone = self.out.leave(link);
                undone.push(purpose);
                self.not_done(undone, error);
                return;
            }
            (Link::Chat(_), _) => drop(self.on_chat(link, |chat| chat.over(Text::from(&why)))),
            (_, Purpose::Answer(id)) => self.card().not_taken(&id),
            (_, Purpose::Older(key)) => self.log_failed(&key),
            // It is told where it would stand.
            (_, Purpose::Usage) => return,
            _ => {}
        }
        self.flash(Role::Bad, &why);
    }

    /// Ends the running turn of a session, and takes back its queued prompts.
    fn cancel_session(&mut self, key: &SessionRowKey) {
        let (session, by) = (key.exactly(), Some(self.scene.who.clone()));
        let params = CancelParams { session, turn_only: false, by };
        self.out.send(Link::Fleet, method::SESSION_CANCEL, &params, Purpose::Cancel);
    }

    fn answer(&mut self, id: Untrusted, answer: GivenAnswer) {
        let by = Some(self.scene.who.clone());
        let params = AnswerParams { id: id.raw().to_owned(), answer, by, parent: None };
        let purpose = Purpose::Answer(id);
        self.out.send(Link::Fleet, method::INTERACTION_ANSWER, &params, purpose);
    }
}

/// What a cancel takes back beside the turn, as the question for the second press says it.
fn with_queue(queued: u32) -> Text {
    match queued {
        0 => Text::new(),
        1 => text!(" and its queued prompt"),
        queued => text!(" and its {} queued prompts", queued),
    }
}

fn read<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}
