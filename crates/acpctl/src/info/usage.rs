//! Tokens and cost in words.

use acpd_api::{Cost, Usage};

use crate::human;
use crate::text::{Text, text};

/// Costs, one for each currency.
pub(crate) fn costs<'a>(costs: impl IntoIterator<Item = &'a Cost>) -> Text {
    let costs = costs.into_iter();
    Text::join(costs.map(|cost| text!("{} {}", cost.amount, cost.currency)), ", ")
}

/// Describes reported usage: `12k of 200k tokens in the context, 0.42 USD`.
pub(crate) fn sentence(usage: &Usage) -> Text {
    let tokens = usage.used.map(|used| match usage.size.filter(|size| *size > 0) {
        Some(size) => {
            text!("{} of {} tokens in the context", human::count(used), human::count(size))
        }
        None => text!("{} tokens in the context", human::count(used)),
    });
    Text::join(tokens.into_iter().chain(usage.cost.as_ref().map(|cost| costs([cost]))), ", ")
}
