//! Turns that are cancelled, that hang, that are silent.

use acpd_test::harness::{Config, Direction, until};
use serde_json::Value;

use crate::{echo, home};

fn methods(env: &acpd_test::harness::TestEnv) -> Vec<String> {
    let lines = env.record("echo").into_iter().filter(|line| line.dir == Direction::In);
    lines
        .filter_map(|line| serde_json::from_str::<Value>(&line.line).ok())
        .filter_map(|message| Some(message["method"].as_str()?.to_owned()))
        .collect()
}

// peers 15
#[test]
fn an_agent_that_ignores_a_cancel_is_stopped_and_the_next_prompt_answered() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, "say #one").unwrap();
    let old = env.agent_pid("echo");
    let hung = client.prompt(&session, "#two [chunks 1] [hang]");
    client.hear("line 1");
    client.cancel(&session);
    let next = client.prompt(&session, "say #three");
    assert_eq!(client.answer(hung).unwrap()["stopReason"], "cancelled");
    assert_eq!(client.answer(next).unwrap()["stopReason"], "end_turn");
    assert!(client.said(&session).contains("tags=one,two,three"), "{}", client.said(&session));
    assert_ne!(env.agent_pid("echo"), old);
}

// peers 15
#[test]
fn an_agent_that_ignores_everything_does_not_wedge_its_session() {
    let stubborn = echo()
        .flags("ignore-eof ignore-term")
        .set("stop.eof", "\"50ms\"")
        .set("stop.term", "\"50ms\"");
    let env = home([stubborn]);
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "#one [child] [hang]"]);
    run.wait_stdout("child");
    run.interrupt();
    run.finish().code(130);
    let next = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(next.stdout().contains("tags=one,two"), "{next:?}");
}

// peers 16
#[test]
fn a_cancel_of_an_idle_session_is_not_forwarded() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), None);
    client.say(&session, "say #one").unwrap();
    client.cancel(&session);
    let two = client.say(&session, "say #two").unwrap();
    assert_eq!(two["stopReason"], "end_turn");
    assert!(!methods(&env).contains(&"session/cancel".to_owned()), "{:?}", methods(&env));
}

// peers 16
#[test]
fn a_prompt_right_after_a_cancel_waits_for_the_end_of_the_cancelled_turn() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), None);
    for round in 0..10 {
        let first = client.prompt(&session, &format!("[hang-cancel] first{round}"));
        client.cancel(&session);
        let second = client.prompt(&session, &format!("second{round}"));
        assert_eq!(client.answer(first).unwrap()["stopReason"], "cancelled");
        assert_eq!(client.answer(second).unwrap()["stopReason"], "end_turn");
    }
    client.sync();
    let said = client.said(&session);
    for round in 0..10 {
        assert!(said.contains(&format!("You said: second{round}")), "{said}");
    }
    // Each cancel came to a turn that was running, and no two turns overlapped.
    let mut running = false;
    for line in env.record("echo") {
        let message: Value = serde_json::from_str(&line.line).unwrap_or_default();
        match (line.dir, message["method"].as_str()) {
            (Direction::In, Some("session/prompt")) => {
                assert!(!running, "two turns at once");
                running = true;
            }
            (Direction::In, Some("session/cancel")) => assert!(running, "an idle cancel"),
            (Direction::Out, None) if message["result"]["stopReason"].is_string() => {
                running = false;
            }
            _ => {}
        }
    }
}

// peers 16
#[test]
fn a_chunk_that_comes_late_belongs_to_no_new_turn() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, "one [late-chunk]").unwrap();
    client.hear("late chunk");
    client.say(&session, "two").unwrap();
    let journal = env.journal("fix");
    let place = |what: &str, fits: &dyn Fn(&Value) -> bool| {
        journal.iter().position(|(_, line)| fits(line)).unwrap_or_else(|| panic!("no {what}"))
    };
    let turn = |n: u64, method: &'static str| {
        move |line: &Value| line["method"] == method && line["params"]["turn"] == n
    };
    let ended = place("end", &turn(1, "_acpd/turn_ended"));
    let late = place("chunk", &|line| line.to_string().contains("late chunk\\n"));
    let started = place("start", &turn(2, "_acpd/turn_started"));
    assert!(ended < late && late < started, "{ended} {late} {started}");
}

// peers 17
#[test]
fn a_silent_turn_is_told_as_stalled_and_never_as_done() {
    let env = home([echo().set("stall_notice", "\"150ms\"")]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    let silent = client.prompt(&session, "[hang-cancel]");
    let notice = client.next_of("_acpd/notice");
    assert_eq!(notice["params"]["sessionId"], session.as_str());
    assert!(notice["params"]["text"].as_str().unwrap().contains("stalled"), "{notice}");
    assert_eq!(env.session("fix")["turn"]["state"], "working");
    client.cancel(&session);
    assert_eq!(client.answer(silent).unwrap()["stopReason"], "cancelled");
    assert_eq!(env.session("fix")["turn"]["last"], "cancelled");
}

// peers 17
#[test]
fn a_slow_turn_that_talks_is_left_alone() {
    let env = home([echo().set("stall_notice", "\"1s\"")]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), None);
    let done = client.say(&session, "[slow 12] done").unwrap();
    assert_eq!(done["stopReason"], "end_turn");
    client.sync();
    assert!(!client.seen().iter().any(|message| message["method"] == "_acpd/notice"));
}

#[test]
fn prompts_wait_in_line_and_are_told_so() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), None);
    let first = client.prompt(&session, "[pause first] one");
    env.wait_point("first");
    let second = client.prompt(&session, "two");
    let third = client.prompt(&session, "three");
    let ahead: Vec<Value> =
        (0..2).map(|_| client.next_of("_acpd/prompt_queued")["params"]["ahead"].clone()).collect();
    assert_eq!(ahead, [1, 2]);
    assert_eq!(env.received("echo", "session/prompt").len(), 1);
    env.release("first");
    for id in [first, second, third] {
        assert_eq!(client.answer(id).unwrap()["stopReason"], "end_turn");
    }
    let said = client.said(&session);
    let places = ["said: one", "said: two", "said: three"].map(|text| said.find(text));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{said}");
}

#[test]
fn ctrl_c_cancels_the_turn() {
    let env = home([echo()]);
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "[chunks 2] [pause here] never"]);
    run.wait_stdout("paused at here");
    run.interrupt();
    run.finish().code(130).explains(&["cancelled"]);
    until("the session to be idle", || {
        Some(env.session("fix")).filter(|session| session["turn"]["state"] == "idle")
    });
    assert_eq!(env.session("fix")["turn"]["last"], "cancelled");
}

#[test]
fn a_turn_that_ends_without_a_word_is_told_as_failed_where_that_is_known() {
    let env = home([echo()]);
    env.acpctl(&["run", "[stop end_turn]"]).success();
    env.acpctl(&["daemon", "stop"]).success();
    env.configure(&Config::new([echo().set("empty_turn", "\"failed\"")]));
    let run = env.acpctl(&["run", "-s", "fix", "[stop end_turn]"]).code(1);
    run.explains(&["without a word", "model provider"]);
    assert_eq!(env.session("fix")["turn"]["last"], "error");
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
}

#[test]
fn a_turn_is_left_waited_for_and_cancelled_from_other_terminals() {
    let env = home([echo()]);
    // No client is attached, and the sender of the queued prompt is gone.
    let begun = env.acpctl(&["run", "--detach", "-s", "fix", "#one [pause here]"]).success();
    let id = begun.stdout().trim().to_owned();
    env.acpctl(&["run", "--detach", "-s", "fix", "say #two"]).success();
    env.acpctl(&["wait", "fix", "--timeout", "200ms"]).code(124);
    env.acpctl(&["session", "rm", "--yes", "fix"])
        .code(1)
        .explains(&["is working or has queued prompts"]);
    env.acpctl(&["cancel", &id, "--turn"]).success();
    let rest = env.acpctl(&["attach", "fix", "--until-idle"]).success();
    assert!(rest.stdout().contains("tags=one,two"), "{rest:?}");
    let answer = env.acpctl(&["session", "log", "fix", "--last", "--answer"]).success();
    assert!(answer.stdout().starts_with("You said: say #two"), "{answer:?}");

    env.acpctl(&["run", "--detach", "--resume", "fix", "#three [pause there]"]).success();
    env.acpctl(&["run", "--detach", "--resume", "fix", "say #four"]).success();
    env.acpctl(&["cancel", "-"]).success().explains(&["removed 1 queued prompt"]);
    let done = env.acpctl(&["wait", "fix"]).code(130);
    assert_eq!(done.stdout(), "fix cancelled\n");
    env.acpctl(&["cancel", "fix"]).code(1).explains(&["no turn is running in session `fix`"]);
}
