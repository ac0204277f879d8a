//! Sentences on the screens name the keys of this person, whatever they are.

use std::collections::BTreeMap;

use super::chats::{ID, journal};
use super::*;
use crate::keymap::TABLE;

/// A key of its own for everything that can be changed, by place and action.
fn other_keys() -> BTreeMap<String, String> {
    let names = TABLE
        .iter()
        .filter(|row| row.place != Place::Question)
        .map(|row| format!("{}.{}", row.place.name(), row.action.name()));
    (20..).zip(names).map(|(number, name)| (name, format!("f{number}"))).collect()
}

/// A person with these keys in the morning, or with no session at all.
fn with_other_keys(mut all: Value) -> Person {
    all["keys"] = json!(other_keys());
    let mut person = Person::start();
    person.result(Link::Fleet, method::WATCH, all);
    person
}

impl Person {
    /// Presses what does this here.
    fn does(&mut self, place: Place, action: Action) {
        let key = &other_keys()[&format!("{}.{}", place.name(), action.name())];
        self.press(KeyCode::F(key[1..].parse().unwrap()));
    }

    /// What is on the screen says this, and names no key that is not one.
    fn reads(&mut self, words: &str) {
        let seen = self.sees(200, 60);
        assert!(seen.contains(words), "no `{words}` in: {seen}");
        let is_default = |word: &&str| {
            let word = word.trim_matches(|char: char| ":;,.()".contains(char));
            let named =
                ["\u{23ce}", "Enter", "Esc", "Tab", "Space", "PgUp", "PgDn", "Home", "n", "N"];
            word.starts_with('^') || named.contains(&word)
        };
        // The keys of a question, which nobody changes, are on the page of keys, too.
        let of_question: Vec<&str> =
            TABLE.iter().filter(|row| row.place == Place::Question).map(|row| row.words).collect();
        let is_fixed = |row: &&str| of_question.iter().any(|words| row.contains(words));
        let rows = seen.lines().filter(|row| !is_fixed(row));
        let found: Vec<&str> = rows.flat_map(str::split_whitespace).filter(is_default).collect();
        assert!(found.is_empty(), "{found:?} in: {seen}");
    }
}

/// The last row of the screen.
fn footer(person: &mut Person) -> String {
    person.sees(100, 30).trim_end().lines().last().unwrap().trim().to_owned()
}

#[test]
fn the_footer_of_a_line_says_what_its_keys_do_there() {
    let mut person = in_the_morning();
    person.types("/");
    assert_eq!(footer(&mut person), "\u{23ce} keep  Esc back");
    person.press(KeyCode::Esc);
    person.types("n");
    assert_eq!(footer(&mut person), "\u{23ce} begin  Tab agent  Esc back");
    person.press(KeyCode::Esc);
    person.types("/main");
    person.press(KeyCode::Enter);
    person.types("p");
    assert_eq!(footer(&mut person), "\u{23ce} send  Esc back", "no turn runs there");
    person.press(KeyCode::Esc);
    person.press(KeyCode::Esc);
    person.types("/migrate");
    person.press(KeyCode::Enter);
    person.types("p");
    assert_eq!(footer(&mut person), "\u{23ce} send  ^S steer  Esc back");
}

#[test]
fn the_footer_of_a_conversation_says_that_a_draft_is_cleared_first() {
    let mut person = in_the_morning();
    person.opens(&journal());
    assert!(footer(&mut person).contains("^C cancel"), "{}", footer(&mut person));
    person.types("and");
    assert!(footer(&mut person).contains("^C clear"), "{}", footer(&mut person));
}

#[test]
fn what_was_told_of_a_conversation_is_not_told_of_the_list() {
    let mut person = in_the_morning();
    person.changed(json!({"removed": {"interactions": ["1-5"]}, "sessions": [
        session("fix-auth", json!({}))]}));
    person.opens(&journal());
    person.ctrl('c');
    assert!(person.sees(100, 30).contains("no turn runs; ^D leaves"));
    person.ctrl('d');
    let seen = person.sees(100, 30);
    assert!(seen.contains("NEEDS YOU") && !seen.contains("no turn runs"), "{seen}");
}

#[test]
fn a_directory_and_the_facts_beside_it_have_a_gap_in_all_widths() {
    let mut person = in_the_morning();
    person.opens(&journal());
    let update = json!({"sessionUpdate": "usage_update", "used": 0, "size": 200_000});
    let link = person.chat_link();
    person.hears(link, 709, &[json!({"params": {"sessionId": ID, "update": update}})]);
    for width in 30..=60 {
        let head = person.sees(width, 20).lines().next().unwrap().to_owned();
        if let Some((before, _)) = head.split_once("0% of 200k") {
            assert!(before.ends_with(' '), "{width}: {head}");
        }
    }
    assert!(person.sees(60, 20).contains("0% of 200k"));
}

#[test]
fn the_list_and_the_page_of_keys_name_the_keys_of_this_person() {
    let mut person = with_other_keys(json!({"sessions": [], "agents": [], "interactions": []}));
    person.reads(" begins one here");
    let mut person = with_other_keys(morning());
    person.reads("NEEDS YOU");
    person.does(Place::Top, Action::Filter);
    person.types("parser");
    person.reads("/ parser");
    person.does(Place::Line, Action::Confirm);
    person.reads(": all)");
    person.does(Place::Top, Action::Cancel);
    person.reads(" again cancels the turn of parser");
    person.does(Place::Top, Action::Restart);
    person.reads(" again restarts claude");
    person.does(Place::Top, Action::Filter);
    person.types("nowhere");
    person.reads(" shows all sessions again");
    person.does(Place::Line, Action::Back);
    person.does(Place::Top, Action::Command);
    person.types("frobnicate");
    person.does(Place::List, Action::Confirm);
    person.reads(" completes those that there are");
    person.does(Place::Everywhere, Action::Mouse);
    person.reads(" gives the mouse back");
    person.does(Place::Top, Action::Keys);
    person.reads("Question (F");
}

#[test]
fn a_conversation_names_the_keys_of_this_person() {
    let mut person = with_other_keys(morning());
    person.opens(&journal());
    person.reads(" goes to the question");
    person.types("y");
    person.does(Place::Prompt, Action::Confirm);
    person.reads(" again sends \"y\" as a prompt");
    person.does(Place::Prompt, Action::Cancel);
    person.reads(" brings it back");
    person.changed(json!({"removed": {"interactions": ["1-5"]}, "sessions": [
        session("fix-auth", json!({"turn": {"state": "working", "since": NOW - 60_000}}))]}));
    person.does(Place::Prompt, Action::Cancel);
    person.reads(" again cancels the turn");
    person.does(Place::Prompt, Action::Keys);
    person.reads(" goes back to the prompt)");
    person.does(Place::Help, Action::Back);
    person.types("commit");
    person.does(Place::Prompt, Action::Steer);
    person.result(Link::Errand(2), "_session/steering", json!({"outcome": "promptRequired"}));
    person.reads("the turn is over: F");
    person.does(Place::Prompt, Action::Steer);
    person.result(Link::Errand(3), "_session/steering", json!({"outcome": "failed"}));
    person.reads("did not take the message: F");
    person.does(Place::Prompt, Action::Confirm);
    person.changed(json!({"sessions": [session("fix-auth", json!({"queued": 1}))]}));
    person.reads(" changes it)");
    person.changed(json!({"sessions": [session("fix-auth", json!({}))]}));
    person.does(Place::Prompt, Action::Cancel);
    person.reads(" leaves");
    person.does(Place::Prompt, Action::Blocks);
    person.does(Place::Blocks, Action::Search);
    person.types("nowhere");
    person.does(Place::Line, Action::Confirm);
    person.reads(" looks below");
}

#[test]
fn the_way_in_a_long_conversation_names_the_keys_of_this_person() {
    let said = |n: usize| {
        json!({"params": {"sessionId": ID, "update": {"sessionUpdate": "agent_message_chunk",
            "messageId": format!("m{n}"), "content": {"type": "text", "text": "word\n\n".repeat(90)}}}})
    };
    let mut person = with_other_keys(morning());
    person.changed(json!({"removed": {"interactions": ["1-5"]}}));
    let key = SessionRowKey { agent: "claude".into(), session_id: ID.into() };
    let effects = person.state.open_chat(key, 1000, true);
    person.take(effects);
    let link = person.chat_link();
    person.result(link, method::SESSION_ATTACH, json!({"session": morning()["sessions"][0]}));
    person.reads("reading");
    person.hears(link, 701, &[said(0), said(1), said(2)]);
    let caught_up = json!({"sessionId": ID, "seq": 708});
    person.event(Event::Line(link, build::notification(method::CAUGHT_UP, &caught_up)));
    person.sees(200, 60);
    person.does(Place::Everywhere, Action::PageUp);
    person.reads(" more: F");
    (0..3).for_each(|_| {
        person.does(Place::Everywhere, Action::PageUp);
        person.sees(200, 60);
    });
    person.reads("below: F");
    person.refuses(Link::Fleet, method::SESSION_LOG, "no");
    person.does(Place::Prompt, Action::Blocks);
    person.does(Place::Blocks, Action::Search);
    person.types("nowhere");
    person.does(Place::Line, Action::Confirm);
    person.reads(" ends it");
}

#[test]
fn a_conversation_that_begins_names_the_keys_of_this_person() {
    let mut person = with_other_keys(morning());
    person.types("x");
    person.does(Place::Top, Action::New);
    person.reads("new with claude");
    person.does(Place::Line, Action::Confirm);
    person.reads(" sends it as soon as the session is there");
    person.refuses(Link::Errand(2), "session/new", "no");
    person.reads(" tries it again");
    person.does(Place::Prompt, Action::Confirm);
    person.result(Link::Errand(3), "session/new", json!({"sessionId": "s-new"}));
    let link = Link::Chat(1);
    person.result(link, method::SESSION_ATTACH, json!({"session": morning()["sessions"][0]}));
    let caught_up = json!({"sessionId": "s-new", "seq": 0});
    person.event(Event::Line(link, build::notification(method::CAUGHT_UP, &caught_up)));
    person.reads("nothing was said yet: ");

    let mut person = Person::who_opens(
        Opens::New { agent: "claude".into() },
        Theme { is_coloured: true, is_unicode: true },
    );
    let mut all = morning();
    all["keys"] = json!(other_keys());
    person.result(Link::Fleet, method::WATCH, all);
    person.types("one");
    person.does(Place::Prompt, Action::Confirm);
    person.does(Place::Prompt, Action::Detach);
    person.reads(" again leaves");
}
