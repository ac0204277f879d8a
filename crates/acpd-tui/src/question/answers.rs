//! The answers to a question by their numbers, for who shows them line by line.

use acpd_api::{GivenAnswer, InteractionInfo};
use acpd_view::text::Text;

use super::{Choice, choices};

/// An answer to choose.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// For people.
    pub label: Text,
    /// What is sent.
    pub given: GivenAnswer,
    /// Its person wants to say more to the agent.
    pub says_why: bool,
}

/// The answers, in the order of their numbers.
pub fn answers(question: &InteractionInfo) -> Vec<Answer> {
    let answer = |Choice { label, answer, says_why, .. }| Answer { label, given: answer, says_why };
    choices(question).into_iter().map(answer).collect()
}
