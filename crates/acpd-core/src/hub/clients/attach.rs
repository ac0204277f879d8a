use acpd_api::{NAMESPACE, Role};
use serde_json::json;

use crate::hub::Hub;
use crate::ids::{ClientId, Requester, Seq, SessionKey};
use crate::input::{ReadStyle, SessionValues, ToClient};

/// Returns the member of an answer that lists MCP servers which the session did not get.
pub(crate) fn ignored_servers(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!("\"_meta\":{}", json!({ NAMESPACE: { "ignoredMcpServers": names } }))
}

impl Hub {
    /// `after`: the client has all lines up to this one; `None` if it wants only new lines.
    pub(crate) fn attach(
        &mut self,
        client: ClientId,
        key: SessionKey,
        role: Role,
        after: Option<Seq>,
        style: ReadStyle,
    ) {
        // Before attaching: a withdrawal must stay behind its question.
        if self.clients.is_attached(client, key) {
            self.questions.take_back(&mut self.cx, client, |of| of == key);
        }
        let journal = self.sessions[&key].journal();
        if self.clients.attach(&mut self.cx, client, journal, (role, after, style)) {
            self.begin_use(self.session(key).slot);
        }
    }

    pub(crate) fn detach(&mut self, client: ClientId, key: SessionKey) {
        if self.clients.detach(&mut self.cx, client, key) {
            self.questions.take_back(&mut self.cx, client, |of| of == key);
        }
    }

    pub(crate) fn show_session(
        &mut self,
        to: &Requester,
        key: SessionKey,
        after: u64,
        style: ReadStyle,
        extra: String,
    ) {
        if style == ReadStyle::History {
            self.attach(to.client, key, Role::Controller, Some(after), style);
            self.send_values(to, key, extra);
        } else {
            // A client that comes back must know its place in the journal before it has the answer.
            self.clients.tell_cursor(&mut self.cx, to.client, self.sessions[&key].journal());
            self.send_values(to, key, extra);
            self.attach(to.client, key, Role::Controller, None, style);
            let journal = self.sessions[&key].journal();
            self.clients.remind_of_commands(&mut self.cx, to.client, journal);
        }
    }

    pub(crate) fn send_values(&mut self, to: &Requester, key: SessionKey, extra: String) {
        let Some(client) = self.clients.get(&to.client) else { return };
        let values = ToClient::Values(SessionValues {
            id: to.id.clone(),
            session: key,
            mode: self.sessions[&key].row.mode.clone(),
            extra,
            boolean_options: client.view.capabilities.boolean_options,
        });
        let behind = Some(self.end_of(key));
        self.clients.respond_with(&mut self.cx, to, behind, values);
    }
}
