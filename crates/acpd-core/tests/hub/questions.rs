//! Questions to people: receivers, valid answers, and automatic answers.

use acpd_policy::{Policy, PolicyConfig};
use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::steps::{hint, selected};

pub(crate) fn options() -> Value {
    json!([
        {"optionId":"y","name":"Yes","kind":"allow_once"},
        {"optionId":"ya","name":"Always","kind":"allow_always"},
        {"optionId":"n","name":"No","kind":"reject_once"},
    ])
}

pub(crate) fn run(command: &str) -> Value {
    json!({"toolCallId":"t","title":command,"kind":"execute","rawInput":{"command":command}})
}

/// A question of the turn in session `s` with these options.
fn asks_with(bench: &mut Bench, options: &Value) {
    let params = json!({"sessionId":"s","toolCall":run("make"),"options":options});
    bench.agent_asks(7, "session/request_permission", &params);
}

pub(crate) fn asks(bench: &mut Bench, id: u64, call: &Value) {
    let params = json!({"sessionId":"s","toolCall":call,"options":options()});
    bench.agent_asks(id, "session/request_permission", &params);
}

fn asks_form(bench: &mut Bench, scope: &str, of: &Value) {
    let schema = json!({"type":"object","required":["name"],
        "properties":{"name":{"type":"string"},"sure":{"type":"boolean"}}});
    let params = json!({scope:of,"mode":"form","message":"Which?","requestedSchema":schema});
    bench.agent_asks(7, "elicitation/create", &params);
}

pub(crate) fn with_policy(text: &Value) -> Bench {
    let config: PolicyConfig = serde_json::from_value(text.clone()).expect("a policy");
    Bench::with_policy(Policy::new(&config, Some("/home/me")).expect("it is understood"))
}

/// A person's answer from a terminal.
pub(crate) fn call(bench: &mut Bench, method: &str, params: &Value) -> Value {
    bench.command(method, params)
}

pub(crate) fn pending(bench: &mut Bench) -> Vec<Value> {
    let list = call(bench, "_acpd/interaction/list", &json!({}));
    list["result"]["interactions"].as_array().expect("a list").clone()
}

/// Remembered decisions, as people are told them.
fn remembered(bench: &mut Bench) -> Value {
    call(bench, "_acpd/policy/list", &json!({}))["result"]["remembered"].take()
}

/// The option that the agent gets, in the first line since the last call.
#[track_caller]
fn option_given(bench: &mut Bench) -> String {
    bench.heard()[0]["result"]["outcome"]["optionId"].as_str().expect("an option").to_owned()
}

pub(crate) fn answer(bench: &mut Bench, answer: &Value) -> Value {
    let id = pending(bench)[0]["id"].clone();
    call(bench, "_acpd/interaction/answer", &json!({"id":id,"answer":answer}))
}

/// A session with a turn and without clients.
pub(crate) fn alone(mut bench: Bench) -> Bench {
    let a = bench.begin("s");
    bench.start_turn(a, 2, "s", "go");
    bench.leave(a);
    bench
}

#[test]
fn every_question_says_what_it_asks_for_and_a_remembered_decision_what_it_holds_for() {
    let mut bench = alone(Bench::new());
    for (id, query) in [(7, "select 1"), (8, "drop table t")] {
        let call = json!({"toolCallId":"c","title":"db","kind":"other","rawInput":{"sql":query}});
        asks(&mut bench, id, &call);
    }
    let subjects: Vec<Value> =
        pending(&mut bench).iter_mut().map(|open| open["question"]["subject"].take()).collect();
    let expected = ["select 1", "drop table t"].map(|sql| json!({"sql":sql}));
    assert_eq!(subjects, expected.map(|input| format!("other: db {input}")));
    answer(&mut bench, &json!({"kind":"allow","always":true}));
    assert_eq!(remembered(&mut bench)[0]["subject"], "other: db (with the same input)");
}

#[test]
fn a_question_waits_while_nobody_is_there_and_is_answered_from_a_terminal() {
    let mut bench = alone(Bench::new());
    asks(&mut bench, 7, &run("git push"));
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let open = pending(&mut bench);
    assert_eq!(open.len(), 1);
    assert_eq!(open[0]["question"]["subject"], "run `git push`");
    assert_eq!(open[0]["question"]["options"].as_array().map(Vec::len), Some(3));
    assert_eq!(answer(&mut bench, &json!({"kind":"allow"}))["result"], json!({}));
    let heard = bench.heard();
    assert_eq!((&heard[0]["id"], &heard[0]["result"]), (&json!(7), &selected(7, "y")["result"]));
    assert!(pending(&mut bench).is_empty());
}

#[test]
fn a_plain_yes_is_the_one_option_that_says_so_and_of_several_a_person_names_one() {
    let option = |id: &str, kind: &str| json!({"optionId":id,"name":id,"kind":kind});
    let offered = |risky: &str| {
        json!([
            option("accept", "allow_once"),
            option("reject", "reject_once"),
            option("always", "allow_always"),
            option("risky", risky)
        ])
    };
    // Offered options, the answer, and the option that the agent gets.
    let cases = [
        ("allow_always", json!({"kind":"allow"}), Some("accept")),
        ("allow_always", json!({"kind":"allow","always":true}), None),
        ("allow_always", json!({"kind":"allow","always":true,"option":"risky"}), Some("risky")),
        ("allow_always", json!({"kind":"allow","always":true,"option":"accept"}), Some("accept")),
        ("allow_always", json!({"kind":"allow","option":"reject"}), None),
        ("allow_always", json!({"kind":"deny","option":"accept"}), None),
        ("allow_always", json!({"kind":"deny","always":true}), Some("reject")),
        ("reject_always", json!({"kind":"deny","always":true}), Some("reject")),
        ("reject_always", json!({"kind":"allow","always":true}), Some("accept")),
        ("allow_once", json!({"kind":"allow"}), None),
        ("allow_once", json!({"kind":"allow","option":"accept"}), Some("accept")),
        ("allow_once", json!({"kind":"allow","always":true}), Some("always")),
        ("reject_once", json!({"kind":"deny","always":true}), None),
    ];
    for (risky, given, chosen) in cases {
        let mut bench = alone(Bench::new());
        asks_with(&mut bench, &offered(risky));
        let answered = answer(&mut bench, &given);
        let heard = bench.heard();
        let got = heard.first().map(|line| &line["result"]["outcome"]["optionId"]);
        assert_eq!(got, chosen.map(|id| json!(id)).as_ref(), "{given}: {answered}");
        if chosen.is_none() {
            let hint = hint(&answered);
            assert!(hint.starts_with("`acpctl "), "{given}: {hint}");
            let (_, one) = hint.split_once(" --option ").expect("one to copy");
            let one = one.split('`').next().expect("a word");
            let offered = offered(risky);
            let mut offered = offered.as_array().expect("options").iter();
            assert!(offered.any(|option| option["optionId"] == one), "{given}: {hint}");
        }
        // An option of the agent that holds from now on is named.
        let own = chosen.filter(|id| ["always", "risky"].contains(id)).map(|id| json!(id));
        assert_eq!(answered["result"].get("ownOption"), own.as_ref(), "{given}");
        let is_remembered = remembered(&mut bench) != json!([]);
        assert_eq!(is_remembered, chosen.is_some() && given["always"] == true, "{given}");
    }
}

#[test]
fn options_of_the_same_id_are_one_answer() {
    for given in [json!({"kind":"allow"}), json!({"kind":"allow","option":"y"})] {
        let mut bench = alone(Bench::new());
        let twice = json!([
            {"optionId":"y","name":"Yes","kind":"allow_once"},
            {"optionId":"y","name":"Sure","kind":"allow_once"},
            {"optionId":"y","name":"Always","kind":"allow_always"},
            {"optionId":"n","name":"No","kind":"reject_once"},
        ]);
        asks_with(&mut bench, &twice);
        let id = pending(&mut bench)[0]["id"].as_str().expect("an id").to_owned();
        let refused = answer(&mut bench, &json!({"kind":"option","option":"x"}));
        let commands = ["y", "n"].map(|option| format!("`acpctl answer {id} --option {option}`"));
        assert_eq!(hint(&refused), commands.join(" or "));
        answer(&mut bench, &given);
        assert_eq!(option_given(&mut bench), "y");
    }
}

#[test]
fn a_question_without_answers_tells_what_ends_it() {
    let mut bench = alone(Bench::new());
    asks_with(&mut bench, &json!([]));
    let (allow, deny) = (json!({"kind":"allow"}), json!({"kind":"deny"}));
    for given in [allow, deny, json!({"kind":"option","option":"x"})] {
        let refused = answer(&mut bench, &given);
        assert!(hint(&refused).contains("`acpctl cancel s`"), "{refused}");
    }
    let c = bench.plain();
    bench.cancel(c, "s");
    assert!(pending(&mut bench).is_empty());
    // Without a turn there is nothing to cancel.
    let (mut bench, _) = Bench::begun();
    asks_with(&mut bench, &json!([]));
    let refused = answer(&mut bench, &json!({"kind":"allow"}));
    assert!(hint(&refused).contains("`acpctl agent restart gem`"), "{refused}");
}

#[test]
fn what_cannot_be_remembered_goes_to_the_agent_for_good_only_if_its_own_option_is_named() {
    let mut bench = alone(Bench::new());
    asks(&mut bench, 7, &json!({"toolCallId":"t"}));
    let id = pending(&mut bench)[0]["id"].as_str().expect("an id").to_owned();
    let refused = answer(&mut bench, &json!({"kind":"allow","always":true}));
    let own = format!("the agent's own option for that: `acpctl allow --always {id} --option ya`");
    assert!(hint(&refused).ends_with(&own), "{refused}");
    let once = json!({"kind":"allow","always":true,"option":"y"});
    assert!(answer(&mut bench, &once)["error"]["message"].is_string());
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let own = json!({"kind":"allow","always":true,"option":"ya"});
    assert_eq!(answer(&mut bench, &own)["result"], json!({"ownOption":"Always"}));
    assert_eq!(option_given(&mut bench), "ya");
    assert_eq!(remembered(&mut bench), json!([]));
}

#[test]
fn what_is_allowed_for_good_is_remembered_and_can_be_forgotten() {
    let mut bench = alone(Bench::with_shims());
    asks(&mut bench, 7, &run("git push"));
    let answered = answer(&mut bench, &json!({"kind":"allow","always":true}));
    assert_eq!(answered["result"], json!({"remembered":1}));
    assert_eq!(option_given(&mut bench), "y", "acpd remembers it, not the agent");
    bench.reboot();
    asks(&mut bench, 8, &run("git push"));
    assert_eq!(option_given(&mut bench), "y", "only this once");
    assert!(bench.journal_words().contains(&"_acpd/permission_decided".to_owned()));
    let lines = json!(bench.journal_lines()).to_string();
    assert!(lines.contains(r#""subject":"run `git push`""#), "{lines}");
    // Another command is another question.
    asks(&mut bench, 9, &run("git push --force"));
    assert_eq!(pending(&mut bench).len(), 1);
    answer(&mut bench, &json!({"kind":"deny"}));
    bench.heard();
    let known = remembered(&mut bench)[0].take();
    assert_eq!((&known["subject"], &known["verdict"]), (&json!("run `git push`"), &json!("allow")));
    call(&mut bench, "_acpd/policy/forget", &json!({"id":known["id"]}));
    assert_eq!(bench.snapshot.remembered.len(), 0);
    asks(&mut bench, 10, &run("git push"));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it is asked again");
}

#[test]
fn an_option_that_holds_for_good_is_remembered_whoever_chose_it() {
    let (mut bench, a) = Bench::begun();
    asks(&mut bench, 7, &run("make"));
    let asked = bench.got(a).pop().expect("asked");
    bench.select(a, &asked, "ya");
    assert_eq!(bench.snapshot.remembered.len(), 1);
    bench.heard();
    asks(&mut bench, 8, &run("make"));
    assert_eq!(bench.heard()[0]["id"], 8);
    assert_eq!(bench.got(a), Vec::<Value>::new(), "it is not asked");
}

#[test]
fn what_a_run_allows_beforehand_is_allowed_in_its_turn_only_and_never_over_a_rule() {
    let rules = json!([{"decision":"reject","command":"rm *"}]);
    let mut bench = with_policy(&json!({"rules":rules}));
    bench.shims = true;
    let a = bench.begin("s");
    bench.prompt_with(a, 2, "go", &json!({"permissions":"allow"}));
    let request = bench.heard_one("session/prompt");
    for _ in 0..2 {
        asks(&mut bench, 7, &run("make"));
        assert_eq!(option_given(&mut bench), "y");
        asks(&mut bench, 8, &run("rm -r x"));
        assert_eq!(option_given(&mut bench), "n");
        bench.reboot();
    }
    bench.end_turn(&request);
    let b = bench.plain();
    bench.start_turn(b, 3, "s", "more");
    asks(&mut bench, 9, &run("make"));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_call_that_was_described_before_is_decided_by_all_that_was_said_of_it() {
    let rules = json!([{"decision":"allow","command":"make"}]);
    for (then, allowed) in [(None, true), (Some("rm -r /"), false)] {
        let mut bench = alone(with_policy(&json!({"rules":rules})));
        let mut call = run("make");
        call["sessionUpdate"] = json!("tool_call");
        bench.send_update("s", &call);
        if let Some(command) = then {
            bench.update_call("t", &json!({"rawInput":{"command":command}}));
        }
        asks(&mut bench, 7, &json!({"toolCallId":"t"}));
        assert_eq!(!bench.heard().is_empty(), allowed, "{then:?}");
    }
}

#[test]
fn question_without_a_call_shows_what_it_says_and_no_rule_allows_it() {
    for (said, title) in [
        (json!({"title":"Delete it?","description":"all of /w"}), json!("Delete it?")),
        (json!({"description":"all of /w"}), json!("all of /w")),
        (json!({"request":{"title":"Run it","command":"rm -rf /w"}}), json!("Run it")),
        (json!({"toolCall":null,"permission":"network"}), Value::Null),
    ] {
        let mut bench = alone(with_policy(&json!({"default":"allow"})));
        let mut params = said.clone();
        params["sessionId"] = json!("s");
        params["options"] = options();
        bench.agent_asks(7, "session/request_permission", &params);
        let open = pending(&mut bench);
        let question = &open[0]["question"];
        assert_eq!(question["title"], title, "{question}");
        let raw = question["shown"]["raw"]["text"].as_str().unwrap_or_default();
        let said = said.as_object().expect("an object");
        let last = said.values().rfind(|value| !value.is_null());
        let is_shown = raw.contains(&last.expect("one").to_string());
        let is_idle = question["shown"]["unclear"].as_array().is_some_and(Vec::is_empty);
        assert!(is_shown || is_idle, "{said:?}: {question}");
    }
}

#[test]
fn options_that_cannot_be_read_are_refused() {
    for odd in [json!(["Allow", "Deny"]), json!([{"name":"Allow"}]), json!("Allow"), json!({})] {
        let mut bench = alone(Bench::new());
        asks_with(&mut bench, &odd);
        let heard = bench.heard();
        assert_eq!((&heard[0]["id"], &heard[0]["error"]["code"]), (&json!(7), &json!(-32602)));
        assert_eq!(pending(&mut bench), Vec::<Value>::new(), "{odd}");
    }
}

#[test]
fn address_of_a_page_has_a_limit() {
    for (bytes, is_asked) in [(8_000, true), (9_000, false)] {
        let mut bench = alone(Bench::new());
        let url = format!("https://x/{}", "a".repeat(bytes));
        let params =
            json!({"sessionId":"s","mode":"url","message":"Log in","url":url,"elicitationId":"e"});
        bench.agent_asks(8, "elicitation/create", &params);
        assert_eq!(pending(&mut bench).len(), usize::from(is_asked));
        assert_eq!(bench.heard().is_empty(), is_asked);
    }
}

#[test]
fn client_is_told_why_its_answer_does_not_count() {
    let (mut bench, a) = Bench::begun();
    let watcher = bench.noticed();
    let params = json!({"ref":{"session":"s"},"role":"observer"});
    bench.ask(watcher, 1, "_acpd/session/attach", &params);
    bench.got(a);
    asks(&mut bench, 7, &run("make"));
    let mut got = bench.got(a);
    for again in [1, 1, 0] {
        let id = got.pop().expect("asked")["id"].clone();
        bench.say(a, &json!({"id":id,"result":{"outcome":"y"}}));
        got = bench.got(a);
        assert_eq!(words(&got), ["error null", "session/request_permission"][..=again]);
    }
    let told = bench.got(watcher);
    let notice = told.iter().rfind(|line| line["method"] == "_acpd/notice").expect("told");
    let text = notice["params"]["text"].as_str().expect("a text");
    assert!(text.contains("is not asked again"), "{text}");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    assert_eq!(pending(&mut bench).len(), 1);
}

#[test]
fn a_form_is_for_clients_that_can_show_it_and_its_answer_is_checked() {
    let (mut bench, plain) = Bench::begun();
    let able = bench.introduce(&json!({"clientCapabilities":{"elicitation":{"form":{}}}}));
    bench.join(able, "s");
    asks_form(&mut bench, "sessionId", &json!("s"));
    assert_eq!(bench.got(plain), Vec::<Value>::new());
    let asked = bench.got(able).pop().expect("asked");
    assert_eq!(asked["method"], "elicitation/create");
    bench.reply(able, &asked, &json!({"action":"accept","content":{"sure":true}}));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "a name is missing");
    let again = bench.got(able).pop().expect("asked again");
    let content = json!({"name":"db"});
    bench.reply(able, &again, &json!({"action":"accept","content":content}));
    assert_eq!(bench.heard()[0]["result"], json!({"action":"accept","content":{"name":"db"}}));
}

#[test]
fn a_form_that_no_client_can_show_is_filled_in_from_a_terminal() {
    let mut bench = alone(Bench::new());
    asks_form(&mut bench, "sessionId", &json!("s"));
    let open = pending(&mut bench);
    assert_eq!(open[0]["question"]["kind"], "form");
    assert_eq!(open[0]["question"]["schema"]["required"], json!(["name"]));
    assert_eq!(open[0]["question"]["order"], json!(["name", "sure"]));
    let refused = answer(&mut bench, &json!({"kind":"accept","content":{"name":7}}));
    assert_eq!(refused["error"]["code"], -32602);
    answer(&mut bench, &json!({"kind":"accept","content":{"name":"db"}}));
    assert_eq!(bench.heard()[0]["result"]["content"], json!({"name":"db"}));
}

#[test]
fn a_question_about_a_login_goes_to_who_logs_in_and_to_nobody_else() {
    let (mut bench, other) = Bench::begun();
    let a = bench.introduce(&json!({"clientCapabilities":{"elicitation":{"url":{}}}}));
    bench.ask(a, "log", "authenticate", &json!({"methodId":"m"}));
    let request = bench.heard_one("authenticate");
    let ask = json!({"mode":"url","message":"Log in","url":"https://x","elicitationId":"e",
        "requestId":request["id"]});
    bench.agent_asks(8, "elicitation/create", &ask);
    let asked = bench.got(a).pop().expect("asked");
    assert_eq!(asked["params"]["requestId"], "log", "its own id");
    assert_eq!(bench.got(other), Vec::<Value>::new());
    bench.agent(&json!({"method":"elicitation/complete","params":{"elicitationId":"e"}}));
    bench.expect(a, ["elicitation/complete"]);
    assert_eq!(bench.got(other), Vec::<Value>::new());
    bench.reply(a, &asked, &json!({"action":"accept"}));
    assert_eq!(bench.heard()[0]["result"], json!({"action":"accept"}));
    bench.agent_answers(&request, &json!({}));
    bench.expect_some(a, "result \"log\"");
}

#[test]
fn a_question_about_a_request_ends_with_it() {
    let mut bench = Bench::new();
    let a = bench.plain();
    bench.ask(a, "log", "authenticate", &json!({"methodId":"m"}));
    let request = bench.heard_one("authenticate");
    asks_form(&mut bench, "requestId", &request["id"]);
    assert_eq!(pending(&mut bench).len(), 1, "it cannot show it; a terminal can");
    bench.agent_answers(&request, &json!({}));
    assert_eq!(bench.heard()[0]["result"], json!({"action":"cancel"}));
    assert!(pending(&mut bench).is_empty());
    // The call is not part of an open question.
    asks_form(&mut bench, "requestId", &json!(4711));
    assert_eq!(bench.heard()[0]["result"], json!({"action":"cancel"}));
}

#[test]
fn a_cancel_answers_every_kind_of_question() {
    let (mut bench, a) = Bench::begun();
    bench.start_turn(a, 2, "s", "go");
    asks(&mut bench, 6, &run("make"));
    asks_form(&mut bench, "sessionId", &json!("s"));
    bench.cancel(a, "s");
    let heard = bench.heard();
    let answers: Vec<_> = heard.iter().filter_map(|line| line.get("result")).collect();
    assert_eq!(answers, [&json!({"outcome":{"outcome":"cancelled"}}), &json!({"action":"cancel"})]);
}

#[test]
fn questions_of_both_kinds_stand_over_the_death_of_the_daemon() {
    let mut bench = alone(Bench::with_shims());
    asks(&mut bench, 6, &run("make"));
    asks_form(&mut bench, "sessionId", &json!("s"));
    bench.reboot();
    assert_eq!(pending(&mut bench).len(), 2);
    answer(&mut bench, &json!({"kind":"deny"}));
    answer(&mut bench, &json!({"kind":"decline"}));
    let heard = bench.heard();
    assert_eq!(heard[0]["result"]["outcome"]["optionId"], "n");
    assert_eq!(heard[1]["result"], json!({"action":"decline"}));
}

#[test]
fn a_choice_goes_on_with_all_that_the_client_put_into_it() {
    let (mut bench, a) = Bench::begun();
    asks(&mut bench, 7, &run("make"));
    let asked = bench.got(a).pop().expect("asked");
    let outcome = json!({"outcome":"selected","optionId":"y","_meta":{"x":1}});
    let result = json!({"outcome":outcome,"_meta":{"y":2}});
    bench.reply(a, &asked, &result);
    assert_eq!(bench.heard()[0]["result"], result);
    // Said twice, it is no answer.
    asks(&mut bench, 8, &run("make"));
    let asked = bench.got(a).pop().expect("asked");
    let twice = r#"{"outcome":{"outcome":"selected","optionId":"n","optionId":"y"}}"#;
    bench.say_raw(a, &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{twice}}}"#, asked["id"]));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}
