//! Sessions: what is kept, what comes back, what is refused.

use acpd_demo::Direction;
use serde_json::{Value, json};

use crate::driver::{Agent, Place, initialize};

#[test]
fn an_answer_echoes_and_proves_what_the_session_remembers() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.prompt(&session, "#one");
    let reply = agent.prompt(&session, "hello #two, and #three");
    assert_eq!(reply.text(), "You said: hello #two, and #three | history=1 tags=one,two,three");
    assert_eq!(reply.stop_reason(), "end_turn");
    assert_eq!(reply.updates("usage_update").len(), 1);
    assert_eq!(reply.updates("session_info_update")[0]["title"], "#one");
}

#[test]
fn a_new_session_is_followed_by_its_commands_and_a_slash_command_works() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    let commands = agent.next();
    assert_eq!(commands["params"]["update"]["sessionUpdate"], "available_commands_update");
    assert_eq!(agent.prompt(&session, "/plan").updates("plan").len(), 4);
}

#[test]
fn a_loaded_session_replays_before_the_response_and_goes_on_with_its_history() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.prompt(&session, "#one");
    drop(agent);

    let mut agent = place.agent("");
    let replay = agent.load(&session);
    replay.ok();
    assert_eq!(replay.chunks("user_message_chunk"), ["#one"]);
    assert_eq!(replay.chunks("agent_message_chunk"), ["You said: #one | history=0 tags=one"]);
    assert!(agent.prompt(&session, "#two").text().ends_with("history=1 tags=one,two"));
}

#[test]
fn a_killed_turn_leaves_the_question_and_no_answer() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.send_prompt(&session, "#one [chunks 1] [hang]");
    agent.until("line 1\n");
    drop(agent);

    let mut agent = place.agent("");
    let replay = agent.load(&session);
    assert_eq!(replay.chunks("user_message_chunk"), ["#one [chunks 1] [hang]"]);
    assert_eq!(replay.text(), "");
}

#[test]
fn a_resumed_session_replays_nothing_and_remembers_all() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.prompt(&session, "#one");
    drop(agent);

    let mut agent = place.agent("");
    let resumed = agent.call("session/resume", json!({"sessionId": session, "cwd": "/"}));
    resumed.ok();
    assert_eq!(resumed.before, Vec::<Value>::new());
    assert!(agent.prompt(&session, "#two").text().ends_with("history=1 tags=one,two"));
}

#[test]
fn a_fork_remembers_what_its_session_does_and_goes_on_apart() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.prompt(&session, "#one");
    let forked = agent.call("session/fork", json!({"sessionId": session, "cwd": "/"}));
    let fork = forked.ok()["sessionId"].as_str().expect("an id").to_owned();
    assert!(agent.prompt(&fork, "#two").text().ends_with("history=1 tags=one,two"));
    assert!(agent.prompt(&session, "#three").text().ends_with("history=1 tags=one,three"));
    drop(agent);

    let mut agent = place.agent("");
    assert_eq!(agent.load(&fork).chunks("user_message_chunk"), ["#one", "#two"]);
}

#[test]
fn what_is_said_into_a_turn_is_heard_and_remembered() {
    let place = Place::new();
    let mut agent = place.start("");
    let result = agent.call("initialize", initialize()).ok().clone();
    assert_eq!(result["_meta"], json!({"steering": {"supported": true}}));
    let session = agent.session();
    let steer = |agent: &mut Agent, text: &str| {
        let meta = json!({"steering": {"idleBehavior": "promptRequired"}});
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": session, "prompt": prompt, "_meta": meta});
        agent.call("_session/steering", params)
    };
    assert_eq!(steer(&mut agent, "early").ok()["outcome"], "promptRequired");
    let turn = agent.send_prompt(&session, "#one [pause middle]");
    agent.until("paused at middle\n");
    let reply = steer(&mut agent, "#two");
    assert_eq!(reply.ok()["outcome"], "injected");
    // The turn may say so before the answer comes.
    if !reply.text().contains("heard: #two\n") {
        agent.until("heard: #two\n");
    }
    std::fs::write(place.path().join("middle.go"), "").unwrap();
    assert!(agent.wait(&turn).text().ends_with("history=0 tags=one,two"));
    drop(agent);

    let mut agent = place.agent("");
    assert_eq!(agent.load(&session).chunks("user_message_chunk"), ["#one [pause middle]", "#two"]);
}

#[test]
fn a_session_without_a_prompt_cannot_be_loaded() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    let reply = agent.load(&session);
    assert_eq!(reply.code(), -32002);
    assert_eq!(reply.response["error"]["data"]["sessionId"], session);
    assert_eq!(agent.load("../../etc/passwd").code(), -32002);
}

#[test]
fn list_close_and_delete_do_what_they_say() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.prompt(&session, "the title");
    let listed = agent.call("session/list", json!({})).ok()["sessions"].clone();
    assert_eq!(listed, json!([{"sessionId": session, "cwd": "/", "title": "the title"}]));
    let elsewhere = agent.call("session/list", json!({"cwd": "/elsewhere"}));
    assert_eq!(elsewhere.ok()["sessions"], json!([]));

    agent.call("session/close", json!({"sessionId": session})).ok();
    assert_eq!(agent.prompt(&session, "gone").code(), -32002);
    agent.load(&session).ok();

    for _ in 0..2 {
        agent.call("session/delete", json!({"sessionId": session})).ok();
    }
    assert_eq!(agent.load(&session).code(), -32002);
}

#[test]
fn mode_and_options_come_back_with_the_session() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    let set = json!({"sessionId": session, "configId": "model", "value": "demo-large"});
    agent.call("session/set_config_option", set).ok();
    agent.prompt(&session, "hello");
    let set =
        json!({"sessionId": session, "configId": "verbose", "type": "boolean", "value": true});
    let options = agent.call("session/set_config_option", set).ok()["configOptions"].clone();
    assert_eq!(
        (&options[0]["currentValue"], &options[1]["currentValue"]),
        (&json!("demo-large"), &json!(true))
    );
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "code"})).ok();
    drop(agent);

    let mut agent = place.agent("");
    let loaded = agent.load(&session);
    assert_eq!(loaded.ok()["configOptions"], options);
    assert_eq!(loaded.ok()["modes"]["currentModeId"], "code");
}

#[test]
fn unknown_modes_and_options_are_refused_and_boolean_ones_not_shown_to_everybody() {
    let place = Place::new();
    let mut agent = place.start("");
    agent.call("initialize", json!({"protocolVersion": 1})).ok();
    let new = agent.call("session/new", json!({"cwd": "/", "mcpServers": []}));
    assert_eq!(new.ok()["configOptions"].as_array().map(Vec::len), Some(1));
    let session = new.ok()["sessionId"].clone();
    let mode = agent.call("session/set_mode", json!({"sessionId": session, "modeId": "yolo"}));
    assert_eq!(mode.code(), -32602);
    let option = json!({"sessionId": session, "configId": "model", "value": "none"});
    assert_eq!(agent.call("session/set_config_option", option).code(), -32602);
}

#[test]
fn bad_input_is_answered_with_the_right_code() {
    let place = Place::new();
    let mut agent = place.agent("");
    agent.send_text("");
    agent.send_text("no json");
    assert_eq!(agent.next()["error"]["code"], -32700);
    agent.send_text("[]");
    assert_eq!(agent.next()["error"]["code"], -32600);
    assert_eq!(agent.call("no/such", json!({})).code(), -32601);
    assert_eq!(agent.call("session/new", json!({"cwd": ".", "mcpServers": []})).code(), -32602);
    assert_eq!(agent.call("session/new", json!({"cwd": "/"})).code(), -32602);
    agent.send(
        &json!({"jsonrpc": "2.0", "id": "text", "method": "initialize", "params": initialize()}),
    );
    assert_eq!(agent.next()["id"], "text");
}

#[test]
fn a_busy_session_refuses_a_second_prompt_while_another_session_answers() {
    let place = Place::new();
    let mut agent = place.agent("");
    let (busy, other) = (agent.session(), agent.session());
    let turn = agent.send_prompt(&busy, "[hang-cancel]");
    assert_eq!(agent.prompt(&busy, "me too").code(), -32603);
    assert_eq!(agent.prompt(&other, "hello").stop_reason(), "end_turn");
    agent.cancel(&busy);
    assert_eq!(agent.wait(&turn).stop_reason(), "cancelled");
    assert!(agent.prompt(&busy, "again").text().ends_with("history=1 tags="));
}

#[test]
fn the_end_of_stdin_ends_the_agent_and_the_record_has_it_all() {
    let place = Place::new();
    let mut agent = place.agent("");
    let session = agent.session();
    agent.send_prompt(&session, "[chunks 1] [hang]");
    agent.until("line 1\n");
    agent.close_stdin();
    assert!(agent.ended().success());

    let record = place.record();
    assert!(
        record
            .iter()
            .enumerate()
            .all(|(n, line)| line.n == n as u64 && line.pid == agent.child.id())
    );
    let events =
        record.iter().filter(|line| line.dir == Direction::Event).map(|line| line.line.as_str());
    assert_eq!(events.collect::<Vec<_>>(), ["start", "eof", "exit 0"]);
    let received = record.iter().filter(|line| line.dir == Direction::In).count();
    let sent = record.iter().filter(|line| line.dir == Direction::Out).count();
    assert_eq!((received, sent), (3, 4));
}

#[test]
fn a_record_can_be_one_file_for_each_process() {
    let place = Place::new();
    let mut command = place.command("");
    command.arg("--record").arg(place.path().join("record-%p")).arg("--state").arg(place.state());
    let mut agent = crate::driver::Agent::spawn(&mut command);
    agent.close_stdin();
    agent.ended();
    let record = acpd_demo::read_record(place.path().join(format!("record-{}", agent.child.id())));
    assert_eq!(record.len(), 3);
}
