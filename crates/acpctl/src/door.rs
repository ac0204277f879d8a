//! The way to the daemon.

use std::time::Duration;

use acpd_api::{ClientMeta, ClientName};
use acpd_client::{Connection, LinkReader, LinkWriter, Options, PATIENCE, Paths, connect, link};
use serde_json::{Value, json};

use crate::error::Result;
use crate::terminal;
use crate::ui::complain;

const NAME: &str = "acpctl";

/// Warnings about a daemon that ends with its terminal.
const BOUND: &str = "warning: acpd and its agents stop with this terminal or its program: they are in a Job that Windows \
                     does not let them leave";
const UNBOUND: &str = "\nhint: stop acpd and start it in another terminal: `acpctl daemon stop`, `acpctl daemon start`";

/// The way to the daemon.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Door {
    /// Start the daemon if none runs.
    pub(crate) spawn: bool,
}

impl Door {
    /// Connects, and starts the daemon unless that was forbidden.
    pub(crate) fn connect(self) -> Result<Connection> {
        let connection = connect(&self.options()?)?;
        warn_if(connection.is_bound());
        Ok(connection)
    }

    pub(crate) fn options(self) -> Result<Options> {
        Ok(Options { spawn: self.spawn, paths: Paths::discover()? })
    }

    /// Connects in the same way, for as long as the command runs: also to the daemon's successors.
    pub(crate) fn lasting_link(self) -> Result<(LinkReader, LinkWriter)> {
        self.link(PATIENCE)
    }

    /// Connects to this daemon and to none after it.
    pub(crate) fn single_link(self) -> Result<(LinkReader, LinkWriter)> {
        self.link(Duration::ZERO)
    }

    fn link(self, patience: Duration) -> Result<(LinkReader, LinkWriter)> {
        let (reader, writer) = link(self.options()?, patience)?;
        warn_if(reader.is_bound());
        Ok((reader, writer))
    }
}

/// Says that the daemon that was just started does not outlive what has started us.
fn warn_if(is_bound: bool) {
    if is_bound {
        complain(BOUND);
        complain(UNBOUND);
    }
}

/// Name of this client for notices to other clients.
pub(crate) fn me() -> ClientName {
    let place = terminal::name().map(Into::into);
    ClientName { name: NAME.into(), title: None, place }
}

/// The parameters of acpctl's `initialize`: it serves no agent, and shows what not every client does.
pub(crate) fn initialize_params(meta: &ClientMeta) -> Value {
    let meta = ClientMeta { place: terminal::name(), ..meta.clone() };
    let mut params = acpd_client::initialize_params(&meta, NAME);
    params["clientCapabilities"]["session"] =
        json!({"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}});
    params
}
