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
use acpd_client::{Host, Machines, Options, Place, connect};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::confirm::yes;
use crate::error::{CommandError, Result};
use crate::machine::OtherMachine;
use crate::programs;
use crate::text::text;
use crate::ui::Ui;

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
        let place = Place::Host(Arc::new(host.clone()));
        Ok(OtherMachine { place, ..joined(name, vec![Some(host)], table)? })
    }

    /// Returns one machine, or all tables.
    pub(crate) fn hosts(&self, name: Option<&str>) -> Result<Vec<Host>> {
        if let Some(name) = name {
            return Ok(vec![self.host(name)?.0]);
        }
        let within = Some(ONE_OF_SEVERAL);
        let host = |name: &String| Ok(Host { within, ..self.host(name)?.0 });
        let hosts: Vec<Host> = self.0.keys().map(host).collect::<Result<_>>()?;
        if hosts.is_empty() {
            return Err(CommandError::usage("the configuration has no other machines")
                .hint("add a table `[hosts.NAME]`: `acpctl config edit`"));
        }
        Ok(hosts)
    }

    /// Returns this machine and all others as one.
    pub(crate) fn all(&self) -> Result<OtherMachine> {
        let within = Some(ONE_OF_MANY);
        let others = self.hosts(None)?.into_iter().map(|host| Some(Host { within, ..host }));
        let hosts = std::iter::once(None).chain(others).collect();
        joined("all", hosts, HostTable::default())
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
        let (mut named, mut last) = (Vec::new(), HostTable::default());
        for host in &hosts {
            match host {
                None => named.push(None),
                Some(name) => {
                    let (host, table) = self.host(name)?;
                    named.push(Some(Host { within, ..host }));
                    last = table;
                }
            }
        }
        let name = hosts.iter().flatten().next_back();
        name.map(|name| joined(name, named, last)).transpose()
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

/// Asks the user of a terminal, and starts the daemon on the other machine.
pub(crate) fn start_if_wanted(error: CommandError, ui: &mut Ui) -> Result {
    let prompt = text!("{}; start it there? y/n > ", &error.message);
    let host = ui.machine.as_ref().and_then(|machine| machine.hosts.iter().flatten().next());
    let Some(host) = host.cloned() else { return Err(error) };
    if !yes(ui, prompt)? {
        return Err(error);
    }
    let place = Place::Host(Arc::new(Host { start: true, ..host }));
    connect(&Options { spawn: true, place })?;
    Ok(())
}

fn joined(
    name: &str,
    hosts: Vec<Option<Host>>,
    HostTable { map, shared, .. }: HostTable,
) -> Result<OtherMachine> {
    let place = Place::Machines(Arc::new(Machines::new(hosts.clone())?));
    let map = map.into_iter().map(|(here, there)| (from_home(&here), there)).collect();
    let shared = shared.iter().map(|dir| from_home(dir)).collect();
    Ok(OtherMachine { name: name.to_owned(), hosts, place, map, shared })
}

fn from_home(path: &str) -> PathBuf {
    match (Path::new(path).strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}
