//! How a conversation looks: relayed lines in, pieces of text out.

mod about;
mod diff;
mod notice;
mod plan;
mod question;
mod state;
#[cfg(test)]
mod tests;
mod tool;
mod update;

use acpd_api::{Meta, Untrusted, UpdateMeta, escape, method};
use serde::Deserialize;

use crate::paint::{BOLD, DIM, Paint};
use crate::settings::{ConfigOption, Settings};
use crate::text::{Text, text};
use plan::plan;
use state::State;
use tool::Tools;
use update::{Blob, Update};

pub(crate) use about::commands;
pub(crate) use notice::{answer, cut_short, sentence, who};
pub(crate) use question::Sheet;
pub(crate) use tool::{output, place};
pub(crate) use update::{Content, FileDiff, PlanEntry, ToolCall, ToolContent};

/// Something to show.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A part of the agent's answer.
    Answer(Untrusted),
    /// A part of other running text.
    Flow(Flow, Text),
    /// Whole lines.
    Lines(Text),
}

/// Whose running text it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The agent's answer.
    Answer,
    /// What the agent thinks.
    Thought,
    /// What the user said.
    User,
}

/// What is shown of a conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Colours.
    pub(crate) paint: Paint,
    /// Show what the agent thinks.
    pub(crate) thoughts: bool,
    /// Show what the user said and how turns ended; a client that runs the turn knows both. What others
    /// say into the turn is always shown.
    pub(crate) whole: bool,
}

/// Renders one session.
#[derive(Debug)]
pub(crate) struct Transcript {
    options: Options,
    /// Whose it is; lines of others are those of subagents.
    session: Option<Untrusted>,
    tools: Tools,
    plan: Vec<PlanEntry>,
    state: State,
    /// The running text that was shown last, and whether its line is unfinished.
    flow: Option<(Flow, bool)>,
    /// Something was shown.
    begun: bool,
}

impl Transcript {
    /// A renderer that has seen nothing yet.
    pub(crate) fn new(options: Options) -> Transcript {
        Transcript {
            options,
            session: None,
            tools: Tools::default(),
            plan: Vec::new(),
            state: State::default(),
            flow: None,
            begun: false,
        }
    }

    /// Takes whose conversation it is.
    pub(crate) fn of(&mut self, session: &Untrusted) {
        self.session = Some(session.clone());
    }

    /// Takes the settings that the session begins with, so that only changes of them are shown.
    pub(crate) fn know(&mut self, settings: Settings) {
        self.state.know(settings);
    }

    /// The end of a turn, in words.
    pub(crate) fn turn_ended(&mut self) -> Vec<Piece> {
        let lines = self.state.usage(self.options.paint);
        self.lines(lines)
    }

    /// Takes a notification; unknown ones show nothing.
    pub(crate) fn notification(&mut self, name: &str, params: &str) -> Vec<Piece> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            #[serde(default)]
            session_id: Untrusted,
            update: Update,
            #[serde(rename = "_meta", default)]
            meta: Meta<UpdateMeta>,
        }
        if name == "session/update" {
            return match serde_json::from_str::<Params>(params) {
                // Subagents may have subagents.
                Ok(Params { session_id, update, meta })
                    if self.session.as_ref().is_none_or(|own| *own == session_id)
                        || matches!(update, Update::Subagent(_)) =>
                {
                    self.update(update, meta.own.steered)
                }
                Ok(_) => Vec::new(),
                Err(_) => Vec::new(),
            };
        }
        let Options { paint, whole, .. } = self.options;
        let mut lines = notice::notice(name, params, whole, paint).unwrap_or_default();
        if whole && name == method::TURN_ENDED {
            lines += self.state.usage(paint);
        }
        self.lines(lines)
    }

    fn update(&mut self, update: Update, steered: bool) -> Vec<Piece> {
        let Options { paint, thoughts, whole } = self.options;
        match update {
            Update::AgentMessageChunk(chunk) => self.chunk(Flow::Answer, chunk.content),
            Update::AgentThoughtChunk(chunk) if thoughts => {
                self.chunk(Flow::Thought, chunk.content)
            }
            Update::UserMessageChunk(chunk) if steered => {
                // A message of its own, also right after the prompt.
                self.flow = None;
                self.chunk(Flow::User, chunk.content)
            }
            Update::UserMessageChunk(chunk) if whole => self.chunk(Flow::User, chunk.content),
            Update::ToolCall(call) | Update::ToolCallChanged(call) => {
                let lines = self.tools.update(call, paint);
                self.lines(lines)
            }
            Update::Plan(new) => {
                let lines = plan(&self.plan, &new.entries, paint);
                self.plan = new.entries;
                self.lines(lines)
            }
            Update::Mode { current_mode_id } => {
                let lines = self.state.mode(current_mode_id, paint);
                self.lines(lines)
            }
            Update::Options { config_options } => {
                let lines = self.state.options(ConfigOption::list(config_options), paint);
                self.lines(lines)
            }
            Update::Notice(notice) => self.lines(state::notice(&notice, paint)),
            Update::Compaction(compaction) => self.lines(state::compaction(&compaction, paint)),
            Update::Subagent(subagent) => {
                let line = self.state.subagent(subagent, paint);
                self.lines(line)
            }
            Update::Usage(usage) => {
                self.state.used(usage);
                Vec::new()
            }
            Update::AgentThoughtChunk(_) | Update::UserMessageChunk(_) | Update::Quiet => {
                Vec::new()
            }
        }
    }

    fn chunk(&mut self, flow: Flow, content: Content) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let before = self.flow.map(|(flow, _)| flow);
        if before != Some(flow) {
            // A line between what the user said and what came of it.
            let turns = before == Some(Flow::User) || (flow == Flow::User && self.begun);
            if turns {
                pieces.push(Piece::Lines("\n".into()));
            }
            self.flow = Some((flow, false));
        }
        self.begun = true;
        let paint = self.options.paint;
        match content {
            Content::Text { text } if text.is_empty() => {}
            Content::Text { text } => {
                let is_open = !text.raw().ends_with('\n');
                pieces.push(match flow {
                    Flow::Answer => Piece::Answer(text),
                    Flow::Thought => Piece::Flow(flow, paint.apply(DIM, text.prose())),
                    Flow::User => Piece::Flow(flow, paint.apply(BOLD, self.quoted(&text))),
                });
                self.flow = Some((flow, is_open));
            }
            other => {
                if let Some(what) = describe(&other) {
                    let prefix = if flow == Flow::User { "> " } else { "" };
                    let line = text!("{}{}", prefix, what);
                    pieces.push(Piece::Lines(paint.apply(DIM, line) + "\n"));
                    self.flow = Some((flow, false));
                }
            }
        }
        pieces
    }

    /// A part of the user's text with a mark at every start of a line.
    fn quoted(&self, text: &Untrusted) -> Text {
        let mut open = self.flow.is_some_and(|(_, open)| open);
        let mut quoted = Text::new();
        for line in text.raw().split_inclusive('\n') {
            if !open {
                quoted += "> ";
            }
            quoted += escape::prose(line);
            open = false;
        }
        quoted
    }

    fn lines(&mut self, lines: Text) -> Vec<Piece> {
        if lines.is_empty() {
            return Vec::new();
        }
        let after_user = matches!(self.flow, Some((Flow::User, _)));
        self.flow = None;
        self.begun = true;
        let gap = after_user.then(|| Piece::Lines("\n".into()));
        gap.into_iter().chain([Piece::Lines(lines)]).collect()
    }
}

/// Content that is not text, in one line.
pub(crate) fn describe(content: &Content) -> Option<Text> {
    let blob = |what: &'static str, blob: &Blob| {
        let size = crate::human::bytes(blob.data.raw().len() as u64 / 4 * 3);
        text!("[{} {} {}]", what, blob.mime_type, size)
    };
    match content {
        Content::Text { .. } | Content::Unknown => None,
        Content::Image(image) => Some(blob("image", image)),
        Content::Audio(audio) => Some(blob("audio", audio)),
        Content::ResourceLink { uri, name } => match name.as_ref().filter(|name| *name != uri) {
            Some(name) => Some(text!("[{}] {}", name, uri)),
            None => Some(text!("[{}]", uri)),
        },
        Content::Resource { resource } => Some(text!("[{}]", resource.uri)),
    }
}
