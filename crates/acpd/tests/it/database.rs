//! A database that is removed or replaced under a running daemon.

use std::fs;
use std::path::PathBuf;

use acpd_test::harness::{TestEnv, exists, until};

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
    until("the store to work", || (env.status()["daemon"]["store"]["state"] == "ok").then_some(()));
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
