//! Help for writing a prompt.

use super::chats::{ID, in_chat};
use super::screens::everywhere;
use super::*;

/// The agent's slash commands.
fn commands() -> Value {
    json!({"params": {"sessionId": ID, "update": {"sessionUpdate": "available_commands_update",
        "availableCommands": [
            {"name": "plan", "description": "Show a plan", "input": {"hint": "topic"}},
            {"name": "compact", "description": "Forget most of what was said"},
            {"name": "review", "description": "Look at what has changed"}]}}})
}

fn files(person: &mut Person, paths: &[&str]) {
    let directory = "/home/ada/src/api".to_owned();
    assert!(person.effects.contains(&Effect::ReadFiles(directory.clone())));
    person.effects.clear();
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    person.event(AppEvent::Files { directory, paths });
}

/// Takes the files that the driver should read for a prompt.
fn prompt_files(person: &mut Person) -> PromptFiles {
    let is_reading = |effect: &Effect| matches!(effect, Effect::ReadAttached(_));
    let at = person.effects.iter().position(is_reading).expect("files are read");
    match person.effects.remove(at) {
        Effect::ReadAttached(files) => files,
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn a_slash_at_the_beginning_lists_the_commands_of_the_agent() {
    let (mut person, link) = in_chat();
    person.hears(link, 9, &[commands()]);
    person.types("/");
    insta::assert_snapshot!(everywhere(&mut person));
    person.types("cp");
    assert!(person.sees(80, 24).contains("\u{25b8} /compact"));
    person.press(KeyCode::Tab);
    assert!(person.said("session/prompt").is_empty(), "it is put in, and not sent");
    person.types("now");
    person.press(KeyCode::Enter);
    let said = person.said("session/prompt").remove(0);
    assert_eq!(said["params"]["prompt"], json!([{"type": "text", "text": "/compact now"}]));
    // A whole command is sent by Enter.
    person.types("/review");
    person.press(KeyCode::Enter);
    let said = person.said("session/prompt").remove(0);
    assert_eq!(said["params"]["prompt"][0]["text"], "/review");
}

#[test]
fn an_at_sign_lists_files_and_the_chosen_one_goes_with_the_prompt() {
    let (mut person, _) = in_chat();
    person.types("look at @");
    files(&mut person, &["Cargo.toml", "src/cookie.rs", "src/login.rs", "tests/login.rs"]);
    insta::assert_snapshot!(everywhere(&mut person));
    person.types("cook");
    person.press(KeyCode::Enter);
    person.types("and @log");
    person.press(KeyCode::Down);
    person.press(KeyCode::Tab);
    person.press(KeyCode::Enter);
    assert!(person.said("session/prompt").is_empty(), "the files are read first");
    let files = prompt_files(&mut person);
    let file = |name: &str| PromptFile {
        path: format!("/home/ada/src/api/{name}"),
        name: name.to_owned(),
    };
    assert_eq!(files.files, [file("src/cookie.rs"), file("tests/login.rs")]);
    let link = |path: &str| json!({"type": "resource_link", "name": path, "uri": format!("file:///home/ada/src/api/{path}")});
    let audio = json!({"type": "audio", "mimeType": "audio/mpeg", "data": "SUQz"});
    // Prompts that are sent meanwhile keep their order.
    person.types("then this");
    person.press(KeyCode::Enter);
    assert!(person.said("session/prompt").is_empty());
    let read = vec![link("src/cookie.rs"), audio.clone()];
    person.event(AppEvent::AttachedRead(files, Ok(read)));
    let said = person.said("session/prompt").remove(0);
    let text = "look at @src/cookie.rs and @tests/login.rs ";
    let blocks = json!([{"type": "text", "text": text}, link("src/cookie.rs"), audio]);
    assert_eq!(said["params"]["prompt"], blocks);
}

#[test]
fn a_file_that_cannot_be_sent_holds_the_prompt_back() {
    let (mut person, _) = in_chat();
    person.types("hear @");
    files(&mut person, &["said.mp3"]);
    person.press(KeyCode::Tab);
    for key in ['\r', 's'] {
        match key {
            's' => person.ctrl('s'),
            _ => person.press(KeyCode::Enter),
        }
        let read = prompt_files(&mut person);
        person.types("more");
        person.press(KeyCode::Enter);
        let why = Refused { why: "`said.mp3` is empty".into(), hint: Some("fill it".into()) };
        person.event(AppEvent::AttachedRead(read, Err(why)));
        let seen = person.sees(80, 24);
        assert!(seen.contains("! `said.mp3` is empty") && seen.contains("fill it"), "{seen}");
        assert!(seen.contains("\n hear @said.mp3") && seen.contains("\n more"), "{seen}");
        assert!(person.said("session/prompt").is_empty());
        assert!(person.said("_session/steering").is_empty());
        (0.."more".len()).for_each(|_| person.press(KeyCode::Backspace));
        assert!(!person.sees(80, 24).contains("is empty"));
    }
    // A result of files that are no longer wanted sends nothing.
    person.press(KeyCode::Enter);
    let read = prompt_files(&mut person);
    person.ctrl('d');
    person.event(AppEvent::AttachedRead(read, Ok(vec![json!({})])));
    assert!(person.said("session/prompt").is_empty());
}

#[test]
fn earlier_prompts_are_found_by_their_words() {
    let (mut person, _) = in_chat();
    person.types("commit and push");
    person.press(KeyCode::Enter);
    person.types("a draft");
    person.ctrl('r');
    insta::assert_snapshot!(person.sees(80, 24));
    person.types("fail login");
    assert!(person.sees(80, 24).contains("\u{25b8} Why does login fail?"));
    person.types("zzz");
    assert!(person.sees(80, 24).contains("none has these words"));
    (0..4).for_each(|_| person.press(KeyCode::Backspace));
    person.press(KeyCode::Enter);
    let seen = person.sees(80, 24);
    assert!(seen.contains("\n Why does login fail?"), "{seen}");
    assert_eq!(person.said("session/prompt").len(), 1, "it is put in, and not sent");
    person.ctrl('c');
    person.types("another");
    person.ctrl('r');
    person.press(KeyCode::Esc);
    assert!(person.sees(80, 24).contains("\n another"), "the draft stays");
}

#[test]
fn pasted_path_of_an_image_is_a_mention_of_that_file() {
    let (mut person, _) = in_chat();
    person.types("what is wrong in ");
    person.event(AppEvent::Paste("'/tmp/a b.png'\n".into()));
    assert!(person.sees(80, 24).contains("\n what is wrong in @/tmp/a b.png"));
    person.press(KeyCode::Enter);
    let files = prompt_files(&mut person);
    assert_eq!(files.files[0].path, "/tmp/a b.png");
    person.event(AppEvent::Paste("/tmp/b.txt".into()));
    assert!(person.sees(80, 24).contains("\n /tmp/b.txt"), "it is a text like another");
}

#[test]
fn what_an_editor_made_of_the_prompt_is_the_prompt_and_a_failure_changes_nothing() {
    let (mut person, _) = in_chat();
    person.types("see @co");
    files(&mut person, &["src/cookie.rs"]);
    person.press(KeyCode::Tab);
    person.ctrl('x');
    let text = "see @src/cookie.rs ".to_owned();
    assert!(person.effects.contains(&Effect::Edit(text)));
    person.event(AppEvent::Edited(Err("`vi` failed".into())));
    let seen = person.sees(80, 24);
    assert!(seen.contains("`vi` failed") && seen.contains("\n see @src/cookie.rs"), "{seen}");
    person.event(AppEvent::Edited(Ok("read @src/cookie.rs\n\nand say why".into())));
    assert!(person.sees(80, 24).contains("\n and say why"));
    person.press(KeyCode::Enter);
    let files = prompt_files(&mut person);
    let block = json!({"type": "resource_link", "name": "src/cookie.rs", "uri": "file:///w"});
    person.event(AppEvent::AttachedRead(files, Ok(vec![block])));
    let said = person.said("session/prompt").remove(0);
    assert_eq!(said["params"]["prompt"][0]["text"], "read @src/cookie.rs\n\nand say why");
    assert_eq!(said["params"]["prompt"][1]["name"], "src/cookie.rs");
}

#[test]
fn session_is_renamed_from_the_list() {
    let mut person = in_the_morning();
    person.sees(80, 24);
    person.types("e");
    assert!(person.sees(80, 24).contains("\n new name of fix-auth >"));
    person.press(KeyCode::Enter);
    assert!(person.said(method::SESSION_RENAME).is_empty(), "a name is never empty");
    person.types("e");
    person.event(AppEvent::Paste("login\n".into()));
    person.press(KeyCode::Enter);
    let said = person.said(method::SESSION_RENAME).remove(0);
    assert_eq!(said["params"]["name"], "login");
    assert_eq!(said["params"]["ref"]["session"], ID);
    person.sent.push(said);
    person.result(LinkId::Fleet, method::SESSION_RENAME, session("login", json!({})));
    assert!(person.sees(80, 24).contains("renamed"));
}
