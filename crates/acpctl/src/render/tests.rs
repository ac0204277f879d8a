use acpd_api::method;
use serde_json::{Value, json};

use super::*;

/// What a person sees of these updates, everything in one stream.
fn shown(options: Options, updates: &[Value]) -> String {
    let mut transcript = Transcript::new(options);
    let mut text = String::new();
    let mut last = None;
    for update in updates {
        let (name, params) = match update.get("method") {
            Some(name) => (name.as_str().unwrap(), update["params"].to_string()),
            None => ("session/update", json!({"sessionId": "s", "update": update}).to_string()),
        };
        for piece in transcript.notification(name, &params) {
            match piece {
                Piece::Flow(flow, part) => {
                    if last.replace(flow) != Some(flow) {
                        end_line(&mut text);
                    }
                    text.push_str(&part);
                }
                Piece::Lines(lines) => {
                    last = None;
                    end_line(&mut text);
                    text.push_str(&lines);
                }
            }
        }
    }
    text
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

fn plain(updates: &[Value]) -> String {
    shown(Options { paint: Paint::plain(), thoughts: true, whole: true }, updates)
}

fn colour(updates: &[Value]) -> String {
    let options = Options { paint: Paint::colour(), thoughts: true, whole: true };
    shown(options, updates).replace('\u{1b}', "␛")
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
fn a_failed_command_shows_the_first_lines_of_what_it_said() {
    let updates = [
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "cargo test",
            "kind": "execute"}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed",
            "content": [{"type": "content", "content": {"type": "text",
                "text": "1\n2\n\n3\n4\n5\n6\u{1b}[2J\n"}}]}),
    ];
    insta::assert_snapshot!(plain(&updates), @"
    $ cargo test
    ✗ cargo test
        1
        2
        3
        4
        5
    ");
}

#[test]
fn diffs_are_coloured_and_shown_once() {
    let updates = [edit("pending"), edit("in_progress"), edit("completed")];
    insta::assert_snapshot!(colour(&updates), @"
    ␛[36m✎␛[0m ␛[1mEdit src/lib.rs␛[0m␛[2m  src/lib.rs:3, src/main.rs␛[0m
        ␛[36msrc/lib.rs␛[0m ␛[32m+1␛[0m ␛[31m-1␛[0m
    ␛[2m       2   two␛[0m
    ␛[2m       3   three␛[0m
    ␛[31m       4 - four␛[0m
    ␛[32m       4 + 4␛[0m
    ␛[2m       5   five␛[0m
    ␛[2m       6   six␛[0m
    ␛[32m✓␛[0m ␛[1mEdit src/lib.rs␛[0m␛[2m  src/lib.rs:3, src/main.rs␛[0m
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
fn a_plan_is_shown_whole_and_then_as_changes() {
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
      ✓ Read the code (high)
      ▸ Write the fix
    ");
    insta::assert_snapshot!(colour(&updates[..1]), @"
    ␛[1mplan␛[0m 0/3
      ␛[36m▸␛[0m ␛[1mRead the code␛[0m␛[2m (high)␛[0m
      ○ Write the fix
      ○ Rest␛[2m (low)␛[0m
    ");
}

#[test]
fn modes_commands_usage_and_unknown_updates_are_quiet() {
    let updates = [
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "ask"}),
        json!({"sessionUpdate": "available_commands_update", "availableCommands": []}),
        json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}),
        json!({"sessionUpdate": "from_the_future", "content": 7}),
        json!({"sessionUpdate": "agent_message_chunk", "content": "not a block"}),
        json!({"nothing": true}),
    ];
    assert_eq!(plain(&updates), "");
}

#[test]
fn other_content_is_named() {
    let block = |kind: &str, content: Value| json!({"sessionUpdate": kind, "content": content});
    let updates = [
        say("user_message_chunk", "look at"),
        block(
            "user_message_chunk",
            json!({"type": "resource",
            "resource": {"uri": "file:///w/a.rs", "text": "fn main() {}"}}),
        ),
        block(
            "user_message_chunk",
            json!({"type": "resource_link", "uri": "file:///w/b.bin",
            "name": "b.bin"}),
        ),
        block(
            "agent_message_chunk",
            json!({"type": "image", "data": "AAAAAAAA",
            "mimeType": "image/png"}),
        ),
        block("agent_message_chunk", json!({"type": "hologram"})),
    ];
    insta::assert_snapshot!(plain(&updates), @"
    > look at
    > [file:///w/a.rs]
    > [b.bin] file:///w/b.bin

    [image image/png 6 B]
    ");
}

#[test]
fn notices_are_sentences() {
    let notice = |name: &str, params: Value| json!({"method": name, "params": params});
    let ended = |outcome: Value| {
        notice(
            method::TURN_ENDED,
            json!({"sessionId": "s", "turn": 1, "at": 5, "outcome": outcome}),
        )
    };
    let restored = |level: &str, reason: Option<&str>| {
        notice(
            method::RESTORED,
            json!({"sessionId": "s", "level": level, "at": 5, "reason": reason}),
        )
    };
    let updates = [
        notice(method::TURN_STARTED, json!({"sessionId": "s", "turn": 1, "at": 5})),
        ended(json!({"kind": "stopped", "stopReason": "end_turn"})),
        ended(json!({"kind": "stopped", "stopReason": "max_tokens"})),
        ended(json!({"kind": "error", "code": -32603, "message": "no luck"})),
        ended(json!({"kind": "interrupted", "reason": "the agent was killed"})),
        ended(json!({"kind": "outcome_unknown", "reason": "the daemon was killed"})),
        restored("exact", None),
        restored("renewed", None),
        restored("loaded", None),
        restored("reseeded", None),
        restored("lost", Some("unknown session")),
        notice(
            method::NOTICE,
            json!({"sessionId": "s", "severity": "warning", "text": "mode is gone"}),
        ),
        notice(
            method::SKIPPED,
            json!({"sessionId": "s", "bytes": 73_400_320, "limit": 67_108_864}),
        ),
        notice(method::PROMPT_QUEUED, json!({"sessionId": "s", "ahead": 2})),
        notice(method::CAUGHT_UP, json!({"sessionId": "s", "seq": 2})),
    ];
    insta::assert_snapshot!(plain(&updates), @"
    turn ended: max tokens
    turn failed: no luck
    turn interrupted: the agent was killed; the last message may be incomplete
    outcome unknown: the daemon was killed; the prompt is not sent again by itself
    session restored: the agent has the conversation again
    previous session could not be restored: the agent goes on with a summary; your history is intact
    session lost: unknown session; your history is intact
    mode is gone
    a line of 70 MB is left out: the limit is 64 MB
    waiting: 2 prompts of this session first
    ");
}

#[test]
fn whoever_runs_the_turn_sees_neither_the_prompt_nor_thoughts() {
    let options = Options { paint: Paint::plain(), thoughts: false, whole: false };
    let updates = [
        say("user_message_chunk", "hi"),
        say("agent_thought_chunk", "hm"),
        json!({"method": method::TURN_ENDED, "params": {"sessionId": "s", "turn": 1, "at": 5,
            "outcome": {"kind": "interrupted", "reason": "killed"}}}),
        say("agent_message_chunk", "a\u{1b}b"),
    ];
    assert_eq!(shown(options, &updates), "a\u{1b}b");
}
