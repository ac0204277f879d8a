//! Bad days with real agents: no login, a dead wrapper, a lost conversation, a directory that is gone, and
//! everything killed at once. What acpd promises for each is in `docs/recovery.md`.
//!
//! Installs what is missing, and is skipped like the tests of `real_agents.rs`.

mod program;

use std::fs;
use std::path::Path;
use std::process::Command;

use acpd_sys::process::{Liveness, StopSignal, signal_one};
use program::{Ended, Program};
use serde_json::Value;
use xtask::home::{Home, kill_tree, tree};
use xtask::real::{Model, Scripts, ready};
use xtask::{Result, workspace};

#[test]
fn copilot_without_a_login_is_started_once_and_its_sessions_wait_for_the_login() {
    without_a_login().unwrap();
}

#[test]
fn claude_whose_npx_is_killed_in_a_turn_leaves_nothing_and_comes_back() {
    wrapper_killed("claude", "claude+npx", 4).unwrap();
}

#[test]
fn copilot_whose_loader_is_killed_in_a_turn_leaves_nothing_and_comes_back() {
    wrapper_killed("copilot", "copilot+loader", 2).unwrap();
}

#[test]
fn zedcodex_whose_sessions_were_deleted_goes_on_with_a_summary_and_says_so() {
    forgotten().unwrap();
}

#[test]
fn zedcodex_waits_for_a_directory_and_goes_on_where_it_was_moved() {
    directory_gone("zedcodex").unwrap();
}

#[test]
fn copilot_waits_for_a_directory_and_goes_on_where_it_was_moved() {
    directory_gone("copilot").unwrap();
}

#[test]
fn two_agents_killed_at_once_bring_all_their_sessions_back() {
    both_killed().unwrap();
}

fn without_a_login() -> Result {
    let Some(stage) = Stage::new(&["copilot"])? else { return Ok(()) };
    // A file says that there is a login, as if `copilot login` had made it.
    let script = stage.home.path("copilot");
    let login = script.with_extension("login");
    let choice = r#"[ -e "$0.login" ] || exec "$1" copilot+noauth
exec "$1" copilot
"#;
    fs::write(&script, choice)?;
    let sh = ["sh".to_owned(), path(&script)?, path(&stage.scripts.run_agent())?];
    stage.configure(&[("copilot", &sh)])?;
    let state = |of: &str| -> Result<Value> {
        let status = stage.home.read_json(&["ps"])?;
        let list = status[of].as_array().ok_or("no list")?;
        let is = |entry: &&Value| entry["name"] == if of == "agents" { "copilot" } else { "work" };
        Ok(list.iter().find(is).cloned().unwrap_or_default())
    };
    let refused = |prompt: &str| -> Result {
        let said = stage.run("copilot", "work", prompt)?;
        said.is(4, &["Authentication required", "acpctl auth login copilot"]);
        Ok(())
    };

    // However often one asks, it is one process, and no session is begun.
    refused("say #never")?;
    refused("say #never")?;
    let agent = state("agents")?;
    assert_eq!(agent["state"], "needs_auth", "{agent}");
    assert_eq!(agent["auth"]["state"], "needs_login", "{agent}");
    assert_eq!(agent["auth"]["methods"][0]["id"], "copilot-login", "{agent}");
    assert_eq!(agent["restarts"], 0, "it is no crash: {agent}");
    assert_eq!(state("sessions")?, Value::Null);
    for shown in [stage.home.read(&["ps"])?, stage.home.read(&["auth", "status"])?] {
        assert!(shown.contains("needs login"), "{shown}");
        assert!(shown.contains("acpctl auth login copilot"), "{shown}");
    }
    assert_eq!(stage.starts("copilot")?.len(), 1);

    // With a login it works; without one again, the session waits and its prompt is refused.
    fs::write(&login, "")?;
    stage.home.read(&["agent", "restart", "copilot"])?;
    is_answered(&stage.run("copilot", "work", "say #one")?, "tags=one");
    fs::remove_file(&login)?;
    stage.home.read(&["agent", "restart", "copilot"])?;
    refused("say #two")?;
    refused("say #two")?;
    let session = state("sessions")?;
    assert_eq!(session["state"], "blocked", "{session}");
    assert_eq!(session["queued"], 0, "{session}");
    assert_eq!(stage.starts("copilot")?.len(), 3);

    // A refused prompt is not sent again after the login.
    fs::write(&login, "")?;
    stage.home.read(&["agent", "restart", "copilot"])?;
    is_answered(&stage.run("copilot", "work", "say #three")?, "tags=one,three");
    assert_eq!(state("agents")?["auth"]["state"], "authenticated");
    assert_eq!(stage.starts("copilot")?.len(), 4);
    stage.home.stop()
}

/// The process that acpd has started only waits for the true agent: at least `depth` processes.
fn wrapper_killed(agent: &str, variant: &str, depth: usize) -> Result {
    let Some(stage) = Stage::new(&[agent])? else { return Ok(()) };
    stage.configure(&[(agent, &stage.scripts.command(variant))])?;
    is_answered(&stage.run(agent, "work", "say #one")?, "tags=one");
    let turn = stage.in_a_turn(agent, "work", "say #two [slow 300]")?;
    let wrapper = stage.home.agent(agent)?;
    let old = tree(wrapper).alive();
    assert!(old.len() >= depth, "{old:?}");
    signal_one(wrapper, StopSignal::Kill);
    turn.finish()?.is(6, &["SIGKILL"]);

    is_answered(&stage.run(agent, "work", "say #three")?, "tags=one,two,three");
    let alive: Vec<_> = old.iter().filter(|process| process.is_alive() != Liveness::Gone).collect();
    assert!(alive.is_empty(), "{alive:?} of {old:?}");
    let starts = stage.starts(agent)?;
    assert_eq!(starts.len(), 2, "started once more");
    let beside: Vec<_> = old.iter().filter(|process| starts[1].contains(&process.pid)).collect();
    assert!(beside.is_empty(), "{beside:?} lived when the next one started");
    stage.home.stop()
}

fn forgotten() -> Result {
    let Some(stage) = Stage::new(&["zedcodex"])? else { return Ok(()) };
    stage.configure(&[("zedcodex", &stage.scripts.command("zedcodex"))])?;
    is_answered(&stage.run("zedcodex", "work", "say #one")?, "tags=one");
    stage.home.read(&["agent", "stop", "zedcodex"])?;
    fs::remove_dir_all(stage.home.path("agent/.codex/sessions"))?;
    stage.home.read(&["agent", "start", "zedcodex"])?;

    let said = stage.run("zedcodex", "work", "say #two")?;
    said.is(7, &["previous session could not be restored", "continues with a summary"]);
    // The stand-in repeats the tags of what it was told: the first can only come from the summary.
    assert!(said.stdout.contains("tags=one,two"), "{said:?}");
    let log = stage.home.read(&["session", "log", "work", "--json"])?;
    let lines: Vec<Value> =
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let restored = lines.iter().filter(|entry| entry["line"]["method"] == "_acpd/restored");
    let levels: Vec<_> = restored.map(|entry| &entry["line"]["params"]["level"]).collect();
    assert_eq!(levels, ["reseeded"]);
    // From here on it is a conversation like any other.
    is_answered(&stage.run("zedcodex", "work", "say #three")?, "tags=one,two,three");
    stage.home.stop()
}

fn directory_gone(agent: &str) -> Result {
    let Some(stage) = Stage::new(&[agent])? else { return Ok(()) };
    stage.configure(&[(agent, &stage.scripts.command(agent))])?;
    let (old, new) = (stage.home.path("old"), stage.home.path("new"));
    fs::create_dir(&old)?;
    let begun = ["run", "-a", agent, "-s", "work", "--cwd", &path(&old)?, "say #one"];
    is_answered(&Program::start(&mut stage.home.acpctl(&begun))?.finish()?, "tags=one");
    let sessions = stage.home.read_json(&["session", "ls"])?;
    let id = sessions["sessions"][0]["sessionId"].as_str().ok_or("no session")?.to_owned();

    fs::rename(&old, &new)?;
    stage.home.read(&["agent", "restart", agent])?;
    let said = stage.run(agent, &id, "say #never")?;
    said.is(3, &["does not exist", "acpctl session move work --cwd DIR"]);
    assert_eq!(stage.home.read_json(&["session", "show", &id])?["state"], "blocked");
    // The directory is back: nothing has to be done.
    fs::rename(&new, &old)?;
    is_answered(&stage.run(agent, &id, "say #two")?, "tags=one,two");
    // The directory moves for good, and its name with it.
    fs::rename(&old, &new)?;
    stage.home.read(&["session", "move", &id, "--cwd", &path(&new)?])?;
    let there = ["run", "-a", agent, "-s", "work", "--cwd", &path(&new)?, "say #three"];
    is_answered(&Program::start(&mut stage.home.acpctl(&there))?.finish()?, "tags=one,two,three");
    stage.home.stop()
}

fn both_killed() -> Result {
    const AGENTS: [&str; 2] = ["zedcodex", "copilot"];
    let Some(stage) = Stage::new(&AGENTS)? else { return Ok(()) };
    let [codex, copilot] = [stage.scripts.command("zedcodex"), stage.scripts.command("copilot")];
    stage.configure(&[("zedcodex", &codex), ("copilot", &copilot)])?;
    let sessions =
        || AGENTS.into_iter().flat_map(|agent| ["a", "b", "c"].map(|name| (agent, name)));
    for (agent, name) in sessions() {
        let tag = format!("{name}-of-{agent}");
        is_answered(&stage.run(agent, name, &format!("say #{tag}"))?, &format!("tags={tag}"));
    }
    // Each has a turn, too.
    let turns = AGENTS.map(|agent| stage.in_a_turn(agent, "a", "say #cut [slow 300]"));
    let leaders = AGENTS.map(|agent| stage.home.agent(agent));
    for leader in leaders {
        kill_tree(leader?);
    }
    for turn in turns {
        turn?.finish()?.is(6, &["SIGKILL"]);
    }
    // All at once, while they start.
    let back: Vec<_> = sessions()
        .map(|(agent, name)| {
            (agent, name, Program::start(&mut stage.command(agent, name, "say #back")))
        })
        .collect();
    for (agent, name, back) in back {
        let cut = if name == "a" { ",cut" } else { "" };
        is_answered(&back?.finish()?, &format!("tags={name}-of-{agent}{cut},back"));
    }
    for agent in AGENTS {
        assert_eq!(stage.starts(agent)?.len(), 2, "{agent}");
    }
    stage.home.stop()
}

/// A home, real agents in it, and the stand-in for their models.
struct Stage {
    home: Home,
    scripts: Scripts,
    model: Model,
}

impl Stage {
    /// `None`, after a line that says why, when these agents cannot be had here.
    fn new(agents: &[&str]) -> Result<Option<Stage>> {
        let Some(scripts) = ready(agents)? else { return Ok(None) };
        let model = scripts.start_model()?;
        let home = Home::new(&workspace::bin_dir("debug")?)?;
        Ok(Some(Stage { home, scripts, model }))
    }

    /// Profiles of these names. Each start of one is noted, with all processes that there are then.
    fn configure(&self, agents: &[(&str, &[String])]) -> Result {
        let note = self.home.path("note.sh");
        fs::write(&note, "(cd /proc && echo [0-9]*) >>\"$AGENT_STARTS\"\nexec \"$@\"\n")?;
        let mut tables = Vec::new();
        for (name, command) in agents {
            let own = [
                ("AGENT_STARTS", path(&self.home.path(&format!("{name}.starts")))?),
                ("AGENT_WRAP", format!("sh {}", path(&note)?)),
            ];
            tables.push(self.scripts.profile(&self.home, &self.model, name, command, &own));
        }
        self.home.configure(&tables.concat())
    }

    /// The pids that there were at each start of an agent.
    fn starts(&self, agent: &str) -> Result<Vec<Vec<u32>>> {
        let text = fs::read_to_string(self.home.path(&format!("{agent}.starts")))?;
        let pids = |line: &str| line.split(' ').filter_map(|pid| pid.parse().ok()).collect();
        Ok(text.lines().map(pids).collect())
    }

    fn command(&self, agent: &str, session: &str, prompt: &str) -> Command {
        self.home.acpctl(&["run", "-a", agent, "-s", session, prompt])
    }

    fn run(&self, agent: &str, session: &str, prompt: &str) -> Result<Ended> {
        Program::start(&mut self.command(agent, session, prompt))?.finish()
    }

    /// A turn of which the first piece was seen.
    fn in_a_turn(&self, agent: &str, session: &str, prompt: &str) -> Result<Program> {
        let mut turn = Program::start(&mut self.command(agent, session, prompt))?;
        turn.read_to("tick 1/300")?;
        Ok(turn)
    }
}

/// With success, and these tags at the end of the output.
#[track_caller]
fn is_answered(said: &Ended, tags: &str) {
    said.answers(tags);
    assert!(said.stdout.trim_end().ends_with(tags), "no {tags:?} at the end of {said:?}");
}

fn path(path: &Path) -> Result<String> {
    Ok(path.to_str().ok_or("a path is not UTF-8")?.to_owned())
}
