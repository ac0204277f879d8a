//! A session in memory. All of `hub/` changes its fields; only `hub/session/` changes `state`. The
//! diagram is in `hub/session/sessions.rs`.

pub(crate) mod activity;
mod calls;
pub(crate) mod child;
pub(crate) mod entities;
pub(crate) mod kin;
pub(crate) mod limit;
pub(crate) mod replay;
pub(crate) mod reseed;
pub(crate) mod restore;
mod saved;
pub(crate) mod table;
pub(crate) mod title;
pub(crate) mod turn;
pub(crate) mod usage;
pub(crate) mod work;

use std::collections::{BTreeMap, VecDeque};

use acp_wire::acp::{Modes, SessionUpdate, Update};
use acp_wire::dialect::BackgroundWork;
use acp_wire::{UpdateClass, build, remove_member, set_member};
use acpd_api::{Doing, RestoreLevel, SessionInfo, TurnInfo, TurnState, Usage, WorkInfo};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::cx::Cx;
use crate::fault::{Fault, login_hint};
use crate::ids::{ClientId, HostId, Requester, Seq, SessionKey, SlotId, Time};
use crate::record::{Dormant, ForkPoint, Row, SessionRow, SessionState, ValueKey};
use crate::session::activity::Activity;
use crate::session::entities::Messages;
use crate::session::kin::Kin;
use crate::session::limit::Held;
use crate::session::reseed::Summary;
use crate::session::restore::{
    Restore, Step, Values, current_mode, mode_option, option_map, settings, values_of,
};
use crate::session::saved::Saved;
use crate::session::turn::{Queued, Running};
use crate::tool_calls::call::Call;
use crate::views::JournalHead;

const ID_BYTES: usize = 1 << 10;

/// A session in memory. Values that only an attach needs stay in the store.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) row: Saved<SessionRow>,
    pub(crate) kin: Kin,
    pub(crate) head: Seq,
    pub(crate) mcp_servers: Option<Bytes>,
    pub(crate) slot: SlotId,
    /// Beginning of the agent's session if this daemon has seen it, else of acpd's.
    pub(crate) began: Time,
    /// Time when the process got the session, if this daemon has seen that.
    pub(crate) held_since: Time,
    pub(crate) state: State,
    pub(crate) queue: VecDeque<Queued>,
    pub(crate) running: Option<Box<Running>>,
    /// Requests other than prompts that wait for the restore.
    pub(crate) waiting: Vec<Relayed>,
    /// Restore without a prompt: the session was interrupted, or a client opened it.
    pub(crate) eager: bool,
    /// The process at which a restore of this session was given up.
    pub(crate) doubtful: Option<HostId>,
    /// Set after a load until the next prompt.
    pub(crate) late_replay: LateReplay,
    /// Number of processes in a row that died after a good run while they restored this session.
    pub(crate) loads_cut_off: u32,
    /// Number of prompts in a row that the agent refused without an error about a login.
    pub(crate) refusals: u32,
    pub(crate) summary: Summary,
    /// Tool calls of the running turn.
    pub(crate) calls: BTreeMap<String, Call>,
    pub(crate) activity: Activity,
    pub(crate) messages: Messages,
    /// Beginning of the last prompt, if its sender wrapped the user's words.
    pub(crate) wrapped: Option<String>,
    pub(crate) why_cut_off: Option<String>,
    /// The state that clients were told last.
    pub(crate) told: TurnState,
    /// End of the last reported usage limit.
    pub(crate) limit: Option<Time>,
}

#[derive(Debug, Default)]
pub(crate) enum State {
    Live,
    Restoring(Box<Restore>),
    /// No process; the row has the reason.
    #[default]
    Dormant,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LateReplay {
    #[default]
    None,
    /// None of it has come.
    Possible,
    /// A user message has come. Lines until the next prompt belong to it.
    Coming,
}

#[derive(Debug)]
pub(crate) struct Relayed {
    pub(crate) to: Requester,
    pub(crate) method: String,
    pub(crate) line: Bytes,
}

/// Maximum number of remembered open tool calls, which acpd closes if the agent dies.
pub(crate) const OPEN_TOOLS: usize = 256;

impl Session {
    /// Returns a line with an update of acpd's own.
    pub(crate) fn update_line(&self, update: Update<'_>) -> Bytes {
        let session_id = &self.row.public_id;
        build::notification("session/update", &SessionUpdate { session_id, update })
    }

    pub(crate) fn next_ticket(&mut self) -> u64 {
        let row = self.row.edit();
        row.last_ticket += 1;
        row.last_ticket
    }

    pub(crate) fn recovered(kept: SessionState, slot: SlotId, state: State) -> Session {
        let SessionState { mut row, head, mcp_servers } = kept;
        if !matches!(state, State::Live) {
            row.agent_state = TurnState::Idle;
        }
        Session {
            kin: Kin::of(&row.params),
            began: row.created,
            told: if matches!(state, State::Live) { row.agent_state } else { TurnState::Idle },
            row: Saved::new(row),
            head,
            mcp_servers,
            slot,
            state,
            ..Session::default()
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self.state, State::Live)
    }

    pub(crate) fn is_restoring(&self) -> bool {
        matches!(self.state, State::Restoring(_))
    }

    /// Returns whether no turn, prompt or request of the session runs or waits.
    pub(crate) fn is_asleep(&self) -> bool {
        let is_idle = self.running.is_none() && self.row.children.is_empty();
        is_idle && self.is_dormant() && !self.is_awaited() && !self.eager
    }

    /// Returns whether nothing happens in it, and it waits for nothing.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_asleep() && self.api_state() != acpd_api::SessionState::Blocked
    }

    pub(crate) fn is_dormant(&self) -> bool {
        matches!(self.state, State::Dormant)
    }

    pub(crate) fn restore(&self) -> Option<&Restore> {
        match &self.state {
            State::Restoring(restore) => Some(restore),
            State::Live | State::Dormant => None,
        }
    }

    /// Returns whether a restore of this session was given up at this process, which may still
    /// replay it.
    pub(crate) fn is_doubtful_at(&self, host: Option<HostId>) -> bool {
        self.doubtful.is_some() && self.doubtful == host
    }

    /// Returns whether a process has the session, if only settings or the end of a replay are
    /// missing.
    pub(crate) fn is_open(&self) -> bool {
        let is_loaded = |of: &Restore| matches!(of.step(), Step::Settle | Step::Settings);
        self.is_live() || self.restore().is_some_and(is_loaded)
    }

    pub(crate) fn api_state(&self) -> acpd_api::SessionState {
        use acpd_api::SessionState::{Blocked, Closed, Live, Lost, Parked, Restoring};
        match (&self.state, self.row.rest) {
            (State::Restoring(_), _) => Restoring,
            (State::Live | State::Dormant, Dormant::NeedsLogin) => Blocked,
            (State::Live, _) => Live,
            (State::Dormant, Dormant::Parked) => Parked,
            (State::Dormant, Dormant::Closed) => Closed,
            (State::Dormant, Dormant::Failed | Dormant::NoDirectory) => Blocked,
            (State::Dormant, Dormant::Lost) => Lost,
        }
    }

    pub(crate) fn restore_params(&self) -> Bytes {
        // The values in force are set again later.
        let mut params = remove_member(&self.row.params, &["configOptions"]);
        if let Some(servers) = &self.mcp_servers {
            params = set_member(&params, &["mcpServers"], servers);
        }
        params
    }

    pub(crate) fn servers(&self) -> Bytes {
        self.mcp_servers.clone().unwrap_or(Bytes::from_static(b"[]"))
    }

    pub(crate) fn has_servers(&self) -> bool {
        let servers = self.mcp_servers.as_ref();
        servers.is_some_and(|list| list.contains(&b'{'))
    }

    /// `is_new`: the update is the first about the call.
    pub(crate) fn follow_tool(&mut self, id: &str, is_new: bool, status: Option<&str>, now: Time) {
        let open = &self.row.open_tools;
        let is_open = open.contains(id);
        match status {
            Some("completed" | "failed" | "cancelled") => {
                if is_open {
                    self.row.edit().open_tools.remove(id);
                }
                self.activity.call_over(id, now);
                return;
            }
            // An update about an ended call does not open it again.
            None if !is_new && !is_open => return,
            _ if is_open => {}
            _ if open.len() < OPEN_TOOLS && id.len() <= ID_BYTES => {
                self.row.edit().open_tools.insert(id.to_owned());
            }
            _ => return,
        }
        if self.running.is_some() {
            self.activity.calls(id, now);
        }
    }

    /// Sets the mode in force. An option `mode` with the same value follows, because not every
    /// agent reports it.
    pub(crate) fn note_mode(&mut self, mode: String) {
        let row = self.row.edit();
        let old = row.mode.replace(mode.clone());
        if let (Some(old), Some(option)) = (old, row.options.get_mut("mode"))
            && serde_json::from_str::<String>(option).is_ok_and(|option| option == old)
        {
            *option = json!(mode).to_string();
        }
    }

    /// Returns the queued prompts, then that of the running turn.
    fn prompts(&self) -> impl Iterator<Item = &Queued> {
        self.queue.iter().chain(self.running.iter().map(|turn| &turn.prompt))
    }

    pub(crate) fn senders(&self) -> impl Iterator<Item = &Requester> {
        self.prompts().flat_map(|prompt| &prompt.senders)
    }

    pub(crate) fn prompts_mut(&mut self) -> impl Iterator<Item = &mut Queued> {
        self.queue.iter_mut().chain(self.running.iter_mut().map(|turn| &mut turn.prompt))
    }

    pub(crate) fn is_awaited(&self) -> bool {
        !self.queue.is_empty() || !self.waiting.is_empty()
    }

    /// Another death of the agent during this restore must not interrupt other restores.
    pub(crate) fn is_restored_alone(&self) -> bool {
        self.loads_cut_off > 0
    }

    pub(crate) fn journal(&self) -> JournalHead<'_> {
        JournalHead {
            session: self.row.key,
            public_id: &self.row.public_id,
            head: self.head,
            state: self.told,
            mode: self.row.mode.as_deref(),
            background: self.row.lists_background.then_some(&self.row.background),
        }
    }

    /// `asks`: a question is open.
    pub(crate) fn turn_state(&self, asks: bool) -> TurnState {
        match self.running {
            _ if asks => TurnState::NeedsAction,
            Some(_) => TurnState::Working,
            None => TurnState::Idle,
        }
    }

    /// Returns whether the agent works without a prompt, as it says.
    pub(crate) fn works_alone(&self) -> bool {
        self.running.is_none() && self.told != TurnState::Idle
    }

    /// Returns whether the agent has work outside of the session's turns.
    pub(crate) fn works_outside_turns(&self) -> bool {
        let has_busy_child = self.row.children.values().any(|child| child.busy);
        has_busy_child || self.works_alone() || !self.row.background.is_empty()
    }

    /// Settings that the result does not show in force will be set again.
    pub(crate) fn take_restored_values(&mut self, cx: &mut Cx, result: &RawValue) {
        let (modes, options) = values_of(result);
        self.take_values(cx, (modes, options));
        if let State::Restoring(restore) = &mut self.state {
            let row = &self.row;
            restore.settings = settings(&row.options, row.mode.as_deref(), (modes, options));
            restore.shown_mode = modes.and_then(current_mode);
            restore.shown_options = options.map(ToOwned::to_owned);
        }
    }

    /// Stores `modes` and `configOptions` of a result for later attaches. After a restore, the
    /// values in force are set again.
    pub(crate) fn take_values(&mut self, cx: &mut Cx, (modes, options): Values<'_>) {
        let options = options.filter(|options| options.get() != "null");
        let values = [(ValueKey::Modes, modes), (ValueKey::ConfigOptions, options)];
        for (key, raw) in values {
            if let Some(raw) = raw.filter(|raw| raw.get() != "null") {
                let json = Bytes::copy_from_slice(raw.get().as_bytes());
                cx.put(Row::Value { session: self.row.key, key, json });
            }
        }
        if self.is_restoring() {
            return;
        }
        let row = self.row.edit();
        if let Some(modes) = modes.and_then(|raw| Modes::from_raw(raw).ok()) {
            row.mode = Some(modes.current_mode_id);
        }
        if let Some(options) = options {
            row.options = option_map(options);
            if let Some(mode) = row.mode.as_mut()
                && let Some(option) = mode_option(options)
            {
                *mode = option;
            }
        }
    }

    /// No client has prompted since the load, so a user message begins the late replay.
    pub(crate) fn is_late_replay(&mut self, class: UpdateClass, is_user: bool) -> bool {
        if is_user && self.late_replay == LateReplay::Possible {
            self.late_replay = LateReplay::Coming;
        }
        self.late_replay == LateReplay::Coming
            && matches!(class, UpdateClass::Conversation | UpdateClass::ToolCall)
    }

    pub(crate) fn note_spoken(&mut self) {
        if !self.row.heard {
            self.row.edit().heard = true;
        }
    }

    pub(crate) fn waits_for_login(&self) -> bool {
        self.row.rest == Dormant::NeedsLogin
    }

    pub(crate) fn is_at_agent(&self) -> bool {
        let is_asked = |of: &Restore| !matches!(of.step(), Step::Directory(_) | Step::Retry);
        self.restore().is_some_and(is_asked)
    }

    pub(crate) fn wants_host(&self) -> bool {
        let has_prompts = !self.queue.is_empty() && !self.waits_for_login();
        has_prompts || !self.waiting.is_empty() || self.eager
    }

    pub(crate) fn fork_point(&self) -> ForkPoint {
        let row = &self.row;
        ForkPoint {
            session: row.key,
            head: self.head,
            prompts: row.prompts,
            last_prompt: row.last_prompt,
            heard: row.heard || row.prompts > 0,
            turn: self.running.as_ref().map(|turn| turn.prompt.at),
            open_tools: row.open_tools.clone(),
            children: row.children.values().filter(|child| child.is_open()).cloned().collect(),
        }
    }

    pub(crate) fn has_turns_of_others(&self, client: ClientId) -> bool {
        let mut senders = self.prompts().map(|prompt| &prompt.senders);
        senders.any(|senders| senders.is_empty() || senders.iter().any(|to| to.client != client))
    }

    /// Returns advice for the user.
    pub(crate) fn way_out(&self) -> Option<String> {
        let row = &self.row;
        match (&self.state, row.rest) {
            (State::Live | State::Dormant, Dormant::NeedsLogin) => Some(login_hint(&row.agent)),
            (State::Live | State::Restoring(_), _)
            | (State::Dormant, Dormant::Parked | Dormant::Closed) => None,
            (State::Dormant, Dormant::Failed) if self.has_context() => Some(format!(
                "the next prompt tries again, and `acpctl session reseed {}` continues in a new \
                 session instead",
                row.word()
            )),
            (State::Dormant, Dormant::Failed) => Some("the next prompt tries again".to_owned()),
            (State::Dormant, Dormant::Lost) => Some(format!(
                "`acpctl session reseed {}` continues in a new session, `acpctl agent restart {}` \
                 looks for it once more",
                row.word(),
                row.agent
            )),
            (State::Dormant, Dormant::NoDirectory) => Some(format!(
                "put it back, or tell where it is: `acpctl session move {} --cwd DIR`",
                row.word()
            )),
        }
    }

    /// Returns whether the agent's new session lacks the conversation.
    pub(crate) fn owes_summary(&self) -> bool {
        self.row.restore == Some(RestoreLevel::Reseeded) && !self.row.heard
    }

    pub(crate) fn has_context(&self) -> bool {
        (self.row.prompts > 0 || self.row.heard) && !self.owes_summary()
    }

    pub(crate) fn still_has_it(&self) -> Fault {
        let row = &self.row;
        let (handle, word, agent) = (row.handle(), row.word(), &row.agent);
        let text =
            format!("agent `{agent}` may still have session `{handle}`: a new one knows less");
        let hint = format!(
            "the next prompt continues in it; to give it up all the same: \
             `acpctl session reseed {word} --discard`"
        );
        Fault::invalid(text).session(&row.public_id).hint(hint)
    }

    pub(crate) fn held(&self) -> Option<Held> {
        Held::of(&self.queue.front()?.line)
    }

    /// `waits`: the session's open question. `clients`: number of attached clients.
    pub(crate) fn info(&self, waits: Option<Doing>, clients: u32) -> SessionInfo {
        let running = self.running.as_ref();
        SessionInfo {
            session_id: self.row.public_id.clone().into(),
            agent: self.row.agent.clone().into(),
            name: self.row.name.clone().map(Into::into),
            title: self.row.shown_title().map(Into::into),
            labels: self.row.labels.iter().map(Into::into).collect(),
            cwd: self.row.cwd.clone().into(),
            parent: self.kin.parent.clone(),
            state: self.api_state(),
            pid: None,
            archived: self.row.archived,
            reason: self.row.reason.clone().map(Into::into),
            hint: self.way_out().map(Into::into),
            restore: self.row.restore,
            turn: TurnInfo {
                state: self.turn_state(waits.is_some()),
                since: running.map_or(self.row.updated, |turn| turn.prompt.at).0,
                last: self.row.last_outcome.clone().map(Into::into),
                reason: self.why_cut_off.clone().map(Into::into),
            },
            limited_until: self.held().map(|held| held.until.0),
            queued: self.queue.len() as u32,
            background: self.row.background.iter().map(work_info).collect(),
            clients,
            prompts: self.row.prompts,
            usage: (self.row.usage.told != Usage::default()).then(|| self.row.usage.told.clone()),
            seq: self.head,
            created: self.row.created.0,
            updated: self.row.updated.0,
            last_line: self.activity.last_line.map(|at| at.0),
            doing: waits.or_else(|| self.activity.doing(&self.calls)),
        }
    }
}

fn work_info(work: &BackgroundWork) -> WorkInfo {
    WorkInfo {
        kind: work.kind,
        id: work.id.as_str().into(),
        title: work.title.as_deref().map(Into::into),
        can_be_cancelled: work.can_be_cancelled,
    }
}

/// Returns the public id of a session whose agent has used the id before.
pub(crate) fn numbered(agent_id: &str, key: SessionKey) -> String {
    format!("{agent_id}.{}", key.0)
}

/// Maximum length of a title in characters.
pub(crate) const TITLE: usize = 200;
