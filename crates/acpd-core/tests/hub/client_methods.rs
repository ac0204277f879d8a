//! Requests of agents that a program answers: the editor of the session, or acpd.

use acp_wire::ErrorObject;
use acpd_core::ids::ClientId;
use acpd_core::profile::Services;
use acpd_core::{ClientEvent, ClientOrigin, FileService, Input};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::{Bench, client_oversized, words};

fn bench() -> Bench {
    let mut bench =
        Bench::with(|profile| profile.services = Services { fs: true, terminal: false });
    bench.shims = true;
    bench
}

/// A client that reads and writes files itself.
fn editor(bench: &mut Bench, number: u64) -> ClientId {
    let client = ClientId(number);
    bench.feed(Input::Client(client, ClientEvent::Opened(ClientOrigin::User)));
    let fs = json!({"readTextFile":true,"writeTextFile":true});
    let params = json!({"protocolVersion":1,"clientCapabilities":{"fs":fs}});
    bench.say(client, &json!({"id":"init","method":"initialize","params":params}));
    bench.got(client);
    client
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
    let mut bench = bench();
    let a = bench.plain();
    let params = json!({"cwd":"/w","mcpServers":[],"additionalDirectories":["/more"]});
    bench.say(a, &json!({"id":"new","method":"session/new","params":params}));
    bench.answers("session/new", &json!({"sessionId":"s"}));
    bench.got(a);
    bench.agent(&read(7));
    let (_, roots, service) = bench.served[0].clone();
    assert_eq!(roots, ["/w", "/more"]);
    let wanted = FileService::ReadTextFile { path: "/w/a".to_owned(), line: Some(2), limit: None };
    assert_eq!(service, wanted);
    serve(&mut bench, Ok(r#"{"content":"x"}"#));
    assert_eq!(bench.heard(), [json!({"jsonrpc":"2.0","id":7,"result":{"content":"x"}})]);
    bench.agent(&write(8));
    let refused = ErrorObject::new(-32602, "outside");
    serve(&mut bench, Err(refused));
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
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    let other = editor(&mut bench, 51);
    bench.say(
        other,
        &json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}),
    );
    bench.got(other);
    bench.prompt(a, &json!(2), "s", "go");
    bench.heard();
    bench.got(other);
    bench.agent(&read(7));
    assert!(bench.served.is_empty());
    assert_eq!(bench.got(other), Vec::<Value>::new(), "the prompt is the first one's");
    let asked = bench.got(a).pop().expect("asked");
    assert_eq!((&asked["method"], &asked["params"]), (&read(7)["method"], &read(7)["params"]));
    let line = format!(r#"{{"id":{},"result":{{"content":"x" , "_meta":null}}}}"#, asked["id"]);
    bench.say_raw(a, &line);
    assert_eq!(bench.heard()[0]["result"], json!({"content":"x","_meta":null}));
}

#[test]
fn an_editor_that_goes_leaves_reads_to_acpd_and_takes_its_writes_along() {
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    bench.agent(&read(7));
    bench.agent(&write(8));
    assert_eq!(words(&bench.got(a)), ["fs/read_text_file", "fs/write_text_file"]);
    bench.feed(Input::Client(a, ClientEvent::Closed));
    let heard = bench.heard();
    assert_eq!((&heard[0]["id"], &heard[0]["error"]["code"]), (&json!(8), &json!(-32603)));
    serve(&mut bench, Ok(r#"{"content":"x"}"#));
    assert_eq!(bench.heard()[0]["id"], 7);
}

#[test]
fn an_editor_that_cannot_what_it_promised_does_not_stop_the_agent() {
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    bench.agent(&read(7));
    let asked = bench.got(a).pop().expect("asked");
    bench.say(a, &json!({"id":asked["id"],"error":{"code":-32601,"message":"no"}}));
    serve(&mut bench, Ok(r#"{"content":"x"}"#));
    assert_eq!(bench.heard()[0]["result"]["content"], "x");
}

#[test]
fn what_the_last_daemon_did_not_finish_is_done_again() {
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    bench.agent(&write(8));
    bench.reboot();
    serve(&mut bench, Ok("{}"));
    assert_eq!(bench.heard(), [json!({"jsonrpc":"2.0","id":8,"result":{}})]);
    bench.reboot();
    assert!(bench.served.is_empty());
}

#[test]
fn an_agent_may_take_its_request_back_and_a_late_answer_goes_nowhere() {
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    bench.agent(&read(7));
    let asked = bench.got(a).pop().expect("asked");
    bench.agent(&json!({"method":"$/cancel_request","params":{"requestId":7}}));
    assert_eq!(bench.heard()[0]["error"]["code"], -32800);
    let got = bench.got(a);
    assert_eq!(words(&got), ["$/cancel_request"]);
    assert_eq!(got[0]["params"]["requestId"], asked["id"]);
    bench.say(a, &json!({"id":asked["id"],"result":{"content":"late"}}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn an_answer_is_only_taken_from_who_was_asked() {
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    bench.agent(&read(7));
    let asked = bench.got(a).pop().expect("asked");
    let stranger = bench.plain();
    bench.say(stranger, &json!({"id":asked["id"],"result":{"content":"false"}}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_method_of_the_agents_own_is_for_the_editor_or_for_nobody() {
    let mut bench = bench();
    let a = bench.plain();
    bench.session(a, "s");
    let own = json!({"id":"x-1","method":"_vendor/pick","params":{"sessionId":"s","n":1}});
    bench.agent(&own);
    let asked = bench.got(a).pop().expect("asked");
    assert_eq!(asked["params"], own["params"]);
    bench.say(a, &json!({"id":asked["id"],"result":{"picked":1}}));
    assert_eq!(bench.heard()[0]["id"], "x-1");
    bench.feed(Input::Client(a, ClientEvent::Closed));
    bench.agent(&own);
    assert_eq!(bench.heard()[0]["error"]["code"], -32601);
}

#[test]
fn a_process_that_dies_takes_its_requests_along() {
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    bench.agent(&read(7));
    bench.got(a);
    bench.agent_dies();
    assert!(words(&bench.got(a)).contains(&"$/cancel_request".to_owned()));
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn a_request_about_a_deleted_session_is_answered_and_forgotten() {
    let mut bench = bench();
    let a = editor(&mut bench, 1);
    bench.session(a, "s");
    let request = read(7);
    bench.agent(&request);
    let asked = bench.got(a);
    bench.say(a, &json!({"id":9,"method":"session/delete","params":{"sessionId":"s"}}));
    let answer = bench.heard().into_iter().find(|line| line["id"] == request["id"]);
    assert!(answer.is_some_and(|line| line.get("error").is_some()));
    // Later answers of the editor do not matter.
    let refusal = json!({"id":asked[0]["id"],"error":{"code":-32601,"message":"no"}});
    bench.say(a, &refusal);
    bench.feed(Input::Client(a, ClientEvent::Closed));
    assert!(bench.served.is_empty());
    assert!(bench.snapshot.interactions.is_empty());
}

#[test]
fn an_answer_that_is_too_long_is_an_answer_that_failed() {
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    bench.agent(&read(7));
    let id = bench.got(a).pop().expect("asked")["id"].clone();
    let too_long = |id: &Value| {
        let head = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":"x"#));
        client_oversized(a, head, 900_000_000)
    };
    bench.feed(too_long(&id));
    let heard = bench.heard();
    assert_eq!(heard[0]["id"], 7);
    let message = heard[0]["error"]["message"].as_str().expect("an error");
    assert!(message.contains("900000000 bytes"), "{message}");
    assert_eq!(bench.got(a), Vec::<Value>::new(), "it has asked for nothing");
    bench.feed(too_long(&id));
    assert_eq!(words(&bench.got(a)), [format!("error {id}")], "nothing of that id is open");

    let option = json!({"optionId":"y","name":"Yes","kind":"allow_once"});
    let params = json!({"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[option]});
    bench.agent(&json!({"id":"q","method":"session/request_permission","params":params}));
    let id = bench.got(a).pop().expect("asked")["id"].clone();
    bench.feed(too_long(&id));
    assert_eq!(words(&bench.got(a)), ["session/request_permission"], "it is asked again");
    assert_eq!(bench.heard(), Vec::<Value>::new());
}
