//! Messages into a running turn.

use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::{Bench, word, words};
use crate::questions::{asks, pending, run};
use crate::survival::{answer_of, back, token};

/// Agents that take messages in the one way and in the other.
fn extension(bench: &mut Bench) {
    bench.greeting = json!({"_meta":{"steering":{"supported":true}}});
}

fn inject(bench: &mut Bench) {
    let session = json!({"inject":{"modes":["queue","steer"]}});
    bench.capabilities = Some(json!({"loadSession":true,"session":session}));
}

fn bench() -> Bench {
    let mut bench = Bench::with_shims();
    extension(&mut bench);
    bench
}

fn blocks(text: &str) -> Value {
    json!([{"type":"text","text":text}])
}

fn opted(id: u64, text: &str) -> Value {
    let meta = json!({"steering":{"idleBehavior":"promptRequired"},"_vendor":1});
    let params = json!({"sessionId":"s","prompt":blocks(text),"_meta":meta});
    json!({"id":id,"method":"_session/steering","params":params})
}

fn plain(id: u64, text: &str) -> Value {
    let params = json!({"sessionId":"s","prompt":blocks(text)});
    json!({"id":id,"method":"_session/steering","params":params})
}

fn injected(id: u64, text: &str) -> Value {
    let params = json!({"sessionId":"s","mode":"steer","content":blocks(text)});
    json!({"id":id,"method":"session/inject","params":params})
}

/// Steered messages of the journal.
fn journalled(bench: &Bench) -> Vec<Value> {
    let rows = bench.journal.values().flatten();
    let lines = rows.map(|row| serde_json::from_slice::<Value>(&row.line).expect("JSON"));
    let steered = |line: &Value| line["params"]["_meta"]["_acpd"]["steered"] == true;
    lines.filter(steered).map(|line| line["params"]["update"].clone()).collect()
}

fn texts(updates: &[Value]) -> Vec<&str> {
    updates.iter().map(|update| update["content"]["text"].as_str().expect("a text")).collect()
}

/// A client with a turn that runs.
fn working(bench: &mut Bench) -> (ClientId, Value) {
    let a = bench.plain();
    bench.session(a, "s");
    bench.prompt(a, &json!("prompt"), "s", "go");
    let prompt = bench.heard_one("session/prompt");
    (a, prompt)
}

/// Returns a client's answer.
fn answer(bench: &mut Bench, client: ClientId, id: u64) -> Value {
    answer_of(&bench.got(client), &json!(id)).expect("an answer")
}

#[test]
fn it_goes_into_the_turn_that_runs_and_everybody_sees_it_once() {
    let mut bench = bench();
    let (a, prompt) = working(&mut bench);
    let b = bench.client(&json!({"notices":true,"seq":true}));
    let c = bench.plain();
    let resume = json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}});
    bench.say(c, &resume);
    bench.got(c);
    bench.chunk("s", "I look");

    bench.say(b, &opted(7, "the red one"));
    let asked = bench.heard_one("_session/steering");
    let meta = json!({"steering":{"idleBehavior":"promptRequired"},"_vendor":1});
    let expected = json!({"sessionId":"s","prompt":blocks("the red one"),"_meta":meta});
    assert_eq!(asked["params"], expected);
    bench.got(a);
    bench.got(c);
    assert_eq!(bench.got(b).len(), 1, "it takes part from now on");
    assert_eq!(journalled(&bench), Vec::<Value>::new(), "the agent may not take it");

    // Agents repeat what they are told, or not.
    bench.update("s", "user_message_chunk", "the red one");
    bench.agent_answers(&asked, &json!({"outcome":"injected","_meta":{"k":1}}));
    for seer in [a, c] {
        let got = bench.got(seer);
        assert_eq!(words(&got), ["user_message_chunk"]);
        assert_eq!(got[0]["params"]["_meta"], json!({"_acpd":{"steered":true}}));
        assert_eq!(got[0]["params"]["update"]["content"]["text"], "the red one");
    }
    let got = bench.got(b);
    assert_eq!(words(&got), ["result 7"], "who said it knows it");
    assert_eq!(got[0]["result"], json!({"outcome":"injected","_meta":{"k":1}}));
    assert_eq!(texts(&journalled(&bench)), ["the red one"]);

    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    assert_eq!(words(&bench.got(a)), ["result \"prompt\""]);
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let ended = bench.journal_words().iter().filter(|w| *w == "_acpd/turn_ended").count();
    assert_eq!(ended, 1, "it is no turn");

    // Later clients read it, marked.
    let d = bench.client(&json!({"seq":true}));
    bench.say(d, &json!({"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/w"}}));
    let got = bench.got(d);
    let said: Vec<_> = got.iter().filter(|line| word(line) == "user_message_chunk").collect();
    assert_eq!(said.len(), 2);
    assert_eq!(said[0]["params"]["_meta"]["_acpd"], json!({"seq":2}));
    assert_eq!(said[1]["params"]["_meta"]["_acpd"], json!({"seq":4,"steered":true}));
    let id = &said[1]["params"]["update"]["messageId"];
    assert!(id.as_str().is_some_and(|id| id.starts_with("acpd-")), "not one with the prompt");
}

#[test]
fn of_several_blocks_all_are_one_message() {
    let mut bench = bench();
    let (a, _) = working(&mut bench);
    let link = json!({"type":"resource_link","uri":"file:///w/x","name":"x"});
    let params =
        json!({"sessionId":"s","prompt":[link.clone(), {"type":"text","text":"look there"}]});
    bench.say(a, &json!({"id":7,"method":"_session/steering","params":params}));
    bench.answers("_session/steering", &json!({"outcome":"injected"}));
    let said = journalled(&bench);
    assert_eq!(said.len(), 2);
    assert_eq!(said[0]["content"], link);
    assert_eq!(said[0]["messageId"], said[1]["messageId"]);
}

#[test]
fn yes_ends_when_another_client_adds_to_the_turn() {
    for (by_sender, is_rebooted) in [(true, false), (false, false), (false, true)] {
        let mut bench = bench();
        let a = bench.plain();
        bench.session(a, "s");
        let b = bench.plain();
        let resume =
            json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}});
        bench.say(b, &resume);
        let meta = json!({"_acpd":{"permissions":"allow"}});
        let params = json!({"sessionId":"s","prompt":blocks("go"),"_meta":meta});
        bench.say(a, &json!({"id":"prompt","method":"session/prompt","params":params}));
        bench.heard_one("session/prompt");
        asks(&mut bench, 6, &run("make"));
        assert_eq!(bench.heard()[0]["id"], 6, "allowed beforehand");
        if !by_sender {
            let mut marked = opted(4, "now rm it");
            marked["params"]["_meta"]["_acpd"] = json!({"answers":false});
            bench.say(b, &marked);
            let refused = answer(&mut bench, b, 4);
            assert_eq!(refused["error"]["data"]["_acpd"]["reason"], "out_of_scope", "{refused}");
            assert_eq!(bench.heard(), Vec::<Value>::new());
        }
        if is_rebooted {
            bench.reboot();
        }
        let steerer = match (by_sender, is_rebooted) {
            (true, _) => a,
            (false, false) => b,
            (false, true) => {
                let c = bench.plain();
                bench.say(c, &resume);
                c
            }
        };
        bench.say(steerer, &opted(5, "now rm it"));
        bench.heard_one("_session/steering");
        if is_rebooted {
            bench.reboot();
        }
        asks(&mut bench, 7, &run("make"));
        assert_eq!(pending(&mut bench).len(), usize::from(!by_sender));
    }
}

#[test]
fn an_idle_agent_is_not_asked() {
    let mut bench = bench();
    let a = bench.plain();
    bench.used_session(a, "s");
    bench.say(a, &opted(7, "more"));
    let expected = json!({"outcome":"promptRequired","reason":"noRunningTurn"});
    assert_eq!(answer(&mut bench, a, 7)["result"], expected);
    bench.say(a, &injected(8, "more"));
    let error = answer(&mut bench, a, 8)["error"].clone();
    assert_eq!(error["code"], -32600);
    assert_eq!(error["data"]["_acpd"]["reason"], "no_turn");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    assert_eq!(journalled(&bench), Vec::<Value>::new());
}

#[test]
fn who_does_not_say_what_is_to_happen_begins_a_turn_that_is_known() {
    let mut bench = bench();
    let a = bench.client(&json!({"notices":true}));
    bench.used_session(a, "s");
    bench.say(a, &plain(7, "more"));
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"], json!({"sessionId":"s","prompt":blocks("more")}));
    let got = bench.got(a);
    assert_eq!(words(&got)[..2], ["result 7", "_acpd/turn_started"]);
    assert_eq!(got[0]["result"], json!({"outcome":"startedNewTurn"}));
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    let got = words(&bench.got(a));
    assert_eq!(got, ["_acpd/turn_ended"], "nobody waits for an answer to it");
    assert_eq!(journalled(&bench), Vec::<Value>::new(), "it was a prompt");
}

#[test]
fn what_comes_too_late_is_told_to_its_sender_or_waits_in_line() {
    let mut bench = bench();
    let (a, prompt) = working(&mut bench);
    bench.prompt(a, &json!("second"), "s", "next");
    let late = json!({"outcome":"promptRequired","reason":"noRunningTurn"});

    bench.say(a, &opted(7, "one"));
    bench.say(a, &injected(8, "two"));
    bench.say(a, &plain(9, "three"));
    let asked = bench.heard();
    assert_eq!(asked.len(), 3);
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    let second = bench.heard_one("session/prompt");
    for request in &asked {
        bench.agent_answers(request, &late);
    }
    let got = bench.got(a);
    assert_eq!(answer_of(&got, &json!(7)).unwrap()["result"], late);
    let error = &answer_of(&got, &json!(8)).unwrap()["error"];
    assert_eq!(error["data"]["_acpd"]["reason"], "no_turn");
    let started = json!({"outcome":"startedNewTurn"});
    assert_eq!(answer_of(&got, &json!(9)).unwrap()["result"], started);
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it waits behind the one that runs");
    bench.agent_answers(&second, &json!({"stopReason":"end_turn"}));
    let third = bench.heard_one("session/prompt");
    assert_eq!(third["params"]["prompt"], blocks("three"));
    assert_eq!(journalled(&bench), Vec::<Value>::new());
}

#[test]
fn nothing_goes_into_a_turn_that_is_being_cancelled() {
    let mut bench = bench();
    let (a, _) = working(&mut bench);
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    bench.heard_one("session/cancel");
    bench.say(a, &opted(7, "more"));
    assert_eq!(answer(&mut bench, a, 7)["result"]["outcome"], "promptRequired");
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn an_agent_that_takes_none_is_not_asked_and_the_sender_is_told_what_else_there_is() {
    let mut bench = Bench::new();
    let (a, _) = working(&mut bench);
    for (id, line) in [(7, opted(7, "more")), (8, plain(8, "more")), (9, injected(9, "more"))] {
        bench.say(a, &line);
        let error = answer(&mut bench, a, id)["error"].clone();
        assert_eq!(error["code"], -32601);
        let data = &error["data"]["_acpd"];
        assert_eq!(data["reason"], "cannot_steer");
        let hint = data["hint"].as_str().unwrap();
        assert!(hint.contains("acpctl run -s s") && hint.contains("acpctl cancel s"));
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn only_agents_that_take_messages_are_said_to() {
    let told = |bench: &mut Bench| {
        let a = bench.connect(&json!({}));
        bench.got(a)[0]["result"]["_meta"].clone()
    };
    let supported = json!({"steering":{"supported":true}});
    assert_eq!(told(&mut bench()), supported);
    let mut other = Bench::new();
    inject(&mut other);
    assert_eq!(told(&mut other), supported, "in the way that clients know");
    assert_eq!(told(&mut Bench::new()), json!(null));
}

#[test]
fn each_way_to_ask_works_with_each_way_to_take() {
    let mut bench = Bench::new();
    inject(&mut bench);
    let (a, _) = working(&mut bench);
    bench.say(a, &opted(7, "one"));
    let asked = bench.heard_one("session/inject");
    let params =
        json!({"sessionId":"s","mode":"steer","content":blocks("one"),"_meta":{"_vendor":1}});
    assert_eq!(asked["params"], params);
    bench.agent_answers(&asked, &json!({"messageId":"m1"}));
    assert_eq!(answer(&mut bench, a, 7)["result"], json!({"outcome":"injected"}));
    bench.say(a, &injected(8, "two"));
    bench.answers("session/inject", &json!({"messageId":"m2"}));
    assert_eq!(answer(&mut bench, a, 8)["result"], json!({"messageId":"m2"}));
    let ids: Vec<_> = journalled(&bench).iter().map(|said| said["messageId"].clone()).collect();
    assert_eq!(ids, ["m1", "m2"], "the agent's own ids");

    let mut bench = self::bench();
    let (a, _) = working(&mut bench);
    bench.say(a, &injected(9, "three"));
    let asked = bench.heard_one("_session/steering");
    let meta = json!({"steering":{"idleBehavior":"promptRequired"}});
    assert_eq!(asked["params"], json!({"sessionId":"s","prompt":blocks("three"),"_meta":meta}));
    bench.agent_answers(&asked, &json!({"outcome":"injected"}));
    let id = answer(&mut bench, a, 9)["result"]["messageId"].clone();
    assert_eq!(journalled(&bench)[0]["messageId"], id);
}

#[test]
fn what_the_agent_refuses_is_not_said() {
    let mut bench = bench();
    let (a, _) = working(&mut bench);
    bench.say(a, &opted(7, "one"));
    bench.refuses("_session/steering", -32050);
    assert_eq!(answer(&mut bench, a, 7)["error"]["code"], -32050);
    bench.say(a, &opted(8, "two"));
    let asked = bench.heard_one("_session/steering");
    let failed = json!({"outcome":"failed","reason":"the model is busy"});
    bench.agent_answers(&asked, &failed);
    assert_eq!(answer(&mut bench, a, 8)["result"], failed);
    assert_eq!(journalled(&bench), Vec::<Value>::new());
}

#[test]
fn a_turn_that_the_agent_begins_all_the_same_is_told_to_people() {
    let mut bench = bench();
    let (a, prompt) = working(&mut bench);
    let b = bench.client(&json!({"notices":true}));
    bench.say(b, &opted(7, "one"));
    let asked = bench.heard_one("_session/steering");
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    bench.agent_answers(&asked, &json!({"outcome":"startedNewTurn"}));
    let got = bench.got(b);
    assert!(words(&got).contains(&"_acpd/notice".to_owned()), "{got:?}");
    assert!(words(&bench.got(a)).contains(&"user_message_chunk".to_owned()));
    assert_eq!(texts(&journalled(&bench)), ["one"]);
}

#[test]
fn only_who_may_prompt_may_steer() {
    let mut bench = bench();
    working(&mut bench);
    let b = bench.client(&json!({"role":"observer"}));
    let attach = json!({"ref":{"session":"s"},"role":"observer"});
    bench.say(b, &json!({"id":1,"method":"_acpd/session/attach","params":attach}));
    bench.got(b);
    bench.say(b, &opted(7, "one"));
    assert!(answer(&mut bench, b, 7)["error"].is_object());
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_message_that_is_none_is_not_sent() {
    let mut bench = bench();
    let (a, _) = working(&mut bench);
    let idle = |what: &str| json!({"steering":{"idleBehavior":what}});
    let bad = [
        json!({"sessionId":"s"}),
        json!({"sessionId":"s","prompt":[]}),
        json!({"sessionId":"s","prompt":"one"}),
        json!({"sessionId":"s","prompt":blocks("x"),"_meta":idle("whatever")}),
    ];
    for (id, params) in (7..).zip(bad) {
        bench.say(a, &json!({"id":id,"method":"_session/steering","params":params}));
        assert_eq!(answer(&mut bench, a, id)["error"]["code"], -32602);
    }
    let queue = json!({"sessionId":"s","mode":"queue","content":blocks("x")});
    bench.say(a, &json!({"id":20,"method":"session/inject","params":queue}));
    assert_eq!(answer(&mut bench, a, 20)["error"]["code"], -32602);
    let unknown = json!({"sessionId":"nobody","prompt":blocks("x")});
    bench.say(a, &json!({"id":21,"method":"_session/steering","params":unknown}));
    assert_eq!(answer(&mut bench, a, 21)["error"]["code"], -32002);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn of_a_message_to_an_agent_that_dies_nobody_knows() {
    let mut bench = bench();
    let (a, _) = working(&mut bench);
    bench.say(a, &opted(7, "one"));
    bench.heard_one("_session/steering");
    bench.agent_dies();
    let error = answer(&mut bench, a, 7)["error"].clone();
    assert_eq!(error["data"]["_acpd"]["reason"], "outcome_unknown");
    assert_eq!(journalled(&bench), Vec::<Value>::new());
}

#[test]
fn what_is_taken_back_begins_no_turn_and_what_the_agent_took_was_said() {
    for (outcome, said) in [("promptRequired", 0), ("injected", 1)] {
        let mut bench = bench();
        let (a, prompt) = working(&mut bench);
        bench.say(a, &plain(7, "one"));
        let asked = bench.heard_one("_session/steering");
        bench.say(a, &json!({"method":"$/cancel_request","params":{"requestId":7}}));
        bench.heard_one("$/cancel_request");
        bench.reboot();
        bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
        bench.agent_answers(&asked, &json!({"outcome":outcome}));
        assert_eq!(bench.heard(), Vec::<Value>::new());
        assert_eq!(journalled(&bench).len(), said);
    }
}

#[test]
fn who_waits_for_an_agent_in_vain_is_told_and_can_give_up() {
    let mut bench = bench();
    let a = bench.client(&json!({"notices":true}));
    bench.session(a, "s");
    bench.prompt(a, &json!("prompt"), "s", "go");
    bench.heard_one("session/prompt");
    bench.say(a, &opted(7, "one"));
    let asked = bench.heard_one("_session/steering");
    bench.got(a);
    bench.pass(600_000);
    assert!(words(&bench.got(a)).contains(&"_acpd/unanswered".to_owned()));
    bench.say(a, &json!({"method":"$/cancel_request","params":{"requestId":7}}));
    bench.pass(60_000);
    assert_eq!(answer(&mut bench, a, 7)["error"]["code"], -32800);
    bench.agent_answers(&asked, &json!({"outcome":"injected"}));
    assert!(answer_of(&bench.got(a), &json!(7)).is_none(), "answered once");
    assert_eq!(texts(&journalled(&bench)), ["one"], "the agent has taken it all the same");
}

#[test]
fn it_arrives_once_over_the_death_of_the_daemon() {
    for unheard in [false, true] {
        let mut bench = bench();
        let a = bench.client(&token());
        bench.session(a, "s");
        bench.prompt(a, &json!(2), "s", "go");
        let prompt = bench.heard_one("session/prompt");
        bench.got(a);
        let head = bench.journal.values().next().expect("a journal").len() as u64;
        // The daemon dies before it has written the line, or after.
        bench.writes = unheard;
        bench.say(a, &opted(7, "one"));
        bench.writes = true;
        bench.adopts = false;
        bench.reboot();
        let asked = if unheard {
            let asked = bench.heard_one("_session/steering");
            let result = json!({"outcome":"injected"});
            let said = bench.agent_says_unheard(&json!({"id":asked["id"],"result":result}));
            bench.adopt();
            bench.feed(said);
            asked
        } else {
            bench.adopt();
            let asked = bench.heard_one("_session/steering");
            bench.agent_answers(&asked, &json!({"outcome":"injected"}));
            asked
        };
        assert_eq!(asked["params"]["prompt"], blocks("one"));
        assert_eq!(bench.heard(), Vec::<Value>::new(), "asked once");
        let got = back(&mut bench, head, &json!([2, 7]));
        let result = &answer_of(&got, &json!(7)).expect("answered")["result"];
        assert_eq!(result["outcome"], "injected");
        assert_eq!(texts(&journalled(&bench)), ["one"]);
        bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    }
}

#[test]
fn a_deleted_session_takes_no_message() {
    let mut bench = bench();
    let (a, _) = working(&mut bench);
    bench.say(a, &opted(7, "one"));
    let asked = bench.heard_one("_session/steering");
    let b = bench.client(&json!({}));
    bench.say(b, &json!({"id":1,"method":"_acpd/session/remove","params":{"session":"s"}}));
    bench.agent_answers(&asked, &json!({"outcome":"injected"}));
    let error = answer(&mut bench, a, 7)["error"].clone();
    assert_eq!(error["data"]["_acpd"]["reason"], "session_removed");
}

#[test]
fn the_agents_replay_of_it_is_not_shown_twice() {
    let mut bench = bench();
    bench.capabilities = Some(json!({"loadSession":true}));
    let (a, prompt) = working(&mut bench);
    bench.chunk("s", "I look");
    bench.say(a, &opted(7, "one"));
    bench.answers("_session/steering", &json!({"outcome":"injected"}));
    bench.chunk("s", "one, then");
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    let lines = bench.journal_words().len();
    bench.agent_dies();
    bench.prompt(a, &json!(8), "s", "next");
    bench.pass(10_000);
    let load = bench.heard_one("session/load");
    for (kind, text) in [
        ("user_message_chunk", "go"),
        ("agent_message_chunk", "I look"),
        ("user_message_chunk", "one"),
        ("agent_message_chunk", "one, then"),
    ] {
        bench.update("s", kind, text);
    }
    bench.agent_answers(&load, &json!({}));
    bench.heard_one("session/prompt");
    let said: Vec<_> = bench.journal_words()[lines..]
        .iter()
        .filter(|word| word.ends_with("_chunk"))
        .cloned()
        .collect();
    assert_eq!(said, ["user_message_chunk"], "only the next prompt");
}

#[test]
fn h1_what_a_client_adds_to_a_turn_says_nothing_for_acpd() {
    let mut bench = bench();
    let (a, _) = working(&mut bench);
    let block = json!([{"type":"text","text":"more","_meta":{"_acpd":{"seq":1},"other":2}}]);
    let params = json!({"sessionId":"s","prompt":block,"_meta":{"_acpd":{"x":1}}});
    bench.say(a, &json!({"id":7,"method":"_session/steering","params":params}));
    let steering = bench.heard_one("_session/steering");
    assert!(!steering.to_string().contains("_acpd"), "{steering}");
    bench.agent_answers(&steering, &json!({"outcome":"injected"}));
    let updates = journalled(&bench);
    assert_eq!(updates.len(), 1);
    assert!(!updates[0].to_string().contains("_acpd"), "{updates:?}");
    assert_eq!(updates[0]["content"]["_meta"]["other"], 2);
}

#[test]
fn of_the_agents_id_and_of_the_blocks_of_a_message_only_so_much_is_taken() {
    let mut bench = bench();
    let (a, _) = working(&mut bench);
    bench.say(a, &injected(7, "one"));
    let asked = bench.heard_one("_session/steering");
    let long = "m".repeat(1 << 20);
    bench.agent_answers(&asked, &json!({"outcome":"injected","messageId":long}));
    let id = answer(&mut bench, a, 7)["result"]["messageId"].clone();
    assert!(id.as_str().is_some_and(|id| id.starts_with("acpd-")), "its own is too long");
    assert_eq!(journalled(&bench)[0]["messageId"], id);

    let many = |number: usize| vec![json!({"type":"text","text":"x"}); number];
    let steer = |id: u64, number: usize| {
        let params = json!({"sessionId":"s","prompt":many(number)});
        json!({"id":id,"method":"_session/steering","params":params})
    };
    bench.say(a, &steer(8, 257));
    let error = answer(&mut bench, a, 8)["error"].clone();
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("256")), "{error}");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.say(a, &steer(9, 256));
    bench.heard_one("_session/steering");
}

#[test]
fn what_is_on_its_way_ends_with_the_turn_that_a_person_ends() {
    let ways =
        ["session/cancel", "_acpd/session/close", "_acpd/session/archive", "_acpd/agent/stop"];
    for way in ways {
        let mut bench = bench();
        let (a, prompt) = working(&mut bench);
        bench.say(a, &plain(7, "one"));
        let asked = bench.heard_one("_session/steering");
        let params = json!({"sessionId":"s","session":"s","agent":"gem"});
        if way == "session/cancel" {
            bench.say(a, &json!({"method":way,"params":params}));
        } else {
            let person = bench.plain();
            bench.say(person, &json!({"id":1,"method":way,"params":params}));
        }
        bench.heard();
        bench.agent_answers(&prompt, &json!({"stopReason":"cancelled"}));
        let state = bench.state("s");
        bench.agent_answers(&asked, &json!({"outcome":"promptRequired"}));
        let told = answer(&mut bench, a, 7);
        assert_eq!(told["result"]["outcome"], "promptRequired", "{way}: its sender is told");
        assert_eq!(bench.heard(), Vec::<Value>::new(), "{way}: no turn");
        assert_eq!(bench.state("s"), state, "{way}");
        let rows = bench.snapshot.sessions.values();
        let archived = rows.map(|session| session.row.archived).collect::<Vec<_>>();
        assert_eq!(archived, [way == "_acpd/session/archive"], "{way}");
    }
}

#[test]
fn what_is_on_its_way_ends_with_its_turn_also_for_the_next_daemon() {
    let mut bench = bench();
    let (a, prompt) = working(&mut bench);
    bench.say(a, &plain(7, "one"));
    let asked = bench.heard_one("_session/steering");
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    bench.heard_one("session/cancel");
    bench.reboot();
    bench.agent_answers(&prompt, &json!({"stopReason":"cancelled"}));
    bench.agent_answers(&asked, &json!({"outcome":"promptRequired"}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn who_injects_is_told_that_the_agent_did_not_take_it() {
    let mut bench = bench();
    let (a, _) = working(&mut bench);
    bench.say(a, &injected(7, "one"));
    bench.answers("_session/steering", &json!({"outcome":"failed"}));
    let error = answer(&mut bench, a, 7)["error"].clone();
    let message = error["message"].as_str().expect("an error");
    assert!(message.contains("`failed`"), "{message}");
    assert_eq!(journalled(&bench), Vec::<Value>::new());
}

#[test]
fn what_the_agent_repeats_after_a_restart_of_the_daemon_is_not_shown_twice() {
    let mut bench = bench();
    let (a, prompt) = working(&mut bench);
    bench.say(a, &opted(7, "the red one"));
    bench.answers("_session/steering", &json!({"outcome":"injected"}));
    bench.chunk("s", "I look");
    bench.reboot();
    let lines = bench.journal_words().len();
    bench.update("s", "user_message_chunk", "the red one");
    assert_eq!(bench.journal_words().len(), lines, "it is there already");
    bench.update("s", "user_message_chunk", "something else");
    assert_eq!(bench.journal_words()[lines..], ["user_message_chunk"]);
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
}
