//! Commands that acpd runs for agents when no editor does it.

use std::fs;
use std::path::PathBuf;

use acpd_test::harness::{Agent, Client, TestEnv, exists, kill9, until};
use serde_json::{Value, json};

use crate::{echo, home};

/// One that is offered terminals.
fn agent() -> Agent {
    echo().set("services", "[\"fs\", \"terminal\"]")
}

/// A file with the params of `terminal/create`.
fn params(env: &TestEnv, name: &str, params: &Value) -> String {
    let file = env.path(name);
    fs::write(&file, params.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The params of a line for the shell.
fn line(env: &TestEnv, line: &str) -> String {
    params(env, "line", &json!({"command":"sh","args":["-c",line]}))
}

/// Returns the answer that the agent got for a call.
fn told(said: &str, call: &str) -> Value {
    let start = format!("terminal {call}: ");
    let answer = said.lines().rev().find_map(|line| line.split_once(&start)).expect(call).1;
    serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// A command with children in its group, in a session of their own, and without parents; one listens
/// to no SIGTERM. Each writes its pid.
const HIDING: &str = r#"
say() { echo $$ >"$DIR/$1.new"; mv "$DIR/$1.new" "$DIR/$1"; }
sh -c 'echo $$ >"$DIR/a.new"; mv "$DIR/a.new" "$DIR/a"; exec sleep 600' &
setsid sh -c 'echo $$ >"$DIR/b.new"; mv "$DIR/b.new" "$DIR/b"; exec sleep 600' &
(setsid sh -c 'trap "" TERM; (setsid sh -c "trap \"\" TERM; echo \$\$ >\"\$DIR/c.new\"; mv \"\$DIR/c.new\" \"\$DIR/c\"; sleep 600; sleep 600" &)' &)
say d
exec sleep 600
"#;

fn hiding(env: &TestEnv) -> (String, PathBuf) {
    let dir = env.path("pids");
    fs::create_dir(&dir).unwrap();
    let variables = json!([{"name":"DIR","value":dir}]);
    let wanted = json!({"command":"sh","args":["-c",HIDING],"env":variables});
    (params(env, "hiding", &wanted), dir)
}

fn wait_pids(dir: &std::path::Path) -> [u32; 4] {
    ["a", "b", "c", "d"].map(|name| {
        until(&format!("the process {name}"), || {
            fs::read_to_string(dir.join(name)).ok()?.trim().parse().ok()
        })
    })
}

fn wait_gone(pids: [u32; 4]) {
    for pid in pids {
        until(&format!("the end of {pid}"), || (!exists(pid)).then_some(()));
    }
}

/// A command that detaches a process without parents, session, group and environment, and then goes on or ends.
fn detaching(env: &TestEnv, rest: &str) -> (String, PathBuf) {
    let file = env.path("detached");
    let script = r#"echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 600"#;
    let detach = format!("env -i PATH=\"$PATH\" setsid -f sh -c '{script}' '{}'", file.display());
    (line(env, &format!("{detach}; {rest}")), file)
}

/// A turn in which such a command runs, paused at `middle`, with its session and the detached process; then the terminal
/// is released.
fn run_detaching(env: &TestEnv, rest: &str) -> (Client, String, u32) {
    let (file, pid) = detaching(env, rest);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("cmd"));
    let turn = format!("[terminal create {file}] [pause middle] [terminal release]");
    client.prompt(&session, &turn);
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
        ("sleep 600", "kill the daemon"),
    ] {
        let env = home([agent()]);
        let (mut client, session, pid) = run_detaching(&env, rest);
        match how {
            "release" => env.release("middle"),
            "kill the daemon" => env.kill_daemon(),
            _ => drop(client.ok("session/close", json!({"sessionId": session}))),
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

/// A turn that has made such a command and pauses, and the processes of the command.
fn running(env: &TestEnv, agent: &str) -> (Client, String, [u32; 4]) {
    let (file, dir) = hiding(env);
    let mut client = env.client(agent);
    let session = client.new_session(&env.work("main"), Some("cmd"));
    client.prompt(&session, &format!("[terminal create {file}] [pause middle]"));
    client.hear("paused at middle");
    let pids = wait_pids(&dir);
    (client, session, pids)
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
fn nothing_is_left_of_a_command_when_its_agent_session_or_daemon_ends() {
    for how in ["kill", "close", "restart", "stop"] {
        let env = home([agent()]);
        let (mut client, session, pids) = running(&env, "echo");
        match how {
            "kill" => kill9(env.agent_pid("echo").unwrap()),
            "close" => drop(client.ok("_acpd/session/close", json!({"session": session}))),
            _ => drop(env.acpctl(&["daemon", how]).success()),
        }
        wait_gone(pids);
    }
}

#[test]
fn what_a_killed_daemon_leaves_the_next_one_ends_and_the_agent_is_told() {
    let env = home([agent()]);
    let (file, dir) = hiding(&env);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("cmd"));
    let calls = "[pause middle] [terminal output] [terminal release]";
    client.prompt(&session, &format!("[terminal create {file}] {calls}"));
    client.hear("paused at middle");
    let pids = wait_pids(&dir);
    env.kill_daemon();
    env.acpctl(&["daemon", "start"]).success();
    wait_gone(pids);
    assert_eq!(shown(&env, "cmd"), "(ended when acpd was restarted)");
    env.release("middle");
    until("the answer", || env.said("cmd").contains("terminal release").then_some(()));
    for call in ["output", "release"] {
        let error = told(&env.said("cmd"), call)["error"].as_str().unwrap().to_owned();
        assert!(error.contains("acpd was restarted"), "{error}");
    }
    // A new one works.
    let run = format!("[terminal create {}] [terminal wait_for_exit]", line(&env, "exit 4"));
    let out = env.acpctl(&["run", "-s", "cmd", &run]).success();
    assert_eq!(told(out.stdout(), "wait_for_exit")["exitCode"], 4);
}
