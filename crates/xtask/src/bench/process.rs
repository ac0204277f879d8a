//! Measures the memory of the daemon and of shims.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use acpd_sys::process::pss_bytes;
use serde_json::json;

use super::Bench;
use super::table::Row;
use crate::Result;

/// Sessions that are parked.
const SESSIONS: usize = 100;

/// Agents that are started to see what their shims take.
pub(super) const SHIMS: usize = 20;

/// After so long a daemon to which nothing happens has given back what it does not need.
const REST: Duration = Duration::from_secs(11);

/// PSS of one shim, and of each of several.
pub(super) fn shims(bench: &mut Bench) -> Result {
    bench.home.read(&["agent", "stop", "bench"])?;
    let mut figures = Vec::new();
    for count in [1, SHIMS] {
        for n in 0..count {
            bench.home.read(&["agent", "start", &format!("bench{n}")])?;
        }
        let shims = shims_of(&bench.home.path(""));
        if shims.len() != count {
            return Err(format!("{} shims run for {count} agents", shims.len()).into());
        }
        let sum: u64 = shims.iter().map(|pid| pss_bytes(*pid).unwrap_or(0)).sum();
        figures.push(sum as f64 / count as f64 / 1e6);
    }
    for n in 0..SHIMS {
        bench.home.read(&["agent", "stop", &format!("bench{n}")])?;
    }
    bench.home.read(&["agent", "start", "bench"])?;
    for (what, mb) in ["PSS of one shim", "PSS per shim, of 20"].into_iter().zip(figures) {
        bench.row(Row::new(what, format!("{mb:.2} MB")).bar("< 0.5 MB", mb < 0.5));
    }
    Ok(())
}

/// Processes `acpd shim DIR` with a directory below this one.
fn shims_of(home: &Path) -> Vec<u32> {
    let home = home.as_os_str().as_encoded_bytes();
    let is_shim = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut args = line.split(|byte| *byte == 0).skip(1);
        args.next() == Some(b"shim") && args.next().is_some_and(|dir| dir.starts_with(home))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_shim).collect()
}

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

/// Of a daemon that has just started, and come to rest.
fn fresh_pss(bench: &Bench) -> Result<f64> {
    bench.home.read(&["daemon", "restart"])?;
    let daemon = bench.home.daemon()?.pid;
    thread::sleep(REST);
    Ok(pss_bytes(daemon)? as f64)
}
