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
