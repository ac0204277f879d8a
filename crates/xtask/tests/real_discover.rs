//! `acpctl agent discover` among real agents, and what its suggestion is worth.
//!
//! Installs what is missing, and is skipped like the tests of `real_agents.rs`.

use std::path::PathBuf;

use xtask::home::Home;
use xtask::real::ready;
use xtask::{Result, workspace};

#[test]
fn installed_agents_are_found_and_the_suggested_configuration_is_taken() {
    found_and_taken().unwrap();
}

fn found_and_taken() -> Result {
    let Some(scripts) = ready(&["copilot", "zedcodex"])? else { return Ok(()) };
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    // The programs themselves: npm's own links need Node.
    let programs = [
        ("copilot", "npm-copilot/node_modules/@github/copilot-linux-x64/copilot"),
        ("zedcodex", "npm-zedcodex/node_modules/@zed-industries/codex-acp-linux-x64/bin/codex-acp"),
    ]
    .map(|(agent, file)| (agent, scripts.store().join(file)));
    let folders = programs.iter().filter_map(|(_, program)| program.parent().map(PathBuf::from));
    let system = ["/usr/bin", "/bin"].map(PathBuf::from);
    let mut discover = home.acpctl(&["agent", "discover"]);
    discover.env("PATH", std::env::join_paths(folders.chain(system))?);
    // No network: nothing listens at the address of the proxy.
    discover.envs([("HTTPS_PROXY", "http://127.0.0.1:9"), ("HTTP_PROXY", "http://127.0.0.1:9")]);
    discover.env("COPILOT_AUTO_UPDATE", "false");
    let output = discover.output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let text = String::from_utf8(output.stdout)?;
    let left = home.leftovers();
    assert!(left.is_empty(), "{left:?}");

    // Taken as it is, the daemon has the very programs.
    home.configure(&text)?;
    for (agent, program) in &programs {
        let facts = text.split("\n\n").find(|part| part.contains(&format!("[agents.{agent}]")));
        let facts = facts.ok_or_else(|| format!("no `{agent}` in {text}{told}"))?;
        assert!(facts.contains("load, list"), "{facts}");
        assert!(facts.contains("# ways to log in: "), "{facts}");
        let known = home.read_json(&["agent", "show", agent])?;
        assert_eq!(known["command"][0].as_str(), program.to_str(), "{known}");
    }
    let copilot = home.read_json(&["agent", "show", "copilot"])?;
    assert_eq!(copilot["command"][1], "--acp", "{copilot}");
    home.stop()
}
