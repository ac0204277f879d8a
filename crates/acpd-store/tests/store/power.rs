//! A loss of power: the disk has what was synced, and any part of later writes.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use acpd_core::ids::SessionKey;
use acpd_core::record::{EventKind, Record, Row, ValueKey};
use acpd_store::Report;
use acpd_sys::testing::{DiskStep, mark, record, recorded};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::model::Model;
use crate::opening::{FIXTURES, check_content, records_of_schema_1};
use crate::running::{NEVER, Running, check_integrity, event, session, turn};
use crate::tidying::await_copied;

#[derive(Default)]
struct Disk<'s> {
    files: BTreeMap<&'s str, File<'s>>,
    /// The last batch that was reported as durable.
    promised: u64,
}

#[derive(Default)]
struct File<'s> {
    synced: Vec<u8>,
    later: Vec<&'s DiskStep>,
}

impl<'s> Disk<'s> {
    fn do_step(&mut self, name: &'s str, step: &'s DiskStep) {
        match step {
            DiskStep::Mark(number) => self.promised = *number,
            DiskStep::Sync => {
                self.files.entry(name).or_default().sync(usize::MAX);
                // SQLite syncs the directory with a new log, before it counts on a removal.
                if name == "acpd.db-wal" {
                    self.files.values_mut().for_each(File::sync_removal);
                }
            }
            _ => self.files.entry(name).or_default().later.push(step),
        }
    }

    /// Writes the files as they are after a cut, one of many ways, and returns their directory.
    fn cut(&self, seed: u64) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, file) in &self.files {
            let steps = file.later.len();
            let image = file.image(if seed.is_multiple_of(2) { 512 } else { 4096 }, |sector| {
                let mut random = DefaultHasher::new();
                (name, seed, steps, sector).hash(&mut random);
                let random = random.finish() as usize;
                match seed {
                    0 => 0,
                    // A single torn page ends a log, so there are disks that lose little.
                    1 if !random.is_multiple_of(16) => steps,
                    2 if !random.is_multiple_of(128) => steps,
                    3 if !random.is_multiple_of(16) => 0,
                    _ => (random >> 16) % (steps + 1),
                }
            });
            fs::write(dir.path().join(name), image).unwrap();
        }
        dir
    }
}

impl File<'_> {
    fn sync(&mut self, steps: usize) {
        self.synced = self.image(1 << 40, |_| steps);
        self.later.drain(..steps.min(self.later.len()));
    }

    fn sync_removal(&mut self) {
        let removal = self.later.iter().rposition(|step| **step == DiskStep::Resize(0));
        self.sync(removal.map_or(0, |place| place + 1));
    }

    /// Returns the content after the sync and some steps: how many is asked for each sector, and
    /// with `usize::MAX` for the length, because a file is cut as a whole.
    fn image(&self, sector_size: usize, steps_of: impl Fn(usize) -> usize) -> Vec<u8> {
        let (mut content, mut length) = (self.synced.clone(), self.synced.len());
        for (place, step) in self.later.iter().enumerate() {
            let is_long = place < steps_of(usize::MAX);
            match step {
                DiskStep::Resize(end) if is_long => {
                    content.resize(*end, 0);
                    length = *end;
                }
                DiskStep::Write(at, new) => {
                    content.resize(content.len().max(at + new.len()), 0);
                    let mut from = 0;
                    while from < new.len() {
                        let sector = (at + from) / sector_size;
                        let upto = ((sector + 1) * sector_size - at).min(new.len());
                        if place < steps_of(sector) {
                            content[at + from..at + upto].copy_from_slice(&new[from..upto]);
                        }
                        from = upto;
                    }
                    length = length.max(if is_long { at + new.len() } else { 0 });
                }
                _ => {}
            }
        }
        content.resize(length, 0);
        content
    }
}

/// A journal, and what it has after each batch. Batches are numbered in `boot`.
struct Story {
    dir: PathBuf,
    states: Vec<Model>,
}

impl Story {
    /// Starts a store that marks each durable batch when it is reported.
    fn start(&mut self, pack_after: Duration) -> Running {
        let (dir, before) = (self.dir.clone(), self.states.len() as u64 - 1);
        let store = Running::open_with(&self.dir, pack_after, move |report| match report {
            Report::Committed { tag } if Running::is_durable(*tag) => mark(&dir, before + tag),
            _ => {}
        });
        let store = store.expect("the store opens");
        if before == 0 {
            self.states[0].snapshot.generation.clone_from(&store.snapshot.generation);
        }
        store
    }

    fn commit(&mut self, store: &mut Running, mut batch: Vec<Record>) {
        batch.push(Record::Boot { boot: self.states.len() as u64 });
        let mut model = self.states[self.states.len() - 1].clone();
        model.apply(&mut batch);
        self.states.push(model);
        store.commit(batch);
    }

    fn check(&self, dir: &Path, promised: u64, cut: &str) {
        let mut store = Running::start(dir);
        let boot = store.snapshot.boot;
        assert!(boot >= promised, "{cut}: {boot} batches of {promised} that were promised");
        let mut model = self.states[boot as usize].clone();
        if boot == 0 {
            // The journal itself may be new.
            model.snapshot.generation.clone_from(&store.snapshot.generation);
        }
        assert!(store.snapshot == model.snapshot, "{cut}: not the state after batch {boot}");
        model.check(&mut store);
        store.close();
        check_integrity(dir);
    }
}

#[test]
fn a_power_cut_at_any_sync_keeps_all_that_was_promised() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    record(&path);
    let mut story = Story { dir: path.clone(), states: vec![Model::default()] };

    let mut store = story.start(NEVER);
    story.commit(&mut store, records_of_schema_1());
    story.commit(&mut store, vec![session(1), session(2)]);
    for n in 0..12 {
        let (key, line) = (1 + n % 2, vec![b'x'; 300 * n as usize]);
        let lines = (0..n).map(|_| event(key, 0, EventKind::Update, line.clone()));
        story.commit(&mut store, lines.chain([turn(key, n.into())]).collect());
    }
    let other = Connection::open(path.join("acpd.db")).unwrap();
    for n in 0..6 {
        other.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
        story.commit(&mut store, vec![event(1, 0, EventKind::Update, vec![n; 9000])]);
        story.commit(&mut store, vec![turn(1, n.into())]);
    }
    drop(other);
    store.close();

    let mut store = story.start(Duration::ZERO);
    store.tidied(|sum| sum.packed > 60);
    story.commit(&mut store, vec![event(2, 0, EventKind::Update, "later")]);
    story.commit(&mut store, vec![Record::SessionRemoved { session: SessionKey(1) }]);
    story.commit(&mut store, vec![session(3), turn(3, 1)]);
    store.tidied(|sum| sum.packed > 0);
    store.close();

    // The checkpoint thread copies a log of this length, after the chores have emptied it.
    let mut store = story.start(NEVER);
    for n in 0..12 {
        let (session, json) = (SessionKey(2), vec![n; 400_000].into());
        let row = Row::Value { session, key: ValueKey::Modes, json };
        story.commit(&mut store, vec![Record::Put(row)]);
    }
    await_copied(&path);
    for n in 0..6 {
        story.commit(&mut store, vec![turn(3, n)]);
    }
    let steps = recorded(&path);
    store.close();

    let mut disk = Disk::default();
    let mut new_logs = 0;
    for (place, (name, step)) in steps.iter().enumerate() {
        new_logs += u32::from(name == "acpd.db-wal" && matches!(step, DiskStep::Write(0, _)));
        if *step == DiskStep::Sync || place + 1 == steps.len() {
            for seed in 0..6 {
                let cut = format!("step {place}, seed {seed}");
                story.check(disk.cut(seed).path(), disk.promised, &cut);
            }
        }
        disk.do_step(name, step);
    }
    assert!(new_logs > 6, "{new_logs} logs began");
}

#[test]
fn a_power_cut_at_any_write_of_a_migration_loses_nothing() {
    let [made, dir] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let path = dir.path().canonicalize().unwrap();
    let conn = Connection::open(made.path().join("acpd.db")).unwrap();
    conn.pragma_update(None, "journal_mode", "WAL").unwrap();
    conn.execute_batch(FIXTURES[0]).unwrap();
    let mut disk = Disk::default();
    for name in ["acpd.db", "acpd.db-wal"] {
        let synced = fs::read(made.path().join(name)).unwrap();
        fs::write(path.join(name), &synced).unwrap();
        disk.files.insert(name, File { synced, ..File::default() });
    }
    record(&path);
    check_content(&path, &records_of_schema_1());
    mark(&path, 1);
    let steps = recorded(&path);
    assert!(steps.len() > 60, "{} steps", steps.len());
    for (name, step) in &steps {
        for seed in [0, 1, 2, 5] {
            check_content(disk.cut(seed).path(), &records_of_schema_1());
        }
        disk.do_step(name, step);
    }
}
