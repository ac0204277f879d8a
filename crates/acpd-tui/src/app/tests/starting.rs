use super::screens::everywhere;
use super::*;

const STOPPED: &str = "agent `claude` was stopped by a person";
const START: &str = "`acpctl agent start claude` starts it again";

/// A person who has asked for a new conversation on the command line.
fn who_begins() -> Person {
    let theme = Theme { is_coloured: true, is_unicode: true };
    let mut person = Person::who_opens(Opens::New { agent: "claude".into() }, theme);
    person.result(LinkId::Fleet, method::WATCH, morning());
    person
}

fn prompts(person: &mut Person) -> Vec<String> {
    let text = |said: &Value| said["params"]["prompt"][0]["text"].as_str().unwrap().to_owned();
    person.said("session/prompt").iter().map(text).collect()
}

#[test]
fn h1_a_new_conversation_is_there_from_the_first_key_while_its_agent_starts() {
    let mut person = who_begins();
    person.state.now += 3000;
    person.types("cc");
    person.press(KeyCode::Backspace);
    person.press(KeyCode::Backspace);
    person.types("success");
    assert!(person.said(method::SESSION_CANCEL).is_empty(), "no key reaches the list");
    insta::assert_snapshot!(everywhere(&mut person));
    person.press(KeyCode::Enter);
    person.types("then commit");
    person.press(KeyCode::Enter);
    person.types("half a thought");
    assert!(prompts(&mut person).is_empty());
    insta::assert_snapshot!(person.sees(80, 24));

    person.result(LinkId::Errand(2), "session/new", json!({"sessionId": "s-new"}));
    assert_eq!(prompts(&mut person), ["success"]);
    // The second one follows when acpd has the first.
    let shown = person.result(LinkId::Errand(3), method::SESSION_SHOW, session("s", json!({})));
    assert_eq!(shown["params"]["agent"], "claude");
    assert_eq!(prompts(&mut person), ["then commit"]);
    let seen = person.sees(80, 24);
    assert!(seen.contains(" half a thought") && !seen.contains("starting"), "{seen}");
}

#[test]
fn h1_what_waits_for_the_session_can_be_taken_back_and_is_not_left_behind_unsaid() {
    let mut person = who_begins();
    person.types("one");
    person.press(KeyCode::Enter);
    person.ctrl('q');
    assert!(person.sees(80, 24).contains("\n one"));
    person.press(KeyCode::Enter);
    person.ctrl('d');
    assert!(person.sees(80, 24).contains("nothing was sent; ^D again leaves"));
    assert!(!person.effects.contains(&Effect::Quit));
    person.ctrl('d');
    assert!(person.effects.contains(&Effect::Quit));
}

#[test]
fn h2_a_session_that_does_not_begin_ends_the_program_with_the_reason() {
    for method in ["session/new", "initialize"] {
        let mut person = who_begins();
        person.types("success");
        person.press(KeyCode::Enter);
        person.types("and more");
        person.refuses_with_hint(LinkId::Errand(2), method, STOPPED, START);
        assert!(person.effects.contains(&Effect::Quit));
        let not_begun = person.state.not_begun.as_ref().unwrap();
        assert_eq!(not_begun.message, STOPPED);
        assert_eq!(person.state.unsent().collect::<Vec<_>>(), ["success\nand more"]);
    }
}

#[test]
fn h2_from_the_list_the_conversation_stays_with_the_reason_and_enter_tries_again() {
    let mut person = in_the_morning();
    person.types("nsay hello");
    person.press(KeyCode::Enter);
    person.refuses_with_hint(LinkId::Errand(2), "session/new", STOPPED, START);
    person.state.now += 3_600_000;
    insta::assert_snapshot!(everywhere(&mut person));
    person.press(KeyCode::Enter);
    assert!(!person.sees(80, 24).contains("was stopped"));
    person.result(LinkId::Errand(3), "session/new", json!({"sessionId": "s-new"}));
    assert_eq!(prompts(&mut person), ["say hello"]);
}

#[test]
fn h2_a_prompt_that_is_refused_is_a_draft_again_below_the_reason_and_the_way_out() {
    let mut person = in_the_morning();
    let key = SessionRowKey { agent: "claude".into(), session_id: "fix-auth-0123456789".into() };
    person.state.open_chat(key, 0, true);
    person.takes_effects();
    person.changed(json!({"removed": {"interactions": ["1-5"]}}));
    for (link, method) in [(2, "session/prompt"), (3, "initialize")] {
        person.types("hi");
        person.press(KeyCode::Enter);
        person.refuses_with_hint(LinkId::Errand(link), method, STOPPED, START);
        person.state.now += 3_600_000;
        person.press(KeyCode::PageUp);
        let seen = person.sees(80, 24);
        assert!(seen.contains(STOPPED) && seen.contains(START) && seen.contains("\n hi"), "{seen}");
        person.press(KeyCode::Backspace);
        assert!(!person.sees(80, 24).contains("was stopped"));
        person.press(KeyCode::Backspace);
    }
}

#[test]
fn drafts_that_are_left_at_the_end_are_told() {
    let mut person = who_begins();
    person.types("half a thought");
    person.ctrl('d');
    assert!(person.effects.contains(&Effect::Quit));
    let unsent: Vec<String> = person.state.unsent().collect();
    assert_eq!(unsent, ["half a thought"]);
    let mut person = in_the_morning();
    person.opens(&[]);
    person.types("half a thought");
    person.ctrl('d');
    person.types("q");
    assert_eq!(person.state.unsent().count(), 1);
}
