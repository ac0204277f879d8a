//! `acpctl session search` with a daemon that a test plays.

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Home, session};

fn hit(by: &str, snippet: &Value) -> Value {
    json!({"session": session("s-1"), "seq": 3, "at": 0, "by": by, "snippet": snippet})
}

#[test]
fn hits_have_two_lines_each_and_bold_words() {
    let home = Home::new();
    let hits = json!([
        hit("agent", &json!([{"text": "…see\n  the "}, {"text": "parser", "hit": true}])),
        hit("user", &json!([{"text": "\u{1b}[2J"}])),
        hit("tool", &json!([{"text": "Read "}, {"text": "parser", "hit": true}, {"text": ".rs"}])),
    ]);
    let found = hits.clone();
    let served = home.daemon(move |mut client| {
        client.answer(method::SESSION_SEARCH, json!({"hits": found}))["params"].clone()
    });
    let done =
        home.run(&["session", "search", "parser", "pars*", "-a", "demo", "-n", "3", "--here"]);
    assert_eq!(
        done.out,
        "fix  demo  -  agent\n    …see the parser\n\
         fix  demo  -  you\n    <U+001B>[2J\n\
         fix  demo  -  tool\n    Read parser.rs\n"
    );
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    assert_eq!(
        served.join().unwrap(),
        json!({"words": ["parser", "pars*"], "agent": "demo", "cwd": home.work(), "limit": 3})
    );

    let home = Home::new();
    let served = home.daemon(move |mut client| {
        client.answer(method::SESSION_SEARCH, json!({"hits": hits}));
    });
    let done = home.run(&["--color", "always", "session", "search", "parser"]);
    assert!(done.out.contains("the \u{1b}[1mparser\u{1b}[0m\n"), "{}", done.out);
    served.join().unwrap();
}

#[test]
fn json_is_what_the_daemon_found() {
    let home = Home::new();
    let result = json!({"hits": [hit("agent", &json!([{"text": "parser", "hit": true}]))]});
    let answer = result.clone();
    let served = home.daemon(move |mut client| {
        let asked = client.answer(method::SESSION_SEARCH, answer);
        assert_eq!(asked["params"], json!({"words": ["parser"], "limit": 20}));
    });
    let done = home.run(&["session", "search", "parser", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&done.out).unwrap(), result);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    served.join().unwrap();
}

#[test]
fn nothing_found_is_told_and_is_no_error() {
    let home = Home::new();
    let served = home.daemon(|mut client| {
        client.answer(method::SESSION_SEARCH, json!({"hits": []}));
    });
    let done = home.run(&["session", "search", "parser"]);
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (Some(0), "", "nothing found\n"));
    served.join().unwrap();
    assert_eq!(Home::new().run(&["session", "search"]).code, Some(2));
}
