//! Random records mean in SQL what they mean in `Snapshot::apply`.

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::{Id, StateKey, Version};
use acpd_api::{Amount, AuthSource, AuthState, Cost, RestoreLevel, Tokens, Usage};
use acpd_core::ids::{HostId, InteractionId, Seq, SessionKey, Time};
use acpd_core::record::{
    Adoption, AgentRow, AskedRow, AuthRow, Canceller, Child, Counter, Desired, Dormant, EventKind,
    EventRow, Forked, HostRow, InteractionRow, LineForm, NewSession, OpenMessage, PromptKeyRow,
    PromptMessage, Purpose, Record, ReplyRow, Row, RowId, Sender, SessionRow, Snapshot, TurnRow,
    TurnStage, UsageRow, Used, ValueKey,
};
use acpd_policy::{Remembered, Subject, Verdict};
use bytes::Bytes;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::running::{Running, frozen};

/// The content that the store should hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Model {
    pub(crate) snapshot: Snapshot,
    pub(crate) journals: BTreeMap<SessionKey, Vec<EventRow>>,
    pub(crate) values: BTreeMap<SessionKey, BTreeMap<ValueKey, Bytes>>,
    /// Sessions that were deleted.
    pub(crate) removed: BTreeSet<SessionKey>,
}

impl Model {
    /// Drops records that do not fit, gives events their positions and new sessions numbers that no
    /// deleted one had, and applies the batch.
    pub(crate) fn apply(&mut self, batch: &mut Vec<Record>) {
        batch.retain_mut(|record| {
            self.snapshot.fits(record) && {
                self.apply_one(record);
                true
            }
        });
    }

    fn apply_one(&mut self, record: &mut Record) {
        match record {
            Record::Event(row) => {
                row.seq = self.snapshot.sessions[&row.session].head + 1;
                self.journals.entry(row.session).or_default().push(row.clone());
            }
            Record::Forked(fork) => {
                let head = |key| self.snapshot.sessions.get(key).map(|state| state.head);
                fork.upto = fork.upto.min(head(&fork.from).unwrap_or(0));
                if head(&fork.session) == Some(0) && head(&fork.from).is_some() {
                    let from = self.journals.get(&fork.from).map_or(&[][..], Vec::as_slice);
                    let lines = fork.lines(from);
                    self.journals.insert(fork.session, lines);
                }
            }
            Record::Put(Row::Value { session, key, json }) => {
                self.values.entry(*session).or_default().insert(*key, json.clone());
            }
            Record::SessionRemoved { session } => {
                self.journals.remove(session);
                self.values.remove(session);
                if self.snapshot.sessions.contains_key(session) {
                    self.removed.insert(*session);
                }
            }
            Record::Put(Row::Session(row)) if self.removed.contains(&row.key) => {
                row.key = SessionKey(4 + self.removed.len() as u32);
            }
            _ => {}
        }
        self.snapshot.apply(record);
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
        // Lines that are alike at both ends.
        8 => text().prop_map(|text| format!("{{\"text\":{text:?},\"end\":1}}").into()),
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
        Just(EventKind::Banner),
        Just(EventKind::Child),
    ]
}

fn entity() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (0..60_u64).prop_map(Some), any::<u64>().prop_map(Some)]
}

fn agent_row() -> impl Strategy<Value = AgentRow> {
    let name = select(vec!["claude".to_owned(), "copilot".to_owned()]);
    let desired = select(vec![Desired::OnDemand, Desired::Up, Desired::Down]);
    let said = (option::of(bytes()), option::of(text()));
    (name, desired, text(), said, any::<[bool; 2]>()).prop_map(
        |(name, desired, fingerprint, (initialize, client_meta), [resume_lies, load_lies])| {
            AgentRow { name, desired, fingerprint, initialize, resume_lies, load_lies, client_meta }
        },
    )
}

fn auth_row() -> impl Strategy<Value = AuthRow> {
    let agent = select(vec!["claude".to_owned(), "copilot".to_owned()]);
    let state = select(vec![AuthState::NotRequired, AuthState::Authenticated, AuthState::Expired]);
    let source = prop_oneof![
        text().prop_map(|method| AuthSource::Refused { method: method.into() }),
        Just(AuthSource::LoginFile),
    ];
    let method = option::of(text());
    (agent, state, time(), source, method).prop_map(|(agent, state, since, source, method)| {
        AuthRow { agent, state, since, source, method }
    })
}

fn host_row() -> impl Strategy<Value = HostRow> {
    let process = (host(), text(), any::<u32>(), any::<u64>());
    let state = (option::of(session()), option::of(time()), any::<[bool; 2]>());
    let version = select(vec![Version::V1, Version::V2]);
    let numbers = (any::<[u64; 2]>(), version);
    (process, state, numbers).prop_map(
        |((host, agent, pid, start), (session, ready, [stopping, inside]), (numbers, version))| {
            let [offset, written] = numbers;
            HostRow {
                host,
                agent,
                pid,
                start,
                session,
                ready,
                stopping,
                offset,
                inside,
                written,
                version,
            }
        },
    )
}

/// Few, so that they meet again. Some have the same meaning and are different all the same, or do
/// not fit into an id without an allocation.
fn id() -> impl Strategy<Value = Id> {
    select(vec!["null", "1", "-1", "\"1\"", "\"a\"", "\"\\u0061\"", "\"0123456789abcdefghijklm\""])
        .prop_map(|id| serde_json::from_str(id).expect("it is an id"))
}

fn token() -> impl Strategy<Value = String> {
    select(vec![String::new(), "one".to_owned(), "two".to_owned()])
}

fn sender() -> impl Strategy<Value = Option<Sender>> {
    option::of((token(), id()).prop_map(|(token, id)| Sender { token, id }))
}

/// The agent's ids of the sessions that lines are parked for.
fn agent_id() -> impl Strategy<Value = String> {
    select(vec![String::new(), "a".to_owned(), "A".to_owned()])
}

fn asked() -> impl Strategy<Value = Purpose> {
    let notices = || vec(text(), 0..3);
    let labels = || btree_set(text(), 0..3);
    let created = (sender(), option::of(text()), labels(), text(), text(), notices()).prop_map(
        |(sender, name, labels, cwd, params, notices)| {
            let (to, params) = (sender.into(), params.into());
            Purpose::NewSession(NewSession { to, name, labels, cwd, params, notices, fork: None })
        },
    );
    let relayed = (sender(), option::of(session()), text(), option::of(text())).prop_map(
        |(sender, session, method, params)| Purpose::Relay {
            to: sender.into(),
            session,
            method,
            params,
        },
    );
    let adopted = (agent_id(), text(), text(), notices()).prop_map(|(id, cwd, params, notices)| {
        let (params, openers) = (params.into(), Vec::new());
        Purpose::Adopt(Box::new(Adoption { id, cwd, params, openers, notices }))
    });
    prop_oneof![
        Just(Purpose::Initialize),
        created,
        adopted,
        (session(), any::<bool>())
            .prop_map(|(session, inserted)| Purpose::Prompt { session, inserted }),
        session().prop_map(|session| Purpose::Restore { session, renews: false }),
        relayed,
        agent_id().prop_map(|session| Purpose::GivenUp { session: Some(session) }),
        Just(Purpose::Farewell),
        Just(Purpose::Abandoned { session: "old".to_owned(), inserted: false }),
    ]
}

fn child() -> impl Strategy<Value = Child> {
    (text(), text(), any::<[bool; 2]>(), any::<Seq>()).prop_map(
        |(public_id, parent, [cancel, busy], seq)| Child { public_id, parent, cancel, busy, seq },
    )
}

fn session_row() -> impl Strategy<Value = SessionRow> {
    let rest = select(vec![Dormant::Parked, Dormant::NeedsLogin]);
    let restore = select(vec![RestoreLevel::Exact, RestoreLevel::Reseeded]);
    let ids = (session(), text(), text(), bytes());
    let state = (option::of(host()), rest, option::of(text()), option::of(restore));
    let sets = [btree_set(text(), 0..3), btree_set(text(), 0..3)];
    let tools = (sets, btree_map(text(), child(), 0..3));
    let facts = (btree_map(text(), text(), 0..3), tools, used());
    let numbers = (any::<u64>(), any::<bool>(), option::of(time()));
    (ids, state, facts, numbers).prop_map(
        |(
            (key, agent, public_id, params),
            (host, rest, reason, restore),
            (options, ([open_tools, labels], children), usage),
            (last_prompt, archived, removed),
        )| SessionRow {
            key,
            agent,
            public_id,
            params,
            host,
            rest,
            reason,
            restore,
            options,
            open_tools,
            labels,
            children,
            usage,
            last_prompt,
            archived,
            removed,
            ..crate::running::session_row(key.0)
        },
    )
}

fn cost() -> impl Strategy<Value = Cost> {
    (0..1_000_000_000_000_u64, select(vec!["USD", "EUR"])).prop_map(|(parts, currency)| Cost {
        amount: Amount::from_parts(parts),
        currency: currency.into(),
    })
}

fn used() -> impl Strategy<Value = Used> {
    let counter = prop_oneof![
        Just(Counter::Unknown),
        cost().prop_map(Counter::At),
        option::of(cost()).prop_map(Counter::NewProcess),
    ];
    (option::of(any::<u64>()), option::of(cost()), counter, option::of(cost())).prop_map(
        |(used, cost, counter, turn)| Used {
            told: Usage { used, size: None, cost },
            counter,
            turn,
        },
    )
}

/// Milliseconds of a day.
const DAY: u64 = 86_400_000;

fn usage_row() -> impl Strategy<Value = UsageRow> {
    let tokens = (option::of(0..9_u64), option::of(0..9_u64));
    (0..DAY, 1..4_u64, session(), option::of(1..9_u64), tokens, option::of(cost())).prop_map(
        |(since, day, session, turn, (total, output), cost)| UsageRow {
            at: Time(day * DAY + since),
            day: Time(day * DAY),
            agent: ["a", "b"][session.0 as usize % 2].to_owned(),
            session: session.0.to_string(),
            cwd: "/w".to_owned(),
            turn,
            tokens: Tokens { total, output, ..Tokens::default() },
            cost,
        },
    )
}

fn forked() -> impl Strategy<Value = Forked> {
    let bounds = (0..12_u64, select(vec![0, 60, 5000, u64::MAX]));
    (session(), text(), session(), bounds, bytes()).prop_map(
        |(session, public_id, from, (upto, most), left_out)| Forked {
            session,
            public_id,
            from,
            upto,
            most,
            left_out,
        },
    )
}

fn turn_row() -> impl Strategy<Value = TurnRow> {
    let state = prop_oneof![
        Just(TurnStage::Queued),
        (host(), 0..6_u64, 0..6_u64).prop_map(|(host, chunk, message)| {
            let open = OpenMessage { first: message, update: chunk.to_string(), id: Some(chunk) };
            let open = (chunk > 2).then_some(open);
            let message = prompt_message(message);
            TurnStage::Dispatched { host, chunk, message, open }
        }),
    ];
    let cancelling = option::of(select(vec![Canceller::Client, Canceller::Acpd]));
    let sender = (token(), id()).prop_map(|(token, id)| Sender { token, id });
    let senders = vec(sender, 0..3);
    (session(), 1..5_u64, state, time(), senders, cancelling).prop_map(
        |(session, ticket, state, at, senders, cancelling)| TurnRow {
            session,
            ticket,
            state,
            at,
            senders,
            cancelling,
        },
    )
}

fn prompt_message(number: u64) -> Option<PromptMessage> {
    match number % 3 {
        0 => None,
        1 => Some(PromptMessage::Own(number)),
        _ => Some(PromptMessage::Agents(number.to_string())),
    }
}

fn prompt_key_row() -> impl Strategy<Value = PromptKeyRow> {
    let key = prop_oneof![text(), select(vec!["k".to_owned(), "K".to_owned()])];
    let row = (session(), key, any::<[u64; 2]>(), bytes());
    row.prop_map(|(session, key, [turn, message], outcome)| PromptKeyRow {
        session,
        key,
        turn,
        message: prompt_message(message),
        outcome,
    })
}

/// A record about a process.
fn host_record() -> impl Strategy<Value = Record> {
    let number = || 1..6_u64;
    let row = prop_oneof![
        3 => host_row().prop_map(Row::Host),
        4 => (host(), number(), agent_id(), bytes())
            .prop_map(|(host, place, session, line)| Row::Parked { host, place, session, line }),
        4 => (number(), host(), asked())
            .prop_map(|(id, host, what)| Row::Asked(AskedRow { id, host, what })),
        4 => (host(), 1..8_u64, bytes())
            .prop_map(|(host, chunk, line)| Row::Outbox { host, chunk, line }),
    ];
    prop_oneof![
        15 => row.prop_map(Record::Put),
        1 => host().prop_map(|host| Record::HostGone { host }),
        1 => (host(), number()).prop_map(|(host, n)| Record::Delete(RowId::Parked(host, n))),
        2 => number().prop_map(|id| Record::Delete(RowId::Asked(id))),
        2 => (host(), 1..8_u64).prop_map(|(host, chunk)| Record::Delete(RowId::Outbox(host, chunk))),
    ]
}

/// A record about a client that may come back.
fn client_record() -> impl Strategy<Value = Record> {
    let reply_row = (token(), id(), bytes(), option::of(session()))
        .prop_map(|(token, id, line, session)| ReplyRow { token, id, line, session });
    let remembered = (1..5_i64, text(), text(), time()).prop_map(|(id, agent, line, at)| {
        let subject = Subject::Command { line, folder: None };
        let workspace = "/w".to_owned();
        Remembered { id, agent, workspace, subject, verdict: Verdict::Allow, at: at.0 }
    });
    let row = prop_oneof![
        3 => (token(), select(vec![Version::V1, Version::V2]), any::<u64>())
            .prop_map(|(token, version, received)| Row::Client { token, version, received }),
        4 => reply_row.prop_map(Row::Reply),
        2 => auth_row().prop_map(Row::Auth),
        2 => remembered.prop_map(Row::Remembered),
    ];
    prop_oneof![
        11 => row.prop_map(Record::Put),
        1 => token().prop_map(|token| Record::ClientGone { token }),
        2 => (token(), id()).prop_map(|(token, id)| Record::Delete(RowId::Reply(token, id))),
        1 => (1..5_i64).prop_map(|id| Record::Delete(RowId::Remembered(id))),
    ]
}

/// A record about a session or about acpd itself.
fn session_record() -> impl Strategy<Value = Record> {
    let facts = (option::of(token()), entity());
    let event_row = (session(), select(LineForm::ALL.to_vec()), kind(), time(), bytes(), facts)
        .prop_map(|(session, form, kind, at, line, (origin, entity))| EventRow {
            session,
            seq: 0,
            form,
            kind,
            at,
            line,
            origin,
            entity,
        });
    let interaction = || (1..6_u64).prop_map(InteractionId);
    let frozen = select(vec![None, Some(Box::new(frozen()))]);
    let interaction_row = (interaction(), option::of(session()), host(), bytes(), time(), frozen)
        .prop_map(|(id, session, host, line, at, frozen)| InteractionRow {
            id,
            session,
            host,
            original: (id.0 % 2 == 0).then(|| format!("{{\"id\":{}}}", id.0)),
            line,
            at,
            frozen,
        });
    let value = select(vec![ValueKey::Modes, ValueKey::ConfigOptions]);
    let row = prop_oneof![
        1 => agent_row().prop_map(Row::Agent),
        5 => session_row().prop_map(|row| Row::Session(Box::new(row))),
        2 => (session(), bytes())
            .prop_map(|(session, mcp_servers)| Row::Secret { session, mcp_servers }),
        2 => (session(), value, bytes())
            .prop_map(|(session, key, json)| Row::Value { session, key, json }),
        4 => turn_row().prop_map(Row::Turn),
        3 => (session(), 1..5_u64, bytes())
            .prop_map(|(session, ticket, line)| Row::Prompt { session, ticket, line }),
        3 => prompt_key_row().prop_map(Row::PromptKey),
        2 => interaction_row.prop_map(Row::Interaction),
    ];
    prop_oneof![
        22 => row.prop_map(Record::Put),
        1 => any::<u64>().prop_map(|boot| Record::Boot { boot }),
        1 => session().prop_map(|session| Record::SessionRemoved { session }),
        12 => event_row.prop_map(Record::Event),
        2 => forked().prop_map(Record::Forked),
        1 => (session(), 1..5_u64)
            .prop_map(|(session, ticket)| Record::Delete(RowId::Turn(session, ticket))),
        3 => usage_row().prop_map(Record::Usage),
        1 => interaction().prop_map(|id| Record::Delete(RowId::Interaction(id))),
    ]
}

fn record() -> impl Strategy<Value = Record> {
    prop_oneof![3 => session_record(), 2 => host_record(), 1 => client_record()]
}

/// Batches of records, events not numbered yet.
fn batches() -> impl Strategy<Value = Vec<Vec<Record>>> {
    vec(vec(record(), 0..40), 1..8)
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
        rows in vec((kind(), bytes(), entity()), 0..60),
        packed in 0..60_usize,
        upto in 0..60_u64,
        page in 0..400_usize,
        fork in forked(),
    ) {
        let dir = tempfile::tempdir()?;
        let mut store = Running::start(dir.path());
        let mut model = Model { snapshot: store.snapshot.clone(), ..Model::default() };
        let mut batch = vec![crate::running::session(1)];
        batch.extend(rows.into_iter().map(|(kind, line, entity)| {
            let Record::Event(row) = crate::running::event(1, 0, kind, line) else { unreachable!() };
            Record::Event(EventRow { entity, ..row })
        }));
        model.apply(&mut batch);
        let newer = batch.split_off(batch.len().min(packed + 1));
        let older = batch.len() as u64 - 1;
        store.commit(batch);
        store.close();
        // Packing shows nowhere.
        Running::packed(dir.path(), older).close();
        let mut store = Running::start(dir.path());
        store.commit(newer);
        let [session, copy] = [1, 2].map(SessionKey);
        let fork = Forked { session: copy, from: session, ..fork };
        let mut forks = vec![crate::running::session(2), Record::Forked(fork)];
        model.apply(&mut forks);
        store.commit(forks);

        let [journal, copied] =
            [session, copy].map(|of| model.journals.remove(&of).unwrap_or_default());
        prop_assert_eq!(store.journal(copy), copied);
        let (lines, states) = replayed(&journal, upto);
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
