//! `acpctl config show`: effective values in the form of the file, each with its source.

use std::path::Path;

use acpd_api::{ConfigPlace, ConfigValue, ConfigValues, Untrusted, escape, nearest};
use clap::Args;
use serde_json::Value;

use crate::error::{CommandError, Result};
use crate::text::{Role, Text, text};
use crate::ui::Ui;

#[derive(Debug, Args)]
pub(in crate::command) struct ConfigShow {
    /// A key or a table, such as `daemon`, `agents.claude` or `agents.claude.env`.
    pub(crate) key: Option<String>,
    /// Print the file as it is.
    #[arg(long, conflicts_with_all = ["key", "json"])]
    pub(crate) file: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Used if the value leaves room.
const SOURCE_COLUMN: usize = 44;
/// Tables with named or numbered subtables.
const MANY: [&str; 3] = ["agents", "mcp", "workspace"];

pub(super) fn show(mut found: ConfigValues, wanted: &ConfigShow, ui: &mut Ui) -> Result {
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
