//! Executes the hub's effects: each goes to the module that handles it.

use std::collections::BTreeSet;

use acp_wire::code;
use acpd_core::ids::{ClientId, HostId};
use acpd_core::{Batch, Effect, HostEvent, Input, LeftOut, StatusPart, ToClient, ToHost};
use bytes::Bytes;

use super::trace::Peer;
use super::{End, Relay, TaskResult};
use crate::crash;
use crate::credentials::Ready;
use crate::log;
use crate::mcp::{self, Completed};

impl Relay {
    pub(super) fn perform_all(&mut self, effects: Vec<Effect>, out: &mut Batch) {
        for effect in effects {
            crash::point("between-effects");
            self.perform(effect, out);
        }
    }

    pub(super) fn perform(&mut self, effect: Effect, out: &mut Batch) {
        match effect {
            Effect::Client(client, what) => self.send(client, what, out),
            // After its queued lines.
            Effect::Close(client) => self.sinks.remove(client),
            Effect::Host(host, order) => self.tell_host(host, order, out),
            Effect::Index(session) => self.readers.index.update(session),
            Effect::Spawn { host, agent } => match self.agents.config.agent(&agent) {
                Ok(profile) if self.credentials.are_needed(profile) => {
                    let found = self.credentials.look_up(host, profile);
                    self.tasks.spawn(async { TaskResult::Ready(found.await) });
                }
                _ => self.spawn(Ready { host, agent, found: Ok(Vec::new()), left: None }, out),
            },
            Effect::Adopt(mut adopt) => {
                let host = adopt.row.host;
                let mut remade = BTreeSet::new();
                for (chunk, line) in &mut adopt.outbox {
                    if let Some(whole) = self.with_servers(host, line, out) {
                        *line = whole;
                        remade.insert(*chunk);
                    }
                }
                let running = self.agents.adopt(adopt, remade);
                self.hosts.insert(host, running);
            }
            Effect::FindLeftovers(host) => self.agents.reaper.find_left(host),
            Effect::Serve { host, request, roots, service } => {
                self.services.serve(host, request, roots, service);
            }
            Effect::FindDirectory { question, agent, cwd } => {
                self.find_directory(question, &agent, cwd, out);
            }
            Effect::Summarize { session, upto, what } => {
                self.services.summarize(self.readers.journal.clone(), session, upto, what);
            }
            Effect::Measure { look, sessions } => self.sizes.measure(look, sessions),
            Effect::CreateTerminal { terminal, new } => {
                self.terminals.create(terminal, *new, &mut self.agents);
            }
            Effect::TerminalOutput { request, terminal } => {
                self.terminals.output(request, terminal);
            }
            Effect::LookAtTerminal(terminal) => self.terminals.look(terminal),
            Effect::KillTerminal(terminal) => self.terminals.kill(terminal),
            Effect::ReleaseTerminal(terminal) => self.terminals.release(terminal),
            Effect::WatchLogin { agent, wanted } => {
                let file = self.agents.config.agent(&agent).ok();
                match file.and_then(|profile| profile.login_file.clone()).filter(|_| wanted) {
                    Some(file) => self.logins.watch(agent, file),
                    None => self.logins.unwatch(&agent),
                }
            }
            Effect::ForgetCredentials(agent) => self.credentials.forget(&agent),
            Effect::Hook { event, about } => self.hooks.run(event, about),
            Effect::Notify { title, body } => self.hooks.notify(&title, &body),
            Effect::Trace(trace) => self.traces.begin(*trace),
            // The client wants something that the agent does not have, or has cancelled its
            // request.
            Effect::Failure {
                agent,
                session,
                what,
                code: code @ Some(code::INVALID_PARAMS | code::CANCELLED),
            } => tracing::info!(agent, session, code, what, "an agent refused a request"),
            Effect::Failure { agent, session, what, code } => {
                tracing::warn!(agent, session, code, what, "an agent failed");
            }
            Effect::Expired { sessions, can_undo } => tracing::info!(
                count = sessions.len(),
                sessions = sessions.join(" "),
                can_undo,
                "deleted sessions over a limit of the configuration (`[retention]`); \
                 `acpctl session undo --all --since TIME` brings them back while they are kept"
            ),
            Effect::Leave { client, id, restart: Some(brought) } => {
                self.try_program(Some((client, id)), brought);
            }
            Effect::Leave { client, id, restart: None } => self.leave_for(Some((client, id)), out),
            Effect::Abort => self.end = Some(End::Aborted),
            Effect::Exit => self.end = self.end.or(Some(End::Done)),
        }
    }

    fn tell_host(&mut self, host: HostId, mut order: ToHost, out: &mut Batch) {
        match &mut order {
            ToHost::Write { line, .. } => {
                // Before the servers of the configuration are added, with their secrets.
                self.trace(Peer::Agent(host), true, [(&*line, line.len() as u64)]);
                if let Some(whole) = self.with_servers(host, line, out) {
                    *line = whole;
                }
            }
            ToHost::Stop(_) => self.services.cancel(host),
            ToHost::Note(text) => {
                *text = log::quote(text).to_owned();
                tracing::debug!(host = host.0, text, "an agent did something odd");
            }
            ToHost::Ack(_) | ToHost::Lease(_) | ToHost::Forget => {}
        }
        self.hosts.tell(host, order);
    }

    /// An agent with an address, or with `check_cwd = false`, may see other directories than this
    /// machine.
    pub(super) fn find_directory(
        &mut self,
        question: u64,
        agent: &str,
        cwd: String,
        out: &mut Batch,
    ) {
        let profile = self.agents.config.agents.get(agent);
        if profile.is_some_and(|profile| !profile.check_cwd || profile.is_remote()) {
            return self.input(Input::DirectoryFound { question, exists: true }, out);
        }
        self.services.find_directory(question, cwd);
    }

    /// Adds MCP servers to a line that is to bring them; `None` for all other lines.
    pub(super) fn with_servers(
        &mut self,
        host: HostId,
        line: &Bytes,
        out: &mut Batch,
    ) -> Option<Bytes> {
        let Completed { line, request, left_out: servers } =
            mcp::complete(&self.agents.config, &self.agents.paths, line)?;
        for LeftOut { server, reason } in &servers {
            tracing::warn!(host = host.0, server, reason, "an MCP server was left out");
        }
        if !servers.is_empty() {
            self.input(Input::Host(host, HostEvent::ServersLeftOut { request, servers }), out);
        }
        Some(line)
    }

    pub(super) fn send(&mut self, client: ClientId, mut what: ToClient, out: &mut Batch) {
        if let ToClient::Status { part: StatusPart::Metrics(metrics), .. } = &mut what {
            metrics.queues.transactions = self.commits.waiting() as u64;
            metrics.latencies.commit = self.commits.latency();
            (metrics.journal.removed, metrics.journal.given_back) =
                (self.tidied.removed, self.tidied.given_back);
        }
        if let ToClient::Line(line) = &what {
            self.trace(Peer::Client(client), true, [(line, line.len() as u64)]);
        }
        if let Some(event) = self.sinks.send(client, what) {
            self.input(Input::Client(client, event), out);
        }
    }

    pub(super) fn spawn(&mut self, ready: Ready, out: &mut Batch) {
        let Ready { host, agent, found, left } = ready;
        if let Some(left) = left {
            let left = left.as_millis() as u64;
            self.input(Input::Host(host, HostEvent::CredentialsGood { left }), out);
        }
        match found.and_then(|secrets| self.agents.spawn(host, &agent, secrets)) {
            Ok(running) => self.hosts.insert(host, running),
            Err(error) => self.input(Input::Host(host, HostEvent::Refused(error)), out),
        }
    }
}
