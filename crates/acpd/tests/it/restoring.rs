//! Restores after an agent died, and errors when they fail.

use acpd_test::harness::{Client, Config, TestEnv, kill9, reason, until};
use serde_json::Value;

use crate::{echo, home};

/// Kills the agent and waits until its successor is up or it is down for good.
fn kill_agent(env: &TestEnv) {
    let old = env.agent_pid("echo").expect("a running agent");
    kill9(old);
    until("the killed agent to be judged", || {
        let agent = env.agent("echo");
        let settled = matches!(agent["state"].as_str(), Some("ready" | "stopped"));
        (settled && agent["pid"] != old).then_some(())
    });
}

/// One client, one session `fix`, one turn.
fn talk(env: &TestEnv) -> (Client, String) {
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, "say #one").expect("an answer");
    (client, session)
}

fn notices(client: &Client, method: &str) -> Vec<Value> {
    client.seen().iter().filter(|m| m["method"] == method).cloned().collect()
}

// peers 6
#[test]
fn a_name_stays_with_its_conversation_when_the_agent_counts_from_zero_again() {
    let env = home([echo().flags("count-ids")]);
    let mut client = env.client("echo");
    let first = client.new_session(&env.work("main"), Some("first"));
    let second = client.new_session(&env.work("main"), Some("second"));
    assert_eq!((first.as_str(), second.as_str()), ("0", "1"));
    env.acpctl(&["session", "rm", "--yes", "first"]).success();
    kill_agent(&env);
    // The session was not on the agent's disk: the agent creates it again, and calls it `0` now.
    client.say(&second, "say #one").unwrap();
    assert_eq!(env.received("echo", "session/prompt")[0]["params"]["sessionId"], "0");
    assert!(client.said("1").contains("tags=one"), "{}", client.said("1"));
    let third = client.new_session(&env.work("main"), Some("third"));
    assert_ne!(third, second, "`1` is taken");
    client.say(&third, "say #two").unwrap();
    assert_eq!(env.received("echo", "session/prompt")[1]["params"]["sessionId"], "1");
    assert!(client.said(&third).contains("tags=two"), "{}", client.said(&third));
    let follow_up = env.acpctl(&["run", "-s", "second", "say #three"]).success();
    assert!(follow_up.stdout().contains("tags=one,three"), "{follow_up:?}");
}

// peers 6
#[test]
fn an_id_that_the_agent_gives_away_again_does_not_mix_two_conversations() {
    let env = home([echo().flags("count-ids no-load no-resume").set("on_lost", "\"stop\"")]);
    let (mut client, lost) = talk(&env);
    kill_agent(&env);
    let new = client.new_session(&env.work("main"), Some("new"));
    assert_ne!(new, lost, "the old one keeps its id");
    client.say(&new, "say #two").unwrap();
    assert!(client.said(&new).contains("tags=two"), "{}", client.said(&new));
    let error = client.say(&lost, "say #three").unwrap_err();
    assert_eq!(reason(&error), "session_lost", "{error}");
    assert!(env.said("fix").contains("tags=one"));
}

// peers 7
#[test]
fn a_conversation_that_cannot_come_back_is_lost_loudly_and_stays_readable() {
    let env = home([echo().flags("no-load no-resume").set("on_lost", "\"stop\"")]);
    let (mut client, session) = talk(&env);
    kill_agent(&env);
    let run = ["run", "-s", "fix", "say #two"];
    for _ in 0..2 {
        env.acpctl(&run).code(7).explains(&[
            "is lost: agent `echo` can neither resume nor load sessions",
            "`acpctl session reseed fix` continues in a new session",
        ]);
    }
    let told = client.next_of("_acpd/restored");
    assert_eq!(told["params"]["level"], "lost");
    assert_eq!(env.session("fix")["state"], "lost");
    assert_eq!(env.received("echo", "session/new").len(), 1, "no silent new conversation");
    let log = env.acpctl(&["session", "log", "fix"]).success();
    assert!(log.stdout().contains("You said: say #one"), "{log:?}");
    let error = client.say(&session, "say #two").unwrap_err();
    assert_eq!(reason(&error), "session_lost", "{error}");
    // Another conversation is not affected.
    env.acpctl(&["run", "-s", "docs", "say #one"]).success();
}

// peers 7
#[test]
fn an_agent_that_has_forgotten_a_conversation_does_not_get_a_new_one_in_its_place() {
    let env = home([echo().flags("forget").set("on_lost", "\"stop\"")]);
    let (_client, _) = talk(&env);
    kill_agent(&env);
    env.acpctl(&["run", "-s", "fix", "say #two"]).code(7).explains(&["is lost"]);
    assert_eq!(env.received("echo", "session/new").len(), 1);
}

// peers 8
#[test]
fn a_load_that_is_refused_twice_is_tried_a_third_time() {
    let env = home([echo().flags("no-resume load-fails-times=2")]);
    let (mut client, session) = talk(&env);
    kill_agent(&env);
    client.say(&session, "say #two").expect("an answer");
    assert!(client.said(&session).contains("tags=one,two"), "{}", client.said(&session));
    assert_eq!(env.received("echo", "session/load").len(), 3);
    assert_eq!(env.received("echo", "session/new").len(), 1);
    assert_eq!(env.session("fix")["restore"], "loaded");
}

// peers 8
#[test]
fn a_load_that_is_refused_for_good_is_no_reason_for_a_new_conversation() {
    let env = home([echo().flags("no-resume load-error=-32602")]);
    let (mut client, session) = talk(&env);
    kill_agent(&env);
    let error = client.say(&session, "say #two").unwrap_err();
    assert_eq!(reason(&error), "session_blocked", "{error}");
    let text = error.to_string();
    assert!(text.contains("load fails on demand") && text.contains("tries again"), "{text}");
    assert_eq!(env.received("echo", "session/new").len(), 1);
    // The agent learns better: the same name goes on.
    env.acpctl(&["daemon", "stop"]).success();
    env.configure(&Config::new([echo()]));
    let three = env.acpctl(&["run", "-s", "fix", "say #three"]).success();
    assert!(three.stdout().contains("tags=one,three"), "{three:?}");
}

#[test]
fn a_resume_that_was_only_promised_is_a_load() {
    let env = home([echo().flags("resume-lies")]);
    let (mut client, session) = talk(&env);
    for n in 1..=2 {
        kill_agent(&env);
        client.say(&session, "say #more").expect("an answer");
        assert_eq!(env.received("echo", "session/load").len(), n);
    }
    assert!(client.said(&session).contains("tags=one,more,more"));
    assert_eq!(env.received("echo", "session/resume").len(), 1, "a lie is remembered");
}

// peers 9
#[test]
fn a_long_replay_is_shown_and_journalled_not_once() {
    replay(&["no-resume replay-turns=1000"], "");
}

// peers 9
#[test]
fn a_replay_that_goes_on_after_the_load_is_still_a_replay() {
    replay(&["no-resume late-replay replay-turns=1000"], "late_replay");
}

fn replay(flags: &[&str], setting: &str) {
    let mut agent = echo().flags(&flags.join(" "));
    if !setting.is_empty() {
        agent = agent.set(setting, "true");
    }
    let env = home([agent]);
    let (mut client, session) = talk(&env);
    let before = env.journal("fix");
    let seen = client.view(&session).len();
    kill_agent(&env);
    client.say(&session, "say #two").expect("an answer");
    client.sync();
    assert!(client.said(&session).contains("tags=one,two"), "{}", client.said(&session));

    let journal = env.journal("fix");
    assert_eq!(journal[..before.len()], before[..], "what was there stays as it was");
    let added: Vec<_> = journal[before.len()..].iter().map(|(_, line)| line).collect();
    let told: String = added.iter().map(ToString::to_string).collect();
    assert!(
        !told.contains("earlier question") && !told.contains("\"text\":\"say #one\""),
        "{told}"
    );
    assert!(added.len() < 20, "{added:#?}");
    let news = client.view(&session).split_off(seen);
    assert!(news.len() <= added.len(), "{news:#?}");
    assert!(!client.seen().iter().any(|m| m.to_string().contains("earlier answer")));
    assert_eq!(notices(&client, "_acpd/restored").len(), 1);
    assert_eq!(env.session("fix")["restore"], "loaded");
}

#[test]
fn mode_and_options_are_set_again() {
    let env = home([echo().flags("reset-options")]);
    let (mut client, session) = talk(&env);
    let mode = serde_json::json!({"sessionId": session, "modeId": "code"});
    client.ok("session/set_mode", mode);
    let option =
        serde_json::json!({"sessionId": session, "configId": "model", "value": "demo-large"});
    client.ok("session/set_config_option", option);
    kill_agent(&env);
    client.say(&session, "say #two").expect("an answer");
    assert_eq!(env.received("echo", "session/set_mode").len(), 2);
    assert_eq!(env.received("echo", "session/set_config_option").len(), 2);
    let order: Vec<String> = env
        .record("echo")
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(&line.line).ok())
        .filter_map(|message| Some(message["method"].as_str()?.to_owned()))
        .filter(|method| method.starts_with("session/") && method != "session/update")
        .collect();
    assert_eq!(order.last().map(String::as_str), Some("session/prompt"), "{order:?}");
}
