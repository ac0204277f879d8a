//! Links to a daemon that a thread of the test plays, and that goes away and comes back.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use acpd_client::{ConnectError, Incoming, LinkError, LinkReader, Options, PATIENCE, link};
use acpd_sys::paths::Paths;
use bytes::Bytes;
use serde_json::{Value, json};

fn options(home: &Path) -> (Options, UnixListener) {
    let paths =
        Paths { runtime: home.join("run"), state: home.join("state"), config: home.join("config") };
    acpd_sys::dir::private_dir(&paths.runtime).unwrap();
    let listener = UnixListener::bind(paths.socket()).unwrap();
    (Options { spawn: false, paths }, listener)
}

fn accept(listener: &UnixListener) -> BufReader<UnixStream> {
    BufReader::new(listener.accept().unwrap().0)
}

fn read(stream: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Reads `initialize` and takes the client back; what it says that it has.
fn welcome(stream: &mut BufReader<UnixStream>, received: u64) -> Value {
    let initialize = read(stream);
    let meta = json!({"generation": "g", "received": received});
    let result = json!({"agentCapabilities": {"_meta": {"_acpd": meta}}});
    writeln!(stream.get_mut(), "{}", json!({"id": initialize["id"], "result": result})).unwrap();
    initialize["params"]["_meta"]["_acpd"]["client"]["resume"].clone()
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
            Incoming::Line(line) => return serde_json::from_slice(&line).unwrap(),
            Incoming::Lost | Incoming::Back => {}
            Incoming::Closed => panic!("closed"),
        }
    }
}

#[test]
fn the_user_is_told_that_the_daemon_went_and_came() {
    let home = tempfile::tempdir().unwrap();
    let (options, listener) = options(home.path());
    let (mut reader, writer) = link(options, PATIENCE).unwrap();
    assert!(writer.send(hello()));
    let daemon = thread::spawn(move || {
        welcome(&mut accept(&listener), 0);
        welcome(&mut accept(&listener), 0)
    });
    assert!(matches!(reader.recv().unwrap(), Incoming::Line(_)));
    assert_eq!(reader.recv().unwrap(), Incoming::Lost);
    assert_eq!(reader.recv().unwrap(), Incoming::Back);
    assert_eq!(daemon.join().unwrap()["generation"], "g");
}

#[test]
fn what_is_sent_while_nobody_is_there_waits_and_then_blocks() {
    let home = tempfile::tempdir().unwrap();
    let (options, listener) = options(home.path());
    let (mut reader, writer) = link(options, PATIENCE).unwrap();
    writer.send(hello());
    let mut first = accept(&listener);
    welcome(&mut first, 0);
    next(&mut reader);
    drop(first);
    assert_eq!(reader.recv().unwrap(), Incoming::Lost);

    // One line of any length is taken; the next one has to wait for it.
    let big = line(&json!({"method": "big", "params": "x".repeat(9 << 20)}));
    assert!(writer.send(big.clone()));
    let (sent, is_sent) = mpsc::channel();
    let other = writer.clone();
    let sender = thread::spawn(move || {
        other.send(line(&json!({"method": "next"})));
        sent.send(()).unwrap();
    });
    assert!(is_sent.try_recv().is_err());
    let daemon = thread::spawn(move || {
        let mut stream = accept(&listener);
        welcome(&mut stream, 0);
        (read(&mut stream)["method"].clone(), read(&mut stream)["method"].clone())
    });
    assert_eq!(reader.recv().unwrap(), Incoming::Back);
    is_sent.recv().unwrap();
    sender.join().unwrap();
    assert_eq!(daemon.join().unwrap(), (json!("big"), json!("next")));
}

#[test]
fn a_daemon_that_does_not_come_back_is_given_up_with_the_reason() {
    let home = tempfile::tempdir().unwrap();
    let (options, listener) = options(home.path());
    let socket = options.paths.socket();
    let (mut reader, writer) = link(options, Duration::from_millis(1)).unwrap();
    writer.send(hello());
    let mut daemon = accept(&listener);
    welcome(&mut daemon, 0);
    next(&mut reader);
    writer.send(list());
    read(&mut daemon);
    drop((daemon, listener));
    std::fs::remove_file(socket).unwrap();
    assert_eq!(reader.recv().unwrap(), Incoming::Lost);
    let error = reader.recv().unwrap_err();
    let LinkError::GaveUp { source, .. } = &error else { panic!("{error:?}") };
    assert!(matches!(source, ConnectError::NotRunning { .. }), "{source:?}");
    assert_eq!(error.hint().unwrap(), "start it with `acpctl daemon start`");
    drop(reader);
    assert!(!writer.send(hello()), "nobody reads any more");
}

#[test]
fn a_daemon_that_refuses_for_too_long_is_given_up_with_its_words() {
    let home = tempfile::tempdir().unwrap();
    let (options, listener) = options(home.path());
    let (mut reader, writer) = link(options, Duration::from_millis(500)).unwrap();
    writer.send(hello());
    welcome(&mut accept(&listener), 0);
    next(&mut reader);
    writer.send(list());
    // Ends with the link: until then every attempt is refused.
    thread::spawn(move || {
        loop {
            let mut stream = accept(&listener);
            let id = read(&mut stream)["id"].clone();
            let error = json!({"code": -32603, "message": "the disk is full"});
            let _ = writeln!(stream.get_mut(), "{}", json!({"id": id, "error": error}));
        }
    });
    assert_eq!(reader.recv().unwrap(), Incoming::Lost);
    let error = reader.recv().unwrap_err();
    let LinkError::GaveUp { source, .. } = error else { panic!("{error:?}") };
    assert!(source.to_string().ends_with(": the disk is full"), "{source}");
}

#[test]
fn a_daemon_that_says_nothing_is_given_up_as_one_that_does_not_come_back() {
    let home = tempfile::tempdir().unwrap();
    let (options, listener) = options(home.path());
    let (mut reader, writer) = link(options, Duration::from_millis(1)).unwrap();
    writer.send(hello());
    let mut first = accept(&listener);
    welcome(&mut first, 0);
    next(&mut reader);
    writer.send(list());
    read(&mut first);
    drop(first);
    assert_eq!(reader.recv().unwrap(), Incoming::Lost);
    // It listens, but nobody accepts.
    let error = reader.recv().unwrap_err();
    let LinkError::GaveUp { source, .. } = error else { panic!("{error:?}") };
    assert!(matches!(source, ConnectError::NotAnswering(_)), "{source:?}");
    drop(listener);
}

#[test]
fn m9_why_the_connection_was_closed_is_the_error_of_a_link_that_ends() {
    let home = tempfile::tempdir().unwrap();
    let (options, listener) = options(home.path());
    let (mut reader, writer) = link(options, PATIENCE).unwrap();
    writer.send(list());
    let mut daemon = accept(&listener);
    read(&mut daemon);
    refuse(&mut daemon, "too_many", "no room");
    drop(daemon);
    let error = reader.recv().unwrap_err();
    assert!(matches!(&error, LinkError::LetGo(_)), "{error:?}");
    assert_eq!((error.to_string().as_str(), error.hint().as_deref()), ("no room", Some("wait")));
}

#[test]
fn m9_a_link_that_waits_for_nothing_comes_back_when_it_was_closed_to_make_room() {
    let home = tempfile::tempdir().unwrap();
    let (options, listener) = options(home.path());
    let (mut reader, writer) = link(options, PATIENCE).unwrap();
    refuse(&mut accept(&listener), "too_many", "no room");
    assert_eq!(reader.recv().unwrap(), Incoming::Lost);
    writer.send(list());
    let daemon = thread::spawn(move || {
        let mut stream = accept(&listener);
        let asked = read(&mut stream);
        writeln!(stream.get_mut(), "{}", json!({"id": asked["id"], "result": {}})).unwrap();
        // Whoever waits for something when that happens is told.
        read(&mut stream);
        refuse(&mut stream, "too_many", "no room");
    });
    while !matches!(reader.recv().unwrap(), Incoming::Line(_)) {}
    writer.send(list());
    let error = reader.recv().unwrap_err();
    assert!(matches!(&error, LinkError::LetGo(_)), "{error:?}");
    daemon.join().unwrap();
}

#[test]
fn l16_a_link_to_a_daemon_that_never_says_a_word_ends_and_one_that_waits_for_an_agent_does_not() {
    let home = tempfile::tempdir().unwrap();
    let (options, listener) = options(home.path());
    let (mut reader, writer) = link(options.clone(), PATIENCE).unwrap();
    writer.send(hello());
    let daemon = thread::spawn(move || {
        let mut stream = accept(&listener);
        let initialize = read(&mut stream);
        let mut beside = accept(&listener);
        assert_eq!(read(&mut beside)["method"], "_acpd/ping");
        writeln!(beside.get_mut(), "{}", json!({"id": 1, "result": {}})).unwrap();
        writeln!(stream.get_mut(), "{}", json!({"id": initialize["id"], "result": {}})).unwrap();
        (listener, stream)
    });
    assert_eq!(next(&mut reader)["result"], json!({}));
    let (_listener, _stream) = daemon.join().unwrap();

    let (mut reader, writer) = link(options, PATIENCE).unwrap();
    writer.send(hello());
    let error = reader.recv().unwrap_err();
    assert!(matches!(error, LinkError::NotAnswering(_)), "{error:?}");
}

#[test]
fn l10_a_link_whose_token_another_connection_has_does_not_come_back() {
    let home = tempfile::tempdir().unwrap();
    let (options, listener) = options(home.path());
    let (mut reader, writer) = link(options, PATIENCE).unwrap();
    writer.send(hello());
    let mut daemon = accept(&listener);
    welcome(&mut daemon, 0);
    next(&mut reader);
    refuse(&mut daemon, "replaced", "another one has it");
    drop(daemon);
    let error = reader.recv().unwrap_err();
    assert!(matches!(&error, LinkError::LetGo(_)), "{error:?}");
}

/// acpd's last word to a connection that it closes.
fn refuse(daemon: &mut BufReader<UnixStream>, reason: &str, message: &str) {
    let data = json!({"_acpd": {"reason": reason, "hint": "wait"}});
    let error = json!({"code": -32603, "message": message, "data": data});
    writeln!(daemon.get_mut(), "{}", json!({"id": null, "error": error})).unwrap();
}

#[test]
fn who_waits_for_nothing_waits_for_ever_until_there_is_something_to_wait_for() {
    let home = tempfile::tempdir().unwrap();
    let (options, listener) = options(home.path());
    let (mut reader, writer) = link(options, Duration::from_millis(1)).unwrap();
    writer.send(hello());
    welcome(&mut accept(&listener), 0);
    next(&mut reader);
    assert_eq!(reader.recv().unwrap(), Incoming::Lost);
    // Its patience passes many times.
    let (done, is_done) = mpsc::channel();
    let reads = thread::spawn(move || done.send(reader.recv()).unwrap());
    for _ in 0..4 {
        drop(accept(&listener));
    }
    assert!(is_done.try_recv().is_err());
    writer.send(list());
    // Ends with the tests.
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            drop(stream);
        }
    });
    let error = is_done.recv().unwrap().unwrap_err();
    assert!(matches!(error, LinkError::GaveUp { .. }), "{error:?}");
    reads.join().unwrap();
}

#[test]
fn a_link_that_is_left_says_so_with_its_last_line() {
    let home = tempfile::tempdir().unwrap();
    let (options, listener) = options(home.path());
    let (mut reader, writer) = link(options, PATIENCE).unwrap();
    writer.send(hello());
    let mut daemon = accept(&listener);
    welcome(&mut daemon, 0);
    next(&mut reader);
    writer.send(list());
    writer.leave();
    writer.send(list());
    writer.flush(Duration::from_mins(1));
    assert_eq!(read(&mut daemon)["method"], "session/list");
    assert_eq!(read(&mut daemon)["method"], "_acpd/client/leave");
    drop(daemon);
    assert_eq!(reader.recv().unwrap(), Incoming::Closed);
}

#[test]
fn a_link_without_patience_ends_with_its_daemon() {
    let home = tempfile::tempdir().unwrap();
    let (options, listener) = options(home.path());
    let (mut reader, writer) = link(options, Duration::ZERO).unwrap();
    drop(accept(&listener));
    assert_eq!(reader.recv().unwrap(), Incoming::Closed);
    assert!(!writer.send(hello()));
}

#[test]
fn both_directions_may_be_full_at_once() {
    const SIZE: usize = 4 << 20;
    let home = tempfile::tempdir().unwrap();
    let (options, listener) = options(home.path());
    let (mut reader, writer) = link(options, PATIENCE).unwrap();
    writer.send(hello());
    // Writes before it reads, as a daemon never would.
    let daemon = thread::spawn(move || {
        let mut stream = accept(&listener);
        welcome(&mut stream, 0);
        let long = json!({"method": "down", "params": "x".repeat(SIZE)});
        writeln!(stream.get_mut(), "{long}").unwrap();
        read(&mut stream)["method"].clone()
    });
    next(&mut reader);
    writer.send(line(&json!({"method": "up", "params": "x".repeat(SIZE)})));
    assert_eq!(next(&mut reader)["method"], "down");
    assert_eq!(daemon.join().unwrap(), "up");
    writer.flush(Duration::from_mins(1));
}
