//! What a tool call is about, as acpd reads it in the call. A title is often no more than the agent's own
//! description: whoever decides must see what runs, not what it is called.

use acp_wire::acp::PermissionRequest;
use acpd_policy::{Subject, commands_of, subject_of};
use serde_json::Value;

use crate::paint::{one_line, visible};

/// The lines to show below `head`, which shows the title and places: everything about the call that
/// they do not say.
pub(crate) fn about(request: &PermissionRequest<'_>, head: &str) -> Vec<String> {
    let mut lines = unnamed(commands_of(request), request.title.as_deref());
    match subject_of(request) {
        Some(Subject::Command { folder, .. }) => {
            lines.extend(folder.map(|folder| format!("in {}", one_line(&folder))));
        }
        Some(Subject::Paths { paths, .. })
            if paths.iter().all(|path| is_word(head, &one_line(path))) => {}
        Some(subject) => lines.push(one_line(&subject.asked())),
        None => {}
    }
    lines
}

/// The lines of the commands in the input of a call, unless its title is the command.
pub(crate) fn commands(input: &Value, title: Option<&str>) -> Vec<String> {
    let Ok(input) = serde_json::value::to_raw_value(input) else { return Vec::new() };
    let mut request = PermissionRequest::of_call(None);
    request.raw_input = Some(&input);
    unnamed(commands_of(&request), title)
}

/// What is asked, in one line: the title, and what acpd reads in the call where that says more.
pub(crate) fn named(title: &str, subject: Option<&str>) -> String {
    let title = one_line(title);
    let Some(subject) = subject.map(one_line) else { return title };
    let command = subject.strip_prefix("run `").and_then(|rest| rest.strip_suffix('`'));
    let is_said = match command {
        Some(command) => bare(&title) == command,
        None => subject.split_once(' ').is_some_and(|(_, what)| is_word(&title, what)),
    };
    if is_said { title } else { format!("{title}: {subject}") }
}

fn unnamed(commands: Vec<String>, title: Option<&str>) -> Vec<String> {
    // Compared as it is shown: a title on one line does not say where a line of a script ends.
    if let [command] = commands.as_slice()
        && title.is_some_and(|title| bare(&one_line(title)) == command.trim())
    {
        return Vec::new();
    }
    let lines = commands.iter().flat_map(|command| command.lines());
    lines.map(|line| visible(line).into_owned()).collect()
}

fn bare(title: &str) -> &str {
    title.trim().trim_matches('`').trim()
}

/// Whether one of the words of a text is this one; a part of a word would be too easily found.
fn is_word(text: &str, word: &str) -> bool {
    let bare = |part: &str| part.trim_matches(['`', ',', ':', '(', ')']) == word;
    text.split_whitespace().any(bare)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(call: &Value) -> Vec<String> {
        let call = serde_json::value::to_raw_value(call).unwrap();
        let request = PermissionRequest::of_call(Some(&call));
        about(&request, request.title.as_deref().unwrap_or_default())
    }

    #[test]
    fn what_the_title_does_not_say_is_shown() {
        let run = |title: &str, command: Value| {
            lines(&json!({"toolCallId": "t", "title": title, "kind": "execute",
                "rawInput": {"command": command}}))
        };
        assert_eq!(run("run the tests", json!("ls; rm -rf x")), ["ls; rm -rf x"]);
        assert_eq!(run("make it safe", json!("safe")), ["safe"], "a word of it is not enough");
        assert_eq!(run("`git push`", json!("git push")), [""; 0]);
        assert_eq!(run("touch a", json!(["/bin/bash", "-lc", "touch a"])), [""; 0]);
        assert_eq!(run("t", json!("cat <<E\n\u{1b}x\nE")), ["cat <<E", "␛x", "E"]);
        assert_eq!(run("ls\nrm x", json!("ls\nrm x")), ["ls", "rm x"]);
        let long = format!("echo {}; rm -rf /", "x".repeat(9000));
        assert_eq!(run("t", json!(long)), [&*long], "its end matters most");
        let edit = |title: &str| {
            lines(&json!({"toolCallId": "t", "title": title, "kind": "edit",
                "rawInput": {"path": "/etc/passwd"}}))
        };
        assert_eq!(edit("Edit /etc/passwd"), [""; 0]);
        assert_eq!(edit("Tidy up"), ["edit /etc/passwd"]);
    }

    #[test]
    fn a_line_names_title_and_subject_unless_they_are_the_same() {
        assert_eq!(named("Test", None), "Test");
        assert_eq!(named("`make`", Some("run `make`")), "`make`");
        assert_eq!(named("Test", Some("run `make`")), "Test: run `make`");
        assert_eq!(named("Write a.txt", Some("edit a.txt")), "Write a.txt");
        assert_eq!(named("Write a.txt", Some("edit a")), "Write a.txt: edit a");
    }
}
