//! Sessions of one real agent, which must not disturb each other: two of them over a restart, and a turn while others
//! are made and brought back. It decides `sharing` in the catalogue.
//!
//! Installs what is missing, and is skipped like the tests of `real_agents.rs`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use xtask::Result;
use xtask::home::ChildGuard;
use xtask::real::home_with;

#[test]
fn zedcodex_shares_a_process() {
    sessions("zedcodex", true).unwrap();
}

#[test]
fn copilot_shares_a_process() {
    sessions("copilot", true).unwrap();
}

#[test]
fn claude_shares_a_process() {
    sessions("claude", true).unwrap();
}

#[test]
fn codex_shares_a_process() {
    sessions("codex", true).unwrap();
}

#[test]
fn opencode_has_a_process_for_each_session() {
    sessions("opencode", false).unwrap();
}

#[test]
fn pi_has_a_process_for_each_session() {
    sessions("pi", false).unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo test -p xtask --test real_sharing -- --ignored`"]
fn hermes_shares_a_process() {
    sessions("hermes", true).unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo test -p xtask --test real_sharing -- --ignored`"]
fn fast_agent_has_a_process_for_each_session() {
    sessions("fast-agent", false).unwrap();
}

fn sessions(agent: &str, is_shared: bool) -> Result {
    let Some((home, _model)) = home_with(agent)? else { return Ok(()) };
    let say = |session: &str, prompt: &str, tags: &str| -> Result {
        let said = home.read(&["run", "-a", agent, "-s", session, prompt])?;
        assert!(
            said.trim_end().lines().any(|line| line.ends_with(&format!("tags={tags}"))),
            "{session}: {said}"
        );
        Ok(())
    };
    say("a", "say #a1", "a1")?;
    say("b", "say #b1", "b1")?;
    let pid = |session: &str| -> Result<u64> {
        let shown = home.read_json(&["session", "show", session])?;
        Ok(shown["pid"].as_u64().ok_or("no process has the session")?)
    };
    assert_eq!(pid("a")? == pid("b")?, is_shared, "sessions share a process");
    // None without a session is left.
    let agents = home.read_json(&["ps"])?;
    let agents = agents["agents"].as_array().ok_or("no agents")?.clone();
    let shown = agents.iter().find(|shown| shown["name"] == agent).ok_or("no agent")?;
    let others = shown["otherPids"].as_array().map_or(0, Vec::len);
    assert_eq!(others, usize::from(!is_shared), "{shown}");

    home.read(&["agent", "restart", agent])?;
    say("a", "say #a2", "a1,a2")?;
    say("b", "say #b2", "b1,b2")?;

    home.read(&["agent", "restart", agent])?;
    let mut run = home.acpctl(&["run", "-a", agent, "-s", "a", "say #a3 [slow 50]"]);
    let mut run = ChildGuard(run.stdout(Stdio::piped()).spawn()?);
    let mut stdout = BufReader::new(run.0.stdout.take().ok_or("no pipe")?);
    let mut said = Vec::new();
    stdout.read_until(b'/', &mut said)?;
    say("b", "say #b3", "b1,b2,b3")?;
    say("c", "say #c1", "c1")?;
    stdout.read_to_end(&mut said)?;
    let said = String::from_utf8(said)?;
    assert!(said.contains("tick 50/50") && said.contains("tags=a1,a2,a3"), "{said}");
    assert!(run.0.wait()?.success());
    home.stop()
}
