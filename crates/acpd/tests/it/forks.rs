//! Sessions that go on from where another one is.

use acpd_test::harness::{TestEnv, kill9, until};
use serde_json::json;

use crate::{echo, home};

fn kill_agent(env: &TestEnv) {
    let old = env.agent_pid("echo").expect("a running agent");
    kill9(old);
    until("the successor of the killed agent", || {
        let agent = env.agent("echo");
        (agent["state"] == "ready" && agent["pid"] != old).then_some(())
    });
}

/// Returns the user's messages in a session, as a client gets them that loads it.
fn shown(env: &TestEnv, session: &str) -> Vec<String> {
    let mut client = env.client("echo");
    let params = json!({"sessionId": session, "cwd": env.work("main"), "mcpServers": []});
    client.call("session/load", params).expect("it is loaded");
    let updates = client.seen().iter().map(|line| &line["params"]["update"]);
    let said = updates.filter(|update| update["sessionUpdate"] == "user_message_chunk");
    said.filter_map(|update| update["content"]["text"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_fork_and_its_session_go_on_apart_and_both_come_back() {
    // The session is loaded: a replay would show twice what is not distinguished from news.
    let env = home([echo().flags("no-resume")]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, "say #one").unwrap();
    let params = json!({"sessionId": session, "cwd": env.work("main")});
    let fork = client.call("session/fork", params).unwrap()["sessionId"].clone();
    let fork = fork.as_str().expect("an id").to_owned();
    client.say(&session, "say #old").unwrap();
    client.say(&fork, "say #new").unwrap();
    assert!(client.said(&fork).contains("tags=one,new"), "{}", client.said(&fork));
    assert!(client.said(&session).contains("tags=one,old"), "{}", client.said(&session));

    kill_agent(&env);
    client.say(&fork, "say #more").unwrap();
    assert!(client.said(&fork).contains("tags=one,new,more"), "{}", client.said(&fork));
    client.say(&session, "say #end").unwrap();
    assert!(client.said(&session).contains("tags=one,old,end"), "{}", client.said(&session));
    assert_eq!(shown(&env, &fork), ["say #one", "say #new", "say #more"]);
    assert_eq!(shown(&env, &session), ["say #one", "say #old", "say #end"]);
}

#[test]
fn a_fork_is_made_from_the_command_line_and_outlives_its_session() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let made = env.acpctl(&["session", "fork", "fix", "--name", "other"]).success();
    assert_eq!(env.session("other")["sessionId"], made.stdout().trim());
    env.acpctl(&["session", "fork", "fix", "--name", "other"]).code(2).explains(&["other"]);
    env.acpctl(&["session", "rm", "--yes", "fix"]).success();
    let two = env.acpctl(&["run", "-s", "other", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
    let log = env.acpctl(&["session", "log", "other"]).success();
    assert!(log.stdout().contains("You said: say #one"), "{log:?}");
    let found = env.acpctl(&["session", "search", "one"]).success();
    assert!(found.stdout().contains("other"), "{found:?}");
}

#[test]
fn a_fork_that_its_agent_dies_over_is_refused() {
    let env = home([echo().flags("crash-on=session/fork:1")]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.acpctl(&["session", "fork", "fix"]).code(6);
    assert_eq!(env.status()["sessions"].as_array().map(Vec::len), Some(1));
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
}

#[test]
fn an_agent_that_cannot_fork_is_not_asked_to() {
    let env = home([echo().flags("no-fork")]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.acpctl(&["session", "fork", "fix"]).code(1).explains(&["does not offer `session/fork`"]);
    assert!(env.received("echo", "session/fork").is_empty());
}
