//! Footers and sentences on the screens name keys by what they do there.

use super::chats::{ID, journal};
use super::*;

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
