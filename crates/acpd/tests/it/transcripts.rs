//! Output of `acpctl`, word for word: the help of each verb, and errors with their exit codes.
//!
//! `a_day.rs` has what the verbs show on a terminal, `scripts.rs` what scripts get.

use std::fmt::Write as _;

use acpd_test::harness::{Config, Output, TestEnv};

use crate::{echo, home_with};

/// Patterns that differ from run to run, with their replacements.
pub(crate) const FILTERS: [(&str, &str); 3] = [
    (r"/tmp/acpd-\w{6}", "[home]"),
    (r"acpd \d+\.\d+\.\d+", "acpd [version]"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[id]"),
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

pub(crate) fn add(transcript: &mut String, line: &str, done: &Output) {
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

pub(crate) fn assert_transcript(name: &str, filters: &[(&str, &str)], transcript: &str) {
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
