use acpd_api::SessionRowKey;

use super::screens::everywhere;
use super::*;

pub(super) const ID: &str = "fix-auth-0123456789";

/// The journal of a short conversation.
pub(super) fn journal() -> Vec<Value> {
    let update = |update: Value| json!({"sessionId": ID, "update": update});
    let said = |kind: &str, text: &str| {
        update(json!({"sessionUpdate": kind, "messageId": kind,
            "content": {"type": "text", "text": text}}))
    };
    let call = |id: &str, kind: &str, title: &str, status: &str, more: Value| {
        let mut call = json!({"sessionUpdate": "tool_call", "toolCallId": id, "kind": kind,
            "title": title, "status": status});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        update(call)
    };
    let edit = json!({"content": [{"type": "diff", "path": "/home/ada/src/api/src/cookie.rs",
        "oldText": "let mut c = new();\nc.set_secure(true);\n",
        "newText": "let mut c = new();\nc.set_secure(cfg.tls);\n"}]});
    vec![
        json!({"method": method::TURN_STARTED,
            "params": {"sessionId": ID, "turn": 1, "at": NOW - 60_000}}),
        json!({"params": said("user_message_chunk", "Why does login fail?\nFix it and add a test.")}),
        json!({"params": said("agent_thought_chunk", "The cookie, perhaps.")}),
        json!({"params": call("r1", "read", "Read cookie.rs", "completed", json!({}))}),
        json!({"params": call("r2", "read", "Read login.rs", "completed", json!({}))}),
        json!({"params": call("e1", "edit", "Edit cookie.rs", "completed", edit)}),
        json!({"params": said("agent_message_chunk",
            "The cookie was **always** marked secure:\n\n1. `set_secure` follows the configuration\n2. a test\n")}),
        json!({"params": call("c1", "execute", "cargo test login", "in_progress",
            json!({"rawInput": {"command": "cargo test login"}}))}),
    ]
}

impl Person {
    /// Opens the conversation of the first row and reads this much of its journal.
    pub(super) fn opens(&mut self, lines: &[Value]) -> LinkId {
        self.opens_with(lines, json!({"protocolVersion": 1}))
    }

    /// Like [`Person::opens`], with the abilities that the agent announces.
    pub(super) fn opens_with(&mut self, lines: &[Value], hello: Value) -> LinkId {
        self.opens_after(0, lines, hello)
    }

    /// Like [`Person::opens_with`], with only the last lines of a journal.
    pub(super) fn opens_after(&mut self, after: u64, lines: &[Value], hello: Value) -> LinkId {
        let seq = after + lines.len() as u64;
        let key = SessionRowKey { agent: "claude".into(), session_id: ID.into() };
        self.state.open_chat(key, seq, true);
        self.takes_effects();
        let link = self.chat_link();
        self.result(link, "initialize", hello);
        let attach = self.said(method::SESSION_ATTACH).pop().expect("it is attached");
        assert_eq!(attach["params"]["after"], after, "only the last lines are read at first");
        self.sent.push(attach);
        let all = morning();
        let attached = json!({"session": all["sessions"][0]});
        self.result(link, method::SESSION_ATTACH, attached);
        self.hears(link, after + 1, lines);
        let caught_up = json!({"sessionId": ID, "seq": seq});
        self.event(AppEvent::Line(link, build::notification(method::CAUGHT_UP, &caught_up)));
        link
    }

    pub(super) fn hears(&mut self, link: LinkId, first: u64, lines: &[Value]) {
        for (seq, line) in (first..).zip(lines) {
            let method = line["method"].as_str().unwrap_or("session/update");
            let mut params = line["params"].clone();
            params["_meta"] = json!({"_acpd": {"seq": seq}});
            self.event(AppEvent::Line(link, build::notification(method, &params)));
        }
    }

    pub(super) fn chat_link(&self) -> LinkId {
        let opened = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Open(link @ LinkId::Chat(_)) => Some(*link),
            _ => None,
        });
        opened.expect("a conversation was opened")
    }

    pub(super) fn ctrl(&mut self, char: char) {
        self.event(AppEvent::Key(KeyEvent::new(KeyCode::Char(char), KeyModifiers::CONTROL)));
    }
}

/// A person in a conversation whose question was answered.
pub(super) fn in_chat() -> (Person, LinkId) {
    let mut person = in_the_morning();
    person.changed(json!({"removed": {"interactions": ["1-5"]}, "sessions": [
        session("fix-auth", json!({"turn": {"state": "working", "since": NOW - 60_000}}))]}));
    let link = person.opens(&journal());
    (person, link)
}

#[test]
fn a_conversation_shows_what_was_said_and_done() {
    let (mut person, _) = in_chat();
    insta::assert_snapshot!(everywhere(&mut person));
}

#[test]
fn a_question_stands_above_the_prompt_and_takes_no_keys() {
    let mut person = in_the_morning();
    person.opens(&journal());
    person.sees(80, 24);
    person.types("and 1 more");
    person.press(KeyCode::Enter);
    assert!(person.said(method::INTERACTION_ANSWER).is_empty(), "typing goes to the prompt");
    assert_eq!(person.said("session/prompt").len(), 1);
    insta::assert_snapshot!(everywhere(&mut person));
    person.press(KeyCode::Tab);
    person.types("3");
    person.press(KeyCode::Enter);
    assert_eq!(answer_of(&person.said(method::INTERACTION_ANSWER)[0])["option"], "reject_once");
}

#[test]
fn blocks_are_chosen_and_unfolded() {
    let (mut person, _) = in_chat();
    person.sees(80, 24);
    person.press(KeyCode::Tab);
    person.types("Z");
    insta::assert_snapshot!(person.sees(80, 40));
    person.types("zgy");
    assert!(person.effects.iter().any(
        |effect| matches!(effect, Effect::Copy(text) if text.starts_with("Why does login fail?"))
    ));
    person.press(KeyCode::Esc);
    person.types("x");
    assert!(person.sees(80, 24).contains(" x"), "the prompt has the keys again");
}

#[test]
fn states_of_the_connection_are_told_and_the_draft_stays() {
    let mut person = in_the_morning();
    let key = SessionRowKey { agent: "claude".into(), session_id: ID.into() };
    person.state.open_chat(key, 0, true);
    person.takes_effects();
    assert!(person.sees(80, 24).contains("opening"));
    let link = person.opens(&[]);
    assert!(person.sees(80, 24).contains("nothing was said yet"));
    person.types("half a thought");
    person.event(AppEvent::Lost(link));
    person.state.now += 1001;
    assert!(person.sees(80, 24).contains("acpd is not running, reconnecting; the draft stays"));
    person.event(AppEvent::Back(link));
    let seen = person.sees(80, 24);
    assert!(!seen.contains("not running") && seen.contains("half a thought"), "{seen}");
    let gone = json!({"sessionId": ID});
    person.event(AppEvent::Line(link, build::notification(method::SESSION_REMOVED, &gone)));
    assert!(person.sees(80, 24).contains("the session was deleted"));
    person.press(KeyCode::Enter);
    assert!(person.said("session/prompt").is_empty());
    assert!(person.sees(80, 24).contains("half a thought"));
}

#[test]
fn what_is_written_while_a_turn_runs_waits_and_can_be_taken_back() {
    let (mut person, _) = in_chat();
    person.types("then commit");
    person.press(KeyCode::Enter);
    person.changed(json!({"sessions": [session("fix-auth", json!({"queued": 1,
        "turn": {"state": "working", "since": NOW - 60_000}}))]}));
    assert!(person.sees(80, 24).contains("1 queued: then commit (^Q changes it)"));
    person.ctrl('q');
    let waiting = waiting(&[(7, "then commit")]);
    person.result(LinkId::Fleet, method::SESSION_QUEUE, waiting);
    let back = person.said(method::SESSION_QUEUE_REMOVE).remove(0);
    assert_eq!(back["params"]["ticket"], 7);
    assert!(!person.sees(80, 24).contains("\n then commit"), "it still waits");
    person.sent.push(back);
    person.result(LinkId::Fleet, method::SESSION_QUEUE_REMOVE, json!({}));
    // The request of the prompt itself fails, too.
    person.refuses(LinkId::Errand(1), "session/prompt", "taken back");
    assert!(person.sees(80, 24).contains("\n then commit"), "the words are in the prompt again");
    person.types(" and push");
    person.press(KeyCode::Enter);
    let again = person.said("session/prompt").remove(0);
    assert_eq!(again["params"]["prompt"][0]["text"], "then commit and push");
    assert_eq!(again["params"]["_meta"]["_acpd"]["inPlaceOf"], 7, "it waits where it did");
    person.types("and more");
    person.press(KeyCode::Enter);
    let next = person.said("session/prompt").remove(0);
    assert_eq!(next["params"].get("_meta"), None, "and the next one behind all");
}

fn waiting(prompts: &[(u64, &str)]) -> Value {
    let prompts = prompts.iter().zip(1..).map(|((ticket, text), place)| {
        json!({"place": place, "ticket": ticket, "at": NOW, "prompt": [{"type": "text", "text": text}]})
    });
    json!({"sessionId": ID, "prompts": prompts.collect::<Vec<_>>()})
}

#[test]
fn of_several_prompts_that_wait_one_is_chosen_and_a_draft_is_not_lost() {
    let (mut person, _) = in_chat();
    person.types("half a thought");
    person.ctrl('q');
    // Two of the same words are two prompts.
    let waiting = waiting(&[(7, "commit"), (8, "commit"), (9, "push")]);
    person.result(LinkId::Fleet, method::SESSION_QUEUE, waiting);
    insta::assert_snapshot!(person.sees(80, 24));
    person.press(KeyCode::Down);
    person.press(KeyCode::Enter);
    let back = person.said(method::SESSION_QUEUE_REMOVE).remove(0);
    assert_eq!(back["params"]["ticket"], 8);
    person.sent.push(back);
    person.result(LinkId::Fleet, method::SESSION_QUEUE_REMOVE, json!({}));
    assert!(person.sees(80, 24).contains(" commit"));
    person.press(KeyCode::Up);
    assert!(person.sees(80, 24).contains(" half a thought"));
    person.ctrl('q');
    person.result(LinkId::Fleet, method::SESSION_QUEUE, json!({"sessionId": ID, "prompts": []}));
    assert!(person.sees(80, 24).contains("no prompt waits"));
}

#[test]
fn a_long_answer_scrolls_and_new_lines_do_not_move_what_is_read() {
    let (mut person, link) = in_chat();
    let long: Vec<String> = (0..100).map(|n| format!("- item {n}")).collect();
    let line = json!({"params": {"sessionId": ID, "update": {"sessionUpdate": "agent_message_chunk",
        "messageId": "m", "content": {"type": "text", "text": long.join("\n")}}}});
    person.hears(link, 9, &[line]);
    assert!(person.sees(80, 24).contains("item 99"));
    person.press(KeyCode::PageUp);
    person.press(KeyCode::PageUp);
    let reading = person.sees(80, 24);
    assert!(!reading.contains("item 99") && reading.contains("more: PgDn"), "{reading}");
    let more = json!({"params": {"sessionId": ID, "update": {"sessionUpdate": "agent_message_chunk",
        "messageId": "n", "content": {"type": "text", "text": "and more"}}}});
    person.hears(link, 10, &[more]);
    let body = |seen: &str| seen.lines().skip(2).take(18).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(&person.sees(80, 24)), body(&reading));
    (0..20).for_each(|_| person.press(KeyCode::PageDown));
    assert!(person.sees(80, 24).contains("and more"));
}

#[test]
fn modes_and_options_are_chosen_from_a_list() {
    let (mut person, _) = in_chat();
    person.ctrl('o');
    let link = LinkId::Errand(2);
    person.result(
        link,
        "session/resume",
        json!({
        "modes": {"currentModeId": "ask", "availableModes": [
            {"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]},
        "configOptions": [{"id": "model", "name": "Model", "category": "model",
            "type": "select", "currentValue": "opus", "options": [
                {"value": "opus", "name": "Opus"}, {"value": "haiku", "name": "Haiku"}]}]}),
    );
    insta::assert_snapshot!(person.sees(80, 24));
    person.types("jjj");
    person.press(KeyCode::Enter);
    let set = person.said("session/set_config_option").remove(0);
    assert_eq!(
        (&set["params"]["configId"], &set["params"]["value"]),
        (&json!("model"), &json!("haiku"))
    );
}

#[test]
fn m3_what_looks_like_an_answer_is_sent_as_a_prompt_at_the_second_enter() {
    let mut person = in_the_morning();
    person.opens(&journal());
    let seen = person.sees(120, 24);
    assert!(seen.contains("Tab question") && !seen.contains("Tab blocks"), "{seen}");
    for word in ["y", "No", "1"] {
        person.types(word);
        person.press(KeyCode::Enter);
        assert!(person.said("session/prompt").is_empty());
        let seen = person.sees(80, 24);
        let told = format!("to answer: Tab; \u{23ce} again sends \"{word}\" as a prompt");
        assert!(seen.contains(&told), "{seen}");
        person.press(KeyCode::Enter);
        assert_eq!(person.said("session/prompt").len(), 1);
    }
    person.types("1 more");
    person.press(KeyCode::Enter);
    assert_eq!(person.said("session/prompt").len(), 1, "that is no answer");
    person.press(KeyCode::Tab);
    let seen = person.sees(80, 24);
    assert!(seen.contains("? choose an answer") && !seen.contains("works"), "{seen}");
    person.press(KeyCode::Esc);
    person.changed(json!({"removed": {"interactions": ["1-5"]}}));
    person.types("y");
    person.press(KeyCode::Enter);
    assert_eq!(person.said("session/prompt").len(), 1, "nothing is asked");
}

/// Opens the conversation of another session than [`ID`].
fn opens_another(person: &mut Person) {
    let key = SessionRowKey { agent: "claude".into(), session_id: "parser-0123456789".into() };
    person.state.open_chat(key, 0, true);
    person.takes_effects();
}

#[test]
fn a_prompt_from_the_list_that_is_refused_is_a_draft_of_its_conversation() {
    let gone = |person: &mut Person| {
        person.event(AppEvent::Ended(LinkId::Errand(2), "acpd closed the connection".into()));
    };
    let refused = |person: &mut Person| person.refuses(LinkId::Errand(2), "session/prompt", "no");
    for fails in [gone as fn(&mut Person), refused] {
        let (mut person, _) = in_chat();
        person.ctrl('d');
        person.types("/fix-auth");
        person.press(KeyCode::Enter);
        person.types("pthen commit");
        person.press(KeyCode::Enter);
        opens_another(&mut person);
        fails(&mut person);
        let seen = person.sees(80, 24);
        assert!(!seen.contains("then commit") && !seen.contains("\n ! "), "{seen}");
        person.opens(&journal());
        assert!(person.sees(80, 24).contains("\n then commit"), "{}", person.sees(80, 24));
    }
}
