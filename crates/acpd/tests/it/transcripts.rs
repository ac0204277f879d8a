//! Output of `acpctl`, word for word: the help of each verb, errors with their exit codes, and what scripts get.
//!
//! `a_day.rs` has what the verbs show on a terminal.

use std::fmt::Write as _;

use acpd_test::harness::{Agent, Config, Output, Running, TestEnv};

use crate::{echo, home_with};

/// Patterns that differ from run to run, with their replacements.
const FILTERS: [(&str, &str); 3] = [
    (r"/tmp/acpd-\w{6}", "[home]"),
    (r"acpd \d+\.\d+\.\d+", "acpd [version]"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[id]"),
];

/// What differs in the data of sessions.
const NUMBERS: [(&str, &str); 4] = [
    (r#""(at|since|startedAt|created|updated|lastLine|seq|pid)": ?\d+"#, r#""$1": [number]"#),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "[date]"),
    (r"demo-[0-9a-f]{16,}", "[id]"),
    (r"\b1-\d{2,}\b", "[question]"),
];

/// Lines of a shell without a terminal, one after the other in the same home.
const LINES: [&str; 87] = [
    "acpctl run -s fix '[think a secret] read [tool Edit the parser] it'",
    "acpctl run --json -s fix '[chunks 2] [tool Edit again] [cost 0.25] #two' 2>/dev/null",
    "acpctl run --json -s fix '[error -32603 no model]' 2>/dev/null",
    "acpctl run -s fix '[stop refusal]' && echo done",
    "acpctl run -s fix '[stop cancelled]'",
    "acpctl run -s fix '[stop max_tokens]'",
    "mkdir ../here ../there && acpctl run --cwd ../here -s fix 'here?'",
    "acpctl run --cwd ../there -s fix 'and there?'",
    "acpctl run -c more",
    "acpctl run --continue -a other more",
    "acpctl run -c -s fix more",
    "acpctl run -d -s bg hello; acpctl wait bg",
    r"printf 'hello\n' | acpctl run",
    r"printf 'a\000b' | acpctl run",
    r"printf '%b\n' '-caf\351' '+caf\303\251' | acpctl run",
    r"printf 'first\n\n' >first.md; printf 'from stdin\n' | acpctl run --prompt-file first.md --prompt-file - now go",
    "acpctl run -s set --model 'demo large' --mode code --set verbose=on go",
    "acpctl session log -n 1 --answer",
    "acpctl run -s none --mode nope go; acpctl run -s none --set x=y go; acpctl session show none",
    "acpctl session set set",
    "acpctl session set set MODEL",
    "acpctl session set set verbose",
    "acpctl session set set model 'demo small'",
    "acpctl session set set verbose off --json",
    "acpctl session mode set",
    "acpctl session mode set ask",
    "acpctl session commands set",
    "acpctl session commands set --json | head -n 5",
    "acpctl run -s story --file first.md '[think hm] [plan] see [tool Edit a.rs]' 2>/dev/null",
    "acpctl run -s story '[tool Edit b.rs] [chunks 2] [crash]'",
    "acpctl run -s story 'and now?' 2>/dev/null",
    "acpctl session export story",
    "acpctl session export story --format json",
    "acpctl session handoff story --to other -s taken 'go on'",
    "acpctl session handoff story --to other -s taken 'go on'",
    r#"for word in one two three; do acpctl run -s long "[big 30000] $word" >/dev/null; done 2>&1"#,
    "acpctl session handoff long --to other go on",
    "grep session/prompt ../../agents/other.record | tail -n 1 | grep -o 'big 30000. [a-z]*'",
    "acpctl session handoff long --to other --all go on",
    "acpctl run -s short '[big 80000]' >/dev/null && acpctl session handoff short --to other go on",
    "acpctl run -s gone --cwd ../here stay && rm -r ../here && acpctl agent restart echo",
    "acpctl session show gone | head -n 2; cd ../there && rmdir ../there && acpctl session show gone | head -n 2",
    "acpctl run -r gone more",
    "acpctl wait gone",
    "acpctl session handoff gone --to other 'go on'",
    "acpctl run -d -s asks '[ask]'; until acpctl pending asks; do sleep 0.02; done 2>/dev/null",
    "acpctl session log asks",
    "acpctl pending as",
    "acpctl allow as",
    "acpctl allow asks; acpctl wait asks; acpctl session log asks | tail -n 2",
    "acpctl run --worktree=tree look",
    "git init -q -b main . && acpctl run --worktree=tree look",
    "git config user.name a && git config user.email a@b && git add . && git commit -q -m one && echo 1 >>first.md",
    "acpctl run --worktree=tree look",
    "acpctl run --worktree=tree look",
    "git branch acpd/other && acpctl run --worktree=other look",
    "acpctl run --worktree='a b' look",
    "acpctl run --worktree=../x look",
    "PATH=${PATH%%:*} acpctl run --worktree=other look",
    "acpctl run --worktree=nobody -a nope look; ls ../main.worktrees; git branch --list 'acpd/n*'",
    "cd ../main.worktrees/tree && echo 2 >new && git add . && git commit -q -m two && echo 3 >more",
    "acpctl session worktree",
    "acpctl session worktree tree",
    "acpctl session worktree tree --merge",
    "rm ../main.worktrees/tree/more; acpctl session worktree tree --remove",
    "acpctl run -d -s tree '[hang-cancel]' --cwd ../main.worktrees/tree; acpctl session worktree tree --merge; acpctl cancel tree",
    "git checkout -q first.md && acpctl session worktree tree --merge --json",
    "cat new; acpctl session worktree tree --remove; ls ../main.worktrees; git branch --list 'acpd/t*'",
    "acpctl run --worktree=kept look && acpctl session rm --yes kept",
    r"printf '#!/bin/sh\necho no husky >&2; exit 1\n' >.git/hooks/post-checkout && chmod +x .git/hooks/post-checkout",
    "acpctl run --worktree=hook look; rm .git/hooks/post-checkout; git -C ../main.worktrees/hook status --porcelain",
    "cd ../main.worktrees/hook && echo theirs >first.md && git commit -q -a -m theirs; cd - >/dev/null && echo ours >first.md && git commit -q -a -m ours",
    "git switch -q -c mine HEAD~1 && git commit -q --allow-empty -m mine && git switch -q main && git merge -q --no-commit --no-ff mine 2>/dev/null; acpctl session worktree hook --merge",
    "ls .git/MERGE_HEAD; git merge --abort; acpctl session worktree hook --merge --remove; git status --porcelain; ls ../main.worktrees",
    "acpctl session worktree hook --remove --force; ls ../main.worktrees",
    "echo 'first.md filter=f' >.gitattributes && git add . && git commit -q -m filter && git config filter.f.smudge false && git config filter.f.required true",
    "acpctl run --worktree=half look; ls ../main.worktrees; git branch --list 'acpd/h*'; git config --get-regexp 'acpd/h'",
    "acpctl run -d -s busy '[hang-cancel]'; acpctl session rm --yes busy",
    "acpctl wait busy --timeout 100ms",
    "acpctl session rm --yes --force busy",
    "acpctl help run >/dev/full",
    "acpctl ps --watch",
    "acpctl attach fix --control",
    "acpctl session rm fix --older-than 1d",
    "acpctl session rm --older-than 30",
    "acpctl session rm --glob [",
    "acpctl wait fix --timeout 10",
];

/// Arguments of one run each: mistakes that people make while a daemon runs with one session, `fix`.
const MISTAKES: [&[&str]; 67] = [
    &[],
    &["runn"],
    &["fix the bug"],
    &["run"],
    &["run", "-a", "nope", "hello"],
    &["run", "-r", "nope", "hello"],
    &["run", "--file", "missing.txt", "hello"],
    &["run", "--image", "missing.png", "hello"],
    &["run", "--timeout", "soon", "hello"],
    &["run", "--model", "nope", "hello"],
    &["run", "--worktree", "hello"],
    &["run", "--set", "model", "hello"],
    &["run", "--prompt-file", "/dev/null"],
    &["run", "--prompt-file", "missing"],
    &["run", "--prompt-file", "-", "and", "-"],
    &["attach", "nope"],
    &["wait", "nope"],
    &["cancel", "nope"],
    &["cancel", "fix"],
    &["ps", "extra"],
    &["top"],
    &["chat"],
    &["session"],
    &["session", "list", "extra"],
    &["session", "show", "nope"],
    &["session", "log", "nope"],
    &["session", "log", "fix", "-n", "x"],
    &["session", "search"],
    &["session", "rename", "fix"],
    &["session", "rename", "nope", "other"],
    &["session", "archive", "nope"],
    &["session", "close", "nope"],
    &["session", "rm", "nope"],
    &["session", "rm", "fix"],
    &["session", "undo"],
    &["session", "mode", "fix", "nope"],
    &["session", "set", "fix", "nope", "1"],
    &["session", "handoff", "fix"],
    &["session", "handoff", "fix", "--to", "nope"],
    &["session", "reseed", "nope"],
    &["session", "fork", "nope"],
    &["session", "export", "nope"],
    &["queue", "nope"],
    &["queue", "rm", "fix", "1"],
    &["usage", "--since", "never"],
    &["agent", "show", "nope"],
    &["agent", "start", "nope"],
    &["agent", "stop", "nope"],
    &["agent", "restart", "nope"],
    &["auth", "login", "nope"],
    &["auth", "logout", "echo"],
    &["pending", "nope"],
    &["allow"],
    &["allow", "nope"],
    &["deny", "nope"],
    &["answer", "1-99"],
    &["policy", "test"],
    &["policy", "forget", "nope"],
    &["trace", "nope"],
    &["config", "get", "nope"],
    &["config", "get", "daemon.nope"],
    &["config", "set", "daemon.nope", "1"],
    &["backup", "missing/backup.db"],
    &["restore", "missing.db"],
    &["completions", "tcsh"],
    &["gc", "extra"],
    &["help", "nope"],
];

fn add(transcript: &mut String, line: &str, done: &Output) {
    writeln!(transcript, "$ {line}").unwrap();
    let exit = (0..=255).find(|code| done.code_is(*code)).expect("an exit code");
    for (name, text) in [("", done.stdout()), ("stderr: ", done.stderr())] {
        for line in text.lines() {
            writeln!(transcript, "{}", format!("{name}{line}").trim_end()).unwrap();
        }
    }
    writeln!(transcript, "[exit {exit}]\n").unwrap();
}

fn add_mistake(env: &TestEnv, args: &[&str], transcript: &mut String) {
    add(transcript, &format!("acpctl {}", args.join(" ")), &env.acpctl(args));
}

fn assert_transcript(name: &str, filters: &[(&str, &str)], transcript: &str) {
    insta::with_settings!({ filters => filters.to_vec(), omit_expression => true }, {
        insta::assert_snapshot!(name, transcript);
    });
}

/// The names below `Commands:` in a help text.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list = list.take_while(|line| !line.is_empty());
    let named = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

fn add_help(env: &TestEnv, verb: &[String], transcript: &mut String) {
    let args: Vec<&str> = verb.iter().map(String::as_str).chain(["--help"]).collect();
    let help = env.acpctl(&args);
    add(transcript, &format!("acpctl {}", args.join(" ")), &help);
    for name in subcommands(help.stdout()).into_iter().filter(|name| name != "help") {
        add_help(env, &[verb, &[name]].concat(), transcript);
    }
}

#[test]
fn help_of_each_verb_is_as_it_was() {
    let env = home_with(&Config::new([echo()]));
    let mut transcript = String::new();
    add_help(&env, &[], &mut transcript);
    assert_transcript("help", &FILTERS, &transcript);
}

#[test]
fn mistakes_are_explained_as_they_were() {
    let env = home_with(&Config::new([echo()]));
    let mut transcript = String::new();
    for args in [
        &["--no-spawn", "ps"][..],
        &["--no-spawn", "run", "hello"],
        &["--no-spawn", "daemon", "restart"],
        &["daemon", "stop"],
    ] {
        add_mistake(&env, args, &mut transcript);
    }
    env.acpctl(&["run", "-s", "fix", "hello"]).success();
    for args in MISTAKES {
        add_mistake(&env, args, &mut transcript);
    }
    assert_transcript("mistakes", &FILTERS, &transcript);
}

#[test]
fn scripts_get_what_they_got() {
    let env = home_with(&Config::new([echo(), Agent::new("other")]));
    let acpctl = env.program("acpctl");
    let path = format!("{}:/usr/bin:/bin", acpctl.parent().expect("a folder").display());
    let mut transcript = String::new();
    for line in LINES {
        let mut command = env.command("sh");
        command.args(["-c", line]).env("PATH", &path).env("GIT_CONFIG_GLOBAL", "/dev/null");
        add(&mut transcript, line, &Running::start(command).finish());
    }
    assert_transcript("scripts", &[&FILTERS[..], &NUMBERS].concat(), &transcript);
}
