//! Real agents from their public packages, under acpd: a conversation, the daemon killed in mid-answer
//! and the answer completed, the agent's whole tree killed in mid-answer, and the conversation goes on.
//!
//! Each test installs its agent if need be. Outside of continuous integration a test is skipped, with
//! a line that says so, when npm or the scripts are missing.

mod program;

use acpd_sys::process::{StopSignal, signal_one};
use program::Program;
use serde_json::Value;
use xtask::home::{Home, kill_tree};
use xtask::real::ready;
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
#[ignore = "takes a big download; run it with `cargo xtask real claude_in_version_2`"]
fn claude_in_version_2() {
    conversation_in("claude", "2").unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo xtask real codex_in_version_2`"]
fn codex_in_version_2() {
    conversation_in("codex", "2").unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo xtask real opencode`"]
fn opencode() {
    conversation("opencode").unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo xtask real claude_is_equal_in_both_versions`"]
fn claude_is_equal_in_both_versions() {
    equal_in_both_versions("claude");
}

#[test]
#[ignore = "takes a big download; run it with `cargo xtask real codex_is_equal_in_both_versions`"]
fn codex_is_equal_in_both_versions() {
    equal_in_both_versions("codex");
}

fn equal_in_both_versions(agent: &str) {
    let [one, two] = ["1", "2"].map(|version| transcript(agent, version).unwrap());
    assert_eq!(two, one);
}

fn conversation(agent: &str) -> Result {
    conversation_in(agent, "1")
}

fn conversation_in(agent: &str, version: &str) -> Result {
    let Some(scripts) = ready(&[agent])? else { return Ok(()) };
    let model = scripts.start_model()?;
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    // One process, which is killed.
    let profile = scripts.profile(&home, &model, agent, &scripts.command(agent), &[]);
    home.configure(&format!("{profile}sharing = \"agent\"\nprotocol = \"{version}\"\n"))?;

    // First prompt.
    let prompt = |text| home.acpctl(&["run", "-a", agent, "-s", "work", text]);
    Program::start(&mut prompt("say #one"))?.finish()?.answers("tags=one");

    // The daemon dies in mid-answer: the answer is completed, once.
    let mut asked = Program::start(&mut prompt("say #mid [slow 30]"))?;
    asked.read_to("tick 5/30")?;
    let daemon = home.daemon()?;
    signal_one(daemon, StopSignal::Kill);
    let asked = asked.finish()?;
    asked.is(0, &[]);
    all_ticks(agent, &asked.stdout);
    assert_ne!(home.daemon()?, daemon);

    // Second prompt; everything dies when a piece of the answer was seen.
    let mut asked = Program::start(&mut prompt("say #two [slow 30]"))?;
    asked.read_to("tick 5/30")?;
    kill_tree(home.agent(agent)?);
    let asked = asked.finish()?;
    asked.is(6, &["SIGKILL"]);
    let seen = asked.stdout;

    // Third prompt: the conversation came back.
    Program::start(&mut prompt("say #three"))?.finish()?.answers("tags=one,mid,two,three");

    // Every line was journalled once, and the broken answer is there.
    let journal = Log::parse(&home.read(&["session", "log", "work", "--json"])?)?;
    journal.check(agent, version, &seen);
    let level = if agent == "copilot" { "loaded" } else { "resumed" };
    assert_eq!(journal.restored, [level], "how acpd brings the sessions of this agent back");
    home.stop()
}

/// Turns with tools as a client of version 1 sees them, without titles and ids.
fn transcript(agent: &str, version: &str) -> Result<Vec<String>> {
    let Some(scripts) = ready(&[agent])? else { return Ok(Vec::new()) };
    let model = scripts.start_model()?;
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    let more = format!("protocol = \"{version}\"\n[policy]\ndefault = \"allow\"\n");
    scripts.configure(&home, agent, &model, &more)?;
    // codex writes files with its shell.
    let write =
        if agent == "codex" { "bash echo hello > made.txt" } else { "write made.txt hello" };
    for prompt in [
        "say #one [think]",
        &format!("say #two [tool bash echo ran && echo twice] [tool {write}]"),
        "say #three [tool bash ls /nowhere; exit 3] [tool bash rm made.txt]",
    ] {
        home.read(&["run", "-a", agent, "-s", "work", prompt])?;
    }
    // The id of a call, a description, a text.
    let mut parts: Vec<[String; 3]> = Vec::new();
    for line in home.read(&["session", "log", "work", "--json"])?.lines() {
        let params = &serde_json::from_str::<Value>(line)?["line"]["params"];
        let update = &params["update"];
        let word = |name: &str| update[name].as_str().unwrap_or_default();
        let text = |content: &Value| content["text"].as_str().unwrap_or_default().to_owned();
        let (kind, id) = (word("sessionUpdate"), word("toolCallId"));
        let at = parts.iter().rposition(|part| part[0] == id);
        match (kind, at) {
            ("tool_call", _) => {
                let what = format!("{} {}", word("kind"), word("status"));
                parts.push([id.to_owned(), what, String::new()]);
            }
            ("tool_call_update", at) => {
                let [_, what, shown] = &mut parts[at.ok_or("an update of no call")?];
                if let Some(status) = update["status"].as_str() {
                    *what = format!("{what}, {status}");
                }
                if let [shows] = &update["content"].as_array().map_or(&[][..], Vec::as_slice) {
                    // In version 1 the agent puts outputs into a block of code.
                    let said = text(&shows["content"]).replace("```console", "").replace("```", "");
                    *shown = said.trim().to_owned() + shows["newText"].as_str().unwrap_or_default();
                }
                // And codex into members of its own.
                let output = update["_meta"]["terminal_output_delta"]["data"].as_str();
                *shown += output.unwrap_or_default().trim_end();
            }
            (_, Some(at)) if at + 1 == parts.len() && parts[at][1] == kind => {
                parts[at][2] += &text(&update["content"]);
            }
            _ if kind.ends_with("_chunk") => {
                parts.push([String::new(), kind.to_owned(), text(&update["content"])]);
            }
            _ if params["outcome"].is_object() => {
                parts.push([String::new(), params["outcome"].to_string(), String::new()]);
            }
            _ => {}
        }
    }
    home.stop()?;
    // codex numbers and times its commands.
    let is_same = |line: &&str| !line.contains("Chunk ID: ") && !line.starts_with("Wall time");
    let same = |text: String| text.lines().filter(is_same).collect::<Vec<_>>().join("\n");
    Ok(parts.into_iter().map(|[_, what, text]| format!("{what}: {}", same(text))).collect())
}

/// A whole slow answer, each piece of it once and in order.
fn all_ticks(whose: &str, said: &str) {
    let ticks: Vec<&str> = said.match_indices("tick ").map(|(at, _)| &said[at..]).collect();
    let whole = (1..=30).map(|n| format!("tick {n}/30"));
    assert_eq!(ticks.len(), 30, "{whose}: {said}");
    assert!(whole.zip(ticks).all(|(tick, said)| said.starts_with(&tick)), "{whose}: {said}");
}

/// The events of the journal.
#[derive(Default)]
struct Log {
    positions: Vec<u64>,
    said: Vec<String>,
    asked: String,
    ended: Vec<String>,
    restored: Vec<String>,
}

impl Log {
    fn parse(text: &str) -> Result<Log> {
        let mut log = Log::default();
        for line in text.lines() {
            let entry: Value = serde_json::from_str(line)?;
            let (line, params) = (&entry["line"], &entry["line"]["params"]);
            log.positions.push(entry["seq"].as_u64().ok_or("a line without a position")?);
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
                (Some("_acpd/restored"), _) => {
                    log.restored.push(params["level"].as_str().unwrap_or_default().into());
                }
                _ => {}
            }
        }
        Ok(log)
    }

    fn check(&self, whose: &str, version: &str, seen: &str) {
        let Log { positions, said, asked, ended, .. } = self;
        assert!(positions.is_sorted_by(|one, next| one < next), "{whose}: {positions:?}");
        // Lines of another version are not among them.
        let is_whole = positions.iter().copied().eq(1..=positions.len() as u64);
        assert_eq!(is_whole, version == "1", "{whose}: {positions:?}");
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
