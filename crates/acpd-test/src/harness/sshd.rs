//! The system's sshd, as this user, on a port of its own: the real way to another home.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::json;

use super::process::signal;
use super::{TestEnv, kill9, until};
use crate::process::ChildGuard;

const PROGRAM: &str = "/usr/sbin/sshd";
/// Directory without which sshd does not start as root.
const EMPTY: &str = "/run/sshd";

/// A way into a home over ssh. Dropping it ends sshd and all its sessions.
#[derive(Debug)]
pub struct Sshd {
    child: ChildGuard,
    dir: PathBuf,
}

impl Sshd {
    /// Returns what is not installed.
    pub fn missing() -> Option<String> {
        let lacks = |path: &str| !Path::new(path).exists();
        let missing =
            [PROGRAM, "/usr/bin/ssh", "/usr/bin/ssh-keygen"].into_iter().find(|p| lacks(p));
        missing.map(|path| format!("`{path}` is missing: `apt-get install openssh-server`"))
    }

    /// Starts an sshd for this home, with a banner, and a key that may do everything.
    pub fn start(far: &TestEnv) -> Sshd {
        let dir = far.path("ssh");
        fs::create_dir(&dir).expect("a directory");
        for name in ["host", "other", "key"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.join(name));
            assert!(keygen.status().expect("ssh-keygen").success());
        }
        if !Path::new(EMPTY).exists() {
            // Fails for users who need no such directory.
            fs::create_dir(EMPTY).ok();
        }
        let public = |name: &str| fs::read_to_string(dir.join(name)).expect("a key");
        let known = format!("box {}changed {}", public("host.pub"), public("other.pub"));
        fs::write(dir.join("known_hosts"), known).expect("the known hosts");
        fs::write(dir.join("banner"), "Welcome to the box\n").expect("the banner");
        let (child, port) = start_on_free_port(&dir, &server_config(far, &dir));
        let path = dir.display();
        let client = format!(
            "Port {port}\nHostName 127.0.0.1\nHostKeyAlias box\nIdentityFile {path}/key\n\
             IdentitiesOnly yes\nUserKnownHostsFile {path}/known_hosts\n\
             GlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\n"
        );
        fs::write(dir.join("client"), client).expect("the configuration of ssh");
        let sshd = Sshd { child, dir };
        sshd.restrict_key("");
        sshd
    }

    /// Sets the options of the key in `authorized_keys`, for new connections.
    pub fn restrict_key(&self, options: &str) {
        let key = fs::read_to_string(self.dir.join("key.pub")).expect("the key");
        fs::write(self.dir.join("authorized_keys"), format!("{options} {key}")).expect("the key");
    }

    /// A table `[hosts.NAME]` that leads here; `options` go to ssh, `keys` into the table.
    pub fn table(&self, name: &str, options: &[&str], keys: &str) -> String {
        let config = self.dir.join("client").display().to_string();
        let options: Vec<&str> = options.iter().copied().chain(["-F", config.as_str()]).collect();
        format!("[hosts.{name}]\nssh_options = {}\n{keys}\n", json!(options))
    }

    /// The key `relay` for a home.
    pub fn relay(far: &TestEnv) -> String {
        format!("relay = \"{} relay\"", far.program("acpctl").display())
    }

    /// Processes of open connections.
    pub fn sessions(&self) -> Vec<u32> {
        let pid = self.child.0.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Every ssh that a home has started.
    pub fn clients(near: &TestEnv) -> Vec<u32> {
        let tree = near.tree().into_iter();
        tree.filter(|own| own.command.starts_with("ssh ")).map(|own| own.pid).collect()
    }

    /// Waits until no connection is left on either side. Nothing else may run in `near`.
    pub fn wait_unused(&self, near: &TestEnv, far: &TestEnv) {
        until("the end of all connections", || {
            let has_relay = far.tree().iter().any(|process| process.command.ends_with(" relay"));
            (near.tree().is_empty() && self.sessions().is_empty() && !has_relay).then_some(())
        });
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // A stopped one starts no more sessions.
        signal(self.child.0.id(), Signal::SIGSTOP);
        self.sessions().into_iter().for_each(kill9);
    }
}

fn server_config(far: &TestEnv, dir: &Path) -> String {
    let path = dir.display();
    let mut config = format!(
        "HostKey {path}/host\nAuthorizedKeysFile {path}/authorized_keys\nBanner {path}/banner\n\
         PidFile none\nUsePAM no\nStrictModes no\nMaxStartups 100\nLogLevel VERBOSE\nSetEnv"
    );
    let command = far.command("true");
    for (name, value) in command.get_envs() {
        let value = value.expect("a value").display();
        let _ = write!(config, " {}={value}", name.display());
    }
    config.push('\n');
    // Connections that are cut are no attack. Older versions do not know the option.
    let lenient = format!("{config}PerSourcePenalties no\n");
    let file = dir.join("server");
    fs::write(&file, &lenient).expect("the configuration of sshd");
    let mut check = Command::new(PROGRAM);
    check.args(["-t", "-f"]).arg(&file).stderr(Stdio::null());
    if check.status().expect("sshd").success() { lenient } else { config }
}

fn start_on_free_port(dir: &Path, config: &str) -> (ChildGuard, u16) {
    until("a free port for sshd", || {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let file = dir.join("server");
        fs::write(&file, format!("{config}ListenAddress 127.0.0.1:{port}\n")).expect("a file");
        let log = dir.join("log");
        let mut sshd = Command::new(PROGRAM);
        sshd.args(["-D", "-e", "-f"]).arg(&file).env_clear().stdin(Stdio::null());
        sshd.stdout(Stdio::null()).stderr(File::create(&log).expect("a log"));
        let mut child = ChildGuard(sshd.spawn().expect("sshd"));
        let listens = until("sshd to listen", || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            text.contains("Server listening").then_some(true).or(child.is_over().then_some(false))
        });
        let log = fs::read_to_string(&log).unwrap_or_default();
        assert!(listens || log.contains("in use"), "sshd did not start: {log}");
        listens.then_some((child, port))
    })
}
