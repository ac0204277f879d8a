//! `acpctl pending`, `allow`, `deny`, `answer` and `policy`, and the flags of `run` that decide.

use std::thread::{self, JoinHandle};

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Done, Home, about, run_against, session};
use crate::terminal::Person;

fn asked(id: &str, name: &str, question: Value) -> Value {
    json!({"id": id, "agent": "demo", "sessionId": format!("s-{name}"), "name": name,
        "cwd": "/work", "at": 1, "question": question})
}

fn push() -> Value {
    asked(
        "1-4",
        "fix",
        json!({"kind": "permission", "title": "Push", "toolKind": "execute",
            "subject": "run `git push`", "options": [
                {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
                {"optionId": "no", "name": "Reject", "kind": "reject_once"}]}),
    )
}

pub(crate) fn form() -> Value {
    asked(
        "1-5",
        "docs",
        json!({"kind": "form", "message": "How to go on?", "schema": {
            "type": "object", "required": ["branch"], "properties": {
                "branch": {"type": "string", "title": "Branch", "description": "To begin from.",
                    "oneOf": [{"const": "main", "title": "The main one"},
                        {"const": "next", "title": "The next one"}]},
                "count": {"type": "integer", "minimum": 1, "default": 2},
                "note": {"type": "string"}}}}),
    )
}

fn page() -> Value {
    asked("1-6", "web", json!({"kind": "url", "message": "Log in", "url": "https://a.example/x"}))
}

/// A daemon with these open questions that takes one answer, on a connection of its own.
fn daemon(home: &Home, open: Vec<Value>) -> JoinHandle<Value> {
    answering(home, open, json!({}))
}

/// A daemon with these open questions that answers an answer with this.
fn answering(home: &Home, open: Vec<Value>, result: Value) -> JoinHandle<Value> {
    let listener = home.listen();
    thread::spawn(move || {
        tells(Client::accept(&listener), &open);
        let answer = Client::accept(&listener).answer(method::INTERACTION_ANSWER, result);
        let mut params = answer["params"].clone();
        // Other clients learn the name of the one that answered.
        let by = params.as_object_mut().unwrap().remove("by");
        assert_eq!(by.unwrap()["name"], "acpctl");
        params
    })
}

/// A daemon with these open questions that is not answered.
fn silent(home: &Home, open: Vec<Value>) -> JoinHandle<()> {
    home.daemon(move |client| tells(client, &open))
}

/// Runs a command while these questions are open, and answers none.
fn told(open: Vec<Value>, args: &[&str]) -> Done {
    run_against(args, move |client| tells(client, &open))
}

/// Runs a command that answers one of these questions. Returns also the answer.
fn answered(open: Vec<Value>, args: &[&str]) -> (Done, Value) {
    let home = Home::new();
    let served = daemon(&home, open);
    let done = home.run(args);
    (done, served.join().unwrap())
}

/// Tells the open questions, and the sessions that ask if that matters.
fn tells(mut client: Client, open: &[Value]) {
    client.answer(method::INTERACTION_LIST, json!({"interactions": open}));
    if let Some(asked) = client.read() {
        assert_eq!(asked["method"], method::SESSION_LIST, "{asked}");
        let asks = |open: &Value| {
            let mut asks = session(open["sessionId"].as_str().unwrap());
            asks["name"] = open["name"].clone();
            asks
        };
        let mut sessions: Vec<Value> = open.iter().map(asks).collect();
        sessions.dedup_by_key(|session| session["sessionId"].clone());
        client.result(&asked, json!({"sessions": sessions}));
        client.closed();
    }
}

/// The options of OpenHands, but with a second answer for always.
fn several() -> Value {
    asked(
        "1-7",
        "hands",
        json!({"kind": "permission", "title": "Run it", "toolKind": "execute",
            "subject": "run `make`", "options": [
                {"optionId": "accept", "name": "Yes, proceed", "kind": "allow_once"},
                {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
                {"optionId": "always_proceed", "name": "Always proceed", "kind": "allow_always"},
                {"optionId": "risk based", "name": "Unless risky", "kind": "allow_always"}]}),
    )
}

#[test]
fn of_several_that_mean_always_one_is_named_and_without_a_terminal_the_commands_are_listed() {
    let done = told(vec![several()], &["allow", "--always"]);
    assert_eq!(done.code, Some(2));
    assert_eq!(
        done.err,
        "error: 2 options of the question mean `allow --always`\n\nhint: choose one:\n  \
         acpctl allow --always 1-7 --option always_proceed  # allow always: \"Always proceed\"\n  \
         acpctl allow --always 1-7 --option 'risk based'  # allow always: \"Unless risky\"\n"
    );
    // By the command in the hint.
    let home = Home::new();
    let served = answering(&home, vec![several()], json!({"ownOption": "Unless risky"}));
    let done = home.run(&["allow", "--always", "1-7", "--option", "risk based"]);
    assert_eq!(
        done.err,
        "allowed, from now on: run `make` (demo, hands)\nthe agent remembers its own option \
         `Unless risky`: it may not ask again, and `policy forget` does not undo that\n"
    );
    let answer = json!({"kind": "allow", "always": true, "option": "risk based"});
    assert_eq!(served.join().unwrap(), json!({"id": "1-7", "answer": answer}));
}

/// A question of session `fix` about a command of several lines, whose call changed `changed` times.
fn script(changed: u32) -> Value {
    let mut asked = push();
    let commands = ["set -e\ngit push"];
    asked["question"]["shown"] = about("Push", &commands)["_acpd"]["shown"].take();
    asked["question"]["changed"] = json!(changed);
    asked
}

#[test]
fn h2_on_a_terminal_a_session_is_allowed_by_its_name_after_a_look() {
    let whole = "$ Push\n  │ set -e\n  │ git push\n";
    let done = told(vec![script(0), form()], &["pending", "1-4"]);
    assert_eq!((done.out, done.code), (format!("1-4 (demo, fix)\n{whole}"), Some(0)));
    let home = Home::new();
    let served = daemon(&home, vec![script(0)]);
    let (mut person, child) = Person::start(&home, "dumb", &["allow", "fix"]);
    person.sees("  │ git push\r\n");
    person.sees("type `y` to allow it > ");
    person.types("what\n");
    person.sees("type `y`, or nothing to leave");
    person.types("y\n");
    person.sees("allowed: run `git push` (demo, fix)");
    assert_eq!(home.wait(child).code, Some(0));
    served.join().unwrap();

    let home = Home::new();
    let served = silent(&home, vec![script(2)]);
    let (mut person, child) = Person::start(&home, "dumb", &["allow", "fix"]);
    person.sees("changed while you looked (2 times): this is another call\r\n");
    person.sees("type `allow` to allow it > ");
    person.types("y\n");
    person.sees("type `allow`, or nothing to leave");
    person.types("\n");
    person.sees("nothing was answered; the question stays open");
    assert_eq!(home.wait(child).code, Some(130));
    served.join().unwrap();
}

/// A question, a command about it, what is typed on a terminal when something is shown, and the answer.
type Case<'a> = (Value, &'a [&'a str], &'a [(&'a str, &'a str)], Value);

#[test]
fn questions_are_answered_by_flags_and_on_a_terminal() {
    let mut empty = form();
    empty["question"]["schema"] = json!({"type": "object", "properties": {}});
    let done = told(vec![empty.clone()], &["answer", "1-5"]);
    assert_eq!(done.code, Some(2), "nobody has said yes");
    let accept = |content: Value| json!({"kind": "accept", "content": content});
    let always = json!({"kind": "allow", "always": true, "option": "risk based"});
    let mut tags = form();
    tags["question"]["schema"] = json!({"type": "object", "properties": {
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}}}});
    let cases: [Case<'_>; 8] = [
        (
            tags,
            &["answer", "--field", "tags=b", "--field", "tags=a,c"],
            &[],
            accept(json!({"tags": ["b", "a", "c"]})),
        ),
        (
            form(),
            &["answer", "--field", "branch=2", "--field", "note=a=b"],
            &[],
            accept(json!({"branch": "next", "count": 2, "note": "a=b"})),
        ),
        (
            form(),
            &["answer"],
            &[
                ("How to go on?", ""),
                ("Branch\r\n  To begin from.\r\n  1  The main one\r\n  2  The next one\r\n", ""),
                ("one of > ", "3\n"),
                ("`3` is not one of the choices", "next\n"),
                ("a whole number [2] > ", "\n"),
                ("note (optional)", ""),
                ("text > ", "\n"),
            ],
            accept(json!({"branch": "next", "count": 2})),
        ),
        (empty.clone(), &["answer", "1-5", "--accept"], &[], accept(json!({}))),
        (
            empty,
            &["answer", "1-5"],
            &[("the form has no fields; send it? y/n > ", "n\n")],
            json!({"kind": "decline"}),
        ),
        (
            page(),
            &["answer", "web"],
            &[
                ("open a page on a.example: Log in (https://a.example/x) (demo, web)", ""),
                ("y/n > ", "y\n"),
            ],
            accept(Value::Null),
        ),
        (page(), &["allow"], &[], accept(Value::Null)),
        (
            several(),
            &["allow", "--always"],
            &[
                ("run `make` (demo, hands)\r\n  1  allow always: \"Always proceed\"\r\n", ""),
                ("  2  allow always: \"Unless risky\"\r\n> ", "3\n"),
                ("type a number from 1 to 2", "2\n"),
            ],
            always,
        ),
    ];
    for (question, args, talk, answer) in cases {
        let home = Home::new();
        let id = question["id"].clone();
        let served = daemon(&home, vec![question]);
        let done = if talk.is_empty() {
            home.run(args)
        } else {
            let (mut person, child) = Person::start(&home, "dumb", args);
            for (shown, keys) in talk {
                person.sees(shown);
                person.types(keys);
            }
            home.wait(child)
        };
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(served.join().unwrap(), json!({"id": id, "answer": answer}), "{args:?}");
    }
}

#[test]
fn a_form_without_a_terminal_names_its_fields() {
    let done = told(vec![form()], &["answer", "1-5"]);
    assert_eq!(done.code, Some(2));
    assert_eq!(
        done.err,
        "error: the question needs a filled-in form\n\nhint: `acpctl answer 1-5 --field NAME=VALUE` for \
         each field, `--accept` for the defaults, or `--decline`:\n  branch  one of main, next; required\n  \
         count  a whole number; default: 2\n  note  text\n"
    );
}

#[test]
fn a_session_that_asks_is_meant_before_one_of_that_name_that_does_not() {
    let home = Home::new();
    let mut other = push();
    other["agent"] = json!("codex");
    let (asking, listener) = (push(), home.listen());
    let served = thread::spawn(move || {
        let mut client = Client::accept(&listener);
        client.answer(method::INTERACTION_LIST, json!({"interactions": [asking]}));
        let mut idle = session("s-9");
        idle["name"] = json!("fix");
        idle["cwd"] = json!("/elsewhere");
        let mut asks = session("s-fix");
        asks["name"] = json!("fix");
        client.answer(method::SESSION_LIST, json!({"sessions": [idle, asks]}));
        client.closed();
        Client::accept(&listener).answer(method::INTERACTION_ANSWER, json!({}))
    });
    assert_eq!(home.run(&["deny", "fix"]).code, Some(0));
    assert_eq!(served.join().unwrap()["params"]["id"], "1-4");
    // Of two agents, one is named.
    let (done, answer) = answered(vec![push(), other], &["deny", "-a", "demo"]);
    assert_eq!((done.code, &answer["id"]), (Some(0), &json!("1-4")));
}

#[test]
fn who_leaves_a_form_answers_nothing() {
    let home = Home::new();
    let served = silent(&home, vec![form()]);
    let (mut person, child) = Person::start(&home, "dumb", &["answer"]);
    person.sees("one of > ");
    // The end of input.
    person.types("\u{4}");
    assert_eq!(home.wait(child).code, Some(130));
    person.sees("nothing was answered; the question stays open");
    served.join().unwrap();
}
