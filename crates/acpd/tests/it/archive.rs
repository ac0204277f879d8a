//! Titles, the archive, and `session/status`.

use acpd_test::harness::until;
use serde_json::{Value, json};

use crate::{echo, home};

fn rows(out: &str) -> Vec<Vec<String>> {
    let rows = out.lines().skip(1);
    rows.map(|row| row.split_whitespace().take(3).map(str::to_owned).collect()).collect()
}

#[test]
fn a_session_goes_into_the_archive_and_comes_out_with_the_next_prompt() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let agent = env.agent_pid("echo");
    env.acpctl(&["session", "archive", "fix"]).success();
    // The answer does not wait for the agent.
    let told = || (env.received("echo", "session/close").len() == 1).then_some(());
    until("the agent to be told", told);
    assert_eq!(env.agent_pid("echo"), agent, "others may use it");
    let listed = env.acpctl(&["session", "ls"]).success();
    assert_eq!(listed.stdout(), "", "{listed:?}");
    for all in ["--archived", "--all"] {
        let listed = env.acpctl(&["session", "ls", all]).success();
        assert_eq!(rows(listed.stdout()), [["fix", "echo", "archived"]]);
    }
    // The conversation is there as before.
    let log = env.acpctl(&["session", "log", "fix"]).success();
    assert!(log.stdout().contains("tags=one"), "{log:?}");
    // Another daemon knows it, too.
    env.acpctl(&["daemon", "stop"]).success();
    assert_eq!(env.session("fix")["archived"], true);
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
    assert_eq!(rows(env.acpctl(&["session", "ls"]).success().stdout())[0][0], "fix");

    env.acpctl(&["session", "archive", "fix"]).success();
    env.acpctl(&["session", "unarchive", "fix"]).success().explains(&["fix is no longer archived"]);
    assert_eq!(env.session("fix")["state"], "closed");
    assert_eq!(rows(env.acpctl(&["session", "ls"]).success().stdout())[0][0], "fix");
}

#[test]
fn editors_title_archive_and_ask_about_sessions_without_waking_anybody() {
    let env = home([echo().set("idle_timeout", "\"100ms\"")]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.wait_agent("echo", "stopped");
    let mut editor = env.connect();
    let meta = json!({"_acpd": {"agent": "echo"}});
    let can = editor.ok("initialize", json!({"protocolVersion": 1, "_meta": meta}));
    let can = &can["agentCapabilities"]["sessionCapabilities"];
    assert_eq!(
        (&can["archive"], &can["status"], &can["title"]),
        (&json!({}), &json!({}), &json!({}))
    );
    let session = env.session("fix")["sessionId"].clone();
    let this = json!({"sessionId": session});
    assert_eq!(editor.ok("session/status", this.clone()), json!({"status": "saved"}));
    let title = json!({"sessionId": session, "title": "Say  one"});
    assert_eq!(editor.ok("session/set_title", title), json!({"title": "Say one"}));
    let listed = |params: Value, editor: &mut acpd_test::harness::Client| {
        editor.ok("session/list", params)["sessions"].clone()
    };
    let sessions = listed(json!({}), &mut editor);
    assert_eq!(
        (&sessions[0]["title"], &sessions[0]["archived"]),
        (&json!("Say one"), &json!(false))
    );
    assert_eq!(editor.ok("session/archive", this.clone()), json!({}));
    assert_eq!(listed(json!({}), &mut editor), json!([]));
    assert_eq!(listed(json!({"archived": "only"}), &mut editor)[0]["archived"], true);
    assert_eq!(editor.ok("session/unarchive", this), json!({}));
    assert_eq!(env.agent("echo")["state"], "stopped");

    // The agent gives it another title with each turn.
    env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert_eq!(env.session("fix")["title"], "Say one");
    env.acpctl(&["session", "title", "fix", "--clear"])
        .success()
        .explains(&["the title of fix is now `say #one`"]);
    assert_eq!(env.session("fix")["title"], "say #one");
}
