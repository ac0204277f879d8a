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
fn a_server_that_does_not_fit_together_is_an_error_with_its_place() {
    assert_snapshot!(mistake("[mcp.a]\ncommand = 'a'\nworkspace = 'src/**'"), @"
    error: `workspace` in `[mcp.a]` cannot be used: the glob `src/**` is not an absolute path (config.toml:3:13)

    hint: start it with `/`, `~/` or `**/`
    ");
    assert_snapshot!(mistake("[mcp.'a b']\ncommand = 'a'"), @"
    error: `a b` is not a name for an MCP server (config.toml:1:6)

    hint: a name is made of letters, digits, `-` and `_`
    ");
    for (lines, words) in [
        ("command = 'a'\nurl = 'http://x'", "has both `command` and `url`"),
        ("builtin = ['delegate']", "has `builtin`, which is for `[mcp.acpd]`"),
        ("command = 'a'\nmax_depth = 3", "has a limit or `answer`, which need `builtin`"),
        ("builtin = ['dig']", "must be \"delegate\" or \"history\" or \"workspace\", not \"dig\""),
        ("command = 'a'\ntype = 'sse'", "has `headers` or a `type`, which need a `url`"),
        ("url = 'http://x'\nargs = ['a']", "has `env` or `args`, which need a `command`"),
        ("url = 'ftp://x'", "must be an address like"),
        ("url = 'http://x'\ntype = 'stdio'", "must be \"http\" or \"sse\", not \"stdio\""),
        ("command = 'a'\nagents = []", "`agents` in `[mcp.a]` is an empty list"),
        ("command = 'a'\nworkspace = []", "`workspace` in `[mcp.a]` is an empty list"),
    ] {
        let said = mistake(&format!("[mcp.a]\n{lines}"));
        assert!(said.contains(words), "{lines}: {said}");
    }
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
