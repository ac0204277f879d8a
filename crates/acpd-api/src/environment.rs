use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Variables by name. The values may be secrets, so `Debug` hides them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Returns the variables of this process that are UTF-8.
    pub fn own() -> Environment {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Environment(std::env::vars_os().filter_map(text).collect())
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of all variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Keeps the variables with a wanted name.
    pub fn retain(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| is_wanted(name));
    }

    /// Returns all names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} variables", self.0.len())
    }
}

/// Returns whether `name` matches a pattern: a name, or the beginning of one with a `*`. Case is
/// ignored, as on Windows, and because names of proxies are written both ways.
pub fn is_named(pattern: &str, name: &[u8]) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => {
            name.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
        }
        None => name.eq_ignore_ascii_case(pattern.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_shown() {
        let secret = Environment(BTreeMap::from([("API_KEY".to_owned(), "s3cret".to_owned())]));
        assert_eq!(format!("{secret:?}"), "1 variables");
    }

    #[test]
    fn a_pattern_is_a_name_or_the_beginning_of_one() {
        assert!(is_named("GH_TOKEN", b"gh_token") && is_named("GH_*", b"GH_HOST"));
        assert!(!is_named("GH_TOKEN", b"GH_TOKEN_2") && !is_named("GH_*", b"GH"));
    }
}
