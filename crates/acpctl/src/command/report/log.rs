//! Lines of the daemon's log without text of agents, hooks and the system.
//!
//! ```text
//!  2026-11-23T09:17:31Z  WARN an agent failed agent="claude" code=-32603 what="session/load"
//!  └ time ┘             └level┘ └ message ┘    └ fields: a name, `=`, and a number or a quoted text ┘
//! ```

use acpd_api::redact::HIDDEN;
use acpd_api::under_agent::ACP;

const LEVELS: [&str; 5] = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];
/// Fields with acpd's own words or names. A value of `what` is shown if it is a method of ACP.
const SHOWN: [&str; 6] = ["signal", "agent", "level", "before", "status", "version"];
/// Replacement for lines that are not entries, such as a panic.
const NO_ENTRY: &str = "[a line that is no entry of the log]";

pub(super) fn clean(log: &str) -> String {
    log.lines().map(|line| entry(line).unwrap_or_else(|| NO_ENTRY.to_owned()) + "\n").collect()
}

fn entry(line: &str) -> Option<String> {
    // A service manager puts its own words before the entry.
    let level = LEVELS.iter().find_map(|level| {
        let at = line.find(&format!(" {level} "))?;
        Some((at, *level))
    });
    let (at, level) = level?;
    let time = line[..at].split_whitespace().next_back()?;
    if !time.ends_with('Z') || !time.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let rest = line[at + level.len() + 2..].trim();
    let said = if rest.contains(" hook=") { HIDDEN.to_owned() } else { event(rest) };
    Some(format!("{time} {level} {said}"))
}

fn event(text: &str) -> String {
    let fields = field_at(text).unwrap_or(text.len());
    let (words, mut rest) = text.split_at(fields);
    let mut out = message(words);
    while let Some((name, value)) = rest.trim_start().split_once('=') {
        let (shown, after) = match value.strip_prefix('"') {
            Some(quoted) => {
                let Some(end) = end_of(quoted) else { break };
                let (text, after) = (&quoted[..end], &quoted[end + 1..]);
                let is_method = ACP.iter().any(|(method, _)| *method == text);
                if SHOWN.contains(&name) || (name == "what" && is_method) {
                    (format!("\"{}\"", message(text)), after)
                } else {
                    (HIDDEN.to_owned(), after)
                }
            }
            None => {
                let end = value.find(' ').unwrap_or(value.len());
                let (word, after) = value.split_at(end);
                if !is_plain(word) {
                    // The end of the value is unknown.
                    out.extend([" ", name, "=", HIDDEN]);
                    break;
                }
                (word.to_owned(), after)
            }
        };
        out.extend([" ", name, "=", &shown]);
        rest = after;
    }
    out
}

fn field_at(text: &str) -> Option<usize> {
    text.match_indices('=').find_map(|(at, _)| {
        let begin = text[..at].rfind(' ').map_or(0, |space| space + 1);
        let name = &text[begin..at];
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        is_name.then_some(begin.saturating_sub(1))
    })
}

/// Returns acpd's words without quoted text, which is between backticks or after a colon.
fn message(words: &str) -> String {
    let (words, more) = match words.split_once(": ") {
        Some((words, _)) => (words, format!(": {HIDDEN}")),
        None => (words, String::new()),
    };
    let mut out = String::new();
    for (at, part) in words.split('`').enumerate() {
        match at % 2 {
            0 => out.push_str(part),
            _ => out.extend(["`", HIDDEN, "`"]),
        }
    }
    out.trim_end().to_owned() + &more
}

fn end_of(quoted: &str) -> Option<usize> {
    let mut escaped = false;
    quoted.char_indices().find_map(|(at, c)| {
        let is_end = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        is_end.then_some(at)
    })
}

fn is_plain(word: &str) -> bool {
    let word = word.strip_prefix("Some(").and_then(|word| word.strip_suffix(')')).unwrap_or(word);
    matches!(word, "true" | "false" | "None") || word.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acpd_says_is_shown_and_what_it_quotes_is_not() {
        let log = "\
2026-11-23T09:17:31.1Z  INFO acpd is ready pid=17
2026-11-23T09:17:31.1Z  WARN an agent failed agent=\"cl\" session=\"x planted\" code=Some(-32603) what=\"session/load\"
2026-11-23T09:17:31.1Z ERROR the journal cannot be written; trying again reason=\"planted \\\" planted\" code=None
2026-11-23T09:17:31.1Z  WARN the machine is not kept awake: planted
2026-11-23T09:17:31.1Z  WARN cannot start `planted` now
2026-11-23T09:17:31.1Z  WARN an agent failed what=\"_planted/method\"
2026-11-23T09:17:31.1Z  INFO planted words x=1 hook=\"on_turn_end\"
2026-11-23T09:17:31.1Z  WARN no index error=planted is code=7
Nov 23 09:17:31 planted acpd[1]: 2026-11-23T09:17:31Z  INFO an agent has ended host=3 status=\"exit code 1\"
planted INFO planted
thread planted panicked
";
        assert_eq!(
            clean(log),
            "\
2026-11-23T09:17:31.1Z INFO acpd is ready pid=17
2026-11-23T09:17:31.1Z WARN an agent failed agent=\"cl\" session=[hidden] code=Some(-32603) what=\"session/load\"
2026-11-23T09:17:31.1Z ERROR the journal cannot be written; trying again reason=[hidden] code=None
2026-11-23T09:17:31.1Z WARN the machine is not kept awake: [hidden]
2026-11-23T09:17:31.1Z WARN cannot start `[hidden]` now
2026-11-23T09:17:31.1Z WARN an agent failed what=[hidden]
2026-11-23T09:17:31.1Z INFO [hidden]
2026-11-23T09:17:31.1Z WARN no index error=[hidden]
2026-11-23T09:17:31Z INFO an agent has ended host=3 status=\"exit code 1\"
[a line that is no entry of the log]
[a line that is no entry of the log]
"
        );
    }
}
