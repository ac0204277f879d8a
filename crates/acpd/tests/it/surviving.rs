//! The daemon goes and comes again, and the agents with a host of their own go on.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use acpd_test::harness::{Agent, Client, Config, TestEnv, exists, kill9, signal, until};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::{at_once, echo, home};

/// A turn that has come to `[pause middle]`, and its session.
fn paused(env: &TestEnv, client: &mut Client, prompt: &str) -> String {
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.prompt(&session, prompt);
    client.hear("paused at middle");
    session
}

/// How the turns of a session ended.
fn outcomes(env: &TestEnv, session: &str) -> Vec<String> {
    let journal = env.journal(session);
    let ends = journal.iter().filter(|(_, line)| line["method"] == "_acpd/turn_ended");
    let kind = |line: &Value| line["params"]["outcome"]["kind"].as_str().map(str::to_owned);
    ends.filter_map(|(_, line)| kind(line)).collect()
}

fn wait_outcomes(env: &TestEnv, session: &str, wanted: &[&str]) {
    until(&format!("turns that ended {wanted:?}"), || {
        (outcomes(env, session) == wanted).then_some(())
    });
}

#[test]
fn a_turn_that_ended_while_there_was_no_daemon_is_told_by_the_next_one() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    paused(&env, &mut client, "#one [pause middle] done");
    let agent = env.agent_pid("echo").unwrap();
    env.kill_daemon();
    env.release("middle");
    // The agent itself is gone too when the next daemon comes.
    until("the answer to be written", || {
        let record = fs::read_to_string(env.path("agents").join("echo.record")).ok()?;
        record.contains("end_turn").then_some(())
    });
    kill9(agent);
    env.acpctl(&["daemon", "start"]).success();
    wait_outcomes(&env, "fix", &["stopped"]);
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
    assert_ne!(env.agent_pid("echo"), Some(agent));
}

#[test]
fn a_stop_leaves_nothing_and_a_detach_or_sigterm_leaves_agents() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "[child-setsid] say #one"]).success();
    let agent = env.agent_pid("echo").unwrap();
    env.acpctl(&["daemon", "stop", "--detach"]).success();
    assert!(exists(agent));
    assert_eq!(env.shims().len(), 1);
    env.acpctl(&["daemon", "start"]).success();
    let daemon = env.daemon_pid();
    signal(daemon, Signal::SIGTERM);
    until("the daemon to be gone", || (!exists(daemon)).then_some(()));
    assert!(!env.socket().exists(), "the socket goes with its daemon");
    env.acpctl(&["daemon", "start"]).success();
    assert_eq!(env.agent_pid("echo"), Some(agent));
    env.acpctl(&["daemon", "stop"]).success();
    assert!(env.tree().is_empty(), "{:?}", env.tree());
    until("the host to be gone", || env.shims().is_empty().then_some(()));
    let shim_dirs = fs::read_dir(env.path("state").join("shims")).unwrap().count();
    assert_eq!(shim_dirs, 0, "and nothing of it is on disk");
}

/// Asks for a restart that cannot work: it is refused with these words, and nothing has changed.
fn refused_restart(env: &TestEnv, words: &[&str]) {
    let before = (env.daemon_pid(), env.status()["daemon"]["boot"].clone(), env.agent_pid("echo"));
    at_once("the reason", || env.acpctl(&["daemon", "restart"]).code(1)).explains(words);
    let after = (env.daemon_pid(), env.status()["daemon"]["boot"].clone(), env.agent_pid("echo"));
    assert_eq!(before, after);
}

#[test]
fn a_restart_that_would_fail_is_refused_and_nothing_stops() {
    // Programs that can be replaced.
    let bin = tempfile::tempdir().unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_acpd"));
    for name in ["acpd", "acpctl", "acpd-scripted-agent"] {
        symlink(built.with_file_name(name), bin.path().join(name)).unwrap();
    }
    let acpd = bin.path().join("acpd");
    let env = TestEnv::new(&acpd, &Config::new([echo()]));
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let state = env.path("state");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    refused_restart(&env, &["not restarted", "open to other users", "hint:", "chmod 700"]);
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    env.write_config("[daemon]\nmax_clints = 3\n");
    refused_restart(&env, &["not restarted", "max_clints", "did you mean"]);
    env.configure(&Config::new([echo()]));

    fs::remove_file(&acpd).unwrap();
    refused_restart(&env, &["cannot start", acpd.to_str().unwrap(), "hint: install acpd again"]);
    symlink("/bin/true", &acpd).unwrap();
    refused_restart(&env, &["is another program", "hint: install acpd again"]);
    fs::remove_file(&acpd).unwrap();
    fs::write(&acpd, "\x7fELF broken").unwrap();
    fs::set_permissions(&acpd, fs::Permissions::from_mode(0o755)).unwrap();
    refused_restart(&env, &["not restarted", acpd.to_str().unwrap(), "hint: install acpd again"]);

    fs::remove_file(&acpd).unwrap();
    symlink(built, &acpd).unwrap();
    env.acpctl(&["daemon", "restart"]).success();
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
}

#[test]
fn a_host_that_nobody_knows_of_is_ended() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.acpctl(&["daemon", "stop", "--detach"]).success();
    let agent = env.tree();
    assert_eq!(agent.len(), 1, "{agent:?}");
    let forget = "delete from hosts";
    let database = env.path("state").join("acpd.db");
    let done = Command::new("sqlite3").arg(&database).arg(forget).status();
    if !done.is_ok_and(|status| status.success()) {
        return crate::starting::skip("sqlite3 is not there");
    }
    let lost = env.path("run").join("s/lost");
    drop(UnixListener::bind(&lost).unwrap());
    env.acpctl(&["daemon", "start"]).success();
    assert!(!lost.exists(), "a socket of no host");
    until("the orphan to be gone", || (!exists(agent[0].pid)).then_some(()));
    until("its host to be gone", || env.shims().is_empty().then_some(()));
}

#[test]
fn an_agent_gets_the_umask_and_the_limits_that_the_daemon_found() {
    let show = "umask >umask; ulimit -c >core";
    let env = home([echo().after_script(show)]);
    let mut daemon = env.command("sh");
    daemon.args(["-c", "umask 027; ulimit -c 512; exec \"$@\"", "sh"]);
    let start = env.acpctl_command(&["daemon", "start"]);
    daemon.arg(start.get_program()).args(start.get_args());
    assert!(daemon.status().unwrap().success());
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let shown = |name| fs::read_to_string(env.path("home").join(name)).unwrap();
    assert_eq!((shown("umask").trim(), shown("core").trim()), ("0027", "512"));
}

/// An agent with a tool of its own below it: [`use_tool`] says what that does.
fn handy() -> Agent {
    echo().after_script(
        "(P=$ACPD_TEST_POINTS; R=${P%/points}; export ACPD_RUNTIME_DIR=$R/run
          export ACPD_STATE_DIR=$R/state ACPD_CONFIG_DIR=$R/config PATH=${1%/*}:$PATH
          while [ ! -e $P/tool.sh ]; do sleep 0.02; done
          sh $P/tool.sh >$P/tool.out 2>&1; echo $? >$P/tool.new; mv $P/tool.new $P/tool.code) &",
    )
}

/// Runs a command as a process of the agent; it must succeed.
fn use_tool(env: &TestEnv, command: &str) {
    let file = |name: &str| env.points().join(name);
    fs::write(file("tool.new"), command).expect("the tool");
    fs::rename(file("tool.new"), file("tool.sh")).expect("the tool");
    let code = until("the tool to end", || fs::read_to_string(file("tool.code")).ok());
    let said = fs::read_to_string(file("tool.out")).unwrap_or_default();
    assert_eq!(code.trim(), "0", "{said}");
}

#[test]
fn a_daemon_that_an_agents_tool_has_started_outlives_that_agent() {
    let env = home([handy()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.kill_daemon();
    use_tool(&env, "acpctl ps");
    let daemon = env.daemon_pid();
    env.acpctl(&["agent", "stop", "echo"]).success();
    assert_eq!(env.daemon_pid(), daemon);
    assert!(env.tree().is_empty() || env.tree().iter().all(|process| process.pid == daemon));
    env.acpctl(&["agent", "start", "echo"]).success();
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
}
