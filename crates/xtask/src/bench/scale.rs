//! `cargo xtask bench --scale`: how figures grow with sessions, events, clients and agents.
//!
//! A daemon writes one session with [`TURNS`] turns. Its first turns are then copied, record by
//! record, for the other sessions, spread over [`OLDEST`].

use std::fs;
use std::io::pipe;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use acpd_core::ids::{SessionKey, Time};
use acpd_core::record::{EventRow, Record, Row, SessionRow, SessionState, ValueKey};
use acpd_store::{CommitBatch, Report};
use serde_json::json;

use super::agent::text;
use super::figures::{
    LINES, NO_PAUSE, cpu_micros, flood, ms, per_prompt, pss_bytes, shown, timed, written,
};
use super::{Bench, Options, client_of, median, print_aligned};
use crate::Result;
use crate::home::wait_for;
use acpd_test::peer::Peer;

const TURNS: usize = 1000;
/// Lines of an answer. A turn has ten events: start, prompt, answer, end.
const ANSWER: usize = 7;
/// Sessions and turns of each: 10³ to 10⁷ events.
const JOURNALS: [(usize, usize); 5] =
    [(100, 1), (1_000, 1), (10_000, 1), (10_000, 10), (10_000, 100)];
const CLIENTS: [usize; 4] = [1, 4, 16, 64];
const AGENTS: [usize; 4] = [1, 10, 20, 100];
/// Processes that have nothing to do with acpd.
const OTHERS: usize = 2000;
/// Age of the oldest session: 300 days, in milliseconds.
const OLDEST: usize = 300 * 24 * 3_600_000;
/// Batches that the writer may be behind.
const BEHIND: usize = 64;

struct Subject {
    bench: Bench,
    size: usize,
    /// The session with [`TURNS`] turns.
    session: String,
}

/// Name, unit, goal, measure.
type Growing = (&'static str, &'static str, &'static str, fn(&Subject) -> Result<f64>);

const OF_JOURNALS: [Growing; 14] = [
    ("daemon start", "ms", "150 ms", |it| it.median(7, start)),
    ("search right after a start", "ms", "", |it| {
        it.median(7, |it| start(it).and_then(|_| search(it)))
    }),
    ("memory at rest", "MB", "25 MB", memory_at_rest),
    ("acpctl ps", "ms", "", |it| it.command(&["ps"])),
    ("session ls", "ms", "20 ms", |it| it.command(&["session", "ls", "-n", "20"])),
    ("session ls, all", "ms", "", |it| it.command(&["session", "ls"])),
    ("search, word of one session", "ms", "20 ms", |it| it.median(15, search)),
    ("search, word of all turns", "ms", "20 ms", |it| it.command(&["session", "search", "flood"])),
    ("session log --last", "ms", "20 ms", |it| {
        it.command(&["session", "log", &it.session, "--last"])
    }),
    ("attach --tail", "ms", "20 ms", |it| {
        it.command(&["attach", &it.session, "--tail", "--until-idle"])
    }),
    ("load of 1,000 turns, first line", "ms", "20 ms", |it| it.median(7, |it| Ok(load(it)?.0))),
    ("load of 1,000 turns, all", "ms", "100 ms", |it| it.median(7, |it| Ok(load(it)?.1))),
    ("CPU per prompt, daemon", "µs", "", |it| per_prompt(&it.bench, (200, NO_PAUSE), cpu_micros)),
    ("written per prompt", "kB", "", |it| {
        Ok(per_prompt(&it.bench, (200, NO_PAUSE), written)? / 1e3)
    }),
];

const OF_CLIENTS: [Growing; 2] = [
    ("CPU per line, daemon", "µs", "", |it| it.median(3, fan_out)),
    ("memory of the daemon", "MB", "", memory),
];

const OF_AGENTS: [Growing; 4] = [
    ("acpctl ps", "ms", "3 ms", |it| it.command(&["ps"])),
    ("acpctl ps, 2,000 other processes", "ms", "3 ms", among_others),
    ("memory of the daemon", "MB", "", memory),
    ("daemon restart", "ms", "", |it| it.median(7, |it| it.time(&["daemon", "restart"]))),
];

pub(super) fn run(bins: &Path, options: &Options) -> Result {
    let bench = || Bench::new(bins, options.quick);
    let most = if options.quick { 2 } else { JOURNALS.len() };
    let name = |(sessions, turns)| {
        format!("{sessions} sessions, {} events", sessions * turns * (ANSWER + 3))
    };
    let make = |size| journals(bench()?, size, options.packed);
    grow(&OF_JOURNALS, &JOURNALS[..most], options, name, make)?;
    let make = |size| Ok(Subject { bench: bench()?, size, session: String::new() });
    grow(&OF_CLIENTS, &CLIENTS, options, |count| format!("{count} clients"), make)?;
    let make = |size| agents(bench()?, size);
    grow(&OF_AGENTS, &AGENTS, options, |count| format!("{count} agents"), make)
}

/// Prints figures for all sizes, with their ratios to the first size.
fn grow<S: Copy>(
    figures: &[Growing],
    sizes: &[S],
    options: &Options,
    name: impl Fn(S) -> String,
    make: impl Fn(S) -> Result<Subject>,
) -> Result {
    let figures = figures.iter().filter(|(what, ..)| what.contains(&options.only));
    let figures: Vec<&Growing> = figures.collect();
    let mut table = vec![vec!["what".to_owned(), "goal".to_owned()]];
    table.extend(figures.iter().map(|(what, _, goal, _)| vec![(*what).into(), (*goal).into()]));
    let mut first = Vec::new();
    for size in sizes.iter().filter(|_| !figures.is_empty()) {
        let begun = Instant::now();
        let subject = make(*size)?;
        eprintln!("made in {:.1} s: {}", begun.elapsed().as_secs_f64(), name(*size));
        table[0].push(name(*size));
        for (n, (what, unit, _, measure)) in figures.iter().enumerate() {
            eprintln!("measuring: {what}");
            let value = measure(&subject)?;
            first.extend((first.len() == n).then_some(value));
            table[n + 1].push(format!("{} ×{:.1}", shown(value, unit), value / first[n]));
        }
        subject.bench.home.stop()?;
    }
    print_aligned(&table);
    println!();
    Ok(())
}

impl Subject {
    fn median(&self, times: usize, measure: fn(&Subject) -> Result<f64>) -> Result<f64> {
        let runs = (0..self.bench.times(times)).map(|_| measure(self));
        Ok(median(&mut runs.collect::<Result<Vec<_>>>()?))
    }

    fn time(&self, args: &[&str]) -> Result<f64> {
        timed(&mut self.bench.home.acpctl(args))
    }

    fn command(&self, args: &[&str]) -> Result<f64> {
        let runs = (0..self.bench.times(15)).map(|_| self.time(args));
        Ok(median(&mut runs.collect::<Result<Vec<_>>>()?))
    }
}

fn journals(bench: Bench, (size, turns): (usize, usize), packed: bool) -> Result<Subject> {
    let usual = fs::read_to_string(bench.home.path("config/config.toml"))?;
    bench.home.configure(&format!("{usual}[daemon]\ncompress_after = \"365d\"\n"))?;
    let mut client = bench.client()?;
    let session = client.session(&bench.work())?;
    for words in text()?.chars().collect::<Vec<_>>().chunks(200).take(TURNS) {
        let words: String = words.iter().collect();
        client.prompt(&session, &format!("flood {ANSWER} {session} {words}"), |_| ())?;
    }
    drop(client);
    bench.home.stop()?;
    copy(&bench.home.path("state/acpd.db"), size, turns, packed)?;
    let subject = Subject { bench, size, session };
    // Fills the index.
    start(&subject).and_then(|_| search(&subject))?;
    Ok(subject)
}

/// Copies the first turns of the only session, for sessions with the ids `copy1` and so on.
fn copy(path: &Path, sessions: usize, turns: usize, packed: bool) -> Result {
    let (report, reports) = channel();
    let pack_after = if packed { Duration::ZERO } else { Duration::MAX };
    let report = move |event| drop(report.send(event));
    let (writer, mut reader, snapshot) = acpd_store::open(path, pack_after, report)?;
    let (key, original) = snapshot.sessions.iter().next().ok_or("the daemon kept no session")?;
    let mut lines = reader.events(*key, 0, original.head, usize::MAX)?;
    let all = lines.len();
    let is_end = |line: &EventRow| line.line.windows(10).any(|word| word == b"turn_ended");
    let ends = lines.iter().enumerate().filter(|(_, line)| is_end(line));
    let last = ends.map(|(place, _)| place).nth(turns - 1).ok_or("too few turns")?;
    lines.truncate(last + 1);
    let (mut written, mut compressed) = (0, 0);
    for n in 1..=sessions {
        let before = (OLDEST / sessions * (sessions - n)) as u64;
        let key = SessionKey(key.0 + n as u32);
        let records = copied(original, &lines, key, (turns as u64, format!("copy{n}")), before);
        writer.commit(CommitBatch { records, durable: false, tag: n as u64 })?;
        while written + BEHIND < n {
            follow(&reports, &mut written, &mut compressed)?;
        }
    }
    let all = if packed { all + sessions * lines.len() } else { 0 };
    while written < sessions || compressed < all {
        follow(&reports, &mut written, &mut compressed)?;
    }
    Ok(writer.close()?)
}

fn follow(reports: &Receiver<Report>, written: &mut usize, compressed: &mut usize) -> Result {
    match reports.recv()? {
        Report::Committed { tag } => *written = tag as usize,
        Report::Tidied(tidied) => *compressed += tidied.packed as usize,
        Report::Failing(error) => return Err(error.into()),
        Report::Works => {}
    }
    Ok(())
}

/// Returns the records of a copy that is `before` milliseconds older.
fn copied(
    original: &SessionState,
    lines: &[EventRow],
    session: SessionKey,
    (prompts, id): (u64, String),
    before: u64,
) -> Vec<Record> {
    let SessionRow { public_id, created, updated, .. } = &original.row;
    let (created, updated) = (Time(created.0 - before), Time(updated.0 - before));
    let (public_id, old) = (id.clone(), public_id);
    let agent_id = id.clone();
    let row = original.row.clone();
    let row = SessionRow { key: session, public_id, agent_id, prompts, created, updated, ..row };
    // Most agents have a list of models of about this size.
    let options = json!([{"id": "model", "name": "model", "type": "select", "currentValue": "one",
        "options": [{"value": "one", "name": "one", "description": ".".repeat(4000)}]}]);
    let json = options.to_string().into_bytes().into();
    let state = [
        Row::Session(Box::new(row)),
        Row::Secret { session, mcp_servers: "[]".into() },
        Row::Value { session, key: ValueKey::ConfigOptions, json },
    ];
    let events = lines.iter().map(|line| {
        let at = Time(line.at.0 - before);
        let text = String::from_utf8_lossy(&line.line).replace(old, &id);
        Record::Event(EventRow { session, at, line: text.into_bytes().into(), ..line.clone() })
    });
    state.map(Record::Put).into_iter().chain(events).collect()
}

fn start(it: &Subject) -> Result<f64> {
    it.bench.home.stop()?;
    it.time(&["daemon", "start"])
}

fn search(it: &Subject) -> Result<f64> {
    it.time(&["session", "search", "copy7"])
}

fn memory(it: &Subject) -> Result<f64> {
    Ok(pss_bytes(it.bench.home.daemon()?.pid)? / 1e6)
}

/// PSS of a daemon that has returned what it does not need, at least its program's text.
fn memory_at_rest(it: &Subject) -> Result<f64> {
    start(it).and_then(|_| search(it))?;
    let first = memory(it)?;
    let pid = it.bench.home.daemon()?.pid;
    let has_returned = || pss_bytes(pid).is_ok_and(|now| now / 1e6 + 1.0 < first);
    wait_for("returned memory", Duration::from_secs(30), has_returned)?;
    Ok(pss_bytes(pid)? / 1e6)
}

/// Milliseconds until the first line of an editor's `session/load`, and until all of it.
fn load(it: &Subject) -> Result<(f64, f64)> {
    let mut client = it.bench.client()?;
    let params = json!({"sessionId": it.session, "cwd": it.bench.work(), "mcpServers": []});
    let start = Instant::now();
    let id = client.send("session/load", &params)?;
    client.line()?;
    let first = ms(start.elapsed());
    client.until(id, |_| ())?;
    Ok((first, ms(start.elapsed())))
}

/// CPU of the daemon for a line that goes to all clients of its session.
fn fan_out(it: &Subject) -> Result<f64> {
    let (home, count) = (&it.bench.home, it.bench.times(LINES) / 10);
    let connect = || client_of(home, &json!({"agent": "bench", "notices": true}));
    let mut first = connect()?;
    let session = first.session(&it.bench.work())?;
    let params = json!({"sessionId": session, "cwd": it.bench.work(), "mcpServers": []});
    let mut others = (1..it.size).map(|_| connect()).collect::<Result<Vec<Peer>>>()?;
    others.iter_mut().try_for_each(|other| other.call("session/load", &params).map(drop))?;
    let pid = home.daemon()?.pid;
    let before = cpu_micros(pid);
    thread::scope(|scope| {
        for other in &mut others {
            // The end of the daemon is the other client's error.
            scope.spawn(|| other.notice("_acpd/turn_ended", |_| ()).is_ok());
        }
        flood(&mut first, &session, count)
    })?;
    Ok((cpu_micros(pid) - before) / count as f64)
}

/// A home with this many running agents, each with a session.
fn agents(bench: Bench, size: usize) -> Result<Subject> {
    let usual = fs::read_to_string(bench.home.path("config/config.toml"))?;
    let (_, body) = usual.split_once("[agents.bench]").ok_or("no agent is configured")?;
    let names: Vec<String> = (0..size).map(|n| format!("bench-{n}")).collect();
    let more = names.iter().map(|name| format!("[agents.{name}]{body}"));
    bench.home.configure(&format!("{usual}{}", more.collect::<String>()))?;
    for name in &names {
        client_of(&bench.home, &json!({"agent": name}))?.session(&bench.work())?;
    }
    Ok(Subject { bench, size, session: String::new() })
}

/// `acpctl ps` next to processes that wait for the end of their input.
fn among_others(it: &Subject) -> Result<f64> {
    let (input, end) = pipe()?;
    let other = || Command::new("cat").stdin(input.try_clone()?).stdout(Stdio::null()).spawn();
    let mut others = (0..OTHERS).map(|_| other()).collect::<std::io::Result<Vec<Child>>>()?;
    let time = it.command(&["ps"]);
    drop(end);
    others.iter_mut().try_for_each(|other| other.wait().map(drop))?;
    time
}
