//! Sessions of subagents: they belong to the session that announced them.

use acpd_core::ids::ClientId;
use acpd_core::profile::Services;
use serde_json::{Value, json};

use crate::bench::{Bench, methods, word, words};
use crate::steps::selected;

/// A client that shows subagents, and can do files.
fn viewer(bench: &mut Bench) -> ClientId {
    let capabilities = json!({"subagents":{},"fs":{"readTextFile":true}});
    bench.introduce(&json!({"clientCapabilities":capabilities}))
}

/// A session with a client that shows subagents and one that does not.
fn scene(mut bench: Bench) -> (Bench, ClientId, ClientId) {
    let shows = viewer(&mut bench);
    bench.session(shows, "s");
    let plain = bench.joined("s");
    (bench, shows, plain)
}

/// A used session of a client that shows subagents, whose agent has died: the client, and the request for
/// the session.
fn restoring(mut bench: Bench, method: &str) -> (Bench, ClientId, Value) {
    let shows = viewer(&mut bench);
    bench.used_session(shows, "s");
    bench.restart_agent();
    let request = bench.heard_one(method);
    bench.got(shows);
    (bench, shows, request)
}

/// Like [`scene`], with the child `c`.
fn with_child() -> (Bench, ClientId, ClientId) {
    let (mut bench, shows, plain) = scene(Bench::new());
    announce(&mut bench, "s", "c", &json!({}));
    (bench, shows, plain)
}

fn announce(bench: &mut Bench, on: &str, child: &str, more: &Value) {
    let mut update = more.clone();
    update["sessionUpdate"] = "subagent_update".into();
    update["sessionId"] = child.into();
    bench.send_update(on, &update);
}

/// Sessions and texts of the lines.
fn of(lines: &[Value]) -> Vec<String> {
    let whose = |line: &Value| line["params"]["sessionId"].as_str().unwrap_or("-").to_owned();
    lines.iter().map(|line| format!("{} {}", whose(line), word(line))).collect()
}

/// The only request that waits for a client.
#[track_caller]
fn asked(bench: &mut Bench, client: ClientId) -> Value {
    let got = bench.got(client);
    let mut asked = got.into_iter().filter(|line| line.get("id").is_some());
    let one = asked.next().expect("a request");
    assert_eq!(asked.next(), None);
    one
}

#[test]
fn lines_of_a_child_are_in_order_with_those_of_its_session_for_who_shows_subagents() {
    let (mut bench, shows, plain) = scene(Bench::new());
    bench.chunk("s", "one");
    announce(&mut bench, "s", "c", &json!({"title":"Looks for it"}));
    bench.chunk("c", "two");
    announce(&mut bench, "c", "g", &json!({}));
    bench.chunk("s", "three");
    bench.chunk("g", "four");
    bench.agent(&json!({"jsonrpc":"2.0","method":"_vendor/x","params":{"sessionId":"g"}}));
    let said = ["s", "c", "g"].map(|id| format!("{id} agent_message_chunk"));
    let [s, c, g] = said.each_ref().map(String::as_str);
    let all = [s, "s subagent_update", c, "c subagent_update", s, g, "g _vendor/x"];
    assert_eq!(of(&bench.got(shows)), all);
    assert_eq!(of(&bench.got(plain)), ["s agent_message_chunk"; 2]);
    assert!(bench.notes.is_empty(), "{:?}", bench.notes);

    let params = json!({"sessionId":"s","cwd":"/w","mcpServers":[]});
    for (client, lines) in [(shows, &all[..]), (plain, &[all[0]; 2])] {
        bench.ask(client, "l", "session/load", &params);
        assert_eq!(of(&bench.got(client)), [lines, &["- result \"l\""]].concat());
    }
}

#[test]
fn a_line_of_a_child_names_the_session_that_its_number_is_of() {
    let mut bench = Bench::new();
    let [a, b] = [0, 200].map(|longest| {
        let own = json!({"seq":true,"notices":true,"maxLine":longest});
        bench.introduce(&json!({"clientCapabilities":{"subagents":{}},"_meta":{"_acpd":own}}))
    });
    bench.session(a, "s");
    bench.join(b, "s");
    bench.got(a);
    announce(&mut bench, "s", "c", &json!({}));
    bench.chunk("c", &"long".repeat(100));
    let own = |line: &Value| (line["params"]["_meta"]["_acpd"].clone(), word(line));
    let of_child = json!({"seq":2,"session":"s"});
    let live: Vec<_> = bench.got(a).iter().map(own).collect();
    let words = ["subagent_update", "agent_message_chunk", "_acpd/skipped"].map(str::to_owned);
    let [announced, said, skipped] = words;
    let announced = (json!({"seq":1}), announced);
    assert_eq!(live, [announced.clone(), (of_child.clone(), said)]);
    assert_eq!(own(&bench.got(b)[1]), (of_child, skipped));

    bench.ask(a, "l", "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    let history: Vec<_> = bench.got(a).iter().map(own).collect();
    assert_eq!(history[..2], live);
}

#[test]
fn a_child_says_nothing_about_the_state_of_its_session() {
    let (mut bench, shows, plain) = with_child();
    bench.send_update("c", &json!({"sessionUpdate":"session_info_update","title":"of c"}));
    bench.send_update("c", &json!({"sessionUpdate":"current_mode_update","currentModeId":"m"}));
    bench.send_update("c", &json!({"sessionUpdate":"notice","severity":"info","title":"T"}));
    let row = &bench.snapshot.sessions.values().next().expect("one").row;
    assert_eq!((&row.title, &row.mode), (&None, &None));
    let got = bench.got(shows);
    assert_eq!(words(&got), ["subagent_update", "session_info_update", "current_mode_update"]);
    assert_eq!(bench.got(plain), Vec::<Value>::new());
}

#[test]
fn a_child_that_was_not_announced_is_nobody() {
    let (mut bench, shows, _) = scene(Bench::new());
    bench.chunk("c", "lost");
    bench.ask_permission(7, "c");
    assert_eq!(bench.got(shows), Vec::<Value>::new());
    // Questions without a session are no consent.
    assert_eq!(bench.heard()[0]["error"]["code"], -32602);
    assert_eq!(bench.notes.len(), 1);
}

#[test]
fn what_a_session_says_before_its_id_is_known_may_announce_children() {
    let mut bench = Bench::new();
    let shows = viewer(&mut bench);
    bench.ask(shows, 1, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
    let request = bench.heard_one("session/new");
    announce(&mut bench, "s", "c", &json!({}));
    bench.chunk("c", "early");
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    let expected = ["- result 1", "s subagent_update", "c agent_message_chunk"];
    assert_eq!(of(&bench.got(shows)), expected);
}

#[test]
fn a_session_cannot_be_announced_as_a_child() {
    let (mut bench, shows, _) = scene(Bench::new());
    bench.session(shows, "other");
    for id in ["s", "other"] {
        announce(&mut bench, "s", id, &json!({}));
    }
    announce(&mut bench, "s", "c", &json!({}));
    announce(&mut bench, "other", "c", &json!({}));
    assert_eq!(of(&bench.got(shows)), ["s subagent_update"]);
    assert_eq!(bench.notes.len(), 3);
    bench.chunk("other", "x");
    assert_eq!(of(&bench.got(shows)), ["other agent_message_chunk"]);
}

#[test]
fn ids_are_translated_wherever_an_update_has_them() {
    let mut bench = Bench::able(&json!({}));
    let shows = viewer(&mut bench);
    bench.used_session(shows, "0");
    bench.used_session(shows, "1");
    bench.restart_agent();
    bench.got(shows);
    // The next process counts from 0 again: the session is `0.3` for clients, and its child `1.3`.
    bench.session(shows, "0");
    announce(&mut bench, "0", "1", &json!({"capabilities":{"cancel":{}}}));
    for (sender, recipient) in [("0", "1"), ("1", "elsewhere")] {
        let message = json!({"sessionUpdate":"session_message","messageId":"m",
            "senderSessionId":sender,"recipientSessionId":recipient});
        bench.send_update("1", &message);
    }
    announce(&mut bench, "1", "2", &json!({}));
    let got = bench.got(shows);
    let message = "1.3 session_message";
    assert_eq!(of(&got), ["0.3 subagent_update", message, message, "1.3 subagent_update"]);
    let update = |n: usize| &got[n]["params"]["update"];
    let end = |n: usize, end: &str| update(n)[end].as_str().expect("an id");
    let ends = |n| [end(n, "senderSessionId"), end(n, "recipientSessionId")];
    assert_eq!(update(0)["sessionId"], "1.3");
    assert_eq!((ends(1), ends(2)), (["0.3", "1.3"], ["1.3", "elsewhere"]));
    assert_eq!(update(3)["sessionId"], "2");

    bench.cancel(shows, "1.3");
    assert_eq!(bench.heard_one("session/cancel")["params"]["sessionId"], "1");

    bench.ask(shows, 9, "session/set_mode", &json!({"sessionId":"0.3","modeId":"m"}));
    let request = bench.heard_one("session/set_mode");
    bench.agent_fails(&request, &json!({"code":-32002,"message":"no","data":{"sessionId":"1"}}));
    assert_eq!(bench.got(shows)[0]["error"]["data"]["sessionId"], "1.3");
}

#[test]
fn a_new_session_does_not_get_the_public_id_of_a_child() {
    let (mut bench, shows, _) =
        scene(Bench::with(|profile| profile.sharing = acpd_core::profile::Sharing::Session));
    announce(&mut bench, "s", "c", &json!({}));
    bench.ask(shows, 1, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
    bench.answers("session/new", &json!({"sessionId":"c"}));
    assert_eq!(bench.answer(shows, 1)["result"]["sessionId"], "c.2");
}

#[test]
fn a_question_of_a_child_is_asked_of_everybody_under_an_id_that_they_know() {
    let (mut bench, shows, plain) = with_child();
    bench.got(shows);
    bench.ask_permission(7, "c");
    let other = asked(&mut bench, shows);
    let question = asked(&mut bench, plain);
    assert_eq!(other["params"]["sessionId"], "c");
    assert_eq!(question["params"]["sessionId"], "s");

    bench.say(plain, &json!({"id":1,"method":"_acpd/interaction/list"}));
    let open = &bench.got(plain)[0]["result"]["interactions"];
    assert_eq!((&open[0]["sessionId"], open.as_array().map(Vec::len)), (&json!("s"), Some(1)));

    bench.select(plain, &question, "y");
    assert_eq!(bench.heard(), [selected(7, "y")]);
    bench.expect(shows, ["$/cancel_request"]);
}

#[test]
fn a_question_of_a_child_outlives_a_turn_that_ends_and_not_one_that_is_cancelled() {
    let (mut bench, shows, _) = with_child();
    for (n, cancelled) in [(1, false), (2, true)] {
        let request = bench.start_turn(shows, n, "s", "go");
        bench.ask_permission(n, "c");
        bench.ask_permission(n + 10, "s");
        if cancelled {
            bench.cancel(shows, "s");
        }
        bench.end_turn(&request);
        let mut heard = bench.heard();
        heard.retain(|line| line.get("result").is_some());
        let answered: Vec<_> = heard.iter().map(|line| &line["id"]).collect();
        // The one of the first turn is still open when the second one is cancelled.
        let expected = if cancelled { vec![1, 2, 12] } else { vec![11] };
        assert_eq!(json!(answered), json!(expected));
    }
}

#[test]
fn calls_of_two_sessions_with_the_same_id_are_not_mixed_up() {
    let (mut bench, shows, _) = with_child();
    let call = |title: &str, command: &str| {
        json!({"sessionUpdate":"tool_call","toolCallId":"t","title":title,"kind":"execute",
            "status":"pending","rawInput":{"command":command}})
    };
    bench.send_update("s", &call("S", "git status"));
    bench.send_update("c", &call("C", "rm -r x"));
    bench.ask_permission(1, "s");
    bench.ask_permission(2, "c");
    bench.got(shows);
    bench.say(shows, &json!({"id":1,"method":"_acpd/interaction/list"}));
    let open = bench.got(shows)[0]["result"]["interactions"].clone();
    let subject = |at: usize| open[at]["question"]["subject"].to_string();
    assert!(subject(0).contains("git status") && subject(1).contains("rm -r x"), "{open}");
}

#[test]
fn client_methods_of_a_child_are_done_in_the_folders_of_its_session() {
    let bench = Bench::with(|profile| profile.services = Services { fs: true, terminal: false });
    let (mut bench, shows, plain) = scene(bench);
    announce(&mut bench, "s", "c", &json!({}));
    bench.got(shows);
    let read = json!({"sessionId":"c","path":"/w/x"});
    bench.agent_asks(1, "fs/read_text_file", &read);
    let request = asked(&mut bench, shows);
    assert_eq!(request["params"]["sessionId"], "c");
    bench.reply(shows, &request, &json!({"content":"x"}));
    assert_eq!(bench.heard()[0]["id"], 1);

    bench.leave(shows);
    bench.agent_asks(2, "fs/read_text_file", &read);
    assert_eq!(bench.served[0].1, ["/w"]);
    assert_eq!(bench.got(plain), Vec::<Value>::new());
}

#[test]
fn a_client_without_subagents_does_the_client_method_of_a_child_for_its_session() {
    let mut bench = Bench::new();
    let client = bench.introduce(&json!({"clientCapabilities":{"fs":{"writeTextFile":true}}}));
    bench.session(client, "s");
    announce(&mut bench, "s", "c", &json!({}));
    let params = json!({"sessionId":"c","path":"/w/x","content":"y"});
    bench.agent_asks(1, "fs/write_text_file", &params);
    assert_eq!(asked(&mut bench, client)["params"]["sessionId"], "s");
}

#[test]
fn a_child_is_cancelled_only_if_that_was_offered() {
    let (mut bench, shows, plain) = with_child();
    bench.cancel(shows, "c");
    assert_eq!(bench.heard(), Vec::<Value>::new());

    announce(&mut bench, "s", "c", &json!({"capabilities":{"cancel":{}}}));
    announce(&mut bench, "s", "c", &json!({"title":"What is not said stays"}));
    bench.ask_permission(7, "c");
    bench.ask_permission(8, "s");
    bench.cancel(plain, "c");
    let heard = bench.heard();
    assert_eq!(methods(&heard), ["session/cancel", "answer"]);
    assert_eq!(heard[0]["params"]["sessionId"], "c");
    assert_eq!(heard[1]["id"], 7);
    assert_eq!(heard[1]["result"]["outcome"]["outcome"], "cancelled");

    announce(&mut bench, "s", "c", &json!({"capabilities":null}));
    bench.cancel(shows, "c");
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn nothing_else_can_be_asked_of_a_child() {
    let (mut bench, shows, _) = with_child();
    bench.got(shows);
    for method in ["prompt", "set_mode", "close", "delete", "load", "resume"] {
        let params = json!({"sessionId":"c","cwd":"/w","modeId":"m","mcpServers":[],"prompt":[]});
        let method = format!("session/{method}");
        bench.ask(shows, 1, &method, &params);
        let error = &bench.got(shows)[0]["error"];
        let unknown = method.ends_with("load") || method.ends_with("resume");
        let text = if unknown { "no session" } else { "the session of a subagent" };
        assert!(error["message"].as_str().unwrap_or_default().contains(text), "{method}: {error}");
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

fn expect_no_child(bench: &Bench) {
    let mut sessions = bench.snapshot.sessions.values();
    assert!(sessions.all(|state| state.row.children.is_empty()));
}

#[test]
fn children_end_with_the_process_and_that_is_told() {
    let (mut bench, shows, plain) = scene(Bench::new());
    let running = json!({"state":{"state":"running"},"capabilities":{"cancel":{}}});
    announce(&mut bench, "s", "c", &running);
    announce(&mut bench, "c", "g", &running);
    announce(&mut bench, "s", "idle", &json!({"state":{"state":"idle"}}));
    bench.got(shows);
    bench.agent_dies();
    let got = bench.got(shows);
    assert_eq!(of(&got), ["s subagent_update", "c subagent_update"]);
    for line in &got {
        let update = &line["params"]["update"];
        assert_eq!(update["state"]["state"], "unknown");
        assert_eq!(update["capabilities"], Value::Null);
    }
    assert_eq!(bench.got(plain), Vec::<Value>::new());
    bench.cancel(shows, "c");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    expect_no_child(&bench);
}

#[test]
fn children_end_when_their_session_is_closed() {
    let mut bench = Bench::new();
    let shows = viewer(&mut bench);
    bench.session(shows, "s");
    announce(&mut bench, "s", "c", &json!({"capabilities":{"cancel":{}}}));
    bench.ask(shows, 1, "session/close", &json!({"sessionId":"s"}));
    bench.got(shows);
    bench.chunk("c", "late");
    assert_eq!(bench.notes.len(), 1);
    expect_no_child(&bench);
}

#[test]
fn the_next_daemon_knows_the_children_of_a_process_that_it_takes_over() {
    let (mut bench, ..) = scene(Bench::with_shims());
    announce(&mut bench, "s", "c", &json!({"capabilities":{"cancel":{}}}));
    bench.ask_permission(7, "c");
    bench.reboot();
    let shows = viewer(&mut bench);
    bench.joined("s");
    bench.ask(shows, "r", "session/resume", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    let question = bench.find(shows, "session/request_permission");
    assert_eq!(question["params"]["sessionId"], "c", "it is still open");
    bench.chunk("c", "still there");
    assert_eq!(of(&bench.got(shows)), ["c agent_message_chunk"]);
    bench.cancel(shows, "c");
    assert_eq!(methods(&bench.heard()), ["session/cancel", "answer"]);
}

#[test]
fn the_number_of_children_is_bounded_and_those_at_work_are_kept() {
    let (mut bench, shows, _) = scene(Bench::new());
    let running = json!({"state":{"state":"running"}});
    announce(&mut bench, "s", "idle", &json!({"state":{"state":"idle"}}));
    for n in 1..=64 {
        announce(&mut bench, "s", &format!("c{n}"), &running);
    }
    assert_eq!(bench.got(shows).len(), 65);
    bench.chunk("idle", "forgotten");
    announce(&mut bench, "s", "one too many", &running);
    assert_eq!(bench.notes.len(), 2);
    bench.chunk("c1", "kept");
    assert_eq!(of(&bench.got(shows)), ["c1 agent_message_chunk"]);
}

#[test]
fn an_agent_whose_subagent_works_is_not_stopped_for_idleness() {
    let (mut bench, shows, plain) = scene(Bench::new());
    announce(&mut bench, "s", "c", &json!({"state":{"state":"running"}}));
    bench.leave(plain);
    bench.ask(shows, 1, "_acpd/session/detach", &json!({"session":"s"}));
    bench.pass(60 * 60_000);
    assert!(bench.stops.is_empty());
    announce(&mut bench, "s", "c", &json!({"state":{"state":"idle","stopReason":"end_turn"}}));
    bench.pass(60 * 60_000);
    assert!(!bench.stops.is_empty());
}

#[test]
fn a_replay_announces_children_in_the_end_and_what_they_said_is_not_shown_again() {
    let mut bench = Bench::loadable();
    let shows = viewer(&mut bench);
    bench.used_session(shows, "s");
    bench.prompt_after_crash(shows, 1, "s", "second");
    let load = bench.heard_one("session/load");
    bench.got(shows);
    bench.update("s", "user_message_chunk", "first");
    announce(&mut bench, "s", "c", &json!({"title":"Looks for it"}));
    bench.update("c", "user_message_chunk", "do it");
    announce(&mut bench, "c", "g", &json!({"title":"Helps"}));
    bench.chunk("c", "done");
    announce(&mut bench, "s", "c", &json!({"state":{"state":"running"}}));
    bench.agent_answers(&load, &json!({}));
    let got = bench.got(shows);
    assert_eq!(of(&got), ["s subagent_update", "c subagent_update"]);
    let update = json!({"sessionUpdate":"subagent_update","sessionId":"c",
        "title":"Looks for it","state":{"state":"unknown"}});
    assert_eq!(got[0]["params"]["update"], update);
    bench.heard_one("session/prompt");
    bench.chunk("c", "again");
    assert_eq!(of(&bench.got(shows)), ["c agent_message_chunk"]);
}

#[test]
fn what_is_said_of_children_and_by_them_during_a_resume_is_news() {
    let (mut bench, shows, resume) = restoring(Bench::new(), "session/resume");
    announce(&mut bench, "s", "c", &json!({"state":{"state":"running"}}));
    bench.chunk("c", "early");
    announce(&mut bench, "c", "g", &json!({}));
    let early = ["s subagent_update", "c agent_message_chunk", "c subagent_update"];
    assert_eq!(of(&bench.got(shows)), early);
    bench.agent_answers(&resume, &json!({}));
    bench.chunk("c", "late");
    assert_eq!(of(&bench.got(shows)), ["c agent_message_chunk"]);
}

#[test]
fn a_child_that_worked_in_a_replay_does_not_keep_its_agent() {
    let bench = Bench::with(|profile| profile.idle_timeout = 60_000).only_loading();
    let (mut bench, shows, load) = restoring(bench, "session/load");
    announce(&mut bench, "s", "c", &json!({"state":{"state":"running"}}));
    bench.agent_answers(&load, &json!({}));
    bench.leave(shows);
    bench.pass(60 * 60_000);
    assert!(!bench.stops.is_empty());
}

#[test]
fn an_agent_is_offered_subagents_only_if_it_is_configured() {
    for offered in [false, true] {
        let mut bench = Bench::with(|profile| profile.subagents = offered);
        bench.capabilities = None;
        bench.connect(&json!({}));
        bench.process_starts();
        let request = bench.heard_one("initialize");
        let capabilities = &request["params"]["clientCapabilities"];
        assert_eq!(capabilities.get("subagents"), offered.then_some(&json!({})));
    }
}

#[test]
fn a_question_of_a_subagent_is_answered_when_its_session_is_closed_deleted_or_forgotten() {
    for end in ["session/close", "session/delete", "forgotten"] {
        let mut bench = Bench::new();
        let shows = viewer(&mut bench);
        bench.used_session(shows, "s");
        // Another turn, so that the process stays.
        bench.used_session(shows, "t");
        bench.prompt(shows, &json!("long"), "t", "long");
        bench.prompt(shows, &json!("p"), "s", "two");
        let heard = bench.heard();
        let prompt = heard.iter().find(|line| line["params"]["sessionId"] == "s").expect("it");
        announce(&mut bench, "s", "c", &json!({"state":{"state":"running"}}));
        bench.ask_permission(9, "c");
        if end == "forgotten" {
            bench.agent_refuses(prompt, -32002);
        } else {
            bench.end_turn(prompt);
            bench.ask(shows, "end", end, &json!({"sessionId":"s"}));
        }
        let heard = bench.heard();
        let answer = heard.iter().find(|line| line["id"] == 9).expect("an answer");
        assert_eq!(answer["result"]["outcome"]["outcome"], "cancelled", "{end}");
        let list = bench.command("_acpd/interaction/list", &json!({}));
        assert_eq!(list["result"]["interactions"], json!([]), "{end}");
        assert!(bench.snapshot.interactions.is_empty(), "{end}");
    }
}
