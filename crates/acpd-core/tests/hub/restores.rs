//! Sessions that come back, or do not.

use acpd_core::profile::{OnLost, Profile};
use acpd_core::{HostEvent, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, word, words};

#[test]
fn a_crash_in_a_turn_is_told_and_the_session_comes_back_with_its_mode() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.client(&json!({"notices":true})));
    let modes = |current: &str| {
        json!({"modes":{"currentModeId":current,"availableModes":[
            {"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}})
    };
    bench.session_with(a, "s", &modes("ask"));
    bench.say(b, &json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}));
    let set = json!({"sessionId":"s","modeId":"code"});
    bench.say(a, &json!({"id":2,"method":"session/set_mode","params":set}));
    bench.answers("session/set_mode", &json!({}));
    bench.got(b);
    bench.prompt(a, &json!(9), "s", "go");
    bench.heard();
    let call = json!({"sessionUpdate":"tool_call","toolCallId":"t","title":"x"});
    bench.agent(&json!({"method":"session/update","params":{"sessionId":"s","update":call}}));
    bench.got(a);
    bench.agent_dies();

    let got = bench.got(a);
    assert_eq!(words(&got), ["tool_call_update", "error 9"]);
    assert_eq!(got[0]["params"]["update"]["status"], "failed");
    let data = &got[1]["error"]["data"]["_acpd"];
    assert_eq!((&data["reason"], &data["stderr"]), (&json!("agent_exited"), &json!("Error: boom")));

    bench.pass(1_000);
    let resume = bench.heard_one("session/resume");
    assert_eq!(resume["params"]["cwd"], "/w");
    bench.agent_answers(&resume, &modes("ask"));
    let mode = bench.heard_one("session/set_mode");
    assert_eq!(mode["params"]["modeId"], "code");
    bench.agent_answers(&mode, &json!({}));
    let told: Vec<String> = bench
        .got(b)
        .iter()
        .map(word)
        .filter(|word| !word.ends_with("agent_state") && !word.ends_with("session_state"))
        .collect();
    let expected = [
        "_acpd/turn_started",
        "user_message_chunk",
        "tool_call",
        "tool_call_update",
        "_acpd/turn_ended",
        "current_mode_update",
        "_acpd/restored",
    ];
    assert_eq!(told, expected);
    assert_eq!(bench.heard(), Vec::<Value>::new(), "a prompt is never sent twice");
}

#[test]
fn an_agent_that_refuses_mcp_servers_on_load_gets_none() {
    for restore_mcp in [true, false] {
        let mut bench = Bench::with(|profile| profile.restore_mcp = restore_mcp);
        let a = bench.plain();
        let server = json!({"name":"x","command":"/x","args":[],"env":[]});
        let params = json!({"cwd":"/w","mcpServers":[server]});
        bench.say(a, &json!({"id":1,"method":"session/new","params":params}));
        let request = bench.heard_one("session/new");
        assert_eq!(request["params"]["mcpServers"], json!([server]));
        bench.agent_answers(&request, &json!({"sessionId":"s"}));
        bench.prompt(a, &json!(2), "s", "go");
        bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
        bench.agent_dies();
        bench.pass(1_000);
        let resume = bench.heard_one("session/resume");
        let expected = if restore_mcp { json!([server]) } else { json!([]) };
        assert_eq!(resume["params"]["mcpServers"], expected);
        bench.agent_answers(&resume, &json!({}));
        let told = bench.journal_words().iter().filter(|word| *word == "_acpd/notice").count();
        assert_eq!(told, usize::from(!restore_mcp));
    }
}

#[test]
fn a_session_without_mcp_servers_is_told_nothing_of_them() {
    let mut bench = Bench::with(|profile| profile.restore_mcp = false);
    let (_, resume) = bench.restoring("s", "session/resume");
    bench.agent_answers(&resume, &json!({}));
    assert!(!bench.journal_words().contains(&"_acpd/notice".to_owned()));
}

#[test]
fn options_are_set_again_and_later_clients_see_them() {
    let mut bench = Bench::new();
    let a = bench.plain();
    let options = |value: &str| {
        json!({"configOptions":[{"id":"model","name":"Model","category":"model","type":"select",
            "currentValue":value,"options":[{"value":"big","name":"B"},{"value":"small","name":"S"}]}]})
    };
    bench.session_with(a, "s", &options("big"));
    bench.prompt(a, &json!(1), "s", "go");
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    bench.agent_dies();
    bench.pass(1_000);
    bench.answers("session/resume", &options("small"));
    let set = bench.heard_one("session/set_config_option");
    assert_eq!(
        (&set["params"]["configId"], &set["params"]["value"]),
        (&json!("model"), &json!("big"))
    );
    bench.agent_answers(&set, &options("big"));
    let b = bench.plain();
    bench.say(b, &json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}));
    assert_eq!(bench.got(b)[0]["result"], options("big"));
}

#[test]
fn an_agent_that_lies_about_resume_is_asked_to_load_and_the_lie_is_remembered() {
    let mut bench = Bench::new();
    let (_, resume) = bench.restoring("s", "session/resume");
    bench.agent_refuses(&resume, -32601);
    let load = bench.heard_one("session/load");
    bench.update("s", "user_message_chunk", "first");
    bench.chunk("s", "the answer to first");
    bench.agent_answers(&load, &json!({}));
    assert_eq!(bench.state("s"), "live");
    assert!(!bench.journal_words().contains(&"agent_message_chunk".to_owned()), "it is known");
    bench.pass(20_000);
    bench.agent_dies();
    bench.pass(1_000);
    bench.heard_one("session/load");
}

#[test]
fn an_agent_that_lies_about_load_is_asked_once_and_its_sessions_go_on_with_a_summary() {
    let mut bench = Bench::with_shims();
    let (a, load) = bench.loading("s");
    bench.agent_refuses(&load, -32601);
    assert_eq!(bench.state("s"), "parked", "it is not tried again");
    bench.prompt(a, &json!(2), "s", "second");
    let new = bench.heard_one("session/new");
    bench.agent_answers(&new, &json!({"sessionId":"t"}));
    let prompt = bench.heard_one("session/prompt");
    let said = prompt["params"]["prompt"].to_string();
    assert!(said.contains("it was about a fish"), "{said}");
    assert_eq!(words(&bench.got(a)), ["agent_message_chunk"], "it is told");
    // The next daemon knows it as well, until the agent is another one.
    bench.reboot();
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    bench.chunk("t", "the answer to second");
    bench.pass(20_000);
    bench.agent_dies();
    bench.pass(1_000);
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it is not asked");
    bench.capabilities = Some(json!({"loadSession":true,"sessionCapabilities":{"list":{}}}));
    let client = bench.plain();
    let restart = json!({"agent":"gem"});
    bench.say(client, &json!({"id":1,"method":"_acpd/agent/restart","params":restart}));
    bench.agent_dies();
    bench.prompt(client, &json!(2), "s", "third");
    bench.heard_one("session/list");
}

#[test]
fn methods_that_an_agent_only_announces_are_remembered_for_its_version() {
    let greeting = |version: &str, more: u64| json!({"agentInfo":{"name":"g","version":version},"_meta":{"time":more}});
    let announces = json!({"loadSession":true,"sessionCapabilities":{"list":{}}});
    let mut bench = Bench::new();
    bench.capabilities = Some(announces);
    bench.greeting = greeting("1", 1);
    let (a, list) = bench.restoring("s", "session/list");
    bench.agent_refuses(&list, -32601);
    bench.refuses("session/load", -32601);
    let lies = |bench: &mut Bench| bench.show_agent()["unsupported"].clone();
    let both = json!(["session/load", "session/list"]);
    assert_eq!(lies(&mut bench), both);
    let again = |bench: &mut Bench| {
        let restart = json!({"agent":"gem"});
        bench.say(a, &json!({"id":9,"method":"_acpd/agent/restart","params":restart}));
        bench.agent_dies();
        bench.got(a);
    };
    // No new version, but other members.
    bench.greeting = greeting("1", 2);
    bench.pass(20_000);
    bench.agent_dies();
    bench.prompt(a, &json!(1), "s", "go on");
    bench.answers("session/new", &json!({"sessionId":"t"}));
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    assert_eq!(lies(&mut bench), both);
    // A person asks for another try.
    again(&mut bench);
    assert_eq!(lies(&mut bench), Value::Null);
    bench.prompt(a, &json!(2), "s", "and on");
    bench.refuses("session/list", -32601);
    bench.refuses("session/load", -32601);
    bench.answers("session/new", &json!({"sessionId":"u"}));
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    assert_eq!(lies(&mut bench), both);
    // Another version.
    bench.greeting = greeting("2", 2);
    bench.pass(20_000);
    bench.agent_dies();
    bench.prompt(a, &json!(3), "s", "still");
    bench.heard_one("session/list");
    assert_eq!(lies(&mut bench), Value::Null);
}

#[test]
fn sessions_that_continue_with_a_summary_are_logged() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"loadSession":true,"sessionCapabilities":{"list":{}}}));
    let (_, list) = bench.restoring("s", "session/list");
    bench.agent_answers(&list, &json!({"sessions":[]}));
    bench.answers("session/list", &json!({"sessions":[]}));
    let logged = ("session lost, continues with a summary".to_owned(), None);
    assert_eq!(bench.failures, [(Some("s".to_owned()), logged.0, logged.1)]);
}

#[test]
fn load_that_never_ends_is_given_up() {
    let mut bench = Bench::new();
    bench.loading("s");
    for _ in 0..14 {
        bench.pass(20_000);
        bench.chunk("s", "a long story");
    }
    assert_eq!(bench.state("s"), "restoring");
    bench.pass(19_000);
    bench.chunk("s", "a long story");
    bench.pass(1_000);
    assert_eq!(bench.state("s"), "blocked");
}

#[test]
fn refused_prompts_after_a_restore_name_the_way_out() {
    let (mut bench, _) = Bench::used_and_loadable();
    let a = bench.client(&json!({"notices":true}));
    bench.say(a, &json!({"id":0,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}));
    let refuse = |bench: &mut Bench| {
        bench.got(a);
        bench.prompt(a, &json!(1), "s", "go");
        bench.refuses("session/prompt", -32602);
        let got = bench.got(a);
        got.iter()
            .any(|line| line["params"]["text"].to_string().contains("session reseed s --discard"))
    };
    assert!(!refuse(&mut bench) && !refuse(&mut bench), "it was not brought back");
    bench.prompt(a, &json!(1), "s", "go");
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    bench.agent_dies();
    bench.pass(1_000);
    bench.answers("session/load", &json!({}));
    assert!(!refuse(&mut bench), "once may be by chance");
    assert!(refuse(&mut bench) && refuse(&mut bench));
    bench.prompt(a, &json!(1), "s", "go");
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    assert!(!refuse(&mut bench), "it works");
}

#[test]
fn options_of_a_new_session_are_not_repeated_and_its_system_prompt_is() {
    let mut bench = Bench::new();
    bench.lenient = true;
    bench.capabilities = Some(json!({"loadSession":true,"sessionCapabilities":{"fork":{}}}));
    let a = bench.plain();
    let params = json!({"cwd":"/w","mcpServers":[],"configOptions":{"model":"big"},"systemPrompt":"Be brief."});
    bench.say(a, &json!({"id":"new","method":"session/new","params":params}));
    let new = bench.heard_one("session/new");
    assert_eq!(new["params"]["configOptions"]["model"], "big");
    bench.agent_answers(&new, &json!({"sessionId":"s"}));
    bench.prompt(a, &json!(1), "s", "go");
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    let fork = json!({"sessionId":"s","cwd":"/w"});
    bench.say(a, &json!({"id":2,"method":"session/fork","params":fork}));
    let fork = bench.heard_one("session/fork");
    assert_eq!(fork["params"]["systemPrompt"], "Be brief.");
    bench.agent_dies();
    bench.prompt(a, &json!(3), "s", "go on");
    bench.pass(1_000);
    let load = bench.heard_one("session/load");
    assert_eq!(load["params"]["systemPrompt"], "Be brief.");
    assert_eq!(load["params"]["configOptions"], Value::Null);
    bench.agent_refuses(&load, -32002);
    let new = bench.heard_one("session/new");
    assert_eq!(new["params"]["systemPrompt"], "Be brief.");
}

#[test]
fn what_happened_outside_acpd_is_taken_from_the_replay_once() {
    let (mut bench, a) = Bench::used_and_loadable();
    for _ in 0..2 {
        bench.agent_dies();
        bench.pass(1_000);
        let load = bench.heard_one("session/load");
        for (user, answer) in [("first", "known"), ("elsewhere", "news")] {
            bench.update("s", "user_message_chunk", user);
            bench.chunk("s", answer);
        }
        bench.agent_answers(&load, &json!({}));
    }
    let texts: Vec<_> = bench.got(a);
    assert_eq!(words(&texts), ["user_message_chunk", "agent_message_chunk"]);
    let told = bench.journal_words().iter().filter(|word| *word == "_acpd/notice").count();
    assert_eq!(told, 1, "it is said where the agent's own history begins");
    assert_eq!(texts[1]["params"]["update"]["content"]["text"], "news");
}

#[test]
fn a_restore_that_was_given_up_makes_the_next_replay_doubtful() {
    for restarts in [false, true] {
        let mut bench = Bench::with_shims();
        bench.capabilities = Some(json!({"loadSession":true}));
        let (mut bench, a) = bench.with_used();
        bench.agent_dies();
        bench.pass(1_000);
        bench.heard_one("session/load");
        while bench.state("s") == "restoring" {
            bench.pass(1_000);
        }
        let client = if restarts {
            bench.reboot();
            bench.plain()
        } else {
            a
        };
        bench.prompt(client, &json!(9), "s", "go");
        bench.pass(1_000);
        let load = bench.heard_one("session/load");
        for (user, answer) in [("first", "known"), ("elsewhere", "news")] {
            bench.update("s", "user_message_chunk", user);
            bench.chunk("s", answer);
        }
        bench.agent_answers(&load, &json!({}));
        let got = bench.got(client);
        assert!(words(&got).iter().all(|word| word != "user_message_chunk"), "{restarts}: {got:?}");
    }
}

#[test]
fn load_waits_until_the_session_is_old_enough() {
    let mut bench = Bench::with(|profile| profile.load_after = 60_000);
    bench.capabilities = Some(json!({"loadSession":true}));
    let a = bench.client(&json!({"notices":true}));
    bench.used_session(a, "s");
    bench.pass(20_000);
    bench.agent_dies();
    bench.prompt(a, &json!(2), "s", "go");
    bench.pass(39_999);
    assert_eq!((bench.heard(), bench.state("s")), (Vec::new(), "restoring".to_owned()));
    let got = bench.got(a);
    let told = got.iter().filter_map(|line| line["params"]["text"].as_str());
    assert_eq!(
        told.filter(|text| text.contains("waits for 40 s (`load_after`)")).count(),
        1,
        "{got:?}"
    );
    bench.pass(1);
    bench.answers("session/load", &json!({}));
    bench.heard_one("session/prompt");
}

#[test]
fn own_agent_has_the_quirks_of_the_program_that_it_is() {
    let known = Profile { load_after: 60_000, ..Profile::standard() };
    let cases = [(true, "gemini-cli"), (true, "other"), (false, "gemini-cli")];
    for ((takes_quirks, name), restarts) in
        cases.into_iter().flat_map(|case| [(case, false), (case, true)])
    {
        let mut bench = Bench::with(|profile| profile.takes_quirks = takes_quirks);
        bench.configure(|config| config.quirks = [("gemini-cli".into(), known.clone())].into());
        bench.capabilities = Some(json!({"loadSession":true}));
        bench.greeting = json!({"agentInfo":{"name":name,"version":"1"}});
        let mut client = bench.plain();
        bench.used_session(client, "s");
        if restarts {
            bench.reboot();
            let host = bench.host();
            bench.feed(Input::Host(host, HostEvent::Gone));
            client = bench.plain();
        } else {
            bench.agent_dies();
        }
        bench.prompt(client, &json!(2), "s", "go");
        bench.pass(1_000);
        let is_put_off = bench.heard().is_empty();
        assert_eq!(is_put_off, takes_quirks && name == "gemini-cli", "{name} {restarts}");
    }
}

#[test]
fn load_is_not_put_off_in_an_old_session() {
    let mut bench = Bench::with(|profile| profile.load_after = 60_000);
    bench.capabilities = Some(json!({"loadSession":true}));
    let a = bench.plain();
    bench.used_session(a, "s");
    bench.pass(60_000);
    bench.agent_dies();
    bench.pass(1_000);
    bench.answers("session/load", &json!({}));
    assert_eq!(bench.state("s"), "live");
    // A session that the agent made in place of a lost one is young again.
    bench.agent_dies();
    bench.pass(1_000);
    bench.refuses("session/load", -32002);
    bench.prompt(a, &json!(2), "s", "go");
    bench.refuses("session/load", -32002);
    bench.answers("session/new", &json!({"sessionId":"t"}));
    let prompt = bench.heard_one("session/prompt");
    bench.chunk("t", "an answer");
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    bench.pass(11_000);
    bench.agent_dies();
    bench.pass(20_000);
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.pass(40_000);
    bench.heard_one("session/load");
}

#[test]
fn a_late_replay_is_waited_for_before_the_next_prompt() {
    let mut bench = Bench::with(|profile| profile.late_replay = true);
    bench.capabilities = Some(json!({"loadSession":true}));
    let a = bench.plain();
    bench.used_session(a, "s");
    bench.agent_dies();
    bench.prompt(a, &json!(2), "s", "go");
    bench.pass(1_000);
    bench.answers("session/load", &json!({}));
    bench.pass(200);
    bench.update("s", "user_message_chunk", "first");
    bench.pass(200);
    bench.chunk("s", "known");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.pass(300);
    bench.heard_one("session/prompt");
    assert_eq!(words(&bench.got(a)), Vec::<String>::new());
}

#[test]
fn a_session_that_the_agent_no_longer_has_is_lost_and_never_made_anew() {
    let mut bench = Bench::with(|profile| profile.on_lost = OnLost::Stop);
    bench.capabilities = Some(json!({"loadSession":true}));
    let a = bench.plain();
    bench.used_session(a, "s");
    bench.agent_dies();
    bench.prompt(a, &json!(2), "s", "go");
    bench.pass(1_000);
    bench.refuses("session/load", -32002);
    let got = bench.got(a);
    assert_eq!(got.last().expect("told")["error"]["data"]["_acpd"]["reason"], "session_lost");
    assert_eq!(bench.state("s"), "lost");
    assert_eq!(bench.journal_words().last().expect("told"), "_acpd/restored");
    bench.prompt(a, &json!(3), "s", "again");
    assert_eq!(bench.got(a)[0]["error"]["data"]["_acpd"]["reason"], "session_lost");
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_load_that_fails_for_now_is_tried_again() {
    let (mut bench, a) = Bench::used_and_loadable();
    bench.agent_dies();
    bench.pass(1_000);
    for _ in 0..3 {
        bench.refuses("session/load", -32602);
        bench.pass(2_000);
    }
    assert_eq!(bench.state("s"), "blocked");
    bench.prompt(a, &json!(2), "s", "go");
    bench.answers("session/load", &json!({}));
    bench.heard_one("session/prompt");
}

#[test]
fn failures_are_told_to_the_log_with_the_session_and_the_code() {
    let (mut bench, a) = Bench::used_and_loadable();
    bench.prompt(a, &json!(1), "s", "go");
    bench.heard_one("session/prompt");
    bench.agent_dies();
    bench.pass(1_000);
    for _ in 0..3 {
        bench.refuses("session/load", -32602);
        bench.pass(2_000);
    }
    let failed = |what: &str, code| (Some("s".to_owned()), what.to_owned(), code);
    let refused = failed("restore", Some(-32602));
    assert_eq!(
        bench.failures,
        [
            failed("turn interrupted", None),
            refused.clone(),
            refused.clone(),
            refused,
            failed("session not restored", Some(-32602))
        ]
    );
}

#[test]
fn log_names_sessions_that_begin_anew_and_the_code() {
    let failed = |what: &str, code| (Some("s".to_owned()), what.to_owned(), code);
    let (mut bench, _) = Bench::used_and_loadable();
    bench.agent_dies();
    bench.pass(1_000);
    bench.refuses("session/load", -32002);
    let lost = failed("session lost, continues with a summary", Some(-32002));
    assert_eq!(bench.failures.last(), Some(&lost));

    let mut bench = Bench::new();
    let (_, resume) = bench.restoring("s", "session/resume");
    bench.agent_refuses(&resume, -32000);
    assert_eq!(bench.failures.last(), Some(&failed("session needs a login", Some(-32000))));
}

#[test]
fn a_login_brings_back_what_waited_for_it() {
    let mut bench = Bench::new();
    let (a, resume) = bench.restoring("s", "session/resume");
    bench.agent_refuses(&resume, -32000);
    assert_eq!((bench.state("s"), bench.agent_state()), ("blocked".into(), "needs_auth".into()));
    bench.say(a, &json!({"id":5,"method":"authenticate","params":{"methodId":"m"}}));
    bench.answers("authenticate", &json!({}));
    bench.answers("session/resume", &json!({}));
    assert_eq!((bench.state("s"), bench.agent_state()), ("live".into(), "ready".into()));
}

#[test]
fn a_session_without_a_prompt_is_made_anew_without_a_word() {
    let mut bench = Bench::new();
    let a = bench.client(&json!({"seq":true}));
    bench.session(a, "s");
    bench.agent_dies();
    bench.pass(1_000);
    let request = bench.heard_one("session/new");
    bench.chunk("s2", "early");
    let commands = json!({"sessionUpdate":"available_commands_update","availableCommands":[]});
    bench.agent(&json!({"method":"session/update","params":{"sessionId":"s2","update":commands}}));
    bench.agent_answers(&request, &json!({"sessionId":"s2"}));
    let got = bench.got(a);
    assert_eq!(words(&got), ["available_commands_update"]);
    assert_eq!(got[0]["params"]["sessionId"], "s");
    bench.prompt(a, &json!(1), "s", "go");
    assert_eq!(bench.heard_one("session/prompt")["params"]["sessionId"], "s2");
}

#[test]
fn an_id_that_the_agent_gave_away_costs_the_old_session_and_not_the_new_one() {
    let mut bench = Bench::with(|profile| profile.on_lost = OnLost::Stop);
    let (a, resume) = bench.restoring("0", "session/resume");
    bench.say(a, &json!({"id":8,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}));
    bench.answers("session/new", &json!({"sessionId":"0"}));
    bench.agent_answers(&resume, &json!({}));
    assert_eq!(bench.state("0"), "lost");
    let got = bench.got(a);
    let made = got.iter().find(|line| line["id"] == 8).expect("an answer");
    let id = made["result"]["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(bench.state(&id), "live");
}

#[test]
fn a_session_that_a_running_agent_forgets_is_restored_for_the_next_prompt() {
    let (mut bench, a) = Bench::used();
    bench.prompt(a, &json!(2), "s", "go");
    let prompt = bench.heard_one("session/prompt");
    let error = json!({"code":-32603,"message":"send failed: session not found: s"});
    bench.agent(&json!({"id":prompt["id"],"error":error}));
    assert_eq!(bench.got(a)[0]["error"]["code"], -32603, "its own words");
    assert_eq!(bench.heard().len(), 0, "it does not run again by itself");
    bench.prompt(a, &json!(3), "s", "go on");
    assert_eq!(bench.stops.len(), 1, "a process that forgets is started anew");
    bench.agent_dies();
    bench.answers("session/resume", &json!({}));
    bench.heard_one("session/prompt");
}

#[test]
fn a_session_in_which_the_agent_never_said_a_word_begins_anew_and_says_so() {
    for spoke in [false, true] {
        let mut bench = Bench::with(|profile| profile.on_lost = OnLost::Stop);
        bench.capabilities = Some(json!({"loadSession":true,"sessionCapabilities":{"list":{}}}));
        let a = bench.client(&json!({"notices":true}));
        bench.session(a, "s");
        bench.prompt(a, &json!(1), "s", "go");
        bench.heard_one("session/prompt");
        if spoke {
            bench.chunk("s", "well");
        }
        bench.agent_dies();
        bench.pass(1_000);
        let list = bench.heard_one("session/list");
        bench.got(a);
        bench.agent_answers(&list, &json!({"sessions":[]}));
        bench.answers("session/list", &json!({"sessions":[]}));
        if spoke {
            assert_eq!(bench.heard(), Vec::<Value>::new());
            assert_eq!(bench.state("s"), "lost");
            continue;
        }
        bench.answers("session/new", &json!({"sessionId":"other"}));
        assert_eq!(bench.state("s"), "live");
        let got = bench.got(a);
        let notice = got.iter().find(|line| line["method"] == "_acpd/notice").expect("told");
        let text = notice["params"]["text"].as_str().expect("a sentence");
        assert!(text.contains("begins anew"), "{text}");
        bench.prompt(a, &json!(2), "s", "again");
        assert_eq!(bench.heard_one("session/prompt")["params"]["sessionId"], "other");
    }
}

#[test]
fn a_list_that_is_only_promised_is_asked_for_once() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"loadSession":true,"sessionCapabilities":{"list":{}}}));
    let (_, list) = bench.restoring("s", "session/list");
    bench.agent_refuses(&list, -32601);
    bench.answers("session/load", &json!({}));
    bench.pass(20_000);
    bench.agent_dies();
    bench.pass(1_000);
    bench.heard_one("session/load");
}

#[test]
fn a_session_that_is_listed_in_another_directory_is_loaded_in_its_own() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"loadSession":true,"sessionCapabilities":{"list":{}}}));
    let (_, list) = bench.restoring("s", "session/list");
    assert_eq!(list["params"], json!({"cwd":"/w"}));
    bench.agent_answers(&list, &json!({"sessions":[]}));
    let list = bench.heard_one("session/list");
    assert_eq!(list["params"], json!({}));
    let other = json!([{"sessionId":"other","cwd":"/w"}]);
    bench.agent_answers(&list, &json!({"sessions":other,"nextCursor":"c"}));
    let list = bench.heard_one("session/list");
    assert_eq!(list["params"], json!({"cursor":"c"}));
    bench.agent_answers(&list, &json!({"sessions":[{"sessionId":"s","cwd":"/before"}]}));
    let load = bench.heard_one("session/load");
    assert_eq!(load["params"]["cwd"], "/w");
    bench.loads(&load, &json!({}));
    assert_eq!(bench.state("s"), "live");
}

#[test]
fn a_session_that_an_agent_keeps_for_its_old_directory_goes_on_with_a_summary() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"loadSession":true,"sessionCapabilities":{"list":{}}}));
    let a = bench.plain();
    bench.used_session(a, "s");
    bench.agent_dies();
    bench.pass(1_000);
    let refuse = |bench: &mut Bench| {
        bench.answers("session/list", &json!({"sessions":[]}));
        bench.answers("session/list", &json!({"sessions":[{"sessionId":"s","cwd":"/before"}]}));
        for _ in 0..3 {
            bench.refuses("session/load", -32602);
            bench.pass(1_500);
        }
    };
    refuse(&mut bench);
    assert_eq!(bench.state("s"), "parked", "it waits for a prompt");
    bench.prompt(a, &json!(2), "s", "go on");
    refuse(&mut bench);
    bench.heard_one("session/new");
}

#[test]
fn a_list_without_an_end_is_no_reason_to_give_a_session_up() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"loadSession":true,"sessionCapabilities":{"list":{}}}));
    let a = bench.plain();
    bench.used_session(a, "s");
    bench.agent_dies();
    bench.pass(1_000);
    for _ in 0..100 {
        bench.answers("session/list", &json!({"sessions":[],"nextCursor":"more"}));
    }
    bench.heard_one("session/load");
}

#[test]
fn servers_that_the_agent_refuses_on_load_are_left_out_and_that_is_told() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"loadSession":true}));
    let a = bench.client(&json!({"notices":true}));
    let server = json!({"name":"m","command":"x","args":[],"env":[]});
    let params = json!({"cwd":"/w","mcpServers":[server]});
    bench.say(a, &json!({"id":"new","method":"session/new","params":params}));
    bench.answers("session/new", &json!({"sessionId":"s"}));
    bench.prompt(a, &json!(1), "s", "go");
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    bench.agent_dies();
    bench.pass(1_000);
    bench.got(a);
    for _ in 0..3 {
        let load = bench.heard_one("session/load");
        assert_eq!(load["params"]["mcpServers"][0]["name"], "m");
        bench.agent_refuses(&load, -32602);
        bench.pass(1_500);
    }
    let load = bench.heard_one("session/load");
    assert_eq!(load["params"]["mcpServers"], json!([]));
    bench.loads(&load, &json!({}));
    let got = bench.got(a);
    let told = got.iter().find(|line| line["method"] == "_acpd/notice").expect("told");
    assert!(told["params"]["text"].as_str().expect("text").contains("MCP servers are left out"));
    assert_eq!(bench.state("s"), "live");
}

#[test]
fn a_restore_that_takes_too_long_is_given_up_and_tried_again() {
    let (mut bench, a) = Bench::used();
    bench.agent_dies();
    bench.prompt(a, &json!(2), "s", "go");
    bench.pass(1_000);
    bench.heard_one("session/resume");
    bench.pass(30_000);
    assert_eq!(bench.state("s"), "blocked");
    let got = bench.got(a);
    assert_eq!(got[0]["error"]["data"]["_acpd"]["reason"], "agent_timeout");
    bench.prompt(a, &json!(3), "s", "go");
    bench.answers("session/resume", &json!({}));
    bench.heard_one("session/prompt");
}
