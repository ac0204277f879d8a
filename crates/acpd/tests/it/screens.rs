//! `acpctl top` and `acpctl chat` on a terminal, with the daemon and the scripted agent.

use std::io::Write as _;
use std::process::Stdio;

use acpd_test::harness::{Agent, Screen, TestEnv, kill9, signal, until};
use nix::sys::signal::Signal;
use serde_json::json;

use crate::home;
use crate::prompt_line::prompt;

pub(crate) const SIZE: (u16, u16) = (100, 30);
pub(crate) const ENTER: &str = "\r";
const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_D: &str = "\u{4}";
const F2: &str = "\u{1b}OQ";
const F3: &str = "\u{1b}OR";

fn start(env: &TestEnv, args: &[&str]) -> Screen {
    Screen::start(env.acpctl_command(args), SIZE)
}

/// A home in which a session asks for a permission.
fn with_question() -> TestEnv {
    let env = home([Agent::new("agent")]);
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
    // The screen of all sessions is also that of `acpctl` alone.
    let mut top = start(&env, &[]);
    top.sees("1 needs you");
    top.sees("asks: agent asks to edit this");
    // Keys that are no answer.
    top.types("1");
    top.types(ENTER);
    // Enter opens the conversation, where Enter is no answer either.
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
    let env = home([Agent::new("agent")]);
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
    let env = home([Agent::new("agent")]);
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
    let env = home([Agent::new("agent")]);
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
    chat.sees("keeps running; come back with: acpctl chat ");
    chat.gives_back();
}

/// A terminal that does not speak the kitty protocol sends these bytes for the keys.
#[test]
fn ctrl_j_begins_a_line_where_a_terminal_sends_bare_bytes() {
    let env = home([Agent::new("agent")]);
    let mut chat = start(&env, &["chat", "--new"]);
    chat.sees("nothing was said yet");
    chat.types("one\n");
    chat.types("two\u{1b}\r");
    chat.types("threex\u{8}");
    chat.sees("three");
    chat.types(ENTER);
    assert_eq!(prompt(&env)[0]["text"], "one\ntwo\nthree");
    // Ctrl-\ detaches.
    chat.types("\u{1c}");
    assert!(chat.ends().success());
}

#[test]
fn h1_what_is_typed_while_the_agent_starts_goes_to_its_conversation_and_to_no_other() {
    let slow = Agent::new("slow").flags("init-delay=4000");
    let env = home([Agent::new("agent"), slow]);
    let _ = env.acpctl(&["run", "--detach", "-s", "other", "[slow 600]"]).success();
    let mut chat = start(&env, &["chat", "--new", "-a", "slow"]);
    // At once, long before the agent answers.
    chat.sees("starting slow");
    chat.types("success, c c");
    chat.sees("success, c c");
    chat.types(ENTER);
    chat.types("draft");
    chat.sees("1 queued: success, c c");
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
    let env = home([Agent::new("agent")]);
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
fn who_else_is_here_is_counted_by_windows_and_not_by_connections() {
    let env = home([Agent::new("agent")]);
    let _ = env.acpctl(&["run", "-s", "mine", "hello"]).success();
    let mut one = start(&env, &["chat", "mine"]);
    one.sees("live");
    let mut other = start(&env, &["chat", "mine"]);
    other.sees("1 other here");
    one.sees("1 other here");
    // A turn of a window has a connection of its own.
    one.types("[pause here] and on");
    one.types(ENTER);
    let seen = other.sees("paused at here");
    assert_eq!(env.session("mine")["clients"], 2);
    assert!(seen.contains("1 other here"), "{seen}");
    env.release("here");
    one.sees("and on");
    for chat in [&mut one, &mut other] {
        chat.types(CTRL_D);
        assert!(chat.ends().success());
    }
}

#[test]
fn an_agent_that_is_killed_in_its_answer_is_told_and_the_next_prompt_works() {
    let env = home([Agent::new("agent")]);
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
    let env = home([Agent::new("agent")]);
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
fn a_daemon_that_a_person_stops_stays_stopped_while_screens_are_open() {
    let env = home([Agent::new("agent")]);
    let _ = env.acpctl(&["run", "-s", "mine", "say #one"]).success();
    let mut top = start(&env, &["top"]);
    top.sees("mine");
    let mut chat = start(&env, &["chat", "mine"]);
    chat.sees("You said: say #one");
    chat.types("a draft");
    chat.sees("a draft");
    let _ = env.acpctl(&["daemon", "stop"]).success();
    chat.sees("acpd is not running. Start it: F2");
    top.sees("acpd is not running. Start it: F2");
    // Nothing that is pressed starts it but the key for it.
    chat.types(ENTER);
    top.types("\u{c}");
    env.acpctl(&["--no-spawn", "ps"]).code(3);
    chat.types(F2);
    chat.sees("live");
    let seen = chat.sees("a draft");
    assert!(seen.contains("You said: say #one"), "{seen}");
    top.waits("the rows again", |screen| !screen.contents().contains("not running"));
    chat.types(ENTER);
    chat.sees("You said: a draft");
    chat.types(CTRL_D);
    top.types("q");
    assert!(chat.ends().success() && top.ends().success());
}

#[test]
fn a_backup_that_takes_the_place_of_the_journal_ends_a_conversation_and_mixes_nothing() {
    let env = home([Agent::new("agent")]);
    let _ = env.acpctl(&["run", "-s", "kept", "say #one"]).success();
    let file = env.path("backup").display().to_string();
    let _ = env.acpctl(&["backup", &file]).success();
    let _ = env.acpctl(&["run", "-s", "kept", "say #two"]).success();
    let mut chat = start(&env, &["chat", "kept"]);
    chat.sees("You said: say #two");
    chat.types("what I was about to say");
    chat.sees("what I was about to say");
    let _ = env.acpctl(&["restore", &file, "--yes"]).success();
    // Other lines have these numbers now.
    let _ = env.acpctl(&["run", "-s", "kept", "say #three, which is more"]).success();
    let seen = chat.sees("acpd is not running");
    assert!(seen.contains("say #two") && !seen.contains("#three"), "{seen}");
    assert!(seen.contains("what I was about to say"), "{seen}");
    chat.types(CTRL_D);
    let _ = chat.ends();
    chat.sees("what I was about to say");
    let mut chat = start(&env, &["chat", "kept"]);
    let seen = chat.sees("You said: say #three, which is more");
    assert!(seen.contains("say #one") && !seen.contains("#two"), "{seen}");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
}

#[test]
fn the_screen_keeps_the_live_end_while_it_is_resized() {
    let env = home([Agent::new("agent")]);
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
    let env = home([Agent::new("agent")]);
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
fn leaving_a_conversation_that_was_opened_by_itself_draws_no_other_screen() {
    let env = home([Agent::new("agent")]);
    let mut chat = start(&env, &["chat", "--new"]);
    chat.sees("nothing was said yet");
    chat.types("say a word");
    chat.types(ENTER);
    chat.sees("You said: say a word");
    chat.sees("done");
    chat.forget();
    chat.types(CTRL_D);
    assert!(chat.ends().success());
    chat.sees("come back with");
    let written = chat.written();
    assert!(!written.contains("needs you") && !written.contains("RECENT"), "{written:?}");
    // From the list, it goes back to the list.
    let mut top = start(&env, &["top"]);
    top.sees("RECENT");
    top.types(ENTER);
    top.sees("You said: say a word");
    top.types(CTRL_D);
    top.sees("RECENT");
    top.types("q");
    assert!(top.ends().success());
}

#[test]
fn a_conversation_that_has_the_mouse_gives_it_back_on_every_way_out() {
    let env = home([Agent::new("agent")]);
    let has_mouse =
        |screen: &vt100::Screen| screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None;
    for way in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGTSTP] {
        let mut chat = start(&env, &["chat", "--new"]);
        chat.sees("nothing was said yet");
        chat.types(F3);
        chat.waits("the mouse", has_mouse);
        if way == Signal::SIGTSTP {
            chat.types("\u{1a}");
            chat.gives_back();
            chat.signal(Signal::SIGCONT);
            chat.waits("the mouse again", has_mouse);
            chat.types(CTRL_D);
        } else {
            chat.signal(way);
        }
        chat.ends();
        chat.gives_back();
        let written = chat.written();
        for (on, off) in [("[?1004h", "[?1004l"), ("[>1u", "[<1u"), ("[?1006h", "[?1006l")] {
            assert!(written.rfind(off) > written.rfind(on), "{way}: {on} in {written:?}");
        }
    }
}

#[test]
fn the_pager_has_the_terminal_and_the_keys_until_it_ends() {
    let env = home([Agent::new("agent")]);
    let kept = env.path("kept");
    let mut command = env.acpctl_command(&["chat", "--new"]);
    // Keys are for the program that has the terminal.
    let pager =
        format!("cat; echo in the pager; read -r line <&1; echo \"$line\" >{}", kept.display());
    command.env("ACPCTL_PAGER", pager);
    let mut chat = Screen::start(command, SIZE);
    chat.sees("nothing was said yet");
    chat.types("say a word");
    chat.types(ENTER);
    chat.sees("done");
    chat.types("\t[o");
    let seen = chat.sees("in the pager");
    assert!(seen.contains("say a word"), "{seen}");
    chat.gives_back();
    chat.types("for the pager\n");
    let seen = chat.sees("You said: say a word");
    assert!(!seen.contains("for the pager"), "{seen}");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "for the pager\n");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
    chat.gives_back();
}

#[test]
fn a_conversation_goes_line_by_line_and_nothing_that_was_written_changes() {
    let env = home([Agent::new("agent")]);
    let mut chat = start(&env, &["chat", "--plain", "--new"]);
    chat.sees("each line is a prompt");
    chat.types("say **a word**\n");
    chat.sees("You said: say");
    chat.sees("done");
    chat.types("[ask]\n");
    let seen = chat.sees("type a number, or an empty line");
    assert!(seen.contains("question: agent asks to edit this"), "{seen}");
    // Nothing is chosen: neither Enter nor another number is an answer.
    chat.types("\n");
    chat.sees("left open; `?` shows it again");
    chat.types("?\n");
    chat.waits("the question once more", |screen| {
        screen.contents().matches("type a number, or an empty line").count() == 2
    });
    chat.types("17\n");
    chat.sees("type a number from 1 to ");
    let open = env.connect().ok("_acpd/interaction/list", json!({}));
    assert_eq!(open["interactions"].as_array().map(Vec::len), Some(1), "it was not answered");
    chat.types("1\n");
    chat.sees("permission: yes");
    chat.types("[slow 600]\n");
    chat.sees("tick 5");
    chat.signal(Signal::SIGINT);
    chat.sees("turn ended: cancelled");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
    chat.sees("keeps running; come back with: acpctl chat --plain ");
    let written = chat.written();
    let colours = written.split("\u{1b}[").skip(1).all(|rest| {
        rest.trim_start_matches(|char: char| char.is_ascii_digit() || char == ';').starts_with('m')
    });
    assert!(colours, "the cursor was moved: {written:?}");
    assert!(!written.replace("\r\n", "").contains('\r'), "a line was written again: {written:?}");
}

#[test]
fn prompts_from_a_pipe_are_answered_line_by_line() {
    let env = home([Agent::new("agent")]);
    let mut command = env.acpctl_command(&["chat", "--plain", "--new"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut chat = command.spawn().unwrap();
    chat.stdin.take().unwrap().write_all(b"say one\nsay two\n").unwrap();
    let output = chat.wait_with_output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("You said: say one") && said.contains("You said: say two"), "{said}");
}

#[test]
fn a_draft_that_is_left_at_the_end_is_printed() {
    let env = home([Agent::new("agent")]);
    let mut chat = start(&env, &["chat", "--new"]);
    chat.sees("nothing was said yet");
    chat.types("an hour of thoughts");
    chat.sees("\n an hour of thoughts");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
    chat.sees("not sent: an hour of thoughts");
    chat.gives_back();
}

#[test]
fn five_hundred_sessions_with_twenty_changes_a_second_stay_right_and_can_be_driven() {
    let env = home([Agent::new("agent")]);
    let mut client = env.client("agent");
    let cwd = env.work("many");
    for n in 0..500 {
        let meta = json!({"_acpd": {"name": format!("task-{n:03}")}});
        client.ok("session/new", json!({"cwd": cwd, "mcpServers": [], "_meta": meta}));
    }
    let mut top = start(&env, &["top"]);
    top.sees("500 rest");
    // Each says something ten times a second.
    for n in 0..4 {
        let name = format!("task-{n:03}");
        let _ = env.acpctl_in("many", &["run", "--detach", "-s", &name, "[slow 3000]"]).success();
    }
    top.sees("4 work · 496 rest");
    let seen = top.sees("writes: ");
    assert_eq!(seen.matches(" * task-").count(), 4, "{seen}");
    top.types("G");
    top.sees("RECENT");
    top.types("g");
    top.sees("▸* task-");
    top.types("/task-123");
    let seen = top.waits("one row", |screen| {
        let contents = screen.contents();
        contents.contains(" task-123") && !contents.contains("task-124")
    });
    assert!(!seen.contains("WORKING"), "{seen}");
    top.types("\u{1b}");
    top.sees("task-124");
    top.types("g");
    top.sees("WORKING");
    // A turn that is cancelled here is at rest a moment later, while the others go on.
    top.types("/task-002\r");
    top.sees("▸* task-002");
    top.types("c");
    top.sees("c again cancels the turn of task-002");
    top.types("c");
    top.sees("3 work · 497 rest");
    top.types("\u{1b}");
    // The times on the screen advance, such as the age of a running turn.
    let age = |seen: &str| Some(seen.split_once("  writes: ")?.0.rsplit(' ').next()?.to_owned());
    let before = age(&top.sees("writes: ")).unwrap();
    top.waits("a later second", |screen| age(&screen.contents()).is_some_and(|now| now != before));
    top.types("q");
    assert!(top.ends().success());
    top.gives_back();
}

#[test]
fn a_screen_wants_a_terminal_and_says_what_to_do_without_one() {
    let env = home([Agent::new("agent")]);
    let _ = env.acpctl(&["top"]).code(2).explains(&["needs a terminal", "acpctl ps"]);
    let _ = env.acpctl(&["chat"]).code(2).explains(&["needs a terminal", "acpctl run"]);
}

#[test]
fn a_daemon_that_does_not_answer_does_not_hold_up_the_end() {
    let env = home([Agent::new("agent")]);
    let mut top = start(&env, &["top"]);
    top.sees("no sessions yet");
    let daemon = env.daemon_pid();
    signal(daemon, Signal::SIGSTOP);
    top.signal(Signal::SIGTERM);
    assert!(!top.ends().success());
    signal(daemon, Signal::SIGCONT);
    top.gives_back();
}
