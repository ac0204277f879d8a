//! Connections to a daemon that a thread of the test plays.

use std::io::{BufRead as _, Write as _};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use acpd_api::{ClientMeta, Empty, method};
use acpd_client::{
    CallError, ConnectError, Connection, LinkError, LinkEvent, PATIENCE, connect, connect_lasting,
};
use acpd_sys::socket::{Listener, clear_stale_socket};
use serde_json::{Value, json};

use crate::support::{Stream, accept, listen, options, paths, read, welcome, write};

/// A daemon that serves one connection with `serve`, and the connection to it.
fn connected<T: Send + 'static>(
    serve: impl FnOnce(Stream) -> T + Send + 'static,
) -> (tempfile::TempDir, Connection, JoinHandle<T>) {
    let home = tempfile::tempdir().unwrap();
    let options = options(home.path());
    let listener = listen(home.path());
    let server = thread::spawn(move || serve(accept(&listener)));
    let connection = connect(&options).unwrap();
    (home, connection, server)
}

#[test]
fn call_returns_its_own_answer_and_keeps_later_lines() {
    let (_home, mut connection, server) = connected(|mut stream| {
        let request = read(&mut stream);
        assert_eq!(request["method"], method::STATUS);
        write(&mut stream, &json!({"jsonrpc": "2.0", "method": "first"}));
        write(&mut stream, &json!({"jsonrpc": "2.0", "id": "1", "result": "not this one"}));
        write(&mut stream, &json!({"jsonrpc": "2.0", "id": request["id"], "result": [1, 2]}));
        write(&mut stream, &json!({"jsonrpc": "2.0", "method": "last"}));
    });
    let result: Vec<u32> = connection.call(method::STATUS, &Empty {}).unwrap();
    assert_eq!(result, [1, 2]);
    server.join().unwrap();

    let last = LinkEvent::Line(json!({"jsonrpc": "2.0", "method": "last"}).to_string().into());
    assert_eq!(connection.reader.recv().unwrap(), last);
    assert!(matches!(connection.reader.recv(), Err(LinkError::Closed)));
}

#[test]
fn initialize_carries_what_the_client_wants_of_acpd() {
    let (_home, mut connection, server) = connected(|mut stream| {
        let request = read(&mut stream);
        write(&mut stream, &json!({"jsonrpc": "2.0", "id": request["id"], "result": {"ok": 1}}));
        request
    });
    let meta = ClientMeta { agent: Some("demo".into()), seq: true, ..ClientMeta::default() };
    assert_eq!(connection.initialize(&meta, "test").unwrap().get(), r#"{"ok":1}"#);
    let request = server.join().unwrap();
    assert_eq!(request["params"]["protocolVersion"], 1);
    assert_eq!(request["params"]["clientInfo"]["name"], "test");
    assert_eq!(
        request["params"]["_meta"]["_acpd"],
        json!({"agent": "demo", "notices": false, "seq": true})
    );
}

#[test]
fn errors_and_ends_are_told_apart() {
    let (_home, mut connection, server) = connected(|mut stream| {
        let id = read(&mut stream)["id"].clone();
        let error = json!({"code": -32603, "message": "no such session",
            "data": {"_acpd": {"reason": "session_not_found"}}});
        write(&mut stream, &json!({"jsonrpc": "2.0", "id": id, "error": error}));
        let id = read(&mut stream)["id"].clone();
        write(&mut stream, &json!({"jsonrpc": "2.0", "id": id, "result": {"wrong": true}}));
        read(&mut stream);
    });
    let error = connection.call::<_, Value>("a", &Empty {}).unwrap_err();
    assert_eq!(error.to_string(), "no such session");
    assert_eq!(error.data().unwrap().reason, acpd_api::Reason::SessionNotFound);
    let error = connection.call::<_, Vec<u8>>("b", &Empty {}).unwrap_err();
    assert!(matches!(error, CallError::Unreadable { .. }), "{error:?}");
    let error = connection.call::<_, Value>("c", &Empty {}).unwrap_err();
    assert!(matches!(error, CallError::Ended(LinkError::Closed)), "{error:?}");
    server.join().unwrap();
}

#[test]
fn lines_of_seventy_megabytes_pass_both_ways() {
    const SIZE: usize = 70 << 20;
    let (_home, connection, server) = connected(|mut stream| {
        let mut line = Vec::new();
        stream.read_until(b'\n', &mut line).unwrap();
        stream.get_mut().write_all(&line).unwrap();
        line.len()
    });
    let (mut reader, writer) = connection.split().unwrap();
    writer.send(format!("\"{}\"", "x".repeat(SIZE)).into()).unwrap();
    let LinkEvent::Line(line) = reader.recv().unwrap() else { panic!("not a line") };
    assert_eq!(line.len(), SIZE + 2);
    assert!(matches!(reader.recv(), Err(LinkError::Closed)));
    assert_eq!(server.join().unwrap(), SIZE + 3);
}

#[test]
fn without_a_daemon_the_error_says_how_to_start_one() {
    let home = tempfile::tempdir().unwrap();
    let options = options(home.path());
    let error = connect(&options).unwrap_err();
    assert!(matches!(error, ConnectError::NotRunning), "{error:?}");
    assert!(error.hint().unwrap().contains("acpctl daemon start"));
    assert!(!paths(home.path()).runtime.exists(), "looking must not create anything");

    drop(listen(home.path()));
    let error = connect(&options).unwrap_err();
    assert!(matches!(error, ConnectError::NotRunning), "a stale socket: {error:?}");
}

#[test]
fn m9_why_the_connection_was_closed_is_the_error_of_a_call() {
    let refusal = json!({"id": null, "error": {"code": -32603, "message": "no room", "data":
        {"_acpd": {"reason": "too_many", "hint": "wait"}}}});
    let told = refusal.clone();
    let (home, mut connection, server) = connected(move |mut stream| {
        let first = read(&mut stream);
        write(&mut stream, &json!({"id": first["id"], "result": {}}));
        read(&mut stream);
        write(&mut stream, &told);
    });
    let _: Empty = connection.call(method::STATUS, &Empty {}).unwrap();
    let error = connection.call::<_, Value>(method::STATUS, &Empty {}).unwrap_err();
    assert!(matches!(&error, CallError::Ended(LinkError::Dismissed(_))), "{error:?}");
    assert_eq!(error.to_string(), "no room");
    assert_eq!(error.data().unwrap().hint, Some("wait".into()));
    server.join().unwrap();

    // One that never got an answer is made once more.
    let socket = paths(home.path()).socket();
    clear_stale_socket(&socket).unwrap();
    let listener = Listener::bind(&socket).unwrap();
    let mut connection = connect(&options(home.path())).unwrap();
    let server = thread::spawn(move || {
        let mut stream = accept(&listener);
        write(&mut stream, &refusal);
        drop(stream);
        let mut stream = accept(&listener);
        let request = read(&mut stream);
        write(&mut stream, &json!({"id": request["id"], "result": {"n": 1}}));
    });
    assert_eq!(connection.call::<_, Value>(method::STATUS, &Empty {}).unwrap(), json!({"n": 1}));
    server.join().unwrap();
}

#[test]
fn l16_a_late_answer_is_waited_for_as_long_as_the_daemon_is_there() {
    let home = tempfile::tempdir().unwrap();
    let options = options(home.path());
    let listener = listen(home.path());
    let mut connection = connect(&options).unwrap();
    let server = thread::spawn(move || {
        let mut stream = accept(&listener);
        let request = read(&mut stream);
        // The answer is late, so the client asks whether the daemon is there, and then asks nothing more.
        let mut beside = accept(&listener);
        let ping = read(&mut beside);
        assert_eq!(ping["method"], method::PING);
        write(&mut beside, &json!({"id": ping["id"], "result": {}}));
        write(&mut stream, &json!({"id": request["id"], "result": {"n": 1}}));
    });
    let answer: Value = connection.call(method::AGENT_START, &json!({"agent": "slow"})).unwrap();
    assert_eq!(answer, json!({"n": 1}));
    server.join().unwrap();
}

#[test]
fn l16_a_daemon_that_answers_nothing_is_told_with_its_process() {
    let home = tempfile::tempdir().unwrap();
    let options = options(home.path());
    acpd_sys::files::private_dir(&paths(home.path()).state).unwrap();
    let _lock = acpd_sys::lock::InstanceLock::acquire(&paths(home.path()).lock()).unwrap();
    // The listener accepts no connection.
    let _listener = listen(home.path());
    let error = connect(&options).unwrap().call::<_, Value>(method::STATUS, &Empty {}).unwrap_err();
    let CallError::Ended(LinkError::NotAnswering(silent)) = error else { panic!("{error:?}") };
    let own = std::process::id();
    assert_eq!(silent.to_string(), format!("acpd does not answer (pid {own}, running)"));
    let ending = acpd_sys::process::kill_command(own);
    assert!(silent.hint().contains(&ending) && silent.hint().contains("acpd.log"));
}

#[test]
fn lasting_connection_is_resumed_in_mid_call() {
    let home = tempfile::tempdir().unwrap();
    let options = options(home.path());
    let listener = listen(home.path());
    let server = thread::spawn(move || {
        let mut stream = accept(&listener);
        welcome(&mut stream, 0);
        assert_eq!(read(&mut stream)["method"], "a");
        drop(stream);
        let mut stream = accept(&listener);
        assert_eq!(welcome(&mut stream, 0)["open"], json!([2]));
        let again = read(&mut stream);
        write(&mut stream, &json!({"id": again["id"], "result": again["method"]}));
        assert_eq!(read(&mut stream)["method"], "_acpd/client/answered");
        assert_eq!(read(&mut stream)["method"], "_acpd/client/leave");
    });
    let mut connection = connect_lasting(&options, PATIENCE).unwrap();
    connection.initialize(&ClientMeta::default(), "test").unwrap();
    assert_eq!(connection.call::<_, Value>("a", &Empty {}).unwrap(), "a");
    connection.writer.end();
    server.join().unwrap();
    assert!(matches!(connection.reader.recv(), Err(LinkError::Closed)));
}

#[test]
fn recv_within_returns_in_time_while_daemon_is_away() {
    let home = tempfile::tempdir().unwrap();
    let options = options(home.path());
    let listener = listen(home.path());
    let mut connection = connect_lasting(&options, PATIENCE).unwrap();
    let mut daemon = accept(&listener);
    let brief = Duration::from_millis(1);
    assert_eq!(connection.reader.recv_within(brief).unwrap(), None);
    write(&mut daemon, &json!({"method": "m"}));
    let long = Duration::from_mins(1);
    assert!(matches!(connection.reader.recv_within(long).unwrap(), Some(LinkEvent::Line(_))));
    drop((daemon, listener));
    assert_eq!(connection.reader.recv_within(long).unwrap(), Some(LinkEvent::Reconnecting));
    clear_stale_socket(&paths(home.path()).socket()).unwrap();
    for _ in 0..3 {
        assert_eq!(connection.reader.recv_within(brief).unwrap(), None);
    }
    let listener = Listener::bind(&paths(home.path()).socket()).unwrap();
    assert_eq!(connection.reader.recv_within(long).unwrap(), Some(LinkEvent::Resumed));
    drop(accept(&listener));
}
