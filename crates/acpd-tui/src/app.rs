//! State of the screens, without side effects: `update` takes an event and returns effects.
//!
//! ```text
//!  keys, lines of the daemon, time ──▶ update(&mut AppState, AppEvent) ──▶ effects ──▶ driver
//!                                            │
//!                                            ▼
//!                               view(&AppState, &mut Cache, &mut Frame)
//! ```

mod chat;
mod help;
mod prompt_draft;
mod requests;
#[cfg(test)]
mod tests;
mod today;
mod top;
mod view;

use std::collections::HashMap;

use acp_wire::acp::AgentCapabilities;
use acp_wire::{ErrorObject, Message, Outcome, code, parse};
use acpd_api::{
    AnswerParams, CancelResult, ClientName, Empty, GivenAnswer, SessionRowKey, Untrusted, Watched,
    method,
};
use acpd_view::human::counted;
use acpd_view::text::Text;
use acpd_view::{Id, Role, text};
use bytes::Bytes;
use crossterm::event::{KeyEvent, KeyEventKind};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::canvas::Theme;
use crate::fleet::Fleet;
use crate::keymap::{self, Action, KeyPlace};
use crate::question::{Drawn, KeyOutcome, QuestionCard};
use chat::{ChatScreen, Editor, Files};
use requests::{Outbox, Purpose, Twice};
use today::Today;
use top::{TopScreen, Typing};

pub(crate) use chat::Refused;
pub(crate) use requests::{CLIENT, LinkId};
pub(crate) use view::{Cache, view};

const FLASH_MS: u64 = 4000;
const AWAY_AFTER_MS: u64 = 1000;

#[derive(Debug)]
pub(crate) enum AppEvent {
    Key(KeyEvent),
    Paste(String),
    /// Lines that the wheel was turned; positive is down.
    Wheel(isize),
    Click(u16),
    Failed(Text),
    Focused(bool),
    Line(LinkId, Bytes),
    /// A connection was lost and is reconnecting.
    Lost(LinkId),
    /// The daemon was stopped on purpose.
    Stopped(LinkId),
    Back(LinkId),
    Ended(LinkId, Text),
    Files {
        directory: String,
        paths: Vec<String>,
    },
    AttachedRead(PromptFiles, Result<Vec<Value>, Refused>),
    Edited(Result<String, Text>),
    Drawn(OnScreen),
    /// Time passed, or a frame is due.
    Time,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OnScreen {
    pub(crate) question: Option<Drawn>,
    /// Rows of the list or the conversation that fit on the screen.
    pub(crate) page: usize,
    pub(crate) is_near_beginning: bool,
    pub(crate) spots: Vec<(u16, Spot)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spot {
    Row(usize),
    /// The first block of a row in the conversation.
    Block(Id),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Open(LinkId),
    Start,
    Send(LinkId, Bytes),
    Leave(LinkId),
    Page(String),
    Mouse(bool),
    Copy(String),
    ReadFiles(String),
    ReadAttached(PromptFiles),
    Edit(String),
    Redraw,
    Suspend,
    Quit,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PromptFiles {
    pub(crate) key: SessionRowKey,
    pub(crate) files: Vec<PromptFile>,
    pub(crate) can: AgentCapabilities,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptFile {
    pub(crate) path: String,
    pub(crate) name: String,
}

#[derive(Debug, Clone, Default)]
pub struct Scene {
    pub theme: Theme,
    pub home: Option<String>,
    /// For new sessions.
    pub cwd: String,
    /// This program, for other clients.
    pub who: ClientName,
}

#[derive(Debug, Clone)]
pub enum Opens {
    Top,
    Session {
        agent: String,
        session_id: String,
        /// The number of the journal's last line.
        seq: u64,
    },
    New {
        agent: String,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Presence {
    #[default]
    Connecting,
    There,
    AwaySince(u64),
    Stopped,
    Gone(Text),
}

#[derive(Debug, Default)]
pub(crate) struct AppState {
    scene: Scene,
    /// In ms since the epoch.
    now: u64,
    fleet: Fleet,
    presence: Presence,
    out: Outbox,
    top: TopScreen,
    chat: Option<ChatScreen>,
    drafts: HashMap<SessionRowKey, Editor>,
    /// Prompts of this run, the oldest first.
    said: Vec<String>,
    files: Files,
    /// The handle of the conversation that was open when the user quit.
    pub(crate) left: Option<Untrusted>,
    /// The error of the session that the command line asked for.
    pub(crate) not_begun: Option<ErrorObject>,
    /// Scrolled rows of the page of keys; none while it is closed.
    help: Option<usize>,
    /// A message, and the time until which it is shown.
    flash: Option<(Text, u64)>,
    on_screen: OnScreen,
    /// The action of the first press, and the time until which a second press counts.
    twice: Option<(Twice, u64)>,
    is_focused: bool,
    has_mouse: bool,
    today: Today,
}

impl AppState {
    pub(crate) fn new(scene: Scene, opens: Opens, now: u64) -> (AppState, Vec<Effect>) {
        let theme = scene.theme;
        let mut state = AppState { scene, now, is_focused: true, ..AppState::default() };
        if !theme.is_unicode {
            let words = "no UTF-8 locale: marks are ASCII; acpctl chat --plain goes line by line";
            state.flash(Role::Plain, words);
        }
        state.out.push(Effect::Open(LinkId::Fleet));
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

    pub(crate) fn update(&mut self, now: u64, event: AppEvent) -> Vec<Effect> {
        self.now = now;
        self.flash.take_if(|(_, until)| *until <= now);
        match event {
            AppEvent::Key(key) if key.kind == KeyEventKind::Press => self.key(&key),
            AppEvent::Key(_) | AppEvent::Time => {}
            AppEvent::Paste(text) if self.chat.is_some() => self.paste_into_chat(&text),
            AppEvent::Paste(text) => self.top.paste(&text),
            AppEvent::Wheel(lines) => self.wheel(lines),
            AppEvent::Click(y) => self.click(y),
            AppEvent::Failed(why) => self.flash(Role::Bad, why),
            AppEvent::Files { directory, paths } => {
                self.files.take(directory, paths, now);
                self.update_completions();
            }
            AppEvent::Focused(is_focused) => self.is_focused = is_focused,
            AppEvent::Line(link, line) => self.line(link, &line),
            AppEvent::Lost(LinkId::Fleet) => self.presence = Presence::AwaySince(now),
            AppEvent::Lost(link) => drop(self.on_chat(link, |chat| chat.lost(now))),
            AppEvent::Stopped(link) => self.stopped(link),
            AppEvent::Back(LinkId::Fleet) => {
                self.presence = Presence::There;
                self.watch();
            }
            AppEvent::Back(link) => {
                self.on_chat(link, ChatScreen::back);
                self.continue_search();
            }
            AppEvent::Ended(link, why) => self.on_ended(link, why),
            AppEvent::AttachedRead(of, read) => self.on_files_read(&of, read),
            AppEvent::Edited(edited) => self.on_edited(edited),
            AppEvent::Drawn(on_screen) => {
                if let Some(drawn) = &on_screen.question {
                    self.card().drawn(drawn);
                }
                self.on_screen = on_screen;
                self.on_drawn();
            }
        }
        self.top.settle(&self.fleet, self.now);
        if let Some(chat) = &mut self.chat {
            chat.settle(&self.fleet);
        }
        self.out.take()
    }

    fn on_ended(&mut self, link: LinkId, why: Text) {
        match link {
            LinkId::Fleet => self.presence = Presence::Gone(why),
            LinkId::Chat(_) => {
                self.out.forget(link);
                self.on_chat(link, |chat| chat.over(why));
            }
            LinkId::Errand(_) => {
                let error = ErrorObject::new(code::INTERNAL, why.as_str());
                if self.on_errand_failed(link, &error) {
                    return;
                }
                let undone = self.out.forget(link);
                if !undone.is_empty() {
                    self.on_errand_error(undone, &error);
                }
            }
        }
    }

    /// Drops the requests of a connection whose daemon was stopped on purpose. Only the user starts
    /// it again.
    fn stopped(&mut self, link: LinkId) {
        self.out.forget(link);
        match link {
            LinkId::Fleet => self.presence = Presence::Stopped,
            link => drop(self.on_chat(link, ChatScreen::stopped)),
        }
    }

    fn start_hint(&self, place: KeyPlace) -> Text {
        text!("acpd is not running. Start it: {}", self.key_of(place, Action::Start))
    }

    fn start(&mut self) {
        let reopens = self.chat.as_mut().is_some_and(ChatScreen::reopen);
        match self.presence {
            Presence::Stopped => {
                self.flash(Role::Plain, "starting acpd");
                self.out.push(Effect::Start);
            }
            _ if reopens => self.reopen_chat(),
            _ => self.flash(Role::Plain, "acpd is running"),
        }
    }

    pub(crate) fn key_of(&self, place: KeyPlace, action: Action) -> Text {
        keymap::key_of(place, action, self.scene.theme.is_unicode)
    }

    pub(crate) fn is_filled(&self) -> bool {
        self.fleet.is_known && self.chat.as_ref().is_none_or(ChatScreen::is_filled)
    }

    /// Returns when the screen changes without an event.
    pub(crate) fn wakes_at(&self) -> Option<u64> {
        let flash = self.flash.as_ref().map(|(_, until)| *until);
        let away = match self.presence {
            Presence::AwaySince(since) => Some(since + AWAY_AFTER_MS).filter(|at| *at > self.now),
            _ => None,
        };
        let is_running =
            self.is_turn_running() || self.chat.as_ref().is_some_and(ChatScreen::is_starting);
        let pace = if is_running { 1000 } else { self.fleet.pace(self.now) };
        // Ages on an unfocused terminal change less often.
        let ages = if self.is_focused { pace } else { pace.max(60_000) };
        [flash, away, Some(self.now + ages)].into_iter().flatten().min()
    }

    fn watch(&mut self) {
        self.out.send(LinkId::Fleet, method::WATCH, &Empty {}, Purpose::Watch);
    }

    pub(crate) fn flash(&mut self, role: Role, words: impl Into<Text>) {
        self.flash = Some((Text::of(role, words), self.now + FLASH_MS));
    }

    fn wheel(&mut self, lines: isize) {
        match (&mut self.help, &mut self.chat) {
            (Some(scroll), _) => *scroll = scroll.saturating_add_signed(lines),
            (None, Some(chat)) => chat.scroll(lines),
            (None, None) => self.top_wheel(lines),
        }
    }

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
        match action {
            Some(Action::Suspend) => return self.out.push(Effect::Suspend),
            Some(Action::Redraw) => return self.out.push(Effect::Redraw),
            _ => {}
        }
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
                _ => {}
            }
            return;
        }
        match action {
            Some(Action::Keys) => self.help = Some(0),
            Some(Action::Mouse) => {
                self.has_mouse = !self.has_mouse;
                let words = if self.has_mouse {
                    let key = self.key_of(place, Action::Mouse);
                    text!("the wheel scrolls and a click chooses; {} gives the mouse back", key)
                } else {
                    "the terminal has the mouse: select and copy as everywhere".into()
                };
                self.flash(Role::Plain, words);
                self.out.push(Effect::Mouse(self.has_mouse));
            }
            Some(Action::Quit) => self.out.push(Effect::Quit),
            Some(Action::Start) => self.start(),
            Some(Action::Top) => self.close_chat(),
            action if self.chat.is_some() => self.chat_key(place, action, key),
            action => self.top_key(action, key),
        }
    }

    fn place(&self) -> KeyPlace {
        match &self.chat {
            _ if self.help.is_some() => KeyPlace::Help,
            Some(chat) => chat.place(),
            None => self.top.place(),
        }
    }

    fn card(&mut self) -> &mut QuestionCard {
        match &mut self.chat {
            Some(chat) => &mut chat.card,
            None => &mut self.top.card,
        }
    }

    fn question_key(&mut self, action: Option<Action>, key: &KeyEvent) {
        let card = match &mut self.chat {
            Some(chat) => &mut chat.card,
            None => &mut self.top.card,
        };
        let question = card.id().and_then(|id| self.fleet.question(id));
        let Some(question) = question else { return };
        let page = self.on_screen.question.as_ref().map_or(1, |drawn| drawn.page);
        match card.key(action, key, question, page) {
            KeyOutcome::Answered { id, answer, says_why } => {
                if says_why && self.chat.is_some() {
                    let key = self.key_of(KeyPlace::Prompt, Action::Steer);
                    let words = text!("say why below; {} tells it to the running turn", key);
                    self.flash(Role::Plain, words);
                } else if says_why {
                    self.type_for_selected(Typing::Prompt);
                }
                self.answer(id, answer);
            }
            KeyOutcome::Refused(why) => self.flash(Role::Warning, why),
            KeyOutcome::Nothing => {}
        }
    }

    fn on_chat(&mut self, link: LinkId, step: impl FnOnce(&mut ChatScreen)) -> bool {
        self.chat.as_mut().filter(|chat| chat.is_on(link)).map(step).is_some()
    }

    fn line(&mut self, link: LinkId, line: &Bytes) {
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
                if link == LinkId::Fleet && method == method::CHANGED =>
            {
                if let Some(changed) = read(params) {
                    self.fleet.watched.apply(changed);
                }
                self.ask_usage();
                // A new session has a directory with files to complete.
                self.update_completions();
            }
            Message::Notification { method, .. } => {
                if self.chat.as_ref().is_some_and(|chat| chat.is_on(link)) {
                    self.on_chat_notification(&method, line);
                    self.update_completions();
                }
            }
            // The watching connection answers questions.
            Message::Request { .. } => {}
        }
    }

    fn result(&mut self, link: LinkId, purpose: Purpose, result: &RawValue) {
        match purpose {
            Purpose::Watch => {
                if let Some(watched) = read::<Watched>(result) {
                    (self.fleet.watched, self.fleet.is_known) = (watched, true);
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
                let back = done.map_or(0, |done| done.taken_back);
                let with = text!(", with {}", counted(back, "queued prompt"));
                let with = (back > 0).then_some(with);
                self.flash(Role::Good, text!("cancelled{}; the agent ends its turn", with));
            }
            Purpose::New => self.on_session_created(link, result),
            Purpose::NextWaiting => self.send_next(),
            Purpose::Prompted | Purpose::Prompt(Some(_)) => {
                self.flash(Role::Good, "sent");
                self.out.leave(link);
            }
            Purpose::Prompt(None) => self.on_prompt_ended(link, None),
            Purpose::Steer(words) => self.on_steered(link, words, result),
            Purpose::Queue(key) => self.queue(&key, result),
            Purpose::TakeBack(words) => self.on_taken_back(words),
            Purpose::Hello => self.on_hello(link, result),
            Purpose::Attach => self.on_attached(result),
            Purpose::Older(key) => self.on_older_page(&key, result),
            Purpose::Rename => self.flash(Role::Good, "renamed"),
            Purpose::Options(key) => self.options(link, &key, result),
            Purpose::Set(_) => drop(self.out.leave(link)),
        }
    }

    fn error(&mut self, link: LinkId, purpose: Purpose, error: &ErrorObject) {
        let why = Untrusted::from(error.message.as_str());
        if matches!(purpose, Purpose::NextWaiting) {
            return self.send_next();
        }
        if self.on_errand_failed(link, error) {
            return;
        }
        match (link, purpose) {
            (LinkId::Errand(_), purpose) => {
                let mut undone = self.out.leave(link);
                undone.push(purpose);
                self.on_errand_error(undone, error);
                return;
            }
            (LinkId::Chat(_), _) => drop(self.on_chat(link, |chat| chat.over(Text::from(&why)))),
            (_, Purpose::Answer(id)) => self.card().on_answer_refused(&id),
            (_, Purpose::Older(key)) => self.on_log_failed(&key),
            // The head of the list then shows no figures.
            (_, Purpose::Usage) => return,
            _ => {}
        }
        self.flash(Role::Bad, &why);
    }

    fn answer(&mut self, id: Untrusted, answer: GivenAnswer) {
        let by = Some(self.scene.who.clone());
        let params = AnswerParams { id: id.raw().to_owned(), answer, by, parent: None };
        let purpose = Purpose::Answer(id);
        self.out.send(LinkId::Fleet, method::INTERACTION_ANSWER, &params, purpose);
    }
}

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
