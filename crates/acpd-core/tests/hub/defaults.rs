//! The model and the mode that sessions begin with.

use acpd_core::profile::{Defaults, Workspace};
use acpd_core::{ClientEvent, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, methods, words};
use crate::mcp::notices;

/// Offers of the agent: the model in a group, the mode as modes.
fn offer(model: &str) -> Value {
    json!({"sessionId":"s",
        "modes":{"currentModeId":"ask","availableModes":[
            {"id":"ask","name":"Ask"},{"id":"plan","name":"Plan first"}]},
        "configOptions":options(model)})
}

fn options(model: &str) -> Value {
    json!([{"id":"m","name":"Model","category":"model","type":"select","currentValue":model,
        "options":[{"group":"g","name":"G","options":[
            {"value":"small-1","name":"Small"},{"value":"big-1","name":"Big"}]}]}])
}

fn wants(model: Option<&str>, mode: Option<&str>) -> Defaults {
    Defaults { model: model.map(str::to_owned), mode: mode.map(str::to_owned) }
}

/// A session begins with a prompt right behind it; what the agent hears of it before its answers.
fn begins(bench: &mut Bench, agent: Defaults, workspaces: Vec<Workspace>) -> Vec<Value> {
    bench.change(|profile| profile.defaults = agent);
    bench.configure(|config| config.workspaces = workspaces);
    let client = bench.noticed();
    bench.ask(client, 1, "session/new", &json!({"cwd":"/src/api/v2","mcpServers":[]}));
    bench.answers("session/new", &offer("small-1"));
    bench.prompt(client, &json!(2), "s", "go");
    bench.heard()
}

/// Like [`begins`], with a new bench and without workspaces.
fn begun(model: Option<&str>, mode: Option<&str>) -> (Bench, Vec<Value>) {
    let mut bench = Bench::new();
    let heard = begins(&mut bench, wants(model, mode), Vec::new());
    (bench, heard)
}

#[test]
fn a_session_begins_with_the_model_and_the_mode_of_its_agent_before_its_first_turn() {
    let mut bench = Bench::with_shims();
    let heard = begins(&mut bench, wants(Some("Big"), Some("plan")), Vec::new());
    assert_eq!(methods(&heard), ["session/set_config_option", "session/set_mode"]);
    assert_eq!(heard[0]["params"]["configId"], "m");
    assert_eq!(heard[0]["params"]["value"], "big-1");
    assert_eq!(heard[1]["params"]["modeId"], "plan");
    bench.agent_answers(&heard[0], &json!({"configOptions":options("big-1")}));
    assert_eq!(bench.heard(), [json!(null); 0], "the prompt waits for both");
    bench.reboot();
    bench.agent_answers(&heard[1], &json!({}));
    assert_eq!(methods(&bench.heard()), ["session/prompt"]);
    assert_eq!(bench.journal_words()[..2], ["config_option_update", "current_mode_update"]);
    let row = bench.snapshot.sessions.values().next().unwrap();
    assert_eq!((row.row.mode.as_deref(), &*row.row.options["m"]), (Some("plan"), "\"big-1\""));
}

#[test]
fn the_innermost_workspace_comes_first_and_one_of_another_agent_has_no_say() {
    let workspace = |path: &str, agent: Option<&str>, defaults| Workspace {
        path: path.to_owned(),
        agent: agent.map(str::to_owned),
        defaults,
        ..Workspace::default()
    };
    let mut bench = Bench::new();
    let workspaces = vec![
        workspace("/src", None, wants(Some("small-1"), Some("plan"))),
        workspace("/src/api", None, wants(Some("big-1"), None)),
        workspace("/src/api/v2", Some("other"), wants(Some("none"), Some("none"))),
        workspace("/src/ap", None, wants(Some("none"), Some("none"))),
    ];
    let heard = begins(&mut bench, wants(Some("small-1"), Some("ask")), workspaces);
    assert_eq!(heard[0]["params"]["value"], "big-1");
    assert_eq!(heard[1]["params"]["modeId"], "plan");
}

#[test]
fn what_the_agent_does_not_offer_or_refuses_is_told_and_the_session_begins() {
    let (mut bench, heard) = begun(Some("huge"), Some("plan"));
    assert_eq!(methods(&heard), ["session/set_mode"]);
    bench.agent_refuses(&heard[0], -32603);
    assert_eq!(methods(&bench.heard()), ["session/prompt"]);
    let lines = bench.journal_lines();
    let notices = notices(&lines);
    assert_eq!(notices.len(), 2);
    assert!(notices[0].contains("does not offer the model `huge`"), "{notices:?}");
    assert!(notices[1].contains("refused `plan` as its mode"), "{notices:?}");
}

#[test]
fn an_agent_that_dies_meanwhile_holds_no_prompt_up() {
    let (mut bench, heard) = begun(Some("Big"), None);
    assert_eq!(methods(&heard), ["session/set_config_option"]);
    bench.restart_agent();
    bench.answers("session/new", &offer("small-1"));
    assert!(methods(&bench.heard()).contains(&"session/prompt"));
}

#[test]
fn a_client_that_says_where_it_works_gets_the_agent_of_that_workspace() {
    let mut bench = Bench::with_agents(&["one", "two"]);
    let agent = Some("two".to_owned());
    let workspace = Workspace { path: "/w".to_owned(), agent, ..Workspace::default() };
    bench.configure(|config| config.workspaces = vec![workspace]);
    for (meta, agent) in [
        (json!({"cwd":"/w/x"}), "two"),
        (json!({"cwd":"/wide"}), "one"),
        (json!({"cwd":"/w","agent":"one"}), "one"),
        (json!({}), "one"),
    ] {
        bench.started.clear();
        let client = bench.client(&meta);
        bench.ask_session(client, 1);
        bench.answers("session/new", &json!({"sessionId":format!("{agent}-{}", client.0)}));
        assert_eq!(bench.snapshot.sessions.values().last().unwrap().row.agent, agent, "{meta}");
        assert!(words(&bench.got(client)).contains(&"result 1".to_owned()));
    }
}

#[test]
fn an_agent_that_does_not_answer_holds_no_prompt_up_for_ever() {
    let (mut bench, heard) = begun(Some("Big"), None);
    assert_eq!(methods(&heard), ["session/set_config_option"]);
    bench.pass(60_000);
    assert_eq!(methods(&bench.heard()), ["session/prompt"]);
    bench.agent_answers(&heard[0], &json!({"configOptions":options("big-1")}));
    assert_eq!(bench.journal_words().iter().filter(|word| *word == "_acpd/notice").count(), 1);
}

#[test]
fn mode_that_the_agent_begins_in_is_shown_unless_the_configuration_sets_one() {
    for (mode, shown) in [(None, json!("ask")), (Some("plan"), json!(null))] {
        let (mut bench, _) = begun(None, mode);
        assert_eq!(bench.show_agent()["defaultMode"], shown, "{mode:?}");
    }
}

#[test]
fn default_agent_that_was_found_counts_only_where_none_is_configured() {
    for (is_found, agent) in [(true, "b"), (false, "a")] {
        let mut bench = Bench::with_agents(&["a", "b"]);
        bench.configure(|config| config.default_is_found = is_found);
        let client = bench.client(&json!({}));
        bench.feed(Input::Client(client, ClientEvent::DefaultFound("b".to_owned())));
        bench.say(client, &json!({"id":9,"method":"_acpd/status"}));
        let daemon = bench.got(client)[0]["result"]["daemon"].clone();
        assert_eq!(daemon["defaultAgent"], agent);
        assert_eq!(daemon.get("defaultIsFound").is_some(), is_found);
    }
}

#[test]
fn lists_leave_out_agents_that_are_not_in_use_and_sessions_at_rest() {
    let (mut bench, client) = Bench::with_agents(&["a", "b", "c"]).with_begun();
    for id in ["old", "later", "last"] {
        bench.pass(1000);
        bench.used_session(client, id);
        bench.ask(client, 8, "_acpd/session/close", &json!({"session": id}));
    }
    let mut list = |method, params: Value, rows, name| {
        let result = bench.command(method, &params)["result"].take();
        let names = result[rows].as_array().unwrap().iter().map(|row| row[name].as_str().unwrap());
        let left_out = ["unused", "omitted"].map(|count| result[count].as_u64());
        (names.collect::<Vec<_>>().join(" "), left_out)
    };
    let mut agents = |params| list("_acpd/status", params, "agents", "name");
    assert_eq!(agents(json!({})), ("a b c".to_owned(), [None, None]));
    assert_eq!(agents(json!({"inUse":true})), ("a".to_owned(), [Some(2), None]));

    let mut sessions = |params| list("_acpd/status", params, "sessions", "sessionId");
    assert_eq!(sessions(json!({"recent":0})), ("s".to_owned(), [None, Some(3)]));
    assert_eq!(sessions(json!({"recent":1})), ("last s".to_owned(), [None, Some(2)]));
    assert_eq!(sessions(json!({})).0, "last later old s");
    let mut sessions = |params| list("_acpd/session/list", params, "sessions", "sessionId").0;
    assert_eq!(sessions(json!({"limit":2})), "last later");
    assert_eq!(sessions(json!({"used":true})), "last later old");
    assert_eq!(sessions(json!({"begins":"la"})), "last later");
}
