//! Surroundings of the machines.

use std::mem::take;

use acp_wire::clipped;

use crate::event::EngineEvent;
use crate::ids::{HostId, IdSource, Time};
use crate::input::{Batch, Effect, ToHost};
use crate::profile::Config;
use crate::record::Record;
use crate::timers::Timers;

/// Characters of a note in a log.
const NOTE: usize = 500;

/// The clock, the configuration, and what a step adds to.
#[derive(Debug)]
pub(crate) struct Cx {
    pub(crate) now: Time,
    pub(crate) config: Config,
    pub(crate) ids: IdSource,
    pub(crate) timers: Timers,
    /// Records and effects of the inputs so far.
    pub(crate) out: Batch,
    /// Reports to others, in order.
    events: Vec<EngineEvent>,
}

impl Cx {
    pub(crate) fn new(now: Time, config: Config, boot: u64) -> Cx {
        Cx {
            now,
            config,
            ids: IdSource::new(boot),
            timers: Timers::default(),
            out: Batch::default(),
            events: Vec::new(),
        }
    }

    pub(crate) fn report(&mut self, event: EngineEvent) {
        self.events.push(event);
    }

    pub(crate) fn report_all(&mut self, events: impl IntoIterator<Item = EngineEvent>) {
        self.events.extend(events);
    }

    /// Takes the reports so far, for their reactions.
    pub(crate) fn take_events(&mut self) -> Vec<EngineEvent> {
        take(&mut self.events)
    }

    /// Takes the reports of questions and agents' requests that have ended: they have their reactions at once.
    pub(crate) fn take_closed(&mut self) -> Vec<EngineEvent> {
        let is_end = |event: &mut EngineEvent| {
            matches!(event, EngineEvent::AgentAnswered(_) | EngineEvent::QuestionClosed(_))
        };
        self.events.extract_if(.., is_end).collect()
    }

    /// Returns whether each report has had its reactions.
    pub(crate) fn is_routed(&self) -> bool {
        self.events.is_empty()
    }

    pub(crate) fn record(&mut self, record: Record) {
        self.out.records.push(record);
    }

    pub(crate) fn record_all(&mut self, records: impl IntoIterator<Item = Record>) {
        self.out.records.extend(records);
    }

    pub(crate) fn send(&mut self, effect: Effect) {
        self.out.effects.push(effect);
    }

    /// Adds an effect, after the reactions to all events so far.
    pub(crate) fn send_behind(&mut self, effect: Effect) {
        self.report(EngineEvent::Sent(effect));
    }

    pub(crate) fn send_all(&mut self, effects: impl IntoIterator<Item = Effect>) {
        effects.into_iter().for_each(|effect| self.send(effect));
    }

    /// Logs an event of a process. Quotations are of a peer; each event is one line of the log.
    pub(crate) fn note(&mut self, host: HostId, text: &str) {
        let text = clipped(text, NOTE);
        let shown = text.chars().flat_map(|c| {
            let escaped = c.is_control().then(|| c.escape_default());
            let plain = escaped.is_none().then_some(c);
            escaped.into_iter().flatten().chain(plain)
        });
        self.send(Effect::Host(host, ToHost::Note(shown.collect())));
    }

    /// Adds an order to a process, as [`Cx::send_behind`] does.
    pub(crate) fn order(&mut self, host: HostId, order: ToHost) {
        self.send_behind(Effect::Host(host, order));
    }
}
