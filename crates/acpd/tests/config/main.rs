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
    assert_eq!(config.default_agent, "demo");
    assert_eq!(config.daemon.log_level, "info");
    assert_eq!(config.daemon.line_limit, 64 << 20);
    assert_eq!(config.daemon.client_queue, 8 << 20);
    assert_eq!(config.daemon.max_clients, 64);
}

#[test]
fn a_file_is_read_and_its_place_is_named_in_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, "\n[daemon]\nmax_clients = 3\n").unwrap();
    assert_eq!(config::load(&path).unwrap().daemon.max_clients, 3);

    std::fs::write(&path, "\n[daemon]\n  max_clints = 3\n").unwrap();
    let error = config::load(&path).unwrap_err().to_string();
    let place = format!("({}:3:3)", path.display());
    assert!(error.ends_with(&place), "{error}");
}

#[test]
fn a_removed_key_says_what_to_do() {
    assert_snapshot!(mistake("[daemon]\nhost = 'direct'"), @r"
    error: `host` in `[daemon]` was removed (config.toml:2:1)

    hint: delete it: each agent has a shim
    ");
}

#[test]
fn a_hook_is_a_line_for_the_shell_or_a_program_with_its_arguments() {
    let hooks = read("[hooks]\non_permission = 'notify \"it\"'\non_crash = ['notify', 'it']").hooks;
    assert_eq!(hooks.on_permission, ["sh", "-c", "notify \"it\""]);
    assert_eq!(hooks.on_crash, ["notify", "it"]);
    assert!(hooks.on_turn_end.is_empty() && hooks.on_login.is_empty());
    for (lines, words) in [
        ("on_login = ''", "`on_login` in `[hooks]` names no program"),
        (
            "on_login = 5",
            "must be a line for `sh`, or a list of a program and its arguments, not a",
        ),
        ("on_logon = 'x'", "did you mean `on_login`?"),
    ] {
        let said = mistake(&format!("[hooks]\n{lines}"));
        assert!(said.contains(words), "{lines}: {said}");
    }
    assert!(mistake("on_crash = 'x'").contains("`on_crash` belongs in `[hooks]`"));
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
fn tcp_that_does_not_fit_together_is_an_error() {
    for (lines, words) in [
        ("command = 'a'\ntcp.port = 1", "has a `tcp.port` without `tcp.spawn`"),
        ("command = 'a'\ntcp.connect = 'x:1'", "has both `tcp.connect` and `command`"),
        ("tcp = { connect = 'x:1', spawn = true }", "has both `tcp.spawn` and `tcp.connect`"),
        ("tcp.connect = 'x'", "must be an address like \"127.0.0.1:4000\", not \"x\""),
        (
            "tcp = { spawn = true, port = 70000 }",
            "must be a whole number from 0 to 65535, not 70000",
        ),
        ("tcp.spawn = true", "agent `a` has no `command`"),
    ] {
        let said = mistake(&format!("[agents.a]\n{lines}"));
        assert!(said.contains(words), "{lines}: {said}");
    }
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
}

#[test]
fn a_key_in_the_wrong_table_is_an_error() {
    assert_snapshot!(mistake("[defaults]\ncommand = 'x'"), @"
    error: `command` cannot be set in `[defaults]` (config.toml:2:1)

    hint: set `command` in the `[agents.NAME]` table it is meant for
    ");
    assert_snapshot!(mistake("[agents.claude]\ntried = true"), @"error: `tried` cannot be set in `[agents.claude]` (config.toml:2:1)");
}

#[test]
fn a_value_of_the_wrong_type_is_an_error() {
    assert_snapshot!(mistake("[defaults]\nstop = '3s'"), @"error: `stop` in `[defaults]` must be a table, not a string (config.toml:2:8)");
    assert_snapshot!(mistake("[agents.claude]\nargs = ['a', 5]"), @"
    error: an item of `args` in `[agents.claude]` must be a string, not a whole number (config.toml:2:14)

    hint: put it in quotes
    ");
    assert_snapshot!(mistake("[agents.claude]\nargs = 'a'"), @"error: `args` in `[agents.claude]` must be a list of strings, not a string (config.toml:2:8)");
    assert_snapshot!(mistake("[defaults]\nenv = 1979-05-27"), @"error: `env` in `[defaults]` must be a table of strings, not a date (config.toml:2:7)");
    assert_snapshot!(mistake("[[workspace]]\npath = 5"), @r#"error: `path` in `[[workspace]]` must be an absolute path, or one that begins with "~/", not a whole number (config.toml:2:8)"#);
    assert_snapshot!(mistake("[agents.claude]\ncommand = true"), @"error: `command` in `[agents.claude]` must be a program, or a list of a program and its arguments, not a boolean (config.toml:2:11)");
    assert_snapshot!(mistake("[agents.claude]\nlate_replay = 'yes'"), @"error: `late_replay` in `[agents.claude]` must be true or false, not a string (config.toml:2:15)");
}

#[test]
fn a_value_that_makes_no_sense_is_an_error() {
    assert_snapshot!(mistake("[defaults]\nidle_timeout = '30 minutes'"), @r#"
    error: `idle_timeout` in `[defaults]` must be a duration like "30m", or "0" for never, not "30 minutes" (config.toml:2:16)

    hint: the units are ms, s, m, h and d, as in "250ms" or "30m"
    "#);
    assert_snapshot!(mistake("[defaults]\nidle_timeout = '400d'"), @"error: `idle_timeout` in `[defaults]` is longer than a year (config.toml:2:16)");
    assert_snapshot!(mistake("[defaults]\nstart_timeout = '0s'"), @"error: `start_timeout` in `[defaults]` must be more than zero (config.toml:2:17)");
    assert_snapshot!(mistake("[daemon]\nline_limit = 64"), @r#"
    error: `line_limit` in `[daemon]` is too small at 64 bytes (config.toml:2:14)

    hint: the least is "4KiB"; the units are B, KiB, MiB and GiB
    "#);
    assert_snapshot!(mistake("[daemon]\nline_limit = '1GiB'"), @r#"
    error: `line_limit` in `[daemon]` is too large at 1073741824 bytes (config.toml:2:14)

    hint: the most is "128MiB"
    "#);
    assert_snapshot!(mistake("[daemon]\nmax_clients = -1"), @"error: `max_clients` in `[daemon]` must be a whole number from 1, not -1 (config.toml:2:15)");
    assert_snapshot!(mistake("[daemon]\nlog_level = 'inof'"), @r#"
    error: `log_level` in `[daemon]` must be "error", "warn", "info", "debug", "trace", or a filter like "info,acpd=debug", not "inof" (config.toml:2:13)

    hint: did you mean `info`?
    "#);
    assert_snapshot!(mistake("[defaults]\nrestore = ['resume', 'new']"), @r#"error: an item of `restore` in `[defaults]` must be "resume" or "load", not "new" (config.toml:2:22)"#);
    let heard = |name: &str| mistake(&format!("[agents.claude]\nclient_meta = ['{name}']"));
    assert_snapshot!(heard("a..b"), @r#"error: an item of `client_meta` in `[agents.claude]` must be a name like "auth.gateway", not "a..b" (config.toml:2:16)"#);
    assert_snapshot!(heard("_acpd.client"), @r#"error: an item of `client_meta` in `[agents.claude]` cannot hold `_acpd`, which is acpd's own (config.toml:2:16)"#);
    assert_snapshot!(mistake("[defaults]\ninherit_env = ['A*B']"), @r#"
    error: an item of `inherit_env` in `[defaults]` must be a name like "AWS_PROFILE" or "AWS_*", not "A*B" (config.toml:2:16)

    hint: a `*` may stand at the end only
    "#);
    assert_snapshot!(mistake("[defaults]\ncwd = 'work'"), @r#"error: `cwd` in `[defaults]` must be an absolute path, or one that begins with "~/", not "work" (config.toml:2:7)"#);
    assert_snapshot!(mistake("[agents.claude]\ncommand = []"), @"error: `command` in `[agents.claude]` names no program (config.toml:2:11)");
    assert_snapshot!(mistake("default_agent = 'cluade'\n[agents.claude]").split("known").next().unwrap(), @"
    error: `default_agent`: no agent is called `cluade` (config.toml:1:17)

    hint: did you mean `claude`?
    ");
}

#[test]
fn the_column_counts_characters() {
    assert_snapshot!(mistake("defaults.env = { 'Ä' = 'ö', B = 1 }"), @"
    error: `env.B` in `[defaults]` must be a string, not a whole number (config.toml:1:33)

    hint: put it in quotes
    ");
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

#[test]
fn removed_credential_source_names_its_replacement() {
    let text = "[agents.a]\ncommand = 'a'\ncredentials.TOKEN = { keyring = 'groq/ada' }";
    let error = config::parse(Path::new("config.toml"), text).expect_err("it was removed");
    assert!(
        error.to_string().contains("`credentials.TOKEN.keyring` in `[agents.a]` was removed"),
        "{error}"
    );
    assert!(!error.to_string().contains("groq"), "{error}");
    let hint = error.hint().expect("a hint");
    assert!(hint.contains("command = [\"secret-tool\", \"lookup\", \"service\""), "{hint}");
}

#[test]
fn a_budget_is_an_amount_in_a_currency() {
    let config = read("[budget]\nper_day = \"12.50 EUR\"\nwhen_over = \"ask\"");
    let per_day = config.budget.per_day.unwrap();
    assert_eq!((per_day.amount.units(), per_day.currency.raw()), (12.5, "EUR"));
    assert_eq!(read("").budget.per_day, None);
    assert_snapshot!(
        mistake("[budget]\nper_day = \"5\""),
        @r#"error: `per_day` in `[budget]` must be an amount and its currency, like "5 USD", not "5" (config.toml:2:11)"#
    );
    assert_snapshot!(mistake("per_day = \"5 USD\""), @"
    error: unknown key `per_day` (config.toml:1:1)

    hint: `per_day` belongs in `[budget]`
    ");
}

#[test]
fn a_workspace_has_a_path_and_an_agent_that_is_there() {
    let text = "[[workspace]]\npath = \"/src/api\"\nagent = \"demo\"\nmodel = \"opus\"";
    let workspaces = read(text).workspaces;
    assert_eq!(workspaces[0].path.as_deref(), Some(Path::new("/src/api")));
    assert_eq!(workspaces[0].model.as_deref(), Some("opus"));
    assert_snapshot!(
        mistake("[workspace]\npath = \"/src\""),
        @"error: `workspace` must be a list of tables: `[[workspace]]`, not a table (config.toml:1:1)"
    );
}
