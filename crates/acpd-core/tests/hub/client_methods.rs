//! Requests of agents that a program answers: the editor of the session, or acpd.

use acp_wire::ErrorObject;
use acpd_core::ids::ClientId;
use acpd_core::profile::Services;
use acpd_core::{FileService, Input};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::{Bench, client_oversized, words};
use crate::questions::asks;

fn bench() -> Bench {
    let services = Services { fs: true, terminal: false };
    let mut bench = Bench::with(|profile| profile.services = services);
    bench.shims = true;
    bench
}

/// A client that reads and writes files itself.
fn editor(bench: &mut Bench) -> ClientId {
    let fs = json!({"readTextFile":true,"writeTextFile":true});
    bench.introduce(&json!({"clientCapabilities":{"fs":fs}}))
}

/// An editor that has begun the session `s`.
fn edited() -> (Bench, ClientId) {
    let mut bench = bench();
    let editor = editor(&mut bench);
    bench.session(editor, "s");
    (bench, editor)
}

/// Like [`edited`], with the agent's request to read a file, as the editor got it.
fn reading() -> (Bench, ClientId, Value) {
    let (mut bench, editor) = edited();
    bench.agent(&read(7));
    let asked = bench.got(editor).pop().expect("asked");
    (bench, editor, asked)
}

fn read(id: u64) -> Value {
    json!({"id":id,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/w/a","line":2}})
}

fn write(id: u64) -> Value {
    let params = json!({"sessionId":"s","path":"/w/a","content":"text"});
    json!({"id":id,"method":"fs/write_text_file","params":params})
}

fn serve(bench: &mut Bench, result: Result<&str, ErrorObject>) {
    let (request, ..) = bench.served.pop().expect("something to do");
    let result = result.map(|text| Bytes::copy_from_slice(text.as_bytes()));
    bench.feed(Input::Served { request, result });
}

#[test]
fn what_no_editor_does_acpd_does_in_the_folders_of_the_session() {
    let (mut bench, a) = bench().with_client();
    let params = json!({"cwd":"/w","mcpServers":[],"additionalDirectories":["/more"]});
    bench.session_of(a, "s", &params);
    bench.agent(&read(7));
    let (_, roots, service) = bench.served[0].clone();
    assert_eq!(roots, ["/w", "/more"]);
    let wanted = FileService::ReadTextFile { path: "/w/a".to_owned(), line: Some(2), limit: None };
    assert_eq!(service, wanted);
    serve(&mut bench, Ok(r#"{"content":"x"}"#));
    assert_eq!(bench.heard(), [json!({"jsonrpc":"2.0","id":7,"result":{"content":"x"}})]);
    bench.agent(&write(8));
    serve(&mut bench, Err(ErrorObject::new(-32602, "outside")));
    assert_eq!(bench.heard()[0]["error"]["code"], -32602);
    assert_eq!(bench.got(a), Vec::<Value>::new());
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn an_agent_that_was_offered_nothing_gets_nothing() {
    let (mut bench, _) = Bench::begun();
    bench.agent(&read(7));
    assert!(bench.served.is_empty());
    assert_eq!(bench.heard()[0]["error"]["code"], -32601);
}

#[test]
fn the_editor_of_the_session_reads_its_unsaved_text_itself() {
    let (mut bench, a) = edited();
    let other = editor(&mut bench);
    bench.join(other, "s");
    bench.prompt(a, &json!(2), "s", "go");
    bench.heard();
    bench.got(other);
    bench.agent(&read(7));
    assert!(bench.served.is_empty());
    assert_eq!(bench.got(other), Vec::<Value>::new(), "the prompt is the first one's");
    let asked = bench.got(a).pop().expect("asked");
    assert_eq!((&asked["method"], &asked["params"]), (&read(7)["method"], &read(7)["params"]));
    bench.reply(other, &asked, &json!({"content":"false"}));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it was not asked");
    let line = format!(r#"{{"id":{},"result":{{"content":"x" , "_meta":null}}}}"#, asked["id"]);
    bench.say_raw(a, &line);
    assert_eq!(bench.heard()[0]["result"], json!({"content":"x","_meta":null}));
}

#[test]
fn an_editor_that_goes_leaves_reads_to_acpd_and_takes_its_writes_along() {
    let (mut bench, a) = edited();
    bench.agent(&read(7));
    bench.agent(&write(8));
    assert_eq!(words(&bench.got(a)), ["fs/read_text_file", "fs/write_text_file"]);
    bench.leave(a);
    let heard = bench.heard();
    assert_eq!((&heard[0]["id"], &heard[0]["error"]["code"]), (&json!(8), &json!(-32603)));
    serve(&mut bench, Ok(r#"{"content":"x"}"#));
    assert_eq!(bench.heard()[0]["id"], 7);
}

#[test]
fn an_editor_that_cannot_what_it_promised_does_not_stop_the_agent() {
    let (mut bench, a, asked) = reading();
    bench.say(a, &json!({"id":asked["id"],"error":{"code":-32601,"message":"no"}}));
    serve(&mut bench, Ok(r#"{"content":"x"}"#));
    assert_eq!(bench.heard()[0]["result"]["content"], "x");
}

#[test]
fn what_the_last_daemon_did_not_finish_is_done_again() {
    let (mut bench, _) = edited();
    bench.agent(&write(8));
    bench.reboot();
    serve(&mut bench, Ok("{}"));
    assert_eq!(bench.heard(), [json!({"jsonrpc":"2.0","id":8,"result":{}})]);
    bench.reboot();
    assert!(bench.served.is_empty());
}

#[test]
fn an_agent_may_take_its_request_back_and_a_late_answer_goes_nowhere() {
    let (mut bench, a, asked) = reading();
    bench.agent(&json!({"method":"$/cancel_request","params":{"requestId":7}}));
    assert_eq!(bench.heard()[0]["error"]["code"], -32800);
    assert_eq!(bench.expect(a, ["$/cancel_request"])[0]["params"]["requestId"], asked["id"]);
    bench.reply(a, &asked, &json!({"content":"late"}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_method_of_the_agents_own_is_for_the_editor_or_for_nobody() {
    let (mut bench, a) = bench().with_begun();
    let own = json!({"id":"x-1","method":"_vendor/pick","params":{"sessionId":"s","n":1}});
    bench.agent(&own);
    let asked = bench.got(a).pop().expect("asked");
    assert_eq!(asked["params"], own["params"]);
    bench.reply(a, &asked, &json!({"picked":1}));
    assert_eq!(bench.heard()[0]["id"], "x-1");
    bench.leave(a);
    bench.agent(&own);
    assert_eq!(bench.heard()[0]["error"]["code"], -32601);
}

#[test]
fn a_process_that_dies_takes_its_requests_along() {
    let (mut bench, a, _) = reading();
    bench.agent_dies();
    bench.expect_some(a, "$/cancel_request");
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn a_request_about_a_deleted_session_is_answered_and_forgotten() {
    let (mut bench, a, asked) = reading();
    bench.ask(a, 9, "session/delete", &json!({"sessionId":"s"}));
    let answer = bench.heard().into_iter().find(|line| line["id"] == 7);
    assert!(answer.is_some_and(|line| line.get("error").is_some()));
    // Later answers of the editor do not matter.
    bench.say(a, &json!({"id":asked["id"],"error":{"code":-32601,"message":"no"}}));
    bench.leave(a);
    assert!(bench.served.is_empty());
    assert!(bench.snapshot.interactions.is_empty());
}

#[test]
fn an_answer_that_is_too_long_is_an_answer_that_failed() {
    let (mut bench, a, asked) = reading();
    let id = &asked["id"];
    let too_long = |id: &Value| {
        let head = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":"x"#));
        client_oversized(a, head, 900_000_000)
    };
    bench.feed(too_long(id));
    let heard = bench.heard();
    assert_eq!(heard[0]["id"], 7);
    let message = heard[0]["error"]["message"].as_str().expect("an error");
    assert!(message.contains("900000000 bytes"), "{message}");
    assert_eq!(bench.got(a), Vec::<Value>::new(), "it has asked for nothing");
    bench.feed(too_long(id));
    assert_eq!(words(&bench.got(a)), [format!("error {id}")], "nothing of that id is open");

    asks(&mut bench, 8, &json!({"toolCallId":"t"}));
    let asked = bench.got(a).pop().expect("asked");
    bench.feed(too_long(&asked["id"]));
    assert_eq!(words(&bench.got(a)), ["session/request_permission"], "it is asked again");
    assert_eq!(bench.heard(), Vec::<Value>::new());
}
