//! The stop ladder: the steps that end processes.
//!
//! ```text
//! close stdin ──eof──▶ SIGTERM ──term──▶ SIGKILL ──kill──┐
//!                                           ▲            │
//!                                           └────────────┘ until nothing is left
//! ```
//!
//! A [`Ladder`] only knows when each step is due. Its owner takes the step, checks whether any
//! process is left, and drops the ladder if not. [`Ladder::climb`] does that for an owner with
//! nothing else to do.

use std::thread;
use std::time::{Duration, Instant};

use crate::process::StopSignal;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Closes stdin after pending writes.
    CloseStdin,
    /// `SIGTERM` to the group.
    Term,
    /// `SIGKILL` to the group, then to every descendant, repeated until none is left.
    Kill,
}

impl Step {
    pub fn signal(self) -> Option<StopSignal> {
        match self {
            Step::CloseStdin => None,
            Step::Term => Some(StopSignal::Term),
            Step::Kill => Some(StopSignal::Kill),
        }
    }
}

/// Time from each step to the next one.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// After stdin was closed.
    pub eof: Duration,
    pub term: Duration,
    pub kill: Duration,
}

/// Pauses between two looks, each twice as long as the one before.
#[derive(Debug, Clone, Copy)]
pub struct Pauses {
    pub first: Duration,
    pub longest: Duration,
}

#[derive(Debug)]
pub struct Ladder {
    patience: Patience,
    last: Option<Step>,
    next: (Step, Instant),
}

impl Ladder {
    pub fn new(patience: Patience, first: Step, at: Instant) -> Ladder {
        Ladder { patience, last: None, next: (first, at) }
    }

    /// Begins with SIGTERM, now: there is no stdin, or it is closed.
    pub fn term_first(term: Duration, kill: Duration) -> Ladder {
        Ladder::new(Patience { eof: Duration::ZERO, term, kill }, Step::Term, Instant::now())
    }

    pub fn due(&self) -> Instant {
        self.next.1
    }

    /// Returns the step that is due, and counts it as taken.
    pub fn step(&mut self, now: Instant) -> Option<Step> {
        let (step, at) = self.next;
        (at <= now).then(|| {
            self.taken(step, now);
            step
        })
    }

    /// Records a step as taken, due or not. A step below the last one changes nothing.
    pub fn taken(&mut self, step: Step, now: Instant) {
        if self.last.is_some_and(|last| step < last) {
            return;
        }
        self.last = Some(step);
        self.next = match step {
            Step::CloseStdin => (Step::Term, now + self.patience.eof),
            Step::Term => (Step::Kill, now + self.patience.term),
            Step::Kill => (Step::Kill, now + self.patience.kill),
        };
    }

    /// Calls `look` with the signal to send, until it returns that nothing is left. Blocks the
    /// thread.
    pub fn climb(mut self, pauses: Pauses, mut look: impl FnMut(Option<StopSignal>) -> bool) {
        let Pauses { first: mut pause, longest } = pauses;
        while !look(self.step(Instant::now()).and_then(Step::signal)) {
            thread::sleep(pause);
            pause = (pause * 2).min(longest);
        }
    }
}
