//! Which files are opened, and how.

use std::fs;
use std::path::Path;

use acpd_api::{Amount, AuthSource, AuthState, Cost, Tokens, Usage};
use acpd_core::ids::{HostId, SessionKey, Time};
use acpd_core::record::{
    AgentRow, AskedRow, AuthRow, Canceller, Child, Counter, Desired, EventKind, HostRow,
    InteractionRow, PromptKeyRow, Purpose, Record, Replayable, Row, RowId, SessionRow, Snapshot,
    TurnRow, TurnStage, UsageRow, Used, ValueKey,
};
use acpd_policy::{Remembered, Subject, Verdict};
use acpd_store::{OpenError, StoreError, check};
use bytes::Bytes;
use rusqlite::Connection;

use crate::running::{
    Running, asked, client, event, frozen, host, host_row, interaction, parked, prompt, question,
    reply, secret, sender, session, session_row, turn,
};

const CANARY: &[u8] = b"canary-7d1f";

fn contains_canary(bytes: &[u8]) -> bool {
    bytes.windows(CANARY.len()).any(|window| window == CANARY)
}

fn numbers(path: &Path, sql: &str) -> Vec<u32> {
    let conn = Connection::open(path).unwrap();
    let mut found = conn.prepare(sql).unwrap();
    found.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Kinds of rows with the canary; 0 = an event.
fn kinds_with_canary(path: &Path) -> Vec<u32> {
    let canary = CANARY.escape_ascii();
    let sql = format!(
        "SELECT kind FROM state WHERE instr(value, '{canary}') OR instr(CAST(line AS TEXT), '{canary}') \
         UNION SELECT 0 FROM events WHERE instr(CAST(line AS TEXT), '{canary}')"
    );
    numbers(path, &sql)
}

#[cfg(unix)]
#[test]
fn nobody_else_may_read_the_database_its_log_or_the_index_of_the_log() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("acpd.db");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let mut store = Running::start(dir.path());
    store.commit(vec![session(1)]);
    for name in ["acpd.db", "acpd.db-wal", "acpd.db-shm"] {
        let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    store.close();
}

#[test]
fn a_newer_schema_is_refused_with_both_versions_and_the_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("acpd.db");
    Running::start(dir.path()).close();
    let conn = Connection::open(&path).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    drop(conn);
    let before = fs::read(&path).unwrap();

    let Err(error) = Running::open(dir.path()) else { panic!("it was opened") };
    assert!(matches!(error, OpenError::Newer { found: 99, known: 3, .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("schema 99") && message.contains("up to 3"), "{message}");
    assert!(error.hint().is_some_and(|hint| hint.contains("newer")));
    assert!(fs::read(&path).unwrap() == before, "the file was not touched");
}

#[test]
fn file_in_place_of_a_database_is_refused_whatever_its_log_has() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("acpd.db");
    let conn = Connection::open(dir.path().join("other.db")).unwrap();
    conn.pragma_update(None, "journal_mode", "WAL").unwrap();
    conn.execute_batch("CREATE TABLE sessions (session INTEGER PRIMARY KEY)").unwrap();
    // The log of the open database has all of its pages.
    fs::copy(dir.path().join("other.db-wal"), dir.path().join("acpd.db-wal")).unwrap();
    fs::write(&path, "no database").unwrap();
    let error = check(&path, &dir.path().join("search.db")).unwrap_err();
    assert!(matches!(error, OpenError::Store { source: StoreError::Damaged(_), .. }), "{error:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "no database");
}

#[test]
fn a_database_of_a_schema_that_was_never_released_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("acpd.db");
    for schema in 1..=4 {
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch("CREATE TABLE IF NOT EXISTS sessions (session INTEGER PRIMARY KEY)")
            .unwrap();
        conn.pragma_update(None, "journal_mode", "WAL").unwrap();
        conn.pragma_update(None, "user_version", schema).unwrap();
        drop(conn);
        let before = fs::read(&path).unwrap();

        let error = check(&path, &dir.path().join("search.db")).unwrap_err();
        assert!(matches!(error, OpenError::Unreleased { .. }), "{error:?}");
        let Err(error) = Running::open(dir.path()) else { panic!("it was opened") };
        assert!(error.to_string().contains("released"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("away")));
        assert!(fs::read(&path).unwrap() == before, "the file was not touched");
    }
}

#[test]
fn a_file_that_is_no_database_is_named_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("acpd.db");
    Running::start(dir.path()).close();
    let mut bytes = fs::read(&path).unwrap();
    bytes[..16].copy_from_slice(b"not SQLite at al");
    fs::write(&path, &bytes).unwrap();

    let Err(error) = Running::open(dir.path()) else { panic!("it was opened") };
    assert!(matches!(&error, OpenError::Store { source: StoreError::Damaged(_), .. }), "{error:?}");
    assert!(error.to_string().contains("acpd.db"));
    assert!(error.hint().is_some_and(|hint| hint.contains("backup")));
    assert!(fs::read(&path).unwrap() == bytes, "the file was not touched");
}

fn usd(units: f64) -> Cost {
    Cost { amount: Amount::from_units(units).unwrap(), currency: "USD".into() }
}

pub(crate) fn records_of_schema_1() -> Vec<Record> {
    let host = HostId(1 << 32);
    let child = Child {
        public_id: "sub.1".to_owned(),
        parent: "public-1".to_owned(),
        cancel: true,
        busy: false,
        seq: 2,
    };
    let question =
        InteractionRow { frozen: Some(Box::new(frozen())), ..question(host.0, 1, host.0) };
    let used = UsageRow {
        at: Time(5),
        day: Time(4),
        agent: "claude".to_owned(),
        session: "public-1".to_owned(),
        cwd: "/src".to_owned(),
        turn: Some(1),
        tokens: Tokens { total: Some(12), input: Some(4), output: Some(8), ..Tokens::default() },
        cost: Some(usd(0.125)),
    };
    let untold = UsageRow {
        at: Time(6),
        day: Time(5),
        turn: Some(2),
        tokens: Tokens::default(),
        cost: None,
        ..used.clone()
    };
    vec![
        Record::Boot { boot: 3 },
        Record::Put(Row::Agent(AgentRow {
            name: "claude".to_owned(),
            desired: Desired::Up,
            fingerprint: "f".to_owned(),
            initialize: Some(Bytes::from_static(b"{\"protocolVersion\":1}")),
            resume_lies: true,
            load_lies: true,
            client_meta: Some(r#"{"auth":{"_meta":{"gateway":true}}}"#.to_owned()),
        })),
        Record::Put(Row::Auth(AuthRow {
            agent: "claude".to_owned(),
            state: AuthState::Expired,
            since: Time(7),
            source: AuthSource::Refused { method: "session/prompt".into() },
            method: None,
        })),
        Record::Put(Row::Host(HostRow {
            session: Some(SessionKey(1)),
            ready: Some(Time(9)),
            stopping: true,
            offset: 1000,
            inside: true,
            written: 1,
            ..host_row(host.0)
        })),
        Record::Put(Row::Outbox { host, chunk: 2, line: Bytes::from_static(b"{\"id\":7}") }),
        session(9),
        Record::SessionRemoved { session: SessionKey(9) },
        Record::Put(Row::Session(Box::new(SessionRow {
            host: Some(host),
            children: [("sub".to_owned(), child)].into(),
            own_title: Some("Fix it".to_owned()),
            info: None,
            archived: true,
            usage: Used {
                told: Usage { used: Some(7), size: None, cost: Some(usd(0.25)) },
                counter: Counter::At(usd(0.25)),
                turn: Some(usd(0.125)),
            },
            removed: Some(Time(9)),
            client_meta: Some(r#"{"_meta":{"terminal-auth":true}}"#.to_owned()),
            replayable: Replayable::default(),
            ..session_row(1)
        }))),
        secret(1, b"[]"),
        event(1, 2, EventKind::State(acp_wire::StateKey::Plan), "plan"),
        Record::Put(Row::Turn(TurnRow {
            session: SessionKey(1),
            ticket: 4,
            state: TurnStage::Dispatched { host, chunk: 2, message: None, open: None },
            at: Time(5),
            senders: vec![sender("token-1", "\"\\u0061\"")],
            cancelling: Some(Canceller::Client),
        })),
        prompt(1, 4, "{\"prompt\":[]}"),
        Record::Put(Row::Interaction(question)),
        parked(host.0, 1, "agent-2", "first"),
        parked(host.0, 2, "agent-3", "second"),
        parked(host.0, 3, "agent-2", "third"),
        asked(host.0, host.0, "{}"),
        Record::Put(Row::Asked(AskedRow { id: host.0 + 1, host, what: Purpose::Initialize })),
        client("token-1", 7),
        client("token-2", 0),
        reply("token-1", "6", Some(1)),
        reply("token-1", "\"\\u0061\"", None),
        Record::Put(Row::Remembered(Remembered {
            id: 1,
            agent: "claude".to_owned(),
            workspace: "/src".to_owned(),
            subject: Subject::Command { line: "git status".to_owned(), folder: None },
            verdict: Verdict::Allow,
            at: 7,
        })),
        Record::Usage(used),
        Record::Usage(untold),
    ]
}

/// Records that `fixtures/v2.sql` adds to that.
fn records_of_schema_2() -> Vec<Record> {
    let session = SessionKey(1);
    vec![
        Record::Put(Row::Turn(TurnRow {
            session,
            ticket: 5,
            state: TurnStage::Queued,
            at: Time(6),
            senders: vec![sender("token-1", "8"), sender("token-2", "1.5")],
            cancelling: None,
        })),
        prompt(1, 5, "{\"prompt\":[1]}"),
        Record::Put(Row::PromptKey(PromptKeyRow {
            session,
            key: "k".to_owned(),
            turn: 3,
            message: None,
            outcome: Bytes::from_static(b"{\"result\":{\"stopReason\":\"end_turn\"}}"),
        })),
    ]
}

pub(crate) const FIXTURES: [&str; 3] = [
    include_str!("../fixtures/v1.sql"),
    include_str!("../fixtures/v2.sql"),
    include_str!("../fixtures/v3.sql"),
];

#[test]
fn a_database_of_each_schema_opens_with_all_that_is_in_it() {
    let mut records = records_of_schema_1();
    opens_with(&FIXTURES[..1], &records);
    records.extend(records_of_schema_2());
    opens_with(&FIXTURES[..2], &records);
    opens_with(&FIXTURES[2..], &records);
}

fn opens_with(fixtures: &[&str], records: &[Record]) {
    let dir = tempfile::tempdir().unwrap();
    let conn = Connection::open(dir.path().join("acpd.db")).unwrap();
    for sql in fixtures {
        conn.execute_batch(sql).unwrap();
    }
    drop(conn);
    check_content(dir.path(), records);
}

/// Opens a database, which has these records and the lines of the fixtures.
pub(crate) fn check_content(dir: &Path, records: &[Record]) {
    let mut expected = Snapshot {
        generation: "00112233445566778899aabbccddeeff".to_owned(),
        ..Snapshot::default()
    };
    for record in records {
        expected.apply(record);
    }
    let mut store = Running::start(dir);
    let opened = Connection::open(dir.join("acpd.db")).unwrap();
    assert_eq!(columns(&opened), columns(&newest_fixture()));
    assert_eq!(store.snapshot, expected);
    let lines: Vec<_> =
        store.journal(SessionKey(1)).into_iter().map(|row| (row.kind, row.line)).collect();
    let plan = EventKind::State(acp_wire::StateKey::Plan);
    assert_eq!(lines, [(EventKind::Update, "hello".into()), (plan, "plan".into())]);
    assert_eq!(store.reader.states(SessionKey(1), 2).unwrap().len(), 1);
    let modes = (ValueKey::Modes, Bytes::from_static(b"{}"));
    assert_eq!(store.reader.values(SessionKey(1)).unwrap(), [modes]);
    store.close();
}

/// All columns of all tables, with everything that SQLite says of them.
fn columns(conn: &Connection) -> Vec<String> {
    let sql = "SELECT format('%s.%s %s notnull=%d default=%s pk=%d strict=%d wr=%d', t.name, c.name, \
               c.type, c.\"notnull\", c.dflt_value, c.pk, t.strict, t.wr) \
               FROM pragma_table_list t JOIN pragma_table_info(t.name) c \
               WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY t.name, c.cid";
    let mut columns = conn.prepare(sql).unwrap();
    columns.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn newest_fixture() -> Connection {
    let fixture = Connection::open_in_memory().unwrap();
    fixture.execute_batch(FIXTURES[2]).unwrap();
    fixture
}

#[test]
fn a_new_database_has_the_tables_of_the_newest_fixture_and_a_name_of_its_own() {
    let mut names = [String::new(), String::new()];
    for name in &mut names {
        let dir = tempfile::tempdir().unwrap();
        let store = Running::start(dir.path());
        name.clone_from(&store.snapshot.generation);
        store.close();
        let new = Connection::open(dir.path().join("acpd.db")).unwrap();
        assert_eq!(columns(&new), columns(&newest_fixture()));
        assert!(columns(&new).iter().all(|column| column.contains("strict=1")));
    }
    assert!(names[0] != names[1] && names[0].len() == 32, "{names:?}");
}

#[test]
fn an_open_request_that_cannot_be_read_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    store.commit(vec![host(1), asked(1, 1, "{}")]);
    store.close();
    let conn = Connection::open(dir.path().join("acpd.db")).unwrap();
    conn.execute("UPDATE state SET value = '{\"canary\":1}' WHERE kind = 6", []).unwrap();
    drop(conn);
    let Err(error) = Running::open(dir.path()) else { panic!("it was opened") };
    let message = error.to_string();
    assert!(message.contains("kind 6") && !message.contains("canary"), "{message}");
}

#[test]
fn secrets_are_in_one_table_and_gone_from_the_file_with_their_session() {
    let of_request = vec![host(1), asked(1, 1, str::from_utf8(CANARY).unwrap())];
    let of_session = vec![
        Record::Boot { boot: 1 },
        host(1),
        session(1),
        turn(1, 1),
        interaction(1, 1, 1),
        event(1, 1, EventKind::Update, "line"),
        secret(1, CANARY),
    ];
    for (records, kind, end) in [
        (of_request, 6, Record::Delete(RowId::Asked(1))),
        (of_session, 11, Record::SessionRemoved { session: SessionKey(1) }),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("acpd.db");
        let mut store = Running::start(dir.path());
        store.commit(records);
        store.close();
        assert_eq!(kinds_with_canary(&path), [kind]);

        let mut store = Running::start(dir.path());
        store.commit(vec![end]);
        store.close();
        assert!(!contains_canary(&fs::read(&path).unwrap()));
    }
}

#[test]
fn a_removed_session_leaves_nothing_but_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    let generation = store.snapshot.generation.clone();
    let key = SessionKey(5);
    store.commit(vec![
        session(5),
        event(5, 1, EventKind::State(acp_wire::StateKey::Mode), "line"),
        secret(5, b"[]"),
        turn(5, 1),
        prompt(5, 1, "{}"),
        Record::Put(Row::Value {
            session: key,
            key: ValueKey::Modes,
            json: Bytes::from_static(b"{}"),
        }),
    ]);
    store.commit(vec![Record::SessionRemoved { session: key }]);
    assert_eq!(store.journal(key), []);
    assert_eq!(store.reader.values(key).unwrap(), []);
    store.close();
    let rows = "SELECT count(*) FROM state UNION ALL SELECT count(*) FROM events";
    assert_eq!(numbers(&dir.path().join("acpd.db"), rows), [0, 0]);
    let store = Running::start(dir.path());
    assert_eq!(store.snapshot, Snapshot { generation, last_session: 5, ..Snapshot::default() });
    store.close();
}

#[test]
fn l14_an_empty_file_where_a_journal_was_is_no_new_database() {
    let dir = tempfile::tempdir().unwrap();
    let (path, index) = (dir.path().join("acpd.db"), dir.path().join("search.db"));
    fs::write(&path, "").unwrap();
    check(&path, &index).expect("there was no journal");
    fs::write(&index, "what was said").unwrap();
    let error = check(&path, &index).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`{}` is empty, but it held a journal before", path.display())
    );
    assert!(error.hint().unwrap().contains("backup"), "{error:?}");
    fs::remove_file(&path).unwrap();
    check(&path, &index).expect("who removes it wants an empty journal");
}
