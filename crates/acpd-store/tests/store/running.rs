//! A store that runs, and samples of what goes into it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use acp_wire::Version;
use acpd_core::Frozen;
use acpd_core::ids::{HostId, InteractionId, Seq, SessionKey, Time};
use acpd_core::record::{
    AskedRow, EventKind, EventRow, HostRow, InteractionRow, LineForm, NewSession, Purpose, Record,
    ReplyRow, Row, Sender, SessionRow, Snapshot, TurnRow, TurnStage,
};
use acpd_store::{CommitBatch, OpenError, Reader, Report, Tidied, Writer, open};
use bytes::Bytes;
use rusqlite::Connection;

/// Age of a line that is never reached.
pub(crate) const NEVER: Duration = Duration::MAX;

/// A store and the reports of its writer.
pub(crate) struct Running {
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
    pub(crate) snapshot: Snapshot,
    reports: Receiver<Report>,
    last_tag: u64,
}

impl Running {
    /// Opens `acpd.db` in this directory.
    pub(crate) fn open(dir: &Path) -> Result<Running, OpenError> {
        Running::open_with(dir, NEVER, |_| {})
    }

    /// `look` sees each report on the writer's thread, before anything else happens.
    pub(crate) fn open_with(
        dir: &Path,
        pack_after: Duration,
        look: impl Fn(&Report) + Send + 'static,
    ) -> Result<Running, OpenError> {
        let (send, reports) = channel();
        let (writer, reader, snapshot) = open(&dir.join("acpd.db"), pack_after, move |report| {
            look(&report);
            drop(send.send(report));
        })?;
        Ok(Running { writer, reader, snapshot, reports, last_tag: 0 })
    }

    /// Opens a store that must open.
    pub(crate) fn start(dir: &Path) -> Running {
        Running::open(dir).expect("the store opens")
    }

    /// Opens a store that packs these lines, all with times of the past, and waits for that.
    pub(crate) fn packed(dir: &Path, lines: u64) -> Running {
        let store = Running::open_with(dir, Duration::ZERO, |_| {}).expect("the store opens");
        store.tidied(|sum| sum.packed == lines);
        store
    }

    /// Returns all work that was done when `is_enough` accepts its sum.
    pub(crate) fn tidied(&self, mut is_enough: impl FnMut(Tidied) -> bool) -> Tidied {
        let mut sum = Tidied::default();
        while !is_enough(sum) {
            if let Report::Tidied(more) = self.any_report() {
                sum.removed += more.removed;
                sum.packed += more.packed;
                sum.given_back += more.given_back;
            }
        }
        sum
    }

    /// Hands a batch over and gives its tag.
    pub(crate) fn send(&mut self, records: Vec<Record>) -> u64 {
        self.last_tag += 1;
        let tag = self.last_tag;
        let batch = CommitBatch { records, durable: Running::is_durable(tag), tag };
        self.writer.commit(batch).expect("the queue has room");
        tag
    }

    pub(crate) fn is_durable(tag: u64) -> bool {
        tag.is_multiple_of(3)
    }

    /// The writer's next report, except for work that is done in pauses.
    pub(crate) fn report(&self) -> Report {
        std::iter::repeat_with(|| self.any_report())
            .find(|report| !matches!(report, Report::Tidied(_)))
            .expect("it is found or waited for")
    }

    pub(crate) fn any_report(&self) -> Report {
        self.reports.recv_timeout(Duration::from_mins(1)).expect("the writer reports")
    }

    /// Commits a batch and waits for it.
    pub(crate) fn commit(&mut self, records: Vec<Record>) {
        let tag = self.send(records);
        assert_eq!(self.report(), Report::Committed { tag });
    }

    pub(crate) fn journal(&mut self, session: SessionKey) -> Vec<EventRow> {
        self.reader.events(session, 0, Seq::MAX, usize::MAX).expect("the journal is readable")
    }

    /// Ends it in good order.
    pub(crate) fn close(self) {
        self.writer.close().expect("everything is written");
    }
}

pub(crate) fn check_integrity(dir: &Path) {
    let conn = Connection::open(dir.join("acpd.db")).unwrap();
    let verdict: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
}

/// Keeps the log as it grows: with a reader at its start nothing is copied from it. The log must be
/// empty.
pub(crate) fn pin_log(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch("BEGIN; SELECT boot FROM meta").unwrap();
    conn
}

/// Transactions that end within these bytes of a log.
pub(crate) fn commits_in_log(log: &[u8]) -> usize {
    // The size of the database after the commit; 0 in all other frames.
    log[32..].chunks_exact(24 + 4096).filter(|frame| frame[4..8] != [0; 4]).count()
}

/// A session with nothing special.
pub(crate) fn session(key: u32) -> Record {
    Record::Put(Row::Session(Box::new(session_row(key))))
}

pub(crate) fn session_row(key: u32) -> SessionRow {
    SessionRow {
        key: SessionKey(key),
        agent: "claude".to_owned(),
        public_id: format!("public-{key}"),
        agent_id: format!("agent-{key}"),
        name: Some("fix".to_owned()),
        cwd: "/src".to_owned(),
        params: Bytes::from_static(b"{\"cwd\":\"/src\"}"),
        restore: Some(acpd_api::RestoreLevel::Resumed),
        mode: Some("plan".to_owned()),
        options: BTreeMap::from([("model".to_owned(), "\"opus\"".to_owned())]),
        open_tools: ["call-1".to_owned()].into(),
        last_ticket: 4,
        prompts: 2,
        heard: true,
        last_prompt: u64::MAX,
        replayable: acpd_core::record::Replayable { prompts: 2, last: u64::MAX, answered: true },
        last_outcome: Some("end_turn".to_owned()),
        created: Time(1),
        updated: Time(2),
        ..SessionRow::default()
    }
}

pub(crate) fn event(session: u32, seq: Seq, kind: EventKind, line: impl Into<Bytes>) -> Record {
    let session = SessionKey(session);
    Record::Event(EventRow {
        session,
        seq,
        form: LineForm::default(),
        kind,
        at: Time(seq),
        line: line.into(),
        origin: None,
        entity: None,
    })
}

pub(crate) fn host(host: u64) -> Record {
    Record::Put(Row::Host(host_row(host)))
}

pub(crate) fn host_row(host: u64) -> HostRow {
    HostRow {
        host: HostId(host),
        agent: "claude".to_owned(),
        pid: 77,
        start: 8,
        ..HostRow::default()
    }
}

/// A line for a session that is not known.
pub(crate) fn parked(host: u64, place: u64, session: &str, line: &'static str) -> Record {
    let (host, session) = (HostId(host), session.to_owned());
    Record::Put(Row::Parked { host, place, session, line: line.into() })
}

/// A `session/new` of a client.
pub(crate) fn asked(id: u64, host: u64, params: &str) -> Record {
    let what = Purpose::NewSession(NewSession {
        to: Some(sender("token-1", "\"a\"")).into(),
        name: None,
        labels: BTreeSet::new(),
        cwd: "/src".to_owned(),
        params: params.to_owned().into(),
        fork: None,
        notices: Vec::new(),
    });
    Record::Put(Row::Asked(AskedRow { id, host: HostId(host), what }))
}

/// A client that may come back.
pub(crate) fn client(token: &str, received: u64) -> Record {
    Record::Put(Row::Client { token: token.to_owned(), version: Version::V1, received })
}

/// An answer for it.
pub(crate) fn reply(token: &str, id: &str, session: Option<u32>) -> Record {
    let Sender { token, id } = sender(token, id);
    let line = Bytes::from_static(b"{\"result\":{}}");
    Record::Put(Row::Reply(ReplyRow { token, id, line, session: session.map(SessionKey) }))
}

/// A request of a client, the id as JSON text.
pub(crate) fn sender(token: &str, id: &str) -> Sender {
    Sender { token: token.to_owned(), id: serde_json::from_str(id).expect("it is an id") }
}

pub(crate) fn turn(session: u32, ticket: u64) -> Record {
    Record::Put(Row::Turn(TurnRow {
        session: SessionKey(session),
        ticket,
        state: TurnStage::Queued,
        at: Time(5),
        senders: Vec::new(),
        cancelling: None,
    }))
}

/// The line of a turn.
pub(crate) fn prompt(session: u32, ticket: u64, line: &'static str) -> Record {
    Record::Put(Row::Prompt { session: SessionKey(session), ticket, line: line.into() })
}

/// The subject of a question, as in `fixtures/v1.sql`.
pub(crate) fn frozen() -> Frozen {
    serde_json::from_value(serde_json::json!({
        "call": {"said": {"rawInput": "{\"command\":\"git push\"}"}, "lost": ["content"]},
        "shown": {"kind": "execute", "commands": ["git push"], "paths": [], "urls": [], "diffs": [],
            "unclear": []},
        "subject": {"type": "command", "line": "git push"},
        "changed": 2,
    }))
    .unwrap()
}

pub(crate) fn secret(session: u32, mcp_servers: &'static [u8]) -> Record {
    Record::Put(Row::Secret { session: SessionKey(session), mcp_servers: mcp_servers.into() })
}

pub(crate) fn interaction(id: u64, session: u32, host: u64) -> Record {
    Record::Put(Row::Interaction(question(id, session, host)))
}

pub(crate) fn question(id: u64, session: u32, host: u64) -> InteractionRow {
    InteractionRow {
        id: InteractionId(id),
        session: Some(SessionKey(session)),
        host: HostId(host),
        line: Bytes::from_static(b"{\"id\":0,\"method\":\"session/request_permission\"}"),
        original: None,
        at: Time(6),
        frozen: None,
    }
}
