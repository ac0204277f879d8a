//! Forks: sessions that continue from the state of another one, each for itself.
//!
//! ```text
//!  session/fork ─▶ the session is brought back, if it is not live ─▶ its directory is looked for
//!                                                                              │
//!   a session of acpd's, which begins ◀── answered ── its process is asked, the point kept
//!   with the journal up to the point        │
//!                                           └── error, process gone ─▶ the client's error
//! ```
//!
//! The agent makes a new session, so a fork is a `session/new` that begins with a journal
//! ([`crate::record::Record::Forked`]). It is never made again as an empty one, unless nothing was
//! said in its session either.
//!
//! Two sessions are then in one process. For agents with a process for each session that is one too
//! many: it would have to be closed there before it is restored elsewhere, which not every agent can.
//! So it is not offered for those.

use acp_wire::acp::SessionParams;
use acp_wire::{Id, Message, build, code, locate, remove_member, set_member};
use acpd_api::{NAMESPACE, NewSessionMeta, Outcome, Reason, SessionNotice, TurnEnded, method};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::clients::{Asked, Served};
use crate::fault::{Fault, renewed_fault};
use crate::hub::Hub;
use crate::ids::{Requester, SessionKey, SlotId};
use crate::input::Effect;
use crate::mcp::put_names;
use crate::mcp::server_list::undeclared;
use crate::params::{own_meta, raw, raw_at, session_cwd, valid_name};
use crate::process::slot::{Asker, WaitFor, Waiting};
use crate::profile::Sharing;
use crate::record::{Child, Dormant, EventKind, ForkPoint, Forked, Record, SessionRow};
use crate::requests::purpose::{Directory, NewSession, Purpose};
use crate::session::kin::unrelated;
use crate::session::replay::without_replay;
use crate::session::{Relayed, State};

/// Bytes of a journal that a fork takes over at most: all of them are copied in one transaction.
const MOST: u64 = 32 << 20;

impl Hub {
    /// Returns whether sessions of this agent can be forked.
    ///
    /// # Errors
    /// When the agent cannot, or has a process for each session.
    pub(crate) fn can_fork(&self, profile: &str) -> Result<(), Fault> {
        let refused = |text| Err(Fault::new(Reason::Other, text).with_code(code::METHOD_NOT_FOUND));
        if !self.processes.known(profile).capabilities.fork {
            return refused(format!("agent `{profile}` does not offer `session/fork`"))
                .map_err(|fault| fault.hint("begin a new session: `acpctl run -s NAME PROMPT`"));
        }
        match self.cx.config.agents.get(profile).map(|profile| profile.sharing) {
            Some(Sharing::Session) => refused(format!(
                "agent `{profile}` has a process for each session, and a fork begins in that of \
                 another one"
            ))
            .map_err(|fault| {
                fault.hint(format!(
                    "begin a new session: `acpctl run -s NAME PROMPT`; or let its sessions share a process, with \
                     `sharing = \"agent\"` under `[agents.{profile}]` in the configuration: a crash then \
                     takes all of them along, and MCP servers may be seen by other sessions"
                ))
            }),
            Some(Sharing::Agent) | None => Ok(()),
        }
    }

    pub(crate) fn fork_session(&mut self, asked: Asked<'_>, profile: &str) -> Served {
        let Asked { to, params, line, .. } = asked;
        // An agent that never ran shows its abilities when it does.
        if self.processes.known(profile).row.initialize.is_some() {
            self.can_fork(profile)?;
        }
        let params = params.ok_or_else(|| Fault::invalid("`params` is missing"))?;
        let cursor = raw_at(params.get().as_bytes(), &["cursorId"]);
        if cursor.is_some_and(|cursor| cursor.get() != "null") {
            return Err(Fault::invalid(
                "`cursorId` is not supported: a fork has the whole conversation",
            ));
        }
        let id = SessionParams::from_raw(params).session_id;
        let id = id.ok_or_else(|| Fault::invalid("`session/fork` needs a `sessionId`"))?;
        let key = self.sessions.by_public_id(profile, &id).ok_or_else(|| {
            Fault::no_session(&id)
                .hint("only sessions that acpd knows can be forked; `session/load` makes it one")
        })?;
        self.clients.may_control(to.client, key)?;
        if self.session(key).row.rest == Dormant::Lost {
            return Err(self.sessions.lost_fault(key));
        }
        self.fork_of(key, to, params)?;
        let (to, method, line) = (to.clone(), "session/fork".to_owned(), line.clone());
        self.session_mut(key).waiting.push(Relayed { to, method, line });
        self.need_session(key, Asker::Person);
        Ok(())
    }

    /// Returns the fork that a client asks for, if it is possible.
    fn fork_of(
        &self,
        key: SessionKey,
        to: &Requester,
        asked: &RawValue,
    ) -> Result<NewSession, Fault> {
        let params = SessionParams::from_raw(asked);
        let cwd = session_cwd(asked, &params)?;
        let meta = params.meta.map(|meta| own_meta::<NewSessionMeta>(meta.get())).transpose()?;
        let name = meta.flatten().and_then(|meta| meta.name);
        let session = self.session(key);
        let agent = &session.row.agent;
        if let Some(name) = &name {
            valid_name(name)?;
            let free = self.name_is_free(agent, &cwd, name, None);
            free.map_err(|fault| fault.hint("choose another name"))?;
        }
        let params = unrelated(&Bytes::copy_from_slice(asked.get().as_bytes()));
        let mut params = remove_member(&params, &["sessionId"]);
        // Values that the client does not give are those of the session.
        let own = |member| {
            let range = locate(&session.row.params, &[member])?;
            Some((member, Some(session.row.params.slice(range))))
        };
        let own = ["additionalDirectories", "systemPrompt"].into_iter().filter_map(own);
        let servers = self.servers_as_declared(key, to.client);
        for (member, value) in own.chain([("mcpServers", Some(servers))]) {
            if let (None, Some(value)) = (locate(&params, &[member]), value) {
                params = set_member(&params, &[member], &value);
            }
        }
        Ok(NewSession {
            to: to.clone(),
            name,
            cwd,
            params,
            notices: Vec::new(),
            directory: Directory::Unknown,
            fork: Some(self.sessions.fork_point(key)),
        })
    }

    /// The session is live: on with a request to fork it.
    pub(crate) fn begin_fork(&mut self, key: SessionKey, to: Requester, line: &Bytes) {
        match self.ready_to_fork(key, &to, line) {
            Ok(new) => {
                let slot = self.session(key).slot;
                self.serve_waiting(slot, Waiting { to, what: WaitFor::New(new) });
            }
            Err(fault) => self.refuse(&to, &fault),
        }
    }

    fn ready_to_fork(
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
        if self.processes[&session.slot].dedicated().is_some() {
            let text = "the agent's process is for this session alone";
            return blocked(text, "restart the agent to have it share one");
        }
        if self.session(key).owes_summary() {
            let text = "the agent has not been told yet what the session was about";
            return blocked(text, "send a prompt first");
        }
        match acp_wire::parse(line) {
            Ok(Message::Request { params: Some(params), .. }) => self.fork_of(key, to, params),
            _ => Err(Fault::invalid("`params` is missing")),
        }
    }

    pub(crate) fn ask_for_fork(&mut self, slot: SlotId, mut new: NewSession) {
        let Some(host) = self.processes[&slot].usable_host() else {
            return self.refuse(&new.to, &self.agent_fault(slot, Reason::AgentExited));
        };
        let key = new.fork.as_ref().map(|point| point.session);
        let is_live = |key: &SessionKey| {
            let session = self.sessions.get(key);
            session.is_some_and(|s| s.slot == slot && matches!(s.state, State::Live))
        };
        let Some(key) = key.filter(is_live) else {
            let text = "the agent does not hold the session any more that was to be forked";
            let fault = Fault::new(Reason::SessionBlocked, text).hint("try again");
            return self.refuse(&new.to, &fault);
        };
        new.fork = Some(self.sessions.fork_point(key));
        let (of, notices) = (new.to.client, &mut new.notices);
        let (servers, params) = self.gather_servers(slot, of, &new.cwd, &mut new.params, notices);
        let id = json!(self.session(key).row.agent_id).to_string();
        let params = raw(&set_member(&params, &["sessionId"], id.as_bytes()));
        let ask = self.ask(host, Purpose::NewSession(new));
        let line = build::request(&Id::issued(ask), "session/fork", &params);
        self.processes.write_named(&mut self.cx, slot, put_names(&line, &servers));
    }

    /// A fork was refused by a process that is being restarted: it waits until the next one has the
    /// session.
    pub(crate) fn fork_again(&mut self, new: NewSession) {
        let NewSession { to, name, params, fork, .. } = new;
        let key = fork.map(|point| point.session).filter(|key| self.sessions.contains_key(key));
        let Some(key) = key else { return self.refuse(&to, &renewed_fault()) };
        let id = json!(self.session(key).row.public_id).to_string();
        let mut params = set_member(&undeclared(&params), &["sessionId"], id.as_bytes());
        if let Some(name) = name {
            let name = json!(name).to_string();
            params = set_member(&params, &["_meta", NAMESPACE, "name"], name.as_bytes());
        }
        let (method, line) =
            ("session/fork", build::request(&to.id, "session/fork", &raw(&params)));
        self.session_mut(key).waiting.push(Relayed { to, method: method.to_owned(), line });
    }

    /// Lets a fork that was just made begin with what it goes on from.
    pub(crate) fn begin_forked(&mut self, key: SessionKey, point: &ForkPoint) {
        let public_id = self.session(key).row.public_id.clone();
        let parent = self.sessions.get(&point.session).map(|parent| &parent.row);
        let title = |row: &SessionRow| row.shown_title().map(str::to_owned);
        let parent =
            parent.map(|row| (row.public_id.clone(), title(row), row.usage.counter.clone()));
        let row = self.session_mut(key).row.edit();
        row.heard = point.heard;
        let Some((of, title, counter)) = parent else {
            let text = "the session that this one was forked from was deleted: what was said \
                        before is not shown";
            return self.notice(key, "warning", text);
        };
        row.title = title;
        // Some agents go on counting in a fork.
        row.usage.counter = counter;
        row.usage.counter.moved();
        row.prompts = point.prompts;
        row.last_prompt = point.last_prompt;
        row.open_tools.clone_from(&point.open_tools);
        self.session_mut(key).head = point.head;
        let left_out = SessionNotice {
            session_id: public_id.clone().into(),
            severity: "warning".into(),
            text: format!("only the last {} MiB of `{of}` were taken over", MOST >> 20).into(),
        };
        self.cx.record(Record::Forked(Forked {
            session: key,
            public_id: public_id.clone(),
            from: point.session,
            upto: point.head,
            most: MOST,
            left_out: build::notification(method::NOTICE, &left_out),
        }));
        if self.keeps_history(key) {
            self.cx.send(Effect::Index(key));
        }
        self.close_tools(key);
        // Children of the original continue there only.
        for child in &point.children {
            let is_own = child.parent == of;
            let parent = if is_own { public_id.clone() } else { child.parent.clone() };
            self.tell_child_over(key, &Child { parent, ..child.clone() });
        }
        if let Some(started) = point.turn {
            let ended = TurnEnded {
                cut_short: None,
                session_id: public_id.into(),
                turn: point.prompts,
                started_at: started.0,
                at: self.cx.now.0,
                outcome: Outcome::Interrupted {
                    reason: format!("it continues in `{of}` alone").into(),
                },
                tools: None,
                files: Vec::new(),
                usage: None,
            };
            let line = build::notification(method::TURN_ENDED, &ended);
            self.append(key, EventKind::Notice, line, None);
        }
        self.notice(key, "info", &format!("forked from `{of}`"));
    }
    /// There are agents that replay the conversation into a fork before they answer: it is there.
    pub(crate) fn drop_replay_of_fork(&mut self, key: SessionKey, of: SessionKey) {
        // Otherwise it is all that there is.
        if !self.sessions.contains_key(&of) {
            return;
        }
        let session = self.session(key);
        let (slot, last_prompt) = (session.slot, session.row.last_prompt);
        let id = session.row.agent_id.clone();
        if let Some(parked) = self.processes.parked_mut(slot, &id) {
            let (lines, is_cut) = parked.take();
            let (lines, last_prompt) = without_replay(lines, last_prompt, is_cut);
            for line in lines {
                parked.push(line);
            }
            self.session_mut(key).row.edit().last_prompt = last_prompt;
        }
    }
}
