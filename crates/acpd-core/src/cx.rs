use std::collections::BTreeSet;
use std::mem::take;

use acp_wire::clipped;
use acpd_api::StoreState;
use bytes::Bytes;

use crate::event::EngineEvent;
use crate::ids::{HostId, IdSource, Requester, SessionKey, Time};
use crate::input::{Batch, Effect, ToHost};
use crate::profile::Config;
use crate::record::{Record, Row, RowId};
use crate::timers::{Timer, Timers};

/// Maximum length of a log note in characters.
const NOTE: usize = 500;
/// Time after which records that wait for a batch get one of their own (ms).
const LATER: u64 = 500;
/// Time in which ended turns come into the search index together (ms).
const INDEX_TOGETHER: u64 = 2_000;

/// Facts that all machines need, and the results of a step.
#[derive(Debug)]
pub(crate) struct Cx {
    pub(crate) now: Time,
    pub(crate) config: Config,
    pub(crate) ids: IdSource,
    pub(crate) timers: Timers,
    pub(crate) store: StoreState,
    pub(crate) shutdown: Shutdown,
    pub(crate) out: Batch,
    /// A transaction is due.
    pub(crate) pressing: bool,
    /// Records of earlier batches, which wait.
    held: Vec<Record>,
    /// Sessions with ended turns that are not in the search index yet.
    pub(crate) unindexed: BTreeSet<SessionKey>,
    events: Vec<EngineEvent>,
}

impl Cx {
    pub(crate) fn new(now: Time, config: Config, boot: u64) -> Cx {
        Cx {
            now,
            config,
            ids: IdSource::new(boot),
            timers: Timers::default(),
            store: StoreState::Ok,
            shutdown: Shutdown::default(),
            out: Batch::default(),
            pressing: false,
            held: Vec::new(),
            unindexed: BTreeSet::new(),
            events: Vec::new(),
        }
    }

    /// Returns whether the journal cannot be written: nothing begins that needs it.
    pub(crate) fn is_failing(&self) -> bool {
        self.store != StoreState::Ok
    }

    pub(crate) fn report(&mut self, event: EngineEvent) {
        self.events.push(event);
    }

    pub(crate) fn report_all(&mut self, events: impl IntoIterator<Item = EngineEvent>) {
        self.events.extend(events);
    }

    pub(crate) fn take_events(&mut self) -> Vec<EngineEvent> {
        take(&mut self.events)
    }

    /// Takes the ends of questions and of agents' requests, whose reactions come at once.
    pub(crate) fn take_closed(&mut self) -> Vec<EngineEvent> {
        let is_end = |event: &mut EngineEvent| {
            matches!(event, EngineEvent::AgentAnswered { .. } | EngineEvent::QuestionClosed(_))
        };
        self.events.extract_if(.., is_end).collect()
    }

    pub(crate) fn is_routed(&self) -> bool {
        self.events.is_empty()
    }

    pub(crate) fn record(&mut self, record: Record) {
        self.out.records.push(record);
        self.pressing = true;
    }

    pub(crate) fn put(&mut self, row: Row) {
        self.record(Record::Put(row));
    }

    pub(crate) fn delete(&mut self, key: RowId) {
        self.record(Record::Delete(key));
    }

    /// Adds a record that waits up to [`LATER`] for another one. A daemon may die before that.
    pub(crate) fn record_later(&mut self, record: Record) {
        self.out.records.push(record);
    }

    /// Returns whether the batch is committed now: its effects may show what its records say.
    pub(crate) fn is_pressing(&self) -> bool {
        // While the store fails, effects alone must not write counts of lines.
        let may_show = !self.out.records.is_empty() || !self.is_failing();
        self.pressing || (may_show && !self.out.effects.is_empty())
    }

    pub(crate) fn hold_records(&mut self) {
        self.held.append(&mut self.out.records);
        self.timers.advance(Timer::Later, self.now.after(LATER));
    }

    /// Puts the records that wait before those of the batch.
    pub(crate) fn release_records(&mut self) {
        self.pressing = false;
        self.timers.clear(Timer::Later);
        self.out.records.splice(..0, take(&mut self.held));
    }

    pub(crate) fn index_later(&mut self, session: SessionKey) {
        self.unindexed.insert(session);
        self.timers.advance(Timer::Index, self.now.after(INDEX_TOGETHER));
    }

    /// For a search, which does not wait for the store: the deadline does the same again.
    pub(crate) fn index(&mut self) {
        let sessions = self.unindexed.iter().copied().map(Effect::Index);
        self.out.effects.extend(sessions);
    }

    pub(crate) fn send(&mut self, effect: Effect) {
        self.out.effects.push(effect);
    }

    /// Adds an effect after the reactions to all events so far.
    pub(crate) fn send_behind(&mut self, effect: Effect) {
        self.report(EngineEvent::Sent(effect));
    }

    pub(crate) fn send_all(&mut self, effects: impl IntoIterator<Item = Effect>) {
        effects.into_iter().for_each(|effect| self.send(effect));
    }

    /// Logs a line about a process. Control characters are escaped, because the text may quote the
    /// agent.
    pub(crate) fn note(&mut self, host: HostId, text: &str) {
        let text = clipped(text, NOTE);
        let shown = text.chars().flat_map(|c| {
            let escaped = c.is_control().then(|| c.escape_default());
            let plain = escaped.is_none().then_some(c);
            escaped.into_iter().flatten().chain(plain)
        });
        self.send(Effect::Host(host, ToHost::Note(shown.collect())));
    }

    /// Makes the next process look up fresh credentials, because the login has changed.
    pub(crate) fn forget_credentials(&mut self, profile: &str) {
        self.send(Effect::ForgetCredentials(profile.to_owned()));
    }

    pub(crate) fn answer(&mut self, host: HostId, line: Bytes) {
        self.report(EngineEvent::AgentAnswered { host, line });
    }

    pub(crate) fn order(&mut self, host: HostId, order: ToHost) {
        self.send_behind(Effect::Host(host, order));
    }
}

/// Progress of the daemon's end, and clients that wait for it. `hub/shutdown.rs` performs it.
///
/// ```text
///  Stays ── asked to stop ─▶ Ending ── its agents are gone, or it is asked again ─▶ Ended
/// ```
#[derive(Debug, Default)]
pub(crate) struct Shutdown {
    stage: Stage,
    /// The user stopped the daemon, so clients need not reconnect.
    pub(crate) for_good: bool,
    watchers: Vec<Requester>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Stays,
    Ending,
    Ended,
}

impl Shutdown {
    pub(crate) fn is_begun(&self) -> bool {
        self.stage != Stage::Stays
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.stage == Stage::Ending
    }

    pub(crate) fn watch(&mut self, to: Requester) {
        self.watchers.push(to);
        self.for_good = true;
    }

    pub(crate) fn begin(&mut self) {
        self.stage = Stage::Ending;
    }

    /// Returns the clients that wait for the end.
    pub(crate) fn end(&mut self) -> Vec<Requester> {
        self.stage = Stage::Ended;
        std::mem::take(&mut self.watchers)
    }
}
