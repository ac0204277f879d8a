//! A conversation as growing text: the new parts of each block of [`acpd_view`].

mod call;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use acpd_api::{Amount, PromptQueued, RestoreLevel, Unanswered, Untrusted, Usage, escape, method};
use acpd_view::{
    Block, ConfigOption, Content, Id, Kind, Message, Plan, PlanEntry, Progress, Settings, State,
    Subagent, Topic, describe, turn_end,
};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::human;
use crate::text::{BOLD, Role, Text, text};
pub(crate) use call::{name, output};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Answer(Untrusted),
    AnswerEnds,
    Flow(Flow, Text),
    Lines(Text),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Answer,
    Thought,
    User,
}

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) thoughts: bool,
    /// Show the user's prompts and the ends of turns; a client that runs the turn knows both.
    /// Messages of others to the turn are always shown.
    pub(crate) whole: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    options: Options,
    /// None until the conversation's session is known.
    state: Option<State>,
    /// The number of folded lines.
    lines: u64,
    shown: HashMap<Id, Shown>,
    plan: Vec<PlanEntry>,
    printed_options: Vec<(Untrusted, Value)>,
    printed_usage: Option<Usage>,
    /// The last running text, and whether its line is unfinished.
    flow: Option<(Flow, bool)>,
    begun: bool,
}

#[derive(Debug)]
enum Shown {
    /// The number of printed parts of a message, and the printed bytes of the last one.
    Message {
        parts: usize,
        bytes: usize,
        has_ended: bool,
    },
    Call(call::Shown),
    /// Anything else. A changed line is printed again.
    Line(Text),
}

impl Transcript {
    pub(crate) fn new(options: Options) -> Transcript {
        Transcript { options, ..Transcript::default() }
    }

    /// `settings` are the session's initial settings; only changes are printed. `hello` is the
    /// daemon's answer to `initialize`.
    pub(crate) fn open(
        &mut self,
        session: &Untrusted,
        folder: &Untrusted,
        hello: Option<&RawValue>,
        settings: Settings,
    ) {
        let mut state = State::new(session).within(folder);
        if let Some(hello) = hello {
            state.heed(hello);
        }
        let header = state.header_mut();
        if let Some(modes) = settings.modes {
            header.mode = Some(modes.current_mode_id);
            header.modes = modes.available_modes;
        }
        let initial = settings.options.into_iter();
        self.printed_options = initial.map(|option| (option.id, option.current_value)).collect();
        self.state = Some(state);
    }

    pub(crate) fn turn_ended(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let usage = self.usage();
        self.lines_of(usage, &mut pieces);
        pieces
    }

    pub(crate) fn notification(&mut self, name: &str, params: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if let Some(sentence) = sentence(name, params) {
            let role = if name == method::UNANSWERED { Role::Warning } else { Role::Dim };
            let line = Text::styled(role, sentence) + "\n";
            self.lines_of(line, &mut pieces);
            return pieces;
        }
        let Some(mut state) = self.state.take() else { return pieces };
        let mode = state.header().mode.clone();
        self.lines += 1;
        for id in state.notification(Some(self.lines), name, params) {
            // Messages and calls inside of subagents are not shown, only nested subagents.
            let own = state.turns().iter().rev().find_map(|turn| turn.block(id));
            let is_subagent = |block: &&Block| matches!(block.kind, Kind::Subagent(_));
            if let Some(block) = own.or_else(|| state.get(id).filter(is_subagent)) {
                self.block(block, mode.as_ref(), &mut pieces);
            } else if let Some(Shown::Message { has_ended: false, .. }) = self.shown.remove(&id)
                && matches!(self.flow, Some((Flow::Answer, _)))
            {
                // Another text takes its place.
                pieces.push(Piece::AnswerEnds);
            }
        }
        let options = self.options(state.header().options.as_deref().unwrap_or_default());
        self.lines_of(options, &mut pieces);
        for block in state.drain().iter().flat_map(|turn| &turn.blocks) {
            self.shown.remove(&block.id);
        }
        self.state = Some(state);
        if self.options.whole && name == method::TURN_ENDED {
            let usage = self.usage();
            self.lines_of(usage, &mut pieces);
        }
        pieces
    }

    fn block(&mut self, block: &Block, mode: Option<&Untrusted>, pieces: &mut Vec<Piece>) {
        let Options { thoughts, whole } = self.options;
        let line = match &block.kind {
            Kind::Prompt(message) if whole || message.steered => {
                return self.message(Flow::User, block, message, pieces);
            }
            Kind::Answer(message) => return self.message(Flow::Answer, block, message, pieces),
            Kind::Thought(message) if thoughts => {
                return self.message(Flow::Thought, block, message, pieces);
            }
            Kind::Prompt(_) | Kind::Thought(_) => return,
            Kind::Call(call) | Kind::Edit(call) | Kind::Command(call) => {
                let shown = self.shown.entry(block.id);
                let lines = match shown.or_insert_with(|| Shown::Call(call::Shown::default())) {
                    Shown::Call(shown) => shown.update(call),
                    _ => Text::new(),
                };
                return self.lines_of(lines, pieces);
            }
            Kind::Plan(new) => {
                let lines = self.plan(new);
                return self.lines_of(lines, pieces);
            }
            Kind::Notice(notice) => match &notice.topic {
                Topic::Mode(id) if mode == Some(id) => return,
                // The answer to the prompt also reports it.
                Topic::Restored(RestoreLevel::Lost) if !whole => return,
                _ => block.summary(),
            },
            Kind::Gap(_) | Kind::Question(_) => block.summary(),
            // The subagent began before this verb was attached.
            Kind::Subagent(Subagent { title: None, .. }) if matches!(block.id, Id::Around(_)) => {
                return;
            }
            Kind::Subagent(subagent) => Text::styled(Role::Dim, subagent_line(subagent)),
            Kind::Turn(end) if whole => turn_end(end).unwrap_or_default(),
            Kind::Turn(_) => return,
        };
        let shown = self.shown.insert(block.id, Shown::Line(line.clone()));
        let is_new = !matches!(shown, Some(Shown::Line(before)) if before == line);
        if is_new && !line.is_empty() {
            self.lines_of(line + "\n", pieces);
        }
    }

    fn options(&mut self, options: &[ConfigOption]) -> Text {
        let mut lines = Text::new();
        for option in options {
            let now = (option.id.clone(), option.current_value.clone());
            if !self.printed_options.contains(&now) {
                lines += Text::styled(Role::Dim, option.sentence()) + "\n";
                self.printed_options.retain(|(id, _)| *id != option.id);
                self.printed_options.push(now);
            }
        }
        lines
    }

    fn usage(&mut self) -> Text {
        let usage = self.state.as_ref().and_then(|state| state.header().usage.as_ref());
        match usage.filter(|usage| self.printed_usage.as_ref() != Some(*usage)) {
            Some(usage) => {
                self.printed_usage = Some(usage.clone());
                // Agents without a price report 0.
                let cost = usage.cost.clone().filter(|cost| cost.amount > Amount::default());
                let usage = Usage { cost, ..usage.clone() };
                Text::styled(Role::Dim, human::usage(&usage)) + "\n"
            }
            None => Text::new(),
        }
    }

    /// Returns a changed plan, with marks at new entries.
    fn plan(&mut self, new: &Plan) -> Text {
        let before = std::mem::replace(&mut self.plan, new.entries.clone());
        if before == new.entries {
            return Text::new();
        }
        let mut text =
            text!("{} {}/{}\n", Text::styled(BOLD, "plan"), new.done(), new.entries.len());
        for entry in &new.entries {
            let is_new = !before.is_empty() && !before.contains(entry);
            let mark = if is_new { Text::styled(Role::Warning, "*") } else { " ".into() };
            text += text!("{} {}\n", mark, entry.line());
        }
        text
    }

    fn message(&mut self, flow: Flow, block: &Block, said: &Message, pieces: &mut Vec<Piece>) {
        let shown = self.shown.remove(&block.id);
        let (mut parts, mut bytes, has_ended) = match shown {
            Some(Shown::Message { parts, bytes, has_ended }) => (parts, bytes, has_ended),
            _ => {
                self.begin(flow, pieces);
                (0, 0, false)
            }
        };
        for (at, content) in said.content.iter().enumerate().skip(parts.saturating_sub(1)) {
            match content {
                Content::Text(text) => {
                    let from = if at < parts { bytes } else { 0 };
                    let more = Untrusted::from(text.raw().get(from..).unwrap_or_default());
                    self.text(flow, more, pieces);
                    bytes = text.raw().len();
                }
                Content::Other(block) if at >= parts => {
                    let prefix = if flow == Flow::User { "> " } else { "" };
                    let line = text!("{}{}", prefix, describe(block));
                    pieces.push(Piece::Lines(Text::styled(Role::Dim, line) + "\n"));
                    self.flow = Some((flow, false));
                }
                Content::Other(_) => {}
            }
            parts = parts.max(at + 1);
        }
        let ends = block.progress != Progress::Running;
        if ends && !has_ended && flow == Flow::Answer {
            pieces.push(Piece::AnswerEnds);
        }
        self.shown.insert(block.id, Shown::Message { parts, bytes, has_ended: ends });
    }

    fn begin(&mut self, flow: Flow, pieces: &mut Vec<Piece>) {
        match self.flow {
            Some((Flow::User, _)) => pieces.push(Piece::Lines("\n".into())),
            _ if flow == Flow::User && self.begun => pieces.push(Piece::Lines("\n".into())),
            Some((Flow::Thought, true)) if flow == Flow::Thought => {
                pieces.push(Piece::Flow(flow, "\n".into()));
            }
            _ => {}
        }
        self.flow = Some((flow, false));
        self.begun = true;
    }

    fn text(&mut self, flow: Flow, text: Untrusted, pieces: &mut Vec<Piece>) {
        if text.is_empty() {
            return;
        }
        if self.flow.is_none_or(|(before, _)| before != flow) {
            self.begin(flow, pieces);
        }
        let is_open = !text.raw().ends_with('\n');
        pieces.push(match flow {
            Flow::Answer => Piece::Answer(text),
            Flow::Thought => Piece::Flow(flow, Text::styled(Role::Dim, text.prose())),
            Flow::User => Piece::Flow(flow, Text::styled(BOLD, self.quoted(&text))),
        });
        self.flow = Some((flow, is_open));
    }

    /// Puts a mark before each line of the user's text.
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

    /// Prints whole lines, which end running text.
    fn lines_of(&mut self, lines: Text, pieces: &mut Vec<Piece>) {
        if lines.is_empty() {
            return;
        }
        if let Some((Flow::User, _)) = self.flow.take() {
            pieces.push(Piece::Lines("\n".into()));
        }
        self.begun = true;
        pieces.push(Piece::Lines(lines));
    }
}

fn subagent_line(subagent: &Subagent) -> Text {
    let state = subagent.state.as_ref().map(|state| Untrusted::from(state.raw().replace('_', " ")));
    let title = subagent.title.as_ref().unwrap_or(&subagent.session);
    let gap = if state.is_some() { ": " } else { "" };
    text!("subagent {}{}{}", title, gap, state)
}

/// Describes a notice that is not in the journal.
pub(crate) fn sentence(name: &str, params: &str) -> Option<Text> {
    Some(match name {
        method::PROMPT_QUEUED => {
            let PromptQueued { ahead, .. } = serde_json::from_str(params).ok()?;
            let prompts = human::counted(ahead, "earlier prompt");
            text!("waiting for {} in this session", prompts)
        }
        method::UNANSWERED => {
            let Unanswered { agent, method, waited, .. } = serde_json::from_str(params).ok()?;
            let waited = human::duration(waited);
            text!(
                "agent `{}` has not answered `{}` for {}; Ctrl-C stops waiting, `acpctl agent restart {}` \
                 restarts the agent",
                agent,
                method,
                waited,
                agent
            )
        }
        _ => return None,
    })
}
