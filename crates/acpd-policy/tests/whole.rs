//! The policy sees all of a call, or it does not allow it.

mod support;

use acpd_policy::Verdict::{Allow, Reject};
use acpd_policy::{Decision, Kind, Remembered, Situation, Subject, Understanding, Verdict, decide};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use support::{
    CWD, IS_WINDOWS, allow, edit, here, in_a_line_of_bash, outcome, params, policy, reject,
    remember, request, run, subject, subject_of, verdict,
};

/// Members that stand next to `command: "cargo test"` and are not understood there.
fn unclear() -> Vec<Value> {
    vec![
        json!({"cwd": ["/", CWD]}),
        json!({"cwd": {"path": CWD}}),
        json!({"cwd": CWD, "workdir": "/"}),
        json!({"cwd": CWD, "workdir": CWD}),
        json!({"cwd": CWD, "CWD": "/"}),
        json!({"cmd": "cargo test", "Cmd": "cargo test"}),
        json!({"cmd": 7}),
        json!({"commands": ["cargo test", {"then": "git push"}]}),
        json!({"args": ["test"], "cmd": "cargo"}),
        json!({"args": "--lib"}),
        json!({"env": {"RUSTC_WRAPPER": "/tmp/evil"}}),
        json!({"environment": {"PATH": "/tmp"}}),
        json!({"script": "git push"}),
        json!({"shell": "/tmp/evil"}),
        json!({"shell": "powershell"}),
        json!({"shell": "fish"}),
        json!({"shell": true}),
        json!({"stdin": "git push"}),
        json!({"input": "git push"}),
        json!({"content": "git push"}),
        json!({"timeout": {"after": "git push"}}),
        json!({"description": ["git push"]}),
        json!({"run_in_background": "git push"}),
        json!({"is_input": true}),
        json!({"dangerouslyDisableSandbox": true}),
        json!({"additional_permissions": {"network": true}}),
        json!({"": 1}),
    ]
}

/// Members that are understood, and do more than the command.
fn more() -> Vec<Value> {
    vec![
        json!({"commands": ["cargo test", "git push"]}),
        json!({"commands": "git push"}),
        json!({"cmd": "git push"}),
        json!({"cmd": ["git", "push"]}),
        json!({"url": "https://example.org/"}),
        json!({"path": "/etc/passwd"}),
        json!({"changes": {"/etc/passwd": {"type": "delete"}}}),
    ]
}

/// A call of `cargo test` with these members next to the command.
fn cargo_test(members: &Value) -> Value {
    let mut call = run("cargo test");
    for (name, value) in members.as_object().expect("it is an object") {
        call["rawInput"][name] = value.clone();
    }
    call
}

#[test]
fn m10_a_member_that_is_not_understood_is_not_passed_by_an_allow_rule() {
    for rule in [
        "command = 'cargo test*'",
        "command = 'cargo test'",
        "command = '*'",
        "command = '*'\npath = '**'\nurl = '**'",
        "title = '*cargo test*'",
        "kind = 'execute'",
        "",
    ] {
        assert_eq!(outcome(&allow("command = 'cargo test'"), run("cargo test")), Some(Allow));
        for members in unclear() {
            assert_eq!(outcome(&allow(rule), cargo_test(&members)), None, "{members}: {rule}");
        }
    }
}

#[test]
fn m10_a_second_command_is_not_passed_by_an_allow_rule_for_the_first() {
    for rule in ["command = 'cargo test*'", "command = 'cargo test'", "title = '*cargo test*'"] {
        for members in more() {
            assert_eq!(outcome(&allow(rule), cargo_test(&members)), None, "{members}: {rule}");
        }
    }
    let both = allow("command = ['cargo test*', 'git push']");
    assert_eq!(outcome(&both, cargo_test(&json!({"cmd": "git push"}))), Some(Allow));
}

#[test]
fn m10_what_is_not_understood_is_not_passed_by_a_remembered_yes() {
    let known = [remember(1, run("cargo test"), Allow, 5)];
    let asked =
        |call: Value| verdict(&decide(&policy(""), &known, &here(), &request(&params(call))));
    assert_eq!(asked(run("cargo test")), Some(Allow));
    for members in [unclear(), more()].concat() {
        assert_eq!(asked(cargo_test(&members)), None, "{members}");
        let subject = subject(cargo_test(&members));
        assert!(matches!(subject, Some(Subject::Call { .. })), "{members}: {subject:?}");
    }
}

/// The params of a question whose input is this very text.
fn with_input(input: &str) -> Box<RawValue> {
    let question = params(json!({"kind": "execute", "title": "t", "rawInput": "HERE"}));
    let text = question.get().replace("\"HERE\"", input);
    RawValue::from_string(text).expect("it is JSON")
}

#[test]
fn m10_a_member_that_is_given_twice_is_not_understood() {
    let known = [remember(1, run("cargo test"), Allow, 5)];
    let policy = allow("command = 'cargo test*'");
    for input in [
        r#"{"command": "git push", "command": "cargo test"}"#,
        r#"{"command": "cargo test", "command": "cargo test"}"#,
        r#"{"command": "cargo test", "command": null}"#,
        r#"{"command": "cargo test", "\u0063ommand": "cargo test"}"#,
        r#"{"command": "cargo test", "timeout": 1, "timeout": 2}"#,
    ] {
        let params = with_input(input);
        let decision = decide(&policy, &known, &here(), &request(&params));
        assert_eq!(verdict(&decision), None, "{input}");
        assert_eq!(subject_of(&params), None, "{input}");
    }
    let once = with_input(r#"{"command": "cargo test", "timeout": 1}"#);
    assert_eq!(verdict(&decide(&policy, &[], &here(), &request(&once))), Some(Allow));
}

#[test]
fn the_ordinary_calls_of_real_agents_are_understood() {
    let policy = allow("command = 'cargo test*'");
    for input in [
        json!({"command": "cargo test", "description": "run the tests", "timeout": 120_000,
            "run_in_background": false, "dangerouslyDisableSandbox": false}),
        json!({"command": "cargo test", "commands": ["cargo test"]}),
        json!({"command": "cargo test", "cwd": CWD}),
        json!({"command": "cargo test", "shell": "bash"}),
        json!({"command": "cargo test", "shell": "/usr/bin/zsh"}),
        json!({"command": "cargo test", "workdir": CWD, "timeout": 5, "description": "x"}),
        json!({"command": "cargo test", "directory": "crates/a", "is_background": false}),
        json!({"command": "cargo test", "is_input": false, "timeout": null, "reset": false,
            "security_risk": "LOW", "summary": "x"}),
        json!({"call_id": "t", "turn_id": "u", "started_at_ms": 1, "cwd": CWD, "reason": "x",
            "command": ["/bin/bash", "-lc", "cargo test"],
            "proposed_execpolicy_amendment": ["cargo", "test"],
            "available_decisions": ["approved", {"approved_execpolicy_amendment": {}}, "abort"],
            "parsed_cmd": [{"type": "unknown", "cmd": "cargo test"}]}),
        json!({"threadId": "a", "turnId": "b", "itemId": "c", "command": "/bin/zsh -lc 'cargo test'",
            "cwd": CWD, "commandActions": [], "reason": null}),
    ] {
        assert_eq!(
            outcome(&policy, json!({"kind": "execute", "rawInput": input})),
            in_a_line_of_bash(&input),
            "{input}"
        );
    }
    let policy = allow("kind = ['read', 'edit', 'search']\npath = '**'");
    for (kind, input) in [
        ("edit", json!({"file_path": "a", "content": "x"})),
        (
            "edit",
            json!({"file_path": "a", "old_string": "x", "new_string": "", "replace_all": true}),
        ),
        ("edit", json!({"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]})),
        ("edit", json!({"filepath": "a", "diff": "Index: a"})),
        ("edit", json!({"filePath": "a", "oldString": "x", "newString": "y"})),
        ("edit", json!({"fileName": "a", "diff": "diff"})),
        ("edit", json!({"path": "a", "file_text": "x"})),
        (
            "edit",
            json!({"call_id": "t", "turn_id": "u", "reason": null, "grant_root": null,
            "changes": {"a": {"type": "update", "unified_diff": "x", "move_path": null}}}),
        ),
        ("edit", json!({"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"})),
        ("read", json!({"command": "view", "path": "a", "view_range": [1, 5]})),
        ("read", json!({"file_path": "a", "offset": 3, "limit": 10})),
        (
            "search",
            json!({"path": "src", "pattern": "fn .*", "output_mode": "content", "-n": true,
            "-A": 3, "glob": "*.rs", "head_limit": 5, "multiline": false}),
        ),
    ] {
        assert_eq!(
            outcome(&policy, json!({"kind": kind, "rawInput": input})),
            Some(Allow),
            "{input}"
        );
    }
}

#[test]
fn places_and_addresses_in_the_input_want_conditions_of_their_own() {
    let call = |input: Value| json!({"kind": "other", "rawInput": input});
    let both = json!({"url": "https://docs.rs/a", "path": "src/a"});
    let (url, path) = ("url = 'https://docs.rs/**'", "path = 'src/**'");
    assert_eq!(outcome(&allow(url), call(both.clone())), None);
    assert_eq!(outcome(&allow(path), call(both.clone())), None);
    assert_eq!(outcome(&allow(&format!("{url}\n{path}")), call(both)), Some(Allow));
    let posted = json!({"url": "https://docs.rs/a", "content": "secret"});
    assert_eq!(outcome(&allow(url), call(posted)), None);
    for pattern in ["/etc/*", "../*", "~/.ssh/*", "src/../../*"] {
        let search = json!({"kind": "search", "rawInput": {"path": "src", "pattern": pattern}});
        assert_eq!(outcome(&allow("path = 'src/**'"), search), None, "{pattern}");
    }
}

/// Decides a call with `--yes` of one run.
fn with_yes(rules: &str, call: Value) -> Decision {
    let situation = Situation { once: Some(Allow), ..here() };
    decide(&policy(rules), &[], &situation, &request(&params(call)))
}

#[test]
fn a_yes_for_the_run_does_not_pass_over_what_a_reject_rule_might_match() {
    let rules = "rules = [{ name = 'no push', decision = 'reject', command = 'git push*' }]";
    let asked = [
        cargo_test(&json!({"script": "git push"})),
        cargo_test(&json!({"hooks": [{"after": "ls; git push -f"}]})),
        cargo_test(&json!({"run": {"git push": true}})),
        run("git $HOW"),
        run("$VCS push"),
        run("bash -c \"cd $DIR && ls\""),
        run("ls 'never ends"),
        json!({"kind": "execute", "rawInput": {"command": ["git", "push", 7]}}),
        json!({"kind": "execute", "rawInput": {"command": "git", "args": "push"}}),
        json!({"kind": "execute", "rawInput": {"command": {"line": "git push"}}}),
    ];
    for call in asked {
        let decision = with_yes(rules, call.clone());
        let Decision::Ask { why } = &decision else { panic!("{call}: {decision:?}") };
        assert!(why.starts_with("rule `no push` might match"), "{why}");
        assert_eq!(verdict(&with_yes("", call.clone())), Some(Allow), "{call}: no rule forbids it");
    }
    for call in [
        cargo_test(&json!({"script": "git pull"})),
        cargo_test(&json!({"env": {"A": "do not"}})),
        json!({"kind": "other", "rawInput": {"sql": "select 1"}}),
        json!({"kind": "execute", "rawInput": {"command": ""}}),
    ] {
        assert_eq!(verdict(&with_yes(rules, call.clone())), Some(Allow), "{call}");
    }
    for line in ["cargo test $WHAT", "cd \"$DIR\" && ls *.rs"] {
        let expected = (!IS_WINDOWS).then_some(Allow);
        assert_eq!(verdict(&with_yes(rules, run(line))), expected, "{line}");
    }
    let push = with_yes(rules, run("if true; then git push; fi"));
    assert_eq!(verdict(&push), Some(Reject));
}

#[test]
fn a_rule_that_might_match_takes_nothing_from_those_that_reject() {
    let known = [remember(1, run("git $HOW"), Allow, 5)];
    let decided = |rules: &str, once: Option<Verdict>, known: &[Remembered]| {
        let no_push = "{ decision = 'reject', command = 'git push*' }";
        let policy = policy(&rules.replace("NO PUSH", no_push));
        let question = params(run("git $HOW"));
        verdict(&decide(&policy, known, &Situation { once, ..here() }, &request(&question)))
    };
    for (rules, without, with_yes, with_known) in [
        ("rules = [NO PUSH]", None, None, Some(Allow)),
        ("default = 'allow'\nrules = [NO PUSH]", None, None, Some(Allow)),
        ("default = 'reject'\nrules = [NO PUSH]", Some(Reject), None, Some(Allow)),
        (
            "rules = [NO PUSH, { decision = 'allow', command = 'git $HOW' }]",
            None,
            None,
            Some(Allow),
        ),
        (
            "rules = [{ decision = 'allow', command = 'git $HOW' }, NO PUSH]",
            Some(Allow),
            Some(Allow),
            Some(Allow),
        ),
        ("rules = [{ decision = 'ask' }, NO PUSH]", None, None, Some(Allow)),
        ("rules = [NO PUSH, { decision = 'reject' }]", Some(Reject), Some(Reject), Some(Reject)),
        (
            "rules = [{ decision = 'ask' }, NO PUSH, { decision = 'reject' }]",
            None,
            Some(Reject),
            Some(Reject),
        ),
    ] {
        assert_eq!(decided(rules, None, &[]), without, "{rules}");
        assert_eq!(decided(rules, Some(Allow), &[]), with_yes, "--yes: {rules}");
        assert_eq!(decided(rules, None, &known), with_known, "remembered: {rules}");
        assert_eq!(decided(rules, Some(Reject), &[]), Some(Reject), "--deny: {rules}");
    }
}

#[test]
fn a_path_or_an_address_in_a_member_without_a_known_name_is_seen() {
    let secrets = "rules = [{ decision = 'reject', path = '**/.env' },
        { decision = 'reject', url = 'https://evil.org/**' }]";
    for input in [
        json!({"target": "/x/.env"}),
        json!({"upload": {"from": [".env"]}}),
        json!({"endpoint": "https://evil.org/x"}),
        json!({"endpoint": "evil.org/x"}),
    ] {
        let decision = with_yes(secrets, json!({"kind": "other", "rawInput": input}));
        assert_eq!(verdict(&decision), None, "{input}");
    }
    let other = with_yes(secrets, json!({"kind": "other", "rawInput": {"target": "/x/a"}}));
    assert_eq!(verdict(&other), Some(Allow));
    // The text of a file is no place and no command.
    let write = json!({"kind": "edit", "rawInput": {"file_path": "a", "content": ".env"}});
    assert_eq!(verdict(&with_yes(secrets, write)), Some(Allow));
}

#[test]
fn an_input_that_is_no_object_might_be_anything() {
    let rules = "rules = [{ decision = 'reject', command = 'git push*' }]";
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let situation = Situation { once: Some(Allow), ..here() };
    let params = with_input(&deep);
    assert_eq!(verdict(&decide(&policy(rules), &[], &situation, &request(&params))), None);
    let text = json!({"kind": "execute", "rawInput": "git push"});
    assert_eq!(verdict(&with_yes(rules, text)), None);
}

#[test]
fn a_rule_about_a_class_of_calls_does_not_look_into_their_input() {
    let call = json!({"kind": "other", "title": "db: query", "rawInput": {"sql": "select 1"}});
    assert_eq!(outcome(&allow("title = 'db: *'"), call.clone()), Some(Allow));
    assert_eq!(outcome(&allow("kind = 'other'"), call), Some(Allow));
}

#[test]
fn a_title_does_not_speak_for_a_command_that_says_something_else() {
    let call =
        json!({"kind": "execute", "title": "git status", "rawInput": {"command": "rm -rf x"}});
    assert_eq!(outcome(&allow("title = 'git status*'"), call), None);
    assert_eq!(outcome(&allow("title = 'git status*'"), run("git status -s")), Some(Allow));
}

#[test]
fn a_command_that_is_only_in_the_title_is_found() {
    let policy = reject("command = 'git push*'");
    let titled = |title: &str| json!({"kind": "execute", "title": title});
    assert_eq!(outcome(&policy, titled("git push origin [in /w]")), Some(Reject));
    assert_eq!(outcome(&policy, titled("`cd x && FOO=1 git push`")), Some(Reject));
    assert_eq!(outcome(&policy, titled("git pull")), None);
    assert_eq!(outcome(&policy, edit(&["git push"])), None);
}

#[test]
fn what_is_understood_of_a_call_is_told_whole() {
    let script = "cd x\n\nrm -rf \u{202e}y";
    let call = params(json!({"kind": "execute", "title": "tidy up", "locations": [{"path": "x"}],
        "rawInput": {"command": ["bash", "-lc", script], "cwd": "/w", "env": {"A": "b"},
            "hooks": {"after": "z"}}}));
    let understood = Understanding::of(&request(&call));
    assert!(!understood.is_whole());
    assert_eq!((understood.kind, understood.title.as_deref()), (Kind::Execute, Some("tidy up")));
    let commands: Vec<&str> = understood.commands.iter().map(|c| c.runs.as_str()).collect();
    assert_eq!((commands, understood.folder.as_deref()), (vec![script], Some("/w")));
    assert_eq!((understood.paths, understood.urls), (vec!["x".to_owned()], Vec::new()));
    let unclear: Vec<_> = understood.unclear.iter().map(|part| (&*part.member, part.why)).collect();
    assert_eq!(unclear, [("env", "is not known"), ("hooks", "is not known")]);
    assert!(matches!(understood.subject, Some(Subject::Call { .. })));
    let edits = json!({"path": "a", "edits": [{"old_string": "x", "then": "y"}]});
    let edit = params(json!({"kind": "edit", "rawInput": edits}));
    let unclear = Understanding::of(&request(&edit)).unclear;
    assert_eq!(unclear[0].member, "edits.then");
}
