//! Which step of a stop is due when.

use std::time::{Duration, Instant};

use crate::frame::Step;
use crate::launch::LadderTimes;

/// How long an agent may live on that nobody can talk with any more; then SIGTERM, and after that
/// time again SIGKILL.
const CUT_OFF: Duration = Duration::from_secs(2);
/// How often SIGKILL is repeated.
const AGAIN: Duration = Duration::from_secs(1);

/// A stop, from its first step on.
#[derive(Debug)]
pub(crate) struct Ladder {
    times: LadderTimes,
    /// From SIGTERM to SIGKILL.
    gap: Duration,
    last: Option<Step>,
    next: Option<(Step, Instant)>,
    /// The steps are taken whether a daemon is there or not.
    own: bool,
    /// A daemon or its absence wanted the stop.
    asked: bool,
}

impl Ladder {
    pub(crate) fn new(times: LadderTimes) -> Ladder {
        Ladder { times, gap: times.term, last: None, next: None, own: false, asked: false }
    }

    /// The daemon has a step taken, now. It takes the next ones too, unless it is lost.
    pub(crate) fn order(&mut self, step: Step, now: Instant) {
        self.asked = true;
        self.taken(step, now);
    }

    /// A stop begins, or goes on without a daemon.
    pub(crate) fn run(&mut self, now: Instant) {
        self.asked = true;
        self.own = true;
        self.next.get_or_insert((Step::CloseStdin, now));
    }

    /// The agent has closed its stdin or stdout and lives on.
    pub(crate) fn cut_off(&mut self, now: Instant) {
        if self.next.is_none() {
            self.own = true;
            self.gap = CUT_OFF;
            self.next = Some((Step::Term, now + CUT_OFF));
        }
    }

    /// The agent's leader has ended. If nobody wanted that, there is nothing to be polite to.
    pub(crate) fn leader_ended(&mut self, now: Instant) {
        if !self.asked {
            self.own = true;
            self.gap = self.times.leftovers;
            self.last = None;
            self.next = Some((Step::Term, now));
        }
    }

    /// When the next step is due.
    pub(crate) fn due(&self, linked: bool) -> Option<Instant> {
        self.next.filter(|_| self.own || !linked).map(|(_, at)| at)
    }

    /// The step to be taken now.
    pub(crate) fn step(&mut self, now: Instant, linked: bool) -> Option<Step> {
        self.due(linked).filter(|at| *at <= now)?;
        let (step, _) = self.next?;
        self.taken(step, now);
        Some(step)
    }

    fn taken(&mut self, step: Step, now: Instant) {
        if self.last.is_some_and(|last| step < last) {
            return;
        }
        self.last = Some(step);
        self.next = Some(match step {
            Step::CloseStdin => (Step::Term, now + self.times.eof),
            Step::Term => (Step::Kill, now + self.gap),
            Step::Kill => {
                self.own = true;
                (Step::Kill, now + AGAIN)
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ladder() -> (Ladder, Instant) {
        let times = LadderTimes { eof: 3 * SECOND, term: 7 * SECOND, leftovers: SECOND };
        (Ladder::new(times), Instant::now())
    }

    /// The steps until SIGKILL was sent twice, with their seconds.
    fn steps(ladder: &mut Ladder, start: Instant, linked: bool) -> Vec<(Step, u64)> {
        let mut steps = Vec::new();
        while steps.iter().filter(|(step, _)| *step == Step::Kill).count() < 2
            && let Some(at) = ladder.due(linked)
        {
            if let Some(before) = at.checked_sub(Duration::from_millis(1)) {
                assert_eq!(ladder.step(before, linked), None);
            }
            steps.push((ladder.step(at, linked).unwrap(), (at - start).as_secs()));
        }
        steps
    }

    #[test]
    fn without_a_daemon_all_steps_are_taken_in_time() {
        let (mut ladder, start) = ladder();
        ladder.run(start);
        let expected = [(Step::CloseStdin, 0), (Step::Term, 3), (Step::Kill, 10), (Step::Kill, 11)];
        assert_eq!(steps(&mut ladder, start, false), expected);
    }

    #[test]
    fn a_daemon_that_is_lost_in_the_middle_leaves_no_stop_half_done() {
        let (mut ladder, start) = ladder();
        ladder.order(Step::CloseStdin, start);
        assert_eq!(ladder.due(true), None);
        assert_eq!(
            steps(&mut ladder, start, false),
            [(Step::Term, 3), (Step::Kill, 10), (Step::Kill, 11)]
        );
    }

    #[test]
    fn a_kill_is_repeated_whoever_is_there() {
        let (mut ladder, start) = ladder();
        ladder.order(Step::Kill, start);
        assert_eq!(steps(&mut ladder, start, true), [(Step::Kill, 1), (Step::Kill, 2)]);
    }

    #[test]
    fn what_an_agent_leaves_that_ended_by_itself_is_not_asked_twice() {
        let (mut ladder, start) = ladder();
        ladder.cut_off(start);
        ladder.leader_ended(start);
        let expected = [(Step::Term, 0), (Step::Kill, 1), (Step::Kill, 2)];
        assert_eq!(steps(&mut ladder, start, true), expected);
    }

    #[test]
    fn an_agent_that_ends_because_it_was_told_to_leaves_the_pace_to_who_told_it() {
        let (mut ladder, start) = ladder();
        ladder.order(Step::CloseStdin, start);
        ladder.leader_ended(start + SECOND);
        assert_eq!(ladder.due(true), None);
        assert_eq!(ladder.due(false), Some(start + 3 * SECOND));
    }

    #[test]
    fn an_agent_that_nobody_can_talk_with_is_ended() {
        let (mut ladder, start) = ladder();
        ladder.cut_off(start);
        ladder.cut_off(start + SECOND);
        let expected = [(Step::Term, 2), (Step::Kill, 4), (Step::Kill, 5)];
        assert_eq!(steps(&mut ladder, start, true), expected);
    }
}
