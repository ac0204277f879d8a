//! `_acpd/watch`: lines to watchers, their times, and their cost while nothing happens.

use acpd_api::{Changed, DoingKind, SessionList, TurnState, Watched};
use acpd_core::ids::ClientId;
use acpd_core::{Batch, ClientEvent, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::questions::{answer, asks, call, pending, run};

/// A connection that watches, and what it knows.
struct Watcher {
    client: ClientId,
    rows: Watched,
}

impl Watcher {
    fn new(bench: &mut Bench) -> Watcher {
        let client = bench.open();
        bench.say(client, &json!({"id":1,"method":"_acpd/watch"}));
        let mut got = bench.got(client);
        let answer = got.remove(0);
        assert_eq!(answer["id"], 1);
        let rows = serde_json::from_value(answer["result"].clone()).expect("all rows");
        let mut watcher = Watcher { client, rows };
        watcher.take(got);
        watcher
    }

    /// Like [`Watcher::new`], when all that it can be told was told.
    fn settled(bench: &mut Bench) -> Watcher {
        let mut watcher = Watcher::new(bench);
        bench.pass(1_000);
        watcher.hears(bench);
        watcher
    }

    /// The notifications since the last call.
    fn hears(&mut self, bench: &mut Bench) -> Vec<Changed> {
        let got = bench.got(self.client);
        self.take(got)
    }

    fn take(&mut self, got: Vec<Value>) -> Vec<Changed> {
        let told = got.into_iter().map(|line| {
            assert_eq!(line["method"], "_acpd/changed");
            let changed: Changed = serde_json::from_value(line["params"].clone()).expect("rows");
            self.rows.apply(changed.clone());
            changed
        });
        told.collect()
    }

    /// Everything that there is to be told is told.
    fn catches_up(&mut self, bench: &mut Bench) -> Vec<Changed> {
        bench.pass(50);
        bench.feed(Input::Tick);
        self.hears(bench)
    }
}

/// Returns the answer to a watcher.
fn asked(bench: &mut Bench) -> Watched {
    let asker = bench.open();
    let ask = |bench: &mut Bench, method: &str| {
        bench.say(asker, &json!({"id":1,"method":method}));
        bench.got(asker).remove(0)["result"].take()
    };
    let sessions: SessionList =
        serde_json::from_value(ask(bench, "_acpd/session/list")).expect("a list");
    let agents = ask(bench, "_acpd/agent/list");
    let interactions = ask(bench, "_acpd/interaction/list");
    bench.leave(asker);
    Watched {
        sessions: sessions.sessions,
        agents: serde_json::from_value(agents["agents"].clone()).expect("agents"),
        interactions: serde_json::from_value(interactions["interactions"].clone()).expect("a list"),
        hosts: Vec::new(),
    }
}

fn sorted(mut rows: Watched) -> Watched {
    rows.sessions.sort_by_key(acpd_api::SessionInfo::row_key);
    rows.agents.sort_by(|a, b| a.name.cmp(&b.name));
    rows.interactions.sort_by(|a, b| a.id.cmp(&b.id));
    rows
}

pub(crate) fn doing(bench: &mut Bench) -> (DoingKind, String) {
    let info = asked(bench).sessions.remove(0);
    let doing = info.doing.expect("a turn runs");
    (doing.kind, doing.text.into_raw())
}

#[test]
fn a_watcher_knows_what_somebody_who_asks_is_told() {
    let mut bench = Bench::new();
    let mut early = Watcher::new(&mut bench);
    let (client, prompt) = bench.running("s", "go");
    let mut late = Watcher::new(&mut bench);
    let steps: [&dyn Fn(&mut Bench); 9] = [
        &|bench| bench.chunk("s", "hello"),
        &|bench| asks(bench, 7, &run("make")),
        &|bench| {
            drop(call(bench, "_acpd/session/rename", &json!({"ref":{"session":"s"},"name":"fix"})));
        },
        &|bench| {
            drop(call(bench, "_acpd/session/label", &json!({"ref":{"session":"s"},"add":["a"]})));
        },
        &|bench| drop(answer(bench, &json!({"kind":"allow"}))),
        &|bench| bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"})),
        &|bench| bench.agent_dies(),
        &|bench| drop(call(bench, "_acpd/session/archive", &json!({"session":"s"}))),
        &|bench| drop(call(bench, "_acpd/session/remove", &json!({"session":"s"}))),
    ];
    for (number, step) in steps.iter().enumerate() {
        step(&mut bench);
        bench.pass(10_000);
        for watcher in [&mut early, &mut late] {
            watcher.catches_up(&mut bench);
            let told = sorted(asked(&mut bench));
            // The asking client is connected for a moment, but attached to no session.
            assert_eq!(sorted(watcher.rows.clone()), told, "step {number}");
        }
    }
    assert!(early.rows.sessions.is_empty());
    bench.leave(client);
}

#[test]
fn a_question_and_its_end_are_told_at_once_with_all_that_is_asked() {
    let (mut bench, _, _) = Bench::new().in_turn("go");
    let mut watcher = Watcher::settled(&mut bench);

    asks(&mut bench, 7, &run("make clean &&\nrm -rf build"));
    let told = watcher.hears(&mut bench);
    let [Changed { sessions, interactions, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!(sessions[0].turn.state, TurnState::NeedsAction);
    assert_eq!(sessions[0].doing.as_ref().expect("it waits").text, "make clean && rm -rf build");
    assert_eq!(serde_json::to_value(interactions).unwrap(), Value::Array(pending(&mut bench)));
    let acpd_api::Question::Permission { shown, .. } = &interactions[0].question else {
        panic!("a permission")
    };
    let shown = shown.as_ref().expect("what is asked");
    assert_eq!(shown.commands[0], "make clean &&\nrm -rf build");
    assert!(shown.always.is_some());
    bench.pass(1_000);
    answer(&mut bench, &json!({"kind":"deny"}));
    let told = watcher.hears(&mut bench);
    let [Changed { sessions, interactions: open, removed, .. }] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(sessions[0].turn.state, TurnState::Working);
    assert!(open.is_empty() && removed.interactions == [interactions[0].id.clone()]);
}

#[test]
fn rows_are_told_at_most_twenty_times_a_second_and_the_newest_of_each() {
    let (mut bench, ..) = Bench::new().in_turn("go");
    let mut watcher = Watcher::settled(&mut bench);

    let mut told = Vec::new();
    for _ in 0..1_000 {
        bench.chunk("s", "x");
        bench.pass(1);
        told.extend(watcher.hears(&mut bench));
    }
    assert!((19..=21).contains(&told.len()), "{}", told.len());
    watcher.catches_up(&mut bench);
    assert_eq!(sorted(watcher.rows.clone()), sorted(asked(&mut bench)));
}

#[test]
fn a_watcher_that_does_not_read_gets_one_line_and_later_the_newest_rows() {
    let (mut bench, ..) = Bench::new().in_turn("go");
    let mut watcher = Watcher::new(&mut bench);
    bench.slow.insert(watcher.client);
    let mut most = 0;
    for number in 0..200 {
        bench.chunk("s", "x");
        asks(&mut bench, 100 + number, &run("make"));
        answer(&mut bench, &json!({"kind":"allow"}));
        bench.pass(100);
        most += watcher.hears(&mut bench).len();
    }
    assert_eq!(most, 1);
    // Questions that came and went meanwhile are not told, neither as new nor as gone.
    bench.slow.clear();
    bench.feed(Input::Client(watcher.client, ClientEvent::RowsWritten));
    let told = watcher.hears(&mut bench);
    let [Changed { sessions, interactions, removed, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!(sessions.len(), 1);
    assert!(interactions.is_empty() && removed.interactions.len() <= 1, "{removed:?}");
    assert_eq!(sorted(watcher.rows.clone()), sorted(asked(&mut bench)));
}

#[test]
fn nothing_is_told_when_nothing_happens_and_nothing_is_armed() {
    let mut bench = Bench::without_hooks();
    let client = bench.plain();
    for number in 0..500 {
        bench.session(client, &format!("s{number}"));
    }
    let mut watcher = Watcher::settled(&mut bench);
    assert_eq!(watcher.rows.sessions.len(), 500);

    // A watcher changes nothing.
    for _ in 0..10 {
        asked(&mut bench);
        bench.pass(100);
        let mut batch = Batch::default();
        bench.hub.seal(&mut batch);
        assert!(batch.is_empty());
    }
    assert_eq!(watcher.hears(&mut bench), []);
    // One that changes is told alone.
    bench.chunk("s7", "x");
    let told = watcher.catches_up(&mut bench);
    assert_eq!(told.iter().map(|changed| changed.sessions.len()).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_connection_that_watches_again_begins_again_and_one_that_ends_is_forgotten() {
    let (mut bench, ..) = Bench::new().in_turn("go");
    let watcher = Watcher::new(&mut bench);
    bench.say(watcher.client, &json!({"id":2,"method":"_acpd/watch"}));
    bench.chunk("s", "x");
    bench.pass(1_000);
    assert_eq!(words(&bench.got(watcher.client)), ["result 2", "_acpd/changed"]);
    bench.feed(Input::Client(watcher.client, ClientEvent::Closed));
    bench.chunk("s", "x");
    bench.pass(1_000);
    assert_eq!(bench.got(watcher.client), Vec::<Value>::new());
}

#[test]
fn a_turn_does_what_its_agent_began_last() {
    let (mut bench, _, prompt) = Bench::new().in_turn("go");
    assert_eq!(doing(&mut bench), (DoingKind::Starting, String::new()));
    bench.update("s", "agent_thought_chunk", "I look at ");
    bench.update("s", "agent_thought_chunk", "it\nfirst");
    assert_eq!(doing(&mut bench), (DoingKind::Thinking, "I look at it first".to_owned()));
    let call =
        json!({"sessionUpdate":"tool_call","toolCallId":"t","title":"Read it","kind":"read"});
    bench.send_update("s", &call);
    assert_eq!(doing(&mut bench), (DoingKind::Tool, "Read it".to_owned()));
    // The details of a call may follow later.
    bench.update_call("t", &json!({"kind":"execute","rawInput":{"command":"cargo test"}}));
    assert_eq!(doing(&mut bench), (DoingKind::Command, "cargo test".to_owned()));
    asks(&mut bench, 7, &run("make"));
    assert_eq!(doing(&mut bench), (DoingKind::Waiting, "make".to_owned()));
    answer(&mut bench, &json!({"kind":"allow"}));
    bench.update_call("t", &json!({"status":"completed"}));
    assert_eq!(doing(&mut bench), (DoingKind::Thinking, String::new()));
    bench.now += 7;
    bench.chunk("s", "Done: ");
    bench.now += 7;
    bench.chunk("s", &"x".repeat(1_000));
    let info = asked(&mut bench).sessions.remove(0);
    let now = info.doing.expect("it writes");
    assert_eq!((now.kind, now.since), (DoingKind::Writing, bench.now - 7));
    assert_eq!(now.text.raw().chars().count(), 80);
    assert_eq!(info.last_line, Some(bench.now));
    bench.end_turn(&prompt);
    assert_eq!(asked(&mut bench).sessions.remove(0).doing, None);
}

#[test]
fn since_when_agents_and_turns_run_is_the_same_after_a_restart_of_the_daemon() {
    let (mut bench, ..) = Bench::with_shims().in_turn("go");
    let before = asked(&mut bench);
    bench.now += 60_000;
    bench.reboot();
    bench.pass(10);
    let after = asked(&mut bench);
    assert_eq!(after.sessions[0].turn, before.sessions[0].turn);
    assert_eq!(after.agents[0].since, before.agents[0].since);
    // The work of the agent is unknown before its first line.
    assert_eq!((&after.sessions[0].doing, after.sessions[0].last_line), (&None, None));
    bench.chunk("s", "on");
    assert_eq!(doing(&mut bench), (DoingKind::Writing, "on".to_owned()));
}
