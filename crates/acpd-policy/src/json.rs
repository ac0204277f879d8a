//! JSON that keeps repeated members: readers disagree about which of them counts.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value. Numbers are not told apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Flag(bool),
    Number,
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The value, unless it is no JSON or nested too deeply.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Whether an object in it has two members of one name.
    pub(crate) fn has_repeated_members(&self) -> bool {
        match self {
            Self::Null | Self::Flag(_) | Self::Number | Self::Text(_) => false,
            Self::List(items) => items.iter().any(Self::has_repeated_members),
            Self::Object(members) => {
                let names: BTreeSet<&String> = members.iter().map(|(name, _)| name).collect();
                let inside = members.iter().any(|(_, value)| value.has_repeated_members());
                names.len() < members.len() || inside
            }
        }
    }

    /// Every text in it, names of members included.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        let mut open = vec![self];
        while let Some(value) = open.pop() {
            match value {
                Self::Null | Self::Flag(_) | Self::Number => {}
                Self::Text(text) => texts.push(text.clone()),
                Self::List(items) => open.extend(items),
                Self::Object(members) => {
                    texts.extend(members.iter().map(|(name, _)| name.clone()));
                    open.extend(members.iter().map(|(_, value)| value));
                }
            }
        }
        texts
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Json;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Json, E> {
                Ok(Json::Null)
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Json, E> {
                Ok(Json::Flag(flag))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
                Ok(Json::Number)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Json, E> {
                Ok(Json::Number)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
                Ok(Json::Number)
            }

            fn visit_str<E>(self, text: &str) -> Result<Json, E> {
                Ok(Json::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Json::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Json::Object(members))
            }
        }

        d.deserialize_any(Any)
    }
}
