//! Clients with a token: what is kept for them, what is not, and what they may do.

use acpd_core::ids::ClientId;
use acpd_core::{ClientEvent, ClientOrigin, HostEvent, Input, SpawnError};
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, words};
use crate::survival::{TOKEN, answer_of, back, token, working};

const FIRST: ClientId = ClientId(1);

/// Comes back with these sessions, open requests and questions.
fn back_with(bench: &mut Bench, resume: &Value, meta: &Value) -> Vec<Value> {
    let mut meta = meta.clone();
    meta["client"] = json!({"token":TOKEN,"resume":resume});
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
    bench.feed(Input::Client(FIRST, ClientEvent::Closed));
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    assert_eq!(bench.snapshot.clients.len(), 0);
    assert_eq!(bench.snapshot.turns.len(), 0, "the turn went on");
}

#[test]
fn nobody_is_forgotten_for_not_coming_back_while_the_store_fails() {
    let (mut bench, prompt) = working();
    let other = bench.client(&json!({"client":{"token":"another-client-1"}}));
    bench.feed(Input::Client(other, ClientEvent::Closed));
    bench.pass(3_599_000);
    bench.feed(Input::Client(FIRST, ClientEvent::Closed));
    bench.feed(Input::StoreFailing { reason: "disk full".to_owned(), hint: None });
    bench.now += 3_600_000;
    bench.feed(Input::StoreWorks);
    bench.pass(1_000);
    assert_eq!(bench.snapshot.clients.keys().collect::<Vec<_>>(), [TOKEN]);
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    let got = back(&mut bench, 0, &json!([2]));
    assert_eq!(answer_of(&got, &json!(2)).expect("kept")["result"]["stopReason"], "end_turn");
}

#[test]
fn answers_for_a_forgotten_client_are_not_for_the_next_one_with_its_token() {
    let (mut bench, first) = working();
    bench.prompt(FIRST, &json!(3), "s", "more");
    bench.say(FIRST, &json!({"id":4,"method":"_x/slow","params":{}}));
    let slow = bench.heard_one("_x/slow");
    bench.say(FIRST, &json!({"method":"_acpd/client/leave"}));
    bench.feed(Input::Client(FIRST, ClientEvent::Closed));
    let next = bench.client(&token());
    bench.reboot();
    bench.agent_answers(&first, &json!({"stopReason":"end_turn"}));
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    bench.agent_answers(&slow, &json!({}));
    assert_eq!(bench.snapshot.clients[TOKEN].replies.len(), 0);
    assert_eq!(bench.got(next), Vec::<Value>::new());
}

#[test]
fn a_client_that_waits_for_an_answer_is_forgotten_last() {
    let (mut bench, prompt) = working();
    bench.feed(Input::Client(FIRST, ClientEvent::Closed));
    for number in 0..1_100 {
        let token = format!("another-client-{number:04}");
        let client = bench.client(&json!({"client":{"token":token}}));
        bench.feed(Input::Client(client, ClientEvent::Closed));
    }
    assert!(bench.snapshot.clients.len() <= 1_024);
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    let got = back(&mut bench, 0, &json!([2]));
    assert_eq!(answer_of(&got, &json!(2)).expect("kept")["result"]["stopReason"], "end_turn");
}

#[test]
fn an_id_that_is_used_again_confirms_its_answer() {
    let (mut bench, prompt) = working();
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    let kept = |bench: &Bench| {
        let replies = &bench.snapshot.clients[TOKEN].replies;
        replies.keys().any(|id| id.as_u64() == Some(2))
    };
    assert!(kept(&bench));
    bench.say(FIRST, &json!({"id":2,"method":"_x/slow","params":{}}));
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
        bench.say(a, &json!({"id":id,"method":"_x/big","params":{}}));
        match bench.heard().pop() {
            Some(request) => bench.agent_answers(&request, &json!({"text":"x".repeat(900_000)})),
            None => break,
        }
    }
    let kept: usize = bench.snapshot.clients[TOKEN].replies.values().map(|r| r.line.len()).sum();
    assert!(kept < 10 << 20, "{kept}");
    let got = bench.got(a);
    let refused = got.iter().find(|line| line["error"].is_object()).expect("refused");
    assert_eq!(refused["error"]["data"]["_acpd"]["reason"], "too_many");
}

#[test]
fn an_initialize_that_is_repeated_does_not_forget_what_has_to_be_asked_again() {
    let mut bench = Bench::new();
    let a = bench.client(&token());
    bench.session(a, "s");
    let host = bench.host();
    // The client resumes while the agent cannot be asked for its capabilities, and asks again.
    bench.snapshot.agents.get_mut(AGENT).expect("known").initialize = None;
    let capabilities = bench.capabilities.take();
    bench.reboot();
    bench.feed(Input::Host(host, HostEvent::Gone));
    let resume = json!({"generation":"","sessions":{},"open":["l"],"asked":[]});
    let client = bench.connect(&json!({"client":{"token":TOKEN,"resume":resume}}));
    let error = SpawnError { message: "no such file".to_owned(), hint: None, permanent: true };
    let host = bench.host();
    bench.feed(Input::Host(host, HostEvent::Refused(error)));
    assert!(bench.got(client)[0]["error"].is_object());
    bench.capabilities = capabilities;
    let params = json!({"protocolVersion":1,"_meta":{"_acpd":{"client":{"token":TOKEN}}}});
    bench.say(client, &json!({"id":"init2","method":"initialize","params":params}));
    let got = bench.got(client);
    let own = &got[0]["result"]["agentCapabilities"]["_meta"]["_acpd"];
    assert_eq!(own["again"], json!(["l"]));
}

#[test]
fn a_session_is_followed_for_a_prompt_only_if_the_client_still_waits_for_it() {
    for (open, follows) in [(json!([2]), true), (json!([]), false)] {
        let (mut bench, _prompt) = working();
        bench.feed(Input::Client(FIRST, ClientEvent::Closed));
        let resume = json!({"generation":"","sessions":{},"open":open,"asked":[]});
        let got = back_with(&mut bench, &resume, &json!({"notices":true}));
        let caught_up = got.iter().any(|line| line["method"] == "_acpd/caught_up");
        assert_eq!(caught_up, follows, "{got:?}");
    }
}

#[test]
fn a_session_is_not_deleted_or_closed_under_a_client_that_will_be_back() {
    let (mut bench, prompt) = working();
    bench.feed(Input::Client(FIRST, ClientEvent::Closed));
    let other = bench.plain();
    bench.say(other, &json!({"id":1,"method":"session/delete","params":{"sessionId":"s"}}));
    let got = bench.got(other);
    assert_eq!(got[0]["error"]["data"]["_acpd"]["reason"], "session_blocked");
    bench.say(other, &json!({"id":2,"method":"session/close","params":{"sessionId":"s"}}));
    assert_eq!(words(&bench.got(other)), ["result 2"]);
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    let got = back(&mut bench, 0, &json!([2]));
    assert_eq!(answer_of(&got, &json!(2)).expect("answered")["result"]["stopReason"], "end_turn");
}

/// Comes back while it has asked to leave the session `s`, of which it has nothing.
fn back_leaving(bench: &mut Bench, request: &Value) -> (ClientId, Vec<String>) {
    let leaving = json!({"s":{"seq":0,"requests":[request]}});
    let resume = json!({"generation":"","leaving":leaving,"open":[request]});
    let client = bench.connect(&json!({"client":{"token":TOKEN,"resume":resume}}));
    let got = words(&bench.got(client));
    (client, got)
}

fn follows(bench: &mut Bench, client: ClientId) -> bool {
    bench.chunk("s", "more");
    words(&bench.got(client)).contains(&"agent_message_chunk".to_owned())
}

#[test]
fn who_could_not_leave_a_session_goes_on_following_it() {
    let mut bench = Bench::with_shims();
    let a = bench.client(&token());
    bench.session(a, "s");
    let other = bench.client(&json!({"notices":true}));
    let attach = json!({"id":1,"method":"_acpd/session/attach",
        "params":{"ref":{"session":"s"}}});
    bench.say(other, &attach);
    bench.got(a);
    bench.feed(Input::Client(a, ClientEvent::Closed));

    // The request did not arrive: it is to be sent again, and refused.
    let (back, got) = back_leaving(&mut bench, &json!(5));
    assert!(got.contains(&"_acpd/caught_up".to_owned()), "{got:?}");
    let delete = json!({"id":5,"method":"session/delete","params":{"sessionId":"s"}});
    bench.say(back, &delete);
    let got = words(&bench.got(back));
    assert!(got.contains(&"error 5".to_owned()), "{got:?}");
    assert!(follows(&mut bench, back));

    // The request has arrived, the refusal has not.
    bench.feed(Input::Client(back, ClientEvent::Closed));
    let (back, _) = back_leaving(&mut bench, &json!(5));
    assert!(follows(&mut bench, back));
}

#[test]
fn who_has_left_a_session_does_not_follow_it_again() {
    let mut bench = Bench::with_shims();
    let a = bench.client(&token());
    bench.session(a, "s");
    let other = bench.client(&json!({"notices":true}));
    let attach = json!({"id":1,"method":"_acpd/session/attach",
        "params":{"ref":{"session":"s"}}});
    bench.say(other, &attach);
    bench.say(a, &json!({"id":5,"method":"session/close","params":{"sessionId":"s"}}));
    let got = words(&bench.got(a));
    assert!(got.contains(&"result 5".to_owned()), "{got:?}");
    bench.feed(Input::Client(a, ClientEvent::Closed));
    let (back, got) = back_leaving(&mut bench, &json!(5));
    assert!(got.contains(&"result 5".to_owned()), "{got:?}");
    assert!(!follows(&mut bench, back));
}

#[test]
fn who_only_watches_now_does_not_answer_what_it_was_asked_before() {
    let options = json!([{"optionId":"y","name":"Yes","kind":"allow_once"}]);
    let ask = json!({"sessionId":"s","toolCall":{"toolCallId":"t"},"options":options});
    let yes = json!({"outcome":{"outcome":"selected","optionId":"y"}});
    for (sessions, role) in [(json!({}), "controller"), (json!({"s":0}), "observer")] {
        let mut bench = Bench::with_shims();
        let a = bench.client(&token());
        bench.session(a, "s");
        bench.agent(&json!({"id":7,"method":"session/request_permission","params":ask}));
        let got = bench.got(a);
        let asked = got.iter().find(|line| line["method"] == "session/request_permission");
        let asked = asked.expect("asked")["id"].clone();
        bench.feed(Input::Client(a, ClientEvent::Closed));
        let resume = json!({"generation":"","sessions":sessions,"open":[],"asked":[asked]});
        let got = back_with(&mut bench, &resume, &json!({"role":role}));
        assert!(words(&got).contains(&"$/cancel_request".to_owned()), "{got:?}");
        bench.say(ClientId(2), &json!({"id":asked,"result":yes}));
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
    let mut bench = Bench::with_shims();
    let maker = bench.plain();
    bench.session(maker, "s");
    let a = bench.client(&token());
    bench.prompt(a, &json!(2), "s", "go");
    let prompt = bench.heard_one("session/prompt");
    // The connection is lost before anything came through it.
    bench.feed(Input::Client(a, ClientEvent::Closed));
    bench.chunk("s", "one");
    let resume = json!({"generation":"","sessions":{},"open":[2],"asked":[]});
    let got = back_with(&mut bench, &resume, &json!({}));
    assert!(words(&got).contains(&"agent_message_chunk".to_owned()), "{got:?}");
    bench.feed(Input::Client(ClientId(3), ClientEvent::Closed));
    bench.chunk("s", "two");
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
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
        bench.say(a, &json!({"id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}));
        let request = bench.heard_one("session/new");
        bench.feed(Input::Client(a, ClientEvent::Closed));
        bench.agent_answers(&request, &json!({"sessionId":"s","configOptions":options}));
        let client = ClientId(2);
        bench.feed(Input::Client(client, ClientEvent::Opened(ClientOrigin::User)));
        let resume = json!({"generation":"","sessions":{},"open":[1],"asked":[]});
        let meta = json!({"_acpd":{"client":{"token":TOKEN,"resume":resume}}});
        let params = json!({"protocolVersion":1,"clientCapabilities":capabilities,"_meta":meta});
        bench.say(client, &json!({"id":"init","method":"initialize","params":params}));
        let answer = answer_of(&bench.got(client), &json!(1)).expect("kept");
        let got = answer["result"]["configOptions"].as_array().map_or(0, Vec::len);
        assert_eq!(got, shown);
    }
}

#[test]
fn a_daemon_that_is_told_twice_to_stop_says_goodbye_at_once() {
    let (mut bench, _) = working();
    bench.say(FIRST, &json!({"id":9,"method":"_acpd/daemon/stop"}));
    assert!(!bench.exited);
    bench.say(FIRST, &json!({"id":10,"method":"_acpd/daemon/stop"}));
    assert!(bench.exited);
    assert!(words(&bench.got(FIRST)).contains(&"_acpd/daemon/stopped".to_owned()));
}
