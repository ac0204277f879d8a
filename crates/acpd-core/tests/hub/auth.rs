//! Logins: what tells their state, what waits for them, and what goes on after them.

use acpd_core::ids::ClientId;
use acpd_core::profile::{Services, Sharing};
use acpd_core::{HostEvent, Input, StopStep};
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, methods};
use crate::steps::reason;

fn state(bench: &mut Bench) -> String {
    bench.show_agent()["auth"]["state"].as_str().expect("a state").to_owned()
}

#[track_caller]
fn assert_states(bench: &mut Bench, login: &str, agent: &str) {
    assert_eq!((&*state(bench), &*bench.agent_state()), (login, agent));
}

#[track_caller]
fn assert_stops(bench: &mut Bench, login: &str, stops: usize) {
    assert_eq!((&*state(bench), bench.stops.len()), (login, stops));
}

/// A session whose prompt was refused, with another prompt behind it.
fn refused(bench: Bench) -> (Bench, ClientId) {
    let (mut bench, a) = bench.with_client_of(&json!({"notices":true}));
    bench.used_session(a, "s");
    let prompt = bench.start_and_queue(a, "s", [(2, "two"), (3, "three")]);
    bench.got(a);
    bench.agent_refuses(&prompt, -32000);
    (bench, a)
}

#[test]
fn a_prompt_that_works_tells_that_no_login_is_needed_and_the_next_daemon_knows_it() {
    let (mut bench, a) = Bench::new().with_client();
    assert_eq!(state(&mut bench), "unknown");
    bench.used_session(a, "s");
    assert_eq!(state(&mut bench), "not_required");
    bench.reboot();
    let source = json!({"kind":"worked","method":"session/prompt"});
    assert_eq!(bench.show_agent()["auth"]["source"], source);
}

#[test]
fn a_refused_prompt_is_answered_at_once_and_those_behind_it_wait_for_the_login() {
    let (mut bench, a) = refused(Bench::new());
    let got = bench.got(a);
    let answers: Vec<_> = got.iter().filter(|line| line["error"].is_object()).collect();
    assert_eq!((answers.len(), &answers[0]["id"]), (1, &json!(2)));
    assert_eq!(reason(answers[0]), "needs_login");
    let changed = got.iter().find(|line| line["method"] == "_acpd/auth_changed").expect("told");
    assert_eq!(changed["params"]["auth"]["state"], "needs_login");
    assert_eq!((bench.heard(), bench.state("s")), (vec![], "blocked".to_owned()));

    bench.log_in(a);
    let prompt = bench.expect_prompt("three");
    assert_eq!((state(&mut bench), bench.state("s")), ("authenticated".into(), "live".into()));
    bench.agent_refuses(&prompt, -32000);
    assert_eq!(state(&mut bench), "expired");
}

#[test]
fn what_waits_for_a_login_outlives_the_agent_and_costs_it_no_restart() {
    let (mut bench, _) = refused(Bench::new());
    let before = bench.spawned.len();
    bench.agent_dies_for(60_000);
    assert_eq!((bench.spawned.len(), bench.state("s")), (before, "blocked".to_owned()));
}

#[test]
fn a_new_prompt_of_a_person_tries_without_a_login() {
    let (mut bench, a) = refused(Bench::new());
    bench.prompt(a, &json!(4), "s", "four");
    // In their order.
    let prompt = bench.expect_prompt("three");
    bench.end_turn(&prompt);
    bench.heard_one("session/prompt");
    assert_eq!(state(&mut bench), "authenticated", "it asked for a login, and has one now");
}

#[test]
fn a_refused_restore_answers_the_newest_prompt_that_somebody_waits_for_and_keeps_the_others() {
    for (sender_leaves, refused, kept) in [(false, 3, "two"), (true, 2, "three")] {
        let (mut bench, a, resume) = Bench::new().with_restoring("s", "session/resume");
        bench.prompt(a, &json!(2), "s", "two");
        let sender = if sender_leaves { bench.plain() } else { a };
        bench.prompt(sender, &json!(3), "s", "three");
        if sender_leaves {
            bench.leave(sender);
        }
        bench.agent_refuses(&resume, -32000);
        let got = bench.got(a);
        assert_eq!((got.len(), &got[0]["id"]), (1, &json!(refused)), "{got:?}");
        assert_eq!(reason(&got[0]), "needs_login");
        bench.log_in(a);
        bench.resume_and_expect(kept);
    }
}

#[test]
fn a_session_that_is_made_proves_no_login_after_a_refused_prompt() {
    let (mut bench, a) = refused(Bench::new());
    bench.ask_session(a, 8);
    bench.answers("session/new", &json!({"sessionId":"t"}));
    assert_eq!(state(&mut bench), "needs_login");
    bench.run_turn(a, 5, "t", "go");
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
        bench.agent_fails(&prompt, &error);
        let got = bench.got(a);
        assert_eq!((&got[0]["error"]["code"], reason(&got[0])), (&error["code"], "needs_login"));
        assert_eq!(bench.show_agent()["auth"]["source"]["kind"], "pattern");
        assert_eq!(bench.state("s"), "blocked");
    }
}

#[test]
fn other_errors_say_nothing_about_a_login() {
    let mut bench = Bench::with(|profile| profile.auth_errors = vec!["401".to_owned()]);
    let (_, prompt) = bench.running("s", "go");
    bench.agent_fails(&prompt, &json!({"code":-32603,"message":"line 401 is too long"}));
    assert_eq!((state(&mut bench), bench.state("s")), ("unknown".into(), "live".into()));
}

#[test]
fn an_agent_that_can_tell_is_asked_and_listened_to() {
    let (mut bench, a) = Bench::able(&json!({"auth":{"status":{}}})).with_client();
    bench.ask_session(a, 1);
    let heard = bench.heard();
    let ask = heard.iter().find(|line| line["method"] == "auth/status").expect("asked");
    bench.agent_answers(ask, &json!({"state":"unauthenticated"}));
    assert_states(&mut bench, "needs_login", "needs_auth");
    bench.agent(&json!({"method":"auth/status_update","params":{"state":"authenticated"}}));
    assert_states(&mut bench, "authenticated", "ready");
}

#[test]
fn a_login_outside_of_the_protocol_restarts_the_agent_and_brings_everything_back() {
    let (mut bench, _) = refused(Bench::with(|profile| profile.has_login_file = true));
    assert_eq!(bench.watched, [false, true]);
    bench.feed(Input::LoginSeen(AGENT.to_owned()));
    assert_eq!((bench.watched.last(), bench.stops.len()), (Some(&false), 1));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "nothing is given to the old process");
    bench.agent_dies();
    bench.resume_and_expect("three");
    assert_eq!(bench.show_agent()["auth"]["source"]["kind"], "login_file");
}

#[test]
fn a_logout_is_known_to_all() {
    let (mut bench, a) = Bench::used();
    bench.ask(a, 5, "logout", &json!({}));
    bench.answers("logout", &json!({}));
    assert_states(&mut bench, "needs_login", "needs_auth");
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
    bench.agent_dies_for(600_000);
    assert_eq!((bench.spawned.len(), bench.state("s")), (starts, "blocked".to_owned()));
    assert_states(&mut bench, "needs_login", "needs_auth");
    let shown = bench.show_agent();
    assert_eq!(shown["restarts"], 1, "for the crash: {shown}");

    // A person tries in vain …
    bench.prompt(a, &json!(4), "s", "four");
    bench.refuse_start();
    assert_eq!(reason(bench.got(a).last().expect("an answer")), "needs_login");
    bench.agent_dies();
    assert_eq!(bench.spawned.len(), starts + 1);

    // … and again, with what comes while the agent still goes down …
    bench.prompt(a, &json!(5), "s", "five");
    bench.refuse_start();
    bench.ask(a, 6, "session/set_mode", &json!({"sessionId":"s","modeId":"code"}));
    bench.agent_dies();
    assert_eq!(reason(&bench.answer(a, 6)), "needs_login");

    // … and logs in.
    bench.capabilities = Some(json!({"sessionCapabilities":{"resume":{}}}));
    bench.ask(a, 9, "_acpd/auth/done", &json!({"agent":AGENT}));
    bench.resume_and_expect("two");
    assert!(bench.got(a).iter().any(|line| line["id"] == 9), "when it is ready");
}

#[test]
fn an_agent_that_wants_a_login_later_than_it_may_take_to_start_is_understood_all_the_same() {
    let (mut bench, a) = Bench::connecting();
    let initialize = bench.process_asks();
    bench.pass(60_000);
    assert_eq!((bench.stops.len(), bench.got(a).len()), (1, 0));
    bench.agent_refuses(&initialize, -32000);
    assert_eq!(reason(&bench.got(a)[0]), "needs_login");
    bench.agent_dies_for(600_000);
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
    bench.ask(a, 9, "_acpd/auth/done", &json!({"agent":AGENT}));
    bench.capabilities = Some(json!({}));
    bench.agent_dies();
    assert_eq!((bench.agent_state(), bench.spawned.len()), ("ready".into(), 2));
    assert!(bench.got(a).iter().any(|line| line["id"] == 9));
}

#[test]
fn a_login_is_for_an_agent_that_failed_what_a_start_by_a_person_is() {
    let (mut bench, _) = refused(Bench::new());
    bench.agent_dies();
    let b = bench.plain();
    bench.capabilities = None;
    bench.ask(b, 1, "_acpd/agent/start", &json!({"agent":AGENT}));
    for _ in 0..5 {
        bench.agent_dies_for(5_000);
    }
    assert_eq!(bench.agent_state(), "failed");
    let starts = bench.spawned.len();
    bench.capabilities = Some(json!({"sessionCapabilities":{"resume":{}}}));
    bench.ask(b, 2, "_acpd/auth/done", &json!({"agent":AGENT}));
    assert_eq!(bench.spawned.len(), starts + 1);
    // Kept over all that.
    bench.resume_and_expect("three");
}

#[test]
fn one_login_at_a_time_reaches_an_agent() {
    let (mut bench, a, b) = Bench::new().with_two_clients();
    let login = |id: u32| json!({"id":id,"method":"authenticate","params":{"methodId":"m"}});
    bench.session(a, "s");
    bench.say(a, &login(1));
    bench.say(b, &login(2));
    bench.ask(b, 3, "logout", &json!({}));
    bench.say(b, &login(4));
    bench.refuses("authenticate", -32603);
    let second = bench.heard_one("authenticate");
    // One that waits can be taken back.
    bench.cancel_request(b, 4);
    bench.agent_answers(&second, &json!({}));
    bench.answers("logout", &json!({}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let ids = |got: &[Value]| got.iter().map(|line| line["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&bench.got(a)), [json!(1)]);
    assert_eq!(ids(&bench.got(b)), [json!(4), json!(2), json!(3)]);
}

#[test]
fn logins_that_wait_outlive_the_client_and_the_process_of_the_one_before() {
    for dies in [false, true] {
        let (mut bench, a, b) = Bench::new().with_two_clients();
        bench.session(a, "s");
        for client in [a, b] {
            bench.ask(client, 1, "authenticate", &json!({"methodId":"m"}));
        }
        bench.heard_one("authenticate");
        if dies {
            bench.agent_dies_for(60_000);
            assert_eq!(reason(bench.got(a).last().expect("an answer")), "agent_exited");
        } else {
            bench.leave(a);
        }
        assert!(bench.heard().iter().any(|line| line["method"] == "authenticate"), "{dies}");
    }
}

#[test]
fn an_agent_that_can_tell_is_asked_again_after_a_login() {
    let (mut bench, a) = Bench::able(&json!({"auth":{"status":{}}})).with_client();
    bench.ask(a, 1, "authenticate", &json!({"methodId":"m"}));
    let heard = bench.heard();
    assert_eq!(methods(&heard), ["auth/status", "authenticate"]);
    bench.agent_answers(&heard[1], &json!({}));
    let ask = bench.heard_one("auth/status");
    assert_eq!(state(&mut bench), "authenticated");
    bench.agent_answers(&ask, &json!({"state":"unauthenticated"}));
    assert_eq!(state(&mut bench), "expired", "the wrong account, for instance");
}

#[test]
fn what_agents_tell_of_their_account_in_an_older_way_counts_and_is_passed_on() {
    let (mut bench, a, b) = Bench::new().with_two_clients();
    bench.session(a, "s");
    for (told, state_of, agent) in [
        (json!({"authStatus":{"kind":"none","label":"Out"}}), "needs_login", "needs_auth"),
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
fn with_credentials() -> (Bench, ClientId) {
    let (mut bench, a) = Bench::new().with_client_of(&json!({"notices":true}));
    bench.session(a, "s");
    bench.feed_process(HostEvent::CredentialsGood { left: 60_000 });
    (bench, a)
}

#[test]
fn an_agent_whose_credentials_ran_out_is_started_anew_and_gets_the_prompt_again() {
    let (mut bench, a) = with_credentials();
    bench.used_session(a, "t");
    bench.pass(60_000);
    let prompt = bench.start_turn(a, 2, "t", "two");
    bench.agent_refuses(&prompt, -32000);
    assert_stops(&mut bench, "not_required", 1);
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
    bench.feed_process(HostEvent::CredentialsGood { left: 0 });
    let stops = bench.stops.len();
    bench.agent_refuses(&again, -32000);
    assert_eq!(reason(&bench.answer(a, 2)), "needs_login");
    assert_stops(&mut bench, "needs_login", stops);
}

#[test]
fn credentials_are_at_fault_once_they_ran_out_also_while_the_machine_is_asleep() {
    for (slept, login, stops) in [(59_000, "needs_login", 0), (60_000, "unknown", 1)] {
        let (mut bench, a) = with_credentials();
        bench.feed(Input::Slept(slept));
        bench.refuse_prompt(a, 2, "s", "two", -32000);
        assert_stops(&mut bench, login, stops);
    }
}

#[test]
fn a_new_session_and_a_restore_go_on_with_fresh_credentials() {
    let (mut bench, a) = with_credentials();
    bench.pass(60_000);
    bench.ask_session(a, 5);
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
    bench.refuse_prompt(b, 2, "s", "two", -32000);
    bench.agent_dies();
    bench.bring_back("session/resume");
}

#[test]
fn turns_of_others_are_not_cut_off_for_fresh_credentials() {
    let (mut bench, a) = with_credentials();
    bench.used_session(a, "t");
    bench.pass(60_000);
    let first = bench.start_turn(a, 2, "s", "two");
    let second = bench.start_turn(a, 3, "t", "three");
    bench.agent_refuses(&first, -32000);
    assert_stops(&mut bench, "needs_login", 0);
    // With the last one the process is free, and all come back with it.
    bench.agent_refuses(&second, -32000);
    assert_eq!((bench.stops.len(), bench.state("s")), (1, "live".to_owned()));
}

#[test]
fn a_restart_by_a_person_brings_back_what_waited_for_a_login_without_a_process() {
    let (mut bench, a) = refused(Bench::with(|profile| profile.sharing = Sharing::Session));
    bench.agent_dies();
    assert_eq!(bench.state("s"), "blocked");
    bench.ask(a, 9, "_acpd/agent/restart", &json!({"agent":AGENT}));
    bench.heard_one("session/resume");
}

#[test]
fn a_deadline_that_is_set_while_the_store_fails_is_not_put_off_by_what_was_before() {
    let (mut bench, _) = refused(Bench::with(|profile| profile.has_login_file = true));
    bench.feed(Input::StoreFailing { reason: "disk full".to_owned(), hint: None });
    bench.now += 3_600_000;
    bench.feed(Input::LoginSeen(AGENT.to_owned()));
    bench.now += 60_000;
    bench.feed(Input::StoreWorks);
    assert_eq!(bench.stops, [StopStep::CloseStdin]);
    bench.pass(3_000);
    assert_eq!(bench.stops, [StopStep::CloseStdin, StopStep::Term]);
}

#[test]
fn a_prompt_is_given_again_unless_the_agent_has_worked_on_it() {
    let update = |update: Value| json!({"method":"session/update","params":{"sessionId":"s","update":update}});
    let commands = json!({"sessionUpdate":"available_commands_update","availableCommands":[]});
    let text = json!({"type":"text","text":"I delete it now"});
    let chunk = json!({"sessionUpdate":"agent_message_chunk","content":text});
    let file = json!({"sessionId":"s","path":"/w/x","content":"more"});
    let file = json!({"id":77,"method":"fs/write_text_file","params":file});
    let call = json!({"serverId":"x","requestId":"r","method":"tools/call"});
    let call = json!({"id":77,"method":"mcp/message","params":call});
    let subagent = json!({"sessionUpdate":"subagent_update","sessionId":"c"});
    for (said, again) in [
        (update(commands), true),
        (update(chunk), false),
        (file, false),
        (call, false),
        (update(subagent), false),
    ] {
        let services = Services { fs: true, terminal: false };
        let (mut bench, a) = Bench::with(|profile| profile.services = services).with_used();
        bench.feed_process(HostEvent::CredentialsGood { left: 0 });
        let prompt = bench.start_turn(a, 2, "s", "two");
        bench.agent(&said);
        if said["params"]["update"]["sessionId"] == "c" {
            bench.chunk("c", "deleted");
        }
        bench.heard();
        bench.agent_refuses(&prompt, -32000);
        if !again {
            assert_eq!(reason(&bench.answer(a, 2)), "interrupted", "{said}");
        }
        bench.agent_dies();
        bench.answers("session/resume", &json!({}));
        let expected = if again { vec!["session/prompt"] } else { Vec::new() };
        assert_eq!(methods(&bench.heard()), expected, "{said}");
    }
}

#[test]
fn a_turn_with_a_plan_or_a_word_of_a_subagent_has_not_failed() {
    let plan = json!({"sessionUpdate":"plan","entries":[]});
    let child = json!({"sessionUpdate":"subagent_update","sessionId":"c"});
    for said in [plan, child] {
        let mut bench = Bench::with(|profile| profile.empty_turn_fails = true);
        let (a, prompt) = bench.running("s", "/plan");
        bench.send_update("s", &said);
        bench.end_turn(&prompt);
        assert_eq!(bench.got(a).last().expect("an answer")["result"]["stopReason"], "end_turn");
    }
}

#[test]
fn a_subagent_at_work_is_not_cut_off_for_a_login() {
    let (mut bench, a) = Bench::used();
    bench.used_session(a, "t");
    let state = |state: &str| json!({"sessionUpdate":"subagent_update","sessionId":"c","state":{"state":state}});
    bench.send_update("t", &state("running"));
    bench.feed_process(HostEvent::CredentialsGood { left: 0 });
    bench.refuse_prompt(a, 2, "s", "two", -32000);
    assert!(bench.stops.is_empty(), "fresh credentials");
    bench.ask(a, 7, "_acpd/auth/done", &json!({"agent":"gem"}));
    assert!(bench.stops.is_empty(), "a login");
    bench.heard();
    bench.refuse_prompt(a, 3, "s", "three", -32002);
    assert!(bench.stops.is_empty(), "a session that was forgotten");
    bench.send_update("t", &state("idle"));
    bench.ask(a, 8, "_acpd/auth/done", &json!({"agent":"gem"}));
    assert!(!bench.stops.is_empty());
}

#[test]
fn what_is_refused_for_old_credentials_wants_no_login() {
    let load = json!({"sessionId":"theirs","cwd":"/w","mcpServers":[]});
    let set = json!({"sessionId":"s","modeId":"m"});
    for (method, params) in [("session/set_mode", set), ("session/load", load)] {
        let (mut bench, a) = with_credentials();
        bench.pass(60_000);
        bench.ask(a, 5, method, &params);
        bench.refuses(method, -32000);
        assert_eq!((reason(&bench.answer(a, 5)), bench.stops.len()), ("interrupted", 1));
    }
}

#[test]
fn credentials_are_looked_up_anew_for_another_login() {
    let (mut bench, a) = refused(Bench::new());
    assert_eq!(bench.forgotten, 1, "one is wanted");
    bench.ask(a, 7, "_acpd/auth/done", &json!({"agent":AGENT}));
    assert_eq!(bench.forgotten, 2, "there is one");
}

/// An agent with two ways to log in that wants one in each process; a client has used the second. The process
/// after that has refused this.
fn wants_login_again(refused: &str) -> (Bench, ClientId) {
    let mut bench = Bench::loadable();
    bench.greeting = json!({"authMethods":[{"id":"m","name":"M"},{"id":"n","name":"N"}]});
    let a = bench.begin("s");
    bench.ask(a, 1, "authenticate", &json!({"methodId":"n"}));
    bench.answers("authenticate", &json!({}));
    bench.run_turn(a, 2, "s", "two");
    bench.prompt_after_crash(a, 3, "s", "three");
    if refused != "session/load" {
        bench.answers("session/load", &json!({}));
    }
    if refused == "session/new" {
        bench.end_prompt();
        bench.ask_session(a, 4);
    }
    bench.got(a);
    bench.refuses(refused, -32000);
    (bench, a)
}

#[test]
fn last_login_is_repeated_once_for_a_process_that_wants_one() {
    for refused in ["session/load", "session/prompt", "session/new"] {
        let (mut bench, a) = wants_login_again(refused);
        assert_eq!(bench.got(a).iter().filter(|line| line["id"].is_number()).count(), 0);
        let login = bench.heard_one("authenticate");
        assert_eq!(login["params"], json!({"methodId":"n"}), "{refused}");
        bench.agent_answers(&login, &json!({}));
        let again = bench.heard_one(refused);
        assert_eq!(state(&mut bench), "authenticated");
        // Once is enough.
        bench.agent_refuses(&again, -32000);
        assert_eq!(bench.heard(), Vec::<Value>::new(), "{refused}");
        assert_states(&mut bench, "expired", "needs_auth");
        let got = bench.got(a);
        assert!(got.iter().any(|line| reason(line) == "needs_login"), "{refused}: {got:?}");
    }
}

#[test]
fn login_that_fails_or_hangs_is_not_repeated_again() {
    for hangs in [false, true] {
        let (mut bench, a) = wants_login_again("session/load");
        let login = bench.heard_one("authenticate");
        if hangs {
            bench.pass(30_000);
        } else {
            bench.agent_refuses(&login, -32603);
        }
        bench.refuses("session/load", -32000);
        let got = bench.got(a);
        assert!(got.iter().any(|line| reason(line) == "needs_login"), "{got:?}");
        bench.prompt_after_crash(a, 5, "s", "five");
        bench.refuses("session/load", -32000);
        assert_eq!(bench.heard(), Vec::<Value>::new());
    }
}

#[test]
fn logout_forgets_the_login_that_would_be_repeated() {
    let (mut bench, a) = wants_login_again("session/load");
    bench.answers("authenticate", &json!({}));
    bench.answers("session/load", &json!({}));
    bench.end_prompt();
    bench.say(a, &json!({"id":6,"method":"logout"}));
    bench.answers("logout", &json!({}));
    bench.pass(20_000);
    bench.prompt_after_crash(a, 7, "s", "seven");
    bench.refuses("session/load", -32000);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}
