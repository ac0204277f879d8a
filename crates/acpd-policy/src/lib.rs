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
//! A `reject` or `ask` rule *might match* if that depends on something that cannot be told: what a
//! shell fills in, a line that cannot be parsed, a member of the input that is not understood. Such a
//! rule asks a person in place of a later `allow` rule and of a default that allows. A `reject` rule that
//! might match also holds `--yes` back, wherever it stands. It does not hold back a remembered yes: that is
//! a person's answer to this very call.
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
//! | `title` | title, also without backticks around it | a match; if the call may run something, title and commands must be plain commands that match | a match of the whole or of a command in it | yes |
//! | `command` | command in the input; `bash -lc SCRIPT` counts as `SCRIPT` | every command known, a plain command, and matching; to run inside the workspace | any command that could run in it; without one in the input, in the title | yes |
//! | `path` | paths in locations, diffs and input, without `.` and `..` | at least one known, **all** matching | **any** matching | no, `**` does |
//! | `url` | addresses in the input, as browsers normalise them, without user and fragment | at least one known, all matching and written plainly | any matching, also if written oddly | `allow`: no, `**` does; else yes |
//!
//! - A *plain command* is parsed as one command: no shell operator (`;` `&` `|` `<` `>` `(` `)`, the
//!   backtick, and every control character but the tab, quoted or not), nothing that a shell fills in
//!   (variables, `*`, `?`, `[`, `~`, braces), no comment. If it begins with an assignment, or runs others
//!   (`sudo`, `env`, `timeout`, `bash`, `find … -exec`), the glob says that, and the word that follows it,
//!   before its first wildcard: `RUST_LOG=debug cargo *`, `timeout 60 cargo test*`; `sudo *` allows
//!   nothing. A glob without any wildcard allows exactly its own text if that can be parsed, whatever is
//!   in it.
//! - `reject` and `ask` look at every command that a shell would run, by the grammar of bash: in lists,
//!   pipelines, compound commands, functions and substitutions, with and without the assignments before it
//!   and the folder of its program, without quotes; in the arguments of programs that run others, in
//!   scripts (`sh -c`, `eval`) and in what a shell is given to read; and at the text between operators. They might match
//!   if a program could take some text in the line, from a word to the next operator, for such a command.
//! - What an agent writes (title, command, path, url) is compared without case by `reject` and
//!   `ask`, with case by `allow`.
//! - On Windows a line that is not a plain program with arguments might match each `reject` and `ask` rule,
//!   and no wildcard allows it.
//! - A relative `path` is meant below the working directory of the session; `src/**` is all inside
//!   `src`, not `src` itself. In `reject` and `ask` rules `**/.env` is meant everywhere.
//!
//! # The whole call
//!
//! A call is *fully understood* if its input is an object and acpd knows each member, once, with a value
//! as it has to be (`members.rs`). A second command, a second folder, an environment, a script, another
//! shell, something to read: nothing of that is passed over. Neither is a title, content or place of the call
//! that cannot be read.
//!
//! - An `allow` rule with `command`, `path` or `url` matches only a call that is fully understood, and so
//!   does every `allow` rule if the call may run something. It must have each of these conditions that the
//!   input gives cause for: one with `path` alone allows no command.
//! - An `allow` rule with other conditions alone (`kind = "read"`, `title = "db: *"`) is about a class of
//!   calls, whatever their input; but a command or a change of files in it must be of a kind that it lists, or it has a
//!   `command` or `path` for it.
//! - `reject` and `ask` rules look at every text in a member that is not understood. They might match if one
//!   of these texts does.
//! - [`Understanding`] is what those show who ask a person.
//!
//! # What it cannot do
//!
//! It compares text. Links in the file system are not seen, an agent may describe its call wrongly,
//! and a program that may run may run others (`git -c core.pager=…`, `make`, `python`). A `reject` rule on
//! commands prevents accidents; a determined agent finds another way. For walls there are sandboxes.
//!
//! # What is remembered
//!
//! [`Subject`] is what a person saw and nothing more: one command line, a set of paths for one kind
//! of access, a set of addresses, or title and input of the call, always in one workspace of one
//! agent. A call that is not fully understood is remembered by its whole input; one whose input repeats a
//! member, or that has nothing but a title, cannot be remembered.

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
pub use understanding::{UnclearMember, Understanding, commands_of, subject_of};
pub use workspaces::Workspaces;
