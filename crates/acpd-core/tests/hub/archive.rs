//! `session/status` and the archive.

use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::{Bench, methods, words};

fn ask(bench: &mut Bench, client: ClientId, method: &str, params: &Value) -> Value {
    bench.say(client, &json!({"id":"ask","method":method,"params":params}));
    let got = bench.got(client);
    got.into_iter().find(|line| line["id"] == "ask").expect("an answer")
}

/// Something about the session, from a client that has nothing to do with it.
fn about(bench: &mut Bench, method: &str) -> Value {
    let client = bench.plain();
    ask(bench, client, method, &json!({"sessionId":"s"}))
}

fn listed(bench: &mut Bench, params: &Value) -> Vec<(String, bool)> {
    let client = bench.plain();
    let answer = ask(bench, client, "session/list", params);
    let sessions = answer["result"]["sessions"].as_array().expect("a list").clone();
    let entry = |entry: &Value| {
        (entry["sessionId"].as_str().unwrap().to_owned(), entry["archived"].as_bool().unwrap())
    };
    sessions.iter().map(entry).collect()
}

fn shown(bench: &mut Bench) -> Value {
    let client = bench.plain();
    ask(bench, client, "_acpd/session/show", &json!({"session":"s"}))["result"].clone()
}

#[test]
fn what_acpd_offers_is_said_whatever_the_agent_can() {
    let mut bench = Bench::new();
    let a = bench.connect(&json!({}));
    let got = bench.got(a);
    let can = &got[0]["result"]["agentCapabilities"]["sessionCapabilities"];
    for name in ["list", "archive", "status", "title"] {
        assert_eq!(can[name], json!({}), "{name}");
    }
}

#[test]
fn a_status_changes_nothing() {
    let (mut bench, a) = Bench::used();
    let before = (bench.snapshot.clone(), bench.journal.clone());
    let b = bench.client(&json!({"notices":true}));
    let status = ask(&mut bench, b, "session/status", &json!({"sessionId":"s"}));
    assert_eq!(status["result"], json!({"status":"open"}));
    assert_eq!(before, (bench.snapshot.clone(), bench.journal.clone()));
    bench.chunk("s", "x");
    assert_eq!(bench.got(b), Vec::<Value>::new(), "it does not take part");
    assert_eq!(shown(&mut bench)["clients"], 1);

    ask(&mut bench, a, "_acpd/session/close", &json!({"session":"s"}));
    bench.pass(60_000);
    let (spawned, journal) = (bench.spawned.len(), bench.journal.clone());
    let status = ask(&mut bench, b, "session/status", &json!({"sessionId":"s"}));
    assert_eq!(status["result"], json!({"status":"saved"}));
    bench.pass(60_000);
    assert_eq!(bench.spawned.len(), spawned, "nobody is woken");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    assert_eq!(journal, bench.journal);
    let unknown = ask(&mut bench, b, "session/status", &json!({"sessionId":"nobody"}));
    assert_eq!(unknown["error"]["code"], -32002);
    assert_eq!(unknown["error"]["data"]["sessionId"], "nobody");
}

#[test]
fn who_only_watches_may_ask_for_the_status() {
    let (mut bench, _) = Bench::begun();
    let b = bench.plain();
    let attach = json!({"ref":{"session":"s"},"role":"observer"});
    ask(&mut bench, b, "_acpd/session/attach", &attach);
    let params = json!({"sessionId":"s"});
    assert_eq!(ask(&mut bench, b, "session/status", &params)["result"]["status"], "open");
    assert!(ask(&mut bench, b, "session/archive", &params)["error"].is_object());
}

#[test]
fn the_archive_closes_a_session_and_keeps_it_out_of_lists() {
    let mut bench = Bench::new();
    let session = json!({"resume":{},"close":{},"archive":{}});
    bench.capabilities = Some(json!({"loadSession":true,"sessionCapabilities":session}));
    let a = bench.client(&json!({"notices":true}));
    bench.used_session(a, "s");
    let b = bench.client(&json!({"notices":true}));
    ask(&mut bench, b, "session/resume", &json!({"sessionId":"s","cwd":"/w"}));
    bench.heard();
    assert_eq!(
        ask(&mut bench, a, "session/archive", &json!({"sessionId":"s"}))["result"],
        json!({})
    );
    assert_eq!(methods(&bench.heard()), ["session/close"], "the archive is not the agent's");
    let told = bench.got(b);
    let last = told.last().expect("told");
    assert_eq!(last["method"], "_acpd/session_state");
    assert_eq!(
        (&last["params"]["state"], &last["params"]["archived"]),
        (&json!("closed"), &json!(true))
    );
    assert_eq!(about(&mut bench, "session/status")["result"]["status"], "saved");

    for (filter, expected) in [("exclude", 0), ("include", 1), ("only", 1)] {
        assert_eq!(listed(&mut bench, &json!({"archived":filter})).len(), expected, "{filter}");
    }
    assert_eq!(listed(&mut bench, &json!({})), []);
    let c = bench.plain();
    assert_eq!(
        ask(&mut bench, c, "session/list", &json!({"archived":"all"}))["error"]["code"],
        -32602
    );
    assert_eq!(
        ask(&mut bench, c, "_acpd/session/list", &json!({}))["result"]["sessions"],
        json!([])
    );
    let all = ask(&mut bench, c, "_acpd/session/list", &json!({"archived":"include"}));
    assert_eq!(all["result"]["sessions"][0]["archived"], true);
    assert_eq!(ask(&mut bench, c, "_acpd/status", &json!({}))["result"]["sessions"], json!([]));

    // Both succeed when there is nothing to do.
    assert_eq!(about(&mut bench, "session/archive")["result"], json!({}));
    assert_eq!(about(&mut bench, "session/unarchive")["result"], json!({}));
    assert_eq!(about(&mut bench, "session/unarchive")["result"], json!({}));
    assert_eq!(listed(&mut bench, &json!({})), [("s".to_owned(), false)]);
    assert_eq!(shown(&mut bench)["state"], "closed", "it is not opened");
    bench.pass(60_000);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn what_is_no_session_is_not_put_away() {
    let mut bench = Bench::new();
    let c = bench.plain();
    for method in ["session/archive", "session/unarchive"] {
        let unknown = ask(&mut bench, c, method, &json!({"sessionId":"nobody"}));
        assert_eq!(unknown["error"]["code"], -32002, "{method}");
    }
}

#[test]
fn a_turn_ends_with_the_archive() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"sessionCapabilities":{"resume":{},"close":{}}}));
    let (a, _) = bench.running("s", "go");
    about(&mut bench, "session/archive");
    assert!(words(&bench.got(a)).iter().any(|word| word.ends_with(" 1")), "its prompt is answered");
    assert_eq!(shown(&mut bench)["archived"], true);
}

#[test]
fn the_archive_outlives_the_daemon() {
    let (mut bench, _) = Bench::used();
    about(&mut bench, "session/archive");
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
    let load =
        ask(&mut bench, b, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    assert!(load["result"].is_object());
    ask(&mut bench, b, "session/resume", &json!({"sessionId":"s","cwd":"/w"}));
    bench.pass(60_000);
    assert_eq!(bench.spawned.len(), spawned, "nobody is woken");
    assert_eq!(shown(&mut bench)["archived"], true);

    bench.prompt(b, &json!(1), "s", "more");
    bench.pass(10_000);
    assert_eq!(shown(&mut bench).get("archived"), None);
    assert_eq!(listed(&mut bench, &json!({})), [("s".to_owned(), false)]);
    assert_eq!(bench.spawned.len(), spawned + 1);
}

#[test]
fn people_put_sessions_away_by_name() {
    let (mut bench, a) = Bench::used();
    ask(&mut bench, a, "_acpd/session/rename", &json!({"ref":{"session":"s"},"name":"fix"}));
    let away = ask(&mut bench, a, "_acpd/session/archive", &json!({"session":"fix"}));
    assert_eq!(
        (&away["result"]["archived"], &away["result"]["state"]),
        (&json!(true), &json!("closed"))
    );
    let back = ask(&mut bench, a, "_acpd/session/unarchive", &json!({"session":"fix"}));
    assert_eq!(back["result"].get("archived"), None);
}

#[test]
fn a_session_of_the_agent_alone_is_put_away_by_an_agent_that_can() {
    let mut bench = Bench::new();
    let session = json!({"list":{},"resume":{},"archive":{},"status":{},"title":{}});
    bench.capabilities = Some(json!({"loadSession":true,"sessionCapabilities":session}));
    let a = bench.plain();
    bench.session(a, "s");
    let more = |method: &str| match method {
        "session/set_title" => json!({"sessionId":"x","title":"X"}),
        _ => json!({"sessionId":"x"}),
    };
    for method in ["session/archive", "session/unarchive", "session/status", "session/set_title"] {
        bench.say(a, &json!({"id":1,"method":method,"params":more(method)}));
        let asked = bench.heard_one(method);
        assert_eq!(asked["params"], more(method));
        bench.agent_answers(&asked, &json!({}));
        assert_eq!(words(&bench.got(a)), ["result 1"]);
    }
    // The agent's archive is listed with ours.
    bench.say(a, &json!({"id":2,"method":"session/list","params":{"archived":"only"}}));
    let asked = bench.heard_one("session/list");
    assert_eq!(asked["params"], json!({"archived":"only"}));
    let others = json!([{"sessionId":"x","cwd":"/w","archived":true},{"sessionId":"y","cwd":"/w"}]);
    bench.agent_answers(&asked, &json!({"sessions":others}));
    let entry = json!({"sessionId":"x","cwd":"/w","archived":true});
    assert_eq!(bench.got(a)[0]["result"]["sessions"], json!([entry]));

    // None of it is worth a start.
    bench.agent_dies();
    bench.pass(0);
    let spawned = bench.spawned.len();
    bench.say(a, &json!({"id":3,"method":"session/status","params":{"sessionId":"x"}}));
    assert_eq!(bench.got(a)[0]["error"]["code"], -32002);
    assert_eq!(bench.spawned.len(), spawned);
}

#[test]
fn an_agent_without_an_archive_is_not_asked_for_it() {
    let mut bench = Bench::new();
    let session = json!({"list":{},"resume":{}});
    bench.capabilities = Some(json!({"loadSession":true,"sessionCapabilities":session}));
    let a = bench.plain();
    bench.session(a, "s");
    bench.say(a, &json!({"id":1,"method":"session/list","params":{"archived":"only"}}));
    assert_eq!(bench.got(a)[0]["result"]["sessions"], json!([]));
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.say(a, &json!({"id":2,"method":"session/list","params":{"archived":"include"}}));
    let asked = bench.heard_one("session/list");
    assert_eq!(asked["params"], json!({}), "it may be strict");
    bench.agent_answers(&asked, &json!({"sessions":[{"sessionId":"x","cwd":"/w"}]}));
    let ids: Vec<_> = bench.got(a)[0]["result"]["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["sessionId"].clone())
        .collect();
    assert_eq!(ids, ["s", "x"]);
}

#[test]
fn who_moves_or_reseeds_what_is_put_away_does_not_bring_it_back() {
    let moved = ("_acpd/session/move", json!({"ref":{"session":"s"},"cwd":"/v"}));
    let reseeded = ("_acpd/session/reseed", json!({"ref":{"session":"s"},"discard":true}));
    for (method, params) in [moved, reseeded] {
        let mut bench = Bench::new();
        bench.capabilities = Some(json!({"sessionCapabilities":{"resume":{},"close":{}}}));
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
