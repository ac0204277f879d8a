//! A connection from `initialize` to its end, and clients that reconnect.

use std::collections::BTreeSet;

use acp_wire::acp::ClientInitialize;
use acp_wire::code;
use acpd_api::{ClientMeta, ClientToken};

use crate::clients::{Asked, Served};
use crate::fault::Fault;
use crate::hash::number_of;
use crate::hub::Hub;
use crate::ids::{ClientId, NOBODY, SessionKey};
use crate::input::Numbers;
use crate::mcp::client_servers::CallEnd;
use crate::offer::offer;
use crate::params::own_meta;
use crate::process::slot::{WaitFor, Waiting};
use crate::profile::Profile;
use crate::record::{Record, Row};
use crate::session::Session;

impl Hub {
    pub(crate) fn initialize(&mut self, Asked { to, params, .. }: Asked<'_>) -> Served {
        // A failed `initialize` may be repeated.
        let is_initialized = self.clients.get(&to.client).is_some_and(|here| here.initialized);
        if is_initialized || self.processes.is_initializing(to.client) {
            return Err(Fault::invalid("this connection is initialized already")
                .with_code(code::INVALID_REQUEST)
                .hint("open another connection"));
        }
        let params = params.ok_or_else(|| Fault::invalid("`params` is missing"))?;
        let asked = ClientInitialize::from_raw(params, self.cx.config.newest)
            .map_err(|e| Fault::invalid(e.to_string()))?;
        if asked.protocol_version == 0 {
            return Err(Fault::version(asked.protocol_version, self.cx.config.newest));
        }
        let mut meta: ClientMeta = own_meta(asked.meta)?;
        let usual = || self.cx.config.agent_for(meta.cwd.as_deref()).to_owned();
        let profile = meta.agent.take().unwrap_or_else(usual);
        self.is_configured(&profile)?;
        let Profile { fingerprint, client_meta, .. } = &self.cx.config.agents[&profile];
        let (fingerprint, offer) =
            (fingerprint.clone(), offer(client_meta, asked.raw_capabilities));
        let (client, named) = (to.client, meta.client.take());
        self.clients.introduce(client, &asked, meta, (&profile, offer.as_deref()));
        if let Some(named) = named {
            self.name_client(client, named)?;
        }
        self.clients.number(&mut self.cx, client);
        let comes_back = self.clients.get(&client).is_some_and(|client| client.resume.is_some());
        let known = self.processes.known(&profile);
        // Members that exist because of an offer are hidden from clients without it.
        let is_for_it = offer.is_none() || known.row.client_meta == offer;
        let is_current = comes_back || (known.row.fingerprint == fingerprint && is_for_it);
        if known.row.initialize.is_some() && is_current {
            self.send_initialized(to, &profile);
            return Ok(());
        }
        let slot = self.slot_for_offer(&profile, offer.as_deref());
        let asked = self.with_agent(slot, Waiting::new(to.clone(), WaitFor::Initialize));
        if asked.is_err() && self.initialize_from_memory(to, &profile) {
            return Ok(());
        }
        asked
    }

    fn name_client(&mut self, client: ClientId, named: ClientToken) -> Result<(), Fault> {
        let ClientToken { token, positions, resume } = named;
        if !self.clients.claim_token(&mut self.cx, client, &token)? {
            return Ok(());
        }
        let resume = resume.filter(|resume| resume.generation == self.clients.generation());
        let back = self.clients.by_token(&token).zip(resume);
        if back.is_none() {
            self.forget_resumable(&token);
            let waited = || {
                let prompts = self.sessions.awake().flat_map(|(_, session)| session.senders());
                prompts.chain(self.requests.requesters()).map(|to| to.client).collect()
            };
            if let Some(token) = self.clients.one_too_many(waited) {
                self.forget_resumable(&token);
            }
            let version = self.clients.version_of(client);
            self.cx.put(Row::Client { token: token.clone(), version, received: 0 });
        }
        let numbers = if positions { Numbers::InFront } else { Numbers::InMeta };
        self.clients.name(client, &token, numbers);
        if let Some((old, resume)) = back {
            let prompts = self.sessions.awake_mut().flat_map(Session::prompts_mut);
            let senders = prompts.flat_map(|prompt| &mut prompt.senders);
            let mut waits_for = Vec::new();
            for to in senders.chain(self.requests.requesters_mut()).filter(|to| to.client == old) {
                to.client = client;
                waits_for.push(to.id.clone());
            }
            self.clients.come_back(client, resume, waits_for);
        }
        Ok(())
    }

    /// `returns`: the client may reconnect.
    pub(crate) fn on_client_left(
        &mut self,
        client: ClientId,
        number: u64,
        returns: bool,
        sessions: Vec<SessionKey>,
    ) {
        self.naming.retain(|wait| wait.to.client != client);
        self.services.on_client_gone(&mut self.cx, client);
        self.client_servers.on_call_end(&mut self.cx, &CallEnd::ToolGone(client));
        self.questions.on_client_gone(client);
        self.watch.end(client);
        if returns {
            // The client sends requests again that no agent got, or that open a session.
            for session in self.sessions.awake_mut() {
                session.waiting.retain(|relayed| relayed.to.client != client);
            }
            for (_, _, adoption) in self.requests.adoptions() {
                adoption.openers.retain(|opener| opener.to.client != client);
            }
            self.processes.forget_client(client);
        } else {
            self.client_servers.on_call_end(&mut self.cx, &CallEnd::ClientGone(number));
            // The turns continue without a receiver of their responses.
            for key in &sessions {
                for prompt in self.session_mut(*key).prompts_mut() {
                    prompt.senders.retain(|to| to.client != client);
                }
            }
        }
        let slots: BTreeSet<_> = sessions.iter().map(|key| self.session(*key).slot).collect();
        for slot in slots {
            self.check_idle(slot);
        }
    }

    pub(crate) fn forget_resumable(&mut self, token: &str) {
        let Some(gone) = self.clients.forget(token) else { return };
        // On disk, too: the next client with this token must not get these answers.
        for key in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.forget_sender(key, gone);
        }
        // The requests continue without a receiver, and so do cancellations.
        let disowned = self.requests.asked.iter_mut().filter_map(|(ask, asked)| {
            let to = asked.purpose.requester_mut().filter(|to| to.client == gone)?;
            to.client = NOBODY;
            Some(*ask)
        });
        for ask in disowned.collect::<Vec<_>>() {
            self.save_asked(ask);
        }
        self.client_servers.on_call_end(&mut self.cx, &CallEnd::ClientGone(number_of(token)));
        self.cx.record(Record::ClientGone { token: token.to_owned() });
    }
}
