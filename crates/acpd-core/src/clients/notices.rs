//! Notices for connected clients, which no journal has.

use bytes::Bytes;

use crate::clients::{Client, Clients};
use crate::cx::Cx;
use crate::ids::ClientId;
use crate::input::{Effect, ToClient};

impl Clients {
    pub(crate) fn tell(&self, cx: &mut Cx, client: ClientId, line: &Bytes) {
        self.tell_those(cx, line, |id, here| id == client && here.takes_notices());
    }

    pub(crate) fn tell_profile(&self, cx: &mut Cx, profile: &str, line: &Bytes) {
        let is_meant = |here: &Client| here.profile.as_deref() == Some(profile);
        self.tell_those(cx, line, |_, here| here.takes_notices() && is_meant(here));
    }

    fn tell_those(&self, cx: &mut Cx, line: &Bytes, is_meant: impl Fn(ClientId, &Client) -> bool) {
        for (id, _) in self.connected.iter().filter(|(id, here)| is_meant(**id, here)) {
            cx.send(Effect::Client(*id, ToClient::Line(line.clone())));
        }
    }

    pub(crate) fn tell_all(&self, cx: &mut Cx, line: &Bytes) {
        self.tell_those(cx, line, |_, here| here.takes_notices() && !here.under_agent);
    }

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
