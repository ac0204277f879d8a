//! Tests of every verb.

use std::process::Command;

use serde_json::{Value, json};

use crate::driver::{Agent, Place, Reply};

/// One prompt to a fresh agent.
fn ask(text: &str) -> Reply {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.prompt(&session, text)
}

/// Ends a process that a verb left behind, named in the answer.
fn kill_child(reply: &Reply) {
    let pid: u32 =
        reply.text()["child ".len()..].split('\n').next().unwrap().parse().expect("a process id");
    let killed = Command::new("sh").arg("-c").arg(format!("kill -KILL {pid}")).status().unwrap();
    assert!(killed.success(), "the child {pid} is alive");
}

#[test]
fn slow_streams_and_is_interrupted_by_cancel() {
    assert!(ask("[slow 2]").text().starts_with("tick 1\ntick 2\nDone."));
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    let turn = agent.send_prompt(&session, "[slow 100000]");
    agent.until("tick 1\n");
    agent.cancel(&session);
    let reply = agent.wait(&turn);
    assert_eq!(reply.stop_reason(), "cancelled");
    assert!(!reply.text().contains("history="));
}

#[test]
fn chunks_are_numbered_lines() {
    let reply = ask("[chunks 3]");
    assert_eq!(reply.chunks("agent_message_chunk")[..3], ["line 1\n", "line 2\n", "line 3\n"]);
}

#[test]
fn numbers_are_counted_on_over_the_turn() {
    let reply = ask("[number 2 a 0][think][number 1 b 0]");
    assert_eq!(reply.chunks("agent_message_chunk")[..3], ["a/1\n", "a/2\n", "b/3\n"]);
}

#[test]
fn big_is_one_chunk_of_that_size() {
    assert_eq!(ask("[big 1000000]").chunks("agent_message_chunk")[0].len(), 1_000_000);
}

#[test]
fn think_is_a_thought() {
    assert_eq!(ask("[think of rain]").chunks("agent_thought_chunk"), ["of rain"]);
}

#[test]
fn plan_ends_with_all_entries_done() {
    let reply = ask("[plan]");
    let plans = reply.updates("plan");
    let last = plans[3]["entries"].as_array().unwrap();
    assert!(last.len() == 3 && last.iter().all(|entry| entry["status"] == "completed"));
}

#[test]
fn tool_runs_through_its_states_and_ends_with_a_diff() {
    let reply = ask("[tool Edit it]");
    assert_eq!(reply.updates("tool_call")[0]["title"], "Edit it");
    let updates = reply.updates("tool_call_update");
    let states: Vec<&Value> = updates.iter().map(|update| &update["status"]).collect();
    assert_eq!(states, ["in_progress", "completed"]);
    assert_eq!(updates[1]["content"][0]["type"], "diff");
    assert_eq!(updates[1]["locations"][0]["path"], "/demo.txt");
}

#[test]
fn tool_open_stays_in_progress() {
    let reply = ask("[tool-open Wait]");
    let updates = reply.updates("tool_call_update");
    assert_eq!((updates.len(), &updates[0]["status"]), (1, &json!("in_progress")));
}

#[test]
fn ask_reports_the_chosen_option_the_refusal_and_the_error() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    let mut answers = Vec::new();
    for outcome in
        [json!({"outcome": "selected", "optionId": "no"}), json!({"outcome": "cancelled"})]
    {
        let turn = agent.send_prompt(&session, "[ask]");
        let request = agent.until("session/request_permission");
        assert_eq!(request["params"]["options"].as_array().map(Vec::len), Some(4));
        agent.answer(&request, json!({"outcome": outcome}));
        answers.push(agent.wait(&turn).text());
    }
    let turn = agent.send_prompt(&session, "[ask]");
    let request = agent.until("session/request_permission");
    let error = json!({"code": -32800, "message": "gone"});
    agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
    answers.push(agent.wait(&turn).text());
    let firsts: Vec<&str> = answers.iter().filter_map(|text| text.lines().next()).collect();
    assert_eq!(firsts, ["permission: no", "permission: cancelled", "permission: error -32800"]);
}

#[test]
fn cancel_ends_a_turn_that_asks_and_the_late_answer_hurts_nobody() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    let turn = agent.send_prompt(&session, "[ask]");
    let request = agent.until("session/request_permission");
    agent.cancel(&session);
    let reply = agent.wait(&turn);
    assert_eq!(
        (reply.stop_reason(), reply.text().as_str()),
        ("cancelled", "permission: cancelled\n")
    );
    agent.answer(&request, json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(agent.prompt(&session, "next").stop_reason(), "end_turn");
}

#[test]
fn hang_ignores_cancel() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    let turn = agent.send_prompt(&session, "[chunks 1] [hang]");
    agent.until("line 1\n");
    agent.cancel(&session);
    let list = agent.call("session/list", json!({}));
    assert!(list.before.iter().all(|message| message["id"] != turn));
    assert_eq!(agent.prompt(&session, "still busy").code(), -32603);
}

#[test]
fn crash_exits_with_three() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.send_prompt(&session, "[crash]");
    assert_eq!(agent.ended().code(), Some(3));
    assert_eq!(place.record().last().unwrap().line, "exit 3");
}

#[cfg(unix)]
#[test]
fn crash_kill_dies_of_sigkill() {
    use std::os::unix::process::ExitStatusExt as _;
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.send_prompt(&session, "[crash-kill]");
    assert_eq!(agent.ended().signal(), Some(9));
}

#[test]
fn half_leaves_half_a_line() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.send_prompt(&session, "[half]");
    let mut last = Vec::new();
    while let Some(line) = agent.raw() {
        last = line;
    }
    assert!(last.starts_with(b"{\"jsonrpc\"") && serde_json::from_slice::<Value>(&last).is_err());
    assert_eq!(agent.ended().code(), Some(3));
}

#[test]
fn noise_is_between_the_messages() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.next();
    agent.send_prompt(&session, "[noise]");
    let lines: Vec<Vec<u8>> = (0..10).map_while(|_| agent.raw()).collect();
    assert!(lines[0].starts_with(b"Update available"));
    assert_eq!((&lines[1][..], &lines[2][..]), (&b"42"[..], &b"[]"[..]));
    assert!(lines[3].starts_with(b"\x1b]0;title\x07{\"") && lines[3].ends_with(b"}"));
    assert!(lines[4].starts_with(b"{") && lines[4].ends_with(b"}\r"));
    assert!(lines[5].starts_with(b"\xef\xbb\xbf{\""));
    assert!(std::str::from_utf8(&lines[6]).is_err());
    assert_eq!(
        (&lines[7][..], &lines[8][..], &lines[9][..]),
        (&b""[..], &b"\r"[..], &b"{\"id\":1}"[..])
    );
}

#[test]
fn a_prompt_can_fail_or_stop_as_it_likes() {
    assert_eq!(ask("[auth]").code(), -32000);
    let failed = ask("[error -32050 quota is used up]");
    assert_eq!(failed.response["error"], json!({"code": -32050, "message": "quota is used up"}));
    assert_eq!(ask("[stop refusal]").stop_reason(), "refusal");
}

#[test]
fn children_outlive_their_agent() {
    for verb in ["[child]", "[child-setsid]"] {
        let place = Place::new();
        let mut agent = place.agent("");
        let session = agent.session();
        let reply = agent.prompt(&session, verb);
        drop(agent);
        kill_child(&reply);
    }
}

#[test]
fn stderr_gets_exactly_that_many_bytes() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.prompt(&session, "[stderr 1000]");
    agent.close_stdin();
    assert_eq!(agent.stderr().len(), 1000);
}

#[test]
fn fs_read_reports_the_content_or_the_error() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    let turn = agent.send_prompt(&session, "[fs-read /a file]");
    let request = agent.until("fs/read_text_file");
    assert_eq!(request["params"]["path"], "/a file");
    agent.answer(&request, json!({"content": "its text"}));
    assert!(agent.wait(&turn).text().starts_with("file: its text\n"));

    let turn = agent.send_prompt(&session, "[fs-read /none]");
    let request = agent.until("fs/read_text_file");
    let error = json!({"code": -32601, "message": "not here"});
    agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
    assert!(agent.wait(&turn).text().starts_with("file error -32601: not here\n"));
}

#[test]
fn unknown_updates_and_extensions_are_sent() {
    let reply = ask("[unknown-update] [ext]");
    assert_eq!(reply.updates("unheard_of").len(), 1);
    let extensions: Vec<&Value> =
        reply.before.iter().filter(|message| message["method"] == "_vendor/thing").collect();
    assert!(extensions[0]["params"]["sessionId"].is_string());
    assert!(extensions[1]["params"].get("sessionId").is_none());
}

#[test]
fn the_environment_and_the_directories_are_reported() {
    let place = Place::new();
    let mut agent = Agent::spawn(place.command("").env("GREETING", "hello").current_dir("/"));
    let session = agent.session();
    let text = agent.prompt(&session, "[env GREETING] [env NO_SUCH_VARIABLE] [cwd]").text();
    assert!(
        text.starts_with("env GREETING=hello\nenv NO_SUCH_VARIABLE is not set\ncwd / process /\n")
    );
}

#[test]
fn the_late_chunk_follows_the_response() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    assert!(!agent.prompt(&session, "[late-chunk]").text().contains("late"));
    agent.until("late chunk\n");
}

#[test]
fn a_pause_waits_for_its_file_and_can_be_cancelled() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    let turn = agent.send_prompt(&session, "[pause here] #after");
    agent.until("paused at here\n");
    assert!(place.path().join("here.hit").exists());
    std::fs::write(place.path().join("here.go"), "").unwrap();
    assert_eq!(agent.wait(&turn).stop_reason(), "end_turn");

    let turn = agent.send_prompt(&session, "[pause there]");
    agent.until("paused at there\n");
    agent.cancel(&session);
    assert_eq!(agent.wait(&turn).stop_reason(), "cancelled");
}

#[test]
fn raw_says_the_bytes_of_a_file_with_the_ids_of_the_turn() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    let file = place.path().join("raw");
    let line = r#"{"method":"_vendor/raw","params":{"sessionId":"$SESSION","of":$REQUEST}}"#;
    std::fs::write(&file, format!("{line}\n")).unwrap();
    let reply = agent.prompt(&session, &format!("[raw {}]", file.display()));
    let params = json!({"sessionId": session, "of": reply.response["id"]});
    let said = json!({"method": "_vendor/raw", "params": params});
    assert!(reply.before.contains(&said), "{reply:?}");
}

#[test]
fn a_tool_runs_below_the_agent_and_its_output_is_said() {
    let place = Place::new();
    let mut agent = place.agent("");
    let (session, parent) = (agent.session(), agent.child.id());
    let file = place.path().join("tool");
    std::fs::write(&file, "echo parent $PPID\nexit 4\n").unwrap();
    let reply = agent.prompt(&session, &format!("[tool-run {}]", file.display()));
    let said = format!("tool: parent {parent}\nexit status: 4\n");
    assert_eq!(reply.chunks("agent_message_chunk")[0], said);
}
