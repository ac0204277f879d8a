//! Real agents from their public packages, under acpd: a conversation, the daemon killed in mid-answer
//! and the answer completed, the agent's whole tree killed in mid-answer, and the conversation goes on.
//!
//! Each test installs its agent if need be. Outside of continuous integration a test is skipped, with
//! a line that says so, when npm or the scripts are missing.

mod program;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use program::Program;
use serde_json::Value;
use xtask::home::{Home, kill_tree};
use xtask::real::{Model, Scripts, ready};
use xtask::{Result, workspace};

#[test]
fn zedcodex() {
    conversation("zedcodex").unwrap();
}

#[test]
fn copilot() {
    conversation("copilot").unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo xtask real claude`"]
fn claude() {
    conversation("claude").unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo xtask real opencode`"]
fn opencode() {
    conversation("opencode").unwrap();
}

fn conversation(agent: &str) -> Result {
    let Some(scripts) = ready(&[agent])? else { return Ok(()) };
    let model = scripts.start_model()?;
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    configure(&home, agent, &scripts, &model)?;

    // First prompt.
    let prompt = |text| home.acpctl(&["run", "-a", agent, "-s", "work", text]);
    Program::start(&mut prompt("say #one"))?.finish()?.answers("tags=one");
    let (watcher, watched) = watch(&home)?;

    // The daemon dies in mid-answer: a watching client sees the answer completed, once.
    let mut asked = Program::start(&mut prompt("say #mid [slow 30]"))?;
    asked.read_to("tick 5/30")?;
    let daemon = home.daemon()?;
    kill(Pid::from_raw(i32::try_from(daemon.pid)?), Signal::SIGKILL)?;
    let asked = asked.finish()?;
    asked.is(0, &[]);
    all_ticks(agent, &asked.stdout);
    assert_ne!(home.daemon()?, daemon);

    // Second prompt; everything dies when a piece of the answer was seen.
    let mut asked = Program::start(&mut prompt("say #two [slow 30]"))?;
    asked.read_to("tick 5/30")?;
    let old = kill_tree(home.agent(agent)?);
    let asked = asked.finish()?;
    asked.is(6, &["SIGKILL"]);
    let seen = asked.stdout;

    // Third prompt: the conversation came back.
    Program::start(&mut prompt("say #three"))?.finish()?.answers("tags=one,mid,two,three");

    // The old tree was gone when the new agent started.
    let starts = fs::read_to_string(home.path("starts"))?;
    let starts: Vec<&str> = starts.lines().collect();
    let pids =
        |line: &str| -> Vec<u32> { line.split(' ').filter_map(|p| p.parse().ok()).collect() };
    assert_eq!(starts.len(), 2, "the agent started twice: {starts:?}");
    let before: Vec<u32> = pids(starts[1]);
    let survivors: Vec<_> = old.iter().filter(|process| before.contains(&process.pid)).collect();
    assert!(survivors.is_empty(), "{survivors:?} lived when the new agent started: {starts:?}");

    // Every line was shown and journalled once, and the broken answer is there.
    let journal = home.read(&["session", "log", "work", "--json"])?;
    let journal = Log::parse(&journal)?;
    journal.check("journal", &seen);
    assert_eq!(journal.restored, ["resumed", "loaded"].map(|l| usize::from(l == level(agent))));
    home.stop()?;
    drop(watcher);
    let shown = Log::parse(&fs::read_to_string(watched)?)?;
    shown.check("attached client", &seen);
    Ok(())
}

/// A whole slow answer, each piece of it once and in order.
fn all_ticks(whose: &str, said: &str) {
    let ticks: Vec<&str> = said.match_indices("tick ").map(|(at, _)| &said[at..]).collect();
    let whole = (1..=30).map(|n| format!("tick {n}/30"));
    assert_eq!(ticks.len(), 30, "{whose}: {said}");
    assert!(whole.zip(ticks).all(|(tick, said)| said.starts_with(&tick)), "{whose}: {said}");
}

/// How acpd brings the sessions of this agent back.
fn level(agent: &str) -> &'static str {
    if agent == "copilot" { "loaded" } else { "resumed" }
}

fn configure(home: &Home, agent: &str, scripts: &Scripts, model: &Model) -> Result {
    // Notes which processes of this home live when an agent starts, then becomes the agent.
    let note = home.path("note.sh");
    let script = r#"#!/bin/sh
line="pid $$ beside"
for dir in /proc/[0-9]*; do
    pid=${dir#/proc/}
    [ "$pid" = $$ ] && continue
    tr '\0' '\n' <"$dir/environ" 2>/dev/null | grep -qx "AGENT_HOME=$AGENT_HOME" && line="$line $pid"
done
echo "$line" >>"$AGENT_STARTS"
exec "$@"
"#;
    fs::write(&note, script)?;
    let notes = [
        ("AGENT_STARTS", home.path("starts").display().to_string()),
        ("AGENT_WRAP", format!("sh {}", note.display())),
    ];
    // One process, which is killed.
    let profile = scripts.profile(home, model, agent, &scripts.command(agent), &notes);
    home.configure(&(profile + "sharing = \"agent\"\n"))
}

/// A client that follows the session from its beginning, into a file.
fn watch(home: &Home) -> Result<(Ended, std::path::PathBuf)> {
    let file = home.path("watched");
    let mut command = home.acpctl(&["attach", "work", "--json"]);
    let command = command.stdout(fs::File::create(&file)?).stderr(Stdio::null());
    Ok((Ended(command.spawn()?), file))
}

/// A child that is waited for; it ends with the daemon.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.kill().ok();
        }
        self.0.wait().ok();
    }
}

/// Lines of a client or of the journal.
struct Log {
    /// How often each position occurs.
    positions: BTreeMap<u64, usize>,
    said: Vec<String>,
    asked: String,
    ended: Vec<String>,
    /// How often the session came back by resume and by load.
    restored: [usize; 2],
}

impl Log {
    fn parse(text: &str) -> Result<Log> {
        let mut log = Log {
            positions: BTreeMap::new(),
            said: Vec::new(),
            asked: String::new(),
            ended: Vec::new(),
            restored: [0, 0],
        };
        for line in text.lines() {
            let entry: Value = serde_json::from_str(line)?;
            let line = entry.get("line").unwrap_or(&entry);
            let params = &line["params"];
            let seq = entry["seq"].as_u64().or(params["_meta"]["_acpd"]["seq"].as_u64());
            if let Some(seq) = seq {
                *log.positions.entry(seq).or_default() += 1;
            }
            let update = &params["update"];
            let text = update["content"]["text"].as_str().unwrap_or_default();
            match (line["method"].as_str(), update["sessionUpdate"].as_str()) {
                (Some("_acpd/turn_started"), _) => log.said.push(String::new()),
                (_, Some("agent_message_chunk")) => {
                    log.said.last_mut().ok_or("said before the first turn")?.push_str(text);
                }
                (_, Some("user_message_chunk")) => log.asked.push_str(text),
                (Some("_acpd/turn_ended"), _) => {
                    log.ended.push(params["outcome"]["kind"].as_str().unwrap_or_default().into());
                }
                (Some("_acpd/restored"), _) => match params["level"].as_str() {
                    Some("resumed") => log.restored[0] += 1,
                    Some("loaded") => log.restored[1] += 1,
                    other => return Err(format!("restored: {other:?}").into()),
                },
                _ => {}
            }
        }
        Ok(log)
    }

    fn check(&self, whose: &str, seen: &str) {
        let Log { positions, said, asked, ended, .. } = self;
        let doubled: Vec<_> = positions.iter().filter(|(_, times)| **times > 1).collect();
        assert!(doubled.is_empty(), "{whose}: positions that came twice: {doubled:?}");
        let last = positions.keys().last().copied().unwrap_or_default();
        assert_eq!(last, positions.len() as u64, "{whose}: positions are missing");
        for prompt in ["say #one", "say #mid [slow 30]", "say #two [slow 30]", "say #three"] {
            assert_eq!(asked.matches(prompt).count(), 1, "{whose}: {prompt} in {asked}");
        }
        let [one, mid, two, three] = &said[..] else { panic!("{whose}: turns: {said:?}") };
        // The stand-in repeats the prompt at the beginning of each answer.
        for (said, once) in [(one, "echo: say #one"), (three, "echo: say #three")] {
            assert_eq!(said.matches(once).count(), 1, "{whose}: {once:?} in {said}");
        }
        all_ticks(whose, mid);
        assert_eq!(two.matches("tick 5/30").count(), 1, "{whose}: {two}");
        assert!(!two.contains("tick 30/30"), "{whose}: the broken answer was not broken");
        let ticks = |text: &str| text.matches("tick ").count();
        assert_eq!(ticks(two), ticks(seen), "{whose}: what was seen of the broken answer: {two}");
        assert_eq!(*ended, ["stopped", "stopped", "interrupted", "stopped"], "{whose}");
    }
}
