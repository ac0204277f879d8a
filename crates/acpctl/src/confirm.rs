//! Questions to the user at the terminal.

use acpd_api::ExitCode;

use crate::error::{CommandError, Result};
use crate::text::{Text, text};
use crate::ui::Ui;

pub(crate) const ADD_YES: &str = "add `--yes`";
pub(crate) const ADD_YES_OR_DRY_RUN: &str = "add `--yes`; `--dry-run` shows what would be deleted";

/// Shows the effect, and asks for a yes; fails without one. Without a terminal, `hint` explains how
/// to confirm.
pub(crate) fn confirm(
    ui: &mut Ui,
    doing: impl Into<Text>,
    hint: &'static str,
    shown: &Text,
    prompt: impl Into<Text>,
) -> Result {
    check_can_ask(ui, doing, hint)?;
    ui.talk(shown);
    if yes(ui, prompt)? { Ok(()) } else { Err(left()) }
}

/// Fails without a terminal; then `hint` explains how to confirm.
pub(crate) fn check_can_ask(ui: &Ui, doing: impl Into<Text>, hint: &'static str) -> Result {
    if ui.can_ask() {
        return Ok(());
    }
    Err(CommandError::usage(text!("{} needs confirmation", doing.into())).hint(hint))
}

pub(crate) fn yes(ui: &mut Ui, prompt: impl Into<Text>) -> Result<bool> {
    let prompt = prompt.into();
    loop {
        match ask(ui, &prompt)?.as_str() {
            "y" | "Y" | "yes" => return Ok(true),
            "n" | "N" | "no" => return Ok(false),
            _ => ui.warn("type `y` or `n`"),
        }
    }
}

/// Lists numbered choices, and asks until one is chosen, by its number or by a name that `named`
/// finds.
pub(crate) fn pick(
    ui: &mut Ui,
    prompt: impl Into<Text>,
    choices: impl IntoIterator<Item = Text>,
    named: impl Fn(&str) -> Option<usize>,
) -> Result<usize> {
    let (prompt, mut count) = (prompt.into(), 0_usize);
    for choice in choices {
        count += 1;
        ui.say(text!("  {}  {}", count, choice));
    }
    loop {
        let answer = ask(ui, &prompt)?;
        let number = answer.parse().ok().filter(|number| (1..=count).contains(number));
        match number.map(|number| number - 1).or_else(|| named(&answer)) {
            Some(at) => return Ok(at),
            None => ui.warn(text!("type a number from 1 to {}", count)),
        }
    }
}

/// Asks for a line; fails if the user typed Ctrl-D or closed the terminal.
pub(crate) fn ask(ui: &mut Ui, prompt: &Text) -> Result<String> {
    ui.ask(prompt)?.ok_or_else(left)
}

fn left() -> CommandError {
    CommandError::new(ExitCode::Cancelled, "nothing was changed")
}
