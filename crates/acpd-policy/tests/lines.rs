//! Command lines in every spelling: what rules on commands make of them.

mod support;

use acpd_policy::RuleReport;
use support::lines::{ALLOWED, PUSHES, finds, report, rows};
use support::{IS_WINDOWS, allow, outcome, policy, reject, run};

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
        // A person is asked there about all that is not a plain program.
        let is_fine = IS_WINDOWS && found == "might" && matches!(expected, "-" | "unparsed");
        if found != expected && !is_fine {
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
        let is_expected = expected == "yes";
        if is_allowed != is_expected && (is_allowed || !IS_WINDOWS) {
            wrong.push(format!("{line:?} by `{command}`: {is_allowed}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn programs_launch_only_behind_their_words() {
    let policy = reject("command = 'rm *'");
    for (line, is_found) in [
        ("find . -executable -name rm", false),
        ("find . -exec grep -l rm {} +", false),
        ("find . -exec rm {} +", true),
        ("nix-shell x.nix --argstr cmd 'rm -rf y'", true),
    ] {
        assert_eq!(report(&policy, line).matched, is_found, "{line}");
    }
}

#[test]
fn l11_no_spelling_of_a_push_is_allowed_by_a_rule_for_another_command() {
    let policy = policy(
        "rules = [{ decision = 'allow', command = ['cargo test*', 'sudo *', 'env *', 'find *', 'sh *',
            'bash *', 'eval *', 'xargs *', 'timeout *', 'ssh *', 'docker *', 'uv run *', 'git rebase*', 'git status*',
            'FOO=*', 'echo *', '* -c *', '*x*'] }]",
    );
    for (heading, _, line) in rows(PUSHES).into_iter().filter(|(_, expected, _)| *expected != "-") {
        if line.starts_with("git -c") || heading == "In the hands of other programs" {
            // `* -c *` allows these, and `echo *`.
            continue;
        }
        assert_eq!(outcome(&policy, run(&line)), None, "{line:?}");
    }
}

/// Texts around a command that then still runs.
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
/// Traps for a parser: the start of the line, and what is repeated.
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
