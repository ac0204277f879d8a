//! Secrets by reference: credentials of agents, and variables and headers of MCP servers.
//!
//! A message about a secret quotes nothing: the user may have written the secret itself there.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};
use serde_json::{Value as Json, json};

use crate::config::format::{
    As, Command, File, Format, SourceName, Timeout, VariableName, schema_of,
};

/// A reference to a variable's value, which is looked up at each start of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    pub source: CredentialSource,
    /// How long a value is used again; `None`: for one start only.
    pub ttl: Option<Duration>,
}

impl Credential {
    /// Returns whether the value can change while the daemon runs.
    pub fn can_change(&self) -> bool {
        !matches!(self.source, CredentialSource::Env(_) | CredentialSource::Systemd(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    Command(Vec<String>),
    File(PathBuf),
    Env(String),
    /// A name in `$CREDENTIALS_DIRECTORY`, where systemd puts credentials of a service.
    Systemd(String),
}

/// A credential as it is written.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct CredentialTable {
    #[serde(with = "As::<Command<true>>")]
    command: Option<Vec<String>>,
    #[serde(with = "As::<File>")]
    file: Option<PathBuf>,
    #[serde(with = "As::<SourceName>")]
    env: Option<String>,
    #[serde(with = "As::<SourceName>")]
    systemd: Option<String>,
    #[serde(with = "As::<Timeout>")]
    ttl: Option<Duration>,
}

pub(super) struct CredentialFormat;

impl Format for CredentialFormat {
    type Value = Credential;

    fn wanted() -> String {
        "one of `{ command = [\"program\", …] }`, `{ file = \"~/path\" }`, `{ env = \"NAME\" }` and \
         `{ systemd = \"name\" }`\na value itself belongs into `env`"
            .to_owned()
    }

    fn plural() -> String {
        "references".to_owned()
    }

    fn schema() -> Json {
        with_one_of(schema_of::<CredentialTable>(), &["command", "file", "env", "systemd"])
    }

    fn table<'de, A: MapAccess<'de>>(entries: A) -> Result<Credential, A::Error> {
        let table = CredentialTable::deserialize(MapAccessDeserializer::new(entries))?;
        let sources = [
            table.command.map(CredentialSource::Command),
            table.file.map(CredentialSource::File),
            table.env.map(CredentialSource::Env),
            table.systemd.map(CredentialSource::Systemd),
        ];
        only(sources, &Self::wanted()).map(|source| Credential { source, ttl: table.ttl })
    }
}

fn only<T, E: Error>(sources: impl IntoIterator<Item = Option<T>>, wanted: &str) -> Result<T, E> {
    let mut sources = sources.into_iter().flatten();
    match (sources.next(), sources.next()) {
        (Some(source), None) => Ok(source),
        (None, _) => Err(E::custom(format!("must be {wanted}"))),
        _ => Err(E::custom("names more than one source")),
    }
}

fn with_one_of(mut schema: Json, keys: &[&str]) -> Json {
    schema["oneOf"] = keys.iter().map(|key| json!({"required": [key]})).collect();
    schema
}

pub type Values = BTreeMap<String, Value>;

/// A text, or a reference that is looked up when an agent gets it, and stored nowhere.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Reference { source: SecretSource, prefix: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    Env(String),
    File(PathBuf),
}

/// Shows references only: texts and prefixes may be secrets.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(_) => f.write_str("a text"),
            Value::Reference { source, .. } => source.fmt(f),
        }
    }
}

/// A reference as it is written.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ReferenceTable {
    #[serde(with = "As::<VariableName>")]
    env: Option<String>,
    #[serde(with = "As::<File>")]
    file: Option<PathBuf>,
    prefix: String,
}

pub(super) struct ValueFormat;

impl Format for ValueFormat {
    type Value = Value;

    fn wanted() -> String {
        "a string, `{ env = \"NAME\" }` or `{ file = \"~/path\" }`".to_owned()
    }

    fn plural() -> String {
        "values".to_owned()
    }

    fn schema() -> Json {
        let reference = with_one_of(schema_of::<ReferenceTable>(), &["env", "file"]);
        json!({"anyOf": [{"type": "string"}, reference]})
    }

    fn text<E: Error>(text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn table<'de, A: MapAccess<'de>>(entries: A) -> Result<Value, A::Error> {
        let table = ReferenceTable::deserialize(MapAccessDeserializer::new(entries))?;
        let sources = [table.env.map(SecretSource::Env), table.file.map(SecretSource::File)];
        let source = only(sources, &Self::wanted())?;
        Ok(Value::Reference { source, prefix: table.prefix })
    }
}
