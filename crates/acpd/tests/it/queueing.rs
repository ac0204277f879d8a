//! `acpctl queue`: prompts that wait, from the terminal of a person.

use acpd_test::harness::{Output, Running, TestEnv};
use serde_json::Value;

use crate::{echo, home};

/// The number of a prompt that waits.
fn number(env: &TestEnv, text: &str) -> String {
    let queue = env.acpctl(&["queue", "fix", "--json"]).success();
    let queue: Value = serde_json::from_str(queue.stdout()).expect("JSON");
    let prompts = queue["prompts"].as_array().expect("prompts");
    let prompt = prompts.iter().find(|prompt| prompt["prompt"][0]["text"] == text);
    prompt.expect("it waits")["place"].to_string()
}

/// Changes a prompt on a terminal, with this editor.
fn edit(env: &TestEnv, number: &str, editor: &str) -> Output {
    let mut command = env.acpctl_command(&["queue", "edit", "fix", number]);
    command.env("EDITOR", editor);
    Running::on_terminal(command).finish()
}

#[test]
fn a_prompt_is_moved_and_changed_in_an_editor_while_it_waits() {
    let env = home([echo()]);
    let run = env.spawn_acpctl(&["run", "-s", "fix", "[pause first]"]);
    env.wait_point("first");
    for text in ["say two", "say three"] {
        let _ = env.acpctl(&["run", "-N", "--detach", "-s", "fix", text]).success();
    }
    assert_eq!((number(&env, "say two"), number(&env, "say three")), ("1".into(), "2".into()));
    let moved = env.acpctl(&["queue", "move", "fix", "2", "first"]);
    let rows: Vec<String> = moved.success().stdout().lines().map(str::to_owned).collect();
    assert!(rows[1].starts_with("1 ") && rows[1].ends_with("say three"), "{rows:?}");
    assert!(rows[2].starts_with("2 ") && rows[2].ends_with("say two"), "{rows:?}");

    let two = number(&env, "say two");
    let failed = edit(&env, &two, "false").code(1);
    assert!(failed.stdout().contains("the editor `false` failed"), "{failed:?}");
    let same = edit(&env, &two, "true").success();
    assert!(same.stdout().contains("is unchanged"), "{same:?}");
    let changed = edit(&env, &two, "sed -i s/two/deux/").success();
    assert!(changed.stdout().contains("changed prompt"), "{changed:?}");
    env.acpctl(&["queue", "edit", "fix", "99", "x"]).code(2).explains(&["acpctl queue fix"]);

    env.release("first");
    run.finish().success();
    let _ = env.acpctl(&["wait", "fix"]).success();
    let said = env.said("fix");
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text}: {said}"));
    assert!(at("You said: say three") < at("You said: say deux"), "{said}");
}

#[test]
fn numbers_mean_what_waits_when_the_command_begins() {
    let env = home([echo()]);
    let run = env.spawn_acpctl(&["run", "-s", "fix", "[pause first]"]);
    env.wait_point("first");
    for text in ["say a", "say b", "say c"] {
        let _ = env.acpctl(&["run", "-N", "--detach", "-s", "fix", text]).success();
    }
    let none = env.acpctl(&["queue", "rm", "fix", "1", "4"]).code(2);
    none.explains(&["fix has no queued prompt 4", "acpctl queue fix"]);
    let gone = env.acpctl(&["queue", "rm", "fix", "1", "2"]).success();
    gone.explains(&["removed prompt 1: say a", "removed prompt 2: say b"]);
    assert_eq!(number(&env, "say c"), "1");
    env.acpctl(&["cancel", "fix"]).success().explains(&["  1  say c"]);
    env.release("first");
    let _ = run.finish();
}
