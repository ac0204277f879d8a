//! A used-up budget of a day.

use acpd_api::{Amount, Cost};
use acpd_core::ids::ClientId;
use acpd_core::profile::{BudgetLimit, WhenOver};
use serde_json::{Value, json};

use crate::bench::{Bench, methods, words};

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
    let params = json!({"sessionId":prompt["params"]["sessionId"],"update":update});
    bench.agent(&json!({"jsonrpc":"2.0","method":"session/update","params":params}));
    bench.agent_answers(prompt, &json!({"stopReason":"end_turn"}));
}

/// A session that has used up the budget.
fn spent(bench: &mut Bench) -> ClientId {
    let (a, prompt) = bench.running("s", "go");
    ends(bench, &prompt, 5.25);
    bench.got(a);
    a
}

fn asked(bench: &mut Bench, client: ClientId) -> Value {
    let got = bench.got(client);
    let asks = |line: &&Value| line["method"] == "session/request_permission";
    got.iter().find(asks).unwrap_or_else(|| panic!("no question: {got:?}")).clone()
}

fn answer(bench: &mut Bench, client: ClientId, asked: &Value, option: &str) {
    let outcome = json!({"outcome":"selected","optionId":option});
    bench.say(client, &json!({"id":asked["id"],"result":{"outcome":outcome}}));
}

#[test]
fn people_are_told_once_that_it_is_used_up() {
    let mut bench = limited(WhenOver::Warn);
    let a = spent(&mut bench);
    assert_eq!(bench.journal_words().iter().filter(|word| *word == "_acpd/notice").count(), 1);
    bench.prompt(a, &json!(2), "s", "more");
    let prompt = bench.heard_one("session/prompt");
    ends(&mut bench, &prompt, 6.0);
    assert_eq!(bench.journal_words().iter().filter(|word| *word == "_acpd/notice").count(), 1);
    bench.say(a, &json!({"id":3,"method":"_acpd/status","params":{}}));
    let budget = &bench.got(a).pop().unwrap()["result"]["daemon"]["budget"];
    let per_day = json!({"amount":5.0,"currency":"USD"});
    assert_eq!(*budget, json!({"perDay":per_day,"spent":6.0,"isOver":true}));
}

#[test]
fn a_person_who_allows_it_lets_all_sessions_go_on_for_as_much_again() {
    let mut bench = limited(WhenOver::Ask);
    let a = spent(&mut bench);
    let b = bench.plain();
    bench.session(b, "t");
    bench.prompt(a, &json!(2), "s", "more");
    bench.prompt(b, &json!(2), "t", "more");
    assert_eq!(bench.heard(), [json!(null); 0], "no turn begins");
    let question = asked(&mut bench, a);
    let title = question["params"]["toolCall"]["title"].as_str().unwrap();
    assert_eq!(title, "Today's budget is used up ($5.25 of $5.00). Start another turn?");
    bench.say(a, &json!({"id":"list","method":"_acpd/interaction/list","params":{}}));
    let listed = bench.got(a).pop().unwrap()["result"]["interactions"][0]["question"].clone();
    assert!(listed["shown"]["raw"].is_null(), "all of it is a sentence: {listed}");
    assert_eq!(listed["shown"]["unclear"], json!([]));
    asked(&mut bench, b);
    answer(&mut bench, a, &question, "go_on");
    let heard = bench.heard();
    assert_eq!(methods(&heard), ["session/prompt", "session/prompt"]);
    assert_eq!(words(&bench.got(b))[0], "$/cancel_request");

    ends(&mut bench, &heard[0], 10.0);
    bench.got(a);
    bench.prompt(a, &json!(3), "s", "more");
    let prompt = bench.heard_one("session/prompt");
    ends(&mut bench, &prompt, 10.5);
    bench.got(a);
    bench.prompt(a, &json!(4), "s", "more");
    asked(&mut bench, a);
    // The next day begins with nothing.
    bench.pass(DAY);
    bench.heard_one("session/prompt");
    assert_eq!(words(&bench.got(a))[0], "$/cancel_request");
}

#[test]
fn a_person_who_refuses_ends_the_prompt_with_the_reason() {
    let mut bench = limited(WhenOver::Ask);
    let a = spent(&mut bench);
    bench.prompt(a, &json!(2), "s", "more");
    let question = asked(&mut bench, a);
    answer(&mut bench, a, &question, "end");
    let refused = bench.got(a);
    let refused = refused.iter().find(|line| line["id"] == 2).expect("an answer");
    assert_eq!(refused["error"]["data"]["_acpd"]["reason"], "budget");
    assert_eq!(bench.heard(), [json!(null); 0]);
    bench.reboot();
    assert!(bench.snapshot.turns.is_empty());
}

#[test]
fn a_question_about_the_budget_is_answered_from_a_terminal_and_never_by_an_agent() {
    let mut bench = limited(WhenOver::Ask);
    let a = spent(&mut bench);
    bench.prompt(a, &json!(2), "s", "more");
    asked(&mut bench, a);
    // The agent says something of a call with its id.
    let call = json!({"sessionUpdate":"tool_call_update","toolCallId":"acpd-budget","title":"x"});
    bench.agent(&json!({"method":"session/update","params":{"sessionId":"s","update":call}}));
    let b = bench.plain();
    bench.say(b, &json!({"id":1,"method":"_acpd/interaction/list","params":{}}));
    let open = bench.got(b)[0]["result"]["interactions"].clone();
    assert!(
        open[0]["question"]["title"].as_str().unwrap().contains("Start another turn"),
        "{open}"
    );
    let always = json!({"id":open[0]["id"],"answer":{"kind":"allow","always":true}});
    bench.say(b, &json!({"id":2,"method":"_acpd/interaction/answer","params":always}));
    assert_eq!(bench.got(b)[0]["error"]["data"]["_acpd"]["reason"], "invalid");
    let allow = json!({"id":open[0]["id"],"answer":{"kind":"allow"}});
    bench.say(b, &json!({"id":3,"method":"_acpd/interaction/answer","params":allow}));
    assert_eq!(methods(&bench.heard()), ["session/prompt"]);
}

#[test]
fn a_prompt_that_is_cancelled_takes_its_question_with_it_and_the_next_daemon_asks_anew() {
    let mut bench = limited(WhenOver::Ask);
    let a = spent(&mut bench);
    bench.prompt(a, &json!(2), "s", "more");
    asked(&mut bench, a);
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    let got = words(&bench.got(a));
    assert!(got.contains(&"$/cancel_request".to_owned()) && got.contains(&"result 2".to_owned()));

    bench.prompt(a, &json!(3), "s", "again");
    asked(&mut bench, a);
    bench.reboot();
    assert_eq!(bench.heard(), [json!(null); 0]);
    let b = bench.plain();
    bench.say(b, &json!({"id":1,"method":"_acpd/interaction/list","params":{}}));
    let open = bench.got(b)[0]["result"]["interactions"].clone();
    assert_eq!(open.as_array().map(Vec::len), Some(1), "{open}");
}
