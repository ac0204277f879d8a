//! One client of sixteen that does not read: what it costs acpd and the other clients.

use std::thread;
use std::time::Instant;

use serde_json::json;

use super::Bench;
use super::peer::Peer;
use super::process::{cpu_micros, peak_rss_bytes};
use super::stream::RUNS;
use super::table::{Row, median};
use crate::Result;

/// Clients of the one session.
const CLIENTS: usize = 16;
/// Lines of one stream.
const LINES: usize = 200_000;
/// How much more CPU a line may cost.
const CPU: f64 = 1.25;
/// How much memory the client may cost, in MB: what is on its way to it, and what the allocator keeps
/// of that; the search index may be at work on the stream before. The stream itself has 50 MB.
const MEMORY: f64 = 32.0;

/// One stream to all clients.
struct Flood {
    /// Lines per second at the slowest client that reads.
    rate: f64,
    /// Microseconds of CPU in acpd per line.
    cost: f64,
    /// The most memory that the daemon has ever had, in MB.
    peak: f64,
}

/// What one stalled client of sixteen costs, as medians of paired runs.
struct Price {
    /// Throughput of the others, as a share of what it is when all read.
    rate: f64,
    /// CPU per line, likewise.
    cpu: f64,
    /// Memory, in MB beyond that.
    memory: f64,
}

/// A row of the table.
pub(super) fn fairness(bench: &mut Bench) -> Result {
    let runs = bench.times(RUNS).max(3);
    let price = price(bench, runs, bench.times(LINES))?;
    let text = format!(
        "{:.2} of the throughput, {:.2} of the CPU, +{:.1} MB",
        price.rate, price.cpu, price.memory
    );
    let held = price.rate > 0.75 && price.holds();
    bench.row(Row::new("1 stalled client of 16", text).bar("> 0.75, < 1.25, < 32 MB", held));
    Ok(())
}

/// Fails if a stalled client makes acpd work or keep more. The throughput of the others depends too
/// much on what else the machine does.
pub(super) fn check(bench: &Bench) -> Result {
    let price = price(bench, 1, LINES)?;
    let text = format!("{:.2} of the CPU per line, +{:.1} MB", price.cpu, price.memory);
    eprintln!("one stalled client of {CLIENTS} during {LINES} lines: {text}");
    if price.holds() {
        return Ok(());
    }
    Err(format!("a stalled client costs too much: {text}; at most {CPU} and {MEMORY} MB").into())
}

impl Price {
    fn holds(&self) -> bool {
        self.cpu < CPU && self.memory < MEMORY
    }
}

fn price(bench: &Bench, runs: usize, lines: usize) -> Result<Price> {
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    // The allocator and the search index take their share with the first streams, in chance steps of tens of
    // MB that nobody's stalling causes.
    let mut before = flood(bench, lines, false)?.peak;
    let mut after = before;
    for run in 0..runs {
        let fair = flood(bench, lines, false)?;
        let stalled = flood(bench, lines, true)?;
        rates.push(stalled.rate / fair.rate);
        costs.push(stalled.cost / fair.cost);
        if run == 0 {
            before = fair.peak;
        }
        after = after.max(stalled.peak);
    }
    Ok(Price { rate: median(&mut rates), cpu: median(&mut costs), memory: after - before })
}

/// Streams to all clients, of which the last one begins to read when all others have the end.
fn flood(bench: &Bench, lines: usize, stalls: bool) -> Result<Flood> {
    let mut client = bench.client()?;
    let session = client.session(&bench.work())?;
    let watch = || -> Result<Peer> {
        let mut watcher = bench.watcher()?;
        let which = json!({"ref": {"session": session}, "role": "observer"});
        watcher.call("_acpd/session/attach", &which)?;
        Ok(watcher)
    };
    let mut watchers = (1..CLIENTS).map(|_| watch()).collect::<Result<Vec<_>>>()?;
    let stalled = if stalls { watchers.pop() } else { None };
    let daemon = bench.home.daemon()?.pid;
    let (before, start) = (cpu_micros(daemon), Instant::now());
    let reading: Vec<_> = watchers.into_iter().map(|peer| thread::spawn(|| count(peer))).collect();
    let mut got = 0;
    client.prompt(&session, &format!("flood {lines}"), |_| got += 1)?;
    let mut all = vec![got];
    for watcher in reading {
        all.push(watcher.join().map_err(|_| "a client panicked")??);
    }
    let seconds = start.elapsed().as_secs_f64();
    let cost = (cpu_micros(daemon) - before) / lines as f64;
    if let Some(stalled) = stalled {
        all.push(count(stalled)?);
    }
    if let Some(short) = all.iter().find(|got| **got < lines) {
        return Err(format!("a client got {short} of {lines} lines").into());
    }
    let peak = peak_rss_bytes(daemon)? as f64 / 1e6;
    Ok(Flood { rate: lines as f64 / seconds, cost, peak })
}

/// Lines until the end of the turn.
fn count(mut watcher: Peer) -> std::result::Result<usize, String> {
    let mut lines = 0;
    let end = watcher.notice("_acpd/turn_ended", |_| lines += 1);
    end.map(|()| lines).map_err(|error| error.to_string())
}
