//! Whether a rule matches a call, and why.

use crate::config::Ruling;
use crate::glob::Glob;
use crate::place;
use crate::rule::{Call, Check, Rule, plain};
use crate::{allowing, cautious};

/// What became of a rule.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It matches, for a reason of each condition.
    Matches(Vec<String>),
    /// It matches if something does that cannot be told.
    Might(String),
    /// It does not match.
    Differs(String),
}

/// Whether every condition holds.
pub(crate) fn check(rule: &Rule, call: Call<'_>) -> Outcome {
    let Call { situation, facts, .. } = call;
    let about_the_session = [
        rule.agent.as_ref().map(|globs| {
            plain("agent", situation.agent, globs, |glob| glob.matches(situation.agent))
        }),
        rule.workspace.as_ref().map(|globs| {
            let cwd = situation.cwd;
            let place = match rule.ruling {
                Ruling::Allow => place::resolve(cwd, cwd, None),
                Ruling::Ask | Ruling::Reject => Some(place::reading(cwd, cwd, None)),
            };
            let matches = |glob: &Glob| place.as_ref().is_some_and(|place| glob.matches(place));
            plain("workspace", situation.cwd, globs, matches)
        }),
        rule.kind.as_ref().map(|kinds| {
            let is_listed = kinds.contains(&facts.kind);
            let verb = if is_listed { "is" } else { "is not" };
            let why = format!("kind `{}` {verb} in the list", facts.kind);
            if is_listed { Ok(why) } else { Err(why) }
        }),
    ];
    let about_the_call = if rule.ruling == Ruling::Allow {
        allowing::checks(rule, call)
    } else {
        cautious::checks(rule, call)
    };
    let (mut reasons, mut might) = (Vec::new(), None);
    for check in about_the_session.into_iter().flatten().map(Check::from).chain(about_the_call) {
        match check {
            Check::Holds(why) => reasons.push(why),
            Check::Might(why) => might = might.or(Some(why)),
            Check::Fails(why) => return Outcome::Differs(why),
        }
    }
    might.map_or(Outcome::Matches(reasons), Outcome::Might)
}
