//! What `npx` and `uvx` would run is started itself, if it is installed in the wanted version.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use acpd::config::{self, Installed};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A home with an `npm` prefix in `PATH`, and a directory that the agent is started in.
struct Machine(TempDir);

impl Machine {
    fn new() -> Machine {
        Machine(tempfile::tempdir().unwrap())
    }

    fn path(&self, rest: &str) -> PathBuf {
        self.0.path().join(rest)
    }

    fn look(&self, command: &[&str]) -> Installed {
        self.look_with(command, "")
    }

    fn look_with(&self, command: &[&str], more: &str) -> Installed {
        let cwd = self.path("project").display().to_string();
        let text = format!("[agents.mine]\ncommand = {command:?}\ncwd = '{cwd}'\n{more}");
        let config = config::parse(Path::new("config.toml"), &text).unwrap();
        let path = self.path("prefix/bin");
        let env = [("HOME", self.0.path()), ("PATH", &path)]
            .map(|(name, value)| (OsString::from(name), value.as_os_str().to_owned()));
        config::installed(config.agent("mine").unwrap(), &env)
    }

    /// A package with one program in these `node_modules`.
    fn package(&self, modules: &str, bin: &str, name: &str, version: &str, bins: Value) -> PathBuf {
        let folder = self.path(modules).join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(self.path(bin)).unwrap();
        let manifest = json!({"name": name, "version": version, "bin": bins});
        fs::write(folder.join("package.json"), manifest.to_string()).unwrap();
        fs::write(folder.join("cli.js"), "").unwrap();
        let program = match &bins {
            Value::Object(bins) => bins.keys().next().unwrap().clone(),
            _ => name.rsplit('/').next().unwrap().to_owned(),
        };
        let link = self.path(bin).join(program);
        symlink(folder.join("cli.js"), &link).unwrap();
        link
    }

    /// What `npx` keeps of a command that it has run.
    fn cached(&self, hash: &str, wanted: &str, name: &str, version: &str) -> PathBuf {
        let folder = format!(".npm/_npx/{hash}");
        let modules = format!("{folder}/node_modules");
        let bin = format!("{modules}/.bin");
        let program = self.package(&modules, &bin, name, version, json!("cli.js"));
        let manifest = json!({"_npx": {"packages": [wanted]}});
        fs::write(self.path(&folder).join("package.json"), manifest.to_string()).unwrap();
        program
    }

    /// A tool of uv.
    fn tool(&self, name: &str, version: &str) -> PathBuf {
        let tool = self.path(".local/share/uv/tools").join(name);
        let info = format!("{}-{version}.dist-info", name.replace('-', "_"));
        fs::create_dir_all(tool.join("lib/python3.13/site-packages").join(info)).unwrap();
        fs::create_dir_all(tool.join("bin")).unwrap();
        let program = tool.join("bin").join(name);
        fs::write(&program, "").unwrap();
        program
    }
}

fn here(program: PathBuf, args: usize) -> Installed {
    Installed::Here { program, args }
}

fn missing(install: &str) -> Installed {
    Installed::Missing { install: install.to_owned() }
}

#[test]
fn a_package_is_found_where_npm_puts_it() {
    let machine = Machine::new();
    let command = ["npx", "-y", "@some/agent-acp", "--acp"];
    assert_eq!(machine.look(&command), missing("npm install -g @some/agent-acp"));
    let cached = machine.cached("0a1b", "@some/agent-acp", "@some/agent-acp", "1.0.0");
    assert_eq!(machine.look(&command), here(cached, 3));
    let name = "@some/agent-acp";
    let global =
        machine.package("prefix/lib/node_modules", "prefix/bin", name, "1.0.0", json!("cli.js"));
    assert_eq!(machine.look(&command), here(global, 3));
    let modules = "project/node_modules";
    let local =
        machine.package(modules, "project/node_modules/.bin", name, "1.0.0", json!("cli.js"));
    assert_eq!(machine.look(&command), here(local.clone(), 3));
    assert_eq!(machine.look(&["npx", "@some/agent-acp"]), here(local, 2));
}

#[test]
fn another_version_is_never_taken() {
    let machine = Machine::new();
    let (modules, bin) = ("prefix/lib/node_modules", "prefix/bin");
    let program = machine.package(modules, bin, "agent", "1.2.3", json!("cli.js"));
    machine.cached("1", "agent@1.2.4", "agent", "1.2.3");
    assert_eq!(machine.look(&["npx", "agent@1.2.3"]), here(program, 2));
    assert_eq!(machine.look(&["npx", "agent@1.2.4"]), missing("npm install -g agent@1.2.4"));
    let tool = machine.tool("py-agent", "0.9.1");
    assert_eq!(machine.look(&["uvx", "py-agent@0.9.1", "-x"]), here(tool, 2));
    assert_eq!(machine.look(&["uvx", "py-agent@0.9.2"]), missing("uv tool install py-agent@0.9.2"));
}

#[test]
fn a_cache_that_was_made_for_another_command_does_not_count() {
    let machine = Machine::new();
    machine.cached("1", "agent@1.0.0", "agent", "1.0.0");
    assert_eq!(machine.look(&["npx", "agent"]), missing("npm install -g agent"));
    let latest = machine.cached("2", "agent", "agent", "2.0.0");
    assert_eq!(machine.look(&["npx", "agent"]), here(latest, 2));
}

#[test]
fn the_program_is_the_one_that_npx_would_run() {
    let machine = Machine::new();
    let (modules, bin) = ("prefix/lib/node_modules", "prefix/bin");
    let other = machine.package(modules, bin, "one", "1.0.0", json!({"other-name": "cli.js"}));
    assert_eq!(machine.look(&["npx", "one"]), here(other, 2));
    // Two, and none has the package's name.
    machine.package(modules, bin, "two", "1.0.0", json!({"a": "cli.js", "b": "cli.js"}));
    assert_eq!(machine.look(&["npx", "two"]), missing("npm install -g two"));
    // The name in `bin` is another package's.
    let link = machine.package(modules, bin, "three", "1.0.0", json!("cli.js"));
    fs::remove_file(&link).unwrap();
    symlink(machine.path("prefix/lib/node_modules/one/cli.js"), &link).unwrap();
    assert_eq!(machine.look(&["npx", "three"]), missing("npm install -g three"));
}

#[test]
fn what_is_not_understood_exactly_is_left_alone() {
    let machine = Machine::new();
    let (modules, bin) = ("prefix/lib/node_modules", "prefix/bin");
    machine.package(modules, bin, "agent", "1.2.3", json!("cli.js"));
    machine.tool("agent", "1.2.3");
    for command in [
        &["npx", "agent@latest"][..],
        &["npx", "agent@^1"],
        &["npx", "agent@1.2"],
        &["npx", "agent@1.2.x"],
        &["npx", "--package", "agent", "agent"],
        &["npx", "-p", "agent"],
        &["npx", "-y", "--", "agent"],
        &["npx", "agent", "--", "--acp"],
        &["npx", "./agent"],
        &["npx", "some/agent"],
        &["npx", "../agent@1.2.3"],
        &["npx"],
        &["npx", "-y"],
        &["/usr/bin/npx", "agent"],
        &["uvx", "agent@latest"],
        &["uvx", "agent==1.2.3"],
        &["uvx", "agent[extra]"],
        &["uvx", "--from", "agent", "agent"],
        &["agent"],
    ] {
        assert_eq!(machine.look(command), Installed::Other, "{command:?}");
    }
}

#[test]
fn it_can_be_switched_off() {
    let machine = Machine::new();
    machine.tool("agent", "1.2.3");
    let look = machine.look_with(&["uvx", "agent"], "prefer_installed = false");
    assert_eq!(look, Installed::Other);
}

#[test]
fn catalogue_agents_behind_a_package_runner_count_as_missing_until_installed() {
    const RUNNERS: [&str; 12] = [
        "npx", "uvx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "pipx", "uv", "docker",
    ];
    let home = tempfile::tempdir().unwrap();
    let env = [("HOME", home.path()), ("PATH", home.path())]
        .map(|(name, value)| (OsString::from(name), value.as_os_str().to_owned()));
    for text in ["", "[defaults]\nprefer_installed = false"] {
        let config = config::parse(Path::new("config.toml"), text).unwrap();
        let runs = |profile: &&config::Profile| RUNNERS.contains(&&*profile.command[0]);
        let all: Vec<_> = config.agents.values().filter(runs).collect();
        assert!(!all.is_empty());
        for profile in all {
            let found = config::installed(profile, &env);
            assert!(matches!(found, Installed::Missing { .. }), "{}: {found:?}", profile.name);
        }
    }
}

#[test]
fn a_command_of_the_user_is_a_yes_to_its_download() {
    let text = "[agents.mine]\ncommand = ['npx', '-y', 'mine']\nprefer_installed = false";
    let config = config::parse(Path::new("config.toml"), text).unwrap();
    assert_eq!(config::installed(config.agent("mine").unwrap(), &[]), Installed::Other);
    assert!(!config.agent("mine").unwrap().is_known_command);
}
