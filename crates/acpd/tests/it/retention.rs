//! Conversations that are not kept.

use std::fs;

use acpd_test::harness::{Agent, TestEnv, kill9, until};

use crate::{echo, home};

fn names(env: &TestEnv) -> Vec<String> {
    let list = env.json(&["session", "ls"]);
    let names = list["sessions"].as_array().unwrap().iter().map(|one| one["name"].clone());
    let mut names: Vec<String> = names.map(|name| name.as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// Names of the database's files that have these bytes: the journal, its log and the index.
fn files_with(env: &TestEnv, words: &str) -> Vec<String> {
    let files = fs::read_dir(env.path("state")).unwrap().map(Result::unwrap);
    let files = files.filter(|file| file.file_type().unwrap().is_file());
    let has_words = |file: &fs::DirEntry| {
        let bytes = fs::read(file.path()).unwrap_or_default();
        bytes.windows(words.len()).any(|part| part == words.as_bytes())
    };
    files.filter(has_words).map(|file| file.file_name().into_string().unwrap()).collect()
}

#[test]
fn persist_history_false_leaves_no_word_when_the_session_is_closed() {
    let env = home([echo().set("persist_history", "false"), Agent::new("keeper")]);
    let words = "zwetschgendatschi";
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, &format!("say #one {words} [tool Edit {words}]")).unwrap();
    env.acpctl(&["run", "-a", "keeper", "-s", "kept", "say #pflaume"]).success();
    assert!(!files_with(&env, words).is_empty());
    let found =
        |words: &str| env.json(&["session", "search", words])["hits"].as_array().unwrap().len();
    assert_eq!((found(words), found("pflaume") > 0), (0, true), "no search finds it");
    env.acpctl(&["session", "archive", "fix"]).code(2).explains(&["persist_history"]);

    // The session survives crashes, as long as it is open.
    let first = env.agent_pid("echo").unwrap();
    kill9(first);
    until("another process", || env.agent_pid("echo").filter(|pid| *pid != first));
    client.say(&session, "say #two").unwrap();
    assert!(client.said(&session).contains("tags=one,two"));
    env.kill_daemon();
    env.acpctl(&["daemon", "start"]).success();
    let mut client = env.client("echo");
    client.attach(&session, None);
    client.say(&session, "say #three").unwrap();
    assert!(env.said(&session).contains("tags=one,two,three"));

    client.ok("session/close", serde_json::json!({"sessionId": session}));
    assert_eq!(names(&env), ["kept"]);
    until("the last word to be gone", || files_with(&env, words).is_empty().then_some(()));
    assert!(!files_with(&env, "pflaume").is_empty());
    env.acpctl(&["session", "undo", "fix"]).code(3);
}
