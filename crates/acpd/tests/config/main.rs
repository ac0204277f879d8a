//! The configuration: what may be written, what it means, and what a mistake looks like.

mod mcp;
mod mistakes;
mod schema;
mod values;

use std::path::Path;

use acpd::config::{self, Config, Profile, Sharing, Transport};
use acpd::settings::hub_config;
use acpd_sys::paths::Paths;
use insta::assert_snapshot;

fn read(text: &str) -> Config {
    let config = config::parse(Path::new("config.toml"), text).unwrap();
    assert_eq!(schema::findings(text), [""; 0], "an editor takes what acpd takes:\n{text}");
    config
}

/// The error as it is printed.
fn mistake(text: &str) -> String {
    let error = config::parse(Path::new("config.toml"), text).unwrap_err();
    match error.hint() {
        Some(hint) => format!("error: {error}\n\nhint: {hint}"),
        None => format!("error: {error}"),
    }
}

#[test]
fn a_missing_file_means_all_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let config = config::load(&folder.path().join("config.toml")).unwrap();
    assert_eq!(config, read(""));
    assert_eq!((config.default_agent.as_str(), config.daemon.client_queue), ("demo", 8 << 20));
    assert_eq!(config.daemon.protocols, [acp_wire::Version::V1, acp_wire::Version::V2]);
}

#[test]
fn an_agent_may_be_talked_with_over_tcp() {
    let config = read(
        r#"
        [agents.a]
        command = ["a", "--port", "{port}"]
        tcp = { spawn = true }
        [agents.b]
        command = "b"
        tcp = { spawn = true, port = 4000 }
        [agents.c]
        tcp.connect = "localhost:4000"
        [agents.copilot]
        tcp.connect = "localhost:4001"
        "#,
    );
    let transport = |name| config.agent(name).unwrap().transport();
    assert_eq!(transport("a"), Transport::TcpSpawn(0));
    assert_eq!(transport("b"), Transport::TcpSpawn(4000));
    assert_eq!(transport("c"), Transport::TcpConnect("localhost:4000"));
    let known = config.agent("copilot").unwrap();
    assert_eq!(known.transport(), Transport::TcpConnect("localhost:4001"));
    assert!(known.command.is_empty(), "nothing of a known agent is started either");
    assert_eq!(config.agent("claude").unwrap().transport(), Transport::Stdio);
}

#[test]
fn environment_tables_and_lists_add_up() {
    let config = read(
        r#"
        defaults.env = { A = "defaults", B = "defaults" }
        defaults.inherit_env = ["COMPANY_*", "GH_TOKEN"]
        [agents.copilot]
        env.B = "agent"
        inherit_env = ["MINE"]
        "#,
    );
    let copilot = config.agent("copilot").unwrap();
    assert_eq!(copilot.env["A"], "defaults");
    assert_eq!(copilot.env["B"], "agent");
    let expected = ["COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "COMPANY_*", "MINE"];
    assert_eq!(copilot.inherit_env, expected);
}

#[test]
fn a_command_is_a_program_with_the_known_arguments_or_all_words() {
    for (lines, command) in [
        ("command = '/opt/copilot'", &["/opt/copilot", "--acp"][..]),
        ("command = ['npx', 'copilot', '--acp']", &["npx", "copilot", "--acp"]),
        ("args = ['--x']\ncommand = ['npx', 'copilot']", &["npx", "copilot", "--x"]),
        ("args = ['--acp', '--model', 'x']", &["copilot", "--acp", "--model", "x"]),
    ] {
        let config = read(&format!("[agents.copilot]\n{lines}"));
        assert_eq!(config.agent("copilot").unwrap().command, command, "{lines}");
    }
}

#[test]
fn the_demo_agent_is_built_in_until_it_gets_a_command() {
    assert!(read("").agent("demo").unwrap().builtin);
    assert!(read("[agents.demo]\nidle_timeout = '1m'").agent("demo").unwrap().builtin);
    let config = read("[agents.demo]\ncommand = ['mine']");
    let demo = config.agent("demo").unwrap();
    assert_eq!((demo.builtin, demo.command.as_slice()), (false, &["mine".to_owned()][..]));
}

#[test]
fn the_default_agent_is_the_one_named_or_the_first_one_configured_and_only_without_any_the_demo() {
    assert_eq!(read("default_agent = 'claude'").default_agent, "claude");
    assert_eq!(read("[agents.copilot]").default_agent, "copilot");
    assert_eq!(read("[agents.copilot]\n[agents.claude]").default_agent, "copilot");
    let one_disabled = "[agents.copilot]\n[agents.claude]\nenabled = false";
    assert_eq!(read(one_disabled).default_agent, "copilot");
}

#[test]
fn a_directory_in_the_home_directory_is_resolved() {
    let home = std::env::home_dir().unwrap();
    let cwd = |text: &str| {
        let config = read(&format!("[agents.claude]\ncwd = {text}"));
        config.agent("claude").unwrap().cwd.clone()
    };
    assert_eq!(cwd("'~'"), None);
    assert_eq!(cwd("'~/work'"), Some(home.join("work")));
    let absolute = std::env::temp_dir();
    assert_eq!(cwd(&format!("'{}'", absolute.display())), Some(absolute));
}

#[test]
fn an_unknown_agent_error_names_the_nearest_and_all_that_can_be_used() {
    let mut config = read("[agents.claude]\nenabled = false");
    config.agents.retain(|name, _| ["claude", "codex", "copilot", "demo"].contains(&name.as_str()));
    let show = |name: &str| {
        let error = config.agent(name).unwrap_err();
        format!("error: {error}")
    };
    assert_snapshot!(show("copiolt"), @"
    error: no agent is called `copiolt`

    hint: did you mean `copilot`? known agents: codex, copilot, demo
    ");
    assert_snapshot!(show("claude"), @"
    error: agent `claude` is disabled in the configuration

    hint: take `enabled = false` out of `[agents.claude]` or `[defaults]`
    ");
    let default = mistake("default_agent = 'cluade'\n[agents.claude]");
    assert!(default.contains("(config.toml:1:17)\n\nhint: did you mean `claude`?"), "{default}");
}

#[test]
fn no_message_and_no_debug_output_shows_the_value_of_a_variable() {
    for text in [
        "[agents.claude]\nenv = { KEY = 'hunter2', OTHER = 5 }",
        "[agents.claude]\nenv = { KEY = 'hunter2\\u0000' }",
        "[agents.claude]\nenv = { KEY = \"hunter2\\u0000\" }",
        "[agents.claude]\nenv = 'hunter2'",
        "[agents.claude]\nenv = { KEY = 'hunter2 }",
        "[agents.claude]\nenv = { KEY = hunter2 }",
        "[agents.claude]\nenv = { KEY = ['hunter2'] }",
    ] {
        if let Err(error) = config::parse(Path::new("config.toml"), text) {
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
    let config = read("[agents.claude]\nenv = { KEY = 'hunter2' }");
    let debug = format!("{config:?}");
    assert!(debug.contains("KEY") && !debug.contains("hunter2"));
}

#[test]
fn numbers_with_junk_around_them_are_no_durations_and_no_sizes() {
    let junk = [
        "",
        "s",
        "1",
        "-1s",
        " 1s",
        "1.5s",
        "1S",
        "1h30m",
        "٣s",
        "18446744073709551615d",
        "18446744073709551615GiB",
        "1e3s",
    ];
    for text in junk {
        for key in ["defaults.stop.eof", "defaults.start_timeout", "daemon.line_limit"] {
            let file = format!("{key} = {text:?}");
            assert!(config::parse(Path::new("config.toml"), &file).is_err(), "{file}");
        }
    }
}

#[test]
fn every_agent_of_the_catalogue_has_a_valid_name_a_title_and_a_command() {
    let config = read("");
    for (name, agent) in &config.agents {
        let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(rest));
        assert!(agent.title.as_ref().is_some_and(|title| !title.is_empty()), "{name}");
        assert!(agent.command.first().is_some_and(|program| !program.is_empty()), "{name}");
        assert!(agent.position.is_some());
        // What `npx` says last is shown when it fails.
        let is_quiet = agent.env.keys().any(|name| name == "NPM_CONFIG_UPDATE_NOTIFIER");
        assert_eq!(is_quiet, agent.command[0] == "npx", "{name}");
    }
    // Whether sessions of the others disturb each other is not known.
    let is_safe = |agent: &Profile| agent.tried || agent.sharing == Sharing::Session;
    for agent in config.agents.values() {
        assert!(is_safe(agent), "{}", agent.name);
    }
}

#[test]
fn agents_of_the_user_take_quirks_of_known_programs() {
    let config = read("[agents.gem]\ncommand = ['gemini', '--acp']\n[agents.gemini]\ntitle = 'G'");
    let dir = std::path::PathBuf::from("/d");
    let paths = Paths { runtime: dir.clone(), state: dir.clone(), config: dir };
    let config = hub_config(&config, &paths, 0);
    let takes = |name: &str| config.agents[name].takes_quirks;
    assert_eq!((takes("gem"), takes("gemini"), takes("claude")), (true, false, false));
    let known = &config.quirks["gemini-cli"];
    assert_eq!((known.late_replay, known.load_after, known.stop.eof), (true, 60_000, 1_000));
    assert_eq!(known.auth_errors, ["401"]);
}
