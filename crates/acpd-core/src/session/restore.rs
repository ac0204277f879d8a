//! A restore in progress. [`Progress::next`] chooses the next step; `hub/session/restore.rs`
//! performs it and has the diagram. It also sets [`Step::New`] for a renewed or reseeded session,
//! and `hub/session/restore_settings.rs` has the answers in [`Step::Settings`].

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use acp_wire::acp::{ConfigOption, Modes};
use acp_wire::code;
use acpd_api::{Reason, RestoreLevel};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::ids::{Time, duration};
use crate::params::raw_at;
use crate::record::SessionRow;
use crate::session::replay::Replay;

/// Number of tries for a load that fails for a temporary reason.
const LOAD_TRIES: u32 = 3;

const LIST_PAGES: u32 = 100;

#[derive(Debug)]
pub(crate) struct Restore {
    pub(crate) progress: Progress,
    /// Reason of a reseed; `None` for other restores.
    pub(crate) reason: Option<String>,
    /// Code of the agent's last error, for the log.
    pub(crate) refused: Option<i64>,
    pub(crate) left_out: Vec<String>,
    pub(crate) replay: Replay,
    /// Subagents in the replay: id and merged update.
    pub(crate) announced: Vec<(String, Bytes)>,
    /// Deadline of a load or a late replay.
    pub(crate) cap: Time,
    /// The agent is asked for the first one.
    pub(crate) settings: VecDeque<Setting>,
    /// Mode in the agent's answer, if reported.
    pub(crate) shown_mode: Option<String>,
    /// Options in the agent's last answer, if reported.
    pub(crate) shown_options: Option<Box<RawValue>>,
}

impl Restore {
    /// `question`: the number of the directory check.
    pub(crate) fn new(question: u64, row: &SessionRow, now: Time) -> Restore {
        Restore {
            progress: Progress::new(Step::Directory(question)),
            reason: None,
            refused: None,
            left_out: Vec::new(),
            replay: Replay::new(row.last_prompt, row.replayable),
            announced: Vec::new(),
            cap: now,
            settings: VecDeque::new(),
            shown_mode: None,
            shown_options: None,
        }
    }

    pub(crate) fn step(&self) -> Step {
        self.progress.step
    }

    pub(crate) fn replays(&self) -> bool {
        matches!(self.step(), Step::Load | Step::Settle)
    }

    /// The agent sends no history when it resumes or creates a session.
    pub(crate) fn hears_news(&self) -> bool {
        let is_set = self.step() == Step::Settings && self.progress.level != RestoreLevel::Loaded;
        is_set || matches!(self.step(), Step::New | Step::Resume)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub step: Step,
    pub level: RestoreLevel,
    /// The agent refuses to load the session with its MCP servers.
    pub without_servers: bool,
    tries: u32,
    pages: u32,
    /// The agent lists the session in another directory.
    elsewhere: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The directory check with this number.
    Directory(u64),
    /// `session/new`: the session was never used, or is reseeded.
    New,
    Resume,
    /// The agent's list for the session's directory …
    List,
    /// … and for all directories: agents that find a moved session list it at its old place.
    ListAll,
    Load,
    Retry,
    /// Waits for the end of a replay after the answer.
    Settle,
    Settings,
}

impl Step {
    /// Returns the method of the request. Steps without one return that of a load.
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
pub struct Facts<'a> {
    pub agent: &'a str,
    /// The agent has `session/resume`, and acpd may use it.
    pub resumes: bool,
    /// The agent has `session/load`, and acpd may use it.
    pub loads: bool,
    pub lists: bool,
    pub late_replay: bool,
    pub has_servers: bool,
    /// Time for an answer in milliseconds.
    pub timeout: u64,
    /// Milliseconds until the session is old enough for a load; 0 = now.
    pub too_young: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    Begun {
        /// The session was never used, so nothing can be lost.
        is_fresh: bool,
        /// The process holds another session with the same id.
        is_held: bool,
    },
    Accepted,
    Listed {
        is_there: bool,
        more: Option<String>,
    },
    /// The agent answered with an error that is not about a login.
    Refused {
        code: i64,
        is_gone: bool,
        text: &'a str,
    },
    Late,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Ask(Step),
    AskPage(String),
    /// Wait for this time in milliseconds.
    Pause(u64),
    /// Wait for this time in milliseconds, because the session is too young for a load.
    Ripen(u64),
    Settle,
    /// Set the next forgotten setting, or continue with the session.
    SetAgain,
    Lost(String),
    /// The restore failed for a temporary reason.
    Failed(Reason, String),
}

impl Progress {
    pub fn new(step: Step) -> Progress {
        let level = RestoreLevel::Renewed;
        Progress { step, level, without_servers: false, tries: 0, pages: 0, elsewhere: false }
    }

    #[must_use]
    pub fn next(mut self, facts: &Facts<'_>, event: Event<'_>) -> (Progress, Next) {
        let next = match (self.step, event) {
            (_, Event::Begun { is_fresh: true, .. }) => Next::Ask(Step::New),
            (_, Event::Begun { is_held: true, .. }) => {
                Next::Lost("the agent has given its id to another session".to_owned())
            }
            (_, Event::Begun { .. }) if facts.resumes => Next::Ask(Step::Resume),
            (_, Event::Begun { .. }) => load_or_lose(facts, None),
            (Step::Load, Event::Accepted) => {
                self.level = RestoreLevel::Loaded;
                if facts.late_replay { Next::Settle } else { Next::SetAgain }
            }
            (Step::Resume, Event::Accepted) => {
                self.level = RestoreLevel::Resumed;
                Next::SetAgain
            }
            (_, Event::Accepted) | (Step::Settle, Event::Late) => Next::SetAgain,
            (step, Event::Listed { is_there: true, .. }) => {
                self.elsewhere = step == Step::ListAll;
                Next::Ask(Step::Load)
            }
            (step, Event::Listed { more, .. }) => {
                self.pages += 1;
                match more {
                    Some(cursor) if self.pages < LIST_PAGES => Next::AskPage(cursor),
                    // A list that was not read completely does not prove that the session is gone.
                    Some(_) => Next::Ask(Step::Load),
                    None if step == Step::List => Next::Ask(Step::ListAll),
                    None => Next::Lost("the agent does not list it".to_owned()),
                }
            }
            (Step::Load, Event::Refused { is_gone: true, text, .. }) => {
                Next::Lost(format!("the agent does not know it: {text}"))
            }
            (Step::Load, Event::Refused { code: code::METHOD_NOT_FOUND, text, .. })
            | (Step::Resume, Event::Refused { text, .. }) => load_or_lose(facts, Some(text)),
            (Step::Load, Event::Refused { code, text, .. }) => self.load_failed(facts, code, text),
            // A failed list does not prove that the session is gone.
            (Step::List | Step::ListAll, Event::Refused { .. }) => Next::Ask(Step::Load),
            (_, Event::Refused { text, .. }) => {
                Next::Failed(Reason::AgentStartFailed, text.to_owned())
            }
            (Step::Retry, Event::Late) => Next::Ask(Step::Load),
            (_, Event::Late) => {
                let time = duration(facts.timeout);
                let text = format!("the agent did not bring it back within {time}");
                Next::Failed(Reason::AgentTimeout, text)
            }
        };
        let next = match next {
            Next::Ask(Step::Load) if facts.too_young > 0 => Next::Ripen(facts.too_young),
            next => next,
        };
        match &next {
            Next::Ask(step) => self.step = *step,
            Next::Pause(_) | Next::Ripen(_) => self.step = Step::Retry,
            Next::Settle => self.step = Step::Settle,
            Next::SetAgain => self.step = Step::Settings,
            Next::AskPage(_) | Next::Lost(_) | Next::Failed(..) => {}
        }
        (self, next)
    }

    fn load_failed(&mut self, facts: &Facts<'_>, code: i64, error: &str) -> Next {
        self.tries += 1;
        if self.tries < LOAD_TRIES {
            Next::Pause(250 << self.tries)
        } else if code == code::INVALID_PARAMS && facts.has_servers && !self.without_servers {
            self.without_servers = true;
            Next::Ask(Step::Load)
        } else if self.elsewhere {
            // Some agents have the session only for its old directory.
            Next::Lost(format!("the agent does not load it in another directory: {error}"))
        } else {
            Next::Failed(Reason::SessionBlocked, format!("it could not be loaded: {error}"))
        }
    }
}

/// `refused`: the agent's error in an earlier step.
fn load_or_lose(facts: &Facts<'_>, refused: Option<&str>) -> Next {
    let agent = facts.agent;
    match refused {
        _ if facts.loads && facts.lists => Next::Ask(Step::List),
        _ if facts.loads => Next::Ask(Step::Load),
        Some(error) => Next::Lost(format!("agent `{agent}` cannot resume it: {error}")),
        None => Next::Lost(format!("agent `{agent}` can neither resume nor load sessions")),
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Setting {
    Option { id: String, value: String },
    Mode(String),
}

impl Setting {
    pub(crate) fn is_shown_by(&self, list: &BTreeMap<String, String>) -> bool {
        matches!(self, Setting::Option { id, value } if list.get(id) == Some(value))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Option { id, value } => write!(f, "option `{id}` = {value}"),
            Setting::Mode(mode) => write!(f, "mode `{mode}`"),
        }
    }
}

/// `modes` and `configOptions` of a result.
pub(crate) type Values<'a> = (Option<&'a RawValue>, Option<&'a RawValue>);

/// Returns the values of a result, without nulls.
pub(crate) fn values_of(result: &RawValue) -> Values<'_> {
    let member =
        |name: &str| raw_at(result.get().as_bytes(), &[name]).filter(|value| value.get() != "null");
    (member("modes"), member("configOptions"))
}

/// Returns the settings that were in force and that the agent's answer does not show. An unreported
/// mode or option may be lost. The model comes first, because it may determine the other options;
/// options that are not offered now come last. The mode is left out if an option replaces it.
pub(crate) fn settings(
    wanted: &BTreeMap<String, String>,
    mode: Option<&str>,
    (modes, options): Values<'_>,
) -> VecDeque<Setting> {
    let shown = options.map(ConfigOption::list).unwrap_or_default();
    let is_of = |option: &ConfigOption, category| option.category.as_deref() == Some(category);
    let place = |id: &str| match shown.iter().find(|option| option.id == id) {
        Some(option) if is_of(option, "model") => 0,
        Some(_) => 1,
        None => 2,
    };
    let lost = |(id, value): &(&String, &String)| {
        !shown.iter().any(|option| option.id == **id && option.current_value == **value)
    };
    let mut lost: Vec<_> = wanted.iter().filter(lost).collect();
    lost.sort_by_key(|(id, _)| place(id));
    let option =
        |(id, value): (&String, &String)| Setting::Option { id: id.clone(), value: value.clone() };
    let mut settings: VecDeque<_> = lost.into_iter().map(option).collect();
    let by_option = shown.iter().any(|option| is_of(option, "mode"));
    let current = modes.and_then(current_mode);
    if let Some(mode) = mode.filter(|mode| !by_option && current.as_deref() != Some(mode)) {
        settings.push_back(Setting::Mode(mode.to_owned()));
    }
    settings
}

pub(crate) fn current_mode(modes: &RawValue) -> Option<String> {
    Modes::from_raw(modes).ok().map(|modes| modes.current_mode_id)
}

pub(crate) fn mode_option(list: &RawValue) -> Option<String> {
    let option = ConfigOption::list(list)
        .into_iter()
        .find(|option| option.category.as_deref() == Some("mode"))?;
    serde_json::from_str(&option.current_value).ok()
}

/// Returns the JSON text of each value by option id.
pub(crate) fn option_map(list: &RawValue) -> BTreeMap<String, String> {
    let options = ConfigOption::list(list);
    options.into_iter().map(|option| (option.id, option.current_value)).collect()
}
