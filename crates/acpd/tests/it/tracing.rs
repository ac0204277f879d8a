//! `acpctl trace`: the lines between acpd and an agent, as they go.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use acpd_test::harness::{Config, Running, TestEnv};
use serde_json::{Value, json};

use crate::{echo, home, home_with};

/// A trace that has begun.
fn trace(env: &TestEnv, args: &[&str]) -> Running {
    let mut tracing = env.spawn_acpctl(&[&["trace"], args].concat());
    tracing.wait_stderr("Ctrl-C ends it");
    tracing
}

/// Returns the output of a trace that is ended by Ctrl-C.
fn ended(tracing: Running) -> Vec<Value> {
    tracing.interrupt();
    let done = tracing.finish().code(130);
    done.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_session_is_traced_both_ways_with_times_and_without_values() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "hello"]).success();
    env.acpctl(&["run", "-s", "other", "hello"]).success();
    let mut tracing = trace(&env, &["fix", "--json"]);
    env.acpctl(&["run", "-s", "other", "not this"]).success();
    env.acpctl(&["run", "-s", "fix", "my secret plan"]).success();
    tracing.wait_stdout("\"took\"");
    let lines = ended(tracing);
    let (first, last) = (&lines[0], &lines[lines.len() - 1]);
    assert_eq!(
        (&first["direction"], &first["kind"], &first["method"], &first["agent"]),
        (&json!("to_agent"), &json!("request"), &json!("session/prompt"), &json!("echo"))
    );
    assert_eq!(
        (&last["direction"], &last["kind"], &last["method"], &last["id"]),
        (&json!("from_agent"), &json!("response"), &json!("session/prompt"), &first["id"])
    );
    assert!(last["took"].as_f64().unwrap() > 0.0, "{last}");
    assert!(last["at"].as_u64() >= first["at"].as_u64());
    let update = lines.iter().find(|line| line["update"] == "agent_message_chunk").unwrap();
    assert!(update["bytes"].as_u64().unwrap() > 20, "{update}");
    let all = serde_json::to_string(&lines).unwrap();
    assert!(!all.contains("secret plan") && !all.contains("message\":{"), "{all}");
    assert_eq!(lines.iter().filter(|line| line["method"] == "session/prompt").count(), 2);
}

#[test]
fn full_lines_show_the_conversation_and_no_secret() {
    let env = home([echo()]);
    env.acpctl(&["daemon", "start"]).success();
    let mut tracing = trace(&env, &["--agent", "echo", "--clients", "--full", "--json"]);
    let mut client = env.client("echo");
    let server = json!({"name": "gh", "command": "/bin/planted-1", "args": ["--key", "planted-2"],
        "env": [{"name": "GH_TOKEN", "value": "planted-3"}]});
    let meta = json!({"x": {"token": "planted-4"}});
    let made = client
        .ok("session/new", json!({"cwd": env.work(""), "mcpServers": [server], "_meta": meta}));
    let id = made["sessionId"].as_str().unwrap().to_owned();
    client.say(&id, "plain words, API_KEY=planted-5 and Bearer planted-6").expect("an answer");
    tracing.wait_stdout("plain words");
    tracing.wait_stdout("stopReason");
    let lines = ended(tracing);
    let all = serde_json::to_string(&lines).unwrap();
    assert!(!all.contains("planted"), "{all}");
    let new = lines
        .iter()
        .find(|line| line["direction"] == "to_agent" && line["method"] == "session/new");
    let servers = &new.unwrap()["message"]["params"]["mcpServers"];
    assert_eq!(servers[0]["env"][0]["value"], "[hidden]", "the structure is there");
}

#[test]
fn a_reader_that_does_not_read_costs_nobody_anything_and_is_told_what_it_has_missed() {
    let env = home_with(&Config::new([echo().unrecorded()]).daemon("client_queue", "\"64KiB\""));
    env.acpctl(&["run", "-s", "fix", "hello"]).success();
    let mut slow = UnixStream::connect(env.socket()).expect("a connection");
    let params = json!({"agent": "echo", "full": true});
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "_acpd/trace", "params": params});
    writeln!(slow, "{ask}").expect("a daemon that reads");
    let mut said = slow.try_clone().expect("a second handle");
    let mut lines = BufReader::new(slow)
        .lines()
        .map(|line| -> Value { serde_json::from_str(&line.expect("a line")).expect("JSON") });
    assert_eq!(lines.next().expect("an answer")["result"], json!({}));
    // Many times what waits for a client at most, and what the system keeps of a socket.
    env.acpctl(&["run", "-s", "fix", "[chunks 6000]"]).success();
    env.acpctl(&["run", "-s", "fix", "quick"]).success();
    // The client reads all that there is, and gets new lines again.
    writeln!(said, "{}", json!({"jsonrpc": "2.0", "id": 2, "method": "_acpd/ping"})).expect("room");
    let mut shown: Vec<Value> = lines.by_ref().take_while(|line| line["id"] != 2).collect();
    env.acpctl(&["run", "-s", "fix", "more"]).success();
    shown.push(lines.next().expect("a line"));
    let missed: u64 = shown.iter().filter_map(|line| line["params"]["missed"].as_u64()).sum();
    let all = shown.len() as u64 + missed;
    assert!(missed > 1000 && all > 6000, "of {all} lines, {missed} were missed");
}
