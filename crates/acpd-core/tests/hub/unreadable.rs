//! A malformed member hides nothing else of its line, and no line of older and newer versions is
//! lost.

use acp_wire::{Body, Version};
use acpd_core::{ClientEvent, Input};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::questions::{alone, asks, options, pending, run, with_policy};
use crate::titles::listed;
use crate::watch::doing;

/// JSON that is in the place of something else, or that no type of Rust holds.
fn unreadable() -> [String; 6] {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    [r#""\ud83d""#, "5", "[1]", "1e999", r#"{"\udc00":1}"#, &deep].map(str::to_owned)
}

/// The agent asks for a permission; the call has these members, and the params these further ones.
fn asks_raw(bench: &mut Bench, call: &str, more: &str) {
    let call = format!(r#"{{"toolCallId":"t",{call}}}"#);
    let params = format!(r#"{{"sessionId":"s","toolCall":{call},"options":{}{more}}}"#, options());
    let method = "session/request_permission";
    bench.agent_raw(&format!(r#"{{"id":7,"method":"{method}","params":{params}}}"#));
}

fn update_line(update: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
    )
}

#[test]
fn updates_with_bad_members_are_relayed_byte_for_byte() {
    let (mut bench, a) = Bench::begun();
    bench.lenient = true;
    for bad in unreadable() {
        let updates = [
            format!(
                r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":{bad}}},"_meta":{bad}}}"#
            ),
            format!(
                r#"{{"sessionUpdate":"tool_call","toolCallId":{bad},"title":{bad},"rawInput":{bad}}}"#
            ),
            format!(r#"{{"sessionUpdate":"plan","entries":{bad},"\ud83d":{bad}}}"#),
            format!(r#"{{"sessionUpdate":"session_info_update","updatedAt":{bad}}}"#),
        ];
        for update in updates {
            let line = update_line(&update);
            bench.agent_raw(&line);
            assert_eq!(bench.got_raw(a), [line]);
        }
    }
    bench.agent_raw(&update_line(r#"{"sessionUpdate":"session_info_update","title":"a \ud83d"}"#));
    assert_eq!(listed(&mut bench), "a \u{fffd}");
    bench.agent_raw(&update_line(r#"{"sessionUpdate":"session_info_update","title":[5]}"#));
    assert_eq!(listed(&mut bench), "a \u{fffd}", "what cannot be read changes nothing");
}

#[test]
fn a_question_with_a_bad_member_is_shown_and_no_rule_allows_it() {
    let policy = || {
        with_policy(&json!({"rules":[{"decision":"allow","kind":"execute"},
        {"decision":"allow","title":"*"}, {"decision":"allow","command":"*"}]}))
    };
    let mut bench = alone(policy());
    asks(&mut bench, 7, &run("ls"));
    assert_eq!(bench.heard()[0]["result"]["outcome"]["optionId"], "y", "the rules allow");
    for bad in unreadable() {
        let call = [
            format!(r#""title":{bad},"rawInput":{{"command":"ls"}}"#),
            format!(r#""title":"list","rawInput":{bad}"#),
            format!(r#""title":"list","rawInput":{{"command":{bad}}}"#),
            format!(r#""title":"list","rawInput":{{"command":"ls"}},"content":{bad}"#),
        ];
        for members in call {
            let mut bench = alone(policy());
            asks_raw(&mut bench, &format!(r#""kind":"execute",{members}"#), "");
            assert_eq!(bench.heard(), Vec::<Value>::new(), "{members}");
            let question = pending(&mut bench).remove(0)["question"].take();
            let shown = question["shown"].to_string();
            assert!(shown.contains("ls") || shown.contains("list"), "{members}: {shown}");
            assert_eq!(question["options"].as_array().map(Vec::len), Some(3), "{members}");
        }
    }
    // Also where nothing that a rule looks at is bad.
    let mut bench = alone(policy());
    let call = r#""kind":"execute","title":"ls","rawInput":{"command":"ls"}"#;
    asks_raw(&mut bench, call, r#","_meta":{"x":"\ud83d"}"#);
    assert_eq!(pending(&mut bench).len(), 1);
}

#[test]
fn readable_diffs_are_shown_next_to_one_that_is_not() {
    let mut bench = alone(Bench::new());
    let diffs =
        r#"{"type":"diff","path":"/w/a","newText":"x"},{"type":"diff","path":"/w/b","newText":5}"#;
    asks_raw(&mut bench, &format!(r#""kind":"edit","title":"edit","content":[{diffs}]"#), "");
    let shown = pending(&mut bench).remove(0)["question"]["shown"].take();
    assert_eq!(shown["diffs"][0]["path"], "/w/a");
    let unclear = shown["unclear"].to_string();
    assert!(unclear.contains("content") && shown["raw"].to_string().contains("/w/b"), "{shown}");
}

#[test]
fn a_list_of_updates_is_as_many_lines() {
    let (mut bench, a) = Bench::begun();
    let chunk = |text: &str| json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":text}});
    let params = json!({"sessionId":"s","updates":[chunk("one"), chunk("two")]});
    bench.agent(&json!({"jsonrpc":"2.0","method":"session/update","params":params}));
    let got = bench.got(a);
    let updates: Vec<_> = got.iter().map(|line| &line["params"]["update"]).collect();
    assert_eq!(updates, [&chunk("one"), &chunk("two")]);
}

#[test]
fn cursors_and_suggestions_are_no_history() {
    let (mut bench, a) = Bench::begun();
    for kind in ["cursor_update", "prompt_suggestions_update"] {
        bench.agent_raw(&update_line(&format!(r#"{{"sessionUpdate":"{kind}","cursorId":"c"}}"#)));
        assert_eq!(bench.got_raw(a), [""; 0]);
        assert!(bench.notes.iter().any(|note| note.contains(kind)), "{:?}", bench.notes);
    }
    assert!(!bench.journal_words().iter().any(|word| word.contains("cursor")));
}

#[test]
fn a_version_that_does_not_exist_is_refused_with_those_that_do() {
    let mut bench = Bench::new();
    let client = bench.open();
    bench.ask(client, 1, "initialize", &json!({"protocolVersion":0}));
    let error = bench.got(client).remove(0)["error"].take();
    assert_eq!(error["code"], -32022);
    assert_eq!(error["data"]["requested"], 0);
    assert_eq!(error["data"]["supported"], json!([1, 2]));
}

#[test]
fn a_client_of_version_2_is_known_by_its_name_and_capabilities() {
    let mut bench = Bench::new();
    bench.configure(|config| config.newest = Version::V1);
    let (mut bench, maker) = bench.with_noticed();
    let newer = |bench: &mut Bench, name: &str, capabilities: Value| {
        let client = bench.open();
        let info = json!({"name":name,"title":name.to_uppercase(),"version":"1"});
        let params = json!({"protocolVersion":2,"info":info,"capabilities":capabilities});
        bench.ask(client, 1, "initialize", &params);
        assert_eq!(bench.got(client)[0]["result"]["protocolVersion"], 1);
        bench.join(client, "s");
        client
    };
    let zed = newer(&mut bench, "zed", json!({"elicitation":{"form":{}}}));
    let other = newer(&mut bench, "other", json!({"elicitation":{"url":{}}}));
    bench.start_turn(maker, 3, "s", "go");
    bench.agent(&json!({"id":9,"method":"elicitation/create","params":{"sessionId":"s","mode":"form",
        "message":"Name?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}}));
    let is_question = |line: &&Value| line["method"] == "elicitation/create";
    assert!(!bench.got(other).iter().any(|line| is_question(&line)), "it shows no forms");
    let question = bench.got(zed).iter().find(is_question).expect("it shows forms").clone();
    bench.got(maker);
    let result = json!({"action":"accept","content":{"n":"x"}});
    bench.reply(zed, &question, &result);
    let answered = bench.find(maker, "_acpd/answered");
    assert_eq!(answered["params"]["by"], json!({"name":"zed","title":"ZED"}));
}

#[test]
fn other_sessions_in_a_call_are_shown_to_those_who_know_them() {
    let (mut bench, plain) = Bench::begun();
    bench.lenient = true;
    let text = json!({"type":"content","content":{"type":"text","text":"x"}});
    let content = json!([{"type":"session","sessionId":"other"}, text]);
    let call = json!({"sessionUpdate":"tool_call","toolCallId":"t","title":"T","content":content});
    bench.agent_raw(&update_line(&call.to_string()));
    assert_eq!(bench.got(plain)[0]["params"]["update"]["content"], json!([text]));
}

#[test]
fn words_of_an_answer_with_a_lone_surrogate_are_told_in_lists() {
    let mut bench = Bench::new();
    bench.lenient = true;
    bench.running("s", "go");
    bench.agent_raw(&update_line(
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"half \ud83d"}}"#,
    ));
    assert_eq!(doing(&mut bench).1, "half \u{fffd}");
}

#[test]
fn lines_that_are_not_read_are_answered_first_and_without_the_store() {
    let mut bench = Bench::new();
    let client = bench.open();
    let head = r#"{"id":1,"method":"m""#.into();
    let long = Body::Oversized { head, len: 1 << 30, inside: true };
    let ping = Body::Line(r#"{"id":2,"method":"_acpd/ping"}"#.into());
    for bad in [long, Body::Line("{".into())] {
        for commits in [true, false] {
            bench.commits = commits;
            let lines = vec![bad.clone(), ping.clone()];
            bench.feed(Input::Client(client, ClientEvent::Lines(lines)));
            let got = bench.got(client);
            assert_eq!(got.len(), 2, "{got:?}");
            assert!(got[0]["error"].is_object() && got[1]["result"].is_object(), "{got:?}");
        }
    }
}
