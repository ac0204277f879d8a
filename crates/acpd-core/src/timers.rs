//! Deadlines: at most one per purpose, ordered by time.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{InteractionId, SessionKey, SlotId, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Start timeout, stop ladder, end of a back-off.
    Slot(SlotId),
    /// An unused agent.
    Idle(SlotId),
    Restore(SessionKey),
    Cancel(SessionKey),
    Stall(SessionKey),
    /// An agent that does not answer the request with this id.
    Asked(u64),
    /// The next step of a running command's output.
    Terminal(InteractionId),
    /// A tool's call of an MCP server in a client.
    Lent(InteractionId),
    /// A prompt that waits for the end of a usage limit.
    Limit(SessionKey),
    Sleep(SessionKey),
    /// The end of a day whose budget is used up.
    Budget,
    /// The next check for sessions that end automatically.
    Lifecycle,
    /// The next check of the configured limits.
    Retention,
    Resumable,
    Watch,
    /// Turns that wait for the search index.
    Index,
    /// Records that wait for a batch.
    Later,
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

    /// Postpones all deadlines (ms) except those with a time of day.
    pub(crate) fn delay(&mut self, ms: u64) {
        for (timer, at) in std::mem::take(&mut self.by_timer) {
            let by = if matches!(timer, Timer::Limit(_) | Timer::Budget) { 0 } else { ms };
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
