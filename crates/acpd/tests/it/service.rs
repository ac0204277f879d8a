//! The daemon under a service manager: sockets and notifications.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::{Child, Command};

use acpd_test::harness::{DEADLINE, TestEnv, signal, until};
use nix::sys::signal::Signal;

use crate::{echo, home};

/// A service manager that listens.
struct Manager {
    socket: UnixDatagram,
}

impl Manager {
    fn new(env: &TestEnv) -> Manager {
        let socket = UnixDatagram::bind(env.path("notify")).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        Manager { socket }
    }

    /// Waits for a message with this line; what came before it.
    fn wait(&self, line: &str) -> Vec<String> {
        let mut before = Vec::new();
        loop {
            let mut bytes = [0; 4096];
            let length = self.socket.recv(&mut bytes).unwrap_or_else(|e| panic!("no {line}: {e}"));
            let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
            if text.lines().any(|found| found == line) {
                return before;
            }
            before.push(text);
        }
    }
}

/// Ends with the test, if it has not before.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// `acpd run` with a listening socket as descriptor 3.
fn activated(env: &TestEnv) -> Command {
    let listener = UnixListener::bind(env.socket()).unwrap();
    let program = env.acpd_command();
    let mut command = env.command("sh");
    command
        .arg("-c")
        .arg("exec env LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=control \"$@\" 3<&0 </dev/null")
        .arg("sh")
        .arg(program.get_program())
        .arg("run")
        .stdin(OwnedFd::from(listener));
    command
}

#[test]
fn the_service_manager_hears_when_the_daemon_is_ready_alive_and_stopping() {
    let env = home([echo()]);
    let manager = Manager::new(&env);
    let mut command = env.acpd_command();
    command.env("NOTIFY_SOCKET", env.path("notify")).env("WATCHDOG_USEC", "100000");
    let mut service = Service(command.spawn().unwrap());
    // Where the start takes long, a sign of life may come before it.
    let before = manager.wait("READY=1");
    assert!(before.iter().all(|text| text.trim() == "WATCHDOG=1"), "{before:?}");
    assert_eq!(env.daemon_pid(), service.0.id(), "it serves");
    // With or without other work in the store: an idle daemon lives.
    for _ in 0..30 {
        manager.wait("WATCHDOG=1");
    }
    env.acpctl(&["daemon", "restart"]).success();
    let before = manager.wait("READY=1");
    assert!(!before.iter().any(|text| text.contains("STOPPING=1")), "{before:?}");
    assert_eq!(env.daemon_pid(), service.0.id());
    signal(service.0.id(), Signal::SIGTERM);
    manager.wait("STOPPING=1");
    assert!(service.0.wait().unwrap().success());
}

#[test]
fn a_socket_that_was_handed_over_is_used_and_left_where_it_is() {
    let env = home([echo()]);
    let mut service = Service(activated(&env).spawn().unwrap());
    let inode = fs::metadata(env.socket()).unwrap().ino();
    // The connection waits for the daemon.
    let one = env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    assert!(one.stdout().contains("tags=one"), "{one:?}");
    assert_eq!(env.daemon_pid(), service.0.id());
    let agent = env.agent_pid("echo").unwrap();
    let inherits = fs::read_dir(format!("/proc/{agent}/fd")).unwrap().any(|fd| {
        let target = fs::read_link(fd.unwrap().path()).unwrap_or_default();
        target.to_string_lossy() == format!("socket:[{inode}]")
    });
    assert!(!inherits);
    env.acpctl(&["daemon", "restart"]).success();
    assert_eq!(env.daemon_pid(), service.0.id());
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
    signal(service.0.id(), Signal::SIGTERM);
    assert!(service.0.wait().unwrap().success());
    assert_eq!(fs::metadata(env.socket()).unwrap().ino(), inode, "it is the service manager's");
    fs::remove_file(env.socket()).unwrap();
    until("the agent to be found again", || env.agent_pid("echo").filter(|pid| *pid == agent));
}
