//! `acpctl session export`, with both formats.

use std::thread::{self, JoinHandle};

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Home, session};

/// A conversation; the second message comes on two pages.
fn journal() -> [Vec<Value>; 2] {
    let notice = |method: &str, mut params: Value| {
        params["sessionId"] = json!("s-1");
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    };
    let update = |update: Value| notice("session/update", json!({"update": update}));
    let say = |kind: &str, text: &str| {
        update(json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}))
    };
    let plan = |first: &str, second: &str| {
        update(json!({"sessionUpdate": "plan", "entries": [
            {"content": "Read", "priority": "high", "status": first},
            {"content": "Write", "priority": "medium", "status": second}]}))
    };
    let first = vec![
        update(json!({"sessionUpdate": "available_commands_update", "availableCommands": []})),
        notice(method::TURN_STARTED, json!({"turn": 1, "at": 5})),
        say("user_message_chunk", "fix it"),
        update(json!({"sessionUpdate": "user_message_chunk", "content": {"type": "resource",
            "resource": {"uri": "file:///w/a.rs", "text": "fn main() {}"}}})),
        say("agent_thought_chunk", "hm"),
        plan("pending", "pending"),
        say("agent_message_chunk", "I "),
    ];
    let second = vec![
        say("agent_message_chunk", "look.\n"),
        update(json!({"sessionUpdate": "usage_update", "used": 1, "size": 2})),
        update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit a.rs",
            "kind": "edit", "status": "pending", "locations": [{"path": "/w/a.rs", "line": 1}]})),
        update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": null,
            "status": "completed", "content": [{"type": "diff", "path": "/w/a.rs",
                "oldText": "one\ntwo ```\n", "newText": "one\n2 ```\n"}]})),
        plan("completed", "in_progress"),
        update(json!({"sessionUpdate": "tool_call", "toolCallId": "u", "title": "make",
            "kind": "execute", "content": [{"type": "content",
                "content": {"type": "text", "text": "gcc\nld"}}]})),
        notice(
            method::TURN_ENDED,
            json!({"turn": 1, "at": 9, "outcome": {"kind": "interrupted", "reason": "killed"}}),
        ),
    ];
    [first, second]
}

fn daemon(home: &Home) -> JoinHandle<()> {
    let listener = home.listen();
    thread::spawn(move || {
        let mut client = Client::accept(&listener);
        client.finds(&session("s-1"));
        let entries = |lines: Vec<Value>, seq: usize| -> Vec<Value> {
            (seq..).zip(lines).map(|(seq, line)| json!({"seq": seq, "line": line})).collect()
        };
        let [first, second] = journal();
        let page = json!({"sessionId": "s-1", "entries": entries(first, 1), "next": 7});
        client.answer(method::SESSION_LOG, page);
        let page = json!({"sessionId": "s-1", "entries": entries(second, 8)});
        let log = client.answer(method::SESSION_LOG, page);
        let exactly = json!({"session": "s-1", "agent": "demo"});
        assert_eq!(log["params"], json!({"ref": exactly, "after": 7}));
    })
}

#[test]
fn a_transcript_can_be_read() {
    let home = Home::new();
    let daemon = daemon(&home);
    let done = home.run(&["session", "export", "fix"]);
    insta::assert_snapshot!(done.out, @"
    # fix

    - session: fix (s-1)
    - agent: demo
    - directory: /work
    - created: 1970-01-01 00:00:01
    - used: 1970-01-01 00:00:02

    ## You

    fix it

    `[file:///w/a.rs]`

    ## demo

    I look.

    **Edit a.rs** (edit, done): `/w/a.rs:1`

    ````diff
    --- /w/a.rs
    +++ /w/a.rs
    @@ -1,2 +1,2 @@
     one
    -two ```
    +2 ```
    ````

    **make** (execute, not finished)

        gcc
        ld

    > turn interrupted: killed; the last message may be incomplete

    ## Plan

    - [x] Read (high)
    - [ ] Write (medium, in progress)
    ");
    assert_eq!((done.err.as_str(), done.code), ("", Some(0)));
    daemon.join().unwrap();
}

#[test]
fn data_is_one_array_of_items_with_a_type() {
    let home = Home::new();
    let daemon = daemon(&home);
    let done = home.run(&["session", "export", "fix", "--format", "json"]);
    assert_eq!((done.err.as_str(), done.code), ("", Some(0)));
    let items: Vec<Value> = serde_json::from_str(&done.out).unwrap();
    let mut first = session("s-1");
    first["type"] = json!("session");
    assert_eq!(items[0], first);
    let text = |text: &str| json!({"type": "text", "text": text});
    let expected = [
        json!({"type": "turn_started", "seq": 2, "turn": 1, "at": 5}),
        json!({"type": "user", "seq": 3, "content": [text("fix it"), {"type": "resource",
            "resource": {"uri": "file:///w/a.rs", "text": "fn main() {}"}}]}),
        json!({"type": "thought", "seq": 5, "content": [text("hm")]}),
        json!({"type": "agent", "seq": 7, "content": [text("I look.\n")]}),
        json!({"type": "tool_call", "seq": 10, "toolCallId": "t", "title": "Edit a.rs",
            "kind": "edit", "status": "completed", "locations": [{"path": "/w/a.rs", "line": 1}],
            "content": [{"type": "diff", "path": "/w/a.rs",
                "oldText": "one\ntwo ```\n", "newText": "one\n2 ```\n"}]}),
        json!({"type": "tool_call", "seq": 13, "toolCallId": "u", "title": "make",
            "kind": "execute", "content": [{"type": "content", "content": text("gcc\nld")}]}),
        json!({"type": "turn_ended", "seq": 14, "turn": 1, "at": 9,
            "outcome": {"kind": "interrupted", "reason": "killed"}}),
        json!({"type": "plan", "seq": 12, "entries": [
            {"content": "Read", "priority": "high", "status": "completed"},
            {"content": "Write", "priority": "medium", "status": "in_progress"}]}),
    ];
    assert_eq!(items[1..], expected);
    daemon.join().unwrap();
}
