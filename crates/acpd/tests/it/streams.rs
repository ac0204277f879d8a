//! Output of agents: out of order, polluted, giant.

use acpd_test::harness::{reason, rss, until};
use serde_json::Value;

use crate::{echo, home};

const MIB: u64 = 1 << 20;

// peers 18
#[test]
fn half_a_line_is_not_shown() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    let error = client.say(&session, "[chunks 2] [half]").unwrap_err();
    assert_eq!(reason(&error), "agent_exited", "{error}");
    assert_eq!(env.said("fix"), "line 1\nline 2\n");
    client.say(&session, "say #two").unwrap();
}

// peers 19
#[test]
fn a_line_of_20_mb_passes_and_one_of_70_mb_costs_only_itself() {
    let env = home([echo().unrecorded()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, "say #one").unwrap();
    let other = client.new_session(&env.work("other"), None);
    let (daemon, agent) = (env.daemon_pid(), env.agent_pid("echo"));
    let base = rss(daemon);

    client.say(&session, "[big 20000000] #two").unwrap();
    let is_big =
        |m: &Value| acpd_test::harness::chunk_text(m).is_some_and(|text| text.len() == 20_000_000);
    client.next("the line of 20 MB", is_big);

    let waits = client.prompt(&other, "[pause other] other");
    env.wait_point("other");
    client.say(&session, "[big 70000000] #three").expect("the turn itself goes on");
    let skipped = client.next_of("_acpd/skipped");
    assert!(skipped["params"]["bytes"].as_u64() > Some(64 * MIB), "{skipped}");
    assert_eq!(skipped["params"]["limit"], 64 * MIB);
    client.say(&session, "say #four").unwrap();
    env.release("other");
    assert_eq!(client.answer(waits).unwrap()["stopReason"], "end_turn");
    assert!(client.said(&session).contains("tags=one,two,three,four"));
    assert_eq!(env.agent_pid("echo"), agent, "the process was left alone");
    until("the daemon's memory to be back", || (rss(daemon) < base + 32 * MIB).then_some(()));
}
