use acpd_api::method;
use serde_json::{Value, json};

use super::*;
use crate::ui::coded;

/// The output of these updates, everything in one stream.
fn shown(options: Options, updates: &[Value]) -> String {
    written(options, updates, false)
}

fn written(options: Options, updates: &[Value], is_coloured: bool) -> String {
    let mut transcript = opened(options, Settings::default());
    let mut text = String::new();
    let mut last = None;
    for update in updates {
        let (name, params) = match update.get("method") {
            Some(name) => (name.as_str().unwrap(), update["params"].to_string()),
            None => ("session/update", json!({"sessionId": "s", "update": update}).to_string()),
        };
        for piece in transcript.notification(name, &params) {
            let (flow, part) = match &piece {
                Piece::AnswerEnds => {
                    end_line(&mut text);
                    continue;
                }
                Piece::Answer(part) => (Some(Flow::Answer), part.raw().to_owned()),
                Piece::Flow(flow, part) => (Some(*flow), coded(part, is_coloured)),
                Piece::Lines(lines) => (None, coded(lines, is_coloured)),
            };
            if flow.is_none() || last != flow {
                end_line(&mut text);
            }
            last = flow;
            text.push_str(&part);
        }
    }
    text
}

fn opened(options: Options, settings: Settings) -> Transcript {
    let mut transcript = Transcript::new(options);
    transcript.open(&"s".into(), &"/w".into(), None, settings);
    transcript
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

fn plain(updates: &[Value]) -> String {
    shown(Options { thoughts: true, whole: true }, updates)
}

fn colour(updates: &[Value]) -> String {
    let options = Options { thoughts: true, whole: true };
    written(options, updates, true).replace('\u{1b}', "␛")
}

fn dim(line: &'static str) -> Piece {
    Piece::Lines(Text::styled(Role::Dim, line) + "\n")
}

fn say(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

fn edit(status: &str) -> Value {
    json!({
        "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Edit src/lib.rs",
        "kind": "edit", "status": status,
        "locations": [{"path": "src/lib.rs", "line": 3}, {"path": "src/main.rs"}],
        "content": [{"type": "diff", "path": "src/lib.rs",
            "oldText": "one\ntwo\nthree\nfour\nfive\nsix\n",
            "newText": "one\ntwo\nthree\n4\nfive\nsix\n"}],
    })
}

#[test]
fn what_is_said_into_a_turn_is_shown_to_all() {
    let steered = |text: &str| {
        let update = say("user_message_chunk", text);
        let meta = json!({"_acpd": {"steered": true}});
        json!({"method": "session/update", "params": {"sessionId": "s", "update": update, "_meta": meta}})
    };
    let updates = [
        say("user_message_chunk", "fix it"),
        steered("all of it"),
        say("agent_message_chunk", "I look"),
        steered("quickly"),
        say("agent_message_chunk", ", and I am quick"),
    ];
    insta::assert_snapshot!(plain(&updates), @"
    > fix it

    > all of it

    I look

    > quickly

    , and I am quick
    ");
    let answer_only = Options { thoughts: false, whole: false };
    insta::assert_snapshot!(shown(answer_only, &updates), @"
    > all of it

    I look

    > quickly

    , and I am quick
    ");
}

#[test]
fn a_conversation_reads_top_to_bottom() {
    let updates = [
        say("user_message_chunk", "fix it\nplea"),
        say("user_message_chunk", "se"),
        say("agent_thought_chunk", "hm, "),
        say("agent_thought_chunk", "let me see"),
        say("agent_message_chunk", "I "),
        say("agent_message_chunk", "look."),
        json!({"sessionUpdate": "tool_call", "toolCallId": "t0", "title": "Read src/lib.rs",
            "kind": "read", "status": "pending", "locations": [{"path": "src/lib.rs"}]}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t0", "status": "in_progress"}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t0", "status": "completed"}),
        edit("completed"),
        say("agent_message_chunk", "Done."),
        say("user_message_chunk", "thanks"),
    ];
    insta::assert_snapshot!(plain(&updates), @"
    > fix it
    > please

    hm, let me see
    I look.
    ◇ Read src/lib.rs
    ✓ Read src/lib.rs
    ✓ Edit src/lib.rs  src/lib.rs:3, src/main.rs
        src/lib.rs +1 -1
           2   two
           3   three
           4 - four
           4 + 4
           5   five
           6   six
    Done.

    > thanks
    ");
}

#[test]
fn a_call_that_failed_shows_the_first_lines_of_what_it_said() {
    let updates = [
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Fetch it",
            "kind": "fetch"}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed",
            "content": [{"type": "content", "content": {"type": "text",
                "text": "1\n2\n\n3\n4\n5\n6\u{1b}[2J\n"}}]}),
    ];
    insta::assert_snapshot!(plain(&updates), @"
    ↓ Fetch it
    ✗ Fetch it
        1
        2
        3
        4
        5
    ");
}

#[test]
fn a_command_shows_the_end_of_what_it_printed() {
    let printed: Vec<String> = (1..=14).map(|line| format!("  line {line}\n")).collect();
    let printed = printed.concat();
    let printed = format!("```console\n{printed}\u{1b}[31mred\u{1b}[0m\u{7}\n```");
    let ended = |status: &str| {
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": status,
            "content": [{"type": "terminal", "terminalId": "x"},
                {"type": "content", "content": {"type": "text", "text": printed}}]})
    };
    let updates = [
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "cargo test",
            "kind": "execute"}),
        ended("in_progress"),
        ended("completed"),
        ended("completed"),
    ];
    insta::assert_snapshot!(plain(&updates), @"
    $ cargo test
    ✓ cargo test
        … 5 lines before
          line 6
          line 7
          line 8
          line 9
          line 10
          line 11
          line 12
          line 13
          line 14
        red
    ");
    let short = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "make",
        "kind": "execute", "status": "failed",
        "content": [{"type": "content", "content": {"type": "text", "text": "no rule"}}]});
    insta::assert_snapshot!(colour(&[short]), @"
    ␛[31m✗␛[0m ␛[1mmake␛[0m
    ␛[2m    no rule␛[0m
    ");
}

#[test]
fn a_long_diff_is_cut() {
    let new: String =
        (0..100).flat_map(|line| ["line ".to_owned(), line.to_string(), "\n".to_owned()]).collect();
    let update = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Write",
        "content": [{"type": "diff", "path": "new.txt", "newText": new}]});
    let text = plain(&[update]);
    assert!(
        text.starts_with("• Write\n    new.txt +100 -0 new file\n       1 + line 0\n"),
        "{text}"
    );
    assert!(text.ends_with("      60 + line 59\n      … 40 more lines\n"), "{text}");
}

#[test]
fn a_plan_is_shown_whole_with_a_mark_at_what_has_changed() {
    let plan = |first: &str, second: &str| {
        json!({"sessionUpdate": "plan", "entries": [
            {"content": "Read the code", "priority": "high", "status": first},
            {"content": "Write the fix", "priority": "medium", "status": second},
            {"content": "Rest", "priority": "low", "status": "pending"},
        ]})
    };
    let updates = [
        plan("in_progress", "pending"),
        plan("in_progress", "pending"),
        plan("completed", "in_progress"),
    ];
    insta::assert_snapshot!(plain(&updates), @"
    plan 0/3
      ▸ Read the code (high)
      ○ Write the fix
      ○ Rest (low)
    plan 1/3
    * ✓ Read the code (high)
    * ▸ Write the fix
      ○ Rest (low)
    ");
}

#[test]
fn a_mode_and_options_are_told_when_they_change() {
    let options = |model: &str, verbose: bool| {
        json!({"sessionUpdate": "config_option_update", "configOptions": [
            {"id": "model", "name": "Model", "type": "select", "currentValue": model, "options": [
                {"group": "g", "name": "G", "options": [{"value": "m1", "name": "Model One"}]},
                {"group": "h", "name": "H", "options": [{"value": "m2", "name": "Model Two"}]}]},
            {"id": "verbose", "type": "boolean", "currentValue": verbose},
            {"id": "broken"},
        ]})
    };
    let mode = |id: &str| json!({"sessionUpdate": "current_mode_update", "currentModeId": id});
    let updates = [
        mode("ask"),
        mode("ask"),
        options("m1", false),
        options("m1", false),
        options("m2", false),
        options("m9", true),
    ];
    insta::assert_snapshot!(plain(&updates), @"
    mode: ask
    Model: Model One
    verbose: off
    Model: Model Two
    Model: m9
    verbose: on
    ");

    // A client that begins a session knows its first settings.
    let begun = json!({"modes": {"currentModeId": "ask", "availableModes": [
            {"id": "ask", "name": "Ask first"}, {"id": "yolo", "name": "Do it"}]},
        "configOptions": options("m1", false)["configOptions"]});
    let quiet = Options { thoughts: false, whole: false };
    let begun: Box<serde_json::value::RawValue> = serde_json::from_value(begun).unwrap();
    let mut transcript = opened(quiet, Settings::from_raw(&begun));
    let mut lines = |update: Value| {
        transcript.notification(
            "session/update",
            &json!({"sessionId": "s", "update": update}).to_string(),
        )
    };
    assert_eq!(lines(mode("ask")), []);
    assert_eq!(lines(options("m1", false)), []);
    assert_eq!(lines(mode("yolo")), [dim("mode: Do it")]);
    assert_eq!(lines(options("m1", true)), [dim("verbose: on")]);
}

#[test]
fn subagents_are_lines_and_what_they_say_is_not_shown() {
    let subagent = |id: &str, more: Value| {
        let mut update = json!({"sessionUpdate": "subagent_update", "sessionId": id});
        update.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        update
    };
    let updates = [
        subagent("a", json!({})),
        subagent("b", json!({"title": "Reads\nall", "state": {"state": "running"}})),
        subagent("b", json!({"description": "more"})),
        subagent("b", json!({"state": {"state": "requires_action"}})),
        subagent("b", json!({"state": {"state": "idle", "stopReason": "end_turn"}})),
    ];
    insta::assert_snapshot!(plain(&updates), @"
    subagent a
    subagent Reads all: running
    subagent Reads all: requires action
    subagent Reads all: idle
    ");

    let options = Options { thoughts: false, whole: true };
    let mut transcript = opened(options, Settings::default());
    let mut take = |session: &str, update: &Value| {
        let params = json!({"sessionId": session, "update": update}).to_string();
        transcript.notification("session/update", &params).len()
    };
    assert_eq!(take("b", &say("agent_message_chunk", "quiet")), 0);
    assert_eq!(take("b", &updates[0]), 1);
    assert_eq!(take("s", &say("agent_message_chunk", "shown")), 1);
}

#[test]
fn unreadable_updates_are_not_silent() {
    let updates = [
        json!({"sessionUpdate": "agent_message_chunk", "content": "not a block"}),
        json!({"nothing": true}),
    ];
    assert_eq!(plain(&updates), "not a block\nan update of the agent could not be read\n");
}

#[test]
fn whoever_runs_the_turn_sees_neither_the_prompt_nor_thoughts() {
    let options = Options { thoughts: false, whole: false };
    let updates = [
        say("user_message_chunk", "hi"),
        say("agent_thought_chunk", "hm"),
        json!({"method": method::TURN_ENDED, "params": {"sessionId": "s", "turn": 1, "at": 5,
            "outcome": {"kind": "interrupted", "reason": "killed"}}}),
        say("agent_message_chunk", "a\u{1b}b"),
    ];
    assert_eq!(shown(options, &updates), "a\u{1b}b");
}

#[test]
fn a_command_is_shown_once_below_a_title_that_is_not_the_command() {
    let changed = |title: &str, status: &str, command: &str| {
        json!({"sessionUpdate": "tool_call_update", "toolCallId": title, "title": title,
            "kind": "execute", "status": status, "rawInput": {"command": command}})
    };
    let updates = [
        changed("run the tests", "pending", "ls; rm -rf x"),
        changed("run the tests", "completed", "ls; rm -rf x"),
        changed("`make`", "pending", "make"),
    ];
    insta::assert_snapshot!(plain(&updates), @"
    $ run the tests
        ls; rm -rf x
    ✓ run the tests
    $ `make`
    ");
}

#[test]
fn a_call_that_began_before_we_came_does_not_end_as_an_id() {
    let end = |more: Value| {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "call_135_86545",
            "status": "failed"});
        update.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        plain(&[update])
    };
    assert_eq!(end(json!({})), "");
    assert_eq!(end(json!({"title": "Fetch it"})), "✗ Fetch it\n");
}
