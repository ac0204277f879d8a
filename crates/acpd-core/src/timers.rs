//! Deadlines: at most one per purpose, found in order of time.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{InteractionId, SessionKey, SlotId, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The next step of an agent: start timeout, stop ladder, end of a back-off.
    Slot(SlotId),
    /// An agent that nothing uses.
    Idle(SlotId),
    /// The next step of a session's restore.
    Restore(SessionKey),
    /// A turn that does not end after a cancel.
    Cancel(SessionKey),
    /// A turn that has been silent.
    Stall(SessionKey),
    /// An agent that does not answer, by the id of the request.
    Asked(u64),
    /// The next look at a command that runs.
    Terminal(InteractionId),
    /// A tool's call of an MCP server that a client lends.
    Lent(InteractionId),
    /// A prompt that waits for the end of a usage limit.
    Limit(SessionKey),
    /// A live session that nothing uses.
    Sleep(SessionKey),
    /// The next look for sessions that are gone by themselves.
    Lifecycle,
    /// The next look for sessions that the limits of the configuration let go.
    Retention,
    /// Clients that were expected to come back.
    Resumable,
    /// The next notification of a watcher.
    Watch,
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_time: BTreeSet<(Time, Timer)>,
    by_timer: BTreeMap<Timer, Time>,
}

impl Timers {
    pub(crate) fn set(&mut self, timer: Timer, at: Time) {
        self.clear(timer);
        self.by_timer.insert(timer, at);
        self.by_time.insert((at, timer));
    }

    pub(crate) fn clear(&mut self, timer: Timer) {
        if let Some(at) = self.by_timer.remove(&timer) {
            self.by_time.remove(&(at, timer));
        }
    }

    /// Sets a timer, unless it is set to an earlier time.
    pub(crate) fn advance(&mut self, timer: Timer, at: Time) {
        if self.get(timer).is_none_or(|set| at < set) {
            self.set(timer, at);
        }
    }

    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.by_timer.contains_key(&timer)
    }

    pub(crate) fn get(&self, timer: Timer) -> Option<Time> {
        self.by_timer.get(&timer).copied()
    }

    /// Postpones all deadlines by a number of milliseconds, except those at a time of day.
    pub(crate) fn delay(&mut self, ms: u64) {
        for (timer, at) in std::mem::take(&mut self.by_timer) {
            let by = if matches!(timer, Timer::Limit(_)) { 0 } else { ms };
            self.set(timer, at.after(by));
        }
        self.by_time.retain(|(at, timer)| self.by_timer.get(timer) == Some(at));
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }

    pub(crate) fn pop_due(&mut self, now: Time) -> Option<Timer> {
        let (at, timer) = *self.by_time.first()?;
        if at > now {
            return None;
        }
        self.clear(timer);
        Some(timer)
    }
}
