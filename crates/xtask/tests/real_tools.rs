//! A real agent as the host of `acpctl mcp`: it gives work to another real agent.
//!
//! Installs what is missing, and is skipped like the tests of `real_agents.rs`.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use xtask::home::Home;
use xtask::real::ready;
use xtask::{Result, workspace};

#[test]
#[ignore = "takes a big download; run it with `cargo test -p xtask --test real_tools -- --ignored`"]
fn claude_delegates_to_codex() {
    delegates().unwrap();
}

fn delegates() -> Result {
    let Some(scripts) = ready(&["claude", "zedcodex"])? else { return Ok(()) };
    let model = scripts.start_model()?;
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    let program = scripts.run_agent().display().to_string();
    let agent = |name: &str| {
        let mut env = scripts.environment(&home, &model);
        env[2].1 = home.path(name).display().to_string();
        let env = env.map(|(key, value)| format!("{key} = {value:?}")).join(", ");
        format!("[agents.{name}]\ncommand = [{program:?}, {name:?}]\nenv = {{ {env} }}\n")
    };
    home.configure(&format!(
        "[daemon]\nhost = \"shim\"\n[mcp.acpd]\nbuiltin = [\"delegate\"]\n{}{}",
        agent("claude"),
        agent("zedcodex")
    ))?;
    let asks = |word: &str| {
        let arguments =
            format!(r#"{{"session_name":"helper","agent":"zedcodex","prompt":"say {word}"}}"#);
        let prompt = format!("[call mcp__acpd__prompt {arguments}]");
        home.read(&["run", "-n", "--yes", "-a", "claude", "-s", "lead", &prompt])
    };
    let first = asks("#one")?;
    assert!(first.contains(r#""status":"done""#), "{first}");
    let lead = home.read_json(&["session", "show", "lead"])?;
    let helper = home.read_json(&["session", "show", "helper"])?;
    assert_eq!(helper["parent"]["sessionId"], lead["sessionId"]);
    // The stand-in tells by tags what the agent remembers.
    let said = home.read(&["session", "log", "helper", "--last"])?;
    assert!(said.contains("tags=one"), "{said}");

    // All processes of acpd and of the agents die; the same names go on.
    for process in home.processes() {
        // It may have ended with another one.
        kill(Pid::from_raw(i32::try_from(process.pid)?), Signal::SIGKILL).ok();
    }
    asks("#two")?;
    let said = home.read(&["session", "log", "helper", "--last"])?;
    assert!(said.contains("tags=one,two"), "{said}");
    home.stop()
}
