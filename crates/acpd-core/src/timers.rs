//! Deadlines: at most one per purpose.

use std::collections::BTreeMap;

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
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    set: BTreeMap<Timer, Time>,
}

impl Timers {
    pub(crate) fn set(&mut self, timer: Timer, at: Time) {
        self.set.insert(timer, at);
    }

    pub(crate) fn clear(&mut self, timer: Timer) {
        self.set.remove(&timer);
    }

    pub(crate) fn advance(&mut self, timer: Timer, at: Time) {
        if self.get(timer).is_none_or(|set| at < set) {
            self.set(timer, at);
        }
    }

    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.set.contains_key(&timer)
    }

    pub(crate) fn get(&self, timer: Timer) -> Option<Time> {
        self.set.get(&timer).copied()
    }

    /// Postpones all deadlines (ms) except those with a time of day.
    pub(crate) fn delay(&mut self, ms: u64) {
        for (timer, at) in &mut self.set {
            if !matches!(timer, Timer::Limit(_) | Timer::Budget) {
                *at = at.after(ms);
            }
        }
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.set.values().min().copied()
    }

    pub(crate) fn pop_due(&mut self, now: Time) -> Option<Timer> {
        let due = self.set.iter().filter(|(_, at)| **at <= now);
        let timer = due.min_by_key(|(timer, at)| (**at, **timer)).map(|(timer, _)| *timer)?;
        self.clear(timer);
        Some(timer)
    }
}
