//! `acpctl session rm` without confirmation.

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, run_against, session};

fn named(id: &str, name: &str, more: &Value) -> Value {
    let mut named = session(id);
    named["name"] = json!(name);
    named.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    named
}

fn removes(client: &mut Client, id: &str) {
    let asked = client.answer(method::SESSION_REMOVE, json!({}));
    assert_eq!(asked["params"], json!({"session": id, "agent": "demo"}));
}

#[test]
fn filters_choose_by_age_agent_and_name_and_leave_out_what_works() {
    let now = u64::MAX >> 16;
    let all = move || {
        [
            named("s-1", "ci-1", &json!({})),
            named("s-2", "ci-2", &json!({"agent": "claude"})),
            named("s-3", "ci-3", &json!({"turn": {"state": "working", "since": 1}})),
            named("s-4", "ci-4", &json!({"updated": now})),
            named("s-5", "docs", &json!({})),
        ]
    };
    let lists = move |client: &mut Client| {
        let all = all();
        client.lists(&all.iter().collect::<Vec<_>>());
    };
    let filters = ["--older-than", "30d", "--agent", "demo", "--glob", "ci-*"];

    let done = run_against(
        &[&["session", "rm", "--dry-run"][..], &filters].concat(),
        move |mut client| {
            lists(&mut client);
            client.closed();
        },
    );
    let rows: Vec<&str> =
        done.out.lines().skip(1).map(|row| row.split(' ').next().unwrap()).collect();
    assert_eq!((rows, done.code), (vec!["ci-1"], Some(0)));
    assert_eq!(done.err, "skipped ci-3: it is working or has queued prompts\n");

    let done =
        run_against(&[&["session", "rm", "--yes"][..], &filters].concat(), move |mut client| {
            lists(&mut client);
            removes(&mut client, "s-1");
            client.closed();
        });
    assert_eq!(done.err, "skipped ci-3: it is working or has queued prompts\ndeleted ci-1\n");
}
