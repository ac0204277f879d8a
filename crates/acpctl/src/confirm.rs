//! Asks a person whether they are sure.

use acpd_api::ExitCode;

use crate::error::{CommandError, Result};
use crate::text::Text;
use crate::ui::Ui;

/// Asks until the answer is yes or no.
pub(crate) fn yes(ui: &mut Ui, prompt: impl Into<Text>) -> Result<bool> {
    let prompt = prompt.into();
    loop {
        match ui.ask(&prompt)?.as_deref() {
            None => return Err(left()),
            Some("y" | "Y" | "yes") => return Ok(true),
            Some("n" | "N" | "no") => return Ok(false),
            Some(_) => ui.say("type `y` or `n`"),
        }
    }
}

/// The person does not want it.
pub(crate) fn left() -> CommandError {
    CommandError::new(ExitCode::Cancelled, "nothing was changed")
}
