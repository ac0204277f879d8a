//! Agents that are talked with over TCP.

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use acpd_test::harness::{TestEnv, exists, kill9, until};

use crate::home;

/// Not a test: an agent that listens on the port that is its last argument, for one connection after
/// the other. Each is served by a scripted agent.
#[test]
#[ignore = "run by other tests, as an agent"]
fn agent() {
    let Some(state) = env::var_os("ACPD_TEST_STATE") else { return };
    let port: u16 = env::args().next_back().unwrap().parse().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    // The agents are not waited for; they end with their connections.
    let mut agents = Vec::new();
    for stream in listener.incoming() {
        let stream = OwnedFd::from(stream.unwrap());
        let program = Path::new(env!("CARGO_BIN_EXE_acpd")).with_file_name("acpd-scripted-agent");
        let mut command = Command::new(program);
        command.arg("--state").arg(&state);
        command.stdin(stream.try_clone().unwrap()).stdout(stream).stderr(Stdio::null());
        agents.push(command.spawn().unwrap());
    }
}

fn words(port: &str) -> Vec<String> {
    let program = env::current_exe().unwrap().display().to_string();
    [&program, "--ignored", "--exact", "tcp::agent", port].map(str::to_owned).to_vec()
}

fn state(env: &TestEnv) -> String {
    env.work("tcp").display().to_string()
}

/// An agent `echo` with these keys.
fn configure(env: &TestEnv, keys: &str) {
    let defaults = "restart_delay = '20ms'\nrestart_max_delay = '100ms'\nidle_timeout = '0'";
    env.write_config(&format!(
        "default_agent = 'echo'\n\
         [defaults]\n{defaults}\n[agents.echo]\n{keys}\n"
    ));
}

/// An agent that acpd starts.
fn started(env: &TestEnv) {
    let state = state(env);
    configure(
        env,
        &format!(
            "command = {:?}\nenv.ACPD_TEST_STATE = {state:?}\ntcp = {{ spawn = true }}",
            words("{port}")
        ),
    );
}

#[test]
fn an_agent_on_a_port_outlives_the_daemon_and_is_started_again_when_killed() {
    let env = home([]);
    started(&env);
    let one = env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    assert!(one.stdout().contains("tags=one"), "{one:?}");
    let agent = env.agent_pid("echo").expect("a process");
    // The connection outlives the daemon.
    env.kill_daemon();
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
    assert_eq!(env.agent_pid("echo"), Some(agent));
    kill9(agent);
    let next = until("another process", || env.agent_pid("echo").filter(|pid| *pid != agent));
    let three = env.acpctl(&["run", "-s", "fix", "say #three"]).success();
    assert!(three.stdout().contains("tags=one,two,three"), "{three:?}");
    env.acpctl(&["agent", "stop", "echo"]).success();
    assert!(!exists(next));
}

/// An agent that runs already, and that acpd connects to.
struct Listening(Child);

impl Listening {
    fn start(env: &TestEnv) -> Listening {
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = bound.local_addr().unwrap().port();
        drop(bound);
        let words = words(&port.to_string());
        let mut command = env.command(&words[0]);
        command.args(&words[1..]).env("ACPD_TEST_STATE", state(env));
        let listening = Listening(command.spawn().unwrap());
        // A connection that is tried too early is refused, and tried again.
        until("the agent to listen", || {
            std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
        });
        configure(env, &format!("tcp.connect = \"127.0.0.1:{port}\""));
        listening
    }

    /// The scripted agents behind the connections.
    fn connected(&self) -> Vec<u32> {
        let children = format!("/proc/{0}/task/{0}/children", self.0.id());
        // The listener serves from the thread of its test.
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        let lists =
            tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
        let text: String = lists.chain(fs::read_to_string(children)).collect();
        let mut pids: Vec<u32> = text.split(' ').filter_map(|pid| pid.parse().ok()).collect();
        pids.retain(|pid| exists(*pid));
        pids
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let connected = self.connected();
        self.0.kill().ok();
        self.0.wait().ok();
        connected.into_iter().for_each(kill9);
    }
}

#[test]
fn an_agent_that_runs_already_is_connected_to_again_after_a_cut_and_never_stopped() {
    let env = home([]);
    let listening = Listening::start(&env);
    let one = env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    assert!(one.stdout().contains("tags=one"), "{one:?}");
    assert_eq!(env.agent_pid("echo"), None, "it is no process of ours");
    // The connections are cut; the agent listens on.
    listening.connected().into_iter().for_each(kill9);
    let two = until("the agent to be back", || {
        let out = env.acpctl(&["run", "-s", "fix", "say #two"]);
        out.code_is(0).then_some(out)
    });
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
    env.acpctl(&["daemon", "stop"]).success();
    assert!(exists(listening.0.id()));
}
