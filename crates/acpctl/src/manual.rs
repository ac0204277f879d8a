//! Manual pages, from the definition of a command line.
//!
//! clap_mangen writes everything except the text below the options of a long help. It would put
//! that text below one heading, `EXTRA`; here exit codes, notes and examples have headings.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap::builder::Resettable;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// Text below a long help: notes, and examples with their effect.
macro_rules! examples {
    ($notes:literal; $($example:tt)*) => {
        concat!($notes, "\n\n", examples!($($example)*))
    };
    ($($line:literal => $what:literal),* $(,)?) => {
        concat!("Examples:", $("\n  ", $line, "\n      ", $what),*)
    };
}

pub(crate) fn write(command: Command, dir: &Path) -> io::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    pages(&command, dir)
}

fn pages(command: &Command, dir: &Path) -> io::Result<()> {
    for under in command.get_subcommands().filter(|under| !under.is_hide_set()) {
        pages(under, dir)?;
    }
    let (name, text) = page(command)?;
    fs::write(dir.join(name), text)
}

fn page(command: &Command) -> io::Result<(String, String)> {
    let below = command.get_after_long_help().or(command.get_after_help());
    let below = sections(&below.map(ToString::to_string).unwrap_or_default());
    let bare = command.clone().after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    let man = Man::new(bare);
    let mut text = Vec::new();
    man.render(&mut text)?;
    let mut text = String::from_utf8(text).map_err(io::Error::other)?;
    let at = text.find("\n.SH VERSION").map_or(text.len(), |before| before + 1);
    text.insert_str(at, &below);
    Ok((man.get_filename(), text))
}

/// Returns the examples of a command: command line and effect.
#[cfg(test)]
pub(crate) fn examples_of(command: &Command) -> Vec<(String, String)> {
    let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let (_, examples) = help.split_once("Examples:\n").unwrap_or_default();
    let lines: Vec<&str> = examples.lines().map(str::trim).collect();
    lines.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

/// Notes come before exit codes and examples.
fn sections(below: &str) -> String {
    let (mut roff, mut has_notes) = (Roff::new(), false);
    for paragraph in below.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        match paragraph.split_once('\n') {
            Some(("Exit codes:", lines)) => {
                let codes = lines.lines().filter_map(|line| line.trim().split_once(' '));
                listed(&mut roff, "EXIT STATUS", codes);
            }
            Some(("Examples:", lines)) => {
                let lines: Vec<&str> = lines.lines().collect();
                let examples = lines.chunks_exact(2).map(|example| (example[0], example[1]));
                listed(&mut roff, "EXAMPLES", examples);
            }
            table => {
                let heading = (!has_notes).then_some("NOTES");
                roff.control(if has_notes { "PP" } else { "SH" }, heading);
                has_notes = true;
                // One line is text; several lines are a table, which is not filled.
                if table.is_some() {
                    roff.control("nf", []);
                }
                for line in paragraph.lines() {
                    roff.text([roman(line)]);
                }
                if table.is_some() {
                    roff.control("fi", []);
                }
            }
        }
    }
    // The text before the first heading defines a plain apostrophe, which the page already has.
    let text = roff.render();
    text.find(".SH").map(|from| text[from..].to_owned()).unwrap_or_default()
}

fn listed<'t>(roff: &mut Roff, heading: &str, items: impl Iterator<Item = (&'t str, &'t str)>) {
    roff.control("SH", [heading]);
    for (what, means) in items {
        roff.control("TP", []);
        roff.text([bold(what.trim())]);
        roff.text([roman(means.trim())]);
    }
}
