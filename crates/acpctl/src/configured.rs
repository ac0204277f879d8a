//! The configuration as `acpd config` reads it; needs no daemon.

use std::fs;
use std::path::Path;

use acpd_api::{ConfigReport, ConfigValues};
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::error::Result;
use crate::programs;

pub(crate) const SCHEMA: &str = "config.schema.json";
/// The first line of a new file, for editors that know TOML.
pub(crate) const BEGIN: &str = "#:schema ./config.schema.json\n";

pub(crate) fn report() -> Result<ConfigReport> {
    asked(&[]).map(|(report, _)| report)
}

pub(crate) fn values() -> Result<ConfigValues> {
    asked(&["--values"]).map(|(values, _)| values)
}

pub(crate) fn schema() -> Result<Vec<u8>> {
    asked::<IgnoredAny>(&["--schema"]).map(|(_, text)| text)
}

/// Returns the parsed answer of `acpd config`, and its text. The command fails if the file has
/// mistakes, and lists them.
fn asked<T: DeserializeOwned>(args: &[&str]) -> Result<(T, Vec<u8>)> {
    let mut command = programs::daemon(["config"].iter().chain(args));
    let output = command.output().map_err(|error| programs::cannot_run(&command, &error))?;
    let answer = serde_json::from_slice(&output.stdout);
    Ok((answer.map_err(|_| programs::failed(&command, &output))?, output.stdout))
}

/// Writes this version's schema for a file that refers to it. Errors are ignored, because the file
/// can be edited without a schema.
pub(crate) fn offer_schema(file: &Path, schema_file: &Path) {
    if fs::read_to_string(file).is_ok_and(|text| text.starts_with(BEGIN))
        && let Ok(schema) = schema()
    {
        fs::write(schema_file, schema).ok();
    }
}
