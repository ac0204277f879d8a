//! Permission questions: an agent asks before it acts.
//!
//! On a terminal the user answers with one key. A word is needed if acpd does not understand all of
//! the call, or if the call changed meanwhile, because one key is pressed too easily. Without a
//! terminal, the command only reports the question, which stays open for other clients. Forms and
//! pages, and all questions of a command under an agent, are answered by other commands, which are
//! printed.

use std::collections::{HashSet, VecDeque};

use acp_wire::acp::{PermissionAnswer, PermissionOption, PermissionRequest, cancelled_request};
use acp_wire::{Id, Message, Outcome, locate, read_legible};
use acpd_api::{
    Empty, InteractionList, NAMESPACE, PermissionMeta, Question as Kind, QuestionAnswered, RawCall,
    SessionRowKey, Shown, ShownUnclear, StateChanged, TurnState, Untrusted, method,
};
use acpd_view::{Sheet, about, person};
use serde_json::value::RawValue;

use crate::error::Result;
use crate::info::question::{described, given, own_option};
use crate::live::Live;
use crate::terminal::KeyMode;
use crate::text::{BOLD, Role, Text, text};
use crate::ui::Ui;

const MAX_WORD: usize = 16;
const VIEW_KEY: char = 'v';

/// The open questions; the first one is on the screen.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: VecDeque<Question>,
    keys: Option<KeyMode>,
    typed: String,
    listed: Option<Id>,
    printed: HashSet<Untrusted>,
}

impl Questions {
    /// Handles a question, its end, or a notice of an open question. Requests for services that
    /// acpctl does not have are refused.
    pub(crate) fn take(
        &mut self,
        message: &Message<'_>,
        session: Option<&SessionRowKey>,
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
    fn print_others(&mut self, list: &RawValue, session: &SessionRowKey, ui: &mut Ui) {
        let list: InteractionList = serde_json::from_str(list.get()).unwrap_or_default();
        for question in list.interactions {
            let is_ours = question.is_of(&session.agent, &session.session_id);
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
        let is_end = matches!(key, '\n' | '\r') && !self.typed.is_empty();
        let chosen = question.choices.iter().find(|choice| match choice.typed {
            Typed::Key(own) => self.typed.is_empty() && own == key,
            Typed::Word(word) => is_end && word == self.typed,
            Typed::Elsewhere => false,
        });
        if let Some(option) = chosen.map(|choice| choice.option.clone()) {
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
            _ if is_end => {
                self.typed.clear();
                ui.mutter("\n");
                let (width, _) = ui.err_size();
                ui.talk(&Text::lines(&question.keys(0, width)));
            }
            '\u{8}' | '\u{7f}' if self.typed.pop().is_some() => ui.mutter("\u{8} \u{8}"),
            key if key.is_ascii_alphanumeric()
                && self.typed.len() < MAX_WORD
                && question.choices.iter().any(|it| matches!(it.typed, Typed::Word(_))) =>
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
        let Ok(it) = serde_json::from_str::<QuestionAnswered>(params.get()) else { return false };
        let at = self.open.iter().position(|open| it.id == open.name);
        if let Some(at) = at {
            let line = text!("  answered elsewhere, by {}: {}", person(&it.by), given(&it));
            self.open[at].answered = Some(line);
        }
        at == Some(0)
    }

    /// Handles `$/cancel_request`: another client answered the question, or its turn is over.
    fn withdraw(&mut self, params: &RawValue, live: &mut Live, ui: &mut Ui) -> Result {
        let request = cancelled_request(params);
        let at = self.open.iter().position(|question| Some(&question.id) == request.as_ref());
        let Some(gone) = at.and_then(|at| self.open.remove(at)) else { return Ok(()) };
        if at != Some(0) {
            return Ok(());
        }
        ui.note(gone.answered.unwrap_or_else(|| "  withdrawn: no answer is needed".into()));
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

/// For an answer that does not fit on the screen and has no key.
const CUT_WIDTH: usize = 28;
/// Minimum rows for the call.
const CALL_ROWS: usize = 8;
const INDENT: &str = "      ";

#[derive(Debug)]
struct Question {
    id: Id,
    /// The name in the daemon's notices.
    name: String,
    sheet: Sheet,
    choices: Vec<Choice>,
    always: Option<Untrusted>,
    /// The answer of another client.
    answered: Option<Text>,
}

#[derive(Debug)]
struct Choice {
    typed: Typed,
    option: PermissionOption,
    is_cut: bool,
}

#[derive(Debug)]
enum Typed {
    Key(char),
    /// A word and Enter.
    Word(&'static str),
    /// None: the answer is too long to be shown whole.
    Elsewhere,
}

/// A daemon of another version sends nothing about the call, so the call counts as not understood.
fn unknown(question: &PermissionRequest<'_>, params: &RawValue) -> PermissionMeta {
    let why = "comes from a daemon of another version".into();
    let shown = Shown {
        kind: question.kind.as_deref().unwrap_or("other").into(),
        title: question.title.as_deref().map(Into::into),
        unclear: vec![ShownUnclear { why, ..ShownUnclear::default() }],
        raw: Some(RawCall::beginning(params.get())),
        ..Shown::default()
    };
    PermissionMeta { shown, ..PermissionMeta::default() }
}

impl Question {
    fn new(
        id: Id,
        head: &'static str,
        meta: &PermissionMeta,
        question: &PermissionRequest<'_>,
    ) -> Question {
        let PermissionMeta { id: name, shown, changed } = meta;
        let sheet = Sheet::new(head, shown, *changed);
        let choices = choices(&question.options, sheet.is_easy());
        let (name, always) = (name.clone(), shown.always.clone());
        Question { id, name, sheet, choices, always, answered: None }
    }

    /// Removes the key of each allowing answer that is too long for this screen.
    fn fit(&mut self, (width, height): (usize, usize)) {
        let together: usize = self.choices.iter().map(|choice| choice.line().width() + 2).sum();
        if together <= width {
            return;
        }
        let mut room = height.saturating_sub(CALL_ROWS).max(height / 2);
        for choice in &mut self.choices {
            let rows = hanging(&choice.line(), width).len();
            if rows <= room {
                room -= rows;
            } else {
                choice.is_cut = true;
                if !is_refusal(&choice.option) {
                    choice.typed = Typed::Elsewhere;
                }
            }
        }
    }

    /// Returns the question, all of it if it fits on the screen.
    fn prompt(&self, (width, height): (usize, usize)) -> Text {
        // The cursor needs a row.
        let keys = self.keys(usize::MAX, width).len() + 1;
        let (mut lines, hidden) = self.sheet.fitting(width, height.saturating_sub(keys));
        lines.extend(self.keys(hidden, width));
        Text::lines(&lines)
    }

    /// Returns the rows with the possible input: one row if everything fits, or else at least one
    /// per answer. The scope of an "always" answer has its own row.
    fn keys(&self, hidden: usize, width: usize) -> Vec<Text> {
        let view = Text::of(BOLD, "[v]").and(Role::Plain, " show all of it");
        let mut lines: Vec<Text> = self.choices.iter().map(Choice::line).collect();
        if hidden > 0 {
            lines.push(view);
        }
        let together: usize = lines.iter().map(|line| line.width() + 2).sum();
        let mut rows = Vec::new();
        if together <= width {
            rows.push(lines.into_iter().map(|line| Text::from("  ") + line).collect());
        } else {
            rows.extend(lines.iter().flat_map(|line| hanging(line, width)));
        }
        let has_always = self.choices.iter().any(|choice| choice.option.kind == "allow_always");
        let always = has_always.then(|| about::remembers(self.always.as_ref()));
        let always = always.map(|always| Text::of(Role::Dim, text!("always: {}", always)));
        rows.extend(always.iter().flat_map(|line| hanging(line, width)));
        rows
    }
}

impl Choice {
    fn line(&self) -> Text {
        let typed = match self.typed {
            Typed::Key(key) => text!("[{}]", key),
            Typed::Word(word) => text!("[{} + Enter]", word),
            Typed::Elsewhere => "[ ]".into(),
        };
        let label = label(&self.option);
        let label = match self.typed {
            Typed::Elsewhere => text!("{} too long for a key: acpctl answer", label.cut(CUT_WIDTH)),
            _ if self.is_cut => label.cut(CUT_WIDTH),
            _ => label,
        };
        Text::of(BOLD, typed).and(Role::Plain, text!(" {}", label))
    }
}

fn label(option: &PermissionOption) -> Text {
    about::option(&option.kind, &option.name.as_str().into())
}

fn is_refusal(option: &PermissionOption) -> bool {
    option.kind.starts_with("reject_")
}

/// Wraps a line with a hanging indent.
fn hanging(line: &Text, width: usize) -> Vec<Text> {
    let rows = line.wrap(width.saturating_sub(INDENT.len()).max(INDENT.len()));
    let rows = rows.into_iter().enumerate();
    rows.map(|(at, row)| Text::from(if at == 0 { "  " } else { INDENT }) + row).collect()
}

fn waiting(question: &Question) -> Text {
    let names = question.choices.iter().map(|choice| label(&choice.option));
    let call = Text::lines(&question.sheet.whole(None));
    let names = text!("  ({})", Text::join(names, " / "));
    let hint = "answer with `acpctl allow` or `acpctl deny`, or in another client; Ctrl-C cancels the turn";
    text!("{}{}\n{}\n", call, Text::styled(Role::Warning, names), Text::styled(Role::Dim, hint))
}

/// Assigns input to each option: a letter by its kind, or a number if several have the kind. If the
/// question is not easy, only a refusal has a key; the others need a word. An answer whose name
/// says the opposite of its effect also needs a word. Options without input are answered elsewhere.
fn choices(options: &[PermissionOption], is_easy: bool) -> Vec<Choice> {
    const DIGITS: &str = "123456789";
    let is_alone = |kind: &str| options.iter().filter(|option| option.kind == kind).count() == 1;
    let of_kind = |kind: &str| match kind {
        "allow_once" => Some(('y', "allow")),
        "allow_always" => Some(('a', "always")),
        "reject_once" => Some(('n', "reject")),
        "reject_always" => Some(('d', "never")),
        _ => None,
    };
    let by_place = |at: usize| {
        let digit = DIGITS.get(at..=at)?;
        Some((digit.chars().next()?, digit))
    };
    let choice = |(at, option): (usize, &PermissionOption)| {
        let by_kind = of_kind(&option.kind).filter(|_| is_alone(&option.kind));
        let (key, word) = by_kind.or_else(|| by_place(at))?;
        let is_plain = !about::says_the_opposite(&option.kind, &option.name.as_str().into());
        let is_key = is_plain && (is_easy || is_refusal(option));
        let typed = if is_key { Typed::Key(key) } else { Typed::Word(word) };
        Some(Choice { typed, option: option.clone(), is_cut: false })
    };
    options.iter().enumerate().filter_map(choice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(title: &str, command: &str) -> PermissionMeta {
        let shown = Shown {
            kind: "execute".into(),
            title: Some(title.into()),
            commands: vec![command.into()],
            ..Shown::default()
        };
        PermissionMeta { shown, ..PermissionMeta::default() }
    }

    fn question(meta: &PermissionMeta, kinds: &[&str]) -> Question {
        let names: Vec<String> = kinds.iter().map(|kind| kind.replace('_', " ")).collect();
        let options: Vec<_> = kinds.iter().copied().zip(names.iter().map(|name| &**name)).collect();
        with_options(meta, &options)
    }

    fn with_options(meta: &PermissionMeta, options: &[(&str, &str)]) -> Question {
        let option = |(kind, name): &(&str, &str)| PermissionOption {
            option_id: (*kind).into(),
            name: (*name).into(),
            kind: (*kind).into(),
        };
        let options = options.iter().map(option).collect();
        let request = PermissionRequest { options, ..PermissionRequest::of_call(None) };
        Question::new(1.into(), "allow? ", meta, &request)
    }

    fn typed(question: &Question) -> Vec<String> {
        question.choices.iter().map(|choice| format!("{:?}", choice.typed)).collect()
    }

    #[test]
    fn each_kind_has_its_letter_and_others_have_numbers() {
        let all = ["allow_once", "allow_always", "reject_once", "reject_always"];
        let usual = question(&meta("rm -rf build", "rm -rf build"), &all);
        insta::assert_snapshot!(usual.prompt((80, 24)), @"
        allow? $ rm -rf build
          [y] allow once  [a] allow always  [n] reject once  [d] reject always
          always: acpd remembers nothing; the agent may remember more than this call
        ");
        let kinds = ["allow_once", "allow_once", "reject_once", "allow_persistent"];
        let chooser = question(&meta("t", "ls"), &kinds);
        assert_eq!(typed(&chooser), ["Key('1')", "Key('2')", "Key('n')", "Key('4')"]);
    }

    #[test]
    fn l6_a_question_fits_on_the_screen_whatever_is_in_it() {
        let fake = "\n".repeat(45) + "  [y] Allow";
        let many = ["x".repeat(9000).leak() as &str; 20];
        let mut question = question(&meta(&"t".repeat(9000), &fake), &many);
        question.fit((80, 24));
        let text = question.prompt((80, 24));
        let rows: usize = text.as_str().lines().map(|line| line.chars().count().div_ceil(80)).sum();
        assert!(rows < 24, "{text}");
        assert!(text.as_str().starts_with("allow? $ t"));
        assert!(text.as_str().ends_with("[v] show all of it\n"), "{text}");
    }

    #[test]
    fn what_a_key_allows_is_never_cut() {
        let long = "Yes, and don't ask again for touch made* and rm -rf target commands";
        let options =
            [("allow_once", "No, reject it"), ("allow_always", long), ("reject_once", "No")];
        let mut meta = meta("t", "touch made");
        meta.shown.always = Some("run `touch made` in /w".into());
        let mut question = with_options(&meta, &options);
        question.fit((60, 24));
        insta::assert_snapshot!(question.prompt((60, 24)), @r#"
        allow? $ t
          │ touch made
          [allow + Enter] allow once: "No, reject it"
          [a] allow always: "Yes, and don't ask again for touch
              made* and rm -rf target commands"
          [n] No
          always: acpd remembers exactly this: run `touch made`
              in /w
        "#);
        // Only a word allows what is called a refusal.
        assert_eq!(typed(&question), ["Word(\"allow\")", "Key('a')", "Key('n')"]);
        // On a screen that cannot show it, nothing can be pressed for it.
        question.fit((30, 10));
        assert_eq!(typed(&question)[1..], ["Elsewhere", "Key('n')"]);
    }
}
