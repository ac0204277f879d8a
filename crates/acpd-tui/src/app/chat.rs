//! One conversation: blocks from the journal, the prompt, and the open question.
//!
//! ```text
//!  starting ──▶ opening ──attached──▶ catching up ──_acpd/caught_up──▶ live ⇄ away
//!                 │                                                    │
//!                 │                                                    ├──▶ stopped: opened again with a key
//!                 └───────────────refused, deleted─────────────────────┴──▶ over: can be read, takes no prompts
//! ```
//!
//! The connection of a chat is an observer: reading a session wakes no agent. Prompts, messages and
//! settings use other connections, so this one shows them like those of other clients.

mod attach;
mod blocks;
mod complete;
mod conversation;
mod editor;
mod layout;
mod options;
mod queue;
mod search;
mod sending;
mod starting;
mod view;

use acp_wire::acp::{AgentCapabilities, InitializeResult};
use acpd_api::{
    AttachParams, AttachResult, ClientMeta, LogParams, LogResult, Role, SessionInfo, SessionRowKey,
    TurnState, method,
};
use acpd_client::initialize_params;
use acpd_view::text::Text;
use acpd_view::{Role as Look, text};
use crossterm::event::KeyEvent;
use serde_json::json;
use serde_json::value::RawValue;

use super::prompt_draft::PromptDraft;
use super::requests::{CLIENT, LinkId, Purpose};
use super::{AppState, Effect, Id, Spot, read, with_queue};
use crate::fleet::Fleet;
use crate::keymap::{self, Action, KeyPlace};
use crate::question::QuestionCard;
use complete::PromptList;
use conversation::Conversation;
use options::Menu;
use search::Search;

pub(super) use complete::Files;
pub(super) use editor::Editor;
pub(super) use layout::ChatLayout;
pub(crate) use starting::Refused;
pub(super) use view::{footer_word, view};

const FIRST: u64 = 300;
const PAGE: u64 = 1000;

#[derive(Debug, Default)]
pub(super) struct ChatScreen {
    /// The id is empty until the session begins.
    key: SessionRowKey,
    link: LinkId,
    phase: Phase,
    conversation: Conversation,
    editor: Editor,
    pub(super) card: QuestionCard,
    in_blocks: bool,
    search: Search,
    menu: Option<Menu>,
    prompt_list: Option<PromptList>,
    /// The start of the word whose list was closed with Esc.
    closed_at: Option<(usize, usize)>,
    can: Option<AgentCapabilities>,
    /// Queued and running prompts of this program.
    prompts: Vec<Prompted>,
    reading: Option<Reading>,
    /// Prompts that wait for the session, or for the files of an earlier prompt.
    waits: Vec<PromptDraft>,
    /// A draft that looks like an answer; the next Enter sends it as a prompt.
    doubted: Option<String>,
    /// Kept until the draft changes.
    refused: Option<Refused>,
    is_from_top: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Phase {
    Starting {
        link: LinkId,
        since: u64,
    },
    NotBegun,
    #[default]
    Opening,
    CatchingUp,
    Live,
    AwaySince(u64),
    Stopped {
        reopens: bool,
    },
    Over(Text),
}

#[derive(Debug)]
struct Reading {
    said: PromptDraft,
    is_steering: bool,
}

#[derive(Debug)]
struct Prompted {
    link: LinkId,
    said: PromptDraft,
    after: Option<Id>,
}

impl ChatScreen {
    /// Returns whether the first page of history was read.
    pub(super) fn is_filled(&self) -> bool {
        !matches!(self.phase, Phase::Opening | Phase::CatchingUp)
    }

    fn new(key: SessionRowKey, link: LinkId, is_from_top: bool) -> ChatScreen {
        ChatScreen {
            conversation: Conversation::new(&key.session_id),
            key,
            link,
            is_from_top,
            ..ChatScreen::default()
        }
    }

    fn is_beginning(&self) -> bool {
        self.key.session_id.is_empty()
    }

    pub(super) fn place(&self) -> KeyPlace {
        if self.menu.is_some() {
            KeyPlace::Menu
        } else if self.card.is_typing() || self.search.typed.is_some() {
            KeyPlace::Line
        } else if self.card.has_keys() {
            KeyPlace::Question
        } else if self.in_blocks {
            KeyPlace::Blocks
        } else if self.prompt_list.is_some() {
            KeyPlace::List
        } else {
            KeyPlace::Prompt
        }
    }

    fn takes_words(&self) -> bool {
        match &self.prompt_list {
            Some(prompt_list) => self.place() == KeyPlace::List && prompt_list.leaves_keys(),
            None => self.place() == KeyPlace::Prompt,
        }
    }

    pub(super) fn is_on(&self, link: LinkId) -> bool {
        self.link == link
    }

    pub(super) fn settle(&mut self, fleet: &Fleet) {
        self.card.show(fleet.questions_of(&self.key).next());
    }

    pub(super) fn lost(&mut self, now: u64) {
        if !matches!(self.phase, Phase::Over(_)) {
            self.phase = Phase::AwaySince(now);
        }
    }

    pub(super) fn back(&mut self) {
        if matches!(self.phase, Phase::AwaySince(_)) {
            self.phase = Phase::Live;
        }
    }

    pub(super) fn stopped(&mut self) {
        if !matches!(self.phase, Phase::Over(_)) {
            self.phase = Phase::Stopped { reopens: false };
        }
    }

    /// Reopens the conversation when acpd runs again. Returns `false` if it was not stopped.
    pub(super) fn reopen(&mut self) -> bool {
        let is_stopped = matches!(self.phase, Phase::Stopped { .. });
        if is_stopped {
            self.phase = Phase::Stopped { reopens: true };
        }
        is_stopped
    }

    pub(super) fn over(&mut self, why: Text) {
        self.phase = Phase::Over(why);
    }

    /// Returns whether the first Enter should warn that the draft looks like an answer.
    fn may_be_answer(&self) -> bool {
        let draft = self.editor.said().text;
        let word = draft.trim().to_ascii_lowercase();
        let is_number = word.len() == 1 && word.starts_with(|char: char| char.is_ascii_digit());
        let is_answer = is_number || matches!(word.as_str(), "y" | "n" | "yes" | "no");
        is_answer && self.card.id().is_some() && self.doubted.as_ref() != Some(&draft)
    }

    #[cfg(test)]
    pub(super) fn turns(&self) -> usize {
        self.conversation.folded.turns().len()
    }
}

impl AppState {
    /// `seq` is the number of the journal's last line.
    pub(super) fn open_chat(&mut self, key: SessionRowKey, seq: u64, is_from_top: bool) {
        self.close_chat();
        self.show_chat(key, is_from_top);
        self.attach(seq);
    }

    /// Opens the conversation again after a restart of the daemon. It is read from the start,
    /// because the journal may be another one.
    pub(super) fn reopen_chat(&mut self) {
        let wants = |chat: &&ChatScreen| chat.phase == Phase::Stopped { reopens: true };
        let Some(chat) = self.chat.as_ref().filter(wants) else { return };
        let (key, is_from_top) = (chat.key.clone(), chat.is_from_top);
        let seq = self.fleet.session(&key).map_or(0, |session| session.seq);
        self.open_chat(key, seq, is_from_top);
    }

    fn show_chat(&mut self, key: SessionRowKey, is_from_top: bool) -> &mut ChatScreen {
        let link = self.out.new_chat_link();
        let mut chat = ChatScreen::new(key, link, is_from_top);
        if let Some(draft) = self.drafts.remove(&chat.key) {
            chat.editor = draft;
        }
        self.chat.insert(chat)
    }

    fn attach(&mut self, seq: u64) {
        let place = self.our_place();
        let Some(chat) = &mut self.chat else { return };
        chat.phase = Phase::Opening;
        let (link, agent) = (chat.link, Some(chat.key.agent.raw().to_owned()));
        let meta = ClientMeta {
            agent,
            notices: true,
            seq: true,
            originals: true,
            role: Some(Role::Observer),
            place,
            ..ClientMeta::default()
        };
        let mut params = initialize_params(&meta, CLIENT);
        params["clientCapabilities"] = json!({"subagents": {},
            "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}}});
        self.out.push(Effect::Open(link));
        self.out.send(link, "initialize", &params, Purpose::Hello);
        let after = Some(seq.saturating_sub(FIRST));
        let params = AttachParams { session: chat.key.exactly(), after, role: Role::Observer };
        self.out.send(link, method::SESSION_ATTACH, &params, Purpose::Attach);
    }

    /// Keeps the draft. The session continues.
    pub(super) fn close_chat(&mut self) {
        self.twice = None;
        self.take_back_waiting();
        let Some(chat) = self.chat.take() else { return };
        // The message is about this conversation.
        self.flash = None;
        self.drafts.insert(chat.key.clone(), chat.editor);
        let start = match chat.phase {
            Phase::Starting { link, .. } => Some(link),
            _ => None,
        };
        let links = chat.prompts.iter().map(|prompt| prompt.link).chain([chat.link]).chain(start);
        for link in links {
            self.out.leave(link);
        }
    }

    pub(super) fn on_hello(&mut self, link: LinkId, result: &RawValue) {
        let is_its = |chat: &&mut ChatScreen| chat.is_on(link) || chat.is_starting_on(link);
        let chat = self.chat.as_mut().filter(is_its);
        if let (Some(chat), Ok(hello)) = (chat, InitializeResult::from_raw(result)) {
            chat.can = Some(hello.capabilities);
            chat.conversation.folded.heed(result);
        }
    }

    pub(super) fn on_attached(&mut self, result: &RawValue) {
        if let (Some(chat), Some(attached)) = (&mut self.chat, read::<AttachResult>(result)) {
            chat.phase = Phase::CatchingUp;
            chat.conversation.folded.set_folder(&attached.session.cwd);
        }
    }

    pub(super) fn on_chat_notification(&mut self, method: &str, line: &[u8]) {
        let Some(chat) = &mut self.chat else { return };
        match method {
            method::CAUGHT_UP => {
                chat.phase = Phase::Live;
                self.continue_search();
            }
            method::SESSION_REMOVED => chat.phase = Phase::Over("the session was deleted".into()),
            _ => chat.conversation.fold(line, self.now),
        }
    }

    pub(super) fn on_older_page(&mut self, key: &SessionRowKey, result: &RawValue) {
        let page = read::<LogResult>(result);
        let Some(chat) = self.chat.as_mut().filter(|chat| chat.key == *key) else { return };
        match page.and_then(|page| chat.conversation.add_older(page)) {
            Some(after) => self.ask_log(after),
            None => {
                self.continue_search();
                self.update_completions();
            }
        }
    }

    pub(super) fn on_log_failed(&mut self, key: &SessionRowKey) {
        if let Some(chat) = self.chat.as_mut().filter(|chat| chat.key == *key) {
            chat.conversation.on_read_failed();
            chat.search.ends();
        }
    }

    /// Requests lines that the screen needs next, and drops turns far above it.
    pub(super) fn on_drawn(&mut self) {
        let Some(chat) = &mut self.chat else { return };
        if self.on_screen.is_near_beginning {
            self.ask_for_older();
            return;
        }
        let first = self.on_screen.spots.first();
        // A search reads upwards from the screen.
        if let Some((_, Spot::Block(id))) = first.filter(|_| chat.search.waits.is_none()) {
            chat.conversation.drop_above(*id);
        }
    }

    /// Requests older lines; returns whether there are any.
    pub(super) fn ask_for_older(&mut self) -> bool {
        let chat = self.chat.as_mut().filter(|chat| chat.phase == Phase::Live);
        let after = chat.and_then(|chat| chat.conversation.begin_older(PAGE));
        if let Some(after) = after {
            self.ask_log(after);
        }
        after.is_some()
    }

    fn ask_log(&mut self, after: u64) {
        let Some(chat) = &self.chat else { return };
        let limit = u32::try_from(PAGE).ok();
        let asked = LogParams::after(chat.key.exactly(), after).with_originals();
        let params = LogParams { limit, ..asked };
        let purpose = Purpose::Older(chat.key.clone());
        self.out.send(LinkId::Fleet, method::SESSION_LOG, &params, purpose);
    }

    pub(super) fn chat_key(&mut self, place: KeyPlace, action: Option<Action>, key: &KeyEvent) {
        match place {
            KeyPlace::List if self.on_list_key(action, key) => {}
            KeyPlace::List => {
                self.key_at(KeyPlace::Prompt, keymap::action(KeyPlace::Prompt, key), key);
            }
            place => self.key_at(place, action, key),
        }
        self.update_completions();
    }

    fn key_at(&mut self, place: KeyPlace, action: Option<Action>, key: &KeyEvent) {
        let Some(chat) = &mut self.chat else { return };
        let page = isize::try_from(self.on_screen.page.saturating_sub(2).max(1)).unwrap_or(1);
        match (place, action) {
            (KeyPlace::Menu, action) => self.menu_key(action),
            (KeyPlace::Line, action) if chat.search.typed.is_some() => {
                self.search_key(action, key);
            }
            (KeyPlace::Question | KeyPlace::Line, action) => self.question_key(action, key),
            (_, Some(Action::PageUp)) => chat.conversation.scroll(-page),
            (_, Some(Action::PageDown)) => chat.conversation.scroll(page),
            (_, Some(Action::Detach)) => self.detach(),
            (_, Some(Action::Cancel)) => self.cancel_turn(),
            (_, Some(Action::Options)) => self.ask_options(),
            (KeyPlace::Blocks, Some(action)) => self.block_key(action),
            (KeyPlace::Blocks, None) => {}
            (_, action) => {
                let draft = chat.editor.said();
                self.prompt_key(action, key);
                if let Some(chat) = self.chat.as_mut().filter(|chat| chat.editor.said() != draft) {
                    chat.refused = None;
                }
            }
        }
    }

    fn prompt_key(&mut self, action: Option<Action>, key: &KeyEvent) {
        let Some(chat) = &mut self.chat else { return };
        match action {
            Some(Action::Confirm) => self.send_prompt_typed(),
            Some(Action::Steer) => self.steer(),
            Some(Action::Queue) => self.ask_queue(),
            Some(Action::SearchPrompts) => self.search_prompts(),
            Some(Action::Edit) => self.edit(),
            Some(Action::Newline) => chat.editor.newline(),
            Some(Action::Thoughts) => chat.conversation.toggle_thoughts(),
            Some(Action::Last) => chat.conversation.follow(),
            Some(Action::Up) => chat.editor.up(&chat.conversation.prompts()),
            Some(Action::Down) => chat.editor.down(&chat.conversation.prompts()),
            Some(Action::Blocks) if chat.card.id().is_some() => chat.card.take_keys(),
            Some(Action::Blocks) => {
                chat.conversation.select(|rows, _| rows.last());
                chat.in_blocks = chat.conversation.selected.is_some();
            }
            _ => chat.editor.key(key),
        }
    }

    pub(super) fn paste_into_chat(&mut self, text: &str) {
        let Some(chat) = &mut self.chat else { return };
        let (place, is_for_prompt) = (chat.place(), chat.takes_words());
        match &mut chat.prompt_list {
            _ if is_for_prompt => {
                chat.refused = None;
                self.paste_into_prompt(text);
                self.update_completions();
            }
            Some(prompt_list) if place == KeyPlace::List => prompt_list.paste(text),
            _ if chat.search.typed.is_some() => chat.search.paste(text),
            _ => chat.card.paste(text),
        }
    }

    /// Ctrl-C: clears the draft, then asks for a second press, then cancels.
    fn cancel_turn(&mut self) {
        let session = self.chat_session();
        let queue = with_queue(session.map_or(0, |session| session.queued));
        let Some(chat) = &mut self.chat else { return };
        if chat.place() == KeyPlace::Prompt && chat.editor.clear() {
            let key = self.key_of(KeyPlace::Prompt, Action::Up);
            self.flash(Look::Plain, text!("cleared; {} brings it back", key));
            return;
        }
        let session = chat.key.clone();
        if !self.is_turn_running() {
            let key = self.key_of(KeyPlace::Prompt, Action::Detach);
            self.flash(Look::Plain, text!("no turn runs; {} leaves", key));
            return;
        }
        let key = self.key_of(KeyPlace::Prompt, Action::Cancel);
        self.cancel_session(session, text!("{} again cancels the turn{}", key, queue));
    }

    /// Closes the conversation. If the command line opened it, the program ends.
    pub(super) fn detach(&mut self) {
        let is_from_top = self.chat.as_ref().is_none_or(|chat| chat.is_from_top);
        if !is_from_top && self.take_back_waiting() {
            let key = self.key_of(KeyPlace::Prompt, Action::Detach);
            let words =
                text!("the session is not there yet, nothing was sent; {} again leaves", key);
            self.flash(Look::Warning, words);
            return;
        }
        // A new session may not be in the list yet.
        let of_key = self.chat.as_ref().map(|chat| &chat.key.session_id);
        let handle = self.chat_session().map(SessionInfo::handle).or(of_key).cloned();
        // The message is about the conversation.
        self.flash = None;
        self.close_chat();
        if !is_from_top {
            self.left = handle;
            self.out.push(Effect::Quit);
        }
    }

    pub(super) fn chat_session(&self) -> Option<&SessionInfo> {
        self.chat.as_ref().and_then(|chat| self.fleet.session(&chat.key))
    }

    pub(super) fn is_turn_running(&self) -> bool {
        self.chat_session().is_some_and(|session| session.turn.state != TurnState::Idle)
    }

    pub(super) fn other_questions(&self) -> Option<Text> {
        let key = &self.chat.as_ref()?.key;
        let all = self.fleet.watched.interactions.iter();
        let others = all.filter(|question| !question.is_of(&key.agent, &key.session_id));
        let mut others = others.filter_map(|question| question.name.as_ref());
        let first = others.next()?;
        Some(match others.count() {
            0 => text!("also open: {}", first),
            more => text!("also open: {} and {} more", first, more),
        })
    }
}
