//! Tests of every flag.

use std::process::Command;

use serde_json::{Value, json};

use crate::driver::{Agent, Place, initialize};

/// A place with one stored session, and its id.
fn stored() -> (Place, String) {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.prompt(&session, "#one");
    drop(agent);
    (place, session)
}

fn resume(session: &str) -> Value {
    json!({"sessionId": session, "cwd": "/"})
}

#[test]
fn methods_can_be_missing() {
    let (place, session) = stored();
    let mut agent = place.start("no-load,no-resume,no-list,no-close,no-fork,no-steering");
    let result = agent.call("initialize", initialize()).ok().clone();
    assert_eq!(result["agentCapabilities"]["loadSession"], false);
    assert_eq!(result["agentCapabilities"]["sessionCapabilities"], json!({"delete": {}}));
    assert_eq!(result.get("_meta"), None);
    assert_eq!(agent.load(&session).code(), -32601);
    for method in
        ["session/resume", "session/list", "session/close", "session/fork", "_session/steering"]
    {
        assert_eq!(agent.call(method, resume(&session)).code(), -32601, "{method}");
    }
}

#[test]
fn resume_can_lie() {
    let (place, session) = stored();
    let mut agent = place.start("resume-lies");
    let result = agent.call("initialize", initialize()).ok().clone();
    assert_eq!(result["agentCapabilities"]["sessionCapabilities"]["resume"], json!({}));
    assert_eq!(agent.call("session/resume", resume(&session)).code(), -32601);
    agent.load(&session).ok();
}

#[test]
fn the_protocol_version_can_be_another() {
    let place = Place::new();
    let mut agent = place.start("protocol=2");
    assert_eq!(agent.call("initialize", initialize()).ok()["protocolVersion"], 2);
}

#[test]
fn load_can_fail_a_few_times_across_restarts_or_always() {
    let (place, session) = stored();
    for _ in 0..2 {
        assert_eq!(place.agent("load-fails-times=2").load(&session).code(), -32602);
    }
    place.agent("load-fails-times=2").load(&session).ok();
    assert_eq!(place.agent("load-error=-31002").load(&session).code(), -31002);
}

#[test]
fn sessions_can_be_forgotten() {
    let (place, session) = stored();
    assert_eq!(place.agent("forget").load(&session).code(), -32002);
}

#[test]
fn a_login_can_be_required_and_lasts() {
    let (place, session) = stored();
    let mut agent = place.start("auth-required,auth-list");
    let methods = agent.call("initialize", initialize()).ok()["authMethods"].clone();
    assert_eq!(methods[0]["id"], "demo-login");
    let new = json!({"cwd": "/", "mcpServers": []});
    assert_eq!(agent.call("session/new", new).code(), -32000);
    assert_eq!(agent.load(&session).code(), -32000);
    assert_eq!(agent.call("session/resume", resume(&session)).code(), -32000);
    assert_eq!(agent.call("session/list", json!({})).code(), -32000);
    assert_eq!(agent.prompt(&session, "hello").code(), -32000);
    assert_eq!(agent.call("authenticate", json!({"methodId": "other"})).code(), -32602);
    agent.call("authenticate", json!({"methodId": "demo-login"})).ok();
    agent.load(&session).ok();
    place.agent("auth-required,auth-list").call("session/list", json!({})).ok();
}

#[test]
fn a_login_can_be_forgotten_or_be_wanted_in_hidden_words() {
    let place = Place::new();
    let mut agent = place.agent("auth-required,auth-hidden");
    let new = || json!({"cwd": "/", "mcpServers": []});
    assert_eq!(agent.call("session/new", new()).code(), -32603);
    agent.call("authenticate", json!({"methodId": "demo-login"})).ok();
    agent.call("session/new", new()).ok();
    agent.call("logout", json!({})).ok();
    assert_eq!(agent.call("session/new", new()).code(), -32603);
}

#[test]
fn a_login_can_run_out_once() {
    let place = Place::new();
    let mut agent = place.agent("auth-once-after=1");
    let session = agent.session();
    agent.prompt(&session, "one").ok();
    assert_eq!(agent.prompt(&session, "two").code(), -32000);
    agent.prompt(&session, "three").ok();
}

#[test]
fn a_start_can_be_slow_or_silent() {
    let place = Place::new();
    place.agent("slow-start=1,init-delay=1").session();
    let mut agent = place.start("silent-start");
    agent.request("initialize", initialize());
    assert!(agent.call("session/list", json!({})).before.is_empty());
}

#[test]
fn a_method_can_be_fatal_at_the_nth_time() {
    let place = Place::new();
    let mut agent = place.agent("crash-on=session/new:2");
    agent.session();
    agent.request("session/new", json!({"cwd": "/", "mcpServers": []}));
    assert_eq!(agent.ended().code(), Some(3));
    let mut agent = place.start("crash-on=initialize");
    agent.request("initialize", initialize());
    assert_eq!(agent.ended().code(), Some(3));
}

#[test]
fn it_can_exit_at_once() {
    let place = Place::new();
    let mut agent = place.start("exit-at-start=7");
    assert_eq!(agent.ended().code(), Some(7));
    assert_eq!(agent.stderr().lines().count(), 1);
    let mut agent = place.start("plain-line-exit");
    assert_eq!(agent.raw().unwrap(), b"This agent is no longer maintained.");
    assert!(agent.ended().success());
}

#[test]
fn the_end_of_stdin_can_be_ignored_and_noted() {
    let place = Place::new();
    let mut agent = place.agent("ignore-eof,save-on-eof");
    let session = agent.session();
    agent.send_prompt(&session, "[pause eof] still here");
    agent.until("paused at eof\n");
    agent.close_stdin();
    while !place.state().join("saved-on-eof").exists() {
        std::thread::yield_now();
    }
    // The agent has seen the end of stdin, and the turn goes on.
    std::fs::write(place.path().join("eof.go"), "").unwrap();
    agent.until(" | history=0 tags=");
}

#[cfg(unix)]
#[test]
fn sigterm_can_be_ignored() {
    let place = Place::new();
    let mut agent = place.agent("ignore-term");
    let kill = format!("kill -TERM {}", agent.child.id());
    assert!(Command::new("sh").arg("-c").arg(kill).status().unwrap().success());
    agent.session();
    agent.close_stdin();
    assert!(agent.ended().success());
}

#[test]
fn it_can_leave_its_input_unread() {
    let place = Place::new();
    let mut agent = place.start("no-read");
    agent.request("initialize", initialize());
    agent.close_stdin();
    assert!(agent.child.try_wait().unwrap().is_none());
    drop(agent);
    assert!(place.record().iter().all(|line| line.line == "start"));
}

#[test]
fn updates_can_come_before_their_session() {
    let place = Place::new();
    let new = json!({"cwd": "/", "mcpServers": []});
    let reply = place.agent("early-updates").call("session/new", new);
    assert_eq!(reply.updates("available_commands_update").len(), 1);
}

#[test]
fn a_replay_can_be_late_and_long() {
    let (place, session) = stored();
    let mut agent = place.agent("late-replay,replay-turns=2");
    let early = agent.load(&session);
    assert_eq!(early.before.len(), 3);
    let late: Vec<Value> =
        (0..4).map(|_| agent.next()["params"]["update"]["content"]["text"].take()).collect();
    let texts = ["earlier answer 2", "#one", "You said: #one | history=0 tags=one"];
    assert_eq!(late[..3], texts);
    assert!(late[3].is_null(), "the commands come last");
}

#[test]
fn own_ids_can_be_strings_and_session_ids_numbers() {
    let place = Place::new();
    let mut agent = place.agent("string-ids,count-ids");
    assert_eq!([agent.session(), agent.session()], ["0", "1"]);
    let turn = agent.send_prompt("0", "[fs-read /x]");
    let request = agent.until("fs/read_text_file");
    assert!(request["id"].is_string());
    agent.answer(&request, json!({"content": ""}));
    agent.wait(&turn).ok();
    assert_eq!(place.agent("count-ids").session(), "0");
}

#[test]
fn the_prompt_can_be_echoed() {
    let place = Place::new();
    let mut agent = place.agent("echo-user");
    let session = agent.session();
    assert_eq!(agent.prompt(&session, "hello").chunks("user_message_chunk"), ["hello"]);
}

#[test]
fn options_can_be_back_to_default_after_a_load() {
    let (place, session) = stored();
    let mut agent = place.agent("");
    agent.load(&session).ok();
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "code"})).ok();
    drop(agent);
    assert_eq!(place.agent("").load(&session).ok()["modes"]["currentModeId"], "code");
    assert_eq!(place.agent("reset-options").load(&session).ok()["modes"]["currentModeId"], "ask");
}

#[test]
fn flags_can_be_arguments_and_unknown_ones_are_refused() {
    let place = Place::new();
    let status = place.command("").arg("--exit-at-start=9").status().unwrap();
    assert_eq!(status.code(), Some(9));
    for flags in ["no-such", "protocol", "protocol=x", "no-load=1"] {
        assert_eq!(place.command(flags).status().unwrap().code(), Some(2), "{flags}");
    }
    let help = place.command("").arg("--help").output().unwrap();
    assert!(String::from_utf8(help.stdout).unwrap().contains("no-load"));
}

#[cfg(target_os = "linux")]
#[test]
fn who_lives_beside_it_is_recorded() {
    let place = Place::new();
    let start = |flags: &str| {
        let mut command = place.command(flags);
        let mut agent = Agent::spawn(command.env("ACPD_AGENT_MARK", place.path()));
        agent.call("initialize", initialize()).ok();
        agent
    };
    let first = start("look-around");
    assert!(place.record().iter().all(|line| !line.line.starts_with("beside ")));
    let _second = start("look-around");
    let wanted = format!("beside {} ", first.child.id());
    assert!(place.record().iter().any(|line| line.line.starts_with(&wanted)));
}

#[test]
fn a_login_can_be_wanted_before_anything_else() {
    let place = Place::new();
    assert_eq!(place.start("auth-first").call("initialize", initialize()).code(), -32000);
    assert!(place.start("login").ended().success());
    place.start("auth-first").call("initialize", initialize()).ok();
}

#[test]
fn a_token_can_be_too_old() {
    let place = Place::new();
    std::fs::create_dir_all(place.state()).unwrap();
    let (flags, new) = ("auth-token=TOKEN", json!({"cwd": "/", "mcpServers": []}));
    let mut agent = Agent::spawn(place.command(flags).env("TOKEN", "new"));
    agent.call("initialize", initialize()).ok();
    assert_eq!(agent.call("session/new", new.clone()).code(), -32000);
    std::fs::write(place.state().join("token"), "new\n").unwrap();
    agent.call("session/new", new).ok();
}
