//! `acpctl man`: the manual pages of a package, from the definition of the command line.

use std::path::Path;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::error::Result;
use crate::manual;

/// Writes `acpctl.1`, and `acpctl-VERB.1` for each command.
pub(super) fn man(dir: &Path) -> Result<()> {
    Ok(manual::write(Cli::command(), dir)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_page_of_a_command_that_does_something_has_examples_and_none_has_extras() {
        /// Of those that only hold others.
        const GROUPS: [&str; 7] =
            ["agent", "auth", "config", "daemon", "policy", "service", "session"];
        let dir = tempfile::tempdir().unwrap();
        man(dir.path()).unwrap();
        let mut without = Vec::new();
        for page in fs::read_dir(dir.path()).unwrap() {
            let page = page.unwrap();
            let text = fs::read_to_string(page.path()).unwrap();
            assert!(!text.contains("\n.SH EXTRA\n"), "{:?}", page.file_name());
            if !text.contains("\n.SH EXAMPLES\n") {
                without.push(page.file_name().into_string().unwrap());
            }
        }
        without.sort();
        assert_eq!(without, GROUPS.map(|group| format!("acpctl-{group}.1")));
        let text = fs::read_to_string(dir.path().join("acpctl.1")).unwrap();
        assert!(text.contains("\n.SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\ndone\n"), "{text}");
    }
}
