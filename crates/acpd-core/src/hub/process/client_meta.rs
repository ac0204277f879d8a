//! Client extensions beyond the schema, and the agents that get them.
//!
//! Clients declare extensions in members `_meta` of their capabilities, and agents go by them. An agent
//! hears acpd's capabilities, not those of a client; of a client it hears the members that its profile
//! names ([`crate::profile::Profile::client_meta`]). These are the client's *offer*.
//!
//! A process hears an offer when it starts, and none after that:
//! - one that runs for a single session: that of the client that has made the session, even if another
//!   client makes it start later;
//! - one that runs for all sessions: that of the client that it is started for, which is the first that
//!   waits for it, else the maker of the session that is most urgent. If that cannot be told, it hears
//!   what the last one did.
//!
//! What a process answers to `initialize` depends on the offer, so it is remembered with it.

use acp_wire::acp::AuthMethod;
use acp_wire::{locate, str_at};
use bytes::Bytes;

use crate::clients::offer::{copy, paths};
use crate::hub::Hub;
use crate::ids::{ClientId, SlotId};
use crate::input::Batch;
use crate::params::with_logins;
use crate::profile::Sharing;

fn has(offer: Option<&str>, name: &str) -> bool {
    let offer = offer.unwrap_or_default().as_bytes();
    paths(name).iter().any(|path| locate(offer, path).is_some())
}

impl Hub {
    /// The line of an `initialize` that tells the process what it hears of a client.
    pub(crate) fn with_offer(&mut self, id: SlotId, line: Bytes) -> Bytes {
        let names = self.profile_of(id).client_meta.clone();
        let meta = self.offer_for(id).map(|offer| {
            // The names may have changed since it was stored.
            copy(&names, offer.as_bytes(), &[], Bytes::from_static(b"{}"))
        });
        let meta = meta.filter(|meta| *meta != "{}");
        let text = meta.map(|meta| String::from_utf8_lossy(&meta).into_owned());
        let line = match &text {
            Some(text) => copy(&names, text.as_bytes(), &["params", "clientCapabilities"], line),
            None => line,
        };
        self.slot_mut(id).client_meta = text;
        line
    }

    /// The offer of the client that a process is started for.
    fn offer_for(&self, id: SlotId) -> Option<String> {
        let agent = &self.processes[&id];
        if let Some(session) = agent.dedicated.and_then(|key| self.sessions.get(&key)) {
            return session.row.client_meta.clone();
        }
        let mut waiting = agent.waiting.iter();
        if let Some(client) = waiting.find_map(|waiting| self.clients.get(&waiting.to.client)) {
            return client.offer.clone();
        }
        let urgent = self
            .sessions
            .sessions_by_urgency(id)
            .into_iter()
            .find(|key| self.sessions.wants_host(*key));
        match urgent {
            Some(key) => self.session(key).row.client_meta.clone(),
            None => self.processes.known_of(id).row.client_meta.clone(),
        }
    }

    /// Returns the stored offer of the client that makes a session.
    pub(crate) fn offer_of_maker(&self, slot: SlotId, client: ClientId) -> Option<String> {
        match self.clients.get(&client) {
            Some(client) => client.offer.clone(),
            None => self.processes[&slot].client_meta.clone(),
        }
    }

    /// The slot that is asked for a client's `initialize`. Where each session has its own process, so
    /// has a client whose offer the shared one has not heard: it ends when it has answered.
    pub(crate) fn slot_for_offer(
        &mut self,
        profile: &str,
        offer: Option<&str>,
        out: &mut Batch,
    ) -> SlotId {
        let shared = self.processes.shared(profile, self.now);
        let agent = &self.processes[&shared];
        let hears_other =
            agent.host().is_some() && offer.is_some() && agent.client_meta.as_deref() != offer;
        match self.config.agents[profile].sharing {
            Sharing::Session if hears_other => self.slot_for_new(profile, offer, out),
            _ => shared,
        }
    }

    /// An agent's `initialize` result with the ways to log in that this client can take.
    pub(crate) fn with_own_logins(&self, client: ClientId, profile: &str, result: &Bytes) -> Bytes {
        let client = &self.clients[&client];
        let (offer, has_terminal) = (client.offer.as_deref(), client.capabilities.auth_terminal);
        let others = self.logins_of_others(profile, offer);
        with_logins(result, |method| {
            let says = |member: &str| locate(method, &["_meta", member]).is_some();
            let is_terminal = str_at(method, &["type"]).as_deref() == Some("terminal");
            let can = has_terminal || (has(offer, "terminal-auth") && says("terminal-auth"));
            (!is_terminal || can) && !others.iter().any(|member| says(member))
        })
    }

    /// Login methods of an agent for all clients.
    pub(crate) fn logins_of(&self, profile: &str) -> Vec<&AuthMethod> {
        let others = self.logins_of_others(profile, None);
        let is_for_all =
            |login: &&AuthMethod| !login.meta.iter().any(|member| others.contains(&&**member));
        self.processes.known(profile).methods.iter().filter(is_for_all).collect()
    }

    /// Marks in `_meta` of login methods that exist because of other clients' offers for `auth`.
    fn logins_of_others(&self, profile: &str, offer: Option<&str>) -> Vec<&str> {
        let names = self.config.agents.get(profile).map_or(&[][..], |known| &known.client_meta);
        let others = names.iter().filter(|name| !has(offer, name));
        others.filter_map(|name| name.strip_prefix("auth.")).collect()
    }
}
