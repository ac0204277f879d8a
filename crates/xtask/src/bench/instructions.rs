//! Instructions of a daemon for each line, counted by callgrind.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use acpd_sys::process::{Liveness, StopSignal, signal_one};
use serde_json::json;

use super::client_of;
use super::figures::flood;
use crate::Result;
use crate::home::{ChildGuard, wait_for};
use acpd_test::peer::Peer;

/// Lines of two streams; the difference leaves out start and end.
const COUNTED: [usize; 2] = [2_000, 12_000];
/// Longest time for a daemon under callgrind to start, or to stop.
const PATIENCE: Duration = Duration::from_mins(2);

/// Counts per line to one client.
pub(super) fn per_line(bins: &Path) -> Result<f64> {
    let [few, many] = COUNTED;
    Ok((count(bins, many)? - count(bins, few)?) / (many - few) as f64)
}

/// Counts for a whole daemon. Under valgrind it cannot start a shim, because its program is
/// valgrind's: it takes over a shim that another daemon has started.
fn count(bins: &Path, lines: usize) -> Result<f64> {
    let home = super::home(bins)?;
    let mut client = client_of(&home, &json!({"agent": "bench"}))?;
    let session = client.session(&home.path("work"))?;
    flood(&mut client, &session, 1)?;
    drop(client);
    let first = home.daemon()?;
    signal_one(first, StopSignal::Kill);
    wait_for("the end of the first daemon", PATIENCE, || first.is_alive() != Liveness::Alive)?;

    let out = home.path("callgrind.out");
    let mut command = home.command(Path::new("valgrind"));
    command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(home.program("acpd")).arg("run").stdout(Stdio::null()).stderr(Stdio::null());
    let mut daemon = ChildGuard(command.spawn()?);
    let is_open = || Peer::connect(&home.socket(), None).is_ok();
    wait_for("the daemon's socket", PATIENCE, is_open)?;
    let mut client = Peer::connect(&home.socket(), Some(PATIENCE))?;
    client.initialize(&json!({"agent": "bench"}))?;
    let which = json!({"sessionId": session, "cwd": home.path("work"), "mcpServers": []});
    client.call("session/load", &which)?;
    flood(&mut client, &session, lines)?;
    drop(client);
    home.read(&["daemon", "stop"])?;
    wait_for("the end of the daemon", PATIENCE, || daemon.is_over())?;
    let text = fs::read_to_string(out)?;
    let total = text.lines().find_map(|line| line.strip_prefix("summary: "));
    let total = total.and_then(|total| total.split(' ').next()?.parse().ok());
    Ok(total.ok_or("callgrind wrote no summary")?)
}
