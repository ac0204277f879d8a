//! Answers to a question, for programs that show them line by line.

use acpd_api::{GivenAnswer, InteractionInfo, Question};
use acpd_view::text::Text;

use super::form::Filled;
use super::{Choice, ChoiceEffect, choices};

#[derive(Debug, Clone, PartialEq)]
pub struct PlainAnswer {
    pub label: Text,
    pub note: Option<Text>,
    pub given: GivenAnswer,
    /// The user wants to send the agent a reason.
    pub says_why: bool,
}

/// Returns the answers in the order of their numbers. A form has refusals only.
pub fn answers(question: &InteractionInfo) -> Vec<PlainAnswer> {
    let is_form = matches!(question.question, Question::Form { .. });
    let choices = choices(question, &Filled::default()).into_iter();
    choices
        .filter(|choice| !is_form || choice.is_refusal)
        .filter_map(|Choice { label, note, does, says_why, .. }| match does {
            ChoiceEffect::Answer(given) => Some(PlainAnswer { label, note, given, says_why }),
            _ => None,
        })
        .collect()
}
