//! `acpctl session mode`, `set` and `commands`.

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Home, capable, run_against, session};

pub(crate) fn values() -> Value {
    json!({"modes": {"currentModeId": "ask", "availableModes": [
            {"id": "ask", "name": "Ask first", "description": "for every change"},
            {"id": "auto", "name": "Do it"}]},
        "configOptions": options("m1", false)})
}

pub(crate) fn options(model: &str, verbose: bool) -> Value {
    json!([
        {"id": "model", "name": "Model", "description": "who thinks", "category": "model",
            "type": "select", "currentValue": model, "options": [
                {"value": "m1", "name": "Model One"}, {"value": "m2", "name": "Model Two"}]},
        {"id": "verbose", "name": "Verbose", "type": "boolean", "currentValue": verbose}])
}

/// Serves everything up to the settings of session `s-1`.
fn open(client: &mut Client, values: Value) {
    client.finds(&session("s-1"));
    let initialize = client.answer("initialize", capable());
    assert_eq!(initialize["params"]["_meta"]["_acpd"]["agent"], "demo");
    let options = &initialize["params"]["clientCapabilities"]["session"]["configOptions"];
    assert_eq!(*options, json!({"boolean": {}}));
    let resume = client.answer("session/resume", values);
    assert_eq!(resume["params"], json!({"sessionId": "s-1", "cwd": "/work", "mcpServers": []}));
}

#[test]
fn an_agent_that_does_not_answer_is_told_while_it_is_waited_for() {
    let done = run_against(&["session", "mode", "fix", "auto"], |mut client| {
        open(&mut client, values());
        let set = client.expect("session/set_mode");
        let params = json!({"agent": "demo", "method": "session/set_mode", "sessionId": "s-1",
            "waited": 120_000});
        client.send(json!({"jsonrpc": "2.0", "method": method::UNANSWERED, "params": params}));
        client.result(&set, json!({}));
        client.closed();
    });
    insta::assert_snapshot!(done.err, @"
    agent `demo` has not answered `session/set_mode` for 2m; Ctrl-C stops waiting, `acpctl agent restart demo` restarts the agent
    fix is now in mode `auto`
    ");
}

#[test]
fn options_and_the_values_of_one_are_listed() {
    let (home, listener) = Home::listening();
    let daemon = std::thread::spawn(move || {
        for values in [values(), values(), values(), values(), json!({})] {
            let mut client = Client::accept(&listener);
            open(&mut client, values);
            client.closed();
        }
    });
    let done = home.run(&["session", "set", "fix"]);
    insta::assert_snapshot!(done.out, @"
    OPTION   VALUE  NAME     DESCRIPTION
    model    m1     Model    who thinks
    verbose  false  Verbose  -
    ");
    let done = home.run(&["session", "set", "fix", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&done.out).unwrap(), options("m1", false));
    let done = home.run(&["session", "set", "fix", "MODEL"]);
    insta::assert_snapshot!(done.out, @"
      VALUE  NAME
    * m1     Model One
      m2     Model Two
    ");
    let done = home.run(&["session", "set", "fix", "verbose"]);
    insta::assert_snapshot!(done.out, @"
      VALUE  NAME
      true   on
    * false  off
    ");
    let done = home.run(&["session", "set", "fix"]);
    assert_eq!((done.err.as_str(), done.code), ("session fix has no options\n", Some(0)));
    daemon.join().unwrap();
}

#[test]
fn an_option_is_set_and_what_has_changed_is_told() {
    let (home, listener) = Home::listening();
    let daemon = std::thread::spawn(move || {
        let mut client = Client::accept(&listener);
        open(&mut client, values());
        let changed = json!({"configOptions": options("m2", true)});
        let set = client.answer("session/set_config_option", changed);
        let params = json!({"sessionId": "s-1", "configId": "model", "value": "m2"});
        assert_eq!(set["params"], params);
        let mut client = Client::accept(&listener);
        open(&mut client, values());
        let changed = json!({"configOptions": options("m1", true)});
        let set = client.answer("session/set_config_option", changed);
        assert_eq!(
            (&set["params"]["value"], &set["params"]["type"]),
            (&json!(true), &json!("boolean"))
        );
    });
    let done = home.run(&["session", "set", "fix", "model", "model two"]);
    assert_eq!((done.err.as_str(), done.code), ("Model: Model Two\nVerbose: on\n", Some(0)));
    let done = home.run(&["session", "set", "fix", "verbose", "on", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&done.out).unwrap(), options("m1", true));
    daemon.join().unwrap();
}

#[test]
fn the_commands_are_those_that_the_agent_told_last() {
    let (home, listener) = Home::listening();
    let last = json!([
        {"name": "plan", "description": "make a plan", "input": {"hint": "what for"}},
        {"name": "compact", "description": "forget details", "input": null}]);
    let told = last.clone();
    let daemon = std::thread::spawn(move || {
        let entry = |seq: u64, commands: &Value| {
            json!({"seq": seq, "line": {"jsonrpc": "2.0", "method": "session/update",
                "params": {"sessionId": "s-1", "update": {
                    "sessionUpdate": "available_commands_update", "availableCommands": commands}}}})
        };
        for _ in 0..2 {
            let mut client = Client::accept(&listener);
            client.finds(&session("s-1"));
            let first = [entry(1, &json!([{"name": "old"}]))];
            let page = json!({"sessionId": "s-1", "entries": first, "next": 1});
            client.answer(method::SESSION_LOG, page);
            // Those of a subagent are its own.
            let mut of_child = entry(3, &json!([{"name": "other"}]));
            of_child["line"]["params"]["sessionId"] = "c".into();
            let page = json!({"sessionId": "s-1", "entries": [entry(2, &told), of_child]});
            client.answer(method::SESSION_LOG, page);
        }
        let mut client = Client::accept(&listener);
        client.finds(&session("s-1"));
        client.answer(method::SESSION_LOG, json!({"sessionId": "s-1", "entries": []}));
    });
    let done = home.run(&["session", "commands", "fix"]);
    insta::assert_snapshot!(done.out, @"
    COMMAND   INPUT     DESCRIPTION
    /plan     what for  make a plan
    /compact  -         forget details
    ");
    let done = home.run(&["session", "commands", "fix", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&done.out).unwrap(), last);
    let done = home.run(&["session", "commands", "fix"]);
    assert_eq!(done.err, "the agent has not listed any commands yet\n");
    daemon.join().unwrap();
}
