//! Agents of version 2: what the engine hears of them is version 1, in order and complete.

use acp_wire::Version;
use acp_wire::dialect::{Heard, Translator, initialized_from_agent, initialized_to_v2};
use agent_client_protocol_schema::v1;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

fn line(value: &Value) -> Bytes {
    value.to_string().into()
}

fn value(line: &[u8]) -> Value {
    serde_json::from_slice(line).expect("it is JSON")
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn answer(id: u64, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn update(update: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update",
        "params": {"sessionId": "s", "update": update}})
}

fn prompt(id: u64) -> Value {
    request(id, "session/prompt", &json!({"sessionId": "s", "prompt": []}))
}

fn idle(stop: &str) -> Value {
    json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": stop})
}

/// What the engine hears of a line: the lines, and `{"inserted": ID}`.
fn heard(translator: &mut Translator, agent: &Value) -> Value {
    let heard = translator.from_agent(&line(agent)).into_iter().filter_map(|heard| match heard {
        Heard::Same => Some(agent.clone()),
        Heard::Original | Heard::Echo | Heard::State(..) => None,
        Heard::Line(line) | Heard::Part(line) => Some(value(&line)),
        Heard::Inserted(id, _) => Some(json!({ "inserted": id })),
        Heard::Background { session, work } => {
            Some(json!({"session": session, "background": work}))
        }
    });
    heard.collect()
}

#[test]
fn prompts_are_inserted_and_answered_once() {
    let mut t = Translator::default();
    for id in [9, 10] {
        t.to_agent(&line(&prompt(id)));
    }
    let echo = |id: &str| {
        update(&json!({"sessionUpdate": "user_message_chunk", "messageId": id,
            "content": {"type": "text", "text": "hi"}}))
    };
    let end = |id: u64, stop: &str| json!([answer(id, &json!({"stopReason": stop}))]);
    // The end of other work.
    assert_eq!(heard(&mut t, &update(&idle("end_turn"))), json!([]));
    assert_eq!(heard(&mut t, &echo("a")), json!([{"inserted": 9}]));
    assert_eq!(heard(&mut t, &echo("a")), json!([]));
    // An answer without the id of the message does not hide the next message.
    assert_eq!(heard(&mut t, &answer(9, &json!({}))), json!([]));
    assert_eq!(heard(&mut t, &answer(9, &json!({}))), json!([]));
    assert_eq!(heard(&mut t, &echo("b")), json!([echo("b")]));
    assert_eq!(heard(&mut t, &update(&idle("refusal"))), end(9, "refusal"));
    assert_eq!(heard(&mut t, &update(&idle("end_turn"))), json!([]));
    // The turn ends before the answer, which is dropped.
    assert_eq!(heard(&mut t, &echo("c")), json!([{"inserted": 10}]));
    assert_eq!(heard(&mut t, &update(&idle("_own"))), end(10, "end_turn"));
    assert_eq!(heard(&mut t, &answer(10, &json!({"messageId": "c"}))), json!([]));
    // Nothing is known of it any longer.
    let late = answer(10, &json!({"messageId": "c"}));
    assert_eq!(heard(&mut t, &late), json!([late]));
}

/// What the engine knows of a prompt.
#[derive(Clone, Copy, Default)]
struct Fate {
    inserted: bool,
    ended: bool,
}

#[test]
fn each_order_of_events_ends_a_prompt_once() {
    let error = json!({"jsonrpc": "2.0", "id": 9, "error": {"code": -32603, "message": "no"}});
    let user = json!({"sessionUpdate": "user_message", "messageId": "m", "content": []});
    let running = json!({"sessionUpdate": "state_update", "state": "running"});
    let events = [
        update(&user),
        answer(9, &json!({"messageId": "m"})),
        error,
        update(&running),
        update(&idle("end_turn")),
    ];
    let mut t = Translator::default();
    t.to_agent(&line(&prompt(9)));
    every_order(&t, Fate::default(), &events, 8);
}

fn every_order(before: &Translator, fate: Fate, events: &[Value], left: usize) {
    for (at, event) in events.iter().enumerate().filter(|_| left > 0) {
        let (mut t, mut now) = (before.clone(), fate);
        let (is_idle, is_error) = (at == 4, at == 2);
        for heard in heard(&mut t, event).as_array().expect("a list") {
            if heard.get("inserted").is_some() {
                assert!(!now.inserted && !now.ended, "{event}");
                now.inserted = true;
            } else if heard["id"] == 9 && !now.ended {
                assert!(is_error || is_idle && now.inserted, "{event}");
                now.ended = true;
            } else {
                // The engine knows no such request any longer.
                assert!(heard["id"] == 9 && !is_idle, "{heard}");
            }
        }
        assert!(now.ended || !(is_idle && now.inserted), "idle in a turn");
        every_order(&t, now, events, left - 1);
    }
}

/// The texts of the chunks that the engine hears of an update.
fn texts(translator: &mut Translator, of: &Value) -> String {
    let heard = heard(translator, &update(of));
    let chunks = heard.as_array().expect("a list").iter();
    let of_chunk = |chunk: &Value| {
        let update = &chunk["params"]["update"];
        assert_eq!(update["sessionUpdate"], "agent_message_chunk");
        update["content"]["text"].as_str().expect("a text").to_owned()
    };
    chunks.map(of_chunk).collect()
}

fn chunk(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
        "content": {"type": "text", "text": text}})
}

fn message(texts: &[String]) -> Value {
    let blocks = texts.iter().map(|text| json!({"type": "text", "text": text}));
    json!({"sessionUpdate": "agent_message", "messageId": "m", "content": blocks.collect::<Value>()})
}

#[test]
fn a_replay_begins_with_nothing_shown() {
    let mut t = Translator::default();
    assert_eq!(texts(&mut t, &chunk("old")), "old");
    assert_eq!(texts(&mut t, &message(&[])), "");
    assert_eq!(texts(&mut t, &chunk("new")), "\n\nnew");
    t.to_agent(&line(&request(1, "session/load", &json!({"sessionId": "s", "cwd": "/"}))));
    assert_eq!(texts(&mut t, &message(&[])), "");
    assert_eq!(texts(&mut t, &chunk("new")), "new");
}

/// The updates that the engine hears of an update in the session `s`.
fn updates(translator: &mut Translator, of: &Value) -> Vec<Value> {
    let heard = heard(translator, &update(of));
    heard.as_array().expect("a list").iter().map(|line| line["params"]["update"].clone()).collect()
}

fn text(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

fn call(more: Value) -> Value {
    let mut call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c"});
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call
}

fn output(bytes: &[u8]) -> Value {
    let data = BASE64_STANDARD.encode(bytes);
    json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": data})
}

#[test]
fn added_content_grows_in_steps_until_the_turn_ends() {
    let mut t = Translator::default();
    updates(
        &mut t,
        &call(json!({"title": "T", "content": [{"type": "terminal", "terminalId": "t"}]})),
    );
    let mut bytes = 0;
    for n in 0..2000 {
        let more = json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c",
            "content": text(&n.to_string())});
        bytes += updates(&mut t, &more).iter().map(|line| line.to_string().len()).sum::<usize>();
    }
    assert!(bytes < 6 * 2000 * 70, "{bytes}");
    assert_eq!(updates(&mut t, &output(b"first")).len(), 1);
    assert_eq!(updates(&mut t, &output(b",")), [] as [Value; 0]);
    let last = updates(&mut t, &idle("end_turn"));
    let content = last[0]["content"].as_array().expect("the content");
    assert_eq!(
        (content.len(), &content[0], &content[2000]),
        (2001, &text("first,"), &text("1999"))
    );
    assert_eq!(updates(&mut t, &idle("end_turn")), [] as [Value; 0]);
}

#[test]
fn old_content_of_a_call_is_forgotten() {
    let mut t = Translator::default();
    let items: Vec<_> = (0..100_000).map(|n| text(&n.to_string())).collect();
    let whole = updates(&mut t, &call(json!({"status": "failed", "content": items})));
    assert_eq!(whole[0]["content"], json!(items));
    let more = json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c",
        "content": text("last")});
    let kept = updates(&mut t, &more)[0]["content"].as_array().expect("a list").clone();
    assert!((1000..10_000).contains(&kept.len()), "{}", kept.len());
    assert_eq!(kept[kept.len() - 2..], [text("99999"), text("last")]);
}

#[test]
fn terminals_show_whole_characters_and_the_end() {
    let mut t = Translator::default();
    let shown = |t: &mut Translator, of: &Value| match &*updates(t, of) {
        [] => None,
        [update] => Some(update["content"][0]["content"]["text"].as_str().unwrap().to_owned()),
        more => panic!("{more:?}"),
    };
    let terminal = json!({"type": "terminal", "terminalId": "t"});
    let first = updates(&mut t, &call(json!({"name": "N", "content": [terminal]})));
    let named = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "N", "name": "N"});
    assert_eq!(first, [named]);
    assert_eq!(shown(&mut t, &output(b"a\xc3")).as_deref(), Some("a"));
    assert_eq!(shown(&mut t, &output(b"\xa9\xff")).as_deref(), Some("a\u{e9}"));
    let end = json!({"sessionUpdate": "terminal_update", "terminalId": "t", "exitStatus": {}});
    assert_eq!(shown(&mut t, &end), None);
    let cleared = json!({"sessionUpdate": "terminal_update", "terminalId": "t", "output": null});
    assert_eq!(shown(&mut t, &cleared), None);
    let long = shown(&mut t, &output("\u{e9}\n".repeat(1 << 20).as_bytes())).unwrap();
    assert!(long.starts_with("\u{2026}\n") && long.ends_with("\u{e9}\n") && long.len() < 17 << 10);
    // Nothing of it is left in the next turn.
    updates(&mut t, &call(json!({"status": "completed"})));
    updates(&mut t, &idle("end_turn"));
    let again =
        updates(&mut t, &call(json!({"content": [{"type": "terminal", "terminalId": "t"}]})));
    assert_eq!(again[0], call(json!({"sessionUpdate": "tool_call", "title": "tool"})));
}

#[test]
fn questions_show_the_whole_call() {
    let mut t = Translator::default();
    let mut ask = |subject: &Value, description: Option<&str>| {
        let options =
            ["allow_once", "_own"].map(|kind| json!({"optionId": kind, "name": "N", "kind": kind}));
        let asked = json!({"sessionId": "s", "title": "Run?", "description": description,
            "subject": subject, "options": options});
        let lines = heard(&mut t, &request(0, "session/request_permission", &asked));
        let mut lines = lines.as_array().unwrap().clone();
        let question = lines.pop().unwrap()["params"].clone();
        assert_eq!(question["options"], json!([options[0]]));
        serde_json::from_value::<v1::RequestPermissionRequest>(question.clone()).expect("v1");
        (lines, question["toolCall"].clone())
    };
    let diff = json!({"type": "diff", "changes": [{"operation": "add", "path": "/a"}],
        "patch": {"format": "git_patch", "text": "--- /dev/null\n+++ /a\n@@ -0,0 +1 @@\n+x\n"}});
    let diff_v1 = json!({"type": "diff", "path": "/a", "oldText": null, "newText": "x\n"});
    let of_call = |call: Value| json!({"type": "tool_call", "toolCall": call});
    let subject = of_call(json!({"toolCallId": "c", "title": "Write", "content": [diff]}));
    // The call is shown before the question that brings it.
    let (lines, call) = ask(&subject, None);
    let shown = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Write",
        "content": [diff_v1]});
    assert_eq!(lines, [update(&shown)]);
    assert_eq!(call["content"], json!([text("Run?"), diff_v1]));
    // A call that is known keeps what the question does not repeat.
    let (lines, call) = ask(&of_call(json!({"toolCallId": "c"})), Some("why"));
    assert_eq!((lines.len(), call.get("title")), (0, None));
    assert_eq!(call["content"], json!([text("Run?"), text("why"), diff_v1]));
    let terminal = json!({"type": "terminal", "terminalId": "t"});
    let (_, call) =
        ask(&of_call(json!({"toolCallId": "c", "title": "Run?", "content": [terminal]})), None);
    assert_eq!(call, json!({"toolCallId": "c", "title": "Run?"}));
    let command = json!({"type": "command", "command": "ls", "cwd": "/", "env": {"A": "1"}});
    let (_, call) = ask(&command, None);
    assert_eq!(
        call,
        json!({"toolCallId": "question-4", "title": "ls", "kind": "execute",
        "rawInput": {"command": "ls", "cwd": "/", "env": {"A": "1"}}, "content": [text("Run?")]})
    );
    let own = json!({"type": "_pay", "amount": 5});
    let input = json!({"title": "Run?", "subject": own});
    let other = json!({"toolCallId": "question-5", "title": "Run?", "rawInput": input});
    assert_eq!(ask(&own, None).1, other);
    let input = json!({"title": "Run?"});
    let other = json!({"toolCallId": "question-6", "title": "Run?", "rawInput": input});
    assert_eq!(ask(&Value::Null, None).1, other);
}

#[test]
fn a_call_of_which_a_part_is_not_shown_is_marked() {
    let is_part = |t: &mut Translator, of: &Value| {
        let heard = t.from_agent(&line(of));
        matches!(heard.last().expect("a line"), Heard::Part(_))
    };
    let asks = |description: Option<&str>, call: Value| {
        let subject = json!({"type": "tool_call", "toolCall": call});
        let asked = json!({"sessionId": "s", "title": "Run?", "description": description,
            "subject": subject, "options": []});
        request(0, "session/request_permission", &asked)
    };
    let c = || json!({"toolCallId": "c", "title": "Run?"});
    let mut t = Translator::default();
    // An earlier daemon has got the content, which the description would replace.
    t.restore_call("s", "c");
    assert!(!is_part(&mut t, &asks(None, c())));
    assert!(is_part(&mut t, &asks(Some("why"), c())));
    // Long content is not kept, either.
    let long = text(&"x".repeat(300 << 10));
    assert!(!is_part(&mut t, &update(&call(json!({"content": [long]})))));
    assert!(is_part(&mut t, &asks(Some("why"), c())));
    // Rules see the paths of diffs, and no texts.
    let diff = |change: Value| json!([{"type": "diff", "changes": [change]}]);
    let gone = diff(json!({"operation": "delete", "path": "/etc/passwd"}));
    let mut asked = asks(None, c());
    asked["params"]["subject"]["toolCall"]["content"] = gone;
    let heard = heard(&mut t, &asked);
    let shown = &heard[0]["params"]["toolCall"]["content"];
    let file = json!({"type": "diff", "path": "/etc/passwd", "oldText": null, "newText": ""});
    assert_eq!(shown, &json!([file]));
    assert!(!is_part(&mut t, &asked));
    for operation in ["modify", "add", "move", "copy", "_own"] {
        let change = diff(json!({"operation": operation, "oldPath": "/etc/a", "path": "/etc/b"}));
        asked["params"]["subject"]["toolCall"]["content"] = change.clone();
        assert!(is_part(&mut t, &asked), "{operation}");
        assert!(is_part(&mut t, &update(&call(json!({"content": change})))), "{operation}");
    }
    let cleared = updates(&mut t, &call(json!({"rawInput": null})));
    assert_eq!(cleared[0]["rawInput"], json!({}));
}

#[test]
fn modes_and_options_are_in_step() {
    let mut t = Translator::default();
    let mode = |current: &str| {
        json!([{"configId": "m", "category": "mode", "name": "M", "type": "select",
            "currentValue": current, "options": [{"groupId": "g", "name": "G", "options": [
                {"value": "ask", "name": "Ask"}, {"value": "go", "name": "Go"}]}]}])
    };
    let mode_v1 = |current: &str| {
        json!([{"id": "m", "category": "mode", "name": "M", "type": "select",
            "currentValue": current, "options": [{"group": "g", "name": "G", "options": [
                {"value": "ask", "name": "Ask"}, {"value": "go", "name": "Go"}]}]}])
    };
    t.to_agent(&line(&request(1, "session/resume", &json!({"sessionId": "s", "cwd": "/"}))));
    let opened = heard(&mut t, &answer(1, &json!({"configOptions": mode("ask")})));
    let modes = json!({"currentModeId": "ask",
        "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "go", "name": "Go"}]});
    let opened_v1 = json!({"configOptions": mode_v1("ask"), "modes": modes});
    assert_eq!(opened, json!([answer(1, &opened_v1)]));
    serde_json::from_value::<v1::ResumeSessionResponse>(opened_v1).expect("v1");
    let set = request(2, "session/set_mode", &json!({"sessionId": "s", "modeId": "go"}));
    let sent = json!({"sessionId": "s", "configId": "m", "type": "id", "value": "go"});
    let sent = request(2, "session/set_config_option", &sent);
    assert_eq!(value(&t.to_agent(&line(&set))), sent);
    let is_set = json!({"configOptions": mode("go")});
    let is_set_v1 = json!({"configOptions": mode_v1("go")});
    let options = json!({"sessionUpdate": "config_option_update", "configOptions": mode_v1("go")});
    let current = json!({"sessionUpdate": "current_mode_update", "currentModeId": "go"});
    assert_eq!(
        heard(&mut t, &answer(2, &is_set)),
        json!([update(&options), update(&current), answer(2, &is_set_v1)])
    );
    t.to_agent(&line(&set));
    assert_eq!(heard(&mut t, &answer(2, &is_set)), json!([answer(2, &is_set_v1)]));
}

#[test]
fn the_members_decide_about_the_version() {
    let initialized = |result: &Value| {
        let (version, result) = initialized_from_agent(&line(result));
        let result = value(&result);
        assert_eq!(result["protocolVersion"], 1);
        serde_json::from_value::<v1::InitializeResponse>(result.clone()).expect("v1");
        (version, result)
    };
    let v1_agent = json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}});
    assert_eq!(initialized(&v1_agent), (Version::V1, v1_agent.clone()));
    let mut echo = v1_agent.clone();
    echo["protocolVersion"] = json!(2);
    assert_eq!(initialized(&echo), (Version::V1, v1_agent));
    let claude = json!({"protocolVersion": 2, "authMethods": [],
        "info": {"name": "claude-agent-acp", "title": "Claude Agent", "version": "0.101.0"},
        "capabilities": {"session": {"prompt": {"image": {}, "embeddedContext": {"_x": 1}},
            "mcp": {"stdio": {}, "http": {}}, "delete": {}, "fork": {}, "additionalDirectories": {},
            "systemPrompt": {"mode": {"override": {}}}}, "providers": {}}});
    let claude_v1 = json!({"protocolVersion": 1, "authMethods": [],
        "agentInfo": {"name": "claude-agent-acp", "title": "Claude Agent", "version": "0.101.0"},
        "agentCapabilities": {"providers": {}, "loadSession": true,
            "promptCapabilities": {"image": true, "embeddedContext": true},
            "mcpCapabilities": {"http": true},
            "sessionCapabilities": {"delete": {}, "fork": {}, "additionalDirectories": {},
                "systemPrompt": {"mode": {"override": {}}}, "list": {}, "resume": {}, "close": {}}}});
    assert_eq!(initialized(&claude), (Version::V2, claude_v1));
    let codex = json!({"protocolVersion": 2,
        "info": {"name": "codex-acp", "title": "Codex", "version": "2.6.0"},
        "capabilities": {"auth": {"_meta": {"authStatus": {}}}, "providers": {}, "session": {
            "prompt": {"embeddedContext": {}, "image": {}, "audio": null, "_meta": {"a": {}}},
            "mcp": {"stdio": {}, "http": {}}, "title": {}, "systemPrompt": {}}},
        "authMethods": [{"methodId": "api-key", "type": "agent", "name": "API Key"},
            {"methodId": "tty", "type": "terminal", "name": "T", "args": ["x"],
                "env": [{"name": "A", "value": "1"}, {"name": 5, "value": "2"}, {"name": "B"}]},
            {"methodId": "new", "type": "_new", "name": "N"}],
        "_meta": {"steering": {"supported": true}}});
    let (version, codex_v1) = initialized(&codex);
    let capabilities = &codex_v1["agentCapabilities"];
    assert_eq!((version, &capabilities["auth"]["logout"]), (Version::V2, &json!({})));
    let prompt = json!({"embeddedContext": true, "image": true, "_meta": {"a": {}}});
    assert_eq!(capabilities["promptCapabilities"], prompt);
    let methods = json!([{"id": "api-key", "type": "agent", "name": "API Key"},
        {"id": "tty", "type": "terminal", "name": "T", "args": ["x"], "env": {"A": "1"}}]);
    assert_eq!(codex_v1["authMethods"], methods);
    // And back, for a client of version 2.
    for mut agent in [claude, codex] {
        let back = value(&initialized_to_v2(&initialized_from_agent(&line(&agent)).1));
        let parts = &mut agent["capabilities"]["session"]["prompt"];
        parts["embeddedContext"] = json!({});
        parts.as_object_mut().unwrap().remove("audio");
        assert_eq!(
            (&back["info"], &back["capabilities"]),
            (&agent["info"], &agent["capabilities"])
        );
    }
    let other = json!({"protocolVersion": 2, "info": {}, "capabilities": {}});
    assert_eq!(initialized_from_agent(&line(&other)), (Version::V1, line(&other)));
}

#[derive(Debug, Clone)]
enum Change {
    Chunk(String),
    Replace(Vec<String>),
    Continue(Vec<String>),
}

fn change() -> impl Strategy<Value = Change> {
    let text = "[ab\u{e9}]{0,3}";
    let texts = prop::collection::vec(text, 0..3);
    prop_oneof![
        text.prop_map(Change::Chunk),
        texts.clone().prop_map(Change::Replace),
        texts.prop_map(Change::Continue),
    ]
}

proptest! {
    #[test]
    fn texts_of_messages_are_complete_and_in_order(changes in prop::collection::vec(change(), 0..9)) {
        let mut t = Translator::default();
        let (mut now, mut shown) = (String::new(), String::new());
        for change in changes {
            let more = match change {
                Change::Chunk(text) => {
                    now.push_str(&text);
                    texts(&mut t, &chunk(&text))
                }
                Change::Replace(blocks) => {
                    now = blocks.concat();
                    texts(&mut t, &message(&blocks))
                }
                Change::Continue(blocks) => {
                    let all: Vec<_> = [now.clone()].into_iter().chain(blocks).collect();
                    let (is_whole, was) = (shown.ends_with(&now), now);
                    now = all.concat();
                    let more = texts(&mut t, &message(&all));
                    prop_assert!(is_whole && (was.is_empty() || more == now[was.len()..]));
                    more
                }
            };
            shown.push_str(&more);
            prop_assert!(shown.ends_with(&now), "{:?} is not the end of {:?}", now, shown);
        }
    }
}

/// Fate of a line itself, in one word, and the number of lines made of it.
fn fate(translator: &mut Translator, agent: &Value) -> String {
    let heard = translator.from_agent(&line(agent));
    let words = heard.iter().filter_map(|heard| match heard {
        Heard::Same => Some("same".to_owned()),
        Heard::Original => Some("original".to_owned()),
        Heard::Echo => Some("echo".to_owned()),
        Heard::State(session, state) => Some(format!("{session} {state:?}")),
        _ => None,
    });
    let words: Vec<_> = words.collect();
    format!("{} {}", words.join(" "), heard.len() - words.len())
}

#[test]
fn lines_that_both_versions_have_pass_as_they_are() {
    let mut t = Translator::default();
    let text = |text: &str| json!({"type": "text", "text": text});
    let plan = |status: &str| {
        let entry = json!({"content": "a", "priority": "low", "status": status});
        json!({"sessionUpdate": "plan_update",
            "plan": {"type": "items", "planId": "p", "entries": [entry]}})
    };
    let message = |content: &Value| json!({"sessionUpdate": "agent_message", "messageId": "m", "content": content});
    let call = |more: &Value| {
        let mut call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t"});
        let more = more.as_object().expect("members").clone();
        call.as_object_mut().expect("an object").extend(more);
        call
    };
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
        "content": text("so")});
    let state = |state: &str| json!({"sessionUpdate": "state_update", "state": state});
    let cases = [
        (chunk.clone(), "same 0"),
        (message(&json!([text("so it is")])), "original 1"),
        (message(&json!([])), "original 0"),
        (chunk, "original 2"),
        (plan("pending"), "same 0"),
        (plan("cancelled"), "original 1"),
        (call(&json!({"title": "make"})), "original 1"),
        (call(&json!({"content": [{"type": "content", "content": text("ok")}]})), "same 0"),
        (call(&json!({"status": "paused"})), "original 1"),
        (call(&json!({"status": "completed"})), "same 0"),
        (json!({"sessionUpdate": "terminal_update", "terminalId": "x"}), "original 0"),
        (json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}), "same 0"),
        (json!({"sessionUpdate": "later", "any": null}), "same 0"),
        (json!({"sessionUpdate": "config_option_update", "configOptions": []}), " 1"),
        (json!({"sessionUpdate": "replay_complete"}), " 0"),
        (state("idle"), "s Idle 0"),
        (state("requires_action"), "s RequiresAction 0"),
        (state("unknown"), "s Running 0"),
    ];
    for (said, wanted) in cases {
        assert_eq!(fate(&mut t, &update(&said)), wanted, "{said}");
    }
    let page = json!({"sessionId": "s", "mode": "form", "message": "?", "requestedSchema": {}});
    assert_eq!(fate(&mut t, &request(7, "elicitation/create", &page)), "same 0");
    let params = json!({"sessionId": "s", "title": "?", "options": []});
    assert_eq!(fate(&mut t, &request(8, "session/request_permission", &params)), " 1");
}

#[test]
fn a_message_of_other_work_is_not_the_prompt() {
    let mut t = Translator::default();
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let user = |id: &str, said: &str| {
        update(&json!({"sessionUpdate": "user_message", "messageId": id, "content": text(said)}))
    };
    let state = |state: &str| update(&json!({"sessionUpdate": "state_update", "state": state}));
    let ask = |t: &mut Translator, id: u64| {
        let params = json!({"sessionId": "s", "prompt": text("go on")});
        t.to_agent(&line(&request(id, "session/prompt", &params)));
    };
    let inserted = |t: &mut Translator, agent: &Value| !heard(t, agent)[0]["inserted"].is_null();
    heard(&mut t, &state("running"));
    ask(&mut t, 7);
    assert!(!inserted(&mut t, &user("x", "a job is over")));
    assert!(!inserted(&mut t, &user("", "go on")), "it has no id");
    assert!(inserted(&mut t, &user("m", "go on")));
    heard(&mut t, &update(&idle("end_turn")));

    heard(&mut t, &state("running"));
    ask(&mut t, 8);
    heard(&mut t, &update(&idle("end_turn")));
    assert!(inserted(&mut t, &user("n", "in other words")), "nothing else is at work");
}
