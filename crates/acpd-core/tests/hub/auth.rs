//! Logins: what tells their state, what waits for them, and what goes on after them.

use acpd_core::profile::{Profile, Services, Sharing};
use acpd_core::{ClientEvent, HostEvent, Input, StopStep};
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, methods};

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
    bench.answers("authenticate", &json!({}));
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
    let (a, resume) = bench.restoring("s", "session/resume");
    bench.prompt(a, &json!(2), "s", "two");
    bench.prompt(a, &json!(3), "s", "three");
    bench.agent_refuses(&resume, -32000);
    let got = bench.got(a);
    assert_eq!((got.len(), &got[0]["id"], reason(&got[0])), (1, &json!(3), "needs_login"));
    bench.say(a, &json!({"id":9,"method":"authenticate","params":{"methodId":"m"}}));
    bench.answers("authenticate", &json!({}));
    bench.answers("session/resume", &json!({}));
    assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"][0]["text"], "two");
}

#[test]
fn a_refused_restore_answers_the_newest_prompt_that_somebody_waits_for() {
    let mut bench = Bench::new();
    let (a, resume) = bench.restoring("s", "session/resume");
    bench.prompt(a, &json!(2), "s", "two");
    let b = bench.plain();
    bench.prompt(b, &json!(1), "s", "three");
    bench.feed(Input::Client(b, ClientEvent::Closed));
    bench.agent_refuses(&resume, -32000);
    let got = bench.got(a);
    assert_eq!((got.len(), &got[0]["id"], reason(&got[0])), (1, &json!(2), "needs_login"));
    bench.say(a, &json!({"id":9,"method":"authenticate","params":{"methodId":"m"}}));
    bench.answers("authenticate", &json!({}));
    bench.answers("session/resume", &json!({}));
    assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"][0]["text"], "three");
}

#[test]
fn a_session_that_is_made_proves_no_login_after_a_refused_prompt() {
    let mut bench = Bench::new();
    let a = refused(&mut bench);
    bench.say(a, &json!({"id":8,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}));
    bench.answers("session/new", &json!({"sessionId":"t"}));
    assert_eq!(state(&mut bench), "needs_login");
    bench.prompt(a, &json!(5), "t", "go");
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
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
        let (a, prompt) = bench.running("s", "go");
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
    let (_, prompt) = bench.running("s", "go");
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
    bench.feed(Input::LoginSeen(AGENT.to_owned()));
    assert_eq!((bench.watched.last(), bench.stops.len()), (Some(&false), 1));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "nothing is given to the old process");
    bench.agent_dies();
    bench.answers("session/resume", &json!({}));
    assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"][0]["text"], "three");
    assert_eq!(auth(&mut bench)["source"]["kind"], "login_file");
}

#[test]
fn a_logout_is_known_to_all() {
    let (mut bench, a) = Bench::used();
    bench.say(a, &json!({"id":5,"method":"logout","params":{}}));
    bench.answers("logout", &json!({}));
    assert_eq!(
        (state(&mut bench), bench.agent_state()),
        ("needs_login".into(), "needs_auth".into())
    );
}

#[test]
fn an_agent_that_does_not_start_without_a_login_is_not_started_again_and_again() {
    let (mut bench, a) = Bench::used();
    bench.agent_dies();
    bench.capabilities = None;
    bench.pass(60_000);
    bench.prompt(a, &json!(2), "s", "two");
    bench.prompt(a, &json!(3), "s", "three");
    let starts = bench.spawned.len();
    bench.refuse_start();
    let got = bench.got(a);
    let refused: Vec<_> = got.iter().filter(|line| line["error"].is_object()).collect();
    assert_eq!((refused.len(), &refused[0]["id"]), (1, &json!(3)), "at once, and only the newest");
    assert_eq!((&refused[0]["error"]["code"], reason(refused[0])), (&json!(-32000), "needs_login"));
    bench.agent_dies();
    bench.pass(600_000);
    assert_eq!((bench.spawned.len(), bench.state("s")), (starts, "blocked".to_owned()));
    assert_eq!(
        (state(&mut bench), bench.agent_state()),
        ("needs_login".into(), "needs_auth".into())
    );
    let shown = bench.show_agent();
    assert_eq!(shown["restarts"], 1, "for the crash: {shown}");

    // A person tries in vain …
    bench.prompt(a, &json!(4), "s", "four");
    bench.refuse_start();
    let got = bench.got(a);
    assert_eq!(reason(got.last().expect("an answer")), "needs_login");
    bench.agent_dies();
    assert_eq!(bench.spawned.len(), starts + 1);

    // … and again, with what comes while the agent still goes down …
    bench.prompt(a, &json!(5), "s", "five");
    bench.refuse_start();
    let mode = json!({"sessionId":"s","modeId":"code"});
    bench.say(a, &json!({"id":6,"method":"session/set_mode","params":mode}));
    bench.agent_dies();
    let got = bench.got(a);
    let answer = got.iter().find(|line| line["id"] == 6).expect("an answer");
    assert_eq!(reason(answer), "needs_login");

    // … and logs in.
    bench.capabilities = Some(json!({"sessionCapabilities":{"resume":{}}}));
    bench.say(a, &json!({"id":9,"method":"_acpd/auth/done","params":{"agent":AGENT}}));
    bench.answers("session/resume", &json!({}));
    assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"][0]["text"], "two");
    assert!(bench.got(a).iter().any(|line| line["id"] == 9), "when it is ready");
}

#[test]
fn an_agent_that_wants_a_login_later_than_it_may_take_to_start_is_understood_all_the_same() {
    let mut bench = Bench::new();
    bench.capabilities = None;
    let a = bench.connect(&json!({}));
    bench.process_starts();
    let initialize = bench.heard_one("initialize");
    bench.pass(60_000);
    assert_eq!((bench.stops.len(), bench.got(a).len()), (1, 0));
    bench.agent_refuses(&initialize, -32000);
    assert_eq!(reason(&bench.got(a)[0]), "needs_login");
    bench.agent_dies();
    bench.pass(600_000);
    assert_eq!((bench.spawned.len(), bench.agent_state()), (1, "needs_auth".into()));
}

#[test]
fn a_login_during_the_end_of_an_agent_that_wanted_one_starts_it_again() {
    let mut bench = Bench::with(|profile| profile.has_login_file = true);
    bench.capabilities = None;
    let a = bench.connect(&json!({}));
    bench.refuse_start();
    assert_eq!(reason(&bench.got(a)[0]), "needs_login");
    assert_eq!(bench.watched.last(), Some(&true));
    bench.say(a, &json!({"id":9,"method":"_acpd/auth/done","params":{"agent":AGENT}}));
    bench.capabilities = Some(json!({}));
    bench.agent_dies();
    assert_eq!((bench.agent_state(), bench.spawned.len()), ("ready".into(), 2));
    assert!(bench.got(a).iter().any(|line| line["id"] == 9));
}

#[test]
fn a_login_is_for_an_agent_that_failed_what_a_start_by_a_person_is() {
    let mut bench = Bench::new();
    refused(&mut bench);
    bench.agent_dies();
    let b = bench.plain();
    bench.capabilities = None;
    bench.say(b, &json!({"id":1,"method":"_acpd/agent/start","params":{"agent":AGENT}}));
    for _ in 0..5 {
        bench.agent_dies();
        bench.pass(5_000);
    }
    assert_eq!(bench.agent_state(), "failed");
    let starts = bench.spawned.len();
    bench.capabilities = Some(json!({"sessionCapabilities":{"resume":{}}}));
    bench.say(b, &json!({"id":2,"method":"_acpd/auth/done","params":{"agent":AGENT}}));
    assert_eq!(bench.spawned.len(), starts + 1);
    bench.answers("session/resume", &json!({}));
    assert_eq!(
        bench.heard_one("session/prompt")["params"]["prompt"][0]["text"],
        "three",
        "kept over all that"
    );
}

#[test]
fn one_login_at_a_time_reaches_an_agent() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.plain());
    let login = |id: u32| json!({"id":id,"method":"authenticate","params":{"methodId":"m"}});
    bench.session(a, "s");
    bench.say(a, &login(1));
    bench.say(b, &login(2));
    bench.say(b, &json!({"id":3,"method":"logout","params":{}}));
    bench.say(b, &login(4));
    bench.refuses("authenticate", -32603);
    let second = bench.heard_one("authenticate");
    // One that waits can be taken back.
    bench.say(b, &json!({"method":"$/cancel_request","params":{"requestId":4}}));
    bench.agent_answers(&second, &json!({}));
    bench.answers("logout", &json!({}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let ids = |got: &[Value]| got.iter().map(|line| line["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&bench.got(a)), [json!(1)]);
    assert_eq!(ids(&bench.got(b)), [json!(4), json!(2), json!(3)]);
}

#[test]
fn a_login_of_a_client_that_has_gone_keeps_nobody_waiting() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.plain());
    bench.session(a, "s");
    bench.say(a, &json!({"id":1,"method":"authenticate","params":{"methodId":"m"}}));
    bench.heard_one("authenticate");
    bench.say(b, &json!({"id":1,"method":"authenticate","params":{"methodId":"m"}}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.feed(Input::Client(a, ClientEvent::Closed));
    bench.heard_one("authenticate");
}

#[test]
fn logins_that_wait_outlive_the_process() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.plain());
    bench.session(a, "s");
    for client in [a, b] {
        bench.say(client, &json!({"id":1,"method":"authenticate","params":{"methodId":"m"}}));
    }
    bench.heard_one("authenticate");
    bench.agent_dies();
    bench.pass(60_000);
    assert_eq!(reason(bench.got(a).last().expect("an answer")), "agent_exited");
    assert!(bench.heard().iter().any(|line| line["method"] == "authenticate"));
}

#[test]
fn an_agent_that_can_tell_is_asked_again_after_a_login() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"auth":{"status":{}}}));
    let a = bench.plain();
    bench.say(a, &json!({"id":1,"method":"authenticate","params":{"methodId":"m"}}));
    let heard = bench.heard();
    assert_eq!(crate::bench::methods(&heard), ["auth/status", "authenticate"]);
    bench.agent_answers(&heard[1], &json!({}));
    let ask = bench.heard_one("auth/status");
    assert_eq!(state(&mut bench), "authenticated");
    bench.agent_answers(&ask, &json!({"state":"unauthenticated"}));
    assert_eq!(state(&mut bench), "expired", "the wrong account, for instance");
}

#[test]
fn what_agents_tell_of_their_account_in_an_older_way_counts_and_is_passed_on() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.plain());
    bench.session(a, "s");
    for (told, state_of, agent) in [
        (
            json!({"authStatus":{"kind":"none","label":"Not logged in"}}),
            "needs_login",
            "needs_auth",
        ),
        (json!({"authStatus":{"kind":"account","label":"me"}}), "authenticated", "ready"),
        (json!({"state":"unauthenticated"}), "expired", "needs_auth"),
        (json!({"anything":1}), "expired", "needs_auth"),
    ] {
        let line = json!({"jsonrpc":"2.0","method":"_auth/status_update","params":told});
        bench.agent(&line);
        assert_eq!((&*state(&mut bench), &*bench.agent_state()), (state_of, agent), "{line}");
        for client in [a, b] {
            assert_eq!(bench.got(client).last(), Some(&line));
        }
    }
}

/// An agent in a session, whose credentials are good for a minute.
fn with_credentials(ttl: Option<u64>) -> (Bench, acpd_core::ids::ClientId) {
    let mut bench = Bench::with(|profile| profile.credentials_ttl = ttl);
    let a = bench.client(&json!({"notices":true}));
    bench.session(a, "s");
    let host = bench.host();
    bench.feed(Input::Host(host, HostEvent::CredentialsGood { left: 60_000 }));
    (bench, a)
}

#[test]
fn an_agent_whose_credentials_ran_out_is_started_anew_and_gets_the_prompt_again() {
    let (mut bench, a) = with_credentials(None);
    bench.used_session(a, "t");
    bench.pass(60_000);
    bench.prompt(a, &json!(2), "t", "two");
    let prompt = bench.heard_one("session/prompt");
    bench.agent_refuses(&prompt, -32000);
    assert_eq!((state(&mut bench), bench.stops.len()), ("not_required".into(), 1));
    assert!(bench.got(a).iter().all(|line| line["id"] != 2), "nobody is told");
    bench.agent_dies();
    let resume = bench.heard_one("session/resume");
    assert_eq!(resume["params"]["sessionId"], "t");
    bench.agent_answers(&resume, &json!({}));
    // The other session comes back behind it.
    let again = bench.heard().swap_remove(0);
    assert_eq!(again["method"], "session/prompt");
    assert_eq!(again["params"]["prompt"], prompt["params"]["prompt"]);
    // The second refusal is a missing login, once and for all.
    let host = bench.host();
    bench.feed(Input::Host(host, HostEvent::CredentialsGood { left: 0 }));
    let stops = bench.stops.len();
    bench.agent_refuses(&again, -32000);
    let got = bench.got(a);
    let answer = got.iter().find(|line| line["id"] == 2).expect("an answer");
    assert_eq!(reason(answer), "needs_login");
    assert_eq!((state(&mut bench), bench.stops.len()), ("needs_login".into(), stops));
}

#[test]
fn credentials_that_are_still_good_are_not_at_fault() {
    let (mut bench, a) = with_credentials(None);
    bench.pass(59_000);
    bench.prompt(a, &json!(2), "s", "two");
    bench.refuses("session/prompt", -32000);
    assert_eq!((state(&mut bench), bench.stops.len()), ("needs_login".into(), 0));
}

#[test]
fn a_prompt_that_the_agent_has_begun_to_work_on_is_not_given_to_it_again() {
    let (mut bench, a) = with_credentials(None);
    bench.pass(60_000);
    bench.prompt(a, &json!(2), "s", "two");
    let prompt = bench.heard_one("session/prompt");
    bench.chunk("s", "I delete it now");
    bench.agent_refuses(&prompt, -32000);
    let got = bench.got(a);
    let answer = got.iter().find(|line| line["id"] == 2).expect("an answer");
    assert_eq!(reason(answer), "interrupted");
    bench.agent_dies();
    bench.heard_one("session/resume");
    assert_eq!(bench.state("s"), "restoring");
}

#[test]
fn a_new_session_and_a_restore_go_on_with_fresh_credentials() {
    let (mut bench, a) = with_credentials(None);
    bench.pass(60_000);
    bench.say(a, &json!({"id":5,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}));
    bench.refuses("session/new", -32000);
    assert!(bench.got(a).iter().all(|line| line["id"] != 5));
    bench.agent_dies();
    let heard = bench.heard();
    let again = heard.iter().filter(|line| line["method"] == "session/new");
    assert_eq!(again.count(), 2, "for the client, and for the session without a prompt: {heard:?}");
    assert_eq!(state(&mut bench), "unknown");
}

#[test]
fn credentials_run_out_over_a_restart_of_the_daemon_too() {
    let mut bench = Bench::with_shims();
    bench.change(|profile| profile.credentials_ttl = Some(60_000));
    let a = bench.plain();
    bench.used_session(a, "s");
    bench.reboot();
    let b = bench.plain();
    bench.pass(60_000);
    bench.prompt(b, &json!(2), "s", "two");
    bench.refuses("session/prompt", -32000);
    bench.agent_dies();
    bench.answers("session/resume", &json!({}));
    bench.heard_one("session/prompt");
}

#[test]
fn turns_of_others_are_not_cut_off_for_fresh_credentials() {
    let (mut bench, a) = with_credentials(None);
    bench.used_session(a, "t");
    bench.pass(60_000);
    bench.prompt(a, &json!(2), "s", "two");
    let first = bench.heard_one("session/prompt");
    bench.prompt(a, &json!(3), "t", "three");
    let second = bench.heard_one("session/prompt");
    bench.agent_refuses(&first, -32000);
    assert_eq!((state(&mut bench), bench.stops.len()), ("needs_login".into(), 0));
    // With the last one the process is free, and all come back with it.
    bench.agent_refuses(&second, -32000);
    assert_eq!((bench.stops.len(), bench.state("s")), (1, "live".to_owned()));
}

#[test]
fn a_restart_by_a_person_brings_back_what_waited_for_a_login_without_a_process() {
    let mut bench = Bench::with(|profile| profile.sharing = Sharing::Session);
    let a = refused(&mut bench);
    bench.agent_dies();
    assert_eq!(bench.state("s"), "blocked");
    bench.say(a, &json!({"id":9,"method":"_acpd/agent/restart","params":{"agent":AGENT}}));
    bench.heard_one("session/resume");
}

#[test]
fn a_deadline_that_is_set_while_the_store_fails_is_not_put_off_by_what_was_before() {
    let mut bench = Bench::with(|profile| profile.has_login_file = true);
    refused(&mut bench);
    bench.feed(Input::StoreFailing { reason: "disk full".to_owned(), hint: None });
    bench.now += 3_600_000;
    bench.feed(Input::LoginSeen(AGENT.to_owned()));
    bench.now += 60_000;
    bench.feed(Input::StoreWorks);
    assert_eq!(bench.stops, [StopStep::CloseStdin]);
    bench.pass(3_000);
    assert_eq!(bench.stops, [StopStep::CloseStdin, StopStep::Term]);
}

/// A prompt was given to a process whose credentials have run out.
fn in_doubt(change: impl FnOnce(&mut Profile)) -> (Bench, acpd_core::ids::ClientId, Value) {
    let mut bench = Bench::with(change);
    let a = bench.client(&json!({"notices":true}));
    bench.used_session(a, "s");
    let host = bench.host();
    bench.feed(Input::Host(host, HostEvent::CredentialsGood { left: 0 }));
    bench.prompt(a, &json!(2), "s", "two");
    let prompt = bench.heard_one("session/prompt");
    bench.got(a);
    (bench, a, prompt)
}

/// The agent refuses the prompt, and the next process restores the session: it does not get it.
#[track_caller]
fn is_not_given_again(bench: &mut Bench, prompt: &Value) {
    bench.heard();
    bench.agent_refuses(prompt, -32000);
    bench.agent_dies();
    bench.answers("session/resume", &json!({}));
    assert_eq!(methods(&bench.heard()), Vec::<String>::new());
}

fn update(bench: &mut Bench, session: &str, update: &Value) {
    let params = json!({"sessionId":session,"update":update});
    bench.agent(&json!({"jsonrpc":"2.0","method":"session/update","params":params}));
}

#[test]
fn a_prompt_for_which_the_agent_wrote_a_file_is_not_given_again() {
    let fs = Services { fs: true, terminal: false };
    let (mut bench, _, prompt) = in_doubt(|profile| profile.services = fs);
    let params = json!({"sessionId":"s","path":"/w/x","content":"more"});
    bench.agent(&json!({"id":77,"method":"fs/write_text_file","params":params}));
    is_not_given_again(&mut bench, &prompt);
}

#[test]
fn a_prompt_for_which_the_agent_called_a_server_is_not_given_again() {
    let (mut bench, _, prompt) = in_doubt(|_| {});
    let params = json!({"serverId":"x","requestId":"r","method":"tools/call"});
    bench.agent(&json!({"id":77,"method":"mcp/message","params":params}));
    is_not_given_again(&mut bench, &prompt);
}

#[test]
fn a_prompt_on_which_a_subagent_worked_is_not_given_again() {
    let (mut bench, _, prompt) = in_doubt(|_| {});
    update(&mut bench, "s", &json!({"sessionUpdate":"subagent_update","sessionId":"c"}));
    bench.chunk("c", "deleted");
    is_not_given_again(&mut bench, &prompt);
}

#[test]
fn a_prompt_is_given_again_although_the_agent_told_its_commands() {
    let (mut bench, _, prompt) = in_doubt(|_| {});
    let commands = json!({"sessionUpdate":"available_commands_update","availableCommands":[]});
    update(&mut bench, "s", &commands);
    bench.agent_refuses(&prompt, -32000);
    bench.agent_dies();
    bench.answers("session/resume", &json!({}));
    assert_eq!(methods(&bench.heard()), ["session/prompt"]);
}

#[test]
fn a_turn_with_a_plan_or_a_word_of_a_subagent_has_not_failed() {
    let plan = json!({"sessionUpdate":"plan","entries":[]});
    let child = json!({"sessionUpdate":"subagent_update","sessionId":"c"});
    for said in [plan, child] {
        let mut bench = Bench::with(|profile| profile.empty_turn_fails = true);
        let (a, prompt) = bench.running("s", "/plan");
        update(&mut bench, "s", &said);
        bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
        assert_eq!(bench.got(a).last().expect("an answer")["result"]["stopReason"], "end_turn");
    }
}

#[test]
fn a_subagent_at_work_is_not_cut_off_for_a_login() {
    let (mut bench, a) = Bench::used();
    bench.used_session(a, "t");
    let state = |state: &str| json!({"sessionUpdate":"subagent_update","sessionId":"c","state":{"state":state}});
    update(&mut bench, "t", &state("running"));
    let host = bench.host();
    bench.feed(Input::Host(host, HostEvent::CredentialsGood { left: 0 }));
    bench.prompt(a, &json!(2), "s", "two");
    let prompt = bench.heard_one("session/prompt");
    bench.agent_refuses(&prompt, -32000);
    assert!(bench.stops.is_empty(), "fresh credentials");
    bench.say(a, &json!({"id":7,"method":"_acpd/auth/done","params":{"agent":"gem"}}));
    assert!(bench.stops.is_empty(), "a login");
    bench.heard();
    bench.prompt(a, &json!(3), "s", "three");
    bench.refuses("session/prompt", -32002);
    assert!(bench.stops.is_empty(), "a session that was forgotten");
    update(&mut bench, "t", &state("idle"));
    bench.say(a, &json!({"id":8,"method":"_acpd/auth/done","params":{"agent":"gem"}}));
    assert!(!bench.stops.is_empty());
}

#[test]
fn a_setting_that_is_refused_for_old_credentials_wants_no_login() {
    let (mut bench, a) = with_credentials(None);
    bench.pass(60_000);
    let params = json!({"sessionId":"s","modeId":"m"});
    bench.say(a, &json!({"id":5,"method":"session/set_mode","params":params}));
    bench.refuses("session/set_mode", -32000);
    let got = bench.got(a);
    let answer = got.iter().find(|line| line["id"] == 5).expect("an answer");
    assert_eq!((reason(answer), bench.stops.len()), ("interrupted", 1));
}

#[test]
fn credentials_run_out_while_the_machine_is_asleep() {
    let (mut bench, a) = with_credentials(None);
    bench.feed(Input::Slept(60_000));
    bench.prompt(a, &json!(2), "s", "two");
    bench.refuses("session/prompt", -32000);
    assert_eq!((state(&mut bench), bench.stops.len()), ("unknown".into(), 1));
}

#[test]
fn credentials_are_looked_up_anew_for_another_login() {
    let mut bench = Bench::new();
    let a = refused(&mut bench);
    assert_eq!(bench.forgotten, 1, "one is wanted");
    bench.say(a, &json!({"id":7,"method":"_acpd/auth/done","params":{"agent":AGENT}}));
    assert_eq!(bench.forgotten, 2, "there is one");
}

/// An agent with two ways to log in that wants one in each process; a client has used the second. The process
/// after that has refused this.
fn wants_login_again(bench: &mut Bench, refused: &str) -> acpd_core::ids::ClientId {
    bench.greeting = json!({"authMethods":[{"id":"m","name":"M"},{"id":"n","name":"N"}]});
    bench.capabilities = Some(json!({"loadSession":true}));
    let a = bench.plain();
    bench.session(a, "s");
    bench.say(a, &json!({"id":1,"method":"authenticate","params":{"methodId":"n"}}));
    bench.answers("authenticate", &json!({}));
    bench.prompt(a, &json!(2), "s", "two");
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    bench.agent_dies();
    bench.prompt(a, &json!(3), "s", "three");
    bench.pass(1_000);
    if refused != "session/load" {
        bench.answers("session/load", &json!({}));
    }
    if refused == "session/new" {
        bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
        let params = json!({"cwd":"/w","mcpServers":[]});
        bench.say(a, &json!({"id":4,"method":"session/new","params":params}));
    }
    bench.got(a);
    bench.refuses(refused, -32000);
    a
}

#[test]
fn last_login_is_repeated_once_for_a_process_that_wants_one() {
    for refused in ["session/load", "session/prompt", "session/new"] {
        let mut bench = Bench::new();
        let a = wants_login_again(&mut bench, refused);
        assert_eq!(bench.got(a).iter().filter(|line| line["id"].is_number()).count(), 0);
        let login = bench.heard_one("authenticate");
        assert_eq!(login["params"], json!({"methodId":"n"}), "{refused}");
        bench.agent_answers(&login, &json!({}));
        let again = bench.heard_one(refused);
        assert_eq!(state(&mut bench), "authenticated");
        // Once is enough.
        bench.agent_refuses(&again, -32000);
        assert_eq!(bench.heard(), Vec::<Value>::new(), "{refused}");
        assert_eq!(
            (state(&mut bench), bench.agent_state()),
            ("expired".into(), "needs_auth".into())
        );
        let got = bench.got(a);
        assert!(got.iter().any(|line| reason(line) == "needs_login"), "{refused}: {got:?}");
    }
}

#[test]
fn login_that_fails_or_hangs_is_not_repeated_again() {
    for hangs in [false, true] {
        let mut bench = Bench::new();
        let a = wants_login_again(&mut bench, "session/load");
        let login = bench.heard_one("authenticate");
        if hangs {
            bench.pass(30_000);
        } else {
            bench.agent_refuses(&login, -32603);
        }
        bench.refuses("session/load", -32000);
        let got = bench.got(a);
        assert!(got.iter().any(|line| reason(line) == "needs_login"), "{got:?}");
        bench.agent_dies();
        bench.prompt(a, &json!(5), "s", "five");
        bench.pass(1_000);
        bench.refuses("session/load", -32000);
        assert_eq!(bench.heard(), Vec::<Value>::new());
    }
}

#[test]
fn logout_forgets_the_login_that_would_be_repeated() {
    let mut bench = Bench::new();
    let a = wants_login_again(&mut bench, "session/load");
    bench.answers("authenticate", &json!({}));
    bench.answers("session/load", &json!({}));
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    bench.say(a, &json!({"id":6,"method":"logout"}));
    bench.answers("logout", &json!({}));
    bench.pass(20_000);
    bench.agent_dies();
    bench.prompt(a, &json!(7), "s", "seven");
    bench.pass(1_000);
    bench.refuses("session/load", -32000);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}
