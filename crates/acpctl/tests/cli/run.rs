//! `acpctl run` against a daemon that a thread of the test plays.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use crate::support::{Client, Home, about, capable, run_against, session};
use acpd_api::method;
use serde_json::{Value, json};

/// A session in this directory.
fn here(id: &str, cwd: &std::path::Path) -> Value {
    let mut here = session(id);
    here["cwd"] = json!(cwd);
    here
}

#[test]
fn the_answer_goes_to_stdout_and_everything_else_to_stderr() {
    let home = Home::new();
    let cwd = home.work();
    let daemon = home.daemon(move |mut client| {
        let initialize = client.answer("initialize", capable());
        let meta = &initialize["params"]["_meta"]["_acpd"];
        let token = meta["client"]["token"].as_str().unwrap();
        assert!((16..=64).contains(&token.len()), "{token}");
        assert_eq!(
            *meta,
            json!({"agent": "demo", "notices": true, "seq": true,
                "client": {"token": token, "resume": null}})
        );
        let new = client.answer("session/new", json!({"sessionId": "s-1"}));
        assert_eq!(new["params"], json!({"cwd": cwd, "mcpServers": []}));
        let prompt = client.expect("session/prompt");
        assert_eq!(
            prompt["params"],
            json!({"sessionId": "s-1", "prompt": [{"type": "text", "text": "hello there"}]})
        );
        client.update(json!({"sessionUpdate": "agent_thought_chunk",
            "content": {"type": "text", "text": "secret"}}));
        client.says("Let me ");
        client.says("look.");
        client.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "kind": "read",
            "title": "Read x", "status": "completed"}));
        client.notice(method::RESTORED, json!({"level": "loaded", "at": 1}));
        client.says("Found it.");
        client.update(json!({"sessionUpdate": "usage_update", "used": 1_200, "size": 200_000}));
        client.result(&prompt, json!({"stopReason": "end_turn"}));
        client.closed();
    });
    let done = home.run(&["run", "-a", "demo", "hello", "there"]);
    // The agent's texts before and after a call are two messages.
    assert_eq!(done.out, "Let me look.\nFound it.\n");
    assert_eq!(
        done.err,
        "✓ Read x\nconversation restored\n\
         1.2k of 200k tokens in the context\n"
    );
    assert_eq!(done.code, Some(0));
    daemon.join().unwrap();
}

#[test]
fn json_is_one_object_when_the_turn_is_over() {
    let done = run_against(&["run", "--json", "hello"], |mut client| {
        let prompt = client.begins();
        for (id, text) in [("m-1", "I look."), ("m-2", "It is\ndone.")] {
            client.update(json!({"sessionUpdate": "agent_message_chunk", "messageId": id,
                "content": {"type": "text", "text": text}}));
        }
        client.notice(
            method::TURN_ENDED,
            json!({"turn": 3, "startedAt": 1000, "at": 2500, "tools": 1, "files": ["src/a.rs"],
                "outcome": {"kind": "stopped", "stopReason": "end_turn"},
                "usage": {"tokens": {"input": 7, "output": 5},
                    "cost": {"amount": 0.25, "currency": "USD"}}}),
        );
        client.result(&prompt, json!({"stopReason": "end_turn"}));
    });
    insta::assert_snapshot!(done.out, @r#"
    {
      "sessionId": "s-1",
      "agent": "demo",
      "answer": "I look.\nIt is\ndone.",
      "stopReason": "end_turn",
      "exitCode": 0,
      "turn": 3,
      "startedAt": 1000,
      "at": 2500,
      "tools": 1,
      "files": [
        "src/a.rs"
      ],
      "usage": {
        "tokens": {
          "input": 7,
          "output": 5
        },
        "cost": {
          "amount": 0.25,
          "currency": "USD"
        }
      }
    }
    "#);
    assert_eq!((done.err.as_str(), done.code), ("", Some(0)));
}

#[test]
fn a_turn_that_fails_is_an_object_with_the_error() {
    let done = run_against(&["run", "--json", "hello"], |mut client| {
        let prompt = client.begins();
        client.says("I begin");
        let data = json!({"reason": "interrupted", "hint": "send it again"});
        client.error(&prompt, "the agent died", data);
    });
    insta::assert_snapshot!(done.out, @r#"
    {
      "sessionId": "s-1",
      "agent": "demo",
      "answer": "I begin",
      "error": {
        "message": "the agent died",
        "reason": "interrupted",
        "hint": "send it again"
      },
      "exitCode": 6
    }
    "#);
    assert_eq!(done.code, Some(6));
    assert!(done.err.contains("error: the agent died"), "{}", done.err);
}

#[test]
fn a_new_name_begins_a_session_and_a_lost_race_joins_the_winner() {
    let home = Home::new();
    let daemon = home.daemon(|mut client| {
        // A prefix is not enough.
        let mut other = session("s-1");
        other["name"] = json!("fixes");
        client.finds(&other);
        client.answer("initialize", capable());
        let new = client.fail(
            "session/new",
            "taken",
            json!({"reason": "name_taken", "sessionId": "s-9"}),
        );
        assert_eq!(new["params"]["_meta"]["_acpd"]["name"], "fix");
        client.answer(method::SESSION_ATTACH, json!({"session": session("s-9")}));
        let prompt = client.expect("session/prompt");
        assert_eq!(prompt["params"]["sessionId"], "s-9");
        client.result(&prompt, json!({"stopReason": "end_turn"}));
    });
    assert_eq!(home.run(&["run", "-s", "fix", "more"]).code, Some(0));
    daemon.join().unwrap();
}

#[test]
fn a_name_that_other_directories_have_begins_a_session_and_says_so() {
    for (others, line) in [
        (&["s-7"][..], "another session `fix` of demo is in [HOME]: s-7\n"),
        (&["s-7", "s-8"], "2 other sessions `fix` are in other directories\n"),
        (&[], ""),
    ] {
        let home = Home::new();
        let there = home.path("").canonicalize().unwrap();
        let daemon = home.daemon(move |mut client| {
            let others: Vec<Value> = others.iter().map(|id| here(id, &there)).collect();
            client.lists(&others.iter().collect::<Vec<_>>());
            let prompt = client.begins();
            client.result(&prompt, json!({"stopReason": "end_turn"}));
        });
        let done = home.run(&["run", "-s", "fix", "more"]);
        assert_eq!((done.err, done.code), (format!("{line}new session fix\n"), Some(0)));
        daemon.join().unwrap();
    }
}

#[test]
fn a_detached_prompt_is_left_when_it_is_on_disk() {
    let done = run_against(&["run", "--detach", "hello"], |mut client| {
        let prompt = client.begins();
        assert_eq!(prompt["params"]["prompt"][0]["text"], "hello");
        let show = client.answer(method::SESSION_SHOW, session("s-1"));
        assert_eq!(show["params"]["session"], "s-1");
        client.closed();
    });
    assert_eq!((done.out.as_str(), done.err.as_str(), done.code), ("s-1\n", "", Some(0)));

    let done = run_against(&["run", "--detach", "--json", "hello"], |mut client| {
        client.begins();
        client.answer(method::SESSION_SHOW, session("s-1"));
    });
    let shown: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(shown, session("s-1"));

    let done = run_against(&["run", "--detach", "hello"], |mut client| {
        let prompt = client.begins();
        client.expect(method::SESSION_SHOW);
        client.error(&prompt, "the journal cannot be written", json!({"reason": "store_failed"}));
    });
    assert_eq!((done.out.as_str(), done.code), ("", Some(1)));
    assert!(done.err.starts_with("error: the journal cannot be written"), "{}", done.err);
}

#[test]
fn the_last_used_session_of_the_directory_goes_on() {
    let home = Home::new();
    let cwd = home.work();
    let listener = home.listen();
    let daemon = std::thread::spawn(move || {
        let mut client = Client::accept(&listener);
        let mut opened = session("s-3");
        opened["prompts"] = json!(0);
        let sessions = json!({"sessions": [opened, session("s-2"), session("s-1")]});
        let list = client.answer(method::SESSION_LIST, sessions);
        assert_eq!(list["params"], json!({"cwd": cwd}));
        let initialize = client.answer("initialize", capable());
        assert_eq!(initialize["params"]["_meta"]["_acpd"]["agent"], "demo");
        client.answer(method::SESSION_ATTACH, json!({"session": session("s-2")}));
        let prompt = client.expect("session/prompt");
        client.result(&prompt, json!({"stopReason": "end_turn"}));
        client.closed();
        let mut client = Client::accept(&listener);
        let list = client.answer(method::SESSION_LIST, json!({"sessions": []}));
        assert_eq!(list["params"], json!({"cwd": cwd, "agent": "x"}));
        client.closed();
    });
    let done = home.run(&["run", "-c", "more"]);
    assert_eq!((done.err.as_str(), done.code), ("", Some(0)));
    let done = home.run(&["run", "--continue", "-a", "x", "more"]);
    assert_eq!(done.code, Some(3));
    let error = "error: no session of `x` in `[HOME]/work` to continue\n";
    assert!(done.err.starts_with(error), "{}", done.err);
    assert_eq!(home.run(&["run", "-c", "-s", "fix", "more"]).code, Some(2));
    daemon.join().unwrap();
}

#[test]
fn how_a_turn_ends_decides_the_exit_code() {
    let ends = [
        (json!({"stopReason": "refusal"}), 5, "the agent refused\n"),
        (json!({"stopReason": "cancelled"}), 130, "cancelled\n"),
        (
            json!({"stopReason": "max_tokens"}),
            0,
            "stopped: the answer reached the length limit of the agent\n",
        ),
    ];
    for (result, code, err) in ends {
        let done = run_against(&["run", "hello"], move |mut client| {
            let prompt = client.begins();
            client.result(&prompt, result);
        });
        assert_eq!((done.code, done.err.as_str()), (Some(code), err));
    }
}

/// Ctrl-C, as the terminal sends it.
pub(crate) fn interrupt(pid: u32) {
    signal(pid, "INT");
}

/// Sends a signal by its name, as a key of the terminal does.
pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("/bin/kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn without_a_terminal_a_permission_is_held_and_can_be_withdrawn() {
    let (home, listener) = Home::listening();
    let mut child = home.acpctl(["run", "hello"]).spawn().unwrap();
    let mut client = Client::accept(&listener);
    let prompt = client.begins();
    let ask = json!({"sessionId": "s-1", "toolCall": {"toolCallId": "t", "title": "rm -rf /"},
        "_meta": about("rm -rf /", &[]), "options": [{"optionId": "o", "name": "Allow", "kind": "allow_once"}]});
    client.send(json!({"jsonrpc": "2.0", "id": "q1", "method": "session/request_permission",
        "params": ask}));
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert_eq!(line, "waiting for permission: $ rm -rf /\n");
    client.send(json!({"jsonrpc": "2.0", "method": "$/cancel_request",
        "params": {"requestId": "q1"}}));
    client.result(&prompt, json!({"stopReason": "end_turn"}));
    // Nothing may have been answered.
    client.closed();
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("withdrawn: no answer is needed"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn requests_for_services_that_were_not_offered_are_refused() {
    let home = Home::new();
    let daemon = home.daemon(|mut client| {
        let prompt = client.begins();
        client.send(json!({"jsonrpc": "2.0", "id": 7, "method": "fs/read_text_file",
            "params": {"sessionId": "s-1", "path": "/etc/passwd"}}));
        let refused = client.read().unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32601)));
        client.result(&prompt, json!({"stopReason": "end_turn"}));
    });
    assert_eq!(home.run(&["run", "hello"]).code, Some(0));
    daemon.join().unwrap();
}

#[test]
fn files_images_and_stdin_become_blocks_of_the_prompt() {
    let home = Home::new();
    std::fs::write(home.work().join("notes.md"), "# notes").unwrap();
    std::fs::write(home.work().join("dot.png"), b"\x89PNG").unwrap();
    let daemon = home.daemon(|mut client| {
        let prompt = client.begins();
        client.result(&prompt, json!({"stopReason": "end_turn"}));
        prompt
    });
    let mut child = home
        .acpctl(["run", "--file", "notes.md", "--image", "dot.png", "review", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a diff\n").unwrap();
    assert_eq!(home.wait(child).code, Some(0));
    let prompt = daemon.join().unwrap();
    let blocks = prompt["params"]["prompt"].as_array().unwrap().clone();
    assert_eq!(blocks.len(), 3, "{blocks:?}");
    assert_eq!(blocks[0]["text"], "review\n\na diff");
    assert_eq!(blocks[1]["resource"]["text"], "# notes");
    assert_eq!(blocks[1]["resource"]["mimeType"], "text/markdown");
    assert_eq!(blocks[2]["mimeType"], "image/png");
}

#[test]
fn stdin_alone_is_the_prompt_and_must_be_text() {
    let run = |home: &Home, bytes: &[u8]| {
        let mut child = home.acpctl(["run"]).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        home.wait(child)
    };
    let home = Home::new();
    let done = run(&home, b"a\0b");
    let error = "error: stdin is not text in UTF-8\n";
    assert_eq!((done.err.as_str(), done.code), (error, Some(2)));
    let daemon = home.daemon(|mut client| {
        let prompt = client.begins();
        assert_eq!(prompt["params"]["prompt"], json!([{"type": "text", "text": "hello"}]));
        client.result(&prompt, json!({"stopReason": "end_turn"}));
    });
    assert_eq!(run(&home, b"hello\n").code, Some(0));
    daemon.join().unwrap();
    // A diff may have files of other encodings in it.
    let home = Home::new();
    let daemon = home.daemon(|mut client| {
        let prompt = client.begins();
        let said = json!([{"type": "text", "text": "-caf\u{fffd}\n+café"}]);
        assert_eq!(prompt["params"]["prompt"], said);
        client.result(&prompt, json!({"stopReason": "end_turn"}));
    });
    let done = run(&home, b"-caf\xe9\n+caf\xc3\xa9\n");
    assert_eq!(done.code, Some(0));
    assert!(done.err.contains("stdin is not valid UTF-8"), "{}", done.err);
    daemon.join().unwrap();
}

#[test]
fn an_answer_nobody_reads_any_more_ends_the_command_and_leaves_the_turn() {
    let (home, listener) = Home::listening();
    let mut child = home.acpctl(["run", "hello"]).spawn().unwrap();
    drop(child.stdout.take());
    let mut client = Client::accept(&listener);
    client.begins();
    client.says("is anybody there?");
    client.closed();
    let done = home.wait(child);
    let told = "the turn continues in the background; come back with: acpctl attach s-1\n";
    assert_eq!((done.code, done.err.as_str()), (Some(8), told));
}

#[test]
fn a_request_to_end_leaves_the_turn_and_says_how_to_come_back() {
    let (home, listener) = Home::listening();
    let child = home.acpctl(["run", "hello"]).spawn().unwrap();
    let mut client = Client::accept(&listener);
    client.begins();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    client.closed();
    let done = home.wait(child);
    let told = "the turn continues in the background; come back with: acpctl attach s-1\n";
    assert_eq!((done.code, done.err.as_str()), (Some(128 + 15), told));
}
