//! Surprises for a person: a configuration that acpd has not read, a variable that it does not have, a stdin
//! that belongs to a loop.

use std::fs;

use acpd_test::harness::{Agent, Config, Running};
use serde_json::Value;

use crate::{echo, home};

fn changed(env: &acpd_test::harness::TestEnv) -> Value {
    env.status()["daemon"]["configChanged"].clone()
}

#[test]
fn a_configuration_that_says_something_else_is_told_until_the_daemon_has_read_it() {
    let env = home([echo()]);
    env.acpctl(&["daemon", "start"]).success();
    assert_eq!(changed(&env), Value::Null);
    // A comment says nothing.
    let config = env.path("config").join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    env.write_config(&format!("# mine\n{text}"));
    assert_eq!(changed(&env), Value::Null);
    env.configure(&Config::new([echo(), Agent::new("other")]));
    assert!(changed(&env)["at"].is_u64() && changed(&env)["mistakes"].is_null());
    for command in [&["ps"][..], &["daemon", "status"]] {
        let shown = env.acpctl(command).success().stdout().to_owned();
        let told = "the configuration was changed";
        assert!(shown.contains(told) && shown.contains("`acpctl daemon reload`"), "{shown}");
    }
    let refused = env.acpctl(&["run", "-a", "other", "hello"]).code(3);
    refused.explains(&["no agent `other`", "hint: the configuration was changed"]);
    env.acpctl(&["daemon", "restart"]).success();
    assert_eq!(changed(&env), Value::Null);
    env.acpctl(&["run", "-a", "other", "hello"]).success();
}

#[test]
fn a_variable_that_only_the_terminal_has_is_told_and_a_restart_brings_it() {
    let agent = echo().set("inherit_env", "[\"WORK_KEY\"]").flags("auth-token=WORK_KEY");
    let env = home([agent]);
    fs::create_dir_all(env.agent_state("echo")).unwrap();
    fs::write(env.agent_state("echo").join("token"), "s3cret").unwrap();
    env.acpctl(&["daemon", "start"]).success();
    let here = |args: &[&str]| {
        let mut command = env.acpctl_command(args);
        command.env("WORK_KEY", "s3cret").env("OTHER_KEY", "0ther");
        command
    };
    let failed = Running::start(here(&["run", "hello"])).finish().code(4);
    let told = "does not have WORK_KEY in its environment: in this terminal, run `acpctl daemon \
                restart && acpctl agent restart echo`";
    failed.explains(&["acpd, up ", told]);
    assert!(Running::start(here(&["ps"])).finish().success().stdout().contains(told));
    let elsewhere = env.acpctl(&["agent", "show", "echo"]).success();
    assert!(elsewhere.stdout().contains("in a terminal that has it"), "{elsewhere:?}");
    // A script has the environment that it happens to have.
    Running::start(here(&["daemon", "restart"])).finish().success();
    Running::start(here(&["run", "hello"])).finish().code(4);
    Running::on_terminal(here(&["daemon", "restart"])).finish().success();
    assert_eq!(env.agent("echo")["lacks"], Value::Null);
    env.acpctl(&["agent", "restart", "echo"]).success();
    let said = env.acpctl(&["run", "[env WORK_KEY] [env OTHER_KEY]"]).success();
    assert!(said.stdout().contains("s3cret") && !said.stdout().contains("0ther"), "{said:?}");
    // The variable stays without a terminal that has it.
    env.acpctl(&["daemon", "restart"]).success();
    assert!(env.acpctl(&["run", "[env WORK_KEY]"]).success().stdout().contains("s3cret"));
    let own = fs::read(format!("/proc/{}/environ", env.daemon_pid())).unwrap();
    assert!(!String::from_utf8_lossy(&own).contains("0ther"), "only what is named is taken");
    let log = fs::read_to_string(env.path("state").join("log/acpd.log")).unwrap();
    assert!(!log.contains("s3cret"), "{log}");
    for file in fs::read_dir(env.path("state")).unwrap().flatten() {
        let bytes = fs::read(file.path()).unwrap_or_default();
        let has = |secret: &[u8]| bytes.windows(secret.len()).any(|part| part == secret);
        assert!(!has(b"0ther"), "{}", file.path().display());
    }
}

#[test]
fn loops_and_xargs_keep_their_stdin() {
    let env = home([echo()]);
    env.acpctl(&["daemon", "start"]).success();
    let shell = |script: &str| {
        let mut command = env.command("/bin/sh");
        command.args(["-c", script, "sh"]).arg(env.program("acpctl"));
        Running::start(command).finish().success().stdout().to_owned()
    };
    let prompts = |out: &str| out.lines().filter(|line| line.contains("task")).count();
    let each = "printf 'task 1\\ntask 2\\ntask 3\\n' | ";
    let out = shell(&format!("{each} while read -r line; do \"$1\" run -N \"$line\"; done"));
    assert_eq!(prompts(&out), 3, "{out}");
    let out = shell(&format!("{each} xargs -I {{}} \"$1\" run '{{}}'"));
    assert_eq!(prompts(&out), 3, "{out}");
    let out = shell(&format!(
        "{each} while read -r line; do id=$(\"$1\" run -Nd \"$line\"); \"$1\" wait \"$id\"; done"
    ));
    assert_eq!(out.lines().count(), 3, "{out}");
    env.acpctl(&["run", "-N"]).code(2).explains(&["no prompt given"]);
    env.acpctl(&["run", "-N", "-"]).code(2).explains(&["leave out one of them"]);
    let mut command = env.acpctl_command(&["run"]);
    command.stdin(std::process::Stdio::piped());
    let mut waiting = Running::start(command);
    waiting.wait_stderr("waiting for the end of stdin; `acpctl run -N` ignores it");
    waiting.feed("hello");
    assert!(waiting.finish().success().stdout().contains("hello"));
}
