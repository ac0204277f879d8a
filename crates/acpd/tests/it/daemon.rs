//! The daemon itself: killed, restarted, and what it says to those who knock.

use std::fs;

use acpd_test::harness::{Config, exists, kill9, reason, rss, until};
use serde_json::{Value, json};

use crate::{echo, home, home_with};

#[test]
fn a_daemon_killed_with_its_shims_costs_the_running_turn_and_nothing_else() {
    let stubborn = echo()
        .flags("ignore-eof ignore-term")
        .set("stop.eof", "\"100ms\"")
        .set("stop.term", "\"100ms\"");
    let env = home([stubborn]);
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
fn a_terminal_whose_daemon_is_killed_with_its_shims_is_told_so() {
    let env = home([echo()]);
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "#one [pause middle]"]);
    run.wait_stdout("paused at middle");
    env.kill_daemon_and_shims();
    run.finish().code(6).explains(&["the agent's shim process was killed", "hint:"]);
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
    assert_eq!(env.session("fix")["restore"], "resumed");
}

#[test]
fn a_stop_in_the_middle_of_a_turn_ends_it_in_peace() {
    let env = home([echo()]);
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "#one [pause middle] never"]);
    run.wait_stdout("paused at middle");
    env.acpctl(&["daemon", "stop"]).success();
    run.finish().code(6).explains(&["was stopped in the turn: acpd is shutting down", "hint:"]);
    let record = env.record("echo");
    assert_eq!(record.last().map(|line| line.line.as_str()), Some("exit 0"), "it was not killed");
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
}

#[test]
fn a_question_of_a_turn_that_died_with_its_daemon_is_not_asked_again() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.prompt(&session, "#one [ask]");
    let old = client.next_of("session/request_permission");
    env.kill_daemon_and_shims();
    let mut client = env.client("echo");
    client.attach("fix", None);
    // The id of the old question means nothing any more, least of all consent to a new one.
    client.permit(&old, "yes");
    let turn = client.prompt(&session, "#two [ask]");
    let new = client.next_of("session/request_permission");
    assert_ne!(new["id"], old["id"]);
    client.permit(&old, "yes");
    client.sync();
    assert_eq!(env.session("fix")["turn"]["state"], "needs_action");
    client.permit(&new, "no");
    client.answer(turn).unwrap();
    assert!(env.said("fix").contains("permission: no"));
    assert!(!env.said("fix").contains("permission: yes"));
}

#[test]
fn a_restart_keeps_every_conversation() {
    let env = home([echo()]);
    for name in ["a", "b", "c"] {
        env.acpctl(&["run", "-s", name, &format!("say #{name}")]).success();
    }
    let before = env.journal("a");
    let (old, boot) = (env.daemon_pid(), env.status()["daemon"]["boot"].clone());
    env.acpctl(&["daemon", "restart"]).success();
    assert_eq!(env.daemon_pid(), old, "the program takes its own place");
    assert_ne!(env.status()["daemon"]["boot"], boot);
    assert_eq!(env.journal("a"), before);
    for name in ["a", "b", "c"] {
        let out = env.acpctl(&["run", "-s", name, "say #again"]).success();
        assert!(out.stdout().contains(&format!("tags={name},again")), "{out:?}");
    }
}

#[test]
fn bad_json_is_answered_and_the_connection_goes_on() {
    let env = home([echo()]);
    let mut client = env.connect();
    let mut refused = |line: &[u8]| {
        client.send_raw(line);
        client.next("an error", |message| message["error"].is_object())
    };
    let parse_error = refused(b"{oops\n");
    assert_eq!((&parse_error["id"], &parse_error["error"]["code"]), (&json!(null), &json!(-32700)));
    for line in ["[]\n", "42\n", "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}\n"] {
        let error = refused(line.as_bytes());
        assert_eq!(error["error"]["code"], -32600, "{line}: {error}");
    }
    assert_eq!(refused(b"\xff\xfe\n")["error"]["code"], -32700);
    let early = client.call("session/new", json!({"cwd": "/", "mcpServers": []})).unwrap_err();
    assert_eq!(early["code"], -32600, "{early}");
    client.initialize(json!({"agent": "echo"}));
    let session = client.new_session(&env.work("main"), None);
    client.say(&session, "say #one").unwrap();
    let unknown = client.call("_acpd/no/such/method", json!({})).unwrap_err();
    assert_eq!(unknown["code"], -32601, "{unknown}");
    let bad = client.call("session/prompt", json!({"sessionId": session})).unwrap_err();
    assert_eq!(bad["code"], -32602, "{bad}");
    let nowhere = client.call("session/prompt", json!({"sessionId": "x", "prompt": []}));
    assert_eq!(reason(&nowhere.unwrap_err()), "session_not_found");
}

#[test]
fn more_clients_than_allowed_are_refused_until_one_goes() {
    let env = home_with(&Config::new([echo()]).daemon("max_clients", "2"));
    let first = env.client("echo");
    let mut second = env.client("echo");
    let hello = json!({"protocolVersion": 1});
    let mut third = env.connect();
    let refused = third.call("initialize", hello.clone()).unwrap_err();
    assert_eq!(reason(&refused), "too_many", "{refused}");
    assert!(refused.to_string().contains("max_clients"), "the way out: {refused}");
    third.wait_closed();
    drop(first);
    until("a place to be free", || env.connect().call("initialize", hello.clone()).ok());
    second.sync();
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
