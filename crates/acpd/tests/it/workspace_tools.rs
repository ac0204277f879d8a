//! `acpctl mcp --tools workspace`: files and mistakes in them, by real programs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use acpd_test::harness::{Client, Config, Running, TestEnv, exists, until};
use serde_json::{Value, json};

use crate::mcp_host::{Host, calls};
use crate::{echo, home, home_with};

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A home with a workspace: some files, of which git ignores a few.
fn workspace() -> TestEnv {
    let env = home([echo()]);
    let work = env.work("main");
    for (name, text) in [
        (".git/config", "needle\n"),
        (".gitignore", "/target\n*.log\n"),
        ("target/out.txt", "needle\n"),
        ("a.log", "needle\n"),
        ("src/main.rs", "fn main() {\n    // Needle\n    needle(1);\n}\n"),
        ("src/lib.rs", "pub fn needle(n: u32) {}\n"),
        ("src/.hidden", "needle.\n"),
        ("empty", ""),
    ] {
        write(&work, name, text);
    }
    fs::write(work.join("data.bin"), b"\0\xff needle").unwrap();
    env
}

fn host(env: &TestEnv, args: &[&str]) -> Host {
    Host::start(env, &[&["--tools", "workspace", "--no-spawn"], args].concat())
}

#[test]
fn files_are_searched_and_found() {
    let env = workspace();
    let mut host = host(&env, &[]);
    assert_eq!(host.tools(), ["diagnostics", "find", "search"]);

    let found = host.text("search", json!({"pattern": r"needle\("}));
    let expected = "src/lib.rs\n1: pub fn needle(n: u32) {}\n\nsrc/main.rs\n3:     needle(1);\n\
        [2 matching lines in 2 files]\n";
    assert_eq!(found, expected, "what git ignores is left out");
    let found = host.text(
        "search",
        json!({"pattern": "needle(", "literal": true, "glob": "*.rs", "path": "src/main.rs", "context": 1}),
    );
    assert_eq!(
        found,
        "src/main.rs\n2-     // Needle\n3:     needle(1);\n4- }\n[1 matching lines in 1 files]\n"
    );
    let all = json!({"pattern": "NEEDLE.", "ignore_case": true, "ignored": true, "glob": "!*.rs"});
    let found = host.text("search", all);
    assert_eq!(found, "src/.hidden\n1: needle.\n[1 matching lines in 1 files]\n");
    let ignored = host.text("search", json!({"pattern": "needle$", "ignored": true}));
    assert!(ignored.contains("a.log") && ignored.contains("target/out.txt"), "{ignored}");
    assert!(!ignored.contains(".git/"), "{ignored}");
    let bad = host.refused("search", json!({"pattern": "needle("}));
    assert!(bad.contains("`pattern`") && bad.contains("literal"), "{bad}");

    let found = host.text("find", json!({"glob": "*.rs"}));
    assert_eq!(found, "src/lib.rs\nsrc/main.rs\n[2 files]\n");
    let found = host.text("find", json!({"glob": "target/**", "ignored": true}));
    assert_eq!(found, "target/out.txt\n[1 files]\n");
}

#[test]
fn tools_look_into_no_git_folder() {
    let env = workspace();
    let work = env.work("main");
    write(&work, ".git/config", "url = https://me:needle@host\n");
    write(&work, "sub/.git/config", "url = https://me:needle@host\n");
    let mut host = host(&env, &[]);
    for path in [".", ".git", ".git/config", "sub/.git"] {
        for (tool, arguments) in [
            ("search", json!({"pattern": "me:needle", "path": path, "ignored": true})),
            ("find", json!({"glob": "*config*", "path": path, "ignored": true})),
        ] {
            let all = host.text(tool, arguments);
            let is_shown = |line: &str| line.contains("needle@") || line.trim().ends_with("config");
            assert!(!all.lines().any(is_shown), "{tool} {path}: {all}");
        }
    }
    drop(host);
}

#[test]
fn nothing_outside_of_the_folders_is_read_or_listed() {
    let env = workspace();
    let (work, outside) = (env.work("main"), env.work("outside"));
    write(&outside, "secret.txt", "needle outside\n");
    symlink(&outside, work.join("way-out")).unwrap();
    symlink(outside.join("secret.txt"), work.join("link.txt")).unwrap();
    symlink("src/lib.rs", work.join("inside.rs")).unwrap();
    let mut host = host(&env, &[]);
    for path in
        ["/etc/passwd", "../outside/secret.txt", "way-out/secret.txt", "link.txt", "/no-such"]
    {
        let refused = host.refused("search", json!({"pattern": "needle", "path": path}));
        assert!(refused.contains("leads out of the session's directories"), "{refused}");
    }
    for (tool, mut arguments) in
        [("search", json!({"pattern": "outside"})), ("find", json!({"glob": "*secret*"}))]
    {
        let all = host.text(tool, arguments.clone());
        assert!(!all.contains("secret") && !all.contains("way-out"), "{all}");
        for path in ["way-out", "..", "/"] {
            arguments["path"] = json!(path);
            let refused = host.refused(tool, arguments.clone());
            assert!(refused.contains("leads out of the session's directories"), "{refused}");
        }
    }
    assert!(host.text("find", json!({"glob": "inside.rs"})).contains("inside.rs"));
    let inside = json!({"pattern": "needle", "path": "inside.rs"});
    assert!(host.text("search", inside).contains("1: pub fn needle"));
    drop(host);

    // A file in one of the folders is inside.
    let folders = [work, outside].map(|dir| format!("--folder={}", dir.display()));
    let mut host = self::host(&env, &[&folders[0], &folders[1]]);
    assert!(
        host.text("search", json!({"pattern": "outside"}))
            .contains("secret.txt\n1: needle outside")
    );
    let link = json!({"pattern": "outside", "path": "link.txt"});
    assert!(host.text("search", link).contains("1: needle outside"));
}

#[test]
fn nothing_runs_that_no_person_has_configured() {
    let env = workspace();
    let work = env.work("main");
    write(&work, "Cargo.toml", "[package]\nname = 'a'\n[workspace]\n");
    write(&work, "build.rs", "fn main() { std::fs::write(\"ran\", \"\").unwrap(); }");
    let mut host = host(&env, &[]);
    let refused = host.refused("diagnostics", json!({}));
    assert!(refused.contains("no command that finds mistakes is configured"), "{refused}");
    assert!(refused.contains("[[workspace]]"), "{refused}");
    assert!(!work.join("ran").exists() && !work.join("target/debug").exists());
}

#[test]
fn mistakes_are_found_and_what_has_not_changed_is_not_checked_again() {
    let env = workspace();
    let work = env.work("main");
    let runs = env.path("runs");
    let check = format!("echo x >> {}; cat out; exit 3", runs.display());
    write(&work, "out", "src/main.rs:3:5: error[E1]: bad\nsrc/lib.rs:1:1: warning: odd\nSummary\n");
    let mut host =
        host(&env, &["--diagnostics", &check, "--diagnostics", "echo broken >&2; exit 1"]);
    let count = || fs::read_to_string(&runs).unwrap().lines().count();
    let first = host.call("diagnostics", json!({}));
    let error = json!({"severity": "error", "file": "src/main.rs", "line": 3, "column": 5,
        "code": "E1", "message": "bad"});
    let odd = json!({"severity": "warning", "file": "src/lib.rs", "line": 1, "column": 1,
        "message": "odd"});
    assert_eq!(first["diagnostics"], json!([error, odd]));
    assert_eq!(first["commands"][0]["ended"], "exit code 3");
    assert_eq!(first["commands"][1]["output"], "broken");
    let again = host.call("diagnostics", json!({"path": "src/lib.rs"}));
    assert_eq!((&again["diagnostics"], count()), (&json!([odd]), 1));
    assert_eq!(again["commands"][0]["cached"], true);
    write(&work, "target/out.txt", "what git ignores does not count");
    host.call("diagnostics", json!({}));
    assert_eq!(count(), 1);
    write(&work, "out", "");
    let clean = host.call("diagnostics", json!({}));
    assert_eq!((&clean["diagnostics"], count()), (&json!([]), 2));
    host.call("diagnostics", json!({"refresh": true}));
    assert_eq!(count(), 3);
    let outside = host.refused("diagnostics", json!({"path": "/etc"}));
    assert!(outside.contains("leads out"), "{outside}");
}

#[test]
fn what_the_files_call_for_runs_where_a_person_says_so() {
    let env = workspace();
    let work = env.work("main");
    write(&work, "ruff.toml", "");
    env.install("ruff", "echo \"a.py:1:8: F401 $*\"");
    let mut host = Host::start(&env, &["--tools", "workspace", "--diagnostics=detect"]);
    let found = host.call("diagnostics", json!({}));
    let commands = found["commands"].as_array().unwrap();
    assert_eq!(commands.len(), 1, "{found}");
    assert_eq!(found["diagnostics"][0]["message"], "F401 check --no-fix --output-format concise");
    fs::remove_file(work.join("ruff.toml")).unwrap();
    let refused = host.refused("diagnostics", json!({}));
    assert!(refused.contains("nothing here says which command"), "{refused}");
}

/// A command that starts others, one of which leaves its session, and stays.
fn stays(env: &TestEnv) -> String {
    let pids = env.path("pids").display().to_string();
    let own = format!("echo $$ >> {pids}; exec sleep 1000");
    format!("setsid sh -c '{own}' & sh -c '{own}' & trap '' TERM; wait; wait")
}

fn started(env: &TestEnv) -> Vec<u32> {
    until("the command to run", || {
        let text = fs::read_to_string(env.path("pids")).unwrap_or_default();
        let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (pids.len() == 2).then_some(pids)
    })
}

#[test]
fn a_command_ends_with_all_that_it_has_started() {
    for cancels in [true, false] {
        let env = workspace();
        let mut host = host(&env, &["--diagnostics", &stays(&env)]);
        let id = host.begin("diagnostics", json!({}));
        let pids = started(&env);
        if cancels {
            host.cancel(id);
        } else {
            drop(host);
        }
        until("the processes to end", || pids.iter().all(|pid| !exists(*pid)).then_some(()));
    }
}

#[test]
fn what_a_diagnostics_command_detaches_ends_with_it() {
    let env = workspace();
    let pids = env.path("pids");
    let script = r#"echo $$ >>"$0"; exec sleep 1000"#;
    let detach = |file: &str| format!("env -i PATH=\"$PATH\" setsid -f sh -c '{script}' '{file}'");
    let file = pids.display().to_string();
    let wait = format!("until [ -s '{file}' ]; do :; done");
    let check = format!("{}; {wait}; {}; exit 3", detach(&file), detach(&file));
    let mut host = host(&env, &["--diagnostics", &check]);
    let found = host.call("diagnostics", json!({}));
    assert_eq!(found["commands"][0]["ended"], "exit code 3", "{found}");
    let text = fs::read_to_string(&pids).unwrap();
    let pids: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(!pids.is_empty() && pids.iter().all(|pid| !exists(*pid)), "{pids:?}");
}

#[test]
fn an_agent_is_lent_the_folders_of_its_session_and_the_commands_of_the_configuration() {
    let table = "[mcp.acpd]\nbuiltin = [\"workspace\"]\n[[workspace]]\npath = \"/\"\n\
        diagnostics = [\"echo 'src/a.c:7:1: error: lent'\"]";
    let env = home_with(&Config::new([echo()]).tables(table));
    write(&env.work("main"), "src/a.c", "int needle;\n");
    let search = calls(&env, "search", "search", json!({"pattern": "needle"}));
    let run = env.acpctl(&["run", "-s", "lead", &search]).success();
    assert!(run.stdout().contains("1: int needle;"), "{run:?}");
    let check = calls(&env, "check", "diagnostics", json!({}));
    let run = env.acpctl(&["run", "-s", "lead", &check]).success();
    assert!(run.stdout().contains("lent"), "{run:?}");
    let outside = json!({"pattern": "x", "path": env.path("check")});
    let search = calls(&env, "outside", "search", outside);
    let run = env.acpctl(&["run", "-s", "lead", &search]).success();
    assert!(run.stdout().contains("leads out of the session's directories"), "{run:?}");
}

/// An editor on a session of an agent that has acpd's tools, and lends it an MCP server of the name `ide`.
fn editor(env: &TestEnv) -> (Running, Client, String) {
    let (bridge, mut editor) = env.bridge(&["echo"]);
    editor.ok("initialize", json!({"protocolVersion": 1}));
    let lent = json!([{"type": "acp", "name": "ide", "serverId": "ide-1"}]);
    let made = editor.ok("session/new", json!({"cwd": env.work("main"), "mcpServers": lent}));
    let session = made["sessionId"].as_str().unwrap().to_owned();
    (bridge, editor, session)
}

/// Answers the next message for the server in the editor; what that was.
fn lends(editor: &mut Client, inner: &Value) -> Value {
    let request = editor.next_of("mcp/message");
    assert_eq!(request["params"]["serverId"], "ide-1");
    editor.respond(&request, inner.clone());
    request["params"].clone()
}

#[test]
fn an_editor_that_lends_a_tool_reports_mistakes_before_commands_do() {
    let table = "[mcp.acpd]\nbuiltin = [\"workspace\"]\n[[workspace]]\npath = \"/\"\n\
        diagnostics = [\"touch ran; echo 'src/a.c:7:1: error: of the command'\"]";
    let env = home_with(&Config::new([echo()]).tables(table));
    let file = env.work("main").canonicalize().unwrap().join("src/a.c");
    write(&env.work("main"), "src/a.c", "int needle;\n");
    let (_bridge, mut editor, session) = editor(&env);
    let check = calls(&env, "check", "diagnostics", json!({"path": "src/a.c"}));
    let listed = json!({"result": {"tools": [{"name": "open_file"}, {"name": "getDiagnostics",
        "inputSchema": {"type": "object", "properties": {"uri": {"type": "string"}}}}]}});

    let prompt = editor.prompt(&session, &check);
    assert_eq!(lends(&mut editor, &listed)["method"], "tools/list");
    let place = json!({"start": {"line": 2, "character": 4}});
    let found = json!([{"message": "of the editor", "severity": 1, "range": place}]);
    let uri = format!("file://{}", file.display());
    let said = json!([{"uri": uri, "diagnostics": found}]);
    let text = json!({"content": [{"type": "text", "text": said.to_string()}]});
    let called = lends(&mut editor, &json!({ "result": text }))["params"].take();
    let expected = (&json!("getDiagnostics"), &json!({"uri": uri}));
    assert_eq!((&called["name"], &called["arguments"]), expected);
    editor.answer(prompt).unwrap();
    let heard = editor.said(&session);
    assert!(heard.contains("of the editor") && heard.contains("ide"), "{heard}");
    assert!(!env.work("main").join("ran").exists(), "no command has run");

    let prompt = editor.prompt(&session, &check);
    lends(&mut editor, &json!({"error": {"code": -1, "message": "not now"}}));
    editor.answer(prompt).unwrap();
    let heard = editor.said(&session);
    assert!(heard.contains("of the command") && heard.contains("not now"), "{heard}");
}
