//! Agents that crash, or never come up.

use std::fs;

use acpd_test::harness::{reason, until};
use serde_json::json;

use crate::{at_once, echo, home};

// peers 5
#[test]
fn a_crash_during_initialize_is_told_at_once() {
    let env = home([echo().flags("crash-on=initialize")]);
    env.acpctl(&["daemon", "start"]).success();
    let mut client = env.connect();
    let meta = json!({"_acpd": {"agent": "echo"}});
    let params = json!({"protocolVersion": 1, "_meta": meta});
    for _ in 0..2 {
        let params = params.clone();
        let error = at_once("the error", || client.call("initialize", params)).unwrap_err();
        assert_eq!(reason(&error), "agent_start_failed", "{error}");
        let text = error["message"].as_str().unwrap();
        assert!(text.contains("exit code 3 before it answered `initialize`"), "{text}");
    }
}

// peers 5
#[test]
fn a_crash_during_session_new_is_told_at_once_and_the_next_call_gets_a_new_process() {
    let env = home([echo().flags("crash-on=session/new:2")]);
    let mut client = env.client("echo");
    let first = client.new_session(&env.work("main"), None);
    // On the agent's disk from here on, so that the session is resumed and not created again.
    client.say(&first, "say #one").unwrap();
    let old = env.agent_pid("echo");
    let params = json!({"cwd": env.work("main"), "mcpServers": []});
    let error = at_once("the error", || client.call("session/new", params)).unwrap_err();
    assert_eq!(reason(&error), "agent_exited", "{error}");
    let second = client.new_session(&env.work("main"), None);
    assert_ne!(first, second);
    assert_ne!(env.agent_pid("echo"), old);
}

// peers 5
#[test]
fn a_crash_during_session_load_is_told_at_once() {
    let env = home([echo().flags("no-resume crash-on=session/load")]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), None);
    client.say(&session, "say #one").unwrap();
    env.acpctl(&["agent", "stop", "echo"]).success();
    env.acpctl(&["agent", "start", "echo"]).success();
    let error = at_once("the error", || client.say(&session, "say #two")).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("exit code 3"), "{error}");
    // Nothing is lost: without the crash it goes on.
    env.acpctl(&["daemon", "stop"]).success();
    env.configure(&acpd_test::harness::Config::new([echo()]));
    let mut client = env.client("echo");
    client.say(&session, "say #three").unwrap();
    assert!(client.said(&session).contains("tags=one,three"), "{}", client.said(&session));
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
    for crash in ["[crash]", "[crash-kill]", "[half]"] {
        let error = at_once(crash, || client.say(&session, crash)).unwrap_err();
        assert_eq!(reason(&error), "agent_exited", "{error}");
        let went_on = client.say(&session, "and then?").unwrap();
        assert_eq!(went_on["stopReason"], "end_turn");
    }
    let error = client.answer(waits).unwrap_err();
    assert_eq!(reason(&error), "agent_exited", "{error}");
    assert_ne!(env.agent_pid("echo"), old);
    assert_eq!(env.received("echo", "session/prompt").len(), 7, "nothing is sent twice");
}

#[test]
fn open_tool_calls_of_a_crashed_agent_are_closed() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), None);
    client.say(&session, "[tool-open Edit] [crash]").unwrap_err();
    let closed =
        client.next("the closed tool call", |m| m["params"]["update"]["status"] == "failed");
    assert_eq!(closed["params"]["update"]["toolCallId"], "call-0-1");
    let ended = client.next_of("_acpd/turn_ended");
    assert_eq!(ended["params"]["outcome"]["kind"], "interrupted");
}

// peers 23
#[test]
fn a_slow_start_is_visible() {
    let env = home([echo().flags("slow-start=700")]);
    let run = env.spawn_acpctl(&["run", "say #one"]);
    let agent = until("the agent to be there", || {
        env.socket().exists().then(|| env.agent("echo")).filter(|agent| agent["pid"].is_u64())
    });
    assert_eq!(agent["state"], "initializing");
    let ps = env.acpctl(&["ps"]).success();
    assert!(ps.stdout().contains("initializing"), "{ps:?}");
    assert!(run.finish().success().stdout().contains("tags=one"));
}

// peers 23
#[test]
fn an_agent_that_never_answers_is_given_up_with_its_last_words() {
    let silent = echo()
        .after_script("echo 'npm error: network unreachable' >&2")
        .flags("silent-start")
        .set("start_timeout", "\"300ms\"")
        .set("restart", "\"never\"");
    let env = home([silent]);
    env.acpctl(&["run", "say #one"]).code(1).explains(&[
        "agent `echo`: no answer to `initialize` within",
        "npm error: network unreachable",
        "hint:",
    ]);
    let logs = env.acpctl(&["agent", "logs", "echo"]).success();
    assert!(logs.stdout().contains("network unreachable"), "{logs:?}");
}

// peers 23
#[test]
fn an_agent_that_is_no_agent_is_told_as_such() {
    let env = home([echo().flags("plain-line-exit").set("restart", "\"never\"")]);
    env.acpctl(&["run", "say #one"])
        .code(1)
        .explains(&["agent `echo`", "exit code 0 before it answered `initialize`; it printed `"]);
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

#[test]
fn an_agent_that_closes_its_output_and_lives_on_is_ended() {
    let deaf =
        echo().command(&["sh", "-c", "exec >&-; exec sleep 1000"]).set("restart", "\"never\"");
    let env = home([deaf]);
    env.acpctl(&["run", "say #one"]).code(1).explains(&["SIGTERM"]);
}

#[test]
fn a_version_of_the_protocol_that_acpd_does_not_speak_is_not_tried_again() {
    let env = home([echo().flags("protocol=7")]);
    env.acpctl(&["run", "say #one"]).code(1).explains(&[
        "speaks version 7",
        "acpd speaks 1",
        "speaks version 1, or set",
    ]);
    assert_eq!(env.wait_agent("echo", "failed")["restarts"], 0);
}

#[test]
fn program_that_sends_back_its_input_is_no_agent() {
    let env = home([echo().command(&["cat"])]);
    let told = ["is no ACP agent", "set the `command`", "[agents.echo]"];
    env.acpctl(&["run", "say #one"]).code(1).explains(&told);
    assert_eq!(env.wait_agent("echo", "failed")["restarts"], 0);
}
