//! Answers to clients, in order with the lines of journals.

use acp_wire::build;
use bytes::Bytes;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, Requester, Seq, SessionKey};
use crate::input::{Effect, ToClient};

impl Hub {
    pub(crate) fn refuse(&mut self, to: &Requester, fault: &Fault) {
        self.respond(to, None, build::error(&to.id, &fault.object()));
    }

    pub(crate) fn refuse_all<'r>(
        &mut self,
        all: impl IntoIterator<Item = &'r Requester>,
        fault: &Fault,
    ) {
        all.into_iter().for_each(|to| self.refuse(to, fault));
    }

    pub(crate) fn answer(&mut self, to: &Requester, result: &impl serde::Serialize) {
        self.respond(to, None, build::response(&to.id, result));
    }

    /// Sends a response behind the lines of its session.
    pub(crate) fn respond(&mut self, to: &Requester, session: Option<SessionKey>, line: Bytes) {
        let behind = session.map(|key| self.end_of(key));
        self.clients.respond(&mut self.cx, to, behind, line);
    }

    pub(crate) fn end_of(&self, key: SessionKey) -> (SessionKey, Seq) {
        (key, self.sessions.get(&key).map_or(0, |session| session.head))
    }

    pub(crate) fn send_lines(
        &mut self,
        session: Option<SessionKey>,
        lines: impl IntoIterator<Item = (ClientId, Bytes)>,
    ) {
        for (client, line) in lines {
            let effect = Effect::Client(client, ToClient::Line(line));
            let behind = session.map(|key| self.end_of(key));
            self.clients.send_behind(&mut self.cx, client, behind, effect);
        }
    }
}
