//! `--host NAME`: the acpd of another machine, from `[hosts.NAME]`, or else of a destination that
//! ssh knows under this name.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acpd_api::escape;
use acpd_client::Host;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{CommandError, Result};
use crate::machine::OtherMachine;
use crate::programs;
use crate::text::text;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Configured {
    ssh: Option<String>,
    ssh_options: Vec<String>,
    relay: Option<String>,
    start: bool,
    map: BTreeMap<String, String>,
}

/// Finds a host by its name.
pub(crate) fn find(name: &str) -> Result<OtherMachine> {
    if name.is_empty() || name.starts_with('-') {
        return Err(CommandError::usage(text!("`{}` is not a host", escape::one_line(name))));
    }
    let prefix = format!("hosts.{name}.");
    let values = programs::config_values()?.values.into_iter();
    let table: Map<String, Value> = values
        .filter_map(|value| Some((value.key.raw().strip_prefix(&prefix)?.to_owned(), value.value)))
        .collect();
    let Configured { ssh, ssh_options, relay, start, map } =
        serde_json::from_value(table.into()).map_err(io::Error::from)?;
    let ssh = ssh.unwrap_or_else(|| name.to_owned());
    let host = Host { name: name.to_owned(), ssh, ssh_options, relay, start };
    let map = map.into_iter().map(|(here, there)| (from_home(&here), there)).collect();
    Ok(OtherMachine { host: Arc::new(host), map })
}

fn from_home(path: &str) -> PathBuf {
    match (Path::new(path).strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}
