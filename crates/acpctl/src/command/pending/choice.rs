//! Finds the option that the user means. If several match, the user chooses; acpctl never guesses.

use acpd_api::{GivenAnswer, InteractionInfo, OptionInfo};
use acpd_view::about;

use super::{Decision, call};
use crate::confirm::pick;
use crate::error::{CommandError, Result};
use crate::info::question::described;
use crate::text::{Text, shell_word, text};
use crate::ui::Ui;

pub(super) fn of_all(
    found: &InteractionInfo,
    options: &[OptionInfo],
    ui: &mut Ui,
) -> Result<GivenAnswer> {
    let all: Vec<&OptionInfo> = options.iter().collect();
    let option = chosen(found, &all, "the question needs an option".into(), &"answer".into(), ui)?;
    Ok(GivenAnswer::Option { option })
}

/// Returns the option for yes or no if several match and acpd must know which.
pub(super) fn of_several(
    found: &InteractionInfo,
    options: &[OptionInfo],
    decision: Decision,
    always: bool,
    ui: &mut Ui,
) -> Result<Option<String>> {
    let several = meant(options, decision, always);
    if several.len() < 2 {
        return Ok(None);
    }
    let verb = if decision == Decision::Allow { "allow" } else { "deny" };
    let command = text!("{}{}", verb, if always { " --always" } else { "" });
    let why = text!("{} options of the question mean `{}`", several.len(), command);
    chosen(found, &several, why, &command, ui).map(Some)
}

/// Returns the options that yes or no can mean: those of the matching kind, or else of the next
/// kind.
fn meant(options: &[OptionInfo], decision: Decision, always: bool) -> Vec<&OptionInfo> {
    let (once, forever) = match decision {
        Decision::Allow => ("allow_once", "allow_always"),
        Decision::Deny => ("reject_once", "reject_always"),
    };
    let kinds = if always { [forever, once] } else { [once, forever] };
    let of_kind = kinds.map(|kind| options.iter().filter(|option| option.kind == kind).collect());
    of_kind.into_iter().find(|of: &Vec<_>| !of.is_empty()).unwrap_or_default()
}

/// Asks on a terminal; otherwise fails with the list of commands.
fn chosen(
    found: &InteractionInfo,
    options: &[&OptionInfo],
    why: Text,
    command: &Text,
    ui: &mut Ui,
) -> Result<String> {
    if !ui.can_ask() {
        let lines = options.iter().map(|option| {
            let chosen = shell_word(&option.option_id);
            let label = about::option(option.kind.raw(), &option.name);
            text!("\n  acpctl {} {} --option {}  # {}", command, found.id, chosen, label)
        });
        let hint = text!("choose one:{}", lines.collect::<Text>());
        return Err(CommandError::usage(why).hint(hint));
    }
    ui.say(described(found));
    ui.talk(&call::omitted_details(found));
    let labels = options.iter().map(|option| about::option(option.kind.raw(), &option.name));
    let at = pick(ui, "> ", labels, |_| None)?;
    Ok(options[at].option_id.raw().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(kinds: &[&str]) -> Vec<OptionInfo> {
        let option = |kind: &&str| {
            let option_id = format!("o-{kind}").into();
            OptionInfo { option_id, name: (*kind).into(), kind: (*kind).into() }
        };
        kinds.iter().map(option).collect()
    }

    #[test]
    fn the_kind_that_says_so_comes_before_the_other_one() {
        let all = options(&["allow_once", "allow_always", "allow_always", "reject_once"]);
        let count = |decision, always| meant(&all, decision, always).len();
        assert_eq!(count(Decision::Allow, false), 1, "the one plain yes");
        assert_eq!(count(Decision::Allow, true), 2);
        assert_eq!(count(Decision::Deny, true), 1);
        assert!(meant(&options(&["chooser"]), Decision::Allow, false).is_empty());
    }
}
