//! The kinds of the keys about logins.

use std::path::PathBuf;

use toml::Spanned;
use toml::de::DeValue;

use super::kind::{Arguments, Directory, Fault, Kind, list, quoted, string};

/// What says in an error that a login is wanted.
pub(super) struct AuthErrors;

impl Kind for AuthErrors {
    type Value = Vec<String>;

    fn describe() -> String {
        "a list of texts or codes".to_owned()
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

/// A file.
pub(super) struct File;

impl Kind for File {
    type Value = Option<PathBuf>;

    fn describe() -> String {
        Directory::describe()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Option<PathBuf>, Fault> {
        let path = Directory::read(value)?;
        path.map(Some).ok_or_else(|| Fault::new(value, "names no file"))
    }

    fn show(value: &Option<PathBuf>) -> String {
        value.as_ref().map_or_else(String::new, |path| quoted(&path.to_string_lossy()))
    }
}
