//! The configuration for a bug report: the keys that are set, and only values that cannot be
//! secret.
//!
//! A list names the keys whose values are shown; all others are hidden, new keys too.

use std::path::Path;

use acpd_api::redact::HIDDEN;
use toml::{Table, Value};

/// Keys whose values are one of a few words, or names of agents, models and variables.
const SHOWN: [&str; 23] = [
    "agent",
    "agents",
    "builtin",
    "client_meta",
    "closed_by",
    "default_agent",
    "empty_turn",
    "inherit_env",
    "log_level",
    "login_shell",
    "mode",
    "model",
    "on_interrupted",
    "on_limit",
    "on_lost",
    "per_day",
    "reseed",
    "restart",
    "restore",
    "services",
    "sharing",
    "type",
    "when_over",
];
/// Tables in which every value may be a secret.
pub(super) const SECRET_TABLES: [&str; 3] = ["env", "headers", "credentials"];

/// Returns the file as TOML without possible secrets. The file may have mistakes, but must be TOML.
/// The error has the place of the problem, and quotes nothing.
pub fn redacted(path: &Path) -> Result<String, String> {
    let bytes = match acpd_sys::files::read(path, super::LONGEST) {
        Ok(bytes) => bytes,
        Err(_) if !path.exists() => return Ok(String::new()),
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    let text = String::from_utf8(bytes).map_err(|_| "it is no text".to_owned())?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map(|span| text[..span.start].lines().count().max(1));
        line.map_or_else(
            || "it is no TOML".to_owned(),
            |line| format!("it is no TOML: line {line}"),
        )
    })?;
    let shown = Value::Table(clean_table(table));
    toml::to_string(&shown).map_err(|_| "it cannot be shown".to_owned())
}

fn clean_table(table: Table) -> Table {
    table.into_iter().map(|(key, value)| (key.clone(), clean(&key, value))).collect()
}

fn clean(key: &str, value: Value) -> Value {
    match value {
        Value::Table(table) if SECRET_TABLES.contains(&key) => {
            table.into_iter().map(|(name, _)| (name, hidden())).collect::<Table>().into()
        }
        Value::Table(table) => Value::Table(clean_table(table)),
        Value::Array(values) if key == "command" => {
            let program = values.first().and_then(Value::as_str).map(program);
            let words = values.iter().skip(1).map(|_| hidden());
            Value::Array(program.into_iter().chain(words).collect())
        }
        Value::Array(values) => {
            Value::Array(values.into_iter().map(|value| clean(key, value)).collect())
        }
        Value::String(text) if key == "command" => program(&text),
        Value::String(text) if SHOWN.contains(&key) || is_quantity(&text) => Value::String(text),
        Value::String(_) => hidden(),
        value => value,
    }
}

fn hidden() -> Value {
    Value::from(HIDDEN)
}

fn program(line: &str) -> Value {
    let word = line.split_whitespace().next().unwrap_or_default();
    let name = word.rsplit('/').next().unwrap_or_default();
    // A variable is set before the program.
    if name.contains('=') { hidden() } else { Value::from(name) }
}

/// Returns whether the text is a size or a time: a number and a unit.
fn is_quantity(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < text.len() && unit.len() <= 4 && unit.chars().all(|c| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String, String> {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).expect("a file");
        redacted(&path)
    }

    #[test]
    fn only_what_cannot_be_a_secret_is_shown() {
        let text = r#"
            # planted in a comment
            default_agent = "claude"
            [daemon]
            log_level = "debug"
            client_queue = "64KiB"
            [agents.claude]
            command = ["/opt/planted/npx", "--key", "planted"]
            model = "opus"
            idle_timeout = "5m"
            env = { API_KEY = "planted", N = 7 }
            login_file = "/planted"
            [agents.claude.credentials]
            TOKEN = { env = "planted" }
            [agents.other]
            command = "PLANTED=planted other planted"
            [mcp.gh]
            command = "npx planted"
            args = ["planted"]
            url = "https://planted"
            headers = { Authorization = "planted" }
            [hooks]
            on_turn_end = "planted"
            [new]
            key = "planted"
            nested = [{ a = "planted", b = 1 }]
        "#;
        let shown = shown(text).expect("TOML");
        assert!(!shown.contains("planted"), "{shown}");
        for line in [
            "default_agent = \"claude\"",
            "log_level = \"debug\"",
            "client_queue = \"64KiB\"",
            "command = [\"npx\", \"[hidden]\", \"[hidden]\"]",
            "model = \"opus\"",
            "idle_timeout = \"5m\"",
            "API_KEY = \"[hidden]\"",
            "N = \"[hidden]\"",
            "Authorization = \"[hidden]\"",
            "command = \"npx\"",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line} in {shown}");
        }
    }

    #[test]
    fn what_is_no_toml_is_told_by_its_line_alone() {
        assert_eq!(shown("a = 1\nplanted planted\n"), Err("it is no TOML: line 2".to_owned()));
        assert_eq!(redacted(Path::new("/nonexistent/config.toml")), Ok(String::new()));
    }
}
