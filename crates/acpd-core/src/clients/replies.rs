//! Requests of clients, and answers and notices to them.
//!
//! Architecture invariant: each request is answered once. An answer that a reconnected client can
//! get is kept in the transaction that makes it true.

use acp_wire::{Message, code, parse};
use acpd_api::Reason;
use bytes::Bytes;

use crate::clients::resumable::is_kept;
use crate::clients::{Client, Clients, Open};
use crate::cx::Cx;
use crate::fault::Fault;
use crate::ids::{ClientId, Requester, Seq, SessionKey};
use crate::input::{Effect, LogPage, SessionValues, ToClient};

const OPEN_REQUESTS: usize = 128;

impl Clients {
    /// # Errors
    /// When the id is open already, or too many requests are open.
    pub(crate) fn accept(
        &mut self,
        cx: &mut Cx,
        to: &Requester,
        method: &str,
    ) -> Result<(), Fault> {
        let Some(client) = self.connected.get(&to.client) else { return Ok(()) };
        if client.open.len() >= OPEN_REQUESTS {
            let text = format!("{OPEN_REQUESTS} requests of this connection are open already");
            return Err(Fault::new(Reason::TooMany, text));
        }
        if client.open.contains_key(&to.id) {
            let text = format!("a request with the id {} is open already", to.id);
            return Err(Fault::invalid(text).with_code(code::INVALID_REQUEST));
        }
        self.room_for_reply(cx, to, method)?;
        if let Some(client) = self.connected.get_mut(&to.client) {
            let open = Open { kept: is_kept(method), given_up: false };
            client.open.insert(to.id.clone(), open);
        }
        Ok(())
    }

    /// Returns whether the answer is wanted: `false` if the request got an error while the journal
    /// could not be written.
    pub(crate) fn close_request(&mut self, to: &Requester) -> bool {
        let Some(client) = self.connected.get_mut(&to.client) else { return true };
        client.open.remove(&to.id).is_none_or(|open| !open.given_up)
    }

    /// Gives up an open request because the journal cannot be written: its answer will be dropped.
    /// Returns whether it is open.
    pub(crate) fn give_up(&mut self, to: &Requester) -> bool {
        let client = self.connected.get_mut(&to.client);
        let open = client.and_then(|client| client.open.get_mut(&to.id));
        open.map(|open| open.given_up = true).is_some()
    }

    /// Takes back an answer that was not sent. `batches`: uncommitted effects.
    pub(crate) fn take_answer(
        &mut self,
        to: &Requester,
        batches: &mut [&mut Vec<Effect>],
    ) -> Option<Effect> {
        self.connected.get(&to.client)?;
        for effects in batches {
            if let Some(at) = effects.iter().position(|effect| answers(effect, to)) {
                return Some(effects.remove(at));
            }
        }
        self.take_deferred(to.client, |effect| answers(effect, to))
    }

    /// Answers after the lines of a session up to a position.
    pub(crate) fn respond(
        &mut self,
        cx: &mut Cx,
        to: &Requester,
        behind: Option<(SessionKey, Seq)>,
        line: Bytes,
    ) {
        self.keep_reply(cx, to, behind.map(|(key, _)| key), &line);
        self.respond_with(cx, to, behind, ToClient::Line(line));
    }

    /// Like [`Clients::respond`], with an answer that the relay completes.
    pub(crate) fn respond_with(
        &mut self,
        cx: &mut Cx,
        to: &Requester,
        behind: Option<(SessionKey, Seq)>,
        answer: ToClient,
    ) {
        if self.close_request(to) && self.connected.contains_key(&to.client) {
            self.send_behind(cx, to.client, behind, Effect::Client(to.client, answer));
        }
    }

    pub(crate) fn tell(&self, cx: &mut Cx, client: ClientId, line: &Bytes) {
        self.tell_those(cx, line, |id, here| id == client && here.takes_notices());
    }

    pub(crate) fn tell_profile(&self, cx: &mut Cx, profile: &str, line: &Bytes) {
        let is_meant = |here: &Client| here.profile.as_deref() == Some(profile);
        self.tell_those(cx, line, |_, here| here.takes_notices() && is_meant(here));
    }

    pub(crate) fn tell_all(&self, cx: &mut Cx, line: &Bytes) {
        self.tell_those(cx, line, |_, here| here.takes_notices() && !here.under_agent);
    }

    pub(crate) fn forward_to_profile(&self, cx: &mut Cx, profile: &str, line: &Bytes) {
        let is_meant = |here: &Client| here.profile.as_deref() == Some(profile);
        self.tell_those(cx, line, |_, here| !here.lagged && is_meant(here));
    }

    fn tell_those(&self, cx: &mut Cx, line: &Bytes, is_meant: impl Fn(ClientId, &Client) -> bool) {
        for (id, _) in self.connected.iter().filter(|(id, here)| is_meant(**id, here)) {
            cx.send(Effect::Client(*id, ToClient::Line(line.clone())));
        }
    }
}

impl Client {
    fn takes_notices(&self) -> bool {
        self.view.notices && !self.lagged
    }
}

fn answers(effect: &Effect, to: &Requester) -> bool {
    match effect {
        Effect::Client(client, what) if *client == to.client => match what {
            ToClient::Line(line) | ToClient::Rows(line) => {
                matches!(parse(line), Ok(Message::Response { id, .. }) if id == to.id)
            }
            ToClient::Status { id, .. }
            | ToClient::Log(LogPage { id, .. })
            | ToClient::Search { id, .. }
            | ToClient::Usage { id, .. }
            | ToClient::LogLevel { id, .. }
            | ToClient::Values(SessionValues { id, .. }) => *id == to.id,
            ToClient::Read(_) => false,
        },
        Effect::Leave { client, id, .. } => *client == to.client && *id == to.id,
        _ => false,
    }
}
