//! MCP servers of clients: callers, relayed members, and missing clients.

use acpd_core::ids::{ClientId, HostId, Time};
use acpd_core::{Batch, ClientEvent, ClientOrigin, Effect, Input, ToClient, ToHost};
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::bench::{Bench, client_line, host_line, methods};
use crate::mcp::notices;
use crate::steps::reason;

const TOKEN: &str = "token-of-an-editor";

fn bench() -> Bench {
    Bench::with_shims().with_capabilities(json!({"loadSession":true,
        "sessionCapabilities":{"resume":{}},"mcpCapabilities":{"acp":true}}))
}

fn server(name: &str, id: &str) -> Value {
    json!({"type":"acp","name":name,"serverId":id})
}

fn token() -> Value {
    json!({"notices":true,"client":{"token":TOKEN}})
}

/// Asks for a session with one server, `tools`; what the agent was asked.
fn asks(bench: &mut Bench, client: ClientId, id: &str) -> Value {
    let params = json!({"cwd":"/w","mcpServers":[server("tools", id)]});
    bench.relay(client, "new", "session/new", &params)
}

/// The id of the only server of a request, as the agent knows it.
fn known_as(request: &Value) -> String {
    let servers = request["params"]["mcpServers"].as_array().expect("a list");
    assert_eq!((servers.len(), &servers[0]["name"]), (1, &json!("tools")), "{servers:?}");
    servers[0]["serverId"].as_str().expect("an id").to_owned()
}

/// A session with one server, `tools`, under the agent's id of that.
fn session(bench: &mut Bench, client: ClientId, session: &str, id: &str) -> String {
    let request = asks(bench, client, id);
    bench.agent_answers(&request, &json!({ "sessionId": session }));
    bench.got(client);
    known_as(&request)
}

/// Like [`session`], and the session has had a prompt.
fn used(bench: &mut Bench, client: ClientId, name: &str) -> String {
    let tools = session(bench, client, name, "mine");
    bench.run_turn(client, "first", name, "first");
    bench.got(client);
    tools
}

fn call(bench: &mut Bench, id: u64, server: &str) {
    let params = json!({"serverId":server,"requestId":"r-1","method":"tools/list","params":{}});
    bench.agent_asks(id, "mcp/message", &params);
}

/// Returns a client's requests, and checks that it got nothing else.
#[track_caller]
fn asked(bench: &mut Bench, client: ClientId) -> Value {
    let mut got = bench.got(client);
    got.retain(|line| line["method"] != "_acpd/client/received");
    assert_eq!(methods(&got), ["mcp/message"], "{got:?}");
    got.into_iter().next().expect("one")
}

#[track_caller]
fn refused(bench: &mut Bench, id: u64, code: i64, text: &str) {
    let heard = bench.heard();
    let [answer] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(code)), "{answer}");
    let message = answer["error"]["message"].as_str().expect("a text");
    assert!(message.contains(text), "{message}");
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

/// A client with a server `tools` in the session `s`, and the agent's id of that server.
fn with_tools() -> (Bench, ClientId, String) {
    let (mut bench, client) = bench().with_client();
    let tools = session(&mut bench, client, "s", "mine");
    (bench, client, tools)
}

/// The agent calls a server; returns the request, as its client got it.
#[track_caller]
fn reach(bench: &mut Bench, id: u64, server: &str, client: ClientId) -> Value {
    call(bench, id, server);
    asked(bench, client)
}

/// The agent calls a server whose client is gone.
#[track_caller]
fn call_in_vain(bench: &mut Bench, id: u64, server: &str) {
    call(bench, id, server);
    refused(bench, id, -32002, GONE);
}

const GONE: &str = "the client that has the MCP server `tools` is gone";

#[test]
fn a_client_is_told_that_the_agent_takes_servers_in_clients_if_it_does() {
    let offered = |bench: &mut Bench| {
        let client = bench.connect(&json!({}));
        bench.got(client)[0]["result"]["agentCapabilities"]["mcpCapabilities"]["acp"].clone()
    };
    assert_eq!(offered(&mut bench()), true);
    assert_eq!(offered(&mut Bench::new()), Value::Null);
}

#[test]
fn two_editors_that_call_their_servers_the_same_are_each_reached() {
    let (mut bench, a, b) = bench().with_two_clients();
    let of_a = session(&mut bench, a, "s", "mine");
    let of_b = session(&mut bench, b, "t", "mine");
    assert_ne!(of_a, of_b);
    for (id, client, other, server) in [(7, a, b, &of_a), (8, b, a, &of_b)] {
        let request = reach(&mut bench, id, server, client);
        let expected =
            json!({"serverId":"mine","requestId":"r-1","method":"tools/list","params":{}});
        assert_eq!(request["params"], expected);
        assert_eq!(bench.got(other), Vec::<Value>::new());
        let inner = json!({"result":{"tools":[{"name":format!("of {id}")}]}});
        // Another client cannot answer for it.
        bench.reply(other, &request, &json!({"result":null}));
        assert_eq!(bench.heard(), Vec::<Value>::new());
        bench.say(client, &json!({"jsonrpc":"2.0","id":request["id"],"result":inner}));
        assert_eq!(bench.heard(), [json!({"jsonrpc":"2.0","id":id,"result":inner})]);
    }
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

/// Returns the lines that the hub sends then, with any content.
fn sent(bench: &mut Bench, input: Input) -> Vec<String> {
    let mut batch = Batch::default();
    let now = Time(bench.now);
    bench.hub.handle(now, input, &mut batch);
    let mut sent = Vec::new();
    while !batch.effects.is_empty() {
        for effect in std::mem::take(&mut batch.effects) {
            match effect {
                Effect::FindDirectory { question, .. } => {
                    let found = Input::DirectoryFound { question, exists: true };
                    bench.hub.handle(now, found, &mut batch);
                }
                Effect::Client(_, ToClient::Line(line))
                | Effect::Host(_, ToHost::Write { line, .. }) => {
                    sent.push(String::from_utf8(line.to_vec()).expect("text"));
                }
                _ => {}
            }
        }
    }
    sent
}

#[test]
fn but_for_ids_every_byte_passes_both_ways() {
    let (mut bench, a) = bench().with_client();
    session(&mut bench, a, "other", "other");
    let host = bench.host();
    let from_client = |line: &str| client_line(a, Bytes::from(line.to_owned()));
    let mut end = 1 << 40;
    let mut from_agent = |line: &str| {
        end += line.len() as u64;
        host_line(host, Bytes::from(line.to_owned()), end)
    };
    let part = |line: &str, name: &str| {
        let range = acp_wire::locate(line.as_bytes(), &[name]).expect("it is there");
        line[range].to_owned()
    };
    let params = r#"{ "cwd":"/w", "mcpServers":[ {"name":"x" ,"command":"x","args":[],"env":[]} ,{"_meta":{"k": 1e400},"type":"acp", "serverId" : "mine","name":"tools"}]}"#;
    let new = format!(r#"{{"id":1,"method":"session/new","params":{params}}}"#);
    let new = sent(&mut bench, from_client(&new));
    let list = part(&part(&new[0], "params"), "mcpServers");
    let servers: Vec<&RawValue> = serde_json::from_str(&list).expect("a list");
    let tools = part(servers[1].get(), "serverId");
    assert!(tools.starts_with("\"acpd-"), "{tools}");
    assert_eq!(part(&new[0], "params"), params.replace("\"mine\"", &tools));

    let call = r#"{ "jsonrpc":"2.0", "method":"mcp/message","id": "x\u0041" ,"params":{"_meta":{"n":1e400}, "serverId": "S" ,"requestId":"acpd-1-1","method":"tools/call","params":{"serverId":"acpd-1-1","big":123456789012345678901234567890,"half":"\ud800"}}}"#;
    let got = sent(&mut bench, from_agent(&call.replace("\"S\"", &tools)));
    let id = part(&got[0], "id");
    assert_eq!(got, [call.replace("\"S\"", "\"mine\"").replace(r#""x\u0041""#, &id)]);

    let news = r#"{"method":"mcp/message", "params":{"requestId":"acpd-1-1","method":"m","serverId":"mine" ,"params":{"serverId":"mine","n":1e400}}}"#;
    assert_eq!(sent(&mut bench, from_client(news)), [news.replacen("\"mine\"", &tools, 1)]);

    let answer = r#"{"result" :{"error":{"code": -1,"message":"n\u006f","data":null},"_meta": 1e400} ,"id": ID,"jsonrpc":"2.0"}"#;
    let heard = sent(&mut bench, from_client(&answer.replace("ID", &id)));
    assert_eq!(heard, [answer.replace("ID", r#""x\u0041""#)]);
}

#[test]
fn an_agent_may_call_a_server_before_it_has_answered_who_declared_it() {
    let (mut bench, a) = bench().with_client();
    let request = asks(&mut bench, a, "mine");
    let call = reach(&mut bench, 7, &known_as(&request), a);
    bench.reply(a, &call, &json!({"result":null}));
    assert_eq!(bench.heard()[0]["result"], json!({"result":null}));

    // A session that only the agent knows.
    let params = json!({"sessionId":"old","cwd":"/w","mcpServers":[server("tools", "mine")]});
    let load = bench.relay(a, 2, "session/load", &params);
    let tools = known_as(&load);
    reach(&mut bench, 8, &tools, a);
    bench.agent_answers(&load, &json!({}));
    bench.got(a);
    reach(&mut bench, 9, &tools, a);
}

#[test]
fn what_nobody_has_is_refused() {
    let (mut bench, a, b) = bench().with_two_clients();
    let tools = session(&mut bench, a, "s", "mine");
    for unknown in ["mine", "acpd-1-99999", "acpd-", ""] {
        call(&mut bench, 7, unknown);
        refused(&mut bench, 7, -32002, &format!("`{unknown}`"));
    }
    for params in [json!({}), json!({"serverId":7}), json!(null), json!([1])] {
        bench.agent_asks(8, "mcp/message", &params);
        refused(&mut bench, 8, -32602, "serverId");
    }
    bench.agent(&json!({"jsonrpc":"2.0","method":"mcp/message","params":{"serverId":tools}}));
    assert_eq!((bench.got(a), bench.got(b), bench.heard()), (vec![], vec![], vec![]));
    // A client cannot send this request.
    let params = json!({"serverId":tools,"requestId":"r","method":"tools/list"});
    assert_eq!(bench.call(a, "mcp/message", &params)["error"]["code"], -32601);
    assert_eq!(bench.heard(), Vec::<Value>::new());
    // A session that was closed has no servers any more.
    bench.ask(a, 3, "session/close", &json!({"sessionId":"s"}));
    bench.heard();
    call(&mut bench, 9, &tools);
    refused(&mut bench, 9, -32002, &tools);
}

#[test]
fn no_client_takes_more_calls_than_it_may() {
    let (mut bench, a, tools) = with_tools();
    for id in 1..=65 {
        call(&mut bench, id, &tools);
    }
    assert_eq!(bench.got(a).len(), 64);
    assert_eq!(bench.heard()[0]["error"]["code"], -32603);
}

#[test]
fn a_call_whose_client_goes_for_good_is_refused_at_once() {
    let mut bench = bench();
    let (a, b) = (bench.plain(), bench.client(&token()));
    let of_a = session(&mut bench, a, "s", "mine");
    let of_b = session(&mut bench, b, "t", "mine");
    call(&mut bench, 7, &of_a);
    bench.leave(a);
    refused(&mut bench, 7, -32002, GONE);
    call_in_vain(&mut bench, 8, &of_a);
    // The client leaves for good.
    call(&mut bench, 9, &of_b);
    bench.say(b, &json!({"method":"_acpd/client/leave"}));
    refused(&mut bench, 9, -32002, GONE);
    bench.leave(b);
    call_in_vain(&mut bench, 10, &of_b);
}

#[test]
fn an_agent_may_take_a_call_back_and_a_late_answer_goes_nowhere() {
    let (mut bench, a, tools) = with_tools();
    let request = reach(&mut bench, 7, &tools, a);
    bench.agent(&json!({"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}));
    refused(&mut bench, 7, -32800, "cancelled");
    let got = bench.got(a);
    assert_eq!(methods(&got), ["$/cancel_request"]);
    assert_eq!(got[0]["params"]["requestId"], request["id"]);
    bench.reply(a, &request, &json!({"result":null}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_process_or_a_session_that_ends_takes_its_calls_along() {
    let (mut bench, a, tools) = with_tools();
    reach(&mut bench, 7, &tools, a);
    bench.ask(a, 3, "session/delete", &json!({"sessionId":"s"}));
    assert!(bench.heard().iter().any(|line| line["id"] == 7 && line["error"]["code"] == -32603));
    bench.expect_some(a, "$/cancel_request");

    let tools = session(&mut bench, a, "t", "mine");
    reach(&mut bench, 8, &tools, a);
    bench.agent_dies();
    bench.expect_some(a, "$/cancel_request");
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn news_of_a_server_go_to_the_call_that_they_are_about() {
    let (mut bench, a, b) = bench().with_two_clients();
    let tools = session(&mut bench, a, "s", "mine");
    session(&mut bench, b, "t", "mine");
    let news = |server: &str, request: &str| {
        let params = json!({"serverId":server,"requestId":request,
            "method":"notifications/progress","params":{"serverId":"mine"}});
        json!({"jsonrpc":"2.0","method":"mcp/message","params":params})
    };
    bench.say(a, &news("mine", "r-1"));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "nobody has asked");
    let request = reach(&mut bench, 7, &tools, a);
    bench.say(b, &news("mine", "r-1"));
    bench.say(a, &news("other", "r-1"));
    bench.say(a, &news("mine", "r-2"));
    bench.say(a, &news(&tools, "r-1"));
    bench.say(a, &json!({"jsonrpc":"2.0","method":"mcp/message"}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.say(a, &news("mine", "r-1"));
    let mut expected = news("mine", "r-1");
    expected["params"]["serverId"] = json!(tools);
    assert_eq!(bench.heard(), [expected]);
    bench.reply(a, &request, &json!({"result":null}));
    bench.heard();
    bench.say(a, &news("mine", "r-1"));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it is answered");
}

/// Comes back with these questions.
fn back(bench: &mut Bench, asked: &Value) -> (ClientId, Vec<Value>) {
    let resume = json!({"generation":"","sessions":{"s":99},"open":[],"asked":asked});
    let client = bench.connect(&json!({"notices":true,"client":{"token":TOKEN,"resume":resume}}));
    let got = bench.got(client).into_iter();
    let of_servers =
        |line: &Value| matches!(line["method"].as_str(), Some("mcp/message" | "$/cancel_request"));
    (client, got.filter(of_servers).collect())
}

#[test]
fn a_client_that_comes_back_keeps_its_servers_and_answers_each_call_once() {
    let (mut bench, a) = bench().with_client_of(&token());
    let tools = session(&mut bench, a, "s", "mine");
    let has = reach(&mut bench, 7, &tools, a);
    bench.leave(a);
    call(&mut bench, 8, &tools);
    assert_eq!((bench.heard(), bench.got(a)), (vec![], vec![]), "it is waited for");
    let (a, got) = back(&mut bench, &json!([has["id"], 1]));
    assert_eq!(methods(&got), ["$/cancel_request", "mcp/message"], "{got:?}");
    assert_eq!(got[0]["params"]["requestId"], 1);
    assert_eq!(got[1]["params"]["serverId"], "mine");
    bench.reply(a, &has, &json!({"result":1}));
    bench.reply(a, &got[1], &json!({"result":2}));
    let heard = bench.heard();
    let results: Vec<_> =
        heard.iter().map(|line| (&line["id"], &line["result"]["result"])).collect();
    assert_eq!(results, [(&json!(7), &json!(1)), (&json!(8), &json!(2))]);
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn a_client_that_is_away_for_too_long_is_not_waited_for() {
    let (mut bench, a) = bench().with_client_of(&token());
    let tools = session(&mut bench, a, "s", "mine");
    call(&mut bench, 7, &tools);
    bench.leave(a);
    bench.pass(2 * 60 * 60_000);
    let heard = bench.heard();
    let answer = heard.iter().find(|line| line["id"] == 7).expect("answered");
    assert_eq!(answer["error"]["message"], GONE);
}

#[test]
fn calls_outlive_the_daemon_with_clients_that_come_back_and_end_with_others() {
    let mut bench = bench();
    let (a, b) = (bench.client(&token()), bench.plain());
    let of_a = session(&mut bench, a, "s", "mine");
    let of_b = session(&mut bench, b, "t", "mine");
    let request = reach(&mut bench, 7, &of_a, a);
    call(&mut bench, 8, &of_b);
    bench.reboot();
    let heard = bench.heard();
    let gone = (heard.len(), &heard[0]["id"], &heard[0]["error"]["message"]);
    assert_eq!(gone, (1, &json!(8), &json!(GONE)));
    call(&mut bench, 9, &of_b);
    assert_eq!(bench.heard()[0]["error"]["message"], GONE);
    let (a, got) = back(&mut bench, &json!([request["id"]]));
    assert_eq!(got, Vec::<Value>::new(), "it has the call");
    bench.reply(a, &request, &json!({"result":1}));
    assert_eq!(bench.heard()[0]["result"]["result"], 1);
    assert_eq!(reach(&mut bench, 10, &of_a, a)["params"]["serverId"], "mine");
}

#[test]
fn a_declaration_that_is_not_answered_outlives_the_daemon() {
    let (mut bench, a) = bench().with_client_of(&token());
    let request = asks(&mut bench, a, "mine");
    let tools = known_as(&request);
    bench.reboot();
    let (a, _) = back(&mut bench, &json!([]));
    reach(&mut bench, 7, &tools, a);
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    bench.got(a);
    reach(&mut bench, 8, &tools, a);
}

/// The agent dies and starts again; how it is asked for its session.
fn next_process(bench: &mut Bench) -> Value {
    bench.agent_dies();
    while bench.agent_state() != "ready" {
        bench.pass(100);
    }
    bench.heard_one("session/resume")
}

#[test]
fn the_next_process_gets_the_servers_of_clients_that_are_there_and_no_others() {
    let mut bench = bench();
    let (a, b) = (bench.plain(), bench.noticed());
    let tools = used(&mut bench, a, "s");
    bench.join(b, "s");
    let request = next_process(&mut bench);
    assert_eq!(known_as(&request), tools);
    bench.got(a);
    // While it is restored, too.
    assert_eq!(reach(&mut bench, 7, &tools, a)["params"]["serverId"], "mine");
    bench.agent_answers(&request, &json!({}));
    assert_eq!(notices(&bench.got(b)), Vec::<&str>::new());

    bench.leave(a);
    bench.heard();
    let request = next_process(&mut bench);
    assert_eq!(request["params"]["mcpServers"], json!([]));
    bench.agent_answers(&request, &json!({}));
    let expected = "the MCP server `tools` was left out: the client that has it is not connected";
    assert_eq!(notices(&bench.got(b)), [expected]);

    // A client has such a server again.
    let c = bench.plain();
    bench.ask_load(c, "s", &json!([server("tools", "other")]));
    assert_eq!(bench.heard(), Vec::<Value>::new());
    assert_eq!(known_as(&next_process(&mut bench)), tools);
    bench.got(c);
    assert_eq!(reach(&mut bench, 9, &tools, c)["params"]["serverId"], "other");
}

#[test]
fn who_opens_a_session_that_rests_brings_the_server_for_its_next_process() {
    let (mut bench, a, b) = bench().with_two_clients();
    let tools = used(&mut bench, a, "s");
    bench.ask(a, 2, "session/close", &json!({"sessionId":"s"}));
    bench.leave(a);
    bench.heard();
    bench.ask_load(b, "s", &json!([server("tools", "of b")]));
    bench.prompt(b, &json!(2), "s", "go on");
    assert_eq!(known_as(&bench.heard_one("session/resume")), tools);
    bench.got(b);
    assert_eq!(reach(&mut bench, 7, &tools, b)["params"]["serverId"], "of b");
}

#[test]
fn a_server_without_an_id_is_left_to_the_agent() {
    let mut bench = bench();
    bench.lenient = true;
    let a = bench.plain();
    let odd =
        json!([{"type":"acp","name":"a"}, {"type":"acp","serverId":7}, {"type":["acp"]}, null]);
    for servers in [odd, json!({"type":"acp"}), json!("acp"), json!(null)] {
        let params = json!({"cwd":"/w","mcpServers":servers});
        let request = bench.relay(a, 1, "session/new", &params);
        assert_eq!(request["params"], params);
        bench.agent_refuses(&request, -32602);
    }
}

#[test]
fn who_opens_a_session_with_a_server_of_that_name_has_it_if_its_client_is_not_there() {
    let mut bench = bench();
    let (a, b) = (bench.client(&token()), bench.plain());
    let tools = session(&mut bench, a, "s", "mine");
    let load = |bench: &mut Bench, client: ClientId, servers: &Value| {
        bench.ask_load(client, "s", servers);
        bench.got(client);
        assert_eq!(bench.heard(), Vec::<Value>::new());
    };
    let mut id = 10;
    let mut reached = |bench: &mut Bench, client: ClientId| {
        id += 1;
        reach(bench, id, &tools, client)["params"]["serverId"].as_str().expect("an id").to_owned()
    };
    load(&mut bench, b, &json!([server("tools", "of b")]));
    assert_eq!(reached(&mut bench, a), "mine", "its client is there");
    load(&mut bench, a, &json!([server("tools", "new")]));
    assert_eq!(reached(&mut bench, a), "new", "and may call it something else");

    bench.leave(a);
    load(&mut bench, b, &json!([server("more", "x"), {"type":"acp"}, 7]));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "the calls wait for the first one");
    let params = json!({"sessionId":"s","cwd":"/w","mcpServers":[server("tools", "of b")]});
    bench.ask(b, 2, "session/resume", &params);
    bench.got(b);
    let heard = bench.heard();
    assert_eq!(heard.len(), 2, "nobody answers what it was asked: {heard:?}");
    assert!(heard.iter().all(|line| line["error"]["message"] == GONE), "{heard:?}");
    assert_eq!(reached(&mut bench, b), "of b");

    // Also for the next daemon.
    let c = bench.client(&json!({"client":{"token":"token-of-another-one"}}));
    bench.leave(b);
    bench.heard();
    load(&mut bench, c, &json!([server("tools", "of c")]));
    bench.reboot();
    let resume = json!({"generation":"","sessions":{"s":99},"open":[],"asked":[]});
    let c = bench.client(&json!({"client":{"token":"token-of-another-one","resume":resume}}));
    assert_eq!(reached(&mut bench, c), "of c");
}

#[test]
fn a_name_that_is_taken_is_a_session_that_is_opened() {
    let mut bench = bench();
    let named = |bench: &mut Bench, client: ClientId, id: &str| {
        let meta = json!({"_acpd":{"name":"n","reuse":true}});
        let params = json!({"cwd":"/w","mcpServers":[server("tools", id)],"_meta":meta});
        bench.ask(client, "new", "session/new", &params);
    };
    let (a, b) = (bench.plain(), bench.plain());
    named(&mut bench, a, "mine");
    let request = bench.heard_one("session/new");
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    bench.leave(a);
    named(&mut bench, b, "other");
    bench.got(b);
    assert_eq!(reach(&mut bench, 7, &known_as(&request), b)["params"]["serverId"], "other");
}

/// A tool of acpd asks for the servers that are lent to a session.
fn lent(bench: &mut Bench, tool: ClientId, session: &str) -> Value {
    bench.ask(tool, "list", "_acpd/mcp/list", &json!({"session":session}));
    let mut got = bench.got(tool);
    assert_eq!(got.len(), 1, "{got:?}");
    got.remove(0)["result"]["servers"].take()
}

/// A tool of acpd calls a server.
fn ask(bench: &mut Bench, tool: ClientId, server: &str, method: &str) {
    let params = json!({"ref":{"session":"s"},"server":server,"method":method,"params":{"n":1}});
    bench.ask(tool, "call", "_acpd/mcp/call", &params);
}

#[test]
fn a_tool_asks_the_editor_of_its_session_and_no_other() {
    let mut bench = bench();
    let (a, b, tool) = (bench.plain(), bench.plain(), bench.open());
    session(&mut bench, a, "s", "mine");
    session(&mut bench, b, "t", "mine");
    assert_eq!(lent(&mut bench, tool, "s"), json!(["tools"]));
    ask(&mut bench, tool, "tools", "tools/call");
    let request = asked(&mut bench, a);
    let params = &request["params"];
    assert_eq!(params["requestId"].as_str().map(|id| id.starts_with("acpd-")), Some(true));
    let said = (&params["serverId"], &params["method"], &params["params"]);
    assert_eq!(said, (&json!("mine"), &json!("tools/call"), &json!({"n":1})));
    // The tool gets no notifications about it, and no other client answers.
    let news = json!({"serverId":"mine","requestId":params["requestId"],"method":"news"});
    bench.say(a, &json!({"method":"mcp/message","params":news}));
    bench.reply(b, &request, &json!({"result":null}));
    assert_eq!((bench.got(tool), bench.heard()), (vec![], vec![]));
    let inner = json!({"result":{"content":[]}});
    bench.reply(a, &request, &inner);
    assert_eq!(bench.got(tool), [json!({"id":"call","result":inner})]);
    assert_eq!((bench.got(b), bench.heard()), (vec![], vec![]));
    assert_eq!(bench.snapshot.interactions.len(), 0, "the agent has not called");

    for (server, method, text) in [
        ("other", "tools/list", "no client that is connected lends the session a server `other`"),
        ("tools", "resources/read", "calls only `tools/list` and `tools/call`"),
    ] {
        ask(&mut bench, tool, server, method);
        let got = bench.got(tool);
        let message = got[0]["error"]["message"].as_str().expect("an error");
        assert!(message.contains(text), "{message}");
    }
    bench.leave(a);
    assert_eq!(lent(&mut bench, tool, "s"), json!([]));
    assert_eq!(bench.got(b), Vec::<Value>::new());
}

#[test]
fn tool_uses_only_what_is_lent_to_sessions_of_its_agent() {
    let (mut bench, a, _) = with_tools();
    let own = bench.host();
    let below = |bench: &mut Bench, host: Option<HostId>| {
        let tool = bench.open();
        bench.feed(Input::Client(tool, ClientEvent::Opened(ClientOrigin::Agent(host))));
        tool
    };
    let other = below(&mut bench, Some(HostId(own.0 + 1)));
    let unseen = below(&mut bench, None);
    for tool in [other, unseen] {
        for (method, params) in [
            ("_acpd/mcp/list", json!({"session":"s"})),
            // The session that counts is the one that is used.
            (
                "_acpd/mcp/call",
                json!({"ref":{"session":"s"},"session":"t","server":"tools","method":"tools/call"}),
            ),
        ] {
            bench.ask(tool, 1, method, &params);
            let refused = bench.got(tool).pop().expect("answered");
            assert_eq!(reason(&refused), "under_agent", "{refused}");
        }
    }
    assert_eq!(bench.got(a), Vec::<Value>::new());

    let watcher = bench.noticed();
    bench.observe(watcher, "s");
    let tool = below(&mut bench, Some(own));
    assert_eq!(lent(&mut bench, tool, "s"), json!(["tools"]));
    let params = json!({"ref":{"session":"s"},"server":"tools","method":"tools/call",
        "params":{"name":"look"}});
    bench.ask(tool, "call", "_acpd/mcp/call", &params);
    asked(&mut bench, a);
    let text = "a tool of the agent called `look` of the MCP server `tools`";
    assert_eq!(bench.find(watcher, "_acpd/notice")["params"]["text"], text);
    bench.agent_dies();
    bench.ask(tool, 1, "_acpd/mcp/list", &json!({"session":"s"}));
    let refused = bench.got(tool).pop().expect("answered");
    assert_eq!(reason(&refused), "under_agent", "its agent is gone");
}

#[test]
fn a_call_of_a_tool_ends_in_time_when_it_is_cancelled_and_with_either_side() {
    let (mut bench, a, _) = with_tools();
    let stopped = |bench: &mut Bench, request: &Value| {
        let got = bench.got(a);
        assert_eq!(methods(&got), ["$/cancel_request"], "{got:?}");
        assert_eq!(got[0]["params"]["requestId"], request["id"]);
    };
    let begun = |bench: &mut Bench| {
        let tool = bench.open();
        ask(bench, tool, "tools", "tools/list");
        (tool, asked(bench, a))
    };
    let (tool, request) = begun(&mut bench);
    bench.pass(19_000);
    assert_eq!(bench.got(tool), Vec::<Value>::new());
    bench.pass(1_000);
    let text = "the client did not answer for its MCP server `tools` in time";
    assert_eq!(bench.got(tool)[0]["error"]["message"], text);
    stopped(&mut bench, &request);
    // A late answer goes nowhere.
    bench.reply(a, &request, &json!({"result":null}));
    assert_eq!((bench.got(tool), bench.heard()), (vec![], vec![]));

    let (tool, request) = begun(&mut bench);
    bench.cancel_request(tool, "call");
    assert_eq!(bench.got(tool)[0]["error"]["code"], -32800);
    stopped(&mut bench, &request);

    let (tool, request) = begun(&mut bench);
    bench.leave(tool);
    stopped(&mut bench, &request);

    let (tool, _) = begun(&mut bench);
    bench.leave(a);
    assert_eq!(bench.got(tool)[0]["error"]["message"], GONE);
    bench.reboot();
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_tool_reaches_servers_that_the_agent_does_not_take_and_is_not_given() {
    let mut bench = Bench::new();
    let (a, tool) = (bench.noticed(), bench.open());
    let other = json!({"name":"x","command":"x","args":[],"env":[]});
    let params = json!({"cwd":"/w","mcpServers":[server("tools", "mine"), other]});
    let request = bench.relay(a, 1, "session/new", &params);
    assert_eq!(request["params"]["mcpServers"], json!([other]));
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    let expected = "the MCP server `tools` of the client was left out: agent `gem` does not take servers of type `acp`";
    assert_eq!(notices(&bench.got(a)), [expected]);
    assert_eq!(lent(&mut bench, tool, "s"), json!(["tools"]));
    ask(&mut bench, tool, "tools", "tools/list");
    assert_eq!(asked(&mut bench, a)["params"]["serverId"], "mine");
}

#[test]
fn a_tool_reaches_servers_of_who_opens_a_session_that_runs_and_so_does_the_next_process() {
    let mut bench = bench();
    let (a, b, tool) = (bench.plain(), bench.plain(), bench.open());
    let tools = used(&mut bench, a, "s");
    let brought = json!([server("ide", "of b"), {"name":"x","command":"x","args":[],"env":[]}]);
    bench.ask_load(b, "s", &brought);
    let ignored = &bench.answer(b, "load")["result"]["_meta"]["_acpd"]["ignoredMcpServers"];
    assert_eq!(*ignored, json!(["ide", "x"]), "by the process that there is");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    assert_eq!(lent(&mut bench, tool, "s"), json!(["tools", "ide"]));
    ask(&mut bench, tool, "ide", "tools/list");
    assert_eq!(asked(&mut bench, b)["params"]["serverId"], "of b");
    bench.leave(tool);
    let request = next_process(&mut bench);
    let servers = request["params"]["mcpServers"].as_array().expect("a list");
    let names: Vec<_> = servers.iter().map(|server| server["name"].as_str()).collect();
    assert_eq!(names, [Some("tools"), Some("ide")]);
    assert_eq!(servers[0]["serverId"], tools);
}
