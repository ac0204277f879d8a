//! Random words that grant access, and their hashes: the words are never stored.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Bytes of a code: it lives for two minutes and works once.
const CODE: usize = 16;
/// Bytes of a key.
const KEY: usize = 32;

/// A word that lets its bearer in. It is shown or sent once, so it has no `Debug`.
#[expect(missing_debug_implementations, reason = "a secret in a log is none any more")]
pub struct Secret(String);

impl Secret {
    pub(crate) fn code() -> Result<Secret, getrandom::Error> {
        Secret::random(CODE)
    }

    pub(crate) fn key() -> Result<Secret, getrandom::Error> {
        Secret::random(KEY)
    }

    fn random(length: usize) -> Result<Secret, getrandom::Error> {
        let mut bytes = [0; KEY];
        getrandom::fill(&mut bytes[..length])?;
        Ok(Secret(hex(&bytes[..length])))
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub(crate) fn hash(&self) -> Hash {
        Hash::of(&self.0)
    }
}

/// SHA-256 of a secret. The secret is random, so it cannot be found from the hash.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Hash(String);

impl Hash {
    pub(crate) fn of(word: &str) -> Hash {
        Hash(hex(&Sha256::digest(word)))
    }

    /// Compares in constant time.
    pub(crate) fn is(&self, other: &Hash) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
