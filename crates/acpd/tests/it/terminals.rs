//! Commands that acpd runs for agents when no editor does it.

use std::fs;
use std::path::PathBuf;

use acpd_test::harness::{Agent, Client, Process, TestEnv, exists, kill9, until};
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
fn what_a_command_detaches_ends_with_its_terminal() {
    for (rest, how) in [("sleep 600", "release"), ("exit 0", "release"), ("sleep 600", "close")] {
        let env = home([agent()]);
        let (mut client, session, pid) = run_detaching(&env, rest);
        match how {
            "release" => env.release("middle"),
            _ => drop(client.ok("session/close", json!({"sessionId": session}))),
        }
        until(&format!("the end of {pid} after {rest} and {how}"), || (!exists(pid)).then_some(()));
    }
}

#[test]
fn what_a_command_detaches_ends_with_a_killed_daemon() {
    let env = home([agent()]);
    let (_client, _, pid) = run_detaching(&env, "sleep 600");
    env.kill_daemon();
    until(&format!("the end of {pid}"), || (!exists(pid)).then_some(()));
}

#[test]
fn a_keeper_costs_little_and_hides_the_command_line() {
    let env = home([agent()]);
    let _running = run_detaching(&env, "sleep 600");
    let is_keeper = |process: &Process| process.command.ends_with(" keep");
    let keepers: Vec<Process> = env.tree().into_iter().filter(is_keeper).collect();
    assert_eq!(keepers.len(), 1, "{:?}", env.tree());
    let bytes = acpd_sys::process::anonymous_bytes(keepers[0].pid).unwrap();
    assert!(bytes < 2 << 20, "{bytes} bytes");
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
fn a_command_has_its_arguments_its_environment_and_its_folder() {
    let env = home([agent()]);
    let folder = env.path("folder");
    fs::create_dir(&folder).unwrap();
    let script = r#"echo "$0 $1 $ACPD_TEST_POINTS $OWN"; pwd; exit 3"#;
    let wanted = json!({
        "command":"sh","args":["-c",script,"zero","a b"],"cwd":folder,
        "env":[{"name":"OWN","value":"2"}],
    });
    let file = params(&env, "params", &wanted);
    let calls = "[terminal wait_for_exit] [terminal output] [terminal release]";
    let out = env.acpctl(&["run", "-s", "cmd", &format!("[terminal create {file}] {calls}")]);
    let said = out.success().stdout().to_owned();
    let status = json!({"exitCode":3,"signal":null});
    assert_eq!(told(&said, "wait_for_exit"), status);
    let points = env.points().display().to_string();
    let output = format!("zero a b {points} 2\n{}\n", folder.canonicalize().unwrap().display());
    let wanted = json!({"output":output,"truncated":false,"exitStatus":status});
    assert_eq!(told(&said, "output"), wanted);
    assert_eq!(told(&said, "release"), json!({}));
    // All clients can read the output, now and later.
    let shown = |line: &Value| {
        let text = line["params"]["update"]["content"][0]["content"]["text"].as_str();
        text.is_some_and(|text| text.starts_with("zero a b ") && text.contains("exit code 3"))
    };
    until("the output in the journal", || {
        env.journal("cmd").iter().any(|(_, line)| shown(line)).then_some(())
    });
    let hello = &env.received("echo", "initialize")[0];
    assert_eq!(hello["params"]["clientCapabilities"]["terminal"], true);

    let file = line(&env, "pwd");
    let run = format!("[terminal create {file}] [terminal wait_for_exit] [terminal output]");
    let out = env.acpctl(&["run", "-s", "cmd", &run]).success();
    let work = env.work("main").canonicalize().unwrap();
    assert_eq!(told(out.stdout(), "output")["output"], format!("{}\n", work.display()));
    let file = params(&env, "params", &json!({"command":"no-such-program"}));
    let out = env.acpctl(&["run", "-s", "cmd", &format!("[terminal create {file}]")]).success();
    let error = told(out.stdout(), "create")["error"].as_str().unwrap().to_owned();
    assert!(error.contains("no-such-program") && error.contains("PATH"), "{error}");
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
fn the_output_is_shown_while_the_command_runs() {
    let env = home([agent()]);
    let pipe = env.path("pipe");
    let script = r#"mkfifo "$PIPE"; echo first; cat "$PIPE"; exit 3"#;
    let variables = json!([{"name":"PIPE","value":pipe}]);
    let wanted = json!({"command":"sh","args":["-c",script],"env":variables});
    let file = params(&env, "params", &wanted);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("cmd"));
    let run = format!("[terminal create {file}] [terminal wait_for_exit]");
    let turn = client.prompt(&session, &run);
    until("the first line", || (shown(&env, "cmd") == "first\n").then_some(()));
    fs::write(&pipe, "second\n").unwrap();
    client.answer(turn).unwrap();
    let all = "first\nsecond\n(exit code 3)";
    until("the end", || (shown(&env, "cmd") == all).then_some(()));
}

#[test]
fn the_output_is_cut_at_a_character() {
    let env = home([agent()]);
    let wanted = json!({"command":"printf","args":["äöü"],"outputByteLimit":3});
    let file = params(&env, "params", &wanted);
    let run = format!("[terminal create {file}] [terminal wait_for_exit] [terminal output]");
    let out = env.acpctl(&["run", "-s", "cmd", &run]).success();
    let output = told(out.stdout(), "output");
    assert_eq!((&output["output"], &output["truncated"]), (&json!("ü"), &json!(true)));
}

#[test]
fn what_was_killed_can_still_be_asked() {
    let env = home([agent()]);
    let file = line(&env, "echo before; exec sleep 600");
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("cmd"));
    let ready = format!("[terminal create {file}] [pause ready]");
    let calls = "[terminal kill] [terminal wait_for_exit] [terminal output]";
    client.prompt(&session, &format!("{ready} {calls}"));
    client.hear("paused at ready");
    // The command has written when it sleeps.
    until("the command", || {
        env.tree().iter().any(|process| process.command == "sleep 600").then_some(())
    });
    env.release("ready");
    client.hear("terminal output");
    let said = client.said(&session);
    assert_eq!(told(&said, "wait_for_exit"), json!({"exitCode":null,"signal":"SIGTERM"}));
    assert_eq!(told(&said, "output")["output"], "before\n");
}

#[test]
fn a_release_leaves_nothing() {
    let env = home([agent()]);
    let (file, dir) = hiding(&env);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("cmd"));
    let create = format!("[terminal create {file}] [pause ready]");
    client.prompt(&session, &format!("{create} [terminal release] [terminal output]"));
    client.hear("paused at ready");
    let pids = wait_pids(&dir);
    env.release("ready");
    client.hear("terminal output");
    wait_gone(pids);
    let error = told(&client.said(&session), "output")["error"].as_str().unwrap().to_owned();
    assert!(error.contains("released"), "{error}");
}

#[test]
fn nothing_is_left_when_the_agent_is_killed() {
    let env = home([agent()]);
    let (_client, _, pids) = running(&env, "echo");
    kill9(env.agent_pid("echo").unwrap());
    wait_gone(pids);
}

#[test]
fn nothing_is_left_when_the_session_is_closed() {
    let env = home([agent()]);
    let (mut client, session, pids) = running(&env, "echo");
    client.ok("_acpd/session/close", json!({"session":session}));
    wait_gone(pids);
}

#[test]
fn a_daemon_that_ends_or_starts_again_takes_its_commands_along() {
    for how in ["restart", "stop"] {
        let env = home([agent()]);
        let (_client, _, pids) = running(&env, "echo");
        env.acpctl(&["daemon", how]).success();
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

#[test]
fn a_cancelled_turn_does_not_wait_for_its_command() {
    let env = home([agent()]);
    let file = line(&env, "exec sleep 600");
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("cmd"));
    let prompt = format!("[terminal create {file}] [terminal wait_for_exit]");
    let turn = client.prompt(&session, &prompt);
    client.hear("terminal create");
    client.cancel(&session);
    assert_eq!(client.answer(turn).unwrap()["stopReason"], "cancelled");
    client.ok("_acpd/session/close", json!({"session":session}));
}
