//! A restore under way: its step, what it has learned and what is still to be set. [`Progress::next`] chooses
//! the next step; `hub/session/restore.rs` carries it out, has the diagram, and sets [`Step::New`] itself
//! when it renews or reseeds.

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

/// Pages of `session/list` that are read.
const LIST_PAGES: u32 = 100;

#[derive(Debug)]
pub(crate) struct Restore {
    pub(crate) progress: Progress,
    /// Why it is reseeded; nothing otherwise.
    pub(crate) reason: Option<String>,
    /// Code of the agent's last refusal, for the log.
    pub(crate) refused: Option<i64>,
    /// Servers that the agent was not given, in sentences for people.
    pub(crate) left_out: Vec<String>,
    pub(crate) replay: Replay,
    /// Subagents of the replay: the id of each, and an update.
    pub(crate) announced: Vec<(String, Bytes)>,
    /// Values in force before.
    pub(crate) mode: Option<String>,
    pub(crate) options: BTreeMap<String, String>,
    /// When a load or a late replay is over at the latest.
    pub(crate) cap: Time,
    /// The setting that the agent was asked for last.
    pub(crate) setting: Option<Setting>,
    /// Values still to be set again.
    pub(crate) settings: VecDeque<Setting>,
    /// The mode that the agent came back with, as far as it reports one.
    pub(crate) shown_mode: Option<String>,
    /// The options that it came back with, as far as it reports them; later those of its last answer.
    pub(crate) shown_options: Option<Box<RawValue>>,
}

impl Restore {
    /// The restore begins with the question for its directory that has this number.
    pub(crate) fn new(question: u64, row: &SessionRow, now: Time) -> Restore {
        Restore {
            progress: Progress::new(Step::Directory(question)),
            reason: None,
            refused: None,
            left_out: Vec::new(),
            replay: Replay::new(row.last_prompt, row.replayable),
            announced: Vec::new(),
            mode: row.mode.clone(),
            options: row.options.clone(),
            cap: now,
            setting: None,
            settings: VecDeque::new(),
            shown_mode: None,
            shown_options: None,
        }
    }

    pub(crate) fn step(&self) -> Step {
        self.progress.step
    }

    /// The process holds the session already; only its settings or the end of a replay are missing.
    pub(crate) fn is_back(&self) -> bool {
        matches!(self.step(), Step::Settle | Step::Settings)
    }

    /// Returns whether the agent works on it now, not acpd.
    pub(crate) fn is_at_agent(&self) -> bool {
        !matches!(self.step(), Step::Directory(_) | Step::Retry)
    }

    /// Returns whether the agent is sending history now.
    pub(crate) fn replays(&self) -> bool {
        matches!(self.step(), Step::Load | Step::Settle)
    }

    /// Returns whether lines about subagents are new: the agent resumes or creates the session, so
    /// it sends no history.
    pub(crate) fn hears_news(&self) -> bool {
        let is_set = self.step() == Step::Settings && self.progress.level != RestoreLevel::Loaded;
        is_set || matches!(self.step(), Step::New | Step::Resume)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub step: Step,
    pub level: RestoreLevel,
    /// The agent refuses to load it with its MCP servers.
    pub without_servers: bool,
    /// Loads that have failed.
    tries: u32,
    /// Pages of the list that were read.
    pages: u32,
    /// The agent lists it, but not in its directory.
    elsewhere: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The check of its directory, with this number.
    Directory(u64),
    /// `session/new`: the session was never used, or is reseeded.
    New,
    Resume,
    /// The agent's list for its directory …
    List,
    /// … or anywhere: agents that find a moved session all the same list it where it was.
    ListAll,
    Load,
    /// A pause before a load.
    Retry,
    /// Lines after the answer are still replay.
    Settle,
    /// Settings that the agent has forgotten are set again.
    Settings,
}

impl Step {
    /// The method of its request. Steps without one give that of a load.
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

/// Facts about the agent and its session for a restore.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    pub agent: &'a str,
    /// The agent has `session/resume`, and may be asked for it.
    pub resumes: bool,
    /// The agent has `session/load`, and may be asked for it.
    pub loads: bool,
    pub lists: bool,
    /// More of the replay may come after the answer to a load.
    pub late_replay: bool,
    /// The session has MCP servers.
    pub has_servers: bool,
    /// Time for an answer (ms).
    pub timeout: u64,
    /// Time until the session is old enough for a load (ms); 0 = it is.
    pub too_young: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// The directory of the session is there.
    Begun {
        /// The session was never used, so there is nothing to lose.
        is_fresh: bool,
        /// The process holds another session under its id.
        is_held: bool,
    },
    /// The agent did what it was asked for.
    Accepted,
    Listed {
        /// The session is on it.
        is_there: bool,
        more: Option<String>,
    },
    /// The agent answered with an error that is not about a login.
    Refused {
        code: i64,
        /// The agent has lost the session.
        is_gone: bool,
        text: &'a str,
    },
    /// The time of the step is over.
    Late,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Ask the agent for this.
    Ask(Step),
    /// Ask it for the next page of its list.
    AskPage(String),
    /// Wait for this time (ms).
    Pause(u64),
    /// Wait for this time (ms), because the session is too young for a load.
    Ripen(u64),
    /// Wait for the end of the replay.
    Settle,
    /// Set the next setting that the agent has forgotten; after the last one, continue with the session.
    SetAgain,
    /// Warn that the setting could not be set again, for this reason, and continue with the next.
    NotSet(String),
    /// Warn likewise about all settings that are left: the agent does not answer.
    NoneSet(String),
    /// The agent cannot bring it back.
    Lost(String),
    /// The restore failed for a temporary reason.
    Failed(Reason, String),
}

impl Progress {
    pub fn new(step: Step) -> Progress {
        let level = RestoreLevel::Renewed;
        Progress { step, level, without_servers: false, tries: 0, pages: 0, elsewhere: false }
    }

    /// Returns the consequence of an event, and the new progress of the restore.
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
                    // A list that was not read to its end does not show that the session is gone.
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
            // A list that fails does not show that the session is gone.
            (Step::List | Step::ListAll, Event::Refused { .. }) => Next::Ask(Step::Load),
            (Step::Settings, Event::Refused { text, .. }) => Next::NotSet(text.to_owned()),
            (Step::Settings, Event::Late) => {
                let time = duration(facts.timeout);
                Next::NoneSet(format!("the agent did not answer within {time}"))
            }
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
            Next::AskPage(_)
            | Next::NotSet(_)
            | Next::NoneSet(_)
            | Next::Lost(_)
            | Next::Failed(..) => {}
        }
        (self, next)
    }

    /// A load failed, perhaps for a reason that passes.
    fn load_failed(&mut self, facts: &Facts<'_>, code: i64, error: &str) -> Next {
        self.tries += 1;
        if self.tries < LOAD_TRIES {
            Next::Pause(250 << self.tries)
        } else if code == code::INVALID_PARAMS && facts.has_servers && !self.without_servers {
            self.without_servers = true;
            Next::Ask(Step::Load)
        } else if self.elsewhere {
            // Some agents have it for its old directory only.
            Next::Lost(format!("the agent does not load it in another directory: {error}"))
        } else {
            Next::Failed(Reason::SessionBlocked, format!("it could not be loaded: {error}"))
        }
    }
}

/// Continues with `session/load`, if the agent has it. `refused` is the agent's error to an earlier step.
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
    /// Returns whether this list of options shows it in force.
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

/// `modes` and `configOptions` of the answer to a load or a resume, as far as they are not null.
pub(crate) fn values_of(result: &RawValue) -> (Option<&RawValue>, Option<&RawValue>) {
    let member =
        |name: &str| raw_at(result.get().as_bytes(), &[name]).filter(|value| value.get() != "null");
    (member("modes"), member("configOptions"))
}

/// Returns what was in force and what the agent's answer does not show in force. An agent that does
/// not report a mode or an option may have lost it. The model comes first, because it may decide which
/// other options there are; what is not offered now comes last. No mode where an option stands for it.
pub(crate) fn settings(
    wanted: &BTreeMap<String, String>,
    mode: Option<&str>,
    options: Option<&RawValue>,
    modes: Option<&RawValue>,
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

/// The current mode of a `modes` object.
pub(crate) fn current_mode(modes: &RawValue) -> Option<String> {
    Modes::from_raw(modes).ok().map(|modes| modes.current_mode_id)
}

/// The value of the option that stands for the mode.
pub(crate) fn mode_option(list: &RawValue) -> Option<String> {
    let option = ConfigOption::list(list)
        .into_iter()
        .find(|option| option.category.as_deref() == Some("mode"))?;
    serde_json::from_str(&option.current_value).ok()
}

/// Option id → JSON text of its value.
pub(crate) fn option_map(list: &RawValue) -> BTreeMap<String, String> {
    let options = ConfigOption::list(list);
    options.into_iter().map(|option| (option.id, option.current_value)).collect()
}
