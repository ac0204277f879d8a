//! Sessions that wait for their restore, and restores in progress.

use serde_json::value::RawValue;

use crate::cx::Cx;
use crate::ids::SessionKey;
use crate::session::restore::{Restore, current_mode, settings, values_of};
use crate::session::table::Sessions;
use crate::session::{Session, State};

/// Sessions without waiting clients that a process restores at once.
const AT_ONCE: usize = 4;

impl Sessions {
    pub(crate) fn restore_mut(&mut self, key: SessionKey) -> Option<&mut Restore> {
        match &mut self.get_mut(key)?.state {
            State::Restoring(restore) => Some(restore),
            State::Live | State::Dormant => None,
        }
    }

    /// Settings that the result does not show in force will be set again.
    pub(crate) fn take_restored_values(&mut self, cx: &mut Cx, key: SessionKey, result: &RawValue) {
        let (modes, options) = values_of(result);
        self.take_values(cx, key, modes, options, false);
        let Some(restore) = self.restore_mut(key) else { return };
        restore.settings = settings(&restore.options, restore.mode.as_deref(), options, modes);
        restore.shown_mode = modes.and_then(current_mode);
        restore.shown_options = options.map(ToOwned::to_owned);
    }

    pub(crate) fn may_restore(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        let others = self.restoring(session.slot).map(|other| self.session(other));
        let others: Vec<&Session> = others.collect();
        if session.is_restored_alone() || others.iter().any(|other| other.is_restored_alone()) {
            return others.is_empty();
        }
        let is_free = others.len() < AT_ONCE && !others.iter().any(|other| other.is_awaited());
        is_free || session.is_awaited()
    }

    /// Returns whether later sessions must wait: a client waits for this one, which must be
    /// restored alone and would never be otherwise.
    pub(crate) fn keeps_places(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        let waits = matches!(session.state, State::Dormant) && self.wants_host(key);
        waits && session.is_awaited() && session.is_restored_alone() && !self.may_restore(key)
    }
}
