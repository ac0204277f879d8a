//! Tables of command lines.

use acpd_policy::{Policy, RuleReport, explain};

use super::{here, params, request, run};

/// Lines, and what a rule that rejects `git push*` makes of them.
pub const PUSHES: &str = include_str!("../lines/push.txt");
/// Lines, and what rules that allow make of them.
pub const ALLOWED: &str = include_str!("../lines/allow.txt");

/// The rows of a table: the heading that they stand under, what is expected, the line.
pub fn rows(table: &'static str) -> Vec<(&'static str, &'static str, String)> {
    let mut heading = "";
    let mut rows = Vec::new();
    for row in table.lines() {
        if let Some(text) = row.strip_prefix("## ") {
            heading = text;
        } else if !row.is_empty() && !row.starts_with('#') {
            let (expected, line) = row.split_once(' ').expect("a row has two columns");
            rows.push((heading, expected, line.trim_start().replace('⏎', "\n")));
        }
    }
    rows
}

/// Returns what the first rule makes of the line.
pub fn report(policy: &Policy, line: &str) -> RuleReport {
    let question = params(run(line));
    explain(policy, &[], &here(), &request(&question)).rules.remove(0)
}

/// Returns whether the first rule matches the line, or might.
pub fn finds(policy: &Policy, line: &str) -> bool {
    let RuleReport { matched, might_match, .. } = report(policy, line);
    matched || might_match
}
