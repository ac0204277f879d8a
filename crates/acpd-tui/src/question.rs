//! An open question on the screen: shown whole, and answered only on purpose.
//!
//! ```text
//!  shown ──Tab──▶ has the keys ──1-9 ↑ ↓──▶ chosen ──Enter──▶ sent ──closed by the daemon──▶ gone
//!    ▲               │ Esc                    │ Esc, or another question
//!    └───────────────┴────────────────────────┘
//! ```
//!
//! Architecture invariant: an answer needs three steps of the user in this order: going to the
//! question, choosing, and Enter. Filling in a form is no answer; sending it is one. A step counts
//! only after the question was on the screen. Nothing that allows is sent before the end of the
//! question was on the screen.

mod form;
mod sheet;
mod view;

use std::collections::BTreeSet;
use std::ops::Range;

use acpd_api::{GivenAnswer, InteractionInfo, Question, Untrusted};
use acpd_view::text::Text;
use acpd_view::{about, text};
use crossterm::event::KeyEvent;
use serde_json::Value;

use crate::keymap::{Action, digit};
use form::Filled;

pub use sheet::rows;
pub use view::asks;
pub(crate) use view::{height, verb, view};

const MAX_VALUE_WIDTH: usize = 60;

/// The open question that is shown, if any, and how far the user is with its answer.
#[derive(Debug, Default)]
pub(crate) struct QuestionCard {
    id: Option<Untrusted>,
    is_drawn: bool,
    is_end_seen: bool,
    has_keys: bool,
    chosen: Option<usize>,
    filled: Filled,
    /// Choices that were fully visible: unseen fields also have defaults.
    seen: BTreeSet<usize>,
    scroll: usize,
    is_sent: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Drawn {
    pub(crate) id: Untrusted,
    pub(crate) is_end: bool,
    /// Maximum of scrolled rows.
    pub(crate) most: usize,
    pub(crate) page: usize,
    /// The fully visible choices.
    pub(crate) choices: Range<usize>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    pub label: Text,
    pub(crate) heading: Option<Text>,
    pub note: Option<Text>,
    /// The field has this value; none if the choice is not a value of a field.
    pub(crate) is_set: Option<bool>,
    pub does: ChoiceEffect,
    pub(crate) is_refusal: bool,
    /// The user wants to send the agent a reason.
    pub says_why: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ChoiceEffect {
    Answer(GivenAnswer),
    /// Null empties the field.
    Put(String, Value),
    Type(String),
    Refuse(Text),
}

impl Default for ChoiceEffect {
    fn default() -> ChoiceEffect {
        ChoiceEffect::Refuse(Text::new())
    }
}

impl Choice {
    fn answer(label: Text, answer: GivenAnswer) -> Choice {
        Choice { label, does: ChoiceEffect::Answer(answer), ..Choice::default() }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum KeyOutcome {
    Nothing,
    Answered {
        id: Untrusted,
        answer: GivenAnswer,
        /// The user wants to send the agent a reason.
        says_why: bool,
    },
    Refused(Text),
}

impl QuestionCard {
    /// Shows a question. A new one has no keys and no choice.
    pub(crate) fn show(&mut self, question: Option<&InteractionInfo>) {
        let id = question.map(|question| &question.id);
        if self.id() != id {
            *self = QuestionCard { id: id.cloned(), ..QuestionCard::default() };
        }
    }

    pub(crate) fn id(&self) -> Option<&Untrusted> {
        self.id.as_ref()
    }

    pub(crate) fn has_keys(&self) -> bool {
        self.has_keys
    }

    /// Gives the keys to the question if it was on the screen.
    pub(crate) fn take_keys(&mut self) {
        self.has_keys |= self.is_drawn && !self.is_sent;
    }

    pub(crate) fn drawn(&mut self, drawn: &Drawn) {
        if self.id() == Some(&drawn.id) {
            self.is_drawn = true;
            self.is_end_seen |= drawn.is_end;
            self.seen.extend(drawn.choices.clone());
            self.scroll = self.scroll.min(drawn.most);
        }
    }

    /// A refused answer can be given again.
    pub(crate) fn on_answer_refused(&mut self, id: &Untrusted) {
        if self.id() == Some(id) {
            self.is_sent = false;
            self.chosen = None;
        }
    }

    pub(crate) fn is_typing(&self) -> bool {
        self.has_keys && self.filled.typing.is_some()
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some((_, input)) = self.filled.typing.as_mut().filter(|_| self.has_keys) {
            input.insert(text);
        }
    }

    /// `page` is the number of visible rows of the question.
    pub(crate) fn key(
        &mut self,
        action: Option<Action>,
        key: &KeyEvent,
        question: &InteractionInfo,
        page: usize,
    ) -> KeyOutcome {
        if self.id() != Some(&question.id) || !self.has_keys || !self.is_drawn {
            return KeyOutcome::Nothing;
        }
        if let Some((_, input)) = &mut self.filled.typing {
            match action {
                Some(Action::Confirm) => {
                    let refused = self.filled.end(question).err();
                    return refused.map_or(KeyOutcome::Nothing, KeyOutcome::Refused);
                }
                Some(Action::Back) => self.filled.typing = None,
                _ => drop(input.key(key)),
            }
            return KeyOutcome::Nothing;
        }
        let choices = choices(question, &self.filled);
        match action {
            Some(Action::Back) => (self.has_keys, self.chosen) = (false, None),
            Some(Action::Choose) => {
                let at = digit(key).map(|digit| digit - 1).filter(|at| *at < choices.len());
                self.chosen = at.or(self.chosen);
            }
            Some(Action::Down) => {
                let next = self.chosen.map_or(0, |at| at + 1);
                self.chosen = Some(next).filter(|at| *at < choices.len()).or(self.chosen);
            }
            Some(Action::Up) => {
                let before = self.chosen.map_or(choices.len(), |at| at).checked_sub(1);
                self.chosen = before.or(self.chosen);
            }
            Some(Action::PageDown) => self.scroll += page.max(1),
            Some(Action::PageUp) => self.scroll = self.scroll.saturating_sub(page.max(1)),
            Some(Action::Confirm) => {
                let has_fields = choices.iter().any(|choice| choice.heading.is_some());
                // The last choice declines; it need not be seen.
                let mut needed = 0..choices.len().saturating_sub(1);
                let are_seen = !has_fields || needed.all(|at| self.seen.contains(&at));
                let chosen = self.chosen.and_then(|at| Some((at, choices.into_iter().nth(at)?)));
                let Some((at, choice)) = chosen else {
                    let why = "nothing is chosen yet: a number or an arrow chooses";
                    return KeyOutcome::Refused(why.into());
                };
                return self.confirm(at, choice, are_seen);
            }
            _ => {}
        }
        KeyOutcome::Nothing
    }

    fn confirm(&mut self, at: usize, choice: Choice, are_fields_seen: bool) -> KeyOutcome {
        let Choice { does, is_refusal, says_why, .. } = choice;
        let refused = |why: &'static str| KeyOutcome::Refused(why.into());
        match does {
            ChoiceEffect::Put(field, value) => self.filled.put(field, value),
            ChoiceEffect::Type(field) => self.filled.begin(field),
            ChoiceEffect::Refuse(why) => return KeyOutcome::Refused(why),
            ChoiceEffect::Answer(_) if !is_refusal && !self.is_end_seen => {
                return refused("see all of it first: PgDn shows the rest");
            }
            ChoiceEffect::Answer(_) if !is_refusal && !self.seen.contains(&at) => {
                return refused("this answer is not whole on the screen: make the terminal larger");
            }
            ChoiceEffect::Answer(_) if !is_refusal && !are_fields_seen => {
                return refused("see all fields first: the arrows show the rest");
            }
            ChoiceEffect::Answer(answer) => {
                (self.is_sent, self.has_keys) = (true, false);
                let id = self.id.clone().unwrap_or_default();
                return KeyOutcome::Answered { id, answer, says_why };
            }
        }
        KeyOutcome::Nothing
    }
}

/// Returns the answers in the order of their numbers, for programs that show them line by line. A
/// form has refusals only.
pub fn answers(question: &InteractionInfo) -> Vec<Choice> {
    let mut choices = choices(question, &Filled::default());
    if matches!(question.question, Question::Form { .. }) {
        choices.retain(|choice| choice.is_refusal);
    }
    choices
}

pub(crate) fn choices(question: &InteractionInfo, filled: &Filled) -> Vec<Choice> {
    let declined = |label: &'static str| Choice {
        is_refusal: true,
        ..Choice::answer(label.into(), GivenAnswer::Decline)
    };
    match &question.question {
        Question::Permission { options, shown, .. } => {
            let always = shown.as_ref().and_then(|shown| shown.always.as_ref());
            let choice = |option: &acpd_api::OptionInfo| {
                let kind = option.kind.raw();
                let label = about::option(kind, &option.name);
                let note = if about::says_the_opposite(kind, &option.name) {
                    Some("the agent's name for it says the opposite".into())
                } else {
                    (kind == "allow_always").then(|| about::remembers(always))
                };
                let answer = GivenAnswer::Option { option: option.option_id.raw().to_owned() };
                let is_refusal = option.kind.raw().starts_with("reject_");
                Choice { note, is_refusal, ..Choice::answer(label, answer) }
            };
            let mut choices: Vec<Choice> = options.iter().map(choice).collect();
            let rejects = options.iter().find(|option| option.kind == "reject_once");
            choices.extend(rejects.map(|option| Choice {
                label: text!("{} and say why", about::option(option.kind.raw(), &option.name)),
                says_why: true,
                ..choice(option)
            }));
            choices
        }
        Question::Url { .. } => {
            let answer = GivenAnswer::Accept { content: None };
            let agree = Choice::answer("agree, and open the page yourself".into(), answer);
            vec![agree, declined("decline")]
        }
        Question::Form { .. } => {
            let form = form::read(question);
            let mut choices = form.map(|form| form::choices(&form, filled)).unwrap_or_default();
            choices.push(declined("decline"));
            choices
        }
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};
    use serde_json::json;

    use super::*;

    fn question(id: &str) -> InteractionInfo {
        let option = |kind: &str| json!({"optionId": kind, "name": kind, "kind": kind});
        let options = ["allow_once", "allow_always", "reject_once"].map(option);
        serde_json::from_value(json!({"id": id, "agent": "demo", "sessionId": "s", "at": 1,
            "question": {"kind": "permission", "title": "t", "options": options,
                "shown": {"kind": "execute", "commands": ["make"], "paths": [], "urls": [],
                    "diffs": [], "unclear": [], "always": "run `make` in /w"}}}))
        .unwrap()
    }

    fn drawn(id: &str, is_end: bool) -> Drawn {
        Drawn { id: id.into(), is_end, most: 9, page: 4, choices: 0..4 }
    }

    fn press(card: &mut QuestionCard, question: &InteractionInfo, action: Action) -> KeyOutcome {
        let one = KeyEvent::new(KeyCode::Char('1'), KeyModifiers::NONE);
        card.key(Some(action), &one, question, 4)
    }

    #[test]
    fn m7_allowing_waits_until_the_end_was_on_the_screen_and_refusing_does_not() {
        let question = question("1-1");
        let mut card = QuestionCard::default();
        card.show(Some(&question));
        card.drawn(&drawn("1-1", false));
        card.take_keys();
        press(&mut card, &question, Action::Choose);
        assert!(matches!(press(&mut card, &question, Action::Confirm), KeyOutcome::Refused(_)));
        press(&mut card, &question, Action::PageDown);
        card.drawn(&drawn("1-1", true));
        assert!(matches!(
            press(&mut card, &question, Action::Confirm),
            KeyOutcome::Answered { .. }
        ));
        let mut card = QuestionCard::default();
        card.show(Some(&question));
        card.drawn(&drawn("1-1", false));
        card.take_keys();
        press(&mut card, &question, Action::Up);
        let did = press(&mut card, &question, Action::Confirm);
        assert!(matches!(did, KeyOutcome::Answered { says_why: true, .. }));
    }

    #[test]
    fn choices_say_what_they_do_and_what_always_remembers() {
        let told = |choice: &Choice| {
            let note = choice.note.as_ref().map(|note| format!(" | {note}"));
            format!("{}{}", choice.label, note.unwrap_or_default())
        };
        let mut asked = question("1-1");
        let labels: Vec<String> = all(&asked).iter().map(told).collect();
        assert_eq!(
            labels,
            [
                "allow_once",
                "allow_always | acpd remembers exactly this: run `make` in /w",
                "reject_once",
                "reject_once and say why"
            ]
        );
        let Question::Permission { options, .. } = &mut asked.question else { unreachable!() };
        options[0].name = "No, reject it".into();
        assert_eq!(
            told(&all(&asked)[0]),
            "allow once: \"No, reject it\" | the agent's name for it says the opposite"
        );
    }

    #[test]
    fn an_answer_that_is_not_whole_on_the_screen_allows_nothing() {
        let question = question("1-1");
        let mut card = QuestionCard::default();
        card.show(Some(&question));
        let cut = Drawn { choices: 0..1, ..drawn("1-1", true) };
        card.drawn(&cut);
        card.take_keys();
        press(&mut card, &question, Action::Down);
        press(&mut card, &question, Action::Down);
        assert!(matches!(press(&mut card, &question, Action::Confirm), KeyOutcome::Refused(_)));
        card.drawn(&drawn("1-1", true));
        assert!(matches!(
            press(&mut card, &question, Action::Confirm),
            KeyOutcome::Answered { .. }
        ));
    }

    fn all(question: &InteractionInfo) -> Vec<Choice> {
        choices(question, &Filled::default())
    }

    fn form(properties: Value) -> InteractionInfo {
        serde_json::from_value(json!({"id": "1", "agent": "demo", "at": 1, "question":
            {"kind": "form", "message": "How?", "schema": {"type": "object", "properties": properties}}}))
        .unwrap()
    }

    #[test]
    fn a_form_with_one_choice_is_answered_by_its_number() {
        let one = form(json!({"licence": {"type": "string", "enum": ["MIT", "ISC"]}}));
        let answer = GivenAnswer::Accept { content: Some(json!({"licence": "ISC"})) };
        assert_eq!(all(&one).remove(1).does, ChoiceEffect::Answer(answer));
    }

    #[test]
    fn a_form_that_is_not_flat_can_be_declined() {
        let deep = form(json!({"deep": {"type": "object", "properties": {}}}));
        assert!(form::read(&deep).is_none());
        assert_eq!(all(&deep).len(), 1);
    }
}
