//! Sessions of subagents: they belong to the session that announced them.

use acpd_core::ids::ClientId;
use acpd_core::profile::Services;
use acpd_core::{ClientEvent, ClientOrigin, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, methods, word, words};

/// A client that shows subagents, and can do files.
fn viewer(bench: &mut Bench) -> ClientId {
    let client = ClientId(500);
    bench.feed(Input::Client(client, ClientEvent::Opened(ClientOrigin::User)));
    let capabilities = json!({"subagents":{},"fs":{"readTextFile":true}});
    let params = json!({"protocolVersion":1,"clientCapabilities":capabilities});
    bench.say(client, &json!({"id":"init","method":"initialize","params":params}));
    bench.got(client);
    client
}

fn observe(bench: &mut Bench, client: ClientId, session: &str) {
    let params = json!({"sessionId":session,"cwd":"/w","mcpServers":[]});
    bench.say(client, &json!({"id":"r","method":"session/resume","params":params}));
    bench.got(client);
}

/// A session with a client that shows subagents and one that does not.
fn scene(bench: &mut Bench) -> (ClientId, ClientId) {
    let (shows, plain) = (viewer(bench), bench.plain());
    bench.session(shows, "s");
    observe(bench, plain, "s");
    (shows, plain)
}

fn told(bench: &mut Bench, session: &str, update: &Value) {
    let params = json!({"sessionId":session,"update":update});
    bench.agent(&json!({"jsonrpc":"2.0","method":"session/update","params":params}));
}

fn announce(bench: &mut Bench, on: &str, child: &str, more: &Value) {
    let mut update = json!({"sessionUpdate":"subagent_update","sessionId":child});
    for (key, value) in more.as_object().into_iter().flatten() {
        update[key] = value.clone();
    }
    told(bench, on, &update);
}

fn permission(bench: &mut Bench, id: u64, session: &str) {
    let options = json!([{"optionId":"yes","name":"Yes","kind":"allow_once"}]);
    let call = json!({"toolCallId":"t","title":"T"});
    let params = json!({"sessionId":session,"toolCall":call,"options":options});
    bench.agent(&json!({"id":id,"method":"session/request_permission","params":params}));
}

fn cancel(bench: &mut Bench, client: ClientId, session: &str) {
    bench.say(client, &json!({"method":"session/cancel","params":{"sessionId":session}}));
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
    let mut bench = Bench::new();
    let (shows, plain) = scene(&mut bench);
    bench.chunk("s", "one");
    announce(&mut bench, "s", "c", &json!({"title":"Looks for it"}));
    bench.chunk("c", "two");
    announce(&mut bench, "c", "g", &json!({}));
    bench.chunk("s", "three");
    bench.chunk("g", "four");
    bench.agent(&json!({"jsonrpc":"2.0","method":"_vendor/x","params":{"sessionId":"g"}}));
    let all = [
        "s agent_message_chunk",
        "s subagent_update",
        "c agent_message_chunk",
        "c subagent_update",
        "s agent_message_chunk",
        "g agent_message_chunk",
        "g _vendor/x",
    ];
    assert_eq!(of(&bench.got(shows)), all);
    assert_eq!(of(&bench.got(plain)), ["s agent_message_chunk"; 2]);
    assert!(bench.notes.is_empty(), "{:?}", bench.notes);

    let params = json!({"sessionId":"s","cwd":"/w","mcpServers":[]});
    for (client, lines) in [(shows, &all[..]), (plain, &[all[0]; 2])] {
        bench.say(client, &json!({"id":"l","method":"session/load","params":params}));
        assert_eq!(of(&bench.got(client)), [lines, &["- result \"l\""]].concat());
    }
}

#[test]
fn a_line_of_a_child_names_the_session_that_its_number_is_of() {
    let mut bench = Bench::new();
    let (a, b) = (ClientId(600), ClientId(601));
    for (client, longest) in [(a, 0), (b, 200)] {
        bench.feed(Input::Client(client, ClientEvent::Opened(ClientOrigin::User)));
        let own = json!({"seq":true,"notices":true,"maxLine":longest});
        let params = json!({"protocolVersion":1,"clientCapabilities":{"subagents":{}},
            "_meta":{"_acpd":own}});
        bench.say(client, &json!({"id":"init","method":"initialize","params":params}));
    }
    bench.session(a, "s");
    observe(&mut bench, b, "s");
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

    let params = json!({"sessionId":"s","cwd":"/w","mcpServers":[]});
    bench.say(a, &json!({"id":"l","method":"session/load","params":params}));
    let history: Vec<_> = bench.got(a).iter().map(own).collect();
    assert_eq!(history[..2], live);
}

#[test]
fn a_child_says_nothing_about_the_state_of_its_session() {
    let mut bench = Bench::new();
    let (shows, plain) = scene(&mut bench);
    announce(&mut bench, "s", "c", &json!({}));
    told(&mut bench, "c", &json!({"sessionUpdate":"session_info_update","title":"of c"}));
    told(&mut bench, "c", &json!({"sessionUpdate":"current_mode_update","currentModeId":"m"}));
    told(&mut bench, "c", &json!({"sessionUpdate":"notice","severity":"info","title":"T"}));
    let row = &bench.snapshot.sessions.values().next().expect("one").row;
    assert_eq!((&row.title, &row.mode), (&None, &None));
    let got = bench.got(shows);
    assert_eq!(words(&got), ["subagent_update", "session_info_update", "current_mode_update"]);
    assert_eq!(bench.got(plain), Vec::<Value>::new());
}

#[test]
fn a_child_that_was_not_announced_is_nobody() {
    let mut bench = Bench::new();
    let (shows, _) = scene(&mut bench);
    bench.chunk("c", "lost");
    permission(&mut bench, 7, "c");
    assert_eq!(bench.got(shows), Vec::<Value>::new());
    // Questions without a session are no consent.
    assert_eq!(bench.heard()[0]["error"]["code"], -32602);
    assert_eq!(bench.notes.len(), 1);
}

#[test]
fn what_a_session_says_before_its_id_is_known_may_announce_children() {
    let mut bench = Bench::new();
    let shows = viewer(&mut bench);
    let params = json!({"cwd":"/w","mcpServers":[]});
    bench.say(shows, &json!({"id":1,"method":"session/new","params":params}));
    let request = bench.heard_one("session/new");
    announce(&mut bench, "s", "c", &json!({}));
    bench.chunk("c", "early");
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    let expected = ["- result 1", "s subagent_update", "c agent_message_chunk"];
    assert_eq!(of(&bench.got(shows)), expected);
}

#[test]
fn a_session_cannot_be_announced_as_a_child() {
    let mut bench = Bench::new();
    let (shows, _) = scene(&mut bench);
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
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({}));
    let shows = viewer(&mut bench);
    bench.used_session(shows, "0");
    bench.used_session(shows, "1");
    bench.agent_dies();
    bench.pass(1_000);
    bench.got(shows);
    // The next process counts from 0 again: the session is `0.3` for clients, and its child `1.3`.
    bench.session(shows, "0");
    announce(&mut bench, "0", "1", &json!({"capabilities":{"cancel":{}}}));
    let message = json!({"sessionUpdate":"session_message","messageId":"m",
        "senderSessionId":"0","recipientSessionId":"1"});
    told(&mut bench, "1", &message);
    told(
        &mut bench,
        "1",
        &json!({"sessionUpdate":"session_message","messageId":"m",
        "senderSessionId":"1","recipientSessionId":"elsewhere"}),
    );
    announce(&mut bench, "1", "2", &json!({}));
    let got = bench.got(shows);
    assert_eq!(
        of(&got),
        [
            "0.3 subagent_update",
            "1.3 session_message",
            "1.3 session_message",
            "1.3 subagent_update"
        ]
    );
    let update = |n: usize| &got[n]["params"]["update"];
    assert_eq!(update(0)["sessionId"], "1.3");
    assert_eq!(
        (&update(1)["senderSessionId"], &update(1)["recipientSessionId"]),
        (&json!("0.3"), &json!("1.3"))
    );
    assert_eq!(
        (&update(2)["senderSessionId"], &update(2)["recipientSessionId"]),
        (&json!("1.3"), &json!("elsewhere"))
    );
    assert_eq!(update(3)["sessionId"], "2");

    cancel(&mut bench, shows, "1.3");
    assert_eq!(bench.heard_one("session/cancel")["params"]["sessionId"], "1");

    let params = json!({"sessionId":"0.3","modeId":"m"});
    bench.say(shows, &json!({"id":9,"method":"session/set_mode","params":params}));
    let request = bench.heard_one("session/set_mode");
    let error = json!({"code":-32002,"message":"no","data":{"sessionId":"1"}});
    bench.agent(&json!({"id":request["id"],"error":error}));
    assert_eq!(bench.got(shows)[0]["error"]["data"]["sessionId"], "1.3");
}

#[test]
fn a_new_session_does_not_get_the_public_id_of_a_child() {
    let mut bench = Bench::with(|profile| profile.sharing = acpd_core::profile::Sharing::Session);
    let (shows, _) = scene(&mut bench);
    announce(&mut bench, "s", "c", &json!({}));
    let params = json!({"cwd":"/w","mcpServers":[]});
    bench.say(shows, &json!({"id":1,"method":"session/new","params":params}));
    bench.answers("session/new", &json!({"sessionId":"c"}));
    let got = bench.got(shows);
    let made = got.iter().find(|line| line["id"] == 1).expect("an answer");
    assert_eq!(made["result"]["sessionId"], "c.2");
}

#[test]
fn a_question_of_a_child_is_asked_of_everybody_under_an_id_that_they_know() {
    let mut bench = Bench::new();
    let (shows, plain) = scene(&mut bench);
    announce(&mut bench, "s", "c", &json!({}));
    bench.got(shows);
    permission(&mut bench, 7, "c");
    let other = asked(&mut bench, shows);
    let question = asked(&mut bench, plain);
    assert_eq!(other["params"]["sessionId"], "c");
    assert_eq!(question["params"]["sessionId"], "s");

    bench.say(plain, &json!({"id":1,"method":"_acpd/interaction/list"}));
    let open = &bench.got(plain)[0]["result"]["interactions"];
    assert_eq!((&open[0]["sessionId"], open.as_array().map(Vec::len)), (&json!("s"), Some(1)));

    let outcome = json!({"outcome":{"outcome":"selected","optionId":"yes"}});
    bench.say(plain, &json!({"id":question["id"],"result":outcome}));
    assert_eq!(bench.heard(), [json!({"id":7,"result":outcome})]);
    assert_eq!(words(&bench.got(shows)), ["$/cancel_request"]);
}

#[test]
fn a_question_of_a_child_outlives_a_turn_that_ends_and_not_one_that_is_cancelled() {
    let mut bench = Bench::new();
    let (shows, _) = scene(&mut bench);
    announce(&mut bench, "s", "c", &json!({}));
    for (n, cancelled) in [(1, false), (2, true)] {
        bench.prompt(shows, &json!(n), "s", "go");
        let request = bench.heard_one("session/prompt");
        permission(&mut bench, n, "c");
        permission(&mut bench, n + 10, "s");
        if cancelled {
            cancel(&mut bench, shows, "s");
        }
        bench.agent_answers(&request, &json!({"stopReason":"end_turn"}));
        let heard = bench.heard();
        let answered: Vec<_> = heard
            .iter()
            .filter(|line| line.get("result").is_some())
            .map(|l| l["id"].clone())
            .collect();
        // The one of the first turn is still open when the second one is cancelled.
        let expected: &[u64] = if cancelled { &[1, 2, 12] } else { &[11] };
        assert_eq!(answered, expected);
    }
}

#[test]
fn calls_of_two_sessions_with_the_same_id_are_not_mixed_up() {
    let mut bench = Bench::new();
    let (shows, _) = scene(&mut bench);
    announce(&mut bench, "s", "c", &json!({}));
    let call = |title: &str, command: &str| {
        json!({"sessionUpdate":"tool_call","toolCallId":"t","title":title,"kind":"execute",
            "status":"pending","rawInput":{"command":command}})
    };
    told(&mut bench, "s", &call("S", "git status"));
    told(&mut bench, "c", &call("C", "rm -r x"));
    let options = json!([{"optionId":"yes","name":"Yes","kind":"allow_once"}]);
    for (id, session) in [(1, "s"), (2, "c")] {
        let call = json!({"toolCallId":"t"});
        let params = json!({"sessionId":session,"toolCall":call,"options":options});
        bench.agent(&json!({"id":id,"method":"session/request_permission","params":params}));
    }
    bench.got(shows);
    bench.say(shows, &json!({"id":1,"method":"_acpd/interaction/list"}));
    let open = bench.got(shows)[0]["result"]["interactions"].clone();
    let subjects: Vec<_> = open
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["question"]["subject"].to_string())
        .collect();
    assert!(subjects[0].contains("git status") && subjects[1].contains("rm -r x"), "{open}");
}

#[test]
fn client_methods_of_a_child_are_done_in_the_folders_of_its_session() {
    let mut bench = Bench::with(|profile| {
        profile.services = Services { fs: true, terminal: false };
    });
    let (shows, plain) = scene(&mut bench);
    announce(&mut bench, "s", "c", &json!({}));
    bench.got(shows);
    let read = |id: u64| {
        let params = json!({"sessionId":"c","path":"/w/x"});
        json!({"id":id,"method":"fs/read_text_file","params":params})
    };
    bench.agent(&read(1));
    let request = asked(&mut bench, shows);
    assert_eq!(request["params"]["sessionId"], "c");
    bench.say(shows, &json!({"id":request["id"],"result":{"content":"x"}}));
    assert_eq!(bench.heard()[0]["id"], 1);

    bench.feed(Input::Client(shows, ClientEvent::Closed));
    bench.agent(&read(2));
    assert_eq!(bench.served[0].1, ["/w"]);
    assert_eq!(bench.got(plain), Vec::<Value>::new());
}

#[test]
fn a_client_without_subagents_does_the_client_method_of_a_child_for_its_session() {
    let mut bench = Bench::new();
    let client = ClientId(600);
    bench.feed(Input::Client(client, ClientEvent::Opened(ClientOrigin::User)));
    let capabilities = json!({"fs":{"writeTextFile":true}});
    let params = json!({"protocolVersion":1,"clientCapabilities":capabilities});
    bench.say(client, &json!({"id":0,"method":"initialize","params":params}));
    bench.got(client);
    bench.session(client, "s");
    announce(&mut bench, "s", "c", &json!({}));
    let params = json!({"sessionId":"c","path":"/w/x","content":"y"});
    bench.agent(&json!({"id":1,"method":"fs/write_text_file","params":params}));
    assert_eq!(asked(&mut bench, client)["params"]["sessionId"], "s");
}

#[test]
fn a_child_is_cancelled_only_if_that_was_offered() {
    let mut bench = Bench::new();
    let (shows, plain) = scene(&mut bench);
    announce(&mut bench, "s", "c", &json!({}));
    cancel(&mut bench, shows, "c");
    assert_eq!(bench.heard(), Vec::<Value>::new());

    announce(&mut bench, "s", "c", &json!({"capabilities":{"cancel":{}}}));
    announce(&mut bench, "s", "c", &json!({"title":"What is not said stays"}));
    permission(&mut bench, 7, "c");
    permission(&mut bench, 8, "s");
    cancel(&mut bench, plain, "c");
    let heard = bench.heard();
    assert_eq!(methods(&heard), ["session/cancel", "answer"]);
    assert_eq!(heard[0]["params"]["sessionId"], "c");
    assert_eq!(
        (&heard[1]["id"], &heard[1]["result"]["outcome"]["outcome"]),
        (&json!(7), &json!("cancelled"))
    );

    announce(&mut bench, "s", "c", &json!({"capabilities":null}));
    cancel(&mut bench, shows, "c");
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn nothing_else_can_be_asked_of_a_child() {
    let mut bench = Bench::new();
    let (shows, _) = scene(&mut bench);
    announce(&mut bench, "s", "c", &json!({}));
    bench.got(shows);
    for method in ["prompt", "set_mode", "close", "delete", "load", "resume"] {
        let params = json!({"sessionId":"c","cwd":"/w","modeId":"m","mcpServers":[],"prompt":[]});
        let method = format!("session/{method}");
        bench.say(shows, &json!({"id":1,"method":method,"params":params}));
        let error = &bench.got(shows)[0]["error"];
        let unknown = method.ends_with("load") || method.ends_with("resume");
        let text = if unknown { "no session" } else { "the session of a subagent" };
        assert!(error["message"].as_str().unwrap_or_default().contains(text), "{method}: {error}");
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn children_end_with_the_process_and_that_is_told() {
    let mut bench = Bench::new();
    let (shows, plain) = scene(&mut bench);
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
        assert_eq!(
            (&update["state"]["state"], &update["capabilities"]),
            (&json!("unknown"), &json!(null))
        );
    }
    assert_eq!(bench.got(plain), Vec::<Value>::new());
    cancel(&mut bench, shows, "c");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let rows = &bench.snapshot.sessions;
    assert!(rows.values().all(|state| state.row.children.is_empty()));
}

#[test]
fn children_end_when_their_session_is_closed() {
    let mut bench = Bench::new();
    let shows = viewer(&mut bench);
    bench.session(shows, "s");
    announce(&mut bench, "s", "c", &json!({"capabilities":{"cancel":{}}}));
    bench.say(shows, &json!({"id":1,"method":"session/close","params":{"sessionId":"s"}}));
    bench.got(shows);
    bench.chunk("c", "late");
    assert_eq!(bench.notes.len(), 1);
    let rows = &bench.snapshot.sessions;
    assert!(rows.values().all(|state| state.row.children.is_empty()));
}

#[test]
fn the_next_daemon_knows_the_children_of_a_process_that_it_takes_over() {
    let mut bench = Bench::with_shims();
    let (shows, _) = scene(&mut bench);
    announce(&mut bench, "s", "c", &json!({"capabilities":{"cancel":{}}}));
    permission(&mut bench, 7, "c");
    bench.reboot();
    let (shows, plain) = (shows, bench.plain());
    bench.feed(Input::Client(shows, ClientEvent::Closed));
    let shows = viewer(&mut bench);
    observe(&mut bench, plain, "s");
    let params = json!({"sessionId":"s","cwd":"/w","mcpServers":[]});
    bench.say(shows, &json!({"id":"r","method":"session/resume","params":params}));
    let question = bench.got(shows).into_iter().find(|line| word(line).contains("permission"));
    assert_eq!(question.expect("still open")["params"]["sessionId"], "c");
    bench.chunk("c", "still there");
    assert_eq!(of(&bench.got(shows)), ["c agent_message_chunk"]);
    cancel(&mut bench, shows, "c");
    assert_eq!(methods(&bench.heard()), ["session/cancel", "answer"]);
}

#[test]
fn the_number_of_children_is_bounded_and_those_at_work_are_kept() {
    let mut bench = Bench::new();
    let (shows, _) = scene(&mut bench);
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
    let mut bench = Bench::new();
    let (shows, plain) = scene(&mut bench);
    announce(&mut bench, "s", "c", &json!({"state":{"state":"running"}}));
    bench.feed(Input::Client(plain, ClientEvent::Closed));
    bench.say(shows, &json!({"id":1,"method":"_acpd/session/detach","params":{"session":"s"}}));
    bench.pass(60 * 60_000);
    assert!(bench.stops.is_empty());
    announce(&mut bench, "s", "c", &json!({"state":{"state":"idle","stopReason":"end_turn"}}));
    bench.pass(60 * 60_000);
    assert!(!bench.stops.is_empty());
}

#[test]
fn a_replay_announces_children_in_the_end_and_what_they_said_is_not_shown_again() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"loadSession":true}));
    let shows = viewer(&mut bench);
    bench.used_session(shows, "s");
    bench.agent_dies();
    bench.prompt(shows, &json!(1), "s", "second");
    bench.pass(1_000);
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
    let mut bench = Bench::new();
    let shows = viewer(&mut bench);
    bench.used_session(shows, "s");
    bench.agent_dies();
    bench.pass(2_000);
    let resume = bench.heard_one("session/resume");
    bench.got(shows);
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
    let mut bench = Bench::with(|profile| profile.idle_timeout = 60_000);
    bench.capabilities = Some(json!({"loadSession":true}));
    let shows = viewer(&mut bench);
    bench.used_session(shows, "s");
    bench.agent_dies();
    bench.pass(2_000);
    let load = bench.heard_one("session/load");
    announce(&mut bench, "s", "c", &json!({"state":{"state":"running"}}));
    bench.agent_answers(&load, &json!({}));
    bench.feed(Input::Client(shows, ClientEvent::Closed));
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
        permission(&mut bench, 9, "c");
        match end {
            "forgotten" => bench.agent_refuses(prompt, -32002),
            _ => {
                bench.agent_answers(prompt, &json!({"stopReason":"end_turn"}));
                let params = json!({"sessionId":"s"});
                bench.say(shows, &json!({"id":"end","method":end,"params":params}));
            }
        }
        let heard = bench.heard();
        let answer = heard.iter().find(|line| line["id"] == 9).expect("an answer");
        assert_eq!(answer["result"]["outcome"]["outcome"], "cancelled", "{end}");
        bench.say(shows, &json!({"id":"list","method":"_acpd/interaction/list"}));
        let list = bench.got(shows).pop().expect("a list");
        assert_eq!(list["result"]["interactions"], json!([]), "{end}");
        assert!(bench.snapshot.interactions.is_empty(), "{end}");
    }
}
