//! Prompts, cancels and questions to people.

use acpd_core::profile::{ClosedBy, FailureSign};
use acpd_core::{ClientEvent, Input};
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, methods};
use crate::steps::{reason, selected};
use crate::survival::token;

#[test]
fn prompts_wait_in_line_and_the_others_see_them_when_they_run() {
    let (mut bench, a) = Bench::begun();
    let b = bench.noticed();
    bench.prompt(a, &json!(1), "s", "one");
    let first = bench.start_turn(b, 1, "s", "two");
    bench.expect(b, ["_acpd/caught_up", "_acpd/prompt_queued"]);
    bench.end_turn(&first);
    let second = bench.expect_prompt("two");
    bench.expect(a, ["result 1", "user_message_chunk"]);
    bench.agent_answers(&second, &json!({"stopReason":"refusal"}));
    let (ended, started) = ("_acpd/turn_ended", "_acpd/turn_started");
    bench.expect(b, [ended, started, "_acpd/auth_changed", ended, "result 1"]);
}

#[test]
fn the_agents_echo_of_a_prompt_is_not_shown_twice() {
    let (mut bench, a) = Bench::begun();
    let b = bench.joined("s");
    bench.prompt(a, &json!(1), "s", "hello there");
    bench.update("s", "user_message_chunk", "hello there");
    bench.chunk("s", "hi");
    bench.expect(b, ["user_message_chunk", "agent_message_chunk"]);
}

#[test]
fn a_cancel_ends_the_running_prompt_and_those_behind_it() {
    let (mut bench, a) = Bench::begun();
    bench.prompt(a, &json!(1), "s", "one");
    let request = bench.start_turn(a, 2, "s", "two");
    bench.cancel_turn(a);
    assert_eq!(bench.expect(a, ["result 2"])[0]["result"]["stopReason"], "cancelled");
    bench.agent_answers(&request, &json!({"stopReason":"cancelled"}));
    bench.expect(a, ["result 1"]);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

fn last_outcome(bench: &mut Bench) -> Value {
    let outcome = bench.last_outcome();
    let word = bench.show("s")["turn"]["last"].clone();
    let kind = if outcome["kind"] == "stopped" { &outcome["stopReason"] } else { &outcome["kind"] };
    assert_eq!(*kind, word, "the journal and the list say the same");
    word
}

#[test]
fn a_turn_is_cancelled_or_interrupted_by_a_stop_whatever_the_agent_answers() {
    let answers = [
        json!({"result":{"stopReason":"end_turn","usage":{"totalTokens":7}}}),
        json!({"result":{"stopReason":"cancelled"}}),
        json!({"result":{}}),
        json!({"error":{"code":-32603,"message":"Aborted"}}),
        json!({"error":{"code":-32800,"message":"cancelled"}}),
        json!({"error":{"code":-32000,"message":"log in"}}),
    ];
    for (answer, stops) in answers.iter().flat_map(|answer| [(answer, false), (answer, true)]) {
        let (mut bench, a, prompt) = Bench::new().in_turn("go");
        if stops {
            let b = bench.plain();
            bench.ask(b, 1, "_acpd/agent/stop", &json!({"agent":AGENT}));
            bench.heard_one("session/cancel");
        } else {
            bench.cancel_turn(a);
        }
        let mut line = answer.clone();
        line["id"] = prompt["id"].clone();
        bench.agent(&line);
        let told = bench.answer(a, 1);
        if stops {
            assert_eq!(reason(&told), "interrupted", "{answer}");
            bench.agent_dies();
        } else {
            assert_eq!(told["result"]["stopReason"], "cancelled", "{answer}");
            let usage = &answer["result"]["usage"];
            assert_eq!(told["result"]["usage"], *usage, "what else it says passes");
        }
        let outcome = if stops { "interrupted" } else { "cancelled" };
        assert_eq!(last_outcome(&mut bench), outcome, "{answer}");
    }
}

#[test]
fn a_cancel_of_an_idle_session_does_not_reach_the_agent() {
    let (mut bench, a) = Bench::begun();
    bench.cancel(a, "s");
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn next_prompt_waits_for_the_end_of_a_cancelled_turn() {
    let (mut bench, a, request) = Bench::new().in_turn("go");
    bench.cancel_turn(a);
    bench.prompt(a, &json!(2), "s", "next");
    bench.chunk("s", "late");
    assert_eq!(bench.heard(), Vec::<Value>::new(), "one turn at a time");
    bench.agent_answers(&request, &json!({"stopReason":"cancelled"}));
    bench.heard_one("session/prompt");
    let got = bench.got(a);
    let place = |word: &str| got.iter().position(|line| line.to_string().contains(word));
    assert!(place("late").is_some() && place("late") < place("stopReason"), "{got:?}");
}

#[test]
fn cancel_request_takes_one_prompt_and_leaves_the_others() {
    let (mut bench, a) = Bench::begun();
    for id in 1..=3 {
        bench.prompt(a, &json!(id), "s", &format!("p{id}"));
    }
    let first = bench.heard_one("session/prompt");
    bench.cancel_request(a, 2);
    assert_eq!(bench.expect(a, ["error 2"])[0]["error"]["code"], -32800);
    bench.cancel_request(a, 1);
    bench.heard_one("session/cancel");
    assert_eq!(bench.got(a), Vec::<Value>::new());
    bench.agent_answers(&first, &json!({"stopReason":"cancelled"}));
    bench.expect_prompt("p3");
}

#[test]
fn cancel_request_takes_back_what_waits_for_the_agent() {
    let mut bench = Bench::new();
    bench.capabilities = None;
    let a = bench.connect(&json!({}));
    bench.cancel_request(a, "init");
    assert_eq!(bench.expect(a, ["error \"init\""])[0]["error"]["code"], -32800);
}

#[test]
fn a_cancel_withdraws_a_question_from_everybody_and_answers_the_agent_once() {
    let (mut bench, a) = Bench::begun();
    let b = bench.joined("s");
    let prompt = bench.start_turn(a, 9, "s", "go");
    bench.got(a);
    bench.got(b);
    bench.ask_permission(5, "s");
    let offers = [bench.got(a), bench.got(b)];
    bench.cancel(a, "s");
    let heard = bench.heard();
    assert_eq!(methods(&heard), ["session/cancel", "answer"]);
    assert_eq!(heard[1]["id"], 5);
    assert_eq!(heard[1]["result"]["outcome"]["outcome"], "cancelled");
    for (client, offer) in [a, b].into_iter().zip(&offers) {
        let got = bench.expect(client, ["$/cancel_request"]);
        assert_eq!(got[0]["params"]["requestId"], offer[0]["id"]);
    }
    bench.select(b, &offers[1][0], "y");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    // A question after the cancel is answered at once.
    bench.ask_permission(6, "s");
    assert_eq!(bench.heard()[0]["result"]["outcome"]["outcome"], "cancelled");
    assert_eq!((bench.got(a), bench.got(b)), (vec![], vec![]));
    bench.agent_answers(&prompt, &json!({"stopReason":"cancelled"}));
    bench.expect(a, ["result 9"]);
}

#[test]
fn nothing_but_a_valid_answer_is_consent() {
    let (mut bench, a, _) = Bench::new().in_turn("go");
    let wrong = [
        json!({"outcome":{"outcome":"selected","optionId":"perhaps"}}),
        json!({"outcome":"selected","optionId":"y"}),
        json!([]),
        json!(true),
    ];
    for (n, answer) in wrong.into_iter().enumerate() {
        bench.ask_permission(n as u64, "s");
        let offer = bench.got(a).remove(0);
        bench.reply(a, &offer, &answer);
        assert_eq!(bench.heard(), Vec::<Value>::new());
    }
    bench.ask_permission(9, "s");
    let offer = bench.got(a);
    bench.say(a, &json!({"id":offer[0]["id"],"error":{"code":-32603,"message":"x"}}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn an_open_question_is_asked_whoever_comes_but_not_who_only_watches() {
    let (mut bench, a, _) = Bench::new().in_turn("go");
    bench.leave(a);
    bench.ask_permission(5, "s");
    let watcher = bench.plain();
    let attach = |role: &str| json!({"id":role,"method":"_acpd/session/attach","params":{"ref":{"session":"s"},"role":role}});
    bench.say(watcher, &attach("observer"));
    bench.expect(watcher, ["result \"observer\""]);
    bench.say(watcher, &attach("controller"));
    let got = bench.expect(watcher, ["result \"controller\"", "session/request_permission"]);
    bench.say(watcher, &attach("observer"));
    bench.expect(watcher, ["result \"observer\"", "$/cancel_request"]);
    bench.select(watcher, &got[1], "y");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let b = bench.plain();
    bench.ask(b, 1, "session/load", &json!({"sessionId":"s","cwd":"/w"}));
    let offer = bench.find(b, "session/request_permission");
    bench.select(b, &offer, "y");
    assert_eq!(bench.heard(), [selected(5, "y")]);
}

#[test]
fn a_client_that_closes_the_session_is_answered_before_it_is_let_go() {
    let (mut bench, a) = Bench::begun();
    bench.joined("s");
    let request = bench.start_turn(a, 1, "s", "go");
    bench.feed(Input::Client(a, ClientEvent::Lagged));
    bench.end_turn(&request);
    bench.ask(a, 2, "session/close", &json!({"sessionId":"s"}));
    bench.expect(a, ["result 1", "result 2"]);
    assert_eq!(bench.state("s"), "live");
}

#[test]
fn a_turn_whose_session_is_closed_or_whose_agent_is_stopped_was_interrupted() {
    for by in ["_acpd/session/close", "_acpd/agent/stop"] {
        let (mut bench, a) = Bench::begun();
        let b = bench.plain();
        bench.prompt(a, &json!(1), "s", "go");
        bench.start_turn(a, 2, "s", "and then");
        bench.ask(b, 1, by, &json!({"session":"s","agent":AGENT}));
        if by == "_acpd/agent/stop" {
            bench.agent_dies();
        }
        let got = bench.got(a);
        let reason = |id: u64| reason(got.iter().find(|line| line["id"] == id).unwrap());
        assert_eq!(reason(1), "interrupted", "{by}");
        assert!(!["", "interrupted"].contains(&reason(2)), "{by}: it had not begun");
    }
}

#[test]
fn a_cancel_from_outside_takes_what_waits_along_or_the_running_turn_alone() {
    for turn_only in [false, true] {
        let (mut bench, a) = Bench::begun();
        let b = bench.plain();
        bench.prompt(a, &json!(1), "s", "one");
        let running = bench.start_turn(a, 2, "s", "two");
        let params = json!({"session":"s","turnOnly":turn_only});
        bench.ask(b, 1, "_acpd/session/cancel", &params);
        let result = bench.got(b).remove(0)["result"].clone();
        assert_eq!(result["running"], true);
        assert_eq!(result["takenBack"], u64::from(!turn_only));
        bench.heard_one("session/cancel");
        bench.agent_answers(&running, &json!({"stopReason":"cancelled"}));
        if turn_only {
            bench.expect_prompt("two");
        } else {
            assert_eq!(bench.heard(), Vec::<Value>::new());
            // Nothing is left to cancel.
            bench.ask(b, 2, "_acpd/session/cancel", &params);
            assert_eq!(reason(&bench.got(b)[0]), "no_turn");
        }
    }
}

#[test]
fn no_session_of_an_agent_that_does_not_exist_is_a_mistake_in_the_agent() {
    let (mut bench, a) = Bench::begun();
    for (agent, expected) in [("nope", "agent_unknown"), (AGENT, "session_not_found")] {
        bench.ask(a, agent, "_acpd/session/show", &json!({"session":"other","agent":agent}));
        assert_eq!(reason(&bench.got(a)[0]), expected);
    }
}

#[test]
fn where_its_owner_closes_a_session_the_others_are_told_and_their_prompts_fail() {
    let (mut bench, a) = Bench::with(|profile| profile.closed_by = ClosedBy::Owner).with_begun();
    let b = bench.joined("s");
    bench.ask(b, 2, "session/close", &json!({"sessionId":"s"}));
    assert_eq!(bench.state("s"), "live", "a guest only leaves");
    bench.join(b, "s");
    bench.prompt(a, &json!(1), "s", "go");
    bench.prompt(b, &json!(4), "s", "and then");
    bench.got(b);
    bench.ask(a, 2, "session/close", &json!({"sessionId":"s"}));
    assert_eq!(bench.state("s"), "closed");
    bench.expect_some(b, "error 4");
}

#[test]
fn the_owner_of_a_session_is_who_came_to_it_first_also_over_a_new_connection() {
    let closed = json!({"id":2,"method":"session/close","params":{"sessionId":"s"}});
    let mut bench = Bench::with(|profile| profile.closed_by = ClosedBy::Owner);
    bench.shims = true;
    let guest = bench.plain();
    let owner = bench.client(&token());
    bench.session(owner, "s");
    bench.join(guest, "s");
    bench.say(guest, &closed);
    assert_eq!(bench.state("s"), "live", "its connection is older, but it came later");
    bench.join(guest, "s");
    bench.leave(owner);
    let mut meta = token();
    meta["client"]["resume"] = json!({"generation":"","sessions":{"s":0},"open":[],"asked":[]});
    let owner = bench.client(&meta);
    bench.say(guest, &closed);
    assert_eq!(bench.state("s"), "live", "the owner came back");
    bench.join(guest, "s");
    bench.say(owner, &closed);
    assert_eq!(bench.state("s"), "closed");
}

#[test]
fn a_name_is_given_once_in_a_workspace() {
    let mut bench = Bench::new();
    let a = bench.plain();
    let new = |id: u64, cwd: &str, reuse: bool| {
        let meta = json!({"_acpd":{"name":"fix","reuse":reuse}});
        json!({"id":id,"method":"session/new","params":{"cwd":cwd,"mcpServers":[],"_meta":meta}})
    };
    bench.say(a, &new(1, "/w", false));
    bench.say(a, &new(2, "/w", false));
    bench.say(a, &new(20, "/w", true));
    let request = bench.heard_one("session/new");
    assert!(bench.got(a).is_empty(), "who wants a name that is being given waits");
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    let got = bench.expect(a, ["result 1", "error 2", "result 20"]);
    assert_eq!(reason(&got[1]), "name_taken");
    assert_eq!(got[1]["error"]["data"]["sessionId"], "s");
    assert_eq!(got[2]["result"]["sessionId"], "s");
    bench.say(a, &new(3, "/w", false));
    assert_eq!(reason(&bench.got(a)[0]), "name_taken");
    bench.say(a, &new(4, "/w", true));
    assert_eq!(bench.got(a)[0]["result"]["sessionId"], "s");
    bench.say(a, &new(5, "/else", false));
    let request = bench.heard_one("session/new");
    assert_eq!(request["params"]["_meta"], json!({}));
    bench.agent_answers(&request, &json!({"sessionId":"t"}));
    bench.got(a);
    bench.ask(a, 6, "_acpd/session/rename", &json!({"ref":{"session":"t"},"name":"fix"}));
    bench.expect(a, ["result 6"]);
}

#[test]
fn turn_with_signs_of_failure_is_an_error() {
    let sign = |sign: &str| FailureSign::parse(sign).expect("a sign");
    let status = "_meta.codex.threadStatus.type=systemError";
    let signs = [status, "content.text=Error: ", "stopReason=refusal"].map(sign);
    let bench = Bench::with(|profile| profile.failed_turn = signs.into());
    let (mut bench, a) = bench.with_noticed();
    let say = |text: &str| json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":text}});
    let status = |kind: &str| json!({"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":kind}}}});
    let many = "429 Too Many Requests";
    let cases = [
        (vec![status("active"), status("systemError"), say(many)], "end_turn", Some(many)),
        (vec![say("Info: Retrying..."), say("Error: 400 bad")], "end_turn", Some("Error: 400 bad")),
        (vec![], "refusal", Some("did not say why")),
        // A failure that the agent overcame, and words of the model that look like a sign.
        (vec![status("systemError"), status("idle")], "end_turn", None),
        (vec![say("Error: "), say("is what the program prints")], "end_turn", None),
        (vec![say("No Error: ")], "end_turn", None),
        // The user ended it.
        (vec![say("Error: 400 bad")], "cancelled", None),
    ];
    for (at, (updates, stop, failed)) in (1..).zip(cases) {
        let prompt = bench.start_turn(a, at, "s", "go");
        for update in updates {
            bench.send_update("s", &update);
        }
        if stop == "cancelled" {
            bench.cancel(a, "s");
        }
        bench.agent_answers(&prompt, &json!({"stopReason":stop}));
        let got = bench.got(a);
        let answer = got.iter().find(|line| line["id"] == at).expect("an answer");
        let ended = got.iter().find(|line| line["method"] == "_acpd/turn_ended").expect("told");
        let outcome = &ended["params"]["outcome"];
        if let Some(text) = failed {
            assert_eq!(reason(answer), "failed_turn", "{answer}");
            let message = answer["error"]["message"].as_str().expect("a message");
            assert!(message.contains(text), "{answer}");
            assert_eq!(outcome["kind"], "error", "{outcome}");
        } else {
            assert_eq!(answer["result"]["stopReason"], stop, "{answer}");
            assert_ne!(outcome["kind"], "error", "{outcome}");
        }
    }
}

#[test]
fn failed_turn_can_want_a_login() {
    let mut bench = Bench::with(|profile| {
        profile.failed_turn = FailureSign::parse("content.text=Error: ").into_iter().collect();
        profile.auth_errors = vec!["wrong key".to_owned()];
    });
    let (a, prompt) = bench.running("s", "go");
    bench.got(a);
    bench.update("s", "agent_message_chunk", "Error: Wrong key");
    bench.end_turn(&prompt);
    assert_eq!(reason(&bench.answer(a, 1)), "needs_login");
    assert_eq!(bench.state("s"), "blocked");
}

#[test]
fn stall_notice_names_a_newer_session_of_the_process() {
    let (mut bench, a) = Bench::new().with_noticed();
    let notice = |bench: &mut Bench| {
        bench.pass(600_000);
        let got = bench.got(a);
        let mut texts = got.iter().filter_map(|line| line["params"]["text"].as_str());
        texts.find(|text| text.contains("stalled")).expect("a notice").to_owned()
    };
    bench.prompt(a, &json!(1), "s", "go");
    bench.update("s", "agent_message_chunk", "tick");
    assert!(!notice(&mut bench).contains("same process"));
    bench.heard();
    bench.session(a, "newer");
    let text = notice(&mut bench);
    assert!(text.contains("the same process got session `newer`"), "{text}");
    assert!(text.contains("sharing = \"session\""), "{text}");
    // The agent goes on: the other session was no reason.
    bench.update("s", "agent_message_chunk", "tick");
    assert!(!notice(&mut bench).contains("same process"));
}

#[test]
fn a_turn_without_a_word_has_failed_for_an_agent_that_is_known_for_that() {
    let end = json!({"stopReason":"end_turn"});
    for fails in [true, false] {
        let (mut bench, a) = Bench::with(|profile| profile.empty_turn_fails = fails).with_noticed();
        let prompt = bench.start_turn(a, 1, "s", "go");
        bench.update("s", "user_message_chunk", "go");
        bench.agent_answers(&prompt, &end);
        let got = bench.got(a);
        let answer = got.iter().find(|line| line["id"] == 1).expect("an answer");
        let ended = got.iter().find(|line| line["method"] == "_acpd/turn_ended").expect("told");
        let outcome = &ended["params"]["outcome"];
        if fails {
            assert_eq!(reason(answer), "empty_turn", "{answer}");
            assert_eq!((&outcome["kind"], &outcome["code"]), (&json!("error"), &json!(-32603)));
        } else {
            assert_eq!((&answer["result"], &outcome["kind"]), (&end, &json!("stopped")));
        }
        // Any line of the agent is an output; so is another stop reason.
        for kind in ["agent_message_chunk", "agent_thought_chunk", "none", "cancel"] {
            let prompt = bench.start_turn(a, 2, "s", "go");
            match kind {
                "none" => {}
                "cancel" => bench.cancel_turn(a),
                kind => bench.update("s", kind, "hm"),
            }
            let stop = if kind == "none" { "refusal" } else { "end_turn" };
            bench.agent_answers(&prompt, &json!({"stopReason":stop}));
            let stop = if kind == "cancel" { "cancelled" } else { stop };
            assert_eq!(bench.answer(a, 2)["result"]["stopReason"], stop, "{kind}");
        }
    }
}
