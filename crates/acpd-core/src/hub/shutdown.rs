//! The end of the daemon, called for `daemon stop`, for signals and when a process is gone.

use std::collections::BTreeSet;

use acp_wire::{ErrorObject, build};
use acpd_api::{Empty, Environment, Reason, method};

use crate::event::EngineEvent;
use crate::hub::Hub;
use crate::ids::Requester;
use crate::input::{Effect, ToClient};
use crate::process::slot::StopWhy;

impl Hub {
    /// Returns an error if the daemon was stopped after a restart was requested.
    pub fn refuses_restart(&self) -> Option<ErrorObject> {
        self.check_stays().err().map(|fault| fault.object())
    }

    /// Lets no record wait, because the daemon ends.
    pub fn write_all(&mut self) {
        self.cx.pressing = true;
    }

    /// Ends the daemon without its agents. A restart gets this environment.
    pub(crate) fn leave(&mut self, to: &Requester, restart: Option<Environment>) {
        self.clients.close_request(to);
        self.cx.send(Effect::Leave { client: to.client, id: to.id.clone(), restart });
    }

    /// Tells watchers and reconnecting clients not to start a daemon: the user has stopped it.
    pub(crate) fn goodbyes(&self) -> impl Iterator<Item = Effect> + use<> {
        let line = build::notification(method::DAEMON_STOPPED, &Empty {});
        let all: BTreeSet<_> = self.clients.present().chain(self.watch.clients()).collect();
        all.into_iter().map(move |client| Effect::Client(client, ToClient::Line(line.clone())))
    }

    pub(crate) fn check_stopped(&mut self) {
        if !self.cx.shutdown.is_ending() {
            return;
        }
        let (end, fault) = match self.processes.only_leftovers() {
            Some(fault) => (Effect::Abort, Some(fault)),
            None if self.processes.with_process().next().is_none() => (Effect::Exit, None),
            None => return,
        };
        for to in self.cx.shutdown.end() {
            match &fault {
                Some(fault) => self.refuse(&to, fault),
                None => self.answer(&to, &Empty {}),
            }
        }
        if self.cx.shutdown.for_good {
            let goodbyes = self.goodbyes();
            self.cx.send_all(goodbyes);
        }
        self.cx.send(end);
    }

    /// Does not wait for agents on the second request, or while the journal cannot be written.
    pub(crate) fn begin_shutdown(&mut self) {
        if self.cx.is_failing() || self.cx.shutdown.is_ending() {
            for to in self.cx.shutdown.end() {
                if self.clients.close_request(&to) {
                    let line = build::response(&to.id, &Empty {});
                    self.cx.out.urgent.push(Effect::Client(to.client, ToClient::Line(line)));
                }
            }
            if self.cx.shutdown.for_good {
                let goodbyes = self.goodbyes();
                self.cx.out.urgent.extend(goodbyes);
            }
            self.cx.out.urgent.push(Effect::Abort);
            return;
        }
        if !self.cx.shutdown.is_begun() {
            self.cx.shutdown.begin();
            for slot in self.processes.keys().copied().collect::<Vec<_>>() {
                self.begin_stop(slot, StopWhy::ByPerson, "acpd is shutting down");
                if self.processes[&slot].host().is_none() {
                    self.processes.refuse_waiters(&mut self.cx, slot, Reason::ShuttingDown, true);
                }
            }
        }
        self.cx.report(EngineEvent::EndPossible);
    }
}
