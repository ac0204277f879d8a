//! The tool call of a question, for a decision in the terminal.

use acpd_api::{ExitCode, InteractionInfo, Question, Shown};
use acpd_view::Sheet;

use crate::error::{CommandError, Result};
use crate::info::question::asked;
use crate::text::{Text, text};
use crate::ui::Ui;

pub(super) fn whole(open: &InteractionInfo, ui: &Ui) -> Text {
    match shown(&open.question) {
        Some((shown, changed)) => {
            Text::lines(&Sheet::new("", shown, changed).whole(ui.out_width()))
        }
        None => text!("{}\n", asked(&open.question)),
    }
}

pub(super) fn omitted_details(open: &InteractionInfo) -> Text {
    let says_all = |shown: &Shown| {
        let is_line = |text: &acpd_api::Untrusted| !text.raw().contains('\n');
        shown.is_understood() && shown.diffs.is_empty() && shown.commands.iter().all(is_line)
    };
    match shown(&open.question) {
        Some((shown, changed)) if !says_all(shown) => {
            Text::lines(&Sheet::new("", shown, changed).whole(None))
        }
        _ => Text::new(),
    }
}

/// Shows the call if the user named only its session, and asks for confirmation: a question's id
/// stands for one call, a session's name for any of its questions. Returns whether the user has
/// seen the call.
pub(super) fn confirm(open: &InteractionInfo, ui: &mut Ui) -> Result<bool> {
    let Some((shown, changed)) = shown(&open.question) else { return Ok(false) };
    if ui.can_ask() {
        let sheet = Sheet::new("", shown, changed);
        let (width, height) = ui.err_size();
        let (lines, hidden) = sheet.fitting(width, height.saturating_sub(4));
        let text = Text::lines(&lines);
        ui.talk(&text);
        let yes = if sheet.is_easy() { "y" } else { "allow" };
        let view = if hidden > 0 { ", or v to see all of it" } else { "" };
        loop {
            let line = ui.ask(text!("type `{}` to allow it{} > ", yes, view))?;
            match line.as_deref() {
                Some("allow" | "yes") => return Ok(true),
                Some("y" | "Y") if sheet.is_easy() => return Ok(true),
                Some("v") => {
                    ui.talk(&Text::lines(&sheet.whole(Some(width))));
                    ui.talk(&text);
                }
                None | Some("" | "n" | "N" | "no") => return Err(super::left_open()),
                Some(_) => ui.warn(text!("type `{}`, or nothing to leave", yes)),
            }
        }
    }
    if changed == 0 {
        return Ok(false);
    }
    let text = "the agent has changed its call: nothing was answered";
    let hint = text!(
        "`acpctl pending {}` shows the new call, `acpctl allow {}` allows it",
        open.id,
        open.id
    );
    Err(CommandError::new(ExitCode::Refused, text).hint(hint))
}

fn shown(question: &Question) -> Option<(&Shown, u32)> {
    match question {
        Question::Permission { shown, changed, .. } => Some((shown.as_deref()?, *changed)),
        _ => None,
    }
}
