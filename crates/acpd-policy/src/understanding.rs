//! What acpd understands of a tool call, for clients that show the call.

use acp_wire::acp::PermissionRequest;
use serde::Serialize;

use crate::config::Kind;
use crate::facts::{Facts, Unclear};
use crate::subject::{Subject, subject};

/// A tool call as the rules see it. Every text is whole, as the agent wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Understanding {
    /// Its kind; unknown ones are `other`.
    pub kind: Kind,
    /// Its title, which is the agent's description.
    pub title: Option<String>,
    /// Its commands, each as it would run, with every line: of `bash -lc SCRIPT` the script.
    pub commands: Vec<String>,
    /// The folder that a command is to run in, if the call names one.
    pub folder: Option<String>,
    /// The paths that it touches, as far as it names them.
    pub paths: Vec<String>,
    /// The addresses that it fetches.
    pub urls: Vec<String>,
    /// What in its input is not understood. If there is anything, a person must see the input itself.
    pub unclear: Vec<UnclearMember>,
    /// What "always" would remember. Nothing if the call does not say enough to know it again.
    pub subject: Option<Subject>,
}

/// A part of an input that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnclearMember {
    /// Its name, with the names of the members that it is in; empty for the whole input.
    pub member: String,
    /// What is wrong with it, for people: `is not known`, `is given twice`.
    pub why: &'static str,
}

impl Understanding {
    /// What is understood of the call in a question.
    pub fn of(request: &PermissionRequest<'_>) -> Self {
        let facts = Facts::of(request);
        let subject = subject(&facts, request);
        let unclear = |Unclear { member, why, .. }: Unclear| UnclearMember { member, why };
        Self {
            kind: facts.kind,
            title: facts.title.map(str::to_owned),
            commands: facts.commands.into_iter().map(|command| command.runs).collect(),
            folder: facts.folder,
            paths: facts.paths,
            urls: facts.urls,
            unclear: facts.unclear.into_iter().map(unclear).collect(),
            subject,
        }
    }

    /// Whether all of the input is understood. No rule on commands, paths or addresses allows a call that
    /// is not.
    pub fn is_whole(&self) -> bool {
        self.unclear.is_empty()
    }
}

/// What a question is about. Nothing if it does not say enough to know it again: such a call cannot be
/// remembered.
pub fn subject_of(request: &PermissionRequest<'_>) -> Option<Subject> {
    subject(&Facts::of(request), request)
}

/// The commands in a call, each as it would run: of `bash -lc SCRIPT` the script. What cannot be read is
/// not among them.
pub fn commands_of(request: &PermissionRequest<'_>) -> Vec<String> {
    Understanding::of(request).commands
}
