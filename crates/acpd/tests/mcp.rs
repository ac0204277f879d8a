//! MCP servers of the configuration, as agents get them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use acp_wire::Id;
use acpd::config::{self, Config};
use acpd::mcp::{Completed, complete};
use acpd_sys::paths::Paths;
use bytes::Bytes;
use serde_json::{Value, json};

fn servers(text: &str) -> Config {
    config::parse(Path::new("config.toml"), text).unwrap()
}

fn paths() -> Paths {
    let dir = |name: &str| PathBuf::from(format!("/acpd/{name}"));
    Paths { runtime: dir("run"), state: dir("state"), config: dir("config") }
}

/// A line of the hub with names, whose params are this JSON text.
fn line(names: &[&str], params: &str) -> Bytes {
    let names = json!(names);
    Bytes::from(format!(
        r#"{{"_acpd":{{"mcp":{names}}},"jsonrpc":"2.0","id":7,"method":"session/new","params":{params}}}"#
    ))
}

/// Returns the agent's `mcpServers`, and why something is left out.
fn completed(config: &str, names: &[&str], params: &str) -> (Value, Vec<String>) {
    let Completed { line, request, left_out } =
        complete(&servers(config), &paths(), &line(names, params)).unwrap();
    assert_eq!(request, Id::from(7));
    let line: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(line.get("_acpd"), None);
    let reasons = left_out.into_iter().map(|left| format!("{}: {}", left.server, left.reason));
    (line["params"]["mcpServers"].clone(), reasons.collect())
}

/// A file with this text and mode, in a directory that goes with the value.
fn secret(text: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    (folder, path)
}

#[test]
fn servers_look_as_the_protocol_wants_them() {
    let config = "
        [mcp.files]
        command = ['files', '--quiet']
        env = { A = 'b' }
        [mcp.web]
        url = 'https://example.com/mcp'
        headers.X-Key = 'k'
        [mcp.events]
        type = 'sse'
        url = 'http://localhost/sse'
    ";
    let (servers, left_out) =
        completed(config, &["files", "web", "events"], r#"{"cwd":"/w","mcpServers":[]}"#);
    let expected = json!([
        {"name": "files", "command": "files", "args": ["--quiet"], "env": [{"name": "A", "value": "b"}]},
        {"type": "http", "name": "web", "url": "https://example.com/mcp",
            "headers": [{"name": "X-Key", "value": "k"}]},
        {"type": "sse", "name": "events", "url": "http://localhost/sse", "headers": []},
    ]);
    assert_eq!((servers, left_out.len()), (expected, 0));
}

#[test]
fn they_come_behind_those_of_the_client_whatever_it_wrote() {
    let config = "[mcp.a]\ncommand = 'a'";
    let a = json!({"name": "a", "command": "a", "args": [], "env": []});
    for (params, expected) in [
        (r#"{"cwd":"/w"}"#, json!([a])),
        (r#"{"mcpServers":null}"#, json!([a])),
        (r#"{"mcpServers": [ ] ,"cwd":"/w"}"#, json!([a])),
        (r#"{"mcpServers":[{"name":"b"} ]}"#, json!([{"name": "b"}, a])),
        (r#"{"mcpServers":"junk"}"#, json!("junk")),
    ] {
        assert_eq!(completed(config, &["a"], params).0, expected, "{params}");
    }
    let untouched =
        complete(&servers(config), &paths(), &line(&["gone"], r#"{ "cwd": "/w"}"#)).unwrap();
    let expected = r#"{"jsonrpc":"2.0","id":7,"method":"session/new","params":{ "cwd": "/w"}}"#;
    assert_eq!(untouched.line, expected);
    assert!(complete(&servers(config), &paths(), &untouched.line).is_none());
}

#[test]
fn a_file_is_looked_up_without_the_end_of_its_last_line() {
    for (text, expected) in
        [("abc", "abc"), ("abc\n", "abc"), ("abc\r\n", "abc"), (" a\nb\n", " a\nb")]
    {
        let (_folder, path) = secret(text.as_bytes(), 0o600);
        let config = format!("[mcp.a]\ncommand = 'a'\nenv.T = {{ file = '{}' }}", path.display());
        let (servers, left_out) = completed(&config, &["a"], "{}");
        assert_eq!(left_out, Vec::<String>::new());
        assert_eq!(servers[0]["env"], json!([{"name": "T", "value": expected}]));
    }
    let (_folder, path) = secret(b"abc\n", 0o400);
    let reference = format!("{{ file = '{}', prefix = 'Bearer ' }}", path.display());
    let config = format!("[mcp.a]\nurl = 'http://x'\nheaders.T = {reference}");
    let (servers, _) = completed(&config, &["a"], "{}");
    assert_eq!(servers[0]["headers"], json!([{"name": "T", "value": "Bearer abc"}]));
}

#[test]
fn what_cannot_be_looked_up_leaves_its_server_out_and_says_why_without_a_value() {
    let header = |path: &Path| {
        format!("[mcp.a]\nurl = 'http://x'\nheaders.T = {{ file = '{}' }}", path.display())
    };
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    for (config, words) in [
        ("[mcp.b]\ncommand = 'b'".to_owned(), "a: it is not configured any more"),
        ("[mcp.a]\ncommand = 'a'\nenabled = false".to_owned(), "a: it is not configured any more"),
        (
            "[mcp.a]\ncommand = 'a'\nenv.T = { env = 'ACPD_NO_SUCH' }".to_owned(),
            "a: the variable `ACPD_NO_SUCH` is not set in the daemon's environment",
        ),
        (header(&missing), "missing`: No such file or directory"),
        (header(folder.path()), "is not a regular file"),
    ] {
        let (servers, left_out) = completed(&config, &["a"], r#"{"mcpServers":[]}"#);
        assert_eq!(servers, json!([]), "{config}");
        assert!(left_out[0].contains(words), "{left_out:?}");
    }
    let long = vec![b's'; 70_000];
    for (text, mode, words) in [
        (&b"s3cret"[..], 0o640, "is open to other users (mode 0640); run `chmod 600 /"),
        (b"\n", 0o600, "is empty"),
        (b"s3cret\xff", 0o600, "is not text"),
        (
            b"s3cret\nX-Other: s3cret",
            0o600,
            "the value of `T` holds a character that is not allowed",
        ),
        (&long, 0o600, "is longer than 65536 bytes"),
    ] {
        let (_folder, path) = secret(text, mode);
        let (_, left_out) = completed(&header(&path), &["a"], "{}");
        assert!(left_out[0].contains(words), "{left_out:?}");
        assert!(!left_out[0].contains("s3cret"), "{left_out:?}");
    }
}

#[test]
fn acpds_own_server_is_told_which_daemon_and_which_session_it_belongs_to() {
    let config = "[mcp.acpd]\nbuiltin = [\"delegate\", \"history\"]";
    let line = r#"{"_acpd":{"mcp":["acpd"],"session":4294967299},"jsonrpc":"2.0","id":7,"method":"session/new","params":{}}"#;
    let whole = complete(&servers(config), &paths(), &Bytes::from(line)).unwrap();
    let line: Value = serde_json::from_slice(&whole.line).unwrap();
    let server = &line["params"]["mcpServers"][0];
    assert!(server["command"].as_str().unwrap().ends_with("acpctl-mcp"), "{server}");
    let args = ["--no-spawn", "--tools", "delegate,history", "--session", "4294967299"];
    assert_eq!(server["args"], json!(args));

    // With the tools for files it is told the folders, and what the configuration runs there.
    let config = "[mcp.acpd]\nbuiltin = ['workspace']
        [[workspace]]\npath = '/src'\ndiagnostics = ['detect']
        [[workspace]]\npath = '/src/web'\nmodel = 'm'
        [[workspace]]\npath = '/src/strange'\ndiagnostics = []";
    for (cwd, lines) in
        [("/src/web/a", &["--diagnostics=detect"][..]), ("/src/strange/a", &[]), ("/srcs", &[])]
    {
        let params = json!({"cwd": cwd, "additionalDirectories": ["/b"]}).to_string();
        let (servers, _) = completed(config, &["acpd"], &params);
        let folders = [format!("--folder={cwd}"), "--folder=/b".to_owned()];
        let args = ["--no-spawn", "--tools", "workspace"].map(str::to_owned).into_iter();
        let args = args.chain(folders).chain(lines.iter().map(|line| (*line).to_owned()));
        assert_eq!(servers[0]["args"], json!(args.collect::<Vec<_>>()));
    }
    let env = [("ACPD_RUNTIME_DIR", "/acpd/run"), ("ACPD_STATE_DIR", "/acpd/state")];
    assert_eq!(
        server["env"],
        json!(env.map(|(name, value)| json!({"name": name, "value": value})))
    );
}
