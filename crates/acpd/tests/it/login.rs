//! Agents that want a login.

use acpd_test::harness::Config;

use crate::{echo, home};

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
