//! Agents that want a login.

use acpd_test::harness::Config;

use crate::{echo, home};

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
