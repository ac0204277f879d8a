use acpd_view::State;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;

pub(crate) fn session() -> SessionInfo {
    let told = json!({"sessionId": "s", "name": "fix", "agent": "demo", "cwd": "/w", "state": "live",
        "turn": {"state": "idle", "since": 1}, "queued": 0, "clients": 0, "prompts": 1, "seq": 1,
        "created": 1, "updated": 1});
    serde_json::from_value(told).unwrap()
}

fn ticket() -> Ticket {
    Ticket { turn: 1, agent: "demo".to_owned(), session: "s".to_owned() }
}

fn line_of(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// A turn in which the agent has told this, and that has ended.
fn turn(updates: &[Value]) -> Turn {
    let mut state = State::new(&"s".into());
    let begin = json!({"sessionId": "s", "turn": 1, "at": 1});
    let end = json!({"sessionId": "s", "turn": 1, "startedAt": 1, "at": 2, "tools": updates.len(),
        "files": updates.iter().filter_map(|told| told["title"].as_str()).collect::<Vec<_>>(),
        "outcome": {"kind": "stopped", "stopReason": "end_turn"}});
    state.fold_entry(1, &line_of("_acpd/turn_started", &begin));
    let mut seq = 1;
    for update in updates {
        seq += 1;
        let params = json!({"sessionId": "s", "update": update});
        state.fold_entry(seq, &line_of("session/update", &params));
    }
    state.fold_entry(seq + 1, &line_of("_acpd/turn_ended", &end));
    state.into_turns().pop().unwrap()
}

fn says(text: &str, message: usize) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "messageId": message.to_string(),
        "content": {"type": "text", "text": text}})
}

fn calls(id: usize, title: &str) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": id.to_string(), "title": title,
        "kind": "read", "status": "completed"})
}

/// A question that acpd knows whole, of `bytes` bytes.
fn question(id: usize, bytes: usize) -> InteractionInfo {
    let told = json!({"id": id.to_string(), "agent": "demo", "sessionId": "s", "cwd": "/w", "at": 1,
        "question": {"kind": "form", "message": "x".repeat(bytes), "schema": {"type": "object"}}});
    serde_json::from_value(told).unwrap()
}

/// Texts of agents: long, of several lines, with what a terminal would obey.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![".{0,40}", "[a-z ]{0,900}", "(\\x1b\\[31m|\u{202e}|\\r\\n){1,9}"];
    (piece, 1_usize..16).prop_map(|(piece, times)| piece.repeat(times))
}

/// Every text in a value.
fn texts<'a>(value: &'a Value, all: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => all.push(text),
        Value::Array(items) => items.iter().for_each(|one| texts(one, all)),
        Value::Object(members) => members.values().for_each(|one| texts(one, all)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_an_agent_does_the_model_gets_a_bounded_summary_that_is_safe(
        said in vec(text(), 0..6), titles in vec(text(), 0..70), steps in vec(text(), 0..70),
        sizes in vec(0_usize..40_000, 0..80), answers: bool, is_over: bool,
    ) {
        let mut updates: Vec<Value> =
            titles.iter().enumerate().map(|(at, title)| calls(at, title)).collect();
        updates.extend(said.iter().enumerate().map(|(at, text)| says(text, at)));
        let entries: Vec<Value> =
            steps.iter().map(|step| json!({"content": step, "status": "pending", "priority": step})).collect();
        updates.push(json!({"sessionUpdate": "plan", "entries": entries}));
        let mut turn = turn(&updates);
        if !is_over {
            turn.blocks.retain(|block| !matches!(block.kind, Kind::Turn(_)));
        }
        let open: Vec<_> = sizes.iter().enumerate().map(|(at, size)| question(at, *size)).collect();
        let report = Report::new(&session(), &ticket(), Some(&turn)).asking(&open, answers);
        prop_assert!(report.answer.chars().count() <= ANSWER + 1);
        for list in [&report.notes, &report.files, &report.questions] {
            prop_assert!(list.len() <= MOST + 1);
            prop_assert!(list.iter().all(|line| line.chars().count() <= LINE + 1));
        }
        prop_assert!(report.plan.len() <= MOST);
        let asks = report.to_answer.iter().map(|asked| asked.asks.to_string().len());
        prop_assert!(asks.sum::<usize>() <= QUESTIONS);
        prop_assert!(report.to_answer.is_empty() || answers && !is_over);
        let shown = serde_json::to_value(&report).unwrap();
        let mut all = Vec::new();
        texts(&shown, &mut all);
        for text in all {
            prop_assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']), "{text:?}");
        }
    }

    #[test]
    fn progress_tells_every_word_once_and_no_more_than_a_host_has_room_for(
        words in vec("[a-z]{1,12} ", 1..60), cuts in vec(1_usize..8, 1..20), calls_too in 0_usize..120,
    ) {
        let mut told = ReportedProgress::default();
        let mut heard = String::new();
        let mut state = State::new(&"s".into());
        let mut seq = 1;
        let mut fold = |state: &mut State, update: &Value| {
            seq += 1;
            let params = json!({"sessionId": "s", "update": update});
            state.fold_entry(seq, &line_of("session/update", &params));
        };
        let mut rest = &words[..];
        for cut in cuts {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            rest = later;
            for word in now {
                fold(&mut state, &says(word, 0));
            }
            let news = state.turns().last().map(|turn| told.new_lines(turn, false)).unwrap_or_default();
            heard.extend(news);
        }
        let so_far = words.concat();
        let expected = &so_far[..so_far.len() - rest.concat().len()];
        prop_assert_eq!(heard, expected);
        for call in 0..calls_too {
            fold(&mut state, &calls(call, &"t".repeat(1000)));
        }
        if let Some(turn) = state.turns().last() {
            let news = told.new_lines(turn, true);
            prop_assert!(news.len() <= MOST + 1);
            prop_assert!(news.iter().all(|line| line.chars().count() <= LINE + 1));
            prop_assert_eq!(news.last().map(String::as_str), Some("waits for a person: `acpctl pending`"));
            prop_assert_eq!(told.new_lines(turn, true), Vec::<String>::new());
        }
    }
}

#[test]
fn a_long_answer_keeps_its_end_and_says_that_it_was_cut() {
    let long = format!("{}the end", "word ".repeat(ANSWER));
    let report = Report::new(&session(), &ticket(), Some(&turn(&[says(&long, 0)])));
    assert!(report.answer_truncated && report.answer.ends_with("the end"));
    assert_eq!(report.answer.chars().count(), ANSWER + 1);
    let whole = Report::new(&session(), &ticket(), Some(&turn(&[says("the end", 0)])));
    assert_eq!((whole.answer.as_str(), whole.answer_truncated), ("the end", false));
    assert_eq!(whole.status, Status::Done);
}

#[test]
fn what_people_read_of_a_turn_is_bounded_on_a_whole_character() {
    let turn = turn(&[says(&"ü".repeat(5000), 0), says("x", 1)]);
    for most in 0..200 {
        let text = transcript(&turn.blocks, most);
        assert!(text.len() <= most + "\n\n…\n".len(), "{most}: {}", text.len());
    }
    assert!(transcript(&turn.blocks, 1 << 20).contains("## Answer\n\nx"));
}
