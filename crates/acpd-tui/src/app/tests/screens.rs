use super::*;

const SIZES: [(u16, u16); 4] = [(80, 24), (100, 30), (40, 10), (200, 60)];

/// Draws a screen in terminals of four sizes, and returns that of 80 columns. No row is too wide.
pub(super) fn everywhere(person: &mut Person) -> String {
    let screens = SIZES.map(|(width, height)| {
        let seen = person.sees(width, height);
        assert!(is_harmless(&seen), "{seen:?}");
        for row in seen.lines() {
            assert!(unicode_width::UnicodeWidthStr::width(row) <= usize::from(width), "{row}");
        }
        seen
    });
    screens.into_iter().next().expect("a screen")
}

#[test]
fn what_needs_a_person_comes_first() {
    insta::assert_snapshot!(everywhere(&mut in_the_morning()));
}

#[test]
fn a_question_that_has_the_keys_shows_its_choices() {
    let mut person = in_the_morning();
    person.sees(80, 24);
    person.types("a2");
    insta::assert_snapshot!(everywhere(&mut person));
}

#[test]
fn without_sessions_it_says_how_to_begin() {
    let mut person = Person::start();
    let nothing = json!({"sessions": [], "agents": [], "interactions": []});
    person.result(LinkId::Fleet, method::WATCH, nothing);
    insta::assert_snapshot!(person.sees(80, 24));
}

#[test]
fn a_daemon_that_is_away_is_told_after_a_second() {
    let mut person = in_the_morning();
    person.event(AppEvent::Lost(LinkId::Fleet));
    assert!(!person.sees(80, 24).contains("not running"));
    person.state.now += 1001;
    assert!(person.sees(80, 24).contains("acpd is not running, reconnecting"));
    person.event(AppEvent::Back(LinkId::Fleet));
    assert!(!person.sees(80, 24).contains("not running"));
    assert_eq!(person.said(method::WATCH).len(), 1, "everything is asked for again");
    person.event(AppEvent::Ended(LinkId::Fleet, "acpd closed the connection".into()));
    assert!(person.sees(80, 24).contains("acpd closed the connection"));
}

#[test]
fn five_hundred_sessions_scroll_with_the_selected_one() {
    let mut person = Person::start();
    let sessions: Vec<Value> = (0..500)
        .map(|n| session(&format!("s{n:03}"), json!({"updated": NOW - n * 60_000})))
        .collect();
    let all = json!({"sessions": sessions, "agents": [], "interactions": []});
    person.result(LinkId::Fleet, method::WATCH, all);
    person.sees(80, 24);
    (0..40).for_each(|_| person.press(KeyCode::Down));
    insta::assert_snapshot!(person.sees(80, 24));
    person.press(KeyCode::End);
    assert!(person.sees(80, 24).contains("s499"));
    person.press(KeyCode::Home);
    assert!(person.sees(80, 24).contains("RECENT"));
}

#[test]
fn hostile_words_stay_in_their_place() {
    let evil = "\u{1b}[2J\u{1b}]52;c;ZXZpbA==\u{7}\u{202e}NEEDS YOU\n\n\n ? fake";
    let mut asked = asks("1-5", "x", &[&format!("ls\n{evil}\n{}", "日本語".repeat(60))]);
    asked["name"] = json!(evil);
    asked["agent"] = json!(evil);
    asked["question"]["options"][0]["name"] = json!(evil);
    asked["question"]["shown"]["title"] = json!(evil);
    let row = session(
        "x",
        json!({"name": evil, "agent": evil, "cwd": evil, "title": evil,
        "reason": evil, "hint": evil, "state": "blocked"}),
    );
    let work = working(evil, 3, json!({"kind": "writing", "text": evil, "since": NOW}));
    let mut person = Person::start();
    let all = json!({"sessions": [row, work], "agents": [agent(evil, json!({}))],
        "interactions": [asked]});
    person.result(LinkId::Fleet, method::WATCH, all);
    insta::assert_snapshot!(everywhere(&mut person));
    person.types("a");
    assert!(is_harmless(&person.sees(80, 24)));
    person.press(KeyCode::Esc);
    person.press(KeyCode::Down);
    assert!(is_harmless(&person.sees(40, 10)));
}

#[test]
fn the_page_of_keys_is_written_from_the_table() {
    let mut person = in_the_morning();
    person.types("?");
    insta::assert_snapshot!(everywhere(&mut person));
    person.press(KeyCode::Esc);
    assert!(person.sees(80, 24).contains("NEEDS YOU"));
}

#[test]
fn a_terminal_with_hardly_any_room_is_told_of_the_plain_conversation() {
    let mut person = in_the_morning();
    let seen = person.sees(23, 10);
    assert!(seen.starts_with("too small:\nacpctl chat --plain"), "{seen}");
    assert!(person.sees(24, 6).contains(" acpd · "));
    let mut person = Person::with(Theme { is_coloured: true, is_unicode: false });
    person.result(LinkId::Fleet, method::WATCH, morning());
    assert!(person.sees(80, 24).contains("acpctl chat --plain"));
}

#[test]
fn without_unicode_there_is_only_ascii() {
    let mut person = Person::with(Theme { is_coloured: false, is_unicode: false });
    person.result(LinkId::Fleet, method::WATCH, morning());
    let seen = person.sees(80, 24);
    // An agent's own words stay as they are.
    let own = seen.replace("The second migration also…", "");
    assert!(own.is_ascii(), "{own}");
}
