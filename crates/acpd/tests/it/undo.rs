//! Deleted sessions that come back, and those that do not.

use acpd_test::harness::Config;
use serde_json::json;

use crate::{echo, home, home_with};

#[test]
fn a_deleted_session_comes_back_over_a_restart_with_its_conversation() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.acpctl(&["session", "rm", "--yes", "fix"]).success().explains(&["acpctl session undo fix"]);
    let list = env.acpctl(&["session", "ls"]).success();
    assert!(!list.stdout().contains("fix"), "{list:?}");
    assert!(!env.acpctl(&["ps"]).success().stdout().contains("fix"));
    env.acpctl(&["session", "show", "fix"]).code(3);
    env.acpctl(&["session", "undo", "fax"]).code(3).explains(&["these can be brought back: `fix`"]);
    env.acpctl(&["daemon", "stop"]).success();

    env.acpctl(&["session", "undo"]).success().explains(&["restored fix"]);
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
    let log = env.acpctl(&["session", "log", "fix"]).success();
    assert!(log.stdout().contains("say #one") && log.stdout().contains("say #two"), "{log:?}");
    env.acpctl(&["session", "rm", "--yes", "--now", "fix"]).success();
    env.acpctl(&["session", "undo"]).code(3).explains(&["no deleted session is kept"]);
}

#[test]
fn without_a_time_to_keep_it_a_deleted_session_is_gone_at_once() {
    let env = home_with(&Config::new([echo()]).daemon("keep_deleted", "\"0s\""));
    env.acpctl(&["run", "-s", "fix", "say #gone"]).success();
    let removed = env.acpctl(&["session", "rm", "--yes", "fix"]).success();
    assert_eq!(removed.stderr(), "deleted fix\n");
    env.acpctl(&["session", "undo", "fix"]).code(3);
}

#[test]
fn what_an_editor_deletes_comes_back_with_its_conversation() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let mut editor = env.client("echo");
    let id = env.session("fix")["sessionId"].clone();
    editor.ok("session/delete", json!({"sessionId": id}));
    let list = editor.ok("session/list", json!({}));
    assert_eq!(list["sessions"], json!([]), "gone for the editor");
    editor
        .call("session/load", json!({"sessionId": id, "cwd": env.work("main"), "mcpServers": []}))
        .unwrap_err();
    env.acpctl(&["session", "undo"]).success().explains(&["restored fix"]);
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
}
