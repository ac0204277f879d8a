//! The stop ladder: how processes are ended that may not want to end.
//!
//! ```text
//! close stdin ──eof──▶ SIGTERM ──term──▶ SIGKILL ──kill──┐
//!                                           ▲            │
//!                                           └────────────┘ until nothing is left
//! ```
//!
//! A [`Ladder`] only knows which step is due when. Its owner takes the step, looks whether anything is
//! left, and drops the ladder if not. [`Ladder::climb`] does that for an owner with nothing else to do.

use std::thread;
use std::time::{Duration, Instant};

use crate::process::StopSignal;

/// A step of the stop ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Stdin is closed, after what is still to be written.
    CloseStdin,
    /// `SIGTERM` to the group.
    Term,
    /// `SIGKILL` to the group, then to every descendant, again and again until none is left.
    Kill,
}

impl Step {
    /// The signal of the step; closing stdin needs none.
    pub fn signal(self) -> Option<StopSignal> {
        match self {
            Step::CloseStdin => None,
            Step::Term => Some(StopSignal::Term),
            Step::Kill => Some(StopSignal::Kill),
        }
    }
}

/// The time from each step to the next one.
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

/// A stop, from its first step on.
#[derive(Debug)]
pub struct Ladder {
    patience: Patience,
    last: Option<Step>,
    next: (Step, Instant),
}

impl Ladder {
    /// A stop that begins with this step, at this time.
    pub fn new(patience: Patience, first: Step, at: Instant) -> Ladder {
        Ladder { patience, last: None, next: (first, at) }
    }

    /// A stop that begins with SIGTERM, now: there is no stdin, or it is closed already.
    pub fn term_first(term: Duration, kill: Duration) -> Ladder {
        Ladder::new(Patience { eof: Duration::ZERO, term, kill }, Step::Term, Instant::now())
    }

    /// When the next step is due.
    pub fn due(&self) -> Instant {
        self.next.1
    }

    /// The step to be taken now. From then on it counts as taken.
    pub fn step(&mut self, now: Instant) -> Option<Step> {
        let (step, at) = self.next;
        (at <= now).then(|| {
            self.taken(step, now);
            step
        })
    }

    /// A step is taken now, due or not. The ladder never goes down again: a lower step than the last
    /// one changes nothing.
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

    /// Calls `look` until it returns that nothing is left. `look` gets the signal that it has to send. Blocks
    /// the thread.
    pub fn climb(mut self, pauses: Pauses, mut look: impl FnMut(Option<StopSignal>) -> bool) {
        let Pauses { first: mut pause, longest } = pauses;
        while !look(self.step(Instant::now()).and_then(Step::signal)) {
            thread::sleep(pause);
            pause = (pause * 2).min(longest);
        }
    }
}
