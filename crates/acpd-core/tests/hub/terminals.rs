//! Terminals of agents: who has them, who is shown them, and when they end.

use acp_wire::ErrorObject;
use acpd_core::ids::{ClientId, InteractionId};
use acpd_core::profile::Services;
use acpd_core::{Effect, Input, NewTerminal, TerminalEnd, TerminalTail};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, methods};

pub(crate) fn bench() -> Bench {
    let mut bench = Bench::with(|profile| profile.services = Services { fs: true, terminal: true });
    bench.shims = true;
    bench
}

/// A client that has terminals.
fn editor(bench: &mut Bench, meta: &Value) -> ClientId {
    bench.introduce(&json!({"clientCapabilities":{"terminal":true},"_meta":{"_acpd":meta}}))
}

/// An editor that has begun the session `s`.
fn with_editor() -> (Bench, ClientId) {
    let mut bench = bench();
    let client = editor(&mut bench, &json!({}));
    bench.session(client, "s");
    (bench, client)
}

/// An editor that has resumed the session `s`.
fn join_editor(bench: &mut Bench) -> ClientId {
    let client = editor(bench, &json!({}));
    bench.join(client, "s");
    client
}

fn ask(bench: &mut Bench, id: u64, method: &str, more: &Value) {
    let mut params = more.clone();
    params["sessionId"] = "s".into();
    bench.agent_asks(id, &format!("terminal/{method}"), &params);
}

pub(crate) fn call(bench: &mut Bench, id: u64, method: &str, terminal: &str) {
    ask(bench, id, method, &json!({ "terminalId": terminal }));
}

/// A turn whose agent runs a command: the turn's client, the terminal's number, and its id as the agent
/// knows it.
pub(crate) fn running_command() -> (Bench, ClientId, InteractionId, String) {
    let (mut bench, client, _) = bench().in_turn("go");
    let (number, name) = own(&mut bench);
    (bench, client, number, name)
}

/// The agent asks for a terminal of acpd.
fn creates(bench: &mut Bench, id: u64, command: &str) -> InteractionId {
    ask(bench, id, "create", &json!({"command":command}));
    let Some(Effect::CreateTerminal { terminal, .. }) = bench.terminals.pop() else {
        panic!("nothing to run")
    };
    terminal
}

/// A terminal of acpd: its number, and its id as the agent knows it.
pub(crate) fn own(bench: &mut Bench) -> (InteractionId, String) {
    let terminal = creates(bench, 100, "make");
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
    bench.reply(client, &asked, &json!({"terminalId":id}));
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
    let call =
        json!({"sessionUpdate":"tool_call","toolCallId":"c","title":"make","content":content});
    bench.send_update("s", &call);
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
    let (mut bench, _) = bench().with_begun();
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
    let (mut bench, _) = bench().with_begun();
    for wrong in [json!({}), json!({"command":"make","cwd":"here"}), json!({"command":1})] {
        ask(&mut bench, 1, "create", &wrong);
        assert_eq!(bench.heard()[0]["error"]["code"], -32602, "{wrong}");
    }
    let terminal = creates(&mut bench, 2, "nothing");
    let error = ErrorObject::new(-32602, "no such program");
    served(&mut bench, terminal, Err(error));
    assert_eq!(bench.heard()[0]["error"]["message"], "no such program");
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn a_wait_is_answered_when_the_command_ends_and_at_once_after_that() {
    let (mut bench, _) = bench().with_begun();
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
        let (mut bench, a, number, name) = running_command();
        call(&mut bench, 1, "wait_for_exit", &name);
        match how {
            "request" => {
                bench.agent(&json!({"method":"$/cancel_request","params":{"requestId":1}}));
                assert_eq!(bench.heard()[0]["error"]["code"], -32800);
            }
            "turn" => {
                bench.cancel(a, "s");
                let heard = bench.heard();
                assert_eq!(methods(&heard), ["session/cancel", "answer"]);
                assert_eq!(heard[1]["error"]["code"], -32800);
            }
            "close" | "remove" => {
                let method = format!("_acpd/session/{how}");
                bench.ask(a, 2, &method, &json!({"session":"s"}));
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
    let (mut bench, _) = bench().with_begun();
    let terminal = creates(&mut bench, 1, "make");
    bench.agent(&json!({"method":"$/cancel_request","params":{"requestId":1}}));
    assert_eq!(released(&mut bench), [terminal]);
    served(&mut bench, terminal, Ok("{}"));
    assert_eq!(bench.heard().len(), 1);
}

#[test]
fn calls_go_to_the_editor_that_made_the_terminal_under_its_own_id() {
    let (mut bench, a) = with_editor();
    let first = of_editor(&mut bench, a, "t-1");
    let b = join_editor(&mut bench);
    let second = of_editor(&mut bench, b, "t-1");
    assert_ne!(first, second, "two editors may give the same id");
    for (client, other, name) in [(a, b, &first), (b, a, &second)] {
        for method in ["output", "wait_for_exit", "kill", "release"] {
            call(&mut bench, 1, method, name);
            assert_eq!(bench.got(other), Vec::<Value>::new());
            let asked = bench.got(client).pop().expect("asked");
            assert_eq!(asked["method"], format!("terminal/{method}"));
            assert_eq!(asked["params"], json!({"sessionId":"s","terminalId":"t-1"}));
            bench.reply(client, &asked, &json!({}));
            assert_eq!(bench.heard().len(), 1);
        }
    }
    assert!(bench.terminals.is_empty());
}

#[test]
fn a_terminal_whose_editor_is_gone_is_an_error_that_says_so() {
    let (mut bench, a) = with_editor();
    let name = of_editor(&mut bench, a, "t");
    call(&mut bench, 1, "wait_for_exit", &name);
    bench.leave(a);
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
    let a = editor(&mut bench, &token);
    bench.session(a, "s");
    let name = of_editor(&mut bench, a, "t");
    bench.leave(a);
    let resume = json!({"generation":"","sessions":{"s":0},"open":[],"asked":[]});
    let again = json!({"client":{"token":"0123456789abcdef","resume":resume}});
    let back = editor(&mut bench, &again);
    call(&mut bench, 1, "output", &name);
    assert_eq!(bench.got(back).pop().expect("asked")["params"]["terminalId"], "t");
}

#[test]
fn an_editor_is_told_to_release_what_its_agent_cannot_release_any_more() {
    let (mut bench, a) = with_editor();
    of_editor(&mut bench, a, "t");
    bench.leader_ends();
    let release = bench.find(a, "terminal/release");
    assert_eq!(release["params"], json!({"sessionId":"s","terminalId":"t"}));
    bench.reply(a, &release, &json!({}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn only_who_has_a_terminal_is_shown_it_and_the_others_read() {
    let (mut bench, a) = with_editor();
    let name = of_editor(&mut bench, a, "t-1");
    let b = join_editor(&mut bench);
    let c = bench.joined("s");
    shows(&mut bench, &name);
    assert_eq!(shown(&bench.got(a)[0]), "t-1");
    for other in [b, c] {
        assert_eq!(shown(&bench.got(other)[0]), "(a terminal of another editor)");
    }
    let newcomer = bench.plain();
    bench.ask(newcomer, 1, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    let got = bench.got(newcomer);
    let call = got.iter().find(|line| line["params"]["update"]["toolCallId"] == "c").unwrap();
    assert_eq!(shown(call), "(a terminal of another editor)");
    let last = bench.journal_lines().pop().unwrap().to_string();
    assert!(last.contains(&name), "the journal has the agent's words");
    // Terminals that acpd never named are not its own.
    shows(&mut bench, "call-17");
    assert_eq!(shown(&bench.got(c)[0]), "call-17");
}

#[test]
fn a_question_shows_terminals_as_the_conversation_does() {
    let (mut bench, a) = with_editor();
    let name = of_editor(&mut bench, a, "t");
    let b = bench.joined("s");
    let content = json!([{"type":"terminal","terminalId":name}]);
    let options = json!([{"optionId":"y","name":"Yes","kind":"allow_once"}]);
    let call = json!({"toolCallId":"c","content":content});
    let params = json!({"sessionId":"s","toolCall":call,"options":options});
    bench.agent_asks(9, "session/request_permission", &params);
    let item = |lines: &[Value]| lines[0]["params"]["toolCall"]["content"][0].clone();
    assert_eq!(item(&bench.got(a))["terminalId"], "t");
    assert_eq!(item(&bench.got(b))["type"], "content");
}

#[test]
fn the_output_of_a_command_of_acpd_is_shown_when_it_has_ended() {
    let (mut bench, a) = with_editor();
    bench.leave(a);
    let (number, name) = own(&mut bench);
    let b = join_editor(&mut bench);
    shows(&mut bench, &name);
    let got = bench.got(b);
    assert_eq!(shown(&got[0]), "(a terminal of acpd)", "{got:?}");
    call(&mut bench, 1, "release", &name);
    ends(&mut bench, number, 2, "error: no\n");
    let got = bench.expect(b, ["tool_call_update"]);
    assert_eq!(shown(&got[0]), "error: no\n(exit code 2)");
    assert_eq!(got[0]["params"]["update"]["content"][0]["type"], "diff", "the rest stays");
    // Shown again, it is not forgotten.
    shows(&mut bench, &name);
    let got = bench.expect(b, ["tool_call", "tool_call_update"]);
    assert_eq!(shown(&got[1]), "error: no\n(exit code 2)");
    let newcomer = bench.plain();
    bench.ask(newcomer, 1, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    let got = bench.got(newcomer);
    let last = got.iter().rfind(|line| line["method"] == "session/update").unwrap();
    assert_eq!(shown(last), "error: no\n(exit code 2)");
}

#[test]
fn a_session_has_so_many_terminals_and_released_ones_make_room() {
    let (mut bench, _) = bench().with_begun();
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
    let (mut bench, _) = bench().with_begun();
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
    let (mut bench, a) = bench().with_begun();
    let (_, name) = own(&mut bench);
    bench.session(a, "other");
    bench.agent_asks(1, "terminal/kill", &json!({"sessionId":"other","terminalId":name}));
    assert_eq!(bench.heard()[0]["error"]["code"], -32002);
    assert!(bench.terminals.is_empty());
}

#[test]
fn what_is_not_offered_and_no_editor_has_is_not_there() {
    let bench = Bench::with(|profile| profile.services = Services { fs: true, terminal: false });
    let (mut bench, _) = bench.with_begun();
    ask(&mut bench, 1, "create", &json!({"command":"make"}));
    assert_eq!(bench.heard()[0]["error"]["code"], -32601);
    let b = join_editor(&mut bench);
    of_editor(&mut bench, b, "t");
}

#[test]
fn a_made_up_id_reaches_no_client_without_terminals() {
    let (mut bench, a) = bench().with_begun();
    for name in ["editor-0-0-t", "editor-1-1-t", "t"] {
        call(&mut bench, 1, "kill", name);
        assert_eq!(bench.heard()[0]["error"]["code"], -32002, "{name}");
    }
    assert_eq!(bench.got(a), Vec::<Value>::new());
    shows(&mut bench, "editor-0-0-t");
    assert_eq!(shown(&bench.got(a)[0]), "editor-0-0-t");
}
