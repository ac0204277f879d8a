//! Requests of a restore, and the time that the agent has for them.

use acp_wire::set_member;
use serde::Serialize;
use serde_json::json;

use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::mcp::{Brought, Chosen};
use crate::params::{raw, without_nulls};
use crate::record::Purpose;
use crate::session::kin::with_number;
use crate::session::restore::{Progress, Step};
use crate::timers::Timer;

impl Hub {
    /// `cursor`: that of the next page of a list.
    pub(crate) fn ask_step(&mut self, key: SessionKey, cursor: Option<String>) {
        let Some(Progress { step, without_servers: bare, .. }) =
            self.sessions.restore_mut(key).map(|restore| restore.progress)
        else {
            return;
        };
        if matches!(step, Step::List | Step::ListAll) {
            let cwd = (step == Step::List).then_some(&self.session(key).row.cwd);
            let params = without_nulls(json!({ "cursor": cursor, "cwd": cwd }));
            return self.restore_ask(key, "session/list", &params, &Brought::default());
        }
        let (mut params, mut left_out) = self.params_again(key);
        let mut servers = Brought::default();
        let slot = self.session(key).slot;
        if !bare && (step == Step::New || self.profile_of(slot).restore_mcp) {
            servers = self.servers_again(key);
        } else {
            params = set_member(&params, &["mcpServers"], b"[]");
            let text = if bare { NOT_LOADED } else { WITHHELD };
            left_out = self.has_servers(key).then(|| text.to_owned()).into_iter().collect();
        }
        if step != Step::New {
            let id = json!(self.session(key).row.agent_id).to_string();
            params = set_member(&params, &["sessionId"], id.as_bytes());
        }
        if let Some(restore) = self.sessions.restore_mut(key) {
            restore.left_out = left_out;
        }
        self.restore_ask(key, step.method(), &raw(&params), &servers);
    }

    pub(crate) fn has_servers(&self, key: SessionKey) -> bool {
        self.session(key).has_servers() || !self.chosen_again(key).names.is_empty()
    }

    /// Servers left out were reported when the session was made, and `agent show` has them.
    fn chosen_again(&self, key: SessionKey) -> Chosen {
        let session = self.session(key);
        self.mcp_agent(&session.row.agent).choose(&session.row.cwd, &session.restore_params())
    }

    /// Issues the number by which the session's tools name it, if it has none yet.
    fn servers_again(&mut self, key: SessionKey) -> Brought {
        let chosen = self.chosen_again(key);
        if chosen.has_builtin && self.session(key).kin.number.is_none() {
            let number = self.cx.ids.issue();
            let session = self.session_mut(key);
            let params = with_number(&session.row.params, number);
            session.row.edit().params = params;
            session.kin.number = Some(number);
        }
        let number = self.session(key).kin.number.filter(|_| chosen.has_builtin);
        Brought { names: chosen.names, session: number }
    }

    pub(crate) fn restore_ask(
        &mut self,
        key: SessionKey,
        name: &str,
        params: &impl Serialize,
        servers: &Brought,
    ) {
        let slot = self.session(key).slot;
        let why = Purpose::Restore { session: key, renews: name == "session/new" };
        if self.request_with(slot, why, name, params, servers).is_none() {
            return;
        }
        let timeout = self.profile_of(slot).restore_timeout;
        let cap = self.cx.now.after(timeout.saturating_mul(REPLAY_TIMES));
        if let Some(restore) = self.sessions.restore_mut(key) {
            restore.cap = cap;
        }
        self.cx.timers.set(Timer::Restore(key), self.cx.now.after(timeout));
    }

    /// Extends the time of a load with each line of the session or its subagents.
    pub(crate) fn replay_goes_on(&mut self, key: SessionKey) {
        let now = self.cx.now;
        let timeout = self.profile_of(self.session(key).slot).restore_timeout;
        let Some(restore) = self.sessions.restore_mut(key) else { return };
        let at = match restore.step() {
            Step::Settle => now.after(QUIET).min(restore.cap),
            Step::Load => now.after(timeout).min(restore.cap),
            _ => return,
        };
        self.cx.timers.set(Timer::Restore(key), at);
    }
}

const WITHHELD: &str = "its MCP servers were not given to the agent again (`restore_mcp = false`)";

const NOT_LOADED: &str =
    "its MCP servers are left out: the agent did not load the session with them";

/// A load that continues to send lines ends after this many times `restore_timeout`.
pub(crate) const REPLAY_TIMES: u64 = 10;

/// Silence that ends a replay that continues after the response (ms).
pub(crate) const QUIET: u64 = 300;
