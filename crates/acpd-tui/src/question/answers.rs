//! The answers to a question, for who shows them line by line.

use acpd_api::{GivenAnswer, InteractionInfo, Question};
use acpd_view::text::Text;

use super::form::Filled;
use super::{Choice, Does, choices};

/// An answer that needs nothing to be filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub label: Text,
    /// What there is to know of it.
    pub note: Option<Text>,
    pub given: GivenAnswer,
    /// Its person wants to say more to the agent.
    pub says_why: bool,
}

/// The answers that need nothing to be filled in, in the order of their numbers. Of a form, only the refusals.
pub fn answers(question: &InteractionInfo) -> Vec<Answer> {
    let is_form = matches!(question.question, Question::Form { .. });
    let choices = choices(question, &Filled::default()).into_iter();
    choices
        .filter(|choice| !is_form || choice.is_refusal)
        .filter_map(|Choice { label, note, does, says_why, .. }| match does {
            Does::Answer(given) => Some(Answer { label, note, given, says_why }),
            _ => None,
        })
        .collect()
}
