//! What is left of an agent's last run and does not end, not even by SIGKILL.
//!
//! ```text
//!  SIGKILL ── again and again ─▶ looked at ── somebody is left ─▶ told: who waits is refused
//!     │                                                            │ `agent restart` with `force`
//!     └──────── tree gone ─▶ start, as ever                        └─▶ left behind ─▶ start
//! ```
//!
//! Such a process hangs in the kernel, mostly on a disk or a network that does not answer. It has got its
//! SIGKILL, so it never runs again; but it may hold locks and ports. So the next process of this agent
//! waits for it, as long as no person says otherwise. Other agents do not.

use acpd_api::Reason;

use crate::agent::{Agent, AgentId, Stage, State};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::HostId;
use crate::input::{Batch, Effect, LeftProcess};

/// After so many times of SIGKILL it is looked who is left, and again after as many.
const LOOK_EVERY: u32 = 5;
/// What it means.
const HANGS: &str = "it hangs in the kernel, mostly on a disk or a network that does not answer, and is \
                     waited for";
/// Processes that are named.
const NAMED: usize = 3;

impl Agent {
    /// Who is left of its last run and does not end, as far as it is known.
    pub(crate) fn leftovers(&self) -> Option<&str> {
        self.host.as_ref()?.leftovers.as_deref()
    }
}

impl Hub {
    /// A process was sent SIGKILL once more.
    pub(crate) fn count_kill(&mut self, id: AgentId, out: &mut Batch) {
        let Some(host) = self.agent_mut(id).host.as_mut() else { return };
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
        let Some(&id) = self.hosts.get(&host) else { return };
        let is_killed =
            matches!(self.agents[&id].state, State::Stopping { stage: Stage::Kill, .. });
        let told = Some(told(left));
        let Some(known) = self.agent_mut(id).host.as_mut().filter(|_| is_killed) else { return };
        if known.leftovers == told {
            return;
        }
        known.leftovers = told;
        self.tell_agent_state(id, out);
        self.log_failure(id, None, "what is left of its last run does not end", None, out);
        // They need not wait for what no one knows the end of.
        self.fail_waiters(id, Reason::AgentLeftovers, out);
        self.check_stopped(out);
    }

    /// Refuses what would have to wait for what is left of the last run.
    pub(crate) fn may_start(&self, id: AgentId) -> Result<(), Fault> {
        let agent = &self.agents[&id];
        let Some(left) = agent.leftovers() else { return Ok(()) };
        let text = format!("agent `{}`: {left}", agent.profile);
        Err(Fault::new(Reason::AgentLeftovers, text).hint(self.leftovers_hint(id)))
    }

    /// What a person can do about it.
    pub(crate) fn leftovers_hint(&self, id: AgentId) -> String {
        format!(
            "{HANGS}; `acpctl agent restart {} --force` starts the agent beside it",
            self.agents[&id].profile
        )
    }

    /// A person does not want to wait for what is left of the last run of an agent: it is as if it were
    /// gone. Returns whether there was something.
    pub(crate) fn leave_behind(&mut self, id: AgentId, out: &mut Batch) -> bool {
        let agent = &self.agents[&id];
        let Some(host) = agent.host.as_ref().filter(|host| host.leftovers.is_some()) else {
            return false;
        };
        self.on_host_gone(host.id, out);
        true
    }

    /// The error for who waits for the end of the daemon, if nothing is left but what does not end.
    pub(crate) fn only_leftovers(&self) -> Option<Fault> {
        let mut slots = self.hosts.values();
        let first = *slots.next()?;
        if self.may_start(first).is_ok() || slots.any(|slot| self.may_start(*slot).is_ok()) {
            return None;
        }
        let agent = &self.agents[&first];
        let left = agent.leftovers().unwrap_or_default();
        let text = format!("agent `{}`: {left}; acpd ends without it", agent.profile);
        let hint = format!("{HANGS}, also by the next acpd");
        Some(Fault::new(Reason::AgentLeftovers, text).hint(hint))
    }
}

/// Who is left, in words. A process calls itself as it likes.
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
