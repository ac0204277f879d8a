//! Sessions that come back, or do not.

use acpd_core::profile::{OnLost, Profile};
use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::settings::{model, modes};
use crate::steps::reason;

#[test]
fn a_crash_in_a_turn_is_told_and_the_session_comes_back_with_its_mode() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.noticed());
    let modes = |current: &str| json!({"modes":modes(current)});
    bench.session_with(a, "s", &modes("ask"));
    bench.set_mode(a, "s", "code");
    bench.join(b, "s");
    bench.start_turn(a, 9, "s", "go");
    bench.send_update("s", &json!({"sessionUpdate":"tool_call","toolCallId":"t","title":"x"}));
    bench.got(a);
    bench.agent_dies();

    let got = bench.expect(a, ["tool_call_update", "error 9"]);
    assert_eq!(got[0]["params"]["update"]["status"], "failed");
    assert_eq!(reason(&got[1]), "agent_exited");
    assert_eq!(got[1]["error"]["data"]["_acpd"]["stderr"], "Error: boom");

    bench.pass(1_000);
    let resume = bench.heard_one("session/resume");
    assert_eq!(resume["params"]["cwd"], "/w");
    bench.agent_answers(&resume, &modes("ask"));
    let mode = bench.heard_one("session/set_mode");
    assert_eq!(mode["params"]["modeId"], "code");
    bench.agent_answers(&mode, &json!({}));
    let mut told = words(&bench.got(b));
    told.retain(|word| !word.ends_with("agent_state") && !word.ends_with("session_state"));
    let turn = ["_acpd/turn_started", "user_message_chunk", "tool_call", "tool_call_update"];
    let restore = ["_acpd/turn_ended", "current_mode_update", "_acpd/restored"];
    assert_eq!(told, [&turn[..], &restore[..]].concat());
    assert_eq!(bench.heard(), Vec::<Value>::new(), "a prompt is never sent twice");
}

/// Number of notices in the journal.
fn notices(bench: &Bench) -> usize {
    bench.journal_words().iter().filter(|word| *word == "_acpd/notice").count()
}

#[test]
fn an_agent_that_refuses_mcp_servers_on_load_gets_none() {
    let servers = json!([{"name":"x","command":"/x","args":[],"env":[]}]);
    for (servers, restore_mcp, told) in
        [(&servers, true, 0), (&servers, false, 1), (&json!([]), false, 0)]
    {
        let mut bench = Bench::with(|profile| profile.restore_mcp = restore_mcp);
        let a = bench.plain();
        bench.ask(a, 1, "session/new", &json!({"cwd":"/w","mcpServers":servers}));
        let request = bench.heard_one("session/new");
        assert_eq!(request["params"]["mcpServers"], *servers);
        bench.agent_answers(&request, &json!({"sessionId":"s"}));
        bench.run_turn(a, 2, "s", "go");
        bench.restart_agent();
        let resume = bench.heard_one("session/resume");
        let expected = if restore_mcp { servers.clone() } else { json!([]) };
        assert_eq!(resume["params"]["mcpServers"], expected);
        bench.agent_answers(&resume, &json!({}));
        assert_eq!(notices(&bench), told, "{servers} {restore_mcp}");
    }
}

#[test]
fn options_are_set_again_and_later_clients_see_them() {
    let mut bench = Bench::new();
    let a = bench.plain();
    let options = |value: &str| json!({"configOptions":model(value)});
    bench.session_with(a, "s", &options("big"));
    bench.run_turn(a, 1, "s", "go");
    bench.restart_agent();
    bench.answers("session/resume", &options("small"));
    let set = bench.heard_one("session/set_config_option");
    assert_eq!(set["params"], json!({"sessionId":"s","configId":"model","value":"big"}));
    bench.agent_answers(&set, &options("big"));
    let resumed = bench.command("session/resume", &json!({"sessionId":"s","cwd":"/w"}));
    assert_eq!(resumed["result"], options("big"));
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
    bench.restart_agent();
    bench.heard_one("session/load");
}

#[test]
fn an_agent_that_lies_about_load_is_asked_once_and_its_sessions_go_on_with_a_summary() {
    let mut bench = Bench::with_shims();
    let (a, load) = bench.loading("s");
    bench.agent_refuses(&load, -32601);
    assert_eq!(bench.state("s"), "parked", "it is not tried again");
    bench.prompt(a, &json!(2), "s", "second");
    bench.answers("session/new", &json!({"sessionId":"t"}));
    let prompt = bench.expect_summary();
    assert_eq!(words(&bench.got(a)), ["agent_message_chunk"], "it is told");
    // The next daemon knows it as well, until the agent is another one.
    bench.reboot();
    bench.end_turn(&prompt);
    bench.chunk("t", "the answer to second");
    bench.pass(20_000);
    bench.restart_agent();
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it is not asked");
    bench.capabilities = Bench::listing().capabilities;
    let client = bench.plain();
    bench.ask(client, 1, "_acpd/agent/restart", &json!({"agent":"gem"}));
    bench.agent_dies();
    bench.prompt(client, &json!(2), "s", "third");
    bench.heard_one("session/list");
}

#[test]
fn methods_that_an_agent_only_announces_are_remembered_for_its_version() {
    let greeting = |version: &str, more: u64| json!({"agentInfo":{"name":"g","version":version},"_meta":{"time":more}});
    let mut bench = Bench::listing();
    bench.greeting = greeting("1", 1);
    let (a, list) = bench.restoring("s", "session/list");
    bench.agent_refuses(&list, -32601);
    bench.refuses("session/load", -32601);
    let lies = |bench: &mut Bench| bench.show_agent()["unsupported"].clone();
    let both = json!(["session/load", "session/list"]);
    assert_eq!(lies(&mut bench), both);
    let again = |bench: &mut Bench| {
        bench.ask(a, 9, "_acpd/agent/restart", &json!({"agent":"gem"}));
        bench.agent_dies();
        bench.got(a);
    };
    // No new version, but other members.
    bench.greeting = greeting("1", 2);
    bench.pass(20_000);
    bench.agent_dies();
    bench.prompt(a, &json!(1), "s", "go on");
    bench.answers("session/new", &json!({"sessionId":"t"}));
    bench.end_prompt();
    assert_eq!(lies(&mut bench), both);
    // A person asks for another try.
    again(&mut bench);
    assert_eq!(lies(&mut bench), Value::Null);
    bench.prompt(a, &json!(2), "s", "and on");
    bench.refuses("session/list", -32601);
    bench.refuses("session/load", -32601);
    bench.answers("session/new", &json!({"sessionId":"u"}));
    bench.end_prompt();
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
    let a = bench.noticed();
    bench.ask(a, 0, "session/resume", &json!({"sessionId":"s","cwd":"/w"}));
    let refuse = |bench: &mut Bench| {
        bench.got(a);
        bench.prompt(a, &json!(1), "s", "go");
        bench.refuses("session/prompt", -32602);
        let got = bench.got(a);
        got.iter()
            .any(|line| line["params"]["text"].to_string().contains("session reseed s --discard"))
    };
    assert!(!refuse(&mut bench) && !refuse(&mut bench), "it was not brought back");
    bench.run_turn(a, 1, "s", "go");
    bench.restart_agent();
    bench.answers("session/load", &json!({}));
    assert!(!refuse(&mut bench), "once may be by chance");
    assert!(refuse(&mut bench) && refuse(&mut bench));
    bench.run_turn(a, 1, "s", "go");
    assert!(!refuse(&mut bench), "it works");
}

#[test]
fn options_of_a_new_session_are_not_repeated_and_its_system_prompt_is() {
    let mut bench = Bench::able(&json!({"loadSession":true,"sessionCapabilities":{"fork":{}}}));
    bench.lenient = true;
    let a = bench.plain();
    let params = json!({"cwd":"/w","mcpServers":[],"configOptions":{"model":"big"},"systemPrompt":"Be brief."});
    bench.ask(a, "new", "session/new", &params);
    let new = bench.heard_one("session/new");
    assert_eq!(new["params"]["configOptions"]["model"], "big");
    bench.agent_answers(&new, &json!({"sessionId":"s"}));
    bench.run_turn(a, 1, "s", "go");
    bench.ask(a, 2, "session/fork", &json!({"sessionId":"s","cwd":"/w"}));
    assert_eq!(bench.heard_one("session/fork")["params"]["systemPrompt"], "Be brief.");
    bench.prompt_after_crash(a, 3, "s", "go on");
    let load = bench.heard_one("session/load");
    assert_eq!(load["params"]["systemPrompt"], "Be brief.");
    assert_eq!(load["params"]["configOptions"], Value::Null);
    bench.agent_refuses(&load, -32002);
    assert_eq!(bench.heard_one("session/new")["params"]["systemPrompt"], "Be brief.");
}

/// The agent answers a load, and has replayed a turn that acpd does not know.
fn replay_more(bench: &mut Bench, load: &Value) {
    for (user, answer) in [("first", "known"), ("elsewhere", "news")] {
        bench.update("s", "user_message_chunk", user);
        bench.chunk("s", answer);
    }
    bench.agent_answers(load, &json!({}));
}

#[test]
fn what_happened_outside_acpd_is_taken_from_the_replay_once() {
    let (mut bench, a) = Bench::used_and_loadable();
    for _ in 0..2 {
        bench.restart_agent();
        let load = bench.heard_one("session/load");
        replay_more(&mut bench, &load);
    }
    let texts = bench.expect(a, ["user_message_chunk", "agent_message_chunk"]);
    assert_eq!(notices(&bench), 1, "it is said where the agent's own history begins");
    assert_eq!(texts[1]["params"]["update"]["content"]["text"], "news");
}

#[test]
fn a_restore_that_was_given_up_makes_the_next_replay_doubtful() {
    for restarts in [false, true] {
        let (mut bench, a) = Bench::with_shims().only_loading().with_used();
        bench.restart_agent();
        bench.heard_one("session/load");
        while bench.state("s") == "restoring" {
            bench.pass(1_000);
        }
        if restarts {
            bench.reboot();
        }
        let client = if restarts { bench.plain() } else { a };
        bench.prompt(client, &json!(9), "s", "go");
        bench.pass(1_000);
        let load = bench.heard_one("session/load");
        replay_more(&mut bench, &load);
        let got = bench.got(client);
        assert!(words(&got).iter().all(|word| word != "user_message_chunk"), "{restarts}: {got:?}");
    }
}

#[test]
fn load_waits_until_the_session_is_old_enough() {
    let mut bench = Bench::with(|profile| profile.load_after = 60_000).only_loading();
    let a = bench.noticed();
    bench.used_session(a, "s");
    bench.pass(20_000);
    bench.agent_dies();
    bench.prompt(a, &json!(2), "s", "go");
    bench.pass(39_999);
    assert_eq!((bench.heard(), bench.state("s")), (Vec::new(), "restoring".to_owned()));
    let got = bench.got(a);
    let told = got.iter().filter_map(|line| line["params"]["text"].as_str());
    let told = told.filter(|text| text.contains("waits for 40 s (`load_after`)"));
    assert_eq!(told.count(), 1, "{got:?}");
    bench.pass(1);
    bench.bring_back("session/load");
}

#[test]
fn own_agent_has_the_quirks_of_the_program_that_it_is() {
    let known = Profile { load_after: 60_000, ..Profile::standard() };
    let cases = [(true, "gemini-cli"), (true, "other"), (false, "gemini-cli")];
    let cases = cases.into_iter().flat_map(|case| [(case, false), (case, true)]);
    for ((takes_quirks, name), restarts) in cases {
        let mut bench = Bench::with(|profile| profile.takes_quirks = takes_quirks);
        bench.configure(|config| config.quirks = [("gemini-cli".into(), known.clone())].into());
        bench.capabilities = Some(json!({"loadSession":true}));
        bench.greeting = json!({"agentInfo":{"name":name,"version":"1"}});
        let mut client = bench.plain();
        bench.used_session(client, "s");
        if restarts {
            bench.reboot();
            bench.end_process();
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
    let (mut bench, a) =
        Bench::with(|profile| profile.load_after = 60_000).only_loading().with_used();
    bench.pass(60_000);
    bench.restart_agent();
    bench.answers("session/load", &json!({}));
    assert_eq!(bench.state("s"), "live");
    // A session that the agent made in place of a lost one is young again.
    bench.restart_agent();
    bench.refuses("session/load", -32002);
    bench.prompt(a, &json!(2), "s", "go");
    bench.refuses("session/load", -32002);
    bench.answers("session/new", &json!({"sessionId":"t"}));
    let prompt = bench.heard_one("session/prompt");
    bench.chunk("t", "an answer");
    bench.end_turn(&prompt);
    bench.pass(11_000);
    bench.agent_dies();
    bench.pass(20_000);
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.pass(40_000);
    bench.heard_one("session/load");
}

#[test]
fn a_late_replay_is_waited_for_before_the_next_prompt() {
    let (mut bench, a) =
        Bench::with(|profile| profile.late_replay = true).only_loading().with_used();
    bench.prompt_after_crash(a, 2, "s", "go");
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

/// A failure for the log, of the session `s`.
fn failed(what: &str, code: Option<i64>) -> (Option<String>, String, Option<i64>) {
    (Some("s".to_owned()), what.to_owned(), code)
}

#[test]
fn a_load_that_fails_for_now_is_logged_with_its_code_and_tried_again() {
    let (mut bench, a) = Bench::used_and_loadable();
    bench.start_turn(a, 1, "s", "go");
    bench.restart_agent();
    bench.refuse_loads();
    assert_eq!(bench.failures[0], failed("turn interrupted", None));
    assert_eq!(bench.failures[1..4], vec![failed("restore", Some(-32602)); 3]);
    assert_eq!(bench.failures[4..], [failed("session not restored", Some(-32602))]);
    assert_eq!(bench.state("s"), "blocked");
    bench.prompt(a, &json!(2), "s", "go");
    bench.bring_back("session/load");
}

#[test]
fn log_names_sessions_that_begin_anew_and_the_code() {
    let lost = |code| failed("session lost, continues with a summary", code);
    let (mut bench, _) = Bench::used_and_loadable();
    bench.restart_agent();
    bench.refuses("session/load", -32002);
    assert_eq!(bench.failures.last(), Some(&lost(Some(-32002))));

    let (mut bench, _) = Bench::listing().with_used();
    bench.restart_agent();
    for _ in 0..2 {
        bench.answers("session/list", &json!({"sessions":[]}));
    }
    assert_eq!(bench.failures, [lost(None)]);

    let mut bench = Bench::new();
    let (_, resume) = bench.restoring("s", "session/resume");
    bench.agent_refuses(&resume, -32000);
    assert_eq!(bench.failures.last(), Some(&failed("session needs a login", Some(-32000))));
}

#[test]
fn a_session_without_a_prompt_is_made_anew_without_a_word() {
    let mut bench = Bench::new();
    let a = bench.client(&json!({"seq":true}));
    bench.session(a, "s");
    bench.restart_agent();
    let request = bench.heard_one("session/new");
    bench.chunk("s2", "early");
    let commands = json!({"sessionUpdate":"available_commands_update","availableCommands":[]});
    bench.send_update("s2", &commands);
    bench.agent_answers(&request, &json!({"sessionId":"s2"}));
    assert_eq!(bench.expect(a, ["available_commands_update"])[0]["params"]["sessionId"], "s");
    bench.prompt(a, &json!(1), "s", "go");
    assert_eq!(bench.heard_one("session/prompt")["params"]["sessionId"], "s2");
}

#[test]
fn an_id_that_the_agent_gave_away_costs_the_old_session_and_not_the_new_one() {
    let mut bench = Bench::with(|profile| profile.on_lost = OnLost::Stop);
    let (a, resume) = bench.restoring("0", "session/resume");
    bench.ask(a, 8, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
    bench.answers("session/new", &json!({"sessionId":"0"}));
    bench.agent_answers(&resume, &json!({}));
    assert_eq!(bench.state("0"), "lost");
    let made = bench.answer(a, 8);
    let id = made["result"]["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(bench.state(&id), "live");
}

#[test]
fn a_session_that_a_running_agent_forgets_is_restored_for_the_next_prompt() {
    let (mut bench, a) = Bench::used();
    let prompt = bench.start_turn(a, 2, "s", "go");
    let error = json!({"code":-32603,"message":"send failed: session not found: s"});
    bench.agent_fails(&prompt, &error);
    assert_eq!(bench.got(a)[0]["error"]["code"], -32603, "its own words");
    assert_eq!(bench.heard().len(), 0, "it does not run again by itself");
    bench.prompt(a, &json!(3), "s", "go on");
    assert_eq!(bench.stops.len(), 1, "a process that forgets is started anew");
    bench.agent_dies();
    bench.bring_back("session/resume");
}

#[test]
fn a_session_in_which_the_agent_never_said_a_word_begins_anew_and_says_so() {
    for spoke in [false, true] {
        let mut bench = Bench::with(|profile| profile.on_lost = OnLost::Stop);
        bench.capabilities = Bench::listing().capabilities;
        let (mut bench, a) = bench.with_noticed();
        bench.start_turn(a, 1, "s", "go");
        if spoke {
            bench.chunk("s", "well");
        }
        bench.restart_agent();
        bench.got(a);
        bench.answers("session/list", &json!({"sessions":[]}));
        bench.answers("session/list", &json!({"sessions":[]}));
        if spoke {
            assert_eq!(bench.heard(), Vec::<Value>::new());
            assert_eq!(bench.state("s"), "lost");
            continue;
        }
        bench.answers("session/new", &json!({"sessionId":"other"}));
        assert_eq!(bench.state("s"), "live");
        let notice = bench.find(a, "_acpd/notice");
        assert!(notice["params"]["text"].to_string().contains("begins anew"), "{notice}");
        bench.prompt(a, &json!(2), "s", "again");
        assert_eq!(bench.heard_one("session/prompt")["params"]["sessionId"], "other");
    }
}

#[test]
fn a_session_that_is_listed_in_another_directory_is_loaded_in_its_own() {
    let mut bench = Bench::listing();
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
    let (mut bench, a) = Bench::listing().with_used();
    bench.restart_agent();
    let refuse = |bench: &mut Bench| {
        bench.answers("session/list", &json!({"sessions":[]}));
        bench.answers("session/list", &json!({"sessions":[{"sessionId":"s","cwd":"/before"}]}));
        bench.refuse_loads();
    };
    refuse(&mut bench);
    assert_eq!(bench.state("s"), "parked", "it waits for a prompt");
    bench.prompt(a, &json!(2), "s", "go on");
    refuse(&mut bench);
    bench.heard_one("session/new");
}

#[test]
fn a_list_without_an_end_is_no_reason_to_give_a_session_up() {
    let (mut bench, _) = Bench::listing().with_used();
    bench.restart_agent();
    for _ in 0..100 {
        bench.answers("session/list", &json!({"sessions":[],"nextCursor":"more"}));
    }
    bench.heard_one("session/load");
}

#[test]
fn servers_that_the_agent_refuses_on_load_are_left_out_and_that_is_told() {
    let mut bench = Bench::loadable();
    let a = bench.noticed();
    let server = json!({"name":"m","command":"x","args":[],"env":[]});
    bench.ask(a, "new", "session/new", &json!({"cwd":"/w","mcpServers":[server]}));
    bench.answers("session/new", &json!({"sessionId":"s"}));
    bench.run_turn(a, 1, "s", "go");
    bench.restart_agent();
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
    let told = bench.find(a, "_acpd/notice");
    assert!(told["params"]["text"].as_str().expect("text").contains("MCP servers are left out"));
    assert_eq!(bench.state("s"), "live");
}
