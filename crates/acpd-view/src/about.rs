//! Descriptions of tool calls from their input. A title is often only the agent's description, and
//! the user who decides must see what runs.

use acp_wire::acp::PermissionRequest;
use acpd_api::{Question, Untrusted, escape};
use acpd_policy::Understanding;
use serde_json::Value;

use crate::text;
use crate::text::Text;

const MAX_COMPARED_WIDTH: usize = 60;

/// Returns the lines of the commands in a call's input; none if the title is the command.
pub fn commands(input: &Value, title: Option<&Untrusted>) -> Vec<Text> {
    let Ok(input) = serde_json::value::to_raw_value(input) else { return Vec::new() };
    let mut request = PermissionRequest::of_call(None);
    request.raw_input = Some(&input);
    let commands = Understanding::of(&request).commands.into_iter();
    let commands: Vec<_> = commands.map(|command| Untrusted::from(command.runs)).collect();
    unnamed(&commands, &title.map(Text::from).unwrap_or_default())
}

/// Describes a question in one line.
pub fn asked(question: &Question) -> Text {
    match question {
        Question::Permission { title, subject, .. } => named(title.as_ref(), subject.as_ref()),
        Question::Form { message, .. } => message.into(),
        Question::Url { message, url } => text!("open {}", page(message, url)),
    }
}

/// Describes a page that an agent asks to open. The host comes first: the text before an `@` in an
/// address can look like a host, and the end of a long line is cut.
pub fn page(message: &Untrusted, url: &Untrusted) -> Text {
    match host_of(url.raw()) {
        Some(host) => text!("a page on {}: {} ({})", Untrusted::from(host), message, url),
        None => text!("{}: {}", url, message),
    }
}

/// Returns host and port of an address.
pub fn host_of(url: &str) -> Option<&str> {
    let authority = authority(url)?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    Some(host).filter(|host| !host.is_empty())
}

fn authority(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.split(['/', '\\', '?', '#']).next()
}

/// Returns the host if a name precedes it (`https://good.example@evil.example/`): the name reads
/// like the host.
pub fn disguised_host(url: &str) -> Option<&str> {
    host_of(url).filter(|_| authority(url).is_some_and(|authority| authority.contains('@')))
}

/// Describes a call in one line: the title, and the subject if the title does not contain it.
pub fn named(title: Option<&Untrusted>, subject: Option<&Untrusted>) -> Text {
    let title = title.map_or_else(|| "a tool call".into(), Text::from);
    let Some(subject) = subject.map(Text::from) else { return title };
    let command = subject.as_str().strip_prefix("run `").and_then(|rest| rest.strip_suffix('`'));
    let is_said = match command {
        Some(command) => bare(title.as_str()) == command,
        None => {
            let what = subject.as_str().split_once(' ');
            what.is_some_and(|(_, what)| is_word(title.as_str(), what))
        }
    };
    if is_said { title } else { text!("{}: {}", title, subject) }
}

/// Returns the lines of commands; none if the title is the command and short enough to read at a
/// glance.
pub fn unnamed(commands: &[Untrusted], title: &Text) -> Vec<Text> {
    // The raw text is compared, because a title on one line hides the line ends of a script.
    if let [command] = commands
        && title.width() <= MAX_COMPARED_WIDTH
        && bare(title.as_str()) == command.raw().trim()
    {
        return Vec::new();
    }
    let lines = commands.iter().flat_map(|command| {
        let text = command.raw();
        text.strip_suffix('\n').unwrap_or(text).split('\n')
    });
    lines.map(|line| escape::verbatim(line).into()).collect()
}

fn bare(title: &str) -> &str {
    title.trim().trim_matches('`').trim()
}

/// Describes an option by its effect, in acpd's words, and by the agent's name for it. A name that
/// only repeats the effect stands alone.
pub fn option(kind: &str, name: &Untrusted) -> Text {
    let (word, plain): (_, &[&str]) = match kind {
        "allow_once" => ("allow once", &["allow", "allow once", "yes", "approve", "accept"]),
        "allow_always" => ("allow always", &["allow always", "always allow"]),
        "reject_once" => ("reject once", &["reject", "reject once", "no", "deny", "decline"]),
        "reject_always" => ("reject always", &["reject always", "always reject"]),
        _ => ("other answer", &[]),
    };
    let said = name.raw().trim().to_lowercase().replace('_', " ");
    if plain.contains(&&*said) { Text::from(name) } else { text!("{}: \"{}\"", word, name) }
}

/// Returns whether an option's name says the opposite of its effect, judged by English words.
pub fn says_the_opposite(kind: &str, name: &Untrusted) -> bool {
    const YES: [&str; 8] =
        ["yes", "allow", "approve", "accept", "ok", "permit", "proceed", "grant"];
    const NO: [&str; 9] =
        ["no", "reject", "deny", "refuse", "decline", "cancel", "abort", "disallow", "block"];
    const NOT: [&str; 5] = ["not", "don't", "dont", "never", "no"];
    let name = name.raw().to_lowercase().replace('’', "'");
    let words: Vec<&str> = name
        .split(|char: char| !char.is_alphanumeric() && char != '\'')
        .filter(|word| !word.is_empty())
        .collect();
    let says = |of: &[&str]| {
        words.iter().enumerate().any(|(at, word)| {
            let is_negated = at > 0 && NOT.contains(&words[at - 1]);
            of.contains(word) && !is_negated
        })
    };
    let begins = |of: &[&str]| words.first().is_some_and(|first| of.contains(first));
    // "Yes, and do not ask again" allows; "Do not allow" refuses.
    let refuses = begins(&NO)
        || says(&NO[1..])
        || words.windows(2).any(|pair| NOT.contains(&pair[0]) && YES[1..].contains(&pair[1]));
    let allows = begins(&YES) || says(&YES[1..]);
    match kind {
        "allow_once" | "allow_always" => refuses && !begins(&YES),
        "reject_once" | "reject_always" => allows && !begins(&NO),
        _ => false,
    }
}

/// Describes what acpd remembers after an "always" answer.
pub fn remembers(always: Option<&Untrusted>) -> Text {
    match always {
        Some(always) => text!("acpd remembers exactly this: {}", always),
        None => "acpd remembers nothing; the agent may remember more than this call".into(),
    }
}

/// Returns whether a text contains a whole word; parts of words would match too often.
pub fn is_word(text: &str, word: &str) -> bool {
    let bare = |part: &str| part.trim_matches(['`', ',', ':', '(', ')']) == word;
    text.split_whitespace().any(bare)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_title_does_not_say_is_shown() {
        let run = |title: &str, command: Value| {
            let lines = commands(&json!({"command": command}), Some(&title.into()));
            lines.iter().map(Text::to_string).collect::<Vec<_>>()
        };
        assert_eq!(run("run the tests", json!("ls; rm -rf x")), ["ls; rm -rf x"]);
        assert_eq!(run("make it safe", json!("safe")), ["safe"], "a word of it is not enough");
        assert_eq!(run("`git push`", json!("git push")), [""; 0]);
        assert_eq!(run("touch a", json!(["/bin/bash", "-lc", "touch a"])), [""; 0]);
        assert_eq!(run("t", json!("cat <<E\n\u{1b}x\nE")), ["cat <<E", "<U+001B>x", "E"]);
        assert_eq!(run("ls\nrm x", json!("ls\nrm x")), ["ls", "rm x"]);
        assert_eq!(run(&"x".repeat(200), json!("x".repeat(200))).len(), 1, "too long for a glance");
        let long = format!("echo {}; rm -rf /", "x".repeat(9000));
        assert_eq!(run("t", json!(long)), [&*long], "its end matters most");
    }

    /// The page has the same table.
    #[test]
    fn a_name_that_says_the_opposite_of_its_kind_is_found() {
        let rows: Vec<Value> =
            serde_json::from_str(include_str!("../fixtures/options.json")).unwrap();
        assert!(rows.len() > 20);
        for row in rows {
            let (kind, name) =
                (row["kind"].as_str().unwrap(), row["name"].as_str().unwrap().into());
            assert_eq!(option(kind, &name).as_str(), row["words"], "{row}");
            assert_eq!(says_the_opposite(kind, &name), row["opposite"], "{row}");
        }
    }

    #[test]
    fn host_of_a_page_stands_before_everything_that_the_agent_says() {
        let line = |url: &str| page(&"Log in".into(), &url.into()).to_string();
        for (url, host) in [
            ("https://example.org/a?b=https://c.example/", "example.org"),
            ("https://good.example@evil.example:81/x", "evil.example:81"),
            ("https://good.example\\@evil.example/", "good.example"),
            ("https://a@b@evil.example#good.example", "evil.example"),
            ("https://\u{202e}x/", "<U+202E>x"),
        ] {
            let shown = Text::from(&Untrusted::from(url));
            assert_eq!(line(url), format!("a page on {host}: Log in ({shown})"));
        }
        assert_eq!(line("mailto:a@b"), "mailto:a@b: Log in");
    }

    #[test]
    fn a_line_names_title_and_subject_unless_they_are_the_same() {
        let named = |title: &str, subject: Option<&str>| {
            super::named(Some(&title.into()), subject.map(Untrusted::from).as_ref()).to_string()
        };
        assert_eq!(named("Test", None), "Test");
        assert_eq!(named("`make`", Some("run `make`")), "`make`");
        assert_eq!(named("Test", Some("run `make`")), "Test: run `make`");
        assert_eq!(named("Write a.txt", Some("edit a.txt")), "Write a.txt");
        assert_eq!(named("Write a.txt", Some("edit a")), "Write a.txt: edit a");
    }
}
