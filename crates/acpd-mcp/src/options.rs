//! How the server is started.

use std::collections::BTreeSet;
use std::path::PathBuf;

use acpd_api::Tools;

/// Options of the MCP server.
#[derive(Debug, Clone)]
pub struct Options {
    pub tools: BTreeSet<Tools>,
    /// The session that it is lent to, by the number that acpd gave it.
    pub session: Option<u64>,
    /// The agent of that session may answer what is asked in the turns that it has begun.
    pub answer: bool,
    /// Start the daemon if none runs.
    pub spawn: bool,
    /// The folders of the tools for files, the working directory first; none for the one of this process.
    pub folders: Vec<PathBuf>,
    /// Diagnostics: command lines, [`DETECT`], and tools of editors with [`EDITOR`] before their names.
    pub diagnostics: Vec<String>,
    /// A program that is a keeper ([`acpd_sys::keeper`]) of each of these commands.
    pub keeper: Option<PathBuf>,
}

/// Stands for the commands that the files of the working directory call for.
pub const DETECT: &str = "detect";

/// Stands before the name of a tool that an editor lends.
pub const EDITOR: &str = "editor:";
