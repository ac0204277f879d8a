//! Messages into a running turn.

use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::{Bench, word, words};
use crate::questions::{asks, pending, run};
use crate::steps::{hint, reason};
use crate::survival::{answer_of, back, token};

/// Agents that take messages in the one way and in the other.
fn bench() -> Bench {
    let mut bench = Bench::with_shims();
    bench.greeting = json!({"_meta":{"steering":{"supported":true}}});
    bench
}

fn with_inject() -> Bench {
    let session = json!({"inject":{"modes":["queue","steer"]}});
    Bench::able(&json!({"loadSession":true,"session":session}))
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

/// A client sends this message, of which the agent is told.
#[track_caller]
fn steer(bench: &mut Bench, client: ClientId, message: &Value) -> Value {
    bench.say(client, message);
    bench.heard_one("_session/steering")
}

/// Like [`steer`], for a message that the agent takes.
#[track_caller]
fn inject(bench: &mut Bench, client: ClientId, message: &Value) {
    let asked = steer(bench, client, message);
    bench.agent_answers(&asked, &json!({"outcome":"injected"}));
}

/// Steered messages of the journal.
fn journalled(bench: &Bench) -> Vec<Value> {
    let steered = |line: &Value| line["params"]["_meta"]["_acpd"]["steered"] == true;
    let lines = bench.journal_lines().into_iter().filter(steered);
    lines.map(|line| line["params"]["update"].clone()).collect()
}

fn texts(updates: &[Value]) -> Vec<&str> {
    updates.iter().map(|update| update["content"]["text"].as_str().expect("a text")).collect()
}

#[test]
fn it_goes_into_the_turn_that_runs_and_everybody_sees_it_once() {
    let (mut bench, a, prompt) = bench().in_turn("go");
    let b = bench.client(&json!({"notices":true,"seq":true}));
    let c = bench.joined("s");
    bench.chunk("s", "I look");

    let asked = steer(&mut bench, b, &opted(7, "the red one"));
    assert_eq!(asked["params"], opted(7, "the red one")["params"]);
    bench.got(a);
    bench.got(c);
    assert_eq!(bench.got(b).len(), 1, "it takes part from now on");
    assert_eq!(journalled(&bench), Vec::<Value>::new(), "the agent may not take it");

    // Agents repeat what they are told, or not.
    bench.update("s", "user_message_chunk", "the red one");
    bench.agent_answers(&asked, &json!({"outcome":"injected","_meta":{"k":1}}));
    for seer in [a, c] {
        let got = bench.expect(seer, ["user_message_chunk"]);
        assert_eq!(got[0]["params"]["_meta"], json!({"_acpd":{"steered":true}}));
        assert_eq!(got[0]["params"]["update"]["content"]["text"], "the red one");
    }
    let got = bench.got(b);
    assert_eq!(words(&got), ["result 7"], "who said it knows it");
    assert_eq!(got[0]["result"], json!({"outcome":"injected","_meta":{"k":1}}));
    assert_eq!(texts(&journalled(&bench)), ["the red one"]);

    bench.end_turn(&prompt);
    bench.expect(a, ["result 1"]);
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let ended = bench.journal_words().iter().filter(|w| *w == "_acpd/turn_ended").count();
    assert_eq!(ended, 1, "it is no turn");

    // Later clients read it, marked.
    let d = bench.client(&json!({"seq":true}));
    bench.ask(d, 1, "session/load", &json!({"sessionId":"s","cwd":"/w"}));
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
    let (mut bench, a, _) = bench().in_turn("go");
    let link = json!({"type":"resource_link","uri":"file:///w/x","name":"x"});
    let prompt = json!([link, {"type":"text","text":"look there"}]);
    bench.ask(a, 7, "_session/steering", &json!({"sessionId":"s","prompt":prompt}));
    bench.answers("_session/steering", &json!({"outcome":"injected"}));
    let said = journalled(&bench);
    assert_eq!(said.len(), 2);
    assert_eq!(said[0]["content"], link);
    assert_eq!(said[0]["messageId"], said[1]["messageId"]);
}

#[test]
fn yes_ends_when_another_client_adds_to_the_turn() {
    for (by_sender, is_rebooted) in [(true, false), (false, false), (false, true)] {
        let (mut bench, a) = bench().with_begun();
        let b = bench.joined("s");
        bench.prompt_with(a, 1, "go", &json!({"permissions":"allow"}));
        bench.heard_one("session/prompt");
        asks(&mut bench, 6, &run("make"));
        assert_eq!(bench.heard()[0]["id"], 6, "allowed beforehand");
        if !by_sender {
            let mut marked = opted(4, "now rm it");
            marked["params"]["_meta"]["_acpd"] = json!({"answers":false});
            bench.say(b, &marked);
            let refused = bench.answer(b, 4);
            assert_eq!(reason(&refused), "out_of_scope", "{refused}");
            assert_eq!(bench.heard(), Vec::<Value>::new());
        }
        if is_rebooted {
            bench.reboot();
        }
        let steerer = match (by_sender, is_rebooted) {
            (true, _) => a,
            (false, false) => b,
            (false, true) => bench.joined("s"),
        };
        steer(&mut bench, steerer, &opted(5, "now rm it"));
        if is_rebooted {
            bench.reboot();
        }
        asks(&mut bench, 7, &run("make"));
        assert_eq!(pending(&mut bench).len(), usize::from(!by_sender));
    }
}

#[test]
fn an_idle_agent_is_not_asked() {
    let (mut bench, a) = bench().with_used();
    bench.say(a, &opted(7, "more"));
    let expected = json!({"outcome":"promptRequired","reason":"noRunningTurn"});
    assert_eq!(bench.answer(a, 7)["result"], expected);
    bench.say(a, &injected(8, "more"));
    let refused = bench.answer(a, 8);
    assert_eq!((&refused["error"]["code"], reason(&refused)), (&json!(-32600), "no_turn"));
    assert_eq!(bench.heard(), Vec::<Value>::new());
    assert_eq!(journalled(&bench), Vec::<Value>::new());
}

#[test]
fn who_does_not_say_what_is_to_happen_begins_a_turn_that_is_known() {
    let mut bench = bench();
    let a = bench.noticed();
    bench.used_session(a, "s");
    bench.say(a, &plain(7, "more"));
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"], json!({"sessionId":"s","prompt":blocks("more")}));
    let got = bench.got(a);
    assert_eq!(words(&got)[..2], ["result 7", "_acpd/turn_started"]);
    assert_eq!(got[0]["result"], json!({"outcome":"startedNewTurn"}));
    bench.end_turn(&prompt);
    assert_eq!(words(&bench.got(a)), ["_acpd/turn_ended"], "nobody waits for an answer to it");
    assert_eq!(journalled(&bench), Vec::<Value>::new(), "it was a prompt");
}

#[test]
fn what_comes_too_late_is_told_to_its_sender_or_waits_in_line() {
    let (mut bench, a, prompt) = bench().in_turn("go");
    bench.prompt(a, &json!("second"), "s", "next");
    let late = json!({"outcome":"promptRequired","reason":"noRunningTurn"});

    bench.say(a, &opted(7, "one"));
    bench.say(a, &injected(8, "two"));
    bench.say(a, &plain(9, "three"));
    let asked = bench.heard();
    assert_eq!(asked.len(), 3);
    bench.end_turn(&prompt);
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
    bench.end_turn(&second);
    assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"], blocks("three"));
    assert_eq!(journalled(&bench), Vec::<Value>::new());
}

#[test]
fn nothing_goes_into_a_turn_that_is_being_cancelled() {
    let (mut bench, a, _) = bench().in_turn("go");
    bench.cancel_turn(a);
    bench.say(a, &opted(7, "more"));
    assert_eq!(bench.answer(a, 7)["result"]["outcome"], "promptRequired");
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn an_agent_that_takes_none_is_not_asked_and_the_sender_is_told_what_else_there_is() {
    let (mut bench, a, _) = Bench::new().in_turn("go");
    for (id, line) in [(7, opted(7, "more")), (8, plain(8, "more")), (9, injected(9, "more"))] {
        bench.say(a, &line);
        let refused = bench.answer(a, id);
        assert_eq!((&refused["error"]["code"], reason(&refused)), (&json!(-32601), "cannot_steer"));
        let hint = hint(&refused);
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
    assert_eq!(told(&mut with_inject()), supported, "in the way that clients know");
    assert_eq!(told(&mut Bench::new()), json!(null));
}

#[test]
fn each_way_to_ask_works_with_each_way_to_take() {
    let (mut bench, a, _) = with_inject().in_turn("go");
    bench.say(a, &opted(7, "one"));
    let asked = bench.heard_one("session/inject");
    let params =
        json!({"sessionId":"s","mode":"steer","content":blocks("one"),"_meta":{"_vendor":1}});
    assert_eq!(asked["params"], params);
    bench.agent_answers(&asked, &json!({"messageId":"m1"}));
    assert_eq!(bench.answer(a, 7)["result"], json!({"outcome":"injected"}));
    bench.say(a, &injected(8, "two"));
    bench.answers("session/inject", &json!({"messageId":"m2"}));
    assert_eq!(bench.answer(a, 8)["result"], json!({"messageId":"m2"}));
    let ids: Vec<_> = journalled(&bench).iter().map(|said| said["messageId"].clone()).collect();
    assert_eq!(ids, ["m1", "m2"], "the agent's own ids");

    let (mut bench, a, _) = self::bench().in_turn("go");
    let asked = steer(&mut bench, a, &injected(9, "three"));
    let meta = json!({"steering":{"idleBehavior":"promptRequired"}});
    assert_eq!(asked["params"], json!({"sessionId":"s","prompt":blocks("three"),"_meta":meta}));
    bench.agent_answers(&asked, &json!({"outcome":"injected"}));
    let id = bench.answer(a, 9)["result"]["messageId"].clone();
    assert_eq!(journalled(&bench)[0]["messageId"], id);
}

#[test]
fn what_the_agent_refuses_is_not_said() {
    let (mut bench, a, _) = bench().in_turn("go");
    bench.say(a, &opted(7, "one"));
    bench.refuses("_session/steering", -32050);
    assert_eq!(bench.answer(a, 7)["error"]["code"], -32050);
    let asked = steer(&mut bench, a, &opted(8, "two"));
    let failed = json!({"outcome":"failed","reason":"the model is busy"});
    bench.agent_answers(&asked, &failed);
    assert_eq!(bench.answer(a, 8)["result"], failed);
    // An error is all that the other way has for that.
    let asked = steer(&mut bench, a, &injected(9, "three"));
    bench.agent_answers(&asked, &json!({"outcome":"failed"}));
    let refused = bench.answer(a, 9);
    assert!(refused["error"]["message"].to_string().contains("`failed`"), "{refused}");
    assert_eq!(journalled(&bench), Vec::<Value>::new());
}

#[test]
fn a_turn_that_the_agent_begins_all_the_same_is_told_to_people() {
    let (mut bench, a, prompt) = bench().in_turn("go");
    let b = bench.noticed();
    let asked = steer(&mut bench, b, &opted(7, "one"));
    bench.end_turn(&prompt);
    bench.agent_answers(&asked, &json!({"outcome":"startedNewTurn"}));
    bench.expect_some(b, "_acpd/notice");
    bench.expect_some(a, "user_message_chunk");
    assert_eq!(texts(&journalled(&bench)), ["one"]);
}

#[test]
fn only_who_may_prompt_may_steer() {
    let (mut bench, ..) = bench().in_turn("go");
    let b = bench.client(&json!({"role":"observer"}));
    bench.ask(b, 1, "_acpd/session/attach", &json!({"ref":{"session":"s"},"role":"observer"}));
    bench.got(b);
    bench.say(b, &opted(7, "one"));
    assert!(bench.answer(b, 7)["error"].is_object());
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_message_that_is_none_is_not_sent() {
    let (mut bench, a, _) = bench().in_turn("go");
    let idle = |what: &str| json!({"steering":{"idleBehavior":what}});
    let bad = [
        json!({"sessionId":"s"}),
        json!({"sessionId":"s","prompt":[]}),
        json!({"sessionId":"s","prompt":"one"}),
        json!({"sessionId":"s","prompt":blocks("x"),"_meta":idle("whatever")}),
    ];
    for (id, params) in (7..).zip(bad) {
        bench.ask(a, id, "_session/steering", &params);
        assert_eq!(bench.answer(a, id)["error"]["code"], -32602);
    }
    let queue = json!({"sessionId":"s","mode":"queue","content":blocks("x")});
    bench.ask(a, 20, "session/inject", &queue);
    assert_eq!(bench.answer(a, 20)["error"]["code"], -32602);
    bench.ask(a, 21, "_session/steering", &json!({"sessionId":"nobody","prompt":blocks("x")}));
    assert_eq!(bench.answer(a, 21)["error"]["code"], -32002);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_message_to_an_agent_that_dies_or_in_a_deleted_session_is_an_error() {
    for (dies, expected) in [(true, "outcome_unknown"), (false, "session_removed")] {
        let (mut bench, a, _) = bench().in_turn("go");
        let asked = steer(&mut bench, a, &opted(7, "one"));
        if dies {
            bench.agent_dies();
            assert_eq!(journalled(&bench), Vec::<Value>::new());
        } else {
            bench.command("_acpd/session/remove", &json!({"session":"s"}));
            bench.agent_answers(&asked, &json!({"outcome":"injected"}));
        }
        assert_eq!(reason(&bench.answer(a, 7)), expected);
    }
}

#[test]
fn what_is_taken_back_begins_no_turn_and_what_the_agent_took_was_said() {
    for (outcome, said) in [("promptRequired", 0), ("injected", 1)] {
        let (mut bench, a, prompt) = bench().in_turn("go");
        let asked = steer(&mut bench, a, &plain(7, "one"));
        bench.cancel_request(a, 7);
        bench.heard_one("$/cancel_request");
        bench.reboot();
        bench.end_turn(&prompt);
        bench.agent_answers(&asked, &json!({"outcome":outcome}));
        assert_eq!(bench.heard(), Vec::<Value>::new());
        assert_eq!(journalled(&bench).len(), said);
    }
}

#[test]
fn who_waits_for_an_agent_in_vain_is_told_and_can_give_up() {
    let (mut bench, a) = bench().with_noticed();
    bench.start_turn(a, "prompt", "s", "go");
    let asked = steer(&mut bench, a, &opted(7, "one"));
    bench.got(a);
    bench.pass(600_000);
    bench.expect_some(a, "_acpd/unanswered");
    bench.cancel_request(a, 7);
    bench.pass(60_000);
    assert_eq!(bench.answer(a, 7)["error"]["code"], -32800);
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
        let prompt = bench.start_turn(a, 2, "s", "go");
        bench.got(a);
        let head = bench.journal.values().next().expect("a journal").len() as u64;
        // The daemon dies before it has written the line, or after.
        bench.writes = unheard;
        bench.say(a, &opted(7, "one"));
        bench.writes = true;
        bench.reboot_unadopted();
        if !unheard {
            bench.adopt();
        }
        let asked = bench.heard_one("_session/steering");
        let result = json!({"id":asked["id"],"result":{"outcome":"injected"}});
        if unheard {
            let said = bench.agent_says_unheard(&result);
            bench.adopt();
            bench.feed(said);
        } else {
            bench.agent(&result);
        }
        assert_eq!(asked["params"]["prompt"], blocks("one"));
        assert_eq!(bench.heard(), Vec::<Value>::new(), "asked once");
        let got = back(&mut bench, head, &json!([2, 7]));
        let result = &answer_of(&got, &json!(7)).expect("answered")["result"];
        assert_eq!(result["outcome"], "injected");
        assert_eq!(texts(&journalled(&bench)), ["one"]);
        bench.end_turn(&prompt);
    }
}

#[test]
fn the_agents_replay_of_it_is_not_shown_twice() {
    let (mut bench, a, prompt) = bench().only_loading().in_turn("go");
    bench.chunk("s", "I look");
    inject(&mut bench, a, &opted(7, "one"));
    bench.chunk("s", "one, then");
    bench.end_turn(&prompt);
    let lines = bench.journal_words().len();
    bench.agent_dies();
    bench.prompt(a, &json!(8), "s", "next");
    bench.pass(10_000);
    let load = bench.heard_one("session/load");
    for (user, agent) in [("go", "I look"), ("one", "one, then")] {
        bench.update("s", "user_message_chunk", user);
        bench.chunk("s", agent);
    }
    bench.agent_answers(&load, &json!({}));
    bench.heard_one("session/prompt");
    let mut said = bench.journal_words().split_off(lines);
    said.retain(|word| word.ends_with("_chunk"));
    assert_eq!(said, ["user_message_chunk"], "only the next prompt");
}

#[test]
fn h1_what_a_client_adds_to_a_turn_says_nothing_for_acpd() {
    let (mut bench, a, _) = bench().in_turn("go");
    let block = json!([{"type":"text","text":"more","_meta":{"_acpd":{"seq":1},"other":2}}]);
    let params = json!({"sessionId":"s","prompt":block,"_meta":{"_acpd":{"x":1}}});
    bench.ask(a, 7, "_session/steering", &params);
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
    let (mut bench, a, _) = bench().in_turn("go");
    let asked = steer(&mut bench, a, &injected(7, "one"));
    let long = "m".repeat(1 << 20);
    bench.agent_answers(&asked, &json!({"outcome":"injected","messageId":long}));
    let id = bench.answer(a, 7)["result"]["messageId"].clone();
    assert!(id.as_str().is_some_and(|id| id.starts_with("acpd-")), "its own is too long");
    assert_eq!(journalled(&bench)[0]["messageId"], id);

    let many = |number: usize| {
        let blocks = vec![json!({"type":"text","text":"x"}); number];
        json!({"sessionId":"s","prompt":blocks})
    };
    bench.ask(a, 8, "_session/steering", &many(257));
    let error = bench.answer(a, 8)["error"].clone();
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("256")), "{error}");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.ask(a, 9, "_session/steering", &many(256));
    bench.heard_one("_session/steering");
}

#[test]
fn what_is_on_its_way_ends_with_the_turn_that_a_person_ends() {
    for (way, reboots) in [
        ("session/cancel", false),
        ("session/cancel", true),
        ("_acpd/session/close", false),
        ("_acpd/session/archive", false),
        ("_acpd/agent/stop", false),
    ] {
        let (mut bench, a, prompt) = bench().in_turn("go");
        let asked = steer(&mut bench, a, &plain(7, "one"));
        let params = json!({"sessionId":"s","session":"s","agent":"gem"});
        if way == "session/cancel" {
            bench.say(a, &json!({"method":way,"params":params}));
        } else {
            let person = bench.plain();
            bench.ask(person, 1, way, &params);
        }
        bench.heard();
        if reboots {
            bench.reboot();
        }
        bench.agent_answers(&prompt, &json!({"stopReason":"cancelled"}));
        let state = bench.state("s");
        bench.agent_answers(&asked, &json!({"outcome":"promptRequired"}));
        if !reboots {
            let told = bench.answer(a, 7);
            assert_eq!(told["result"]["outcome"], "promptRequired", "{way}: its sender is told");
        }
        assert_eq!(bench.heard(), Vec::<Value>::new(), "{way}: no turn");
        assert_eq!(bench.state("s"), state, "{way}");
        let rows = bench.snapshot.sessions.values();
        let archived = rows.map(|session| session.row.archived).collect::<Vec<_>>();
        assert_eq!(archived, [way == "_acpd/session/archive"], "{way}");
    }
}

#[test]
fn what_the_agent_repeats_after_a_restart_of_the_daemon_is_not_shown_twice() {
    let (mut bench, a, prompt) = bench().in_turn("go");
    inject(&mut bench, a, &opted(7, "the red one"));
    bench.chunk("s", "I look");
    bench.reboot();
    let lines = bench.journal_words().len();
    bench.update("s", "user_message_chunk", "the red one");
    assert_eq!(bench.journal_words().len(), lines, "it is there already");
    bench.update("s", "user_message_chunk", "something else");
    assert_eq!(bench.journal_words()[lines..], ["user_message_chunk"]);
    bench.end_turn(&prompt);
}
