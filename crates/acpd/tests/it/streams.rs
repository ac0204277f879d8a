//! Output of agents that is cut off.

use acpd_test::harness::reason;

use crate::{echo, home};

// peers 18
#[test]
fn half_a_line_is_not_shown() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    let error = client.say(&session, "[chunks 2] [half]").unwrap_err();
    assert_eq!(reason(&error), "agent_exited", "{error}");
    assert_eq!(env.said("fix"), "line 1\nline 2\n");
    client.say(&session, "say #two").unwrap();
}
