//! Logins: what tells their state, what waits for them, and what goes on after them.

use acpd_core::Input;
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench};

fn reason(line: &Value) -> &str {
    line["error"]["data"]["_acpd"]["reason"].as_str().unwrap_or("no reason")
}

fn auth(bench: &mut Bench) -> Value {
    let asker = bench.plain();
    bench.say(asker, &json!({"id":"auth","method":"_acpd/agent/show","params":{"agent":AGENT}}));
    bench.got(asker)[0]["result"]["auth"].clone()
}

fn state(bench: &mut Bench) -> String {
    auth(bench)["state"].as_str().expect("a state").to_owned()
}

/// A session whose prompt was refused, with another prompt behind it.
fn refused(bench: &mut Bench) -> acpd_core::ids::ClientId {
    let a = bench.client(&json!({"notices":true}));
    bench.used_session(a, "s");
    bench.prompt(a, &json!(2), "s", "two");
    bench.prompt(a, &json!(3), "s", "three");
    let prompt = bench.heard_one("session/prompt");
    bench.got(a);
    bench.agent_refuses(&prompt, -32000);
    a
}

#[test]
fn a_prompt_that_works_tells_that_no_login_is_needed_and_the_next_daemon_knows_it() {
    let mut bench = Bench::new();
    let a = bench.plain();
    assert_eq!(state(&mut bench), "unknown");
    bench.used_session(a, "s");
    assert_eq!(state(&mut bench), "not_required");
    bench.reboot();
    assert_eq!(auth(&mut bench)["source"], json!({"kind":"worked","method":"session/prompt"}));
}

#[test]
fn a_refused_prompt_is_answered_at_once_and_those_behind_it_wait_for_the_login() {
    let mut bench = Bench::new();
    let a = refused(&mut bench);
    let got = bench.got(a);
    let answers: Vec<_> = got.iter().filter(|line| line["error"].is_object()).collect();
    assert_eq!((answers.len(), &answers[0]["id"]), (1, &json!(2)));
    assert_eq!(reason(answers[0]), "needs_login");
    let changed = got.iter().find(|line| line["method"] == "_acpd/auth_changed").expect("told");
    assert_eq!(changed["params"]["auth"]["state"], "needs_login");
    assert_eq!((bench.heard(), bench.state("s")), (vec![], "blocked".to_owned()));

    bench.say(a, &json!({"id":9,"method":"authenticate","params":{"methodId":"m"}}));
    let login = bench.heard_one("authenticate");
    bench.agent_answers(&login, &json!({}));
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"][0]["text"], "three");
    assert_eq!((state(&mut bench), bench.state("s")), ("authenticated".into(), "live".into()));
    bench.agent_refuses(&prompt, -32000);
    assert_eq!(state(&mut bench), "expired");
}

#[test]
fn what_waits_for_a_login_outlives_the_agent_and_costs_it_no_restart() {
    let mut bench = Bench::new();
    refused(&mut bench);
    let before = bench.spawned.len();
    bench.agent_dies();
    bench.pass(60_000);
    assert_eq!((bench.spawned.len(), bench.state("s")), (before, "blocked".to_owned()));
}

#[test]
fn a_new_prompt_of_a_person_tries_without_a_login() {
    let mut bench = Bench::new();
    let a = refused(&mut bench);
    bench.prompt(a, &json!(4), "s", "four");
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"][0]["text"], "three", "in their order");
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    bench.heard_one("session/prompt");
    assert_eq!(state(&mut bench), "authenticated", "it asked for a login, and has one now");
}

#[test]
fn a_refused_restore_answers_the_newest_prompt_and_keeps_the_others() {
    let mut bench = Bench::new();
    let a = bench.plain();
    bench.used_session(a, "s");
    bench.agent_dies();
    bench.pass(1_000);
    let resume = bench.heard_one("session/resume");
    bench.prompt(a, &json!(2), "s", "two");
    bench.prompt(a, &json!(3), "s", "three");
    bench.agent_refuses(&resume, -32000);
    let got = bench.got(a);
    assert_eq!((got.len(), &got[0]["id"], reason(&got[0])), (1, &json!(3), "needs_login"));
    bench.say(a, &json!({"id":9,"method":"authenticate","params":{"methodId":"m"}}));
    let login = bench.heard_one("authenticate");
    bench.agent_answers(&login, &json!({}));
    let resume = bench.heard_one("session/resume");
    bench.agent_answers(&resume, &json!({}));
    assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"][0]["text"], "two");
}

#[test]
fn a_session_that_is_made_proves_no_login_after_a_refused_prompt() {
    let mut bench = Bench::new();
    let a = refused(&mut bench);
    bench.say(a, &json!({"id":8,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}));
    let request = bench.heard_one("session/new");
    bench.agent_answers(&request, &json!({"sessionId":"t"}));
    assert_eq!(state(&mut bench), "needs_login");
    bench.prompt(a, &json!(5), "t", "go");
    let prompt = bench.heard_one("session/prompt");
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    assert_eq!(bench.heard_one("session/prompt")["params"]["sessionId"], "s", "all go on");
}

#[test]
fn an_agent_that_hides_its_want_of_a_login_is_understood_by_patterns() {
    for (pattern, error) in [
        ("not logged in", json!({"code":-32603,"message":"Internal: NOT LOGGED IN yet"})),
        ("sign in", json!({"code":-32603,"message":"Internal error","data":{"why":"Sign in"}})),
        ("401", json!({"code":401,"message":"{}"})),
    ] {
        let mut bench = Bench::with(|profile| profile.auth_errors = vec![pattern.to_owned()]);
        let a = bench.plain();
        bench.session(a, "s");
        bench.prompt(a, &json!(1), "s", "go");
        let prompt = bench.heard_one("session/prompt");
        bench.got(a);
        bench.agent(&json!({"id":prompt["id"],"error":error}));
        let got = bench.got(a);
        assert_eq!((&got[0]["error"]["code"], reason(&got[0])), (&error["code"], "needs_login"));
        assert_eq!(auth(&mut bench)["source"]["kind"], "pattern");
        assert_eq!(bench.state("s"), "blocked");
    }
}

#[test]
fn other_errors_say_nothing_about_a_login() {
    let mut bench = Bench::with(|profile| profile.auth_errors = vec!["401".to_owned()]);
    let a = bench.plain();
    bench.session(a, "s");
    bench.prompt(a, &json!(1), "s", "go");
    let prompt = bench.heard_one("session/prompt");
    let error = json!({"code":-32603,"message":"line 401 is too long"});
    bench.agent(&json!({"id":prompt["id"],"error":error}));
    assert_eq!((state(&mut bench), bench.state("s")), ("unknown".into(), "live".into()));
}

#[test]
fn an_agent_that_can_tell_is_asked_and_listened_to() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"auth":{"status":{}}}));
    let a = bench.plain();
    bench.say(a, &json!({"id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}));
    let heard = bench.heard();
    let ask = heard.iter().find(|line| line["method"] == "auth/status").expect("asked");
    bench.agent_answers(ask, &json!({"state":"unauthenticated"}));
    assert_eq!(
        (state(&mut bench), bench.agent_state()),
        ("needs_login".into(), "needs_auth".into())
    );
    bench.agent(&json!({"method":"auth/status_update","params":{"state":"authenticated"}}));
    assert_eq!((state(&mut bench), bench.agent_state()), ("authenticated".into(), "ready".into()));
}

#[test]
fn a_login_outside_of_the_protocol_restarts_the_agent_and_brings_everything_back() {
    let mut bench = Bench::with(|profile| profile.has_login_file = true);
    refused(&mut bench);
    assert_eq!(bench.watched, [false, true]);
    bench.feed(Input::LoginSeen { agent: AGENT.to_owned() });
    assert_eq!((bench.watched.last(), bench.stops.len()), (Some(&false), 1));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "nothing is given to the old process");
    bench.agent_dies();
    let resume = bench.heard_one("session/resume");
    bench.agent_answers(&resume, &json!({}));
    assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"][0]["text"], "three");
    assert_eq!(auth(&mut bench)["source"]["kind"], "login_file");
}

#[test]
fn a_logout_is_known_to_all() {
    let mut bench = Bench::new();
    let a = bench.plain();
    bench.used_session(a, "s");
    bench.say(a, &json!({"id":5,"method":"logout","params":{}}));
    let logout = bench.heard_one("logout");
    bench.agent_answers(&logout, &json!({}));
    assert_eq!(
        (state(&mut bench), bench.agent_state()),
        ("needs_login".into(), "needs_auth".into())
    );
}
