//! State of the journal. The hub asks before it begins anything that must be written.

use acpd_api::{Reason, StoreState};

use crate::fault::Fault;
use crate::ids::Time;

#[derive(Debug, Default)]
pub(crate) struct StoreHealth {
    failure: Option<Failure>,
}

#[derive(Debug)]
struct Failure {
    reason: String,
    hint: Option<String>,
    since: Time,
}

impl StoreHealth {
    pub(crate) fn is_failing(&self) -> bool {
        self.failure.is_some()
    }

    pub(crate) fn works(&mut self) {
        self.failure = None;
    }

    /// Records a failure. Repeated failures keep the first time.
    pub(crate) fn fails(&mut self, now: Time, reason: String, hint: Option<String>) {
        let since = self.failure.as_ref().map_or(now, |before| before.since);
        self.failure = Some(Failure { reason, hint, since });
    }

    pub(crate) fn state(&self) -> StoreState {
        match &self.failure {
            None => StoreState::Ok,
            Some(Failure { reason, hint, since }) => StoreState::Failing {
                reason: reason.into(),
                hint: hint.as_ref().map(Into::into),
                since: since.0,
            },
        }
    }

    pub(crate) fn fault(&self) -> Option<Fault> {
        let Failure { reason, hint, .. } = self.failure.as_ref()?;
        let mut fault =
            Fault::new(Reason::StoreFailed, format!("the journal cannot be written: {reason}"));
        fault.data.hint = hint.as_ref().map(Into::into);
        Some(fault)
    }
}
