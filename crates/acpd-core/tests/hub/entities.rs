//! Messages and calls that lines of a journal are about.

use acpd_core::ids::SessionKey;
use serde_json::{Value, json};

use crate::bench::{Bench, word};

/// Entities of a session's conversation, with its words.
fn entities(bench: &Bench, session: u32) -> Vec<(String, Option<u64>)> {
    let rows = &bench.journal[&SessionKey(session)];
    let of = |line| word(&serde_json::from_slice::<Value>(line).unwrap());
    rows.iter().map(|row| (of(&row.line), row.entity)).filter(|(_, it)| it.is_some()).collect()
}

#[test]
fn lines_name_their_message_over_restarts_and_in_forks() {
    let bench = Bench::with_shims().with_session_capabilities(json!({"fork":{}}));
    let (mut bench, a) = bench.with_begun();
    let blocks = json!([{"type":"text","text":"two"}, {"type":"text","text":"more"}]);
    bench.ask(a, 2, "session/prompt", &json!({"sessionId":"s","prompt":blocks}));
    bench.heard_one("session/prompt");
    bench.chunk("s", "f");
    bench.reboot_unadopted();
    bench.adopt();
    bench.chunk("s", "g");
    bench.chunk("s", "h");
    bench.update_call("call", &json!({"status":"completed"}));

    let [user, text, call] = ["user_message_chunk", "agent_message_chunk", "tool_call_update"];
    // After `_acpd/turn_started`, and after the restart.
    let expected = [(user, 2), (user, 2), (text, 4), (text, 5), (text, 5), (call, 1)];
    let expected = expected.map(|(word, entity)| (word.to_owned(), Some(entity)));
    assert_eq!(entities(&bench, 1), expected);

    let b = bench.joined("s");
    bench.ask(b, "f", "session/fork", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    let request = bench.heard_one("session/fork");
    bench.agent_answers(&request, &json!({"sessionId":"t"}));
    bench.chunk("t", "i");
    bench.run_turn(b, 3, "t", "three");
    let forked = entities(&bench, 2);
    assert_eq!(forked[..6], expected);
    let heads = forked[6..].iter().map(|(_, entity)| entity.unwrap());
    assert!(forked.len() == 8 && heads.min() > Some(7), "{forked:?}");
}
