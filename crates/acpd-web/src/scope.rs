//! The scopes of a token.

use std::fmt;

use acpd_api::Scope;
use serde::{Deserialize, Serialize};

/// The permissions of one token. All have `Watch`, because the others need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Scope>", into = "Vec<&'static str>")]
pub struct Scopes {
    prompt: bool,
    answer: bool,
}

impl Scopes {
    pub(crate) fn has(self, scope: Scope) -> bool {
        match scope {
            Scope::Watch => true,
            Scope::Prompt => self.prompt,
            Scope::Answer => self.answer,
        }
    }
}

impl Default for Scopes {
    fn default() -> Scopes {
        Scopes { prompt: true, answer: true }
    }
}

impl From<Vec<Scope>> for Scopes {
    fn from(scopes: Vec<Scope>) -> Scopes {
        Scopes { prompt: scopes.contains(&Scope::Prompt), answer: scopes.contains(&Scope::Answer) }
    }
}

impl From<Scopes> for Vec<&'static str> {
    fn from(scopes: Scopes) -> Vec<&'static str> {
        Scope::ALL.into_iter().filter(|scope| scopes.has(*scope)).map(Scope::word).collect()
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Vec::from(*self).join(","))
    }
}
