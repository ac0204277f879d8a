use acp_wire::acp::PermissionRequest;
use serde::Serialize;

use crate::config::Kind;
use crate::facts::{Facts, Unclear};
use crate::subject::{Subject, subject};

/// A tool call as rules see it. Texts are complete, as the agent wrote them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Understanding {
    /// Unknown kinds are `other`.
    pub kind: Kind,
    pub title: Option<String>,
    /// Complete commands as they would run: of `bash -lc SCRIPT` the script.
    pub commands: Vec<String>,
    pub folder: Option<String>,
    pub paths: Vec<String>,
    pub urls: Vec<String>,
    /// Parts of the input that are not understood. If there are any, a person must see the input
    /// itself.
    pub unclear: Vec<Unclear>,
    /// Subject for "always"; `None` if the call cannot be recognized later.
    pub subject: Option<Subject>,
}

impl Understanding {
    pub fn of(request: &PermissionRequest<'_>) -> Self {
        let facts = Facts::of(request);
        let subject = subject(&facts, request);
        Self {
            kind: facts.kind,
            title: facts.title.map(str::to_owned),
            commands: facts.commands.into_iter().map(|command| command.runs).collect(),
            folder: facts.folder,
            paths: facts.paths,
            urls: facts.urls,
            unclear: facts.unclear,
            subject,
        }
    }

    /// Returns whether all of the input is understood. Rules on commands, paths or addresses allow
    /// no other call.
    pub fn is_whole(&self) -> bool {
        self.unclear.is_empty()
    }
}
