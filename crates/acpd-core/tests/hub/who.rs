//! Clients that answered a question or cut a turn short, as others are told.

use acpd_core::ids::ClientId;
use acpd_core::{ClientEvent, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::questions::{asks, call, pending, run};

/// A client that shows notices, and says who it is.
fn named(bench: &mut Bench, name: &str, place: Option<&str>) -> ClientId {
    let client = bench.open();
    let mut own = json!({"notices":true});
    if let Some(place) = place {
        own["place"] = json!(place);
    }
    let info = json!({"name":name,"title":name.to_uppercase(),"version":"1"});
    let elicitation = json!({"elicitation":{"form":{}}});
    let params = json!({"protocolVersion":1,"clientInfo":info,"clientCapabilities":elicitation,
        "_meta":{"_acpd":own}});
    bench.say(client, &json!({"id":"init","method":"initialize","params":params}));
    bench.got(client);
    client
}

fn attach(bench: &mut Bench, client: ClientId) {
    let params = json!({"ref":{"session":"s"}});
    bench.say(client, &json!({"id":"at","method":"_acpd/session/attach","params":params}));
}

/// The params of the only line of this method.
#[track_caller]
fn told(lines: &[Value], method: &str) -> Value {
    let mut of_method = lines.iter().filter(|line| line["method"] == method);
    let line = of_method.next().unwrap_or_else(|| panic!("no `{method}`: {lines:?}"));
    assert_eq!(of_method.count(), 0, "{lines:?}");
    line["params"].clone()
}

#[test]
fn connections_of_a_program_at_one_place_are_one_client() {
    let mut bench = Bench::new();
    bench.running("s", "go");
    let places = [Some("pts/3"), Some("pts/3"), Some("pts/4"), None, None];
    let seen = places.map(|place| {
        let client = named(&mut bench, "acpctl", place);
        attach(&mut bench, client);
        let params = json!({"session":"s"});
        call(&mut bench, "_acpd/session/show", &params)["result"]["clients"].clone()
    });
    assert_eq!(seen, [2, 2, 3, 4, 5]);
    let other = named(&mut bench, "zed", Some("pts/3"));
    attach(&mut bench, other);
    let params = json!({"session":"s"});
    assert_eq!(call(&mut bench, "_acpd/session/show", &params)["result"]["clients"], 6);
}

#[test]
fn who_was_asked_as_well_is_told_who_answered_before_the_question_is_taken_back() {
    let mut bench = Bench::new();
    let (_, _) = bench.running("s", "go");
    let (zed, shell) = (named(&mut bench, "zed", None), named(&mut bench, "acpctl", Some("pts/3")));
    attach(&mut bench, zed);
    attach(&mut bench, shell);
    asks(&mut bench, 7, &run("make"));
    let question = bench.got(zed).pop().expect("asked");
    let id = question["params"]["_meta"]["_acpd"]["id"].clone();
    assert_eq!(pending(&mut bench)[0]["id"], id);
    bench.got(shell);
    let outcome = json!({"outcome":{"outcome":"selected","optionId":"y"}});
    bench.say(zed, &json!({"id":question["id"],"result":outcome}));
    let got = bench.got(shell);
    assert_eq!(words(&got), ["_acpd/answered", "$/cancel_request", "_acpd/session_state"]);
    let at = bench.now;
    let expected = json!({"sessionId":"s","id":id,"toolCallId":"t","title":"make",
        "subject":"run `make`",
        "answer":{"kind":"option","option":{"optionId":"y","name":"Yes","kind":"allow_once"}},
        "by":{"name":"zed","title":"ZED"},"at":at});
    assert_eq!(got[0]["params"], expected);
    // The journal names the answering client, too.
    assert_eq!(told(&bench.got(zed), "_acpd/answered"), expected);
    assert!(bench.journal_words().contains(&"_acpd/answered".to_owned()));
}

#[test]
fn a_form_is_told_as_answered_without_what_was_filled_in() {
    let mut bench = Bench::new();
    let (_, _) = bench.running("s", "go");
    let (zed, other) = (named(&mut bench, "zed", Some("phone")), named(&mut bench, "b", None));
    attach(&mut bench, zed);
    attach(&mut bench, other);
    let schema = json!({"type":"object","properties":{"name":{"type":"string"}}});
    let params = json!({"sessionId":"s","mode":"form","message":"Which?","requestedSchema":schema});
    bench.agent(&json!({"id":7,"method":"elicitation/create","params":params}));
    let question = bench.got(zed).pop().expect("asked");
    let id = question["params"]["_meta"]["_acpd"]["id"].clone();
    assert!(id.is_string());
    bench.got(other);
    let answer = json!({"action":"accept","content":{"name":"secret"}});
    bench.say(zed, &json!({"id":question["id"],"result":answer}));
    let answered = told(&bench.got(other), "_acpd/answered");
    assert_eq!(answered["id"], id);
    assert_eq!(answered["title"], "Which?");
    assert_eq!(answered["answer"], json!({"kind":"accept"}));
    assert_eq!(answered["by"], json!({"name":"zed","title":"ZED","place":"phone"}));
    assert!(!answered.to_string().contains("secret"));
}

#[test]
fn a_connection_without_a_name_says_who_it_is_with_its_answer_and_names_are_bounded() {
    let mut bench = Bench::new();
    let (_, _) = bench.running("s", "go");
    let zed = named(&mut bench, "zed", None);
    attach(&mut bench, zed);
    for (by, expected) in [
        (Some(json!({"name":"acpctl","place":"pts/3"})), json!({"name":"acpctl","place":"pts/3"})),
        (Some(json!({"name":"x".repeat(500)})), json!({"name":format!("{}…", "x".repeat(200))})),
        (None, json!({"name":""})),
    ] {
        asks(&mut bench, 7, &run("make"));
        bench.got(zed);
        let open = pending(&mut bench)[0]["id"].clone();
        let other = bench.open();
        let mut params = json!({"id":open,"answer":{"kind":"deny"}});
        if let Some(by) = by {
            params["by"] = by;
        }
        let line = json!({"id":1,"method":"_acpd/interaction/answer","params":params});
        bench.say(other, &line);
        bench.feed(Input::Client(other, ClientEvent::Closed));
        assert_eq!(told(&bench.got(zed), "_acpd/answered")["by"], expected);
    }
}

#[test]
fn a_question_that_nobody_answered_is_only_taken_back() {
    let mut bench = Bench::new();
    let (_, prompt) = bench.running("s", "go");
    let zed = named(&mut bench, "zed", None);
    attach(&mut bench, zed);
    asks(&mut bench, 7, &run("make"));
    bench.got(zed);
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    let got = words(&bench.got(zed));
    assert!(got.contains(&"$/cancel_request".to_owned()), "{got:?}");
    assert!(!got.contains(&"_acpd/answered".to_owned()), "{got:?}");
}

#[test]
fn the_end_of_a_turn_says_who_or_what_cut_it_short() {
    type Act = fn(&mut Bench, ClientId);
    let ask = |bench: &mut Bench, method: &str, params: &Value| {
        let other = bench.open();
        bench.say(other, &json!({"id":1,"method":method,"params":params}));
    };
    let cancels: Act = |bench, zed| {
        bench.say(zed, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    };
    let by_zed = json!({"why":"cancelled","by":{"name":"zed","title":"ZED","place":"pts/3"}});
    let others = [
        (
            "_acpd/session/cancel",
            json!({"session":"s","by":{"name":"acpctl"}}),
            json!({"why":"cancelled","by":{"name":"acpctl"}}),
        ),
        (
            "_acpd/session/cancel",
            json!({"session":"s","turnOnly":true}),
            json!({"why":"cancelled"}),
        ),
        (
            "_acpd/agent/stop",
            json!({"agent":"gem"}),
            json!({"why":"agent `gem`: stopped by a person"}),
        ),
        ("_acpd/session/close", json!({"session":"s"}), json!({"why":"the session was closed"})),
    ];
    let all = [None].into_iter().chain(others.iter().map(Some));
    for other in all {
        let mut bench = Bench::new();
        let (_, prompt) = bench.running("s", "go");
        let zed = named(&mut bench, "zed", Some("pts/3"));
        attach(&mut bench, zed);
        bench.got(zed);
        let expected = match other {
            None => {
                cancels(&mut bench, zed);
                &by_zed
            }
            Some((method, params, expected)) => {
                ask(&mut bench, method, params);
                expected
            }
        };
        bench.agent_answers(&prompt, &json!({"stopReason":"cancelled"}));
        assert_eq!(&told(&bench.got(zed), "_acpd/turn_ended")["cutShort"], expected, "{other:?}");
    }
}

#[test]
fn a_turn_that_its_agent_ended_was_not_cut_short() {
    let mut bench = Bench::new();
    let (_, prompt) = bench.running("s", "go");
    let zed = named(&mut bench, "zed", None);
    attach(&mut bench, zed);
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    assert_eq!(told(&bench.got(zed), "_acpd/turn_ended").get("cutShort"), None);
}
