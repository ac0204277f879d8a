//! Decides a question, and explains the decision.

use std::fmt;

use acp_wire::acp::{PermissionOption, PermissionRequest};
use serde::{Deserialize, Serialize};

use crate::config::Ruling;
use crate::facts::Facts;
use crate::matching::{Outcome, check};
use crate::one_line::quoted;
use crate::policy::Policy;
use crate::rule::{Call, Rule};
use crate::situation::{Situation, Verdict};
use crate::subject::{Remembered, Subject, subject};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum By {
    /// The rule of this name.
    Rule {
        /// Its name, or `rule N`.
        name: String,
    },
    /// The remembered decision with this id.
    Remembered { id: i64 },
    /// The default of the policy.
    Default,
    /// The answer that was given beforehand for one run.
    Once { verdict: Verdict },
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

/// What to do with a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Decision {
    /// A person answers it.
    Ask {
        /// Why nothing else answers it.
        why: String,
    },
    /// This is the answer.
    Answer {
        /// The option that is chosen.
        option_id: String,
        verdict: Verdict,
        by: By,
    },
}

/// What became of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    /// Its name, or `rule N`.
    pub rule: String,
    pub ruling: Ruling,
    pub matched: bool,
    /// Whether it might match: that depends on something in the call that cannot be told.
    pub might_match: bool,
    /// One reason for each condition that holds, or the reason of the first that does not; none
    /// for a rule without conditions.
    pub why: Vec<String>,
}

impl fmt::Display for RuleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match (self.matched, self.might_match) {
            (true, _) => "matches",
            (false, true) => "might match",
            (false, false) => "does not match",
        };
        write!(f, "{} ({}) {verb}", quoted(&self.rule), self.ruling)?;
        match self.why.as_slice() {
            [] => f.write_str(": it has no conditions"),
            why => write!(f, ": {}", why.join("; ")),
        }
    }
}

/// A decision and all that led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Every rule, in order. The first that matches counts.
    pub rules: Vec<RuleReport>,
    /// What could be remembered about the call.
    pub subject: Option<Subject>,
    /// The remembered decision about it.
    pub remembered: Option<i64>,
    pub decision: Decision,
}

/// Decides who answers `request`.
///
/// In this order: a question that only a person can answer is asked; a `reject` rule; `--deny`; a
/// remembered no; an `allow` rule; `--yes`; a remembered yes; an `ask` rule; the default. Of the
/// rules only the first that matches counts, with one exception: `--yes` or a remembered yes is used
/// only if no `reject` rule matches anywhere.
///
/// A rule that might match asks, in the place of what would allow. `--yes` does not pass over such a
/// `reject` rule wherever it stands; a remembered yes does, since it is an answer to this very call.
pub fn decide(
    policy: &Policy,
    remembered: &[Remembered],
    situation: &Situation<'_>,
    request: &PermissionRequest<'_>,
) -> Decision {
    if let Some(why) = needs_a_person(request) {
        return Decision::Ask { why };
    }
    let facts = Facts::of(request);
    let known = recall(remembered, situation, subject(&facts, request).as_ref());
    let call = Call { situation, facts: &facts, home: policy.home.as_deref() };
    let outcomes = policy.rules.iter().map(|rule| (rule, check(rule, call)));
    let candidates: Vec<Candidate<'_>> = outcomes.filter_map(Candidate::new).collect();
    answer(policy.default, &candidates, known, situation, request)
}

/// Decides like [`decide`] and tells how it came to that.
pub fn explain(
    policy: &Policy,
    remembered: &[Remembered],
    situation: &Situation<'_>,
    request: &PermissionRequest<'_>,
) -> Explanation {
    let facts = Facts::of(request);
    let call = Call { situation, facts: &facts, home: policy.home.as_deref() };
    let report = |rule: &Rule| {
        let outcome = check(rule, call);
        RuleReport {
            rule: rule.name.clone(),
            ruling: rule.ruling,
            matched: matches!(outcome, Outcome::Matches(_)),
            might_match: matches!(outcome, Outcome::Might(_)),
            why: match outcome {
                Outcome::Matches(reasons) => reasons,
                Outcome::Might(why) | Outcome::Differs(why) => vec![why],
            },
        }
    };
    let subject = subject(&facts, request);
    Explanation {
        rules: policy.rules.iter().map(report).collect(),
        remembered: recall(remembered, situation, subject.as_ref()).map(|known| known.id),
        subject,
        decision: decide(policy, remembered, situation, request),
    }
}

/// A rule that matches, or might.
struct Candidate<'a> {
    rule: &'a Rule,
    /// Why it only might match.
    doubt: Option<String>,
}

impl<'a> Candidate<'a> {
    fn new((rule, outcome): (&'a Rule, Outcome)) -> Option<Self> {
        match outcome {
            Outcome::Matches(_) => Some(Self { rule, doubt: None }),
            Outcome::Might(doubt) => Some(Self { rule, doubt: Some(doubt) }),
            Outcome::Differs(_) => None,
        }
    }

    fn is_sure(&self) -> bool {
        self.doubt.is_none()
    }

    fn says(&self, ruling: Ruling) -> bool {
        self.rule.ruling == ruling
    }

    fn by(&self) -> By {
        By::Rule { name: self.rule.name.clone() }
    }

    fn ask(&self) -> Decision {
        let name = quoted(&self.rule.name);
        Decision::Ask {
            why: match &self.doubt {
                Some(doubt) => format!("rule {name} might match: {doubt}"),
                None => format!("rule {name} says ask"),
            },
        }
    }
}

fn answer(
    default: Ruling,
    rules: &[Candidate<'_>],
    known: Option<&Remembered>,
    situation: &Situation<'_>,
    request: &PermissionRequest<'_>,
) -> Decision {
    let said = |verdict: Verdict| {
        let known = known.filter(|known| known.verdict == verdict);
        known.map(|known| By::Remembered { id: known.id })
    };
    let reject = |by| choose(request, Verdict::Reject, by);
    let allow = |by| choose(request, Verdict::Allow, by);

    // The first rule that surely matches, and the doubtful rule before it, if there is one.
    let sure = rules.iter().find(|rule| rule.is_sure());
    let doubtful_first = rules.first().filter(|rule| !rule.is_sure());
    if let Some(rule) = sure.filter(|rule| rule.says(Ruling::Reject)) {
        return reject(rule.by());
    }
    if situation.once == Some(Verdict::Reject) {
        return reject(By::Once { verdict: Verdict::Reject });
    }
    if let Some(by) = said(Verdict::Reject) {
        return reject(by);
    }
    if let (None, Some(rule)) = (doubtful_first, sure.filter(|rule| rule.says(Ruling::Allow))) {
        return allow(rule.by());
    }
    let known = said(Verdict::Allow);
    let once = situation.once.map(|verdict| By::Once { verdict });
    if let Some(yes) = once.or_else(|| known.clone()) {
        let mut rejecting = rules.iter().filter(|rule| rule.says(Ruling::Reject));
        let might_reject = rejecting.clone().find(|rule| !rule.is_sure());
        return match (rejecting.find(|rule| rule.is_sure()), might_reject) {
            (Some(rule), _) => reject(rule.by()),
            (None, Some(rule)) => known.map_or_else(|| rule.ask(), allow),
            (None, None) => allow(yes),
        };
    }
    match (doubtful_first, sure, default) {
        (None, Some(rule), _) => rule.ask(),
        (None, None, Ruling::Ask) => Decision::Ask { why: "no rule matches".to_owned() },
        (None, None, Ruling::Allow) => allow(By::Default),
        (_, None, Ruling::Reject) => reject(By::Default),
        (Some(rule), ..) => rule.ask(),
    }
}

/// The newest remembered decision about the subject.
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

/// Why only a person can answer, if that is so.
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

/// The option for the verdict: for this once if there is one, for always else.
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
