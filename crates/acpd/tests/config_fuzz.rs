//! `cargo xtask fuzz config`: no file makes the reader of the configuration panic or hang, and each mistake has
//! its place.

use std::path::Path;

use acpd::config;
use acpd_test::fuzz::{Dice, Outcomes, fuzz, throws};

/// Every kind of section, key and value.
const WHOLE: &str = r#"default_agent = "copilot"
[daemon]
max_clients = 3
line_limit = "64MiB"
log_level = "debug"
orphan_timeout = "30m"
[hooks]
on_permission = 'notify "it"'
on_crash = ["notify", "it"]
[defaults]
idle_timeout = "2h"
env = { A = "1", B = "2" }
[agents.copilot]
command = "/opt/copilot/copilot"
inherit_env = ["COMPANY_*"]
credentials.GH_TOKEN = { command = ["gh", "auth", "token"], ttl = "1h" }
stop.eof = "3s"
[agents.my-agent]
command = ["my-agent", "--acp"]
args = ["--port", "{port}"]
tcp = { spawn = true, port = 4000 }
restore = ["load", "resume"]
auth_errors = ["not logged in", "401"]
enabled = true
late_replay = true
replays = false
[agents.remote]
tcp.connect = "localhost:4000"
[mcp.files]
command = ["files", "/w"]
env = { KEY = { file = "~/.secrets/key" } }
[mcp.web]
url = "https://example.org/mcp"
headers = { Authorization = "Bearer x" }
[policy]
default = "ask"
[[policy.rules]]
decision = "reject"
command = ["git push*", "rm *"]
[[policy.rules]]
name = "reading"
decision = "allow"
kind = "read"
path = ["**/*.md", "~/src/**"]
workspace = "~/src/**"
"#;
/// What is put in.
const ODD: [&str; 36] = [
    "\"",
    "'",
    "'''",
    "\"\"\"",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "#",
    "\n",
    "\0",
    "\u{feff}",
    "é",
    "-1",
    "1e400",
    "9999999999999999999",
    "0x7fffffffffffffff",
    "nan",
    "true",
    "[]",
    "{}",
    "1979-05-27",
    "\"\\ud800\"",
    "\"9999999999999d\"",
    "\"18446744073709551615GiB\"",
    "\"[\"",
    "\"{port}\"",
    "[policy]",
    "[agents.a]",
    "a.b.c = 1",
    "[[mcp]]",
];

/// The file with one more thing wrong in it.
fn change(lines: &mut Vec<String>, dice: &mut Dice<'_>) {
    if lines.is_empty() {
        return lines.push((*dice.pick(&ODD)).to_owned());
    }
    let (at, other) = (dice.below(lines.len()), dice.below(lines.len()));
    let odd = dice.pick(&ODD).repeat(*dice.pick(&[1, 1, 1, 1, 1, 1, 2, 3, 300]));
    let value = |line: &str| line.split_once('=').map(|(_, value)| value.to_owned());
    match dice.below(8) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[other].clone()),
        2 => lines.swap(at, other),
        3 | 4 => {
            let value = if dice.below(2) == 0 { Some(odd) } else { value(&lines[other]) };
            if let (Some((key, _)), Some(value)) = (lines[at].split_once('='), value) {
                lines[at] = format!("{key}={value}");
            }
        }
        5 => {
            let value = value(&lines[at]).unwrap_or_default();
            let key = lines[other].split('=').next().unwrap_or_default();
            lines[at] = format!("{key}={value}");
        }
        _ => {
            let line = &mut lines[at];
            let start = line.floor_char_boundary(dice.below(line.len() + 1));
            let end = line.floor_char_boundary(start + dice.below(3)).max(start);
            line.replace_range(start..end, &odd);
        }
    }
}

/// The message without what was quoted from the file, and without its place.
fn kind(message: &str) -> String {
    let words = message.split(' ').filter(|word| word.chars().all(|c| c.is_ascii_lowercase()));
    words.take(8).collect::<Vec<_>>().join(" ")
}

fn check(throws: &[Vec<u8>], outcomes: &Outcomes) {
    let schema = jsonschema::validator_for(&config::schema()).unwrap();
    // Few mistakes at a time: what is no TOML hides the others.
    for changes in throws.chunks(3) {
        outcomes.execution();
        let mut lines: Vec<String> = WHOLE.lines().map(str::to_owned).collect();
        for dice in changes {
            change(&mut lines, &mut Dice(dice));
        }
        let text = lines.join("\n");
        match config::parse(Path::new("config.toml"), &text) {
            Ok(config) => {
                let file: serde_json::Value = toml::from_str(&text).unwrap();
                let finding = schema.iter_errors(&file).next();
                assert!(finding.is_none(), "an editor takes what acpd takes: {finding:?}\n{text}");
                outcomes.met(if config::policy(&config.policy).is_ok() {
                    "read"
                } else {
                    "no policy"
                });
            }
            Err(error) => {
                let lines = text.split('\n').count();
                assert!(!error.mistakes().is_empty());
                for mistake in error.mistakes() {
                    outcomes.met(&kind(mistake.message.raw()));
                    let place = mistake.line.zip(mistake.column);
                    let (line, column) = place.unwrap_or_else(|| panic!("no place: {mistake:?}"));
                    assert!(line as usize <= lines && line > 0 && column > 0, "{mistake:?}");
                }
            }
        }
    }
}

#[test]
fn config() {
    let must_occur = ["read", "unknown key in"];
    fuzz("config", 600, &must_occur, throws(30), |throws, outcomes| check(&throws, outcomes));
}
