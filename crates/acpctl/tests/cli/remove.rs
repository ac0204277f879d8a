//! `acpctl session rm`, with and without confirmation.

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Home, run_against, session};
use crate::terminal::Person;

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
fn a_person_is_asked_and_told_what_would_be_lost() {
    for (answer, code) in [("n", 130), ("y", 0)] {
        let (home, listener) = Home::listening();
        let (mut person, child) = Person::start(&home, "dumb", &["session", "rm", "fix"]);
        let mut client = Client::accept(&listener);
        client.finds(&session("s-1"));
        person.sees("delete fix (demo, in /work, 1 prompt, used ");
        person.sees("with all history? y/n > ");
        person.types(&format!("{answer}\n"));
        if answer == "y" {
            removes(&mut client, "s-1");
        }
        client.closed();
        assert_eq!(home.wait(child).code, Some(code));
    }
}

#[test]
fn what_is_at_work_is_deleted_only_by_force() {
    for more in [json!({"turn": {"state": "working", "since": 1}}), json!({"queued": 1})] {
        let home = Home::new();
        let busy = named("s-1", "fix", &more);
        let daemon = home.daemon(move |mut client| {
            client.finds(&busy);
            client.closed();
        });
        let done = home.run(&["session", "rm", "--yes", "fix"]);
        let error = "error: session `fix` is working or has queued prompts\n\n\
                     hint: `acpctl cancel fix` first, or add `--force`\n";
        assert_eq!((done.err.as_str(), done.code), (error, Some(1)));
        daemon.join().unwrap();

        let home = Home::new();
        let busy = named("s-1", "fix", &more);
        let daemon = home.daemon(move |mut client| {
            client.finds(&busy);
            removes(&mut client, "s-1");
        });
        let done = home.run(&["session", "rm", "--yes", "--force", "fix"]);
        assert_eq!((done.err.as_str(), done.code), ("deleted fix\n", Some(0)));
        daemon.join().unwrap();
    }
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

    for wrong in [
        &["session", "rm"][..],
        &["session", "rm", "fix", "--older-than", "1d"],
        &["session", "rm", "--older-than", "30"],
        &["session", "rm", "--glob", "["],
    ] {
        let done = Home::new().run(wrong);
        assert_eq!(done.code, Some(2), "{wrong:?}: {done:?}");
    }
}
