//! Sessions that clients create, open, close and delete.

use acp_wire::acp::SessionParams;
use acp_wire::code;
use acpd_api::{LoadMeta, NewSessionMeta, Reason, TurnState};
use serde_json::json;
use serde_json::value::RawValue;

use crate::clients::{Asked, Naming, Served};
use crate::fault::{Fault, name_taken};
use crate::hub::Hub;
use crate::hub::clients::attach::ignored_servers;
use crate::ids::{ClientId, Requester, SessionKey};
use crate::input::ReadStyle;
use crate::params::{bounded, own_meta, read_opening, valid_labels, valid_name};
use crate::process::slot::{Asker, WaitFor};
use crate::profile::ClosedBy;
use crate::record::{Dormant, NewSession};
use crate::session::kin::with_parent;
use crate::views::{JournalHead, version2};

impl Hub {
    pub(crate) fn name_is_taken(
        &mut self,
        to: &Requester,
        key: SessionKey,
        reuse: bool,
        params: &RawValue,
    ) -> Result<(), Fault> {
        let row = &self.session(key).row;
        let id = row.public_id.clone();
        if !reuse {
            return Err(name_taken(row.name.as_deref().unwrap_or_default(), &row.cwd)
                .session(&id)
                .hint("choose another name, or continue that session"));
        }
        let ignored = self.bring_servers(to.client, key, Some(params));
        let mut extra = format!("\"sessionId\":{}", json!(id));
        if !ignored.is_empty() {
            extra = format!("{extra},{}", ignored_servers(&ignored));
        }
        self.show_session(to, key, 0, ReadStyle::Resume, extra);
        self.warm_up(key);
        Ok(())
    }

    /// `session/load` and `session/resume` of a session that acpd knows never reach the agent.
    pub(crate) fn open_session(
        &mut self,
        Asked { to, params, .. }: Asked<'_>,
        key: SessionKey,
        style: ReadStyle,
    ) -> Served {
        let given = params;
        given.map_or(Ok(()), bounded)?;
        let params = params.map(SessionParams::from_raw).unwrap_or_default();
        let after = own_meta::<LoadMeta>(params.meta)?.after.unwrap_or(0);
        let row = &self.session(key).row;
        if let Some(cwd) = params.cwd
            && cwd.trim_end_matches('/') != row.cwd.trim_end_matches('/')
        {
            let text =
                format!("session `{}` works in `{}`, not in `{cwd}`", row.public_id, row.cwd);
            return Err(Fault::invalid(text).session(&row.public_id.clone()));
        }
        let ignored = self.bring_servers(to.client, key, given);
        self.show_session(to, key, after, style, ignored_servers(&ignored));
        self.warm_up(key);
        Ok(())
    }

    /// Prepares an opened session for the next prompt, unless it is only read.
    pub(crate) fn warm_up(&mut self, key: SessionKey) {
        let session = self.session_mut(key);
        let is_only_read =
            session.row.rest == Dormant::Lost || session.row.archived || session.owes_summary();
        if !session.is_dormant() || is_only_read {
            return;
        }
        session.eager = true;
        let slot = session.slot;
        if self.need_agent(slot, Asker::Policy).is_ok() {
            self.wake_session(key);
        } else {
            self.session_mut(key).eager = false;
        }
    }

    fn other_users(&self, client: ClientId, key: SessionKey) -> usize {
        self.clients.other_users(client, key, self.session(key).senders())
    }

    /// Detaches a client; closes the session if it was the last one or may close it for all.
    pub(crate) fn close_for(&mut self, client: ClientId, key: SessionKey) {
        let is_owner = self.clients.owner(key) == Some(client);
        let for_all =
            is_owner && self.profile_of(self.session(key).slot).closed_by == ClosedBy::Owner;
        let closes = for_all || self.other_users(client, key) == 0;
        if self.clients.version_of(client).tells_states() {
            self.end_for(client, key, closes);
        }
        self.detach(client, key);
        if closes {
            self.close_session(key);
            self.forget_unless_kept(key);
        }
    }

    /// Takes back the client's prompts that wait, and ends the turn for it if the session closes:
    /// the client gets nothing of the session after it has left.
    fn end_for(&mut self, client: ClientId, key: SessionKey, closes: bool) {
        let fault =
            Fault::new(Reason::Interrupted, "the session was closed before the prompt's turn");
        let fault = fault.with_code(code::CANCELLED);
        for place in (0..self.session(key).queue.len()).rev() {
            let prompt = &mut self.session_mut(key).queue[place];
            let is_its = |to: &mut Requester| to.client == client;
            let its: Vec<_> = prompt.senders.extract_if(.., is_its).collect();
            let is_left = !prompt.senders.is_empty();
            self.refuse_all(&its, &fault);
            if its.is_empty() {
                continue;
            }
            if is_left {
                self.save_queued(key, place);
            } else if let Some(prompt) = self.session_mut(key).queue.remove(place) {
                self.drop_prompt(key, &prompt, &fault);
            }
        }
        let running = self.session_mut(key).running.as_mut();
        if let Some(turn) = running.filter(|turn| turn.message.is_none()) {
            let is_its = |to: &mut Requester| to.client == client;
            let its: Vec<_> = turn.prompt.senders.extract_if(.., is_its).collect();
            if !its.is_empty() {
                let text =
                    "the session was closed before the agent had said that it has the prompt";
                self.refuse_all(&its, &Fault::new(Reason::OutcomeUnknown, text));
                self.save_turn(key, None);
            }
        }
        let JournalHead { public_id, state, .. } = self.sessions[&key].journal();
        if closes && state != TurnState::Idle {
            let line = version2::cancelled(public_id);
            self.send_lines(Some(key), [(client, line)]);
        }
    }

    pub(crate) fn delete_for(&mut self, client: ClientId, key: SessionKey) -> Result<(), Fault> {
        let others = self.other_users(client, key);
        if others > 0 {
            let text = format!("{others} other clients use this session");
            return Err(Fault::new(Reason::SessionBlocked, text)
                .hint("close it there first, or use `acpctl session rm`"));
        }
        self.delete_for_person(key, false);
        Ok(())
    }

    pub(crate) fn new_session(
        &mut self,
        to: Requester,
        profile: &str,
        params: Option<&RawValue>,
    ) -> Result<(), Fault> {
        let raw = params.ok_or_else(|| Fault::invalid("`params` is missing"))?;
        let (cwd, meta, mut params): (_, NewSessionMeta, _) = read_opening(raw)?;
        let labels = valid_labels(meta.labels.unwrap_or_default())?;
        if let Some(name) = &meta.name {
            valid_name(name)?;
            if let Some(key) = self.sessions.by_name(profile, &cwd, name) {
                return self.name_is_taken(&to, key, meta.reuse, raw);
            }
            if self.is_being_named(profile, &cwd, name) {
                let (profile, name, params) = (profile.to_owned(), name.clone(), raw.to_owned());
                self.naming.push(Naming { to, profile, cwd, name, params });
                return Ok(());
            }
        }
        if let Some(number) = meta.parent {
            let what = "begin sessions for a session of another agent";
            let parent = self.sessions.by_number(number)?;
            self.must_be_its_own(to.client, parent, what)?;
            params = with_parent(&params, &self.parent_for(parent)?);
        }
        let (name, notices) = (meta.name, Vec::new());
        let new = NewSession { to: to.clone(), name, labels, cwd, params, notices, fork: None };
        self.open_at_agent(profile, to, WaitFor::New(new))
    }

    /// Continues requests that waited until a session with their name was made.
    pub(crate) fn settle_names(&mut self) {
        let is_free =
            |hub: &Hub, wait: &Naming| !hub.is_being_named(&wait.profile, &wait.cwd, &wait.name);
        while let Some(at) = self.naming.iter().position(|wait| is_free(self, wait)) {
            let Naming { to, profile, params, .. } = self.naming.remove(at);
            if let Err(fault) = self.new_session(to.clone(), &profile, Some(&params)) {
                self.refuse(&to, &fault);
            }
        }
    }
}
