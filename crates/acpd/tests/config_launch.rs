//! What an agent is started with: its environment, its program, its fingerprint.

use std::ffi::OsString;
use std::path::Path;

use acpd::config::{self, Profile};
use insta::assert_snapshot;

fn agent(name: &str, text: &str) -> Profile {
    let config = config::parse(Path::new("config.toml"), text).unwrap();
    config.agent(name).unwrap().clone()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn environment(profile: &Profile, base: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    config::environment(profile, pairs(base).into_iter())
}

/// An executable file called `name` in `folder`.
fn program(folder: &Path, name: &str) -> std::path::PathBuf {
    let path = folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
    path
}

#[test]
fn an_agent_inherits_what_is_listed_and_nothing_else() {
    let base = [
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("GH_TOKEN", "token"),
        ("HOME", "/home/me"),
        ("LC_ALL", "C"),
        ("LCX", "x"),
        ("PATH", "/bin"),
        ("SECRET", "x"),
        ("XDG_RUNTIME_DIR", "/run/user/1"),
        ("https_proxy", "http://proxy"),
    ];
    let inherited = environment(&agent("copilot", ""), &base);
    let expected = [
        ("GH_TOKEN", "token"),
        ("HOME", "/home/me"),
        ("LC_ALL", "C"),
        ("PATH", "/bin"),
        ("XDG_RUNTIME_DIR", "/run/user/1"),
        ("https_proxy", "http://proxy"),
    ];
    assert_eq!(inherited, pairs(&expected));
}

#[test]
fn a_profile_can_pass_on_more_and_set_its_own() {
    let text =
        "[agents.claude]\ninherit_env = ['MY_*', 'ONE']\nenv = { PATH = '/mine', NEW = '1' }";
    let base = [("MY", "no"), ("MY_A", "a"), ("ONE", "1"), ("ONES", "no"), ("PATH", "/bin")];
    let expected = [("MY_A", "a"), ("NEW", "1"), ("ONE", "1"), ("PATH", "/mine")];
    assert_eq!(environment(&agent("claude", text), &base), pairs(&expected));
    let all = agent("claude", "[agents.claude]\ninherit_env = ['*']");
    assert_eq!(environment(&all, &base), pairs(&base));
}

#[test]
fn an_agent_has_a_home_though_the_daemon_was_started_without_one() {
    let profile = agent("claude", "");
    let environment = |base: &[(&str, &str)]| {
        let base = config::with_home(pairs(base).into_iter(), Some("/home/me".into()));
        config::environment(&profile, base)
    };
    let expected = pairs(&[("HOME", "/home/me"), ("PATH", "/bin")]);
    assert_eq!(environment(&[("PATH", "/bin")]), expected);
    assert_eq!(environment(&[("HOME", "/other")]), pairs(&[("HOME", "/other")]));
}

/// The daemon's own program.
fn own() -> &'static Path {
    Path::new("/opt/acpd")
}

#[test]
fn the_program_is_looked_up_in_the_agents_own_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = program(folder.path(), "agent-of-this-test");
    let text = "[agents.mine]\ncommand = ['agent-of-this-test', '--acp']";
    let mine = agent("mine", text);
    let env = pairs(&[("PATH", folder.path().to_str().unwrap())]);
    assert_eq!(config::resolve_program(&mine, &env, own()).unwrap(), path);
    assert!(config::resolve_program(&mine, &pairs(&[("PATH", "/nowhere")]), own()).is_err());
}

#[test]
fn a_program_with_a_path_is_found_without_any_path_variable() {
    let folder = tempfile::tempdir().unwrap();
    let path = program(folder.path(), "agent");
    let absolute = format!("[agents.mine]\ncommand = '{}'", path.display());
    assert_eq!(config::resolve_program(&agent("mine", &absolute), &[], own()).unwrap(), path);
    let relative =
        format!("agents.mine = {{ command = './agent', cwd = '{}' }}", folder.path().display());
    let found = config::resolve_program(&agent("mine", &relative), &[], own()).unwrap();
    assert_eq!(found.canonicalize().unwrap(), path.canonicalize().unwrap());
}

#[test]
fn a_missing_program_error_says_where_was_searched_and_what_to_do() {
    let missing = |name: &str, text: &str, env: &[(&str, &str)]| {
        let error = config::resolve_program(&agent(name, text), &pairs(env), own()).unwrap_err();
        format!("error: {error}")
    };
    let nowhere = [("PATH", "/nowhere:/nothing")];
    assert_snapshot!(missing("copilot", "", &nowhere), @"
    error: cannot find `copilot`, the command of agent `copilot`: it is not in the agent's PATH, /nowhere:/nothing

    hint: install it (`npm install -g @github/copilot`), or set `command` in `[agents.copilot]` to its path
    ");
    assert_snapshot!(missing("cursor", "", &[]), @"
    error: cannot find `cursor-agent`, the command of agent `cursor`: the agent's PATH is empty

    hint: set `command` in `[agents.cursor]` to its path, or `env.PATH`
    ");
    assert_snapshot!(missing("mine", "[agents.mine]\ncommand = 'mine --acp'", &nowhere), @r#"
    error: cannot find `mine --acp`, the command of agent `mine`: it is not in the agent's PATH, /nowhere:/nothing

    hint: write the command as a list: `command = ["mine", "--acp"]`
    "#);
    assert_snapshot!(missing("mine", "[agents.mine]\ncommand = '/nowhere/mine'", &nowhere), @"
    error: cannot find `/nowhere/mine`, the command of agent `mine`: it does not exist or is not executable

    hint: set `command` in `[agents.mine]` to where the program is
    ");
}

#[test]
fn a_fingerprint_changes_with_the_command_and_the_names_of_variables_alone() {
    let print =
        |text: &str| config::fingerprint(&agent("claude", &format!("[agents.claude]\n{text}")));
    let plain = print("");
    assert_eq!(plain, print("idle_timeout = '1m'"));
    assert_eq!(print("env.KEY = '1'"), print("env.KEY = '2'"));
    let different = [
        plain,
        print("env.KEY = '1'"),
        print("env.OTHER = '1'"),
        print("args = ['a', 'b']"),
        print("args = ['a b']"),
        print("command = 'other'"),
        print("subagents = false"),
        print("client_meta = ['x']"),
    ];
    let distinct: std::collections::BTreeSet<_> = different.iter().collect();
    assert_eq!(distinct.len(), different.len());
}

#[test]
fn a_fingerprint_is_the_same_in_every_version() {
    let profile = agent("mine", "[agents.mine]\ncommand = ['mine', '--acp']\nenv.KEY = '1'");
    assert_snapshot!(config::fingerprint(&profile), @"010d26e35e694f5a");
}
