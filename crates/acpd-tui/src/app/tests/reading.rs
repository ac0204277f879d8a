//! Reading of a conversation: search, memory, copies, the mouse.

use super::chats::{ID, in_chat, journal};
use super::*;

/// Bytes of what each of the long calls prints.
const PRINTED: usize = 2000;

/// A line of a journal of turns: the beginning, a prompt, and a call with a long body.
fn line(seq: u64) -> Value {
    let update = match seq % 3 {
        1 => {
            return json!({"method": method::TURN_STARTED,
                "params": {"sessionId": ID, "turn": seq / 3 + 1, "at": seq}});
        }
        2 => json!({"sessionUpdate": "user_message_chunk",
            "content": {"type": "text", "text": format!("prompt {seq}")}}),
        _ => {
            let printed = format!("needle {seq}\n{}", "x".repeat(PRINTED));
            json!({"sessionUpdate": "tool_call", "toolCallId": format!("c{seq}"),
                "kind": "execute", "title": format!("make {seq}"), "status": "completed",
                "rawInput": {"command": format!("make {seq}")},
                "content": [{"type": "content", "content": {"type": "text", "text": printed}}]})
        }
    };
    json!({"method": "session/update", "params": {"sessionId": ID, "update": update}})
}

/// Answers requests for the journal as the daemon does, until there are none. Returns how many there were.
fn serve_log(person: &mut Person, last: u64) -> usize {
    let mut pages = 0;
    loop {
        let requests = person.said(method::SESSION_LOG);
        if requests.is_empty() {
            return pages;
        }
        for request in requests {
            let number = |name: &str| request["params"][name].as_u64().unwrap();
            let (after, limit) = (number("after"), number("limit"));
            let end = (after + limit).min(last);
            let entry = |seq: u64| {
                let mut line = line(seq);
                line["jsonrpc"] = json!("2.0");
                json!({"seq": seq, "line": line})
            };
            let entries: Vec<Value> = (after + 1..=end).map(entry).collect();
            let mut page = json!({"sessionId": ID, "entries": entries});
            if end < last {
                page["next"] = json!(end);
            }
            let id = request["id"].as_u64().unwrap();
            let line = build::response(&id.into(), &page);
            person.event(AppEvent::Line(LinkId::Fleet, line));
            pages += 1;
        }
        person.sees(80, 24);
    }
}

/// A person at the live end of a journal of `last` lines.
fn at_the_end_of(last: u64) -> Person {
    let mut person = in_the_morning();
    person.changed(json!({"removed": {"interactions": ["1-5"]}}));
    let after = last - 300;
    let lines: Vec<Value> = (after + 1..=last).map(line).collect();
    person.opens_after(after, &lines, json!({"protocolVersion": 1}));
    person
}

#[test]
fn turns_far_above_the_screen_are_dropped_and_read_again() {
    const LAST: u64 = 99_999;
    let mut person = at_the_end_of(LAST);
    let turns = |person: &Person| person.state.chat.as_ref().unwrap().turns();
    assert!(person.sees(80, 24).contains("make 99999"));
    person.press(KeyCode::Tab);
    for _ in 0..3 {
        person.types("g");
        person.sees(80, 24);
        assert_eq!(serve_log(&mut person, LAST), 1);
    }
    assert!(turns(&person) > 300, "turns below the screen are kept");

    person.types("G");
    assert!(person.sees(80, 24).contains("$ make 99999"));
    let kept = turns(&person);
    assert!((100..120).contains(&kept), "{kept} turns");
    assert!(person.said(method::SESSION_LOG).is_empty(), "the rows above the screen are enough");

    person.types("g");
    person.sees(80, 24);
    assert_eq!(serve_log(&mut person, LAST), 1);
    assert!(turns(&person) > kept);
    person.types("[");
    assert!(person.sees(80, 24).contains(&format!("> prompt {}", LAST - 3 * kept as u64 - 1)));
}

#[test]
fn u18_line_with_a_hit_is_on_the_screen() {
    let paragraphs: Vec<String> = (0..200).map(|at| format!("paragraph {at}!")).collect();
    let said = paragraphs.join("\n\n");
    let update = |update: Value| json!({"params": {"sessionId": ID, "update": update}});
    let lines = [
        update(
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": said}}),
        ),
        update(
            json!({"sessionUpdate": "tool_call", "toolCallId": "z", "title": "more", "status": "pending"}),
        ),
    ];
    for (place, next) in [(0, 1), (90, 89), (199, 198)] {
        let (mut person, link) = in_chat();
        person.hears(link, 100, &lines);
        person.press(KeyCode::Tab);
        person.types(&format!("/paragraph {place}!"));
        person.press(KeyCode::Enter);
        let seen = person.sees(80, 24);
        assert!(seen.contains(&format!("paragraph {next}!")), "{place}: {seen}");
    }
}

#[test]
fn words_are_found_in_older_pages_and_the_search_can_be_ended() {
    let mut person = at_the_end_of(4998);
    person.sees(80, 24);
    serve_log(&mut person, 4998);
    person.press(KeyCode::Tab);
    person.types("/Needle 1200");
    assert!(person.sees(80, 24).contains("/ Needle 1200"));
    person.press(KeyCode::Enter);
    assert!(person.sees(80, 24).contains("searching, line "), "{}", person.sees(80, 24));
    serve_log(&mut person, 4998);
    let seen = person.sees(80, 24);
    assert!(seen.contains("needle 1200") && seen.contains("▌"), "{seen}");
    // On to the next one above, which needs lines again; Esc ends the wait, and the place stays.
    person.types("/nowhere");
    person.press(KeyCode::Enter);
    assert!(person.sees(80, 24).contains("searching"));
    person.press(KeyCode::Esc);
    let seen = person.sees(80, 24);
    assert!(!seen.contains("searching") && seen.contains("needle 1200"), "{seen}");
    serve_log(&mut person, 4998);
    assert!(!person.sees(80, 24).contains("nothing above"), "an ended search says nothing");
    // Downwards from there.
    person.types("/make 1");
    person.press(KeyCode::Enter);
    let older = person.sees(80, 24);
    assert!(older.contains("$ make 1197"), "{older}");
    person.types("N");
    assert!(person.sees(80, 24).contains("needle 1200"));
}

#[test]
fn a_block_is_copied_as_markdown_and_opened_in_the_pager() {
    let (mut person, _) = in_chat();
    person.sees(80, 24);
    person.press(KeyCode::Tab);
    person.types("gYo");
    let quoted = "> Why does login fail?\n> Fix it and add a test.\n";
    assert!(person.effects.contains(&Effect::Copy(quoted.into())), "{:?}", person.effects);
    let whole = "> Why does login fail?\n  Fix it and add a test.\n";
    assert!(person.effects.contains(&Effect::Page(whole.into())), "{:?}", person.effects);
}

#[test]
fn what_an_agent_wrote_reaches_the_pager_escaped() {
    let (mut person, link) = in_chat();
    let evil = "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J";
    for (seq, kind) in (journal().len() as u64 + 1..).zip(["agent_message_chunk", "tool_call"]) {
        let update = json!({"sessionUpdate": kind, "toolCallId": "x", "title": evil,
            "rawInput": {"command": evil}, "content": {"type": "text", "text": evil}});
        person.hears(link, seq, &[json!({"params": {"sessionId": ID, "update": update}})]);
    }
    person.sees(80, 24);
    person.press(KeyCode::Tab);
    person.types("oko");
    let paged = |effect: &Effect| match effect {
        Effect::Page(text) => Some(text.clone()),
        _ => None,
    };
    let paged: Vec<String> = person.effects.iter().filter_map(paged).collect();
    assert_eq!(paged.len(), 2);
    assert!(paged.iter().all(|text| text.contains("52;c;") && is_harmless(text)), "{paged:?}");
}

#[test]
fn a_turn_is_steered_and_an_agent_restarted_from_the_list() {
    let mut person = in_the_morning();
    person.types("/parser");
    person.press(KeyCode::Enter);
    person.types("pthe red one");
    person.ctrl('s');
    let said = person.said("_session/steering").remove(0);
    assert_eq!(said["params"]["prompt"][0]["text"], "the red one");
    assert_eq!(said["params"]["sessionId"], "parser-0123456789");
    person.types("r");
    assert!(person.said(method::AGENT_RESTART).is_empty());
    assert!(
        person.sees(80, 24).contains("r again restarts claude; 4 turns are interrupted"),
        "{}",
        person.sees(80, 24)
    );
    person.types("c");
    person.types("r");
    assert!(person.said(method::AGENT_RESTART).is_empty(), "another key was between them");
    person.types("r");
    assert_eq!(person.said(method::AGENT_RESTART)[0]["params"]["agent"], "claude");
}
