//! Agents that crash, or never come up.

use std::fs;

use acpd_test::harness::{Agent, Client, TestEnv, reason};
use serde_json::{Value, json};

use crate::{at_once, echo, home};

/// Starts a session, and then has the agent die over a request.
fn dies_over(flags: &str, ask: impl FnOnce(&TestEnv, &mut Client) -> Value) {
    let env = home([echo().flags(flags)]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, "say #one").unwrap();
    let old = env.agent_pid("echo");
    let error = at_once(flags, || ask(&env, &mut client));
    assert!(error["message"].as_str().unwrap().contains("exit code 3"), "{flags}: {error}");
    assert_ne!(env.agent_pid("echo"), old);
}

// peers 5
#[test]
fn a_crash_during_a_request_is_told_at_once() {
    dies_over("crash-on=session/new:2", |env, client| {
        let params = json!({"cwd": env.work("main"), "mcpServers": []});
        let error = client.call("session/new", params.clone()).unwrap_err();
        client.ok("session/new", params);
        error
    });
    dies_over("no-resume crash-on=session/load", |env, client| {
        env.acpctl(&["agent", "stop", "echo"]).success();
        env.acpctl(&["agent", "start", "echo"]).success();
        let session = env.session("fix")["sessionId"].as_str().unwrap().to_owned();
        client.say(&session, "say #two").unwrap_err()
    });
}

// peers 5
#[test]
fn a_crash_during_a_prompt_is_told_at_once_to_everyone_who_waits() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), None);
    let other = client.new_session(&env.work("other"), None);
    let waits = client.prompt(&other, "[pause other]");
    env.wait_point("other");
    let old = env.agent_pid("echo");
    for crash in ["[crash]", "[crash-kill]", "[chunks 2] [half]"] {
        let before = env.said(&session);
        let error = at_once(crash, || client.say(&session, crash)).unwrap_err();
        assert_eq!(reason(&error), "agent_exited", "{error}");
        // Of half a line nothing is shown.
        let lines = if crash.contains("half") { "line 1\nline 2\n" } else { "" };
        assert_eq!(env.said(&session), before + lines, "{crash}");
        let went_on = client.say(&session, "and then?").unwrap();
        assert_eq!(went_on["stopReason"], "end_turn");
    }
    let error = client.answer(waits).unwrap_err();
    assert_eq!(reason(&error), "agent_exited", "{error}");
    assert_ne!(env.agent_pid("echo"), old);
    assert_eq!(env.received("echo", "session/prompt").len(), 7, "nothing is sent twice");
}

// peers 23
#[test]
fn a_program_that_is_no_agent_is_given_up_with_the_reason() {
    let silent = echo()
        .after_script("echo 'npm error: network unreachable' >&2")
        .flags("silent-start")
        .set("start_timeout", "\"300ms\"");
    let deaf = ["sh", "-c", "exec >&-; exec sleep 1000"];
    let cases: [(Agent, &[&str]); 6] = [
        (silent, &["no answer to `initialize` within", "npm error: network unreachable", "hint:"]),
        (echo().flags("crash-on=initialize"), &["exit code 3 before it answered `initialize`"]),
        (
            echo().flags("plain-line-exit"),
            &["exit code 0 before it answered `initialize`; it printed `"],
        ),
        (echo().command(&deaf), &["SIGTERM"]),
        (echo().flags("protocol=7"), &["speaks version 7", "acpd speaks 1", "or set"]),
        (echo().command(&["cat"]), &["is no ACP agent", "set the `command`", "[agents.echo]"]),
    ];
    for (agent, words) in cases {
        let env = home([agent.set("restart", "\"never\"")]);
        env.acpctl(&["run", "say #one"]).code(1).explains(words);
        assert_eq!(env.agent("echo")["restarts"], 0);
    }
}

// peers 23
#[test]
fn a_crash_loop_stops_at_the_limit_and_a_prompt_clears_it() {
    let env = home([]);
    let broken = env.path("broken");
    fs::write(&broken, "").unwrap();
    let script =
        format!("if test -e {}; then echo 'cannot find module' >&2; exit 7; fi", broken.display());
    let loops = echo().after_script(&script).set("restart_budget", "3");
    env.configure(&acpd_test::harness::Config::new([loops]));
    env.acpctl(&["agent", "start", "echo"]).code(1).explains(&["exit code 7"]);
    let agent = env.wait_agent("echo", "failed");
    let why = agent["reason"].as_str().unwrap();
    assert!(why.contains("3 times in a row") && why.contains("exit code 7"), "{why}");
    let log = fs::read_to_string(agent["log"].as_str().unwrap()).unwrap();
    assert_eq!(log.matches("cannot find module").count(), 3, "{log}");

    env.acpctl(&["run", "-s", "fix", "say #one"]).code(1).explains(&["cannot find module"]);
    env.wait_agent("echo", "failed");
    fs::remove_file(&broken).unwrap();
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    assert_eq!(env.agent("echo")["state"], "ready");
}
