//! `acpctl acp`: the agent that editors start.

use acpd_test::harness::Client;
use serde_json::{Value, json};

use crate::{echo, home};

fn initialize(editor: &mut Client) -> Value {
    let info = json!({"name": "editor", "version": "1"});
    editor.ok("initialize", json!({"protocolVersion": 1, "clientInfo": info}))
}

#[test]
fn twenty_editors_that_start_at_once_get_one_daemon_and_one_agent() {
    let env = home([echo()]);
    let own = |message: &Value| {
        message["method"].as_str().is_some_and(|method| method.starts_with("_acpd/"))
    };
    let mut editors: Vec<_> = (0..20).map(|_| env.bridge(&["echo"])).collect();
    for (n, (_, editor)) in editors.iter_mut().enumerate() {
        initialize(editor);
        let session = editor.new_session(&env.work("main"), None);
        assert_eq!(editor.say(&session, &format!("say #n{n}")).unwrap()["stopReason"], "end_turn");
        assert!(editor.said(&session).contains(&format!("history=0 tags=n{n}")));
        assert!(!editor.seen().iter().any(own), "an editor gets plain ACP: {:?}", editor.seen());
    }
    let programs = env.tree().into_iter().map(|process| process.command);
    let (mut daemons, mut agents) = (0, 0);
    for program in programs {
        daemons += usize::from(program.ends_with("acpd run"));
        agents += usize::from(program.contains("scripted-agent"));
    }
    assert_eq!((daemons, agents), (1, 1), "{:?}", env.tree());
}
