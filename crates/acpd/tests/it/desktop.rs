//! Help for a person who is away: notifications of the desktop, and a machine that stays awake.

use acpd_test::harness::{Config, Running, TestEnv, exists, kill9, until};
use std::fs;

use crate::{echo, home_with};

/// A home whose daemon runs with these programs of the system.
fn with_programs(config: &Config, programs: &[(&str, &str)]) -> TestEnv {
    let env = home_with(config);
    for (name, script) in programs {
        env.install(name, &script.replace("DIR", &env.path("bin").display().to_string()));
    }
    let mut start = env.acpctl_command(&["daemon", "start"]);
    start.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
    Running::start(start).finish().success();
    env
}

fn written(env: &TestEnv, name: &str) -> Option<String> {
    fs::read_to_string(env.path("bin").join(name)).ok().filter(|text| text.ends_with('\n'))
}

const NOTIFY: (&str, &str) = ("notify-send", "printf '%s|' \"$@\" >> DIR/shown; echo >> DIR/shown");

#[test]
fn a_question_of_a_session_that_nobody_sees_is_shown_on_the_desktop() {
    let env = with_programs(&Config::new([echo()]), &[NOTIFY]);
    env.acpctl(&["run", "-d", "-s", "fix&<b>", "[pause alone] [ask]"]).success();
    until("nobody to be attached", || (env.status()["sessions"][0]["clients"] == 0).then_some(()));
    env.release("alone");
    let shown = until("a notification", || written(&env, "shown"));
    assert_eq!(shown, "--app-name=acpd|--|fix&<b>|echo asks for permission (edit)|\n");
    env.acpctl(&["deny"]).success();
}

/// Stands for systemd-inhibit: tells what it was asked and then its pid, and waits for the end of its input.
const INHIBIT: (&str, &str) =
    ("systemd-inhibit", "echo \"$@\" >> DIR/asked; echo $$ >> DIR/held; exec cat");

fn holder(env: &TestEnv) -> u32 {
    let pid = |text: String| text.lines().last().and_then(|line| line.parse().ok());
    until("the machine to be kept awake", || pid(written(env, "held")?))
}

#[test]
fn the_machine_is_kept_awake_while_an_agent_works_and_waits_for_nobody() {
    let config = Config::new([echo()]).daemon("keep_awake", "true");
    let env = with_programs(&config, &[INHIBIT]);
    assert_eq!(written(&env, "held"), None, "nothing runs yet");
    env.acpctl(&["run", "-d", "-s", "fix", "[pause one] [ask]"]).success();
    let pid = holder(&env);
    assert!(written(&env, "asked").unwrap().starts_with("--what=sleep:idle --who=acpd"));
    env.release("one");
    until("it to be let go while a person is asked", || (!exists(pid)).then_some(()));
    env.acpctl(&["deny"]).success();
    env.acpctl(&["wait", "fix"]).success();
    // The end of the daemon ends the helper, even if the daemon is killed.
    env.acpctl(&["run", "-d", "-s", "fix", "[pause two]"]).success();
    let pid = until("the next one", || Some(holder(&env)).filter(|next| *next != pid));
    kill9(env.daemon_pid());
    until("it to end with the daemon", || (!exists(pid)).then_some(()));
    env.release("two");
}
