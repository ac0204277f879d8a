//! Sessions whose process is gone. A turn that was cut off continues if the configuration says so.

use acpd_api::Reason;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::profile::OnInterrupted;
use crate::record::{Dormant, EventKind};
use crate::session::State;
use crate::timers::Timer;

impl Hub {
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
        let goes_on = self.should_continue(key);
        self.interrupt_turn(key, fault);
        if goes_on {
            self.ask_to_continue(key);
        }
        let again = self.processes.restarts_by_itself(self.session(key).slot, &self.cx.config);
        // Work that waits for fresh credentials continues with the next process.
        if !self.processes[&self.session(key).slot].is_renewed() {
            self.refuse_relayed(key, fault);
        }
        let session = self.session_mut(key);
        // A session that owes a summary starts over with a prompt only.
        session.eager = again && (was_live || session.eager) && !session.owes_summary();
        if self.sessions.waits_for_login(key) {
            // The restore would be refused again.
            let reason = self.session(key).row.reason.clone();
            return self.make_dormant(key, Dormant::NeedsLogin, reason);
        }
        self.make_dormant(key, Dormant::Parked, Some(fault.message.clone()));
    }

    /// After an orderly end, the next process restores the session.
    fn wait_in_vain(&mut self, key: SessionKey) {
        let slot = self.session(key).slot;
        if self.processes.has_failed(slot)
            && !self.processes.restarts_by_itself(slot, &self.cx.config)
        {
            self.session_mut(key).eager = false;
        }
    }

    fn should_continue(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        let on = self.profile_of(session.slot).on_interrupted == OnInterrupted::Continue;
        let Some(running) = session.running.as_ref().filter(|_| on) else { return false };
        // Asked only once. A turn that the user has cancelled or followed up, or that the agent may
        // not have read, is left to the user, too.
        let by_itself = !running.work.is_cancelled() && !running.continues;
        by_itself
            && session.queue.is_empty()
            && !self.processes.is_undecided(session.slot, running.chunk)
            && self.processes.restarts_by_itself(session.slot, &self.cx.config)
    }

    pub(crate) fn ask_to_continue(&mut self, key: SessionKey) {
        self.queue_continue(key, None);
        let text = "acpd asks the agent to continue (`on_interrupted = \"continue\"`)";
        self.notice(key, "info", text);
    }

    /// Counts a restore during which the agent ended, although its run was no failure. Else a
    /// session that always ends its agent would restart it for ever. Of several restores at once,
    /// only some may be at fault, so none is given up before it failed alone.
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
