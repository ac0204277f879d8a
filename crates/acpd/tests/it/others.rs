//! Other users of the machine: what they may not enter, and whom acpd does not believe.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, thread};

use acpd_test::harness::{TestEnv, until};
use nix::unistd::{Uid, geteuid, setfsuid};
use serde_json::Value;

use crate::starting::skip;
use crate::{echo, home};

const NOBODY: u32 = 65_534;

fn open(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// One of the tests below that are not tests, run by another user, and the file that it writes.
fn stranger(env: &TestEnv, name: &str) -> (Command, PathBuf) {
    let dir = env.work("stranger");
    for (path, mode) in [(env.as_ref(), 0o755), (&env.path("work"), 0o755), (&dir, 0o777)] {
        open(path, mode);
    }
    let program = dir.join("it");
    fs::copy(env::current_exe().unwrap(), &program).unwrap();
    let answer = dir.join("answer");
    let mut command = Command::new(&program);
    command
        .args(["--exact", &format!("others::{name}"), "--ignored"])
        .env("ACPD_TEST_SOCKET", env.socket())
        .env("ACPD_TEST_ANSWER", &answer)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY);
    (command, answer)
}

/// Not a test: says something, and notes what it is told.
#[test]
#[ignore = "run by another test, as another user"]
fn knocks() {
    let Some(socket) = env::var_os("ACPD_TEST_SOCKET") else { return };
    let mut stream = UnixStream::connect(socket).unwrap();
    let mut answer = String::new();
    // The daemon may have closed its end already.
    let _ = stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"_acpd/status\"}\n");
    let _ = stream.read_to_string(&mut answer);
    fs::write(env::var_os("ACPD_TEST_ANSWER").unwrap(), answer).unwrap();
}

/// Not a test: listens, and notes what the first one to come has said.
#[test]
#[ignore = "run by another test, as another user"]
fn listens() {
    let Some(socket) = env::var_os("ACPD_TEST_SOCKET") else { return };
    let answer = env::var_os("ACPD_TEST_ANSWER").unwrap();
    let listener = UnixListener::bind(socket).unwrap();
    fs::write(&answer, "nobody came").unwrap();
    let mut heard = String::new();
    listener.accept().unwrap().0.read_to_string(&mut heard).unwrap();
    fs::write(&answer, heard).unwrap();
}

#[test]
fn another_user_is_refused() {
    if !geteuid().is_root() {
        return skip("only root can be another user");
    }
    let env = home([echo()]);
    env.acpctl(&["daemon", "start"]).success();
    // Doors are open: the check of the peer is what is left.
    let (mut command, answer) = stranger(&env, "knocks");
    open(&env.path("run"), 0o755);
    open(&env.socket(), 0o666);
    let status = command.output().unwrap();
    assert!(status.status.success(), "{status:?}");
    let lines = fs::read_to_string(&answer).unwrap();
    let refusal: Value =
        serde_json::from_str(lines.trim()).unwrap_or_else(|e| panic!("{e}: {lines}"));
    let text = refusal["error"]["message"].as_str().unwrap();
    assert!(text.contains("belongs to user 0, not to user 65534"), "{refusal}");
    open(&env.path("run"), 0o700);
    assert_eq!(env.status()["daemon"]["clients"], 1);
}

#[test]
fn a_daemon_of_another_user_is_told_nothing() {
    if !geteuid().is_root() {
        return skip("only root can be another user");
    }
    let env = home([echo()]);
    let (mut command, answer) = stranger(&env, "listens");
    fs::create_dir_all(env.path("run")).unwrap();
    open(&env.path("run"), 0o777);
    let mut server = command.stdout(Stdio::null()).spawn().unwrap();
    until("the other user to listen", || answer.exists().then_some(()));
    open(&env.path("run"), 0o700);
    env.acpctl(&["run", "a secret"]).code(1).explains(&["is served by user 65534, not by you"]);
    assert!(server.wait().unwrap().success());
    assert_eq!(fs::read_to_string(&answer).unwrap(), "");
}

#[test]
fn a_port_that_another_user_has_taken_is_not_taken_for_an_agent() {
    if !geteuid().is_root() {
        return skip("only root can be another user");
    }
    let theirs = thread::spawn(|| {
        // Only for this thread; a socket belongs to the user that makes it.
        setfsuid(Uid::from_raw(NOBODY));
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
    });
    let theirs = theirs.join().unwrap();
    let address = theirs.local_addr().unwrap().to_string();
    let env = home([]);
    env.write_config(&format!("[agents.echo]\ntcp.connect = {address:?}\n"));
    env.acpctl(&["agent", "start", "echo"])
        .code(1)
        .explains(&["user 65534 listens there, not you"]);
}

/// Finds files in a directory that other users may enter or read; returns the number of all files.
fn open_to_others(dir: &Path, open: &mut Vec<String>) -> usize {
    let mut count = 0;
    for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        // The file may be gone by now.
        let Ok(found) = path.symlink_metadata() else { continue };
        count += 1;
        if found.mode() & 0o077 != 0 && !found.is_symlink() {
            open.push(format!("{} {:o}", path.display(), found.mode()));
        }
        if found.is_dir() {
            count += open_to_others(&path, open);
        }
    }
    count
}

#[test]
fn nothing_that_acpd_makes_is_open_to_others_whatever_the_umask() {
    let env = home([echo()]);
    let start = env.acpctl_command(&["daemon", "start"]);
    let mut daemon = env.command("sh");
    daemon.args(["-c", "umask 0; exec \"$@\"", "sh"]);
    daemon.arg(start.get_program()).args(start.get_args());
    assert!(daemon.status().unwrap().success());
    env.acpctl(&["run", "-s", "fix", "say #one [stderr 10]"]).success();
    env.acpctl(&["session", "search", "one"]).success();
    let mut open = Vec::new();
    let count =
        open_to_others(&env.path("state"), &mut open) + open_to_others(&env.path("run"), &mut open);
    assert_eq!(open, Vec::<String>::new());
    assert!(count > 5, "{count}: this test looks in the wrong places");
}
