use std::fmt;

use acp_wire::acp::{PermissionOption, PermissionRequest};
use serde::{Deserialize, Serialize};

use crate::config::Ruling;
use crate::facts::Understanding;
use crate::matching::{RuleReport, check};
use crate::one_line::quoted;
use crate::rule::{Call, Policy};
use crate::subject::{Remembered, Situation, Subject, Verdict};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum By {
    Rule {
        /// Name of the rule, or `rule N`.
        name: String,
    },
    Remembered {
        id: i64,
    },
    Default,
    /// `--yes` or `--deny` of one run.
    Once {
        verdict: Verdict,
    },
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { name } => write!(f, "rule {}", quoted(name)),
            Self::Remembered { id } => write!(f, "remembered decision {id}"),
            Self::Default => f.write_str("the policy's default"),
            Self::Once { verdict: Verdict::Allow } => f.write_str("--yes"),
            Self::Once { verdict: Verdict::Reject } => f.write_str("--deny"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Decision {
    Ask { why: String },
    Answer { option_id: String, verdict: Verdict, by: By },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Every rule, in order. The first that matches counts.
    pub rules: Vec<RuleReport>,
    pub subject: Option<Subject>,
    pub remembered: Option<i64>,
    pub decision: Decision,
}

/// Decides the answer to a permission request. Some requests only a person can answer; for others
/// these decide, in this order:
///
/// 1. the first rule that matches, if it rejects
/// 2. `--deny` of one run
/// 3. a remembered no
/// 4. the first rule that matches, if it allows
/// 5. `--yes` of one run, then a remembered yes; a `reject` rule that matches anywhere wins over both
/// 6. the first rule that matches, if it asks
/// 7. the default
///
/// A rule that might match asks instead of an allowing decision. `--yes` does not override such a
/// `reject` rule at any place; a remembered yes does, because it answers this very call.
pub fn decide(
    policy: &Policy,
    remembered: &[Remembered],
    situation: &Situation<'_>,
    request: &PermissionRequest<'_>,
) -> Decision {
    explain(policy, remembered, situation, request).decision
}

pub fn explain(
    policy: &Policy,
    remembered: &[Remembered],
    situation: &Situation<'_>,
    request: &PermissionRequest<'_>,
) -> Explanation {
    let facts = Understanding::of(request);
    let call = Call { situation, facts: &facts, home: policy.home.as_deref() };
    let rules: Vec<RuleReport> = policy.rules.iter().map(|rule| check(rule, call)).collect();
    let known = recall(remembered, situation, facts.subject.as_ref());
    let decision = match needs_a_person(request) {
        Some(why) => Decision::Ask { why },
        None => answer(policy.default, &rules, known, situation, request),
    };
    let remembered = known.map(|known| known.id);
    Explanation { rules, subject: facts.subject, remembered, decision }
}

fn answer(
    default: Ruling,
    rules: &[RuleReport],
    known: Option<&Remembered>,
    situation: &Situation<'_>,
    request: &PermissionRequest<'_>,
) -> Decision {
    let by = |rule: &RuleReport| By::Rule { name: rule.rule.clone() };
    let said = |verdict: Verdict| {
        let known = known.filter(|known| known.verdict == verdict);
        known.map(|known| By::Remembered { id: known.id })
    };
    let reject = |by| choose(request, Verdict::Reject, by);
    let allow = |by| choose(request, Verdict::Allow, by);

    // The first rule that surely matches, and the first doubtful rule before it.
    let sure = rules.iter().find(|rule| rule.matched);
    let doubtful_first =
        rules.iter().find(|rule| rule.matched || rule.might_match).filter(|rule| !rule.matched);
    if let Some(rule) = sure.filter(|rule| rule.ruling == Ruling::Reject) {
        return reject(by(rule));
    }
    if situation.once == Some(Verdict::Reject) {
        return reject(By::Once { verdict: Verdict::Reject });
    }
    if let Some(by) = said(Verdict::Reject) {
        return reject(by);
    }
    if let (None, Some(rule)) = (doubtful_first, sure.filter(|rule| rule.ruling == Ruling::Allow)) {
        return allow(by(rule));
    }
    let known = said(Verdict::Allow);
    let once = situation.once.map(|verdict| By::Once { verdict });
    if let Some(yes) = once.or_else(|| known.clone()) {
        let mut rejecting = rules.iter().filter(|rule| rule.ruling == Ruling::Reject);
        let might_reject = rejecting.clone().find(|rule| rule.might_match);
        return match (rejecting.find(|rule| rule.matched), might_reject) {
            (Some(rule), _) => reject(by(rule)),
            (None, Some(rule)) => known.map_or_else(|| ask(rule), allow),
            (None, None) => allow(yes),
        };
    }
    match (doubtful_first, sure, default) {
        (None, Some(rule), _) => ask(rule),
        (None, None, Ruling::Ask) => Decision::Ask { why: "no rule matches".to_owned() },
        (None, None, Ruling::Allow) => allow(By::Default),
        (_, None, Ruling::Reject) => reject(By::Default),
        (Some(rule), ..) => ask(rule),
    }
}

fn ask(rule: &RuleReport) -> Decision {
    let name = quoted(&rule.rule);
    Decision::Ask {
        why: if rule.might_match {
            format!("rule {name} might match: {}", rule.why.join("; "))
        } else {
            format!("rule {name} says ask")
        },
    }
}

fn recall<'a>(
    remembered: &'a [Remembered],
    situation: &Situation<'_>,
    subject: Option<&Subject>,
) -> Option<&'a Remembered> {
    let subject = subject?;
    let fits = |known: &&Remembered| {
        known.agent == situation.agent
            && known.workspace == situation.cwd
            && known.subject == *subject
    };
    remembered.iter().filter(fits).max_by_key(|known| known.at)
}

fn needs_a_person(request: &PermissionRequest<'_>) -> Option<String> {
    if request.tool_call_id.is_none() {
        return Some("the question is not about a tool call".to_owned());
    }
    if request.options.is_empty() {
        return Some("the question offers no answers".to_owned());
    }
    for (at, option) in request.options.iter().enumerate() {
        let PermissionOption { option_id, kind, .. } = option;
        if !matches!(kind.as_str(), "allow_once" | "allow_always" | "reject_once" | "reject_always")
        {
            return Some(format!("the answer {} is of an unknown kind", quoted(option_id)));
        }
        let others = &request.options[..at];
        if others.iter().any(|other| other.kind == *kind) {
            return Some(format!("there is more than one answer of the kind `{kind}`"));
        }
        if others.iter().any(|other| other.option_id == *option_id) {
            return Some(format!("two answers have the id {}", quoted(option_id)));
        }
    }
    None
}

/// Chooses the option for once if possible, else for always.
fn choose(request: &PermissionRequest<'_>, verdict: Verdict, by: By) -> Decision {
    let kinds = match verdict {
        Verdict::Allow => ["allow_once", "allow_always"],
        Verdict::Reject => ["reject_once", "reject_always"],
    };
    let find = |kind: &str| request.options.iter().find(|option| option.kind == kind);
    match kinds.into_iter().find_map(find) {
        Some(option) => Decision::Answer { option_id: option.option_id.clone(), verdict, by },
        None => Decision::Ask { why: format!("{by} says {verdict}, but no answer means that") },
    }
}
