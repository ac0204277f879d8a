//! Help for writing a prompt, with the real programs: an editor, files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use acpd_test::harness::{Agent, Screen, TestEnv, until};
use serde_json::{Value, json};

use crate::home;
use crate::screens::{CTRL_D, ENTER, SIZE};

/// A program of the person's.
fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The content blocks of the prompts in the journal.
pub(crate) fn prompt(env: &TestEnv) -> Vec<Value> {
    until("a prompt", || {
        let list = env.connect().ok("_acpd/session/list", json!({}));
        let session = list["sessions"][0]["sessionId"].as_str()?.to_owned();
        let log =
            env.connect().ok("_acpd/session/log", json!({"ref": {"session": session}, "after": 0}));
        let said = |entry: &&Value| {
            entry["line"]["params"]["update"]["sessionUpdate"] == "user_message_chunk"
        };
        let blocks = log["entries"].as_array()?.iter().filter(said);
        let blocks: Vec<Value> =
            blocks.map(|entry| entry["line"]["params"]["update"]["content"].clone()).collect();
        (!blocks.is_empty()).then_some(blocks)
    })
}

#[test]
fn a_prompt_is_written_in_the_persons_editor_which_has_the_terminal_alone() {
    let env = home([Agent::new("agent")]);
    // The editor reads a line from the terminal, as the person types it.
    let editor = env.path("editor");
    let mark = env.path("editor.runs");
    script(
        &editor,
        &format!(
            "stty -a | grep -q ' icanon' && touch {}\nread line\nprintf '%s, %s' \"$(cat \"$2\")\" \"$line\" > \"$2\"\n",
            mark.display()
        ),
    );
    let mut command = env.acpctl_command(&["chat", "--new"]);
    command.env("VISUAL", format!("{} --wait", editor.display())).env("EDITOR", "false");
    let mut chat = Screen::start(command, SIZE);
    chat.sees("nothing was said yet");
    chat.types("first");
    chat.types("\u{18}");
    chat.writes("\u{1b}[?1049l");
    until("the editor, in a terminal as it was", || mark.exists().then_some(()));
    chat.types("every key is the editor's\n");
    chat.sees("\n first, every key is the editor's");
    chat.types(ENTER);
    chat.sees("You said: first, every key is the editor's");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
    chat.gives_back();
}

#[test]
fn an_editor_that_fails_changes_nothing() {
    let env = home([Agent::new("agent")]);
    let mut command = env.acpctl_command(&["chat", "--new"]);
    command.env("VISUAL", "false").env_remove("EDITOR");
    let mut chat = Screen::start(command, SIZE);
    chat.sees("nothing was said yet");
    chat.types("an hour of thoughts");
    chat.types("\u{18}");
    let seen = chat.sees("`false` failed");
    assert!(seen.contains("\n an hour of thoughts"), "{seen}");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
    chat.gives_back();
}

#[test]
fn files_commands_and_images_go_with_the_prompt() {
    let env = home([Agent::new("agent")]);
    let work = env.work("api");
    fs::create_dir_all(work.join("src")).unwrap();
    fs::write(work.join("src/cookie.rs"), "let c;").unwrap();
    fs::write(work.join(".gitignore"), "cookie.log\n").unwrap();
    fs::write(work.join("cookie.log"), "").unwrap();
    fs::write(work.join("logo.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    fs::write(work.join("paper.pdf"), b"%PDF\xff\0").unwrap();
    fs::write(work.join("said.mp3"), b"ID3\0").unwrap();
    fs::write(work.join("empty.png"), "").unwrap();
    let elsewhere = env.path("screenshot.png");
    fs::write(&elsewhere, b"\x89PNG\r\n\x1a\n").unwrap();
    let mut command = env.acpctl_command(&["chat", "--new"]);
    command.current_dir(&work);
    let mut chat = Screen::start(command, SIZE);
    chat.sees("nothing was said yet");
    chat.types("look at @cook");
    let seen = chat.sees("▸ src/cookie.rs");
    assert!(!seen.contains("cookie.log"), "{seen}");
    chat.types("\t");
    chat.sees("look at @src/cookie.rs");
    // Dropped on the terminal, which pastes its path.
    chat.types(&format!("\u{1b}[200~{}\u{1b}[201~", elsewhere.display()));
    chat.sees("screenshot.png");
    chat.types(ENTER);
    chat.sees("done");
    let blocks = prompt(&env);
    let kinds: Vec<&str> = blocks.iter().filter_map(|block| block["type"].as_str()).collect();
    assert_eq!(kinds, ["text", "resource_link", "image"], "{blocks:?}");
    assert!(blocks[1]["uri"].as_str().unwrap().ends_with("/api/src/cookie.rs"));
    assert_eq!(blocks[2]["mimeType"], "image/png");
    // Each file as the agent takes it: this one takes no audio.
    chat.types("and @empt");
    chat.sees("▸ empty.png");
    chat.types("\t");
    chat.types(ENTER);
    let seen = chat.sees("empty.png` is empty");
    assert!(seen.contains("\n and @empty.png"), "{seen}");
    chat.types("\u{3}");
    for name in ["logo.png", "paper.pdf", "said.mp3"] {
        chat.types(&format!("@{}", &name[..4]));
        chat.sees(&format!("▸ {name}"));
        chat.types("\t");
    }
    chat.types(ENTER);
    chat.sees("You said: @logo.png @paper.pdf @said.mp3");
    let blocks = prompt(&env).split_off(blocks.len());
    let kinds: Vec<&str> = blocks.iter().filter_map(|block| block["type"].as_str()).collect();
    assert_eq!(kinds, ["text", "image", "resource", "resource_link"], "{blocks:?}");
    assert_eq!(blocks[2]["resource"]["blob"], "JVBERv8A");
    chat.types("/pl");
    chat.sees("▸ /plan");
    chat.types("\u{1b}");
    chat.types("\u{3}");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
}

#[test]
fn a_prompt_that_waits_is_taken_back_changed_and_sent_again() {
    let env = home([Agent::new("agent")]);
    let mut chat = Screen::start(env.acpctl_command(&["chat", "--new"]), SIZE);
    chat.sees("nothing was said yet");
    chat.types("[slow 600]");
    chat.types(ENTER);
    chat.sees("tick 2");
    for (prompt, queued) in [("then commit", "1 queued: then commit"), ("then push", "2 queued")] {
        chat.types(prompt);
        chat.types(ENTER);
        chat.sees(queued);
    }
    chat.types("\u{11}");
    chat.sees("Take back, to change it");
    chat.sees("▸ 1  then commit");
    chat.types(ENTER);
    chat.sees("1 queued: then push");
    chat.sees("\n then commit");
    chat.types(" all of it");
    chat.types(ENTER);
    chat.sees("2 queued");
    chat.types("\u{11}");
    chat.sees("▸ 1  then commit all of it");
    chat.sees("  2  then push");
    chat.types("\u{1b}");
    chat.sees("^S steer");
    chat.types("\u{3}\u{3}");
    chat.sees("taken back by acpctl: then commit all of it");
    chat.sees("taken back by acpctl: then push");
    chat.sees("turn ended: cancelled");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
}
