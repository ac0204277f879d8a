//! The end of a restore: settings are set again, and then the session is live.

use acp_wire::acp::{SetConfigOptionParams, SetModeParams};
use acp_wire::build;
use acpd_api::{RestoreLevel, Restored, method};
use serde_json::value::RawValue;

use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::mcp::Brought;
use crate::params::raw;
use crate::record::{Dormant, EventKind};
use crate::session::restore::{Setting, option_map, values_of};
use crate::session::{LateReplay, State};

impl Hub {
    pub(crate) fn next_setting(&mut self, key: SessionKey) {
        let Some(restore) = self.sessions.restore_mut(key) else { return };
        let Some(setting) = restore.settings.front().cloned() else {
            return self.session_usable(key);
        };
        let session_id = self.session(key).row.agent_id.clone();
        let none = Brought::default();
        match setting {
            Setting::Option { id, value } => {
                let value = raw(value.as_bytes());
                let params = SetConfigOptionParams::new(&session_id, &id, &value);
                self.restore_ask(key, "session/set_config_option", &params, &none);
            }
            Setting::Mode(mode_id) => {
                let params = SetModeParams { session_id: &session_id, mode_id: &mode_id };
                self.restore_ask(key, "session/set_mode", &params, &none);
            }
        }
    }

    /// An accepted setting may not be in force: the answer shows the agent's values.
    pub(crate) fn setting_answered(&mut self, key: SessionKey, result: &RawValue) {
        let Some(restore) = self.sessions.restore_mut(key) else { return };
        let Some(setting) = restore.settings.pop_front() else { return };
        if let (Setting::Option { .. }, Some(options)) = (&setting, values_of(result).1) {
            let shown = option_map(options);
            restore.settings.retain(|setting| !setting.is_shown_by(&shown));
            restore.shown_options = Some(options.to_owned());
            let is_set = setting.is_shown_by(&shown);
            if !is_set {
                restore.settings.push_front(setting);
            }
            self.tell_options(key, result, None);
            if !is_set {
                self.setting_failed(key, "the agent kept another value", false);
            }
        } else if let Setting::Mode(mode) = setting {
            self.tell_mode(key, &mode, None);
        }
        self.next_setting(key);
    }

    /// `all`: the settings that are left, too. From now on clients see what the agent has shown.
    pub(crate) fn setting_failed(&mut self, key: SessionKey, why: &str, all: bool) {
        let Some(restore) = self.sessions.restore_mut(key) else { return };
        let most = restore.settings.len().min(if all { usize::MAX } else { 1 });
        let failed: Vec<Setting> = restore.settings.drain(..most).collect();
        let (mode, options) = (restore.shown_mode.clone(), restore.shown_options.clone());
        let names: Vec<String> = failed.iter().map(Setting::to_string).collect();
        let text = format!("{} could not be set again: {why}", names.join(", "));
        self.notice(key, "warning", &text);
        let shown = options.as_deref().map(option_map).unwrap_or_default();
        for setting in failed {
            match (setting, &mode, &options) {
                (Setting::Mode(_), Some(mode), _) => self.tell_mode(key, mode, None),
                (Setting::Option { id, .. }, _, Some(options)) => {
                    let row = self.session_mut(key).row.edit();
                    match shown.get(&id) {
                        Some(value) => row.options.insert(id, value.clone()),
                        None => row.options.remove(&id),
                    };
                    self.show_options(key, options, None);
                }
                _ => {}
            }
        }
    }

    fn session_usable(&mut self, key: SessionKey) {
        if let Some(gap) = self.restored_with_gap(key)
            && let Some(restore) = self.sessions.restore_mut(key)
        {
            restore.progress.level = RestoreLevel::Partial;
            restore.reason = Some(gap);
            // Report a gap only once.
            let seen = restore.replay.seen();
            self.session_mut(key).row.edit().replayable = seen;
        }
        let old = std::mem::replace(&mut self.session_mut(key).state, State::Live);
        let State::Restoring(restore) = old else { return };
        let slot = self.session(key).slot;
        let host = self.processes[&slot].usable_host();
        if !self.session(key).is_doubtful_at(host) {
            let (news, last_prompt) = restore.replay.finish();
            if !news.is_empty() {
                self.notice(key, "info", FROM_HISTORY);
            }
            for line in news {
                self.append(key, EventKind::Imported, line, None);
            }
            self.session_mut(key).row.edit().last_prompt = last_prompt;
        }
        self.tell_announced(key, restore.announced);
        let level = restore.progress.level;
        let session = self.session_mut(key);
        session.row.edit().restore = Some(level);
        if matches!(level, RestoreLevel::Loaded | RestoreLevel::Partial) {
            session.late_replay = LateReplay::Possible;
        }
        if level != RestoreLevel::Renewed {
            self.tell_restored(key, level, restore.reason.clone());
        }
        for text in restore.left_out {
            self.notice(key, "warning", &text);
        }
        let now = self.cx.now;
        let session = self.session_mut(key);
        (session.loads_cut_off, session.held_since, session.eager) = (0, now, false);
        let row = session.row.edit();
        row.host = host;
        row.rest = Dormant::Parked;
        row.reason = None;
        row.usage.counter.moved();
        self.watch_sleep(slot);
        self.tell_state(key);
        self.processes.on_success(&mut self.cx, slot, "session/load");
        self.wake_session(key);
        self.check_idle(slot);
    }

    /// A resume replays nothing; after a load that was given up, its lines may still come.
    pub(crate) fn restored_with_gap(&mut self, key: SessionKey) -> Option<String> {
        let session = self.session(key);
        let is_doubtful = session.is_doubtful_at(self.processes[&session.slot].usable_host());
        let compares = self.profile_of(session.slot).replays && !is_doubtful;
        let restore = self.sessions.restore_mut(key).filter(|_| compares)?;
        let is_load = restore.replays() || restore.progress.level == RestoreLevel::Loaded;
        if is_load { restore.replay.gap() } else { None }
    }

    pub(crate) fn tell_restored(
        &mut self,
        key: SessionKey,
        level: RestoreLevel,
        reason: Option<String>,
    ) {
        let session_id = self.session(key).row.public_id.clone();
        let restored = Restored {
            session_id: session_id.into(),
            level,
            at: self.cx.now.0,
            reason: reason.map(Into::into),
            gets: (level == RestoreLevel::Reseeded).then(|| self.reseeds_with(key)),
        };
        let line = build::notification(method::RESTORED, &restored);
        self.append(key, EventKind::Notice, line, None);
    }
}

const FROM_HISTORY: &str =
    "what follows comes from the agent's own history: acpd did not see it happen";
