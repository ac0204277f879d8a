//! A database that is removed or replaced under a running daemon.

use std::fs;
use std::path::PathBuf;

use acpd_test::harness::{TestEnv, exists, kill9, reason, until};

use crate::{echo, home};

/// The database, moved to another name and back.
struct Moved {
    from: PathBuf,
    to: PathBuf,
}

impl Moved {
    fn away(env: &TestEnv) -> Moved {
        let from = env.path("state").join("acpd.db");
        let moved = Moved { to: from.with_extension("aside"), from };
        fs::rename(&moved.from, &moved.to).unwrap();
        moved
    }

    /// Moved with another file in its place at once: the daemon looks at any time, and must not see that there is none.
    fn replaced(env: &TestEnv, text: &str) -> Moved {
        let from = env.path("state").join("acpd.db");
        let (to, other) = (from.with_extension("aside"), from.with_extension("other"));
        fs::write(&other, text).unwrap();
        fs::hard_link(&from, &to).unwrap();
        fs::rename(&other, &from).unwrap();
        Moved { from, to }
    }

    fn back(&self) {
        fs::rename(&self.to, &self.from).unwrap();
    }
}

/// Returns the daemon's reason why its journal cannot be written.
fn failure(env: &TestEnv) -> String {
    until("the daemon to notice", || {
        let store = env.status()["daemon"]["store"].clone();
        (store["state"] == "failing").then(|| store["reason"].as_str().unwrap().to_owned())
    })
}

fn wait_works(env: &TestEnv) {
    until("the store to work", || (env.status()["daemon"]["store"]["state"] == "ok").then_some(()));
}

#[test]
fn l14_a_database_that_is_removed_is_noticed_while_nothing_happens_and_agents_go_on() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    let turn = client.prompt(&session, "#one [pause middle] and [count 50]");
    client.hear("paused at middle");
    let agent = env.agent_pid("echo");

    let database = Moved::away(&env);
    let told = failure(&env);
    assert!(told.contains("acpd.db` was removed while acpd runs"), "{told}");
    let shown = env.acpctl(&["ps"]).success();
    assert!(shown.stdout().contains("hint: put that same file back"), "{shown:?}");
    env.acpctl(&["run", "-s", "docs", "hello"])
        .code(1)
        .explains(&["was removed", "hint: put that"]);
    env.release("middle");
    assert_eq!(env.agent_pid("echo"), agent, "it is the same process");

    database.back();
    assert_eq!(client.answer(turn).unwrap()["stopReason"], "end_turn");
    wait_works(&env);
    assert_eq!(env.said("fix"), client.said(&session), "all is kept");
}

#[test]
fn a_stop_ends_the_agents_of_a_database_that_is_gone_as_well() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let (old, agent) = (env.shims(), env.agent_pid("echo").unwrap());
    assert_eq!(old.len(), 1);
    let database = Moved::away(&env);
    failure(&env);
    env.acpctl(&["daemon", "restart"]).success();
    assert!(exists(agent), "its database may come back");
    env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    env.acpctl(&["daemon", "stop"]).success().explains(&["acpd stopped"]);
    assert!(!exists(agent) && !exists(old[0].pid), "nothing is left");
    drop(database);
}

#[test]
fn l14_a_restart_goes_on_with_the_database_that_is_there_if_that_is_one() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let old = env.shims();
    let (since, agent) = (env.status()["daemon"]["since"].clone(), env.agent_pid("echo"));
    let database = Moved::replaced(&env, "no database");
    let told = failure(&env);
    assert!(told.contains("acpd.db` was replaced while acpd runs"), "{told}");
    env.acpctl(&["daemon", "restart"]).code(1).explains(&["not restarted", "acpd.db"]);
    assert_eq!((env.status()["daemon"]["since"].clone(), env.agent_pid("echo")), (since, agent));
    assert_eq!(fs::read_to_string(&database.from).unwrap(), "no database");

    fs::remove_file(&database.from).unwrap();
    env.acpctl(&["daemon", "restart"]).success();
    wait_works(&env);
    assert_eq!(env.status()["sessions"].as_array().map(Vec::len), Some(0));
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=two"), "{two:?}");
    // Agents of the journal that was moved away belong to it.
    for shim in old {
        kill9(shim.pid);
    }
}

#[test]
fn l14_a_database_that_was_emptied_is_not_taken_for_a_new_one() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.acpctl(&["daemon", "stop"]).success();
    fs::write(env.path("state").join("acpd.db"), "").unwrap();
    let refused = env.acpctl(&["daemon", "start"]).code(1);
    refused.explains(&["is empty, but it held a journal before", "hint: put a backup"]);
}

#[test]
fn l12_a_prompt_that_meets_a_database_that_is_gone_is_answered_at_once() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    let database = Moved::away(&env);
    // Either it is the first to notice, or it comes after that was noticed.
    let refused = client.say(&session, "say #one").unwrap_err();
    assert!(["outcome_unknown", "store_failed"].contains(&reason(&refused)), "{refused}");
    assert!(refused.to_string().contains("was removed while acpd runs"), "{refused}");
    database.back();
    wait_works(&env);
    assert_eq!(client.say(&session, "say #two").unwrap()["stopReason"], "end_turn");
}
