//! Daemons that cannot start, and errors that say what to do.

use std::fs;
use std::path::Path;

use acpd::config;
use acpd_test::harness::Running;

use crate::{at_once, echo, home};

#[test]
fn l19_with_the_longest_runtime_directory_that_is_taken_agents_start() {
    let env = home([echo()]);
    let longest = 107 - "/acpd.sock".len();
    let place = |length: usize| {
        let mut path = env.path("run").display().to_string();
        path.push('/');
        path.extend(std::iter::repeat_n('r', length - path.len()));
        path
    };
    let run = |args: &[&str], runtime: &str| {
        let mut command = env.acpctl_command(args);
        command.env("ACPD_RUNTIME_DIR", runtime);
        Running::start(command).finish()
    };
    let too_long = at_once("the reason", || run(&["run", "say #one"], &place(longest + 1)).code(1));
    too_long.explains(&["the system allows 107", "hint:", "ACPD_RUNTIME_DIR"]);
    let said = run(&["run", "say #one"], &place(longest)).success();
    assert!(said.stdout().contains("tags=one"), "{said:?}");
    run(&["daemon", "stop"], &place(longest)).success();
}

/// Says in the output of the tests that something was not tested.
pub(crate) fn skip(why: &str) {
    #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
    {
        eprintln!("SKIPPED: {why}");
    }
}

#[test]
fn a_catalogue_agent_is_downloaded_after_a_yes_alone() {
    let env = home([echo()]);
    let known = config::parse(Path::new("config.toml"), "").unwrap();
    let by_npx = known.agents.values().find(|profile| profile.command[0] == "npx").unwrap();
    let (name, package) = (by_npx.name.as_str(), by_npx.command[2].as_str());
    let log = |program: &str| env.path(&format!("{program}.log"));
    for program in ["npx", "npm"] {
        env.install(program, &format!("echo \"$@\" >>{}", log(program).display()));
    }
    let called = |program: &str| fs::read_to_string(log(program)).ok();
    let install = format!("acpctl agent install {name}");
    let refused = env.acpctl(&["run", "-a", name, "hello"]).code(1);
    refused.explains(&["is not installed", &install, package]);
    let ask = env.acpctl(&["agent", "install", name]).code(2);
    ask.explains(&["npm install -g", package, "--yes"]);
    assert_eq!((called("npx"), called("npm")), (None, None));
    env.acpctl(&["agent", "install", name, "--yes"]).success();
    assert_eq!(called("npm").unwrap(), format!("install -g {package}\n"));
    assert_eq!(called("npx"), None);
}
