//! A browser that wants to be told of things: what its push service gets, and what is kept.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use acpd_test::harness::{DEADLINE, Running, TestEnv, until};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::agreement::{ECDH_P256, EphemeralPrivateKey};
use ring::rand::SystemRandom;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::{Answer, Browser, Web};
use crate::{echo, home};

/// A request that a push service got.
#[derive(Debug)]
struct Sent {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Sent {
    fn header(&self, wanted: &str) -> &str {
        let found = self.headers.iter().find(|(name, _)| name == wanted);
        found.map_or("", |(_, value)| value)
    }
}

/// A push service: takes what is sent to it, and knows of no browser at `/gone`. Its certificate is in `push.pem`.
fn push_service(env: &TestEnv) -> (String, Receiver<Sent>) {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(env.path("push.pem"), own.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let (listener, config) = (TcpListener::bind("localhost:0").unwrap(), Arc::new(config));
    let origin = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let (told, sent) = channel();
    // Ends with the tests.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut reader = BufReader::new(StreamOwned::new(connection, stream.unwrap()));
            let mut lines = Vec::new();
            while lines.last().is_none_or(|line: &String| !line.is_empty()) {
                let mut line = String::new();
                assert!(reader.read_line(&mut line).unwrap() > 0, "{lines:?}");
                lines.push(line.trim_end().to_owned());
            }
            let headers = lines.iter().filter_map(|line| line.split_once(": "));
            let headers: Vec<(String, String)> =
                headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
            let sent = Sent { line: lines[0].clone(), headers, body: Vec::new() };
            let mut body = vec![0; sent.header("content-length").parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let status = if sent.line.contains("/gone") { "410 Gone" } else { "201 Created" };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
            told.send(Sent { body, ..sent }).unwrap();
        }
    });
    (origin, sent)
}

/// A subscription of a browser with keys of its own.
fn subscription(endpoint: &str) -> Value {
    let own = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).unwrap();
    let public = BASE64.encode(own.compute_public_key().unwrap());
    json!({"endpoint": endpoint, "expirationTime": null,
        "keys": {"p256dh": public, "auth": BASE64.encode([7; 16])}})
}

/// The server behind a proxy that has TLS, which trusts that push service, and how the proxy comes to it.
fn behind_proxy(env: &TestEnv) -> (Web, String) {
    let options = ["web", "--port", "0", "--behind", "https://me.example"];
    let mut command = env.acpctl_command(&options);
    command.env("SSL_CERT_FILE", env.path("push.pem"));
    let mut web = Web::of(Running::start(command));
    let port = super::tls::port_of(web.pid());
    let public = std::mem::replace(&mut web.host, format!("127.0.0.1:{port}"));
    (web, public)
}

/// A request of the page of that browser.
fn ask(web: &Web, public: &str, browser: &Browser, line: &str, body: Option<&Value>) -> Answer {
    let request = web.bare(line).header("host", public).header("origin", &web.origin);
    let request = request.header("cookie", &browser.cookie);
    let request = request.header("authorization", &browser.bearer());
    match body {
        Some(body) => request.json(body).send(),
        None => request.send(),
    }
}

fn signed_in(web: &Web, public: &str, code: &str) -> Browser {
    let request = web.bare("POST /sign-in").header("host", public).header("origin", &web.origin);
    Browser::of(web, &request.json(&json!({"code": code})).send())
}

/// Returns the stored data of the only token.
fn kept(env: &TestEnv) -> Value {
    let text = std::fs::read_to_string(env.path("state/web/tokens.json")).unwrap();
    let mut tokens: Value = serde_json::from_str(&text).unwrap();
    tokens.pointer_mut("/tokens/0").map_or(Value::Null, Value::take)
}

#[test]
fn a_browser_is_told_that_somebody_asks() {
    let env = home([echo()]);
    let (service, sent) = push_service(&env);
    let (web, public) = behind_proxy(&env);
    let browser = signed_in(&web, &public, &web.code);
    let key = ask(&web, &public, &browser, "GET /push", None).json()["key"].clone();
    let mode = std::fs::metadata(env.path("state/web/push.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let subscription = subscription(&format!("{service}/send/one"));
    let answer = ask(&web, &public, &browser, "POST /push", Some(&subscription));
    assert_eq!(answer.status, 204, "{answer:?}");
    env.acpctl(&["run", "-d", "-s", "fix", "my secret plan [ask]"]).success();
    let sent = sent.recv_timeout(DEADLINE).unwrap();
    assert_eq!(sent.line, "POST /send/one HTTP/1.1");
    assert_eq!(sent.header("content-encoding"), "aes128gcm");
    assert!(!sent.body.is_empty());
    assert_eq!((sent.header("ttl"), sent.header("urgency")), ("43200", "high"));

    // The request names its sender: the key that the browser has subscribed for.
    let signed = sent.header("authorization").strip_prefix("vapid t=").unwrap();
    let (token, told) = signed.split_once(", k=").unwrap();
    assert_eq!(key, told);
    let (said, _) = token.rsplit_once('.').unwrap();
    let claims = BASE64.decode(said.split_once('.').unwrap().1).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!((&claims["aud"], &claims["sub"]), (&json!(service), &json!("https://me.example")));

    // The subscription goes with the token.
    assert_eq!(kept(&env)["push"]["endpoint"], format!("{service}/send/one"));
    env.acpctl(&["web", "token", "revoke", kept(&env)["id"].as_str().unwrap()]).success();
    assert_eq!(kept(&env), Value::Null);
}

#[test]
fn a_browser_that_listens_no_more_is_forgotten_and_nothing_else_is_a_subscription() {
    let env = home([echo()]);
    let (service, sent) = push_service(&env);
    let (web, public) = behind_proxy(&env);
    let browser = signed_in(&web, &public, &web.code);
    for wrong in [
        json!({}),
        subscription("http://localhost/"),
        subscription("file:///etc/passwd"),
        json!({"endpoint": service, "keys": {"p256dh": "AAAA", "auth": "AAAA"}}),
    ] {
        let answer = ask(&web, &public, &browser, "POST /push", Some(&wrong));
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
    }
    let own = subscription(&format!("{service}/gone"));
    assert_eq!(ask(&web, &public, &browser, "POST /push", Some(&own)).status, 204);
    env.acpctl(&["run", "-d", "-s", "fix", "[ask]"]).success();
    sent.recv_timeout(DEADLINE).unwrap();
    until("the browser to be forgotten", || kept(&env)["push"].is_null().then_some(()));

    assert_eq!(ask(&web, &public, &browser, "POST /push", Some(&own)).status, 204);
    assert_eq!(ask(&web, &public, &browser, "DELETE /push", None).status, 204);
    assert!(kept(&env)["push"].is_null());
    // Neither a stranger nor another site can subscribe a browser.
    let stranger = web.bare("POST /push").header("host", &public).header("origin", &web.origin);
    assert_eq!(stranger.json(&own).send().status, 401);
    let site =
        web.bare("POST /push").header("host", &public).header("origin", "https://evil.example");
    let site = site.header("cookie", &browser.cookie).header("authorization", &browser.bearer());
    assert_eq!(site.json(&own).send().status, 403);
}
