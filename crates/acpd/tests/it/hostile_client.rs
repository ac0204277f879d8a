//! A client that means harm, with the real daemon: other clients are always served, and nothing is left.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use acpd_test::harness::{Config, DEADLINE, TestEnv, reason, rss};
use serde_json::{Value, json};

use crate::{echo, home, home_with};

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
