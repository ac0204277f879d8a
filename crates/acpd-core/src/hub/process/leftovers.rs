//! Processes of the last run that survive SIGKILL block the next start until they exit or the user
//! forces it; so does a process of the last daemon that does not answer (`recover.rs`).
//!
//! ```text
//!  SIGKILL ── again and again ─▶ looked at ── processes remain ─▶ told: a waiting client is refused
//!     │                                                            │ `agent restart` with `force`
//!     └──────── tree gone ─▶ start, as ever                        └─▶ left behind ─▶ start
//! ```
//!
//! Such a process hangs in the kernel, mostly on a disk or a network that does not answer. It has got its
//! SIGKILL, so it never runs again (one whose shim cannot be reached gets it then, also when it was left behind); but
//! it may hold locks and ports. So the next process of this agent
//! waits for it, as long as no person says otherwise. Other agents do not.

use acpd_api::Reason;

use crate::fault::{Fault, about_agent};
use crate::hub::Hub;
use crate::ids::{HostId, SlotId};
use crate::input::{Batch, Effect, LeftProcess};
use crate::process::slot::{Host, Slot, Stage, State};

/// Number of SIGKILLs after which acpd looks for the remaining processes.
const LOOK_EVERY: u32 = 5;

const HANGS: &str = "it hangs in the kernel, mostly on a disk or a network that does not answer, and is \
                     waited for";
/// Processes that are named.
const NAMED: usize = 3;

impl Hub {
    /// A process was sent SIGKILL once more.
    pub(crate) fn count_kill(&mut self, id: SlotId, out: &mut Batch) {
        let Some(host) = self.slot_mut(id).host_mut() else { return };
        host.kills += 1;
        if host.kills % LOOK_EVERY == 0 {
            out.effects.push(Effect::FindLeftovers { host: host.id });
        }
    }

    pub(crate) fn on_leftovers_found(
        &mut self,
        host: HostId,
        left: &[LeftProcess],
        out: &mut Batch,
    ) {
        let Some(id) = self.processes.slot_of(host) else { return };
        let agent = &self.processes[&id];
        let is_killed = matches!(agent.state, State::Stopping { stage: Stage::Kill, .. });
        let told = told(left);
        if !is_killed || agent.leftovers() == Some(&told) {
            return;
        }
        if agent.host().is_some_and(|host| host.exited.is_none()) {
            // The process got SIGKILL and sends nothing any longer, so no request waits for it.
            self.on_host_exited(host, "was killed (SIGKILL)", "", out);
        }
        if let Some(host) = self.slot_mut(id).host_mut() {
            host.leftovers = Some(told);
        }
        self.tell_agent_state(id, out);
        self.log_failure(id, None, "what is left of its last run does not end", None, out);
        // Prompts need not wait for processes whose end is unknown.
        self.fail_waiters(id, Reason::AgentLeftovers, out);
        self.check_stopped(out);
    }

    /// Refuses what would have to wait for a process that only a person ends: for what is left of the last
    /// run, or for one of the last daemon that does not answer.
    pub(crate) fn may_start(&self, id: SlotId) -> Result<(), Fault> {
        let agent = &self.processes[&id];
        let reason = match agent.host() {
            Some(Host { leftovers: Some(_), .. }) => Reason::AgentLeftovers,
            Some(Host { overdue: true, .. }) => Reason::AgentTimeout,
            _ => return Ok(()),
        };
        let why = agent.api_reason().unwrap_or_default();
        let fault = Fault::new(reason, about_agent(&agent.profile, &why));
        Err(fault.hint(self.held_back_hint(id).unwrap_or_default()))
    }

    /// Advice for the user about such a process.
    pub(crate) fn held_back_hint(&self, id: SlotId) -> Option<String> {
        let Slot { profile, .. } = &self.processes[&id];
        match self.processes[&id].host()? {
            Host { leftovers: Some(_), .. } => Some(format!(
                "{HANGS}; `acpctl agent restart {profile} --force` starts the agent beside it"
            )),
            Host { overdue: true, .. } => Some(format!(
                "it is waited for; `acpctl agent restart {profile}` ends it and starts the agent again"
            )),
            _ => None,
        }
    }

    /// A person does not want to wait for what is left of the last run of an agent: it is as if it were
    /// gone. Returns whether there was something.
    pub(crate) fn leave_behind(&mut self, id: SlotId, out: &mut Batch) -> bool {
        let agent = &self.processes[&id];
        let Some(host) = agent.host().filter(|host| host.leftovers.is_some()) else {
            return false;
        };
        self.on_host_gone(host.id, out);
        true
    }

    /// The error for who waits for the end of the daemon, if nothing is left but what does not end.
    pub(crate) fn only_leftovers(&self) -> Option<Fault> {
        let mut slots = self.processes.with_process();
        let agent = slots.next()?;
        let left = agent.leftovers()?;
        if slots.any(|slot| slot.leftovers().is_none()) {
            return None;
        }
        let text = format!("agent `{}`: {left}; acpd ends without it", agent.profile);
        let hint = format!("{HANGS}, also by the next acpd");
        Some(Fault::new(Reason::AgentLeftovers, text).hint(hint))
    }
}

/// Returns the remaining processes in words. Their names are their own.
fn told(left: &[LeftProcess]) -> String {
    let named = left.iter().take(NAMED).map(|process| {
        let name: String = process.name.chars().filter(|c| !c.is_control()).collect();
        if name.is_empty() {
            process.pid.to_string()
        } else {
            format!("{} (`{name}`)", process.pid)
        }
    });
    let named = named.collect::<Vec<_>>().join(", ");
    match left.len() {
        0 => "something of its last run does not end".to_owned(),
        1 => format!("process {named} of its last run does not end"),
        count if count > NAMED => {
            format!("processes {named} and {} more of its last run do not end", count - NAMED)
        }
        _ => format!("processes {named} of its last run do not end"),
    }
}
