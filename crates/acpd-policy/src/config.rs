//! The table `[policy]` of the configuration.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The table `[policy]`. [`crate::Policy::new`] makes it usable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyConfig {
    /// What happens when no rule matches.
    pub default: Ruling,
    /// The first rule that matches decides.
    pub rules: Vec<RuleConfig>,
}

/// A rule. Every condition that it names must hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// What people call it.
    pub name: Option<String>,
    /// What it decides.
    pub decision: Ruling,
    /// Globs on the name of the agent.
    pub agent: Option<List<String>>,
    /// Globs on the directory of the session: absolute, `~/…` or `**/…`.
    pub workspace: Option<List<String>>,
    /// Kinds of tool calls.
    pub kind: Option<List<Kind>>,
    /// Globs on the title of the call.
    pub title: Option<List<String>>,
    /// Globs on the command that it runs.
    pub command: Option<List<String>>,
    /// Globs on the paths that it touches.
    pub path: Option<List<String>>,
    /// Globs on the addresses that it fetches.
    pub url: Option<List<String>>,
}

/// Decision of a rule, or of the default.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Ruling {
    #[default]
    Ask,
    Allow,
    Reject,
}

/// The kind of a tool call, as ACP names them.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    // Anything else, and every kind that is missing or not in this list.
    #[default]
    Other,
}

/// One value or a list of them.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub struct List<T>(#[schemars(with = "ListForm<T>")] pub Vec<T>);

#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema of a list")]
enum ListForm<T> {
    One(T),
    Many(Vec<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct OneOrMany<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_str<E: serde::de::Error>(self, one: &str) -> Result<Self::Value, E> {
                Ok(List(vec![T::deserialize(one.into_deserializer())?]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, many: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(many)).map(List)
            }
        }

        d.deserialize_any(OneOrMany(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use acp_wire::acp::TOOL_KINDS;

    use super::Kind;

    #[test]
    fn every_kind_of_the_protocol_is_known_by_its_own_name() {
        for name in TOOL_KINDS {
            assert_eq!(name.parse::<Kind>().expect("it is known").to_string(), name);
        }
        assert!("teleport".parse::<Kind>().is_err());
    }
}
