//! The rights of clients under an agent and from elsewhere are complete.

use std::collections::BTreeSet;

use acpd_api::method::{METHODS, NOTICES};
use acpd_api::under_agent::{ACP, FLAGS, UnderAgent};
use acpd_api::{
    ClientMeta, ClientToken, LoadMeta, NewSessionMeta, PromptMeta, Role, Scope, is_own,
};
use serde::Serialize;

#[test]
fn every_method_is_declared_once() {
    let all: Vec<&str> = METHODS.iter().chain(ACP).map(|(name, ..)| *name).collect();
    let once: BTreeSet<&str> = all.iter().copied().collect();
    assert_eq!(once.len(), all.len());
    for name in METHODS.iter().map(|(name, ..)| *name).chain(NOTICES.iter().copied()) {
        assert!(is_own(name), "{name}");
    }
    // Nothing is declared outside of the lists.
    let source = include_str!("../src/method.rs");
    assert_eq!(source.matches("= \"_acpd/").count(), METHODS.len() + NOTICES.len());
}

#[test]
fn of_every_method_it_is_decided_whether_it_passes() {
    let all = METHODS.iter().chain(ACP).filter(|(name, ..)| Scope::of_method(name).is_none());
    let refused: Vec<&str> = all.map(|(name, ..)| *name).collect();
    let terminal = "_acpd/daemon/stop _acpd/daemon/restart _acpd/daemon/log_level _acpd/agent/start \
                   _acpd/agent/stop _acpd/agent/restart _acpd/auth/done _acpd/session/move \
                   _acpd/session/reseed _acpd/session/remove _acpd/session/undo _acpd/gc \
                   _acpd/trace _acpd/mcp/list _acpd/mcp/call _acpd/policy/list _acpd/policy/forget \
                   _acpd/policy/test authenticate logout auth/login auth/logout \
                   providers/list providers/set providers/disable session/delete";
    assert_eq!(refused.join(" "), terminal);
}

#[test]
fn what_is_refused_is_said_in_words_that_follow_may_not() {
    let methods = METHODS.iter().chain(ACP).map(|(name, side, _)| (*name, *side));
    for (name, side) in methods.chain(FLAGS.iter().copied()) {
        let (UnderAgent::Refused(what)
        | UnderAgent::OwnTurns(what)
        | UnderAgent::OwnSessions(what)
        | UnderAgent::OwnQuestions(what)) = side
        else {
            continue;
        };
        let is_phrase = what.starts_with(|c: char| c.is_ascii_lowercase()) && !what.ends_with('.');
        assert!(is_phrase, "{name}: {what}");
    }
    assert_eq!(UnderAgent::of_method("_vendor/ask"), UnderAgent::Allowed);
    assert!(matches!(UnderAgent::of_method("session/delete"), UnderAgent::Refused(_)));
}

/// The members that a client may send.
fn members(meta: &impl Serialize) -> BTreeSet<String> {
    let json = serde_json::to_value(meta).expect("JSON");
    json.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn every_flag_is_in_the_list() {
    let client = ClientToken { token: "t".to_owned(), positions: true, resume: None };
    // Written out, so that a member that is added is added here.
    let initialize = ClientMeta {
        agent: Some("a".to_owned()),
        cwd: Some("/w".to_owned()),
        notices: true,
        seq: true,
        originals: true,
        max_line: Some(1),
        client: Some(client),
        role: Some(Role::Observer),
        place: Some(String::new()),
        tool: true,
    };
    let new = NewSessionMeta {
        name: Some("n".to_owned()),
        reuse: true,
        parent: Some(1),
        labels: Some(Vec::new()),
    };
    let prompt = PromptMeta {
        permissions: Some("allow".to_owned()),
        in_place_of: Some(1),
        idempotency_key: Some("k".to_owned()),
        title: Some("t".to_owned()),
    };
    let load = LoadMeta { after: Some(1) };
    let all = [members(&initialize), members(&new), members(&prompt), members(&load)];
    let all: BTreeSet<String> = all.into_iter().flatten().collect();
    let listed: BTreeSet<String> = FLAGS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(all, listed);
}
