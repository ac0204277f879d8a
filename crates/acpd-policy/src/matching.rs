use serde::Serialize;

use crate::config::Ruling;
use crate::glob::Glob;
use crate::place;
use crate::rule::{Call, Check, Rule, plain};
use crate::{allowing, cautious};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    /// Name of the rule, or `rule N`.
    pub rule: String,
    pub ruling: Ruling,
    pub matched: bool,
    /// The result depends on something unknown in the call.
    pub might_match: bool,
    /// One reason for each condition that holds, or for the first that does not; empty without
    /// conditions.
    pub why: Vec<String>,
}

pub(crate) fn check(rule: &Rule, call: Call<'_>) -> RuleReport {
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
    let report = |matched, might_match, why| RuleReport {
        rule: rule.name.clone(),
        ruling: rule.ruling,
        matched,
        might_match,
        why,
    };
    let (mut reasons, mut might) = (Vec::new(), None);
    for check in about_the_session.into_iter().flatten().map(Check::from).chain(about_the_call) {
        match check {
            Check::Holds(why) => reasons.push(why),
            Check::Might(why) => might = might.or(Some(why)),
            Check::Fails(why) => return report(false, false, vec![why]),
        }
    }
    match might {
        Some(why) => report(false, true, vec![why]),
        None => report(true, false, reasons),
    }
}
