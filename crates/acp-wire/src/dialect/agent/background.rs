//! Background work: what an agent does outside of the turns of a session.

use bytes::Bytes;
use hashlink::LinkedHashMap;
use serde::{Deserialize, Serialize};

use super::{id_at, recent};
use crate::bound::{SENTENCE, clipped};
use crate::dialect::objects::items_at;
use crate::{locate, lossy_at, str_at};

/// Things of one session whose titles are remembered, and parts of its work that are listed.
const MOST: usize = 256;

/// A part of the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundWork {
    /// Kind of the work.
    pub kind: WorkKind,
    /// The agent's id of the terminal, the tool call or the subagent's session.
    pub id: String,
    /// The command or the title, if the agent has told one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The agent can end it alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_be_cancelled: bool,
}

/// Kind of work in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkKind {
    /// A command.
    Terminal,
    /// A tool call.
    ToolCall,
    /// The session of a subagent.
    Subagent,
}

impl BackgroundWork {
    /// The title, or else the id.
    pub fn name(&self) -> &str {
        self.title.as_ref().unwrap_or(&self.id)
    }
}

impl WorkKind {
    /// The method that ends such work, and the member of its params with the id.
    pub fn cancel(self) -> (&'static str, &'static str) {
        match self {
            WorkKind::Terminal => ("terminal/cancel", "terminalId"),
            WorkKind::ToolCall => ("tool_call/cancel", "toolCallId"),
            WorkKind::Subagent => ("session/cancel", "sessionId"),
        }
    }

    fn named(name: &str) -> Option<(WorkKind, &'static str)> {
        match name {
            "terminal" | "terminal_update" => Some((WorkKind::Terminal, "terminalId")),
            "tool_call" | "tool_call_update" => Some((WorkKind::ToolCall, "toolCallId")),
            "subagent" | "subagent_update" => Some((WorkKind::Subagent, "sessionId")),
            _ => None,
        }
    }
}

/// Titles of terminals, calls and subagents, which are in other updates than the list.
#[derive(Debug, Clone, Default)]
pub(super) struct Background {
    titles: LinkedHashMap<String, Titled>,
}

#[derive(Debug, Clone, Default)]
struct Titled {
    title: Option<String>,
    can_be_cancelled: bool,
}

impl Background {
    pub(super) fn restored(work: Vec<BackgroundWork>) -> Background {
        let titles =
            work.into_iter().map(|BackgroundWork { id, title, can_be_cancelled, .. }| {
                (id, Titled { title, can_be_cancelled })
            });
        Background { titles: titles.collect() }
    }

    /// Notes what an update tells of something that may become work in the background.
    pub(super) fn note(&mut self, kind: &str, update: &Bytes) {
        let Some((_, member)) = WorkKind::named(kind) else { return };
        let Some(id) = id_at(update, &[member]) else { return };
        let titled = recent(&mut self.titles, &id, MOST);
        let title = ["command", "title"].iter().find_map(|name| lossy_at(update, &[name]));
        if let Some(title) = title {
            titled.title = Some(clipped(&title, SENTENCE));
        }
        if locate(update, &["capabilities"]).is_some() {
            let cancel = locate(update, &["capabilities", "cancel"]);
            titled.can_be_cancelled = cancel.is_some_and(|at| &update[at] != b"null");
        }
    }

    /// Returns the list in a state. A state without a list tells nothing.
    pub(super) fn listed(&self, state: &Bytes) -> Option<Vec<BackgroundWork>> {
        let items = items_at(state, &["background"])?;
        let work = items.iter().filter_map(|item| {
            let (kind, member) = WorkKind::named(&str_at(item, &["type"])?)?;
            let id = id_at(item, &[member])?.into_owned();
            let titled = self.titles.get(&id).cloned().unwrap_or_default();
            let Titled { title, can_be_cancelled } = titled;
            Some(BackgroundWork { kind, id, title, can_be_cancelled })
        });
        Some(work.take(MOST).collect())
    }
}
