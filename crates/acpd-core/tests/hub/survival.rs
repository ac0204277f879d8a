//! The daemon dies, its processes live on.

use acpd_core::Input;
use acpd_core::ids::ClientId;
use acpd_core::record::TurnStage;
use serde_json::{Value, json};

use crate::bench::{Bench, client_line, words};
use crate::steps::{reason, selected};

pub(crate) const TOKEN: &str = "0123456789abcdef";

pub(crate) fn token() -> Value {
    json!({"notices":true,"client":{"token":TOKEN}})
}

/// A session with a running prompt of a client that comes back.
pub(crate) fn working() -> (Bench, Value) {
    let (mut bench, a) = Bench::with_shims().with_token();
    let prompt = bench.start_turn(a, 2, "s", "go");
    bench.got(a);
    (bench, prompt)
}

/// The only client of [`working`].
const FIRST: ClientId = ClientId(1);

/// The client connects again with these sessions, open requests and questions.
pub(crate) fn come_back(bench: &mut Bench, resume: &Value) -> (ClientId, Vec<Value>) {
    let mut resume = resume.clone();
    resume["generation"] = "".into();
    let client = bench.connect(&json!({"client":{"token":TOKEN,"resume":resume}}));
    (client, bench.got(client))
}

pub(crate) fn back(bench: &mut Bench, seq: u64, open: &Value) -> Vec<Value> {
    come_back(bench, &json!({"sessions":{"s":seq},"open":open,"asked":[]})).1
}

pub(crate) fn answer_of(lines: &[Value], id: &Value) -> Option<Value> {
    lines.iter().find(|line| line["id"] == *id && line.get("method").is_none()).cloned()
}

/// Stop reason in the answer to this prompt.
#[track_caller]
pub(crate) fn stop_reason(lines: &[Value], id: u64) -> String {
    let answer = answer_of(lines, &json!(id)).expect("answered");
    answer["result"]["stopReason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_turn_goes_on_over_the_death_of_the_daemon() {
    let (mut bench, prompt) = working();
    bench.chunk("s", "one");
    let head = bench.journal.values().next().expect("a journal").len() as u64;
    bench.reboot_unadopted();
    let content = json!({"type":"text","text":"two"});
    let update = json!({"sessionUpdate":"agent_message_chunk","content":content});
    let params = json!({"sessionId":"s","update":update});
    let said = bench.agent_says_unheard(&json!({"method":"session/update","params":params}));
    let end = json!({"id":prompt["id"],"result":{"stopReason":"end_turn"}});
    let ended = bench.agent_says_unheard(&end);
    bench.adopt();
    assert_eq!(bench.agent_state(), "ready");
    bench.feed(said);
    bench.feed(ended);
    let got = back(&mut bench, head, &json!([2]));
    assert_eq!(stop_reason(&got, 2), "end_turn");
    let chunks = words(&got).iter().filter(|word| *word == "agent_message_chunk").count();
    assert_eq!(chunks, 1, "the one that it has not seen");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    assert_eq!(bench.spawned.len(), 1);
    assert_eq!(bench.snapshot.turns.len(), 0);
}

#[test]
fn an_answer_waits_for_its_client_until_it_has_it() {
    let (mut bench, prompt) = working();
    bench.chunk("s", "one");
    bench.end_turn(&prompt);
    bench.reboot();
    let got = back(&mut bench, 0, &json!([2]));
    assert_eq!(stop_reason(&got, 2), "end_turn");
    let order = words(&got);
    let place = |word: &str| order.iter().position(|other| other == word).expect(word);
    assert!(place("result 2") > place("agent_message_chunk"), "behind the lines of its session");
    assert!(!order.contains(&"user_message_chunk".to_owned()), "its own words are for the others");
    assert_eq!(answer_of(&back(&mut bench, 9, &json!([])), &json!(2)), None, "it has it");
    assert_eq!(bench.snapshot.clients[TOKEN].replies.len(), 0);
}

#[test]
fn a_line_that_the_process_has_not_got_is_written_once() {
    let (mut bench, a) = Bench::with_shims().with_token();
    bench.writes = false;
    bench.prompt(a, &json!(2), "s", "go");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.writes = true;
    bench.reboot();
    let prompt = bench.heard_one("session/prompt");
    bench.reboot();
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it has it already");
    bench.end_turn(&prompt);
    assert_eq!(stop_reason(&back(&mut bench, 0, &json!([2])), 2), "end_turn");
}

#[test]
fn a_prompt_in_line_stays_in_line_and_its_sender_is_answered() {
    let (mut bench, first) = working();
    bench.prompt(FIRST, &json!(3), "s", "more");
    bench.reboot();
    let turns: Vec<_> = bench.snapshot.turns.values().map(|turn| turn.state.clone()).collect();
    assert!(matches!(turns[..], [TurnStage::Dispatched { .. }, TurnStage::Queued]));
    bench.end_turn(&first);
    bench.answers("session/prompt", &json!({"stopReason":"max_tokens"}));
    let got = back(&mut bench, 0, &json!([2, 3]));
    assert_eq!(stop_reason(&got, 2), "end_turn");
    assert_eq!(stop_reason(&got, 3), "max_tokens");
}

#[test]
fn a_question_stands_and_is_not_asked_twice() {
    let (mut bench, _) = working();
    bench.ask_permission(7, "s");
    let asked = bench.find(FIRST, "session/request_permission")["id"].clone();
    bench.reboot();
    let (client, got) =
        come_back(&mut bench, &json!({"sessions":{"s":0},"open":[2],"asked":[asked, 12345]}));
    assert!(!words(&got).contains(&"session/request_permission".to_owned()));
    let withdrawn: Vec<_> =
        got.iter().filter(|line| line["method"] == "$/cancel_request").collect();
    assert_eq!(withdrawn.len(), 1);
    assert_eq!(withdrawn[0]["params"]["requestId"], 12345);
    // Another client that attaches is asked, too; the first answer counts.
    let other = bench.plain();
    bench.ask(other, 1, "session/resume", &json!({"sessionId":"s","cwd":"/w"}));
    bench.expect_some(other, "session/request_permission");
    bench.select(client, &json!({"id":asked}), "y");
    assert_eq!(bench.heard(), [selected(7, "y")]);
}

#[test]
fn a_session_that_was_being_made_is_made() {
    let mut bench = Bench::with_shims();
    let a = bench.client(&token());
    bench.ask(a, "new", "session/new", &json!({"cwd":"/w","mcpServers":[]}));
    let request = bench.heard_one("session/new");
    bench.chunk("s", "early");
    bench.reboot();
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    let (client, got) = come_back(&mut bench, &json!({"sessions":{},"open":["new"],"asked":[]}));
    assert_eq!(answer_of(&got, &json!("new")).expect("answered")["result"]["sessionId"], "s");
    assert!(words(&got).contains(&"agent_message_chunk".to_owned()), "{got:?}");
    bench.chunk("s", "late");
    bench.expect_some(client, "agent_message_chunk");
}

#[test]
fn requests_that_changed_nothing_are_asked_again() {
    let (mut bench, _) = Bench::with_shims().with_token();
    bench.reboot();
    let (_, got) = come_back(&mut bench, &json!({"sessions":{},"open":["l", 5],"asked":[]}));
    let own = &got[0]["result"]["agentCapabilities"]["_meta"]["_acpd"];
    assert_eq!(own["again"], json!(["l", 5]));
    assert_eq!(own["received"], 1);
}

#[test]
fn a_cancel_that_was_given_still_has_its_time_limit() {
    let (mut bench, _) = working();
    bench.cancel_turn(FIRST);
    bench.reboot();
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it is not sent twice");
    bench.pass(10_000);
    assert_eq!(bench.stops.len(), 1, "the agent ignores it");
}

#[test]
fn an_agent_that_was_being_stopped_is_stopped() {
    let (mut bench, _) = working();
    bench.ask(FIRST, 9, "_acpd/agent/stop", &json!({"agent":"gem"}));
    bench.pass(4_000);
    bench.reboot();
    bench.pass(60_000);
    bench.agent_dies();
    assert_eq!(bench.agent_state(), "stopped");
    assert_eq!(bench.spawned.len(), 1);
}

#[test]
fn a_process_that_started_while_the_daemon_died_is_told_hello() {
    let mut bench = Bench::with_shims();
    bench.capabilities = None;
    let a = bench.connect(&token());
    bench.got(a);
    assert_eq!(bench.spawned.len(), 1);
    bench.reboot();
    bench.heard_one("initialize");
}

#[test]
fn a_crash_while_no_daemon_was_there_is_a_crash() {
    let (mut bench, _) = working();
    bench.reboot();
    bench.agent_dies();
    let got = back(&mut bench, 0, &json!([2]));
    assert_eq!(reason(&answer_of(&got, &json!(2)).expect("answered")), "agent_exited");
    bench.pass(1_000);
    assert_eq!(bench.spawned.len(), 2);
}

#[test]
fn a_client_that_is_away_for_too_long_is_forgotten() {
    let (mut bench, prompt) = working();
    bench.reboot();
    bench.pass(3_600_001);
    assert_eq!(bench.snapshot.clients.len(), 0);
    bench.end_turn(&prompt);
    assert_eq!(bench.snapshot.clients.len(), 0);
    let got = back(&mut bench, 0, &json!([2]));
    let own = &got[0]["result"]["agentCapabilities"]["_meta"]["_acpd"];
    assert_eq!(own["received"], 0, "it is a new one");
}

#[test]
fn a_lost_connection_is_come_back_from_without_a_restart() {
    let (mut bench, prompt) = working();
    bench.leave(FIRST);
    bench.chunk("s", "meanwhile");
    let got = back(&mut bench, 2, &json!([2]));
    assert!(words(&got).contains(&"agent_message_chunk".to_owned()));
    bench.end_turn(&prompt);
    assert_eq!(stop_reason(&bench.got(ClientId(2)), 2), "end_turn");
}

#[test]
fn a_busy_process_has_the_longer_lease() {
    let (mut bench, prompt) = working();
    bench.end_turn(&prompt);
    assert_eq!(bench.leases, [true, false]);
    bench.reboot();
    assert_eq!(bench.leases, [true, false, false]);
}

#[test]
fn the_daemon_leaves_alone_or_starts_again() {
    let (mut bench, _) = working();
    bench.ask(FIRST, 9, "_acpd/daemon/stop", &json!({"detach":true}));
    assert_eq!(bench.left, Some(false));
    bench.say(FIRST, &json!({"id":10,"method":"_acpd/daemon/restart"}));
    assert_eq!(bench.left, Some(true));
    assert_eq!(bench.stops, [], "agents go on");
}

#[test]
fn a_daemon_that_is_told_to_stop_is_not_started_again() {
    let (mut bench, _) = working();
    assert!(bench.hub.refuses_restart().is_none());
    bench.say(FIRST, &json!({"id":9,"method":"_acpd/daemon/stop"}));
    assert!(bench.hub.refuses_restart().is_some());
    bench.got(FIRST);
    bench.say(FIRST, &json!({"id":10,"method":"_acpd/daemon/restart"}));
    assert_eq!(bench.left, None);
    assert_eq!(reason(&bench.answer(FIRST, 10)), "shutting_down");
}

#[test]
fn a_daemon_that_is_told_to_stop_says_goodbye() {
    for by_person in [true, false] {
        let (mut bench, _) = working();
        // The client cannot resume, and must start no other daemon.
        let watcher = bench.open();
        bench.say(watcher, &json!({"id":1,"method":"_acpd/watch"}));
        if by_person {
            bench.say(FIRST, &json!({"id":9,"method":"_acpd/daemon/stop"}));
        } else {
            // After a stop by the system, or for a restart, clients resume.
            bench.feed(Input::Stop);
        }
        bench.pass(60_000);
        assert!(!bench.exited);
        bench.agent_dies();
        assert!(bench.exited);
        let goodbye = "_acpd/daemon/stopped".to_owned();
        for client in [FIRST, watcher] {
            assert_eq!(words(&bench.got(client)).contains(&goodbye), by_person);
        }
    }
}

#[test]
fn a_line_whose_effects_are_committed_is_counted_with_them() {
    let mut bench = Bench::with_shims();
    let a = bench.client(&token());
    let params = json!({"cwd":"/w","mcpServers":[]});
    let line = json!({"id":"new","method":"session/new","params":params}).to_string();
    // The store begins to fail between the line and the end of its batch.
    let mut batch = acpd_core::Batch::default();
    let now = acpd_core::ids::Time(bench.now);
    bench.hub.handle(now, client_line(a, line), &mut batch);
    let failing = Input::StoreFailing { reason: "disk full".to_owned(), hint: None };
    bench.hub.handle(now, failing, &mut batch);
    bench.run_batch(batch);
    bench.feed(Input::StoreWorks);
    bench.heard_one("session/new");
    assert_eq!(bench.snapshot.clients[TOKEN].received, 1, "or it would run again");
}
