//! `cargo xtask bench --scale`: how figures grow with sessions, events, clients and agents.
//!
//! A daemon writes one session with [`TURNS`] turns. The records of its first turns are then copied
//! for each other session, spread over 300 days. The ratios tell whether
//! a cost follows what is read, or all that there is.

use std::fs;
use std::io::pipe;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use acpd_core::ids::{SessionKey, Time};
use acpd_core::record::{EventRow, Record, Row, SessionRow, SessionState, UsageRow, ValueKey};
use acpd_store::{CommitBatch, Report};
use serde_json::json;

use super::agent::text;
use super::figures::{LINES, cpu_micros, flood, ms, pss_bytes, shown, timed};
use super::{Bench, Options, client_of, median, print_aligned};
use crate::Result;
use crate::home::{Home, wait_for};
use acpd_test::peer::Peer;

/// Turns of the session that is copied. Each has ten events: its start and end, the prompt and
/// [`ANSWER`] lines.
const TURNS: usize = 1000;
const ANSWER: usize = 7;
/// Sessions and their turns, up to 10⁷ events.
const JOURNALS: [(usize, usize); 5] =
    [(100, 1), (1_000, 1), (10_000, 1), (10_000, 10), (10_000, 100)];
const CLIENTS: [usize; 4] = [1, 4, 16, 64];
const AGENTS: [usize; 4] = [1, 10, 20, 100];
/// Processes that have nothing to do with acpd.
const OTHERS: usize = 2000;
/// Batches that the writer may be behind.
const BEHIND: u64 = 64;
/// Age of the oldest session in milliseconds: 300 days.
const OLDEST: u64 = 300 * 24 * 3_600_000;
/// Longest time for a daemon to return its memory.
const PATIENCE: Duration = Duration::from_secs(30);

/// A home, with something of this size in it.
struct Subject {
    bench: Bench,
    size: usize,
    /// The session with [`TURNS`] turns.
    session: String,
}

/// Name, unit, goal and measure.
type Growing = (&'static str, &'static str, &'static str, fn(&Subject) -> Result<f64>);

const OF_JOURNALS: [Growing; 12] = [
    ("daemon start", "ms", "150", |it| it.median(5, start)),
    ("search right after a start", "ms", "", |it| it.median(5, first_search)),
    ("memory at rest", "MB", "25", memory_at_rest),
    ("acpctl ps", "ms", "", |it| it.command(&["ps"])),
    ("session ls", "ms", "20", |it| it.command(&["session", "ls"])),
    ("session search, one session", "ms", "20", |it| it.command(&["session", "search", "copy-7"])),
    ("session search, all turns", "ms", "20", |it| it.command(&["session", "search", "copy"])),
    ("session log --last", "ms", "20", |it| it.command(&["session", "log", &it.session, "--last"])),
    ("attach --tail", "ms", "20", |it| {
        it.command(&["attach", &it.session, "--tail", "--until-idle"])
    }),
    ("load of 1,000 turns, first line", "ms", "20", |it| it.median(7, |it| Ok(load(it)?.0))),
    ("load of 1,000 turns, all", "ms", "100", |it| it.median(7, |it| Ok(load(it)?.1))),
    ("CPU per prompt, daemon", "µs", "", prompt),
];

const OF_CLIENTS: [Growing; 2] = [
    ("CPU per line, daemon", "µs", "", |it| it.median(3, fan_out)),
    ("memory while streaming", "MB", "", |it| Ok(pss_bytes(it.bench.home.daemon()?.pid)? / 1e6)),
];

const OF_AGENTS: [Growing; 5] = [
    ("acpctl ps", "ms", "3", |it| it.command(&["ps"])),
    ("acpctl ps, 2,000 other processes", "ms", "3", among_others),
    ("memory of the daemon", "MB", "", |it| Ok(pss_bytes(it.bench.home.daemon()?.pid)? / 1e6)),
    ("memory of a shim", "MB", "", memory_of_shims),
    ("daemon restart", "ms", "", |it| it.median(5, |it| it.time(&["daemon", "restart"]))),
];

pub(super) fn run(bins: &Path, options: &Options) -> Result {
    let most = if options.quick { 2 } else { JOURNALS.len() - usize::from(!options.full) };
    let events = |(sessions, turns): (usize, usize)| sessions * turns * (ANSWER + 3);
    let name = |size: (usize, usize)| format!("{} sessions, {} events", size.0, events(size));
    let make = |size| journals(Bench::new(bins, options.quick)?, size, options.packed);
    grow(&OF_JOURNALS, &JOURNALS[..most], options, name, make)?;
    let name = |count| format!("{count} clients");
    let make = |size| {
        Ok(Subject { bench: Bench::new(bins, options.quick)?, size, session: String::new() })
    };
    grow(&OF_CLIENTS, &CLIENTS, options, name, make)?;
    let make = |size| agents(Bench::new(bins, options.quick)?, size);
    grow(&OF_AGENTS, &AGENTS, options, |count| format!("{count} agents"), make)
}

/// Prints each figure for all sizes, with its ratio to the one for the first size.
fn grow<S: Copy>(
    figures: &[Growing],
    sizes: &[S],
    options: &Options,
    name: impl Fn(S) -> String,
    make: impl Fn(S) -> Result<Subject>,
) -> Result {
    let figures: Vec<_> =
        figures.iter().filter(|(what, ..)| what.contains(&options.only)).collect();
    let head = |what: &str, goal: &str| vec![what.to_owned(), goal.to_owned()];
    let mut table = vec![head("what", "goal")];
    table.extend(figures.iter().map(|(what, unit, goal, _)| head(what, &format!("{goal} {unit}"))));
    table[1..].iter_mut().for_each(|row| row[1] = row[1].trim_start_matches([' ']).to_owned());
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
        let times = if self.bench.quick { 1 } else { times };
        Ok(median(&mut (0..times).map(|_| measure(self)).collect::<Result<Vec<_>>>()?))
    }

    fn time(&self, args: &[&str]) -> Result<f64> {
        timed(&mut self.bench.home.acpctl(args))
    }

    fn command(&self, args: &[&str]) -> Result<f64> {
        let times = self.bench.times(15);
        Ok(median(&mut (0..times).map(|_| self.time(args)).collect::<Result<Vec<_>>>()?))
    }
}

/// A home with this many sessions of this many turns, and one of [`TURNS`] turns.
fn journals(bench: Bench, (size, turns): (usize, usize), packed: bool) -> Result<Subject> {
    let usual = fs::read_to_string(bench.home.path("config/config.toml"))?;
    bench.home.configure(&format!("{usual}[daemon]\ncompress_after = \"365d\"\n"))?;
    let mut client = bench.client()?;
    let session = client.session(&bench.work())?;
    let texts: Vec<char> = text()?.chars().collect();
    for text in texts.chunks(200).take(TURNS) {
        let text: String = text.iter().collect();
        client.prompt(&session, &format!("flood {ANSWER} {session} {text}"), |_| ())?;
    }
    drop(client);
    bench.home.stop()?;
    copy(&bench.home.path("state/acpd.db"), size, turns, packed)?;
    bench.home.read(&["daemon", "start"])?;
    // Waits for the index.
    bench.home.read(&["session", "search", "copy-1"])?;
    Ok(Subject { bench, size, session })
}

/// Copies the first turns of the only session, for sessions with the ids `copy-1` and so on.
fn copy(path: &Path, sessions: usize, turns: usize, packed: bool) -> Result {
    let (report, reports) = channel();
    let pack_after = if packed { Duration::ZERO } else { Duration::MAX };
    let report = move |event| drop(report.send(event));
    let (writer, mut reader, snapshot) = acpd_store::open(path, pack_after, report)?;
    let (key, original) = snapshot.sessions.iter().next().ok_or("the daemon kept no session")?;
    let mut lines = reader.events(*key, 0, original.head, usize::MAX)?;
    let all = lines.len();
    let ends = lines.iter().enumerate().filter(|(_, line)| is_end(line));
    let last = ends.map(|(place, _)| place).nth(turns - 1).ok_or("too few turns")?;
    lines.truncate(last + 1);
    let mut written = Written { reports, batches: 0, packed: 0 };
    for n in 1..=sessions {
        let before = OLDEST / sessions as u64 * (sessions - n) as u64;
        let (key, tag) = (SessionKey(key.0 + n as u32), n as u64);
        let records = session(original, &lines, key, turns as u64, &format!("copy-{n}"), before);
        writer.commit(CommitBatch { records, durable: false, tag })?;
        written.wait(|it| it.batches + BEHIND >= tag)?;
    }
    let all = (all + sessions * lines.len()) as u64;
    written.wait(|it| it.batches == sessions as u64 && (!packed || it.packed >= all))?;
    Ok(writer.close()?)
}

fn is_end(line: &EventRow) -> bool {
    String::from_utf8_lossy(&line.line).contains("_acpd/turn_ended")
}

/// Returns the records of a session that is a copy, `before` milliseconds older.
fn session(
    original: &SessionState,
    lines: &[EventRow],
    key: SessionKey,
    turns: u64,
    id: &str,
    before: u64,
) -> Vec<Record> {
    let old = &original.row;
    let moved = |at: Time| Time(at.0 - before);
    let row = SessionRow {
        key,
        public_id: id.into(),
        agent_id: id.into(),
        prompts: turns,
        created: moved(old.created),
        updated: moved(old.updated),
        ..old.clone()
    };
    let (agent, cwd) = (row.agent.clone(), row.cwd.clone());
    let choices: Vec<_> = (0..20)
        .map(|n| {
            json!({"value": format!("model-{n}"), "name": format!("Model {n}"),
        "description": "A model for difficult work that takes a while"})
        })
        .collect();
    let options = json!([{"id": "model", "name": "Model", "type": "select", "currentValue": "model-1",
        "options": choices}]);
    let json = options.to_string().into_bytes().into();
    let mut records = vec![
        Record::Put(Row::Session(Box::new(row))),
        Record::Put(Row::Secret { session: key, mcp_servers: "[]".into() }),
        Record::Put(Row::Value { session: key, key: ValueKey::ConfigOptions, json }),
    ];
    let mut turn = 0;
    for line in lines {
        let (at, text) = (moved(line.at), String::from_utf8_lossy(&line.line));
        let copy = text.replace(&old.public_id, id).into_bytes().into();
        records.push(Record::Event(EventRow { session: key, at, line: copy, ..line.clone() }));
        if is_end(line) {
            turn += 1;
            records.push(Record::Usage(UsageRow {
                at,
                day: Time(at.0 - at.0 % (24 * 3_600_000)),
                agent: agent.clone(),
                session: id.into(),
                cwd: cwd.clone(),
                turn: Some(turn),
                tokens: Default::default(),
                cost: None,
            }));
        }
    }
    records
}

/// Progress of the writer.
struct Written {
    reports: Receiver<Report>,
    batches: u64,
    /// Lines that were packed.
    packed: u64,
}

impl Written {
    fn wait(&mut self, is_so: impl Fn(&Written) -> bool) -> Result {
        while !is_so(self) {
            match self.reports.recv()? {
                Report::Committed { tag } => self.batches = tag,
                Report::Tidied(tidied) => self.packed += tidied.packed,
                Report::Failing(error) => return Err(error.into()),
                Report::Works => {}
            }
        }
        Ok(())
    }
}

fn start(it: &Subject) -> Result<f64> {
    it.bench.home.stop()?;
    it.time(&["daemon", "start"])
}

fn first_search(it: &Subject) -> Result<f64> {
    start(it)?;
    it.time(&["session", "search", "copy-7"])
}

/// PSS of a daemon that waits: it has returned its program's text.
fn memory_at_rest(it: &Subject) -> Result<f64> {
    first_search(it)?;
    let pid = it.bench.home.daemon()?.pid;
    let first = pss_bytes(pid)?;
    let has_returned = || pss_bytes(pid).is_ok_and(|now| now + 1e6 < first);
    wait_for("the daemon to return memory", PATIENCE, has_returned)?;
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

/// CPU per prompt in a session of its own.
fn prompt(it: &Subject) -> Result<f64> {
    super::figures::per_prompt(&it.bench, cpu_micros)
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
        let end =
            |peer: &mut Peer| peer.notice("_acpd/turn_ended", |_| ()).map_err(|e| e.to_string());
        let ends: Vec<_> = others.iter_mut().map(|peer| scope.spawn(move || end(peer))).collect();
        flood(&mut first, &session, count)?;
        for end in ends {
            end.join().map_err(|_| "a client has panicked")??;
        }
        Result::Ok(())
    })?;
    Ok((cpu_micros(pid) - before) / count as f64)
}

/// A home with this many agents that run, each with a session.
fn agents(bench: Bench, size: usize) -> Result<Subject> {
    let usual = fs::read_to_string(bench.home.path("config/config.toml"))?;
    let (_, body) = usual.split_once("[agents.bench]").ok_or("no agent is configured")?;
    let more = (1..size).map(|n| format!("[agents.bench-{n}]{body}"));
    bench.home.configure(&format!("{usual}{}", more.collect::<String>()))?;
    for n in 0..size {
        let name = if n == 0 { "bench".into() } else { format!("bench-{n}") };
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

fn memory_of_shims(it: &Subject) -> Result<f64> {
    let home: &Home = &it.bench.home;
    let agents = home.read_json(&["agent", "ls"])?;
    let pids = agents["agents"].as_array().into_iter().flatten();
    let pids: Vec<u32> =
        pids.filter_map(|agent| agent["pid"].as_u64()).map(|pid| pid as u32).collect();
    let shims = pids.iter().filter_map(|pid| home.shim(*pid));
    let all = shims.map(|shim| pss_bytes(shim.pid)).sum::<Result<f64>>()?;
    Ok(all / 1e6 / pids.len() as f64)
}
