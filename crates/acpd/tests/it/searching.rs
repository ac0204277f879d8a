//! `acpctl session search` with a daemon that keeps its index.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use acpd_test::harness::TestEnv;
use serde_json::Value;

use crate::{echo, home};

/// Names of the sessions and who said it, as they are found.
fn found(env: &TestEnv, args: &[&str]) -> Vec<(String, String)> {
    let args = [&["session", "search", "--json"], args].concat();
    let done = env.acpctl(&args).success();
    let result: Value = serde_json::from_str(done.stdout()).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let hits = result["hits"].as_array().expect("hits").iter();
    let mut found: Vec<_> =
        hits.map(|hit| (text(&hit["session"]["name"]), text(&hit["by"]))).collect();
    found.sort();
    found
}

fn pair(name: &str, by: &str) -> (String, String) {
    (name.to_owned(), by.to_owned())
}

#[test]
fn what_was_said_is_found_until_its_session_is_deleted() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one [tool Edit the file]"]).success();
    env.acpctl_in("other", &["run", "-s", "there", "say #one"]).success();
    let both =
        [pair("fix", "agent"), pair("fix", "user"), pair("there", "agent"), pair("there", "user")];
    assert_eq!(found(&env, &["say", "one"]), both);
    assert_eq!(found(&env, &["--here", "say", "one"]), both[..2]);
    assert!(found(&env, &["edit the fi*"]).contains(&pair("fix", "tool")));
    let shown = env.acpctl(&["session", "search", "--here", "edit"]).success();
    assert!(shown.stdout().contains("fix  echo  "), "{shown:?}");

    let renamed = env.acpctl(&["session", "rename", "fix", "mended"]).success();
    renamed.explains(&["is now named `mended`"]);
    assert_eq!(found(&env, &["--here", "one"]).first(), Some(&pair("mended", "agent")));
    env.acpctl(&["session", "rm", "--yes", "mended"]).success();
    assert_eq!(found(&env, &["one"]), both[2..]);
    env.acpctl(&["session", "search", "nowhere"]).success().explains(&["nothing found"]);
    env.acpctl(&["session", "search", "-a", "ehco", "one"]).code(3).explains(&["no agent", "echo"]);
    env.acpctl(&["session", "search", " "]).code(2).explains(&["no words"]);
}

#[test]
fn the_next_daemon_finds_what_the_last_one_did_not_index() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let index = env.path("state").join("search.db");
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "say #two [pause middle]"]);
    run.wait_stdout("paused at middle");
    assert_eq!(found(&env, &["two"]), [], "the turn is not over");
    assert_eq!(fs::metadata(&index).unwrap().permissions().mode() & 0o777, 0o600);
    env.kill_daemon();
    env.release("middle");
    run.finish().success();
    assert!(found(&env, &["two"]).contains(&pair("fix", "user")));

    env.kill_daemon();
    fs::write(&index, "no database").unwrap();
    assert!(found(&env, &["two"]).contains(&pair("fix", "user")));
    assert!(found(&env, &["one"]).contains(&pair("fix", "user")));
}
