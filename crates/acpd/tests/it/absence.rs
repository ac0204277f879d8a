//! No daemon for long, and daemons that are called from odd places.

use std::fs;

use acpd_test::harness::{Agent, TestEnv, peak_rss, rss, until};

use crate::{echo, home};

/// The most that a shim keeps on disk before it holds its agent back.
const SPOOL: u64 = 256 << 20;

/// A shell that speaks just enough ACP to flood: the scripted agent would need much longer for it.
const FLOOD: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":\("[0-9]*-[0-9]*"\).*/\1/')
    case $line in
    *'"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
    *'"session/new"'*) answer '{"sessionId":"s"}' ;;
    *'"session/prompt"'*)
        : >"$ACPD_TEST_POINTS/flood.asked"
        while [ ! -e "$ACPD_TEST_POINTS/flood.go" ]; do sleep 0.02; done
        line=$(head -c 1000000 /dev/zero | tr '\0' x)
        n=0
        while [ $n -lt 300 ]; do
            echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'\
'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$line"'"}}}}'
            n=$((n + 1))
        done
        answer '{"stopReason":"end_turn"}' ;;
    esac
done
"#;

/// Waits until there is enough. However long that takes: it only has to go on.
fn until_grown(what: &str, enough: u64, amount: &dyn Fn() -> u64) {
    let mut last = amount();
    while last < enough {
        last = until(what, || Some(amount()).filter(|now| *now > last));
    }
}

#[test]
fn a_flood_that_nobody_reads_is_bounded_and_arrives_whole() {
    const PIECES: usize = 300;
    const PIECE: usize = 1_000_000;
    let env = home([Agent::new("flood").command(&["sh", "-c", FLOOD])]);
    let mut client = env.client("flood");
    let session = client.new_session(&env.work("main"), Some("flood"));
    client.prompt(&session, "go");
    // The daemon may die before the agent has what it has dispatched.
    until("the agent to be asked", || env.points().join("flood.asked").exists().then_some(()));
    env.kill_daemon();
    client.wait_closed();
    env.release("flood");

    // 300 MB are more than a shim keeps: in the end the agent waits.
    let shim_dirs = fs::read_dir(env.path("state").join("shims")).expect("directories of shims");
    let shim_dir = shim_dirs.flatten().next().expect("a directory of a shim").path();
    let spooled = || fs::metadata(shim_dir.join("spool")).map_or(0, |meta| meta.len());
    let full = SPOOL - (1 << 20);
    until_grown("the spool to grow", full, &spooled);
    let [shim] = &env.shims()[..] else { panic!("one shim") };
    assert!(peak_rss(shim.pid) < 40 << 20, "{} bytes at most", peak_rss(shim.pid));
    assert!(spooled() <= SPOOL + (1 << 20), "{} bytes", spooled());

    // The next daemon gets everything, and the disk is free again.
    env.acpctl(&["daemon", "start"]).success();
    let daemon = env.daemon_pid();
    let seq = || env.session("flood")["seq"].as_u64().unwrap_or_default();
    until_grown("the journal to grow", PIECES as u64, &seq);
    until("the turn to end", || (env.session("flood")["turn"]["state"] == "idle").then_some(()));
    until("the spool to be empty", || (spooled() < 1 << 20).then_some(()));
    let log = env.path("log");
    let mut read = env.acpctl_command(&["session", "log", "flood", "--json"]);
    let read = read.stdout(fs::File::create(&log).expect("a file")).status();
    assert!(read.expect("acpctl").success());
    let log = fs::read_to_string(log).expect("the journal");
    assert_eq!(log.lines().filter(|line| line.len() > PIECE).count(), PIECES);
    assert!(rss(daemon) < 120 << 20, "{} bytes afterwards", rss(daemon));
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
fn an_agents_own_tool_restarts_the_daemon_and_the_turn_goes_on() {
    let env = home([handy()]);
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "#one [pause middle] done"]);
    run.wait_stdout("paused at middle");
    let (agent, boot) = (env.agent_pid("echo"), env.status()["daemon"]["boot"].clone());
    use_tool(&env, "acpctl daemon restart");
    assert_ne!(env.status()["daemon"]["boot"], boot);
    assert_eq!(env.agent_pid("echo"), agent);
    env.release("middle");
    let out = run.finish().success();
    assert_eq!(out.stdout().matches("tags=one").count(), 1, "{out:?}");
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
