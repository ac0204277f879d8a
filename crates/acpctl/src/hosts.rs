//! The machines of `--host` and of sessions such as `box/main`.
//!
//! | the user names | the command works on |
//! | --- | --- |
//! | `--host box` | `[hosts.box]`, or a destination that ssh knows under this name |
//! | `--host all` | this machine and all tables `[hosts.NAME]`; names of theirs begin with `NAME/` |
//! | session `box/main` | `[hosts.box]`, in the same way; also this machine, if another session is here |
//! | session `/box/main` | this machine |

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acpd_api::escape;
use acpd_client::{Host, Machine, Machines, PATIENCE, Paths, Place};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{CommandError, Result};
use crate::live::FAR_PATIENCE;
use crate::machine::OtherMachine;
use crate::programs;
use crate::text::text;

/// Longest time until one of many machines is connected, within the wait for its part of a list.
const ONE_OF_MANY: Duration = Duration::from_millis(1800);
/// The same for one of several that the user names. Two of them cannot ask for passwords at once.
const ONE_OF_SEVERAL: Duration = Duration::from_secs(20);

#[derive(Default, Deserialize)]
#[serde(default)]
struct HostTable {
    ssh: Option<String>,
    ssh_options: Vec<String>,
    relay: Option<String>,
    start: bool,
    map: BTreeMap<String, String>,
    shared: Vec<String>,
}

/// The tables `[hosts.NAME]`.
pub(crate) struct KnownHosts(BTreeMap<String, Map<String, Value>>);

impl KnownHosts {
    pub(crate) fn read() -> Result<KnownHosts> {
        let mut tables: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        for value in programs::config_values()?.values {
            let key = value.key.raw().strip_prefix("hosts.").and_then(|key| key.split_once('.'));
            let Some((name, key)) = key else { continue };
            tables.entry(name.to_owned()).or_default().insert(key.to_owned(), value.value);
        }
        Ok(KnownHosts(tables))
    }

    /// Returns the machine with this name.
    pub(crate) fn find(&self, name: &str) -> Result<OtherMachine> {
        let (host, table) = self.host(name)?;
        Ok(other(name, Place::Host(Arc::new(host)), table))
    }

    /// Returns this machine and all others as one.
    pub(crate) fn all(&self) -> Result<OtherMachine> {
        if self.0.is_empty() {
            return Err(CommandError::usage("the configuration has no other machines")
                .hint("add a table `[hosts.NAME]`: `acpctl config edit`"));
        }
        let mut machines = vec![here()?];
        for name in self.0.keys() {
            let (host, _) = self.host(name)?;
            machines.push(machine(Host { within: Some(ONE_OF_MANY), ..host }));
        }
        Ok(other("all", joined(machines), HostTable::default()))
    }

    /// Returns the machines of sessions and questions with such names; none if all are on this
    /// machine.
    pub(crate) fn of_names(&self, names: &[String]) -> Result<Option<OtherMachine>> {
        let known = |name: &'_ str| {
            let (host, _) = self.0.get_key_value(name.split_once('/')?.0)?;
            Some(host.as_str())
        };
        // `/box/main` is here, and is `box/main` without the table.
        let marked = names.iter().filter_map(|name| known(name.strip_prefix('/')?)).map(Some);
        let hosts: BTreeSet<Option<&str>> =
            names.iter().map(|name| known(name)).chain(marked).collect();
        let within = (hosts.iter().flatten().count() > 1).then_some(ONE_OF_SEVERAL);
        let (mut machines, mut last) = (Vec::new(), HostTable::default());
        for host in &hosts {
            match host {
                None => machines.push(here()?),
                Some(name) => {
                    let (host, table) = self.host(name)?;
                    machines.push(machine(Host { within, ..host }));
                    last = table;
                }
            }
        }
        let name = hosts.iter().flatten().next_back();
        Ok(name.map(|name| other(name, joined(machines), last)))
    }

    fn host(&self, name: &str) -> Result<(Host, HostTable)> {
        if name.is_empty() || name.starts_with('-') {
            return Err(CommandError::usage(text!("`{}` is not a host", escape::one_line(name))));
        }
        let table = self.0.get(name).cloned().unwrap_or_default();
        let table: HostTable = serde_json::from_value(table.into()).map_err(io::Error::from)?;
        let host = Host {
            name: name.to_owned(),
            ssh: table.ssh.clone().unwrap_or_else(|| name.to_owned()),
            ssh_options: table.ssh_options.clone(),
            relay: table.relay.clone(),
            start: table.start,
            within: None,
        };
        Ok((host, table))
    }
}

fn here() -> Result<Machine> {
    let place = Place::Here(Paths::discover()?);
    Ok(Machine { name: String::new(), place, patience: PATIENCE })
}

fn machine(host: Host) -> Machine {
    let name = host.name.clone();
    Machine { name, place: Place::Host(Arc::new(host)), patience: FAR_PATIENCE }
}

fn joined(machines: Vec<Machine>) -> Place {
    Place::Machines(Arc::new(Machines(machines.into())))
}

fn other(name: &str, place: Place, HostTable { map, shared, .. }: HostTable) -> OtherMachine {
    let map = map.into_iter().map(|(here, there)| (from_home(&here), there)).collect();
    let shared = shared.iter().map(|dir| from_home(dir)).collect();
    OtherMachine { name: name.to_owned(), place, map, shared }
}

fn from_home(path: &str) -> PathBuf {
    match (Path::new(path).strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}
