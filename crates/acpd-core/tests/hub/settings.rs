//! Modes and options of a session that comes back.

use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::{Bench, word};

fn modes(current: &str) -> Value {
    json!({"currentModeId":current,"availableModes":[
        {"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]})
}

fn model(current: &str) -> Value {
    json!([{"id":"model","name":"Model","category":"model","type":"select","currentValue":current,
        "options":[{"value":"big","name":"B"},{"value":"small","name":"S"}]}])
}

/// A session that is brought back by this method, in which a client has set the mode `code` and the model
/// `small`: the client, and the request.
fn set_up(bench: &mut Bench, method: &str) -> (ClientId, Value) {
    if method == "session/load" {
        bench.capabilities = Some(json!({"loadSession":true}));
    }
    let a = bench.client(&json!({"notices":true}));
    bench.session_with(a, "s", &json!({"modes":modes("ask"),"configOptions":model("big")}));
    let set = json!({"sessionId":"s","modeId":"code"});
    bench.say(a, &json!({"id":1,"method":"session/set_mode","params":set}));
    bench.answers("session/set_mode", &json!({}));
    let set = json!({"sessionId":"s","configId":"model","value":"small"});
    bench.say(a, &json!({"id":2,"method":"session/set_config_option","params":set}));
    bench.answers("session/set_config_option", &json!({"configOptions":model("small")}));
    bench.prompt(a, &json!(3), "s", "go");
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    bench.agent_dies();
    bench.pass(1_000);
    bench.got(a);
    (a, bench.heard_one(method))
}

fn warnings(lines: &[Value]) -> Vec<&str> {
    let notices = lines.iter().filter(|line| line["method"] == "_acpd/notice");
    notices.map(|line| line["params"]["text"].as_str().expect("a sentence")).collect()
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
            let mut bench = Bench::new();
            bench.lenient = true;
            let (a, request) = set_up(&mut bench, method);
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
                let shown = json!({"configOptions":model("small")});
                bench.agent_answers(&request, &shown);
            }
            assert_eq!(set, expected, "{method}: {answer}");
            assert_eq!(bench.state("s"), "live");
            assert_eq!(warnings(&bench.got(a)), Vec::<&str>::new(), "{method}: {answer}");
        }
    }
}

#[test]
fn settings_that_the_agent_refuses_again_are_reported_and_no_longer_shown() {
    let mut bench = Bench::new();
    let (a, resume) = set_up(&mut bench, "session/resume");
    bench.agent_answers(&resume, &json!({"modes":modes("ask"),"configOptions":model("big")}));
    // The agent accepts the value and does not show it.
    bench.answers("session/set_config_option", &json!({"configOptions":model("big")}));
    bench.refuses("session/set_mode", -32603);
    let got = bench.got(a);
    let told = warnings(&got);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("`model`") && told[1].contains("`code`"), "{told:?}");
    let last = |kind: &str| got.iter().rfind(|line| word(line) == kind).expect("shown");
    assert_eq!(last("current_mode_update")["params"]["update"]["currentModeId"], "ask");
    let shown = &last("config_option_update")["params"]["update"]["configOptions"];
    assert_eq!(*shown, model("big"));
    let b = bench.plain();
    bench.say(b, &json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}));
    assert_eq!(bench.got(b)[0]["result"]["modes"], modes("ask"));
    bench.prompt(a, &json!(4), "s", "on");
    bench.heard_one("session/prompt");
}

#[test]
fn settings_that_are_never_answered_do_not_block_the_session() {
    let mut bench = Bench::new();
    let (a, resume) = set_up(&mut bench, "session/resume");
    bench.agent_answers(&resume, &json!({}));
    bench.heard_one("session/set_config_option");
    bench.pass(30_000);
    assert_eq!(bench.state("s"), "live");
    let got = bench.got(a);
    let told = warnings(&got);
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
    bench.prompt(a, &json!(0), "s", "go");
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    let by_option = json!({"sessionId":"s","configId":"mode","value":"code"});
    let by_mode = json!({"sessionId":"s","modeId":"code"});
    for (method, params) in
        [("session/set_config_option", by_option), ("session/set_mode", by_mode)]
    {
        bench.say(a, &json!({"id":1,"method":method,"params":params}));
        bench.answers(method, &json!({"configOptions":option("code")}));
        for answer in [json!({}), json!({"modes":modes("ask"),"configOptions":option("ask")})] {
            bench.pass(20_000);
            bench.agent_dies();
            bench.pass(1_000);
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
