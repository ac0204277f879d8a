//! What the daemon's process takes.

use std::fs;

use acpd_sys::process::pss_bytes;
use serde_json::json;

use super::Bench;
use super::table::Row;
use crate::Result;

/// Sessions that are parked.
const SESSIONS: usize = 100;

/// CPU time of a process so far in microseconds: of all its threads, those that ended left out.
pub(super) fn cpu_micros(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
    stats.filter_map(|stat| stat.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() / 1e3
}

/// PSS of the daemon without and with parked sessions, each time freshly started.
pub(super) fn memory(bench: &mut Bench) -> Result {
    let idle = fresh_pss(bench)?;
    let mut client = bench.client()?;
    for _ in 0..SESSIONS {
        let session = client.session(&bench.work())?;
        client.prompt(&session, "nothing", |_| ())?;
    }
    client.call("_acpd/agent/stop", &json!({"agent": "bench"}))?;
    drop(client);
    let parked = (fresh_pss(bench)? - idle) / SESSIONS as f64;
    bench.home.read(&["agent", "start", "bench"])?;
    let (mb, kb) = (idle / 1e6, parked / 1e3);
    bench.row(Row::new("PSS, idle", format!("{mb:.1} MB")).bar("< 6 MB", mb < 6.0));
    let row = Row::new("PSS per parked session, of 100", format!("{kb:.1} KB"));
    bench.row(row.bar("< 20 KB", kb < 20.0));
    Ok(())
}

fn fresh_pss(bench: &Bench) -> Result<f64> {
    bench.home.read(&["daemon", "restart"])?;
    Ok(pss_bytes(bench.home.daemon()?.pid)? as f64)
}
