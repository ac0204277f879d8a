//! Titles and the archive.

use acpd_api::method;
use serde_json::json;

use crate::support::{Client, Home, exactly, session};

#[test]
fn sessions_get_titles_and_lose_them() {
    let home = Home::new();
    let listener = home.listen();
    let daemon = std::thread::spawn(move || {
        let mut client = Client::accept(&listener);
        let mut titled = session("s-1");
        titled["title"] = json!("Fix the parser");
        client.finds(&session("s-1"));
        let asked = client.answer(method::SESSION_TITLE, titled);
        let which = exactly();
        assert_eq!(asked["params"], json!({"ref": which, "title": "Fix the parser"}));
        let mut client = Client::accept(&listener);
        let mut plain = session("s-1");
        plain.as_object_mut().unwrap().remove("title");
        client.finds(&session("s-1"));
        let asked = client.answer(method::SESSION_TITLE, plain);
        assert_eq!(asked["params"]["title"], json!(null));
    });
    let done = home.run(&["session", "title", "fi", "Fix the parser"]);
    assert_eq!(done.err, "the title of fix is `Fix the parser` now\n");
    let done = home.run(&["session", "title", "fi", "--clear"]);
    assert_eq!(done.err, "fix has no title now\n");
    daemon.join().unwrap();
    for args in [&["session", "title", "fi"][..], &["session", "title", "fi", "x", "--clear"]] {
        assert_eq!(home.run(args).code, Some(2));
    }
}

#[test]
fn sessions_are_put_into_the_archive_and_taken_out() {
    let (home, listener) = Home::listening();
    let daemon = std::thread::spawn(move || {
        let mut away = session("s-1");
        away["archived"] = json!(true);
        let mut client = Client::accept(&listener);
        client.finds(&session("s-1"));
        let asked = client.answer(method::SESSION_ARCHIVE, away.clone());
        assert_eq!(asked["params"], exactly());
        let mut client = Client::accept(&listener);
        client.finds(&away);
        client.answer(method::SESSION_UNARCHIVE, session("s-1"));
        for filter in [json!(null), json!("only"), json!("include")] {
            let mut client = Client::accept(&listener);
            let list = json!({"sessions": [away]});
            let asked = client.answer(method::SESSION_LIST, list);
            assert_eq!(asked["params"]["archived"], filter);
        }
        let mut client = Client::accept(&listener);
        client.finds(&away);
    });
    let done = home.run(&["session", "archive", "fix"]);
    assert_eq!(done.err, "fix is archived; the next prompt takes it out of the archive\n");
    let done = home.run(&["session", "unarchive", "fix"]);
    assert_eq!(done.err, "fix is out of the archive\n");
    for args in
        [&["session", "ls"][..], &["session", "ls", "--archived"], &["session", "ls", "--all"]]
    {
        let done = home.run(args);
        let row = done.out.lines().nth(1).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[..3], ["fix", "demo", "archived"]);
    }
    let shown = home.run(&["session", "show", "fix"]).out;
    assert!(shown.contains("\nstate      archived\n"), "{shown}");
    daemon.join().unwrap();
    assert_eq!(home.run(&["session", "ls", "--all", "--archived"]).code, Some(2));
}
