//! How fast the store is: `cargo run --release -p acpd-store --example append [DIR]`.
//!
//! DIR decides the disk that is measured; it is left as it was found. The figures depend on the
//! disk's own sync time, which is printed with them.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::error::Error;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use acpd_core::ids::{Seq, SessionKey, Time};
use acpd_core::record::{EventKind, EventRow, Record, SessionRow};
use acpd_store::{CommitBatch, Report, open};
use bytes::Bytes;

/// Events of a batch: what one read of 64 KiB gives.
const BATCH: u64 = 256;
/// Bytes of an event.
const LINE: usize = 256;
/// Events that are appended.
const EVENTS: u64 = 2_000_000;
/// How long it is looked at the removal of a journal.
const REMOVING: Duration = Duration::from_secs(30);
/// A pause between some commits.
const PAUSE: Duration = Duration::from_millis(15);
/// Events of the session that is replayed.
const REPLAYED: u64 = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = match std::env::args_os().nth(1) {
        Some(path) => tempfile::tempdir_in(path)?,
        None => tempfile::tempdir()?,
    };
    println!("disk: sync p50 {:?}", sync_time(dir.path())?);

    let path = dir.path().join("acpd.db");
    let (reported, reports) = channel();
    let (tidied, done) = channel();
    let (writer, mut reader, _) = open(&path, move |report| match report {
        Report::Tidied(more) => drop(tidied.send(more)),
        report => drop(reported.send(report)),
    })?;
    let commit = |tag, durable, records| -> Result<Duration, Box<dyn Error>> {
        let start = Instant::now();
        writer.commit(CommitBatch { records, durable, tag })?;
        reports.recv()?;
        Ok(start.elapsed())
    };
    commit(0, true, (1..=3).map(session).collect())?;

    let mut times = Vec::new();
    let mut log = 0;
    let start = Instant::now();
    for batch in 0..EVENTS / BATCH {
        times.push(commit(batch, false, events(1, batch))?);
        if batch % 256 == 0 {
            log = log.max(fs::metadata(dir.path().join("acpd.db-wal"))?.len());
        }
    }
    let rate = EVENTS as f64 / start.elapsed().as_secs_f64();
    println!("append: {rate:.0} rows/s, log at most {} MiB", log >> 20);
    print_times("commit of 256 rows", &mut times);

    let mut times = Vec::new();
    for seq in 1..=2000 {
        times.push(commit(seq, false, vec![event(2, seq)])?);
    }
    print_times("commit of one row", &mut times);
    let mut times = Vec::new();
    for seq in 2001..=2500 {
        times.push(commit(seq, true, vec![event(2, seq)])?);
    }
    print_times("durable commit of one row", &mut times);

    for batch in 0..=REPLAYED / BATCH {
        commit(batch, false, events(3, batch))?;
    }
    let session = SessionKey(3);
    let start = Instant::now();
    reader.events(session, REPLAYED - 20, REPLAYED, usize::MAX)?;
    reader.states(session, REPLAYED)?;
    reader.values(session)?;
    println!("attach at the tail: {:?}", start.elapsed());
    let start = Instant::now();
    let (mut after, mut count) = (0, 0);
    loop {
        let rows = reader.replay(session, after, REPLAYED, 1 << 20)?;
        let Some(last) = rows.last() else { break };
        after = last.seq;
        count += rows.len();
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    println!("replay: {rate:.0} rows/s over {count} rows");

    let took = commit(0, true, vec![Record::SessionRemoved { session: SessionKey(1) }])?;
    println!("removal of {} MiB: {took:?}", (EVENTS * LINE as u64) >> 20);
    let (mut times, mut seq, start) = (Vec::new(), 2500, Instant::now());
    let (mut removed, mut given_back) = (0, 0);
    while start.elapsed() < REMOVING && removed < EVENTS / BATCH * BATCH * LINE as u64 {
        seq += 1;
        times.push(commit(seq, false, vec![event(2, seq)])?);
        for more in done.try_iter() {
            removed += more.removed;
            given_back += more.given_back;
        }
        // The removal of lines waits for a pause.
        std::thread::sleep(if seq % 10 == 0 { PAUSE } else { Duration::ZERO });
    }
    let time = start.elapsed();
    println!("in {time:?}: {} MiB of it gone, {} MiB given back", removed >> 20, given_back >> 20);
    print_times("commit of one row meanwhile", &mut times);

    let start = Instant::now();
    writer.close()?;
    println!("close: {:?}", start.elapsed());
    drop(reader);
    let start = Instant::now();
    let (writer, ..) = open(&path, drop)?;
    println!("open: {:?}", start.elapsed());
    writer.close()?;
    Ok(())
}

fn session(key: u32) -> Record {
    Record::Session(Box::new(SessionRow {
        key: SessionKey(key),
        agent: "agent".to_owned(),
        public_id: key.to_string(),
        agent_id: key.to_string(),
        cwd: "/".to_owned(),
        params: Bytes::from_static(b"{}"),
        ..SessionRow::default()
    }))
}

fn event(session: u32, seq: Seq) -> Record {
    Record::Event(EventRow {
        session: SessionKey(session),
        seq,
        pv: 1,
        kind: EventKind::Update,
        at: Time(seq),
        line: Bytes::from_static(&[b'x'; LINE]),
        origin: None,
    })
}

fn events(session: u32, batch: u64) -> Vec<Record> {
    (1..=BATCH).map(|n| event(session, batch * BATCH + n)).collect()
}

/// Median time to write and sync a page.
fn sync_time(dir: &Path) -> std::io::Result<Duration> {
    let mut file = File::create(dir.join("sync"))?;
    let mut times = Vec::new();
    for _ in 0..101 {
        let start = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

fn print_times(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!("{what}: p50 {:?}, p99 {:?}, worst {:?}", at(50), at(99), at(100));
}
