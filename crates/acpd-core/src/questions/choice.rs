//! Meaning of answers that are given outside of the conversation.

use std::collections::BTreeSet;

use acp_wire::acp::{ElicitationAnswer, ElicitationMode, PermissionAnswer, PermissionOption};
use acpd_api::GivenAnswer;
use acpd_api::escape::shell_word;
use acpd_policy::Verdict;

use crate::fault::Fault;
use crate::ids::InteractionId;
use crate::questions::question::{OpenQuestion, QuestionAnswer, QuestionKind};

/// Returns the verb of a verdict, and its option kinds: once and always.
fn words(verdict: Verdict) -> (&'static str, &'static str, &'static str) {
    match verdict {
        Verdict::Allow => ("allow", "allow_once", "allow_always"),
        Verdict::Reject => ("deny", "reject_once", "reject_always"),
    }
}

/// Returns the verdict of an option for always.
pub(super) fn lasting(option: &PermissionOption) -> Option<Verdict> {
    let verdicts = [Verdict::Allow, Verdict::Reject];
    verdicts.into_iter().find(|verdict| words(*verdict).2 == option.kind)
}

pub(super) fn meant(
    id: InteractionId,
    kind: &QuestionKind,
    given: GivenAnswer,
) -> Result<(QuestionAnswer, Option<Verdict>), Fault> {
    match (kind, given) {
        (QuestionKind::Permission(options), GivenAnswer::Option { option }) => {
            if !options.iter().any(|known| known.option_id == option) {
                return Err(Fault::invalid(format!("there is no option `{option}`"))
                    .hint(choosing(&format!("answer {}", id.text()), options)));
            }
            Ok((QuestionAnswer::Permission(PermissionAnswer::Selected(option)), None))
        }
        (QuestionKind::Permission(options), GivenAnswer::Allow { always, option }) => {
            option_for(Verdict::Allow, id, options, always, option.as_deref())
        }
        (QuestionKind::Permission(options), GivenAnswer::Deny { always, option }) => {
            option_for(Verdict::Reject, id, options, always, option.as_deref())
        }
        (QuestionKind::Elicitation(mode), GivenAnswer::Accept { content }) => {
            let accepted = ElicitationAnswer::accept(content, mode).map_err(Fault::invalid)?;
            Ok((QuestionAnswer::Elicitation(accepted), None))
        }
        (
            QuestionKind::Elicitation(_),
            GivenAnswer::Decline | GivenAnswer::Deny { always: false, option: None },
        ) => Ok((QuestionAnswer::Elicitation(ElicitationAnswer::Decline), None)),
        (QuestionKind::Permission(_), _) => {
            Err(Fault::invalid("this question is answered by one of its options"))
        }
        (QuestionKind::Elicitation(_), _) => {
            Err(Fault::invalid("this question is answered by a form, or by accepting a page"))
        }
    }
}

impl OpenQuestion {
    /// Allowing for once needs a call that is shown completely, and a question without a page.
    pub(crate) fn is_for_once(&self, given: &GivenAnswer) -> bool {
        let offers = |verdict| self.options().iter().any(|option| option.kind == words(verdict).1);
        let is_whole = || self.frozen.as_ref().is_some_and(|frozen| frozen.shown.is_whole());
        match given {
            GivenAnswer::Allow { always: false, option: None } => {
                offers(Verdict::Allow) && is_whole()
            }
            GivenAnswer::Deny { always: false, option: None } => offers(Verdict::Reject),
            GivenAnswer::Accept { .. } => {
                matches!(&self.kind, QuestionKind::Elicitation(ElicitationMode::Form(_)))
            }
            GivenAnswer::Decline => true,
            _ => false,
        }
    }

    pub(super) fn not_remembered(&self, id: InteractionId, verdict: Verdict) -> Fault {
        let (word, _, forever) = words(verdict);
        let own: Vec<_> = self.options().iter().filter(|option| option.kind == forever).collect();
        let own = if own.is_empty() {
            String::new()
        } else {
            let own = choosing(&format!("{word} --always {}", id.text()), own);
            format!("; the agent's own option for that: {own}")
        };
        let text = "the question does not say enough to know it again, so it cannot be remembered";
        Fault::invalid(text)
            .hint(format!("answer it without `--always`, or write a rule under `[policy]`{own}"))
    }
}

/// Of several options the user must choose. A lasting answer takes the option for once if there is
/// one: acpd remembers exactly this call, but the agent's option for always may cover more, and the
/// agent would no longer ask.
fn option_for(
    verdict: Verdict,
    id: InteractionId,
    options: &[PermissionOption],
    always: bool,
    wanted: Option<&str>,
) -> Result<(QuestionAnswer, Option<Verdict>), Fault> {
    let (word, once, forever) = words(verdict);
    let of_kind = |kind| distinct(options.iter().filter(move |option| option.kind == kind));
    let is_for_once = !always || of_kind(once).len() == 1 && of_kind(forever).len() < 2;
    let kinds = if is_for_once { [once, forever] } else { [forever, once] };
    let fitting: Vec<&PermissionOption> = match wanted {
        Some(wanted) => {
            let all = kinds.into_iter().flat_map(of_kind);
            distinct(all.filter(|option| option.option_id == wanted))
        }
        None => {
            let mut by_kind = kinds.into_iter().map(of_kind);
            by_kind.find(|found| !found.is_empty()).unwrap_or_default()
        }
    };
    let id = id.text();
    match fitting.as_slice() {
        [option] => {
            let chosen = PermissionAnswer::Selected(option.option_id.clone());
            Ok((QuestionAnswer::Permission(chosen), always.then_some(verdict)))
        }
        [] => {
            let text = format!("no such option of the question means `{word}`");
            Err(Fault::invalid(text).hint(choosing(&format!("answer {id}"), options)))
        }
        several => {
            let always = if always { " --always" } else { "" };
            let text = format!("several options of the question mean `{word}{always}`");
            let command = format!("{word}{always} {id}");
            Err(Fault::invalid(text).hint(choosing(&command, several.iter().copied())))
        }
    }
}

fn choosing<'a>(command: &str, options: impl IntoIterator<Item = &'a PermissionOption>) -> String {
    let lines = distinct(options)
        .into_iter()
        .map(|option| format!("`acpctl {command} --option {}`", shell_word(&option.option_id)));
    lines.collect::<Vec<_>>().join(" or ")
}

/// The agent gets only the id, so options with one id are the same answer.
fn distinct<'a>(
    options: impl IntoIterator<Item = &'a PermissionOption>,
) -> Vec<&'a PermissionOption> {
    let mut known = BTreeSet::new();
    options.into_iter().filter(|option| known.insert(&option.option_id)).collect()
}
