//! Agents that crash, or never come up.

use acpd_test::harness::{Agent, reason};

use crate::{at_once, echo, home};

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
