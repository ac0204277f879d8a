//! `acpctl config …`: the file, its values and mistakes.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use acpd_api::{
    ConfigPlace, ConfigReport, ConfigValue, ConfigValues, ExitCode, Untrusted, escape, nearest,
};
use acpd_client::{Paths, open_file};
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::args::Json;
use crate::confirm::yes;
use crate::daemon::{info, running};
use crate::error::{CommandError, Result};
use crate::human::counted;
use crate::info::daemon::mistakes;
use crate::programs::{self, BEGIN, SCHEMA, offer_schema};
use crate::text::{Role, Text, text};
use crate::ui::Ui;
use crate::user_programs;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum Config {
    /// List all mistakes; exits with 1 if there is one.
    #[command(after_long_help = examples!(
        "acpctl config check" => "Find mistakes before the daemon reads the file",
    ))]
    Check(Json),
    /// Show effective values and where they come from: the file, the catalogue or the default.
    ///
    /// Without a key, agents that the file does not mention are left out. Possible secrets are hidden.
    #[command(after_long_help = examples!(
        "acpctl config show agents.claude" => "Show the values of an agent and their sources",
        "acpctl config show daemon.log_level --json" => "Print one value as JSON",
        "acpctl config show --file" => "Print the file as it is",
    ))]
    Show(ConfigShow),
    /// Print the path of the file.
    #[command(after_long_help = examples!(
        "cat \"$(acpctl config path)\"" => "Use the file in a command",
    ))]
    Path,
    /// Open the file in $VISUAL or $EDITOR, then check it.
    ///
    /// A new file starts with a link to its schema, for editors that know TOML.
    #[command(after_long_help = examples!(
        "acpctl config edit" => "Edit the file; mistakes are listed",
    ))]
    Edit,
    /// Print the JSON schema of the file, for editors.
    #[command(after_long_help = examples!(
        "acpctl config schema > ~/.config/acpd/config.schema.json" =>
            "Let an editor check the file",
    ))]
    Schema,
}

const MAX_FILE_BYTES: u64 = 4 << 20;

pub(super) fn config(command: &Config, ui: &mut Ui) -> Result {
    let paths = Paths::discover()?;
    let file = paths.config_file();
    match command {
        Config::Path => Ok(ui.relay_line(&Untrusted::of(file.display()))?),
        Config::Show(wanted) if !wanted.file => {
            let found = programs::config_values().or_else(|error| {
                // Only a valid configuration has values; mistakes are printed in full.
                fail_on_mistakes(&programs::config_report()?)?;
                Err(error)
            })?;
            show(found, wanted, ui)
        }
        Config::Show(_) => {
            let failed = |error: io::Error| CommandError::file("read", &file, &error);
            let mut bytes = Vec::new();
            match open_file(&file) {
                Ok(open) => open.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(failed)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return ui.done(text!("`{}` does not exist: all values are defaults", file));
                }
                Err(error) => return Err(failed(error)),
            };
            Ok(ui.relay_bytes(&bytes)?)
        }
        Config::Schema => Ok(ui.relay_bytes(&programs::config_schema()?)?),
        Config::Check(json) => {
            let report = programs::config_report()?;
            if json.json {
                ui.json(&report)?;
                return CommandError::printed_unless(report.mistakes.is_empty());
            }
            report_mistakes(&report, ui)
        }
        Config::Edit => {
            let failed = |error: io::Error| CommandError::file("make", &paths.config, &error);
            fs::create_dir_all(&paths.config).map_err(failed)?;
            let begun = !file.exists();
            if begun {
                fs::write(&file, BEGIN).map_err(failed)?;
            }
            offer_schema(&file, &paths.config.join(SCHEMA));
            loop {
                user_programs::edit(&file)?;
                if begun && fs::read_to_string(&file).is_ok_and(|text| text == BEGIN) {
                    fs::remove_file(&file).and(fs::remove_file(paths.config.join(SCHEMA))).ok();
                }
                match report_mistakes(&programs::config_report()?, ui) {
                    Err(error) if ui.can_ask() => ui.talk(&error.render()),
                    checked => {
                        checked?;
                        // A running daemon does not read the changed file by itself.
                        let Some(mut connection) = running(&paths)? else { return Ok(()) };
                        if info(&mut connection)?.config_changed.is_some() {
                            ui.say("acpd does not use it yet. Reload: `acpctl daemon reload`");
                        }
                        return Ok(());
                    }
                }
                if !yes(ui, "edit it again? y/n > ")? {
                    return Err(CommandError::printed());
                }
            }
        }
    }
}

fn report_mistakes(report: &ConfigReport, ui: &mut Ui) -> Result {
    fail_on_mistakes(report)?;
    ui.done(if report.exists {
        text!("`{}` has no mistakes", report.file)
    } else {
        text!("`{}` does not exist: all values are defaults", report.file)
    })
}

fn fail_on_mistakes(report: &ConfigReport) -> Result {
    if report.mistakes.is_empty() {
        return Ok(());
    }
    let count = counted(report.mistakes.len(), "mistake");
    let text = text!("the configuration has {}:{}", count, mistakes(&report.mistakes));
    Err(CommandError::new(ExitCode::Error, text))
}

#[derive(Debug, Args)]
pub(super) struct ConfigShow {
    /// A key or a table, such as `daemon`, `agents.claude` or `agents.claude.env`.
    key: Option<String>,
    /// Print the file as it is.
    #[arg(long, conflicts_with_all = ["key", "json"])]
    file: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Used if the value leaves room.
const SOURCE_COLUMN: usize = 44;
/// Tables with named or numbered subtables.
const MANY: [&str; 3] = ["agents", "mcp", "workspace"];

/// Shows effective values in the form of the file, each with its source.
fn show(mut found: ConfigValues, wanted: &ConfigShow, ui: &mut Ui) -> Result {
    choose(&mut found, wanted.key.as_deref())?;
    if wanted.json {
        return Ok(ui.json(&found)?);
    }
    if !found.exists {
        ui.say(text!("`{}` does not exist: all values are defaults", found.file));
    }
    let file = Path::new(found.file.raw()).file_name();
    let file = Untrusted::from(file.unwrap_or_default().to_string_lossy());
    let mut table = "";
    for (at, value) in found.values.iter().enumerate() {
        let (of, name) = split(value.key.raw());
        if of != table {
            table = of;
            let gap = if at == 0 { "" } else { "\n" };
            ui.print(text!("{}{}\n", gap, header(of)))?;
        }
        ui.print(line(&text!("{} = ", escape::one_line(name)), value, &file))?;
    }
    if !found.here.is_empty() {
        let begun = text!("# New sessions in `{}` have:", found.dir);
        ui.print(text!("\n{}\n", Text::styled(Role::Dim, begun)))?;
        for value in &found.here {
            ui.print(line(&text!("# {} = ", value.key), value, &file))?;
        }
    }
    Ok(())
}

/// Keeps the values of a key or a table. Without one, drops the values of agents that are not in
/// the file.
fn choose(found: &mut ConfigValues, wanted: Option<&str>) -> Result {
    let Some(wanted) = wanted else {
        let agents = &found.agents;
        found.values.retain(|value| {
            let of = value.key.raw().strip_prefix("agents.");
            of.is_none_or(|of| agents.iter().any(|agent| is_below(of, agent.raw())))
        });
        return Ok(());
    };
    let all = std::mem::take(&mut found.values);
    let (chosen, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|value| is_below(value.key.raw(), wanted));
    if chosen.is_empty() {
        let known = others.iter().flat_map(|value| [value.key.raw(), split(value.key.raw()).0]);
        let error = CommandError::usage(text!("no key or table `{}`", escape::one_line(wanted)));
        return Err(match nearest(wanted, known) {
            Some(near) => error.hint(text!("did you mean `{}`?", escape::one_line(near))),
            None => error.hint("`acpctl config show` lists all keys"),
        });
    }
    found.values = chosen;
    found.here = Vec::new();
    Ok(())
}

fn is_below(key: &str, wanted: &str) -> bool {
    key.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the table of a key, and the name in it.
fn split(key: &str) -> (&str, &str) {
    let Some((table, name)) = key.split_once('.') else { return ("", key) };
    if !MANY.contains(&table) {
        return (table, name);
    }
    let of = name.find('.').map_or(key.len(), |dot| table.len() + 1 + dot);
    (&key[..of], key[of..].trim_start_matches('.'))
}

fn header(table: &str) -> Text {
    if table.starts_with("workspace.") {
        "[[workspace]]".into()
    } else {
        text!("[{}]", escape::one_line(table))
    }
}

fn line(name: &Text, value: &ConfigValue, file: &Untrusted) -> Text {
    let shown = match &value.value {
        // A key without a value is not valid TOML.
        Value::Null if name.as_str().starts_with('#') => text!("{}(unset)", name),
        Value::Null => text!("# {}(unset)", name),
        value => text!("{}{}", name, escape::one_line(&toml(value))),
    };
    let pad = Text::repeated(" ", SOURCE_COLUMN.saturating_sub(shown.width()));
    let from = Text::join(value.from.iter().map(|place| said_by(place, file)), ", ");
    text!("{}{}{}\n", shown, pad, Text::styled(Role::Dim, text!("  # {}", from)))
}

fn said_by(place: &ConfigPlace, file: &Untrusted) -> Text {
    match place {
        ConfigPlace::Default => "default".into(),
        ConfigPlace::Catalogue => "catalogue".into(),
        ConfigPlace::File { line, table } => match table.as_ref().map(Untrusted::raw) {
            Some("defaults") => text!("{}:{}, [defaults]", file, *line),
            _ => text!("{}:{}", file, *line),
        },
    }
}

/// Formats JSON as TOML on one line; the two differ in tables only.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", "))
        }
        Value::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(name, value)| format!("{} = {}", Value::from(name.as_str()), toml(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_written_as_toml_has_them() {
        let value = serde_json::json!([{"a": "x\"\u{1b}", "b c": true}, []]);
        assert_eq!(toml(&value), "[{\"a\" = \"x\\\"\\u001b\", \"b c\" = true}, []]");
    }
}
