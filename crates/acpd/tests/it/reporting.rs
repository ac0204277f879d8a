//! `acpctl report`: what is in it, what is not, and that it needs confirmation.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use acpd_test::harness::{Config, Running, TestEnv};
use serde_json::json;

use crate::{echo, home, home_with};

/// A home in which marked text is planted wherever text can come from outside.
fn planted() -> TestEnv {
    let tables = r#"
        # planted-comment
        [hooks]
        on_turn_end = "echo planted-hook-output; exit 3"
        [agents.other]
        command = ["/opt/planted-dir/other", "planted-arg"]
        env = { API_KEY = "planted-config-env" }
        [mcp.gh]
        command = ["/opt/planted-mcp-dir/mcp", "--token", "planted-mcp-arg"]
        env = { GH_TOKEN = "planted-mcp-env" }
        [mcp.web]
        url = "https://planted-user:planted-password@example.org/planted-path"
        headers = { Authorization = "Bearer planted-header" }
        [[workspace]]
        path = "/planted-workspace"
        diagnostics = ["planted-diagnostics"]
    "#;
    let agent = echo().set("login", "\"planted-login\"").after_script("echo planted-stderr >&2");
    let dying = acpd_test::harness::Agent::new("dying")
        .command(&["/bin/sh", "-c", "echo planted-last-words >&2; exit 3"])
        .set("restart_budget", "1");
    home_with(&Config::new([agent, dying]).daemon("log_level", "\"debug\"").tables(tables))
}

#[test]
fn nothing_that_was_planted_is_in_the_report_and_what_helps_is() {
    let env = planted();
    let dir = env.work("planted-dir").display().to_string();
    let mut start = env.acpctl_command(&["daemon", "start"]);
    start.env("SOME_SECRET", "planted-daemon-env");
    let started = start.output().unwrap();
    assert!(started.status.success(), "{started:?}");
    env.acpctl(&["run", "--cwd", &dir, "-s", "planted-name", "planted-prompt"]).success();
    env.acpctl(&["run", "--cwd", &dir, "-s", "planted-name", "[error -32603 planted-error] x"])
        .code(1);
    env.acpctl(&["run", "-a", "dying", "planted-prompt"]).code(1);
    env.acpctl(&["agent", "restart", "echo"]).success();
    // Where a person has got a file of theirs wrong, and a client says what it likes.
    let mut client = env.client("echo");
    let server = json!({"name": "planted-server", "command": "/bin/planted", "args": [],
        "env": [{"name": "A", "value": "planted-client-env"}]});
    client.ok("session/new", json!({"cwd": dir, "mcpServers": [server]}));
    client.call("_planted/method", json!({"planted": 1})).ok();

    let mut command = env.acpctl_command(&["report", "--output", "-"]);
    command.env("MY_API_TOKEN", "planted-environment").env("USER", "planteduser");
    command.env("LOGNAME", "planteduser").env("TERM", "xterm").env("HOME", env.path(""));
    let output = command.output().expect("acpctl");
    assert!(output.status.success(), "{output:?}");
    let report = String::from_utf8(output.stdout).expect("text");
    assert!(!report.contains("planted"), "{report}");
    let home = env.path("");
    assert!(!report.contains(home.to_str().unwrap().trim_end_matches('/')), "{report}");
    for part in [
        "- acpctl: ",
        "- acpd, running: ",
        "ok       program",
        "`~/config/config.toml` is in use",
        "[agents.echo]",
        "API_KEY = \"[hidden]\"",
        "Authorization = \"[hidden]\"",
        "log_level = \"debug\"",
        "echo           ready",
        "dying          failed",
        "INFO acpd is ready pid=",
        "acpd_turns_ended_total{outcome=\"end_turn\"} 1",
        "`echo.log` has ",
    ] {
        assert!(report.contains(part), "{part:?} in {report}");
    }
}

#[test]
fn a_report_is_shown_and_written_only_when_a_person_says_so() {
    let env = home([echo()]);
    env.acpctl(&["run", "hello"]).success();
    let file = env.path("report.md");
    let args = ["report", "--output", file.to_str().unwrap()];
    let piped = env.acpctl(&args).code(2);
    piped.explains(&["needs confirmation", "add `--yes`"]);
    let answered = |answer: &str| {
        let mut command = env.acpctl_command(&args);
        command.env("ACPCTL_PAGER", "cat");
        let mut running = Running::on_terminal(command);
        let shown = running.wait_stdout("y/n");
        assert!(shown.contains("# acpd report") && shown.contains("acpd_build_info"), "{shown}");
        assert!(!file.exists(), "before the answer");
        running.types(answer);
        running.finish()
    };
    answered("n\n").code(130);
    assert!(!file.exists());
    answered("y\n").code(0);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().starts_with("# acpd report\n"));
    env.acpctl(&[&args[..], &["--yes"]].concat()).code(1).explains(&["report.md", "--output FILE"]);
    env.acpctl(&["report", "--yes"]).success().explains(&["written to `acpd-report-"]);
    let own = fs::read_dir(env.work("main")).unwrap().map(|file| file.unwrap().file_name());
    let own: Vec<_> =
        own.filter(|name| name.to_string_lossy().starts_with("acpd-report-")).collect();
    assert_eq!(own.len(), 1, "{own:?}");
}
