//! `acpctl top`: all sessions on one screen.

use crate::door::Door;
use crate::error::Result;
use crate::full_screen;
use crate::ui::Ui;

pub(super) fn top(door: Door, ui: &mut Ui) -> Result {
    let start = full_screen::start(door, ui, "without one: `acpctl ps`")?;
    full_screen::run(start, ui)
}
