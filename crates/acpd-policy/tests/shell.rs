//! Command lines in a real shell: a command that runs is found, and one that is allowed is all that runs.
//!
//! Nothing is harmed: the shell finds no program but those of [`PROGRAMS`], and a `git` and a `cargo` that
//! only write down how they were called.
#![cfg(unix)]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use acpd_policy::{Policy, Understanding, Verdict, decide};
use acpd_test::fuzz::{Outcomes, fuzz};
use proptest::prelude::*;
use support::lines::{ALLOWED, PUSHES, finds, rows};
use support::{allow, here, params, reject, request, run, verdict};
use tempfile::TempDir;

/// Returns whether the line finds only what is in the folder: no path of a program, no login shell, which has a
/// search path of its own.
fn is_confined(line: &str) -> bool {
    !line.contains("bin/") && !line.contains("-lc")
}

/// The programs that a line may use, and that only run others, or print.
const PROGRAMS: [&str; 13] = [
    "bash", "cat", "dash", "env", "find", "nice", "nohup", "setsid", "sh", "stdbuf", "tee",
    "timeout", "xargs",
];

/// A folder with programs, and one to work in.
struct Home {
    dir: TempDir,
}

impl Home {
    /// Nothing without a bash.
    #[expect(clippy::print_stderr, reason = "a test that did not run must be seen")]
    fn new() -> Option<Self> {
        if find("bash").is_none() {
            eprintln!("skipped: there is no bash");
            return None;
        }
        let dir = TempDir::new().expect("a folder for the test");
        for folder in ["bin", "work", "work/x"] {
            fs::create_dir(dir.path().join(folder)).expect("a new folder");
        }
        for program in PROGRAMS {
            if let Some(path) = find(program) {
                symlink(path, dir.path().join("bin").join(program)).expect("a new link");
            }
        }
        for name in ["git", "cargo"] {
            let log = dir.path().join(name);
            let script =
                format!("#!/bin/sh\nprintf '%s\\036' \"$@\" >> {0}\necho >> {0}\n", log.display());
            let path = dir.path().join("bin").join(name);
            fs::write(&path, script).expect("a new file");
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        Some(Self { dir })
    }

    /// Returns how the line calls the program: the arguments of each call.
    fn calls(&self, program: &str, shell: &str, line: &str) -> Vec<Vec<String>> {
        let log = self.dir.path().join(program);
        fs::write(&log, "").expect("a new file");
        let shell = self.dir.path().join("bin").join(shell);
        let done = Command::new(shell)
            .args(["-c", line])
            .current_dir(self.dir.path().join("work"))
            .env_clear()
            .env("PATH", self.dir.path().join("bin"))
            .env("HOME", self.dir.path().join("work"))
            .stdin(Stdio::null())
            .output();
        done.expect("the shell runs");
        let calls = fs::read_to_string(log).expect("it is there");
        let words = |call: &str| call.split_terminator('\u{1e}').map(str::to_owned).collect();
        calls.split_terminator('\n').map(words).collect()
    }

    fn pushes(&self, line: &str) -> bool {
        let calls = self.calls("git", "bash", line);
        calls.iter().any(|words| words.first().is_some_and(|word| word == "push"))
    }

    /// The files that lines have made.
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir.path().join("work")).expect("it is there");
        entries.map(|entry| entry.expect("it is readable").path()).collect()
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|path| path.is_file())
}

#[test]
fn the_table_of_spellings_tells_the_truth() {
    let Some(home) = Home::new() else { return };
    let (mut pushed, mut wrong) = (0, Vec::new());
    for (_, expected, line) in rows(PUSHES) {
        if is_confined(&line) && home.pushes(&line) {
            pushed += 1;
            if expected == "-" {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(pushed > 150, "{pushed} of the lines push");
}

#[test]
fn what_is_allowed_runs_just_that() {
    let Some(home) = Home::new() else { return };
    for (rule, expected, line) in rows(ALLOWED) {
        if rule != "cargo test*" || expected != "yes" || !is_confined(&line) {
            continue;
        }
        for shell in ["bash", "sh"] {
            let calls = home.calls("cargo", shell, &line);
            assert!(calls.len() == 1 && calls[0][0] == "test", "{line:?}: {calls:?}");
        }
    }
    assert_eq!(home.files().len(), 1, "{:?}", home.files());
}

/// Something around a push; what is written in it is quoted as each place wants it.
fn nested() -> impl Strategy<Value = String> {
    let push = prop::sample::select(vec![
        "git push",
        "git \\\n push",
        "\"git\" 'push'",
        "git $'pu\\x73h' origin",
        "FOO=1 git push",
        "A='x; y' B=\"$(echo 'z)')\" git push",
        ">/dev/null git push 2>&1",
        "git push # all of it",
        "git push &",
    ])
    .prop_map(str::to_owned);
    push.prop_recursive(4, 8, 1, |inner| {
        (inner, 0..AROUND.len(), any::<bool>()).prop_map(|(inner, at, double)| {
            let quoted = if double { double_quoted(&inner) } else { single_quoted(&inner) };
            let delimiter = format!("E{}", inner.len());
            AROUND[at].replace("PUSH", &inner).replace("QUOTED", &quoted).replace("EOF", &delimiter)
        })
    })
}

/// `PUSH` is the line, `QUOTED` the line as one word, `EOF` a delimiter of its own.
const AROUND: [&str; 40] = [
    "true; PUSH",
    "true\nPUSH",
    "echo \"it's\" && PUSH",
    "false || PUSH",
    "echo x | PUSH",
    "PUSH\n echo 'a; b'",
    "{ PUSH\n}",
    "(PUSH\n)",
    "if true; then PUSH\nfi",
    "if false; then :\nelse PUSH\nfi",
    "for i in 1 2; do PUSH\ndone",
    "while true; do PUSH\nbreak; done",
    "case x in a) :;; (x) PUSH\n;; esac",
    "f() { PUSH\n}; f",
    "function g { PUSH\n}; g",
    "time { PUSH\n}",
    "coproc { PUSH\n}; wait",
    "echo $(PUSH\n)",
    "echo \"a $(PUSH\n) b\"",
    "x=$(PUSH\n)",
    "x=(a \"$(PUSH\n)\")",
    "echo ${unset:-$(PUSH\n)}",
    "cat <(PUSH\n)",
    "[[ -n $(PUSH\n) ]]",
    "echo $((0$(PUSH\n) + 1))",
    "cat <<EOF\n$(PUSH\n)\nEOF",
    "bash -c QUOTED",
    "bash -euo pipefail -c QUOTED",
    "bash --norc -c QUOTED x y",
    "bash <<'EOF'\nPUSH\nEOF",
    "cat <<'EOF' | bash\nPUSH\nEOF",
    "bash <<< QUOTED",
    "echo QUOTED | bash",
    "eval QUOTED",
    "trap QUOTED EXIT",
    "env X=1 bash -c QUOTED",
    "nohup nice -n 1 timeout 9 bash -c QUOTED",
    "find . -maxdepth 0 -exec bash -c QUOTED \\;",
    "echo x | xargs -I{} bash -c QUOTED",
    "command eval QUOTED",
];

fn single_quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', "'\\''"))
}

fn double_quoted(line: &str) -> String {
    let mut quoted = String::from("\"");
    for c in line.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted + "\""
}

/// A line that begins as a plain command, with signs that mean something to a shell strewn over it.
fn strewn() -> impl Strategy<Value = String> {
    let sign = prop::sample::select(vec![
        "'", "\"", "\\", ";", "(", ")", "{", "}", "$", "`", "#", "<", ">x", "|", "&", "!", "[",
        "]", "$'", "~", "=~", ":", "*", "=", "{a,b}", "@{1}", "$HOME", "\"a b\"", "\\ ", "a=b",
        "x", "é", "\t", " ",
    ]);
    let word = (sign, prop::sample::select(vec!["", " "]))
        .prop_map(|(sign, blank)| format!("{sign}{blank}"));
    prop::collection::vec(word, 0..7).prop_map(|words| format!("cargo test {}", words.concat()))
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
static TESTS: LazyLock<Policy> = LazyLock::new(|| allow("command = 'cargo test *'"));
static OTHERS: LazyLock<Policy> = LazyLock::new(|| {
    let commands = "['cargo test*', 'ls*', 'x *', 'sudo *', 'env *', 'bash *', 'find *']";
    allow(&format!("command = {commands}"))
});

/// Checks what the rules make of a line, and a shell if it matters.
fn check(home: Option<&Home>, line: &str, outcomes: &Outcomes) {
    outcomes.execution();
    let question = params(run(line));
    let question = request(&question);
    let decided = |policy| decide(policy, &[], &here(), &question);
    // Rejected, or a rule might match.
    let is_found = decided(&NO_PUSH) != decided(&NO_RULE);
    let is_allowed = |policy| verdict(&decided(policy)) == Some(Verdict::Allow);
    let (tests, others) = (is_allowed(&TESTS), is_allowed(&OTHERS));
    outcomes.met(match (is_found, tests || others) {
        (true, true) => panic!("found and allowed: {line:?}"),
        (true, false) => "found",
        (false, true) => "allowed",
        (false, false) => "neither",
    });
    assert!(Understanding::of(&question).is_whole());
    if !tests && !others {
        return;
    }
    // A parser of its own says the same: these are words, and nothing else.
    let words =
        shlex::split(line.trim_matches([' ', '\t', '\n'])).filter(|words| !words.is_empty());
    let words = words.unwrap_or_else(|| panic!("no words: {line:?}"));
    // And a shell, for a part of them: one takes as long as a thousand decisions.
    let is_chosen = line.len().is_multiple_of(SHELLS);
    if let Some(home) = home.filter(|_| tests && is_chosen) {
        outcomes.met("run by a shell");
        for shell in ["bash", "sh"] {
            assert_eq!(home.calls("cargo", shell, line), [&words[1..]], "{line}");
            assert_eq!(home.files().len(), 1);
        }
    }
}

/// Each how many of the allowed lines a shell runs.
const SHELLS: usize = 4;

/// `cargo xtask fuzz command-lines`.
#[test]
fn command_lines() {
    let home = Home::new();
    let lines = prop_oneof![
        4 => soup().prop_map(|line| (line, false)),
        4 => nested().prop_map(|line| (line, true)),
        1 => strewn().prop_map(|line| (line, false)),
    ];
    let must_occur = ["found", "allowed", "neither"];
    let inputs = prop::collection::vec(lines, 1..16);
    fuzz("command-lines", 4_000, &must_occur, inputs, |lines, outcomes| {
        for (line, pushes) in lines {
            check(home.as_ref(), &line, outcomes);
            // Not every place in which a push is put lets it run.
            if pushes && !finds(&NO_PUSH, &line) {
                outcomes.met("a push that was not found");
                assert!(home.as_ref().is_none_or(|home| !home.pushes(&line)), "{line:?}");
            }
        }
    });
}
