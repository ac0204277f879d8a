//! Understood parts of a tool call, for clients that show it.

use acp_wire::acp::PermissionRequest;
use serde::Serialize;

use crate::config::Kind;
use crate::facts::{Facts, Unclear};
use crate::subject::{Subject, subject};

/// A tool call as the rules see it. Every text is whole, as the agent wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Understanding {
    /// Kind of the call; unknown ones are `other`.
    pub kind: Kind,
    /// Title, which is the agent's description.
    pub title: Option<String>,
    /// Commands, each as it would run, with every line: of `bash -lc SCRIPT` the script.
    pub commands: Vec<String>,
    /// The folder that a command is to run in, if the call names one.
    pub folder: Option<String>,
    /// The paths that it touches, as far as it names them.
    pub paths: Vec<String>,
    /// The addresses that it fetches.
    pub urls: Vec<String>,
    /// Parts of the input that are not understood. If there are any, a person must see the input itself.
    pub unclear: Vec<UnclearMember>,
    /// Subject that "always" would remember; `None` if the call does not say enough to know it again.
    pub subject: Option<Subject>,
}

/// A part of an input that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnclearMember {
    /// Name, with the names of the members that it is in; empty for the whole input.
    pub member: String,
    /// Reason, for people: `is not known`, `is given twice`.
    pub why: &'static str,
}

impl Understanding {
    /// Reads the call in a permission request.
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

    /// Returns whether all of the input is understood. No rule on commands, paths or addresses allows a call that
    /// is not.
    pub fn is_whole(&self) -> bool {
        self.unclear.is_empty()
    }
}
