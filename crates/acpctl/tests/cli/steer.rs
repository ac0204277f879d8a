//! `acpctl run --steer`.

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Home, capable, session};

/// Serves everything up to the message.
fn steered(client: &mut Client) -> Value {
    client.finds(&session("s-1"));
    client.answer("initialize", capable());
    client.expect("_session/steering")
}

#[test]
fn a_text_is_said_into_the_turn_of_a_session() {
    let home = Home::new();
    let daemon = home.daemon(move |mut client| {
        client.finds(&session("s-1"));
        let initialize = client.answer("initialize", capable());
        assert_eq!(initialize["params"]["_meta"]["_acpd"]["agent"], "demo");
        let asked = client.expect("_session/steering");
        assert_eq!(
            asked["params"],
            json!({"sessionId": "s-1", "prompt": [{"type": "text", "text": "the red one"}],
                "_meta": {"steering": {"idleBehavior": "promptRequired"}}})
        );
        // The turn is shown where it was begun.
        client.says("working on it");
        client.result(&asked, json!({"outcome": "injected"}));
        client.closed();
    });
    let done = home.run(&["run", "--steer", "fi", "the", "red one"]);
    assert_eq!(
        (done.out.as_str(), done.err.as_str(), done.code),
        ("", "fix continues with your message\n", Some(0))
    );
    daemon.join().unwrap();
}

#[test]
fn with_a_named_session_all_words_are_said() {
    let home = Home::new();
    for args in [["-s", "fix", "--steer", "the red one"], ["--steer", "the red one", "-s", "fix"]] {
        let daemon = home.daemon(|mut client| {
            let asked = steered(&mut client);
            assert_eq!(asked["params"]["prompt"][0]["text"], "the red one");
            client.result(&asked, json!({"outcome": "injected"}));
        });
        assert_eq!(home.run(&[&["run"], &args[..]].concat()).code, Some(0));
        daemon.join().unwrap();
        std::fs::remove_file(home.path("run/acpd.sock")).unwrap();
    }
    let daemon = home.daemon(|mut client| {
        client.answer(method::SESSION_LIST, json!({"sessions": [session("s-1")]}));
        client.answer("initialize", capable());
        let asked = client.expect("_session/steering");
        client.result(&asked, json!({"outcome": "injected"}));
    });
    let done = home.run(&["run", "-c", "--steer", "--json", "more"]);
    assert_eq!((done.out.as_str(), done.code), ("{\"outcome\":\"injected\"}\n", Some(0)));
    daemon.join().unwrap();
}

#[test]
fn what_cannot_be_said_comes_with_the_way_out() {
    let (home, listener) = Home::listening();
    let daemon = std::thread::spawn(move || {
        let outcomes = [
            json!({"outcome": "promptRequired", "reason": "noRunningTurn"}),
            json!({"outcome": "failed", "reason": "busy"}),
        ];
        for outcome in outcomes {
            let mut client = Client::accept(&listener);
            let asked = steered(&mut client);
            client.result(&asked, outcome);
        }
        let mut client = Client::accept(&listener);
        let asked = steered(&mut client);
        let text = "agent `demo` takes no message into a running turn";
        client.error(&asked, text, json!({"reason": "cannot_steer", "hint": "wait, or cancel"}));
    });
    let hint = "\n\nhint: send it as a prompt: `acpctl run -s fix …`\n";
    for (error, hint) in [
        ("error: no turn runs in session `fix`", hint),
        ("error: demo did not take the message: busy", hint),
        ("error: agent `demo` takes no message into a running turn", "\n\nhint: wait, or cancel\n"),
    ] {
        let done = home.run(&["run", "--steer", "fix", "more"]);
        assert_eq!((done.err, done.code), (error.to_owned() + hint, Some(1)));
    }
    daemon.join().unwrap();
}

#[test]
fn a_message_needs_a_session_and_a_text() {
    let home = Home::new();
    let done = home.run(&["run", "--steer"]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.starts_with("error: `--steer` needs a session\n"), "{}", done.err);
    let done = home.run(&["run", "--steer", "fix"]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.starts_with("error: no prompt given\n"), "{}", done.err);
    for other in ["--yes", "--deny", "--thoughts"] {
        assert_eq!(home.run(&["run", "--steer", other, "fix", "x"]).code, Some(2), "{other}");
    }
}
