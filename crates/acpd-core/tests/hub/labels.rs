//! Labels of sessions.

use acpd_api::{LABEL_BYTES, MAX_LABELS};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::steps::{hint, reason};

fn label(bench: &mut Bench, change: &Value) -> Value {
    let mut params = change.clone();
    params["ref"] = json!({"session":"s"});
    bench.command("_acpd/session/label", &params)
}

fn new_session(id: u64, labels: &Value) -> Value {
    let meta = json!({"_acpd":{"labels":labels}});
    json!({"id":id,"method":"session/new","params":{"cwd":"/w","mcpServers":[],"_meta":meta}})
}

#[test]
fn labels_are_a_sorted_set_that_outlives_the_daemon() {
    let (mut bench, _) = Bench::begun();
    assert_eq!(bench.show("s").get("labels"), None);
    let added = label(&mut bench, &json!({"add":["urgent","team=infra","urgent"]}));
    assert_eq!(added["result"]["labels"], json!(["team=infra", "urgent"]));
    bench.reboot();
    assert_eq!(bench.show("s")["labels"], added["result"]["labels"]);
    let before = bench.snapshot.clone();
    label(&mut bench, &json!({"add":["urgent"],"remove":["nothing", "- - -"]}));
    assert_eq!(bench.snapshot, before, "nothing has changed");
    let moved = label(&mut bench, &json!({"add":["Urgent"],"remove":["urgent"]}));
    assert_eq!(moved["result"]["labels"], json!(["Urgent", "team=infra"]));
    let none = label(&mut bench, &json!({"remove":["Urgent","team=infra"]}));
    assert_eq!(none["result"].get("labels"), None);
}

#[test]
fn invalid_labels_are_refused_with_the_limits_and_change_nothing() {
    let (mut bench, a) = Bench::begun();
    let longest = "x".repeat(LABEL_BYTES);
    let all: Vec<String> = (1..MAX_LABELS).map(|n| format!("a.b_c:d/{n}")).collect();
    label(&mut bench, &json!({"add":all}));
    let full = label(&mut bench, &json!({"add":[longest]}));
    assert_eq!(full["result"]["labels"].as_array().map(Vec::len), Some(MAX_LABELS));
    let long = "x".repeat(LABEL_BYTES + 1);
    for bad in ["", " ", "a b", "a,b", "-x", "é", "a\n", &long] {
        let refused = label(&mut bench, &json!({"add":["fine", bad],"remove":all}));
        assert_eq!(reason(&refused), "invalid", "{bad:?}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("is not a label") && hint(&refused).contains("1 to 64"),
            "{bad:?}"
        );
        bench.say(a, &new_session(1, &json!(["fine", bad])));
        assert_eq!(reason(&bench.answer(a, 1)), "invalid", "{bad:?}");
    }
    let refused = label(&mut bench, &json!({"add":["more"]}));
    assert_eq!(refused["error"]["message"], "a session has at most 16 labels, not 17");
    assert_eq!(refused["error"]["data"]["sessionId"], "s");
    assert!(hint(&refused).contains("remove"));
    assert_eq!(bench.show("s")["labels"], full["result"]["labels"]);
    assert_eq!(bench.heard(), Vec::<Value>::new(), "the agent was asked for no session");
    let swapped = label(&mut bench, &json!({"add":["more"],"remove":[longest]}));
    assert_eq!(swapped["result"]["labels"][MAX_LABELS - 1], "more");
}

#[test]
fn new_session_has_its_labels_even_if_the_daemon_dies_before_the_answer() {
    let mut bench = Bench::with_shims();
    let a = bench.plain();
    bench.say(a, &new_session(1, &json!(["b", "a"])));
    let request = bench.heard_one("session/new");
    assert_eq!(request["params"]["_meta"], json!({}), "labels are not the agent's");
    bench.reboot();
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    assert_eq!(bench.show("s")["labels"], json!(["a", "b"]));
}

#[test]
fn session_that_a_client_continues_by_its_name_keeps_its_labels() {
    let (mut bench, a) = Bench::begun();
    bench.ask(a, 1, "_acpd/session/rename", &json!({"ref":{"session":"s"},"name":"n"}));
    label(&mut bench, &json!({"add":["old"]}));
    let mut again = new_session(2, &json!(["new"]));
    again["params"]["_meta"]["_acpd"]["name"] = json!("n");
    again["params"]["_meta"]["_acpd"]["reuse"] = json!(true);
    bench.say(a, &again);
    assert_eq!(bench.answer(a, 2)["result"]["sessionId"], "s");
    assert_eq!(bench.show("s")["labels"], json!(["old"]));
}

#[test]
fn list_has_sessions_with_all_labels_that_are_asked_for() {
    let mut bench = Bench::new();
    let a = bench.plain();
    for (id, labels) in [("one", vec!["a"]), ("two", vec!["a", "b"]), ("three", vec![])] {
        bench.session(a, id);
        let params = json!({"ref":{"session":id},"add":labels});
        bench.command("_acpd/session/label", &params);
    }
    let mut listed = |labels: Value| -> Vec<String> {
        let list = bench.command("_acpd/session/list", &json!({"labels":labels}));
        let sessions = list["result"]["sessions"].as_array().expect("a list");
        let mut ids: Vec<_> =
            sessions.iter().map(|one| one["sessionId"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(listed(json!([])), ["one", "three", "two"]);
    assert_eq!(listed(json!(["a"])), ["one", "two"]);
    assert_eq!(listed(json!(["b", "a"])), ["two"]);
    assert_eq!(listed(json!(["A"])), [""; 0]);
}
