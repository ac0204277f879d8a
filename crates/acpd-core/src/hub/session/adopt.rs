//! Sessions that an agent knows and acpd does not: made by the agent's own program, say. They are
//! listed beside acpd's own, and become its own when a client opens one.
//!
//! ```text
//!  session/list ─▶ agent runs and can list ─▶ asked ── answered ─▶ own sessions, then its others
//!                    │ no                        └── error, slow, gone ─┐
//!                    └──────────────────────────────────────────────────┴─▶ own sessions
//!
//!  session/load of an id that is not ours ─▶ the agent loads it; what it replays is parked
//!     ├── answered ─▶ a session of acpd's, the replay its history ─▶ opened for all who asked
//!     └── error ────▶ the client's error, and nothing is kept
//! ```
//!
//! Architecture invariant: a session is acpd's from the commit in which its whole history is in the
//! journal. A history that cannot be taken whole is not taken at all.

use acp_wire::acp::{SessionList, SessionParams};
use acp_wire::{ErrorObject, Id, Outcome, build, code, remove_member, set_member, str_at};
use acpd_api::{ArchiveFilter, LoadMeta, Reason};
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::auth::Refusal;
use crate::clients::{Asked, Served};
use crate::fault::{Fault, renewed_fault};
use crate::hub::Hub;
use crate::ids::{HostId, NOBODY, Process, Requester, SessionKey, SlotId, duration};
use crate::input::ReadStyle;
use crate::mcp::put_names;
use crate::params::{filter_of, own_meta, path, raw, session_cwd};
use crate::process::slot::{Parked, WaitFor, Waiting};
use crate::profile::Sharing;
use crate::record::{Replayable, SessionRow, Used};
use crate::requests::purpose::{Adoption, Directory, NewSession, Opener, Purpose, Wanted};
use crate::session::kin::unrelated;
use crate::session::replay::{HISTORY_BYTES, Replay, user_text};
use crate::session::restore::values_of;
use crate::timers::Timer;

/// An agent that has not listed its sessions in this time (ms) is not waited for.
const LIST_TIME: u64 = 3_000;

/// Sessions that are taken over at once.
const AT_ONCE: usize = 4;

/// Prefix of an agent's cursors among ours.
const CURSOR: &str = "agent:";

impl Hub {
    /// `session/list` of a client: what acpd knows, and what else the agent has if it runs.
    pub(crate) fn list_sessions(&mut self, asked: Asked<'_>, profile: &str) -> Served {
        let Asked { to, params, .. } = asked;
        let text = |name: &str| {
            let value = params.and_then(|params| str_at(params.get().as_bytes(), &[name]));
            value.map(std::borrow::Cow::into_owned)
        };
        let (cwd, archived) = (text("cwd"), filter_of(params)?);
        cwd.as_deref().map_or(Ok(()), |cwd| path("cwd", cwd))?;
        let cursor = match text("cursor") {
            None => None,
            Some(cursor) => Some(
                cursor
                    .strip_prefix(CURSOR)
                    .map(str::to_owned)
                    .ok_or_else(|| Fault::invalid(format!("`{cursor}` is no cursor of a list")))?,
            ),
        };
        let slot = self.processes.shared(profile, self.cx.now);
        let wanted = Wanted { cwd, archived, first: cursor.is_none() };
        let can = &self.processes.known(profile).capabilities;
        let (lists, archives) = (can.list, can.archive);
        let host = self.processes[&slot].usable_host().filter(|_| {
            let can = !self.store_health.is_failing() && !self.processes.is_clogged(slot);
            // One without an archive has nothing in it.
            can && lists && (archives || archived != ArchiveFilter::Only)
        });
        let Some(host) = host else {
            self.answer_list(to, profile, &wanted, None);
            return Ok(());
        };
        let mut asked = json!({});
        if let Some(cwd) = &wanted.cwd {
            asked["cwd"] = cwd.as_str().into();
        }
        if archives {
            asked["archived"] = json!(archived);
        }
        if let Some(cursor) = &cursor {
            asked["cursor"] = cursor.as_str().into();
        }
        let why = Purpose::List { to: to.clone(), wanted };
        let ask = self.ask(host, why);
        self.processes.write(
            &mut self.cx,
            slot,
            build::request(&Id::issued(ask), "session/list", &asked),
        );
        self.cx.timers.set(Timer::Asked(ask), self.cx.now.after(LIST_TIME));
        Ok(())
    }

    /// The agent has listed its sessions, or has not.
    pub(crate) fn listed(
        &mut self,
        slot: SlotId,
        to: &Requester,
        wanted: &Wanted,
        result: Option<&RawValue>,
    ) {
        let profile = self.processes[&slot].profile().to_owned();
        self.answer_list(to, &profile, wanted, result);
    }

    pub(crate) fn on_list_timer(&mut self, ask: u64) {
        let Some((host, Purpose::List { to, wanted })) = self.give_up_ask(ask, None) else {
            return;
        };
        let Some(slot) = self.processes.slot_of(host) else { return };
        self.listed(slot, &to, &wanted, None);
    }

    fn answer_list(
        &mut self,
        to: &Requester,
        profile: &str,
        wanted: &Wanted,
        page: Option<&RawValue>,
    ) {
        let mut rows: Vec<_> = self.sessions.values().map(|session| &session.row).collect();
        rows.retain(|row| row.agent == profile);
        let others = page.map(SessionList::from_raw);
        let next = others.as_ref().and_then(|page| page.next_cursor.as_ref());
        let next = next.map(|cursor| format!("{CURSOR}{cursor}"));
        let is_of = |row: &SessionRow, id: &str| {
            row.agent_id == id || row.public_id == id || row.children.contains_key(id)
        };
        let ours =
            |id: &str| rows.iter().any(|row| is_of(row, id)) || self.sessions.is_aside(profile, id);
        let others = others.into_iter().flat_map(|page| page.sessions);
        let (ours, others): (Vec<_>, Vec<_>) = others.partition(|other| ours(&other.session_id));
        let Wanted { cwd, archived, first } = wanted;
        rows.retain(|row| archived.takes(row.archived) && self.lists(to.client, row.key));
        rows.retain(|row| *first && cwd.as_ref().is_none_or(|cwd| row.cwd == *cwd));
        rows.sort_by_key(|row| std::cmp::Reverse(row.updated));
        let own = rows.iter().map(|row| {
            let at = jiff::Timestamp::from_millisecond(row.updated.0 as i64);
            let listed = ours.iter().find(|other| other.session_id == row.agent_id);
            let listed = listed.and_then(|other| other.title.as_deref());
            let title = row.shown_title().or(row.name.as_deref()).or(listed);
            let at = at.map(|at| at.to_string()).ok();
            entry(&row.public_id, &row.cwd, title, at.as_deref(), row.archived)
        });
        // A client cannot open what it does not know the directory of.
        let others = others.iter().filter(|other| archived.takes(other.archived));
        let others = others.filter_map(|other| {
            let (title, at) = (other.title.as_deref(), other.updated_at.as_deref());
            Some(entry(&other.session_id, other.cwd.as_deref()?, title, at, other.archived))
        });
        let sessions: Vec<_> = own.chain(others).collect();
        let mut result = json!({ "sessions": sessions });
        if let Some(next) = next {
            result["nextCursor"] = next.into();
        }
        self.answer(to, &result);
    }

    /// A request about a session that acpd does not know: the agent may.
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
                return self.with_agent(slot, Waiting { to: to.clone(), what });
            }
            _ => return Err(Fault::no_session(session)),
        };
        if self.sessions.is_ours(profile, session)
            || !(unknown || self.way(profile, style).is_some())
        {
            return Err(Fault::no_session(session));
        }
        let raw = params.ok_or_else(|| Fault::invalid("`params` is missing"))?;
        let params = SessionParams::from_raw(raw);
        let cwd = session_cwd(raw, &params)?;
        let meta = params.meta.map(|meta| own_meta::<LoadMeta>(meta.get())).transpose()?;
        let after = meta.flatten().and_then(|meta| meta.after).unwrap_or(0);
        let mut params = unrelated(&Bytes::copy_from_slice(raw.get().as_bytes()));
        if !self.clients.may_decide(to.client) {
            // The session would keep these for good.
            params = set_member(&params, &["mcpServers"], b"[]");
        }
        let adoption = Adoption {
            id: session.to_owned(),
            cwd,
            params,
            openers: vec![Opener { to: to.clone(), style, after }],
            notices: Vec::new(),
            directory: Directory::Unknown,
        };
        if self.cx.config.agents[profile].sharing == Sharing::Session && self.winds_up(profile) {
            let text = format!("a process that may hold `{session}` is still ending");
            return Err(Fault::new(Reason::SessionBlocked, text)
                .session(session)
                .hint("try again in a moment"));
        }
        let offer = self.clients.get(&to.client).and_then(|client| client.offer.clone());
        let slot = self.slot_for_new(profile, offer.as_deref());
        let waiting = Waiting { to: to.clone(), what: WaitFor::Adopt(adoption) };
        let asked = self.with_agent(slot, waiting);
        self.remove_unused_slot(slot);
        asked
    }

    /// Returns whether the agent may be asked about a session of its own.
    fn may_do(&mut self, profile: &str, method: &str) -> bool {
        let can = self.processes.known(profile).capabilities;
        let offered = match method {
            "session/delete" => return can.delete,
            "session/status" => can.status,
            "session/set_title" => can.title,
            "session/archive" | "session/unarchive" => can.archive,
            _ => false,
        };
        // None of these is worth a start.
        let slot = self.processes.shared(profile, self.cx.now);
        offered && self.processes[&slot].is_up()
    }

    /// Returns whether a process of a deleted session still exists.
    fn winds_up(&self, profile: &str) -> bool {
        self.processes.values().any(|agent| {
            let of = agent.dedicated().filter(|key| *key != SessionKey::UNMADE);
            let gone = of.is_some_and(|key| !self.sessions.contains_key(&key));
            agent.profile() == profile && agent.host().is_some() && gone
        })
    }

    /// The method by which the agent can give a session back that it knows.
    fn way(&self, profile: &str, style: ReadStyle) -> Option<&'static str> {
        let (config, known) = (&self.cx.config.agents[profile], self.processes.known(profile));
        let load = known.loads(config).then_some("session/load");
        match style {
            ReadStyle::History => load,
            // Later clients want the history.
            _ => load.or(known.resumes(config).then_some("session/resume")),
        }
    }

    /// Asks the agent for a session, now that it runs.
    pub(crate) fn begin_adoption(&mut self, slot: SlotId, mut adoption: Adoption) {
        let profile = self.processes[&slot].profile().to_owned();
        // Open requests for the session may have become acpd's while this waited.
        if let Some(key) = self.sessions.by_public_id(&profile, &adoption.id) {
            return self.open_adopted(&adoption.openers, key);
        }
        let hosts = self.hosts_of(&profile);
        let is_it = |host: &HostId, open: &Adoption| hosts.contains(host) && open.id == adoption.id;
        if let Some((_, _, open)) =
            self.requests.adoptions().find(|(_, host, open)| is_it(host, open))
        {
            return open.openers.append(&mut adoption.openers);
        }
        if self.works_on(slot, &adoption.id) {
            let to = adoption.openers[0].to.clone();
            let waiting = Waiting { to, what: WaitFor::Adopt(adoption) };
            return self.processes.wait(slot, waiting);
        }
        if adoption.directory != Directory::There {
            let to = adoption.openers[0].to.clone();
            let waiting = Waiting { to, what: WaitFor::Adopt(adoption) };
            return self.find_directory_for(slot, waiting);
        }
        let host = self.processes[&slot].usable_host();
        if host.is_some_and(|host| self.requests.may_replay(host, &adoption.id)) {
            // These lines could not be told from those of the next replay.
            let text =
                format!("the agent is still loading `{}` for an earlier request", adoption.id);
            let fault = Fault::new(Reason::SessionBlocked, text)
                .session(&adoption.id)
                .hint("try again in a moment");
            return self.refuse_adoption(&adoption, &fault);
        }
        if self.requests.adoptions().count() >= AT_ONCE {
            let text = format!("{AT_ONCE} sessions are being taken over already");
            let fault = Fault::new(Reason::TooMany, text).hint("try again in a moment");
            return self.refuse_adoption(&adoption, &fault);
        }
        let style = adoption.openers[0].style;
        let (Some(method), Some(host)) =
            (self.way(&profile, style), self.processes[&slot].usable_host())
        else {
            let fault = Fault::no_session(&adoption.id);
            return self.refuse_adoption(&adoption, &fault);
        };
        // Lines before the request are no part of its history.
        self.processes.take_parked(&mut self.cx, Process { slot, host }, &adoption.id);
        let opener = adoption.openers[0].to.client;
        let (params, notices) = (&mut adoption.params, &mut adoption.notices);
        let (servers, params) = self.gather_servers(slot, opener, &adoption.cwd, params, notices);
        let ask = self.ask(host, Purpose::Adopt(Box::new(adoption)));
        let line = build::request(&Id::issued(ask), method, &raw(&params));
        self.processes.write_named(&mut self.cx, slot, put_names(&line, &servers));
        self.await_adoption(slot, ask);
    }

    pub(crate) fn await_adoption(&mut self, slot: SlotId, ask: u64) {
        let timeout = self.profile_of(slot).restore_timeout;
        self.cx.timers.set(Timer::Asked(ask), self.cx.now.after(timeout));
    }

    /// A line for a session that may be being taken over: the bytes that are there already if it is. A
    /// long history takes its time; what counts is that it goes on.
    pub(crate) fn adoption_goes_on(&mut self, process: Process, session: &str) -> Option<usize> {
        let ask = self.requests.adoption_ask(process.host, session)?;
        self.await_adoption(process.slot, ask);
        Some(self.processes.parked(process.slot, session).map_or(0, Parked::bytes))
    }

    /// The agent neither answers nor goes on with the history.
    pub(crate) fn on_adopt_timer(&mut self, ask: u64) {
        let host = self.requests.adoptions().find(|(id, ..)| *id == ask).map(|(_, host, _)| host);
        let Some(slot) = host.and_then(|host| self.processes.slot_of(host)) else { return };
        let time = duration(self.profile_of(slot).restore_timeout);
        let text = format!("the agent did not load it within {time}");
        self.give_up_adoption(slot, ask, &Fault::new(Reason::AgentTimeout, text));
    }

    /// Returns whether a request to open a session was for one that is being adopted; it is
    /// answered then.
    pub(crate) fn cancel_opener(&mut self, to: &Requester) -> bool {
        let mut gone = Vec::new();
        for (_, _, adoption) in self.requests.adoptions() {
            gone.extend(adoption.openers.extract_if(.., |opener| opener.to == *to));
        }
        let fault = Fault::new(Reason::Interrupted, "cancelled while the agent was loading it")
            .with_code(code::CANCELLED);
        for opener in &gone {
            self.refuse(&opener.to, &fault);
        }
        !gone.is_empty()
    }

    fn give_up_adoption(&mut self, slot: SlotId, ask: u64, fault: &Fault) {
        let found = self.requests.adoptions().find(|(id, ..)| *id == ask);
        let Some(id) = found.map(|(.., open)| open.id.clone()) else { return };
        let Some((host, Purpose::Adopt(adoption))) = self.give_up_ask(ask, Some(id)) else {
            return;
        };
        self.refuse_adoption(&adoption, fault);
        self.processes.take_parked(&mut self.cx, Process { slot, host }, &adoption.id);
    }

    fn hosts_of(&self, profile: &str) -> Vec<HostId> {
        let slots = self.processes.of_profile(profile).into_iter();
        slots.filter_map(|slot| self.processes[&slot].host().map(|host| host.id)).collect()
    }

    pub(crate) fn refuse_adoption(&mut self, adoption: &Adoption, fault: &Fault) {
        for opener in &adoption.openers {
            self.refuse(&opener.to, fault);
        }
    }

    /// The history of a session that is being taken over is longer than can be kept.
    pub(crate) fn adoption_too_long(&mut self, process: Process, session: &str) {
        let Some(ask) = self.requests.adoption_ask(process.host, session) else { return };
        let text = format!("the history of `{session}` is over {} MiB", HISTORY_BYTES >> 20);
        let fault = Fault::new(Reason::TooMany, text)
            .session(session)
            .hint("continue it in the agent's own program");
        self.give_up_adoption(process.slot, ask, &fault);
    }

    /// The agent has loaded a session that is to become ours, and said before what was in it.
    pub(crate) fn adopted(
        &mut self,
        process: Process,
        adoption: &Adoption,
        line: &Bytes,
        outcome: Outcome<'_>,
    ) {
        let result = match outcome {
            Outcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                if self.note_refusal(process.slot, "session/load", &error) == Refusal::Renewed {
                    return self.refuse_adoption(adoption, &renewed_fault());
                }
                for opener in &adoption.openers {
                    let line = self.for_client(process.slot, &opener.to, line);
                    self.respond(&opener.to, None, line);
                }
                return;
            }
            Outcome::Result(result) => result,
        };
        if !self.claim_id(process.slot, &adoption.id) {
            let text = format!("the agent holds another session under the id `{}`", adoption.id);
            let fault = Fault::new(Reason::AgentProtocol, text);
            return self.refuse_adoption(adoption, &fault);
        }
        self.note_success(process.slot, "session/load");
        let new = NewSession {
            to: Requester { client: NOBODY, id: Id::null() },
            name: None,
            cwd: adoption.cwd.clone(),
            params: remove_member(&adoption.params, &["sessionId"]),
            notices: Vec::new(),
            directory: Directory::There,
            fork: None,
        };
        let profile = self.processes[&process.slot].profile().to_owned();
        let was_loaded = self.way(&profile, ReadStyle::History).is_some();
        let key = self.adopt_new(process.slot, &new, &adoption.id);
        // Where the rest of the history comes as if it were new, nothing of a later replay must.
        let late = self.profile_of(process.slot).late_replay;
        let parked = self.processes.parked(process.slot, &adoption.id).filter(|_| !late);
        let last_prompt = last_prompt(parked.map_or(&[], Parked::lines));
        let row = self.session_mut(key).row.edit();
        // An adopted session is never created again: the agent may have more of it than it has
        // shown.
        row.heard = true;
        row.last_prompt = last_prompt;
        // Cost from before the adoption is not counted.
        row.usage = Used::default();
        let (modes, options) = values_of(result);
        self.sessions.take_values(&mut self.cx, key, modes, options, true);
        self.deliver_parked(process, &adoption.id);
        let session = self.session_mut(key);
        // All turns are over, with all open calls.
        session.calls.clear();
        session.row.edit().open_tools.clear();
        if !was_loaded {
            let text = "what was said before acpd took the session over is not shown: the agent cannot load it";
            self.notice(key, "warning", text);
        }
        self.open_adopted(&adoption.openers, key);
        for text in &adoption.notices {
            self.notice(key, "warning", text);
        }
    }

    fn open_adopted(&mut self, openers: &[Opener], key: SessionKey) {
        for Opener { to, style, after } in openers {
            if self.clients.contains_key(&to.client) {
                self.show_session(to, key, *after, *style, String::new());
            }
        }
    }
}

/// Hash of the last prompt in a replay, by which a later replay is told from news.
fn last_prompt(replayed: &[Bytes]) -> u64 {
    let mut replay = Replay::new(0, Replayable::default());
    for line in replayed {
        replay.line(line.clone(), user_text(line).as_deref());
    }
    replay.last_seen()
}

/// A session as a list has it. What is not known is left out: the schema allows null as well, but there
/// are clients that fail on it.
fn entry(
    id: &str,
    cwd: &str,
    title: Option<&str>,
    updated_at: Option<&str>,
    archived: bool,
) -> Value {
    let mut entry = json!({ "sessionId": id, "cwd": cwd, "archived": archived });
    let known = [("title", title), ("updatedAt", updated_at)];
    for (member, text) in known.into_iter().filter_map(|(member, text)| Some((member, text?))) {
        entry[member] = text.into();
    }
    entry
}
