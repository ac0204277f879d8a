//! The list of all sessions; those that need the user come first.

mod rows;
mod view;

use acpd_api::{
    RenameParams, RestartParams, SessionInfo, SessionRowKey, TurnState, Untrusted, method,
};
use acpd_view::text::Text;
use acpd_view::{Role, text};
use crossterm::event::KeyEvent;

use super::prompt_draft::PromptDraft;
use super::requests::{LinkId, Purpose, Twice};
use super::{AppState, with_queue};
use crate::fleet::{Fleet, Row, RowKey, RowState};
use crate::input::Input;
use crate::keymap::{Action, KeyPlace};
use crate::question::QuestionCard;

pub(super) use view::{footer_words, view};

#[derive(Debug, Default)]
pub(super) struct TopScreen {
    /// The selected row, and its last index.
    selected: Option<RowKey>,
    at: usize,
    filter: Input,
    typing: Option<Typing>,
    /// The typed line, unless it is the filter.
    input: Input,
    pub(super) card: QuestionCard,
}

/// The use of the typed line: for a session and its handle, or with an agent.
#[derive(Debug)]
pub(super) enum Typing {
    Filter,
    Prompt(SessionRowKey, Text),
    New(Untrusted),
    Rename(SessionRowKey, Text),
}

impl TopScreen {
    pub(super) fn place(&self) -> KeyPlace {
        match &self.typing {
            Some(_) => KeyPlace::Line,
            None if self.card.is_typing() => KeyPlace::Line,
            None if self.card.has_keys() => KeyPlace::Question,
            None => KeyPlace::Top,
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        match self.input() {
            Some(input) => input.insert(text),
            None => self.card.paste(text),
        }
    }

    /// Keeps the selection on an existing row, and shows that row's question.
    pub(super) fn settle(&mut self, fleet: &Fleet, now: u64) {
        let rows = fleet.rows(self.filter.text(), now);
        // The row of a typed prompt stays selected, even after its question is answered.
        let typed_for = match &self.typing {
            Some(Typing::Prompt(session, _) | Typing::Rename(session, _)) => Some(session),
            _ => None,
        };
        let is_typed_for = |row: &Row<'_>| {
            row.session.is_some_and(|session| Some(&session.row_key()) == typed_for)
        };
        let is_selected = |row: &Row<'_>| self.selected.is_some() && row.key() == self.selected;
        let found = rows.iter().position(is_selected);
        let found = found.or_else(|| rows.iter().position(is_typed_for));
        self.at = found.unwrap_or(self.at).min(rows.len().saturating_sub(1));
        let row = rows.get(self.at);
        self.selected = row.and_then(Row::key);
        self.card.show(row.and_then(Row::question));
    }

    fn input(&mut self) -> Option<&mut Input> {
        match self.typing.as_ref()? {
            Typing::Filter => Some(&mut self.filter),
            _ => Some(&mut self.input),
        }
    }

    fn begin_typing(&mut self, typing: Typing) {
        (self.typing, self.input) = (Some(typing), Input::default());
    }

    fn go(&mut self, at: usize, fleet: &Fleet, now: u64) {
        let rows = fleet.rows(self.filter.text(), now);
        self.at = at.min(rows.len().saturating_sub(1));
        self.selected = rows.get(self.at).and_then(Row::key);
    }
}

impl AppState {
    pub(super) fn top_key(&mut self, action: Option<Action>, key: &KeyEvent) {
        match self.top.place() {
            KeyPlace::Line if self.top.typing.is_some() => self.typed(action, key),
            KeyPlace::Question | KeyPlace::Line => self.question_key(action, key),
            _ => action.into_iter().for_each(|action| self.list_key(action)),
        }
    }

    fn list_key(&mut self, action: Action) {
        let (at, page) = (self.top.at, self.on_screen.page.max(1));
        let mut go = |at: usize| {
            self.top.go(at, &self.fleet, self.now);
        };
        match action {
            Action::Up => go(at.saturating_sub(1)),
            Action::Down => go(at + 1),
            Action::PageUp => go(at.saturating_sub(page)),
            Action::PageDown => go(at + page),
            Action::First => go(0),
            Action::Last => go(usize::MAX),
            Action::Question => self.top.card.take_keys(),
            Action::Filter => self.top.begin_typing(Typing::Filter),
            Action::Back => self.top.filter = Input::default(),
            Action::Open => self.open_selected(),
            Action::Prompt => self.type_for_selected(Typing::Prompt),
            Action::New => {
                let agent = self.agents().next();
                match agent {
                    Some(agent) => self.top.begin_typing(Typing::New(agent)),
                    None => self.flash(Role::Bad, "acpd has not told yet which agents there are"),
                }
            }
            Action::Rename => self.type_for_selected(Typing::Rename),
            Action::Cancel => self.cancel(),
            Action::Restart => self.restart(),
            _ => {}
        }
    }

    pub(super) fn top_wheel(&mut self, lines: isize) {
        self.top_click(self.top.at.saturating_add_signed(lines));
    }

    pub(super) fn top_click(&mut self, at: usize) {
        if self.top.place() == KeyPlace::Top {
            self.top.go(at, &self.fleet, self.now);
        }
    }

    pub(super) fn selected_session(&self) -> Option<&SessionInfo> {
        let rows = self.fleet.rows(self.top.filter.text(), self.now);
        rows.get(self.top.at).and_then(|row| row.session)
    }

    fn open_selected(&mut self) {
        match self.selected_session().map(|session| (session.row_key(), session.seq)) {
            Some((key, seq)) => self.open_chat(key, seq, true),
            None => self.flash(Role::Warning, "there is no session to open"),
        }
    }

    pub(super) fn type_for_selected(&mut self, typing: fn(SessionRowKey, Text) -> Typing) {
        match self.selected_session() {
            Some(session) => {
                let typing = typing(session.row_key(), Text::from(session.handle()));
                self.top.begin_typing(typing);
            }
            None => self.flash(Role::Warning, "no session is selected"),
        }
    }

    /// The last used agent first.
    fn agents(&self) -> impl Iterator<Item = Untrusted> {
        let rows = self.fleet.rows("", self.now);
        let used: Vec<Untrusted> = rows
            .iter()
            .filter(|row| !matches!(row.what, RowState::Login(..)))
            .filter_map(|row| row.session.map(|session| session.agent.clone()))
            .collect();
        let all = self.fleet.watched.agents.iter().map(|agent| agent.name.clone());
        let mut agents: Vec<Untrusted> = Vec::new();
        for agent in used.into_iter().chain(all) {
            if !agents.contains(&agent) {
                agents.push(agent);
            }
        }
        agents.into_iter()
    }

    fn typed(&mut self, action: Option<Action>, key: &KeyEvent) {
        match action {
            Some(Action::Back) => {
                if matches!(self.top.typing.take(), Some(Typing::Filter)) {
                    self.top.filter = Input::default();
                }
            }
            Some(Action::NextAgent) => {
                let agents: Vec<Untrusted> = self.agents().collect();
                if let Some(Typing::New(agent)) = &mut self.top.typing {
                    let at = agents.iter().position(|other| other == agent).map_or(0, |at| at + 1);
                    if let Some(next) = agents.get(at % agents.len().max(1)) {
                        *agent = next.clone();
                    }
                }
            }
            Some(Action::Confirm) => self.send_typed(),
            Some(Action::Steer) => self.steer_typed(),
            _ => {
                if let Some(input) = self.top.input() {
                    input.key(key);
                }
            }
        }
    }

    fn send_typed(&mut self) {
        let typed = self.top.input.text().to_owned();
        let is_blank = typed.trim().is_empty();
        match self.top.typing.take() {
            Some(Typing::Prompt(session, _)) if !is_blank => self.prompt(&session, &typed),
            Some(Typing::New(agent)) => self.begin(&agent, Some(typed).filter(|_| !is_blank), true),
            Some(Typing::Rename(session, _)) if !is_blank => {
                let name = Some(typed.trim().to_owned());
                let params = RenameParams { session: session.exactly(), name };
                let purpose = Purpose::Rename;
                self.out.send(LinkId::Fleet, method::SESSION_RENAME, &params, purpose);
            }
            _ => {}
        }
    }

    fn steer_typed(&mut self) {
        let Some(Typing::Prompt(session, _)) = &self.top.typing else { return };
        let typed = self.top.input.text();
        if self.is_running(session) && !typed.trim().is_empty() {
            let (session, said) = (session.clone(), PromptDraft::from(typed));
            self.top.typing = None;
            self.steer_into(&session, said);
        } else {
            self.send_typed();
        }
    }

    fn is_running(&self, key: &SessionRowKey) -> bool {
        let session = self.fleet.session(key);
        session.is_some_and(|session| session.turn.state != TurnState::Idle)
    }

    fn cancel(&mut self) {
        let session = self.selected_session();
        let Some(session) = session.filter(|session| session.turn.state != TurnState::Idle) else {
            self.flash(Role::Warning, "no turn runs there");
            return;
        };
        let key = session.row_key();
        let press = self.key_of(KeyPlace::Top, Action::Cancel);
        let queue = with_queue(session.queued);
        let words = text!("{} again cancels the turn of {}{}", press, session.handle(), queue);
        self.cancel_session(key, words);
    }

    /// Restarts the selected row's agent at the second press. Its sessions are restored, and
    /// running turns are interrupted.
    fn restart(&mut self) {
        let rows = self.fleet.rows(self.top.filter.text(), self.now);
        let agent = rows.get(self.top.at).and_then(|row| match row.what {
            RowState::Login(agent, _) => Some(&agent.name),
            _ => row.session.map(|session| &session.agent),
        });
        let Some(agent) = agent.cloned() else { return };
        let press = self.key_of(KeyPlace::Top, Action::Restart);
        let words = match self.fleet.turns_of(&agent) {
            0 => text!("{} again restarts {}", press, agent),
            1 => text!("{} again restarts {}; the turn that runs is interrupted", press, agent),
            turns => text!("{} again restarts {}; {} turns are interrupted", press, agent, turns),
        };
        if !self.is_second(Twice::Restart(agent.clone()), words) {
            return;
        }
        self.flash(Role::Dim, text!("{} is restarted", agent));
        let params = RestartParams { agent: agent.into_raw(), force: false };
        self.out.send(LinkId::Fleet, method::AGENT_RESTART, &params, Purpose::Restart);
    }
}
