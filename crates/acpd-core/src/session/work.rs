//! The state of a turn as a function of events, without side effects. The hub sends lines, sets
//! timers and answers.
//!
//! ```text
//!              Touched                 Cancel              Ended, Lost
//!            ┌────────┐             ┌──────────▶ Cancelling ─────────┐
//!  dispatch ─┴─▶ Running ───────────┘              │ Overdue          ▼
//!                  │                               ▼                Over
//!                  │ Ended, Lost             process stopped          ▲
//!                  └──────────────────────────────────────────────────┘
//! ```
//!
//! Architecture invariants: a turn ends once. A cancelled turn ends as cancelled, with any answer
//! of the agent; the first canceller counts. If it is unknown whether a dead agent had read its
//! prompt, the end says so.

use crate::record::Canceller;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// `touched`: the agent, or a subagent, has sent content or a request.
    Running {
        touched: bool,
    },
    Cancelling {
        by: Canceller,
        touched: bool,
    },
    Over {
        touched: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkEvent {
    /// The agent, or a subagent, has sent content or a request.
    Touched,
    Cancel(Canceller),
    /// `stops`: the process is being stopped already.
    Overdue {
        stops: bool,
    },
    /// `stops`: the process is being stopped.
    Ended {
        stops: bool,
    },
    /// `undecided`: it is unknown whether the agent got the prompt; `wedged`: the process was
    /// stopped because the agent did not react.
    Lost {
        undecided: bool,
        wedged: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkEffect {
    /// First sign that the agent works on the prompt.
    Begun,
    /// Ask the agent to end the turn, and set the deadline.
    AskToEnd,
    /// The agent does not react.
    StopProcess,
    End(TurnEnd),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    Answered,
    Cancelled,
    /// The process was stopped or ended.
    CutOff,
    /// The process was stopped because it did not react to a cancel.
    Unwedged,
    /// The agent may or may not have got the prompt.
    Unknown,
}

impl Work {
    pub(crate) fn recovered(canceller: Option<Canceller>) -> Work {
        match canceller {
            Some(by) => Work::Cancelling { by, touched: true },
            None => Work::Running { touched: true },
        }
    }

    pub(crate) fn is_touched(self) -> bool {
        match self {
            Work::Running { touched }
            | Work::Cancelling { touched, .. }
            | Work::Over { touched } => touched,
        }
    }

    pub(crate) fn is_cancelled(self) -> bool {
        self.canceller().is_some()
    }

    pub(crate) fn canceller(self) -> Option<Canceller> {
        match self {
            Work::Cancelling { by, .. } => Some(by),
            Work::Running { .. } | Work::Over { .. } => None,
        }
    }
}

pub(crate) fn step(work: Work, event: WorkEvent) -> (Work, Option<WorkEffect>) {
    let by = work.canceller();
    let over = Work::Over { touched: work.is_touched() };
    let end = |end| (over, Some(WorkEffect::End(end)));
    match (work, event) {
        (Work::Over { .. }, _) => (work, None),
        (Work::Running { touched: false }, WorkEvent::Touched) => {
            (Work::Running { touched: true }, Some(WorkEffect::Begun))
        }
        (Work::Cancelling { by, touched: false }, WorkEvent::Touched) => {
            (Work::Cancelling { by, touched: true }, Some(WorkEffect::Begun))
        }
        (Work::Running { touched }, WorkEvent::Cancel(by)) => {
            (Work::Cancelling { by, touched }, Some(WorkEffect::AskToEnd))
        }
        (Work::Cancelling { .. }, WorkEvent::Overdue { stops: false }) => {
            (work, Some(WorkEffect::StopProcess))
        }
        (_, WorkEvent::Touched | WorkEvent::Cancel(_) | WorkEvent::Overdue { .. }) => (work, None),
        (_, WorkEvent::Ended { stops }) => match by {
            Some(Canceller::Client) => end(TurnEnd::Cancelled),
            Some(Canceller::Acpd) if stops => end(TurnEnd::CutOff),
            Some(Canceller::Acpd) | None => end(TurnEnd::Answered),
        },
        (_, WorkEvent::Lost { undecided, wedged }) => match by {
            None | Some(Canceller::Acpd) if undecided => end(TurnEnd::Unknown),
            Some(_) if wedged => end(TurnEnd::Unwedged),
            Some(Canceller::Client) => end(TurnEnd::Cancelled),
            Some(Canceller::Acpd) | None => end(TurnEnd::CutOff),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [WorkEvent; 11] = [
        WorkEvent::Touched,
        WorkEvent::Cancel(Canceller::Client),
        WorkEvent::Cancel(Canceller::Acpd),
        WorkEvent::Overdue { stops: false },
        WorkEvent::Overdue { stops: true },
        WorkEvent::Ended { stops: false },
        WorkEvent::Ended { stops: true },
        WorkEvent::Lost { undecided: false, wedged: false },
        WorkEvent::Lost { undecided: false, wedged: true },
        WorkEvent::Lost { undecided: true, wedged: false },
        WorkEvent::Lost { undecided: true, wedged: true },
    ];

    /// All sequences of this many events.
    fn sequences(length: u32) -> impl Iterator<Item = Vec<WorkEvent>> {
        (0..EVENTS.len().pow(length)).map(move |mut number| {
            let mut next = || {
                let event = EVENTS[number % EVENTS.len()];
                number /= EVENTS.len();
                event
            };
            (0..length).map(|_| next()).collect()
        })
    }

    /// Each event with its effect.
    fn run(events: &[WorkEvent]) -> Vec<(WorkEvent, Option<WorkEffect>)> {
        let mut work = Work::Running { touched: false };
        let mut step = |event: &WorkEvent| {
            let (next, effect) = step(work, *event);
            work = next;
            (*event, effect)
        };
        events.iter().map(&mut step).collect()
    }

    #[test]
    fn a_turn_ends_once_and_does_nothing_afterwards() {
        for events in sequences(4) {
            let effects = run(&events);
            let is_end = |(event, _): &(WorkEvent, _)| {
                matches!(event, WorkEvent::Ended { .. } | WorkEvent::Lost { .. })
            };
            let Some(end) = effects.iter().position(is_end) else {
                assert!(
                    !effects.iter().any(|(_, effect)| matches!(effect, Some(WorkEffect::End(_))))
                );
                continue;
            };
            assert!(matches!(effects[end].1, Some(WorkEffect::End(_))), "{events:?}");
            assert!(effects[end + 1..].iter().all(|(_, effect)| effect.is_none()), "{events:?}");
        }
    }

    #[test]
    fn the_first_canceller_decides_and_the_agent_is_asked_once() {
        for events in sequences(4) {
            let effects = run(&events);
            let cancel = events.iter().find_map(|event| match event {
                WorkEvent::Cancel(by) => Some(Some(*by)),
                WorkEvent::Ended { .. } | WorkEvent::Lost { .. } => Some(None),
                _ => None,
            });
            let asked = effects.iter().filter(|(_, effect)| *effect == Some(WorkEffect::AskToEnd));
            assert_eq!(asked.count(), usize::from(matches!(cancel, Some(Some(_)))), "{events:?}");
            let end = effects.iter().find_map(|(_, effect)| match effect {
                Some(WorkEffect::End(end)) => Some(*end),
                _ => None,
            });
            match (cancel.flatten(), end) {
                (Some(Canceller::Client), Some(end)) => {
                    assert!(matches!(end, TurnEnd::Cancelled | TurnEnd::Unwedged), "{events:?}");
                }
                (None, Some(end)) => {
                    assert!(!matches!(end, TurnEnd::Cancelled | TurnEnd::Unwedged), "{events:?}");
                }
                _ => {}
            }
        }
    }

    #[test]
    fn an_agent_begins_once_and_is_stopped_only_after_a_cancel() {
        for events in sequences(4) {
            let effects = run(&events);
            let begun = effects.iter().filter(|(_, effect)| *effect == Some(WorkEffect::Begun));
            assert!(begun.count() <= 1, "{events:?}");
            let stop =
                |(_, effect): &(_, Option<WorkEffect>)| *effect == Some(WorkEffect::StopProcess);
            let Some(at) = effects.iter().position(stop) else { continue };
            assert!(events[..at].iter().any(|event| matches!(event, WorkEvent::Cancel(_))));
        }
    }

    #[test]
    fn an_answer_decides_only_if_no_other_ended_the_turn() {
        let ends = |events: &[WorkEvent]| match run(events).last() {
            Some((_, Some(WorkEffect::End(end)))) => *end,
            other => panic!("{other:?}"),
        };
        let answered = WorkEvent::Ended { stops: false };
        assert_eq!(ends(&[answered]), TurnEnd::Answered);
        assert_eq!(ends(&[WorkEvent::Cancel(Canceller::Acpd), answered]), TurnEnd::Answered);
        let stopped = [WorkEvent::Cancel(Canceller::Acpd), WorkEvent::Ended { stops: true }];
        assert_eq!(ends(&stopped), TurnEnd::CutOff);
        let unknown = WorkEvent::Lost { undecided: true, wedged: false };
        assert_eq!(ends(&[unknown]), TurnEnd::Unknown);
        assert_eq!(ends(&[WorkEvent::Cancel(Canceller::Acpd), unknown]), TurnEnd::Unknown);
        assert_eq!(ends(&[WorkEvent::Cancel(Canceller::Client), unknown]), TurnEnd::Cancelled);
    }
}
