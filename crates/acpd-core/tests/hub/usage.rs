//! Usage of turns, as agents report it.

use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::Bench;

const DAY: u64 = 24 * 60 * 60_000;

/// The agent tells how much of the context is used, and what the session has cost so far.
fn tells(bench: &mut Bench, used: u64, cost: Option<f64>) {
    let mut update = json!({"sessionUpdate":"usage_update","used":used,"size":200_000});
    if let Some(amount) = cost {
        update["cost"] = json!({"amount":amount,"currency":"USD"});
    }
    bench.send_update("s", &update);
}

/// A turn in which the agent tells a cost.
fn turn(bench: &mut Bench, client: ClientId, cost: f64) {
    let prompt = bench.start_turn(client, 5, "s", "go");
    tells(bench, 7, Some(cost));
    bench.end_turn(&prompt);
}

/// Recorded usage: the turn, and the cost in dollars.
fn booked(bench: &Bench) -> Vec<(Option<u64>, Option<f64>)> {
    let rows = bench.booked.iter();
    rows.map(|row| (row.turn, row.cost.as_ref().map(|cost| cost.amount.units()))).collect()
}

/// The session's usage, as people are told it.
fn shown(bench: &mut Bench) -> Value {
    bench.show("s")["usage"].take()
}

#[test]
fn a_turn_ends_with_what_it_has_used() {
    let (mut bench, a, prompt) = Bench::new().in_turn("go");
    tells(&mut bench, 7, Some(0.25));
    tells(&mut bench, 9, Some(0.75));
    // An old figure.
    tells(&mut bench, 10, Some(0.5));
    tells(&mut bench, 11, None);
    let usage = json!({"totalTokens":12,"inputTokens":4,"outputTokens":8});
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn","usage":usage}));
    bench.got(a);
    turn(&mut bench, a, 1.0);

    assert_eq!(booked(&bench), [(Some(1), Some(0.75)), (Some(2), Some(0.25))]);
    let tokens = bench.booked[0].tokens;
    assert_eq!((tokens.total, tokens.input, tokens.thought), (Some(12), Some(4), None));
    let row = &bench.booked[0];
    assert_eq!((row.session.as_str(), row.cwd.as_str(), row.day.0), ("s", "/w", 0));
    let cost = json!({"amount":1.0,"currency":"USD"});
    assert_eq!(shown(&mut bench), json!({"used":7,"size":200_000,"cost":cost}));

    let lines = bench.journal_lines();
    let ended = lines.iter().find(|line| line["method"] == "_acpd/turn_ended").unwrap();
    let (tokens, cost) =
        (json!({"total":12,"input":4,"output":8}), json!({"amount":0.75,"currency":"USD"}));
    assert_eq!(ended["params"]["usage"], json!({"tokens":tokens,"cost":cost}));
}

#[test]
fn what_an_agent_does_not_tell_is_not_known() {
    let (mut bench, _) = Bench::used();
    assert_eq!(booked(&bench), [(Some(1), None)]);
    assert!(bench.booked[0].tokens.is_empty());
    assert_eq!(shown(&mut bench), Value::Null);
    let ended = bench.journal_lines().pop().unwrap();
    assert_eq!(ended["method"], "_acpd/turn_ended");
    assert_eq!(ended["params"]["usage"], Value::Null);
}

#[test]
fn a_cost_is_counted_once_over_restores_and_replays() {
    // Reports of the next process about the past, and in the next turn.
    for (replayed, next, grown) in
        [(Some(0.5), 0.75, 0.25), (None, 0.75, 0.25), (None, 0.125, 0.125), (Some(0.0), 0.25, 0.25)]
    {
        let (mut bench, a) = Bench::loadable().with_begun();
        turn(&mut bench, a, 0.5);
        bench.restart_agent();
        let load = bench.heard_one("session/load");
        if let Some(cost) = replayed {
            tells(&mut bench, 3, Some(0.25));
            tells(&mut bench, 7, Some(cost));
        }
        bench.agent_answers(&load, &json!({}));
        bench.pass(1_000);
        turn(&mut bench, a, next);
        let expected = [(Some(1), Some(0.5)), (Some(2), Some(grown))];
        assert_eq!(booked(&bench), expected, "{replayed:?} {next}");
    }
}

#[test]
fn a_cost_that_is_told_behind_the_end_of_a_turn_is_booked_as_well() {
    let (mut bench, _) = Bench::used();
    tells(&mut bench, 7, Some(0.5));
    tells(&mut bench, 7, Some(0.5));
    assert_eq!(booked(&bench), [(Some(1), None), (None, Some(0.5))]);
}

#[test]
fn what_a_turn_has_cost_so_far_outlives_the_daemon_and_what_was_used_the_session() {
    let (mut bench, _, prompt) = Bench::with_shims().in_turn("go");
    tells(&mut bench, 7, Some(0.5));
    bench.reboot();
    tells(&mut bench, 7, Some(0.75));
    bench.pass(DAY);
    bench.end_turn(&prompt);
    assert_eq!(booked(&bench), [(Some(1), Some(0.75))]);
    assert_eq!(bench.booked[0].day.0, DAY, "of the day on which it ended");
    bench.command("_acpd/session/remove", &json!({"session":"s"}));
    let spent: Vec<u64> = bench.snapshot.spent.parts.values().copied().collect();
    assert_eq!(spent, [750_000_000]);
}

#[test]
fn what_a_session_has_cost_before_acpd_is_none_of_its_turns() {
    let mut bench = Bench::listing();
    let a = bench.plain();
    bench.used_session(a, "other");
    bench.ask(a, 2, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    let load = bench.heard_one("session/load");
    tells(&mut bench, 3, Some(3.0));
    tells(&mut bench, 5, Some(7.0));
    bench.agent_answers(&load, &json!({}));
    bench.booked.clear();
    turn(&mut bench, a, 7.5);
    assert_eq!(booked(&bench), [(Some(1), Some(0.5))]);
}
