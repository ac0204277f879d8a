//! What a session is in and what it has used: shown when it changes, usage when a turn ends.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::update::{Compaction, Notice, Subagent, Usage};
use crate::human;
use crate::paint::{DIM, Paint, RED, YELLOW, one_line};
use crate::settings::{ConfigOption, Settings};

/// What is known of a session.
#[derive(Debug, Default)]
pub(super) struct State {
    settings: Settings,
    mode: Option<String>,
    usage: Option<Usage>,
    /// The usage is newer than what was shown of it.
    has_new_usage: bool,
    /// Subagents by the ids of their sessions: the title and the state that were shown.
    subagents: BTreeMap<String, (String, String)>,
}

impl State {
    /// Takes what the session was before anything came.
    pub(super) fn know(&mut self, settings: Settings) {
        self.mode = settings.modes.as_ref().map(|modes| modes.current_mode_id.clone());
        self.settings = settings;
    }

    /// Takes a mode; returns its line if it is another one.
    pub(super) fn mode(&mut self, id: String, paint: Paint) -> String {
        if self.mode.as_ref() == Some(&id) {
            return String::new();
        }
        let line = format!("mode: {}", one_line(self.settings.mode_name(&id)));
        self.mode = Some(id);
        paint.apply(DIM, &line) + "\n"
    }

    /// Takes the complete options; returns the lines of those that have changed.
    pub(super) fn options(&mut self, options: Vec<ConfigOption>, paint: Paint) -> String {
        let before = std::mem::replace(&mut self.settings.options, options);
        let was = |now: &ConfigOption| {
            before.iter().any(|old| old.id == now.id && old.current_value == now.current_value)
        };
        let changed = self.settings.options.iter().filter(|option| !was(option));
        changed.map(|option| paint.apply(DIM, &option.sentence()) + "\n").collect()
    }

    /// Takes a subagent; returns its line if there is something new to say.
    pub(super) fn subagent(&mut self, subagent: Subagent, paint: Paint) -> String {
        let Subagent { session_id, title, state } = subagent;
        let is_new = !self.subagents.contains_key(&session_id);
        let known = self.subagents.entry(session_id.clone()).or_insert((session_id, String::new()));
        let before = known.clone();
        known.0 = title.unwrap_or_else(|| before.0.clone());
        known.1 = state.map_or_else(|| before.1.clone(), |now| now.state);
        if !is_new && *known == before {
            return String::new();
        }
        let (title, state) = (one_line(&known.0), one_line(&known.1).replace('_', " "));
        let gap = if state.is_empty() { "" } else { ": " };
        paint.apply(DIM, &format!("subagent {title}{gap}{state}")) + "\n"
    }

    /// Takes how much was used.
    pub(super) fn used(&mut self, usage: Usage) {
        self.has_new_usage |= self.usage.as_ref() != Some(&usage);
        self.usage = Some(usage);
    }

    /// The line of what was used, at the end of a turn.
    pub(super) fn usage(&mut self, paint: Paint) -> String {
        match &self.usage {
            Some(usage) if std::mem::take(&mut self.has_new_usage) => {
                paint.apply(DIM, &sentence(usage)) + "\n"
            }
            _ => String::new(),
        }
    }
}

fn sentence(usage: &Usage) -> String {
    let mut sentence = match usage.size {
        0 => format!("{} tokens used", human::count(usage.used)),
        size => format!("{} of {} tokens used", human::count(usage.used), human::count(size)),
    };
    if let Some(cost) = &usage.cost {
        // Less than a cent is worth being told, too.
        let digits = if cost.amount < 0.01 { 4 } else { 2 };
        let _ = write!(sentence, ", {:.digits$} {}", cost.amount, one_line(&cost.currency));
    }
    sentence
}

/// A notice of the agent as a line.
pub(super) fn notice(notice: &Notice, paint: Paint) -> String {
    let style = match notice.severity.as_str() {
        "error" => RED,
        "warning" => YELLOW,
        _ => DIM,
    };
    let title = one_line(&notice.title);
    let sentence = match notice.description.as_deref().map(one_line) {
        Some(more) if !more.is_empty() => format!("{title}: {more}"),
        _ => title,
    };
    if sentence.is_empty() { sentence } else { paint.apply(style, &sentence) + "\n" }
}

/// A compaction of the conversation as a line, for the states that are worth one.
pub(super) fn compaction(compaction: &Compaction, paint: Paint) -> String {
    let (style, sentence) = match compaction.status.as_deref() {
        Some("in_progress") => (DIM, "compacting the conversation".to_owned()),
        Some("completed") => (DIM, "the conversation was compacted".to_owned()),
        Some("failed") => {
            let why = compaction.error.as_ref().and_then(|error| error.as_str()).map(one_line);
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            (YELLOW, format!("the conversation could not be compacted{why}"))
        }
        _ => return String::new(),
    };
    paint.apply(style, &sentence) + "\n"
}
