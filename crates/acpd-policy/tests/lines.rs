//! Command lines in every spelling: what rules on commands make of them.

mod support;

use std::sync::LazyLock;

use acpd_policy::{Policy, RuleReport, Understanding, Verdict, decide};
use proptest::prelude::*;
use serde_json::json;
use support::lines::{ALLOWED, PUSHES, finds, report, rows};
use support::{allow, here, outcome, params, policy, reject, request, run, verdict};

#[test]
fn l11_every_spelling_of_a_push_is_found() {
    let policy = reject("command = 'git push*'");
    let rows = rows(PUSHES);
    assert!(rows.len() >= 200, "{} spellings", rows.len());
    let mut wrong = Vec::new();
    for (_, expected, line) in rows {
        let RuleReport { matched, might_match, why, .. } = report(&policy, &line);
        let is_cut = why.iter().any(|why| why.contains("cannot be parsed"));
        let found = match (matched, might_match) {
            (true, _) => "found",
            (_, true) if is_cut => "unparsed",
            (_, true) => "might",
            (false, false) => "-",
        };
        if found != expected {
            wrong.push(format!("{line:?}: {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn l11_what_a_rule_allows_is_one_plain_command() {
    let mut wrong = Vec::new();
    for (command, expected, line) in rows(ALLOWED) {
        let rule = toml::Value::from(command);
        let is_allowed = outcome(&allow(&format!("command = {rule}")), run(&line)).is_some();
        if is_allowed != (expected == "yes") {
            wrong.push(format!("{line:?} by `{command}`: {is_allowed}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn l11_no_spelling_of_a_push_is_allowed_by_a_rule_for_another_command() {
    let policy = policy(
        "rules = [{ decision = 'allow', command = ['cargo test*', 'sudo *', 'env *', 'find *', 'sh *',
            'bash *', 'eval *', 'xargs *', 'timeout *', 'ssh *', 'docker *', 'git -C *', 'git status*',
            'FOO=*', 'echo *', '* -c *', '*x*'] }]",
    );
    for (_, _, line) in rows(PUSHES).into_iter().filter(|(_, expected, _)| *expected != "-") {
        assert_eq!(outcome(&policy, run(&line)), None, "{line:?}");
    }
}

#[test]
fn l11_a_list_of_arguments_is_found_as_well() {
    let policy = reject("command = 'git push*'");
    for words in [
        json!(["git", "push"]),
        json!(["env", "FOO=1", "git", "push"]),
        json!(["bash", "-euo", "pipefail", "-c", "git \\\n push"]),
        json!(["/bin/bash", "-lc", "if true; then git push; fi"]),
        json!(["sudo", "sh", "-c", "FOO=1 git push"]),
    ] {
        let call = json!({"kind": "execute", "rawInput": {"command": words}});
        assert_eq!(outcome(&policy, call), Some(acpd_policy::Verdict::Reject), "{words}");
    }
}

/// What can be put around a command that then still runs.
const AROUND: [(&str, &str); 36] = [
    ("$(", ")"),
    ("\"$(", ")\""),
    ("<(", ")"),
    ("( ", " )"),
    ("((", "))"),
    ("$((", "))"),
    ("{ ", "; }"),
    ("${x:-$(", ")}"),
    ("${x[$(", ")]}"),
    ("`", "`"),
    ("if ls; then ", "; fi"),
    ("while ", "; do ls; done"),
    ("until ls; do ", "; done"),
    ("for x in a; do ", "; done"),
    ("select x in a; do ", "; done"),
    ("case x in x) ", ";; esac"),
    ("f() { ", "; }"),
    ("function f { ", "; }"),
    ("if f() { case $(", ") in x) ls;; esac; }; then ls; fi"),
    ("\"${x:-$(( $(", ") ))}\""),
    ("coproc ", ""),
    ("time ", ""),
    ("! ", ""),
    ("eval ", ""),
    ("env ", ""),
    ("find . -exec ", " +"),
    ("bash -c \"", "\""),
    ("cat <<E | ", ""),
    ("ls | ", ""),
    ("ls && ", ""),
    ("ls; ", ""),
    ("ls\n", ""),
    ("x=1 ", ""),
    (">x ", ""),
    ("<<<x ", ""),
    ("'' && ", ""),
];
/// What a parser could lose its way in: what begins the line, and what is repeated.
const ODD: [(&str, &str); 30] = [
    ("ls ", "'"),
    ("ls ", "\""),
    ("ls ", "\\"),
    ("ls ", "{a,"),
    ("ls ", "${x:-"),
    ("ls ", "${#"),
    ("ls ", "$["),
    ("ls ", "a["),
    ("ls ", "@("),
    ("ls ", "a=("),
    ("ls ", "<<E "),
    ("", "[[ ( "),
    ("", "[[ ! "),
    ("[[ ", "! "),
    ("[[ ", "a && "),
    ("[[ ", "a || "),
    ("ls $((", "- "),
    ("ls $((", "~"),
    ("ls $((", "++"),
    ("ls $((", "a="),
    ("ls $((", "2**"),
    ("ls $((", "a?1:"),
    ("((", "a?1:"),
    ("((", "a["),
    ("", "case "),
    ("", "case x in "),
    ("if a; then b; ", "elif a; then b; "),
    ("case x in ", "a) b;; "),
    ("", "! time "),
    ("", "a=b "),
];

#[test]
fn no_depth_and_no_length_is_too_much() {
    let reads = || {
        let policy = reject("command = 'git push*'");
        for (open, close) in AROUND {
            for depth in [10, 16, 48, 96, 97, 400] {
                let line = format!("{}git push{}", open.repeat(depth), close.repeat(depth));
                assert!(finds(&policy, &line), "{depth} times {open:?}");
            }
        }
        for (start, odd) in ODD {
            for depth in [10, 96, 97, 192, 193, 3000] {
                let line = format!("{start}{}\n\ngit push", odd.repeat(depth));
                assert!(finds(&policy, &line), "{depth} times {odd:?}");
            }
        }
    };
    // Half of what the threads of tests have.
    let thread = std::thread::Builder::new().stack_size(1024 * 1024).spawn(reads);
    thread.expect("it starts").join().expect("it ends well");
}

/// Words and signs that a shell knows, in any order.
fn soup() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        8 => prop::sample::select(vec![
            "git push", "git", "push", "cargo test", "ls", "x", "y z", "1", "-c", "--", "E", "\n", "\\\n",
            ";", "&", "&&", "|", "||", "|&", ";;", ";&", "(", ")", "((", "))", "{", "}", "{ ", "; }", "[",
            "]", "[[ ", " ]]", "<", "<<", "<<E\n", "\nE\n", "<<-E", "<<<", ">", ">>", ">|", "<>", "<&", ">&",
            "&>", "2>&1", "<(", ">(", "$", "$(", "$((", "${", "$'", "$\"", "'", "\"", "`", "\\", "\\`", "#",
            "!", "~", "*", "?", "=", "+=", "a=", "a[0]=", "a=(", "if ", "then ", "else ", "elif ", "fi",
            "for x in ", "for ((", "do ", "done", "while ", "until ", "case x in ", "esac", "select ",
            "function f", "f()", "coproc ", "time ", "exec ", "env ", "sudo ", "eval ", "xargs ", "find ",
            "-exec ", "bash -c ", "sh ", "'git push'", "{a,b}", "{1..3}", "{fd}>", "@(", "!(", "${x:-",
            "${x/", "${#", "${!x", "${x[@]}", "$x", "$@", "$[", "\r", "\t", "\0", "\u{feff}", "\u{202e}",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    let tokens = prop::collection::vec((token, prop::sample::select(vec!["", "", " "])), 0..40);
    tokens.prop_map(|tokens| tokens.into_iter().map(|(token, blank)| token + blank).collect())
}

static NO_RULE: LazyLock<Policy> = LazyLock::new(Policy::default);
static NO_PUSH: LazyLock<Policy> = LazyLock::new(|| reject("command = 'git push*'"));
static OTHERS: LazyLock<Policy> = LazyLock::new(|| {
    let commands = "['cargo test*', 'ls*', 'x *', 'sudo *', 'env *', 'bash *', 'find *', 'git -*']";
    allow(&format!("command = {commands}"))
});

// `PROPTEST_CASES=10000000 cargo test --release -p acpd-policy --test lines soup` looks for longer.
proptest! {
    #[test]
    fn no_soup_of_words_and_signs_panics_or_is_allowed_for_something_else(line in soup()) {
        let question = params(run(&line));
        let question = request(&question);
        let decided = |policy| decide(policy, &[], &here(), &question);
        // Rejected, or a rule might match.
        let is_found = decided(&NO_PUSH) != decided(&NO_RULE);
        let is_allowed = verdict(&decided(&OTHERS)) == Some(Verdict::Allow);
        prop_assert!(!(is_found && is_allowed), "{:?}", line);
        prop_assert!(Understanding::of(&question).is_whole());
        if is_allowed {
            // A parser of its own says the same: these are words, and nothing else.
            let words = shlex::split(line.trim());
            prop_assert!(words.is_some_and(|words| !words.is_empty()), "{:?}", line);
        }
    }
}
