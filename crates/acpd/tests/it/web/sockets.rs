//! Lines over a socket, and ends of it.

use acpd_test::harness::{exists, kill9, signal, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tungstenite::Message;
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{Data as OpData, OpCode};

use super::{Web, token};
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
    let mut socket = web.program(&program);
    let part = "x".repeat(8 << 20);
    let kinds = [OpData::Text].into_iter().chain(std::iter::repeat(OpData::Continue));
    for kind in kinds.take(5) {
        let frame = Frame::message(part.clone(), OpCode::Data(kind), false);
        if socket.inner.send(Message::Frame(frame)).is_err() {
            break;
        }
    }
    assert_eq!(socket.closed().0, 1009, "frames of one message have a bound together");
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
fn what_a_token_is_not_for_is_refused_with_the_reason() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let mut socket = web.program(&token(&env, "watcher", "watch"));
    socket.initialize(json!({"agent": "echo", "notices": true}));
    for method in ["session/prompt", "_acpd/interaction/answer", "_acpd/daemon/stop", "made/up"] {
        let error = socket.call(method, json!({"sessionId": "x"})).expect_err(method);
        assert_eq!(error["data"]["_acpd"]["reason"], "out_of_scope", "{method}: {error}");
        assert!(error["data"]["_acpd"]["hint"].is_string());
    }
    socket.call("_acpd/session/list", json!({})).unwrap();
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
}
