use proptest::prelude::*;

use super::screens::everywhere;
use super::*;

#[test]
fn a_question_is_answered_in_place() {
    let mut person = in_the_morning();
    person.sees(80, 24);
    person.press(KeyCode::Tab);
    person.types("1");
    assert!(person.said(method::INTERACTION_ANSWER).is_empty());
    person.sees(80, 24);
    person.press(KeyCode::Enter);
    let said = person.said(method::INTERACTION_ANSWER);
    assert_eq!(answer_of(&said[0]), &json!({"kind": "option", "option": "allow_once"}));
    assert_eq!(said[0]["params"]["by"], json!({"name": "acpctl", "place": "pts/3"}));
    person.changed(json!({"removed": {"interactions": ["1-5"]}}));
    assert!(!person.state.top.card.has_keys(), "the next question is another one");
    assert!(person.sees(80, 24).contains("Which licence?"));
}

#[test]
fn saying_why_stays_with_the_session_whose_question_was_denied() {
    let mut person = in_the_morning();
    person.sees(80, 24);
    person.types("a4");
    person.press(KeyCode::Enter);
    let said = person.said(method::INTERACTION_ANSWER);
    assert_eq!(answer_of(&said[0])["option"], "reject_once");
    person.changed(json!({"removed": {"interactions": ["1-5"]}}));
    person.types("not on a Friday");
    let seen = person.sees(80, 24);
    assert!(seen.contains("prompt fix-auth > not on a Friday"), "{seen}");
    let selected = person.state.selected_session().map(|session| session.session_id.raw());
    assert_eq!(selected, Some("fix-auth-0123456789"));
}

#[test]
fn a_prompt_is_sent_without_leaving_the_list() {
    let mut person = in_the_morning();
    person.sees(80, 24);
    person.types("/parser");
    person.press(KeyCode::Enter);
    person.types("pthen commit");
    assert!(person.sees(80, 24).contains("prompt parser > then commit"));
    person.press(KeyCode::Enter);
    let said = person.said("session/prompt");
    assert_eq!(said[0]["params"]["prompt"][0]["text"], "then commit");
    assert_eq!(said[0]["params"]["sessionId"], "parser-0123456789");
    assert_eq!(person.said("initialize")[0]["params"]["_meta"]["_acpd"]["agent"], "claude");
    let link = LinkId::Errand(1);
    assert!(person.effects.contains(&Effect::Open(link)));
    let shown = person.result(link, method::SESSION_SHOW, session("parser", json!({})));
    assert_eq!(shown["params"]["agent"], "claude");
    assert!(person.effects.contains(&Effect::Leave(link)));
    assert!(person.sees(80, 24).contains("sent"));
}

#[test]
fn a_session_begins_with_the_agent_of_choice() {
    let mut person = in_the_morning();
    person.types("n");
    let seen = person.sees(80, 24);
    assert!(seen.contains(" new with claude in ~/src/api >"), "{seen}");
    person.press(KeyCode::Tab);
    assert!(person.sees(80, 24).contains("new with copilot"));
    person.types("say hello");
    person.press(KeyCode::Enter);
    let new = &person.said("session/new")[0];
    assert_eq!(new["params"]["cwd"], "/home/ada/src/api");
}

#[test]
fn a_turn_is_cancelled_at_the_second_press() {
    let mut person = in_the_morning();
    person.types("/parser");
    person.press(KeyCode::Enter);
    person.types("c");
    assert!(person.said(method::SESSION_CANCEL).is_empty());
    assert!(person.sees(80, 24).contains("c again cancels the turn of parser"));
    person.types("c");
    let said = person.said(method::SESSION_CANCEL);
    assert_ne!(said[0]["params"]["turnOnly"], true);
    person.types("c");
    person.state.now += 4000;
    person.types("c");
    assert!(person.said(method::SESSION_CANCEL).is_empty(), "the two presses were far apart");
}

/// A form with a field of each kind.
fn form(id: &str) -> Value {
    let schema = json!({"type": "object", "title": "Release", "required": ["branch", "count"],
        "properties": {
            "branch": {"type": "string", "title": "Branch", "enum": ["main", "next"]},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["fast", "safe"]}},
            "count": {"type": "integer", "minimum": 1, "description": "How many"},
            "note": {"type": "string"},
            "really": {"type": "boolean", "default": false}}});
    json!({"id": id, "agent": "claude", "sessionId": "fix-auth-0123456789", "name": "fix-auth",
        "cwd": "/home/ada/src/api", "at": NOW - 120_000, "question": {"kind": "form",
            "message": "How shall I release it?", "schema": schema,
            "order": ["branch", "tags", "count", "note", "really"]}})
}

/// A person whose first question is that form.
fn asked_to_fill_in() -> Person {
    let mut person = in_the_morning();
    person.changed(json!({"removed": {"interactions": ["1-5"]}, "interactions": [form("1-7")]}));
    person.sees(100, 40);
    person.press(KeyCode::Home);
    while person.state.top.card.id() != Some(&"1-7".into()) {
        person.press(KeyCode::Down);
    }
    person.sees(100, 40);
    person
}

#[test]
fn a_form_is_filled_in_field_by_field_and_sent_on_purpose() {
    let mut person = asked_to_fill_in();
    person.press(KeyCode::Tab);
    insta::assert_snapshot!(everywhere(&mut person));
    let enter = |person: &mut Person| person.press(KeyCode::Enter);
    // Nothing is filled in yet, and the missing field is shown.
    (0..2).for_each(|_| person.press(KeyCode::Up));
    enter(&mut person);
    assert!(person.sees(100, 40).contains("`branch` is missing"));
    person.types("2");
    enter(&mut person);
    person.types("3");
    enter(&mut person);
    person.types("4");
    enter(&mut person);
    person.types("3");
    enter(&mut person);
    person.types("5");
    enter(&mut person);
    person.types("none");
    enter(&mut person);
    assert!(person.sees(100, 40).contains("`none` is no whole number"));
    (0..4).for_each(|_| person.press(KeyCode::Backspace));
    person.event(AppEvent::Paste("3".into()));
    enter(&mut person);
    person.types("6");
    enter(&mut person);
    person.types("q j 1");
    enter(&mut person);
    assert!(person.said(method::INTERACTION_ANSWER).is_empty(), "no field is an answer");
    insta::assert_snapshot!(person.sees(100, 40));
    // Behind the fields: yes, no, send, decline.
    person.types("8jj");
    person.press(KeyCode::Up);
    enter(&mut person);
    let said = person.said(method::INTERACTION_ANSWER);
    let content = json!({"branch": "next", "tags": ["safe"], "count": 3, "note": "q j 1",
        "really": false});
    assert_eq!(answer_of(&said[0]), &json!({"kind": "accept", "content": content}));
}

#[test]
fn m7_a_form_is_sent_after_all_of_its_fields_were_on_the_screen() {
    let mut asked = form("1-7");
    asked["question"]["schema"]["required"] = json!([]);
    let mut person = in_the_morning();
    person.changed(json!({"removed": {"interactions": ["1-5", "1-6"]}, "interactions": [asked]}));
    person.sees(80, 16);
    person.types("a");
    person.sees(80, 16);
    // The last but one, without a look at what is above.
    person.press(KeyCode::Up);
    person.press(KeyCode::Up);
    person.sees(80, 16);
    person.press(KeyCode::PageDown);
    person.sees(80, 16);
    person.press(KeyCode::Enter);
    assert!(person.said(method::INTERACTION_ANSWER).is_empty());
    assert!(person.sees(80, 16).contains("see all fields first"));
    (0..9).for_each(|_| {
        person.press(KeyCode::Up);
        person.sees(80, 16);
    });
    (0..8).for_each(|_| person.press(KeyCode::Down));
    person.press(KeyCode::Enter);
    let seen = person.sees(80, 16);
    assert_eq!(person.said(method::INTERACTION_ANSWER).len(), 1, "{seen}");
}

#[test]
fn a_form_that_is_left_halfway_is_open_and_what_is_typed_in_it_goes_nowhere_else() {
    let mut person = asked_to_fill_in();
    person.types("a5");
    person.press(KeyCode::Enter);
    person.types("12");
    person.press(KeyCode::Esc);
    assert!(person.sees(100, 40).contains("> (type it)"), "it is not kept");
    person.press(KeyCode::Esc);
    person.press(KeyCode::Enter);
    assert!(person.said(method::INTERACTION_ANSWER).is_empty());
}

/// Something that happens at random.
#[derive(Debug, Clone)]
enum Something {
    Key(KeyCode, KeyModifiers),
    Paste(String),
    Asked(u8),
    Form(u8),
    Gone(u8),
    Drawn(u16, u16),
    Away(bool),
    Later(u64),
    Files(Vec<String>),
    Edited(Option<String>),
}

fn something() -> impl Strategy<Value = Something> {
    let key = prop_oneof![
        4 => prop::sample::select(vec!['a', 'p', 'n', 'c', '1', '2', '4', 'j', 'k', '/', '?', 'G', ' ', 'z', ']', 'y', 'q', 'r', 'v', 'x', '@', 'e'])
            .prop_map(KeyCode::Char),
        3 => prop::sample::select(vec![KeyCode::Enter, KeyCode::Tab, KeyCode::Esc, KeyCode::Up,
            KeyCode::Down, KeyCode::PageDown, KeyCode::Backspace, KeyCode::End]),
        1 => any::<char>().prop_map(KeyCode::Char),
    ];
    let modifiers = prop_oneof![
        6 => Just(KeyModifiers::NONE),
        1 => Just(KeyModifiers::CONTROL),
        1 => Just(KeyModifiers::ALT),
    ];
    prop_oneof![
        12 => (key, modifiers).prop_map(|(code, modifiers)| Something::Key(code, modifiers)),
        1 => ".{0,20}".prop_map(Something::Paste),
        1 => (0..4_u8).prop_map(Something::Asked),
        1 => (0..4_u8).prop_map(Something::Form),
        1 => (0..4_u8).prop_map(Something::Gone),
        5 => (1..120_u16, 1..40_u16).prop_map(|(width, height)| Something::Drawn(width, height)),
        1 => any::<bool>().prop_map(Something::Away),
        1 => (0..10_000_u64).prop_map(Something::Later),
        1 => prop::collection::vec("[a-q/.]{1,9}", 0..4).prop_map(Something::Files),
        1 => prop::option::of(".{0,20}").prop_map(Something::Edited),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// In any order of events: no panic; and an answer only after the question was drawn, got the keys,
    /// something was chosen in it, and Enter was pressed, in this order, with no other question in between.
    #[test]
    fn no_answer_without_focus_a_choice_and_enter(all in prop::collection::vec(something(), 1..80)) {
        let mut person = in_the_morning();
        let mut steps: Option<(Untrusted, u8)> = None;
        for one in all {
            let had = person.state.card().id().cloned();
            let had = had.filter(|_| person.state.card().has_keys());
            let is_enter = matches!(one, Something::Key(KeyCode::Enter, _));
            let chooses = matches!(one, Something::Key(KeyCode::Char('1'..='9' | 'j' | 'k')
                | KeyCode::Up | KeyCode::Down, _));
            match one {
                Something::Key(code, modifiers) => person.event(AppEvent::Key(KeyEvent::new(code, modifiers))),
                Something::Paste(text) => person.event(AppEvent::Paste(text)),
                Something::Asked(n) => {
                    let asked = asks(&format!("2-{n}"), "fix-auth", &["make"]);
                    person.changed(json!({"interactions": [asked]}));
                }
                Something::Form(n) => {
                    person.changed(json!({"interactions": [form(&format!("2-{n}"))]}));
                }
                Something::Gone(n) => {
                    person.changed(json!({"removed": {"interactions": [format!("2-{n}"), "1-5"]}}));
                }
                Something::Drawn(width, height) => drop(person.sees(width, height)),
                Something::Away(true) => person.event(AppEvent::Lost(LinkId::Fleet)),
                Something::Away(false) => person.event(AppEvent::Back(LinkId::Fleet)),
                Something::Later(ms) => person.state.now += ms,
                Something::Files(paths) => {
                    person.event(AppEvent::Files { directory: "/home/ada/src/api".into(), paths });
                }
                Something::Edited(text) => person.event(AppEvent::Edited(text.ok_or("failed".into()))),
            }
            for said in person.said(method::INTERACTION_ANSWER) {
                let id = Untrusted::from(said["params"]["id"].as_str().unwrap());
                prop_assert!(is_enter && steps == Some((id, 2)), "{said} after {steps:?}");
            }
            let card = &*person.state.card();
            steps = match (card.id().cloned().filter(|_| card.has_keys()), steps.take(), had) {
                (Some(now), Some((before, step)), _) if now == before => {
                    Some((now, if chooses { 2 } else { step }))
                }
                (Some(now), _, had) => {
                    prop_assert!(had.as_ref() != Some(&now) || chooses || had.is_some());
                    Some((now, 1))
                }
                (None, ..) => None,
            };
        }
    }
}
