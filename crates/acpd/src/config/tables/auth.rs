//! The kinds of the keys about logins and credentials.

use std::collections::BTreeMap;
use std::iter::once;
use std::path::PathBuf;
use std::time::Duration;

use acpd_core::profile::FailureSign;
use serde_json::json;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use crate::config::keys::fault::{Fault, all, list, string, table};
use crate::config::keys::kind::{Arguments, CommandLine, Directory, Kind, Timeout, inline, quoted};
use crate::config::keys::schema::{Schema, VARIABLE, entries_of, list_of, text};

/// What an error of an agent is known by.
pub(crate) struct ErrorPatterns;

impl Kind for ErrorPatterns {
    type Value = Vec<String>;

    fn describe() -> String {
        "a list of texts or codes".to_owned()
    }

    fn schema() -> Schema {
        list_of(&text("\\S"))
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
        list(value, &Self::describe(), |item| match string(item, &Self::describe())?.trim() {
            "" => Err(Fault::new(value, "holds an empty text, which every error has in it")),
            text => Ok(text.to_owned()),
        })
    }

    fn show(value: &Vec<String>) -> String {
        Arguments::show(value)
    }
}

/// Signs of a turn that failed.
pub(crate) struct FailureSigns;

impl Kind for FailureSigns {
    type Value = Vec<String>;

    fn describe() -> String {
        "a list of texts such as \"content.text=Error: \"".to_owned()
    }

    fn schema() -> Schema {
        list_of(&text("^[^=.]+(\\.[^=.]+)*=."))
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
        list(value, &Self::describe(), |item| {
            let sign = string(item, &Self::describe())?;
            match FailureSign::parse(sign) {
                Some(_) => Ok(sign.to_owned()),
                None => {
                    Err(Fault::new(item, format!("holds {sign:?}, which is no \"MEMBER=TEXT\"")))
                }
            }
        })
    }

    fn show(value: &Vec<String>) -> String {
        Arguments::show(value)
    }
}

/// A file.
pub(crate) struct File;

impl Kind for File {
    type Value = Option<PathBuf>;

    fn describe() -> String {
        Directory::describe()
    }

    fn schema() -> Schema {
        text("^(~/|/)")
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Option<PathBuf>, Fault> {
        let path = Directory::read(value)?;
        path.map(Some).ok_or_else(|| Fault::new(value, "names no file"))
    }

    fn show(value: &Option<PathBuf>) -> String {
        value.as_ref().map_or_else(String::new, |path| quoted(&path.to_string_lossy()))
    }
}

/// Where the value of a variable is, which is looked up whenever an agent is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Where it is.
    pub source: CredentialSource,
    /// How long a value that was found is used again; `None`: for one start.
    pub ttl: Option<Duration>,
}

impl Credential {
    /// Returns whether there may be another value while the daemon runs.
    pub fn can_change(&self) -> bool {
        !matches!(self.source, CredentialSource::Env(_) | CredentialSource::Systemd(_))
    }
}

/// Where the value of a credential is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    /// It is what this command writes: a program and its arguments.
    Command(Vec<String>),
    /// In this file.
    File(PathBuf),
    /// In this variable of the daemon's environment.
    Env(String),
    /// Under this name in `$CREDENTIALS_DIRECTORY`, where systemd puts credentials of a service.
    Systemd(String),
}

/// Credentials by the names of variables. Each inner table adds to the outer ones.
pub(crate) struct Credentials;

impl Kind for Credentials {
    type Value = BTreeMap<String, Credential>;

    const ADDS_UP: bool = true;

    fn describe() -> String {
        "a table of references".to_owned()
    }

    fn schema() -> Schema {
        let name = text("^[^=/\\x00]+$");
        let sources = ["command", "file", "env", "systemd"];
        let one = json!({
            "type": "object",
            "properties": {
                "command": CommandLine::schema(),
                "file": File::schema(),
                "env": name,
                "systemd": name,
                "ttl": Timeout::schema()
            },
            "additionalProperties": false,
            "oneOf": sources.map(|source| json!({"required": [source]}))
        });
        entries_of(VARIABLE, &one)
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self::Value, Fault> {
        let one = |(name, item): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
            let name = name.get_ref();
            if name.is_empty() || name.contains(['=', '\0']) {
                let reason = format!("holds {name:?}, which cannot be the name of a variable");
                return Err(Fault::new(item, reason));
            }
            let found = credential(item).map_err(|fault| Fault {
                reason: format!("{} (the credential `{name}`)", fault.reason),
                ..fault
            })?;
            Ok((name.to_string(), found))
        };
        all(table(value, &Self::describe())?.iter().map(one))
    }

    fn show(value: &Self::Value) -> String {
        inline(value.iter().map(|(name, credential)| (name.as_str(), show(credential))))
    }

    fn merge(slot: &mut Self::Value, new: Self::Value) {
        slot.extend(new);
    }
}

fn show(credential: &Credential) -> String {
    let source = match &credential.source {
        CredentialSource::Command(words) => ("command", Arguments::show(words)),
        CredentialSource::File(path) => ("file", quoted(&path.to_string_lossy())),
        CredentialSource::Env(name) => ("env", quoted(name)),
        CredentialSource::Systemd(name) => ("systemd", quoted(name)),
    };
    let ttl = credential.ttl.as_ref().map(|ttl| ("ttl", Timeout::show(ttl)));
    inline(once(source).chain(ttl))
}

const CREDENTIAL: &str = "one of `{ command = [\"program\", …] }`, `{ file = \"~/path\" }`, \
                          `{ env = \"NAME\" }` and `{ systemd = \"name\" }`";

/// What is written is not repeated in any message: somebody may have put a secret there.
fn credential(item: &Spanned<DeValue<'_>>) -> Result<Credential, Fault> {
    let wrong = || Fault::new(item, format!("must be {CREDENTIAL}"));
    let DeValue::Table(table) = item.get_ref() else {
        return Err(wrong().hint("a value itself belongs into `env`"));
    };
    let (mut source, mut ttl) = (None, None);
    for (key, value) in table {
        let found = match key.get_ref().as_ref() {
            "command" => CredentialSource::Command(CommandLine::read(value)?),
            "file" => CredentialSource::File(File::read(value)?.ok_or_else(wrong)?),
            "env" => CredentialSource::Env(name(value)?),
            "systemd" => CredentialSource::Systemd(name(value)?),
            "keyring" => return Err(Fault::new(value, "uses `keyring`, which was removed").hint(
                "let a command read the keyring: `command = [\"secret-tool\", \"lookup\", \"service\", \
                 \"NAME\"]`, on macOS `command = [\"security\", \"find-generic-password\", \"-w\", \"-s\", \"NAME\"]`",
            )),
            "ttl" => {
                ttl = Some(Timeout::read(value)?);
                continue;
            }
            other => {
                return Err(Fault::new(value, format!("has an unknown key `{other}`"))
                    .hint("the keys are `command`, `file`, `env`, `systemd` and `ttl`"));
            }
        };
        if source.replace(found).is_some() {
            return Err(Fault::new(item, "names more than one source"));
        }
    }
    Ok(Credential { source: source.ok_or_else(wrong)?, ttl })
}

/// A name of a variable, or of a file in a directory.
fn name(value: &Spanned<DeValue<'_>>) -> Result<String, Fault> {
    match string(value, "a name")? {
        "" | "." | ".." => Err(Fault::new(value, "is no name")),
        name if name.contains(['=', '/', '\0']) => Err(Fault::new(value, "is no name")),
        name => Ok(name.to_owned()),
    }
}
