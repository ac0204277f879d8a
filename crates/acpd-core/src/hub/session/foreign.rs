//! Sessions that only an agent knows, for example from its own program. Lists show them after
//! acpd's; a client can adopt one (`adopt.rs`).
//!
//! ```text
//!  session/list ─▶ agent runs and can list ─▶ asked ── answered ─▶ own sessions, then its others
//!                    │ no                        └── error, slow, gone ─┐
//!                    └──────────────────────────────────────────────────┴─▶ own sessions
//! ```

use acp_wire::acp::SessionList;
use acp_wire::{set_member, str_at};
use acpd_api::{ArchiveFilter, LoadMeta, Reason};
use serde_json::json;
use serde_json::value::RawValue;

use crate::clients::{Asked, Served};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::hub::session::adopt::{CURSOR, entry};
use crate::ids::{Requester, SessionKey, SlotId};
use crate::input::ReadStyle;
use crate::params::{filter_of, path, read_opening, without_nulls};
use crate::process::slot::{Slot, WaitFor, Waiting};
use crate::profile::Sharing;
use crate::record::{Adoption, Opener, Purpose, Wanted};

impl Hub {
    pub(crate) fn list_sessions(&mut self, asked: Asked<'_>, profile: &str) -> Served {
        let Asked { to, params, .. } = asked;
        let text = |name: &str| {
            let value = params.and_then(|params| str_at(params.get().as_bytes(), &[name]));
            value.map(std::borrow::Cow::into_owned)
        };
        let (cwd, archived) = (text("cwd"), filter_of(params)?);
        cwd.as_deref().map_or(Ok(()), |cwd| path("cwd", cwd))?;
        let cursor = text("cursor").map(|cursor| {
            let own = cursor.strip_prefix(CURSOR).map(str::to_owned);
            own.ok_or_else(|| Fault::invalid(format!("`{cursor}` is no cursor of a list")))
        });
        let cursor = cursor.transpose()?;
        let slot = self.processes.shared(profile, self.cx.now);
        let wanted = Wanted { cwd, archived, first: cursor.is_none() };
        let can = &self.processes.known(profile).capabilities;
        let (lists, archives) = (can.list, can.archive);
        let can = !self.cx.is_failing() && !self.processes.is_clogged(slot);
        // An agent without an archive has no archived sessions.
        let has_some = lists && (archives || archived != ArchiveFilter::Only);
        if !can || !has_some || !self.processes[&slot].is_up() {
            self.listed(slot, to, &wanted, None);
            return Ok(());
        }
        let archived = archives.then_some(archived);
        let asked = json!({ "cwd": wanted.cwd, "archived": archived, "cursor": cursor });
        let asked = without_nulls(asked);
        let why = Purpose::List { to: to.clone(), wanted };
        self.request(slot, why, "session/list", &asked);
        Ok(())
    }

    /// Answers with acpd's sessions, and with the page of the agent's list.
    pub(crate) fn listed(
        &mut self,
        slot: SlotId,
        to: &Requester,
        wanted: &Wanted,
        page: Option<&RawValue>,
    ) {
        let profile = self.processes[&slot].profile();
        let others = page.map(SessionList::from_raw);
        let next = others.as_ref().and_then(|page| page.next_cursor.as_ref());
        let next = next.map(|cursor| format!("{CURSOR}{cursor}"));
        let others = others.into_iter().flat_map(|page| page.sessions);
        let (ours, others): (Vec<_>, Vec<_>) =
            others.partition(|other| self.sessions.is_ours(profile, &other.session_id));
        let Wanted { cwd, archived, first } = wanted;
        let mut rows: Vec<_> = self.sessions.values().map(|session| &session.row).collect();
        rows.retain(|row| row.agent == profile && archived.takes(row.archived));
        rows.retain(|row| *first && cwd.as_ref().is_none_or(|cwd| row.cwd == *cwd));
        rows.retain(|row| self.is_listed_for(to.client, row.key));
        rows.sort_by_key(|row| std::cmp::Reverse(row.updated));
        let own = rows.iter().map(|row| {
            let at = jiff::Timestamp::from_millisecond(row.updated.0 as i64);
            let listed = ours.iter().find(|other| other.session_id == row.agent_id);
            let listed = listed.and_then(|other| other.title.as_deref());
            let title = row.shown_title().or(row.name.as_deref()).or(listed);
            let at = at.map(|at| at.to_string()).ok();
            entry(&row.public_id, &row.cwd, title, at.as_deref(), row.archived)
        });
        // A client cannot open a session without its directory.
        let others = others.iter().filter(|other| archived.takes(other.archived));
        let others = others.filter_map(|other| {
            let (title, at) = (other.title.as_deref(), other.updated_at.as_deref());
            Some(entry(&other.session_id, other.cwd.as_deref()?, title, at, other.archived))
        });
        let sessions: Vec<_> = own.chain(others).collect();
        self.answer(to, &without_nulls(json!({ "sessions": sessions, "nextCursor": next })));
    }

    pub(crate) fn ask_about_foreign(
        &mut self,
        asked: Asked<'_>,
        profile: &str,
        session: &str,
    ) -> Served {
        let Asked { to, method, params, line } = asked;
        let unknown = self.processes.known(profile).row.initialize.is_none();
        let style = match method {
            "session/load" => ReadStyle::History,
            "session/resume" => ReadStyle::Resume,
            _ if self.may_do(profile, method) && !self.sessions.is_ours(profile, session) => {
                let slot = self.processes.shared(profile, self.cx.now);
                let what = WaitFor::Relay { method: method.to_owned(), line: line.clone() };
                return self.with_agent(slot, Waiting::new(to.clone(), what));
            }
            _ => return Err(Fault::no_session(session)),
        };
        if self.sessions.is_ours(profile, session)
            || !(unknown || self.load_method(profile, style).is_some())
        {
            return Err(Fault::no_session(session));
        }
        let raw = params.ok_or_else(|| Fault::invalid("`params` is missing"))?;
        let (cwd, LoadMeta { after, .. }, mut params) = read_opening(raw)?;
        if !self.clients.may_decide(to.client) {
            // Servers of a tool would stay in the session for good.
            params = set_member(&params, &["mcpServers"], b"[]");
        }
        let adoption = Adoption {
            id: session.to_owned(),
            cwd,
            params,
            openers: vec![Opener { to: to.clone(), style, after: after.unwrap_or(0) }],
            notices: Vec::new(),
        };
        // A process of a deleted session may still exist.
        let winds_up = |agent: &Slot| {
            let of = agent.dedicated.filter(|key| *key != SessionKey::UNMADE);
            let is_gone = of.is_some_and(|key| !self.sessions.contains_key(&key));
            agent.profile() == profile && agent.host().is_some() && is_gone
        };
        if self.cx.config.agents[profile].sharing == Sharing::Session
            && self.processes.values().any(winds_up)
        {
            let text = format!("a process that may hold `{session}` is still ending");
            return Err(Fault::new(Reason::SessionBlocked, text)
                .session(session)
                .hint("try again in a moment"));
        }
        self.open_at_agent(profile, to.clone(), WaitFor::Adopt(adoption))
    }

    /// Returns whether to ask the agent about a session of its own.
    fn may_do(&mut self, profile: &str, method: &str) -> bool {
        let can = self.processes.known(profile).capabilities;
        let offered = match method {
            "session/delete" => return can.delete,
            "session/status" => can.status,
            "session/set_title" => can.title,
            "session/archive" | "session/unarchive" => can.archive,
            _ => false,
        };
        // No agent is started for these.
        let slot = self.processes.shared(profile, self.cx.now);
        offered && self.processes[&slot].is_up()
    }
}
