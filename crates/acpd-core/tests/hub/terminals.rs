//! Terminals of agents: who has them, who is shown them, and when they end.

use acp_wire::ErrorObject;
use acpd_core::ids::{ClientId, InteractionId};
use acpd_core::profile::Services;
use acpd_core::{ClientEvent, ClientOrigin, Effect, Input, NewTerminal, TerminalEnd, TerminalTail};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, methods, words};

pub(crate) fn bench() -> Bench {
    let mut bench = Bench::with(|profile| profile.services = Services { fs: true, terminal: true });
    bench.shims = true;
    bench
}

/// A client that has terminals.
fn editor(bench: &mut Bench, number: u64) -> ClientId {
    editor_with(bench, number, &json!({}))
}

fn editor_with(bench: &mut Bench, number: u64, meta: &Value) -> ClientId {
    let client = ClientId(number);
    bench.feed(Input::Client(client, ClientEvent::Opened(ClientOrigin::User)));
    let capabilities = json!({"terminal":true});
    let params =
        json!({"protocolVersion":1,"clientCapabilities":capabilities,"_meta":{"_acpd":meta}});
    bench.say(client, &json!({"id":"init","method":"initialize","params":params}));
    bench.got(client);
    client
}

/// Goes to a session of another.
pub(crate) fn joins(bench: &mut Bench, client: ClientId) {
    let params = json!({"sessionId":"s","cwd":"/w"});
    bench.say(client, &json!({"id":1,"method":"session/resume","params":params}));
    bench.got(client);
}

fn ask(bench: &mut Bench, id: u64, method: &str, more: &Value) {
    let mut params = json!({"sessionId":"s"});
    for (key, value) in more.as_object().expect("an object") {
        params[key] = value.clone();
    }
    let method = format!("terminal/{method}");
    bench.agent(&json!({"jsonrpc":"2.0","id":id,"method":method,"params":params}));
}

pub(crate) fn call(bench: &mut Bench, id: u64, method: &str, terminal: &str) {
    ask(bench, id, method, &json!({ "terminalId": terminal }));
}

/// A turn whose agent runs a command: the turn's client, the terminal's number, and its id as the agent
/// knows it.
pub(crate) fn running_command(bench: &mut Bench) -> (ClientId, InteractionId, String) {
    let (client, _) = bench.running("s", "go");
    let (number, name) = own(bench);
    (client, number, name)
}

/// A terminal of acpd: its number, and its id as the agent knows it.
pub(crate) fn own(bench: &mut Bench) -> (InteractionId, String) {
    ask(bench, 100, "create", &json!({"command":"make"}));
    let Some(Effect::CreateTerminal { terminal, .. }) = bench.terminals.pop() else {
        panic!("nothing to run")
    };
    served(bench, terminal, Ok("{}"));
    let heard = bench.heard();
    let name = heard[0]["result"]["terminalId"].as_str().expect("an id").to_owned();
    (terminal, name)
}

/// A terminal of an editor: its id as the agent knows it.
fn of_editor(bench: &mut Bench, client: ClientId, id: &str) -> String {
    ask(bench, 200, "create", &json!({"command":"make"}));
    let asked = bench.got(client).pop().expect("asked");
    assert_eq!(asked["method"], "terminal/create");
    bench.say(client, &json!({"id":asked["id"],"result":{"terminalId":id}}));
    let heard = bench.heard();
    heard[0]["result"]["terminalId"].as_str().expect("an id").to_owned()
}

fn served(bench: &mut Bench, request: InteractionId, result: Result<&str, ErrorObject>) {
    let result = result.map(|text| Bytes::copy_from_slice(text.as_bytes()));
    bench.feed(Input::Served { request, result });
}

pub(crate) fn ends(bench: &mut Bench, terminal: InteractionId, code: u32, output: &str) {
    let tail = TerminalTail { output: output.to_owned(), truncated: false };
    let end = TerminalEnd { code: Some(code), signal: None, tail };
    bench.feed(Input::TerminalEnded { terminal, end });
}

pub(crate) fn shows(bench: &mut Bench, terminal: &str) {
    let content = json!([
        {"type":"diff","path":"/w/x","newText":"y"},
        {"type":"terminal","terminalId":terminal},
    ]);
    let update =
        json!({"sessionUpdate":"tool_call","toolCallId":"c","title":"make","content":content});
    let params = json!({"sessionId":"s","update":update});
    bench.agent(&json!({"jsonrpc":"2.0","method":"session/update","params":params}));
}

/// The second item of a tool call's content: a terminal's id, or its text.
pub(crate) fn shown(line: &Value) -> &str {
    let item = &line["params"]["update"]["content"][1];
    item["terminalId"].as_str().or(item["content"]["text"].as_str()).expect("something")
}

fn released(bench: &mut Bench) -> Vec<InteractionId> {
    let effects = std::mem::take(&mut bench.terminals);
    let release = |effect: &Effect| match effect {
        Effect::ReleaseTerminal(terminal) => *terminal,
        other => panic!("{other:?}"),
    };
    effects.iter().map(release).collect()
}

#[test]
fn what_no_editor_runs_acpd_runs_in_the_sessions_folder() {
    let mut bench = bench();
    let a = bench.plain();
    bench.session(a, "s");
    let env = json!([{"name":"A","value":"1"}]);
    let wanted = json!({"command":"make","args":["-k"],"env":env,"outputByteLimit":9});
    ask(&mut bench, 1, "create", &wanted);
    let Some(Effect::CreateTerminal { terminal, new }) = bench.terminals.pop() else { panic!() };
    let wanted = NewTerminal {
        agent: AGENT.to_owned(),
        host: bench.host(),
        command: "make".to_owned(),
        args: vec!["-k".to_owned()],
        env: vec![("A".to_owned(), "1".to_owned())],
        cwd: "/w".to_owned(),
        output_byte_limit: Some(9),
    };
    assert_eq!(*new, wanted);
    served(&mut bench, terminal, Ok("{}"));
    let made = bench.heard()[0]["result"]["terminalId"].as_str().unwrap().to_owned();
    call(&mut bench, 2, "output", &made);
    let Some(Effect::TerminalOutput { request, terminal: of }) = bench.terminals.pop() else {
        panic!()
    };
    assert_eq!(of, terminal);
    served(&mut bench, request, Ok(r#"{"output":"x","truncated":false}"#));
    assert_eq!(bench.heard()[0]["result"]["output"], "x");
    call(&mut bench, 3, "kill", &made);
    assert!(matches!(bench.terminals.pop(), Some(Effect::KillTerminal(_))));
    call(&mut bench, 4, "release", &made);
    assert_eq!(released(&mut bench), [terminal]);
    assert_eq!(bench.heard().len(), 2);
    for method in ["output", "wait_for_exit", "kill", "release"] {
        call(&mut bench, 5, method, &made);
        assert_eq!(bench.heard()[0]["error"]["code"], -32002, "{method}");
    }
    assert!(bench.terminals.is_empty());
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn what_cannot_be_run_is_refused_and_leaves_nothing() {
    let mut bench = bench();
    let a = bench.plain();
    bench.session(a, "s");
    for wrong in [json!({}), json!({"command":"make","cwd":"here"}), json!({"command":1})] {
        ask(&mut bench, 1, "create", &wrong);
        assert_eq!(bench.heard()[0]["error"]["code"], -32602, "{wrong}");
    }
    ask(&mut bench, 2, "create", &json!({"command":"nothing"}));
    let Some(Effect::CreateTerminal { terminal, .. }) = bench.terminals.pop() else { panic!() };
    let error = ErrorObject::new(-32602, "no such program");
    served(&mut bench, terminal, Err(error));
    assert_eq!(bench.heard()[0]["error"]["message"], "no such program");
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn a_wait_is_answered_when_the_command_ends_and_at_once_after_that() {
    let mut bench = bench();
    let a = bench.plain();
    bench.session(a, "s");
    let (number, name) = own(&mut bench);
    call(&mut bench, 1, "wait_for_exit", &name);
    call(&mut bench, 2, "wait_for_exit", &name);
    assert_eq!((bench.heard().len(), bench.terminals.len()), (0, 0));
    ends(&mut bench, number, 7, "");
    let answers = bench.heard();
    assert_eq!(answers.len(), 2);
    for answer in answers {
        assert_eq!(answer["result"], json!({"exitCode":7,"signal":null}));
    }
    call(&mut bench, 3, "wait_for_exit", &name);
    assert_eq!(bench.heard()[0]["result"]["exitCode"], 7);
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn a_wait_ends_with_its_request_its_turn_its_session_and_its_agent() {
    for how in ["request", "turn", "close", "remove", "agent"] {
        let mut bench = bench();
        let (a, number, name) = running_command(&mut bench);
        call(&mut bench, 1, "wait_for_exit", &name);
        match how {
            "request" => {
                bench.agent(&json!({"method":"$/cancel_request","params":{"requestId":1}}));
                assert_eq!(bench.heard()[0]["error"]["code"], -32800);
            }
            "turn" => {
                bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
                let heard = bench.heard();
                assert_eq!(methods(&heard), ["session/cancel", "answer"]);
                assert_eq!(heard[1]["error"]["code"], -32800);
            }
            "close" | "remove" => {
                let method = format!("_acpd/session/{how}");
                bench.say(a, &json!({"id":2,"method":method,"params":{"session":"s"}}));
                let heard = bench.heard();
                assert!(heard.iter().any(|line| line["id"] == 1 && line.get("error").is_some()));
                assert_eq!(released(&mut bench), [number]);
            }
            _ => {
                bench.leader_ends();
                assert_eq!(released(&mut bench), [number]);
            }
        }
        assert_eq!(bench.snapshot.interactions.len(), 0, "{how}");
        ends(&mut bench, number, 0, "late");
        assert_eq!(bench.heard(), Vec::<Value>::new(), "{how}");
    }
}

#[test]
fn a_command_whose_request_was_taken_back_does_not_stay() {
    let mut bench = bench();
    let a = bench.plain();
    bench.session(a, "s");
    ask(&mut bench, 1, "create", &json!({"command":"make"}));
    let Some(Effect::CreateTerminal { terminal, .. }) = bench.terminals.pop() else { panic!() };
    bench.agent(&json!({"method":"$/cancel_request","params":{"requestId":1}}));
    assert_eq!(released(&mut bench), [terminal]);
    served(&mut bench, terminal, Ok("{}"));
    assert_eq!(bench.heard().len(), 1);
}

#[test]
fn calls_go_to_the_editor_that_made_the_terminal_under_its_own_id() {
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    let first = of_editor(&mut bench, a, "t-1");
    let b = editor(&mut bench, 51);
    joins(&mut bench, b);
    let second = of_editor(&mut bench, b, "t-1");
    assert_ne!(first, second, "two editors may give the same id");
    for (client, other, name) in [(a, b, &first), (b, a, &second)] {
        for method in ["output", "wait_for_exit", "kill", "release"] {
            call(&mut bench, 1, method, name);
            assert_eq!(bench.got(other), Vec::<Value>::new());
            let asked = bench.got(client).pop().expect("asked");
            assert_eq!(asked["method"], format!("terminal/{method}"));
            assert_eq!(asked["params"], json!({"sessionId":"s","terminalId":"t-1"}));
            bench.say(client, &json!({"id":asked["id"],"result":{}}));
            assert_eq!(bench.heard().len(), 1);
        }
    }
    assert!(bench.terminals.is_empty());
}

#[test]
fn a_terminal_whose_editor_is_gone_is_an_error_that_says_so() {
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    let name = of_editor(&mut bench, a, "t");
    call(&mut bench, 1, "wait_for_exit", &name);
    bench.feed(Input::Client(a, ClientEvent::Closed));
    call(&mut bench, 2, "output", &name);
    for answer in bench.heard() {
        let text = answer["error"]["message"].as_str().expect("an error");
        assert!(text.contains("editor") && text.contains("gone"), "{text}");
    }
    let (_, own) = own(&mut bench);
    assert!(own.starts_with("acpd-"), "the next one is acpd's");
}

#[test]
fn an_editor_that_comes_back_has_its_terminals_still() {
    let mut bench = bench();
    let token = json!({"client":{"token":"0123456789abcdef"}});
    let a = editor_with(&mut bench, 50, &token);
    bench.session(a, "s");
    let name = of_editor(&mut bench, a, "t");
    bench.feed(Input::Client(a, ClientEvent::Closed));
    let resume = json!({"generation":"","sessions":{"s":0},"open":[],"asked":[]});
    let again = json!({"client":{"token":"0123456789abcdef","resume":resume}});
    let back = editor_with(&mut bench, 51, &again);
    call(&mut bench, 1, "output", &name);
    let asked = bench.got(back).pop().expect("asked");
    assert_eq!(asked["params"]["terminalId"], "t");
}

#[test]
fn an_editor_is_told_to_release_what_its_agent_cannot_release_any_more() {
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    of_editor(&mut bench, a, "t");
    bench.leader_ends();
    let got = bench.got(a);
    let release = got.iter().find(|line| line["method"] == "terminal/release").expect("told");
    assert_eq!(release["params"], json!({"sessionId":"s","terminalId":"t"}));
    bench.say(a, &json!({"id":release["id"],"result":{}}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn only_who_has_a_terminal_is_shown_it_and_the_others_read() {
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    let name = of_editor(&mut bench, a, "t-1");
    let b = editor(&mut bench, 51);
    let c = bench.plain();
    joins(&mut bench, b);
    joins(&mut bench, c);
    shows(&mut bench, &name);
    assert_eq!(shown(&bench.got(a)[0]), "t-1");
    for other in [b, c] {
        assert_eq!(shown(&bench.got(other)[0]), "(a terminal of another editor)");
    }
    let newcomer = bench.plain();
    let params = json!({"sessionId":"s","cwd":"/w","mcpServers":[]});
    bench.say(newcomer, &json!({"id":1,"method":"session/load","params":params}));
    let got = bench.got(newcomer);
    let call = got.iter().find(|line| line["params"]["update"]["toolCallId"] == "c").unwrap();
    assert_eq!(shown(call), "(a terminal of another editor)");
    let row = bench.journal.values().flatten().last().unwrap();
    assert!(
        String::from_utf8_lossy(&row.line).contains(&name),
        "the journal has the agent's words"
    );
    // Terminals that acpd never named are not its own.
    shows(&mut bench, "call-17");
    assert_eq!(shown(&bench.got(c)[0]), "call-17");
}

#[test]
fn a_question_shows_terminals_as_the_conversation_does() {
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    let name = of_editor(&mut bench, a, "t");
    let b = bench.plain();
    joins(&mut bench, b);
    let content = json!([{"type":"terminal","terminalId":name}]);
    let options = json!([{"optionId":"y","name":"Yes","kind":"allow_once"}]);
    let call = json!({"toolCallId":"c","content":content});
    let params = json!({"sessionId":"s","toolCall":call,"options":options});
    bench.agent(&json!({"id":9,"method":"session/request_permission","params":params}));
    let item = |lines: &[Value]| lines[0]["params"]["toolCall"]["content"][0].clone();
    assert_eq!(item(&bench.got(a))["terminalId"], "t");
    assert_eq!(item(&bench.got(b))["type"], "content");
}

#[test]
fn the_output_of_a_command_of_acpd_is_shown_when_it_has_ended() {
    let mut bench = bench();
    let a = editor(&mut bench, 50);
    bench.session(a, "s");
    bench.feed(Input::Client(a, ClientEvent::Closed));
    let (number, name) = own(&mut bench);
    let b = editor(&mut bench, 51);
    joins(&mut bench, b);
    shows(&mut bench, &name);
    let got = bench.got(b);
    assert_eq!(shown(&got[0]), "(a terminal of acpd)", "{got:?}");
    call(&mut bench, 1, "release", &name);
    ends(&mut bench, number, 2, "error: no\n");
    let got = bench.got(b);
    assert_eq!(words(&got), ["tool_call_update"]);
    assert_eq!(shown(&got[0]), "error: no\n(exit code 2)");
    assert_eq!(got[0]["params"]["update"]["content"][0]["type"], "diff", "the rest stays");
    // Shown again, it is not forgotten.
    shows(&mut bench, &name);
    let got = bench.got(b);
    assert_eq!(words(&got), ["tool_call", "tool_call_update"]);
    assert_eq!(shown(&got[1]), "error: no\n(exit code 2)");
    let newcomer = bench.plain();
    let params = json!({"sessionId":"s","cwd":"/w","mcpServers":[]});
    bench.say(newcomer, &json!({"id":1,"method":"session/load","params":params}));
    let got = bench.got(newcomer);
    let last = got.iter().rfind(|line| line["method"] == "session/update").unwrap();
    assert_eq!(shown(last), "error: no\n(exit code 2)");
}

#[test]
fn a_session_has_so_many_terminals_and_released_ones_make_room() {
    let mut bench = bench();
    let a = bench.plain();
    bench.session(a, "s");
    let names: Vec<String> = (0..64).map(|_| own(&mut bench).1).collect();
    ask(&mut bench, 1, "create", &json!({"command":"make"}));
    assert!(bench.heard()[0]["error"]["message"].as_str().unwrap().contains("limit"));
    call(&mut bench, 2, "release", &names[7]);
    bench.heard();
    bench.terminals.clear();
    own(&mut bench);
}

#[test]
fn after_a_restart_the_agent_is_told_that_its_terminals_are_gone() {
    let mut bench = bench();
    let a = bench.plain();
    bench.session(a, "s");
    let (_, name) = own(&mut bench);
    call(&mut bench, 1, "wait_for_exit", &name);
    ask(&mut bench, 2, "create", &json!({"command":"make"}));
    bench.terminals.clear();
    bench.reboot();
    let heard = bench.heard();
    assert_eq!(heard.len(), 2);
    for answer in heard {
        assert!(answer["error"]["message"].as_str().unwrap().contains("restarted"), "{answer}");
    }
    assert!(bench.terminals.is_empty(), "a command is not run twice");
    for method in ["output", "wait_for_exit", "kill", "release"] {
        call(&mut bench, 3, method, &name);
        let text = bench.heard()[0]["error"]["message"].as_str().unwrap().to_owned();
        assert!(text.contains("restarted"), "{text}");
    }
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn terminals_of_another_session_are_none_of_the_agents() {
    let mut bench = bench();
    let a = bench.plain();
    bench.session(a, "s");
    let (_, name) = own(&mut bench);
    bench.session(a, "other");
    let params = json!({"sessionId":"other","terminalId":name});
    bench.agent(&json!({"id":1,"method":"terminal/kill","params":params}));
    assert_eq!(bench.heard()[0]["error"]["code"], -32002);
    assert!(bench.terminals.is_empty());
}

#[test]
fn what_is_not_offered_and_no_editor_has_is_not_there() {
    let mut bench =
        Bench::with(|profile| profile.services = Services { fs: true, terminal: false });
    let a = bench.plain();
    bench.session(a, "s");
    ask(&mut bench, 1, "create", &json!({"command":"make"}));
    assert_eq!(bench.heard()[0]["error"]["code"], -32601);
    let b = editor(&mut bench, 50);
    joins(&mut bench, b);
    of_editor(&mut bench, b, "t");
}

#[test]
fn a_made_up_id_reaches_no_client_without_terminals() {
    let mut bench = bench();
    let a = bench.plain();
    bench.session(a, "s");
    for name in ["editor-0-0-t", "editor-1-1-t", "t"] {
        call(&mut bench, 1, "kill", name);
        assert_eq!(bench.heard()[0]["error"]["code"], -32002, "{name}");
    }
    assert_eq!(bench.got(a), Vec::<Value>::new());
    shows(&mut bench, "editor-0-0-t");
    assert_eq!(shown(&bench.got(a)[0]), "editor-0-0-t");
}
