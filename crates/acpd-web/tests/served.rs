//! The server on every system, with clients at its sockets. The daemon is played: it says again what it hears.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use acpd_client::{Paths, Place};
use acpd_sys::socket::{Listener, Stream, hang_up};
use acpd_web::{Event, Limits, Options, Scopes};
use tempfile::TempDir;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::{Message, WebSocket};

/// Longer than any machine takes.
const DEADLINE: Duration = Duration::from_mins(1);

/// Longer than all tests take.
const HOUR: Duration = Duration::from_hours(1);

type Socket = WebSocket<TcpStream>;

/// A home with a daemon and a server, which end with the process.
struct Home {
    dir: TempDir,
    host: String,
}

impl Home {
    fn new() -> Home {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(&dir);
        let listener = Listener::bind(&paths.socket()).unwrap();
        thread::spawn(move || {
            loop {
                let stream = listener.accept_until(Instant::now() + HOUR).unwrap();
                thread::spawn(move || say_again(stream));
            }
        });
        let place = Place::Here(paths.clone());
        let options = Options {
            paths,
            daemon: acpd_client::Options { spawn: false, place },
            open: false,
            address: Ipv4Addr::LOCALHOST.into(),
            port: Some(0),
            tls: None,
            behind: None,
            limits: Limits::default(),
        };
        let (tell, told) = channel();
        thread::spawn(move || {
            let tell = move |event| {
                if let Event::Listening(invitation) = event {
                    tell.send(invitation.url).unwrap();
                }
            };
            acpd_web::serve(options, tell).unwrap();
        });
        let url = told.recv_timeout(DEADLINE).unwrap();
        let host = url.strip_prefix("http://").unwrap().split_once('/').unwrap().0.to_owned();
        Home { dir, host }
    }

    /// A socket of a program with a token of this name.
    fn socket(&self, name: &str) -> Socket {
        let token = acpd_web::new_token(&paths(&self.dir), name, Scopes::default()).unwrap();
        let mut request = format!("ws://{}/acp", self.host).into_client_request().unwrap();
        let bearer = format!("Bearer {}", token.reveal()).parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        tungstenite::client(request, stream).unwrap().0
    }
}

fn paths(dir: &TempDir) -> Paths {
    let at = |name| dir.path().join(name);
    Paths { runtime: at("r"), state: at("s"), config: at("c") }
}

/// Until it hears a goodbye.
fn say_again(stream: Stream) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).is_ok_and(|count| count > 0) {
        if line.contains("goodbye") {
            hang_up(stream.get_ref());
            return;
        }
        // The sender of the request may be gone.
        let _ = stream.get_mut().write_all(line.as_bytes());
        line.clear();
    }
}

fn ping(word: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"_acpd/ping","params":{{"word":"{word}"}}}}"#)
}

/// Says something, and hears it again.
fn echo(socket: &mut Socket, line: &str) {
    socket.send(Message::text(line)).unwrap();
    loop {
        match socket.read().unwrap() {
            Message::Text(heard) => return assert!(heard.as_str() == line),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// The code with which the server closes it.
fn closed(socket: &mut Socket) -> u16 {
    loop {
        match socket.read().unwrap() {
            Message::Close(Some(frame)) => return frame.code.into(),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn lines_pass_until_the_daemon_is_gone_or_the_token_is_taken_back() {
    let home = Home::new();
    let (mut left, mut revoked, mut other) =
        (home.socket("left"), home.socket("revoked"), home.socket("other"));
    for socket in [&mut left, &mut revoked, &mut other] {
        echo(socket, &ping("short"));
        echo(socket, &ping(&"long ".repeat(300_000)));
    }
    left.send(Message::text(ping("goodbye"))).unwrap();
    assert_eq!(closed(&mut left), 4001);
    // The server hears of it from what changes the file, which is usually another process.
    assert_eq!(acpd_web::revoke(&paths(&home.dir), "revoked").unwrap().len(), 1);
    assert_eq!(closed(&mut revoked), 4401);
    echo(&mut other, &ping("still here"));
}
