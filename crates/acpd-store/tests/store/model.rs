//! Random records mean in SQL what they mean in `Snapshot::apply`.

use std::collections::BTreeMap;

use acp_wire::StateKey;
use acpd_api::RestoreLevel;
use acpd_core::ids::{HostId, InteractionId, Seq, SessionKey, Time};
use acpd_core::record::{
    AgentRow, Desired, EventKind, EventRow, HostRow, InteractionRow, Record, Rest, SessionRow,
    Snapshot, TurnRest, TurnRow, ValueKey,
};
use bytes::Bytes;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::running::Running;

/// What the store should hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Model {
    pub(crate) snapshot: Snapshot,
    pub(crate) journals: BTreeMap<SessionKey, Vec<EventRow>>,
    pub(crate) values: BTreeMap<SessionKey, BTreeMap<ValueKey, Bytes>>,
}

impl Model {
    /// Gives events their positions and applies the batch.
    pub(crate) fn apply(&mut self, batch: &mut [Record]) {
        for record in batch {
            match record {
                Record::Event(row) => {
                    let state = self.snapshot.sessions.get(&row.session);
                    row.seq = state.map_or(1, |state| state.head + 1);
                    if state.is_some() {
                        self.journals.entry(row.session).or_default().push(row.clone());
                    }
                }
                Record::Value { session, key, json }
                    if self.snapshot.sessions.contains_key(session) =>
                {
                    self.values.entry(*session).or_default().insert(*key, json.clone());
                }
                Record::SessionRemoved { session } => {
                    self.journals.remove(session);
                    self.values.remove(session);
                }
                _ => {}
            }
            self.snapshot.apply(record);
        }
    }

    /// Compares with a store that was just opened.
    pub(crate) fn check(&self, store: &mut Running) {
        assert_eq!(store.snapshot, self.snapshot);
        for session in sessions() {
            let journal = self.journals.get(&session).cloned().unwrap_or_default();
            assert_eq!(store.journal(session), journal);
            let states = store.reader.states(session, Seq::MAX).expect("states are readable");
            assert_eq!(states, replayed(&journal, Seq::MAX).1);
            let values = self.values.get(&session).cloned().unwrap_or_default();
            let found = store.reader.values(session).expect("values are readable");
            assert_eq!(BTreeMap::from_iter(found), values);
        }
    }
}

/// The sessions that random records are about.
fn sessions() -> Vec<SessionKey> {
    (1..4).map(SessionKey).collect()
}

fn session() -> impl Strategy<Value = SessionKey> {
    select(sessions())
}

fn host() -> impl Strategy<Value = HostId> {
    (1..4_u64).prop_map(|host| HostId(host << 32))
}

fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..6).prop_map(String::from_iter)
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        8 => vec(any::<u8>(), 0..40).prop_map(Bytes::from),
        1 => (any::<u8>(), 4000..9000_usize).prop_map(|(byte, len)| vec![byte; len].into()),
    ]
}

fn time() -> impl Strategy<Value = Time> {
    any::<u64>().prop_map(Time)
}

fn kind() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        Just(EventKind::Update),
        select(&StateKey::ALL).prop_map(EventKind::State),
        Just(EventKind::Live),
        Just(EventKind::Notice),
        Just(EventKind::Extension),
        Just(EventKind::Imported),
    ]
}

fn agent_row() -> impl Strategy<Value = AgentRow> {
    let name = select(vec!["claude".to_owned(), "copilot".to_owned()]);
    let desired = select(vec![Desired::OnDemand, Desired::Up, Desired::Down]);
    (name, desired, text(), option::of(bytes()), any::<bool>()).prop_map(
        |(name, desired, fingerprint, initialize, resume_lies)| AgentRow {
            name,
            desired,
            fingerprint,
            initialize,
            resume_lies,
        },
    )
}

fn session_row() -> impl Strategy<Value = SessionRow> {
    let rest = select(vec![Rest::Parked, Rest::Closed, Rest::NeedsLogin, Rest::Lost, Rest::Failed]);
    let restore = select(vec![
        RestoreLevel::Exact,
        RestoreLevel::Resumed,
        RestoreLevel::Loaded,
        RestoreLevel::Renewed,
        RestoreLevel::Reseeded,
        RestoreLevel::Lost,
    ]);
    let ids = (session(), text(), text(), text(), option::of(text()), text(), bytes());
    let state = (rest, option::of(text()), option::of(restore), option::of(text()));
    let tools = btree_set(text(), 0..3);
    let facts = (btree_map(text(), text(), 0..3), tools, option::of(text()), option::of(text()));
    let numbers = (any::<u64>(), any::<u64>(), time(), time());
    (ids, state, facts, numbers).prop_map(
        |(
            (key, agent, public_id, agent_id, name, cwd, params),
            (rest, reason, restore, mode),
            (options, open_tools, title, last_outcome),
            (prompts, last_prompt, created, updated),
        )| SessionRow {
            key,
            agent,
            public_id,
            agent_id,
            name,
            cwd,
            params,
            rest,
            reason,
            restore,
            mode,
            options,
            open_tools,
            title,
            prompts,
            last_prompt,
            last_outcome,
            created,
            updated,
        },
    )
}

fn turn_row() -> impl Strategy<Value = TurnRow> {
    let state = prop_oneof![
        Just(TurnRest::Queued),
        (host(), 0..6_u64).prop_map(|(host, chunk)| TurnRest::Dispatched { host, chunk }),
        Just(TurnRest::Ended),
    ];
    (session(), 1..5_u64, state, time(), option::of(bytes()))
        .prop_map(|(session, ticket, state, at, line)| TurnRow { session, ticket, state, at, line })
}

fn record() -> impl Strategy<Value = Record> {
    let host_row = (host(), text(), any::<u32>(), any::<u64>())
        .prop_map(|(host, agent, pid, start)| HostRow { host, agent, pid, start });
    let event_row = (session(), any::<u8>(), kind(), time(), bytes())
        .prop_map(|(session, pv, kind, at, line)| EventRow { session, seq: 0, pv, kind, at, line });
    let id = || (1..6_u64).prop_map(InteractionId);
    let interaction_row = (id(), session(), host(), bytes(), time())
        .prop_map(|(id, session, host, line, at)| InteractionRow { id, session, host, line, at });
    let value = select(vec![ValueKey::Modes, ValueKey::ConfigOptions]);
    prop_oneof![
        1 => any::<u64>().prop_map(|boot| Record::Boot { boot }),
        1 => agent_row().prop_map(Record::Agent),
        3 => host_row.prop_map(Record::Host),
        1 => host().prop_map(|host| Record::HostGone { host }),
        2 => (host(), any::<u64>()).prop_map(|(host, offset)| Record::HostOffset { host, offset }),
        4 => (host(), 1..8_u64, bytes())
            .prop_map(|(host, chunk, line)| Record::Outbox { host, chunk, line }),
        2 => (host(), 0..8_u64).prop_map(|(host, chunk)| Record::Written { host, chunk }),
        5 => session_row().prop_map(|row| Record::Session(Box::new(row))),
        2 => (session(), bytes())
            .prop_map(|(session, mcp_servers)| Record::Secret { session, mcp_servers }),
        2 => (session(), value, bytes())
            .prop_map(|(session, key, json)| Record::Value { session, key, json }),
        1 => session().prop_map(|session| Record::SessionRemoved { session }),
        12 => event_row.prop_map(Record::Event),
        4 => turn_row().prop_map(Record::Turn),
        2 => interaction_row.prop_map(Record::Interaction),
        1 => id().prop_map(|id| Record::InteractionGone { id }),
    ]
}

/// Batches of records, events not numbered yet.
fn batches() -> impl Strategy<Value = Vec<Vec<Record>>> {
    vec(vec(record(), 0..25), 1..8)
}

/// `replay` and `states` of a journal, told from its lines.
fn replayed(journal: &[EventRow], upto: Seq) -> (Vec<EventRow>, Vec<EventRow>) {
    let seen = journal.iter().filter(|row| row.seq <= upto);
    let lines = seen
        .clone()
        .filter(|row| !matches!(row.kind, EventKind::State(_) | EventKind::Live))
        .cloned()
        .collect();
    let states = StateKey::ALL
        .into_iter()
        .filter_map(|key| seen.clone().rfind(|row| row.kind == EventKind::State(key)))
        .cloned()
        .collect();
    (lines, states)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_was_committed_is_read_back_as_the_model_says(batches in batches()) {
        let dir = tempfile::tempdir()?;
        let mut store = Running::start(dir.path());
        let mut model = Model { snapshot: store.snapshot.clone(), ..Model::default() };
        for mut batch in batches {
            model.apply(&mut batch);
            store.commit(batch);
        }
        store.close();
        let mut store = Running::start(dir.path());
        model.check(&mut store);
        store.close();
    }

    #[test]
    fn a_replay_up_to_any_position_has_each_line_and_the_last_state_values(
        rows in vec((kind(), bytes()), 0..60),
        upto in 0..60_u64,
        page in 0..400_usize,
    ) {
        let dir = tempfile::tempdir()?;
        let mut store = Running::start(dir.path());
        let mut model = Model { snapshot: store.snapshot.clone(), ..Model::default() };
        let mut batch = vec![crate::running::session(1)];
        batch.extend(rows.into_iter().map(|(kind, line)| crate::running::event(1, 0, kind, line)));
        model.apply(&mut batch);
        store.commit(batch);

        let session = SessionKey(1);
        let (lines, states) = replayed(&model.journals.remove(&session).unwrap_or_default(), upto);
        let mut found = Vec::new();
        let mut after = 0;
        loop {
            let rows = store.reader.replay(session, after, upto, page)?;
            let Some(last) = rows.last() else { break };
            after = last.seq;
            found.extend(rows);
        }
        prop_assert_eq!(found, lines);
        prop_assert_eq!(store.reader.states(session, upto)?, states);
        store.close();
    }
}
