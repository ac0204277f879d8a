//! Global rate limit for wrong secrets: up to `MOST` failures in a minute.
//!
//! A secret is too long to be guessed; the limit bounds the cost of attempts. A client with a token
//! is let in despite the attempts of others, so no stranger can lock it out; a code waits.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const MOST: usize = 10;
/// Time for which a failure counts.
pub(crate) const WINDOW: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(crate) struct Guesses(Mutex<VecDeque<Instant>>);

impl Guesses {
    pub(crate) fn are_too_many(&self, now: Instant) -> bool {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while failures.front().is_some_and(|first| now.duration_since(*first) >= WINDOW) {
            failures.pop_front();
        }
        failures.len() >= MOST
    }

    /// Counts a failure. Returns whether it exceeds the limit.
    pub(crate) fn count(&self, now: Instant) -> bool {
        let are_too_many = self.are_too_many(now);
        if !are_too_many {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(now);
        }
        are_too_many
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_in_a_minute_are_enough() {
        let (guesses, start) = (Guesses::default(), Instant::now());
        for second in 0..10 {
            assert!(!guesses.count(start + Duration::from_secs(second)));
        }
        assert!(guesses.count(start + Duration::from_secs(59)));
        assert!(!guesses.are_too_many(start + WINDOW));
        assert!(!guesses.count(start + WINDOW));
        assert!(guesses.count(start + WINDOW));
    }
}
