//! `acpctl web`: browsers and strangers at its door, by real programs.

mod doors;
mod limits;
mod push;
mod sockets;
mod tls;
mod worktrees;

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use acpd_test::harness::{DEADLINE, Running, TestEnv};
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::HeaderValue;
use tungstenite::{Message, WebSocket};

/// The server of a home. Ends with the test.
pub(crate) struct Web {
    running: Running,
    origin: String,
    host: String,
    /// The code that it printed.
    code: String,
}

impl Web {
    fn start(env: &TestEnv) -> Web {
        Web::start_with(env, &[])
    }

    /// With these options; the port is any free one.
    pub(crate) fn start_with(env: &TestEnv, options: &[&str]) -> Web {
        Web::of(env.spawn_acpctl(&[&["web", "--port", "0"], options].concat()))
    }

    /// One that has been started.
    fn of(mut running: Running) -> Web {
        running.wait_stderr("The code lets one browser in");
        let url = running.wait_stdout("\n");
        let (origin, code) = url.trim().split_once("/#code=").expect("an address with a code");
        let host = origin.split_once("://").expect("an address").1.to_owned();
        Web { running, origin: origin.to_owned(), host, code: code.to_owned() }
    }

    /// A request of the page itself.
    fn own(&self, line: &str) -> Request {
        self.bare(line).header("host", &self.host).header("origin", &self.origin)
    }

    /// A request without `Host` and `Origin`.
    fn bare(&self, line: &str) -> Request {
        Request {
            at: self.host.clone(),
            head: format!("{line} HTTP/1.1\r\nconnection: close\r\n"),
            body: String::new(),
        }
    }

    fn sign_in_with(&self, code: &str) -> Answer {
        self.own("POST /sign-in").json(&json!({"code": code})).send()
    }

    /// A browser that has used the code.
    pub(crate) fn sign_in(&self) -> Browser {
        let answer = self.sign_in_with(&self.code);
        assert_eq!(answer.status, 200, "{answer:?}");
        Browser::of(self, &answer)
    }

    /// A socket of a program with this token.
    fn program(&self, token: &str) -> Socket {
        let url = format!("ws://{}/acp?agent=echo", self.host);
        Socket::open(&self.host, &url, &[("authorization", &format!("Bearer {token}"))])
            .expect("a socket")
    }

    fn pid(&self) -> u32 {
        self.running.pid()
    }
}

/// State that a browser keeps.
pub(crate) struct Browser {
    host: String,
    origin: String,
    key: String,
    cookie: String,
}

impl Browser {
    fn of(web: &Web, answer: &Answer) -> Browser {
        let cookie = answer.header("set-cookie").expect("a cookie");
        let cookie = cookie.split(';').next().expect("a name and a value").to_owned();
        let key = answer.json()["key"].as_str().expect("a key").to_owned();
        Browser { host: web.host.clone(), origin: web.origin.clone(), key, cookie }
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.key)
    }

    /// `GET /me` as the page asks it: without `Origin`, as browsers do.
    fn me(&self, web: &Web) -> Answer {
        let request = web.bare("GET /me").header("host", &web.host).header("cookie", &self.cookie);
        request.header("authorization", &self.bearer()).send()
    }

    /// A socket as a page opens it.
    pub(crate) fn socket(&self) -> Result<Socket, u16> {
        let protocols = format!("acp.v1, bearer.{}", self.key);
        let url = format!("ws://{}/acp", self.host);
        let headers = [
            ("origin", &*self.origin),
            ("cookie", &self.cookie),
            ("sec-websocket-protocol", &protocols),
        ];
        Socket::open(&self.host, &url, &headers)
    }
}

/// A request that is being put together.
#[must_use]
struct Request {
    at: String,
    head: String,
    body: String,
}

impl Request {
    fn header(mut self, name: &str, value: &str) -> Request {
        write!(self.head, "{name}: {value}\r\n").expect("a string takes all");
        self
    }

    fn json(mut self, body: &Value) -> Request {
        self.body = body.to_string();
        let length = self.body.len().to_string();
        self.header("content-type", "application/json").header("content-length", &length)
    }

    fn send(self) -> Answer {
        let mut stream = connect(&self.at);
        stream.write_all(format!("{}\r\n{}", self.head, self.body).as_bytes()).expect("it reads");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(bytes[..end].to_vec()).expect("text");
        let mut lines = head.lines();
        let status =
            lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status");
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers =
            headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        Answer { status, headers, body: bytes[end + 4..].to_vec() }
    }
}

fn connect(at: &str) -> TcpStream {
    let stream = TcpStream::connect(at).expect("the server");
    stream.set_read_timeout(Some(DEADLINE)).expect("a limit");
    stream
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    /// The value of a header that is there once.
    fn header(&self, wanted: &str) -> Option<&str> {
        let values: Vec<&str> = self
            .headers
            .iter()
            .filter(|(name, _)| name == wanted)
            .map(|(_, value)| &**value)
            .collect();
        assert!(values.len() < 2, "{wanted} comes twice: {values:?}");
        values.first().copied()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A socket; everything that came on it is kept in its order.
#[derive(Debug)]
pub(crate) struct Socket<S = TcpStream> {
    inner: WebSocket<S>,
    last_id: u64,
    seen: Vec<Value>,
    from: usize,
}

impl Socket {
    /// The status that the server answers if there is no socket.
    fn open(at: &str, url: &str, headers: &[(&str, &str)]) -> Result<Socket, u16> {
        Socket::over(connect(at), url, headers)
    }
}

impl<S: std::io::Read + std::io::Write> Socket<S> {
    fn over(stream: S, url: &str, headers: &[(&str, &str)]) -> Result<Socket<S>, u16> {
        let mut request = url.into_client_request().expect("an address");
        for (name, value) in headers {
            let name = tungstenite::http::HeaderName::try_from(*name).expect("a name");
            request.headers_mut().insert(name, HeaderValue::from_str(value).expect("a value"));
        }
        let asked = request.headers().contains_key("sec-websocket-protocol");
        match tungstenite::client(request, stream) {
            Ok((inner, answer)) => {
                let protocol = answer.headers().get("sec-websocket-protocol");
                assert_eq!(protocol.is_some_and(|protocol| protocol == "acp.v1"), asked);
                Ok(Socket { inner, last_id: 0, seen: Vec::new(), from: 0 })
            }
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(answer))) => {
                Err(answer.status().as_u16())
            }
            Err(error) => panic!("no handshake: {error}"),
        }
    }

    fn send(&mut self, message: &Value) {
        self.inner.send(Message::text(message.to_string())).expect("the server reads");
    }

    fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The result or the error of a request.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        self.answer(id)
    }

    fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let is_it = |line: &Value| line["id"] == id && line.get("method").is_none();
        let at = self.find(0, is_it);
        match self.seen[at].get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(self.seen[at]["error"].clone()),
        }
    }

    /// The next line that fits, after the one that this gave last.
    fn next(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        self.from = self.find(self.from, fits) + 1;
        self.seen[self.from - 1].clone()
    }

    fn find(&mut self, from: usize, fits: impl Fn(&Value) -> bool) -> usize {
        if let Some(at) = self.seen[from..].iter().position(&fits) {
            return from + at;
        }
        loop {
            match self.inner.read().unwrap_or_else(|error| panic!("{error}: {:#?}", self.seen)) {
                Message::Text(text) => self.seen.push(serde_json::from_str(&text).expect("JSON")),
                Message::Close(frame) => panic!("closed with {frame:?}: {:#?}", self.seen),
                _ => continue,
            }
            if self.seen.last().is_some_and(&fits) {
                return self.seen.len() - 1;
            }
        }
    }

    /// `initialize` with these members in `_meta._acpd`.
    fn initialize(&mut self, meta: Value) -> Value {
        let params = json!({"protocolVersion": 1, "clientCapabilities": {}, "_meta": {"_acpd": meta},
            "clientInfo": {"name": "page", "version": "0"}});
        self.call("initialize", params).expect("an introduction")
    }

    fn new_session(&mut self, env: &TestEnv) -> String {
        let params =
            json!({"cwd": env.work("main"), "mcpServers": [], "_meta": {"_acpd": {"name": "fix"}}});
        let session = self.call("session/new", params).expect("a session");
        session["sessionId"].as_str().expect("an id").to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.request(
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}),
        )
    }

    /// The code and the reason with which the server closes it.
    fn closed(&mut self) -> (u16, String) {
        loop {
            match self.inner.read() {
                Ok(Message::Close(Some(frame))) => {
                    return (frame.code.into(), frame.reason.to_string());
                }
                Ok(Message::Text(_) | Message::Ping(_)) => {}
                other => panic!("not closed: {other:?}"),
            }
        }
    }
}

/// A token for a program with these scopes.
fn token(env: &TestEnv, name: &str, scopes: &str) -> String {
    let done = env.acpctl(&["web", "token", "new", name, "--scope", scopes]).success();
    done.stdout().trim().to_owned()
}
