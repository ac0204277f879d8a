//! The stop of an agent: a connected daemon orders each step; without one the shim takes the steps.

use std::time::{Duration, Instant};

use acpd_sys::ladder::{Ladder, Patience, Step};

use crate::launch::LadderTimes;

/// Time for an agent with closed stdin or stdout until SIGTERM, and from there until SIGKILL.
const CUT_OFF: Duration = Duration::from_secs(2);
/// Time after which SIGKILL is sent again.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Stop {
    times: LadderTimes,
    /// `None` before the stop begins.
    ladder: Option<Ladder>,
    /// The shim takes the steps even with a daemon.
    own: bool,
    /// A daemon or the end of the lease caused the stop.
    asked: bool,
}

impl Stop {
    pub(crate) fn new(times: LadderTimes) -> Stop {
        Stop { times, ladder: None, own: false, asked: false }
    }

    fn ladder(&self, term: Duration, first: Step, at: Instant) -> Ladder {
        Ladder::new(Patience { eof: self.times.eof, term, kill: AGAIN }, first, at)
    }

    /// Records a step that the daemon ordered. The daemon orders the next ones too, unless it is
    /// lost.
    pub(crate) fn order(&mut self, step: Step, now: Instant) {
        self.asked = true;
        self.own |= step == Step::Kill;
        let new = self.ladder(self.times.term, step, now);
        self.ladder.get_or_insert(new).taken(step, now);
    }

    /// Begins a stop, or continues it without a daemon.
    pub(crate) fn run(&mut self, now: Instant) {
        self.asked = true;
        self.own = true;
        let new = self.ladder(self.times.term, Step::CloseStdin, now);
        self.ladder.get_or_insert(new);
    }

    /// The agent has closed its stdin or stdout without exiting.
    pub(crate) fn cut_off(&mut self, now: Instant) {
        if self.ladder.is_none() {
            self.own = true;
            self.ladder = Some(self.ladder(CUT_OFF, Step::Term, now + CUT_OFF));
        }
    }

    /// Without an ordered stop, the remaining processes get SIGTERM at once.
    pub(crate) fn leader_ended(&mut self, now: Instant) {
        if !self.asked {
            self.own = true;
            self.ladder = Some(self.ladder(self.times.leftovers, Step::Term, now));
        }
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.ladder.is_some()
    }

    pub(crate) fn due(&self, linked: bool) -> Option<Instant> {
        self.ladder.as_ref().filter(|_| self.own || !linked).map(Ladder::due)
    }

    pub(crate) fn step(&mut self, now: Instant, linked: bool) -> Option<Step> {
        self.due(linked)?;
        let step = self.ladder.as_mut()?.step(now)?;
        self.own |= step == Step::Kill;
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn stop() -> (Stop, Instant) {
        let times = LadderTimes { eof: 3 * SECOND, term: 7 * SECOND, leftovers: SECOND };
        (Stop::new(times), Instant::now())
    }

    /// The steps until SIGKILL was sent twice, with their seconds.
    fn steps(stop: &mut Stop, start: Instant, linked: bool) -> Vec<(Step, u64)> {
        let mut steps = Vec::new();
        while steps.iter().filter(|(step, _)| *step == Step::Kill).count() < 2
            && let Some(at) = stop.due(linked)
        {
            if let Some(before) = at.checked_sub(Duration::from_millis(1)) {
                assert_eq!(stop.step(before, linked), None);
            }
            steps.push((stop.step(at, linked).unwrap(), (at - start).as_secs()));
        }
        steps
    }

    #[test]
    fn without_a_daemon_all_steps_are_taken_in_time() {
        let (mut stop, start) = stop();
        stop.run(start);
        let expected = [(Step::CloseStdin, 0), (Step::Term, 3), (Step::Kill, 10), (Step::Kill, 11)];
        assert_eq!(steps(&mut stop, start, false), expected);
    }

    #[test]
    fn a_daemon_that_is_lost_in_the_middle_leaves_no_stop_half_done() {
        let (mut stop, start) = stop();
        stop.order(Step::CloseStdin, start);
        assert_eq!(stop.due(true), None);
        assert_eq!(
            steps(&mut stop, start, false),
            [(Step::Term, 3), (Step::Kill, 10), (Step::Kill, 11)]
        );
    }

    #[test]
    fn a_kill_is_repeated_with_a_daemon_too() {
        let (mut stop, start) = stop();
        stop.order(Step::Kill, start);
        assert_eq!(steps(&mut stop, start, true), [(Step::Kill, 1), (Step::Kill, 2)]);
    }

    #[test]
    fn what_an_agent_leaves_that_ended_by_itself_is_not_asked_twice() {
        let (mut stop, start) = stop();
        stop.cut_off(start);
        stop.leader_ended(start);
        let expected = [(Step::Term, 0), (Step::Kill, 1), (Step::Kill, 2)];
        assert_eq!(steps(&mut stop, start, true), expected);
    }

    #[test]
    fn an_agent_that_ends_because_it_was_told_to_leaves_the_pace_to_who_told_it() {
        let (mut stop, start) = stop();
        stop.order(Step::CloseStdin, start);
        stop.leader_ended(start + SECOND);
        assert_eq!(stop.due(true), None);
        assert_eq!(stop.due(false), Some(start + 3 * SECOND));
    }

    #[test]
    fn an_agent_that_closed_its_pipes_is_ended() {
        let (mut stop, start) = stop();
        stop.cut_off(start);
        stop.cut_off(start + SECOND);
        let expected = [(Step::Term, 2), (Step::Kill, 4), (Step::Kill, 5)];
        assert_eq!(steps(&mut stop, start, true), expected);
    }
}
