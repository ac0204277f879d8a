use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use acpd_api::{ExitCode, Untrusted};
use acpd_client::{PATIENCE, connect_lasting, rejoin};
use acpd_tui::{Opens, ScreenError, ScreenResult, ScreenStart, Theme};

use crate::dirs::{current_dir, utf8};
use crate::error::{CommandError, Result};
use crate::terminal;
use crate::text::{shell_word, text};
use crate::ui::Ui;
use crate::user_programs::{Edited, pager};

/// Fails without a suitable terminal, with the hint `instead`.
pub(crate) fn start(ui: &Ui, instead: &'static str) -> Result<ScreenStart> {
    if !is_possible() {
        let error = "this needs a terminal that can show a full screen";
        return Err(CommandError::usage(error).hint(instead));
    }
    let theme =
        Theme { is_coloured: ui.is_coloured(), is_unicode: acpd_sys::terminal::has_unicode() };
    let options = ui.door().options()?;
    Ok(ScreenStart {
        theme,
        home: acpd_sys::paths::home(),
        cwd: utf8(&current_dir()?)?,
        place: terminal::name(),
        opens: Opens::Top,
        pager: pager(),
        editor: |text| match Edited::of(text) {
            Ok(edited) => Ok(edited.text.trim_end_matches('\n').to_owned()),
            Err(error) => Err(error.message().clone()),
        },
        door: Arc::new(move |may_start| {
            let connect = if may_start { connect_lasting } else { rejoin };
            connect(&options, PATIENCE)?.split()
        }),
    })
}

pub(crate) fn run(start: ScreenStart, ui: &mut Ui) -> Result {
    let ScreenResult { session, unsent } = match acpd_tui::run(start) {
        Ok(left) => left,
        Err(ScreenError::Connect(error)) => return Err(error.into()),
        Err(ScreenError::Terminal(error)) => {
            return Err(CommandError::because(ExitCode::Error, &error));
        }
        Err(ScreenError::NotBegun { error, unsent }) => {
            print_unsent(unsent, ui);
            return Err(CommandError::rpc(&error));
        }
    };
    print_unsent(unsent, ui);
    if let Some(session) = session {
        let word = shell_word(&session);
        ui.say(text!("{} keeps running; come back with: acpctl chat {}", session, word));
    }
    Ok(())
}

/// Prints drafts that would be lost with this process.
fn print_unsent(unsent: Vec<String>, ui: &mut Ui) {
    for unsent in unsent.into_iter().map(Untrusted::from) {
        ui.say(text!("not sent: {}", unsent.prose()));
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing is printed")]
pub(crate) fn is_possible() -> bool {
    acpd_sys::terminal::can_show_full_screen()
        && io::stdin().is_terminal()
        && io::stdout().is_terminal()
}
