//! Lines that wait behind others on their way to clients. The diagram is in `hub/session/fanout.rs`.

use acp_wire::build;
use acpd_api::{CaughtUp, method};
use bytes::Bytes;

use crate::ids::{ClientId, SessionKey};
use crate::input::{Batch, Effect};
use crate::session::table::Sessions;
use crate::views::attachment::Cursor;

impl Sessions {
    pub(crate) fn is_attached(&self, client: ClientId, key: SessionKey) -> bool {
        self.session(key).attached.contains_key(&client)
    }

    pub(crate) fn caught_up_line(&self, key: SessionKey) -> Bytes {
        let session = self.session(key);
        let caught_up =
            CaughtUp { session_id: session.row.public_id.clone().into(), seq: session.head };
        build::notification(method::CAUGHT_UP, &caught_up)
    }

    /// Sends something that must not overtake the session's lines.
    pub(crate) fn send_behind(
        &mut self,
        client: ClientId,
        session: Option<SessionKey>,
        effect: Effect,
        out: &mut Batch,
    ) {
        if let Some(session) = session.and_then(|key| self.get_mut(key)) {
            let head = session.head;
            if let Some(attachment) = session.attached.get_mut(&client)
                && attachment.cursor != Cursor::Live
            {
                attachment.deferred.push_back((head, effect));
                return;
            }
        }
        out.effects.push(effect);
    }

    /// Takes back something that waits behind lines of a session for a client.
    pub(crate) fn take_deferred(
        &mut self,
        client: ClientId,
        is_meant: impl Fn(&Effect) -> bool,
    ) -> Option<Effect> {
        let attached = self.values_mut().filter_map(|s| s.attached.get_mut(&client));
        for attachment in attached {
            if let Some(at) = attachment.deferred.iter().position(|(_, effect)| is_meant(effect)) {
                return attachment.deferred.remove(at).map(|(_, effect)| effect);
            }
        }
        None
    }
}
