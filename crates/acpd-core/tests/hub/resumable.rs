//! Clients with a token: what is kept for them, what is not, and what they may do.

use acpd_core::ids::ClientId;
use acpd_core::{HostEvent, Input, SpawnError};
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, words};
use crate::steps::reason;
use crate::survival::{TOKEN, answer_of, back, come_back, stop_reason, token, working};

const FIRST: ClientId = ClientId(1);

/// Comes back with these sessions, open requests and questions.
fn back_with(bench: &mut Bench, resume: &Value, meta: &Value) -> Vec<Value> {
    let mut meta = meta.clone();
    meta["client"] = json!({"token":TOKEN,"resume":resume});
    meta["client"]["resume"]["generation"] = "".into();
    let client = bench.connect(&meta);
    bench.got(client)
}

#[test]
fn who_says_that_it_leaves_is_forgotten_at_once() {
    let (mut bench, prompt) = working();
    let received = bench.snapshot.clients[TOKEN].received;
    bench.say(FIRST, &json!({"method":"_acpd/client/leave"}));
    assert_eq!(bench.snapshot.clients.len(), 0);
    assert!(received > 0 && bench.got(FIRST).is_empty(), "it is no counted line");
    bench.leave(FIRST);
    bench.end_turn(&prompt);
    assert_eq!(bench.snapshot.clients.len(), 0);
    assert_eq!(bench.snapshot.turns.len(), 0, "the turn went on");
}

#[test]
fn nobody_is_forgotten_for_not_coming_back_while_the_store_fails() {
    let (mut bench, prompt) = working();
    let other = bench.client(&json!({"client":{"token":"another-client-1"}}));
    bench.leave(other);
    bench.pass(3_599_000);
    bench.leave(FIRST);
    bench.feed(Input::StoreFailing { reason: "disk full".to_owned(), hint: None });
    bench.now += 3_600_000;
    bench.feed(Input::StoreWorks);
    bench.pass(1_000);
    assert_eq!(bench.snapshot.clients.keys().collect::<Vec<_>>(), [TOKEN]);
    bench.end_turn(&prompt);
    assert_eq!(stop_reason(&back(&mut bench, 0, &json!([2])), 2), "end_turn");
}

#[test]
fn confirmations_wait_for_another_record_or_a_deadline() {
    for (passes, lines) in [(true, 1), (false, 2)] {
        let (mut bench, prompt) = working();
        bench.end_turn(&prompt);
        let before = bench.snapshot.clients[TOKEN].clone();
        bench.say(FIRST, &json!({"method":"_acpd/client/answered","params":{"ids":[2]}}));
        assert_eq!(bench.snapshot.clients[TOKEN], before);
        if passes {
            bench.pass(500);
        } else {
            bench.prompt(FIRST, &json!(3), "s", "more");
        }
        let after = bench.snapshot.clients[TOKEN].clone();
        assert_eq!(after.received, before.received + lines);
        assert_eq!(after.replies.len(), before.replies.len() - 1);
        let told = json!({"lines":after.received});
        assert!(bench.got(FIRST).iter().any(|line| line["params"] == told));
    }
}

#[test]
fn answers_for_a_forgotten_client_are_not_for_the_next_one_with_its_token() {
    let (mut bench, first) = working();
    bench.prompt(FIRST, &json!(3), "s", "more");
    bench.ask(FIRST, 4, "_x/slow", &json!({}));
    let slow = bench.heard_one("_x/slow");
    bench.say(FIRST, &json!({"method":"_acpd/client/leave"}));
    bench.leave(FIRST);
    let next = bench.client(&token());
    bench.reboot();
    bench.end_turn(&first);
    bench.end_prompt();
    bench.agent_answers(&slow, &json!({}));
    assert_eq!(bench.snapshot.clients[TOKEN].replies.len(), 0);
    assert_eq!(bench.got(next), Vec::<Value>::new());
}

#[test]
fn a_client_that_waits_for_an_answer_is_forgotten_last() {
    let (mut bench, prompt) = working();
    bench.leave(FIRST);
    for number in 0..1_100 {
        let token = format!("another-client-{number:04}");
        let client = bench.client(&json!({"client":{"token":token}}));
        bench.leave(client);
    }
    assert!(bench.snapshot.clients.len() <= 1_024);
    bench.end_turn(&prompt);
    assert_eq!(stop_reason(&back(&mut bench, 0, &json!([2])), 2), "end_turn");
}

#[test]
fn an_id_that_is_used_again_confirms_its_answer() {
    let (mut bench, prompt) = working();
    bench.end_turn(&prompt);
    let kept = |bench: &Bench| {
        let replies = &bench.snapshot.clients[TOKEN].replies;
        replies.keys().any(|id| id.as_u64() == Some(2))
    };
    assert!(kept(&bench));
    bench.ask(FIRST, 2, "_x/slow", &json!({}));
    assert!(!kept(&bench));
    bench.answers("_x/slow", &json!({"n":1}));
    let got = back(&mut bench, 9, &json!([2]));
    assert_eq!(answer_of(&got, &json!(2)).expect("kept")["result"], json!({"n":1}));
}

#[test]
fn answers_that_nobody_confirms_are_not_kept_without_end() {
    let mut bench = Bench::with_shims();
    let a = bench.client(&token());
    for id in 0..20 {
        bench.ask(a, id, "_x/big", &json!({}));
        match bench.heard().pop() {
            Some(request) => bench.agent_answers(&request, &json!({"text":"x".repeat(900_000)})),
            None => break,
        }
    }
    let kept: usize = bench.snapshot.clients[TOKEN].replies.values().map(|r| r.line.len()).sum();
    assert!(kept < 10 << 20, "{kept}");
    let got = bench.got(a);
    let refused = got.iter().find(|line| line["error"].is_object()).expect("refused");
    assert_eq!(reason(refused), "too_many");
}

#[test]
fn an_initialize_that_is_repeated_does_not_forget_what_has_to_be_asked_again() {
    let (mut bench, _) = Bench::new().with_token();
    // The client resumes while the agent cannot be asked for its capabilities, and asks again.
    bench.snapshot.agents.get_mut(AGENT).expect("known").initialize = None;
    let capabilities = bench.capabilities.take();
    bench.reboot();
    bench.end_process();
    let resume = json!({"generation":"","sessions":{},"open":["l"],"asked":[]});
    let client = bench.connect(&json!({"client":{"token":TOKEN,"resume":resume}}));
    let error = SpawnError { message: "no such file".to_owned(), hint: None, permanent: true };
    let host = bench.host();
    bench.feed(Input::Host(host, HostEvent::Refused(error)));
    assert!(bench.got(client)[0]["error"].is_object());
    bench.capabilities = capabilities;
    let params = json!({"protocolVersion":1,"_meta":{"_acpd":{"client":{"token":TOKEN}}}});
    bench.ask(client, "init2", "initialize", &params);
    let own = &bench.got(client)[0]["result"]["agentCapabilities"]["_meta"]["_acpd"];
    assert_eq!(own["again"], json!(["l"]));
}

#[test]
fn a_session_is_followed_for_a_prompt_only_if_the_client_still_waits_for_it() {
    for (open, follows) in [(json!([2]), true), (json!([]), false)] {
        let (mut bench, _prompt) = working();
        bench.leave(FIRST);
        let got = back_with(&mut bench, &json!({"open":open}), &json!({"notices":true}));
        let caught_up = got.iter().any(|line| line["method"] == "_acpd/caught_up");
        assert_eq!(caught_up, follows, "{got:?}");
    }
}

#[test]
fn a_session_is_not_deleted_or_closed_under_a_client_that_will_be_back() {
    let (mut bench, prompt) = working();
    bench.leave(FIRST);
    let other = bench.plain();
    bench.ask(other, 1, "session/delete", &json!({"sessionId":"s"}));
    assert_eq!(reason(&bench.got(other)[0]), "session_blocked");
    bench.ask(other, 2, "session/close", &json!({"sessionId":"s"}));
    bench.expect(other, ["result 2"]);
    bench.end_turn(&prompt);
    assert_eq!(stop_reason(&back(&mut bench, 0, &json!([2])), 2), "end_turn");
}

/// Comes back while it has asked to leave the session `s`, of which it has nothing.
fn back_leaving(bench: &mut Bench, request: &Value) -> (ClientId, Vec<String>) {
    let leaving = json!({"s":{"seq":0,"requests":[request]}});
    let (client, got) = come_back(bench, &json!({"leaving":leaving,"open":[request]}));
    (client, words(&got))
}

fn follows(bench: &mut Bench, client: ClientId) -> bool {
    bench.chunk("s", "more");
    words(&bench.got(client)).contains(&"agent_message_chunk".to_owned())
}

#[test]
fn who_could_not_leave_a_session_goes_on_following_it() {
    let (mut bench, a) = Bench::with_shims().with_token();
    let other = bench.noticed();
    bench.attach(other, "s");
    bench.leave(a);

    // The request did not arrive: it is to be sent again, and refused.
    let (back, got) = back_leaving(&mut bench, &json!(5));
    assert!(got.contains(&"_acpd/caught_up".to_owned()), "{got:?}");
    bench.ask(back, 5, "session/delete", &json!({"sessionId":"s"}));
    bench.expect_some(back, "error 5");
    assert!(follows(&mut bench, back));

    // The request has arrived, the refusal has not.
    bench.leave(back);
    let (back, _) = back_leaving(&mut bench, &json!(5));
    assert!(follows(&mut bench, back));
}

#[test]
fn who_has_left_a_session_does_not_follow_it_again() {
    let (mut bench, a) = Bench::with_shims().with_token();
    let other = bench.noticed();
    bench.attach(other, "s");
    bench.ask(a, 5, "session/close", &json!({"sessionId":"s"}));
    bench.expect_some(a, "result 5");
    bench.leave(a);
    let (back, got) = back_leaving(&mut bench, &json!(5));
    assert!(got.contains(&"result 5".to_owned()), "{got:?}");
    assert!(!follows(&mut bench, back));
}

#[test]
fn who_only_watches_now_does_not_answer_what_it_was_asked_before() {
    for (sessions, role) in [(json!({}), "controller"), (json!({"s":0}), "observer")] {
        let (mut bench, a) = Bench::with_shims().with_token();
        bench.ask_permission(7, "s");
        let asked = bench.find(a, "session/request_permission");
        bench.leave(a);
        let resume = json!({"sessions":sessions,"asked":[asked["id"]]});
        let got = back_with(&mut bench, &resume, &json!({"role":role}));
        assert!(words(&got).contains(&"$/cancel_request".to_owned()), "{got:?}");
        bench.select(ClientId(2), &asked, "y");
        assert_eq!(bench.heard(), Vec::<Value>::new(), "{role}");
    }
}

#[test]
fn a_name_that_is_taken_over_has_its_place_before_the_answer() {
    let mut bench = Bench::with_shims();
    let a = bench.client(&token());
    let params = json!({"cwd":"/w","mcpServers":[],"_meta":{"_acpd":{"name":"n","reuse":true}}});
    let new = json!({"id":"new","method":"session/new","params":params});
    bench.say(a, &new);
    bench.answers("session/new", &json!({"sessionId":"s"}));
    bench.got(a);
    let other = bench.client(&json!({"client":{"token":"another-client-1"}}));
    bench.say(other, &new);
    let got = words(&bench.got(other));
    let place = |word: &str| got.iter().position(|other| other == word).expect(word);
    assert!(place("_acpd/caught_up") < place("result \"new\""), "{got:?}");
}

#[test]
fn a_prompt_to_a_session_that_was_not_opened_yet_loses_no_line() {
    let (mut bench, _) = Bench::with_shims().with_begun();
    let a = bench.client(&token());
    let prompt = bench.start_turn(a, 2, "s", "go");
    // The connection is lost before anything came through it.
    bench.leave(a);
    bench.chunk("s", "one");
    let resume = json!({"open":[2]});
    let got = back_with(&mut bench, &resume, &json!({}));
    assert!(words(&got).contains(&"agent_message_chunk".to_owned()), "{got:?}");
    bench.leave(ClientId(3));
    bench.chunk("s", "two");
    bench.end_turn(&prompt);
    let got = words(&back_with(&mut bench, &resume, &json!({})));
    let chunks = got.iter().filter(|word| *word == "agent_message_chunk").count();
    assert_eq!(chunks, 2, "it still has nothing: {got:?}");
    assert!(got.contains(&"result 2".to_owned()));
}

#[test]
fn an_answer_is_kept_with_all_that_the_client_may_be_able_to_show() {
    let options = json!([{"id":"fast","name":"Fast","type":"boolean","currentValue":true}]);
    let shows = json!({"session":{"configOptions":{"boolean":{}}}});
    for (capabilities, shown) in [(shows, 1), (json!({}), 0)] {
        let mut bench = Bench::with_shims();
        let a = bench.client(&token());
        bench.ask(a, 1, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
        let request = bench.heard_one("session/new");
        bench.leave(a);
        bench.agent_answers(&request, &json!({"sessionId":"s","configOptions":options}));
        let client = bench.open();
        let resume = json!({"generation":"","sessions":{},"open":[1],"asked":[]});
        let meta = json!({"_acpd":{"client":{"token":TOKEN,"resume":resume}}});
        let params = json!({"protocolVersion":1,"clientCapabilities":capabilities,"_meta":meta});
        bench.ask(client, "init", "initialize", &params);
        let answer = answer_of(&bench.got(client), &json!(1)).expect("kept");
        assert_eq!(answer["result"]["configOptions"].as_array().map_or(0, Vec::len), shown);
    }
}
