//! Sessions whose process is gone: what waits is wanted of the next process or refused, and a turn that was cut off is
//! continued if the configuration says so.

use acpd_api::Reason;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::profile::OnInterrupted;
use crate::record::{Dormant, EventKind};
use crate::session::State;
use crate::timers::Timer;

impl Hub {
    /// The process that held the session is gone.
    pub(crate) fn session_lost_host(&mut self, key: SessionKey, fault: &Fault) {
        let was_live = match self.session(key).state {
            State::Live => true,
            State::Restoring(_) => false,
            State::Dormant => return self.wait_in_vain(key),
        };
        self.cx.timers.clear(Timer::Restore(key));
        self.sessions.unroute(key);
        // No process is left to answer.
        self.close_questions(self.questions.of_session(key));
        let row = &self.sessions[&key].row;
        let updates = self.services.end_mirrors(&mut self.cx, row, "ended with the agent");
        for line in updates {
            self.append(key, EventKind::Update, line, None);
        }
        self.close_tools(key);
        let goes_on = self.is_to_go_on(key);
        self.interrupt_turn(key, fault);
        if goes_on {
            self.go_on(key);
        }
        let again = self.processes.restarts_by_itself(self.session(key).slot, &self.cx.config);
        // Work that waits for fresh credentials continues with them.
        if !self.processes[&self.session(key).slot].is_renewed() {
            self.refuse_relayed(key, fault);
        }
        let session = self.session_mut(key);
        // A session that starts over does so with a prompt.
        session.eager = again && (was_live || session.eager) && !session.owes_summary();
        if self.sessions.waits_for_login(key) {
            // The restore would be refused again.
            let reason = self.session(key).row.reason.clone();
            return self.make_dormant(key, Dormant::NeedsLogin, reason);
        }
        self.make_dormant(key, Dormant::Parked, Some(fault.message.clone()));
    }

    /// The process at which a session waited for a place to be restored is gone. What was wanted of the next process
    /// while this one went down in an orderly way is still wanted.
    fn wait_in_vain(&mut self, key: SessionKey) {
        let slot = self.session(key).slot;
        if self.processes.has_failed(slot)
            && !self.processes.restarts_by_itself(slot, &self.cx.config)
        {
            self.session_mut(key).eager = false;
        }
    }

    /// Returns whether to ask the agent to continue the running turn, after its process was lost.
    fn is_to_go_on(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        let on = self.profile_of(session.slot).on_interrupted == OnInterrupted::Continue;
        let Some(running) = session.running.as_ref().filter(|_| on) else { return false };
        // Asked once: what fails again is for a person. So is what a person has cancelled, or has
        // said something new about, and what the agent may not have read.
        let by_itself = !running.work.is_cancelled() && !running.continues;
        by_itself
            && session.queue.is_empty()
            && !self.processes.is_undecided(session.slot, running.chunk)
            && self.processes.restarts_by_itself(session.slot, &self.cx.config)
    }

    /// Asks the agent to continue a turn that was cut off.
    pub(crate) fn go_on(&mut self, key: SessionKey) {
        self.queue_continue(key, None);
        let text = "acpd asks the agent to continue (`on_interrupted = \"continue\"`)";
        self.notice(key, "info", text);
    }

    /// The agent has ended while it brought the session back, after a run that is no failure of its own: what does not
    /// count there counts here, else a session that an agent always ends over would have it started for ever. Of several
    /// at once one may be at fault and the others not, so none is given up before it has been alone.
    pub(crate) fn load_cut_off(&mut self, key: SessionKey, was_alone: bool) {
        let most = self.profile_of(self.session(key).slot).restart.budget;
        let session = self.session_mut(key);
        session.loads_cut_off += 1;
        let times = session.loads_cut_off;
        if was_alone && times >= most {
            session.loads_cut_off = 0;
            let text = format!("the agent has ended {times} times in a row while it loaded it");
            self.restore_failed(key, Reason::AgentCrashLoop, &text);
        }
    }
}
