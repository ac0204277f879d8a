//! A client that means harm, with the real daemon: other clients are always served, and nothing is left.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use acp_wire::method::METHODS;
use acpd_api::method;
use acpd_test::harness::{Config, DEADLINE, TestEnv, reason, rss, until};
use serde_json::{Value, json};

use crate::{at_once, echo, home, home_with};

const MIB: u64 = 1 << 20;

fn connect(env: &TestEnv) -> UnixStream {
    let stream = UnixStream::connect(env.socket()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// Says all of it and then asks whether the daemon is there; its answers up to that one.
fn say(env: &TestEnv, bytes: &[u8]) -> Vec<String> {
    let mut stream = connect(env);
    let answers = BufReader::new(stream.try_clone().unwrap());
    // Answers are read while much is still to be sent.
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        for line in answers.lines() {
            said.push(line.expect("an answer"));
            if said.last().is_some_and(|line| line.contains(r#""id":"end""#)) {
                return said;
            }
        }
        panic!("the daemon has closed the connection: {said:?}");
    });
    stream.write_all(bytes).unwrap();
    stream.write_all(b"\n{\"id\":\"end\",\"method\":\"_acpd/ping\"}\n").unwrap();
    reader.join().unwrap()
}

/// Every method of the protocol and of acpd's own, but for those that end the daemon.
fn methods() -> impl Iterator<Item = &'static str> {
    let own = method::METHODS.iter().map(|(name, _)| *name);
    let own = own.filter(|name| ![method::DAEMON_STOP, method::DAEMON_RESTART].contains(name));
    METHODS.iter().map(|(name, ..)| *name).chain(own).chain(method::NOTICES.iter().copied())
}

/// Params of no right type, each of them for every member that a method may have.
fn params() -> Vec<String> {
    const NAMES: [&str; 16] = [
        "sessionId",
        "session",
        "ref",
        "agent",
        "cwd",
        "name",
        "title",
        "id",
        "ids",
        "answer",
        "after",
        "limit",
        "words",
        "prompt",
        "toolCall",
        "_meta",
    ];
    const VALUES: [&str; 8] = [
        "null",
        "-1",
        "1e400",
        "[]",
        "{}",
        "\"\\ud800\"",
        "[[{}]]",
        r#"{"_acpd":{"seq":1,"agent":7}}"#,
    ];
    let mut all: Vec<String> = ["null", "7", "[]", "\"x\""].map(str::to_owned).to_vec();
    for value in VALUES {
        let members = NAMES.map(|name| format!("\"{name}\":{value}"));
        all.push(format!("{{{}}}", members.join(",")));
        // All of them twice.
        all.push(format!("{{{0},{0}}}", members.join(",")));
    }
    all
}

const PING: &[u8] = b"{\"id\":\"end\",\"method\":\"_acpd/ping\"}\n";

/// Half a line of this many bytes, on a connection that has said a whole line if `is_known`.
fn half_line(env: &TestEnv, bytes: usize, is_known: bool) -> UnixStream {
    let mut stream = connect(env);
    if is_known {
        stream.write_all(PING).unwrap();
        BufReader::new(&stream).read_line(&mut String::new()).unwrap();
    }
    stream.write_all(&vec![b'x'; bytes]).unwrap();
    stream
}

#[test]
fn half_lines_are_bounded_over_all_connections() {
    let env = home_with(&Config::new([echo()]).daemon("line_limit", "\"4MiB\""));
    env.acpctl(&["ps"]).success();
    let daemon = env.daemon_pid();
    let base = rss(daemon);
    let strangers: Vec<_> = (0..16).map(|_| half_line(&env, 3 << 20, false)).collect();
    let known: Vec<_> = (0..24).map(|_| half_line(&env, 3 << 20, true)).collect();
    // All of it is read by now.
    let said = say(&env, b" ");
    assert_eq!(said.len(), 1, "{said:?}");
    let more = rss(daemon).saturating_sub(base);
    assert!(
        more < 40 * MIB,
        "{} MiB more for {} connections",
        more / MIB,
        strangers.len() + known.len()
    );
    // One that was dropped is answered with an error, and the next line with an answer.
    let refused = known.iter().rev().find_map(|mut stream| {
        stream.write_all(b"\n").unwrap();
        stream.write_all(PING).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.contains("limit").then_some(line)
    });
    assert!(refused.is_some());
}

#[test]
fn the_first_line_of_a_connection_is_short() {
    let env = home([echo()]);
    env.acpctl(&["ps"]).success();
    let text = "x".repeat(65 << 10);
    let long = format!("{{\"id\":1,\"method\":\"_acpd/ping\",\"x\":\"{text}\"}}\n");
    let served = [true, false].map(|is_whole| {
        let mut stream = connect(&env);
        let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut answer =
            || -> Value { serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap() };
        let (most, end) = long.split_at(if is_whole { long.len() } else { long.len() - 100 });
        let refused = if is_whole {
            stream.write_all(&[most.as_bytes(), PING, PING].concat()).unwrap();
            answer()
        } else {
            stream.write_all(most.as_bytes()).unwrap();
            let refused = answer();
            stream.write_all(&[end.as_bytes(), PING, PING].concat()).unwrap();
            refused
        };
        [refused, answer(), answer()]
    });
    for [refused, next, last] in served {
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32600)));
        assert_eq!(reason(&refused["error"]), "line_too_long");
        let pong = json!({"jsonrpc": "2.0", "id": "end", "result": {}});
        assert_eq!([next, last], [pong.clone(), pong], "the rest is dropped without a word");
    }
    let later = [PING, long.as_bytes()].concat();
    let mut stream = connect(&env);
    stream.write_all(&later).unwrap();
    let mut answers = BufReader::new(&stream).lines();
    assert!(answers.next().unwrap().unwrap().contains("\"end\""));
    assert!(answers.next().unwrap().unwrap().contains("\"result\""));
}

#[test]
fn a_client_that_means_harm_keeps_nobody_from_being_served_and_leaves_nothing() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let (daemon, agent) = (env.daemon_pid(), env.agent_pid("echo"));
    let base = rss(daemon);
    // Idle connections send nothing, or half a line, and stay.
    let idle: Vec<UnixStream> = (0..40).map(|_| connect(&env)).collect();
    for mut stream in &idle[..20] {
        stream.write_all(br#"{"id":1,"method":"_acpd/sta"#).unwrap();
    }
    at_once("a command beside idle connections", || env.acpctl(&["ps"]).success());
    // Each method with params of every wrong type, by one connection; each with an id of its own.
    let params = params();
    for name in methods() {
        let lines = params.iter().enumerate().map(|(at, params)| {
            format!("{{\"jsonrpc\":\"2.0\",\"id\":\"q{at}\",\"method\":\"{name}\",\"params\":{params}}}\n")
        });
        let said = say(&env, lines.collect::<String>().as_bytes());
        for line in said {
            let line: Value =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("{name}: {line}"));
            assert!(line.get("method").is_some() || line.get("id").is_some(), "{name}: {line}");
        }
    }
    // Ids that are not its own, twice, or of no type that an id has.
    let mut games = Vec::new();
    for id in ["1", "1", "\"1\"", "null", "1.5", "-1", "18446744073709551616", "{}", "[]", "true"] {
        games.push(format!("{{\"id\":{id},\"method\":\"_acpd/status\"}}\n"));
        games.push(format!(
            "{{\"id\":{id},\"result\":{{\"outcome\":{{\"outcome\":\"selected\",\"optionId\":\"y\"}}}}}}\n"
        ));
        games.push(format!(
            "{{\"id\":{id},\"id\":7,\"error\":5,\"result\":1,\"method\":\"initialize\"}}\n"
        ));
    }
    let said = say(&env, games.concat().as_bytes());
    let answers = |id: &str| said.iter().filter(|line| line.contains(id)).count();
    assert_eq!((answers(r#""id":1,"#), answers(r#""id":"1","#)), (2, 1), "{said:?}");
    // Lines and depths without end.
    say(&env, &vec![b'x'; 80 << 20]);
    say(&env, "[".repeat(8 << 20).as_bytes());
    say(&env, &b"\n".repeat(8 << 20));
    say(&env, &b"\xff".repeat(1 << 20));
    // Nothing of it is left, and all clients are served.
    assert_eq!((env.daemon_pid(), env.agent_pid("echo")), (daemon, agent));
    at_once("a command after it", || env.acpctl(&["ps"]).success());
    drop(idle);
    let run = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(run.stdout().contains("You said: say #two"), "{run:?}");
    until("only the observer to be connected", || {
        (env.status()["daemon"]["clients"] == 1).then_some(())
    });
    until("the daemon's memory to be back", || (rss(daemon) < base + 32 * MIB).then_some(()));
}
