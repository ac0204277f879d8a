//! State of the journal. The hub asks before it begins anything that must be written.

use acpd_api::{Reason, StoreState};

use crate::fault::Fault;
use crate::ids::Time;

#[derive(Debug, Default)]
pub(crate) struct StoreHealth {
    state: StoreState,
}

impl StoreHealth {
    pub(crate) fn is_failing(&self) -> bool {
        self.state != StoreState::Ok
    }

    pub(crate) fn works(&mut self) {
        self.state = StoreState::Ok;
    }

    /// Records a failure. Repeated failures keep the first time.
    pub(crate) fn fails(&mut self, now: Time, reason: String, hint: Option<String>) {
        let since = match self.state {
            StoreState::Failing { since, .. } => since,
            StoreState::Ok => now.0,
        };
        let (reason, hint) = (reason.into(), hint.map(Into::into));
        self.state = StoreState::Failing { reason, hint, since };
    }

    pub(crate) fn state(&self) -> StoreState {
        self.state.clone()
    }

    pub(crate) fn fault(&self) -> Option<Fault> {
        let StoreState::Failing { reason, hint, .. } = &self.state else { return None };
        let text = format!("the journal cannot be written: {}", reason.raw());
        let mut fault = Fault::new(Reason::StoreFailed, text);
        fault.data.hint.clone_from(hint);
        Some(fault)
    }
}
