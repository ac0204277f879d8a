//! `acpctl session log`: the end of it, and the pager.

use std::thread;

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Home, exactly, run_against, session};
use crate::terminal::Person;

/// When the turns of the journal began.
const BEGAN: [u64; 3] = [1_000, 1_795_000_000_000, 1_795_000_060_000];

/// A journal with three turns of four entries, and a line before them.
fn journal() -> Vec<Value> {
    let entry = |seq: usize, method: &str, mut params: Value| {
        params["sessionId"] = json!("s-1");
        json!({"seq": seq, "line": {"jsonrpc": "2.0", "method": method, "params": params}})
    };
    let said = |kind: &str, text: String| json!({"update": {"sessionUpdate": kind, "content": {"type": "text", "text": text}}});
    let mut lines = vec![entry(1, method::NOTICE, json!({"severity": "info", "text": "begun"}))];
    for (turn, at) in (1..).zip(BEGAN) {
        let seq = lines.len() + 1;
        lines.extend([
            entry(seq, method::TURN_STARTED, json!({"turn": turn, "at": at})),
            entry(seq + 1, "session/update", said("user_message_chunk", format!("ask {turn}"))),
            entry(seq + 2, "session/update", said("agent_message_chunk", format!("answer {turn}"))),
            entry(
                seq + 3,
                method::TURN_ENDED,
                json!({"turn": turn, "startedAt": at, "at": at,
                "outcome": {"kind": "stopped", "stopReason": "end_turn"}}),
            ),
        ]);
    }
    lines
}

/// Serves one command with pages of at most two entries.
fn serve(mut client: Client) {
    let mut here = session("s-1");
    here["seq"] = json!(journal().len());
    client.finds(&here);
    while let Some(asked) = client.read() {
        assert_eq!(asked["method"], method::SESSION_LOG, "{asked}");
        assert_eq!(asked["params"]["ref"], exactly());
        let after = asked["params"]["after"].as_u64().unwrap();
        let rest = journal().into_iter().skip(usize::try_from(after).unwrap());
        let entries: Vec<Value> = rest.take(2).collect();
        let next = after + entries.len() as u64;
        let mut page = json!({"sessionId": "s-1", "entries": entries});
        if next < journal().len() as u64 {
            page["next"] = json!(next);
        }
        client.result(&asked, page);
    }
}

fn shows(args: &[&str]) -> String {
    let done = run_against(&[&["session", "log", "fix"], args].concat(), serve);
    assert_eq!(done.code, Some(0), "{done:?}");
    (done.out + &done.err).trim_start().to_owned()
}

#[test]
fn the_last_turns_are_shown_by_their_number_or_their_time() {
    let all = "begun\n\n> ask 1\n\nanswer 1\n\n> ask 2\n\nanswer 2\n\n> ask 3\n\nanswer 3\n";
    let from = |turn: u32| &all[all.find(&format!("> ask {turn}")).unwrap()..];
    assert_eq!(shows(&[]), all);
    assert_eq!(shows(&["--last"]), from(3));
    assert_eq!(shows(&["-n", "2"]), from(2));
    assert_eq!(shows(&["-n", "9"]), all);
    assert_eq!(shows(&["--since", "2026-11-18T11:07:00Z"]), from(3));
    assert_eq!(shows(&["--since", "1970-01-02"]), from(2));
    assert_eq!(shows(&["--since", "1m"]), "no turn started in that time\n");
}

#[test]
fn a_pager_shows_it_on_a_terminal_and_may_be_left_at_any_time() {
    let (home, listener) = Home::listening();
    let daemon = thread::spawn(move || {
        for _ in 0..3 {
            serve(Client::accept(&listener));
        }
    });
    let log = ["session", "log", "fix"];
    let (mut person, child) = Person::start_as(&home, "dumb", 80, &log, "sed 's/^/paged: /'");
    person.sees("paged: answer 3\r\n");
    assert_eq!(home.wait(child).code, Some(0));
    // A pager that leaves early, and none.
    for (pager, seen) in [("head -1", "begun\r\n"), ("cat", "\r\nanswer 3\r\n")] {
        let (mut person, child) = Person::start_as(&home, "dumb", 80, &log, pager);
        person.sees(seen);
        assert_eq!(home.wait(child).code, Some(0));
        assert!(!person.seen.contains("paged"));
    }
    daemon.join().unwrap();
    // A pipe gets no pager.
    assert!(!shows(&[]).contains("paged"));
}
