//! Sets of directories, named by the same globs as a rule's `workspace`.

use crate::config::Ruling;
use crate::glob::{Glob, GlobError, Use};
use crate::place::resolve;

/// Globs of workspaces, of which one must match; compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspaces(Vec<Glob>);

impl Workspaces {
    /// Compiles the globs: absolute, `~/…` or `**/…`. `home` is what `~/` stands for.
    ///
    /// # Errors
    /// On the first text that is not a glob, or that could never match.
    pub fn new(globs: &[String], home: Option<&str>) -> Result<Self, GlobError> {
        // The ruling does not matter to globs of folders.
        let compiled = globs.iter().map(|text| Glob::new(text, Ruling::Ask, Use::Folder, home));
        compiled.collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether the working directory of a session is one of them. Links are not followed.
    pub fn contain(&self, cwd: &str) -> bool {
        let cwd = resolve(cwd, cwd, None);
        cwd.is_some_and(|cwd| self.0.iter().any(|glob| glob.matches(&cwd)))
    }

    /// The globs as they were written.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Glob::to_string)
    }
}
