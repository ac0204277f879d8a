use acp_wire::{Message, locate, remove_member, set_member};
use acpd_api::{NewSessionMeta, Reason};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{Requester, SessionKey, SlotId};
use crate::params::{raw, read_opening, valid_labels, valid_name};
use crate::record::{NewSession, Purpose};

impl Hub {
    pub(crate) fn read_fork(
        &self,
        key: SessionKey,
        to: &Requester,
        asked: &RawValue,
    ) -> Result<NewSession, Fault> {
        let (cwd, NewSessionMeta { name, labels, .. }, params) = read_opening(asked)?;
        let session = self.session(key);
        let agent = &session.row.agent;
        if let Some(name) = &name {
            valid_name(name)?;
            let free = self.name_is_free(agent, &cwd, name, None);
            free.map_err(|fault| fault.hint("choose another name"))?;
        }
        let labels = match labels {
            Some(labels) => valid_labels(labels)?,
            None => session.row.labels.clone(),
        };
        let mut params = remove_member(&params, &["sessionId"]);
        // Missing members are those of the original session.
        let own = |member| {
            let range = locate(&session.row.params, &[member])?;
            Some((member, session.row.params.slice(range)))
        };
        let own = ["additionalDirectories", "systemPrompt"].into_iter().filter_map(own);
        let servers = self.servers_as_declared(key, to.client);
        for (member, value) in own.chain([("mcpServers", servers)]) {
            if locate(&params, &[member]).is_none() {
                params = set_member(&params, &[member], &value);
            }
        }
        Ok(NewSession {
            to: to.clone(),
            name,
            labels,
            cwd,
            params,
            notices: Vec::new(),
            fork: Some(self.session(key).fork_point()),
        })
    }

    pub(crate) fn ready_to_fork(
        &mut self,
        key: SessionKey,
        to: &Requester,
        line: &Bytes,
    ) -> Result<NewSession, Fault> {
        let profile = self.session(key).row.agent.clone();
        self.can_fork(&profile)?;
        let session = self.session(key);
        let id = &session.row.public_id;
        let blocked = |text: &str, hint: &str| {
            Err(Fault::new(Reason::SessionBlocked, text).session(id).hint(hint))
        };
        if self.processes[&session.slot].dedicated.is_some() {
            let text = "the agent's process is for this session alone";
            return blocked(text, "restart the agent to have it share one");
        }
        if self.session(key).owes_summary() {
            let text = "the agent has not been told yet what the session was about";
            return blocked(text, "send a prompt first");
        }
        match acp_wire::parse(line) {
            Ok(Message::Request { params: Some(params), .. }) => self.read_fork(key, to, params),
            _ => Err(Fault::invalid("`params` is missing")),
        }
    }

    pub(crate) fn ask_for_fork(&mut self, slot: SlotId, mut new: NewSession) {
        let key = new.fork.as_ref().map(|point| point.session);
        let is_live = |key: &SessionKey| {
            let session = self.sessions.get(key);
            session.is_some_and(|s| s.slot == slot && s.is_live())
        };
        let Some(key) = key.filter(is_live) else {
            let text = "the agent does not hold the session any more that was to be forked";
            let fault = Fault::new(Reason::SessionBlocked, text).hint("try again");
            return self.refuse(&new.to, &fault);
        };
        new.fork = Some(self.session(key).fork_point());
        let (of, notices) = (new.to.client, &mut new.notices);
        let (servers, params) = self.gather_servers(slot, of, &new.cwd, &mut new.params, notices);
        let id = json!(self.session(key).row.agent_id).to_string();
        let params = raw(&set_member(&params, &["sessionId"], id.as_bytes()));
        self.request_with(slot, Purpose::NewSession(new), "session/fork", &params, &servers);
    }
}
