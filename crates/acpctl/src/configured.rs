//! What the daemon's program says of the configuration: it alone understands the file, also when no daemon runs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use acpd_api::{ConfigReport, ConfigValues, ExitCode, Untrusted};
use acpd_client::daemon_exe;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::error::{CommandError, Result};
use crate::text::text;

/// The name of the schema beside the file.
pub(crate) const SCHEMA: &str = "config.schema.json";
/// What a new file begins with. Editors that know TOML look there.
pub(crate) const BEGIN: &str = "#:schema ./config.schema.json\n";

/// What it finds in the file.
pub(crate) fn report() -> Result<ConfigReport> {
    asked(&[]).and_then(|output| understood(&output))
}

/// What a file without a mistake comes to.
pub(crate) fn values() -> Result<ConfigValues> {
    asked(&["--values"]).and_then(|output| understood(&output))
}

/// What may be in the file: its JSON schema.
pub(crate) fn schema() -> Result<Vec<u8>> {
    let output = asked(&["--schema"])?;
    understood::<IgnoredAny>(&output)?;
    Ok(output.stdout)
}

fn asked(args: &[&str]) -> Result<Output> {
    let exe = daemon_exe();
    let output = Command::new(&exe).arg("config").args(args).stdin(Stdio::null()).output();
    output.map_err(|error| CommandError::file("run", &exe, &error))
}

fn understood<T: DeserializeOwned>(output: &Output) -> Result<T> {
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = Untrusted::from(String::from_utf8_lossy(&output.stderr));
        let text = text!("`{} config` failed: {}", daemon_exe(), said);
        CommandError::new(ExitCode::Error, text)
            .hint("acpctl and acpd may differ in version: install both again")
    })
}

/// Puts the schema beside a file that asks for it there, as this version has it. Without it the file can be edited, too.
pub(crate) fn offer_schema(file: &Path, schema_file: &Path) {
    if fs::read_to_string(file).is_ok_and(|text| text.starts_with(BEGIN))
        && let Ok(schema) = schema()
    {
        fs::write(schema_file, schema).ok();
    }
}
