//! `acpctl top` and `acpctl chat` on a terminal, with the daemon and the scripted agent.

use acpd_test::harness::{Agent, Screen, TestEnv, kill9, signal, until};
use nix::sys::signal::Signal;
use serde_json::json;

use crate::hosted;

const SIZE: (u16, u16) = (100, 30);
const ENTER: &str = "\r";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

fn start(env: &TestEnv, args: &[&str]) -> Screen {
    Screen::start(env.acpctl_command(args), SIZE)
}

/// A home in which a session asks for a permission.
fn with_question() -> TestEnv {
    let env = hosted([Agent::new("agent")]);
    let _ = env.acpctl(&["run", "--detach", "-s", "asks", "[ask]"]).success();
    until("a question", || {
        let list = env.connect().ok("_acpd/interaction/list", json!({}));
        list["interactions"].as_array().filter(|open| !open.is_empty()).map(drop)
    });
    env
}

#[test]
fn a_question_is_answered_on_the_screen_of_all_sessions() {
    let env = with_question();
    // It is also what `acpctl` alone shows.
    let mut top = start(&env, &[]);
    top.sees("1 needs you");
    top.sees("asks: agent asks to edit this");
    // Keys that are no answer.
    top.types("1");
    top.types(ENTER);
    // It opens the conversation, where Enter is no answer either.
    top.sees("asks · agent");
    top.types(CTRL_D);
    top.sees("1 needs you");
    top.types("\t1");
    top.sees("▸ 1");
    top.types(ENTER);
    top.sees("nothing needs you");
    until("the turn's end", || env.said("asks").contains("permission: yes").then_some(()));
    top.types("q");
    assert!(top.ends().success());
    top.gives_back();
}

#[test]
fn every_way_out_leaves_the_terminal_as_it_was() {
    let env = hosted([Agent::new("agent")]);
    for way in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        let mut top = start(&env, &["top"]);
        top.sees("no sessions yet");
        assert!(!top.is_as_before());
        top.signal(way);
        assert!(!top.ends().success());
        top.gives_back();
    }
    let mut top = start(&env, &["top"]);
    top.sees("no sessions yet");
    top.types(CTRL_C);
    assert!(top.ends().success());
    top.gives_back();
}

#[test]
fn a_program_that_is_suspended_gives_the_terminal_back_until_it_continues() {
    let env = hosted([Agent::new("agent")]);
    let mut top = start(&env, &["top"]);
    top.sees("no sessions yet");
    top.types("\u{1a}");
    top.writes("\u{1b}[?1049l");
    top.gives_back();
    top.signal(Signal::SIGCONT);
    top.sees("no sessions yet");
    top.types("q");
    assert!(top.ends().success());
    top.gives_back();
}

#[test]
fn a_prompt_and_its_answer_are_on_the_screen_once() {
    let env = hosted([Agent::new("agent")]);
    let mut chat = start(&env, &["chat", "--new"]);
    chat.sees("nothing was said yet");
    chat.types("say a word");
    chat.types(ENTER);
    chat.sees("done");
    let seen = chat.sees("You said: say a word");
    assert_eq!(seen.matches("> say a word").count(), 1, "{seen}");
    assert_eq!(seen.matches("You said: say a word").count(), 1, "{seen}");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
    chat.sees("which continues; come back with: acpctl chat ");
    chat.gives_back();
}

#[test]
fn h1_what_is_typed_while_the_agent_starts_goes_to_its_conversation_and_to_no_other() {
    let slow = Agent::new("slow").flags("init-delay=4000");
    let env = hosted([Agent::new("agent"), slow]);
    let _ = env.acpctl(&["run", "--detach", "-s", "other", "[slow 600]"]).success();
    let mut chat = start(&env, &["chat", "--new", "-a", "slow"]);
    // At once, long before the agent answers.
    chat.sees("starting slow");
    chat.types("success, c c");
    chat.sees("success, c c");
    chat.types(ENTER);
    chat.types("draft");
    chat.sees("queued 1: success, c c");
    let seen = chat.sees("You said: success, c c");
    assert!(seen.contains("\n draft"), "{seen}");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
    let rows = env.connect().ok("_acpd/session/list", json!({}));
    let other = rows["sessions"].as_array().unwrap().iter().find(|row| row["name"] == "other");
    assert_eq!(other.unwrap()["turn"]["state"], "working", "nobody has cancelled it");
}

#[test]
fn h2_an_agent_that_is_stopped_is_told_with_the_way_out() {
    let env = hosted([Agent::new("agent")]);
    let _ = env.acpctl(&["run", "-s", "mine", "hello"]).success();
    let _ = env.acpctl(&["agent", "stop", "agent"]).success();
    let mut chat = start(&env, &["chat", "--new"]);
    assert_eq!(chat.ends().code(), Some(1), "as `run`");
    chat.gives_back();
    chat.sees("error: agent `agent` was stopped by a person");
    chat.sees("hint: `acpctl agent start agent` starts it again");

    let mut chat = start(&env, &["chat", "mine"]);
    chat.sees("live");
    chat.types("are you there?");
    chat.types(ENTER);
    chat.sees("`acpctl agent start agent` starts it again");
    chat.sees("\n are you there?");
    let _ = env.acpctl(&["agent", "start", "agent"]).success();
    chat.types(ENTER);
    chat.sees("You said: are you there?");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
}

#[test]
fn an_agent_that_is_killed_in_its_answer_is_told_and_the_next_prompt_works() {
    let env = hosted([Agent::new("agent")]);
    let mut chat = start(&env, &["chat", "--new"]);
    chat.sees("nothing was said yet");
    chat.types("[slow 600]");
    chat.types(ENTER);
    chat.sees("tick 3");
    kill9(env.agent_pid("agent").expect("it runs"));
    chat.sees("interrupted");
    chat.types("are you back?");
    chat.types(ENTER);
    chat.sees("You said: are you back?");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
}

#[test]
fn a_daemon_that_is_killed_comes_back_and_the_draft_stays() {
    let env = hosted([Agent::new("agent")]);
    let mut chat = start(&env, &["chat", "--new"]);
    chat.sees("nothing was said yet");
    chat.types("[slow 30]");
    chat.types(ENTER);
    chat.sees("tick 2");
    chat.types("what I was about to say");
    chat.sees("what I was about to say");
    env.kill_daemon();
    let seen = chat.sees("tick 30");
    assert_eq!(seen.matches("tick 17\n").count(), 1, "{seen}");
    assert!(seen.contains("what I was about to say"), "{seen}");
    chat.sees("done");
    chat.types(ENTER);
    chat.sees("You said: what I was about to say");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
}

#[test]
fn the_screen_keeps_the_live_end_while_it_is_resized() {
    let env = hosted([Agent::new("agent")]);
    let mut chat = start(&env, &["chat", "--new"]);
    chat.sees("nothing was said yet");
    chat.types("[slow 20]");
    chat.types(ENTER);
    for (size, tick) in [((40, 12), "tick 4"), ((200, 50), "tick 8"), ((80, 24), "tick 12")] {
        chat.resize(size);
        chat.sees(tick);
    }
    let seen = chat.sees("done");
    assert_eq!(seen.matches("tick 13\n").count(), 1, "{seen}");
    assert!(seen.starts_with(' ') && seen.lines().count() <= 24, "{seen}");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
}

#[test]
fn a_turn_is_cancelled_by_two_presses_and_not_by_one() {
    let env = hosted([Agent::new("agent")]);
    let mut chat = start(&env, &["chat", "--new"]);
    chat.sees("nothing was said yet");
    chat.types("[slow 600]");
    chat.types(ENTER);
    chat.sees("tick 2");
    chat.types(CTRL_C);
    chat.sees("^C again cancels the turn");
    chat.types(CTRL_C);
    chat.sees("cancelled");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
}

#[test]
fn a_screen_wants_a_terminal_and_says_what_to_do_without_one() {
    let env = hosted([Agent::new("agent")]);
    let _ = env.acpctl(&["top"]).code(2).explains(&["needs a terminal", "acpctl ps"]);
    let _ = env.acpctl(&["chat"]).code(2).explains(&["needs a terminal", "acpctl run"]);
}

#[test]
fn a_daemon_that_does_not_answer_does_not_hold_up_the_end() {
    let env = hosted([Agent::new("agent")]);
    let mut top = start(&env, &["top"]);
    top.sees("no sessions yet");
    let daemon = env.daemon_pid();
    signal(daemon, Signal::SIGSTOP);
    top.signal(Signal::SIGTERM);
    assert!(!top.ends().success());
    signal(daemon, Signal::SIGCONT);
    top.gives_back();
}
