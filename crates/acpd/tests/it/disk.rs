//! A disk that is full.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use acpd_test::harness::{Running, TestEnv, peak_rss, reason, rss, until};
use serde_json::json;

use crate::starting::skip;
use crate::{echo, home};

const MIB: u64 = 1 << 20;

/// A daemon whose state directory is a small file system that no other process sees. The shell that
/// made it starts another daemon when the first one is gone.
struct Small {
    _daemons: Running,
    state: PathBuf,
}

impl Small {
    /// `None` where the system does not allow it.
    fn start(env: &TestEnv) -> Option<Small> {
        Small::start_then(env, "\"$ACPD_EXE\" run")
    }

    /// With another command in the second daemon's place.
    fn start_then(env: &TestEnv, then: &str) -> Option<Small> {
        let private = if nix::unistd::geteuid().is_root() { "-m" } else { "-rm" };
        let mut trial = Command::new("unshare");
        trial.args([private, "mount", "-t", "tmpfs", "acpd", "/mnt"]);
        if !trial.output().is_ok_and(|output| output.status.success()) {
            skip("this user may not mount a small file system");
            return None;
        }
        let mut command = env.command("unshare");
        let script = format!(
            "mount -t tmpfs -o size=64m,mode=700 acpd \"$ACPD_STATE_DIR\"\n\"$ACPD_EXE\" run; {then}"
        );
        command.args([private, "sh", "-c", &script]);
        let daemons = Running::start(command);
        let state = PathBuf::from(format!("/proc/{}/root", daemons.pid()));
        let state = state.join(env.path("state").strip_prefix("/").ok()?);
        until("the daemon to listen", || UnixStream::connect(env.socket()).ok());
        Some(Small { _daemons: daemons, state })
    }

    fn fill(&self) {
        let mut filler = fs::File::create(self.state.join("filler")).unwrap();
        let block = vec![0; 1 << 16];
        while filler.write_all(&block).is_ok() {}
        while filler.write_all(&[0]).is_ok() {}
    }
}

#[test]
fn with_a_full_disk_nothing_is_shown_that_is_not_kept_and_all_goes_on_when_there_is_room() {
    let env = home([echo().unrecorded()]);
    let Some(small) = Small::start(&env) else { return };
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    let turn = client.prompt(&session, "[pause full] [chunks 25000] say #one");
    env.wait_point("full");
    let daemon = env.daemon_pid();
    let base = rss(daemon);
    small.fill();
    env.release("full");
    let store = until("the store to fail", || {
        Some(env.status()["daemon"]["store"].clone()).filter(|store| store["state"] == "failing")
    });
    assert!(store["reason"].as_str().unwrap().contains("full"), "{store}");
    let status = env.acpctl(&["status"]).success();
    assert!(status.stdout().contains("cannot write its journal"), "{status:?}");

    let refused = client.say(&session, "say #two").unwrap_err();
    assert_eq!(reason(&refused), "store_failed", "{refused}");
    assert!(refused.to_string().contains("free space"), "the way out: {refused}");
    let new = json!({"cwd": env.work("main"), "mcpServers": []});
    assert_eq!(reason(&client.call("session/new", new).unwrap_err()), "store_failed");
    env.acpctl(&["run", "-s", "docs", "hello"]).code(1).explains(&["journal", "free space"]);

    fs::remove_file(small.state.join("filler")).unwrap();
    assert_eq!(client.answer(turn).unwrap()["stopReason"], "end_turn");
    assert_eq!(env.status()["daemon"]["store"]["state"], "ok");
    let said = client.said(&session);
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("line ")).collect();
    assert_eq!(lines.len(), 25_000, "every line once");
    assert!(lines.iter().enumerate().all(|(n, line)| *line == format!("line {}", n + 1)));
    assert_eq!(env.said("fix"), said, "what was shown is what is kept");
    // 25,000 lines are more than that: the agent was held back.
    let most = peak_rss(daemon);
    assert!(most < base + 24 * MIB, "the daemon grew from {base} to {most}");
    client.say(&session, "say #three").unwrap();
    assert!(client.said(&session).contains("tags=one,three"));
}

#[test]
fn a_stop_on_a_full_disk_leaves_nothing_behind() {
    let env = home([echo().unrecorded()]);
    let Some(small) = Small::start_then(&env, "true") else { return };
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.prompt(&session, "[child] [child-setsid] [pause full] [chunks 25000] say #one");
    env.wait_point("full");
    small.fill();
    env.release("full");
    until("the store to fail", || {
        (env.status()["daemon"]["store"]["state"] == "failing").then_some(())
    });
    let agents = || env.tree().into_iter().filter(|p| p.command.contains("agent")).count();
    assert_eq!(agents(), 1);
    // The state directory, with the lock in it, is seen by the daemon alone.
    let asked = client.request("_acpd/daemon/stop", json!({}));
    client.answer(asked).expect("it ends");
    client.wait_closed();
    until("every process to be gone", || env.tree().is_empty().then_some(()));
}
