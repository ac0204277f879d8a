//! Events as inputs of the hub: from clients, agents and the store, and the check before a restart.

use std::collections::BTreeSet;

use acp_wire::{ErrorObject, Id, build};
use acpd_api::{Empty, Environment, Reason, Untrusted};
use acpd_core::ids::{ClientId, HostId};
use acpd_core::{Batch, ClientEvent, Fault, HostEvent, Input, ToClient};
use acpd_store::{Report, StoreError};
use bytes::Bytes;

use super::trace::{Peer, Way, known_part};
use super::{Relay, TaskResult};
use crate::check::{self, Tried};
use crate::clients::FromClient;
use crate::service::Pulse;

impl Relay {
    /// Shows lines, each with its length, to the clients that trace them.
    pub(super) fn trace<'a>(
        &mut self,
        peer: Peer,
        to_peer: bool,
        lines: impl IntoIterator<Item = (&'a Bytes, u64)>,
    ) {
        if self.traces.are_on() {
            let way = Way { now: self.clock.now(), peer, to_peer };
            for (line, bytes) in lines {
                self.traces.line(way, line, bytes, &self.hub, &self.sinks);
            }
        }
    }

    pub(super) fn input(&mut self, input: Input, out: &mut Batch) {
        let now = self.clock.now();
        if let Some(slept) = self.suspend.news() {
            self.hub.handle(now, Input::Slept(slept.as_millis() as u64), out);
        }
        self.hub.handle(now, input, out);
    }

    pub(super) fn client_event(&mut self, client: ClientId, news: FromClient, out: &mut Batch) {
        let event = match news {
            FromClient::Sink(sink) => return self.sinks.insert(client, sink),
            FromClient::Event(event) => event,
        };
        match &event {
            ClientEvent::Lines(lines) => {
                self.trace(Peer::Client(client), false, lines.iter().map(known_part));
            }
            ClientEvent::Drained if !self.sinks.drained(client) => return,
            ClientEvent::Closed => {
                self.sinks.remove(client);
                self.traces.end(client);
            }
            _ => {}
        }
        self.input(Input::Client(client, event), out);
    }

    pub(super) fn host_event(&mut self, host: HostId, event: HostEvent, out: &mut Batch) {
        match &event {
            HostEvent::Output(frames) => {
                let lines = frames.iter().map(|frame| known_part(&frame.body));
                self.trace(Peer::Agent(host), false, lines);
            }
            HostEvent::Refused(_) => self.hosts.refused(host),
            HostEvent::Adopted { pid, .. } => {
                tracing::info!(host = host.0, pid, "an agent of an earlier daemon still runs");
                self.opening.adopting.remove(&host);
            }
            HostEvent::Lost { reason } => {
                tracing::info!(host = host.0, reason, "an agent of an earlier daemon is lost");
                self.opening.adopting.remove(&host);
            }
            HostEvent::Exited { ending, .. } => {
                tracing::info!(host = host.0, status = ending, "an agent has ended");
                self.services.cancel(host);
            }
            HostEvent::Gone => {
                self.services.cancel(host);
                self.hosts.gone(host);
            }
            _ => {}
        }
        self.input(Input::Host(host, event), out);
    }

    pub(super) fn reported(&mut self, report: Report, pulse: &mut Pulse, out: &mut Batch) {
        // Here, because reports arrive at several places.
        pulse.beat();
        match report {
            Report::Committed { tag } => {
                self.store_works(out);
                while let Some(effects) = self.commits.next_committed(tag) {
                    self.perform_all(effects, out);
                }
            }
            Report::Failing(reason) => self.store_fails(&reason, out),
            Report::Works => self.store_works(out),
            Report::Tidied(more) => {
                self.tidied.removed += more.removed;
                self.tidied.given_back += more.given_back;
            }
        }
    }

    fn store_works(&mut self, out: &mut Batch) {
        if self.commits.works() {
            tracing::warn!("the journal can be written again");
            self.input(Input::StoreWorks, out);
        }
    }

    /// Sends errors for all requests that wait for the journal.
    fn store_fails(&mut self, reason: &StoreError, out: &mut Batch) {
        let hint = reason.hint().map(str::to_owned);
        let reason = reason.to_string();
        tracing::error!(reason, "the journal cannot be written; trying again");
        self.input(Input::StoreFailing { reason, hint }, out);
        let (mut batches, mut accepted) = self.commits.fails();
        accepted.append(&mut out.accepted);
        let mut last = std::mem::take(&mut out.effects);
        batches.push(&mut last);
        self.hub.answer_unwritten(accepted, &mut batches, out);
        last.append(&mut out.effects);
        out.effects = last;
    }

    /// Begins the check of the program for a restart.
    pub(super) fn try_program(&mut self, asker: Option<(ClientId, Id)>, brought: Environment) {
        let (exe, helpers) = (self.agents.exe.clone(), self.helpers.clone());
        self.tasks.spawn(async move {
            let result = check::try_program(&exe, &helpers, check::LIMIT).await;
            TaskResult::Tried(Tried { asker, brought, result })
        });
    }

    /// Continues a restart if the next program can start. Otherwise nothing has changed.
    pub(super) fn tried(&mut self, tried: Tried, out: &mut Batch) {
        let Tried { asker, brought, result } = tried;
        let Err(failure) = result else {
            if let Some(why) = self.hub.refuses_restart() {
                return self.refuse(asker, &why, out);
            }
            if asker.is_none() {
                self.tell_who_runs_as_before();
            }
            self.restart = Some(brought);
            return self.leave_for(asker, out);
        };
        let (reason, hint) = (failure.message, failure.hint);
        // A client gets the error. After a signal there is only the log.
        match asker {
            Some(_) => tracing::info!(reason, "the daemon does not restart"),
            None => tracing::warn!(
                reason,
                hint,
                "the daemon does not restart, and keeps the old configuration"
            ),
        }
        let mut fault = Fault::new(Reason::Other, format!("not restarted: {reason}"));
        if let Some(hint) = hint {
            fault = fault.hint(hint);
        }
        self.refuse(asker, &fault.object(), out);
    }

    /// Logs the agents that the new configuration would start in another way.
    fn tell_who_runs_as_before(&self) {
        // The next daemon's program has just read the file.
        let Some(changed) = self.agents.config_file.change(&self.agents.config) else { return };
        let running: BTreeSet<&str> =
            self.hosts.there().filter_map(|host| self.hub.agent_of(host)).collect();
        for agent in changed.agents.iter().map(Untrusted::raw).filter(|it| running.contains(it)) {
            let way = format!("acpctl agent restart {agent}");
            tracing::warn!(agent, way, "an agent runs as it was started before");
        }
    }

    fn refuse(&mut self, asker: Option<(ClientId, Id)>, why: &ErrorObject, out: &mut Batch) {
        if let Some((client, id)) = asker {
            self.send(client, ToClient::Line(build::error(&id, why)), out);
        }
    }

    pub(super) fn leave_for(&mut self, asker: Option<(ClientId, Id)>, out: &mut Batch) {
        tracing::info!(restart = self.restart.is_some(), "leaving");
        if let Some((client, id)) = asker {
            self.send(client, ToClient::Line(build::response(&id, &Empty {})), out);
        }
        self.leave();
    }
}
