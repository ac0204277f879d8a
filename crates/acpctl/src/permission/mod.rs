//! Permission questions: an agent asks before it acts.
//!
//! On a terminal the user answers with one key. A word is needed if acpd does not understand all of
//! the call, or if the call changed meanwhile, because one key is pressed too easily. Without a
//! terminal, the command only reports the question, which stays open for other clients. Forms and
//! pages, and all questions of a command under an agent, are answered by other commands, which are
//! printed.

mod question;

use std::collections::{HashSet, VecDeque};

use acp_wire::acp::{PermissionAnswer, PermissionRequest, cancelled_request};
use acp_wire::{Id, Message, Outcome, locate, read_legible};
use acpd_api::{
    Empty, InteractionList, NAMESPACE, PermissionMeta, Question as Kind, QuestionAnswered,
    StateChanged, TurnState, Untrusted, method,
};
use acpd_view::person;
use serde_json::value::RawValue;

use crate::error::Result;
use crate::info::question::{described, given, own_option};
use crate::live::Live;
use crate::terminal::KeyMode;
use crate::text::{Text, text};
use crate::ui::Ui;
use question::{Question, label, unknown, waiting};

const MAX_WORD: usize = 16;
const VIEW_KEY: char = 'v';

/// The open questions; the first one is on the screen.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: VecDeque<Question>,
    keys: Option<KeyMode>,
    typed: String,
    /// The last answer of any client in this session.
    answered: Option<Box<QuestionAnswered>>,
    listed: Option<Id>,
    printed: HashSet<Untrusted>,
}

impl Questions {
    /// Handles a question, its end, or a notice of an open question. Requests for services that
    /// acpctl does not have are refused.
    pub(crate) fn take(
        &mut self,
        message: &Message<'_>,
        session: Option<&Untrusted>,
        live: &mut Live,
        ui: &mut Ui,
    ) -> Result {
        match message {
            Message::Notification { method, params: Some(params) } => match &**method {
                "$/cancel_request" => self.withdraw(params, live, ui),
                name if needs_action(name, params) => self.look(live),
                _ => Ok(()),
            },
            Message::Request { id, method, params: Some(params) }
                if method == "session/request_permission" =>
            {
                self.ask(id.clone(), params, live, ui)
            }
            Message::Request { id, method, .. } => live.refuse(id, method),
            Message::Response { id, outcome: Outcome::Result(list) }
                if self.listed.as_ref() == Some(id) =>
            {
                if let Some(session) = session {
                    self.print_others(list, session, ui);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn look(&mut self, live: &mut Live) -> Result {
        self.listed = Some(live.writer.request(method::INTERACTION_LIST, &Empty {})?);
        Ok(())
    }

    /// Prints each question of this session once that is not asked here.
    fn print_others(&mut self, list: &RawValue, session: &Untrusted, ui: &mut Ui) {
        let list: InteractionList = serde_json::from_str(list.get()).unwrap_or_default();
        for question in list.interactions {
            let is_ours = question.session_id.as_ref() == Some(session);
            let is_asked_here = self.any() && matches!(question.question, Kind::Permission { .. });
            if !is_ours || is_asked_here || !self.printed.insert(question.id.clone()) {
                continue;
            }
            ui.warn(text!("the agent asks: {}", described(&question)));
            ui.say(text!("answer it with: acpctl answer {}", question.id));
        }
    }

    fn ask(&mut self, id: Id, params: &RawValue, live: &mut Live, ui: &mut Ui) -> Result {
        let Ok(question) = PermissionRequest::from_raw(params) else { return Ok(()) };
        let meta = meta(params).unwrap_or_else(|| unknown(&question, params));
        let head = if ui.can_ask() { "allow? " } else { "waiting for permission: " };
        self.open.push_back(Question::new(id, head, &meta, &question));
        if self.open.len() == 1 { self.show(live, ui) } else { Ok(()) }
    }

    pub(crate) fn any(&self) -> bool {
        !self.open.is_empty()
    }

    pub(crate) fn key(&mut self, key: u8, live: &mut Live, ui: &mut Ui) -> Result {
        let key = char::from(key).to_ascii_lowercase();
        let Some(question) = self.open.front().filter(|_| self.keys.is_some()) else {
            return Ok(());
        };
        let typed = match key {
            '\n' | '\r' if !self.typed.is_empty() => question.of_word(&self.typed),
            _ if self.typed.is_empty() => question.of_key(key),
            _ => None,
        };
        if let Some(option) = typed.cloned() {
            ui.note(text!("  {}", label(&option)));
            if matches!(&*option.kind, "allow_always" | "reject_always") {
                ui.say(own_option(&option.name.as_str().into()));
            }
            if let Some(question) = self.open.pop_front() {
                live.writer.answer(&question.id, &PermissionAnswer::Selected(option.option_id))?;
            }
            return self.show(live, ui);
        }
        match key {
            VIEW_KEY if self.typed.is_empty() => {
                let (width, _) = ui.err_size();
                let whole = Text::lines(&question.sheet.whole(Some(width)));
                ui.talk(&whole);
                ui.talk(&question.prompt(ui.err_size()));
            }
            '\n' | '\r' if !self.typed.is_empty() => {
                self.typed.clear();
                ui.mutter("\n");
                let (width, _) = ui.err_size();
                ui.talk(&Text::lines(&question.keys(0, width)));
            }
            '\u{8}' | '\u{7f}' if self.typed.pop().is_some() => ui.mutter("\u{8} \u{8}"),
            key if question.takes_words()
                && key.is_ascii_alphanumeric()
                && self.typed.len() < MAX_WORD =>
            {
                self.typed.push(key);
                ui.mutter(text!("{}", key));
            }
            _ => {}
        }
        Ok(())
    }

    /// Handles `_acpd/answered`, which arrives before the question is withdrawn. Returns whether
    /// the answer will then be printed, because the question is on the screen.
    pub(crate) fn on_answered(&mut self, name: &str, params: &RawValue) -> bool {
        if name != method::ANSWERED {
            return false;
        }
        self.answered = serde_json::from_str(params.get()).ok();
        let answered = self.answered.as_ref();
        answered.is_some_and(|it| self.open.front().is_some_and(|open| it.id == open.name))
    }

    /// Handles `$/cancel_request`: another client answered the question, or its turn is over.
    fn withdraw(&mut self, params: &RawValue, live: &mut Live, ui: &mut Ui) -> Result {
        let request = cancelled_request(params);
        let at = self.open.iter().position(|question| Some(&question.id) == request.as_ref());
        let Some(at) = at else { return Ok(()) };
        let gone = self.open.remove(at);
        if at > 0 {
            return Ok(());
        }
        let is_it = |it: &&QuestionAnswered| gone.is_some_and(|gone| it.id == gone.name);
        let line = match self.answered.as_deref().filter(is_it) {
            Some(it) => text!("  answered elsewhere, by {}: {}", person(&it.by), given(it)),
            None => "  withdrawn: no answer is needed".into(),
        };
        ui.note(line);
        self.show(live, ui)
    }

    pub(crate) fn cancel(&mut self, live: &mut Live) -> Result {
        self.keys = None;
        for question in self.open.drain(..) {
            live.writer.answer(&question.id, &PermissionAnswer::Cancelled)?;
        }
        Ok(())
    }

    fn show(&mut self, live: &mut Live, ui: &mut Ui) -> Result {
        self.keys = None;
        self.typed.clear();
        let Some(question) = self.open.front_mut() else { return Ok(()) };
        question.fit(ui.err_size());
        ui.stop_spinning();
        if ui.can_ask() {
            // Discards earlier input before the question is visible.
            self.keys = Some(KeyMode::enter()?);
            live.listen_to_keys()?;
            ui.talk(&question.prompt(ui.err_size()));
        } else {
            ui.talk(&waiting(question));
        }
        Ok(())
    }
}

pub(crate) fn needs_action(name: &str, params: &RawValue) -> bool {
    let changed = || serde_json::from_str::<StateChanged>(params.get());
    name == method::SESSION_STATE && changed().is_ok_and(|now| now.turn == TurnState::NeedsAction)
}

fn meta(params: &RawValue) -> Option<PermissionMeta> {
    let own = locate(params.get().as_bytes(), &["_meta", NAMESPACE])?;
    read_legible(&params.get()[own]).ok()
}
