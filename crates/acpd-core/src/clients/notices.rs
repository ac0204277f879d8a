//! Notices that clients get while they are here, and that no journal has.

use bytes::Bytes;

use crate::clients::{Client, Clients};
use crate::cx::Cx;
use crate::ids::ClientId;
use crate::input::{Effect, ToClient};

impl Clients {
    /// Sends a live-only notice to one client.
    pub(crate) fn tell(&self, cx: &mut Cx, client: ClientId, line: &Bytes) {
        self.tell_those(cx, line, |id, here| id == client && here.takes_notices());
    }

    /// Sends a live-only notice to every client of a profile.
    pub(crate) fn tell_profile(&self, cx: &mut Cx, profile: &str, line: &Bytes) {
        let is_meant = |here: &Client| here.profile.as_deref() == Some(profile);
        self.tell_those(cx, line, |_, here| here.takes_notices() && is_meant(here));
    }

    fn tell_those(&self, cx: &mut Cx, line: &Bytes, is_meant: impl Fn(ClientId, &Client) -> bool) {
        for (id, _) in self.connected.iter().filter(|(id, here)| is_meant(**id, here)) {
            cx.send(Effect::Client(*id, ToClient::Line(line.clone())));
        }
    }

    /// Sends a live-only notice to every client, but for those that run under an agent.
    pub(crate) fn tell_all(&self, cx: &mut Cx, line: &Bytes) {
        self.tell_those(cx, line, |_, here| here.takes_notices() && !here.under_agent);
    }

    /// Forwards a notification of an agent that is about no session.
    pub(crate) fn forward_to_profile(&self, cx: &mut Cx, profile: &str, line: &Bytes) {
        let is_meant = |here: &Client| here.profile.as_deref() == Some(profile);
        self.tell_those(cx, line, |_, here| !here.lagged && is_meant(here));
    }
}

impl Client {
    fn takes_notices(&self) -> bool {
        self.view.notices && !self.lagged
    }
}
