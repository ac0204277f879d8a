use std::fmt;

use glob::{MatchOptions, Pattern};

use crate::config::Ruling;
use crate::place::{self, IS_WINDOWS, below, usual_url};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Names that the user chose, case-sensitive.
    Name,
    /// Paths of workspaces: `*` does not match `/`.
    Folder,
    /// The agent's text.
    Text,
    /// The agent's paths: `*` does not match `/`.
    Path,
    /// The agent's addresses: in `allow` rules `*` does not match `/`.
    Url,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    text: String,
    base: Base,
    pattern: Pattern,
    options: MatchOptions,
    ignores_case: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Root,
    Workspace,
    /// Begins with `**/` in a cautious rule: in the workspace or anywhere.
    Any,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the glob `{glob}` {problem}")]
pub struct GlobError {
    pub(crate) glob: String,
    pub(crate) problem: String,
    pub hint: Option<&'static str>,
}

impl Glob {
    pub(crate) fn new(
        text: &str,
        ruling: Ruling,
        usage: Use,
        home: Option<&str>,
    ) -> Result<Self, GlobError> {
        let bad = |problem: &str, hint| {
            Err(GlobError { glob: text.to_owned(), problem: problem.to_owned(), hint })
        };
        if text.is_empty() {
            return bad("is empty", Some("remove the condition, or write `*`"));
        }
        let braces = text.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        if let Some((inside, _)) = braces.filter(|(inside, _)| inside.contains(',')) {
            let hint = "write a list of globs; `[{]` is the character itself";
            return bad(&format!("holds `{{{inside}}}`"), Some(hint));
        }
        if usage == Use::Url && !matches_some_address(text, ruling) {
            let hint = "write it as `https://example.com/**`, with the `/` behind the host";
            return bad("matches no address", Some(hint));
        }
        let is_place = matches!(usage, Use::Folder | Use::Path);
        let mut base = Base::Root;
        let below = text.strip_prefix("./").filter(|_| usage == Use::Path);
        let mut source = below.unwrap_or(text).to_owned();
        if is_place {
            let Some(named) = place::glob(&source) else {
                let hint = "begin it with a drive, such as `C:/`, or with `?:/` for every drive";
                return bad("does not say which drive it means", Some(hint));
            };
            source = named;
            if source != "/" && source.ends_with('/') {
                return bad("ends in `/`", Some("add `**` for all that is inside"));
            }
            if source.split('/').any(|name| matches!(name, "." | "..")) {
                return bad("holds `.` or `..`", Some("write the path without them"));
            }
            if source == "~" || source.starts_with("~/") {
                let Some(home) = home else {
                    return bad(
                        "needs a home directory, but none is known",
                        Some("write it in full"),
                    );
                };
                let home = place::resolve(home, home, None).unwrap_or_else(|| home.to_owned());
                let home = home.trim_end_matches('/');
                source = format!("{}{}", Pattern::escape(home), &source[1..]);
            } else if !place::is_absolute(&source) {
                let is_anywhere = source.starts_with("**");
                base = match usage {
                    Use::Path if ruling == Ruling::Allow || !is_anywhere => Base::Workspace,
                    Use::Path => Base::Any,
                    _ if is_anywhere => Base::Root,
                    _ => {
                        let hint = "start it with `/`, `~/` or `**/`";
                        return bad("is not an absolute path", Some(hint));
                    }
                };
            }
        }
        let ignores_case = ruling != Ruling::Allow
            && match usage {
                Use::Name => false,
                Use::Folder => IS_WINDOWS,
                Use::Text | Use::Path | Use::Url => true,
            };
        if ignores_case {
            source = source.to_lowercase();
        }
        let options = MatchOptions {
            require_literal_separator: is_place || usage == Use::Url && ruling == Ruling::Allow,
            ..MatchOptions::new()
        };
        if !options.require_literal_separator {
            // Two stars are one if `/` is an ordinary character.
            while source.contains("**") {
                source = source.replace("**", "*");
            }
        }
        match Pattern::new(&source) {
            Ok(pattern) => Ok(Self { text: text.to_owned(), base, pattern, options, ignores_case }),
            Err(error) => {
                let hint = "`[*]`, `[?]` and `[[]` are the ordinary characters";
                bad(&format!("is not a glob: {}", error.msg), Some(hint))
            }
        }
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        if self.ignores_case {
            self.pattern.matches_with(&text.to_lowercase(), self.options)
        } else {
            self.pattern.matches_with(text, self.options)
        }
    }

    /// Matches a path. `path` and `workspace` are in the form of
    /// [`resolve`](crate::place::resolve).
    pub(crate) fn matches_path(&self, path: &str, workspace: Option<&str>) -> bool {
        let rest = || below(path, workspace?, !self.ignores_case);
        let is_below = || rest().is_some_and(|rest| self.matches(rest));
        match self.base {
            Base::Root => self.matches(path),
            Base::Workspace => is_below(),
            Base::Any => self.matches(path) || is_below(),
        }
    }

    pub(crate) fn might_match(&self, start: &str) -> bool {
        let (literal, start) = (self.literal_start().to_lowercase(), start.to_lowercase());
        literal.starts_with(&start) || start.starts_with(&literal)
    }

    pub(crate) fn literal_start(&self) -> &str {
        let end = self.text.find(['*', '?', '[']).unwrap_or(self.text.len());
        &self.text[..end]
    }

    pub(crate) fn is_exactly(&self, text: &str) -> bool {
        self.text == text && !self.text.contains(['*', '?', '[', ']'])
    }
}

/// Returns `false` for a glob of addresses that matches none. Addresses are compared as
/// `scheme://host/path`.
fn matches_some_address(text: &str, ruling: Ruling) -> bool {
    if !text.contains(['*', '?', '[']) {
        return usual_url(text).is_some_and(|usual| usual.eq_ignore_ascii_case(text));
    }
    ruling != Ruling::Allow || text.contains("**") || text.matches('/').count() >= 3
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

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
        let cwd = place::resolve(cwd, cwd, None);
        cwd.is_some_and(|cwd| self.0.iter().any(|glob| glob.matches(&cwd)))
    }

    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Glob::to_string)
    }
}
