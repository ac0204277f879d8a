//! Which option of a permission question is meant. Where several are, a person chooses; nobody guesses.

use acpd_api::{GivenAnswer, InteractionInfo, OptionInfo};

use super::{Decision, described, nothing, wrong};
use crate::error::{CommandError, Result};
use crate::paint::one_line;
use crate::ui::Ui;

/// Lets a person choose among all options.
pub(super) fn of_all(
    found: &InteractionInfo,
    options: &[OptionInfo],
    ui: &mut Ui,
) -> Result<GivenAnswer> {
    let all: Vec<&OptionInfo> = options.iter().collect();
    let option = chosen(found, &all, "an option is to be chosen", "answer", ui)?;
    Ok(GivenAnswer::Option { option })
}

/// The option that a plain yes or no means, if it has to be told which: there are several.
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
    let command = match (decision, always) {
        (Decision::Allow, false) => "allow",
        (Decision::Allow, true) => "allow --always",
        (Decision::Deny, false) => "deny",
        (Decision::Deny, true) => "deny --always",
    };
    let text = format!("{} options of the question mean `{command}`", several.len());
    chosen(found, &several, &text, command, ui).map(Some)
}

/// The options that a plain yes or no can mean: those of the kind that says so, else those of the next
/// best kind.
fn meant(options: &[OptionInfo], decision: Decision, always: bool) -> Vec<&OptionInfo> {
    let (once, forever) = match decision {
        Decision::Allow => ("allow_once", "allow_always"),
        Decision::Deny => ("reject_once", "reject_always"),
    };
    let kinds = if always { [forever, once] } else { [once, forever] };
    let of_kind = kinds.map(|kind| options.iter().filter(|option| option.kind == kind).collect());
    of_kind.into_iter().find(|of: &Vec<_>| !of.is_empty()).unwrap_or_default()
}

/// Asks on a terminal; elsewhere it is an error that lists the commands.
fn chosen(
    found: &InteractionInfo,
    options: &[&OptionInfo],
    why: &str,
    command: &str,
    ui: &mut Ui,
) -> Result<String> {
    if !ui.can_ask() {
        let lines = options.iter().map(|option| {
            let chosen = quoted(&option.option_id);
            let name = one_line(&option.name);
            format!("\n  acpctl {command} {} --option {chosen}  # {name}", found.id)
        });
        let hint = format!("choose one:{}", lines.collect::<String>());
        return Err(CommandError::usage(why).hint(hint));
    }
    ui.say(&described(found));
    for (number, option) in (1..).zip(options) {
        ui.say(&format!("  {number}  {}", one_line(&option.name)));
    }
    loop {
        let Some(line) = ui.ask("> ")? else { return Err(nothing()) };
        let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let Some(option) = number.and_then(|number| options.get(number)) {
            return Ok(option.option_id.clone());
        }
        wrong(ui, &format!("one of the numbers 1 to {} is wanted", options.len()));
    }
}

/// A word for a shell, whatever an agent has put into it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@".contains(c);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", one_line(word).replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(kinds: &[&str]) -> Vec<OptionInfo> {
        let option = |kind: &&str| {
            let (option_id, name) = (format!("o-{kind}"), (*kind).to_owned());
            OptionInfo { option_id, name, kind: (*kind).to_owned() }
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

    #[test]
    fn what_an_agent_calls_an_option_is_one_word_for_a_shell() {
        assert_eq!(quoted("always_proceed"), "always_proceed");
        assert_eq!(quoted("a; rm -rf ~"), "'a; rm -rf ~'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("-x"), "'-x'");
        assert_eq!(quoted(""), "''");
    }
}
