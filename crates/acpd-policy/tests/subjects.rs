//! Remembered decisions, and calls that they are not taken for.

mod support;

use acpd_policy::Subject;
use serde_json::{Value, json};
use support::{edit, run, subject};

fn bash(input: Value) -> Option<Subject> {
    subject(json!({"kind": "execute", "title": "bash", "rawInput": input}))
}

#[test]
fn a_command_is_remembered_by_its_line_and_folder() {
    let first = bash(json!({"command": "ls", "description": "a", "call_id": "1"}));
    assert_eq!(first, bash(json!({"command": "ls", "description": "b", "call_id": "2"})));
    assert_eq!(first.as_ref().expect("it is known").to_string(), "run `ls`");
    for other in [
        json!({"command": "ls -l"}),
        json!({"command": "ls", "workdir": "/etc"}),
        json!({"command": "ls", "args": ["-R"]}),
        json!({"command": "ls", "env": {"A": "b"}}),
        json!({"command": "ls", "cmd": "rm"}),
        json!({"command": ["bash", "-lc", "ls"]}),
    ] {
        assert_ne!(bash(other.clone()), first, "{other}");
    }
    let there = bash(json!({"command": ["cargo", "test"], "cwd": "/src"}));
    assert_eq!(there.expect("it is known").to_string(), "run `cargo test` in /src");
}

#[test]
fn an_input_without_its_call_is_known_again_only_if_it_names_the_call() {
    let of = |id: &str, call_id: &str, at: u64| {
        let params = support::raw(&json!({"sessionId": "s", "options": [], "toolCall":
            {"toolCallId": id, "kind": "other", "title": "phone", "rawInput":
                {"call_id": call_id, "started_at_ms": at, "do": "hang up"}}}));
        support::subject_of(&params)
    };
    assert_eq!(of("a", "a", 1), of("b", "b", 2));
    assert_ne!(of("a", "7", 1), of("b", "8", 1), "the tool acts on that call");
    assert_ne!(of("a", "7", 1), of("b", "7", 2));
}

#[test]
fn any_other_call_is_remembered_with_its_very_input() {
    let call = |input: Value| subject(json!({"kind": "other", "title": "db", "rawInput": input}));
    let query = call(json!({"sql": "select 1", "db": "x"}));
    assert_eq!(query, call(json!({"db": "x", "sql": "select 1"})));
    assert_ne!(query, call(json!({"db": "x", "sql": "drop table t"})));
    let query = query.expect("it is known");
    assert_eq!(query.to_string(), "other: db (with the same input)");
    assert_eq!(query.asked(), r#"other: db {"db":"x","sql":"select 1"}"#);
    assert_eq!(call(json!({"text": "x".repeat(20_000)})), None);
    let shown = |text: &str| {
        let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
        subject(json!({"kind": "execute", "title": "bash", "content": content}))
    };
    assert_eq!(shown("ls"), shown("ls"));
    assert_ne!(shown("ls"), shown("rm x"));
}

#[test]
fn a_call_that_says_too_little_is_not_remembered() {
    for call in [
        json!({}),
        json!({"kind": "execute", "title": "bash"}),
        json!({"kind": "execute", "title": "bash", "rawInput": {}, "content": []}),
        json!({"kind": "other", "rawInput": {"x": 1}}),
        json!({"kind": "edit", "title": "Edit"}),
    ] {
        assert_eq!(subject(call.clone()), None, "{call}");
    }
}

#[test]
fn a_subject_keeps_its_form_on_disk() {
    let subjects = [
        (subject(run("ls")), json!({"type": "command", "line": "ls"})),
        (subject(edit(&["a"])), json!({"type": "paths", "kind": "edit", "paths": ["a"]})),
        (
            subject(json!({"kind": "fetch", "rawInput": {"url": "u"}})),
            json!({"type": "urls", "urls": ["u"]}),
        ),
        (
            subject(json!({"title": "t", "rawInput": {"x": 1}})),
            json!({"type": "call", "kind": "other", "title": "t", "input": "{\"x\":1}"}),
        ),
    ];
    for (subject, stored) in subjects {
        let subject = subject.expect("it is known");
        assert_eq!(serde_json::to_value(&subject).expect("it is written"), stored);
        assert_eq!(serde_json::from_value::<Subject>(stored).expect("it is read"), subject);
    }
}
