//! `acpctl top` and `acpctl chat` on a terminal, with the daemon and the scripted agent.

use acpd_test::harness::{Agent, Screen, TestEnv, signal, until};
use nix::sys::signal::Signal;
use std::fs;

use crate::home;

const SIZE: (u16, u16) = (100, 30);
const ENTER: &str = "\r";
const CTRL_D: &str = "\u{4}";
const F3: &str = "\u{1b}OR";

fn start(env: &TestEnv, args: &[&str]) -> Screen {
    Screen::start(env.acpctl_command(args), SIZE)
}

#[test]
fn a_question_is_answered_on_the_screen_of_all_sessions() {
    let env = home([Agent::new("agent")]);
    let _ = env.acpctl(&["run", "--detach", "-s", "asks", "[ask]"]).success();
    env.wait_questions();
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
    let has_mouse =
        |screen: &vt100::Screen| screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None;
    for way in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGTSTP] {
        let mut chat = start(&env, &["chat", "--new"]);
        chat.sees("nothing was said yet");
        assert!(!chat.is_as_before());
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
        assert_eq!(chat.ends().success(), way == Signal::SIGTSTP);
        chat.gives_back();
        let written = chat.written();
        for (on, off) in [("[?1004h", "[?1004l"), ("[>1u", "[<1u"), ("[?1006h", "[?1006l")] {
            assert!(written.rfind(off) > written.rfind(on), "{way}: {on} in {written:?}");
        }
    }
}

#[test]
fn a_prompt_is_written_in_the_persons_editor_which_has_the_terminal_alone() {
    let env = home([Agent::new("agent")]);
    // The editor reads a line from the terminal, as the person types it.
    let mark = env.path("editor.runs");
    let script = format!(
        "stty -a | grep -q ' icanon' && touch {}\nread line\nprintf '%s, %s' \"$(cat \"$2\")\" \"$line\" > \"$2\"",
        mark.display()
    );
    let editor = env.install("editor", &script);
    let mut command = env.acpctl_command(&["chat", "--new"]);
    command.env("VISUAL", format!("{} --wait", editor.display())).env("EDITOR", "false");
    let mut chat = Screen::start(command, SIZE);
    chat.sees("nothing was said yet");
    chat.types("first");
    chat.types("\u{18}");
    chat.writes("\u{1b}[?1049l");
    until("the editor, in a terminal as it was", || mark.exists().then_some(()));
    chat.types("every key is the editor's\n");
    chat.sees("\n first, every key is the editor's");
    chat.types(ENTER);
    chat.sees("You said: first, every key is the editor's");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
    chat.gives_back();
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
    assert_eq!(fs::read_to_string(kept).unwrap(), "for the pager\n");
    chat.types(CTRL_D);
    assert!(chat.ends().success());
    chat.gives_back();
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
