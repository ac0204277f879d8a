//! A message to a running turn of a real agent.
//!
//! Installs what is missing, and is skipped like the tests of `real_agents.rs`.

use std::io::Read as _;
use std::process::{Child, Stdio};
use std::time::Duration;

use xtask::Result;
use xtask::home::{kill_tree, wait_for};
use xtask::real::home_with;

/// How long acpd may take to notice that an agent has ended.
const NOTICE: Duration = Duration::from_secs(30);

#[test]
fn claude_hears_what_is_said_into_its_turn_and_remembers_it() {
    steered("claude").unwrap();
}

fn steered(agent: &str) -> Result {
    let Some((home, _model)) = home_with(agent)? else { return Ok(()) };
    home.read(&["run", "-a", agent, "-s", "work", "say #one"])?;

    let idle = home.acpctl(&["run", "--steer", "work", "say #never"]).output()?;
    let told = String::from_utf8_lossy(&idle.stderr);
    assert!(told.starts_with("error: no turn is running in session `work`\n"), "{told}");

    let mut run = home.acpctl(&["run", "-s", "work", "say #two [slow 30]"]);
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    read_until(&mut run, "tick 5/30")?;
    home.read(&["run", "--steer", "work", "and #three"])?;
    let output = run.wait_with_output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("> and #three\n"), "who runs the turn is shown it: {told}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("tags=one,two,three"), "{said}");

    // The message is restored with the conversation, and is in the journal once.
    let old = home.agent(agent)?;
    kill_tree(old);
    // A prompt that comes before acpd has noticed is a turn that is cut off.
    let is_noticed = || !home.agent(agent).is_ok_and(|now| now == old);
    wait_for("the end of the agent in acpd's eyes", NOTICE, is_noticed)?;
    let said = home.read(&["run", "-s", "work", "say #four"])?;
    assert!(said.contains("tags=one,two,three,four"), "{said}");
    let log = home.read(&["session", "log", "work"])?;
    assert_eq!(log.matches("> and #three").count(), 1, "{log}");
    assert!(!log.contains("#never"), "{log}");
    assert_eq!(home.read_json(&["session", "show", "work"])?["prompts"], 3);
    home.stop()
}

/// Reads stdout up to and including `text`.
fn read_until(child: &mut Child, text: &str) -> Result {
    let stdout = child.stdout.as_mut().ok_or("no pipe")?;
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(text.as_bytes()) {
        if stdout.read(&mut byte)? == 0 {
            let seen = String::from_utf8_lossy(&seen);
            return Err(format!("the answer ended with {seen:?}").into());
        }
        seen.push(byte[0]);
    }
    Ok(())
}
