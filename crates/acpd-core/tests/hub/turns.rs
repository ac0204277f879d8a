//! Prompts, cancels and questions to people.

use acpd_core::profile::{ClosedBy, FailureSign};
use acpd_core::{ClientEvent, Input, StopStep};
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, methods, words};
use crate::survival::token;

fn ask(bench: &mut Bench, id: u64) {
    let options = json!([{"optionId":"yes","name":"Yes","kind":"allow_once"}]);
    let params = json!({"sessionId":"s","toolCall":{"toolCallId":"t"},"options":options});
    bench.agent(&json!({"id":id,"method":"session/request_permission","params":params}));
}

#[test]
fn prompts_wait_in_line_and_the_others_see_them_when_they_run() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.client(&json!({"notices":true})));
    bench.session(a, "s");
    bench.prompt(a, &json!(1), "s", "one");
    bench.prompt(b, &json!(1), "s", "two");
    let first = bench.heard_one("session/prompt");
    assert_eq!(words(&bench.got(b)), ["_acpd/caught_up", "_acpd/prompt_queued"]);
    bench.agent_answers(&first, &json!({"stopReason":"end_turn"}));
    let second = bench.heard_one("session/prompt");
    assert_eq!(second["params"]["prompt"][0]["text"], "two");
    assert_eq!(words(&bench.got(a)), ["result 1", "user_message_chunk"]);
    bench.agent_answers(&second, &json!({"stopReason":"refusal"}));
    let told = [
        "_acpd/turn_ended",
        "_acpd/turn_started",
        "_acpd/auth_changed",
        "_acpd/turn_ended",
        "result 1",
    ];
    assert_eq!(words(&bench.got(b)), told);
}

#[test]
fn the_agents_echo_of_a_prompt_is_not_shown_twice() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.plain());
    bench.session(a, "s");
    bench.say(b, &json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}));
    bench.got(b);
    bench.prompt(a, &json!(1), "s", "hello there");
    bench.update("s", "user_message_chunk", "hello there");
    bench.chunk("s", "hi");
    assert_eq!(words(&bench.got(b)), ["user_message_chunk", "agent_message_chunk"]);
}

#[test]
fn a_cancel_ends_the_running_prompt_and_those_behind_it() {
    let (mut bench, a) = Bench::begun();
    bench.prompt(a, &json!(1), "s", "one");
    bench.prompt(a, &json!(2), "s", "two");
    let request = bench.heard_one("session/prompt");
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    bench.heard_one("session/cancel");
    let got = bench.got(a);
    assert_eq!(words(&got), ["result 2"]);
    assert_eq!(got[0]["result"]["stopReason"], "cancelled");
    bench.agent_answers(&request, &json!({"stopReason":"cancelled"}));
    assert_eq!(words(&bench.got(a)), ["result 1"]);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

/// Answers of agents to a prompt whose turn is to end.
fn answers_to_a_cancel() -> [Value; 6] {
    [
        json!({"result":{"stopReason":"end_turn","usage":{"totalTokens":7}}}),
        json!({"result":{"stopReason":"cancelled"}}),
        json!({"result":{}}),
        json!({"error":{"code":-32603,"message":"Aborted"}}),
        json!({"error":{"code":-32800,"message":"cancelled"}}),
        json!({"error":{"code":-32000,"message":"log in"}}),
    ]
}

fn last_outcome(bench: &mut Bench) -> Value {
    let rows = bench.journal.values().next().expect("a journal");
    let lines = rows.iter().rev().map(|row| serde_json::from_slice::<Value>(&row.line));
    let ended = lines.flatten().find(|line| line["method"] == "_acpd/turn_ended");
    let word = bench.show("s")["turn"]["last"].clone();
    let outcome = ended.expect("a turn ended")["params"]["outcome"].clone();
    let kind = if outcome["kind"] == "stopped" { &outcome["stopReason"] } else { &outcome["kind"] };
    assert_eq!(*kind, word, "the journal and the list say the same");
    word
}

#[test]
fn a_cancelled_turn_is_cancelled_whatever_the_agent_answers() {
    for mut answer in answers_to_a_cancel() {
        let mut bench = Bench::new();
        let (a, prompt) = bench.running("s", "go");
        bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
        bench.heard_one("session/cancel");
        answer["id"] = prompt["id"].clone();
        bench.agent(&answer);
        let got = bench.got(a);
        let result = got.iter().find(|line| line["id"] == 1).expect("answered")["result"].clone();
        assert_eq!(result["stopReason"], "cancelled", "{answer}: {got:?}");
        assert_eq!(result["usage"], answer["result"]["usage"], "what else it says passes");
        assert_eq!(last_outcome(&mut bench), "cancelled", "{answer}");
    }
}

#[test]
fn a_turn_whose_agent_is_stopped_is_interrupted_whatever_the_agent_answers() {
    for mut answer in answers_to_a_cancel() {
        let mut bench = Bench::new();
        let (a, prompt) = bench.running("s", "go");
        let b = bench.plain();
        bench.say(b, &json!({"id":1,"method":"_acpd/agent/stop","params":{"agent":AGENT}}));
        bench.heard_one("session/cancel");
        answer["id"] = prompt["id"].clone();
        bench.agent(&answer);
        let got = bench.got(a);
        let error = &got.iter().find(|line| line["id"] == 1).expect("answered")["error"];
        assert_eq!(error["data"]["_acpd"]["reason"], "interrupted", "{answer}: {got:?}");
        bench.agent_dies();
        assert_eq!(last_outcome(&mut bench), "interrupted", "{answer}");
    }
}

#[test]
fn a_cancel_of_an_idle_session_does_not_reach_the_agent() {
    let (mut bench, a) = Bench::begun();
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn next_prompt_waits_for_the_end_of_a_cancelled_turn() {
    let mut bench = Bench::new();
    let (a, request) = bench.running("s", "go");
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    bench.heard_one("session/cancel");
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
    bench.say(a, &json!({"method":"$/cancel_request","params":{"requestId":2}}));
    let got = bench.got(a);
    assert_eq!(words(&got), ["error 2"]);
    assert_eq!(got[0]["error"]["code"], -32800);
    bench.say(a, &json!({"method":"$/cancel_request","params":{"requestId":1}}));
    bench.heard_one("session/cancel");
    assert_eq!(bench.got(a), Vec::<Value>::new());
    bench.agent_answers(&first, &json!({"stopReason":"cancelled"}));
    let third = bench.heard_one("session/prompt");
    assert_eq!(third["params"]["prompt"][0]["text"], "p3");
}

#[test]
fn cancel_request_takes_back_what_waits_for_the_agent() {
    let mut bench = Bench::new();
    bench.capabilities = None;
    let a = bench.connect(&json!({}));
    bench.say(a, &json!({"method":"$/cancel_request","params":{"requestId":"init"}}));
    let got = bench.got(a);
    assert_eq!(got[0]["error"]["code"], -32800);
    assert_eq!(got.len(), 1);
}

#[test]
fn a_cancel_withdraws_a_question_from_everybody_and_answers_the_agent_once() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.plain());
    bench.session(a, "s");
    bench.say(b, &json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}));
    bench.prompt(a, &json!(9), "s", "go");
    let prompt = bench.heard_one("session/prompt");
    bench.got(a);
    bench.got(b);
    ask(&mut bench, 5);
    let offers = [bench.got(a), bench.got(b)];
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    let heard = bench.heard();
    assert_eq!(methods(&heard), ["session/cancel", "answer"]);
    assert_eq!(heard[1]["id"], 5);
    assert_eq!(heard[1]["result"]["outcome"]["outcome"], "cancelled");
    for (client, offer) in [a, b].into_iter().zip(&offers) {
        let got = bench.got(client);
        assert_eq!(words(&got), ["$/cancel_request"]);
        assert_eq!(got[0]["params"]["requestId"], offer[0]["id"]);
    }
    let late = json!({"outcome":{"outcome":"selected","optionId":"yes"}});
    bench.say(b, &json!({"id":offers[1][0]["id"],"result":late}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.agent_answers(&prompt, &json!({"stopReason":"cancelled"}));
    assert_eq!(words(&bench.got(a)), ["result 9"]);
}

#[test]
fn a_question_asked_after_the_cancel_is_answered_at_once() {
    let (mut bench, a) = Bench::begun();
    bench.prompt(a, &json!(1), "s", "go");
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    bench.heard();
    ask(&mut bench, 6);
    assert_eq!(bench.heard()[0]["result"]["outcome"]["outcome"], "cancelled");
    assert_eq!(bench.got(a), Vec::<Value>::new());
}

#[test]
fn nothing_but_a_valid_answer_is_consent() {
    let mut bench = Bench::new();
    let (a, _) = bench.running("s", "go");
    let wrong = [
        json!({"outcome":{"outcome":"selected","optionId":"perhaps"}}),
        json!({"outcome":"selected","optionId":"yes"}),
        json!([]),
        json!(true),
    ];
    for (n, answer) in wrong.into_iter().enumerate() {
        ask(&mut bench, n as u64);
        let offer = bench.got(a);
        bench.say(a, &json!({"id":offer[0]["id"],"result":answer}));
        assert_eq!(bench.heard(), Vec::<Value>::new());
    }
    ask(&mut bench, 9);
    let offer = bench.got(a);
    bench.say(a, &json!({"id":offer[0]["id"],"error":{"code":-32603,"message":"x"}}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn who_answers_nonsense_is_asked_again_but_not_for_ever() {
    let mut bench = Bench::new();
    let (a, _) = bench.running("s", "go");
    ask(&mut bench, 5);
    for _ in 0..3 {
        let offer = bench.got(a).pop().expect("asked");
        bench.say(a, &json!({"id":offer["id"],"result":"nonsense"}));
    }
    assert_eq!(words(&bench.got(a)), ["error null"]);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn an_open_question_is_asked_whoever_comes_but_not_who_only_watches() {
    let mut bench = Bench::new();
    let (a, _) = bench.running("s", "go");
    bench.feed(Input::Client(a, ClientEvent::Closed));
    ask(&mut bench, 5);
    let watcher = bench.plain();
    let attach = |role: &str| json!({"id":role,"method":"_acpd/session/attach","params":{"ref":{"session":"s"},"role":role}});
    bench.say(watcher, &attach("observer"));
    assert_eq!(words(&bench.got(watcher)), ["result \"observer\""]);
    bench.say(watcher, &attach("controller"));
    let got = bench.got(watcher);
    assert_eq!(words(&got), ["result \"controller\"", "session/request_permission"]);
    bench.say(watcher, &attach("observer"));
    assert_eq!(words(&bench.got(watcher)), ["result \"observer\"", "$/cancel_request"]);
    let answer = json!({"outcome":{"outcome":"selected","optionId":"yes"}});
    bench.say(watcher, &json!({"id":got[1]["id"],"result":answer}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let b = bench.plain();
    bench.say(b, &json!({"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/w"}}));
    let got = bench.got(b);
    let offer = got.iter().find(|line| line["method"] == "session/request_permission");
    bench.say(b, &json!({"id":offer.expect("asked")["id"],"result":answer}));
    assert_eq!(bench.heard()[0]["result"]["outcome"]["optionId"], "yes");
}

#[test]
fn an_agent_that_ignores_a_cancel_is_stopped_and_its_session_comes_back() {
    let mut bench = Bench::new();
    let (a, _) = bench.running("s", "go");
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    bench.heard();
    bench.pass(9_999);
    assert_eq!(bench.stops, []);
    bench.pass(1);
    assert_eq!(bench.stops, [StopStep::CloseStdin]);
    bench.pass(3_000);
    bench.pass(7_000);
    assert_eq!(bench.stops, [StopStep::CloseStdin, StopStep::Term, StopStep::Kill]);
    bench.agent_dies();
    let got = bench.got(a);
    assert_eq!(words(&got), ["result 1"]);
    assert_eq!(got[0]["result"]["stopReason"], "cancelled");
    bench.answers("session/resume", &json!({}));
    assert_eq!(bench.state("s"), "live");
}

#[test]
fn a_deleted_session_answers_its_running_prompt() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.plain());
    bench.session(a, "s");
    bench.prompt(a, &json!(1), "s", "go");
    bench.prompt(a, &json!(2), "s", "more");
    bench.say(b, &json!({"id":7,"method":"_acpd/session/remove","params":{"session":"s"}}));
    assert_eq!(words(&bench.got(a)), ["error 2", "error 1"]);
    assert_eq!(words(&bench.got(b)), ["result 7"]);
    bench.prompt(a, &json!(3), "s", "again");
    assert_eq!(bench.got(a)[0]["error"]["code"], -32002);
}

#[test]
fn a_client_that_closes_the_session_is_answered_before_it_is_let_go() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.plain());
    bench.session(a, "s");
    bench.say(b, &json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}));
    bench.prompt(a, &json!(1), "s", "go");
    let request = bench.heard_one("session/prompt");
    bench.feed(Input::Client(a, ClientEvent::Lagged));
    bench.agent_answers(&request, &json!({"stopReason":"end_turn"}));
    bench.say(a, &json!({"id":2,"method":"session/close","params":{"sessionId":"s"}}));
    assert_eq!(words(&bench.got(a)), ["result 1", "result 2"]);
    assert_eq!(bench.state("s"), "live");
}

#[test]
fn a_turn_whose_session_is_closed_or_whose_agent_is_stopped_was_interrupted() {
    for by in ["_acpd/session/close", "_acpd/agent/stop"] {
        let mut bench = Bench::new();
        let (a, b) = (bench.plain(), bench.plain());
        bench.session(a, "s");
        bench.prompt(a, &json!(1), "s", "go");
        bench.prompt(a, &json!(2), "s", "and then");
        bench.heard_one("session/prompt");
        bench.say(b, &json!({"id":1,"method":by,"params":{"session":"s","agent":AGENT}}));
        if by == "_acpd/agent/stop" {
            bench.agent_dies();
        }
        let got = bench.got(a);
        let reason = |id: u64| {
            let error = got.iter().find(|line| line["id"] == id).unwrap();
            error["error"]["data"]["_acpd"]["reason"].as_str().unwrap().to_owned()
        };
        assert_eq!(reason(1), "interrupted", "{by}");
        assert_ne!(reason(2), "interrupted", "{by}: it had not begun");
    }
}

#[test]
fn a_cancel_from_outside_takes_what_waits_along_or_the_running_turn_alone() {
    for turn_only in [false, true] {
        let mut bench = Bench::new();
        let (a, b) = (bench.plain(), bench.plain());
        bench.session(a, "s");
        bench.prompt(a, &json!(1), "s", "one");
        bench.prompt(a, &json!(2), "s", "two");
        let running = bench.heard_one("session/prompt");
        let params = json!({"session":"s","turnOnly":turn_only});
        bench.say(b, &json!({"id":1,"method":"_acpd/session/cancel","params":params}));
        let result = bench.got(b).remove(0)["result"].clone();
        assert_eq!(result["running"], true);
        assert_eq!(result["takenBack"], u64::from(!turn_only));
        bench.heard_one("session/cancel");
        bench.agent_answers(&running, &json!({"stopReason":"cancelled"}));
        if turn_only {
            let next = bench.heard_one("session/prompt");
            assert_eq!(next["params"]["prompt"][0]["text"], "two");
        } else {
            assert_eq!(bench.heard(), Vec::<Value>::new());
            // Nothing is left to cancel.
            bench.say(b, &json!({"id":2,"method":"_acpd/session/cancel","params":params}));
            let error = bench.got(b).remove(0)["error"].clone();
            assert_eq!(error["data"]["_acpd"]["reason"], "no_turn");
        }
    }
}

#[test]
fn no_session_of_an_agent_that_does_not_exist_is_a_mistake_in_the_agent() {
    let (mut bench, a) = Bench::begun();
    for (agent, reason) in [("nope", "agent_unknown"), (AGENT, "session_not_found")] {
        let params = json!({"session":"other","agent":agent});
        bench.say(a, &json!({"id":agent,"method":"_acpd/session/show","params":params}));
        assert_eq!(bench.got(a)[0]["error"]["data"]["_acpd"]["reason"], reason);
    }
}

#[test]
fn where_its_owner_closes_a_session_the_others_are_told_and_their_prompts_fail() {
    let mut bench = Bench::with(|profile| profile.closed_by = ClosedBy::Owner);
    let (a, b) = (bench.plain(), bench.plain());
    bench.session(a, "s");
    bench.say(b, &json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}));
    bench.say(b, &json!({"id":2,"method":"session/close","params":{"sessionId":"s"}}));
    assert_eq!(bench.state("s"), "live", "a guest only leaves");
    bench.say(b, &json!({"id":3,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}));
    bench.prompt(a, &json!(1), "s", "go");
    bench.prompt(b, &json!(4), "s", "and then");
    bench.got(b);
    bench.say(a, &json!({"id":2,"method":"session/close","params":{"sessionId":"s"}}));
    assert_eq!(bench.state("s"), "closed");
    assert!(words(&bench.got(b)).contains(&"error 4".to_owned()));
}

#[test]
fn the_owner_of_a_session_is_who_came_to_it_first_also_over_a_new_connection() {
    let resumed = json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}});
    let closed = json!({"id":2,"method":"session/close","params":{"sessionId":"s"}});
    let mut bench = Bench::with(|profile| profile.closed_by = ClosedBy::Owner);
    bench.shims = true;
    let guest = bench.plain();
    let owner = bench.client(&token());
    bench.session(owner, "s");
    bench.say(guest, &resumed);
    bench.say(guest, &closed);
    assert_eq!(bench.state("s"), "live", "its connection is older, but it came later");
    bench.say(guest, &resumed);
    bench.feed(Input::Client(owner, ClientEvent::Closed));
    let resume = json!({"generation":"","sessions":{"s":0},"open":[],"asked":[]});
    let mut meta = token();
    meta["client"]["resume"] = resume;
    let owner = bench.client(&meta);
    bench.say(guest, &closed);
    assert_eq!(bench.state("s"), "live", "the owner came back");
    bench.say(guest, &resumed);
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
    let got = bench.got(a);
    assert_eq!(words(&got), ["result 1", "error 2", "result 20"]);
    assert_eq!(got[1]["error"]["data"]["_acpd"]["reason"], "name_taken");
    assert_eq!(got[1]["error"]["data"]["sessionId"], "s");
    assert_eq!(got[2]["result"]["sessionId"], "s");
    bench.say(a, &new(3, "/w", false));
    assert_eq!(bench.got(a)[0]["error"]["data"]["_acpd"]["reason"], "name_taken");
    bench.say(a, &new(4, "/w", true));
    assert_eq!(bench.got(a)[0]["result"]["sessionId"], "s");
    bench.say(a, &new(5, "/else", false));
    let request = bench.heard_one("session/new");
    assert_eq!(request["params"]["_meta"], json!({}));
    bench.agent_answers(&request, &json!({"sessionId":"t"}));
    bench.got(a);
    let rename = json!({"ref":{"session":"t"},"name":"fix"});
    bench.say(a, &json!({"id":6,"method":"_acpd/session/rename","params":rename}));
    assert_eq!(words(&bench.got(a)), ["result 6"]);
}

#[test]
fn turn_with_signs_of_failure_is_an_error() {
    let sign = |sign: &str| FailureSign::parse(sign).expect("a sign");
    let mut bench = Bench::with(|profile| {
        let signs = [
            "_meta.codex.threadStatus.type=systemError",
            "content.text=Error: ",
            "stopReason=refusal",
        ];
        profile.failed_turn = signs.map(sign).into();
    });
    let a = bench.client(&json!({"notices":true}));
    bench.session(a, "s");
    let say = |text: &str| json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":text}});
    let status = |kind: &str| json!({"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":kind}}}});
    let cases = [
        (
            vec![status("active"), status("systemError"), say("429 Too Many Requests")],
            "end_turn",
            Some("429 Too Many Requests"),
        ),
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
        bench.prompt(a, &json!(at), "s", "go");
        let prompt = bench.heard_one("session/prompt");
        for update in updates {
            let params = json!({"sessionId":"s","update":update});
            bench.agent(&json!({"method":"session/update","params":params}));
        }
        if stop == "cancelled" {
            bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
        }
        bench.agent_answers(&prompt, &json!({"stopReason":stop}));
        let got = bench.got(a);
        let answer = got.iter().find(|line| line["id"] == at).expect("an answer");
        let ended = got.iter().find(|line| line["method"] == "_acpd/turn_ended").expect("told");
        let outcome = &ended["params"]["outcome"];
        if let Some(text) = failed {
            assert_eq!(answer["error"]["data"]["_acpd"]["reason"], "failed_turn", "{answer}");
            assert!(
                answer["error"]["message"].as_str().is_some_and(|message| message.contains(text)),
                "{answer}"
            );
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
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    let got = bench.got(a);
    let answer = got.iter().find(|line| line.get("error").is_some()).expect("an error");
    assert_eq!(answer["error"]["data"]["_acpd"]["reason"], "needs_login", "{answer}");
    assert_eq!(bench.state("s"), "blocked");
}

#[test]
fn stall_notice_names_a_newer_session_of_the_process() {
    let mut bench = Bench::new();
    let a = bench.client(&json!({"notices":true}));
    bench.session(a, "s");
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
        let mut bench = Bench::with(|profile| profile.empty_turn_fails = fails);
        let a = bench.client(&json!({"notices":true}));
        bench.session(a, "s");
        bench.prompt(a, &json!(1), "s", "go");
        let prompt = bench.heard_one("session/prompt");
        bench.update("s", "user_message_chunk", "go");
        bench.agent_answers(&prompt, &end);
        let got = bench.got(a);
        let answer = got.iter().find(|line| line["id"] == 1).expect("an answer");
        let ended = got.iter().find(|line| line["method"] == "_acpd/turn_ended").expect("told");
        let outcome = &ended["params"]["outcome"];
        if fails {
            assert_eq!(answer["error"]["data"]["_acpd"]["reason"], "empty_turn", "{answer}");
            assert_eq!((&outcome["kind"], &outcome["code"]), (&json!("error"), &json!(-32603)));
        } else {
            assert_eq!((&answer["result"], &outcome["kind"]), (&end, &json!("stopped")));
        }
        // Any line of the agent is an output; so is another stop reason.
        for kind in ["agent_message_chunk", "agent_thought_chunk", "none", "cancel"] {
            bench.prompt(a, &json!(2), "s", "go");
            let prompt = bench.heard_one("session/prompt");
            match kind {
                "none" => {}
                "cancel" => {
                    let cancel = json!({"method":"session/cancel","params":{"sessionId":"s"}});
                    bench.say(a, &cancel);
                    bench.heard_one("session/cancel");
                }
                kind => bench.update("s", kind, "hm"),
            }
            let stop = if kind == "none" { "refusal" } else { "end_turn" };
            bench.agent_answers(&prompt, &json!({"stopReason":stop}));
            let stop = if kind == "cancel" { "cancelled" } else { stop };
            let got = bench.got(a);
            let answer = got.iter().find(|line| line["id"] == 2).expect("an answer");
            assert_eq!(answer["result"]["stopReason"], stop, "{kind}");
        }
    }
}
