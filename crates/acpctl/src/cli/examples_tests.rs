//! That every command has examples, and that they are what the command line reads.

use std::collections::{BTreeMap, BTreeSet};

use clap::{CommandFactory as _, FromArgMatches as _, Parser as _};

use super::{Cli, examples, whole};

/// The commands that do something, by what is typed of them.
fn leaves(command: &clap::Command, path: &str, found: &mut Vec<String>) {
    let has_arguments = command.get_positionals().next().is_some();
    let below = command.get_subcommands().filter(|under| !under.is_hide_set());
    let below: Vec<_> = below.filter(|under| under.get_name() != "help").collect();
    if below.is_empty() || has_arguments || path.is_empty() {
        found.push(if path.is_empty() { "acpctl".to_owned() } else { path.to_owned() });
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
fn each_command_that_does_something_has_examples_that_are_its_own() {
    let mut all = Vec::new();
    leaves(&whole(), "", &mut all);
    for path in &all {
        let of = examples::ALL.iter().find(|(of, _)| of == path);
        let (_, examples) = of.unwrap_or_else(|| panic!("`{path}` has no example"));
        let most = if path == "acpctl" { 5 } else { 3 };
        assert!((1..=most).contains(&examples.len()), "`{path}` has {}", examples.len());
        for (line, what) in *examples {
            let parsed = Cli::command().try_get_matches_from(words(line));
            let parsed = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
            Cli::from_arg_matches(&parsed).unwrap_or_else(|error| panic!("{line}: {error}"));
            let (mut meant, mut at) = (Vec::new(), &parsed);
            while let Some((name, under)) = at.subcommand() {
                meant.push(name);
                at = under;
            }
            assert!(path == "acpctl" || *path == meant.join(" "), "{line} is of {meant:?}");
            assert!(!what.is_empty() && !what.ends_with('.'), "{line}: {what}");
        }
    }
}

/// Those below `web` are read, and tested, by the program behind it.
#[test]
#[cfg(all(feature = "mcp", feature = "tui", feature = "web"))]
fn no_examples_are_left_of_a_command_that_is_gone() {
    let mut all = Vec::new();
    leaves(&whole(), "", &mut all);
    for (path, _) in examples::ALL.iter().filter(|(path, _)| !path.starts_with("web ")) {
        assert!(all.contains(&(*path).to_owned()), "no command `{path}`");
    }
}

#[test]
fn the_long_help_has_examples_below_the_notes_and_the_short_one_has_none() {
    let help = |args: &[&str]| Cli::try_parse_from(args).unwrap_err().to_string();
    let long = help(&["acpctl", "wait", "--help"]);
    let (notes, examples) = long.split_once("\n\nExamples:\n").unwrap();
    assert!(notes.contains("Prints a line for each session"), "{long}");
    let first =
        "  acpctl wait main docs --timeout 30m\n      Wait for both, half an hour at most\n";
    assert!(examples.starts_with(first), "{long}");
    let short = help(&["acpctl", "wait", "-h"]);
    assert!(short.contains("Prints a line for each session"), "{short}");
    assert!(!short.contains("Examples:"), "{short}");
    // However its help is asked for, and whether it has arguments of its own.
    for args in [
        &["acpctl", "--help"][..],
        &["acpctl", "help", "run"],
        &["acpctl", "session", "ls", "--help"],
        &["acpctl", "help", "session", "ls"],
        &["acpctl", "queue", "--help"],
        &["acpctl", "queue", "rm", "--help"],
        &["acpctl", "completions", "--help"],
    ] {
        assert!(help(args).contains("\n\nExamples:\n  "), "{args:?}: {}", help(args));
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
    collect(&whole(), &mut letters);
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
