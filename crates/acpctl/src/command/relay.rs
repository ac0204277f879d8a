//! `acpctl relay`: the far end of `acpctl --host`, which ssh starts on the other machine.
//!
//! Prints one line about itself, then passes bytes between stdin, stdout and the daemon's socket
//! until either side has ended.

use std::env;
use std::io::{self, Read, Write};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use acpd_api::{API_VERSION, ExitCode, RelayHello, json};
use acpd_client::{ConnectError, Options, Paths, Place, open_socket};
use acpd_sys::socket::hang_up;
use acpd_sys::tree::is_marked;
use clap::Args;

use crate::error::Result;
use crate::programs::become_program;

#[derive(Debug, Args)]
pub(super) struct Relay {
    /// Start the daemon if none runs. One that died is started in any case.
    #[arg(long)]
    start: bool,
    /// The other end of the connection runs under an agent.
    #[arg(long)]
    under_agent: bool,
}

/// Mark of a relay for a program under an agent of another machine; see [`acpd_sys::tree`].
const MARK: (&str, &str) = ("ACPD_HOST", "relay");

const BLOCK: usize = 64 * 1024;

pub(super) fn relay(args: &Relay) -> Result<ExitCode> {
    // Of a key with a command of its own, ssh reports the command that it replaced.
    let replaced = env::var("SSH_ORIGINAL_COMMAND").unwrap_or_default();
    if (args.under_agent || replaced.contains("--under-agent")) && !is_marked() {
        // The daemon looks at the environment with which this process was started.
        let exe = env::current_exe()?;
        let mut marked = Command::new(exe);
        marked.args(env::args_os().skip(1)).env(MARK.0, MARK.1);
        return Err(become_program(&mut marked));
    }
    let place = Place::Here(Paths::discover()?);
    let spawn = args.start || place.has_socket();
    #[expect(clippy::disallowed_methods, reason = "these are the bytes of a connection")]
    let mut stdout = io::stdout();
    let mut hello = RelayHello {
        relay: 1,
        api: API_VERSION,
        version: env!("CARGO_PKG_VERSION").into(),
        running: true,
    };
    let opened = match open_socket(&Options { spawn, place }) {
        Err(ConnectError::NotRunning) => None,
        opened => Some(opened?),
    };
    hello.running = opened.is_some();
    writeln!(stdout, "{}", json::line(&hello).map_err(io::Error::from)?)?;
    stdout.flush()?;
    let Some(daemon) = opened else { return Ok(ExitCode::NotFound) };
    let daemon = Arc::new(daemon);
    let to_daemon = Arc::clone(&daemon);
    thread::Builder::new().name("up".to_owned()).spawn(move || {
        // The other machine is gone, or has ended the connection.
        pass(io::stdin(), &*to_daemon).ok();
        hang_up(&to_daemon);
    })?;
    pass(&*daemon, stdout).ok();
    Ok(ExitCode::Ok)
}

/// Passes bytes on as they come, until the end.
fn pass(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    loop {
        match from.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&block[..count])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
