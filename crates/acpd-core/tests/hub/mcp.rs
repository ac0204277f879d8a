//! MCP servers of the configuration: who gets which, and what is told of it.

use acp_wire::Id;
use acpd_api::McpKind;
use acpd_core::ids::ClientId;
use acpd_core::mcp::take_names;
use acpd_core::profile::{McpServer, Profile, Workspaces};
use acpd_core::{ClientEvent, ClientOrigin, HostEvent, Input, LeftOut};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::Bench;

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
    let capabilities = json!({"loadSession":true,"sessionCapabilities":{"resume":{}},
        "mcpCapabilities":{"http":true,"sse":false}});
    let mut bench = Bench::with(configured).with_capabilities(capabilities);
    bench.cwd = W;
    bench
}

pub(crate) fn notices(lines: &[Value]) -> Vec<&str> {
    let notices = lines.iter().filter(|line| line["method"] == "_acpd/notice");
    notices.map(|line| line["params"]["text"].as_str().expect("a text")).collect()
}

const NO_SSE: &str = "the MCP server `events` of the configuration was left out: agent `gem` does \
                      not take servers of type `sse`";
const NO_VARIABLE: &str =
    "the MCP server `files` of the configuration was left out: no variable `T`";

/// The daemon reports that it could not find out what a server of this request needs.
fn left_out(bench: &mut Bench, request: &Value) {
    let servers =
        vec![LeftOut { server: "files".to_owned(), reason: "no variable `T`".to_owned() }];
    let request = Id::from_value(&request["id"]).expect("an id");
    bench.feed_process(HostEvent::ServersLeftOut { request, servers });
}

/// A new session without servers of the client, as the agent is asked for it.
fn request_session(bench: &mut Bench, client: ClientId) -> Value {
    bench.relay(client, 1, "session/new", &json!({"cwd":W,"mcpServers":[]}))
}

#[test]
fn a_new_session_gets_the_servers_of_its_place_that_the_agent_can_use() {
    let (mut bench, a) = bench().with_client_of(&json!({"notices":true}));
    let own = json!([{"name":"mine","command":"mine","args":[],"env":[]}]);
    let params = json!({"cwd":W,"mcpServers":own});
    let request = bench.relay(a, 1, "session/new", &params);
    assert_eq!(request["_acpd"], json!({"mcp":["files","web"]}));
    assert_eq!(request["params"], params, "what the client gave stays as it is");
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    assert_eq!(notices(&bench.got(a)), [NO_SSE]);

    let params = json!({"cwd":ELSEWHERE.replace("**", "where"),"mcpServers":[]});
    let request = bench.relay(a, 2, "session/new", &params);
    assert_eq!(request["_acpd"], json!({"mcp":["files","elsewhere"]}));
}

#[test]
fn a_clients_server_of_the_same_name_wins() {
    let (mut bench, a) = bench().with_client();
    let own = json!([{"name":"files","command":"mine","args":[],"env":[]}, {"type":"sse","name":"events","url":"http://x","headers":[]}]);
    let params = json!({"cwd":W,"mcpServers":own});
    let request = bench.relay(a, 1, "session/new", &params);
    assert_eq!(request["_acpd"], json!({"mcp":["web"]}));
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    assert_eq!(notices(&bench.got(a)), Vec::<&str>::new());
}

#[test]
fn a_line_without_servers_of_the_configuration_is_as_it_ever_was() {
    let (mut bench, a) = Bench::new().with_client();
    assert_eq!(request_session(&mut bench, a).get("_acpd"), None);
}

#[test]
fn every_way_back_brings_the_servers_again() {
    let (mut bench, a) = bench().with_client_of(&json!({"notices":true}));
    bench.used_session(a, "s");
    bench.restart_agent();
    let names = json!({"mcp":["files","web"]});
    let resume = bench.heard_one("session/resume");
    assert_eq!(resume["_acpd"], names);
    bench.agent_refuses(&resume, -32601);
    let load = bench.heard_one("session/load");
    assert_eq!(load["_acpd"], names);
    bench.agent_answers(&load, &json!({}));
    assert_eq!(notices(&bench.got(a)), Vec::<&str>::new(), "it was told before");

    // A session without prompts is created again.
    let (mut bench, _) = self::bench().with_begun();
    bench.restart_agent();
    assert_eq!(bench.heard_one("session/new")["_acpd"], names);
}

#[test]
fn what_the_daemon_could_not_find_out_is_told_in_the_session() {
    let (mut bench, a) = bench().with_client_of(&json!({"notices":true}));
    let request = request_session(&mut bench, a);
    left_out(&mut bench, &request);
    assert_eq!(notices(&bench.got(a)), Vec::<&str>::new(), "there is no session yet");
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    assert_eq!(notices(&bench.got(a)), [NO_SSE, NO_VARIABLE]);
    left_out(&mut bench, &request);
    assert_eq!(notices(&bench.got(a)), Vec::<&str>::new(), "it is answered");

    let request = bench.restart_hearing("session/new");
    left_out(&mut bench, &request);
    assert_eq!(notices(&bench.got(a)), [NO_VARIABLE]);
}

#[test]
fn a_daemon_that_dies_before_there_is_a_session_leaves_the_next_one_to_tell() {
    let token = json!({"client":{"token":"token-of-an-editor"}});
    let (mut bench, a) = bench().with_client_of(&token);
    bench.shims = true;
    let request = request_session(&mut bench, a);
    left_out(&mut bench, &request);
    bench.reboot();
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    assert_eq!(notices(&bench.journal_lines()), [NO_SSE, NO_VARIABLE]);
}

#[test]
fn people_see_which_servers_an_agent_gets() {
    let expected = json!([
        {"name":"files","type":"stdio"},
        {"name":"web","type":"http","workspace":[W]},
        {"name":"events","type":"sse",
            "leftOut":"agent `gem` does not take servers of type `sse`"},
        {"name":"elsewhere","type":"stdio","workspace":[ELSEWHERE]},
    ]);
    let (mut bench, _) = bench().with_client();
    assert_eq!(bench.show_agent()["mcp"], expected);
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
    assert_eq!(named.line, r#"{"jsonrpc":"2.0","id":7,"method":"session/load","params":{}}"#);
    assert_eq!(take_names(&named.line), None);
    // A client may write such a member; its lines of these methods are never passed on as they are.
    assert_eq!(take_names(&line("_other/thing")), None);
}

#[test]
fn who_opens_a_session_that_rests_brings_its_servers_up_to_date_and_who_comes_later_is_told() {
    let (mut bench, a) = Bench::loadable().with_client();
    let editor = |port: u16| json!({"type":"http","name":"ide","url":format!("http://[::1]:{port}"),"headers":[]});
    let tools = json!({"name":"tools","command":"tools","args":[],"env":[]});
    let more = json!({"name":"more","command":"more","args":[],"env":[]});
    bench.session_of(a, "t", &json!({"cwd":"/w","mcpServers":[editor(1), tools]}));
    bench.run_turn(a, 2, "t", "go");
    bench.got(a);

    let b = bench.plain();
    let open = |bench: &mut Bench, servers: Value| {
        let params = json!({"sessionId":"t","cwd":"/w","mcpServers":servers});
        bench.ask(b, "open", "session/resume", &params);
        bench.answer(b, "open")["result"].take()
    };
    let opened = open(&mut bench, json!([editor(2), tools, more]));
    let ignored = &opened["_meta"]["_acpd"]["ignoredMcpServers"];
    assert_eq!(*ignored, json!(["ide", "more"]), "the agent has the session already");
    assert_eq!(open(&mut bench, json!([editor(1)])).get("_meta"), None, "nothing was ignored");

    bench.agent_dies();
    assert_eq!(open(&mut bench, json!([more, editor(2)])).get("_meta"), None);
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
    let tool = ClientId(77);
    bench.feed(Input::Client(tool, ClientEvent::Opened(ClientOrigin::Agent(None))));
    bench.ask(tool, 0, "initialize", &json!({"protocolVersion":1}));
    let server = json!({"name":"evil","command":"evil","args":[],"env":[]});
    bench.ask(tool, 1, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[server]}));
    bench.pass(1_000);
    assert_eq!(bench.heard_one("session/load")["params"]["mcpServers"], json!([]));
}
