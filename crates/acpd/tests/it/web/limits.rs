//! How much the server takes and how long it waits, with smaller numbers than its own.

use std::io::{ErrorKind, Read as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use acpd_client::{Paths, Place};
use acpd_test::harness::TestEnv;
use acpd_web::{Event, Limits, Options, Scopes};
use serde_json::json;

use super::{Socket, connect};
use crate::{echo, home};

/// A server on a thread of the test, which ends with the test's process; its address and a token.
fn serve(env: &TestEnv, limits: Limits) -> (String, String) {
    env.acpctl(&["daemon", "start"]).success();
    let paths =
        Paths { runtime: env.path("run"), state: env.path("state"), config: env.path("config") };
    let token = acpd_web::new_token(&paths, "test", Scopes::default()).unwrap().reveal().to_owned();
    let address = Ipv4Addr::LOCALHOST.into();
    let place = Place::Here(paths.clone());
    let options = Options {
        paths,
        daemon: acpd_client::Options { spawn: false, place },
        open: false,
        address,
        port: Some(0),
        tls: None,
        behind: None,
        limits,
    };
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        acpd_web::serve(options, move |event| {
            if let Event::Listening(invitation) = event {
                tell.send(invitation.url).unwrap();
            }
        })
    });
    let url = told.recv().unwrap();
    let host = url.strip_prefix("http://").unwrap().split_once('/').unwrap().0.to_owned();
    (host, token)
}

fn open(host: &str, token: &str) -> Result<Socket, u16> {
    Socket::open(
        host,
        &format!("ws://{host}/acp"),
        &[("authorization", &format!("Bearer {token}"))],
    )
}

#[test]
fn a_client_that_is_silent_is_asked_and_then_left() {
    let env = home([echo()]);
    let (ping, silence) = (Duration::from_millis(50), Duration::from_secs(3));
    let (host, token) = serve(&env, Limits { ping, silence, ..Limits::default() });
    let mut alive = open(&host, &token).unwrap();
    let dead = open(&host, &token).unwrap();
    // One answers the questions, by reading them; the other one does not.
    let start = Instant::now();
    while start.elapsed() < silence + silence / 2 {
        if let tungstenite::Message::Ping(_) = alive.inner.read().unwrap() {
            alive.inner.flush().unwrap();
        }
    }
    alive.call("_acpd/ping", json!({})).unwrap();
    let mut bytes = Vec::new();
    dead.inner.into_inner().read_to_end(&mut bytes).expect("the end, without another word");
}

#[test]
fn there_are_so_many_sockets_and_connections() {
    let env = home([echo()]);
    let (host, token) = serve(&env, Limits { sockets: 1, connections: 2, ..Limits::default() });
    let mut first = open(&host, &token).unwrap();
    first.call("_acpd/ping", json!({})).unwrap();
    assert_eq!(open(&host, &token).unwrap_err(), 503);
    // Silent connections take the places, until the next one is closed at once.
    let mut idle = Vec::new();
    let is_refused = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let read = stream.read(&mut [0; 1]);
        !matches!(read, Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
    };
    let refused = (0..10).any(|_| {
        idle.push(connect(&host));
        is_refused(idle.last_mut().unwrap())
    });
    assert!(refused, "{} connections are open", idle.len());
    drop(first);
}

#[test]
fn a_request_whose_head_does_not_come_is_left() {
    let env = home([echo()]);
    let (host, _) = serve(&env, Limits { head: Duration::from_millis(100), ..Limits::default() });
    let mut stream = connect(&host);
    std::io::Write::write_all(&mut stream, b"GET / HTTP/1.1\r\nhost: ").unwrap();
    let mut bytes = Vec::new();
    // Hung up, or told that it took too long.
    let _ = stream.read_to_end(&mut bytes);
    assert!(!bytes.starts_with(b"HTTP/1.1 200"));
}
