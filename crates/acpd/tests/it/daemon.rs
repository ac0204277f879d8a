//! The daemon itself: killed, restarted, and what it says to those who knock.

use std::fs;

use acpd_test::harness::{Config, exists, kill9, rss, until};
use serde_json::Value;

use crate::{echo, home, home_with, stubborn};

#[test]
fn a_daemon_killed_with_its_shims_costs_the_running_turn_and_nothing_else() {
    let env = home([stubborn()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.acpctl(&["run", "-s", "docs", "say #other"]).success();
    let mut client = env.client("echo");
    let session = client.attach("fix", None)["session"]["sessionId"].as_str().unwrap().to_owned();
    client.prompt(&session, "#two [child] [child-setsid] [pause middle]");
    client.hear("paused at middle");
    client.prompt(&session, "say #three");
    client.next_of("_acpd/prompt_queued");
    let daemon = env.daemon_pid();
    let old: Vec<u32> =
        env.tree().iter().map(|process| process.pid).filter(|pid| *pid != daemon).collect();
    assert_eq!(old.len(), 3, "{old:?}");
    env.kill_daemon_and_shims();
    client.wait_closed();

    // The next daemon is there at once; the next agent waits until the old tree is gone.
    env.acpctl(&["daemon", "start"]).success();
    until("the next agent", || env.agent_pid("echo").filter(|pid| !old.contains(pid)));
    assert!(!old.iter().any(|pid| exists(*pid)), "{:?}", env.tree());
    until("the queued prompt to be answered", || {
        env.said("fix").contains("tags=one,two,three").then_some(())
    });
    let journal = env.journal("fix");
    let ends: Vec<&Value> = journal
        .iter()
        .filter(|(_, line)| line["method"] == "_acpd/turn_ended")
        .map(|(_, line)| &line["params"]["outcome"])
        .collect();
    let kinds: Vec<&str> = ends.iter().filter_map(|outcome| outcome["kind"].as_str()).collect();
    assert!(
        matches!(kinds[..], ["stopped", "interrupted" | "outcome_unknown", "stopped"]),
        "{ends:?}"
    );
    assert!(env.said("fix").contains("paused at middle"), "what was seen is kept");
    assert_eq!(env.received("echo", "session/prompt").len(), 4, "no prompt is sent twice");
    let docs = env.acpctl(&["run", "-s", "docs", "say #again"]).success();
    assert!(docs.stdout().contains("tags=other,again"), "{docs:?}");
}

#[test]
fn a_daemon_to_which_nothing_happens_gives_memory_back_and_works_on() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let daemon = env.daemon_pid();
    let awake = rss(daemon);
    until("the daemon to rest", || (rss(daemon) < awake / 2).then_some(()));
    let again = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(again.stdout().contains("tags=one,two"), "{again:?}");
}

#[test]
fn no_log_has_a_word_of_a_conversation_at_any_level() {
    const CANARY: &str = "canary-77c1";
    let config = Config::new([echo()]).daemon("log_level", "\"trace\"");
    let env = home_with(&config);
    // Lines that cannot be read as what they should be.
    let odd = [
        r#""id":7,"error":{"code":"@"}"#,
        r#""method":["@"]"#,
        r#""@""#,
        r#""method":"session/update","params":"@""#,
        r#""method":"session/update","params":{"sessionId":"$SESSION","update":["@"]}"#,
        r#""id":8,"method":"session/request_permission","params":{"sessionId":"$SESSION","options":"@"}"#,
        r#""id":9,"method":"fs/read_text_file","params":{"sessionId":"$SESSION","path":["@"]}"#,
    ];
    let lines = odd.map(|line| format!("{{\"jsonrpc\":\"2.0\",{}}}\n", line.replace('@', CANARY)));
    let file = env.path("odd");
    fs::write(&file, lines.concat()).unwrap();
    env.acpctl(&["run", "-s", "odd", &format!("[raw {}]", file.display())]).success();
    let words =
        format!("say #{CANARY} [think {CANARY}] [tool {CANARY}] [noise] [error -32603 {CANARY}]");
    env.acpctl(&["run", "-s", "fix", &words]).code(1);
    let run = env.spawn_acpctl(&["run", "-s", "fix", &format!("{CANARY} [ask] [hang]")]);
    until("the question", || env.acpctl(&["allow", "fix"]).code_is(0).then_some(()));
    kill9(env.agent_pid("echo").unwrap());
    run.finish().code(6);
    env.acpctl(&["run", "-s", "fix", &format!("say #{CANARY}")]).success();
    env.acpctl(&["session", "search", CANARY]).success();
    assert!(env.said("fix").contains(CANARY));
    let log = env.daemon_log();
    assert!(log.matches("an agent did something odd").count() > odd.len(), "all is noted: {log}");
    assert!(!log.contains(CANARY), "{log}");
    let agents = env.acpctl(&["agent", "logs", "echo"]).success();
    assert!(!agents.stdout().contains(CANARY), "{agents:?}");
}
