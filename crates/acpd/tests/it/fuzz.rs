//! Hostile clients on the real socket. Most cases run without one, in the hub's own tests.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use acp_wire::{Body, Framer};
use acpd_test::fuzz::Dice;
use acpd_test::harness::{Agent, DEADLINE, TestEnv, rss, until};
use acpd_test::rng::Rng;
use serde_json::{Value, json};

use crate::mangle::{Account, mangle, of_client};
use crate::{echo, home};

const MIB: u64 = 1 << 20;
/// Connections, and lines of each.
const CONNECTIONS: u64 = 24;
const LINES: u64 = 100;

fn bytes(rng: &mut Rng, count: usize) -> Vec<u8> {
    std::iter::repeat_with(|| rng.below(256) as u8).take(count).collect()
}

/// Returns the line as the daemon reads it: without the white space around it.
fn framed(line: &[u8]) -> Option<Vec<u8>> {
    let mut framer = Framer::new(usize::MAX);
    framer.push(line);
    framer.push(b"\n");
    match framer.next_frame()?.body {
        Body::Line(line) => Some(line.to_vec()),
        Body::Oversized { .. } => panic!("there is no limit"),
    }
}

/// One hostile connection, from the first line to the last answer, or to an end in the middle.
fn hostile(env: &TestEnv, session: &str, number: u64) {
    let mut stream = UnixStream::connect(env.socket()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    let named: Vec<Value> = [session, "nope", ""].map(Value::from).to_vec();
    let mut account = Account::default();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut rng = Rng::new(number);
    let mut said = Vec::new();
    let say = |stream: &mut UnixStream, account: &mut Account, line: &[u8]| {
        if let Some(line) = framed(line) {
            account.says(&line);
        }
        stream.write_all(line).and_then(|()| stream.write_all(b"\n")).unwrap();
    };
    let agent = json!({"agent":"prey"});
    let params = json!({"protocolVersion":1,"_meta":{"_acpd":agent}});
    let hello = json!({"id":"hello","method":"initialize","params":params});
    let start = json!({"id":"start","method":"_acpd/agent/start","params":agent});
    let stop = json!({"id":"stop","method":"_acpd/agent/stop","params":agent});
    say(&mut stream, &mut account, start.to_string().as_bytes());
    if !number.is_multiple_of(4) {
        say(&mut stream, &mut account, hello.to_string().as_bytes());
    }
    for at in 0..LINES {
        let dice = bytes(&mut rng, 40);
        let mut dice = Dice(&dice);
        let id = json!(format!("{number}/{at}"));
        let line = of_client(&id, "prey", &named, &mut dice);
        let line = mangle(&line, &named, &mut dice);
        say(&mut stream, &mut account, &line);
        said.push(String::from_utf8_lossy(&line).into_owned());
    }
    if number.is_multiple_of(3) {
        // This client does not wait, and its last line is half a line.
        stream.write_all(br#"{"id":1,"method":"session/new","params":{"cwd"#).unwrap();
        return stream.shutdown(Shutdown::Both).unwrap();
    }
    // An agent does not answer a line that it cannot read.
    say(&mut stream, &mut account, stop.to_string().as_bytes());
    while !account.open().is_empty() {
        let mut line = String::new();
        let read = reader.read_line(&mut line);
        if !read.is_ok_and(|bytes| bytes > 0) {
            let open = account.open();
            said.retain(|line| open.iter().any(|id| line.contains(id)));
            panic!("connection {number}: no answer to {open:?}: {said:?}");
        }
        account.gets(&line);
    }
}

#[test]
fn hostile_clients_harm_nobody_and_each_request_has_one_answer() {
    // The first is what a client is bound to that names none.
    let env = home([Agent::new("prey").unrecorded(), echo()]);
    let mut good = env.client("echo");
    let ours = good.new_session(&env.work("main"), Some("fix"));
    let theirs = env.client("prey").new_session(&env.work("prey"), None);
    good.say(&ours, "say #begin").unwrap();
    let (daemon, agent, base) = (env.daemon_pid(), env.agent_pid("echo"), rss(env.daemon_pid()));
    for number in 0..CONNECTIONS {
        let turn = good.prompt(&ours, &format!("[chunks 50] say #n{number}"));
        hostile(&env, &theirs, number);
        assert_eq!(good.answer(turn).unwrap()["stopReason"], "end_turn");
    }
    good.sync();
    let view = good.view(&ours);
    assert!(view.iter().map(|(seq, _)| seq).is_sorted());
    let journal = env.journal("fix");
    let is_own = |line: &Value| line["params"]["update"]["sessionUpdate"] == "user_message_chunk";
    let shown = journal.iter().filter(|(_, line)| !is_own(line));
    assert!(shown.map(|(seq, _)| seq).eq(view.iter().map(|(seq, _)| seq)), "gaps or doubles");
    assert_eq!(env.said("fix").matches("line 50\n").count() as u64, CONNECTIONS);
    assert_eq!((env.daemon_pid(), env.agent_pid("echo")), (daemon, agent));
    until("the daemon's memory to be back", || (rss(daemon) < base + 32 * MIB).then_some(()));
}
