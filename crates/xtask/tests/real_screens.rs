//! The full screens on real agents, driven by keys on a terminal: a conversation whose agent is killed in its answer
//! and remembers, a permission that is given in three steps, a daemon that is killed beside it, and another size in the
//! middle of an answer.
//!
//! Installs what is missing, and is skipped like the tests of `real_agents.rs`.

use acpd_sys::process::{StopSignal, signal_one};
use acpd_test::harness::Screen;
use xtask::Result;
use xtask::home::kill_tree;
use xtask::real::home_with;

const SIZE: (u16, u16) = (100, 30);
const ENTER: &str = "\r";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

#[test]
fn a_day_with_claude_on_the_screen() {
    on_the_screen("claude").unwrap();
}

#[test]
fn a_day_with_zedcodex_on_the_screen() {
    on_the_screen("zedcodex").unwrap();
}

fn on_the_screen(agent: &str) -> Result {
    let Some((home, _model)) = home_with(agent)? else { return Ok(()) };
    let mut chat = Screen::start(home.acpctl(&["chat", "--new", "-a", agent]), SIZE);
    chat.sees("nothing was said yet");
    says(&mut chat, "say #one");
    reads(&chat, "tags=one");

    // The agent dies in the middle of its answer, and the conversation comes back with the next prompt.
    says(&mut chat, "say #two [slow 100]");
    reads(&chat, "tick 5/100");
    kill_tree(home.agent(agent)?);
    let seen = chat.sees("interrupted");
    assert!(!seen.contains("tick 100/100"), "{seen}");
    says(&mut chat, "say #three");
    reads(&chat, "tags=one,two,three");

    // The agent asks, and only three steps are an answer.
    let proof = home.path("work").join("proof");
    let command = format!("echo yes > {}", proof.display());
    says(&mut chat, &format!("say #four [tool bash {command}]"));
    let seen = chat.sees("asks to run this");
    assert!(seen.contains("echo yes > "), "{seen}");
    chat.types("1");
    chat.waits("what is typed", |screen| {
        screen.contents().lines().any(|line| line.trim_end() == " 1")
    });
    chat.types(CTRL_C);
    chat.sees("cleared");
    chat.types("\t");
    chat.sees("nothing is chosen");
    chat.types(ENTER);
    chat.sees("nothing is chosen yet");
    assert!(!proof.exists(), "nobody has allowed it");
    chat.types("1");
    chat.sees("▸ 1");
    chat.types(ENTER);
    reads(&chat, "tags=one,two,three,four");
    assert!(proof.exists(), "it was allowed");

    // The daemon dies beside an answer, which is on the screen once all the same.
    says(&mut chat, "say #five [slow 30]");
    reads(&chat, "tick 5/30");
    let daemon = home.daemon()?;
    signal_one(daemon, StopSignal::Kill);
    let seen = reads(&chat, "tick 30/30");
    assert_eq!(seen.matches("tick 17/30").count(), 1, "{seen}");
    assert_ne!(home.daemon()?, daemon);

    // Another size in the middle of an answer: the live end stays.
    says(&mut chat, "say #six [slow 40]");
    for (size, tick) in [((60, 15), "tick 10/40"), ((120, 40), "tick 20/40"), (SIZE, "tick 30/40")]
    {
        chat.resize(size);
        reads(&chat, tick);
    }
    let seen = reads(&chat, "tags=one,two,three,four,five,six");
    assert_eq!(seen.matches("tick 25/40").count(), 1, "{seen}");
    chat.sees("↓ live");

    // Leaving stops nothing, and the screen of all sessions shows it.
    chat.types(CTRL_D);
    assert!(chat.ends().success());
    chat.gives_back();
    let mut top = Screen::start(home.acpctl(&["top"]), SIZE);
    let seen = top.sees("RECENT");
    assert!(seen.contains(agent), "{seen}");
    top.types(ENTER);
    reads(&top, "tags=one,two,three,four,five,six");
    top.types(CTRL_D);
    top.sees("nothing needs you");
    top.types("q");
    assert!(top.ends().success());
    top.gives_back();
    home.stop()
}

/// Waits until this is on the screen, wherever its rows are broken. Returns what is there, on one line.
fn reads(chat: &Screen, words: &str) -> String {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    flat(&chat.waits(words, |screen| flat(&screen.contents()).contains(words)))
}

fn says(chat: &mut Screen, prompt: &str) {
    chat.types(prompt);
    chat.types(ENTER);
}
