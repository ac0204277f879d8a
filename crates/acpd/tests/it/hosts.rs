//! Commands for the daemon of another machine. The test plays ssh: it runs the command in another
//! home.

use std::fs;

use acpd_test::harness::{Config, TestEnv, until};

use crate::{echo, home, home_with};

/// A home without agents, with an ssh that leads to `far`. That writes the pid of each relay.
fn near(far: &TestEnv, host: &str) -> TestEnv {
    let near = home_with(&Config::new([]).tables(host));
    let variables = ["RUNTIME", "STATE", "CONFIG"].map(|name| {
        format!(
            "ACPD_{name}_DIR={}",
            far.path(&name.to_lowercase().replace("runtime", "run")).display()
        )
    });
    let acpctl = far.program("acpctl");
    near.install(
        "ssh",
        &format!(
            "while [ \"$1\" != -- ]; do shift; done\n\
             [ \"$2\" = me@box ] || {{ echo \"ssh: $2: no such host\" >&2; exit 255; }}\n\
             echo $$ >> '{}'\n\
             echo 'Welcome to the box'\n\
             cd / && exec env -i HOME='{}' PATH='{}:/usr/bin:/bin' SHLVL=1 {} sh -c \"$3\"",
            near.path("relays").display(),
            far.path("home").display(),
            acpctl.parent().expect("its folder").display(),
            variables.join(" "),
        ),
    );
    near
}

const BOX: &str = "[hosts.box]\nssh = \"me@box\"\n";

fn on_box<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["--host", "box"], args].concat()
}

#[test]
fn an_agent_on_another_machine_works_as_one_here_and_outlives_the_connection() {
    let far = home([echo()]);
    let work = far.work("main").display().to_string();
    let map =
        format!("{BOX}start = true\nmap = {{ \"/\" = \"/nowhere\", \"NEAR\" = \"{work}\" }}\n");
    let near = near(&far, &map);
    near.write_config(&map.replace("NEAR", &near.work("main").display().to_string()));

    // The daemon is started there, in the same place of the tree.
    let mut asked =
        near.spawn_acpctl(&on_box(&["run", "-s", "main", "[chunks 2] [pause middle] [chunks 2]"]));
    asked.wait_stdout("line 2");
    far.wait_point("middle");
    let session = far.session("main");
    assert_eq!(session["cwd"], *work);
    assert_eq!(near.json(&on_box(&["session", "show", "main"]))["sessionId"], session["sessionId"]);

    // The way there breaks in the middle of an answer.
    let relay = fs::read_to_string(near.path("relays")).expect("a relay");
    let first = relay.lines().next().expect("a pid");
    near.command("kill").args(["-9", first]).status().expect("a signal");
    far.release("middle");
    let done = asked.finish().success();
    let lines: Vec<_> = done.stdout().lines().filter(|line| line.starts_with("line ")).collect();
    assert_eq!(lines, ["line 1", "line 2", "line 1", "line 2"]);
    assert!(!near.socket().exists(), "nothing is started here");
    far.acpctl(&["daemon", "stop"]).success();
    until("the end of all relays", || {
        let mut relays = fs::read_to_string(near.path("relays")).ok()?;
        relays.retain(|c| c.is_ascii_digit() || c == '\n');
        relays.lines().all(|pid| !fs::exists(format!("/proc/{pid}")).unwrap_or(true)).then_some(())
    });
}

#[test]
fn what_keeps_a_command_from_another_machine_is_told() {
    let far = home([echo()]);
    let near = near(&far, BOX);
    let cases: [(&[&str], i32, &[&str]); 4] = [
        (&["--host", "box", "ps"], 3, &["acpd is not running on `box`", "start = true"]),
        (&["--host", "other", "ps"], 1, &["`other`: ssh: other: no such host", "ssh other"]),
        (&["--host", "box", "backup", "x"], 2, &["`--host` is not for this command", "ssh box"]),
        (&["--host=-oProxyCommand=x", "ps"], 2, &["is not a host"]),
    ];
    for (args, code, words) in cases {
        near.acpctl(args).code(code).explains(words);
    }
    assert!(!far.socket().exists());
    far.acpctl(&["daemon", "start"]).success();
    let done = near.acpctl_command(&["ps"]).env("ACPCTL_HOST", "box").output().expect("ps");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains(&format!("pid {}", far.daemon_pid())), "{done:?}");
}
