//! Connections to the daemon.

use acpd_api::{ClientMeta, ClientName};
use acpd_client::{ConnectError, Connection, Options, PATIENCE, Paths, connect, connect_lasting};
use serde_json::{Value, json};

use crate::error::Result;
use crate::terminal;
use crate::ui::{Ui, complain};

const NAME: &str = "acpctl";

/// Warnings about a daemon that ends with its terminal.
const BOUND: &str = "warning: acpd and its agents stop with this terminal or its program: they are in a Job that Windows \
                     does not let them leave";
const UNBOUND: &str = "\nhint: stop acpd and start it in another terminal: `acpctl daemon stop`, `acpctl daemon start`";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Door {
    pub(crate) spawn: bool,
}

impl Ui {
    /// Returns the door of this command; `--no-spawn` forbids it to start a daemon.
    pub(crate) fn door(&self) -> Door {
        Door { spawn: self.may_start }
    }
}

impl Door {
    pub(crate) fn connect(self) -> Result<Connection> {
        warned(connect(&self.options()?))
    }

    pub(crate) fn options(self) -> Result<Options> {
        Ok(Options { spawn: self.spawn, paths: Paths::discover()? })
    }

    /// The connection follows the daemon's successors.
    pub(crate) fn connect_lasting(self) -> Result<Connection> {
        warned(connect_lasting(&self.options()?, PATIENCE))
    }
}

fn warned(connected: std::result::Result<Connection, ConnectError>) -> Result<Connection> {
    let connection = connected?;
    if connection.reader.is_bound() {
        complain(BOUND);
        complain(UNBOUND);
    }
    Ok(connection)
}

pub(crate) fn me() -> ClientName {
    let place = terminal::name().map(Into::into);
    ClientName { name: NAME.into(), title: None, place }
}

/// Returns the parameters for `initialize`: acpctl serves no agent, and shows some optional
/// content.
pub(crate) fn initialize_params(meta: &ClientMeta) -> Value {
    let meta = ClientMeta { place: terminal::name(), ..meta.clone() };
    let mut params = acpd_client::initialize_params(&meta, NAME);
    params["clientCapabilities"]["session"] =
        json!({"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}});
    params
}
