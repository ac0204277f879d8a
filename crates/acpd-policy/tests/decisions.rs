//! Precedence of rules and decisions, and options that answer.

mod support;

use acpd_policy::Verdict::{Allow, Reject};
use acpd_policy::{By, Decision, Policy, Remembered, Situation, Verdict, decide, explain};
use serde_json::{Value, json};
use support::{by, edit, here, params, policy, raw, remember, request, run, verdict, with_options};

fn once(once: Verdict) -> Situation<'static> {
    Situation { once: Some(once), ..here() }
}

fn rule(name: &str) -> By {
    By::Rule { name: name.to_owned() }
}

#[test]
fn a_reject_rule_wins_over_everything() {
    let policy = policy("rules = [{ name = 'no', decision = 'reject', command = 'rm *' }]");
    let rm = params(run("rm x"));
    let known = [remember(1, run("rm x"), Allow, 5)];
    for situation in [here(), once(Allow), once(Reject)] {
        let decision = decide(&policy, &known, &situation, &request(&rm));
        assert_eq!((verdict(&decision), by(&decision)), (Some(Reject), Some(&rule("no"))));
    }
}

#[test]
fn a_no_wins_over_a_yes() {
    let policy = policy("rules = [{ name = 'all', decision = 'allow' }]");
    let ls = params(run("ls"));
    let no = [remember(1, run("ls"), Reject, 5)];
    let decided = |known: &[Remembered], situation: Situation<'_>| {
        let decision = decide(&policy, known, &situation, &request(&ls));
        by(&decision).cloned()
    };
    assert_eq!(decided(&[], here()), Some(rule("all")));
    assert_eq!(decided(&[], once(Allow)), Some(rule("all")));
    assert_eq!(decided(&[], once(Reject)), Some(By::Once { verdict: Reject }));
    assert_eq!(decided(&no, here()), Some(By::Remembered { id: 1 }));
    assert_eq!(decided(&no, once(Allow)), Some(By::Remembered { id: 1 }));
}

#[test]
fn a_yes_passes_over_ask_but_not_over_a_later_reject() {
    let policy = policy(
        "rules = [
            { name = 'careful', decision = 'ask', kind = 'execute' },
            { name = 'no', decision = 'reject', command = 'rm *' },
        ]",
    );
    let ls = params(run("ls"));
    let rm = params(run("rm x"));
    let known = [remember(7, run("ls"), Allow, 5), remember(8, run("rm x"), Allow, 5)];
    let decided = |known: &[Remembered], situation: Situation<'_>, params| {
        let decision = decide(&policy, known, &situation, &request(params));
        by(&decision).cloned()
    };
    assert_eq!(decided(&[], here(), &ls), None);
    assert_eq!(decided(&[], here(), &rm), None);
    assert_eq!(decided(&known, here(), &ls), Some(By::Remembered { id: 7 }));
    assert_eq!(decided(&[], once(Allow), &ls), Some(By::Once { verdict: Allow }));
    assert_eq!(decided(&known, here(), &rm), Some(rule("no")));
    assert_eq!(decided(&[], once(Allow), &rm), Some(rule("no")));
}

#[test]
fn the_newest_remembered_decision_counts_in_its_agent_and_workspace() {
    let policy = Policy::default();
    let ls = params(run("ls"));
    let known = [remember(1, run("ls"), Reject, 9), remember(2, run("ls"), Allow, 5)];
    let decided = |situation: Situation<'_>| explain(&policy, &known, &situation, &request(&ls));
    assert_eq!(verdict(&decided(here()).decision), Some(Reject));
    assert_eq!(decided(here()).remembered, Some(1));
    for other in [Situation { agent: "codex", ..here() }, Situation { cwd: "/", ..here() }] {
        assert_eq!(decided(other).remembered, None);
        assert_eq!(verdict(&decided(other).decision), None);
    }
}

#[test]
fn the_default_answers_what_no_rule_matches() {
    for (default, wanted) in [("ask", None), ("allow", Some(Allow)), ("reject", Some(Reject))] {
        let policy = policy(&format!("default = '{default}'"));
        let decision = decide(&policy, &[], &here(), &request(&params(run("ls"))));
        assert_eq!(verdict(&decision), wanted);
        assert!(by(&decision).is_none_or(|by| *by == By::Default));
    }
}

#[test]
fn the_option_for_this_once_is_taken_before_the_one_for_always() {
    let chosen = |kinds: &[&str], situation| {
        let params = with_options(json!({"toolCallId": "t"}), kinds);
        match decide(&Policy::default(), &[], situation, &request(&params)) {
            Decision::Ask { .. } => None,
            Decision::Answer { option_id, .. } => Some(option_id),
        }
    };
    let (yes, no) = (once(Allow), once(Reject));
    let all = ["allow_always", "reject_always", "allow_once", "reject_once"];
    assert_eq!(chosen(&all, &yes).as_deref(), Some("id-allow_once"));
    assert_eq!(chosen(&all, &no).as_deref(), Some("id-reject_once"));
    assert_eq!(chosen(&all[..2], &yes).as_deref(), Some("id-allow_always"));
    assert_eq!(chosen(&all[..2], &no).as_deref(), Some("id-reject_always"));
    assert_eq!(chosen(&["allow_once"], &no), None);
    assert_eq!(chosen(&["reject_once"], &yes), None);
}

#[test]
fn what_only_a_person_can_answer_is_asked() {
    let policy = policy("default = 'allow'\n[[rules]]\ndecision = 'reject'\nkind = 'edit'");
    let call = || json!({"toolCallId": "t", "kind": "edit"});
    let option = |id: Value, kind: &str| json!({"optionId": id, "name": "x", "kind": kind});
    let same_id = [option(json!("a"), "allow_once"), option(json!("a"), "reject_once")];
    let questions = [
        with_options(call(), &["allow_once", "allow_once", "reject_once"]),
        with_options(call(), &["allow_once", "allow_persistent"]),
        with_options(call(), &["allow_once", ""]),
        with_options(call(), &[]),
        with_options(json!({"kind": "edit", "title": "which?"}), &["allow_once", "reject_once"]),
        with_options(json!(null), &["allow_once", "reject_once"]),
        with_options(json!({"toolCallId": 7}), &["allow_once", "reject_once"]),
        raw(&json!({"sessionId": "s", "toolCall": call(), "options": "all"})),
        raw(&json!({"sessionId": "s", "toolCall": call(), "options": same_id})),
        raw(&json!({"sessionId": "s"})),
    ];
    for params in &questions {
        for situation in [here(), once(Allow), once(Reject)] {
            let decision = decide(&policy, &[], &situation, &request(params));
            assert!(matches!(decision, Decision::Ask { .. }), "{params}: {decision:?}");
        }
    }
    let sound = decide(&policy, &[], &here(), &request(&params(edit(&["a"]))));
    assert_eq!(verdict(&sound), Some(Reject));
}
