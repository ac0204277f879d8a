//! Clients that answered a question or cut a turn short, as others are told.

use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::questions::{asks, pending, run};

/// A client of the session that shows notices, and says who it is.
fn named(bench: &mut Bench, name: &str, place: Option<&str>) -> ClientId {
    let mut own = json!({"notices":true});
    if let Some(place) = place {
        own["place"] = json!(place);
    }
    let info = json!({"name":name,"title":name.to_uppercase(),"version":"1"});
    let elicitation = json!({"elicitation":{"form":{}}});
    let params = json!({"clientInfo":info,"clientCapabilities":elicitation,"_meta":{"_acpd":own}});
    let client = bench.introduce(&params);
    bench.attach(client, "s");
    client
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
    let (mut bench, ..) = Bench::new().in_turn("go");
    let places = [Some("pts/3"), Some("pts/3"), Some("pts/4"), None, None];
    let seen = places.map(|place| {
        named(&mut bench, "acpctl", place);
        bench.show("s")["clients"].clone()
    });
    assert_eq!(seen, [2, 2, 3, 4, 5]);
    named(&mut bench, "zed", Some("pts/3"));
    assert_eq!(bench.show("s")["clients"], 6);
}

#[test]
fn who_was_asked_as_well_is_told_who_answered_before_the_question_is_taken_back() {
    let (mut bench, ..) = Bench::new().in_turn("go");
    let (zed, shell) = (named(&mut bench, "zed", None), named(&mut bench, "acpctl", Some("pts/3")));
    asks(&mut bench, 7, &run("make"));
    let question = bench.got(zed).pop().expect("asked");
    let id = question["params"]["_meta"]["_acpd"]["id"].clone();
    assert_eq!(pending(&mut bench)[0]["id"], id);
    bench.got(shell);
    bench.select(zed, &question, "y");
    let got = bench.expect(shell, ["_acpd/answered", "$/cancel_request", "_acpd/session_state"]);
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
    let (mut bench, ..) = Bench::new().in_turn("go");
    let (zed, other) = (named(&mut bench, "zed", Some("phone")), named(&mut bench, "b", None));
    let schema = json!({"type":"object","properties":{"name":{"type":"string"}}});
    let params = json!({"sessionId":"s","mode":"form","message":"Which?","requestedSchema":schema});
    bench.agent_asks(7, "elicitation/create", &params);
    let question = bench.got(zed).pop().expect("asked");
    let id = question["params"]["_meta"]["_acpd"]["id"].clone();
    assert!(id.is_string());
    bench.got(other);
    bench.reply(zed, &question, &json!({"action":"accept","content":{"name":"secret"}}));
    let answered = told(&bench.got(other), "_acpd/answered");
    assert_eq!(answered["id"], id);
    assert_eq!(answered["title"], "Which?");
    assert_eq!(answered["answer"], json!({"kind":"accept"}));
    assert_eq!(answered["by"], json!({"name":"zed","title":"ZED","place":"phone"}));
    assert!(!answered.to_string().contains("secret"));
}

#[test]
fn a_connection_without_a_name_says_who_it_is_with_its_answer_and_names_are_bounded() {
    let (mut bench, ..) = Bench::new().in_turn("go");
    let zed = named(&mut bench, "zed", None);
    for (by, expected) in [
        (Some(json!({"name":"acpctl","place":"pts/3"})), json!({"name":"acpctl","place":"pts/3"})),
        (Some(json!({"name":"x".repeat(500)})), json!({"name":format!("{}…", "x".repeat(200))})),
        (None, json!({"name":""})),
    ] {
        asks(&mut bench, 7, &run("make"));
        bench.got(zed);
        let open = pending(&mut bench)[0]["id"].clone();
        let mut params = json!({"id":open,"answer":{"kind":"deny"}});
        if let Some(by) = by {
            params["by"] = by;
        }
        let other = bench.open();
        bench.ask(other, 1, "_acpd/interaction/answer", &params);
        bench.leave(other);
        assert_eq!(told(&bench.got(zed), "_acpd/answered")["by"], expected);
    }
}

#[test]
fn the_end_of_a_turn_says_who_or_what_cut_it_short() {
    let (zed, shell) =
        (json!({"name":"zed","title":"ZED","place":"pts/3"}), json!({"name":"acpctl"}));
    let cancelled = |by: &Value| json!({"why":"cancelled","by":by});
    let (stopped, closed) = ("agent `gem`: stopped by a person", "the session was closed");
    let cancel = "_acpd/session/cancel";
    for (method, params, expected) in [
        ("its agent", json!({}), None),
        ("session/cancel", json!({"sessionId":"s"}), Some(cancelled(&zed))),
        (cancel, json!({"session":"s","by":shell}), Some(cancelled(&shell))),
        (cancel, json!({"session":"s","turnOnly":true}), Some(json!({"why":"cancelled"}))),
        ("_acpd/agent/stop", json!({"agent":"gem"}), Some(json!({"why":stopped}))),
        ("_acpd/session/close", json!({"session":"s"}), Some(json!({"why":closed}))),
    ] {
        let (mut bench, _, prompt) = Bench::new().in_turn("go");
        let zed = named(&mut bench, "zed", Some("pts/3"));
        match method {
            "its agent" => {}
            "session/cancel" => bench.cancel(zed, "s"),
            method => {
                let other = bench.open();
                bench.ask(other, 1, method, &params);
            }
        }
        let stop = if expected.is_some() { "cancelled" } else { "end_turn" };
        bench.agent_answers(&prompt, &json!({"stopReason":stop}));
        let ended = told(&bench.got(zed), "_acpd/turn_ended");
        assert_eq!(ended.get("cutShort"), expected.as_ref(), "{method} {params}");
    }
}
