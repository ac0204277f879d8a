//! Answers and notices on their way to clients.
//!
//! Architecture invariant: each request is answered once. An answer that a client can come back for
//! is kept in the same transaction that makes it true.

use acp_wire::{ErrorObject, build};
use bytes::Bytes;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, Requester, SessionKey};
use crate::input::{Batch, Effect, ToClient};

impl Hub {
    pub(crate) fn refuse(&mut self, to: &Requester, fault: &Fault, out: &mut Batch) {
        self.reply(to, build::error(&to.id, &fault.object()), out);
    }

    pub(crate) fn answer(
        &mut self,
        to: &Requester,
        result: &impl serde::Serialize,
        out: &mut Batch,
    ) {
        self.reply(to, build::response(&to.id, result), out);
    }

    fn reply(&mut self, to: &Requester, line: Bytes, out: &mut Batch) {
        self.clients.keep_reply(to, None, &line, out);
        if !self.close_request(to) {
            return;
        }
        self.send_answer(Effect::Client(to.client, ToClient::Line(line)), to.client, out);
    }

    /// Answers a line that is no request that could be open.
    pub(crate) fn send_error(&self, to: &Requester, error: &ErrorObject, out: &mut Batch) {
        let line = build::error(&to.id, error);
        self.send_answer(Effect::Client(to.client, ToClient::Line(line)), to.client, out);
    }

    /// The client of this answer has gone.
    pub(crate) fn send_answer(&self, effect: Effect, client: ClientId, out: &mut Batch) {
        if self.clients.contains_key(&client) {
            out.effects.push(effect);
        }
    }

    /// Sends a complete response, behind the lines of its session.
    pub(crate) fn respond(
        &mut self,
        to: &Requester,
        session: Option<SessionKey>,
        line: Bytes,
        out: &mut Batch,
    ) {
        self.clients.keep_reply(to, session, &line, out);
        if !self.clients.contains_key(&to.client) || !self.close_request(to) {
            return;
        }
        let effect = Effect::Client(to.client, ToClient::Line(line));
        self.sessions.send_behind(to.client, session, effect, out);
    }

    /// A live-only notice for one client.
    pub(crate) fn tell_client(&mut self, client: ClientId, line: &Bytes, out: &mut Batch) {
        if self.clients.get(&client).is_some_and(|client| client.view.notices && !client.lagged) {
            out.effects.push(Effect::Client(client, ToClient::Line(line.clone())));
        }
    }

    /// A live-only notice for every client of a profile.
    pub(crate) fn notify_profile(&mut self, profile: &str, line: &Bytes, out: &mut Batch) {
        for (id, client) in self.clients.iter() {
            let wanted = client.view.notices && !client.lagged;
            if wanted && client.profile.as_deref() == Some(profile) {
                out.effects.push(Effect::Client(*id, ToClient::Line(line.clone())));
            }
        }
    }

    /// Sends a live-only notice to every client, but for those that run under an agent.
    pub(crate) fn notify_all(&self, line: &Bytes, out: &mut Batch) {
        for (id, client) in self.clients.iter() {
            if client.view.notices && !client.lagged && !client.under_agent {
                out.effects.push(Effect::Client(*id, ToClient::Line(line.clone())));
            }
        }
    }

    /// A notification of an agent that is about no session.
    pub(crate) fn forward_to_profile(&mut self, profile: &str, line: &Bytes, out: &mut Batch) {
        for (id, client) in self.clients.iter() {
            if !client.lagged && client.profile.as_deref() == Some(profile) {
                out.effects.push(Effect::Client(*id, ToClient::Line(line.clone())));
            }
        }
    }
}
