//! An open question on the screen: shown whole, and answered only on purpose.
//!
//! ```text
//!  shown ──Tab──▶ has the keys ──1-9 ↑ ↓──▶ chosen ──Enter──▶ sent ──told by the daemon──▶ gone
//!    ▲               │ Esc                    │ Esc, another question in its place
//!    └───────────────┴────────────────────────┘
//! ```
//!
//! Architecture invariant: an answer needs three things of a person, in this order: going to the question, choosing,
//! and Enter. None of them counts for a question that was not on the screen yet, and nothing that allows anything
//! is sent before the end of what is allowed was on the screen.

mod answers;
mod sheet;
mod view;

use acp_wire::acp::{FieldKind, Form};
use acpd_api::{GivenAnswer, InteractionInfo, Question, Untrusted};
use acpd_view::text;
use acpd_view::text::Text;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::keymap::Action;

pub use answers::{Answer, answers};
pub use sheet::rows;
pub use view::asks;
pub(crate) use view::{height, view};

/// The longest name of an answer that is shown, in columns: it is the agent's.
const NAME: usize = 60;

/// The question on the screen, and how far its person is with it.
#[derive(Debug, Default)]
pub(crate) struct Card {
    asked: Option<Asked>,
}

#[derive(Debug)]
struct Asked {
    id: Untrusted,
    /// It was on the screen as it is now.
    is_drawn: bool,
    /// Its last line was on the screen.
    is_end_seen: bool,
    has_keys: bool,
    chosen: Option<usize>,
    /// Rows that are scrolled past.
    scroll: usize,
    /// The answer is on its way.
    is_sent: bool,
}

/// What was drawn of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Drawn {
    /// Which one.
    pub(crate) id: Untrusted,
    /// Whether its last line was on the screen.
    pub(crate) is_end: bool,
    /// The furthest that it can be scrolled to.
    pub(crate) most: usize,
    /// Rows that are on the screen.
    pub(crate) page: usize,
}

/// An answer to choose.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    /// For people.
    pub(crate) label: Text,
    /// What is sent.
    pub(crate) answer: GivenAnswer,
    /// It refuses, which is harmless.
    pub(crate) is_refusal: bool,
    /// Its person wants to say more to the agent.
    pub(crate) says_why: bool,
}

/// What a key did.
#[derive(Debug, PartialEq)]
pub(crate) enum Did {
    /// Nothing that others need to know.
    Nothing,
    /// The question gave the keys back.
    Left,
    /// It is answered.
    Answered {
        /// Which question.
        id: Untrusted,
        /// With what.
        answer: GivenAnswer,
        /// The person wants to say more to the agent.
        says_why: bool,
    },
    /// Why nothing happened.
    Refused(&'static str),
}

impl Card {
    /// Shows a question. Another one than before begins anew: without the keys, and with nothing chosen.
    pub(crate) fn show(&mut self, question: Option<&InteractionInfo>) {
        if self.asked.as_ref().map(|asked| &asked.id) != question.map(|question| &question.id) {
            self.asked = question.map(|question| Asked {
                id: question.id.clone(),
                is_drawn: false,
                is_end_seen: false,
                has_keys: false,
                chosen: None,
                scroll: 0,
                is_sent: false,
            });
        }
    }

    /// Which question it shows.
    pub(crate) fn id(&self) -> Option<&Untrusted> {
        self.asked.as_ref().map(|asked| &asked.id)
    }

    /// Whether keys go to the question.
    pub(crate) fn has_keys(&self) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.has_keys)
    }

    /// Gives the question the keys, if it was on the screen.
    pub(crate) fn take_keys(&mut self) {
        if let Some(asked) = self.asked.as_mut().filter(|asked| asked.is_drawn && !asked.is_sent) {
            asked.has_keys = true;
        }
    }

    /// Takes what was drawn.
    pub(crate) fn drawn(&mut self, drawn: &Drawn) {
        if let Some(asked) = self.asked.as_mut().filter(|asked| asked.id == drawn.id) {
            asked.is_drawn = true;
            asked.is_end_seen |= drawn.is_end;
            asked.scroll = asked.scroll.min(drawn.most);
        }
    }

    /// An answer was not taken: it can be given again.
    pub(crate) fn not_taken(&mut self, id: &Untrusted) {
        if let Some(asked) = self.asked.as_mut().filter(|asked| asked.id == *id) {
            asked.is_sent = false;
            asked.chosen = None;
        }
    }

    /// Takes a key. `page` is what fits on the screen of the question.
    pub(crate) fn key(
        &mut self,
        action: Action,
        digit: Option<usize>,
        question: &InteractionInfo,
        page: usize,
    ) -> Did {
        let Some(asked) = self.asked.as_mut().filter(|asked| asked.id == question.id) else {
            return Did::Nothing;
        };
        if !asked.has_keys || !asked.is_drawn {
            return Did::Nothing;
        }
        let choices = choices(question);
        match action {
            Action::Back => {
                asked.has_keys = false;
                asked.chosen = None;
                return Did::Left;
            }
            Action::Choose => {
                let at = digit.map(|digit| digit - 1).filter(|at| *at < choices.len());
                asked.chosen = at.or(asked.chosen);
            }
            Action::Down => {
                let next = asked.chosen.map_or(0, |at| at + 1);
                asked.chosen = Some(next).filter(|at| *at < choices.len()).or(asked.chosen);
            }
            Action::Up => {
                let before = asked.chosen.map_or(choices.len(), |at| at).checked_sub(1);
                asked.chosen = before.or(asked.chosen);
            }
            Action::PageDown => asked.scroll += page.max(1),
            Action::PageUp => asked.scroll = asked.scroll.saturating_sub(page.max(1)),
            Action::Confirm => {
                let Some(choice) = asked.chosen.and_then(|at| choices.into_iter().nth(at)) else {
                    return Did::Refused("nothing is chosen yet: a number or an arrow chooses");
                };
                if !choice.is_refusal && !asked.is_end_seen {
                    return Did::Refused("see all of it first: PgDn shows the rest");
                }
                asked.is_sent = true;
                asked.has_keys = false;
                let Choice { answer, says_why, .. } = choice;
                return Did::Answered { id: asked.id.clone(), answer, says_why };
            }
            _ => {}
        }
        Did::Nothing
    }
}

/// The answers to choose from, in the order of their numbers.
pub(crate) fn choices(question: &InteractionInfo) -> Vec<Choice> {
    let declined = |label: &'static str| Choice {
        label: label.into(),
        answer: GivenAnswer::Decline,
        is_refusal: true,
        says_why: false,
    };
    match &question.question {
        Question::Permission { options, shown, .. } => {
            let always = shown.as_ref().and_then(|shown| shown.always.as_ref());
            let choice = |option: &acpd_api::OptionInfo| {
                let name = Text::from(&option.name).cut(NAME);
                let label = match always.filter(|_| option.kind == "allow_always") {
                    Some(always) => text!("{}: {}", name, always),
                    None => name,
                };
                let answer = GivenAnswer::Option { option: option.option_id.raw().to_owned() };
                let is_refusal = option.kind.raw().starts_with("reject_");
                Choice { label, answer, is_refusal, says_why: false }
            };
            let mut choices: Vec<Choice> = options.iter().map(choice).collect();
            let rejects = options.iter().find(|option| option.kind == "reject_once");
            choices.extend(rejects.map(|option| Choice {
                label: text!("{} and say why", Text::from(&option.name).cut(NAME)),
                says_why: true,
                ..choice(option)
            }));
            choices
        }
        Question::Url { .. } => {
            let answer = GivenAnswer::Accept { content: None };
            let label = "agree, and open the page yourself".into();
            let agree = Choice { label, answer, is_refusal: false, says_why: false };
            vec![agree, declined("decline")]
        }
        Question::Form { schema, .. } => {
            let mut choices = of_form(schema).unwrap_or_default();
            choices.push(declined("decline"));
            choices
        }
    }
}

/// The answers of a form that asks for one of several things; none for other forms.
fn of_form(schema: &Value) -> Option<Vec<Choice>> {
    let form = Form::from_raw(&to_raw_value(schema).ok()?).ok()?;
    let [field] = &form.fields[..] else { return None };
    let choice = |label: Text, value: Value| Choice {
        label,
        answer: GivenAnswer::Accept { content: Some(json!({ &field.name: value })) },
        is_refusal: false,
        says_why: false,
    };
    match &field.kind {
        FieldKind::One(values) => {
            let of = |value: &acp_wire::acp::Choice| {
                let label = Text::from(&Untrusted::from(&value.title)).cut(NAME);
                choice(label, json!(value.value))
            };
            Some(values.iter().map(of).collect())
        }
        FieldKind::Boolean => {
            Some(vec![choice("yes".into(), json!(true)), choice("no".into(), json!(false))])
        }
        _ => None,
    }
}

/// Whether a form has more to fill in than one choice.
fn needs_filling(question: &InteractionInfo) -> bool {
    matches!(&question.question, Question::Form { schema, .. } if of_form(schema).is_none())
}

#[cfg(test)]
mod tests {
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
        Drawn { id: id.into(), is_end, most: 9, page: 4 }
    }

    fn on_screen(question: &InteractionInfo) -> Card {
        let mut card = Card::default();
        card.show(Some(question));
        card.drawn(&drawn(question.id.raw(), true));
        card
    }

    fn press(card: &mut Card, question: &InteractionInfo, action: Action) -> Did {
        card.key(action, Some(1), question, 4)
    }

    #[test]
    fn an_answer_takes_the_keys_a_choice_and_enter() {
        let question = question("1-1");
        let mut card = on_screen(&question);
        assert_eq!(press(&mut card, &question, Action::Choose), Did::Nothing);
        assert_eq!(press(&mut card, &question, Action::Confirm), Did::Nothing);
        card.take_keys();
        assert!(matches!(press(&mut card, &question, Action::Confirm), Did::Refused(_)));
        press(&mut card, &question, Action::Choose);
        let answer = GivenAnswer::Option { option: "allow_once".into() };
        let given = Did::Answered { id: "1-1".into(), answer, says_why: false };
        assert_eq!(press(&mut card, &question, Action::Confirm), given);
        assert_eq!(press(&mut card, &question, Action::Confirm), Did::Nothing, "it is sent once");
        card.take_keys();
        assert!(!card.has_keys(), "what is sent takes no keys");
    }

    #[test]
    fn a_question_that_was_not_drawn_takes_no_keys() {
        let question = question("1-1");
        let mut card = Card::default();
        card.show(Some(&question));
        card.take_keys();
        assert!(!card.has_keys());
    }

    #[test]
    fn a_question_in_the_place_of_another_begins_anew() {
        let (one, two) = (question("1-1"), question("1-2"));
        let mut card = on_screen(&one);
        card.take_keys();
        press(&mut card, &one, Action::Choose);
        card.show(Some(&two));
        card.drawn(&drawn("1-1", true));
        assert_eq!(press(&mut card, &two, Action::Confirm), Did::Nothing);
        card.drawn(&drawn("1-2", true));
        card.take_keys();
        assert!(matches!(press(&mut card, &two, Action::Confirm), Did::Refused(_)));
    }

    #[test]
    fn m7_allowing_waits_until_the_end_was_on_the_screen_and_refusing_does_not() {
        let question = question("1-1");
        let mut card = Card::default();
        card.show(Some(&question));
        card.drawn(&drawn("1-1", false));
        card.take_keys();
        press(&mut card, &question, Action::Choose);
        assert!(matches!(press(&mut card, &question, Action::Confirm), Did::Refused(_)));
        press(&mut card, &question, Action::PageDown);
        card.drawn(&drawn("1-1", true));
        assert!(matches!(press(&mut card, &question, Action::Confirm), Did::Answered { .. }));
        let mut card = Card::default();
        card.show(Some(&question));
        card.drawn(&drawn("1-1", false));
        card.take_keys();
        press(&mut card, &question, Action::Up);
        let did = press(&mut card, &question, Action::Confirm);
        assert!(matches!(did, Did::Answered { says_why: true, .. }));
    }

    #[test]
    fn choices_say_what_always_remembers() {
        let labels: Vec<String> =
            choices(&question("1-1")).iter().map(|choice| choice.label.to_string()).collect();
        assert_eq!(
            labels,
            [
                "allow_once",
                "allow_always: run `make` in /w",
                "reject_once",
                "reject_once and say why"
            ]
        );
    }

    #[test]
    fn a_form_with_one_choice_is_answered_by_its_number() {
        let form = |properties: Value| -> InteractionInfo {
            serde_json::from_value(json!({"id": "1", "agent": "demo", "at": 1, "question":
                {"kind": "form", "message": "Which licence?",
                    "schema": {"type": "object", "properties": properties}}}))
            .unwrap()
        };
        let one = form(json!({"licence": {"type": "string", "enum": ["MIT", "ISC"]}}));
        let given = choices(&one).remove(1);
        assert_eq!(given.answer, GivenAnswer::Accept { content: Some(json!({"licence": "ISC"})) });
        let two = form(json!({"name": {"type": "string"}, "really": {"type": "boolean"}}));
        assert!(needs_filling(&two));
        assert_eq!(choices(&two).len(), 1, "it can be declined");
    }
}
