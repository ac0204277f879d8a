//! `acpctl run --model`, `--mode`, `--set` and `--prompt-file`.

use std::process::Stdio;

use acpd_api::method;
use serde_json::{Value, json};

use crate::settings::{options, values};
use crate::support::{Client, Done, Home, capable, run_against};

/// Serves everything up to a session that begins with these settings.
fn begins(client: &mut Client, settings: &Value) {
    client.answer("initialize", capable());
    let mut new = settings.clone();
    new["sessionId"] = json!("s-1");
    client.answer("session/new", new);
}

/// Serves the turn and returns what was asked.
fn prompted(client: &mut Client) -> Value {
    let prompt = client.expect("session/prompt");
    client.result(&prompt, json!({"stopReason": "end_turn"}));
    prompt["params"]["prompt"].clone()
}

#[test]
fn a_session_that_begins_is_set_up_before_its_first_turn() {
    let home = Home::new();
    let daemon = home.daemon(|mut client| {
        begins(&mut client, &values());
        let model = client
            .answer("session/set_config_option", json!({"configOptions": options("m2", false)}));
        let params = json!({"sessionId": "s-1", "configId": "model", "value": "m2"});
        assert_eq!(model["params"], params);
        let mode = client.answer("session/set_mode", json!({}));
        assert_eq!(mode["params"], json!({"sessionId": "s-1", "modeId": "auto"}));
        let verbose = client
            .answer("session/set_config_option", json!({"configOptions": options("m2", true)}));
        assert_eq!(verbose["params"]["value"], json!(true));
        prompted(&mut client);
        client.closed();
    });
    let args = ["run", "--set", "verbose=on", "--mode", "do it", "--model", "model two", "go"];
    let done = home.run(&args);
    let told = "Model: Model Two\nmode: Do it\nVerbose: on\n";
    assert_eq!((done.err.as_str(), done.code), (told, Some(0)));
    daemon.join().unwrap();
}

/// Runs against an agent with these settings; a session that was begun in vain is deleted.
fn fails(args: &[&str], settings: Value) -> Done {
    run_against(&[&["run", "go"], args].concat(), move |mut client| {
        begins(&mut client, &settings);
        let removed = client.answer(method::SESSION_REMOVE, json!({}));
        assert_eq!(removed["params"]["session"], "s-1");
        client.closed();
    })
}

#[test]
fn what_the_agent_does_not_have_is_told_before_any_prompt_and_leaves_no_session() {
    let error = |args: &[&str], settings: &Value| {
        let done = fails(args, settings.clone());
        assert_eq!(done.code, Some(2), "{done:?}");
        done.err
    };
    let all = values();
    let err = error(&["--model", "m3"], &all);
    assert_eq!(err, "error: option `model` has no value `m3`\n\nhint: choose one of `m1`, `m2`\n");
    let err = error(&["--mode", "x"], &all);
    assert_eq!(err, "error: no mode `x`\n\nhint: choose one of `ask`, `auto`\n");
    let err = error(&["--set", "x=y"], &all);
    assert_eq!(err, "error: no option `x`\n\nhint: choose one of `model`, `verbose`\n");
    let err = error(&["--model", "m1"], &json!({}));
    assert_eq!(err, "error: the agent has no models to choose from\n");
    let one = json!({"configOptions": [{"id": "v", "type": "boolean", "currentValue": true}]});
    let err = error(&["--mode", "ask"], &one);
    assert_eq!(
        err,
        "error: the agent has no modes to choose from\n\n\
         hint: set its options with `--set OPTION=VALUE`: `v`\n"
    );
}

#[test]
fn prompts_of_files_come_before_the_words() {
    let home = Home::new();
    let daemon = home.daemon(|mut client| {
        begins(&mut client, &json!({}));
        let said = "first\n\nfrom stdin\n\nnow go";
        assert_eq!(prompted(&mut client), json!([{"type": "text", "text": said}]));
        client.closed();
    });
    std::fs::write(home.path("work/first.md"), "first\n\n").unwrap();
    std::fs::write(home.path("stdin"), "from stdin\n").unwrap();
    let stdin = std::fs::File::open(home.path("stdin")).unwrap();
    let args = ["run", "--prompt-file", "first.md", "--prompt-file", "-", "now", "go"];
    let child = home.acpctl(args).stdin(Stdio::from(stdin)).spawn().unwrap();
    assert_eq!(home.wait(child).code, Some(0));
    daemon.join().unwrap();
}
