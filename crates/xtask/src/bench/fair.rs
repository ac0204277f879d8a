//! Measures what one client of sixteen that does not read costs acpd and the other clients.

use super::Bench;
use super::stream::{RUNS, flood};
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
    let mut before = flood(bench, CLIENTS, lines, false)?.peak;
    let mut after = before;
    for run in 0..runs {
        let fair = flood(bench, CLIENTS, lines, false)?;
        let stalled = flood(bench, CLIENTS, lines, true)?;
        rates.push(stalled.slowest / fair.slowest);
        costs.push(stalled.cost / fair.cost);
        if run == 0 {
            before = fair.peak;
        }
        after = after.max(stalled.peak);
    }
    Ok(Price { rate: median(&mut rates), cpu: median(&mut costs), memory: after - before })
}
