//! Limits of connections, and errors for those over them.

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixStream;

use acpd_test::harness::{Client, Config, Running, TestEnv, exists, signal, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::{at_once, echo, home, home_with};

/// Connections that say nothing.
fn silent(env: &TestEnv, count: usize) -> Vec<UnixStream> {
    (0..count).map(|_| UnixStream::connect(env.socket()).expect("the daemon's socket")).collect()
}

/// Returns the line that a connection gets.
fn told(stream: &UnixStream) -> Value {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("a line");
    serde_json::from_str(&line).expect("JSON")
}

#[test]
fn m9_connections_that_say_nothing_keep_nobody_out_and_the_oldest_are_told_that_they_go() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let silent = silent(&env, 200);
    env.acpctl(&["ps"]).success();
    let said = env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    assert!(said.stdout().contains("tags=one"), "{said:?}");
    let refused = told(&silent[0]);
    assert_eq!(refused["error"]["data"]["_acpd"]["reason"], "too_many", "{refused}");
    assert_eq!(refused["id"], Value::Null);
    client.sync();
    env.acpctl(&["daemon", "restart"]).success();
    env.acpctl(&["daemon", "stop"]).success().explains(&["acpd stopped"]);
}

#[test]
fn m9_with_all_places_taken_every_command_that_needs_one_says_so_and_the_others_work() {
    let env = home_with(&Config::new([echo()]).daemon("max_clients", "2"));
    let mut taken = [env.client("echo"), env.client("echo")];
    // More than the daemon keeps, each with an answer that it has.
    let idle: Vec<Client> = (0..40)
        .map(|_| {
            let mut idle = env.connect();
            idle.ok("_acpd/session/list", json!({}));
            idle
        })
        .collect();
    let words = ["2 clients are connected already", "hint:", "max_clients", "`acpctl ps`"];
    env.acpctl(&["run", "-s", "fix", "say #one"]).code(1).explains(&words);
    let (editor, mut bridge) = env.bridge(&[]);
    let refused = bridge.call("initialize", json!({"protocolVersion": 1})).unwrap_err();
    assert_eq!(refused["data"]["_acpd"]["reason"], "too_many", "{refused}");
    drop((bridge, editor));

    for command in [
        &["ps"][..],
        &["agent", "start", "echo"],
        &["agent", "ls"],
        &["session", "ls"],
        &["pending"],
    ] {
        env.acpctl(command).success();
    }
    env.acpctl(&["daemon", "start"]).success().explains(&["already running"]);
    taken.iter_mut().for_each(Client::sync);
    drop(idle);
    let pid = env.daemon_pid();
    env.acpctl(&["daemon", "stop", "--detach"]).success().explains(&["acpd stopped"]);
    until("what it said to be true", || (!exists(pid)).then_some(()));
}

#[test]
fn l16_a_stopped_daemon_is_told_as_such_by_every_command() {
    let env = home([echo()]);
    env.acpctl(&["daemon", "start"]).success();
    let pid = env.daemon_pid();
    signal(pid, Signal::SIGSTOP);
    let commands: [&[&str]; 7] = [
        &["ps"],
        &["run", "-s", "fix", "say #one"],
        &["attach", "fix"],
        &["daemon", "start"],
        &["daemon", "stop"],
        &["daemon", "restart"],
        &["agent", "start", "echo"],
    ];
    // At the same time: each waits for as long as a daemon may be silent.
    let running: Vec<Running> = commands.iter().map(|args| env.spawn_acpctl(args)).collect();
    let (stopped, way_out) = (format!("(pid {pid}, stopped)"), format!("kill -CONT {pid}"));
    for command in running {
        command.finish().code(1).explains(&["acpd does not answer", &stopped, &way_out]);
    }
    signal(pid, Signal::SIGCONT);
    at_once("a daemon that goes on", || env.acpctl(&["ps"]).success());
}

/// A daemon that may have few files open.
fn with_few_files(env: &TestEnv) -> Running {
    let program = env.acpd_command();
    let mut command = env.command("sh");
    command.args(["-c", "ulimit -n 48; exec \"$@\"", "sh"]).arg(program.get_program()).arg("run");
    let daemon = Running::start(command);
    until("the daemon to listen", || UnixStream::connect(env.socket()).ok());
    daemon
}

#[test]
fn l17_without_descriptors_the_daemon_says_so_and_its_log_stays_short() {
    let env = home([echo()]);
    let mut daemon = with_few_files(&env);
    let mut clients = Vec::new();
    // The daemon has some of its files for a moment only: a client is refused then, and the next one is not.
    let mut refused = 0;
    let refusal = loop {
        let mut client = env.connect();
        client.request("initialize", json!({"protocolVersion": 1}));
        let answer = client
            .next("an answer", |message| message["id"].is_u64() || message["error"].is_object());
        if answer["error"].is_object() {
            refused += 1;
            if refused == 5 {
                break answer;
            }
            continue;
        }
        refused = 0;
        clients.push(client);
        assert!(clients.len() < 40, "there are not so many");
    };
    assert!(refusal.to_string().contains("ulimit"), "{refusal}");
    for command in
        [&["ps"][..], &["run", "hello"], &["daemon", "stop"], &["daemon", "stop", "--detach"]]
    {
        env.acpctl(command).code(1).explains(&["no file descriptors left", "hint:", "ulimit"]);
    }
    drop(clients);
    until("room for others", || env.acpctl(&["ps"]).code_is(0).then_some(()));
    env.acpctl(&["daemon", "stop"]).success();
    let log = daemon.wait_stderr("acpd has ended");
    let said = log.matches("cannot be accepted").count();
    assert!((1..=3).contains(&said), "once for each time: {log}");
}

#[test]
fn a_removed_runtime_directory_is_made_again_at_once() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let daemon = env.daemon_pid();
    for command in [&["ps"][..], &["run", "-s", "fix", "say #two"], &["daemon", "status"]] {
        let dir = env.socket().parent().unwrap().to_owned();
        std::fs::remove_dir_all(dir).unwrap();
        at_once("a command without a socket", || env.acpctl(command).success());
        assert_eq!(env.daemon_pid(), daemon);
    }
}
