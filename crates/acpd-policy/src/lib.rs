//! Who answers an agent's permission question when no person does.
//!
//! No input or output, no clock: [`decide`] looks at the rules of the user ([`Policy`]), at what a
//! person decided for always ([`Remembered`]), at where the question comes up ([`Situation`]) and
//! at the question, and says [`Decision::Ask`] or gives the answer. [`explain`] tells the way to it.
//!
//! A question is answered by the *kind* of its options, never by their ids or names. It is always
//! put to a person if it is not about a tool call, if two options are of one kind or have one id
//! (the agent lets somebody choose), or if an option is of a kind that is not in the protocol.
//!
//! # Who wins
//!
//! 1. the first rule that matches, if it says `reject`
//! 2. `--deny` of one run
//! 3. a remembered no
//! 4. the first rule that matches, if it says `allow`
//! 5. `--yes` of one run, then a remembered yes; but not over a later `reject` rule that matches
//! 6. the first rule that matches, if it says `ask`
//! 7. the default
//!
//! # How a rule matches
//!
//! All conditions that a rule names must hold; of several globs in a condition, one. `*` is any
//! text, `?` one character, `[ab]` a class, `[!ab]` its opposite; `[*]` is the character itself.
//!
//! | condition | compared with | `allow` needs | `reject` and `ask` need | `*` crosses `/` |
//! | --- | --- | --- | --- | --- |
//! | `agent` | name of the agent's profile | a match | a match | yes |
//! | `workspace` | working directory of the session; absolute, `~/…` or `**/…` | a match | a match | no, `**` does |
//! | `kind` | kind of the call; missing or unknown is `other` | to be listed | to be listed | |
//! | `title` | title, also without backticks around it | a match; if the call may run something, also no shell operator | a match of the whole or of a part between operators | yes |
//! | `command` | command in the input; `bash -lc SCRIPT` counts as `SCRIPT` | every command known and matching, no shell operator, to run inside the workspace | any command, whole or a part between operators, scripts in it too | yes |
//! | `path` | paths in locations, diffs and input, without `.` and `..` | at least one known, **all** matching | **any** matching | no, `**` does |
//! | `url` | addresses in the input, without fragment | at least one known, all matching and written plainly | any matching, also if written oddly | no, `**` does |
//!
//! - *Shell operators* are `;` `&` `|` `<` `>` `(` `)`, the backtick, and every control character
//!   but the tab, quoted or not. A glob without any wildcard allows exactly its own text,
//!   operators included.
//! - What an agent writes (title, command, path, url) is compared without case by `reject` and
//!   `ask`, with case by `allow`.
//! - A relative `path` is meant below the working directory of the session; `src/**` is all inside
//!   `src`, not `src` itself. In `reject` and `ask` rules `**/.env` is meant everywhere.
//! - An `allow` rule with `command`, `path` or `url` does not match if a part of the input cannot
//!   be read; one with `path` or `url` matches a call that runs a command only if it has `command`
//!   too.
//!
//! # What it cannot do
//!
//! It compares text. Links in the file system are not seen, an agent may describe its call wrongly,
//! and a program that may run may run others (`git -c core.pager=…`). A `reject` rule on commands
//! prevents accidents; a determined agent finds another spelling. For walls there are sandboxes.
//!
//! # What is remembered
//!
//! [`Subject`] is what a person saw and nothing more: one command line, a set of paths for one kind
//! of access, a set of addresses, or title and input of the call, always in one workspace of one
//! agent. Input that is not understood makes a subject narrower, never broader; a call with nothing
//! but a title cannot be remembered.

mod command;
mod config;
mod decide;
mod facts;
mod glob;
mod place;
mod policy;
mod rule;
mod subject;
mod workspaces;

pub use config::{Kind, List, PolicyConfig, RuleConfig, Ruling};
pub use decide::{By, Decision, Explanation, RuleReport, Situation, Verdict, decide, explain};
pub use policy::{Policy, PolicyError};
pub use subject::{Remembered, Subject, commands_of, subject_of};
pub use workspaces::{WorkspaceError, Workspaces};
