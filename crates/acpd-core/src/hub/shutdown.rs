//! The end of the daemon: its agents first, then itself. Called for `daemon stop`, for signals and
//! whenever a process is gone; how far it is, [`crate::shutdown`] knows.

use std::collections::BTreeSet;

use acp_wire::{ErrorObject, build};
use acpd_api::{Empty, Environment, Reason, method};

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::Requester;
use crate::input::{Effect, ToClient};

impl Hub {
    /// That it does not go down.
    pub(crate) fn check_stays(&self) -> Result<(), Fault> {
        if !self.shutdown.is_begun() {
            return Ok(());
        }
        Err(Fault::new(Reason::ShuttingDown, "acpd is shutting down").hint(
            "the next command starts it when it has ended; `acpctl daemon stop` again does not \
             wait for its agents",
        ))
    }

    /// The reason why a requested restart is obsolete: the daemon was stopped since.
    pub fn refuses_restart(&self) -> Option<ErrorObject> {
        self.check_stays().err().map(|fault| fault.object())
    }

    /// Ends the daemon alone. The next one, if there is to be one, gets these variables.
    pub(crate) fn leave(&mut self, to: &Requester, restart: Option<Environment>) {
        self.clients.close_request(to);
        self.cx.send(Effect::Leave { client: to.client, id: to.id.clone(), restart });
    }

    /// Tells the clients that come back by themselves, and those that watch, that a person has stopped the daemon:
    /// they start no other one.
    pub(crate) fn goodbyes(&self) -> impl Iterator<Item = Effect> + use<> {
        let line = build::notification(method::DAEMON_STOPPED, &Empty {});
        let all: BTreeSet<_> = self.clients.present().chain(self.watch.clients()).collect();
        all.into_iter().map(move |client| Effect::Client(client, ToClient::Line(line.clone())))
    }

    /// During a shutdown: whether everything is gone.
    pub(crate) fn check_stopped(&mut self) {
        if !self.shutdown.is_ending() {
            return;
        }
        let (end, fault) = match self.processes.only_leftovers() {
            Some(fault) => (Effect::Abort, Some(fault)),
            None if self.processes.with_process().next().is_none() => (Effect::Exit, None),
            None => return,
        };
        let farewell = self.shutdown.end();
        for to in farewell.watchers {
            match &fault {
                Some(fault) => self.refuse(&to, fault),
                None => self.answer(&to, &Empty {}),
            }
        }
        if farewell.for_good {
            let goodbyes = self.goodbyes();
            self.cx.send_all(goodbyes);
        }
        self.cx.send(end);
    }
}
