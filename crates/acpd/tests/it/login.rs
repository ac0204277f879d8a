//! Agents that want a login.

use acpd_test::harness::{Config, kill9, reason, until};
use serde_json::json;

use crate::{echo, home};

#[test]
fn an_agent_that_wants_a_login_is_told_as_such_and_goes_on_after_it() {
    let env = home([echo().flags("auth-required").set("login", "\"echo login\"")]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).code(4).explains(&["authentication required"]);
    assert_eq!(env.agent("echo")["state"], "needs_auth");
    assert_eq!(env.agent("echo")["restarts"], 0, "it is no crash");
    let mut client = env.client("echo");
    client.ok("authenticate", json!({"methodId": "demo-login"}));
    assert_eq!(env.agent("echo")["state"], "ready");
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
}

#[test]
fn a_login_that_runs_out_costs_one_prompt() {
    let env = home([echo().flags("auth-once-after=1")]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, "say #one").unwrap();
    let error = client.say(&session, "say #two").unwrap_err();
    assert_eq!(error["code"], -32000, "the editor has a login of its own for this: {error}");
    assert_eq!(reason(&error), "needs_login", "{error}");
    let log = env.daemon_log();
    let logged = log.lines().find(|line| line.contains("session/prompt")).unwrap_or_default();
    assert!(logged.contains(&session) && logged.contains("-32000"), "{log}");
    client.say(&session, "say #three").unwrap();
    assert!(client.said(&session).contains("tags=one,three"), "{}", client.said(&session));
}

#[test]
fn sessions_that_could_not_come_back_without_a_login_come_back_after_it() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.acpctl(&["daemon", "stop"]).success();
    env.configure(&Config::new([echo().flags("auth-required")]));
    env.acpctl(&["run", "-s", "fix", "say #two"]).code(4);
    assert_eq!(env.session("fix")["state"], "blocked");
    env.client("echo").ok("authenticate", json!({"methodId": "demo-login"}));
    let three = env.acpctl(&["run", "-s", "fix", "say #three"]).success();
    assert!(three.stdout().contains("tags=one,three"), "{three:?}");
}

#[test]
fn a_login_in_the_terminal_restarts_the_agent_and_brings_its_sessions_back() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.acpctl(&["daemon", "stop"]).success();
    env.configure(&Config::new([echo().flags("auth-required auth-terminal")]));
    env.acpctl(&["run", "-s", "fix", "say #two"]).code(4).explains(&["acpctl auth login echo"]);
    let before = env.agent_pid("echo");
    let login = env.acpctl(&["auth", "login", "echo"]).success();
    assert!(login.stderr().contains("logged in to echo"), "{login:?}");
    assert_ne!(env.agent_pid("echo"), before);
    assert_eq!(env.agent("echo")["auth"]["state"], "authenticated");
    let mut client = env.client("echo");
    let session = env.session("fix")["sessionId"].as_str().unwrap().to_owned();
    client.say(&session, "say #three").unwrap();
    assert!(client.said(&session).contains("tags=one,three"), "{}", client.said(&session));
}

#[test]
fn a_login_by_a_call_is_made_and_unmade_from_the_command_line() {
    let env = home([echo().flags("auth-required")]);
    env.acpctl(&["run", "say #one"]).code(4);
    env.acpctl(&["auth", "login", "echo", "--method", "x"]).code(2).explains(&["demo-login"]);
    env.acpctl(&["auth", "login", "echo"]).success();
    env.acpctl(&["run", "say #one"]).success();
    assert_eq!(env.agent("echo")["auth"]["state"], "authenticated");
    env.acpctl(&["auth", "logout", "echo"]).code(2).explains(&[
        "all clients and 1 session",
        "needs confirmation",
        "--yes",
    ]);
    env.acpctl(&["auth", "logout", "echo", "--yes"]).success();
    env.acpctl(&["run", "say #two"]).code(4);
    let status = env.acpctl(&["auth", "status", "echo"]).success();
    assert!(status.stdout().contains("needs login"), "{status:?}");
}

#[test]
fn a_login_command_of_the_configuration_is_run_if_the_agent_offers_no_way() {
    let env = home([]);
    let done = env.path("done");
    let agent = echo().set("login", &format!("{:?}", format!("touch {}", done.display())));
    env.configure(&Config::new([agent]));
    env.acpctl(&["auth", "login", "echo"]).success();
    assert!(done.is_file());
    let failing = echo().set("login", "\"false\"");
    env.acpctl(&["daemon", "stop"]).success();
    env.configure(&Config::new([failing]));
    env.acpctl(&["auth", "login", "echo"]).code(4).explains(&["ended with"]);
    let missing = echo().set("login", "\"no-such-program login\"");
    env.acpctl(&["daemon", "stop"]).success();
    env.configure(&Config::new([missing]));
    let words = ["cannot run `no-such-program`", "install it, or set another command"];
    let login = env.acpctl(&["auth", "login", "echo"]);
    let login = login.code(1).explains(&words);
    assert!(!login.stderr().contains("ended with"), "there is one error: {login:?}");
}

#[test]
fn a_hidden_want_of_a_login_is_recognised_and_a_change_of_the_login_file_ends_it() {
    let env = home([]);
    let file = env.path("login.json");
    let agent = echo()
        .flags("auth-required auth-hidden")
        .set("auth_errors", "[\"not logged in\"]")
        .set("login_file", &format!("{file:?}"));
    env.configure(&Config::new([agent]));
    env.acpctl(&["run", "say #one"]).code(4).explains(&["Not Logged In"]);
    assert_eq!(env.agent("echo")["auth"]["source"]["kind"], "pattern");
    let mut client = env.client("echo");
    std::fs::create_dir_all(env.agent_state("echo")).unwrap();
    std::fs::write(env.agent_state("echo").join("authed"), "").unwrap();
    std::fs::write(&file, "{}").unwrap();
    client.next("the login", |line| {
        line["method"] == "_acpd/auth_changed" && line["params"]["auth"]["state"] == "authenticated"
    });
    env.acpctl(&["run", "say #one"]).success();
}

#[test]
fn an_agent_that_does_not_even_start_without_a_login_waits_for_one() {
    let env = home([]);
    let authed = env.agent_state("echo").join("authed");
    let log_in = format!("touch {}", authed.display());
    let agent = echo().flags("auth-first").set("login", &format!("{log_in:?}"));
    env.configure(&Config::new([agent]));
    std::fs::create_dir_all(env.agent_state("echo")).unwrap();
    std::fs::write(&authed, "").unwrap();
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    std::fs::remove_file(&authed).unwrap();
    kill9(env.agent_pid("echo").unwrap());
    let agent = env.wait_agent("echo", "needs_auth");
    assert_eq!((&agent["restarts"], &agent["pid"]), (&json!(1), &json!(null)), "{agent}");
    assert_eq!(env.session("fix")["state"], "blocked");
    for _ in 0..6 {
        let run = env.acpctl(&["run", "-s", "fix", "say #two"]).code(4);
        run.explains(&["authentication required", "acpctl auth login echo"]);
    }
    let agent = env.wait_agent("echo", "needs_auth");
    assert_eq!(agent["restarts"], 1, "none of these is a failure: {agent}");
    env.acpctl(&["auth", "login", "echo"]).success();
    until("the session to be back", || (env.session("fix")["state"] == "live").then_some(()));
    let three = env.acpctl(&["run", "-s", "fix", "say #three"]).success();
    assert!(three.stdout().contains("tags=one,three"), "{three:?}");
}

#[test]
fn a_login_starts_an_agent_that_was_given_up() {
    let env = home([]);
    let done = env.path("done");
    let agent = echo()
        .after_script(&format!("[ -e '{0}' ] || exit 1", done.display()))
        .set("login", &format!("\"touch {}\"", done.display()))
        .set("restart_budget", "2")
        .set("restart_delay", "\"1ms\"");
    env.configure(&Config::new([agent]));
    env.acpctl(&["agent", "start", "echo"]).code(1);
    env.wait_agent("echo", "failed");
    env.acpctl(&["auth", "login", "echo"]).success();
    assert_eq!(env.agent("echo")["state"], "ready");
}

#[test]
fn a_login_command_that_an_agent_hints_at_in_an_old_way_is_run() {
    let env = home([echo().flags("auth-required auth-legacy")]);
    env.acpctl(&["run", "say #one"]).code(4);
    let info = env.agent("echo");
    assert_eq!(info["auth"]["methods"][0]["kind"], "terminal", "{info}");
    let before = env.agent_pid("echo");
    env.acpctl(&["auth", "login", "echo"]).success();
    assert_ne!(env.agent_pid("echo"), before, "it reads its login at its start");
    env.acpctl(&["run", "say #one"]).success();
}
