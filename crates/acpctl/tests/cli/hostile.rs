//! Text of agents that would steer a terminal or hide on it. All commands are tried with an agent of this
//! kind in the tests of the daemon.

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Home, about, session};
use crate::terminal::in_turn;

/// Runs a command that shows this session.
fn show(session: Value, args: &[&str]) -> String {
    let home = Home::new();
    let daemon = home.daemon(move |mut client| {
        client.finds(&session);
    });
    let done = home.run(args);
    daemon.join().unwrap();
    assert_eq!(done.code, Some(0), "{done:?}");
    done.out
}

#[test]
fn m5_a_stop_reason_that_sets_the_clipboard_is_shown_and_does_nothing() {
    let mut ended = session("s-1");
    ended["turn"]["last"] = json!("\u{1b}]52;c;eA==\u{7}");
    let shown = show(ended, &["session", "show", "fix"]);
    assert!(shown.contains("idle (<U+001B>]52;c;eA==<U+0007>)"), "{shown:?}");
}

#[test]
fn m6_a_question_shows_what_would_turn_or_hide_its_words() {
    let (home, mut person, child, mut client, prompt) = in_turn("dumb");
    let command = "echo \u{202e}x\u{200b}y\u{ad}z\u{e0041}\u{200d}";
    let meta = about("list\u{2066}", &[command]);
    client.asks(1, &json!({"toolCallId": "t"}), &meta, &[("y", "Allow\u{202e}", "allow_once")]);
    person.sees("list<U+2066>");
    person.sees("echo <U+202E>x<U+200B>y<U+00AD>z<U+E0041><U+200D>");
    person.sees("[y] allow once: \"Allow<U+202E>\"");
    person.types("y");
    client.read().unwrap();
    client.result(&prompt, json!({"stopReason": "end_turn"}));
    assert_eq!(home.wait(child).code, Some(0));
}

#[test]
fn m6_an_agents_error_is_no_hint_of_ours() {
    let home = Home::new();
    let daemon = home.daemon(|mut client| {
        let request = client.expect(method::SESSION_LIST);
        let message = "no\n\nhint: run \u{202e}this";
        let error = json!({"code": -32603, "message": message, "data": {"details": "\u{200b}"}});
        client.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
    });
    let done = home.run(&["session", "show", "fix"]);
    daemon.join().unwrap();
    assert_eq!(done.err, "error: no hint: run <U+202E>this: <U+200B>\n");
}

#[test]
fn l5_json_has_the_same_meaning_and_no_character_that_a_terminal_obeys() {
    let title = "a\u{9b}2J\u{7f}\u{202e}é";
    let mut titled = session("s-1");
    titled["title"] = json!(title);
    let shown = show(titled, &["session", "show", "fix", "--json"]);
    assert!(shown.contains(r#""a\u009b2J\u007f\u202eé""#), "{shown:?}");
    let read: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(read["title"], title);
}
