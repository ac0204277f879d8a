use crate::config::Ruling;
use crate::glob::{Glob, GlobError, Use};
use crate::place::resolve;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspaces(Vec<Glob>);

impl Workspaces {
    /// Compiles globs: absolute, `~/…` or `**/…`. `home` replaces `~/`.
    ///
    /// # Errors
    /// For the first text that is no glob, or can never match.
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

    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Glob::to_string)
    }
}
