//! Compares two builds in one run: `cargo xtask bench --against DIR`, with the old programs in `DIR`.
//!
//! Each figure is taken in rounds, in each round once of the old build, of the new one and of the old one
//! again. The new build may be worse by 3 %, or by the spread of old against old if that is larger.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use acpd_sys::process::{Liveness, ProcessId, pss_bytes};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use serde_json::json;
use tempfile::TempDir;

use super::process::cpu_micros;
use super::stream::{ages, timed_flood};
use super::table::{median, ms, print_aligned};
use super::{Bench, start};
use crate::Result;
use crate::home::{ChildGuard, Home, kill_tree, wait_for};
use crate::peer::Peer;
use crate::test;

/// Rounds of each figure.
const ROUNDS: usize = 7;
/// Lines of the stream whose CPU is measured.
const LINES: usize = 200_000;
/// Lines of the two streams that callgrind counts; the difference leaves out start and end.
const COUNTED: [usize; 2] = [2_000, 12_000];
/// How much worse a figure may be anyway, as a share.
const TOLERANCE: f64 = 0.03;
/// How long a daemon under callgrind may take to start, or to stop.
const PATIENCE: Duration = Duration::from_mins(2);

/// What is measured, and whether less or more of it is better.
struct Figure {
    name: &'static str,
    unit: &'static str,
    more_is_better: bool,
    measure: fn(&Bench) -> Result<f64>,
}

const FIGURES: [Figure; 11] = [
    less("CPU per line, daemon", "µs", |bench| cpu_per_line(bench, Part::Daemon)),
    less("CPU per line, shim", "µs", |bench| cpu_per_line(bench, Part::Shim)),
    less("CPU per line, acpctl acp", "µs", |bench| cpu_per_line(bench, Part::Bridge)),
    more("stream to one client", "lines/s", lines_per_second),
    less("line, agent to socket, p50", "µs", |bench| line_age(bench, false)),
    less("line, agent to bridge, p50", "µs", |bench| line_age(bench, true)),
    less("request and answer, p50", "µs", round_trip),
    less("acpctl ps, p50", "ms", command),
    less("daemon started by acpctl ps", "ms", cold_start),
    less("agent killed, session restored", "ms", restore),
    less("PSS of the daemon", "MB", memory),
];

const fn less(name: &'static str, unit: &'static str, measure: Measure) -> Figure {
    Figure { name, unit, more_is_better: false, measure }
}

const fn more(name: &'static str, unit: &'static str, measure: Measure) -> Figure {
    Figure { name, unit, more_is_better: true, measure }
}

type Measure = fn(&Bench) -> Result<f64>;

/// Compares the programs in `new` with those in `old`.
pub(super) fn run(old: &Path, new: &Path, quick: bool) -> Result {
    // Each side has copies: processes of one file share its pages and count a part of them each, and
    // how a file was written decides how fast it is mapped.
    let copies = [copied(old)?, copied(new)?, copied(old)?];
    let bench = |side: usize| Bench::new(copies[side].path(), quick);
    let sides = [bench(0)?, bench(1)?, bench(2)?];
    let mut table = vec![["what", "old", "new", "new/old", "old/old", ""].map(str::to_owned)];
    let mut worse = Vec::new();
    for figure in &FIGURES {
        eprintln!("measuring: {}", figure.name);
        let mut values = [const { Vec::new() }; 3];
        for round in 0..sides[0].times(ROUNDS).max(2) {
            // No side is always the first after a pause.
            for turn in 0..sides.len() {
                let side = (round + turn) % sides.len();
                values[side].push((figure.measure)(&sides[side])?);
            }
        }
        compare(figure, values, &mut table, &mut worse);
    }
    for side in sides {
        side.stop()?;
    }
    if test::on_path("valgrind") {
        eprintln!("measuring: instructions per line");
        let figure = less("instructions per line, daemon", "", |_| Ok(0.0));
        let count = |bins| Ok::<_, Box<dyn std::error::Error>>(vec![instructions(bins)?]);
        compare(&figure, [count(old)?, count(new)?, count(old)?], &mut table, &mut worse);
    } else {
        eprintln!("SKIPPED: instructions per line: valgrind is not installed");
    }
    print_aligned(&table);
    if worse.is_empty() { Ok(()) } else { Err(format!("worse: {}", worse.join(", ")).into()) }
}

fn copied(programs: &Path) -> Result<TempDir> {
    let copy = tempfile::tempdir()?;
    for program in fs::read_dir(programs)?.collect::<std::io::Result<Vec<_>>>()? {
        if program.file_type()?.is_file() {
            fs::copy(program.path(), copy.path().join(program.file_name()))?;
        }
    }
    Ok(copy)
}

fn compare(
    figure: &Figure,
    values: [Vec<f64>; 3],
    table: &mut Vec<[String; 6]>,
    worse: &mut Vec<&'static str>,
) {
    let [old, new, again] = values.map(|mut values| median(&mut values));
    let mean = f64::midpoint(old, again);
    let (ratio, spread) = (new / mean, again / old);
    let loss = if figure.more_is_better { 1.0 - ratio } else { ratio - 1.0 };
    let is_worse = loss > TOLERANCE.max((spread - 1.0).abs());
    if is_worse {
        worse.push(figure.name);
    }
    let cell = |value: f64| {
        let digits = if value < 100.0 { 2 } else { 0 };
        format!("{value:.digits$} {}", figure.unit).trim_end().to_owned()
    };
    let verdict = if is_worse { "WORSE" } else { "ok" };
    let (ratio, spread) = (format!("{ratio:.3}"), format!("{spread:.3}"));
    table.push([figure.name.into(), cell(mean), cell(new), ratio, spread, verdict.into()]);
}

/// A process on the way of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Daemon,
    Shim,
    Bridge,
}

/// CPU of one process for each of [`LINES`] lines that go to one client.
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
    timed_flood(&mut peer, &session, count)?;
    Ok((cpu_micros(pid) - before) / count as f64)
}

fn lines_per_second(bench: &Bench) -> Result<f64> {
    let mut client = bench.client()?;
    let session = client.session(&bench.work())?;
    let count = bench.times(LINES);
    Ok(count as f64 / timed_flood(&mut client, &session, count)?)
}

fn line_age(bench: &Bench, through_bridge: bool) -> Result<f64> {
    let mut peer = if through_bridge { bench.bridge()? } else { bench.client()? };
    let session = peer.session(&bench.work())?;
    Ok(ages(&mut peer, &session, &format!("pace {} 200", bench.times(3000)))?.p50)
}

fn round_trip(bench: &Bench) -> Result<f64> {
    let mut client = bench.client()?;
    let session = client.session(&bench.work())?;
    Ok(super::stream::set_modes(&mut client, &session, bench.times(2000))?.p50)
}

fn command(bench: &Bench) -> Result<f64> {
    bench.home.read(&["daemon", "start"])?;
    let runs = (0..bench.times(50)).map(|_| start::timed(&mut bench.home.acpctl(&["ps"])));
    Ok(median(&mut runs.collect::<Result<Vec<_>>>()?))
}

fn cold_start(bench: &Bench) -> Result<f64> {
    bench.home.stop()?;
    start::timed(&mut bench.home.acpctl(&["ps"]))
}

fn restore(bench: &Bench) -> Result<f64> {
    let mut watcher = bench.watcher()?;
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

/// Of a daemon that has served one session: a later one may have returned memory, or not yet.
fn memory(bench: &Bench) -> Result<f64> {
    bench.home.stop()?;
    let mut client = bench.client()?;
    let session = client.session(&bench.work())?;
    client.prompt(&session, "nothing", |_| ())?;
    Ok(pss_bytes(bench.home.daemon()?.pid)? as f64 / 1e6)
}

/// Instructions of a daemon for each line that goes to one client, as callgrind counts them.
fn instructions(bins: &Path) -> Result<f64> {
    let [few, many] = COUNTED;
    let counts = [count_instructions(bins, few)?, count_instructions(bins, many)?];
    Ok((counts[1] - counts[0]) / (many - few) as f64)
}

/// A daemon under valgrind cannot start a shim, because its program is valgrind's: it takes over the one
/// that another daemon has started.
fn count_instructions(bins: &Path, lines: usize) -> Result<f64> {
    let home = Home::new(bins)?;
    super::configure(&home, "shim")?;
    let mut client = Bench::client_of(&home, &json!({"agent": "bench"}))?;
    let session = client.session(&home.path("work"))?;
    timed_flood(&mut client, &session, 1)?;
    drop(client);
    let first = home.daemon()?;
    signal::kill(Pid::from_raw(first.pid as i32), Signal::SIGKILL)?;
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
    timed_flood(&mut client, &session, lines)?;
    drop(client);
    let process = ProcessId::of(daemon.0.id()).ok_or("the daemon has ended")?;
    home.read(&["daemon", "stop"])?;
    wait_for("the end of the daemon", PATIENCE, || process.is_alive() != Liveness::Alive)?;
    daemon.0.wait()?;
    let text = fs::read_to_string(out)?;
    let total = text.lines().find_map(|line| line.strip_prefix("summary: "));
    let total = total.and_then(|total| total.split(' ').next()?.parse().ok());
    Ok(total.ok_or("callgrind wrote no summary")?)
}
