//! Rules of the user that answer an agent's permission requests when no person does.
//!
//! No input or output, no clock: [`decide`] looks at the rules ([`Policy`]), at what a person decided for always
//! ([`Remembered`]), at where the request comes up ([`Situation`]) and at the request. [`explain`] reports how it
//! decides. `docs/configuration.md` says how rules are written and what they match; this is what they are built on:
//!
//! - **Kinds of options.** A request is answered by the kind of its options, never by their ids or names. It is
//!   put to a person if it is not about a tool call, if two options are of one kind or have one id, or if an
//!   option is of an unknown kind.
//! - **The whole call.** A call is fully understood if its input is an object and each member is known, comes
//!   once and has a value as it has to be ([`Understanding`]). An `allow` rule with `command`, `path` or `url`
//!   matches no other call, and so does every `allow` rule if the call may run something. `reject` and `ask`
//!   rules look at every text in what is not understood, and might match.
//! - **Plain commands.** A wildcard of an `allow` rule matches further words of one plain command: no operator,
//!   nothing that a shell fills in, no comment. It does not choose what runs behind an assignment or a program
//!   that runs others. A glob without wildcards allows exactly its own text.
//! - **Every command.** `reject` and `ask` rules look at every command in a line, in scripts and in the
//!   arguments of programs that run others. They might match if anything in the line could be such a command,
//!   or if the line is not understood; then a person is asked instead of what would allow.
//! - **Subjects.** A decision is remembered for what a person saw and nothing more ([`Subject`]), in one
//!   workspace of one agent.
//!
//! Rules compare text. Links in the file system are not seen, an agent may describe its call wrongly, and a
//! program that may run may run others: rules prevent accidents; for walls there are sandboxes.

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
mod policy;
mod readings;
mod rule;
mod shell;
mod situation;
mod subject;
mod understanding;
mod workspaces;

pub use config::{Kind, List, PolicyConfig, RuleConfig, Ruling};
pub use decide::{By, Decision, Explanation, decide, explain};
pub use glob::GlobError;
pub use matching::RuleReport;
pub use policy::Policy;
pub use rule::PolicyError;
pub use situation::{Situation, Verdict};
pub use subject::{Remembered, Subject};
pub use understanding::{UnclearMember, Understanding};
pub use workspaces::Workspaces;
