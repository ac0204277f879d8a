//! Agents that want a login.

use acpd_test::harness::reason;
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
    client.say(&session, "say #three").unwrap();
    assert!(client.said(&session).contains("tags=one,three"), "{}", client.said(&session));
}

#[test]
fn sessions_that_could_not_come_back_without_a_login_come_back_after_it() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.acpctl(&["daemon", "stop"]).success();
    env.configure(&acpd_test::harness::Config::new([echo().flags("auth-required")]));
    env.acpctl(&["run", "-s", "fix", "say #two"]).code(4);
    assert_eq!(env.session("fix")["state"], "blocked");
    env.client("echo").ok("authenticate", json!({"methodId": "demo-login"}));
    let three = env.acpctl(&["run", "-s", "fix", "say #three"]).success();
    assert!(three.stdout().contains("tags=one,three"), "{three:?}");
}
