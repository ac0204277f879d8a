//! Each verb has examples, and they are what the command line reads.

use std::collections::{BTreeMap, BTreeSet};

use clap::{CommandFactory as _, FromArgMatches as _, Parser as _};

use super::{Cli, Command, definition};
use crate::manual;

/// Programs with examples of their own.
const PROGRAMS: [&str; 2] = ["mcp", "web"];

/// Verbs that do something, by what is typed of them.
fn leaves<'c>(
    command: &'c clap::Command,
    path: &str,
    found: &mut Vec<(String, &'c clap::Command)>,
) {
    let has_arguments = command.get_positionals().next().is_some();
    let below = command.get_subcommands().filter(|under| !under.is_hide_set());
    let below: Vec<_> = below.filter(|under| under.get_name() != "help").collect();
    if below.is_empty() || has_arguments || path.is_empty() {
        found.push((path.to_owned(), command));
    }
    for under in below {
        leaves(under, format!("{path} {}", under.get_name()).trim(), found);
    }
}

/// The words of the `acpctl` in a line of a shell.
fn words(line: &str) -> Vec<String> {
    let (before, command) = line.split_at(line.find("acpctl").unwrap());
    let end = if before.ends_with('(') { command.rfind(')').unwrap() } else { command.len() };
    let words = shlex::split(&command[..end]).unwrap().into_iter();
    words.take_while(|word| !["|", ">", "<", "&&", ";"].contains(&word.as_str())).collect()
}

#[test]
fn each_verb_has_examples_of_its_own() {
    let all = definition();
    let mut verbs = Vec::new();
    leaves(&all, "", &mut verbs);
    verbs.retain(|(path, _)| !PROGRAMS.contains(&path.as_str()));
    for (path, verb) in &verbs {
        let examples = manual::examples_of(verb);
        let most = if path.is_empty() { 5 } else { 3 };
        let count = examples.len();
        assert!((1..=most).contains(&count), "`{path}` has {count} examples, not 1 to {most}");
        for (line, what) in examples {
            let parsed = Cli::command().try_get_matches_from(words(&line));
            let parsed = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
            Cli::from_arg_matches(&parsed).unwrap_or_else(|error| panic!("{line}: {error}"));
            let (mut meant, mut at) = (Vec::new(), &parsed);
            while let Some((name, under)) = at.subcommand() {
                meant.push(name);
                at = under;
            }
            assert!(path.is_empty() || *path == meant.join(" "), "{line} is of {meant:?}");
            assert!(!what.is_empty() && !what.ends_with('.'), "{line}: {what}");
        }
    }
}

#[test]
fn letter_of_an_option_has_one_meaning() {
    fn collect(command: &clap::Command, letters: &mut BTreeMap<char, BTreeSet<String>>) {
        for option in command.get_arguments() {
            if let (Some(letter), Some(long)) = (option.get_short(), option.get_long()) {
                letters.entry(letter).or_default().insert(long.to_owned());
            }
        }
        command.get_subcommands().for_each(|verb| collect(verb, letters));
    }
    let mut letters = BTreeMap::new();
    collect(&definition(), &mut letters);
    // A session's name is its name, whether it is there or not; a count is one of what is listed.
    let same: [(char, &[&str]); 2] =
        [('s', &["name", "session"]), ('n', &["limit", "lines", "tail", "turns"])];
    for (letter, names) in &mut letters {
        let like = same.iter().find(|(same, _)| same == letter).map_or(&[][..], |(_, like)| like);
        if names.iter().any(|name| like.contains(&name.as_str())) {
            names.retain(|name| !like.contains(&name.as_str()));
            names.insert(like.join(" or "));
        }
        assert_eq!(names.len(), 1, "`-{letter}` stands for {names:?}");
    }
    assert!(letters.len() > 10, "{letters:?}");
}

#[test]
fn prompt_may_be_words_or_a_dash() {
    let prompt = |args: &[&str]| {
        let args = ["acpctl", "run"].iter().chain(args);
        match Cli::try_parse_from(args).unwrap().command {
            Command::Run(run) => run.prompt,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(prompt(&["fix", "it"]), ["fix", "it"]);
    assert_eq!(prompt(&["review", "-"]), ["review", "-"]);
    assert_eq!(prompt(&["--", "--help me"]), ["--help me"]);
}

#[test]
fn a_command_line_names_its_sessions() {
    let named = |line: &str| Cli::parse(line.split(' ').map(Into::into)).expect("a command").named;
    assert_eq!(named("acpctl wait fix box/fix"), ["fix", "box/fix"]);
    assert_eq!(named("acpctl run --steer box/fix use a/b"), ["box/fix"]);
    assert_eq!(named("acpctl run --steer -s box/fix a/b"), ["box/fix"]);
    assert!(named("acpctl run a/b").is_empty());
}
