//! An upgrade and a downgrade while agents stream: the old program is deleted, agents begin and come back without it,
//! and the new one takes over all that runs. Nothing is lost or doubled.
//!
//! The other build is the one that `ACPD_OTHER_BUILD` names, else a copy of the programs that says another version.
#![cfg(target_os = "linux")]

mod builds;
mod program;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use acpd_sys::process::{ProcessId, StopSignal, signal_one};
use builds::{Build, Run, remove};
use serde_json::Value;
use xtask::Result;
use xtask::home::{Home, wait_for};

const AGENTS: usize = 8;
/// How long a step may take.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn an_upgrade_under_eight_streams_loses_nothing() {
    let own = Build::own().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let other = Build::other(&own, dir.path()).unwrap();
    change(&other, &own).unwrap();
}

#[test]
fn a_downgrade_under_eight_streams_loses_nothing() {
    let own = Build::own().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let other = Build::other(&own, dir.path()).unwrap();
    change(&own, &other).unwrap();
}

/// From one build to another.
fn change(from: &Build, to: &Build) -> Result {
    let is_real = std::env::var_os(builds::OTHER).is_some();
    let programs = tempfile::tempdir()?;
    let home = Home::new(programs.path())?;
    from.install(programs.path())?;
    // Agents are programs of their own, which no upgrade of acpd touches.
    let agent = Build::own()?.dir.join("acpd").display().to_string();
    let agents = (0..AGENTS + 2)
        .map(|n| format!("[agents.agent{n}]\ncommand = [{agent:?}, \"scripted-agent\"]\n"));
    home.configure(&agents.collect::<String>())?;

    // Before: an agent that will have to come back, and eight that stream.
    home.read(&["run", "-a", &idle(), "-s", "idle", "--no-stdin", "say #one"])?;
    let runs: Result<Vec<Run>> = (0..AGENTS)
        .map(|n| Run::start(home.acpctl(&[]), &format!("agent{n}"), "many", 300))
        .collect();
    let mut runs = runs?;
    for run in &mut runs {
        run.read_to(5)?;
    }

    // The old program is deleted: what runs starts agents and brings them back without its file. 0.1.0 could not.
    if !is_real || from.version != "0.1.0" {
        without_program(&home, from, programs.path())?;
    }

    // The new one says nothing of the other version.
    to.install(programs.path())?;
    let listed = home.acpctl(&["session", "ls"]).output()?;
    assert!(listed.status.success() && listed.stderr.is_empty(), "{listed:?}");

    // The new daemon takes over in the middle of the answers.
    let pid = home.daemon()?.pid;
    let restarted = home.acpctl(&["daemon", "restart"]).output()?;
    let said = String::from_utf8_lossy(&restarted.stderr);
    if to.version == env!("CARGO_PKG_VERSION") {
        assert_eq!(
            said,
            format!("acpd restarted (pid {pid}): version {}, was {}\n", to.version, from.version)
        );
    }
    let status = home.read_json(&["status"])?;
    assert_eq!(
        (&status["daemon"]["version"], status["daemon"]["pid"].as_u64()),
        (&Value::from(to.version.as_str()), Some(u64::from(pid)))
    );
    for mut run in runs {
        run.read_to(100)?;
        run.finish()?;
    }
    for n in 0..AGENTS {
        let next = home.read(&[
            "run",
            "-a",
            &format!("agent{n}"),
            "-s",
            "many",
            "--no-stdin",
            "say #next",
        ])?;
        assert!(next.contains("history=1 "), "{next}");
    }
    let again = home.read(&["run", "-s", "idle", "--no-stdin", "say #last"])?;
    assert!(again.contains("tags=one,") && again.contains("last"), "{again}");

    // The doctor knows which of them are kept by the old program.
    if is_real && to.version == env!("CARGO_PKG_VERSION") {
        let found = home.read_json(&["doctor"])?;
        let shims: Vec<_> = found["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|found| found["check"] == "shims")
            .collect();
        assert!(shims.len() > AGENTS, "{found}");
        assert_eq!(shims[0]["fix"], "acpctl agent restart agent0");
    }
    home.stop()
}

/// The agent that has to come back.
fn idle() -> String {
    format!("agent{AGENTS}")
}

/// Deletes the program of the running daemon, which brings one agent back and starts another one.
fn without_program(home: &Home, from: &Build, programs: &Path) -> Result {
    remove(programs)?;
    let from_here = |args: &[&str]| -> Result<String> {
        xtask::workspace::read(in_home(home, from).args(args))
    };
    let pid = home_agent(home, from, &idle())?;
    signal_one(ProcessId::of(pid).ok_or("it has just ended")?, StopSignal::Kill);
    // The daemon must know of the end: a prompt that it still sends to this process is interrupted.
    wait_for("another agent", PATIENCE, || {
        home_agent(home, from, &idle()).is_ok_and(|is| is != pid)
    })?;
    let back = from_here(&["run", "-s", "idle", "--no-stdin", "say #two"])?;
    assert!(back.contains("history=1 tags=one,two"), "{back}");
    let new = format!("agent{}", AGENTS + 1);
    let begun = from_here(&["run", "-a", &new, "-s", "new", "--no-stdin", "say #one"])?;
    assert!(begun.contains("tags=one"), "{begun}");
    Ok(())
}

/// `acpctl` of a build whose programs are not installed any more.
fn in_home(home: &Home, build: &Build) -> Command {
    let mut command = home.command(&build.dir.join("acpctl"));
    command.arg("--no-spawn");
    command
}

fn home_agent(home: &Home, from: &Build, name: &str) -> Result<u32> {
    let said = xtask::workspace::read(in_home(home, from).args(["agent", "show", name, "--json"]))?;
    let info: Value = serde_json::from_str(&said)?;
    Ok(u32::try_from(info["pid"].as_u64().ok_or("it does not run")?)?)
}
