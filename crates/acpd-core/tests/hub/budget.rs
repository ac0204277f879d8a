//! A used-up budget of a day.

use acpd_api::{Amount, Cost};
use acpd_core::ids::ClientId;
use acpd_core::profile::{BudgetLimit, WhenOver};
use serde_json::{Value, json};

use crate::bench::{Bench, methods, words};
use crate::steps::reason;

const DAY: u64 = 24 * 60 * 60_000;

fn limited(when_over: WhenOver) -> Bench {
    let mut bench = Bench::with_shims();
    let amount = Amount::from_units(5.0).unwrap();
    let per_day = Cost { amount, currency: "USD".into() };
    bench.configure(|config| config.budget = Some(BudgetLimit { per_day, when_over }));
    bench
}

/// The agent ends its turn, and the session has cost as much.
fn ends(bench: &mut Bench, prompt: &Value, cost: f64) {
    let update = json!({"sessionUpdate":"usage_update","used":1,"size":2,
        "cost":{"amount":cost,"currency":"USD"}});
    bench.send_update(prompt["params"]["sessionId"].as_str().expect("an id"), &update);
    bench.end_turn(prompt);
}

/// A session that has used up the budget.
fn spent(when_over: WhenOver) -> (Bench, ClientId) {
    let (mut bench, a, prompt) = limited(when_over).in_turn("go");
    ends(&mut bench, &prompt, 5.25);
    bench.got(a);
    (bench, a)
}

fn asked(bench: &mut Bench, client: ClientId) -> Value {
    let got = bench.got(client);
    let asks = |line: &&Value| line["method"] == "session/request_permission";
    got.iter().find(asks).unwrap_or_else(|| panic!("no question: {got:?}")).clone()
}

/// A prompt that waits for the answer to a question, which is returned.
fn asks(bench: &mut Bench, client: ClientId, id: u64) -> Value {
    bench.prompt(client, &json!(id), "s", "more");
    asked(bench, client)
}

fn open_questions(bench: &mut Bench) -> Value {
    let listed = bench.command("_acpd/interaction/list", &json!({}));
    listed["result"]["interactions"].clone()
}

#[test]
fn people_are_told_once_that_it_is_used_up() {
    let (mut bench, a) = spent(WhenOver::Warn);
    let told = bench.journal_words();
    let in_turn = told.windows(2).any(|some| some == ["_acpd/notice", "_acpd/turn_ended"]);
    assert!(in_turn, "in the turn that has used it up: {told:?}");
    let prompt = bench.start_turn(a, 2, "s", "more");
    ends(&mut bench, &prompt, 6.0);
    assert_eq!(bench.journal_words().iter().filter(|word| *word == "_acpd/notice").count(), 1);
    bench.ask(a, 3, "_acpd/status", &json!({}));
    let budget = &bench.got(a).pop().unwrap()["result"]["daemon"]["budget"];
    let per_day = json!({"amount":5.0,"currency":"USD"});
    assert_eq!(*budget, json!({"perDay":per_day,"spent":6.0,"isOver":true}));
}

#[test]
fn a_person_who_allows_it_lets_all_sessions_go_on_for_as_much_again() {
    let (mut bench, a) = spent(WhenOver::Ask);
    let b = bench.begin("t");
    bench.prompt(a, &json!(2), "s", "more");
    bench.prompt(b, &json!(2), "t", "more");
    assert_eq!(bench.heard(), [json!(null); 0], "no turn begins");
    let question = asked(&mut bench, a);
    let title = question["params"]["toolCall"]["title"].as_str().unwrap();
    assert_eq!(title, "Today's budget is used up ($5.25 of $5.00). Start another turn?");
    let listed = open_questions(&mut bench)[0]["question"].take();
    assert!(listed["shown"]["raw"].is_null(), "all of it is a sentence: {listed}");
    assert_eq!(listed["shown"]["unclear"], json!([]));
    asked(&mut bench, b);
    bench.select(a, &question, "go_on");
    let heard = bench.heard();
    assert_eq!(methods(&heard), ["session/prompt", "session/prompt"]);
    assert_eq!(words(&bench.got(b))[0], "$/cancel_request");

    ends(&mut bench, &heard[0], 10.0);
    bench.got(a);
    let prompt = bench.start_turn(a, 3, "s", "more");
    ends(&mut bench, &prompt, 10.5);
    bench.got(a);
    asks(&mut bench, a, 4);
    // The next day begins with nothing.
    bench.pass(DAY);
    bench.heard_one("session/prompt");
    assert_eq!(words(&bench.got(a))[0], "$/cancel_request");
}

#[test]
fn a_person_who_refuses_ends_the_prompt_with_the_reason() {
    let (mut bench, a) = spent(WhenOver::Ask);
    let question = asks(&mut bench, a, 2);
    bench.select(a, &question, "end");
    assert_eq!(reason(&bench.answer(a, 2)), "budget");
    assert_eq!(bench.heard(), [json!(null); 0]);
    bench.reboot();
    assert!(bench.snapshot.turns.is_empty());
}

#[test]
fn a_question_about_the_budget_is_answered_from_a_terminal_and_never_by_an_agent() {
    let (mut bench, a) = spent(WhenOver::Ask);
    asks(&mut bench, a, 2);
    // The agent says something of a call with its id.
    let call = json!({"sessionUpdate":"tool_call_update","toolCallId":"acpd-budget","title":"x"});
    bench.send_update("s", &call);
    let open = open_questions(&mut bench);
    let title = open[0]["question"]["title"].as_str().unwrap();
    assert!(title.contains("Start another turn"), "{open}");
    let always = json!({"id":open[0]["id"],"answer":{"kind":"allow","always":true}});
    assert_eq!(reason(&bench.command("_acpd/interaction/answer", &always)), "invalid");
    let allow = json!({"id":open[0]["id"],"answer":{"kind":"allow"}});
    bench.command("_acpd/interaction/answer", &allow);
    assert_eq!(methods(&bench.heard()), ["session/prompt"]);
}

#[test]
fn a_prompt_that_is_cancelled_takes_its_question_with_it_and_the_next_daemon_asks_anew() {
    let (mut bench, a) = spent(WhenOver::Ask);
    asks(&mut bench, a, 2);
    bench.cancel(a, "s");
    let got = words(&bench.got(a));
    assert!(got.contains(&"$/cancel_request".to_owned()) && got.contains(&"result 2".to_owned()));

    asks(&mut bench, a, 3);
    bench.reboot();
    assert_eq!(bench.heard(), [json!(null); 0]);
    let open = open_questions(&mut bench);
    assert_eq!(open.as_array().map(Vec::len), Some(1), "{open}");
}
