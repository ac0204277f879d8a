//! What a tool call does, as acpd reads it from the call itself. Its title is often only the agent's own
//! description: whoever decides must see what runs, not what the agent calls it.

use acp_wire::acp::PermissionRequest;
use acpd_api::{Question, Untrusted, escape};
use acpd_policy::commands_of;
use serde_json::Value;

use crate::text;
use crate::text::Text;

/// The widest title that is compared with a command, in columns.
const TITLE: usize = 60;

/// The lines of the commands in the input of a call, unless its title is the command.
pub fn commands(input: &Value, title: Option<&Untrusted>) -> Vec<Text> {
    let Ok(input) = serde_json::value::to_raw_value(input) else { return Vec::new() };
    let mut request = PermissionRequest::of_call(None);
    request.raw_input = Some(&input);
    let commands: Vec<_> = commands_of(&request).into_iter().map(Untrusted::from).collect();
    unnamed(&commands, &title.map(Text::from).unwrap_or_default())
}

/// What is asked, in one line.
pub fn asked(question: &Question) -> Text {
    match question {
        Question::Permission { title, subject, .. } => match title {
            Some(title) => named(title, subject.as_ref()),
            None => named(&"a tool call".into(), subject.as_ref()),
        },
        Question::Form { message, .. } => message.into(),
        Question::Url { message, url } => text!("{}: {}", message, url),
    }
}

/// What a call is about, in one line: the title, and what acpd reads in the call where that says more.
pub fn named(title: &Untrusted, subject: Option<&Untrusted>) -> Text {
    let title = Text::from(title);
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

/// The lines of commands, unless the title, which is short enough to be read at a glance, is the command.
pub fn unnamed(commands: &[Untrusted], title: &Text) -> Vec<Text> {
    // Compared as it is shown: a title on one line does not say where a line of a script ends.
    if let [command] = commands
        && title.width() <= TITLE
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

/// What choosing an option does, in acpd's words by its kind, then the name that the agent gives it. A name that says
/// no more than the kind stands alone.
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

/// Returns whether the name of an option says the opposite of what choosing it does, as far as English words tell.
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
    // \"Yes, and do not ask again\" allows; \"Do not allow\" refuses.
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

/// What acpd itself remembers when its person answers for always.
pub fn remembers(always: Option<&Untrusted>) -> Text {
    match always {
        Some(always) => text!("acpd remembers exactly this: {}", always),
        None => "acpd remembers nothing; the agent may remember more than this call".into(),
    }
}

/// Whether one of the words of a text is this one; a part of a word would be too easily found.
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
        let long = format!("echo {}; rm -rf /", "x".repeat(9000));
        assert_eq!(run("t", json!(long)), [&*long], "its end matters most");
    }

    #[test]
    fn options_are_told_in_acpds_words_first() {
        let told = |kind: &str, name: &str| option(kind, &name.into()).to_string();
        assert_eq!(told("allow_once", "No, reject it"), "allow once: \"No, reject it\"");
        assert_eq!(told("allow_once", "Allow"), "Allow");
        assert_eq!(told("allow_always", "Allow"), "allow always: \"Allow\"");
        assert_eq!(told("reject_once", "\u{1b}x"), "reject once: \"<U+001B>x\"");
        assert_eq!(told("allow_persistent", "Allow"), "other answer: \"Allow\"");
    }

    #[test]
    fn a_name_that_says_the_opposite_of_its_kind_is_found() {
        let is_opposite = |kind: &str, name: &str| says_the_opposite(kind, &name.into());
        for name in ["No, reject it", "Deny", "Do not allow", "Please decline", "No"] {
            assert!(is_opposite("allow_once", name), "{name}");
            assert!(!is_opposite("reject_once", name), "{name}");
        }
        for name in
            ["Yes", "Yes, and don't ask again for rm", "Allow all edits", "Yes, no questions"]
        {
            assert!(is_opposite("reject_always", name), "{name}");
            assert!(!is_opposite("allow_always", name), "{name}");
        }
        for name in ["", "Nein", "run `make`", "No, and tell Claude what to do differently"] {
            assert!(!is_opposite("reject_once", name), "{name}");
        }
    }

    #[test]
    fn a_line_names_title_and_subject_unless_they_are_the_same() {
        let named = |title: &str, subject: Option<&str>| {
            super::named(&title.into(), subject.map(Untrusted::from).as_ref()).to_string()
        };
        assert_eq!(named("Test", None), "Test");
        assert_eq!(named("`make`", Some("run `make`")), "`make`");
        assert_eq!(named("Test", Some("run `make`")), "Test: run `make`");
        assert_eq!(named("Write a.txt", Some("edit a.txt")), "Write a.txt");
        assert_eq!(named("Write a.txt", Some("edit a")), "Write a.txt: edit a");
    }
}
