//! The environment that agents inherit: that of the user's login shell when no shell has started the daemon, and what a
//! restart brings from a terminal.

use std::fs;
use std::path::Path;
use std::process::Child;

use acpd_test::harness::{Config, Running, TestEnv, until};
use serde_json::Value;

use crate::starting::skip;
use crate::{echo, home_with};

/// A daemon as a service manager starts it, with this login shell; ends with the test.
struct Service(Child);

impl Service {
    fn start(env: &TestEnv, shell: &str) -> Service {
        let mut command = env.acpd_command();
        command.env_remove("SHLVL").env("SHELL", shell).env("PATH", "/usr/bin:/bin");
        // The output is not read, and may be long.
        let log = fs::File::create(env.path("daemon")).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let service = Service(command.spawn().unwrap());
        until("the daemon", || env.socket().exists().then_some(()));
        service
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A home whose agent `echo` inherits `TOOL_KEY`.
fn home(settings: &str) -> TestEnv {
    let config = Config::new([echo().set("inherit_env", "[\"TOOL_KEY\"]")]);
    home_with(&if settings.is_empty() { config } else { config.daemon("login_shell", settings) })
}

/// A file of the shell.
fn write(env: &TestEnv, file: &str, text: &str) {
    let path = env.path("home").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Returns a variable in the environment of the running agent.
fn has(env: &TestEnv, name: &str) -> Option<String> {
    let pid = env.agent_pid("echo").expect("a running agent");
    let text = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let text = String::from_utf8(text).unwrap();
    let start = format!("{name}=");
    text.split('\0').find_map(|pair| pair.strip_prefix(&start).map(str::to_owned))
}

fn shown(env: &TestEnv) -> Value {
    env.json(&["agent", "env", "echo"])
}

fn variable<'v>(shown: &'v Value, name: &str) -> &'v Value {
    let all = shown["variables"].as_array().unwrap();
    all.iter().find(|found| found["name"] == name).unwrap_or(&Value::Null)
}

fn gets_what_a_terminal_has(shell: &str, file: &str, set: &str) {
    let env = home("");
    // The shell's file prints, reads, and prints more than a pipe holds.
    let noise = "echo hello; cat; head -c 100000 /dev/zero\n";
    write(&env, file, &format!("{noise}{set}"));
    let _service = Service::start(&env, shell);
    env.acpctl(&["run", "say #one"]).success();
    assert_eq!(has(&env, "PATH").as_deref(), Some("/opt/tools:/usr/bin:/bin"), "{}", shown(&env));
    assert_eq!(has(&env, "TOOL_KEY").as_deref(), Some("one two"));
    for name in ["OTHER_KEY", "SHLVL", "ACPD_RESOLVING_ENVIRONMENT"] {
        assert_eq!(has(&env, name), None);
    }
    let shown = shown(&env);
    assert_eq!(shown["loginShell"], serde_json::json!({"program": shell}), "{shown}");
    let path = variable(&shown, "PATH");
    assert_eq!(
        (&path["from"], &path["value"]),
        (&"login_shell".into(), &"/opt/tools:/usr/bin:/bin".into())
    );
    assert_eq!(variable(&shown, "HOME")["from"], "daemon");
    assert!(!shown.to_string().contains("one two"), "{shown}");

    // The next start of the agent asks again.
    write(&env, file, &format!("{noise}{}", set.replace("/opt/tools", "/opt/more")));
    until("another environment", || {
        env.acpctl(&["agent", "restart", "echo"]).success();
        has(&env, "PATH").filter(|path| path == "/opt/more:/usr/bin:/bin")
    });
}

#[test]
fn agents_get_what_a_terminal_has() {
    let set = "export PATH=/opt/tools:/usr/bin:/bin TOOL_KEY='one two' OTHER_KEY=three\n";
    let fish =
        "set -x PATH /opt/tools /usr/bin /bin\nset -x TOOL_KEY 'one two'\nset -x OTHER_KEY three\n";
    for (shell, file, set) in [
        ("/bin/bash", ".bashrc", set),
        ("/usr/bin/zsh", ".zshrc", set),
        ("/usr/bin/fish", ".config/fish/config.fish", fish),
    ] {
        if Path::new(shell).exists() {
            gets_what_a_terminal_has(shell, file, set);
        } else {
            skip(&format!("`{shell}` is missing"));
        }
    }
}

#[test]
fn a_file_that_replaces_the_shell_leaves_what_the_other_files_set() {
    let env = home("");
    write(&env, ".bash_profile", "export TOOL_KEY=login\n");
    write(&env, ".bashrc", "export TOOL_KEY=terminal\nexec true\n");
    let _service = Service::start(&env, "/bin/bash");
    env.acpctl(&["run", "say #one"]).success();
    assert_eq!(has(&env, "TOOL_KEY").as_deref(), Some("login"));
    let problem = shown(&env)["loginShell"]["problem"].to_string();
    assert!(problem.contains("a file of it ends or replaces it"), "{problem}");
    assert!(problem.contains("only what a part of its files set"), "{problem}");
    let doctor = env.acpctl(&["doctor"]).success();
    let line = doctor.stdout().lines().find(|line| line.contains("login shell"));
    assert!(line.is_some_and(|line| line.contains("a file of it ends or replaces it")));
}

#[test]
fn a_daemon_from_a_terminal_or_told_not_to_asks_no_shell() {
    let env = home("\"never\"");
    write(&env, ".bashrc", "export TOOL_KEY=terminal\n");
    let service = Service::start(&env, "/bin/bash");
    env.acpctl(&["run", "say #one"]).success();
    assert_eq!((has(&env, "TOOL_KEY"), &shown(&env)["loginShell"]), (None, &Value::Null));
    drop(service);
    env.acpctl(&["daemon", "stop"]).success();
    let env = home("");
    write(&env, ".bashrc", "export TOOL_KEY=terminal\n");
    env.acpctl(&["run", "say #one"]).success();
    assert_eq!((has(&env, "TOOL_KEY"), &shown(&env)["loginShell"]), (None, &Value::Null));
}

#[test]
fn a_variable_that_only_the_terminal_has_is_told_and_a_restart_brings_it() {
    let agent = echo().set("inherit_env", "[\"WORK_KEY\"]").flags("auth-token=WORK_KEY");
    let env = home_with(&Config::new([agent]));
    fs::create_dir_all(env.agent_state("echo")).unwrap();
    fs::write(env.agent_state("echo").join("token"), "s3cret").unwrap();
    env.acpctl(&["daemon", "start"]).success();
    let here = |args: &[&str]| {
        let mut command = env.acpctl_command(args);
        command.env("WORK_KEY", "s3cret").env("OTHER_KEY", "0ther");
        command
    };
    let failed = Running::start(here(&["run", "hello"])).finish().code(4);
    let told = "does not have WORK_KEY in its environment: in this terminal, run `acpctl daemon \
                restart && acpctl agent restart echo`";
    failed.explains(&["acpd, up ", told]);
    assert!(Running::start(here(&["ps"])).finish().success().stdout().contains(told));
    let elsewhere = env.acpctl(&["agent", "show", "echo"]).success();
    assert!(elsewhere.stdout().contains("in a terminal that has it"), "{elsewhere:?}");
    // A script has the environment that it happens to have.
    Running::start(here(&["daemon", "restart"])).finish().success();
    Running::start(here(&["run", "hello"])).finish().code(4);
    Running::on_terminal(here(&["daemon", "restart"])).finish().success();
    assert_eq!(env.agent("echo")["lacks"], Value::Null);
    env.acpctl(&["agent", "restart", "echo"]).success();
    let said = env.acpctl(&["run", "[env WORK_KEY] [env OTHER_KEY]"]).success();
    assert!(said.stdout().contains("s3cret") && !said.stdout().contains("0ther"), "{said:?}");
    // The variable stays without a terminal that has it.
    env.acpctl(&["daemon", "restart"]).success();
    assert!(env.acpctl(&["run", "[env WORK_KEY]"]).success().stdout().contains("s3cret"));
    let own = fs::read(format!("/proc/{}/environ", env.daemon_pid())).unwrap();
    assert!(!String::from_utf8_lossy(&own).contains("0ther"), "only what is named is taken");
    let log = fs::read_to_string(env.path("state").join("log/acpd.log")).unwrap();
    assert!(!log.contains("s3cret"), "{log}");
    for file in fs::read_dir(env.path("state")).unwrap().flatten() {
        let bytes = fs::read(file.path()).unwrap_or_default();
        let has = |secret: &[u8]| bytes.windows(secret.len()).any(|part| part == secret);
        assert!(!has(b"0ther"), "{}", file.path().display());
    }
}
