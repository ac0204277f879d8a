//! Bringing a session back into a new process of its agent, with the best that the agent has.
//!
//! ```text
//!            never had a prompt
//! begin ─▶ Directory ───────────────────▶ New ──────────────────────────────┐
//!   │ there, can resume                                                    │
//!   ├──────────▶ Resume ── ok ────────────────────────────────────────────┤
//!   │              │ any error but -32000                                 ▼
//!   │ can load     ▼                     ok                            Settings ─▶ live
//!   ├──────────▶ List ── listed ─▶ Load ────▶ (Settle: late replay) ──────┘
//!   │              │ not listed    │  ▲ other error, three times
//!   │              ▼               │  └── Retry
//!   │ can neither  ListAll (same)  ▼ -32002, -32601
//!   └───────────▶ lost           lost              -32000 anywhere ─▶ blocked until a login
//! ```
//!
//! A lost session begins again with the next prompt, if it may (`reseed.rs`).
//!
//! Architecture invariant: `session/new` is asked for only when there is nothing left to lose, and every loss
//! is reported.

use acp_wire::acp::{NewSessionResult, SessionList, SetConfigOptionParams, SetModeParams};
use acp_wire::{ErrorObject, Id, Outcome, UpdateClass, build, code, set_member, str_at};
use acpd_api::{Reason, RestoreLevel, Restored, method};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::auth::Refusal;
use crate::fault::{Fault, in_words};
use crate::hub::Hub;
use crate::ids::{Process, SessionKey, SlotId, duration};
use crate::input::{Batch, Effect};
use crate::mcp::{Brought, Chosen};
use crate::params::raw;
use crate::profile::OnLost;
use crate::record::{Dormant, EventKind, Replayable};
use crate::requests::purpose::Purpose;
use crate::session::kin::with_number;
use crate::session::replay::Gap;
use crate::session::restore::{
    Event, Facts, Next, Progress, Restore, Setting, Step, option_map, values_of,
};
use crate::session::{LateReplay, Session, State};
use crate::timers::Timer;

/// Silence that ends a replay that continues after the response (ms) …
const QUIET: u64 = 300;

/// … or its maximum duration (ms).
const QUIET_CAP: u64 = 5_000;

/// A load that keeps talking ends after this many times `restore_timeout`.
const REPLAY_TIMES: u64 = 10;

/// Notice before lines that no client of acpd sent or saw.
const FROM_HISTORY: &str =
    "what follows comes from the agent's own history: acpd did not see it happen";

/// Notice of a restore with `restore_mcp = false`.
const WITHHELD: &str = "its MCP servers were not given to the agent again (`restore_mcp = false`)";

impl Hub {
    pub(crate) fn begin_restore(&mut self, key: SessionKey, out: &mut Batch) {
        let question = self.ids.issue();
        let session = self.session(key);
        let row = &session.row;
        let (agent, cwd) = (row.agent.clone(), row.cwd.clone());
        let restore = Restore::new(question, row, self.now);
        let timeout = self.profile_of(session.slot).restore_timeout;
        self.session_mut(key).state = State::Restoring(Box::new(restore));
        self.sessions.restore_begins(key);
        self.tell_state(key, out);
        self.timers.set(Timer::Restore(key), self.now.after(timeout));
        out.effects.push(Effect::FindDirectory { question, agent, cwd });
    }

    /// The directory exists: continue the restore.
    pub(crate) fn restore_there(&mut self, key: SessionKey, out: &mut Batch) {
        if self.session(key).owes_summary() {
            let reason = self.sessions.why_given_up(key);
            return self.reseed(key, reason, out);
        }
        let Session { slot, row, .. } = self.session(key);
        let is_fresh = row.prompts == 0 && !row.heard;
        let is_held = self.sessions.is_held(*slot, &row.agent_id);
        if !is_fresh && !is_held {
            self.sessions.route(key);
        }
        self.restore_goes_on(key, Event::Begun { is_fresh, is_held }, out);
    }

    fn restore_goes_on(&mut self, key: SessionKey, event: Event<'_>, out: &mut Batch) {
        let is_loaded = event == Event::Accepted;
        let has_gap = is_loaded && self.restored_with_gap(key).is_some();
        let Session { slot, row, state, .. } = self.session(key);
        let State::Restoring(restore) = state else { return };
        let (profile, known) = (self.profile_of(*slot), self.processes.known(&row.agent));
        let facts = Facts {
            agent: &row.agent,
            resumes: known.resumes(profile),
            loads: known.loads(profile),
            lists: known.lists(),
            // Missing lines may still come, from any agent.
            late_replay: profile.late_replay || has_gap,
            has_servers: self.has_servers(key),
            too_young: profile.load_after.saturating_sub(self.now.since(self.session(key).began)),
            timeout: match restore.step() {
                Step::Load if self.now >= restore.cap => {
                    profile.restore_timeout.saturating_mul(REPLAY_TIMES)
                }
                _ => profile.restore_timeout,
            },
        };
        let (progress, next) = restore.progress.next(&facts, event);
        if let Some(restore) = self.sessions.restore_mut(key) {
            restore.progress = progress;
        }
        match next {
            Next::Ask(_) => self.ask_step(key, out),
            Next::AskPage(cursor) => self.ask_page(key, Some(cursor), out),
            Next::Pause(time) => self.timers.set(Timer::Restore(key), self.now.after(time)),
            Next::Ripen(time) => {
                self.timers.set(Timer::Restore(key), self.now.after(time));
                let text = format!(
                    "the agent loses a session that is loaded soon after it began: acpd waits for {} (`load_after`)",
                    duration(time)
                );
                self.notice(key, "info", &text, out);
            }
            Next::Settle => {
                let now = self.now;
                if let Some(restore) = self.sessions.restore_mut(key) {
                    restore.cap = now.after(QUIET_CAP);
                }
                self.timers.set(Timer::Restore(key), now.after(QUIET));
            }
            Next::SetAgain => self.next_setting(key, out),
            Next::NotSet(why) => {
                self.setting_failed(key, &why, false, out);
                self.next_setting(key, out);
            }
            Next::NoneSet(why) => {
                self.setting_failed(key, &why, true, out);
                self.next_setting(key, out);
            }
            Next::Lost(text) => self.session_is_lost(key, text, out),
            Next::Failed(reason, text) => self.restore_failed(key, reason, &text, out),
        }
    }

    /// Asks the agent for what its step wants.
    fn ask_step(&mut self, key: SessionKey, out: &mut Batch) {
        let Some(Progress { step, without_servers: bare, .. }) =
            self.sessions.restore_mut(key).map(|restore| restore.progress)
        else {
            return;
        };
        if matches!(step, Step::List | Step::ListAll) {
            return self.ask_page(key, None, out);
        }
        let (params, mut left_out) = self.params_again(key);
        let mut params = Bytes::copy_from_slice(params.get().as_bytes());
        let mut servers = Brought::default();
        let slot = self.session(key).slot;
        if !bare && (step == Step::New || self.profile_of(slot).restore_mcp) {
            servers = self.servers_again(key);
        } else {
            params = set_member(&params, &["mcpServers"], b"[]");
            left_out = self.has_servers(key).then(|| WITHHELD.to_owned()).into_iter().collect();
        }
        if step != Step::New {
            let id = json!(self.session(key).row.agent_id).to_string();
            params = set_member(&params, &["sessionId"], id.as_bytes());
        }
        if let Some(restore) = self.sessions.restore_mut(key) {
            restore.left_out = left_out;
        }
        self.restore_ask(key, step.method(), &params, &servers, out);
    }

    /// Asks the agent again for what it refused for want of a login.
    pub(crate) fn ask_step_again(&mut self, key: SessionKey, out: &mut Batch) {
        let is_asked = self.requests.restore_ask(key).is_some();
        let Some(restore) = self.sessions.restore_mut(key).filter(|_| !is_asked) else { return };
        match restore.step() {
            Step::Directory(_) | Step::Retry | Step::Settle => {}
            Step::Settings => self.next_setting(key, out),
            _ => self.ask_step(key, out),
        }
    }

    /// Returns whether the session has MCP servers.
    fn has_servers(&self, key: SessionKey) -> bool {
        self.session(key).has_servers() || !self.chosen_again(key).names.is_empty()
    }

    /// The servers of the configuration as it is now. What is left out was told when the session was
    /// made, and `agent show` tells it.
    fn chosen_again(&self, key: SessionKey) -> Chosen {
        let session = self.session(key);
        let (slot, cwd) = (session.slot, session.row.cwd.clone());
        let params = session.restore_params();
        self.choose_servers(slot, &cwd, params.get().as_bytes())
    }

    /// The servers to bring, under the number that the session's tools know, if it has one.
    fn servers_again(&mut self, key: SessionKey) -> Brought {
        let chosen = self.chosen_again(key);
        if chosen.has_builtin && self.session(key).kin.number.is_none() {
            let number = self.ids.issue();
            let session = self.session_mut(key);
            let params = with_number(&session.row.params, number);
            session.row.edit().params = params;
            session.kin.number = Some(number);
        }
        let number = self.session(key).kin.number.filter(|_| chosen.has_builtin);
        Brought { names: chosen.names, session: number }
    }

    fn restore_ask(
        &mut self,
        key: SessionKey,
        name: &str,
        params: &[u8],
        servers: &Brought,
        out: &mut Batch,
    ) {
        let slot = self.session(key).slot;
        let Some(host) = self.processes[&slot].usable_host() else { return };
        let renews = name == "session/new";
        let ask = self.ask(host, Purpose::Restore { session: key, renews }, out);
        let params = raw(params);
        let line = build::request(&Id::issued(ask), name, &params);
        self.host_write_with(slot, line, servers, out);
        let timeout = self.profile_of(slot).restore_timeout;
        let cap = self.now.after(timeout.saturating_mul(REPLAY_TIMES));
        if let Some(restore) = self.sessions.restore_mut(key) {
            restore.cap = cap;
        }
        self.timers.set(Timer::Restore(key), self.now.after(timeout));
    }

    pub(crate) fn restore_answered(
        &mut self,
        key: SessionKey,
        outcome: Outcome<'_>,
        out: &mut Batch,
    ) {
        let Some(step) = self.sessions.restore_mut(key).map(|restore| restore.step()) else {
            return;
        };
        if matches!(step, Step::Directory(_) | Step::Retry | Step::Settle) {
            // Nothing is asked, and its timer is that of the step.
            return;
        }
        self.timers.clear(Timer::Restore(key));
        let result = match outcome {
            Outcome::Result(result) => result,
            Outcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                return self.restore_refused(key, step, &error, out);
            }
        };
        let event = match step {
            Step::List | Step::ListAll => {
                let page = SessionList::from_raw(result);
                let wanted = &self.session(key).row.agent_id;
                let is_there = page.sessions.iter().any(|session| session.session_id == *wanted);
                Event::Listed { is_there, more: page.next_cursor }
            }
            Step::New if !self.session_renewed(key, result, out) => return,
            Step::Settings => self.setting_answered(key, result, out),
            _ => {
                self.sessions.take_restored_values(key, result, out);
                Event::Accepted
            }
        };
        self.restore_goes_on(key, event, out);
    }

    fn restore_refused(
        &mut self,
        key: SessionKey,
        step: Step,
        error: &ErrorObject,
        out: &mut Batch,
    ) {
        if let Some(restore) = self.sessions.restore_mut(key) {
            restore.refused = Some(error.code);
        }
        let slot = self.session(key).slot;
        match self.note_refusal(slot, step.method(), error, out) {
            Refusal::Other => {}
            Refusal::NeedsLogin => return self.session_needs_login(key, error, out),
            // The next process is asked the same, or this one after a login.
            Refusal::Renewed => {
                if let Some(restore) = self.sessions.restore_mut(key)
                    && let Some(setting) = restore.setting.take()
                {
                    restore.settings.push_front(setting);
                }
                return;
            }
        }
        let code = error.code;
        let mut gone_errors = self.profile_of(slot).gone_errors.iter();
        let is_gone = code == code::NOT_FOUND || gone_errors.any(|like| error.is_like(like));
        if code == code::METHOD_NOT_FOUND && !(step == Step::Load && is_gone) {
            self.remember_lie(key, step, out);
        }
        let event = Event::Refused { code, is_gone, text: &in_words(error) };
        self.restore_goes_on(key, event, out);
    }

    /// The agent has offered what it does not have: it is not asked again.
    fn remember_lie(&mut self, key: SessionKey, step: Step, out: &mut Batch) {
        let agent = self.session(key).row.agent.clone();
        match step {
            Step::Resume => self.processes.edit_known(&agent, |row| row.resume_lies = true, out),
            Step::Load => self.processes.edit_known(&agent, |row| row.load_lies = true, out),
            Step::List | Step::ListAll => self.processes.known_mut(&agent).list_lies = true,
            _ => {}
        }
    }

    /// Asks for a page of the agent's list, in the directory of the session or anywhere.
    fn ask_page(&mut self, key: SessionKey, cursor: Option<String>, out: &mut Batch) {
        let Session { row, state, .. } = self.session(key);
        let mut params = json!({});
        if let Some(cursor) = cursor {
            params["cursor"] = json!(cursor);
        }
        if matches!(state, State::Restoring(restore) if restore.step() == Step::List) {
            params["cwd"] = json!(row.cwd);
        }
        self.restore_ask(
            key,
            "session/list",
            params.to_string().as_bytes(),
            &Brought::default(),
            out,
        );
    }

    /// The agent has created a session again. Returns whether that can be used.
    fn session_renewed(&mut self, key: SessionKey, result: &RawValue, out: &mut Batch) -> bool {
        let slot = self.session(key).slot;
        let refusal = match NewSessionResult::from_raw(result) {
            Ok(made) if self.claim_id(slot, &made.session_id, out) => Ok(made.session_id),
            Ok(made) => Err(format!("the agent gave the id `{}` to two sessions", made.session_id)),
            Err(error) => {
                Err(format!("the agent's answer to `session/new` cannot be used: {error}"))
            }
        };
        let agent_id = match refusal {
            Ok(id) => id.into_owned(),
            Err(text) => {
                self.restore_failed(key, Reason::AgentProtocol, &text, out);
                return false;
            }
        };
        let level = self.sessions.restore_mut(key).map(|restore| restore.progress.level);
        let row = self.session_mut(key).row.edit();
        row.agent_id.clone_from(&agent_id);
        row.replayable = Replayable::default();
        if level == Some(RestoreLevel::Reseeded) {
            // From now on the agent is owed a summary, also by the next daemon.
            row.restore = level;
            row.heard = false;
        }
        self.session_mut(key).began = self.now;
        self.sessions.route(key);
        out.durable = true;
        if let Some(host) = self.processes[&slot].usable_host() {
            self.deliver_parked(Process { slot, host }, agent_id, out);
        }
        true
    }

    /// Makes an id free for a session that the agent has just made under it; `false` if the process
    /// holds another session under it. One that was to come back under this id cannot any more.
    pub(crate) fn claim_id(&mut self, slot: SlotId, agent_id: &str, out: &mut Batch) -> bool {
        let Some(other) = self.sessions.routed(slot, agent_id) else { return true };
        if self.sessions.is_held(slot, agent_id)
            || self.session(other).row.children.contains_key(agent_id)
        {
            return false;
        }
        self.give_up_restore(other, out);
        self.timers.clear(Timer::Restore(other));
        let text = "the agent has given its id to another session";
        self.session_is_lost(other, text.to_owned(), out);
        true
    }

    fn next_setting(&mut self, key: SessionKey, out: &mut Batch) {
        let Some(restore) = self.sessions.restore_mut(key) else { return };
        let Some(setting) = restore.settings.pop_front() else {
            return self.session_usable(key, out);
        };
        restore.setting = Some(setting.clone());
        let session_id = self.session(key).row.agent_id.clone();
        let none = Brought::default();
        match setting {
            Setting::Option { id, value } => {
                let Ok(value) = RawValue::from_string(value) else {
                    return self.next_setting(key, out);
                };
                let params = SetConfigOptionParams::new(&session_id, &id, &value);
                let params = serde_json::to_vec(&params).unwrap_or_default();
                self.restore_ask(key, "session/set_config_option", &params, &none, out);
            }
            Setting::Mode(mode_id) => {
                let params = SetModeParams { session_id: &session_id, mode_id: &mode_id };
                let params = serde_json::to_vec(&params).unwrap_or_default();
                self.restore_ask(key, "session/set_mode", &params, &none, out);
            }
        }
    }

    /// The agent has accepted a setting. It may have shown another one in between, and its answer may show
    /// that the setting is not in force after all.
    fn setting_answered(
        &mut self,
        key: SessionKey,
        result: &RawValue,
        out: &mut Batch,
    ) -> Event<'static> {
        let setting = self.sessions.restore_mut(key).and_then(|restore| restore.setting.clone());
        if let Some(Setting::Mode(mode)) = &setting {
            self.tell_mode(key, mode, None, out);
        } else {
            self.tell_options(key, result, None, out);
        }
        let (Some(setting @ Setting::Option { .. }), (_, Some(options))) =
            (setting, values_of(result))
        else {
            return Event::Accepted;
        };
        let shown = option_map(options);
        if let Some(restore) = self.sessions.restore_mut(key) {
            restore.settings.retain(|setting| !setting.is_shown_by(&shown));
            restore.shown_options = Some(options.to_owned());
        }
        if setting.is_shown_by(&shown) {
            return Event::Accepted;
        }
        Event::Refused {
            code: code::INTERNAL,
            is_gone: false,
            text: "the agent kept another value",
        }
    }

    /// A setting, or all that are left, could not be set again: the conversation says so, and from now on
    /// clients see what the agent has shown instead.
    fn setting_failed(&mut self, key: SessionKey, why: &str, all: bool, out: &mut Batch) {
        let Some(restore) = self.sessions.restore_mut(key) else { return };
        let mut failed: Vec<Setting> = restore.setting.take().into_iter().collect();
        if all {
            failed.extend(restore.settings.drain(..));
        }
        let (mode, options) = (restore.shown_mode.clone(), restore.shown_options.clone());
        let names: Vec<String> = failed.iter().map(Setting::to_string).collect();
        let text = format!("{} could not be set again: {why}", names.join(", "));
        self.notice(key, "warning", &text, out);
        let shown = options.as_deref().map(option_map).unwrap_or_default();
        for setting in failed {
            match setting {
                Setting::Mode(_) => {
                    if let Some(mode) = &mode {
                        self.session_mut(key).note_mode(mode.clone());
                        self.tell_mode(key, mode, None, out);
                    }
                }
                Setting::Option { id, .. } => {
                    let Some(options) = &options else { continue };
                    let row = self.session_mut(key).row.edit();
                    match shown.get(&id) {
                        Some(value) => row.options.insert(id, value.clone()),
                        None => row.options.remove(&id),
                    };
                    self.show_options(key, options, None, out);
                }
            }
        }
    }

    fn session_usable(&mut self, key: SessionKey, out: &mut Batch) {
        if let Some(gap) = self.restored_with_gap(key)
            && let Some(restore) = self.sessions.restore_mut(key)
        {
            restore.progress.level = RestoreLevel::Partial;
            restore.reason = Some(gap.to_string());
            // Once is enough.
            let seen = restore.replay.seen();
            self.session_mut(key).row.edit().replayable = seen;
        }
        let old = std::mem::replace(&mut self.session_mut(key).state, State::Live);
        let State::Restoring(restore) = old else { return };
        let now = self.now;
        let session = self.session_mut(key);
        (session.loads_cut_off, session.held_since) = (0, now);
        let slot = self.session(key).slot;
        let doubtful = self.session(key).doubtful;
        if doubtful.is_none() || doubtful != self.processes[&slot].usable_host() {
            let (news, last_prompt) = restore.replay.finish();
            if !news.is_empty() {
                self.notice(key, "info", FROM_HISTORY, out);
            }
            for line in news {
                self.append(key, EventKind::Imported, line, None, out);
            }
            self.session_mut(key).row.edit().last_prompt = last_prompt;
        }
        self.tell_announced(key, restore.announced, out);
        let row = self.session_mut(key).row.edit();
        row.restore = Some(restore.progress.level);
        let level = restore.progress.level;
        if matches!(level, RestoreLevel::Loaded | RestoreLevel::Partial) {
            self.session_mut(key).late_replay = LateReplay::Possible;
        }
        if level != RestoreLevel::Renewed {
            self.tell_restored(key, level, restore.reason.clone(), out);
        }
        if restore.progress.without_servers {
            let text = "its MCP servers are left out: the agent did not load the session with them";
            self.notice(key, "warning", text, out);
        } else {
            for text in restore.left_out {
                self.notice(key, "warning", &text, out);
            }
        }
        self.set_live(key, out);
        self.note_success(slot, "session/load", out);
        self.wake_session(key, out);
        self.check_idle(slot, out);
    }

    /// Returns what the replay of a load lacks. A resume replays nothing, and what replays of a load that
    /// was given up belongs to no other.
    fn restored_with_gap(&mut self, key: SessionKey) -> Option<Gap> {
        let Session { slot, doubtful, .. } = self.session(key);
        let is_doubtful = doubtful.is_some() && *doubtful == self.processes[slot].usable_host();
        let compares = self.profile_of(*slot).replays && !is_doubtful;
        let restore = self.sessions.restore_mut(key).filter(|_| compares)?;
        let is_load = restore.replays() || restore.progress.level == RestoreLevel::Loaded;
        if is_load { restore.replay.gap() } else { None }
    }

    fn tell_restored(
        &mut self,
        key: SessionKey,
        level: RestoreLevel,
        reason: Option<String>,
        out: &mut Batch,
    ) {
        let session_id = self.session(key).row.public_id.clone();
        let restored = Restored {
            session_id: session_id.into(),
            level,
            at: self.now.0,
            reason: reason.map(Into::into),
            gets: (level == RestoreLevel::Reseeded).then(|| self.reseeds_with(key)),
        };
        let line = build::notification(method::RESTORED, &restored);
        self.append(key, EventKind::Notice, line, None, out);
    }

    /// An update while the session is being restored: replay, or news about its state.
    pub(crate) fn update_while_restoring(
        &mut self,
        key: SessionKey,
        line: Bytes,
        class: UpdateClass,
        is_user: bool,
        out: &mut Batch,
    ) {
        let is_child = str_at(&line, &["params", "update", "sessionUpdate"]).as_deref()
            == Some("subagent_update");
        match class {
            UpdateClass::State(_) => self.journal_update(key, line, class, out),
            UpdateClass::Live | UpdateClass::NotAsked => {}
            _ if is_child && self.hears_children(key) => self.journal_update(key, line, class, out),
            UpdateClass::Conversation | UpdateClass::ToolCall | UpdateClass::Other => {
                let text = is_user
                    .then(|| str_at(&line, &["params", "update", "content", "text"]))
                    .map(|text| text.unwrap_or_default().into_owned());
                if is_child {
                    self.sessions.remember_announcement(key, &line);
                }
                let Some(restore) = self.sessions.restore_mut(key) else { return };
                if !matches!(restore.step(), Step::Load | Step::Settle | Step::Settings) {
                    // The end of a turn that is over for us, if anything.
                    return;
                }
                if !is_child {
                    restore.replay.line(line, text.as_deref());
                }
                self.replay_goes_on(key);
            }
        }
    }

    /// A long history takes its time, also that of a subagent; what counts is that it goes on.
    pub(crate) fn replay_goes_on(&mut self, key: SessionKey) {
        let now = self.now;
        let timeout = self.profile_of(self.session(key).slot).restore_timeout;
        let Some(restore) = self.sessions.restore_mut(key) else { return };
        let at = match restore.step() {
            Step::Settle => now.after(QUIET).min(restore.cap),
            Step::Load => now.after(timeout).min(restore.cap),
            _ => return,
        };
        self.timers.set(Timer::Restore(key), at);
    }

    /// Stops waiting for a restore. What this process still replays for it cannot be told from what
    /// it replays for the next one, so no later replay of it counts as news.
    pub(crate) fn give_up_restore(&mut self, key: SessionKey, out: &mut Batch) {
        if self.give_up_restore_step(key, out) {
            let host = self.processes[&self.session(key).slot].usable_host();
            self.session_mut(key).doubtful = host;
        }
    }

    pub(crate) fn on_restore_timer(&mut self, key: SessionKey, out: &mut Batch) {
        // In a pause or a late replay nothing is asked, and a setting is no replay.
        if self.sessions.restore_mut(key).is_some_and(|restore| restore.step() == Step::Settings) {
            self.give_up_restore_step(key, out);
        } else {
            self.give_up_restore(key, out);
        }
        self.restore_goes_on(key, Event::Late, out);
    }

    /// The restore failed for a temporary reason: the next prompt tries again.
    pub(crate) fn restore_failed(
        &mut self,
        key: SessionKey,
        reason: Reason,
        text: &str,
        out: &mut Batch,
    ) {
        self.make_dormant(key, Dormant::Failed, Some(text.to_owned()), out);
        let session = self.session(key);
        let id = &session.row.public_id;
        let way_out = session.way_out().unwrap_or_default();
        let fault = Fault::new(reason, format!("session `{id}` could not be restored: {text}"))
            .session(id)
            .hint(format!("its history is intact; {way_out}"));
        self.fail_queue(key, &fault, out);
    }

    /// The agent has ended while it brought the session back, after a run that is no failure of its own: what does not
    /// count there counts here, else a session that an agent always ends over would have it started for ever. Of several
    /// at once one may be at fault and the others not, so none is given up before it has been alone.
    pub(crate) fn load_cut_off(&mut self, key: SessionKey, was_alone: bool, out: &mut Batch) {
        let most = self.profile_of(self.session(key).slot).restart.budget;
        let session = self.session_mut(key);
        session.loads_cut_off += 1;
        let times = session.loads_cut_off;
        if was_alone && times >= most {
            session.loads_cut_off = 0;
            let text = format!("the agent has ended {times} times in a row while it loaded it");
            self.restore_failed(key, Reason::AgentCrashLoop, &text, out);
        }
    }

    fn session_is_lost(&mut self, key: SessionKey, reason: String, out: &mut Batch) {
        let restores = matches!(self.session(key).state, State::Restoring(_));
        if restores && !self.session(key).row.heard && !self.session(key).owes_summary() {
            return self.renew(key, &reason, out);
        }
        if self.profile_of(self.session(key).slot).on_lost == OnLost::Reseed {
            return self.reseed(key, reason, out);
        }
        self.session_mut(key).row.edit().restore = Some(RestoreLevel::Lost);
        self.tell_restored(key, RestoreLevel::Lost, Some(reason.clone()), out);
        self.make_dormant(key, Dormant::Lost, Some(reason), out);
        let fault = self.sessions.lost_fault(key);
        self.fail_queue(key, &fault, out);
    }

    /// Starts a lost session over for a queued prompt.
    pub(crate) fn reseed_now(&mut self, key: SessionKey, reason: String, out: &mut Batch) {
        self.sessions.unroute(key);
        if let Some(restore) = self.sessions.restore_mut(key) {
            restore.progress.level = RestoreLevel::Reseeded;
            restore.reason = Some(reason);
        }
        self.ask_for_new(key, out);
    }

    /// A session without output of the agent has nothing to lose: it is created again.
    fn renew(&mut self, key: SessionKey, reason: &str, out: &mut Batch) {
        let text = format!(
            "the session begins anew: {reason}, and the first prompt was interrupted before any answer"
        );
        self.notice(key, "warning", &text, out);
        self.log_not_restored(key, "session lost, begins anew", out);
        self.sessions.unroute(key);
        self.ask_for_new(key, out);
    }

    /// Logs that a session could not be restored, with the code of the agent's refusal if there was one.
    pub(crate) fn log_not_restored(&self, key: SessionKey, what: &str, out: &mut Batch) {
        let Session { state, slot, .. } = self.session(key);
        let code = match state {
            State::Restoring(restore) => restore.refused,
            _ => None,
        };
        self.log_failure(*slot, Some(key), what, code, out);
    }

    fn ask_for_new(&mut self, key: SessionKey, out: &mut Batch) {
        if let Some(restore) = self.sessions.restore_mut(key) {
            restore.progress.step = Step::New;
        }
        self.ask_step(key, out);
    }
}
