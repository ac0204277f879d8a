//! Commands of acpd in the conversation: what of them is shown while they run, and when they are over.

use acpd_core::TerminalTail;
use acpd_core::ids::{ClientId, InteractionId};
use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::terminals::{call, ends, own, running_command, shown, shows};

/// A command that is shown, and a client that reads about it.
fn shown_command() -> (Bench, ClientId, InteractionId, String) {
    let (mut bench, a, number, name) = running_command();
    shows(&mut bench, &name);
    bench.got(a);
    (bench, a, number, name)
}

fn writes(bench: &mut Bench, terminal: InteractionId, output: &str) {
    let tail = TerminalTail { output: output.to_owned(), truncated: false };
    bench.screens.insert(terminal, tail);
}

/// Returns the shown output of the command.
fn texts(got: &[Value]) -> Vec<String> {
    let about = |line: &&Value| line["params"]["update"]["content"].is_array();
    got.iter().filter(about).map(|line| shown(line).to_owned()).collect()
}

#[test]
fn the_output_of_a_command_is_shown_while_it_runs_at_growing_distances() {
    let (mut bench, a, number, _) = shown_command();
    let mut at = Vec::new();
    for second in 0..100 {
        writes(&mut bench, number, &format!("{second}\n"));
        bench.pass(1_000);
        let got = bench.got(a);
        if !got.is_empty() {
            assert_eq!(words(&got), ["tool_call_update"]);
            assert_eq!(shown(&got[0]), format!("{second}\n"));
            assert_eq!(got[0]["params"]["update"]["content"][0]["type"], "diff", "the rest stays");
            at.push(second);
        }
    }
    assert_eq!(at, [0, 2, 6, 14, 30, 60, 90]);
    ends(&mut bench, number, 0, "all of it");
    assert_eq!(texts(&bench.got(a)), ["all of it"]);
    bench.pass(1_000_000);
    assert_eq!(texts(&bench.got(a)), Vec::<String>::new());
}

#[test]
fn output_that_is_no_news_is_not_shown_again() {
    let (mut bench, a, number, _) = shown_command();
    bench.pass(10_000);
    assert_eq!(bench.got(a), Vec::<Value>::new(), "it has written nothing");
    writes(&mut bench, number, "x");
    bench.pass(100_000);
    assert_eq!(texts(&bench.got(a)), ["x"]);
    writes(&mut bench, number, "y");
    bench.pass(30_000);
    assert_eq!(texts(&bench.got(a)), ["y"]);
}

#[test]
fn what_is_shown_of_a_command_that_runs_on_and_on_is_bounded() {
    let (mut bench, a, number, _) = shown_command();
    let mut steps = 0;
    for second in 0..2_000 {
        writes(&mut bench, number, &second.to_string());
        bench.pass(30_000);
        steps += bench.got(a).len();
    }
    assert_eq!(steps, 120);
    ends(&mut bench, number, 0, "all of it");
    assert_eq!(texts(&bench.got(a)), ["all of it"], "its end is shown");
}

#[test]
fn a_call_that_is_shown_anew_has_the_output_again_within_a_second() {
    let (mut bench, a, number, name) = shown_command();
    writes(&mut bench, number, "x");
    bench.pass(70_000);
    bench.got(a);
    for _ in 0..3 {
        shows(&mut bench, &name);
        shows(&mut bench, &name);
    }
    bench.pass(1_000);
    let got = texts(&bench.got(a));
    assert_eq!(got.iter().filter(|text| *text == "x").count(), 1, "{got:?}");
    assert_eq!(got.last().unwrap(), "x");
}

#[test]
fn a_call_that_shows_something_else_is_not_followed_any_more() {
    let (mut bench, a, number, _) = shown_command();
    let content = json!([{"type":"content","content":{"type":"text","text":"done"}}]);
    bench.update_call("c", &json!({"content":content}));
    bench.got(a);
    writes(&mut bench, number, "x");
    bench.pass(100_000);
    ends(&mut bench, number, 0, "x");
    assert_eq!(bench.got(a), Vec::<Value>::new());
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn two_commands_in_one_call_are_both_followed_to_their_ends() {
    let (mut bench, a, first, name) = shown_command();
    let (second, other) = own(&mut bench);
    let item = |id: &str| json!({"type":"terminal","terminalId":id});
    bench.update_call("c", &json!({"content":[item(&name), item(&other)]}));
    bench.got(a);
    let both = |bench: &mut Bench| {
        let got = bench.got(a);
        let content = &got.last().expect("something")["params"]["update"]["content"];
        [0, 1].map(|at| content[at]["content"]["text"].as_str().unwrap_or("").to_owned())
    };
    writes(&mut bench, first, "one");
    bench.pass(1_000);
    assert_eq!(both(&mut bench), ["one", "(a terminal of acpd)"]);
    ends(&mut bench, first, 1, "one");
    assert_eq!(both(&mut bench)[0], "one\n(exit code 1)");
    writes(&mut bench, second, "two");
    bench.pass(4_000);
    assert_eq!(both(&mut bench), ["one\n(exit code 1)", "two"]);
    ends(&mut bench, second, 0, "two");
    assert_eq!(both(&mut bench), ["one\n(exit code 1)", "two"]);
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn a_command_that_ends_with_its_agent_says_so_where_it_is_shown() {
    let (mut bench, a, number, name) = shown_command();
    writes(&mut bench, number, "so far");
    bench.pass(1_000);
    bench.got(a);
    // Released, it may go on for a moment.
    call(&mut bench, 1, "release", &name);
    bench.leader_ends();
    let got = bench.got(a);
    assert_eq!(texts(&got), ["so far\n(ended with the agent)"]);
    assert_eq!(words(&got)[..2], ["tool_call_update"; 2], "then the call is closed");
    assert_eq!(bench.snapshot.interactions.len(), 0);
    ends(&mut bench, number, 0, "late");
    assert_eq!(texts(&bench.got(a)), Vec::<String>::new());
}

#[test]
fn a_command_that_ends_with_its_session_says_so_where_it_is_shown() {
    let (mut bench, a, ..) = shown_command();
    bench.ask(a, 2, "_acpd/session/close", &json!({"session":"s"}));
    assert_eq!(texts(&bench.got(a)), ["(ended with the session)"]);
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn the_next_daemon_says_what_the_last_one_knew_of_a_command() {
    for written in ["", "so far\n"] {
        let (mut bench, _, number, name) = shown_command();
        writes(&mut bench, number, written);
        bench.pass(1_000);
        bench.reboot();
        bench.joined("s");
        let last = bench.journal_lines().pop().unwrap();
        assert_eq!(shown(&last), format!("{written}(ended when acpd was restarted)"));
        assert_eq!(bench.snapshot.interactions.len(), 0);
        let rows = bench.journal.values().flatten().count();
        bench.reboot();
        assert_eq!(bench.journal.values().flatten().count(), rows, "it is said once");
        // The agent does not know.
        let reader = bench.joined("s");
        shows(&mut bench, &name);
        assert_eq!(texts(&bench.got(reader))[1], "(a terminal of acpd that is gone)");
    }
}

#[test]
fn a_command_that_was_released_is_shown_to_its_end_also_when_others_need_room() {
    let (mut bench, a, number, name) = shown_command();
    for _ in 1..64 {
        own(&mut bench);
    }
    call(&mut bench, 7, "release", &name);
    bench.heard();
    bench.terminals.clear();
    own(&mut bench);
    ends(&mut bench, number, 0, "done well");
    assert_eq!(texts(&bench.got(a)), ["done well"]);
    assert_eq!(bench.snapshot.interactions.len(), 0);
}

#[test]
fn a_call_that_names_one_command_many_times_shows_it_once() {
    let (mut bench, _, number, name) = shown_command();
    ends(&mut bench, number, 0, &"x".repeat(16 << 10));
    let content = vec![json!({"type":"terminal","terminalId":name}); 200];
    let length = last_of_a_call(&mut bench, &content);
    assert!(length < 48 << 10, "{length} bytes");
}

#[test]
fn a_call_that_shows_many_commands_shows_64_kib_of_them() {
    let (mut bench, ..) = shown_command();
    let mut content = Vec::new();
    for _ in 0..40 {
        let (number, name) = own(&mut bench);
        ends(&mut bench, number, 0, &"x".repeat(16 << 10));
        content.push(json!({"type":"terminal","terminalId":name}));
    }
    let length = last_of_a_call(&mut bench, &content);
    assert!((64 << 10..80 << 10).contains(&length), "{length} bytes");
}

/// The length of the line that shows what the commands in a call wrote.
fn last_of_a_call(bench: &mut Bench, content: &[Value]) -> usize {
    bench.update_call("d", &json!({"content":content}));
    bench.journal.values().flatten().last().expect("a row").line.len()
}
