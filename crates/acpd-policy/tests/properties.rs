//! Properties of every permission request.

mod support;

use acp_wire::acp::PermissionRequest;
use acpd_policy::{By, Policy, Remembered, Situation, Verdict, decide, explain};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{CWD, by, here, params, policy, raw, request, run, subject, subject_of, verdict};

const OPERATORS: [&str; 14] =
    [";", "&", "&&", "|", "||", "\n", "\r", "`", "$(", "<(", ">(", ">", "<", "\0"];

/// Any JSON, with the members that matter more often than chance would have them.
fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[a-z/.~*` $;|'\"\\\\-]{0,12}",
        Just("bash -lc 'ls; rm x'".to_owned()),
        Just("https://a@b/../c?d#e".to_owned()),
        Just("~/../x".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "command",
        "cmd",
        "commands",
        "args",
        "cwd",
        "path",
        "file_path",
        "changes",
        "edits",
        "url",
        "kind",
        "title",
        "rawInput",
        "locations",
        "content",
        "type",
        "toolCallId",
        "x",
    ]);
    leaf.prop_recursive(5, 48, 6, move |inner| {
        let member = (key.clone().prop_map(str::to_owned), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Value::from),
            prop::collection::vec(member, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A policy with a condition of each sort, in rules of each ruling.
fn every_condition() -> Policy {
    let conditions = "title = '*a*'\ncommand = 'l*'\npath = ['**/a*', '~/**']\nurl = '*://**'";
    let mut rules = Vec::new();
    for ruling in ["allow", "ask", "reject"] {
        for condition in conditions.lines() {
            rules.push(format!("[[rules]]\ndecision = '{ruling}'\nagent = 'x*'\n{condition}"));
            rules.push(format!("[[rules]]\ndecision = '{ruling}'\n{condition}"));
        }
    }
    policy(&rules.join("\n"))
}

proptest! {
    #[test]
    fn no_question_panics(call in value(), cwd in any::<String>(), options in value()) {
        let policy = every_condition();
        let sound = params(json!({"kind": call["kind"], "title": call["title"],
            "rawInput": call, "locations": call["locations"], "content": call["content"]}));
        let wild = raw(&json!({"sessionId": "s", "toolCall": call, "options": options}));
        for question in [&sound, &wild] {
            let question = PermissionRequest::from_raw(question).expect("it has a session");
            let situation = Situation { agent: "x", cwd: &cwd, once: None };
            let explained = explain(&policy, &[], &situation, &question);
            prop_assert_eq!(explained.decision, decide(&policy, &[], &situation, &question));
            let reports = explained.rules.into_iter().flat_map(|rule| rule.why);
            prop_assert!(reports.chain(explained.subject.map(|s| s.to_string()))
                .all(|line| !line.contains(char::is_control)));
        }
    }

    #[test]
    fn a_wildcard_never_allows_a_shell_operator(
        start in "(git |)[ -~]{0,12}",
        operator in prop::sample::select(OPERATORS.to_vec()),
        end in "[ -~]{1,12}",
        form in 0..4,
    ) {
        let policy = policy("rules = [
            { decision = 'allow', command = ['git *', '*', '?*', '[!a]*'] },
            { decision = 'allow', kind = 'execute', title = '*' },
        ]");
        // Blanks at the end are no operators.
        prop_assume!(!end.trim().is_empty() && !start.trim().is_empty());
        let line = format!("{start}{operator}{end}");
        let command = match form {
            0 => json!(line),
            1 => json!(["bash", "-lc", line]),
            2 => json!(["git", line]),
            _ => json!(shlex::try_join(["sh", "-c", line.replace('\0', ";").as_str()])
                .expect("it can be quoted")),
        };
        let call = json!({"kind": "execute", "title": line, "rawInput": {"command": command}});
        prop_assert_eq!(support::outcome(&policy, call), None);
    }

    #[test]
    fn the_first_rule_that_matches_is_the_one_that_is_named(
        rules in prop::collection::vec((0_usize..3, 0_usize..3), 0..8),
    ) {
        let kinds = ["read", "edit", "execute"];
        let rulings = ["ask", "allow", "reject"];
        let texts = rules.iter().map(|(ruling, kind)| {
            format!("[[rules]]\ndecision = '{}'\nkind = '{}'\n", rulings[*ruling], kinds[*kind])
        });
        let policy = policy(&texts.collect::<Vec<_>>().concat());
        for (at, kind) in kinds.iter().enumerate() {
            let first = rules.iter().position(|(_, kind)| *kind == at);
            let decision = decide(&policy, &[], &here(), &request(&params(json!({"kind": kind}))));
            let wanted = first.filter(|first| rules[*first].0 != 0);
            let name = wanted.map(|first| By::Rule { name: format!("rule {}", first + 1) });
            prop_assert_eq!(by(&decision), name.as_ref());
        }
    }

    #[test]
    fn a_path_outside_is_never_allowed(
        inside in prop::collection::vec("[a-z.]{1,6}(/[a-z.]{1,6}){0,3}", 0..3),
        up in 1_usize..6,
        tail in "[a-z]{1,6}",
        at in any::<prop::sample::Index>(),
    ) {
        let mut paths: Vec<String> = inside.iter().map(|path| format!("src/{path}")).collect();
        let climb = format!("{CWD}/src/{}{tail}", "../".repeat(up));
        paths.insert(at.index(paths.len() + 1), climb);
        prop_assume!(up > 1 || tail != "src");
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let policy = support::allow("path = 'src/**'");
        prop_assert_eq!(support::outcome(&policy, support::edit(&paths)), None);
    }

    #[test]
    fn a_remembered_command_answers_for_no_other(one in "[ -~]{1,16}", other in "[ -~]{1,16}") {
        prop_assume!(one.trim() != other.trim() && !one.trim().is_empty());
        let known = Remembered {
            id: 1,
            agent: "claude".into(),
            workspace: CWD.into(),
            subject: subject(run(&one)).expect("it is known"),
            verdict: Verdict::Allow,
            at: 0,
        };
        let ask = |line: &str| {
            let params = params(run(line));
            verdict(&decide(&Policy::default(), std::slice::from_ref(&known), &here(), &request(&params)))
        };
        prop_assert_eq!(ask(&one), Some(Verdict::Allow));
        prop_assert_eq!(ask(&other), None);
    }

    #[test]
    fn calls_that_do_something_else_are_never_about_the_same(
        one in ("[ -~]{1,12}", "/[vw]", "[a-z]{1,4}", 0_u64..3),
        other in ("[ -~]{1,12}", "/[vw]", "[a-z]{1,4}", 0_u64..3),
        kind in prop::sample::select(vec!["execute", "edit", "read", "fetch", "other"]),
        member in prop::sample::select(vec!["command", "path", "url", "sql"]),
        in_shell in any::<bool>(),
        has_more in any::<bool>(),
    ) {
        prop_assume!(one.0.trim() != other.0.trim());
        // For files, only the kind and the paths are remembered.
        prop_assume!(member != "sql" || !matches!(kind, "edit" | "read"));
        let about = |(what, folder, id, at): &(String, String, String, u64)| {
            let what = if in_shell { json!(["/bin/bash", "-lc", what]) } else { json!(what) };
            let mut input = json!({"call_id": id, "turn_id": at, "started_at_ms": at, "cwd": folder});
            input[member] = what;
            if has_more {
                input["more"] = json!(true);
            }
            let call = json!({"toolCallId": id, "kind": kind, "title": "t", "rawInput": input});
            let params = raw(&json!({"sessionId": "s", "toolCall": call, "options": []}));
            subject_of(&params)
        };
        let (one, other) = (about(&one), about(&other));
        prop_assert!(one.is_none() || one != other, "{:?}", one);
    }
}
