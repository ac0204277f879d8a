//! Rules of the user that answer permission requests.
//!
//! [`decide`] has no I/O and no clock. Its input is the rules ([`Policy`]), remembered decisions
//! ([`Remembered`]), the session ([`Situation`]) and the request. [`explain`] reports the reasons.
//! `docs/configuration.md` describes rules; these are the principles:
//!
//! - **Kinds of options.** A request is answered by the kind of its options, never by ids or names.
//!   A person decides if it is not about a tool call, if two options have one kind or id, or if a
//!   kind is unknown.
//! - **The whole call.** A call is understood if its input is an object and each member is known,
//!   comes once and has a valid value ([`Understanding`]). An `allow` rule with `command`, `path`
//!   or `url` matches only such calls, and so does every `allow` rule if the call may run
//!   something. `reject` and `ask` rules search all texts that are not understood, and might match.
//! - **Plain commands.** A wildcard of an `allow` rule matches further words of one plain command:
//!   no operator, expansion or comment. It does not choose the program after an assignment or a
//!   program that runs others. A glob without wildcards allows exactly its own text.
//! - **Every command.** `reject` and `ask` rules search every command in a line, in scripts and in
//!   arguments of programs that run others. They might match if anything could be such a command,
//!   or if the line is not understood; then a person decides instead of an allowing rule.
//! - **Subjects.** A decision is remembered only for what a person saw ([`Subject`]), in one
//!   workspace of one agent.
//!
//! Rules compare text. They do not see links in the file system, an agent may describe its call
//! wrongly, and an allowed program may run others. Rules prevent accidents; security needs a
//! sandbox.

mod allowing;
mod cautious;
mod command;
mod config;
mod decide;
mod facts;
mod glob;
mod matching;
mod members;
mod one_line;
mod place;
mod readings;
mod rule;
mod shell;
mod subject;

pub use command::Command;
pub use config::{Kind, List, PolicyConfig, RuleConfig, Ruling};
pub use decide::{By, Decision, Explanation, decide, explain};
pub use facts::{Unclear, Understanding};
pub use glob::{GlobError, Workspaces};
pub use matching::RuleReport;
pub use rule::{Policy, PolicyError};
pub use subject::{Remembered, Situation, Subject, Verdict};
