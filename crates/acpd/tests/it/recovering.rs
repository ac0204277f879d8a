//! Agents that die or forget, and conversations that continue all the same.

use std::fs;

use acpd_test::harness::{kill9, reason};
use serde_json::Value;

use crate::{echo, home};

fn blocks(prompt: &Value) -> Vec<&str> {
    let blocks = prompt["params"]["prompt"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

#[test]
fn a_killed_agent_costs_half_an_answer_and_nothing_else() {
    let env = home([echo()]);
    let one = env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    assert!(one.stdout().contains("You said: say #one | history=0 tags=one"), "{one:?}");

    let mut two = env.spawn_acpctl(&["run", "-s", "fix", "say #two [chunks 3][pause middle]"]);
    env.wait_point("middle");
    two.wait_stdout("paused at middle");
    let old = env.agent_pid("echo").expect("a running agent");
    kill9(old);
    let two = two.finish().code(6).explains(&["agent `echo`", "was killed (SIGKILL)", "hint:"]);
    assert!(two.stdout().contains("line 3\npaused at middle"), "{two:?}");

    // The text that people saw of the broken answer is kept.
    assert!(env.said("fix").contains("line 1\nline 2\nline 3\npaused at middle"));

    let three = env.acpctl(&["run", "-s", "fix", "say #three"]).success();
    assert!(three.stdout().contains("history=2 tags=one,two,three"), "{three:?}");
    assert_ne!(env.agent_pid("echo"), Some(old));
    assert_eq!(env.session("fix")["restore"], "resumed");
    assert_eq!(env.received("echo", "session/new").len(), 1);
    assert_eq!(env.received("echo", "session/prompt").len(), 3, "no prompt is sent twice");
}

// peers 7
#[test]
fn a_forgotten_conversation_goes_on_with_a_summary_and_nobody_is_left_in_the_dark() {
    let env = home([echo().flags("forget")]);
    let mut plain = env.client_with(serde_json::json!({"agent": "echo"}));
    let session = plain.new_session(&env.work("main"), Some("fix"));
    plain.say(&session, "say #one").unwrap();
    env.kill_agent("echo");
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
    env.kill_agent("echo");
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

// peers 9
#[test]
fn a_long_and_late_replay_is_shown_and_journalled_not_once() {
    let late = echo().flags("no-resume late-replay replay-turns=1000").set("late_replay", "true");
    let env = home([late]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, "say #one").expect("an answer");
    let before = env.journal("fix");
    let seen = client.view(&session).len();
    env.kill_agent("echo");
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
    let told = client.seen().iter().filter(|line| line["method"] == "_acpd/restored");
    assert_eq!(told.count(), 1);
    assert_eq!(env.session("fix")["restore"], "loaded");
}

#[test]
fn a_load_that_fails_for_ever_is_given_up_by_a_person_and_goes_on_with_a_summary() {
    let env = home([echo().flags("no-resume no-list load-error=-32603")]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.kill_agent("echo");
    let way_out = ["could not be restored", "load fails on demand", "acpctl session reseed fix"];
    env.acpctl(&["run", "-s", "fix", "say #two"]).code(1).explains(&way_out);
    let shown = env.acpctl(&["session", "show", "fix"]).success();
    assert!(shown.stdout().contains("acpctl session reseed fix"), "{shown:?}");
    let ps = env.acpctl(&["ps"]).success();
    assert!(ps.stdout().contains("acpctl session reseed fix"), "{ps:?}");
    env.acpctl(&["session", "reseed", "fix"])
        .success()
        .explains(&["the next prompt of fix continues", "in a new session"]);
    // Told once, by the next run.
    let run = env.acpctl(&["run", "-s", "fix", "say #three"]).code(7);
    let run = run.explains(&["a person gave it up", "continues with a summary"]);
    assert!(run.stdout().contains("tags=one,one,three"), "the summary reached it: {run:?}");
    env.acpctl(&["run", "-s", "fix", "say #four"]).success();
    let log = env.acpctl(&["session", "log", "fix"]).success();
    assert!(log.stdout().contains("the previous session is given up"), "{log:?}");
    assert_eq!(env.session("fix")["restore"], "reseeded");
}

#[test]
fn an_agent_that_sees_other_directories_is_asked_all_the_same() {
    let env = home([echo().set("check_cwd", "false")]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.path("in-the-container"), Some("fix"));
    client.say(&session, "say #one").unwrap();
    env.kill_agent("echo");
    let done = client.say(&session, "say #two").unwrap();
    assert_eq!(done["stopReason"], "end_turn");
}
