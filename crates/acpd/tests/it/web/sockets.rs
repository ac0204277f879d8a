//! Lines over a socket, and ends of it.

use std::fs;

use acpd_test::harness::{exists, kill9, signal, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tungstenite::Message;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{Data as OpData, OpCode};

use super::{Socket, Web, connect, token};
use crate::{echo, home};

#[test]
fn a_browser_prompts_an_agent_and_answers_it_and_others_see_who_did() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let browser = web.sign_in();
    let mut socket = browser.socket().unwrap();
    socket.initialize(json!({"agent": "echo", "notices": true, "seq": true}));
    let session = socket.new_session(&env);
    let mut terminal = env.client("echo");
    terminal.attach("fix", Some(0));
    let turn = socket.prompt(&session, "say #one [ask]");
    let question = socket.next(|line| line["method"] == "session/request_permission");
    let yes = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
    socket.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": yes}));
    assert_eq!(socket.answer(turn).unwrap()["stopReason"], "end_turn");
    let answered = terminal.next_of("_acpd/answered");
    assert_eq!(answered["params"]["by"]["place"], "browser", "{answered}");
    assert_eq!(
        socket.call("_acpd/session/show", json!({"session": "fix"})).unwrap()["sessionId"],
        *session
    );
}

#[test]
fn a_line_is_a_frame_byte_for_byte() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let mut socket = web.program(&token(&env, "ide", "watch,prompt"));
    socket.send_text("{ \"id\" : \"a\\u0062\", \"method\":\"_acpd/ping\" , \"jsonrpc\":\"2.0\"}");
    let text = socket.inner.read().unwrap().into_text().unwrap();
    assert_eq!(text.as_str(), r#"{"jsonrpc":"2.0","id":"a\u0062","result":{}}"#);
    // The agent of a client that cannot say it is in the address.
    let hello =
        socket.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).unwrap();
    assert_eq!(hello["agentCapabilities"]["_meta"]["_acpd"]["agent"], "echo");
    // A line that is no message is answered as the daemon does.
    socket.send_text("[1]");
    let error = socket.next(|line| line["id"].is_null());
    assert_eq!(error["error"]["code"], -32600);
    assert_eq!(socket.call("_acpd/ping", json!({})).unwrap(), json!({}));
}

#[test]
fn what_is_no_line_closes_the_socket_with_the_reason() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let program = token(&env, "ide", "watch");
    for (frame, code) in [
        (Message::text("{}\n{}"), 1007),
        (Message::binary(&b"{}"[..]), 1003),
        (Message::text("x".repeat((32 << 20) + 1)), 1009),
    ] {
        let mut socket = web.program(&program);
        // The socket may be closed before all of it is sent.
        let _ = socket.inner.send(frame);
        let (closed, reason) = socket.closed();
        assert_eq!(closed, code, "{reason}");
        assert!(!reason.is_empty());
    }
}

#[test]
fn frames_of_one_message_have_a_bound_together() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let mut socket = web.program(&token(&env, "ide", "watch"));
    let part = "x".repeat(8 << 20);
    let kinds = [OpData::Text].into_iter().chain(std::iter::repeat(OpData::Continue));
    for kind in kinds.take(5) {
        let frame = Frame::message(part.clone(), OpCode::Data(kind), false);
        // The socket may be closed before all of it is sent.
        if socket.inner.send(Message::Frame(frame)).is_err() {
            break;
        }
    }
    let (closed, reason) = socket.closed();
    assert_eq!(closed, 1009, "{reason}");
}

#[test]
fn a_token_that_is_taken_back_closes_its_sockets_at_once_and_no_others() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let browser = web.sign_in();
    let program = token(&env, "ide", "watch");
    let (mut page, mut ide) = (browser.socket().unwrap(), web.program(&program));
    page.call("_acpd/ping", json!({})).unwrap();
    ide.call("_acpd/ping", json!({})).unwrap();
    let done = env.acpctl(&["web", "token", "revoke", "ide", "--json"]).success();
    let gone: Value = serde_json::from_str(done.stdout()).unwrap();
    assert_eq!(gone["revoked"][0]["name"], "ide");
    assert_eq!(ide.closed().0, 4401);
    env.acpctl(&["web", "token", "revoke", "ide"]).code(1).explains(&["no token `ide`"]);
    page.call("_acpd/ping", json!({})).unwrap();

    // Signing out is the same from the other side.
    let mut second = browser.socket().unwrap();
    second.call("_acpd/ping", json!({})).unwrap();
    let out = web.own("POST /sign-out").header("cookie", &browser.cookie);
    let out = out.header("authorization", &browser.bearer()).send();
    assert_eq!(out.status, 204);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!((page.closed().0, second.closed().0), (4401, 4401));
    assert_eq!(browser.me(&web).status, 401);
    assert_eq!(browser.socket().unwrap_err(), 401);
}

#[test]
fn what_a_token_is_not_for_is_refused_with_the_reason() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let mut owner = env.client("echo");
    let session = owner.new_session(&env.work("main"), Some("fix"));
    let mut socket = web.program(&token(&env, "watcher", "watch"));
    socket.initialize(json!({"agent": "echo", "notices": true}));
    let folder = env.work("main");
    let load = |servers: Value| json!({"sessionId": session, "cwd": folder, "mcpServers": servers});
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "say #one"}]});
    let show = json!({"session": "fix"});
    for (method, params) in [
        ("session/prompt", prompt.clone()),
        ("session/set_mode", json!({"sessionId": session, "modeId": "x"})),
        // A command that the agent would run.
        ("session/load", load(json!([{"name": "x", "command": "/bin/sh", "args": [], "env": []}]))),
        ("_acpd/interaction/answer", json!({"id": "1"})),
        ("_acpd/session/close", show.clone()),
        ("_acpd/daemon/stop", json!({})),
        ("_acpd/policy/list", json!({})),
        ("made/up", json!({})),
    ] {
        let error = socket.call(method, params).expect_err(method);
        assert_eq!(error["data"]["_acpd"]["reason"], "out_of_scope", "{method}: {error}");
        assert!(error["data"]["_acpd"]["hint"].is_string());
    }
    socket.call("session/load", load(json!([]))).unwrap();

    // The observer sees a question, and its answer does not count.
    let turn = owner.prompt(&session, "[ask]");
    let question = socket.next(|line| line["method"] == "session/request_permission");
    let yes = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
    socket.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": yes}));
    assert_eq!(socket.call("_acpd/session/show", show).unwrap()["turn"]["state"], "needs_action");
    let asked = owner.next_of("session/request_permission");
    owner.permit(&asked, "no");
    owner.answer(turn).unwrap();

    // Nor does an answer that is given beforehand by who may only prompt.
    let mut socket = web.program(&token(&env, "prompter", "prompt"));
    socket.initialize(json!({"agent": "echo"}));
    let mut beforehand = prompt;
    beforehand["_meta"] = json!({"_acpd": {"permissions": "allow"}});
    let error = socket.call("session/prompt", beforehand).unwrap_err();
    assert_eq!(error["data"]["_acpd"]["reason"], "out_of_scope");
    let turn = socket.prompt(&session, "say #two");
    assert_eq!(socket.answer(turn).unwrap()["stopReason"], "end_turn");
    env.connect().ok("_acpd/status", json!({}));
}

#[test]
fn a_daemon_that_dies_is_told_and_the_next_socket_starts_another_one() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let browser = web.sign_in();
    let mut socket = browser.socket().unwrap();
    socket.initialize(json!({"agent": "echo", "seq": true}));
    let session = socket.new_session(&env);
    let turn = socket.prompt(&session, "say #one");
    socket.answer(turn).unwrap();
    let daemon = env.daemon_pid();
    kill9(daemon);
    assert_eq!(socket.closed().0, 4001);
    // The daemon's connections may end before its socket does.
    until("its end", || (!exists(daemon)).then_some(()));

    let mut socket = browser.socket().unwrap();
    socket.initialize(json!({"agent": "echo", "seq": true}));
    let attach = json!({"ref": {"session": "fix"}, "after": 0});
    socket.call("_acpd/session/attach", attach).unwrap();
    let turn = socket.prompt(&session, "say #two");
    socket.answer(turn).unwrap();
    assert!(env.said("fix").contains("tags=one,two"), "{}", env.said("fix"));
}

#[test]
fn a_daemon_that_was_stopped_is_not_started_by_an_open_page() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let browser = web.sign_in();
    let mut socket = browser.socket().unwrap();
    socket.call("_acpd/ping", json!({})).unwrap();
    env.acpctl(&["daemon", "stop"]).success();
    assert_eq!(socket.closed().0, 4001);
    let (code, reason) = browser.socket().unwrap().closed();
    assert_eq!(code, 4001);
    assert!(
        reason.contains("acpd is not running; ") && reason.contains("acpctl daemon start"),
        "{reason}"
    );
    env.acpctl(&["daemon", "status"]).code(3);
    env.acpctl(&["daemon", "start"]).success();
    browser.socket().unwrap().call("_acpd/ping", json!({})).unwrap();
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody_and_misses_nothing() {
    // More than the system and the daemon keep for one client.
    const CHUNKS: usize = 200;
    let env = home([echo().unrecorded()]);
    let web = Web::start(&env);
    let mut slow = web.program(&token(&env, "slow", "watch"));
    slow.initialize(json!({"agent": "echo", "notices": true, "seq": true}));
    let mut fast = env.client("echo");
    let session = fast.new_session(&env.work("main"), Some("fix"));
    slow.call("_acpd/session/attach", json!({"ref": {"session": "fix"}, "after": 0})).unwrap();
    let before = acpd_test::harness::rss(web.pid());
    let turn = fast.prompt(&session, &"[big 100000] ".repeat(CHUNKS));
    fast.answer(turn).unwrap();
    // One line and what the system buffers, not the whole turn.
    let after = acpd_test::harness::rss(web.pid());
    assert!(after < before + (8 << 20), "the server grew from {before} to {after}");
    let last = env.journal("fix").last().unwrap().0;
    let mut expected = 1;
    while expected <= last {
        let line = slow.inner.read().unwrap();
        let Ok(line) = serde_json::from_slice::<Value>(&line.into_data()) else { continue };
        let seq = line["params"]["_meta"]["_acpd"]["seq"].as_u64();
        if seq.is_some() {
            assert_eq!(seq, Some(expected), "no gap and no double");
            expected += 1;
        }
    }
}

#[test]
fn a_server_that_ends_says_so_and_its_tokens_stay() {
    let env = home([echo()]);
    let mut web = Web::start(&env);
    let browser = web.sign_in();
    let mut socket = browser.socket().unwrap();
    socket.call("_acpd/ping", json!({})).unwrap();
    signal(web.pid(), Signal::SIGTERM);
    assert_eq!(socket.closed().0, 1001);
    drop(socket);
    until("the server to end", || (!acpd_test::harness::exists(web.pid())).then_some(()));
    let port = web.host.split_once(':').unwrap().1.to_owned();
    let again = Web::start_with(&env, &[]);
    web.running.kill();
    // The cookie has the port in its name.
    let cookie = browser.cookie.replace(&port, again.host.split_once(':').unwrap().1);
    let me =
        again.own("GET /me").header("cookie", &cookie).header("authorization", &browser.bearer());
    assert_eq!(me.send().status, 200);
}

#[test]
fn a_file_of_tokens_that_is_broken_lets_nobody_in() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let browser = web.sign_in();
    let mut socket = browser.socket().unwrap();
    socket.call("_acpd/ping", json!({})).unwrap();
    fs::write(env.path("state").join("web/tokens.json"), "{").unwrap();
    assert_eq!(browser.me(&web).status, 500);
    assert_eq!(browser.socket().unwrap_err(), 500);
    env.acpctl(&["web", "token", "list"]).code(1).explains(&["tokens.json", "sign in again"]);
    signal(web.pid(), Signal::SIGUSR1);
    assert_eq!(socket.closed().0, 4401);
}

/// A socket that a page opens has no other headers than these.
#[test]
fn a_second_protocol_is_not_answered() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let token = token(&env, "ide", "watch");
    let headers = [
        ("authorization", &*format!("Bearer {token}")),
        ("sec-websocket-protocol", "acp.v1, other"),
    ];
    Socket::open(&web.host, &format!("ws://{}/acp", web.host), &headers).unwrap();
}

#[test]
fn the_transport_is_websocket_alone_and_says_so() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let token = token(&env, "ide", "watch,prompt");
    let bearer = format!("Bearer {token}");
    let ask = |method: &str| {
        let request = web.bare(&format!("{method} /acp")).header("host", &web.host);
        request.header("authorization", &bearer)
    };
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let stream = ask("GET").header("accept", "text/event-stream").send();
    let (posted, deleted) = (ask("POST").json(&initialize).send(), ask("DELETE").send());
    for (answer, status, allow) in
        [(&stream, 426, None), (&posted, 405, Some("GET")), (&deleted, 405, Some("GET"))]
    {
        assert_eq!((answer.status, answer.header("allow")), (status, allow), "{answer:?}");
        assert_eq!(answer.header("upgrade"), Some("websocket"));
        let told = json!({"error": "this address is for WebSockets alone", "hint": "connect with a WebSocket"});
        assert_eq!(answer.json(), told);
    }
    // The answer to an upgrade names the connection.
    let id = || {
        let mut request = format!("ws://{}/acp", web.host).into_client_request().unwrap();
        request.headers_mut().insert("authorization", bearer.parse().unwrap());
        let (_socket, answer) = tungstenite::client(request, connect(&web.host)).unwrap();
        answer.headers()["acp-connection-id"].to_str().unwrap().to_owned()
    };
    let (one, other) = (id(), id());
    assert_eq!(one.len(), 32);
    assert_ne!(one, other);
}
