//! `[mcp.NAME]`: what may be written, and what a mistake looks like.

use std::path::PathBuf;

use acpd::config::{SecretSource, Value};
use acpd_api::McpKind;
use insta::assert_snapshot;

use super::{mistake, read};

#[test]
fn servers_are_read_with_their_places_and_references() {
    let config = read(
        r#"
        [mcp.files]
        command = "~/bin/files"
        args = ["--root", "."]
        env = { MODE = "quiet", TOKEN = { file = "/secrets/token" } }
        agents = ["copilot", "claude"]
        workspace = "/src/**"

        [mcp.GitHub_1]
        url = "https://example.com/mcp"
        headers.Authorization = { env = "TOKEN", prefix = "Bearer " }

        [mcp.old]
        type = "sse"
        url = "http://localhost:4000/sse"
        enabled = false
        "#,
    );
    let files = &config.mcp["files"];
    assert_eq!(files.kind(), McpKind::Stdio);
    assert_eq!(files.command, ["~/bin/files", "--root", "."]);
    assert_eq!(files.env["MODE"], Value::Text("quiet".to_owned()));
    let source = SecretSource::File(PathBuf::from("/secrets/token"));
    assert_eq!(files.env["TOKEN"], Value::Reference { source, prefix: String::new() });
    assert!(files.is_for("claude") && !files.is_for("gemini"));
    let workspace = files.workspace.as_ref().unwrap();
    assert!(workspace.contain("/src/a/b") && !workspace.contain("/other"));
    let web = &config.mcp["GitHub_1"];
    assert_eq!(web.kind(), McpKind::Http);
    let source = SecretSource::Env("TOKEN".to_owned());
    assert_eq!(
        web.headers["Authorization"],
        Value::Reference { source, prefix: "Bearer ".to_owned() }
    );
    assert!(web.is_for("gemini") && web.workspace.is_none());
    let old = &config.mcp["old"];
    assert_eq!(old.kind(), McpKind::Sse);
    assert!(!old.is_for("gemini"));
}

#[test]
fn a_mistake_in_a_value_is_told_without_the_value() {
    let env = |value: &str| mistake(&format!("[mcp.a]\ncommand = 'a'\nenv.T = {value}"));
    assert_snapshot!(env("{ evn = 'secret-1' }"), @"
    error: unknown key `env.T.evn` in `[mcp.a]` (config.toml:3:11)

    hint: the keys are `env`, `file`, `prefix`
    ");
    assert_snapshot!(env("{}"), @r#"error: `env.T` in `[mcp.a]` must be a string, `{ env = "NAME" }` or `{ file = "~/path" }` (config.toml:3:9)"#);
    for value in
        ["17", "{ env = '' }", "{ env = 'secret-1', file = '/x' }", "{ file = 'secret-1' }"]
    {
        let said = env(value);
        assert!(said.contains("`env.T") && !said.contains("secret-1"), "{said}");
    }
    let said = mistake("[mcp.a]\nurl = 'http://u:secret-1@x y'");
    assert!(!said.contains("secret-1"), "{said}");
    let said = mistake("[mcp.a]\nurl = 'http://x'\nheaders.'X Y' = 'secret-1'");
    assert!(
        said.contains("\"X Y\", which is not the name of a header") && !said.contains("secret-1"),
        "{said}"
    );
}

#[test]
fn a_configuration_that_is_shown_for_debugging_shows_no_text_of_a_server() {
    let text = "[mcp.a]\nurl = 'http://x'\nheaders = { A = 'secret-1', B = { env = 'E', prefix = 'secret-2' } }";
    let shown = format!("{:?}", read(text));
    assert!(!shown.contains("secret-"), "{shown}");
}
