//! Surroundings of a machine while it handles an input.

use std::mem::take;
use std::thread::panicking;

use crate::event::EngineEvent;
use crate::ids::{HostId, IdSource, Time};
use crate::input::{Batch, Effect, ToHost};
use crate::profile::Config;
use crate::timers::Timers;

/// The clock, the configuration, and what a step adds to.
#[derive(Debug)]
pub(crate) struct Cx<'a> {
    pub(crate) now: Time,
    pub(crate) config: &'a Config,
    pub(crate) ids: &'a mut IdSource,
    pub(crate) timers: &'a mut Timers,
    pub(crate) out: &'a mut Batch,
    /// Reports to others, in order.
    pub(crate) events: Vec<EngineEvent>,
}

/// An event without a reaction would be lost: only a method that reports none is called without `step!`.
impl Drop for Cx<'_> {
    fn drop(&mut self) {
        debug_assert!(self.events.is_empty() || panicking(), "not routed: {:?}", self.events);
    }
}

impl Cx<'_> {
    pub(crate) fn report(&mut self, event: EngineEvent) {
        self.events.push(event);
    }

    /// Takes the reports so far, for their reactions.
    pub(crate) fn take_events(&mut self) -> Vec<EngineEvent> {
        take(&mut self.events)
    }

    /// Adds an effect, after the reactions to all events so far.
    pub(crate) fn send(&mut self, effect: Effect) {
        self.report(EngineEvent::Sent(effect));
    }

    /// Adds an order to a process, as [`Cx::send`] does.
    pub(crate) fn order(&mut self, host: HostId, order: ToHost) {
        self.send(Effect::Host(host, order));
    }
}
