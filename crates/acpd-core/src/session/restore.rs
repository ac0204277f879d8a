//! A restore under way: its step, what it has learned and what is still to be set; the diagram is in
//! `hub/session/restore.rs`, which takes it from step to step.

use std::collections::{BTreeMap, VecDeque};

use acp_wire::acp::Modes;
use acp_wire::locate;
use acpd_api::RestoreLevel;
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::session::replay::Replay;

/// A restore under way.
#[derive(Debug)]
pub(crate) struct Restore {
    pub(crate) step: Step,
    pub(crate) level: RestoreLevel,
    /// Why it is not the session that it was.
    pub(crate) reason: Option<String>,
    pub(crate) tries: u32,
    /// The agent refuses to load it with its MCP servers.
    pub(crate) without_servers: bool,
    /// The agent lists it, but not in its directory.
    pub(crate) elsewhere: bool,
    /// Servers that the agent was not given, in sentences for people.
    pub(crate) left_out: Vec<String>,
    pub(crate) pages: u32,
    pub(crate) replay: Replay,
    /// What the replay said of subagents: the id of each, and an update.
    pub(crate) announced: Vec<(String, Bytes)>,
    /// What was in force before.
    pub(crate) mode: Option<String>,
    pub(crate) options: BTreeMap<String, String>,
    /// When a late replay is over at the latest.
    pub(crate) cap: crate::ids::Time,
    /// The mode that is being set again.
    pub(crate) setting_mode: Option<String>,
    /// What is still to be set again.
    pub(crate) settings: VecDeque<Setting>,
}

impl Restore {
    /// The process holds the session already; only its settings or the end of a replay are missing.
    pub(crate) fn is_back(&self) -> bool {
        matches!(self.step, Step::Settle | Step::Settings)
    }

    /// The agent tells what was.
    pub(crate) fn replays(&self) -> bool {
        matches!(self.step, Step::Load | Step::Settle)
    }

    /// The agent was not asked to tell what was.
    pub(crate) fn hears_news(&self) -> bool {
        let is_set = self.step == Step::Settings && self.level != RestoreLevel::Loaded;
        is_set || matches!(self.step, Step::New | Step::Resume)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Whether its directory is there, asked with this number.
    Directory(u64),
    New,
    Resume,
    /// Whether the agent lists it in its directory …
    List,
    /// … or anywhere: agents that find a moved session all the same list it where it was.
    ListAll,
    Load,
    Retry,
    Settle,
    Settings,
}

impl Step {
    /// The method that it asks, or is going to.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Step::New => "session/new",
            Step::Resume => "session/resume",
            Step::List | Step::ListAll => "session/list",
            Step::Directory(_) | Step::Load | Step::Retry | Step::Settle => "session/load",
            Step::Settings => "session/set_config_option",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Setting {
    Option { id: String, value: String },
    Mode(String),
}

/// `modes` and `configOptions` of the answer to a load or a resume.
pub(crate) fn values_of(result: &RawValue) -> (Option<&RawValue>, Option<&RawValue>) {
    let member = |name: &str| {
        let range = locate(result.get().as_bytes(), &[name])?;
        serde_json::from_str::<&RawValue>(&result.get()[range]).ok()
    };
    (member("modes"), member("configOptions"))
}

/// What differs between what was in force and what the agent came back with; options first, and no
/// mode where an option stands for it.
pub(crate) fn settings(
    wanted: &BTreeMap<String, String>,
    mode: Option<&str>,
    options: Option<&RawValue>,
    modes: Option<&RawValue>,
) -> VecDeque<Setting> {
    let mut settings = VecDeque::new();
    let current = options.map(option_map).unwrap_or_default();
    for (id, value) in wanted {
        if current.get(id).is_some_and(|now| now != value) {
            settings.push_back(Setting::Option { id: id.clone(), value: value.clone() });
        }
    }
    let by_option = options.is_some_and(|options| {
        let list = acp_wire::acp::ConfigOption::list(options);
        list.iter().any(|option| option.category.as_deref() == Some("mode"))
    });
    let modes = modes.and_then(|modes| Modes::from_raw(modes).ok());
    if let (Some(mode), Some(modes), false) = (mode, modes, by_option)
        && modes.current_mode_id != mode
        && modes.available.iter().any(|available| available.id == mode)
    {
        settings.push_back(Setting::Mode(mode.to_owned()));
    }
    settings
}

/// Option id → JSON text of its value.
pub(crate) fn option_map(list: &RawValue) -> BTreeMap<String, String> {
    let options = acp_wire::acp::ConfigOption::list(list);
    options.into_iter().map(|option| (option.id, option.current_value)).collect()
}
