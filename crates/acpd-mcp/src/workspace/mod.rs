//! Searches in the files of a session, and mistakes in them.
//!
//! This module needs no daemon: folders and commands come with the start of the server, and an
//! editor's report (`lent.rs`) with the call. Answers are plain text, as terminal tools print it;
//! only `diagnostics` has JSON. Documentation of arguments is their description for models.

mod checks;
mod findings;
mod folders;
mod reported;
mod search;

use std::path::PathBuf;
use std::sync::Mutex;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::lent::{Lent, Tool};
use crate::options::{EDITOR, Options};
use crate::report::line;
use crate::turns::locked;
use acpd_services::fs::Kind;
use checks::Checks;
pub(crate) use checks::{Stop, Stopped};
use folders::Folders;
use reported::reported;

#[derive(Debug)]
pub(crate) struct Workspace {
    folders: Vec<PathBuf>,
    commands: Vec<String>,
    /// Configured tools of editors that report mistakes; empty for the known ones.
    tools: Vec<Tool>,
    /// Held while commands run.
    checks: Mutex<Checks>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SearchArgs {
    /// A regular expression in the syntax of Rust's `regex`, looked for in each line.
    pattern: String,
    /// Take the pattern as it is, and not as a regular expression.
    #[serde(default)]
    literal: bool,
    /// Take capital and small letters as the same.
    #[serde(default)]
    ignore_case: bool,
    /// A file, or a folder with all below it. Default: everywhere.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Only files whose path matches this glob, like `*.rs` or `src/**/*.ts`; with a `!` before it, only others.
    #[serde(default)]
    glob: Option<String>,
    /// Lines before and behind each match; 20 at most. Default: 0.
    #[serde(default)]
    context: usize,
    /// Matching lines; 2000 at most. Default: 200.
    #[serde(default)]
    max_matches: Option<usize>,
    /// Also in files that git ignores.
    #[serde(default)]
    ignored: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FindArgs {
    /// A glob of paths, like `*.rs`, `src/**/test_*.py` or `Cargo.toml`.
    glob: String,
    /// A folder, with all below it. Default: everywhere.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Also files that git ignores.
    #[serde(default)]
    ignored: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DiagnosticsArgs {
    /// Only mistakes in this file, or below this folder.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Run the commands although no file has changed since the last time.
    #[serde(default)]
    refresh: bool,
}

impl Workspace {
    pub(crate) fn new(options: &Options) -> Workspace {
        let mut folders = options.folders.clone();
        if folders.is_empty() {
            folders.push(PathBuf::from("."));
        }
        let (mut commands, mut tools) = (Vec::new(), Vec::new());
        for text in &options.diagnostics {
            match text.strip_prefix(EDITOR) {
                Some(tool) => tools.push(Tool::named(tool)),
                None => commands.push(text.clone()),
            }
        }
        let checks = Mutex::new(Checks::new(options.keeper.clone()));
        Workspace { folders, commands, tools, checks }
    }

    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The file to report on. Fails if it is outside of the folders.
    pub(crate) fn file(&self, args: &DiagnosticsArgs) -> Result<Option<PathBuf>, Failure> {
        let Some(path) = &args.path else { return Ok(None) };
        let folders = Folders::open(&self.folders)?;
        let path = folders.named(path);
        let kind = folders.roots.kind(&path)?;
        Ok(Some(path).filter(|_| kind == Kind::File))
    }

    /// Returns the findings of an editor; otherwise runs the commands, one call at a time.
    pub(crate) fn check(
        &self,
        args: &DiagnosticsArgs,
        lent: &Lent,
        stopped: &Stopped,
    ) -> Result<Value, Failure> {
        let folders = Folders::open(&self.folders)?;
        let only = args.path.as_deref().map(|path| folders.named(path));
        only.as_ref().map(|path| folders.roots.kind(path)).transpose()?;
        let only = only.map(|path| path.canonicalize().unwrap_or(path));
        if let Lent::Said(source, said) = lent {
            return Ok(reported(&folders, only.as_deref(), source, said));
        }
        let mut checks = locked(&self.checks);
        let checked = checks.run(&folders, &self.commands, args, only.as_deref(), stopped);
        let Lent::Failed(source, why) = lent else { return checked };
        let why = line(&why.into());
        match checked {
            Ok(mut answer) => {
                answer["editor"] = source.shown();
                answer["editor"]["failed"] = json!(why);
                Ok(answer)
            }
            Err(failure) if self.commands.is_empty() => Err(Failure {
                message: format!(
                    "the editor's `{}` gave no answer: {why}; and {}",
                    source.server, failure.message
                ),
                ..failure
            }),
            Err(failure) => Err(failure),
        }
    }

    pub(crate) fn until_idle(&self) {
        drop(locked(&self.checks));
    }
}
