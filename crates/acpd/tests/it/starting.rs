//! Daemons that cannot start, and errors that say what to do.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use acpd::config;
use acpd_test::harness::{Agent, Config, Running};
use nix::sys::stat::Mode;
use nix::unistd::{geteuid, mkfifo};

use crate::{at_once, echo, home};

#[test]
fn a_second_daemon_is_refused() {
    let env = home([echo()]);
    env.acpctl(&["daemon", "start"]).success();
    let pid = env.daemon_pid().to_string();
    Running::start(env.acpd_command()).finish().code(1).explains(&[&pid, "acpctl daemon stop"]);
    assert_eq!(env.daemon_pid().to_string(), pid);
    env.acpctl(&["daemon", "start"]).success().explains(&["already running", &pid]);
}

#[test]
fn bad_toml_is_told_with_its_line_and_column() {
    let env = home([echo()]);
    env.write_config("default_agent = \"echo\"\n[daemon]\nline_limit = = 3\n");
    at_once("the reason", || env.acpctl(&["daemon", "start"]).code(1))
        .explains(&["config.toml", "3:14"]);
    env.write_config("[daemon]\nlog_levle = \"info\"\n");
    at_once("the reason", || env.acpctl(&["run", "hello"]).code(1)).explains(&[
        "config.toml",
        "2:1",
        "log_levle",
        "log_level",
    ]);
    env.configure(&Config::new([echo()]));
    env.acpctl(&["run", "hello"]).success();
}

#[test]
fn l15_a_configuration_that_is_no_regular_file_or_has_no_end_is_refused_at_once() {
    let env = home([echo()]);
    let config = env.path("config").join("config.toml");
    fs::remove_file(&config).unwrap();
    mkfifo(&config, Mode::S_IRWXU).unwrap();
    let refused = |words: &[&str]| {
        at_once("the reason", || env.acpctl(&["daemon", "start"]).code(1)).explains(words);
    };
    refused(&["config.toml", "not a regular file", "hint:"]);
    fs::remove_file(&config).unwrap();
    symlink("/dev/zero", &config).unwrap();
    refused(&["config.toml", "not a regular file", "hint:"]);
    fs::remove_file(&config).unwrap();
    fs::File::create(&config).unwrap().set_len(1 << 40).unwrap();
    refused(&["config.toml", "longer than", "hint:"]);
    env.configure(&Config::new([echo()]));
    env.acpctl(&["daemon", "start"]).success();
}

#[test]
fn l15_a_pipe_in_the_place_of_the_database_is_refused_at_once() {
    let env = home([echo()]);
    let database = env.path("state").join("acpd.db");
    mkfifo(&database, Mode::S_IRWXU).unwrap();
    at_once("the reason", || env.acpctl(&["daemon", "start"]).code(1)).explains(&[
        "acpd.db",
        "not a regular file",
        "mv ",
    ]);
    fs::remove_file(&database).unwrap();
    env.acpctl(&["daemon", "start"]).success();
}

#[test]
fn a_state_directory_that_cannot_be_written_is_told_by_name() {
    let env = home([echo()]);
    let state = env.path("state");
    fs::remove_dir_all(&state).unwrap();
    fs::write(&state, "").unwrap();
    at_once("the reason", || env.acpctl(&["daemon", "start"]).code(1)).explains(&[
        state.to_str().unwrap(),
        "Not a directory",
        "hint:",
    ]);
    fs::remove_file(&state).unwrap();
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o500)).unwrap();
    if geteuid().is_root() {
        skip("root may write everywhere");
    } else {
        at_once("the reason", || env.acpctl(&["daemon", "start"]).code(1)).explains(&[
            state.to_str().unwrap(),
            "not writable",
            "chmod 700",
        ]);
    }
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    env.acpctl(&["daemon", "start"]).success();
}

#[test]
fn a_socket_directory_that_is_open_to_others_is_refused() {
    let env = home([echo()]);
    let run = env.path("run");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
    at_once("the reason", || env.acpctl(&["daemon", "start"]).code(1)).explains(&[
        run.to_str().unwrap(),
        "open to other users",
        "chmod 700",
    ]);
    Running::start(env.acpd_command()).finish().code(1).explains(&["open to other users"]);
    fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).unwrap();
    env.acpctl(&["daemon", "start"]).success();
}

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

#[test]
fn a_socket_that_a_dead_daemon_left_is_replaced() {
    let env = home([echo()]);
    drop(UnixListener::bind(env.socket()).unwrap());
    assert!(env.socket().exists());
    env.acpctl(&["run", "hello"]).success();
    env.kill_daemon();
    assert!(env.socket().exists(), "it had no time to clean up");
    env.acpctl(&["run", "hello"]).success();
}

#[test]
fn a_file_in_the_place_of_the_socket_is_not_removed() {
    let env = home([echo()]);
    fs::write(env.socket(), "mine").unwrap();
    Running::start(env.acpd_command())
        .finish()
        .code(1)
        .explains(&[env.socket().to_str().unwrap(), "not a socket"]);
    assert_eq!(fs::read_to_string(env.socket()).unwrap(), "mine");
    fs::remove_file(env.socket()).unwrap();
}

#[test]
fn an_unknown_agent_is_told_with_the_nearest_name() {
    let env = home([echo()]);
    env.acpctl(&["run", "-a", "ecko", "hello"]).code(3).explains(&["`ecko`", "`echo`"]);
    env.acpctl(&["agent", "show", "coplot"]).code(3).explains(&["`coplot`", "`copilot`"]);
}

#[test]
fn a_program_that_is_not_there_is_told_with_the_path_that_was_searched() {
    let missing = Agent::new("missing").command(&["no-such-agent", "--acp"]);
    let missing = missing.set("install", "\"npm install -g no-such-agent\"");
    let env = home([missing, Agent::new("absent").command(&["/nowhere/agent"])]);
    env.acpctl(&["run", "hello"]).code(1).explains(&[
        "no-such-agent",
        "/usr/bin:/bin",
        "npm install -g no-such-agent",
    ]);
    env.acpctl(&["run", "-a", "absent", "hello"]).code(1).explains(&["/nowhere/agent", "hint:"]);
    assert_eq!(env.agent("missing")["restarts"], 0, "it is not tried again");
}

#[test]
fn a_working_directory_that_is_not_there_is_told() {
    let env = home([echo().set("cwd", "\"/no/such/directory\"")]);
    env.acpctl(&["run", "hello"]).code(1).explains(&["/no/such/directory", "`cwd`"]);
}

/// Says in the output of the tests that something was not tested.
pub(crate) fn skip(why: &str) {
    #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
    {
        eprintln!("SKIPPED: {why}");
    }
}

#[test]
fn what_would_keep_the_daemon_from_starting_is_found_without_starting_it() {
    let env = home([echo()]);
    let check = || {
        let mut command = env.command(env!("CARGO_BIN_EXE_acpd"));
        command.arg("check");
        Running::start(command).finish()
    };
    assert!(check().success().stdout().ends_with("can start\n"));
    assert!(!env.path("state").join("acpd.db").exists(), "nothing is made");
    env.acpctl(&["daemon", "start"]).success();
    check().success();
    env.write_config("[daemon]\nlog_levle = \"info\"\n");
    check().code(1).explains(&["error: ", "log_levle", "hint: "]);
    env.configure(&Config::new([echo()]));
}

#[test]
fn a_catalogue_agent_is_downloaded_after_a_yes_alone() {
    let env = home([echo()]);
    let known = config::parse(Path::new("config.toml"), "").unwrap();
    let by_npx = known.agents.values().find(|profile| profile.command[0] == "npx").unwrap();
    let (name, package) = (by_npx.name.as_str(), by_npx.command[2].as_str());
    let bin = env.work("bin");
    for program in ["npx", "npm"] {
        let path = bin.join(program);
        let log = bin.join(format!("{program}.log"));
        fs::write(&path, format!("#!/bin/sh\necho \"$@\" >>{}\n", log.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let called = |program: &str| fs::read_to_string(bin.join(format!("{program}.log"))).ok();
    let acpctl = |args: &[&str]| {
        let mut command = env.acpctl_command(args);
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        Running::start(command).finish()
    };
    let install = format!("acpctl agent install {name}");
    let refused = acpctl(&["run", "-a", name, "hello"]).code(1);
    refused.explains(&["is not installed", &install, package]);
    acpctl(&["agent", "install", name]).code(2).explains(&["npm install -g", package, "--yes"]);
    assert_eq!((called("npx"), called("npm")), (None, None));
    acpctl(&["agent", "install", name, "--yes"]).success();
    assert_eq!(called("npm").unwrap(), format!("install -g {package}\n"));
    assert_eq!(called("npx"), None);
}

#[test]
fn package_of_another_repository_is_not_installed() {
    let env = home([echo()]);
    let bin = env.work("bin");
    let npm = bin.join("npm");
    let (log, address) = (bin.join("npm.log"), bin.join("address"));
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = view ] && {{ cat '{}'; exit; }}\necho \"$@\" >>'{}'\n",
        address.display(),
        log.display()
    );
    fs::write(&npm, script).unwrap();
    fs::set_permissions(&npm, fs::Permissions::from_mode(0o700)).unwrap();
    let install = || {
        let mut command = env.acpctl_command(&["agent", "install", "claude", "--yes"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        Running::start(command).finish()
    };
    let known = "git+https://github.com/agentclientprotocol/claude-agent-acp.git\n";
    for (named, told) in [
        (
            "git+https://github.com/eve/claude-agent-acp.git\n",
            "git+https://github.com/eve/claude-agent-acp.git",
        ),
        ("", "the registry names no repository"),
    ] {
        fs::write(&address, named).unwrap();
        install().code(5).explains(&[told, "nothing was installed", "npm install -g"]);
        assert!(!log.exists());
    }
    fs::remove_file(&address).unwrap();
    install().code(1).explains(&["the registry does not say who publishes"]);
    assert!(!log.exists());
    fs::write(&address, known).unwrap();
    install().success();
    let ran = fs::read_to_string(&log).unwrap();
    assert_eq!(ran, "install -g @agentclientprotocol/claude-agent-acp\n");
}
