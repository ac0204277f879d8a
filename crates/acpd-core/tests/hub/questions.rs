//! Questions to people: receivers, valid answers, and automatic answers.

use acpd_core::ids::ClientId;
use acpd_core::{ClientEvent, ClientOrigin, Input};
use acpd_policy::{Policy, PolicyConfig};
use serde_json::{Value, json};

use crate::bench::{Bench, words};

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

pub(crate) fn asks(bench: &mut Bench, id: u64, call: &Value) {
    let params = json!({"sessionId":"s","toolCall":call,"options":options()});
    bench.agent(&json!({"id":id,"method":"session/request_permission","params":params}));
}

fn form(scope: &Value) -> Value {
    let schema = json!({"type":"object","required":["name"],
        "properties":{"name":{"type":"string"},"sure":{"type":"boolean"}}});
    let mut params = json!({"mode":"form","message":"Which?","requestedSchema":schema});
    for (name, value) in scope.as_object().expect("an object") {
        params[name] = value.clone();
    }
    json!({"id":7,"method":"elicitation/create","params":params})
}

pub(crate) fn with_policy(text: &Value) -> Bench {
    let config: PolicyConfig = serde_json::from_value(text.clone()).expect("a policy");
    Bench::with_policy(Policy::new(&config, Some("/home/me")).expect("it is understood"))
}

/// A person's answer from a terminal.
pub(crate) fn call(bench: &mut Bench, method: &str, params: &Value) -> Value {
    let client = bench.plain();
    bench.say(client, &json!({"id":1,"method":method,"params":params}));
    let answer = bench.got(client).pop().expect("answered");
    bench.feed(Input::Client(client, ClientEvent::Closed));
    answer
}

pub(crate) fn pending(bench: &mut Bench) -> Vec<Value> {
    let list = call(bench, "_acpd/interaction/list", &json!({}));
    list["result"]["interactions"].as_array().expect("a list").clone()
}

pub(crate) fn answer(bench: &mut Bench, answer: &Value) -> Value {
    let id = pending(bench)[0]["id"].clone();
    call(bench, "_acpd/interaction/answer", &json!({"id":id,"answer":answer}))
}

/// A session with a turn and without clients.
pub(crate) fn alone(mut bench: Bench) -> Bench {
    let a = bench.plain();
    bench.session(a, "s");
    bench.prompt(a, &json!(2), "s", "go");
    bench.heard();
    bench.feed(Input::Client(a, ClientEvent::Closed));
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
    assert_eq!(
        subjects,
        [r#"other: db {"sql":"select 1"}"#, r#"other: db {"sql":"drop table t"}"#]
    );
    answer(&mut bench, &json!({"kind":"allow","always":true}));
    let list = call(&mut bench, "_acpd/policy/list", &json!({}));
    assert_eq!(list["result"]["remembered"][0]["subject"], "other: db (with the same input)");
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
    assert_eq!(heard[0]["id"], 7);
    assert_eq!(heard[0]["result"]["outcome"], json!({"outcome":"selected","optionId":"y"}));
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
        let params = json!({"sessionId":"s","toolCall":run("make"),"options":offered(risky)});
        bench.agent(&json!({"id":7,"method":"session/request_permission","params":params}));
        let answered = answer(&mut bench, &given);
        let heard = bench.heard();
        let got = heard.first().map(|line| &line["result"]["outcome"]["optionId"]);
        assert_eq!(got, chosen.map(|id| json!(id)).as_ref(), "{given}: {answered}");
        if chosen.is_none() {
            let hint = answered["error"]["data"]["_acpd"]["hint"].as_str().expect("a way out");
            assert!(hint.starts_with("`acpctl "), "{given}: {hint}");
            let (_, one) = hint.split_once(" --option ").expect("one to copy");
            let one = one.split('`').next().expect("a word");
            let is_offered = offered(risky)
                .as_array()
                .expect("options")
                .iter()
                .any(|option| option["optionId"] == one);
            assert!(is_offered, "{given}: {hint}");
        }
        // An option of the agent that holds from now on is named.
        let own = chosen.filter(|id| ["always", "risky"].contains(id)).map(|id| json!(id));
        assert_eq!(answered["result"].get("ownOption"), own.as_ref(), "{given}");
        let list = call(&mut bench, "_acpd/policy/list", &json!({}));
        let remembered = !list["result"]["remembered"].as_array().expect("a list").is_empty();
        assert_eq!(remembered, chosen.is_some() && given["always"] == true, "{given}");
    }
}

/// A question of the turn in session `s` with these options.
fn asks_with(bench: &mut Bench, options: &Value) {
    let params = json!({"sessionId":"s","toolCall":run("make"),"options":options});
    bench.agent(&json!({"id":7,"method":"session/request_permission","params":params}));
}

#[test]
fn options_of_the_same_id_are_one_answer() {
    for given in [json!({"kind":"allow"}), json!({"kind":"allow","option":"y"})] {
        let mut bench = alone(Bench::new());
        let option =
            |id: &str, name: &str, kind: &str| json!({"optionId":id,"name":name,"kind":kind});
        let twice = [
            option("y", "Yes", "allow_once"),
            option("y", "Sure", "allow_once"),
            option("y", "Always", "allow_always"),
            option("n", "No", "reject_once"),
        ];
        asks_with(&mut bench, &json!(twice));
        let id = pending(&mut bench)[0]["id"].as_str().expect("an id").to_owned();
        let refused = answer(&mut bench, &json!({"kind":"option","option":"x"}));
        let hint = &refused["error"]["data"]["_acpd"]["hint"];
        let commands = ["y", "n"].map(|option| format!("`acpctl answer {id} --option {option}`"));
        assert_eq!(*hint, json!(commands.join(" or ")));
        answer(&mut bench, &given);
        assert_eq!(bench.heard()[0]["result"]["outcome"]["optionId"], "y");
    }
}

#[test]
fn a_question_without_answers_tells_what_ends_it() {
    let mut bench = alone(Bench::new());
    asks_with(&mut bench, &json!([]));
    for given in
        [json!({"kind":"allow"}), json!({"kind":"deny"}), json!({"kind":"option","option":"x"})]
    {
        let refused = answer(&mut bench, &given);
        let hint = refused["error"]["data"]["_acpd"]["hint"].as_str().expect("a way out");
        assert!(hint.contains("`acpctl cancel s`"), "{hint}");
    }
    let c = bench.plain();
    bench.say(c, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    assert!(pending(&mut bench).is_empty());
    // Without a turn there is nothing to cancel.
    let (mut bench, _) = Bench::begun();
    asks_with(&mut bench, &json!([]));
    let refused = answer(&mut bench, &json!({"kind":"allow"}));
    let hint = refused["error"]["data"]["_acpd"]["hint"].as_str().expect("a way out");
    assert!(hint.contains("`acpctl agent restart gem`"), "{hint}");
}

#[test]
fn what_cannot_be_remembered_goes_to_the_agent_for_good_only_if_its_own_option_is_named() {
    let mut bench = alone(Bench::new());
    asks(&mut bench, 7, &json!({"toolCallId":"t"}));
    let id = pending(&mut bench)[0]["id"].as_str().expect("an id").to_owned();
    let refused = answer(&mut bench, &json!({"kind":"allow","always":true}));
    let hint = refused["error"]["data"]["_acpd"]["hint"].as_str().expect("a way out");
    let own = format!("the agent's own option for that: `acpctl allow --always {id} --option ya`");
    assert!(hint.ends_with(&own), "{hint}");
    let once = json!({"kind":"allow","always":true,"option":"y"});
    assert!(answer(&mut bench, &once)["error"]["message"].is_string());
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let own = json!({"kind":"allow","always":true,"option":"ya"});
    assert_eq!(answer(&mut bench, &own)["result"], json!({"ownOption":"Always"}));
    assert_eq!(bench.heard()[0]["result"]["outcome"]["optionId"], "ya");
    let list = call(&mut bench, "_acpd/policy/list", &json!({}));
    assert_eq!(list["result"]["remembered"], json!([]));
}

#[test]
fn what_is_allowed_for_good_is_remembered_and_can_be_forgotten() {
    let mut bench = alone(Bench::with_shims());
    asks(&mut bench, 7, &run("git push"));
    let answered = answer(&mut bench, &json!({"kind":"allow","always":true}));
    assert_eq!(answered["result"], json!({"remembered":1}));
    assert_eq!(
        bench.heard()[0]["result"]["outcome"]["optionId"],
        "y",
        "acpd remembers it, not the agent"
    );
    bench.reboot();
    asks(&mut bench, 8, &run("git push"));
    assert_eq!(bench.heard()[0]["result"]["outcome"]["optionId"], "y", "only this once");
    assert!(bench.journal_words().contains(&"_acpd/permission_decided".to_owned()));
    let mut lines = bench.journal.values().flatten().map(|row| String::from_utf8_lossy(&row.line));
    assert!(lines.any(|line| line.contains(r#""subject":"run `git push`""#)));
    // Another command is another question.
    asks(&mut bench, 9, &run("git push --force"));
    assert_eq!(pending(&mut bench).len(), 1);
    answer(&mut bench, &json!({"kind":"deny"}));
    bench.heard();
    let list = call(&mut bench, "_acpd/policy/list", &json!({}));
    let known = &list["result"]["remembered"][0];
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
    let chosen = json!({"outcome":{"outcome":"selected","optionId":"ya"}});
    bench.say(a, &json!({"id":asked["id"],"result":chosen}));
    assert_eq!(bench.snapshot.remembered.len(), 1);
    bench.heard();
    asks(&mut bench, 8, &run("make"));
    assert_eq!(bench.heard()[0]["id"], 8);
    assert_eq!(bench.got(a), Vec::<Value>::new(), "it is not asked");
}

#[test]
fn a_rule_answers_and_the_journal_says_which() {
    let rules = json!([
        {"name":"no force","decision":"reject","command":"*--force*"},
        {"name":"git","decision":"allow","command":"git *"},
    ]);
    let mut bench = alone(with_policy(&json!({"rules":rules})));
    for (command, option) in [("git push", "y"), ("git push --force", "n")] {
        asks(&mut bench, 7, &run(command));
        assert_eq!(bench.heard()[0]["result"]["outcome"]["optionId"], option, "{command}");
    }
    let decided: Vec<_> = bench.journal.values().flatten().map(|row| row.line.clone()).collect();
    let text = decided.iter().map(|line| String::from_utf8_lossy(line).into_owned());
    let text: String = text.collect();
    assert!(text.contains("rule `git`") && text.contains("rule `no force`"), "{text}");
    asks(&mut bench, 9, &run("rm -r /"));
    assert_eq!(pending(&mut bench).len(), 1);
}

#[test]
fn what_a_run_allows_beforehand_is_allowed_in_its_turn_only_and_never_over_a_rule() {
    let rules = json!([{"decision":"reject","command":"rm *"}]);
    let mut bench = with_policy(&json!({"rules":rules}));
    bench.shims = true;
    let a = bench.plain();
    bench.session(a, "s");
    let prompt = json!([{"type":"text","text":"go"}]);
    let meta = json!({"_acpd":{"permissions":"allow"}});
    let params = json!({"sessionId":"s","prompt":prompt,"_meta":meta});
    bench.say(a, &json!({"id":2,"method":"session/prompt","params":params}));
    let request = bench.heard_one("session/prompt");
    for _ in 0..2 {
        asks(&mut bench, 7, &run("make"));
        assert_eq!(bench.heard()[0]["result"]["outcome"]["optionId"], "y");
        asks(&mut bench, 8, &run("rm -r x"));
        assert_eq!(bench.heard()[0]["result"]["outcome"]["optionId"], "n");
        bench.reboot();
    }
    bench.agent_answers(&request, &json!({"stopReason":"end_turn"}));
    let b = bench.plain();
    bench.prompt(b, &json!(3), "s", "more");
    bench.heard_one("session/prompt");
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
        bench.agent(&json!({"method":"session/update","params":{"sessionId":"s","update":call}}));
        if let Some(command) = then {
            let update = json!({"sessionUpdate":"tool_call_update","toolCallId":"t","rawInput":{"command":command}});
            bench.agent(
                &json!({"method":"session/update","params":{"sessionId":"s","update":update}}),
            );
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
        bench.agent(&json!({"id":7,"method":"session/request_permission","params":params}));
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
        let params = json!({"sessionId":"s","toolCall":run("make"),"options":odd});
        bench.agent(&json!({"id":7,"method":"session/request_permission","params":params}));
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
        bench.agent(&json!({"id":8,"method":"elicitation/create","params":params}));
        assert_eq!(pending(&mut bench).len(), usize::from(is_asked));
        assert_eq!(bench.heard().is_empty(), is_asked);
    }
}

#[test]
fn client_is_told_why_its_answer_does_not_count() {
    let (mut bench, a) = Bench::begun();
    let watcher = bench.client(&json!({"notices":true}));
    let params = json!({"ref":{"session":"s"},"role":"observer"});
    bench.say(watcher, &json!({"id":1,"method":"_acpd/session/attach","params":params}));
    bench.got(a);
    asks(&mut bench, 7, &run("make"));
    let mut got = bench.got(a);
    for again in [1, 1, 0] {
        let id = got.pop().expect("asked")["id"].clone();
        bench.say(a, &json!({"id":id,"result":{"outcome":"y"}}));
        got = bench.got(a);
        let expected = ["error null", "session/request_permission"];
        assert_eq!(words(&got), expected[..=again]);
    }
    let told = bench.got(watcher);
    let notice = told.iter().rfind(|line| line["method"] == "_acpd/notice").expect("told");
    let text = notice["params"]["text"].as_str().expect("a text");
    assert!(text.contains("is not asked again"), "{text}");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    assert_eq!(pending(&mut bench).len(), 1);
}

#[test]
fn a_process_under_an_agent_decides_nothing() {
    let mut bench = alone(Bench::new());
    asks(&mut bench, 7, &run("make"));
    let id = pending(&mut bench)[0]["id"].clone();
    let client = ClientId(77);
    bench.feed(Input::Client(client, ClientEvent::Opened(ClientOrigin::Agent(None))));
    let params = json!({"id":id,"answer":{"kind":"allow"}});
    bench.say(client, &json!({"id":1,"method":"_acpd/interaction/answer","params":params}));
    let refused = bench.got(client).pop().expect("answered");
    assert_eq!(refused["error"]["data"]["_acpd"]["reason"], "under_agent");
    // Nor as an editor.
    bench.say(client, &json!({"id":2,"method":"initialize","params":{"protocolVersion":1}}));
    bench.say(
        client,
        &json!({"id":3,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}),
    );
    let got = bench.got(client);
    let asked = got.iter().find(|line| line["method"] == "session/request_permission");
    if let Some(asked) = asked {
        let chosen = json!({"outcome":{"outcome":"selected","optionId":"y"}});
        bench.say(client, &json!({"id":asked["id"],"result":chosen}));
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
    assert_eq!(pending(&mut bench).len(), 1);
}

#[test]
fn a_form_is_for_clients_that_can_show_it_and_its_answer_is_checked() {
    let (mut bench, plain) = Bench::begun();
    let able = ClientId(50);
    bench.feed(Input::Client(able, ClientEvent::Opened(ClientOrigin::User)));
    let params = json!({"protocolVersion":1,"clientCapabilities":{"elicitation":{"form":{}}}});
    bench.say(able, &json!({"id":"init","method":"initialize","params":params}));
    bench.say(
        able,
        &json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}),
    );
    bench.got(able);
    bench.agent(&form(&json!({"sessionId":"s"})));
    assert_eq!(bench.got(plain), Vec::<Value>::new());
    let asked = bench.got(able).pop().expect("asked");
    assert_eq!(asked["method"], "elicitation/create");
    bench
        .say(able, &json!({"id":asked["id"],"result":{"action":"accept","content":{"sure":true}}}));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "a name is missing");
    let again = bench.got(able).pop().expect("asked again");
    let content = json!({"name":"db"});
    bench.say(able, &json!({"id":again["id"],"result":{"action":"accept","content":content}}));
    let heard = bench.heard();
    assert_eq!(heard[0]["result"], json!({"action":"accept","content":{"name":"db"}}));
}

#[test]
fn a_form_that_no_client_can_show_is_filled_in_from_a_terminal() {
    let mut bench = alone(Bench::new());
    bench.agent(&form(&json!({"sessionId":"s"})));
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
    let a = ClientId(50);
    bench.feed(Input::Client(a, ClientEvent::Opened(ClientOrigin::User)));
    let params = json!({"protocolVersion":1,"clientCapabilities":{"elicitation":{"url":{}}}});
    bench.say(a, &json!({"id":"init","method":"initialize","params":params}));
    bench.got(a);
    bench.say(a, &json!({"id":"log","method":"authenticate","params":{"methodId":"m"}}));
    let request = bench.heard_one("authenticate");
    let ask = json!({"mode":"url","message":"Log in","url":"https://x","elicitationId":"e",
        "requestId":request["id"]});
    bench.agent(&json!({"id":8,"method":"elicitation/create","params":ask}));
    let asked = bench.got(a).pop().expect("asked");
    assert_eq!(asked["params"]["requestId"], "log", "its own id");
    assert_eq!(bench.got(other), Vec::<Value>::new());
    bench.agent(&json!({"method":"elicitation/complete","params":{"elicitationId":"e"}}));
    assert_eq!(words(&bench.got(a)), ["elicitation/complete"]);
    assert_eq!(bench.got(other), Vec::<Value>::new());
    bench.say(a, &json!({"id":asked["id"],"result":{"action":"accept"}}));
    assert_eq!(bench.heard()[0]["result"], json!({"action":"accept"}));
    bench.agent_answers(&request, &json!({}));
    assert!(words(&bench.got(a)).contains(&"result \"log\"".to_owned()));
}

#[test]
fn a_question_about_a_request_ends_with_it() {
    let mut bench = Bench::new();
    let a = bench.plain();
    bench.say(a, &json!({"id":"log","method":"authenticate","params":{"methodId":"m"}}));
    let request = bench.heard_one("authenticate");
    bench.agent(&form(&json!({"requestId":request["id"]})));
    assert_eq!(pending(&mut bench).len(), 1, "it cannot show it; a terminal can");
    bench.agent_answers(&request, &json!({}));
    assert_eq!(bench.heard()[0]["result"], json!({"action":"cancel"}));
    assert!(pending(&mut bench).is_empty());
    // The call is not part of an open question.
    bench.agent(&form(&json!({"requestId":4711})));
    assert_eq!(bench.heard()[0]["result"], json!({"action":"cancel"}));
}

#[test]
fn a_cancel_answers_every_kind_of_question() {
    let (mut bench, a) = Bench::begun();
    bench.prompt(a, &json!(2), "s", "go");
    bench.heard();
    asks(&mut bench, 6, &run("make"));
    bench.agent(&form(&json!({"sessionId":"s"})));
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    let heard = bench.heard();
    let answers: Vec<_> =
        heard.iter().filter(|line| line.get("result").is_some()).map(|l| &l["result"]).collect();
    assert_eq!(answers, [&json!({"outcome":{"outcome":"cancelled"}}), &json!({"action":"cancel"})]);
}

#[test]
fn questions_of_both_kinds_stand_over_the_death_of_the_daemon() {
    let mut bench = alone(Bench::with_shims());
    asks(&mut bench, 6, &run("make"));
    bench.agent(&form(&json!({"sessionId":"s"})));
    bench.reboot();
    assert_eq!(pending(&mut bench).len(), 2);
    answer(&mut bench, &json!({"kind":"deny"}));
    answer(&mut bench, &json!({"kind":"decline"}));
    let heard = bench.heard();
    assert_eq!(heard[0]["result"]["outcome"]["optionId"], "n");
    assert_eq!(heard[1]["result"], json!({"action":"decline"}));
}

#[test]
fn the_policy_explains_itself() {
    let rules = json!([{"name":"git","decision":"allow","command":"git *"}]);
    let mut bench = with_policy(&json!({"rules":rules}));
    let params = json!({"cwd":"/w","toolCall":run("git status; rm -rf /")});
    let answer = call(&mut bench, "_acpd/policy/test", &params);
    assert_eq!(answer["result"]["rules"][0]["matched"], false);
    assert_eq!(answer["result"]["decision"]["type"], "ask");
}

#[test]
fn a_choice_goes_on_with_all_that_the_client_put_into_it() {
    let (mut bench, a) = Bench::begun();
    asks(&mut bench, 7, &run("make"));
    let asked = bench.got(a).pop().expect("asked");
    let outcome = json!({"outcome":"selected","optionId":"y","_meta":{"x":1}});
    bench.say(
        a,
        &json!({"jsonrpc":"2.0","id":asked["id"],"result":{"outcome":outcome,"_meta":{"y":2}}}),
    );
    let heard = bench.heard();
    assert_eq!(heard[0]["result"], json!({"outcome":outcome,"_meta":{"y":2}}));
    // Said twice, it is no answer.
    asks(&mut bench, 8, &run("make"));
    let asked = bench.got(a).pop().expect("asked");
    let twice = r#"{"outcome":{"outcome":"selected","optionId":"n","optionId":"y"}}"#;
    bench.say_raw(a, &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{twice}}}"#, asked["id"]));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}
