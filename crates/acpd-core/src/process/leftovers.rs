//! Processes of the last run that survive SIGKILL block the next start until they exit or the user
//! forces it. An unresponsive process of the last daemon does the same.
//!
//! ```text
//!  SIGKILL ── repeated ─▶ acpd looks ── processes remain ─▶ waiting clients are refused
//!     │                                                        │ `agent restart` with `force`
//!     └──────── tree gone ─▶ normal start                      └─▶ left behind ─▶ start
//! ```
//!
//! Such a process hangs in the kernel, mostly on a disk or a network that does not answer. It never
//! runs again, because SIGKILL is pending (a process whose shim was unreachable gets it later, even
//! after it was left behind). But it may hold locks and ports, so the agent's next process waits
//! unless the user decides otherwise. Other agents do not wait.

use acpd_api::Reason;

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::ids::{HostId, SlotId};
use crate::input::{Effect, LeftProcess, StopStep};
use crate::process::slot::State;
use crate::process::table::Processes;

pub(crate) const HANGS: &str = "it hangs in the kernel, mostly on a disk or a network that does not answer, and is \
                     waited for";
const NAMED: usize = 3;

impl Processes {
    pub(crate) fn on_leftovers(&mut self, cx: &mut Cx, host: HostId, left: &[LeftProcess]) {
        let Some(id) = self.slot_of(host) else { return };
        let slot = &self[&id];
        let is_killed = matches!(slot.state, State::Stopping { step: Some(StopStep::Kill), .. });
        let leftovers = described(left);
        if !is_killed || slot.leftovers() == Some(&leftovers) {
            return;
        }
        if slot.host().is_some_and(|host| host.exited.is_none()) {
            // A killed process sends nothing, so no request waits for it.
            self.on_exited(cx, host, "was killed (SIGKILL)", "");
        }
        if let Some(host) = self.slot_mut(id).host_mut() {
            host.leftovers = Some(leftovers);
        }
        self.notify_state(cx, id);
        cx.send_behind(Effect::Failure {
            agent: self[&id].profile.clone(),
            session: None,
            what: "what is left of its last run does not end".to_owned(),
            code: None,
        });
        // Prompts need not wait for processes whose end is unknown.
        self.refuse_waiters(cx, id, Reason::AgentLeftovers, false);
        cx.report(EngineEvent::EndPossible);
    }

    /// The user does not want to wait. Returns whether there were leftovers.
    pub(crate) fn leave_behind(&mut self, cx: &mut Cx, id: SlotId) -> bool {
        let host = self[&id].host().filter(|host| host.leftovers.is_some()).map(|host| host.id);
        let Some(host) = host else { return false };
        self.on_gone(cx, host);
        true
    }

    /// Returns an error for clients that wait for the daemon's end, if only leftovers remain.
    pub(crate) fn only_leftovers(&self) -> Option<Fault> {
        let mut slots = self.with_process();
        let slot = slots.next()?;
        let left = slot.leftovers()?;
        if slots.any(|slot| slot.leftovers().is_none()) {
            return None;
        }
        let text = format!("agent `{}`: {left}; acpd ends without it", slot.profile);
        let hint = format!("{HANGS}, also by the next acpd");
        Some(Fault::new(Reason::AgentLeftovers, text).hint(hint))
    }
}

/// The names of processes come from outside.
fn described(left: &[LeftProcess]) -> String {
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
        2..=NAMED => format!("processes {named} of its last run do not end"),
        count => format!("processes {named} and {} more of its last run do not end", count - NAMED),
    }
}
