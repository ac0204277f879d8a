//! Measures how fast lines go from the agent to its clients.

use std::path::Path;
use std::thread;
use std::time::Instant;

use acpd_sys::process::rss_bytes;
use serde_json::json;

use super::Bench;
use super::agent::{nanos, stamp};
use super::process::cpu_micros;
use super::table::{Row, median, ms, percentile};
use crate::Result;
use crate::peer::Peer;

/// Runs whose median is told.
pub(super) const RUNS: usize = 5;

/// Half and nearly all of the values lie below these, in microseconds.
pub(super) struct Spread {
    pub(super) p50: f64,
    pub(super) p99: f64,
}

impl Spread {
    pub(super) fn of(values: &mut [f64]) -> Spread {
        Spread { p50: percentile(values, 0.5), p99: percentile(values, 0.99) }
    }

    /// The median of each.
    pub(super) fn median(runs: &[Spread]) -> Spread {
        let of = |part: fn(&Spread) -> f64| median(&mut runs.iter().map(part).collect::<Vec<_>>());
        Spread { p50: of(|run| run.p50), p99: of(|run| run.p99) }
    }

    pub(super) fn text(&self) -> String {
        format!("{:.0} / {:.0} µs", self.p50, self.p99)
    }

    pub(super) fn beyond(&self, direct: &Spread) -> Spread {
        Spread { p50: self.p50 - direct.p50, p99: self.p99 - direct.p99 }
    }
}

/// Measures at each of these clients in turn, so many times, each time in a new session.
pub(super) fn in_turn<T, const N: usize>(
    mut peers: [&mut Peer; N],
    cwd: &Path,
    times: usize,
    mut measure: impl FnMut(&mut Peer, &str) -> Result<T>,
) -> Result<[Vec<T>; N]> {
    let mut measured = [const { Vec::new() }; N];
    for _ in 0..times {
        for (peer, measured) in peers.iter_mut().zip(&mut measured) {
            let session = peer.session(cwd)?;
            measured.push(measure(peer, &session)?);
        }
    }
    Ok(measured)
}

/// How old the lines of a prompt are, in microseconds, when they have come.
pub(super) fn ages(peer: &mut Peer, session: &str, prompt: &str) -> Result<Spread> {
    let mut ages = Vec::new();
    peer.prompt(session, prompt, |line| {
        let now = nanos();
        ages.extend(stamp(line).map(|then| now.saturating_sub(then) as f64 / 1e3));
    })?;
    Ok(Spread::of(&mut ages))
}

/// One line of 256 B each 200 µs, stamped by the agent: how old it is when a client has read it.
pub(super) fn latency(bench: &mut Bench) -> Result {
    let prompt = format!("pace {} 200", bench.times(3000));
    let (mut pipe, mut client, mut bridge) = (bench.direct()?, bench.client()?, bench.bridge()?);
    let cwd = bench.work();
    let peers = [&mut pipe, &mut client, &mut bridge];
    let runs = in_turn(peers, &cwd, RUNS, |peer, session| ages(peer, session, &prompt))?;
    let [direct, socket, bridged] = runs.map(|runs| Spread::median(&runs));
    for (what, measured, bar, most) in [
        ("line, agent to socket, p50 / p99", socket, "< 120 / 500 µs", (120.0, 500.0)),
        ("line, agent to bridge, p50 / p99", bridged, "< 180 / 700 µs", (180.0, 700.0)),
    ] {
        let added = measured.beyond(&direct);
        let row =
            Row::new(what, measured.text()).direct(direct.text(), format!("+{}", added.text()));
        bench.row(row.bar(bar, added.p50 < most.0 && added.p99 < most.1));
    }
    Ok(())
}

/// A request to the agent and its answer, `session/set_mode`, one after another.
pub(super) fn round_trips(bench: &mut Bench) -> Result {
    let count = bench.times(2000);
    let cwd = bench.work();
    let (mut pipe, mut client) = (bench.direct()?, bench.client()?);
    let runs = in_turn([&mut pipe, &mut client], &cwd, RUNS, |peer, session| {
        set_modes(peer, session, count)
    })?;
    let [direct, socket] = runs.map(|runs| Spread::median(&runs));
    let added = format!("+{}", socket.beyond(&direct).text());
    let row = Row::new("request and answer, p50 / p99", socket.text());
    bench.row(row.direct(direct.text(), added));
    Ok(())
}

/// Times of requests that follow one another, in microseconds.
pub(super) fn set_modes(peer: &mut Peer, session: &str, count: usize) -> Result<Spread> {
    let mut times = Vec::new();
    for n in 0..count {
        let params = json!({"sessionId": session, "modeId": format!("mode-{}", n % 2)});
        let start = Instant::now();
        peer.call("session/set_mode", &params)?;
        times.push(ms(start.elapsed()) * 1e3);
    }
    Ok(Spread::of(&mut times))
}

/// A stream of 256 B lines as fast as they go: to one client, then to several.
pub(super) fn throughput(bench: &mut Bench) -> Result {
    let count = bench.times(200_000);
    let cwd = bench.work();
    let alone = |peer: &mut Peer| -> Result<f64> {
        let session = peer.session(&cwd)?;
        timed_flood(peer, &session, count)
    };
    let mut pipe = bench.direct()?;
    let mut client = bench.client()?;
    let daemon = bench.home.daemon()?.pid;
    let (mut direct, mut rates, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        direct.push(count as f64 / alone(&mut pipe)?);
        let before = cpu_micros(daemon);
        rates.push(count as f64 / alone(&mut client)?);
        costs.push((cpu_micros(daemon) - before) / count as f64);
    }
    let (direct, rate, cost) = (median(&mut direct), median(&mut rates), median(&mut costs));
    let row = Row::new("stream of 256 B lines", format!("{rate:.0} lines/s"))
        .direct(format!("{direct:.0} lines/s"), format!("{:.2} of it", rate / direct));
    bench.row(row.bar("≥ 150000 lines/s", rate >= 150_000.0));
    let row = Row::new("CPU in acpd per line", format!("{cost:.2} µs"));
    bench.row(row.bar("< 5 µs", cost < 5.0));

    for (clients, what) in [(4, "the same to 4 clients"), (16, "the same to 16 clients")] {
        let many = flood(bench, clients, count)?;
        let per_client = (many.cost - cost) / (clients - 1) as f64;
        let row = Row::new(what, format!("{:.0} lines/s, {:.2} µs", many.first, many.cost));
        let slower = format!("{:.2} of one client", many.first / rate);
        bench.row(row.direct(String::new(), format!("{slower}, +{per_client:.2} µs a client")));
    }
    Ok(())
}

/// Seconds until the prompting client has all of a stream.
pub(super) fn timed_flood(peer: &mut Peer, session: &str, count: usize) -> Result<f64> {
    let mut lines = 0;
    let start = Instant::now();
    peer.prompt(session, &format!("flood {count}"), |_| lines += 1)?;
    let seconds = start.elapsed().as_secs_f64();
    if lines < count {
        return Err(format!("{lines} of {count} lines came").into());
    }
    Ok(seconds)
}

/// One stream to several clients.
struct Flood {
    /// Lines per second at the client that prompts.
    first: f64,
    /// Microseconds of CPU in acpd per line.
    cost: f64,
}

/// Streams to several clients.
fn flood(bench: &Bench, clients: usize, lines: usize) -> Result<Flood> {
    let mut client = bench.client()?;
    let session = client.session(&bench.work())?;
    let watch = || -> Result<Peer> {
        let mut watcher = bench.watcher()?;
        watcher.watch(&session)?;
        Ok(watcher)
    };
    let watchers = (1..clients).map(|_| watch()).collect::<Result<Vec<_>>>()?;
    let daemon = bench.home.daemon()?.pid;
    let before = cpu_micros(daemon);
    let reading: Vec<_> = watchers.into_iter().map(|peer| thread::spawn(|| count(peer))).collect();
    let first = timed_flood(&mut client, &session, lines)?;
    let mut all = Vec::new();
    for watcher in reading {
        all.push(watcher.join().map_err(|_| "a client panicked")??);
    }
    let cost = (cpu_micros(daemon) - before) / lines as f64;
    if let Some(short) = all.iter().find(|got| **got < lines) {
        return Err(format!("a client got {short} of {lines} lines").into());
    }
    Ok(Flood { first: lines as f64 / first, cost })
}

/// Lines until the end of the turn.
fn count(mut watcher: Peer) -> std::result::Result<usize, String> {
    let mut lines = 0;
    let end = watcher.notice("_acpd/turn_ended", |_| lines += 1);
    end.map(|()| lines).map_err(|error| error.to_string())
}

/// One line of 20 MB and one of 64 MiB: that it passes, how long it takes, and what it leaves behind.
pub(super) fn giants(bench: &mut Bench) -> Result {
    let cwd = bench.work();
    let (mut pipe, mut client) = (bench.direct()?, bench.client()?);
    let daemon = bench.home.daemon()?.pid;
    // With its newline.
    for (what, length) in [("line of 20 MB", 20_000_000), ("line of 64 MiB", (64 << 20) + 1)] {
        let base = rss_bytes(daemon)? as f64;
        let times = in_turn([&mut pipe, &mut client], &cwd, bench.times(5), |peer, session| {
            let (mut longest, start) = (0, Instant::now());
            let prompt = format!("line {length}");
            peer.prompt(session, &prompt, |line| longest = longest.max(line.len()))?;
            if longest != length {
                return Err(format!("{what}: {longest} of {length} bytes came").into());
            }
            Ok(ms(start.elapsed()))
        })?;
        // Answered when the search index is done with what was said before.
        client.call("_acpd/session/search", &json!({"words": ["nothing"]}))?;
        let left = (rss_bytes(daemon)? as f64 - base) / 1e6;
        let [direct, socket] = times.map(|mut times| median(&mut times));
        let row = Row::new(what, format!("{socket:.0} ms, RSS +{left:.1} MB after"))
            .direct(format!("{direct:.0} ms"), format!("{:.1} times", socket / direct));
        bench.row(row.bar("passes, RSS returns", left < 8.0));
    }
    Ok(())
}
