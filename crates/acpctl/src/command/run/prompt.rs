//! The prompt of the command line: words, stdin and files.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use acpd_api::ExitCode;
use acpd_client::attachment::{self, Attachment};
use acpd_sys::terminal::input_is_fed;

use super::Run;
use crate::error::{CommandError, Result};
use crate::human;
use crate::text::text;
use crate::ui::Ui;

const REPORT_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Said {
    pub(super) prompt: String,
    pub(super) attachments: Vec<Attachment>,
}

impl Said {
    pub(super) fn read(args: &Run, words: &[String], ui: &mut Ui) -> Result<Said> {
        let files = args.files.iter().map(|path| Attachment::file(path));
        let images = args.images.iter().map(|path| Attachment::image(path));
        let sounds = args.sounds.iter().map(|path| Attachment::audio(path));
        let attachments = files.chain(images).chain(sounds);
        let mut attachments = attachments.collect::<std::result::Result<Vec<_>, _>>()?;
        let (prompt, piped) = prompt(words, &args.prompt_files, !args.turn.no_stdin, ui)?;
        attachments.extend(piped);
        if prompt.trim().is_empty() && attachments.is_empty() {
            let hint = match &args.prompt_files[..] {
                [] => {
                    "give a prompt: `acpctl run 'explain this project'`, or `-` to read it from stdin"
                }
                _ => "the file of `--prompt-file` is empty",
            };
            return Err(CommandError::usage("no prompt given").hint(hint));
        }
        Ok(Said { prompt, attachments })
    }
}

/// Returns the text and the attachment from stdin. With words or files, stdin is attached; without
/// them, or with `-`, stdin is part of the prompt.
pub(super) fn prompt(
    words: &[String],
    files: &[PathBuf],
    reads_stdin: bool,
    ui: &mut Ui,
) -> Result<(String, Option<Attachment>)> {
    let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
    let (words, is_asked) = match words.split_last() {
        Some((last, words)) if last == "-" => (words, true),
        _ => (words, false),
    };
    let asked = files.iter().filter(|path| is_stdin(path)).count() + usize::from(is_asked);
    if asked > 1 {
        return Err(CommandError::usage("stdin can be read only once").hint("use one `-`"));
    }
    if asked > 0 && !reads_stdin {
        return Err(
            CommandError::usage("`-` contradicts `--no-stdin`").hint("leave out one of them")
        );
    }
    let mut parts = Vec::new();
    for path in files {
        let said = if is_stdin(path) { stdin(ui)? } else { attachment::prompt_file(path)? };
        parts.push(said.trim_end().to_owned());
    }
    let is_all = words.is_empty() && files.is_empty() && !io::stdin().is_terminal();
    parts.push(words.join(" "));
    let mut piped = None;
    if is_asked || is_all && reads_stdin {
        parts.push(stdin(ui)?.trim_end().to_owned());
    } else if asked == 0 && reads_stdin && input_is_fed() {
        let said = stdin(ui)?;
        let size = human::bytes(said.len() as u64);
        piped = Attachment::piped(said);
        // The stdin of a script or a loop may not be meant for the agent.
        if piped.is_some() {
            ui.note(text!("attached stdin, {}; `acpctl run -N` ignores it", size));
        }
    }
    parts.retain(|part| !part.is_empty());
    Ok((parts.join("\n\n"), piped))
}

/// Reads stdin. If that takes long, prints the reason for the wait.
fn stdin(ui: &mut Ui) -> Result<String> {
    let (sender, read) = mpsc::channel();
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || drop(sender.send(attachment::stdin())))?;
    let read = match read.recv_timeout(REPORT_AFTER) {
        Err(RecvTimeoutError::Timeout) => {
            ui.note("waiting for the end of stdin; `acpctl run -N` ignores it");
            read.recv().map_err(RecvTimeoutError::from)
        }
        read => read,
    };
    let (text, is_mended) =
        read.map_err(|_| CommandError::new(ExitCode::Error, "cannot read stdin"))??;
    if is_mended {
        ui.warn("stdin is not valid UTF-8: invalid bytes become U+FFFD");
    }
    Ok(text)
}
