//! The daemon's own log: what is in it, and how long it gets.

use serde_json::json;

use crate::{echo, home};

#[test]
fn what_the_running_daemon_logs_changes_until_it_starts_again_and_is_said_in_the_log() {
    let env = home([echo()]);
    env.acpctl(&["daemon", "log-level"]).code(3).explains(&["acpd is not running"]);
    env.acpctl(&["daemon", "start"]).success();
    assert_eq!(env.acpctl(&["daemon", "log-level"]).success().stdout(), "info\n");
    // An agent that says something odd is told at `debug`.
    let odd = |name: &str| {
        env.acpctl(&["run", "-s", name, "[noise] hello"]).success();
        env.daemon_log().matches("an agent did something odd").count()
    };
    assert_eq!(odd("one"), 0);
    let changed = env.acpctl(&["daemon", "log-level", "debug"]).success();
    changed.explains(&["acpd logs `debug` until it restarts", "the configured level is `info`"]);
    assert!(env.daemon_log().contains("the log level was changed level=\"debug\" before=\"info\""));
    assert!(odd("two") > 0, "{}", env.daemon_log());
    let told = env.json(&["daemon", "log-level"]);
    assert_eq!(told, json!({"level": "debug", "configured": "info"}));
    // To less: that is said before it would be left out. And a filter.
    env.acpctl(&["daemon", "log-level", "error"]).success();
    assert!(env.daemon_log().contains("level=\"error\" before=\"debug\""));
    env.acpctl(&["daemon", "log-level", "warn,acpd=debug"]).success();
    assert!(env.daemon_log().contains("before=\"error\""), "{}", env.daemon_log());
    for (odd, hint) in [("debg", "did you mean `debug`?"), ("x,y=z", "the levels are")] {
        env.acpctl(&["daemon", "log-level", odd]).code(2).explains(&["is no level", hint]);
    }
    env.acpctl(&["daemon", "restart"]).success();
    assert_eq!(env.acpctl(&["daemon", "log-level"]).success().stdout(), "info\n");
}
