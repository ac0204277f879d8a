//! Real agents from their public packages, under acpd: a conversation, the daemon killed in mid-answer
//! and the answer completed, the agent's whole tree killed in mid-answer, and the conversation goes on.
//!
//! Each test installs its agent if need be. Outside of continuous integration a test is skipped, with
//! a line that says so, when npm or the scripts are missing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Read as _};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
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
    let first = say(&home, agent, "say #one")?;
    assert!(first.contains("tags=one"), "{first}");
    let (watcher, watched) = watch(&home)?;

    // The daemon dies in mid-answer: a watching client sees the answer completed, once.
    let mut asked = home.acpctl(&["run", "-a", agent, "-s", "work", "say #mid [slow 30]"]);
    let mut asked = asked.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let middle = read_until(&mut asked, "tick 5/30")?;
    let daemon = home.daemon()?;
    kill(Pid::from_raw(i32::try_from(daemon.pid)?), Signal::SIGKILL)?;
    let output = asked.wait_with_output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let middle = middle + &String::from_utf8_lossy(&output.stdout);
    all_ticks(agent, &middle);
    assert_ne!(home.daemon()?, daemon);

    // Second prompt; everything dies when a piece of the answer was seen.
    let mut asked = home.acpctl(&["run", "-a", agent, "-s", "work", "say #two [slow 30]"]);
    let mut asked = asked.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let seen = read_until(&mut asked, "tick 5/30")?;
    let old = kill_tree(home.agent(agent)?);
    let output = asked.wait_with_output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{told}");
    assert!(told.contains("SIGKILL"), "the message says how it died: {told}");
    let seen = seen + &String::from_utf8_lossy(&output.stdout);

    // Third prompt: the conversation came back.
    let third = say(&home, agent, "say #three")?;
    assert!(third.contains("tags=one,mid,two,three"), "{third}");

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
    let table = |pairs: &[(&str, String)]| {
        let pairs = pairs.iter().map(|(key, value)| format!("{key} = {value:?}"));
        pairs.collect::<Vec<_>>().join(", ")
    };
    let path = |path: std::path::PathBuf| path.display().to_string();
    let notes = [
        ("AGENT_STARTS", path(home.path("starts"))),
        ("AGENT_WRAP", format!("sh {}", note.display())),
    ];
    let env = table(&[&scripts.environment(home, model)[..], &notes[..]].concat());
    let command = path(scripts.run_agent());
    // One process, which is killed.
    home.configure(&format!(
        "[agents.{agent}]\nsharing = \"agent\"\n\
         command = [{command:?}, {agent:?}]\nenv = {{ {env} }}\n"
    ))
}

/// A whole turn; what it printed.
fn say(home: &Home, agent: &str, prompt: &str) -> Result<String> {
    let output = home.acpctl(&["run", "-a", agent, "-s", "work", prompt]).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{prompt}: {error}");
    Ok(String::from_utf8(output.stdout)?)
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

/// Reads stdout up to and including `text`.
fn read_until(child: &mut Child, text: &str) -> Result<String> {
    let mut stdout = BufReader::new(child.stdout.as_mut().ok_or("no pipe")?);
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(text.as_bytes()) {
        if stdout.read(&mut byte)? == 0 {
            return Err(
                format!("the answer ended with {:?}", String::from_utf8_lossy(&seen)).into()
            );
        }
        seen.push(byte[0]);
    }
    // Nothing may be lost in the buffer: the rest is read from the pipe itself.
    seen.extend_from_slice(stdout.buffer());
    Ok(String::from_utf8(seen)?)
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
