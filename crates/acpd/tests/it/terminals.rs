//! Files that acpd reads and commands that it runs for agents when no editor does it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use acpd_test::harness::{Agent, Client, TestEnv, exists, kill9, until};
use serde_json::{Value, json};

use crate::{echo, home};

/// One that is offered terminals.
fn agent() -> Agent {
    echo().set("services", "[\"fs\", \"terminal\"]")
}

/// A file with the params of `terminal/create` for a line of the shell.
fn line(env: &TestEnv, line: &str) -> String {
    let file = env.path("line");
    fs::write(&file, json!({"command": "sh", "args": ["-c", line]}).to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Returns the answer that the agent got for a call.
fn told(said: &str, call: &str) -> Value {
    let start = format!("terminal {call}: ");
    let answer = said.lines().rev().find_map(|line| line.split_once(&start)).expect(call).1;
    serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// A turn that pauses at `middle` before these calls, while a command runs that has detached a process without parents,
/// session, group and environment that ignores SIGTERM, and then goes on or ends; with its session and the detached process.
fn run_detaching(env: &TestEnv, rest: &str, calls: &str) -> (Client, String, u32) {
    let pid = env.path("detached");
    let script = r#"trap "" TERM; echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 600"#;
    let detach = format!("env -i PATH=\"$PATH\" setsid -f sh -c '{script}' '{}'", pid.display());
    let file = line(env, &format!("{detach}; {rest}"));
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("cmd"));
    client.prompt(&session, &format!("[terminal create {file}] [pause middle] {calls}"));
    client.hear("paused at middle");
    let pid = until("the detached process", || fs::read_to_string(&pid).ok()?.trim().parse().ok());
    assert!(exists(pid));
    (client, session, pid)
}

#[test]
fn what_a_command_detaches_ends_with_its_terminal_or_daemon() {
    for (rest, how) in [
        ("sleep 600", "release"),
        ("exit 0", "release"),
        ("sleep 600", "close"),
        ("sleep 600", "kill the agent"),
        ("sleep 600", "restart"),
        ("sleep 600", "stop"),
        ("sleep 600", "kill the daemon"),
    ] {
        let env = home([agent()]);
        let (mut client, session, pid) = run_detaching(&env, rest, "[terminal release]");
        match how {
            "release" => env.release("middle"),
            "close" => drop(client.ok("session/close", json!({"sessionId": session}))),
            "kill the agent" => kill9(env.agent_pid("echo").unwrap()),
            "kill the daemon" => env.kill_daemon(),
            _ => drop(env.acpctl(&["daemon", how]).success()),
        }
        until(&format!("the end of {pid} after {rest} and {how}"), || (!exists(pid)).then_some(()));
    }
}

/// The text that the tool calls of a session have shown last.
fn shown(env: &TestEnv, session: &str) -> String {
    let text = |line: &Value| {
        let text = line["params"]["update"]["content"][0]["content"]["text"].as_str();
        text.map(str::to_owned)
    };
    env.journal(session).iter().rev().find_map(|(_, line)| text(line)).unwrap_or_default()
}

#[test]
fn a_killed_command_keeps_its_output_and_its_exit() {
    let env = home([agent()]);
    let file = line(&env, "trap '' TERM; echo out; echo err >&2; while :; do sleep 600; done");
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("cmd"));
    let calls = "[terminal kill] [terminal wait_for_exit] [terminal output]";
    client.prompt(&session, &format!("[terminal create {file}] [pause middle] {calls}"));
    until("both outputs", || shown(&env, "cmd").contains("err").then_some(()));
    env.release("middle");
    until("the answers", || env.said("cmd").contains("terminal output").then_some(()));
    let said = env.said("cmd");
    let exit = json!({"exitCode": null, "signal": "SIGKILL"});
    assert_eq!(told(&said, "wait_for_exit"), exit);
    let output = json!({"output": "out\nerr\n", "truncated": false, "exitStatus": exit});
    assert_eq!(told(&said, "output"), output);
}

#[test]
fn a_command_gets_no_credential_of_its_agent() {
    let wanted = "{ TOKEN = { env = 'SOME_TOKEN' } }";
    let env = home([agent().set("credentials", wanted)]);
    let mut start = env.acpctl_command(&["daemon", "start"]);
    assert!(start.env("SOME_TOKEN", "canary").output().unwrap().status.success());
    let file = line(&env, "echo \"<$TOKEN$SOME_TOKEN>\"");
    let calls = "[terminal wait_for_exit] [terminal output]";
    let words = format!("[env TOKEN] [terminal create {file}] {calls}");
    let out = env.acpctl(&["run", "-s", "cmd", &words]).success();
    assert_eq!(told(out.stdout(), "output")["output"], "<>\n");
    assert!(out.stdout().contains("canary"), "the agent itself has it: {out:?}");
}

#[test]
fn files_are_read_in_the_folder_of_the_session_and_nowhere_else() {
    let env = home([echo()]);
    let work = env.work("main");
    let (inside, outside) = (work.join("a.txt"), env.path("secret"));
    fs::write(&inside, "one\n").unwrap();
    fs::write(&outside, "do not tell\n").unwrap();
    symlink(&outside, work.join("link")).unwrap();
    let read = |path: &Path| {
        let prompt = format!("[fs-read {}]", path.display());
        env.acpctl(&["run", "-s", "files", &prompt]).success().stdout().to_owned()
    };
    assert!(read(&inside).contains("file: one"));
    for path in [&outside, &work.join("link"), &work.join("../secret")] {
        let said = read(path);
        assert!(said.contains("is refused") && !said.contains("do not tell"), "{said}");
    }
    let hello = &env.received("echo", "initialize")[0];
    assert_eq!(hello["params"]["clientCapabilities"]["fs"]["readTextFile"], true);
}
