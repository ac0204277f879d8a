//! Sessions of one real agent, which must not disturb each other: two of them over a restart, and a turn while others
//! are made and brought back. It decides `sharing` in the catalogue.
//!
//! Installs what is missing, and is skipped like the tests of `real_agents.rs`.

mod program;

use program::Program;
use xtask::Result;
use xtask::real::home_with;

macro_rules! agents {
    ($($(#[$ignored:meta])* $name:ident($agent:literal, $what:expr);)*) => {
        $(
            #[test]
            $(#[$ignored])*
            fn $name() {
                sessions($agent, $what).unwrap();
            }
        )*
    };
}

agents! {
    zedcodex_shares_a_process("zedcodex", true);
    copilot_shares_a_process("copilot", true);
    claude_shares_a_process("claude", true);
    codex_shares_a_process("codex", true);
    opencode_has_a_process_for_each_session("opencode", false);
    pi_has_a_process_for_each_session("pi", false);
    #[ignore = "takes a big download; run it with `cargo test -p xtask --test real_sharing -- --ignored`"]
    hermes_shares_a_process("hermes", true);
    #[ignore = "takes a big download; run it with `cargo test -p xtask --test real_sharing -- --ignored`"]
    fast_agent_has_a_process_for_each_session("fast-agent", false);
}

fn sessions(agent: &str, is_shared: bool) -> Result {
    let Some((home, _model)) = home_with(agent)? else { return Ok(()) };
    let say = |session: &str, prompt: &str, tags: &str| -> Result {
        let mut run = home.acpctl(&["run", "-a", agent, "-s", session, prompt]);
        Program::start(&mut run)?.finish()?.answers(&format!("tags={tags}"));
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
    let mut run = Program::start(&mut run)?;
    run.read_to("tick 1/50")?;
    say("b", "say #b3", "b1,b2,b3")?;
    say("c", "say #c1", "c1")?;
    let run = run.finish()?;
    assert!(run.stdout.contains("tick 50/50"), "{run:?}");
    run.answers("tags=a1,a2,a3");
    home.stop()
}
