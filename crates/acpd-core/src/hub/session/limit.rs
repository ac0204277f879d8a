//! Usage limits of agents, with `on_limit = "wait"`.
//!
//! ```text
//!  turn refused, with the time ─▶ a prompt of acpd's own is in the queue, held until then
//!                                   ├─ the limit is over ──────────────▶ given to the agent, once
//!                                   └─ the user prompts, or cancels ───▶ taken back
//! ```
//!
//! The held prompt is a queued turn, so it is on disk and in the next daemon. It asks the agent to
//! find out what is done of the last request and to finish it: the user's prompt is never repeated.

use acp_wire::ErrorObject;

use crate::hub::Hub;
use crate::ids::{SessionKey, duration};
use crate::process::slot::Asker;
use crate::profile::OnLimit;
use crate::session::limit::{Held, over};
use crate::timers::Timer;

const MAX_WAITS: u64 = 5;

impl Hub {
    /// `waits`: earlier waits in a row.
    pub(crate) fn wait_for_limit(&mut self, key: SessionKey, error: &ErrorObject, waits: u64) {
        let session = self.session(key);
        let is_wanted = self.profile_of(session.slot).on_limit == OnLimit::Wait;
        let is_free = session.queue.is_empty() && session.running.is_none();
        let Some(until) = over(error, session.limit, self.cx.now).filter(|_| is_wanted && is_free)
        else {
            return;
        };
        if waits >= MAX_WAITS {
            let text = format!("acpd has waited for {MAX_WAITS} usage limits in a row and stops");
            return self.notice(key, "warning", &text);
        }
        self.queue_continue(key, Some(Held { until, waits: waits + 1 }));
        self.cx.timers.set(Timer::Limit(key), until);
        let time = duration(until.0.saturating_sub(self.cx.now.0));
        let text = format!(
            "the agent's usage limit is reached; acpd has it continue in {time} (`on_limit = \"wait\"`), \
             unless you cancel or prompt before"
        );
        self.notice(key, "warning", &text);
    }

    pub(crate) fn on_limit_timer(&mut self, key: SessionKey) {
        if self.session(key).held().is_some() {
            self.need_session(key, Asker::Policy);
        }
    }
}
