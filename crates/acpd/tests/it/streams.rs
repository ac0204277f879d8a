//! Output of agents: out of order, polluted, giant.

use acpd_test::harness::{Config, Running, reason, rss, until};
use serde_json::{Value, json};

use crate::{echo, home, home_with};

const MIB: u64 = 1 << 20;

// peers 10
#[test]
fn an_update_that_comes_before_the_answer_to_session_new_is_shown_after_it() {
    let env = home([echo().flags("early-updates")]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    let is_update = |m: &Value| {
        m["params"]["update"]["sessionUpdate"] == "available_commands_update"
            && m["params"]["sessionId"] == session.as_str()
    };
    client.next("the early update", is_update);
    let place = |fits: &dyn Fn(&Value) -> bool| client.seen().iter().position(fits);
    let answered = place(&|m| m["result"]["sessionId"] == session.as_str());
    assert!(answered < place(&is_update), "{:?}", client.seen());
    assert_eq!(env.journal("fix").iter().filter(|(_, line)| is_update(line)).count(), 1);
}

// peers 18
#[test]
fn noise_on_stdout_costs_nothing_but_itself() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    let done = client.say(&session, "[noise] say #one").unwrap();
    assert_eq!(done["stopReason"], "end_turn");
    let said = client.said(&session);
    for text in ["glued to a window title", "ends with CRLF", "starts with a BOM", "tags=one"] {
        assert!(said.contains(text), "{text} is missing: {said}");
    }
    assert_eq!(env.said("fix"), said);
    let log = env.acpctl(&["agent", "logs", "echo"]).success();
    assert_eq!(log.stdout().matches("skipped a line").count(), 4, "told in the log: {log:?}");
}

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

#[test]
fn what_acpd_does_not_know_passes_through() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), None);
    client.say(&session, "[unknown-update] [ext]").unwrap();
    client.next("the unknown update", |m| m["params"]["update"]["novelty"] == 1);
    client.next("the extension", |m| m["method"] == "_vendor/thing" && m["params"]["thing"] == 1);
    client.next("the global one", |m| m["method"] == "_vendor/thing" && m["params"]["thing"] == 2);
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

// peers 19
#[test]
fn a_line_of_a_client_over_the_limit_fails_its_request_and_nothing_else() {
    let env = home_with(&Config::new([echo()]).daemon("line_limit", "\"64KiB\""));
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), None);
    let prompt = json!([{"type": "text", "text": "y".repeat(100_000)}]);
    let params = json!({"sessionId": session, "prompt": prompt});
    client
        .send(&json!({"id": 7777, "jsonrpc": "2.0", "method": "session/prompt", "params": params}));
    let error = client.answer(7777).unwrap_err();
    assert_eq!((error["code"].as_i64(), reason(&error)), (Some(-32600), "line_too_long"));
    assert!(error.to_string().contains("line_limit"), "the way out: {error}");
    client.say(&session, "still here").unwrap();
}

// peers 20
#[test]
fn a_flood_on_stderr_does_not_hold_up_stdout() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), None);
    client.say(&session, "[stderr 20000000] say #one").unwrap();
    let log = env.agent("echo")["log"].as_str().unwrap().to_owned();
    let size = std::fs::metadata(log).unwrap().len();
    assert!(size <= 11 * MIB, "the log is bounded: {size}");
}

#[test]
fn a_loop_and_xargs_run_each_of_their_lines() {
    let env = home([echo()]);
    let run = |script: &str| {
        let mut command = env.command("/bin/sh");
        command.args(["-c", script]).env("ACPCTL", env.program("acpctl"));
        let done = Running::start(command).finish().success();
        assert_eq!(done.stdout().matches("You said: say #").count(), 2, "{done:?}");
    };
    run(r#"printf 'a\nb\n' | while read -r n; do "$ACPCTL" run -N -s "$n" "say #$n"; done"#);
    run(r#"printf 'c\nd\n' | xargs -I{} "$ACPCTL" run -s {} 'say #{}'"#);
    for name in ["a", "b", "c", "d"] {
        assert_eq!(env.session(name)["prompts"], 1, "{name}");
    }
}
