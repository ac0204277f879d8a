//! State of a session: mode and options, shown when they change, and usage, shown when a turn ends.

use std::collections::BTreeMap;

use acpd_api::Untrusted;

use super::update::{Compaction, Notice, Subagent, Usage};
use crate::human;
use crate::paint::{DIM, Paint, RED, YELLOW};
use crate::settings::{ConfigOption, Settings};
use crate::text::{Text, text};

/// What is known of a session.
#[derive(Debug, Default)]
pub(super) struct State {
    settings: Settings,
    mode: Option<Untrusted>,
    usage: Option<Usage>,
    /// The usage is newer than what was shown of it.
    has_new_usage: bool,
    /// Subagents by the ids of their sessions: the title and the state that were shown.
    subagents: BTreeMap<Untrusted, (Untrusted, Untrusted)>,
}

impl State {
    /// Takes what the session was before anything came.
    pub(super) fn know(&mut self, settings: Settings) {
        self.mode = settings.modes.as_ref().map(|modes| modes.current_mode_id.clone());
        self.settings = settings;
    }

    /// Takes a mode; returns its line if it is another one.
    pub(super) fn mode(&mut self, id: Untrusted, paint: Paint) -> Text {
        if self.mode.as_ref() == Some(&id) {
            return Text::new();
        }
        let line = text!("mode: {}", self.settings.mode_name(&id));
        self.mode = Some(id);
        paint.apply(DIM, line) + "\n"
    }

    /// Takes the complete options; returns the lines of those that have changed.
    pub(super) fn options(&mut self, options: Vec<ConfigOption>, paint: Paint) -> Text {
        let before = std::mem::replace(&mut self.settings.options, options);
        let was = |now: &ConfigOption| {
            before.iter().any(|old| old.id == now.id && old.current_value == now.current_value)
        };
        let changed = self.settings.options.iter().filter(|option| !was(option));
        changed.map(|option| paint.apply(DIM, option.sentence()) + "\n").collect()
    }

    /// Takes a subagent; returns its line if there is something new to say.
    pub(super) fn subagent(&mut self, subagent: Subagent, paint: Paint) -> Text {
        let Subagent { session_id, title, state } = subagent;
        let is_new = !self.subagents.contains_key(&session_id);
        let unknown = (session_id.clone(), Untrusted::default());
        let known = self.subagents.entry(session_id).or_insert(unknown);
        let before = known.clone();
        known.0 = title.unwrap_or_else(|| before.0.clone());
        known.1 = state.map_or_else(|| before.1.clone(), |now| now.state);
        if !is_new && *known == before {
            return Text::new();
        }
        let state = Untrusted::from(known.1.raw().replace('_', " "));
        let gap = if state.is_empty() { "" } else { ": " };
        paint.apply(DIM, text!("subagent {}{}{}", known.0, gap, state)) + "\n"
    }

    /// Takes how much was used.
    pub(super) fn used(&mut self, usage: Usage) {
        self.has_new_usage |= self.usage.as_ref() != Some(&usage);
        self.usage = Some(usage);
    }

    /// The line of what was used, at the end of a turn.
    pub(super) fn usage(&mut self, paint: Paint) -> Text {
        match &self.usage {
            Some(usage) if std::mem::take(&mut self.has_new_usage) => {
                paint.apply(DIM, sentence(usage)) + "\n"
            }
            _ => Text::new(),
        }
    }
}

fn sentence(usage: &Usage) -> Text {
    let used = human::count(usage.used);
    let sentence = match usage.size {
        0 => text!("{} tokens used", used),
        size => text!("{} of {} tokens used", used, human::count(size)),
    };
    match &usage.cost {
        // Less than a cent is worth being told, too.
        Some(cost) if cost.amount < 0.01 => {
            sentence + text!(", {:.4} {}", cost.amount, cost.currency)
        }
        Some(cost) => sentence + text!(", {:.2} {}", cost.amount, cost.currency),
        None => sentence,
    }
}

/// A notice of the agent as a line.
pub(super) fn notice(notice: &Notice, paint: Paint) -> Text {
    let style = match notice.severity.raw() {
        "error" => RED,
        "warning" => YELLOW,
        _ => DIM,
    };
    let title = Text::from(&notice.title);
    let sentence = match notice.description.as_ref().map(Text::from) {
        Some(more) if !more.is_empty() => text!("{}: {}", title, more),
        _ => title,
    };
    if sentence.is_empty() { sentence } else { paint.apply(style, sentence) + "\n" }
}

/// A compaction of the conversation as a line, for the states that are worth one.
pub(super) fn compaction(compaction: &Compaction, paint: Paint) -> Text {
    let (style, sentence) = match compaction.status.as_ref().map(Untrusted::raw) {
        Some("in_progress") => (DIM, "compacting the conversation".into()),
        Some("completed") => (DIM, "the conversation was compacted".into()),
        Some("failed") => {
            let why = compaction.error.as_ref().and_then(|error| error.as_str());
            let why = why.map(|why| text!(": {}", Untrusted::from(why)));
            (YELLOW, text!("the conversation could not be compacted{}", why))
        }
        _ => return Text::new(),
    };
    paint.apply(style, sentence) + "\n"
}
