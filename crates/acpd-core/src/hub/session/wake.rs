//! Continuing a session: restoring it, or giving its waiting work to the agent.

use std::mem::take;

use crate::clients::Asked;
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::input::Effect;
use crate::process::slot::{Asker, WaitFor, Waiting};
use crate::session::restore::Restore;
use crate::session::{Relayed, State};
use crate::timers::Timer;

impl Hub {
    pub(crate) fn wake_session(&mut self, key: SessionKey) {
        if !self.sessions.contains_key(&key) {
            return;
        }
        match self.session(key).state {
            State::Live => {
                let slot = self.session(key).slot;
                if !self.processes[&slot].is_up() {
                    // The process is stopping: the next one continues, or the work is refused.
                    return;
                }
                // First, because a mode that was set before a prompt counts for it.
                for Relayed { to, method, line } in take(&mut self.session_mut(key).waiting) {
                    if method != "session/fork" {
                        self.relay(slot, Some(key), Relayed { to, method, line });
                        continue;
                    }
                    match self.ready_to_fork(key, &to, &line) {
                        Ok(new) => {
                            self.serve_waiting(slot, Waiting::new(to, WaitFor::New(new)));
                        }
                        Err(fault) => self.refuse(&to, &fault),
                    }
                }
                self.dispatch_next(key);
            }
            State::Restoring(_) => {}
            State::Dormant => {
                let session = self.session(key);
                let (slot, row) = (session.slot, &session.row);
                let free = self.processes[&slot].is_up() && !self.works_on(slot, &row.agent_id);
                if !(free && session.wants_host() && self.sessions.may_restore(key)) {
                    return;
                }
                let (agent, cwd) = (row.agent.clone(), row.cwd.clone());
                let question = self.cx.ids.issue();
                let restore = Restore::new(question, &self.session(key).row, self.cx.now);
                self.session_mut(key).state = State::Restoring(Box::new(restore));
                self.sessions.restore_begins(key);
                self.tell_state(key);
                let timeout = self.profile_of(slot).restore_timeout;
                self.cx.timers.set(Timer::Restore(key), self.cx.now.after(timeout));
                self.cx.send(Effect::FindDirectory { question, agent, cwd });
            }
        }
    }

    /// Takes a session out of the archive and restores it, or refuses its waiting work.
    pub(crate) fn need_session(&mut self, key: SessionKey, asker: Asker) {
        self.set_archived(key, false);
        let slot = self.session(key).slot;
        let needed = match self.session(key).state {
            State::Dormant => self.need_agent(slot, asker),
            State::Live | State::Restoring(_) => self.processes.may_start(slot),
        };
        if let Err(fault) = needed {
            self.session_mut(key).eager = false;
            return self.fail_queue(key, &fault);
        }
        self.wake_session(key);
    }

    /// Keeps a request about a session until the agent can be asked.
    pub(crate) fn relay_later(&mut self, asked: Asked<'_>, key: SessionKey) {
        let (to, method, line) = (asked.to.clone(), asked.method.to_owned(), asked.line.clone());
        self.session_mut(key).waiting.push(Relayed { to, method, line });
        self.need_session(key, Asker::Person);
    }
}
