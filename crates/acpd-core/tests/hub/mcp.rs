//! MCP servers of the configuration: who gets which, and what is told of it.

use acp_wire::Id;
use acpd_api::McpKind;
use acpd_core::mcp::take_names;
use acpd_core::profile::{McpServer, Profile, Workspaces};
use acpd_core::{ClientEvent, ClientOrigin, HostEvent, Input, LeftOut};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench};

/// The globs of servers look at whole paths, which on Windows begin with a drive.
const IS_WINDOWS: bool = std::path::MAIN_SEPARATOR == '\\';
const W: &str = if IS_WINDOWS { "C:/w" } else { "/w" };
const ELSEWHERE: &str = if IS_WINDOWS { "C:/else/**" } else { "/else/**" };

fn server(name: &str, kind: McpKind, workspace: Option<&str>) -> McpServer {
    let globs = workspace.map(|glob| Workspaces::new(&[glob.to_owned()], None).expect("a glob"));
    McpServer { name: name.to_owned(), kind, workspace: globs, builtin: false }
}

/// One server of each kind, and one for another directory.
fn configured(profile: &mut Profile) {
    profile.mcp = vec![
        server("files", McpKind::Stdio, None),
        server("web", McpKind::Http, Some(W)),
        server("events", McpKind::Sse, None),
        server("elsewhere", McpKind::Stdio, Some(ELSEWHERE)),
    ];
}

fn bench() -> Bench {
    let mut bench = Bench::with(configured);
    bench.cwd = W;
    bench.capabilities = Some(json!({
        "loadSession": true,
        "sessionCapabilities": {"resume": {}},
        "mcpCapabilities": {"http": true, "sse": false},
    }));
    bench
}

fn notices(lines: &[Value]) -> Vec<&str> {
    let notices = lines.iter().filter(|line| line["method"] == "_acpd/notice");
    notices.map(|line| line["params"]["text"].as_str().expect("a text")).collect()
}

const NO_SSE: &str = "the MCP server `events` of the configuration was left out: agent `gem` does \
                      not take servers of type `sse`";

#[test]
fn a_new_session_gets_the_servers_of_its_place_that_the_agent_can_use() {
    let mut bench = bench();
    let a = bench.client(&json!({"notices":true}));
    let own = json!([{"name":"mine","command":"mine","args":[],"env":[]}]);
    let params = json!({"cwd":W,"mcpServers":own});
    bench.say(a, &json!({"id":1,"method":"session/new","params":params}));
    let request = bench.heard_one("session/new");
    assert_eq!(request["_acpd"], json!({"mcp":["files","web"]}));
    assert_eq!(request["params"], params, "what the client gave stays as it is");
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    assert_eq!(notices(&bench.got(a)), [NO_SSE]);

    let params = json!({"cwd":ELSEWHERE.replace("**", "where"),"mcpServers":[]});
    bench.say(a, &json!({"id":2,"method":"session/new","params":params}));
    let request = bench.heard_one("session/new");
    assert_eq!(request["_acpd"], json!({"mcp":["files","elsewhere"]}));
}

#[test]
fn a_clients_server_of_the_same_name_wins() {
    let mut bench = bench();
    let a = bench.plain();
    let own = json!([{"name":"files","command":"mine","args":[],"env":[]}, {"type":"sse","name":"events","url":"http://x","headers":[]}]);
    let params = json!({"cwd":W,"mcpServers":own});
    bench.say(a, &json!({"id":1,"method":"session/new","params":params}));
    let request = bench.heard_one("session/new");
    assert_eq!(request["_acpd"], json!({"mcp":["web"]}));
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    assert_eq!(notices(&bench.got(a)), Vec::<&str>::new());
}

#[test]
fn a_line_without_servers_of_the_configuration_is_as_it_ever_was() {
    let mut bench = Bench::new();
    let a = bench.plain();
    let params = json!({"cwd":W,"mcpServers":[]});
    bench.say(a, &json!({"id":1,"method":"session/new","params":params}));
    assert_eq!(bench.heard_one("session/new").get("_acpd"), None);
}

#[test]
fn every_way_back_brings_the_servers_again() {
    let mut bench = bench();
    let a = bench.client(&json!({"notices":true}));
    bench.used_session(a, "s");
    bench.agent_dies();
    bench.pass(1_000);
    let names = json!({"mcp":["files","web"]});
    let resume = bench.heard_one("session/resume");
    assert_eq!(resume["_acpd"], names);
    bench.agent_refuses(&resume, -32601);
    let load = bench.heard_one("session/load");
    assert_eq!(load["_acpd"], names);
    bench.agent_answers(&load, &json!({}));
    assert_eq!(notices(&bench.got(a)), Vec::<&str>::new(), "it was told before");

    // A session without prompts is created again.
    let mut bench = self::bench();
    let a = bench.plain();
    bench.session(a, "s");
    bench.agent_dies();
    bench.pass(1_000);
    assert_eq!(bench.heard_one("session/new")["_acpd"], names);
}

#[test]
fn what_the_daemon_could_not_find_out_is_told_in_the_session() {
    let mut bench = bench();
    let a = bench.client(&json!({"notices":true}));
    let left_out = |bench: &mut Bench, request: &Value| {
        let servers =
            vec![LeftOut { server: "files".to_owned(), reason: "no variable `T`".to_owned() }];
        let request = Id::from_value(&request["id"]).expect("an id");
        bench.feed(Input::Host(bench.host(), HostEvent::ServersLeftOut { request, servers }));
    };
    let expected = "the MCP server `files` of the configuration was left out: no variable `T`";
    let params = json!({"cwd":W,"mcpServers":[]});
    bench.say(a, &json!({"id":1,"method":"session/new","params":params}));
    let request = bench.heard_one("session/new");
    left_out(&mut bench, &request);
    assert_eq!(notices(&bench.got(a)), Vec::<&str>::new(), "there is no session yet");
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    assert_eq!(notices(&bench.got(a)), [NO_SSE, expected]);
    left_out(&mut bench, &request);
    assert_eq!(notices(&bench.got(a)), Vec::<&str>::new(), "it is answered");

    bench.agent_dies();
    bench.pass(1_000);
    let request = bench.heard_one("session/new");
    left_out(&mut bench, &request);
    assert_eq!(notices(&bench.got(a)), [expected]);
}

#[test]
fn a_daemon_that_dies_before_there_is_a_session_leaves_the_next_one_to_tell() {
    let mut bench = bench();
    bench.shims = true;
    let a = bench.client(&json!({"client":{"token":"token-of-an-editor"}}));
    let params = json!({"cwd":W,"mcpServers":[]});
    bench.say(a, &json!({"id":1,"method":"session/new","params":params}));
    let request = bench.heard_one("session/new");
    let servers =
        vec![LeftOut { server: "files".to_owned(), reason: "no variable `T`".to_owned() }];
    let id = Id::from_value(&request["id"]).expect("an id");
    bench.feed(Input::Host(bench.host(), HostEvent::ServersLeftOut { request: id, servers }));
    bench.reboot();
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    let expected = "the MCP server `files` of the configuration was left out: no variable `T`";
    let lines = bench.journal.values().next().expect("a session");
    let lines: Vec<Value> =
        lines.iter().map(|row| serde_json::from_slice(&row.line).expect("JSON")).collect();
    assert_eq!(notices(&lines), [NO_SSE, expected]);
}

#[test]
fn people_see_which_servers_an_agent_gets() {
    let mut bench = bench();
    let a = bench.plain();
    bench.say(a, &json!({"id":1,"method":"_acpd/agent/show","params":{"agent":AGENT}}));
    let shown = bench.got(a)[0]["result"]["mcp"].clone();
    let expected = json!([
        {"name":"files","type":"stdio"},
        {"name":"web","type":"http","workspace":[W]},
        {"name":"events","type":"sse",
            "leftOut":"agent `gem` does not take servers of type `sse`"},
        {"name":"elsewhere","type":"stdio","workspace":[ELSEWHERE]},
    ]);
    assert_eq!(shown, expected);
}

#[test]
fn only_lines_that_acpd_makes_bring_servers() {
    let line = |method: &str| {
        let text = format!(
            r#"{{"_acpd":{{"mcp":["a"]}},"jsonrpc":"2.0","id":7,"method":"{method}","params":{{}}}}"#
        );
        Bytes::from(text)
    };
    let named = take_names(&line("session/load")).expect("names");
    assert_eq!((named.names, named.request), (vec!["a".to_owned()], Id::from(7)));
    let bare = r#"{"jsonrpc":"2.0","id":7,"method":"session/load","params":{}}"#;
    assert_eq!(named.line, bare);
    assert_eq!(take_names(&named.line), None);
    // A client may write such a member; its lines of these methods are never passed on as they are.
    assert_eq!(take_names(&line("_other/thing")), None);
}

#[test]
fn who_opens_a_session_that_rests_brings_its_servers_up_to_date_and_who_comes_later_is_told() {
    let mut bench = Bench::with(|_| {});
    bench.capabilities = Some(json!({"loadSession":true}));
    let editor = |port: u16| json!({"type":"http","name":"ide","url":format!("http://[::1]:{port}"),"headers":[]});
    let tools = json!({"name":"tools","command":"tools","args":[],"env":[]});
    let more = json!({"name":"more","command":"more","args":[],"env":[]});
    let a = bench.plain();
    let params = json!({"cwd":"/w","mcpServers":[editor(1), tools]});
    bench.say(a, &json!({"id":1,"method":"session/new","params":params}));
    bench.answers("session/new", &json!({"sessionId":"t"}));
    bench.prompt(a, &json!(2), "t", "go");
    let prompt = bench.heard_one("session/prompt");
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    bench.got(a);

    let open = |id: u64, servers: Value| {
        let params = json!({"sessionId":"t","cwd":"/w","mcpServers":servers});
        json!({"id":id,"method":"session/resume","params":params})
    };
    let b = bench.plain();
    bench.say(b, &open(1, json!([editor(2), tools, more])));
    let ignored = &bench.got(b)[0]["result"]["_meta"]["_acpd"]["ignoredMcpServers"];
    assert_eq!(*ignored, json!(["ide", "more"]), "the agent has the session already");
    bench.say(b, &open(2, json!([editor(1)])));
    assert_eq!(bench.got(b)[0]["result"].get("_meta"), None, "nothing was ignored");

    bench.agent_dies();
    bench.say(b, &open(3, json!([more, editor(2)])));
    assert_eq!(bench.got(b).last().expect("an answer")["result"].get("_meta"), None);
    bench.pass(1_000);
    let load = bench.heard_one("session/load");
    assert_eq!(load["params"]["mcpServers"], json!([editor(2), tools, more]));
    bench.reboot();
    let c = bench.plain();
    bench.prompt(c, &json!(4), "t", "and now?");
    bench.agent_dies();
    let load = bench.heard_one("session/load");
    assert_eq!(load["params"]["mcpServers"], json!([editor(2), tools, more]), "it is on disk");
}

#[test]
fn a_program_under_an_agent_gives_no_session_servers() {
    let (mut bench, _) = Bench::used_and_loadable();
    bench.agent_dies();
    let tool = acpd_core::ids::ClientId(77);
    bench.feed(Input::Client(tool, ClientEvent::Opened(ClientOrigin::Agent(None))));
    bench.say(tool, &json!({"id":0,"method":"initialize","params":{"protocolVersion":1}}));
    let server = json!({"name":"evil","command":"evil","args":[],"env":[]});
    let params = json!({"sessionId":"s","cwd":"/w","mcpServers":[server]});
    bench.say(tool, &json!({"id":1,"method":"session/load","params":params}));
    bench.pass(1_000);
    let load = bench.heard_one("session/load");
    assert_eq!(load["params"]["mcpServers"], json!([]));
}
