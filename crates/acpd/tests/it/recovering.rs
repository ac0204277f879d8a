//! Bad days with a way out: what cannot come back, what moved, what hangs. `docs/recovery.md` names
//! the tests of each.

use std::fs;

use acpd_test::harness::{TestEnv, kill9, reason, until};
use serde_json::Value;

use crate::{echo, home};

fn kill_agent(env: &TestEnv) {
    let old = env.agent_pid("echo").expect("a running agent");
    kill9(old);
    until("the next process", || env.agent_pid("echo").filter(|pid| *pid != old));
}

fn outcomes(env: &TestEnv, session: &str) -> Vec<String> {
    let lines = env.journal(session);
    let ended = lines.iter().filter(|(_, line)| line["method"] == "_acpd/turn_ended");
    ended.map(|(_, line)| line["params"]["outcome"]["kind"].to_string()).collect()
}

fn blocks(prompt: &Value) -> Vec<&str> {
    let blocks = prompt["params"]["prompt"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

// peers 7
#[test]
fn a_forgotten_conversation_goes_on_with_a_summary_and_nobody_is_left_in_the_dark() {
    let env = home([echo().flags("forget")]);
    let mut plain = env.client_with(serde_json::json!({"agent": "echo"}));
    let session = plain.new_session(&env.work("main"), Some("fix"));
    plain.say(&session, "say #one").unwrap();
    kill_agent(&env);
    let run = env.acpctl(&["run", "-s", "fix", "say #two"]).code(7);
    let run = run.explains(&["could not be restored", "continues with a summary"]);
    assert!(run.stdout().contains("tags=one,one,two"), "the summary reached it: {run:?}");
    let prompts = env.received("echo", "session/prompt");
    let said = blocks(prompts.last().unwrap());
    assert!(said[0].contains("My last request was:\nsay #one"), "{said:?}");
    assert!(said[0].contains("You said: say #one"), "{said:?}");
    assert_eq!(said[1..], ["say #two"]);
    // An editor that is shown no notices is told in the conversation.
    plain.sync();
    assert!(plain.said(&session).contains("[acpd] The previous session could not be restored"));
    assert_eq!(env.session("fix")["restore"], "reseeded");
    assert_eq!(env.session("fix")["sessionId"], session.as_str(), "its id stays");
    let log = env.acpctl(&["session", "log", "fix"]).success();
    assert!(log.stdout().contains("could not be restored: the agent"), "{log:?}");
    // From here on it is a conversation like any other.
    let run = env.acpctl(&["run", "-s", "fix", "say #three"]).success();
    assert!(run.stdout().contains("three"), "{run:?}");
    let prompts = env.received("echo", "session/prompt");
    assert_eq!(blocks(prompts.last().unwrap()), ["say #three"]);
}

#[test]
fn forgotten_session_gets_the_transcript_if_configured() {
    let env = home([echo().flags("forget").set("reseed", "\"transcript\"")]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, "say #one").unwrap();
    client.say(&session, "say #two").unwrap();
    kill_agent(&env);
    env.acpctl(&["run", "-s", "fix", "say #three"]).code(7);
    let prompts = env.received("echo", "session/prompt");
    let said = blocks(prompts.last().unwrap());
    let said_before = [
        "I said:\n> say #one\n\nYou answered:\n> ",
        "\n\nI said:\n> say #two\n\nYou answered:\n> ",
    ];
    assert!(said_before.iter().all(|before| said[0].contains(before)), "{said:?}");
    assert!(!said[0].contains("say #three") && said[1..] == ["say #three"], "{said:?}");
    // The transcript is no part of the journal, so the next one does not have it again.
    kill_agent(&env);
    env.acpctl(&["run", "-s", "fix", "say #four"]).code(7);
    let prompts = env.received("echo", "session/prompt");
    let said = blocks(prompts.last().unwrap());
    assert_eq!(said[0].matches("\nI said:\n").count(), 3, "{said:?}");
}

#[test]
fn an_agent_that_was_killed_in_a_turn_goes_on_if_it_may() {
    let env = home([echo().set("on_interrupted", "\"continue\"")]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, "#two [crash]").unwrap_err();
    client.next("the end of acpd's own turn", |line| {
        line["method"] == "_acpd/turn_ended" && line["params"]["turn"] == 2
    });
    let prompts = env.received("echo", "session/prompt");
    assert_eq!(prompts.len(), 2);
    assert_eq!(blocks(&prompts[1]), [acpd_core::GO_ON]);
    assert_eq!(outcomes(&env, "fix"), ["\"interrupted\"", "\"stopped\""]);
    let log = env.acpctl(&["session", "log", "fix"]).success();
    assert!(log.stdout().contains("acpd asks the agent to continue"), "{log:?}");
}

// peers 11
#[test]
fn a_session_whose_directory_is_gone_waits_and_goes_on_where_it_was_moved() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let old = env.work("old");
    let session = client.new_session(&old, Some("fix"));
    client.say(&session, "say #one").unwrap();
    let other = client.new_session(&env.work("main"), Some("docs"));
    client.say(&other, "say #one").unwrap();
    let new = env.path("work").join("new");
    fs::rename(&old, &new).unwrap();
    kill_agent(&env);
    let error = client.say(&session, "say #two").unwrap_err();
    assert_eq!(reason(&error), "cwd_missing", "{error}");
    assert_eq!(env.session("fix")["state"], "blocked");
    env.acpctl(&["run", "-s", &session, "say #two"])
        .code(3)
        .explains(&["does not exist", "acpctl session move fix --cwd DIR"]);
    client.say(&other, "say #two").expect("others are not affected");
    // The directory is back: nothing has to be done.
    fs::rename(&new, &old).unwrap();
    client.say(&session, "say #two").unwrap();
    // The directory moves for good.
    fs::rename(&old, &new).unwrap();
    env.acpctl(&["session", "move", &session, "--cwd", new.to_str().unwrap()])
        .success()
        .explains(&["fix now works in", "work/new"]);
    client.say(&session, "say #three").unwrap();
    assert!(client.said(&session).contains("tags=one,two,three"), "{}", client.said(&session));
    let load = env.received("echo", "session/resume");
    assert_eq!(load.last().unwrap()["params"]["cwd"], new.to_str().unwrap());
}

#[test]
fn a_session_in_a_directory_that_does_not_exist_is_not_begun() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let params = serde_json::json!({"cwd": env.path("nowhere"), "mcpServers": []});
    let error = client.call("session/new", params).unwrap_err();
    assert_eq!(reason(&error), "cwd_missing", "{error}");
    assert_eq!(env.received("echo", "session/new").len(), 0);
}

#[test]
fn an_agent_that_sees_other_directories_is_asked_all_the_same() {
    let env = home([echo().set("check_cwd", "false")]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.path("in-the-container"), Some("fix"));
    client.say(&session, "say #one").unwrap();
    kill_agent(&env);
    let done = client.say(&session, "say #two").unwrap();
    assert_eq!(done["stopReason"], "end_turn");
}

// peers 15
#[test]
fn a_turn_that_ignores_the_end_of_its_session_does_not_run_beside_the_next_one() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, "say #one").unwrap();
    let old = env.agent_pid("echo");
    let hung = client.prompt(&session, "#two [chunks 1] [hang]");
    client.hear("line 1");
    env.acpctl(&["session", "close", "fix"]).success();
    client.answer(hung).unwrap_err();
    let run = env.acpctl(&["run", "-s", "fix", "say #three"]).success();
    assert!(run.stdout().contains("tags=one,two,three"), "{run:?}");
    assert_ne!(env.agent_pid("echo"), old, "who does not end a turn is ended");
}

// peers 15
#[test]
fn a_cancel_that_was_ignored_is_an_outcome_of_its_own() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    let hung = client.prompt(&session, "#one [chunks 1] [hang]");
    client.hear("line 1");
    client.cancel(&session);
    assert_eq!(client.answer(hung).unwrap()["stopReason"], "cancelled");
    assert_eq!(outcomes(&env, "fix"), ["\"unwedged\""]);
    assert_eq!(env.session("fix")["turn"]["last"], "unwedged");
    let log = env.acpctl(&["session", "log", "fix"]).success();
    assert!(log.stdout().contains("ignored a cancel for 300 ms and was stopped"), "{log:?}");
}
