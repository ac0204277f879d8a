//! A question is about what was shown when it was asked, and nothing else.

use acp_wire::{ErrorObject, code};
use acpd_core::ids::{ClientId, InteractionId};
use acpd_core::{FileService, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::questions::{alone, answer, asks, call, options, pending, run, with_policy};
use crate::steps::hint;

impl Bench {
    /// Says what is in the file that a question is about, if that is what acpd was to look for.
    pub(crate) fn look_at_file(&mut self, request: InteractionId) {
        let row = self.snapshot.interactions.get(&request);
        let is_question = row.is_some_and(|row| row.frozen.is_some());
        let (Some(files), Some((.., FileService::ReadTextFile { path, .. }))) =
            (self.files.as_ref().filter(|_| is_question), self.served.last())
        else {
            return;
        };
        let result = files
            .get(path)
            .cloned()
            .unwrap_or_else(|| Err(ErrorObject::new(code::NOT_FOUND, "no such file")));
        self.feed(Input::Served { request, result });
    }
}

/// The agent says something of its call.
fn tells(bench: &mut Bench, update: &Value) {
    let mut update = update.clone();
    update["sessionUpdate"] = json!("tool_call_update");
    bench.send_update("s", &update);
}

fn input(command: &str) -> Value {
    json!({"toolCallId":"t","rawInput":{"command":command}})
}

fn allow(bench: &mut Bench, id: &Value, always: bool) -> Value {
    let answer = json!({"kind":"allow","always":always});
    call(bench, "_acpd/interaction/answer", &json!({"id":id,"answer":answer}))
}

/// A client that knows what `_acpd` means, in the session.
fn aware(bench: &mut Bench) -> ClientId {
    let client = bench.noticed();
    bench.join(client, "s");
    client
}

#[track_caller]
fn only_question(bench: &mut Bench) -> Value {
    let mut open = pending(bench);
    assert_eq!(open.len(), 1, "{open:?}");
    open.remove(0)
}

fn asked(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line["method"] == "session/request_permission").collect()
}

#[test]
fn h2_a_question_whose_call_changes_is_asked_anew_and_the_old_id_answers_nothing() {
    let mut bench = alone(Bench::new());
    tells(&mut bench, &run("ls"));
    asks(&mut bench, 7, &json!({"toolCallId":"t"}));
    let old = pending(&mut bench).remove(0);
    assert_eq!(old["question"]["shown"]["commands"], json!(["ls"]));
    assert_eq!(old["question"]["changed"], 0);
    tells(&mut bench, &input("rm -rf ~"));
    let new = only_question(&mut bench);
    assert_ne!(new["id"], old["id"]);
    assert_eq!(new["question"]["shown"]["commands"], json!(["rm -rf ~"]));
    assert_eq!(new["question"]["subject"], "run `rm -rf ~`");
    assert_eq!(new["question"]["changed"], 1);
    let refused = allow(&mut bench, &old["id"], true);
    assert_eq!(hint(&refused), "`acpctl pending` lists the open questions");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    assert!(bench.snapshot.remembered.is_empty());
    assert_eq!(allow(&mut bench, &new["id"], false)["result"], json!({}));
    assert_eq!(bench.heard()[0]["id"], 7, "under the agent's own id");
}

#[test]
fn h2_what_is_remembered_is_what_was_shown() {
    let mut bench = alone(Bench::new());
    tells(&mut bench, &run("ls"));
    asks(&mut bench, 7, &json!({"toolCallId":"t"}));
    // A status is no other call, and what is said of another one is none of its business.
    tells(&mut bench, &json!({"toolCallId":"t","status":"in_progress"}));
    tells(&mut bench, &json!({"toolCallId":"u","rawInput":{"command":"rm -rf ~"}}));
    let open = pending(&mut bench).remove(0);
    assert_eq!(open["question"]["changed"], 0);
    assert_eq!(open["question"]["shown"]["always"], "run `ls`");
    allow(&mut bench, &open["id"], true);
    tells(&mut bench, &input("rm -rf ~"));
    let list = call(&mut bench, "_acpd/policy/list", &json!({}));
    assert_eq!(list["result"]["remembered"][0]["subject"], "run `ls`");
}

#[test]
fn h2_each_client_sees_the_change_then_the_withdrawal_then_the_new_question() {
    let (mut bench, editor) = Bench::begun();
    bench.prompt(editor, &json!(2), "s", "go");
    let own = aware(&mut bench);
    asks(&mut bench, 7, &run("ls"));
    let first = |lines: &[Value]| asked(lines)[0]["id"].clone();
    let old = [first(&bench.got(editor)), first(&bench.got(own))];
    tells(&mut bench, &input("rm -rf ~"));
    let (to_editor, to_own) = (bench.got(editor), bench.got(own));
    let banner = |line: &&Value| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk";
    assert_eq!(to_editor.iter().filter(banner).count(), 1, "{to_editor:?}");
    assert_eq!(to_own.iter().filter(banner).count(), 0);
    for (lines, old) in [(&to_editor, &old[0]), (&to_own, &old[1])] {
        let place = |what: &str| words(lines).iter().position(|word| word == what).expect(what);
        let (update, withdrawn) = (place("tool_call_update"), place("$/cancel_request"));
        assert!(update < withdrawn, "{:?}", words(lines));
        assert_eq!(lines[withdrawn]["params"]["requestId"], *old);
        let new = asked(lines)[0];
        assert_ne!(new["id"], *old);
        let at = lines.iter().position(|line| line == new).expect("it is there");
        assert!(withdrawn < at, "{:?}", words(lines));
        // The question itself says what is newest, also to who only reads questions.
        assert_eq!(new["params"]["toolCall"]["rawInput"]["command"], "rm -rf ~");
    }
    let meta = |lines: &[Value]| asked(lines)[0]["params"]["_meta"]["_acpd"].clone();
    assert_eq!(meta(&to_own)["changed"], 1);
    assert_eq!(meta(&to_own)["shown"]["commands"], json!(["rm -rf ~"]));
    assert_eq!(meta(&to_editor), Value::Null);
    // The answer to the old question comes too late.
    let chosen = json!({"outcome":{"outcome":"selected","optionId":"y"}});
    bench.heard();
    bench.say(editor, &json!({"id":old[0],"result":chosen}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.say(editor, &json!({"id":asked(&to_editor)[0]["id"],"result":chosen}));
    assert_eq!(bench.heard()[0]["result"], chosen);
    assert!(words(&bench.got(own)).contains(&"$/cancel_request".to_owned()));
}

#[test]
fn h2_a_change_is_put_to_the_policy_first() {
    let rules = json!([{"name":"no rm","decision":"reject","command":"rm *"},
        {"name":"make","decision":"allow","command":"make"}]);
    for (command, option) in [("rm -rf ~", "n"), ("make", "y")] {
        let mut bench = alone(with_policy(&json!({"rules":rules})));
        asks(&mut bench, 7, &run("ls"));
        assert_eq!(pending(&mut bench).len(), 1);
        tells(&mut bench, &input(command));
        assert_eq!(bench.heard()[0]["result"]["outcome"]["optionId"], option);
        assert!(pending(&mut bench).is_empty());
        let decided = bench.journal.values().flatten().map(|row| row.line.clone());
        let decided = decided.map(|line| serde_json::from_slice::<Value>(&line).expect("JSON"));
        let decided = decided.filter(|line| line["method"] == "_acpd/permission_decided").last();
        let shown = decided.expect("it is in the journal")["params"]["shown"].clone();
        assert_eq!(shown["commands"], json!([command]));
    }
}

#[test]
fn h1_a_change_of_which_something_was_taken_out_is_for_a_person() {
    let rules = json!({"rules":[{"name":"make","decision":"allow","command":"make*"}]});
    for more in [r#""_acpd":"; rm -rf ~","#, r#""command":"rm -rf ~","#] {
        let mut bench = alone(with_policy(&rules));
        asks(&mut bench, 7, &run("ls"));
        bench.agent_raw(&format!(
            r#"{{"method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call_update","toolCallId":"t","rawInput":{{{more}"command":"make"}}}}}}}}"#
        ));
        assert_eq!(bench.heard(), Vec::<Value>::new(), "no rule answers: {more}");
        let open = only_question(&mut bench);
        let question = &open["question"];
        assert_eq!(question["shown"]["commands"], json!(["make"]));
        assert!(question["shown"]["raw"].is_object(), "it is not understood: {question}");
    }
}

#[test]
fn h2_a_call_that_never_stands_still_is_refused() {
    let mut bench = alone(Bench::new());
    asks(&mut bench, 7, &run("ls"));
    for change in 1..=16 {
        tells(&mut bench, &input(&format!("echo {change}")));
        assert_eq!(pending(&mut bench)[0]["question"]["changed"], change);
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
    tells(&mut bench, &input("rm -rf ~"));
    let heard = bench.heard();
    assert_eq!((&heard[0]["id"], &heard[0]["error"]["code"]), (&json!(7), &json!(-32602)));
    assert!(pending(&mut bench).is_empty());
    assert!(bench.snapshot.interactions.is_empty());
    assert!(bench.journal_words().contains(&"_acpd/permission_decided".to_owned()));
}

#[test]
fn h2_the_next_daemon_knows_what_was_shown() {
    let mut bench = alone(Bench::with_shims());
    for id in ["t", "v"] {
        let call = json!({"sessionUpdate":"tool_call","toolCallId":id,"title":"ls",
            "kind":"execute","rawInput":{"command":"ls"}});
        bench.send_update("s", &call);
    }
    asks(&mut bench, 7, &json!({"toolCallId":"t"}));
    let before = pending(&mut bench);
    bench.reboot();
    assert_eq!(pending(&mut bench), before);
    // Said again, it is the same; said otherwise, it is another question.
    tells(&mut bench, &input("ls"));
    assert_eq!(pending(&mut bench), before);
    tells(&mut bench, &json!({"toolCallId":"t","title":"Tidy up"}));
    let after = pending(&mut bench).remove(0);
    assert_ne!(after["id"], before[0]["id"]);
    assert_eq!(after["question"]["shown"]["commands"], json!(["ls"]));
    // A call that the last daemon was told of may be anything; one that is new is what is said of it.
    asks(&mut bench, 8, &json!({"toolCallId":"v","title":"ls"}));
    asks(&mut bench, 9, &json!({"toolCallId":"w","title":"ls"}));
    let open = pending(&mut bench);
    let raw = |title: &str, id: &str| {
        let is_it = |open: &&Value| {
            let shown = &open["question"]["shown"];
            shown["title"] == title && shown["raw"]["text"].as_str().is_some_and(|t| t.contains(id))
        };
        open.iter().find(is_it).map(|open| open["question"]["shown"]["raw"]["text"].clone())
    };
    assert_eq!(raw("ls", r#""v""#), Some(json!(r#"{"toolCallId":"v","title":"ls"}"#)));
    assert_eq!(raw("ls", r#""w""#), None);
}

#[test]
fn h2_a_call_of_a_subagent_is_frozen_too() {
    let mut bench = alone(Bench::new());
    let child = json!({"sessionUpdate":"subagent_update","sessionId":"c","status":"running"});
    bench.send_update("s", &child);
    let asks = json!({"sessionId":"c","toolCall":run("ls"),"options":options()});
    bench.agent_asks(7, "session/request_permission", &asks);
    let update = |session: &str| {
        let update = json!({"sessionUpdate":"tool_call_update","toolCallId":"t",
            "rawInput":{"command":"rm -rf ~"}});
        json!({"method":"session/update","params":{"sessionId":session,"update":update}})
    };
    bench.agent(&update("s"));
    assert_eq!(pending(&mut bench)[0]["question"]["changed"], 0, "another call of that name");
    bench.agent(&update("c"));
    let open = only_question(&mut bench);
    assert_eq!(open["question"]["shown"]["commands"], json!(["rm -rf ~"]));
}

#[test]
fn h2_a_call_of_which_too_much_was_said_is_not_understood() {
    let mut bench = alone(with_policy(&json!({"rules":[{"decision":"allow","command":"make"}]})));
    tells(&mut bench, &run("make"));
    let places: Vec<Value> =
        (0..20_000).map(|n| json!({"path":format!("/etc/{n}/passwd")})).collect();
    tells(&mut bench, &json!({"toolCallId":"t","locations":places}));
    asks(&mut bench, 7, &run("make"));
    let shown = pending(&mut bench)[0]["question"]["shown"].clone();
    assert_eq!(shown["unclear"], json!([{"member":"locations","why":"cannot be read"}]));
    assert!(shown["always"].is_null() && shown["raw"]["text"].is_string());
}

#[test]
fn h2_a_change_that_is_too_long_to_keep_leaves_nothing_old_behind() {
    let (mut bench, editor) = Bench::begun();
    bench.prompt(editor, &json!(2), "s", "go");
    asks(&mut bench, 7, &run("ls"));
    bench.got(editor);
    tells(&mut bench, &input(&"rm -rf ~;".repeat(40_000)));
    let lines = bench.got(editor);
    let call = &asked(&lines)[0]["params"]["toolCall"];
    assert_eq!((&call["title"], &call["rawInput"]), (&json!("ls"), &Value::Null));
    let shown = pending(&mut bench)[0]["question"]["shown"].clone();
    assert_eq!(shown["unclear"], json!([{"member":"rawInput","why":"cannot be read"}]));
    assert_eq!(shown["commands"], json!([]));
    // Said again, it is there again.
    tells(&mut bench, &input("rm"));
    let shown = pending(&mut bench)[0]["question"]["shown"].clone();
    assert_eq!((&shown["unclear"], &shown["commands"]), (&json!([]), &json!(["rm"])));
}

#[test]
fn m3_a_call_that_cannot_be_read_is_shown_raw_and_no_rule_allows_it() {
    let rules = json!([{"decision":"allow","command":"*"},{"decision":"allow","kind":"execute"}]);
    let deep = |levels: usize| {
        let nested = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"toolCallId":"t","title":"x","kind":"execute","rawInput":{nested}}}"#)
    };
    let mut places = run("make");
    places["locations"] = json!([{"path":7}]);
    let calls = [deep(200), places.to_string(), r#"{"toolCallId":"t"}"#.to_owned(), "5".to_owned()];
    for call in calls {
        let mut bench = alone(with_policy(&json!({"rules":rules})));
        let options = options();
        bench.agent_raw(&format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{call},"options":{options}}}}}"#
        ));
        let open = only_question(&mut bench);
        let shown = &open["question"]["shown"];
        assert_ne!(shown["unclear"], json!([]), "{call}");
        assert!(shown["raw"]["text"].is_string(), "{call}");
        let refused = answer(&mut bench, &json!({"kind":"allow","always":true}));
        assert!(refused["error"]["message"].is_string(), "it cannot be known again: {call}");
    }
}

#[test]
fn m7_a_command_is_carried_whole_to_lists_hooks_and_clients() {
    let long = format!("ls -la {}; rm -rf ~", "x".repeat(100_000));
    let mut bench = alone(Bench::new());
    let own = aware(&mut bench);
    bench.hooks.clear();
    asks(&mut bench, 7, &run(&long));
    let listed = pending(&mut bench).remove(0);
    let hook = bench.hooks.pop().expect("told");
    let offer = bench.got(own);
    let offer = &asked(&offer)[0]["params"]["_meta"]["_acpd"]["shown"];
    let shown = [&listed["question"]["shown"], &hook["question"]["shown"], offer];
    for shown in shown {
        assert_eq!(shown["commands"], json!([long]));
        assert!(shown["raw"].is_null());
    }
    bench.leave(own);
}

#[test]
fn a_write_without_old_text_shows_the_file_that_it_replaces() {
    let mut bench = alone(Bench::new());
    let content = |text: &str| Ok(json!({ "content": text }).to_string().into());
    let files = bench.files.as_mut().expect("files");
    files.insert("/w/src/main.rs".into(), content("one\ntwo\n"));
    files.insert("/w/big".into(), content(&"x".repeat(200_000)));
    let outside = ErrorObject::new(-32602, "leads out of the session");
    files.insert("/etc/hosts".into(), Err(outside));
    let diff =
        |path: &str, old: Value| json!({"type":"diff","path":path,"oldText":old,"newText":"y"});
    let content = [
        diff("/w/src/main.rs", json!(null)),
        diff("src/main.rs", json!("")),
        diff("/w/new", json!(null)),
        diff("/etc/hosts", json!(null)),
        diff("/w/big", json!(null)),
        diff("/w/edited", json!("x")),
    ];
    let edit = json!({"toolCallId":"t","title":"Edit","kind":"edit","rawInput":{"path":"/w/new"},
        "content":content});
    asks(&mut bench, 7, &edit);
    let shown = pending(&mut bench)[0]["question"]["shown"].clone();
    assert_eq!(
        shown["diffs"],
        json!([
            {"path":"/w/src/main.rs","oldText":"one\ntwo\n","newText":"y","replaces":true},
            {"path":"src/main.rs","oldText":"one\ntwo\n","newText":"y","replaces":true},
            {"path":"/w/new","newText":"y"},
            {"path":"/etc/hosts","newText":"y","unseen":true},
            {"path":"/w/big","newText":"","leftOut":200_001,"replaces":true},
            {"path":"/w/edited","oldText":"x","newText":"y"},
        ])
    );
    let looked: Vec<&str> = bench
        .served
        .iter()
        .map(|(_, _, service)| match service {
            FileService::ReadTextFile { path, .. } => path.as_str(),
            FileService::WriteTextFile { .. } => "written",
        })
        .collect();
    assert_eq!(looked, ["/w/src/main.rs", "/w/src/main.rs", "/w/new", "/etc/hosts", "/w/big"]);
    assert!(bench.served.iter().all(|(_, roots, _)| *roots == ["/w"]), "{:?}", bench.served);
    // The next daemon shows the same.
    let row = bench.snapshot.interactions.values().next().expect("an open question");
    assert_eq!(serde_json::to_value(&row.frozen).expect("JSON")["shown"]["diffs"], shown["diffs"]);
}

#[test]
fn nobody_is_asked_before_the_file_was_looked_at() {
    let mut bench = alone(Bench::new());
    let client = aware(&mut bench);
    bench.files = None;
    let content = [json!({"type":"diff","path":"/w/a","newText":"y"})];
    asks(&mut bench, 7, &json!({"toolCallId":"t","title":"Edit","kind":"edit","content":content}));
    assert!(pending(&mut bench).is_empty());
    assert!(asked(&bench.got(client)).is_empty());
    let (request, ..) = bench.served[0];
    let id = json!(format!("{}-{}", request.0 >> 32, request.0 & 0xffff_ffff));
    assert!(allow(&mut bench, &id, false)["error"].is_object());
    let result = Ok(json!({"content":"x"}).to_string().into());
    bench.feed(Input::Served { request, result });
    assert_eq!(pending(&mut bench).len(), 1);
    let got = bench.got(client);
    let shown = &asked(&got)[0]["params"]["_meta"]["_acpd"]["shown"];
    assert_eq!(shown["diffs"][0]["oldText"], "x");
}

#[test]
fn a_diff_that_is_too_long_is_counted_and_a_raw_call_is_cut_where_a_letter_ends() {
    let mut bench = alone(Bench::new());
    let diff = |path: &str, text: String| json!({"type":"diff","path":path,"newText":text});
    let content = [diff("/w/a", "é".repeat(100_000)), diff("/w/b", "y".to_owned())];
    let edit = json!({"toolCallId":"t","title":"Edit","kind":"edit","rawInput":{"path":"/w/a"},
        "content":content});
    asks(&mut bench, 7, &edit);
    let shown = pending(&mut bench)[0]["question"]["shown"].clone();
    assert_eq!(
        shown["diffs"],
        json!([{"path":"/w/a","newText":"","leftOut":200_000},{"path":"/w/b","newText":"y"}])
    );
    let raw = &shown["raw"];
    let kept = raw["text"].as_str().expect("text").len() as u64;
    assert!((65_533..=65_536).contains(&kept), "{kept}");
    assert!(raw["leftOut"].as_u64().expect("a number") > 130_000);
}
