//! Request ids, kept as the raw JSON text that the peer wrote.

use std::fmt;

use compact_str::CompactString;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::bound::LONGEST_ID;

/// The id of a request: the raw JSON text of a number, a string or `null`.
///
/// Ids go back to their sender byte for byte, so they compare as text: `92` is not `"92"`, and
/// `"a"` is not `"\u0061"`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(CompactString);

impl Id {
    /// The id `null`: protocol v1 allows it, and errors that answer an unreadable line carry it.
    pub fn null() -> Self {
        Self::from_text("null")
    }

    /// Reads an id, or `None` if the value is not a number, a string or `null`, or is too long.
    pub fn from_raw(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let fits = matches!(text.as_bytes().first()?, b'"' | b'n' | b'-' | b'0'..=b'9');
        (fits && text.len() <= LONGEST_ID).then(|| Self::from_text(text))
    }

    /// The id as a number, if it is a plain non-negative integer, as clients count.
    pub fn as_u64(&self) -> Option<u64> {
        self.raw().parse().ok()
    }

    /// The wire id of a number that the daemon issued: the string `"BOOT-COUNT"`, its upper and its
    /// lower 32 bits. SDKs read numbers as 32-bit integers, and strings unchanged.
    pub fn issued(number: u64) -> Self {
        Self::from_text(&format!("\"{}-{}\"", number >> 32, number & u64::from(u32::MAX)))
    }

    /// Reads the form of [`Id::issued`], and the plain number of daemons up to 0.2, as a number or
    /// in a string: some peers answer with every id as a string.
    pub fn as_issued(&self) -> Option<u64> {
        let text = self.raw();
        let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        let Some((boot, count)) = text.split_once('-') else { return text.parse().ok() };
        let (boot, count): (u32, u32) = (boot.parse().ok()?, count.parse().ok()?);
        let number = (u64::from(boot) << 32) | u64::from(count);
        (Self::issued(number) == *self).then_some(number)
    }

    /// Reads an id from a JSON value.
    pub fn from_value(value: &serde_json::Value) -> Option<Self> {
        serde_json::from_value(value.clone()).ok()
    }

    /// The raw JSON text.
    pub fn raw(&self) -> &str {
        &self.0
    }

    /// Returns whether this is the id `null`.
    pub fn is_null(&self) -> bool {
        self.raw() == "null"
    }

    fn from_text(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self::from_text(&number.to_string())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.raw())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.raw())
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(self.raw())
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_raw(&raw).ok_or_else(|| D::Error::custom("an id is a number, a string or null"))
    }
}
