//! Reasons why an agent has no process, and advice for the user.

use acp_wire::code;
use acpd_api::{Reason, Untrusted};

use crate::auth::login_hint;
use crate::fault::{Fault, about_agent};
use crate::ids::SlotId;
use crate::process::leftovers::HANGS;
use crate::process::slot::{Host, Slot, State};
use crate::process::table::Processes;
use crate::profile::Config;
use crate::record::Desired;

impl Processes {
    pub(crate) fn fault(&self, id: SlotId, reason: Reason, config: &Config) -> Fault {
        if let Err(fault) = self.may_start(id) {
            return fault;
        }
        let slot = &self[&id];
        let what = slot.reason.as_deref().unwrap_or("it failed");
        if slot.state == State::Failed(Reason::NeedsLogin) {
            return self.login_fault(id, what);
        }
        let fault = Fault::new(reason, about_agent(&slot.profile, what));
        fault.stderr(&slot.stderr).hint(self.hint(id, config))
    }

    pub(crate) fn login_fault(&self, id: SlotId, message: &str) -> Fault {
        Fault::new(Reason::NeedsLogin, message.to_owned())
            .with_code(code::AUTH_REQUIRED)
            .hint(login_hint(&self[&id].profile))
    }

    pub(crate) fn way_out(&self, id: SlotId, config: &Config) -> Option<Untrusted> {
        let slot = &self[&id];
        let name = &slot.profile;
        let is_down = self.known(name).row.desired == Desired::Down;
        match slot.state {
            State::Stopping { .. } | State::Ready => self.may_start(id).err()?.data.hint,
            // The login has its own advice.
            State::NeedsAuth | State::Failed(Reason::NeedsLogin) => None,
            State::Failed(_) => Some(self.hint(id, config).into()),
            State::Stopped if is_down => {
                Some(format!("`acpctl agent start {name}` starts it").into())
            }
            // These states end by themselves or with a prompt.
            State::Stopped
            | State::Queued
            | State::Starting
            | State::Initializing
            | State::Backoff => None,
        }
    }

    pub(crate) fn hint(&self, id: SlotId, config: &Config) -> String {
        let Slot { profile: name, state, start_hint, .. } = &self[&id];
        let hint = start_hint
            .clone()
            .unwrap_or_else(|| format!("its output is in `{}`", self.profile(id, config).log));
        match state {
            State::Failed(_) => {
                format!("{hint}; the next prompt or `acpctl agent start {name}` tries again")
            }
            _ => hint,
        }
    }

    /// Refuses requests that only the user can unblock: leftovers of the last run, or an
    /// unresponsive process of the last daemon.
    pub(crate) fn may_start(&self, id: SlotId) -> Result<(), Fault> {
        let slot = &self[&id];
        let profile = &slot.profile;
        let (reason, hint) = match slot.host() {
            Some(Host { leftovers: Some(_), .. }) => (
                Reason::AgentLeftovers,
                format!(
                    "{HANGS}; `acpctl agent restart {profile} --force` starts the agent beside it"
                ),
            ),
            Some(Host { overdue: true, .. }) => (
                Reason::AgentTimeout,
                format!(
                    "it is waited for; `acpctl agent restart {profile}` ends it and starts the agent again"
                ),
            ),
            _ => return Ok(()),
        };
        let why = slot.api_reason().unwrap_or_default();
        Err(Fault::new(reason, about_agent(profile, &why)).hint(hint))
    }
}
