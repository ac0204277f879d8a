//! Clients that are not ours and not changed for us, with real agents behind `acpctl acp`: the official
//! SDKs for TypeScript, Python and Rust, and acpx.
//!
//! The scripts in `clients` are written on the SDKs, and hold all that they receive against the SDK's
//! schema. Each test installs what it needs, and is skipped like those of `real_agents.rs`.

mod clients;

use std::fs;
use std::time::Duration;

use acpd_sys::process::{ProcessId, StopSignal, signal_one};
use serde_json::{Value, json};
use xtask::Result;
use xtask::home::{kill_tree, wait_for};
use xtask::real::rust_client;

use clients::Stage;

const VERSION_2: &str = "[daemon]\nprotocols = [\"1\", \"2\"]\n";

#[test]
fn a_session_goes_on_in_the_next_client_by_load_and_by_resume() {
    conversation("copilot").unwrap();
}

#[test]
fn a_client_sees_its_whole_answer_though_the_daemon_is_killed() {
    streaming().unwrap();
}

#[test]
fn two_clients_share_a_turn_and_a_question() {
    two_clients().unwrap();
}

#[test]
fn acpx_keeps_its_session_over_its_processes() {
    acpx().unwrap();
}

#[test]
fn client_of_version_2_resumes_all_messages() {
    version2().unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo xtask real claude_talks_version_2`"]
fn claude_talks_version_2_with_its_client() {
    own_lines("claude").unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo xtask real codex_talks_version_2`"]
fn codex_talks_version_2_with_its_client() {
    own_lines("codex").unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo xtask real claude_talks_version_2`"]
fn claude_talks_version_2_of_work_in_the_background() {
    background("claude").unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo xtask real codex_talks_version_2`"]
fn codex_talks_version_2_of_work_in_the_background() {
    background("codex").unwrap();
}

#[test]
fn rust_client_of_version_2_resumes_its_session() {
    rust_client_of(Stage::with_demo("node", VERSION_2).unwrap(), "[ask] [tool Edit]").unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo xtask real claude_talks_version_2`"]
fn claude_talks_version_2_with_the_rust_client() {
    rust_client_of(in_version_2("claude", "node").unwrap(), "[tool bash touch made]").unwrap();
}

fn conversation(agent: &'static str) -> Result {
    let Some(stage) = Stage::new(agent, "tssdk")? else { return Ok(()) };
    let mut first = stage.typescript("conversation.mjs", &["begin"])?;
    let told = first.read_to("session ")?;
    first.pass()?;
    stage.typescript("conversation.mjs", &["load", &told])?.pass()?;
    stage.typescript("conversation.mjs", &["resume", &told])?.pass()?;
    stage.home.stop()
}

fn version2() -> Result {
    let Some(stage) = Stage::with_demo("tssdk", VERSION_2)? else { return Ok(()) };
    let mut first = stage.typescript("version2.mjs", &["begin"])?;
    let told = first.read_to("session ")?;
    first.pass()?;
    stage.typescript("version2.mjs", &["resume", &told])?.pass()?;
    stage.home.stop()
}

fn in_version_2(agent: &'static str, client: &str) -> Result<Option<Stage>> {
    Stage::with_profile(agent, client, &format!("protocol = \"2\"\n{VERSION_2}"))
}

fn own_lines(agent: &'static str) -> Result {
    let Some(stage) = in_version_2(agent, "tssdk")? else { return Ok(()) };
    let mut first = stage.typescript("own_lines.mjs", &["begin"])?;
    first.read_to("streaming")?;
    signal_one(stage.home.daemon()?, StopSignal::Kill);
    let told = first.read_to("session ")?;
    first.pass()?;
    let mut second = stage.typescript("own_lines.mjs", &["resume", &told])?;
    second.read_to("streaming")?;
    kill_tree(stage.home.agent(agent)?);
    second.pass()?;
    stage.home.stop()
}

fn background(agent: &'static str) -> Result {
    let Some(stage) = in_version_2(agent, "tssdk")? else { return Ok(()) };
    let home = &stage.home;
    let runs = || {
        let name = |process: &ProcessId| fs::read_to_string(format!("/proc/{}/comm", process.pid));
        home.processes().iter().any(|process| name(process).is_ok_and(|name| name == "tail\n"))
    };
    let mut client = stage.typescript("own_lines.mjs", &["background", agent])?;
    let session = client.read_to("left ")?;
    assert!(runs());
    let (shown, listed) = (home.read_json(&["session", "show", &session])?, home.read(&["ps"])?);
    let cancelled = home.read(&["cancel", &session, "--background"]);
    if agent == "claude" {
        assert_eq!(shown["background"][0]["title"], "tail -f /dev/null", "{shown}");
        assert!(listed.contains("1 in background"), "{listed}");
        cancelled?;
    } else {
        assert_eq!(shown["background"], Value::Null, "{shown}");
        assert!(cancelled.is_err_and(|error| error.to_string().contains("no work is in the back")));
    }
    client.pass()?;
    if agent == "codex" {
        assert!(runs(), "a cancel is for the turn");
        home.read(&["session", "close", &session])?;
    }
    wait_for("the command to end", Duration::from_secs(10), || !runs())?;
    assert!(!home.path("work/made").exists());
    assert_eq!(home.read_json(&["pending"])?["interactions"], json!([]));
    stage.home.stop()
}

/// A turn with a call, and a long answer in which the daemon is killed.
fn rust_client_of(stage: Option<Stage>, call: &str) -> Result {
    let (Some(stage), Some(program)) = (stage, rust_client()?) else { return Ok(()) };
    let mut client =
        stage.start(&program, &[&format!("say #one {call}"), "say #long [slow 30]"])?;
    client.read_to("streaming")?;
    let daemon = stage.home.daemon()?;
    signal_one(daemon, StopSignal::Kill);
    assert_ne!(stage.home.daemon()?, daemon);
    let said = client.pass()?;
    for part in ["tool_call_update: completed", "tags=one", "tags=one,long", "tags=one,long,after"]
    {
        assert!(said.lines().any(|line| line.ends_with(part)), "no {part} in {said}");
    }
    let ticks = said.split("tick ").skip(1);
    let ticks = ticks.filter_map(|rest| rest.split(['/', '\n']).next()?.parse::<u32>().ok());
    assert!(ticks.eq(1..=30), "{said}");
    stage.home.stop()
}

fn streaming() -> Result {
    let Some(stage) = Stage::new("zedcodex", "tssdk")? else { return Ok(()) };
    let mut client = stage.typescript("streaming.mjs", &[])?;
    client.read_to("streaming")?;
    let agent = stage.home.agent("zedcodex")?;
    let daemon = stage.home.daemon()?;
    signal_one(daemon, StopSignal::Kill);
    assert_ne!(stage.home.daemon()?, daemon);
    client.pass()?;
    assert_eq!(stage.home.agent("zedcodex")?, agent, "the agent has lived through it");
    stage.home.stop()
}

fn two_clients() -> Result {
    let Some(stage) = Stage::new("zedcodex", "pysdk")? else { return Ok(()) };
    stage.python("two_clients.py")?.pass()?;
    stage.home.stop()
}

fn acpx() -> Result {
    let Some(stage) = Stage::new("zedcodex", "acpx")? else { return Ok(()) };
    let says = |args: &[&str], wanted: &str| -> Result {
        let said = stage.acpx(args)?;
        assert!(said.contains(wanted), "{}: no {wanted:?} in {said}", args.join(" "));
        Ok(())
    };
    says(&["exec", "say #exec"], "tags=exec")?;
    let created = stage.acpx(&["sessions", "new"])?;
    let id = created.lines().last().unwrap_or_default();

    // The second process finds the agent that the first one left, the third one a session without.
    says(&["prompt", "say #one"], "tags=one")?;
    says(&["prompt", "say #two [tool bash echo ran > ran.txt]"], "tags=one,two")?;
    assert_eq!(std::fs::read_to_string(stage.home.path("work/ran.txt"))?, "ran\n");
    kill_tree(stage.acpx_owner()?);
    says(&["prompt", "say #three"], "tags=one,two,three")?;

    says(&["sessions", "list"], id)?;
    let sessions = stage.home.read_json(&["session", "ls"])?;
    assert!(sessions.to_string().contains(id), "no {id} in {sessions}");
    says(&["sessions", "close"], id)?;
    stage.home.stop()
}
