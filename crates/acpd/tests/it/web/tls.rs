//! Off this machine: a certificate of the user's, or a proxy that has one.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use acpd_test::harness::TestEnv;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use super::{Socket, Web, connect};
use crate::{echo, home};

/// A certificate for this name and its key, as files.
fn certificate(env: &TestEnv, name: &str) -> (PathBuf, PathBuf) {
    let own =
        rcgen::generate_simple_self_signed([name.to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let (chain, key) = (env.path("cert.pem"), env.path("key.pem"));
    std::fs::write(&chain, own.cert.pem()).unwrap();
    std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    (chain, key)
}

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A connection to the server as a browser makes one to this name.
fn secure(env: &TestEnv, port: &str, name: &str) -> Tls {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(env.path("cert.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(client, connect(&format!("127.0.0.1:{port}")))
}

/// The answer to a request, as text.
fn ask(mut stream: Tls, head: &str, body: &str) -> String {
    let length = body.len();
    let request = format!("{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A server may end without saying so in TLS.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn with_a_certificate_its_names_are_the_ones_and_cookies_are_for_tls_alone() {
    let env = home([echo()]);
    let (chain, key) = certificate(&env, "me.example");
    let (chain, key) = (chain.to_str().unwrap(), key.to_str().unwrap());
    let web = Web::start_with(&env, &["--listen", "0.0.0.0", "--cert", chain, "--key", key]);
    let port = web.host.split_once(':').unwrap().1;
    assert_eq!(web.origin, format!("https://me.example:{port}"));
    for (host, status) in [
        (format!("me.example:{port}"), 200),
        (format!("127.0.0.1:{port}"), 200),
        (format!("localhost:{port}"), 421),
        (format!("evil.example:{port}"), 421),
        ("me.example".to_owned(), 421),
    ] {
        let answer =
            ask(secure(&env, port, "me.example"), &format!("GET / HTTP/1.1\r\nhost: {host}"), "");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer}");
    }
    let (host, origin) = (&web.host, &web.origin);
    let head = format!(
        "POST /sign-in HTTP/1.1\r\nhost: {host}\r\norigin: {origin}\r\ncontent-type: application/json"
    );
    let answer =
        ask(secure(&env, port, "me.example"), &head, &json!({"code": web.code}).to_string());
    assert!(answer.contains(&format!("connect-src 'self' wss://{host}")), "{answer}");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.starts_with(&format!("__Host-acpd-{port}=")), "{cookie}");
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let protocols = format!("acp.v1, bearer.{}", body["key"].as_str().unwrap());
    let headers = [
        ("origin", &**origin),
        ("cookie", cookie.split(';').next().unwrap()),
        ("sec-websocket-protocol", &protocols),
    ];
    let url = format!("ws://{host}/acp");
    let mut socket = Socket::over(secure(&env, port, "me.example"), &url, &headers).unwrap();
    assert_eq!(socket.call("_acpd/ping", json!({})).unwrap(), json!({}));
    // A client without TLS gets nothing.
    let mut plain = connect(&format!("127.0.0.1:{port}"));
    plain.write_all(b"GET / HTTP/1.1\r\nhost: me.example\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes);
    assert!(!bytes.starts_with(b"HTTP"), "{bytes:?}");
}

/// The port on which a process listens.
pub(super) fn port_of(pid: u32) -> u16 {
    let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|fd| Some(std::fs::read_link(fd.ok()?.path()).ok()?.to_str()?.to_owned()))
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let listening = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut own =
        listening.filter(|row| row[3] == "0A" && sockets.iter().any(|inode| inode == row[9]));
    let address = own.next().expect("it listens")[1].to_owned();
    u16::from_str_radix(address.split_once(':').unwrap().1, 16).unwrap()
}

#[test]
fn off_this_machine_nothing_is_served_without_tls() {
    let env = home([echo()]);
    let (chain, key) = certificate(&env, "me.example");
    let (chain, key) = (chain.to_str().unwrap(), key.to_str().unwrap());
    let open = env.acpctl(&["web", "--listen", "0.0.0.0"]).code(1);
    open.explains(&["`0.0.0.0` is open to others", "--cert", "--behind"]);
    env.acpctl(&["web", "--behind", "http://me.example"])
        .code(2)
        .explains(&["https://acpd.example.net"]);
    env.acpctl(&["web", "--cert", chain]).code(2);
    env.acpctl(&["web", "--cert", key, "--key", key])
        .code(1)
        .explains(&["there is no certificate in"]);
    env.acpctl(&["web", "--cert", chain, "--key", chain]).code(1).explains(&["cannot be used"]);
}
