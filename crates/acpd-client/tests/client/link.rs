//! Links to a daemon that a thread of the test plays, and that goes away and comes back.

use std::io::Write as _;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use acpd_client::{
    ConnectError, LinkError, LinkEvent, LinkReader, LinkWriter, PATIENCE, connect_lasting,
};
use acpd_sys::socket::{Listener, clear_stale_socket};
use bytes::Bytes;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Stream, accept, listen, options, paths, read, welcome, write};

/// A link to a daemon that the test plays, and its socket.
fn linked(patience: Duration) -> (TempDir, Listener, LinkReader, LinkWriter) {
    let home = tempfile::tempdir().unwrap();
    let options = options(home.path());
    let listener = listen(home.path());
    let (reader, writer) = connect_lasting(&options, patience).unwrap().split().unwrap();
    (home, listener, reader, writer)
}

/// Like [`linked`], after the daemon has answered `initialize`.
fn greeted(patience: Duration) -> (TempDir, Listener, LinkReader, LinkWriter, Stream) {
    let (home, listener, mut reader, writer) = linked(patience);
    writer.send(hello()).unwrap();
    let mut daemon = accept(&listener);
    welcome(&mut daemon, 0);
    next(&mut reader);
    (home, listener, reader, writer, daemon)
}

fn line(value: &Value) -> Bytes {
    value.to_string().into()
}

fn hello() -> Bytes {
    line(&json!({"id": 0, "method": "initialize", "params": {}}))
}

fn list() -> Bytes {
    line(&json!({"id": 1, "method": "session/list"}))
}

/// The next line; what is said about the connection before it is skipped.
fn next(reader: &mut LinkReader) -> Value {
    loop {
        match reader.recv().unwrap() {
            LinkEvent::Line(line) => return serde_json::from_slice(&line).unwrap(),
            LinkEvent::Reconnecting | LinkEvent::Resumed => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_daemon_that_a_person_stopped_is_not_started_by_links() {
    let goodbye = json!({"method": "_acpd/daemon/stopped", "params": {}});
    // A link that watches waits for the next daemon, even with a request.
    let (home, listener, mut reader, writer) = linked(PATIENCE);
    writer.send(line(&json!({"id": 1, "method": "_acpd/watch"}))).unwrap();
    let mut daemon = accept(&listener);
    read(&mut daemon);
    write(&mut daemon, &goodbye);
    drop((daemon, listener));
    clear_stale_socket(&paths(home.path()).socket()).unwrap();
    assert_eq!(reader.recv().unwrap(), LinkEvent::Stopped);
    writer.send(line(&json!({"id": 2, "method": "_acpd/usage"}))).unwrap();
    // The one that ends may take a connection once more.
    let listener = listen(home.path());
    let ends = thread::spawn(move || drop(accept(&listener)));
    assert_eq!(reader.recv().unwrap(), LinkEvent::Resumed);
    ends.join().unwrap();
    clear_stale_socket(&paths(home.path()).socket()).unwrap();
    assert_eq!(reader.recv().unwrap(), LinkEvent::Stopped);
    let listener = listen(home.path());
    let daemon = thread::spawn(move || accept(&listener));
    assert_eq!(reader.recv().unwrap(), LinkEvent::Resumed);
    writer.send(line(&json!({"id": 3, "method": "_acpd/watch"}))).unwrap();
    assert_eq!(read(&mut daemon.join().unwrap())["id"], 3, "what nobody heard is not said later");

    // One with something to take up again has lost it.
    let (_home, listener, mut reader, _writer, mut daemon) = greeted(PATIENCE);
    write(&mut daemon, &goodbye);
    drop((daemon, listener));
    let error = reader.recv().unwrap_err();
    assert!(matches!(error, LinkError::Stopped), "{error:?}");
    assert_eq!(error.hint().unwrap(), "start it with `acpctl daemon start`");
}

#[test]
fn what_is_sent_while_nobody_is_there_waits_and_then_blocks() {
    let (_home, listener, mut reader, writer, first) = greeted(PATIENCE);
    drop(first);
    assert_eq!(reader.recv().unwrap(), LinkEvent::Reconnecting);

    // One line of any length is taken; the next one has to wait for it.
    let big = line(&json!({"method": "big", "params": "x".repeat(9 << 20)}));
    writer.send(big.clone()).unwrap();
    let (sent, is_sent) = mpsc::channel();
    let other = writer.clone();
    let sender = thread::spawn(move || {
        other.send(line(&json!({"method": "next"}))).unwrap();
        sent.send(()).unwrap();
    });
    assert!(is_sent.try_recv().is_err());
    let daemon = thread::spawn(move || {
        let mut stream = accept(&listener);
        welcome(&mut stream, 0);
        (read(&mut stream)["method"].clone(), read(&mut stream)["method"].clone())
    });
    assert_eq!(reader.recv().unwrap(), LinkEvent::Resumed);
    is_sent.recv().unwrap();
    sender.join().unwrap();
    assert_eq!(daemon.join().unwrap(), (json!("big"), json!("next")));
}

#[test]
fn a_daemon_that_does_not_come_back_is_given_up_with_the_reason() {
    let (home, listener, mut reader, writer, mut daemon) = greeted(Duration::from_millis(1));
    writer.send(list()).unwrap();
    read(&mut daemon);
    drop((daemon, listener));
    clear_stale_socket(&paths(home.path()).socket()).unwrap();
    assert_eq!(reader.recv().unwrap(), LinkEvent::Reconnecting);
    let error = reader.recv().unwrap_err();
    let LinkError::GaveUp { source, .. } = &error else { panic!("{error:?}") };
    assert!(matches!(source, ConnectError::NotRunning), "{source:?}");
    assert_eq!(error.hint().unwrap(), "start it with `acpctl daemon start`");
    drop(reader);
    assert!(writer.send(hello()).is_err(), "nothing reads any longer");
}

#[test]
fn a_daemon_that_refuses_for_too_long_is_given_up_with_its_words() {
    let (_home, listener, mut reader, writer, daemon) = greeted(Duration::from_millis(500));
    drop(daemon);
    writer.send(list()).unwrap();
    // Ends with the link: until then every attempt is refused.
    thread::spawn(move || {
        loop {
            let mut stream = accept(&listener);
            let id = read(&mut stream)["id"].clone();
            let error = json!({"code": -32603, "message": "the disk is full"});
            let _ = writeln!(stream.get_mut(), "{}", json!({"id": id, "error": error}));
        }
    });
    assert_eq!(reader.recv().unwrap(), LinkEvent::Reconnecting);
    let error = reader.recv().unwrap_err();
    let LinkError::GaveUp { source, .. } = error else { panic!("{error:?}") };
    assert!(source.to_string().ends_with(": the disk is full"), "{source}");
}

#[test]
fn a_daemon_that_says_nothing_is_given_up_as_one_that_does_not_come_back() {
    let (_home, listener, mut reader, writer, mut first) = greeted(Duration::from_millis(1));
    writer.send(list()).unwrap();
    read(&mut first);
    drop(first);
    assert_eq!(reader.recv().unwrap(), LinkEvent::Reconnecting);
    // The daemon listens, but does not accept.
    let error = reader.recv().unwrap_err();
    let LinkError::GaveUp { source, .. } = error else { panic!("{error:?}") };
    assert!(matches!(source, ConnectError::NotAnswering(_)), "{source:?}");
    drop(listener);
}

#[test]
fn m9_why_the_connection_was_closed_is_the_error_of_a_link_that_ends() {
    let (_home, listener, mut reader, writer) = linked(PATIENCE);
    writer.send(list()).unwrap();
    let mut daemon = accept(&listener);
    read(&mut daemon);
    refuse(&mut daemon, "too_many", "no room");
    drop(daemon);
    let error = reader.recv().unwrap_err();
    assert!(matches!(&error, LinkError::Dismissed(_)), "{error:?}");
    assert_eq!((error.to_string().as_str(), error.hint().as_deref()), ("no room", Some("wait")));
}

#[test]
fn m9_a_link_that_waits_for_nothing_comes_back_when_it_was_closed_to_make_room() {
    let (_home, listener, mut reader, writer) = linked(PATIENCE);
    refuse(&mut accept(&listener), "too_many", "no room");
    assert_eq!(reader.recv().unwrap(), LinkEvent::Reconnecting);
    writer.send(list()).unwrap();
    let daemon = thread::spawn(move || {
        let mut stream = accept(&listener);
        let asked = read(&mut stream);
        write(&mut stream, &json!({"id": asked["id"], "result": {}}));
        // A client that waits for something when that happens gets the error.
        read(&mut stream);
        refuse(&mut stream, "too_many", "no room");
    });
    while !matches!(reader.recv().unwrap(), LinkEvent::Line(_)) {}
    writer.send(list()).unwrap();
    let error = reader.recv().unwrap_err();
    assert!(matches!(&error, LinkError::Dismissed(_)), "{error:?}");
    daemon.join().unwrap();
}

#[test]
fn l16_a_link_to_a_daemon_that_never_says_a_word_ends_and_one_that_waits_for_an_agent_does_not() {
    let home = tempfile::tempdir().unwrap();
    let options = options(home.path());
    let listener = listen(home.path());
    let (mut reader, writer) = connect_lasting(&options, PATIENCE).unwrap().split().unwrap();
    writer.send(hello()).unwrap();
    let daemon = thread::spawn(move || {
        let mut stream = accept(&listener);
        let initialize = read(&mut stream);
        let mut beside = accept(&listener);
        assert_eq!(read(&mut beside)["method"], "_acpd/ping");
        write(&mut beside, &json!({"id": 1, "result": {}}));
        write(&mut stream, &json!({"id": initialize["id"], "result": {}}));
        (listener, stream)
    });
    assert_eq!(next(&mut reader)["result"], json!({}));
    let (_listener, _stream) = daemon.join().unwrap();

    let (mut reader, writer) = connect_lasting(&options, PATIENCE).unwrap().split().unwrap();
    writer.send(hello()).unwrap();
    let error = reader.recv().unwrap_err();
    assert!(matches!(error, LinkError::NotAnswering(_)), "{error:?}");
}

#[test]
fn l10_a_link_whose_token_another_connection_has_does_not_come_back() {
    let (_home, _listener, mut reader, _writer, mut daemon) = greeted(PATIENCE);
    refuse(&mut daemon, "replaced", "another one has it");
    drop(daemon);
    let error = reader.recv().unwrap_err();
    assert!(matches!(&error, LinkError::Dismissed(_)), "{error:?}");
}

/// acpd's last word to a connection that it closes.
fn refuse(daemon: &mut Stream, reason: &str, message: &str) {
    let data = json!({"_acpd": {"reason": reason, "hint": "wait"}});
    let error = json!({"code": -32603, "message": message, "data": data});
    write(daemon, &json!({"id": null, "error": error}));
}

#[test]
fn who_waits_for_nothing_waits_for_ever_until_there_is_something_to_wait_for() {
    let (_home, listener, mut reader, writer, daemon) = greeted(Duration::from_millis(1));
    drop(daemon);
    assert_eq!(reader.recv().unwrap(), LinkEvent::Reconnecting);
    // The patience of the link passes many times.
    let (done, is_done) = mpsc::channel();
    let reads = thread::spawn(move || done.send(reader.recv()).unwrap());
    for _ in 0..4 {
        drop(accept(&listener));
    }
    assert!(is_done.try_recv().is_err());
    writer.send(list()).unwrap();
    // Ends with the tests.
    thread::spawn(move || {
        loop {
            drop(accept(&listener));
        }
    });
    let error = is_done.recv().unwrap().unwrap_err();
    assert!(matches!(error, LinkError::GaveUp { .. }), "{error:?}");
    reads.join().unwrap();
}

#[test]
fn a_link_that_is_left_says_so_with_its_last_line() {
    let (_home, _listener, mut reader, writer, mut daemon) = greeted(PATIENCE);
    writer.send(list()).unwrap();
    writer.leave();
    writer.send(list()).unwrap();
    writer.flush(Duration::from_mins(1));
    assert_eq!(read(&mut daemon)["method"], "session/list");
    assert_eq!(read(&mut daemon)["method"], "_acpd/client/leave");
    drop(daemon);
    assert!(matches!(reader.recv(), Err(LinkError::Closed)));
}

#[test]
fn a_link_that_ends_before_initialize_does_not_connect_again() {
    let (_home, listener, mut reader, writer) = linked(PATIENCE);
    let daemon = accept(&listener);
    writer.end();
    assert!(matches!(reader.recv(), Err(LinkError::Closed)));
    drop(daemon);
}

#[test]
fn both_directions_may_be_full_at_once() {
    const SIZE: usize = 4 << 20;
    let (_home, listener, mut reader, writer) = linked(PATIENCE);
    writer.send(hello()).unwrap();
    // Writes before it reads, as a daemon never would.
    let daemon = thread::spawn(move || {
        let mut stream = accept(&listener);
        welcome(&mut stream, 0);
        let long = json!({"method": "down", "params": "x".repeat(SIZE)});
        write(&mut stream, &long);
        read(&mut stream)["method"].clone()
    });
    next(&mut reader);
    writer.send(line(&json!({"method": "up", "params": "x".repeat(SIZE)}))).unwrap();
    assert_eq!(next(&mut reader)["method"], "down");
    assert_eq!(daemon.join().unwrap(), "up");
    writer.flush(Duration::from_mins(1));
}
