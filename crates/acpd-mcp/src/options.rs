use std::collections::BTreeSet;
use std::path::PathBuf;

use acpd_api::Tools;

#[derive(Debug, Clone)]
pub struct Options {
    pub tools: BTreeSet<Tools>,
    /// The session that the server is lent to, by acpd's number.
    pub session: Option<u64>,
    /// The agent of that session may answer questions in the turns that it has begun.
    pub answer: bool,
    pub spawn: bool,
    /// Folders of the tools for files, the working directory first; empty for that of this process.
    pub folders: Vec<PathBuf>,
    /// Diagnostics: command lines, [`DETECT`], and tools of editors with [`EDITOR`] before their
    /// names.
    pub diagnostics: Vec<String>,
    /// The program of the keeper ([`acpd_sys::keeper`]) of each of these commands.
    pub keeper: Option<PathBuf>,
}

/// Stands for the commands that the files of the working directory call for.
pub const DETECT: &str = "detect";

/// Prefix of the name of an editor's tool.
pub const EDITOR: &str = "editor:";
