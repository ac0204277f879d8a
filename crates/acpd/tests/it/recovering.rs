//! Agents that die or forget, and conversations that continue all the same.

use crate::{echo, home};

// peers 9
#[test]
fn a_long_and_late_replay_is_shown_and_journalled_not_once() {
    let late = echo().flags("no-resume late-replay replay-turns=1000").set("late_replay", "true");
    let env = home([late]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, "say #one").expect("an answer");
    let before = env.journal("fix");
    let seen = client.view(&session).len();
    env.kill_agent("echo");
    client.say(&session, "say #two").expect("an answer");
    client.sync();
    assert!(client.said(&session).contains("tags=one,two"), "{}", client.said(&session));

    let journal = env.journal("fix");
    assert_eq!(journal[..before.len()], before[..], "what was there stays as it was");
    let added: Vec<_> = journal[before.len()..].iter().map(|(_, line)| line).collect();
    let told: String = added.iter().map(ToString::to_string).collect();
    assert!(
        !told.contains("earlier question") && !told.contains("\"text\":\"say #one\""),
        "{told}"
    );
    assert!(added.len() < 20, "{added:#?}");
    let news = client.view(&session).split_off(seen);
    assert!(news.len() <= added.len(), "{news:#?}");
    assert!(!client.seen().iter().any(|m| m.to_string().contains("earlier answer")));
    let told = client.seen().iter().filter(|line| line["method"] == "_acpd/restored");
    assert_eq!(told.count(), 1);
    assert_eq!(env.session("fix")["restore"], "loaded");
}

#[test]
fn an_agent_that_sees_other_directories_is_asked_all_the_same() {
    let env = home([echo().set("check_cwd", "false")]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.path("in-the-container"), Some("fix"));
    client.say(&session, "say #one").unwrap();
    env.kill_agent("echo");
    let done = client.say(&session, "say #two").unwrap();
    assert_eq!(done["stopReason"], "end_turn");
}
