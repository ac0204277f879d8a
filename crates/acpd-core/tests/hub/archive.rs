//! `session/status` and the archive.

use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::{Bench, methods, words};

fn ask(bench: &mut Bench, client: ClientId, method: &str, params: &Value) -> Value {
    bench.ask(client, "ask", method, params);
    bench.answer(client, "ask")
}

/// Something about the session, from a client that has nothing to do with it.
fn about(bench: &mut Bench, method: &str) -> Value {
    bench.command(method, &json!({"sessionId":"s"}))
}

fn listed(bench: &mut Bench, params: &Value) -> Vec<(String, bool)> {
    let answer = bench.command("session/list", params);
    let sessions = answer["result"]["sessions"].as_array().expect("a list").clone();
    let entry = |entry: &Value| {
        (entry["sessionId"].as_str().unwrap().to_owned(), entry["archived"].as_bool().unwrap())
    };
    sessions.iter().map(entry).collect()
}

#[test]
fn a_status_changes_nothing() {
    let (mut bench, a) = Bench::used();
    let before = (bench.snapshot.clone(), bench.journal.clone());
    let b = bench.noticed();
    let status = ask(&mut bench, b, "session/status", &json!({"sessionId":"s"}));
    assert_eq!(status["result"], json!({"status":"open"}));
    assert_eq!(before, (bench.snapshot.clone(), bench.journal.clone()));
    bench.chunk("s", "x");
    assert_eq!(bench.got(b), Vec::<Value>::new(), "it does not take part");
    assert_eq!(bench.show("s")["clients"], 1);

    ask(&mut bench, a, "_acpd/session/close", &json!({"session":"s"}));
    bench.pass(60_000);
    let (spawned, journal) = (bench.spawned.len(), bench.journal.clone());
    let status = ask(&mut bench, b, "session/status", &json!({"sessionId":"s"}));
    assert_eq!(status["result"], json!({"status":"saved"}));
    bench.pass(60_000);
    assert_eq!(bench.spawned.len(), spawned, "nobody is woken");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    assert_eq!(journal, bench.journal);
    for method in ["session/status", "session/archive", "session/unarchive"] {
        let unknown = ask(&mut bench, b, method, &json!({"sessionId":"nobody"}));
        assert_eq!(unknown["error"]["code"], -32002, "{method}");
        assert_eq!(unknown["error"]["data"]["sessionId"], "nobody", "{method}");
    }
}

#[test]
fn who_only_watches_may_ask_for_the_status_and_nothing_else() {
    let (mut bench, _) = Bench::begun();
    let b = bench.plain();
    bench.observe(b, "s");
    let params = json!({"sessionId":"s","cwd":"/w","title":"Mine"});
    assert_eq!(ask(&mut bench, b, "session/status", &params)["result"]["status"], "open");
    for method in ["session/archive", "session/set_title"] {
        assert!(ask(&mut bench, b, method, &params)["error"].is_object(), "{method}");
    }
}

#[test]
fn the_archive_closes_a_session_and_keeps_it_out_of_lists() {
    let session = json!({"resume":{},"close":{},"archive":{}});
    let bench = Bench::new().with_session_capabilities(session);
    let (mut bench, a) = bench.with_client_of(&json!({"notices":true}));
    bench.used_session(a, "s");
    let b = bench.noticed();
    ask(&mut bench, b, "session/resume", &json!({"sessionId":"s","cwd":"/w"}));
    bench.heard();
    let archived = ask(&mut bench, a, "session/archive", &json!({"sessionId":"s"}));
    assert_eq!(archived["result"], json!({}));
    assert_eq!(methods(&bench.heard()), ["session/close"], "the archive is not the agent's");
    let told = bench.got(b);
    let last = told.last().expect("told");
    assert_eq!(last["method"], "_acpd/session_state");
    let (state, archived) = (&last["params"]["state"], &last["params"]["archived"]);
    assert_eq!((state, archived), (&json!("closed"), &json!(true)));
    assert_eq!(about(&mut bench, "session/status")["result"]["status"], "saved");

    for (filter, expected) in [("exclude", 0), ("include", 1), ("only", 1)] {
        assert_eq!(listed(&mut bench, &json!({"archived":filter})).len(), expected, "{filter}");
    }
    assert_eq!(listed(&mut bench, &json!({})), []);
    assert_eq!(bench.command("session/list", &json!({"archived":"all"}))["error"]["code"], -32602);
    for method in ["_acpd/session/list", "_acpd/status"] {
        assert_eq!(bench.command(method, &json!({}))["result"]["sessions"], json!([]), "{method}");
    }
    let all = bench.command("_acpd/session/list", &json!({"archived":"include"}));
    assert_eq!(all["result"]["sessions"][0]["archived"], true);

    // Both succeed when there is nothing to do.
    for method in ["session/archive", "session/unarchive", "session/unarchive"] {
        assert_eq!(about(&mut bench, method)["result"], json!({}), "{method}");
    }
    assert_eq!(listed(&mut bench, &json!({})), [("s".to_owned(), false)]);
    assert_eq!(bench.show("s")["state"], "closed", "it is not opened");
    bench.pass(60_000);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_turn_ends_with_the_archive_which_outlives_the_daemon() {
    let mut bench = Bench::able(&json!({"sessionCapabilities":{"resume":{},"close":{}}}));
    let (a, _) = bench.running("s", "go");
    about(&mut bench, "session/archive");
    assert!(words(&bench.got(a)).iter().any(|word| word.ends_with(" 1")), "its prompt is answered");
    assert_eq!(bench.show("s")["archived"], true);
    bench.reboot();
    assert_eq!(listed(&mut bench, &json!({"archived":"only"})), [("s".to_owned(), true)]);
    bench.pass(60_000);
    assert_eq!(bench.state("s"), "closed");
}

#[test]
fn a_prompt_takes_a_session_out_of_the_archive_and_reading_does_not() {
    let (mut bench, _) = Bench::used();
    bench.agent_dies();
    about(&mut bench, "session/archive");
    let spawned = bench.spawned.len();
    let b = bench.plain();
    for method in ["session/load", "session/resume"] {
        let opened = ask(&mut bench, b, method, &json!({"sessionId":"s","cwd":"/w"}));
        assert!(opened["result"].is_object(), "{method}");
    }
    bench.pass(60_000);
    assert_eq!(bench.spawned.len(), spawned, "nobody is woken");
    assert_eq!(bench.show("s")["archived"], true);

    bench.prompt(b, &json!(1), "s", "more");
    bench.pass(10_000);
    assert_eq!(bench.show("s").get("archived"), None);
    assert_eq!(listed(&mut bench, &json!({})), [("s".to_owned(), false)]);
    assert_eq!(bench.spawned.len(), spawned + 1);
}

#[test]
fn a_session_of_the_agent_alone_is_put_away_by_an_agent_that_can() {
    let session = json!({"list":{},"resume":{},"archive":{},"status":{},"title":{}});
    let (mut bench, a) = Bench::new().with_session_capabilities(session).with_begun();
    let more = |method: &str| match method {
        "session/set_title" => json!({"sessionId":"x","title":"X"}),
        _ => json!({"sessionId":"x"}),
    };
    for method in ["session/archive", "session/unarchive", "session/status", "session/set_title"] {
        let asked = bench.relay(a, 1, method, &more(method));
        assert_eq!(asked["params"], more(method));
        bench.agent_answers(&asked, &json!({}));
        assert_eq!(words(&bench.got(a)), ["result 1"]);
    }
    // The agent's archive is listed with ours.
    let asked = bench.relay(a, 2, "session/list", &json!({"archived":"only"}));
    assert_eq!(asked["params"], json!({"archived":"only"}));
    let others = json!([{"sessionId":"x","cwd":"/w","archived":true},{"sessionId":"y","cwd":"/w"}]);
    bench.agent_answers(&asked, &json!({"sessions":others}));
    let entry = json!({"sessionId":"x","cwd":"/w","archived":true});
    assert_eq!(bench.got(a)[0]["result"]["sessions"], json!([entry]));

    // None of it is worth a start.
    bench.agent_dies_for(0);
    let spawned = bench.spawned.len();
    assert_eq!(bench.call(a, "session/status", &json!({"sessionId":"x"}))["error"]["code"], -32002);
    assert_eq!(bench.spawned.len(), spawned);
}

#[test]
fn an_agent_without_an_archive_is_not_asked_for_it() {
    let session = json!({"list":{},"resume":{}});
    let (mut bench, a) = Bench::new().with_session_capabilities(session).with_begun();
    bench.ask(a, 1, "session/list", &json!({"archived":"only"}));
    assert_eq!(bench.got(a)[0]["result"]["sessions"], json!([]));
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let asked = bench.relay(a, 2, "session/list", &json!({"archived":"include"}));
    assert_eq!(asked["params"], json!({}), "it may be strict");
    bench.agent_answers(&asked, &json!({"sessions":[{"sessionId":"x","cwd":"/w"}]}));
    let listed = bench.got(a)[0]["result"]["sessions"].take();
    let ids: Vec<_> = listed.as_array().unwrap().iter().map(|entry| &entry["sessionId"]).collect();
    assert_eq!(ids, ["s", "x"]);
}

#[test]
fn who_moves_or_reseeds_what_is_put_away_does_not_bring_it_back() {
    let moved = ("_acpd/session/move", json!({"ref":{"session":"s"},"cwd":"/v"}));
    let reseeded = ("_acpd/session/reseed", json!({"ref":{"session":"s"},"discard":true}));
    for (method, params) in [moved, reseeded] {
        let mut bench = Bench::able(&json!({"sessionCapabilities":{"resume":{},"close":{}}}));
        let a = bench.plain();
        bench.used_session(a, "s");
        let b = bench.plain();
        ask(&mut bench, b, "_acpd/session/archive", &json!({"session":"s"}));
        bench.heard();
        let info = ask(&mut bench, b, method, &params)["result"].clone();
        assert_eq!((&info["state"], &info["archived"]), (&json!("closed"), &json!(true)));
        bench.pass(60_000);
        assert_eq!(bench.heard(), Vec::<Value>::new(), "{method} wakes nobody");
        // The session continues with the next prompt, as it was left.
        bench.prompt(a, &json!(2), "s", "more");
        let request = bench.heard().remove(0);
        let (next, cwd) = match method {
            "_acpd/session/move" => ("session/resume", "/v"),
            _ => ("session/new", "/w"),
        };
        assert_eq!((&request["method"], &request["params"]["cwd"]), (&json!(next), &json!(cwd)));
    }
}
