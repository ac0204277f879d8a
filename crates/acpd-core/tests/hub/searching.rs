//! Searching: what is looked for, where, and when there is something new to be found.

use serde_json::{Value, json};

use crate::bench::{AGENT, Bench};

fn refusal(bench: &mut Bench, params: &Value) -> String {
    let client = bench.plain();
    bench.ask(client, 1, "_acpd/session/search", params);
    let got = bench.expect(client, ["error 1"]);
    assert!(bench.searched.is_empty());
    got[0]["error"]["message"].as_str().expect("a message").to_owned()
}

#[test]
fn a_search_is_for_the_sessions_of_an_agent_and_a_directory() {
    let (mut bench, client) = Bench::begun();
    let mut found = |more: Value| {
        let mut params = json!({"words":["one","two*"]});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        bench.ask(client, 1, "_acpd/session/search", &params);
        let search = bench.searched.pop().expect("a search");
        assert_eq!(search.words, ["one", "two*"]);
        let ids = search.sessions.into_values().map(|session| session.session_id);
        (ids.collect::<Vec<_>>(), search.limit)
    };
    let all = (vec!["s".into()], 20);
    assert_eq!(found(json!({})), all);
    assert_eq!(found(json!({"agent":AGENT,"cwd":"/w"})), all);
    assert_eq!(found(json!({"cwd":"/elsewhere"})), (Vec::new(), 20));
    assert_eq!(found(json!({"limit":7})).1, 7);
    assert_eq!(found(json!({"limit":99_999})).1, 1000);
}

#[test]
fn a_search_for_nothing_for_too_much_or_of_nobody_is_refused() {
    let mut bench = Bench::new();
    for nothing in [json!([]), json!([" ", ""])] {
        let text = refusal(&mut bench, &json!({"words":nothing}));
        assert_eq!(text, "there are no words to look for");
    }
    let text = refusal(&mut bench, &json!({"words":vec!["x"; 65]}));
    assert_eq!(text, "more than 64 words to look for");
    assert_eq!(refusal(&mut bench, &json!({"words":["x"],"agent":"gme"})), "no agent `gme`");
}

#[test]
fn there_is_something_new_when_a_turn_has_ended_and_when_its_session_is_deleted() {
    let (mut bench, client) = Bench::begun();
    bench.prompt(client, &json!(1), "s", "go");
    bench.chunk("s", "I am on my way");
    assert!(bench.indexed.is_empty());
    bench.end_prompt();
    bench.ask(client, 3, "_acpd/session/search", &json!({"words":["way"]}));
    bench.pass(2_000);
    assert_eq!(bench.indexed.len(), 2, "for the search, and again when the turn is committed");
    bench.ask(client, 2, "_acpd/session/remove", &json!({"session":"s"}));
    assert_eq!(bench.indexed.len(), 3);
    assert_eq!(bench.indexed[0], bench.indexed[2]);
}
