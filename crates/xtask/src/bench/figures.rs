//! The figures: their measures, and their base at the end of a pipe.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::agent::{nanos, stamp, text};
use super::{Bench, client_of, median};
use crate::Result;
use crate::home::kill_tree;
use crate::workspace::succeed;
use acpd_test::peer::Peer;

pub(super) const LINES: usize = 200_000;
/// Time between two prompts.
pub(super) const NO_PAUSE: Duration = Duration::ZERO;

type Measure = fn(&Bench) -> Result<f64>;

pub(super) struct Figure {
    pub(super) name: &'static str,
    unit: &'static str,
    pub(super) more_is_better: bool,
    pub(super) measure: Measure,
    /// The measure of the agent alone.
    pub(super) pipe: Option<Measure>,
}

pub(super) const FIGURES: [Figure; 19] = [
    less("CPU per line, daemon", "µs", |bench| cpu_per_line(bench, Part::Daemon)),
    less("CPU per line, shim", "µs", |bench| cpu_per_line(bench, Part::Shim)),
    less("CPU per line, acpctl acp", "µs", |bench| cpu_per_line(bench, Part::Bridge)),
    more("stream to one client", "lines/s", |bench| lines_per_second(bench, bench.client()?))
        .with_pipe(|bench| lines_per_second(bench, bench.pipe()?)),
    less("line, agent to socket, p50", "µs", |bench| line_age(bench, bench.client()?))
        .with_pipe(|bench| line_age(bench, bench.pipe()?)),
    less("line, agent to bridge, p50", "µs", |bench| line_age(bench, bench.bridge()?))
        .with_pipe(|bench| line_age(bench, bench.pipe()?)),
    less("request and answer, p50", "µs", |bench| round_trip(bench, bench.client()?))
        .with_pipe(|bench| round_trip(bench, bench.pipe()?)),
    less("prompt and answer, p50", "µs", |bench| prompt(bench, bench.client()?))
        .with_pipe(|bench| prompt(bench, bench.pipe()?)),
    less(
        "written per prompt",
        "kB",
        |bench| Ok(per_prompt(bench, (200, NO_PAUSE), written)? / 1e3),
    ),
    less("written per prompt, 3 a second", "kB", |bench| {
        Ok(per_prompt(bench, (40, Duration::from_millis(300)), written)? / 1e3)
    }),
    less("written per streamed byte", "B", written_of_stream),
    less("write calls per prompt", "", |bench| {
        per_prompt(bench, (200, NO_PAUSE), |pid| io(pid, "syscw"))
    }),
    less("CPU per prompt, daemon", "µs", |bench| per_prompt(bench, (200, NO_PAUSE), cpu_micros)),
    less("disk per byte of old text", "B", disk),
    less("lines of a load, per 1,000 chunks", "", load),
    less("acpctl ps, p50", "ms", command),
    less("daemon started by acpctl ps", "ms", cold_start),
    less("agent killed, session restored", "ms", restore),
    less("PSS of the daemon", "MB", memory),
];

pub(super) const fn less(name: &'static str, unit: &'static str, measure: Measure) -> Figure {
    Figure { name, unit, more_is_better: false, measure, pipe: None }
}

const fn more(name: &'static str, unit: &'static str, measure: Measure) -> Figure {
    Figure { name, unit, more_is_better: true, measure, pipe: None }
}

impl Figure {
    const fn with_pipe(self, pipe: Measure) -> Figure {
        Figure { pipe: Some(pipe), ..self }
    }

    pub(super) fn shown(&self, value: f64) -> String {
        shown(value, self.unit)
    }
}

pub(super) fn shown(value: f64, unit: &str) -> String {
    let digits = if value < 100.0 { 2 } else { 0 };
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}

/// A process on the way of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Daemon,
    Shim,
    Bridge,
}

/// CPU of one process per line, for [`LINES`] lines to one client.
fn cpu_per_line(bench: &Bench, part: Part) -> Result<f64> {
    let mut peer = if part == Part::Bridge { bench.bridge()? } else { bench.client()? };
    let session = peer.session(&bench.work())?;
    let pid = match part {
        Part::Daemon => bench.home.daemon()?.pid,
        Part::Shim => {
            let leader = bench.home.agent("bench")?.pid;
            bench.home.shim(leader).ok_or("the agent has no shim")?.pid
        }
        Part::Bridge => peer.pid().ok_or("the bridge is no process")?,
    };
    let count = bench.times(LINES);
    let before = cpu_micros(pid);
    flood(&mut peer, &session, count)?;
    Ok((cpu_micros(pid) - before) / count as f64)
}

/// CPU time of all threads of a process but those that ended, in microseconds.
pub(super) fn cpu_micros(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
    stats.filter_map(|stat| stat.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() / 1e3
}

/// Growth of a number of the daemon per prompt with one line of answer, one prompt after the other.
pub(super) fn per_prompt(
    bench: &Bench,
    (prompts, pause): (usize, Duration),
    number: fn(u32) -> f64,
) -> Result<f64> {
    let mut peer = bench.client()?;
    let session = peer.session(&bench.work())?;
    let pid = bench.home.daemon()?.pid;
    flood(&mut peer, &session, 1)?;
    let (before, prompts) = (number(pid), bench.times(prompts));
    for _ in 0..prompts {
        std::thread::sleep(pause);
        flood(&mut peer, &session, 1)?;
    }
    Ok((number(pid) - before) / prompts as f64)
}

/// Journal, index and checkpoint for each byte of an answer in lines of 256 B.
fn written_of_stream(bench: &Bench) -> Result<f64> {
    let mut peer = bench.client()?;
    let session = peer.session(&bench.work())?;
    let pid = bench.home.daemon()?.pid;
    let bytes = || settled(|| written(pid) as u64);
    let before = bytes();
    flood(&mut peer, &session, 20_000)?;
    Ok((bytes() - before) as f64 / (20_000.0 * 256.0))
}

/// Returns a number that no longer changes for longer than a checkpoint waits.
fn settled(number: impl Fn() -> u64) -> u64 {
    let (mut last, mut same) = (number(), 0);
    while same < 50 {
        std::thread::sleep(Duration::from_millis(200));
        let now = number();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last
}

pub(super) fn written(pid: u32) -> f64 {
    io(pid, "wchar")
}

/// A counter of `/proc/PID/io`.
fn io(pid: u32, counter: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let count = |line: &str| line.strip_prefix(counter)?.strip_prefix(": ")?.parse().ok();
    text.lines().find_map(count).unwrap_or_default()
}

/// Bytes of journal and index for each byte of an answer in chunks of 20 characters that is old.
fn disk(bench: &Bench) -> Result<f64> {
    let home = super::home(&bench.bins)?;
    let usual = fs::read_to_string(home.path("config/config.toml"))?;
    home.configure(&format!("{usual}[daemon]\ncompress_after = \"0s\"\n"))?;
    if home.read(&["daemon", "start"]).is_err() {
        // A build that compresses nothing.
        home.configure(&usual)?;
        home.read(&["daemon", "start"])?;
    }
    home.stop()?;
    let size = || {
        let files = fs::read_dir(home.path("state")).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum::<u64>()
    };
    let before = size();
    let mut client = client_of(&home, &json!({"agent": "bench"}))?;
    let session = client.session(&home.path("work"))?;
    client.prompt(&session, "text 20", |_| ())?;
    client.call("session/close", &json!({"sessionId": session}))?;
    settled(size);
    home.stop()?;
    Ok(size().saturating_sub(before) as f64 / text()?.len() as f64)
}

fn load(bench: &Bench) -> Result<f64> {
    let mut client = bench.client()?;
    let session = client.session(&bench.work())?;
    client.prompt(&session, "text 20", |_| ())?;
    client.call("session/close", &json!({"sessionId": session}))?;
    let mut lines = 0;
    let load = json!({"sessionId": session, "cwd": bench.work(), "mcpServers": []});
    let id = client.send("session/load", &load)?;
    client.until(id, |_| lines += 1)?;
    Ok(f64::from(lines) * 1e3 / (text()?.chars().count() / 20) as f64)
}

fn lines_per_second(bench: &Bench, mut peer: Peer) -> Result<f64> {
    let session = peer.session(&bench.work())?;
    let count = bench.times(LINES);
    let start = Instant::now();
    flood(&mut peer, &session, count)?;
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

pub(super) fn flood(peer: &mut Peer, session: &str, count: usize) -> Result {
    let mut lines = 0;
    peer.prompt(session, &format!("flood {count}"), |_| lines += 1)?;
    if lines < count {
        return Err(format!("{lines} of {count} lines came").into());
    }
    Ok(())
}

/// One line of 256 B each 200 µs, stamped by the agent: its age when the client has read it.
fn line_age(bench: &Bench, mut peer: Peer) -> Result<f64> {
    let session = peer.session(&bench.work())?;
    let mut ages = Vec::new();
    peer.prompt(&session, &format!("pace {} 200", bench.times(3000)), |line| {
        let now = nanos();
        ages.extend(stamp(line).map(|then| now.saturating_sub(then) as f64 / 1e3));
    })?;
    Ok(median(&mut ages))
}

fn prompt(bench: &Bench, mut peer: Peer) -> Result<f64> {
    let session = peer.session(&bench.work())?;
    let mut times = Vec::new();
    for _ in 0..bench.times(500) {
        let start = Instant::now();
        flood(&mut peer, &session, 1)?;
        times.push(ms(start.elapsed()) * 1e3);
    }
    Ok(median(&mut times))
}

fn round_trip(bench: &Bench, mut peer: Peer) -> Result<f64> {
    let session = peer.session(&bench.work())?;
    let mut times = Vec::new();
    for n in 0..bench.times(2000) {
        let params = json!({"sessionId": session, "modeId": format!("mode-{}", n % 2)});
        let start = Instant::now();
        peer.call("session/set_mode", &params)?;
        times.push(ms(start.elapsed()) * 1e3);
    }
    Ok(median(&mut times))
}

fn command(bench: &Bench) -> Result<f64> {
    bench.home.read(&["daemon", "start"])?;
    let runs = (0..bench.times(50)).map(|_| timed(&mut bench.home.acpctl(&["ps"])));
    Ok(median(&mut runs.collect::<Result<Vec<_>>>()?))
}

fn cold_start(bench: &Bench) -> Result<f64> {
    bench.home.stop()?;
    timed(&mut bench.home.acpctl(&["ps"]))
}

/// Milliseconds of a command, whose output is dropped.
pub(super) fn timed(command: &mut Command) -> Result<f64> {
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let start = Instant::now();
    succeed(command)?;
    Ok(ms(start.elapsed()))
}

fn restore(bench: &Bench) -> Result<f64> {
    let about = json!({"agent": "bench", "notices": true, "seq": true});
    let mut watcher = client_of(&bench.home, &about)?;
    let session = watcher.session(&bench.work())?;
    watcher.prompt(&session, "nothing", |_| ())?;
    let process = bench.home.agent("bench")?;
    let start = Instant::now();
    kill_tree(process);
    watcher.notice("_acpd/restored", |_| ())?;
    let time = ms(start.elapsed());
    watcher.call("session/close", &json!({"sessionId": session}))?;
    Ok(time)
}

/// PSS of a daemon that has served one session: a later one may have returned memory, or not yet.
fn memory(bench: &Bench) -> Result<f64> {
    bench.home.stop()?;
    let mut client = bench.client()?;
    let session = client.session(&bench.work())?;
    client.prompt(&session, "nothing", |_| ())?;
    Ok(pss_bytes(bench.home.daemon()?.pid)? / 1e6)
}

pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Memory of a process in bytes, shared pages divided among their users.
pub(super) fn pss_bytes(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let kib = text.lines().find_map(|line| line.strip_prefix("Pss:")?.strip_suffix("kB"));
    Ok(kib.ok_or("no Pss")?.trim().parse::<f64>()? * 1024.0)
}
