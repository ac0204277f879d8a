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
use super::requests::{LinkId, Purpose};
use super::{AppState, SECOND_PRESS_MS, with_queue};
use crate::fleet::{Fleet, Row, RowKey, RowState};
use crate::input::Input;
use crate::keymap::{Action, KeyPlace};
use crate::question::{KeyOutcome, QuestionCard};

pub(super) use view::{useful, view, word};

#[derive(Debug, Default)]
pub(super) struct TopScreen {
    /// The selected row, and its last index.
    selected: Option<RowKey>,
    at: usize,
    filter: Input,
    typing: Option<Typing>,
    pub(super) card: QuestionCard,
    /// The action of the first press, and the time until which a second press counts.
    twice: Option<(Twice, u64)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Twice {
    Cancel(SessionRowKey),
    Restart(Untrusted),
}

#[derive(Debug)]
enum Typing {
    Filter,
    Prompt { session: SessionRowKey, who: Text, input: Input },
    New { agent: Untrusted, input: Input },
    Rename { session: SessionRowKey, who: Text, input: Input },
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
        let key_at = |at: usize| rows.get(at).and_then(Row::key);
        // The row of a typed prompt stays selected, even after its question is answered.
        let typed_for = match &self.typing {
            Some(Typing::Prompt { session, .. } | Typing::Rename { session, .. }) => Some(session),
            _ => None,
        };
        let is_typed_for = |row: &Row<'_>| {
            row.session.is_some_and(|session| Some(&session.row_key()) == typed_for)
        };
        let is_selected = |row: &Row<'_>| self.selected.is_some() && row.key() == self.selected;
        let found = rows.iter().position(is_selected);
        let found = found.or_else(|| rows.iter().position(is_typed_for));
        self.at = match found {
            Some(at) => at,
            None => self.at.min(rows.len().saturating_sub(1)),
        };
        self.selected = key_at(self.at);
        self.card.show(rows.get(self.at).and_then(Row::question));
    }

    fn input(&mut self) -> Option<&mut Input> {
        match self.typing.as_mut()? {
            Typing::Filter => Some(&mut self.filter),
            Typing::Prompt { input, .. }
            | Typing::New { input, .. }
            | Typing::Rename { input, .. } => Some(input),
        }
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
            KeyPlace::Question | KeyPlace::Line => self.card_key(action, key),
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
            Action::Filter => self.top.typing = Some(Typing::Filter),
            Action::Back => self.top.filter = Input::default(),
            Action::Open => self.open_selected(),
            Action::Prompt => self.type_for_selected(|session, who| Typing::Prompt {
                session,
                who,
                input: Input::default(),
            }),
            Action::New => {
                let agent = self.agents().next();
                match agent {
                    Some(agent) => {
                        self.top.typing = Some(Typing::New { agent, input: Input::default() });
                    }
                    None => self.flash(Role::Bad, "acpd has not told yet which agents there are"),
                }
            }
            Action::Rename => self.type_for_selected(|session, who| Typing::Rename {
                session,
                who,
                input: Input::default(),
            }),
            Action::Cancel => self.cancel(),
            Action::Restart => self.restart(),
            _ => {}
        }
    }

    pub(super) fn top_wheel(&mut self, lines: isize) {
        if self.top.place() == KeyPlace::Top {
            self.top.go(self.top.at.saturating_add_signed(lines), &self.fleet, self.now);
        }
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

    fn type_for_selected(&mut self, typing: impl FnOnce(SessionRowKey, Text) -> Typing) {
        match self.selected_session() {
            Some(session) => {
                self.top.typing = Some(typing(session.row_key(), Text::from(session.handle())));
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
        let all = self.fleet.agents().iter().map(|agent| agent.name.clone());
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
                if let Some(Typing::New { agent, .. }) = &mut self.top.typing {
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
        match self.top.typing.take() {
            Some(Typing::Prompt { session, input, .. }) if !input.text().trim().is_empty() => {
                self.prompt(&session, input.text());
            }
            Some(Typing::New { agent, input }) => {
                let prompt = Some(input.text().to_owned()).filter(|text| !text.trim().is_empty());
                self.begin(&agent, prompt, true);
            }
            Some(Typing::Rename { session, input, .. }) if !input.text().trim().is_empty() => {
                let (session, name) = (session.exactly(), input.text().trim().to_owned());
                let params = RenameParams { session, name: Some(name) };
                let purpose = Purpose::Rename;
                self.out.send(LinkId::Fleet, method::SESSION_RENAME, &params, purpose);
            }
            _ => {}
        }
    }

    fn steer_typed(&mut self) {
        match &self.top.typing {
            Some(Typing::Prompt { session, input, .. })
                if self.is_running(session) && !input.text().trim().is_empty() =>
            {
                let (session, said) = (session.clone(), PromptDraft::from(input.text()));
                self.top.typing = None;
                self.steer_into(&session, said);
            }
            Some(Typing::Prompt { .. }) => self.send_typed(),
            _ => {}
        }
    }

    fn is_running(&self, key: &SessionRowKey) -> bool {
        let session = self.fleet.session(key);
        session.is_some_and(|session| session.turn.state != TurnState::Idle)
    }

    fn card_key(&mut self, action: Option<Action>, key: &KeyEvent) {
        let question = self.top.card.id().and_then(|id| self.fleet.question(id));
        let Some(question) = question else { return };
        let page = self.on_screen.question.as_ref().map_or(1, |drawn| drawn.page);
        match self.top.card.key(action, key, question, page) {
            KeyOutcome::Answered { id, answer, says_why } => {
                if says_why {
                    self.type_for_selected(|session, who| Typing::Prompt {
                        session,
                        who,
                        input: Input::default(),
                    });
                }
                self.answer(id, answer);
            }
            KeyOutcome::Refused(why) => self.flash(Role::Warning, why),
            KeyOutcome::Left | KeyOutcome::Nothing => {}
        }
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
        if !self.is_second(Twice::Cancel(key.clone()), words) {
            return;
        }
        self.cancel_session(&key);
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

    /// Returns whether this is the second press. The first press shows `words`.
    fn is_second(&mut self, what: Twice, words: Text) -> bool {
        let before = self.top.twice.take();
        let is_second = before.is_some_and(|(of, until)| of == what && until >= self.now);
        if !is_second {
            self.flash(Role::Warning, words);
            self.top.twice = Some((what, self.now + SECOND_PRESS_MS));
        }
        is_second
    }
}
