//! Modes and options of a session that comes back.

use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::{Bench, word};
use crate::mcp::notices;

pub(crate) fn modes(current: &str) -> Value {
    json!({"currentModeId":current,"availableModes":[
        {"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]})
}

pub(crate) fn model(current: &str) -> Value {
    json!([{"id":"model","name":"Model","category":"model","type":"select","currentValue":current,
        "options":[{"value":"big","name":"B"},{"value":"small","name":"S"}]}])
}

/// A session that is brought back by this method, in which a client has set the mode `code` and the model
/// `small`: the client, and the request.
fn set_up(method: &str) -> (Bench, ClientId, Value) {
    let mut bench = if method == "session/load" { Bench::loadable() } else { Bench::new() };
    bench.lenient = true;
    let a = bench.noticed();
    bench.session_with(a, "s", &json!({"modes":modes("ask"),"configOptions":model("big")}));
    bench.set_mode(a, "s", "code");
    let set = json!({"sessionId":"s","configId":"model","value":"small"});
    bench.ask(a, 2, "session/set_config_option", &set);
    bench.answers("session/set_config_option", &json!({"configOptions":model("small")}));
    bench.run_turn(a, 3, "s", "go");
    bench.restart_agent();
    bench.got(a);
    let request = bench.heard_one(method);
    (bench, a, request)
}

#[test]
fn settings_that_are_not_shown_in_force_are_set_again() {
    let both = ["model", "code"];
    let table = [
        (json!({}), &both[..]),
        (json!(null), &both[..]),
        (json!({"modes":null,"configOptions":null}), &both[..]),
        (json!({"modes":modes("ask"),"configOptions":model("big")}), &both[..]),
        (json!({"modes":modes("code"),"configOptions":[]}), &both[..1]),
        (json!({"configOptions":model("small")}), &both[1..]),
        (json!({"modes":modes("code"),"configOptions":model("small")}), &[]),
    ];
    for (answer, expected) in table {
        for method in ["session/resume", "session/load"] {
            let (mut bench, a, request) = set_up(method);
            if method == "session/load" {
                bench.loads(&request, &answer);
            } else {
                bench.agent_answers(&request, &answer);
            }
            let mut set = Vec::new();
            while let Some(request) = bench.heard().pop() {
                let params = &request["params"];
                let what = params["configId"].as_str().or(params["modeId"].as_str());
                set.push(what.expect("a setting").to_owned());
                bench.agent_answers(&request, &json!({"configOptions":model("small")}));
            }
            assert_eq!(set, expected, "{method}: {answer}");
            assert_eq!(bench.state("s"), "live");
            assert_eq!(notices(&bench.got(a)), Vec::<&str>::new(), "{method}: {answer}");
        }
    }
}

#[test]
fn settings_that_the_agent_refuses_again_are_reported_and_no_longer_shown() {
    let (mut bench, a, resume) = set_up("session/resume");
    bench.agent_answers(&resume, &json!({"modes":modes("ask"),"configOptions":model("big")}));
    // The agent accepts the value and does not show it.
    bench.answers("session/set_config_option", &json!({"configOptions":model("big")}));
    bench.refuses("session/set_mode", -32603);
    let got = bench.got(a);
    let told = notices(&got);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("`model`") && told[1].contains("`code`"), "{told:?}");
    let last = |kind: &str| got.iter().rfind(|line| word(line) == kind).expect("shown");
    assert_eq!(last("current_mode_update")["params"]["update"]["currentModeId"], "ask");
    let shown = &last("config_option_update")["params"]["update"]["configOptions"];
    assert_eq!(*shown, model("big"));
    let resumed = bench.command("session/resume", &json!({"sessionId":"s","cwd":"/w"}));
    assert_eq!(resumed["result"]["modes"], modes("ask"));
    bench.start_turn(a, 4, "s", "on");
}

#[test]
fn settings_that_are_never_answered_do_not_block_the_session() {
    let (mut bench, a, resume) = set_up("session/resume");
    bench.agent_answers(&resume, &json!({}));
    bench.heard_one("session/set_config_option");
    bench.pass(30_000);
    assert_eq!(bench.state("s"), "live");
    let got = bench.got(a);
    let told = notices(&got);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("`model`") && told[0].contains("`code`"), "{told:?}");
}

#[test]
fn mode_of_an_option_is_the_one_that_is_set_again() {
    let mut bench = Bench::new();
    let a = bench.plain();
    let option = |value: &str| {
        json!([{"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":value,
            "options":[{"value":"ask","name":"A"},{"value":"code","name":"C"}]}])
    };
    bench.session_with(a, "s", &json!({"modes":modes("ask"),"configOptions":option("ask")}));
    bench.run_turn(a, 0, "s", "go");
    let by_option = json!({"sessionId":"s","configId":"mode","value":"code"});
    let by_mode = json!({"sessionId":"s","modeId":"code"});
    let ways = [("session/set_config_option", by_option), ("session/set_mode", by_mode)];
    for (method, params) in ways {
        bench.ask(a, 1, method, &params);
        bench.answers(method, &json!({"configOptions":option("code")}));
        for answer in [json!({}), json!({"modes":modes("ask"),"configOptions":option("ask")})] {
            bench.pass(20_000);
            bench.restart_agent();
            bench.answers("session/resume", &answer);
            let mut last = Value::Null;
            while let Some(request) = bench.heard().pop() {
                last = request["params"].clone();
                bench.agent_answers(&request, &json!({"configOptions":option("code")}));
            }
            let set = last["value"].as_str().or(last["modeId"].as_str());
            assert_eq!(set, Some("code"), "{method}: {answer}");
        }
    }
}
