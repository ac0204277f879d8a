//! Assigns the lines of a turn to blocks.

use std::mem::discriminant;
use std::sync::Arc;

use acpd_api::Untrusted;
use serde_json::{Map, Value, json};

use super::{OpenQuestions, Step, notice};
use crate::block::{
    Block, Content, Folding, Id, Kind, Message, Notice, Plan, PlanEntry, Progress, Severity,
    Subagent, ToolCall, Topic,
};
use crate::lenient::{self, text};
use crate::terminal::Terminal;

const PROMPT_LINES: usize = 12;
const THOUGHT_LINES: usize = 3;
const OUTPUT_LINES: usize = 8;
/// Terminals that no call has shown yet.
const MAX_TERMINALS: usize = 64;

/// A turn, or the lines before the first turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    /// None if the turn's beginning was not read.
    pub started: Option<Started>,
    /// From top to bottom. Blocks after the turn's end came late.
    pub blocks: Vec<Block>,
    has_ended: bool,
    /// Terminals that no call has shown yet, with their sessions.
    terminals: Vec<(Untrusted, Terminal)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// The number of the line in the journal.
    pub seq: u64,
    /// From 1.
    pub turn: u64,
    /// In ms since the epoch.
    pub at: u64,
}

impl Turn {
    pub(super) fn new(started: Started) -> Turn {
        Turn { started: Some(started), ..Turn::default() }
    }

    /// The number of the first line.
    pub(super) fn first(&self) -> Option<u64> {
        let block = self.blocks.first().map(|block| block.id.seq());
        self.started.map(|started| started.seq).or(block)
    }

    /// Returns a block that is not inside of a subagent.
    pub fn block(&self, id: Id) -> Option<&Block> {
        let at = self.blocks.binary_search_by_key(&id.seq(), |block| block.id.seq()).ok()?;
        self.blocks.get(at).filter(|block| block.id == id)
    }

    /// Returns a block, and the subagent around it.
    pub(super) fn find(&self, id: Id) -> Option<(&Block, Option<Id>)> {
        let inside = || find(&self.blocks, id).map(|(block, of)| (block, Some(of)));
        self.block(id).map(|block| (block, None)).or_else(inside)
    }

    /// Ends the turn and all its blocks. A turn without an end ends when the next one begins.
    pub(super) fn close(&mut self, asked: &OpenQuestions) -> Vec<Id> {
        self.has_ended = true;
        let mut changed = Vec::new();
        end_all(&mut self.blocks, &mut changed);
        changed.extend(self.settle(asked));
        changed
    }

    /// Applies the folding rules again; returns the ids of changed blocks.
    pub(super) fn settle(&mut self, asked: &OpenQuestions) -> Vec<Id> {
        let (mut changed, has_ended) = (Vec::new(), self.has_ended);
        change_all(&mut self.blocks, &mut changed, &mut |block| {
            apply_rules(block, has_ended, asked)
        });
        changed
    }

    /// Adds a block that no later line changes. A refusal also marks the call that it is about.
    pub(super) fn push(&mut self, step: &Step<'_>, block: Block) -> Vec<Id> {
        self.within(step, |blocks, changed| {
            if let Kind::Question(question) = &block.kind
                && let Some(id) = &question.tool_call
                && let Some(call) = blocks
                    .iter_mut()
                    .rev()
                    .find(|block| block.tool_call().is_some_and(|call| call.has_id(id.raw())))
            {
                call.is_refused = question.is_refused;
                changed.push(call.id);
            }
            push(blocks, block, changed);
        })
    }

    /// Adds a chunk to the message that it continues, or begins a message of this kind.
    pub(super) fn chunk(
        &mut self,
        step: &Step<'_>,
        kind: fn(Message) -> Kind,
        steered: bool,
        mut update: Map<String, Value>,
    ) -> Vec<Id> {
        let content = lenient::blocks(update.remove("content"));
        let mut new = Message { steered, id: text(&update, "messageId"), ..Message::default() };
        self.within(step, |blocks, changed| {
            if let Some(block) = blocks.last_mut()
                && block.progress == Progress::Running
                && discriminant(&block.kind) == discriminant(&kind(Message::default()))
                && let Kind::Prompt(message) | Kind::Answer(message) | Kind::Thought(message) =
                    &mut block.kind
                && (&message.id, message.steered) == (&new.id, steered)
            {
                for content in content {
                    message.add(content);
                }
                block.last = step.seq;
                changed.push(block.id);
                return;
            }
            for content in content {
                new.add(content);
            }
            push(blocks, Block::new(step.seq, kind(new), Progress::Running), changed);
        })
    }

    /// Gives a message its whole content. A message that does not begin with what was shown is
    /// shown again below.
    pub(super) fn replace(
        &mut self,
        step: &Step<'_>,
        kind: fn(Message) -> Kind,
        mut update: Map<String, Value>,
    ) -> Vec<Id> {
        let id = text(&update, "messageId");
        let Some(content) = update.remove("content") else { return Vec::new() };
        let mut new = Message { id, ..Message::default() };
        if !content.is_null() {
            for block in lenient::blocks(Some(content)) {
                new.add(block);
            }
        }
        self.within(step, |blocks, changed| {
            let is_it = |block: &Block| {
                new.id.is_some()
                    && block.message().is_some_and(|message| message.id == new.id)
                    && discriminant(&block.kind) == discriminant(&kind(Message::default()))
            };
            if let Some(last) = blocks.iter().rposition(is_it) {
                let mut shown = Message::default();
                for part in blocks.iter().filter(|block| is_it(block)).filter_map(Block::message) {
                    shown.content.extend(part.content.iter().cloned());
                }
                let text = new.text();
                let rest = text.raw().strip_prefix(shown.text().raw());
                if let Some(rest) = rest.filter(|_| new.others().eq(shown.others())) {
                    let block = &mut blocks[last];
                    if let Kind::Prompt(message) | Kind::Answer(message) | Kind::Thought(message) =
                        &mut block.kind
                        && !rest.is_empty()
                    {
                        message.add(json!({"type": "text", "text": rest}));
                    }
                    block.last = step.seq;
                    changed.push(block.id);
                    return;
                }
                blocks.retain(|block| {
                    let is_gone = is_it(block);
                    changed.extend(is_gone.then_some(block.id));
                    !is_gone
                });
            }
            if !new.content.is_empty() {
                push(blocks, Block::new(step.seq, kind(new), Progress::Running), changed);
            }
        })
    }

    /// Adds an item to the content of a call.
    pub(super) fn add_content(
        &mut self,
        step: &Step<'_>,
        mut update: Map<String, Value>,
    ) -> Vec<Id> {
        let id = text(&update, "toolCallId").unwrap_or_default();
        let item = update.remove("content").unwrap_or_default();
        self.within(step, |blocks, changed| {
            if let Some(at) = last_call(blocks, |call| call.has_id(id.raw())) {
                change_call(blocks, at, step, changed, |call| call.add_content(item));
            }
        })
    }

    /// Changes a terminal in the call that shows it.
    pub(super) fn terminal(&mut self, step: &Step<'_>, update: &Map<String, Value>) -> Vec<Id> {
        let Some(id) = text(update, "terminalId") else { return Vec::new() };
        let changed = self.within(step, |blocks, changed| {
            let is_it = |call: &ToolCall| {
                call.shows(id.raw()) || call.terminals.iter().any(|terminal| terminal.id == id)
            };
            let Some(at) = last_call(blocks, is_it) else { return };
            change_call(blocks, at, step, changed, |call| {
                let at = call.terminals.iter().position(|terminal| terminal.id == id);
                let at = at.unwrap_or_else(|| {
                    call.terminals.push(Terminal::new(id.clone()));
                    call.terminals.len() - 1
                });
                call.terminals[at].change(update);
            });
        });
        if changed.is_empty() {
            let is_it = |(session, terminal): &&mut (Untrusted, Terminal)| {
                session == step.session && terminal.id == id
            };
            if let Some((_, terminal)) = self.terminals.iter_mut().find(is_it) {
                terminal.change(update);
            } else {
                if self.terminals.len() >= MAX_TERMINALS {
                    self.terminals.remove(0);
                }
                let mut terminal = Terminal::new(id);
                terminal.change(update);
                self.terminals.push((step.session.clone(), terminal));
            }
        }
        changed
    }

    pub(super) fn call(
        &mut self,
        step: &Step<'_>,
        folder: Option<Arc<str>>,
        mut update: Map<String, Value>,
    ) -> Vec<Id> {
        // Without an id, a call cannot be matched: each of its lines becomes a call.
        let id = text(&update, "toolCallId");
        update.remove("_meta");
        let mut terminals = std::mem::take(&mut self.terminals);
        let changed = self.within(step, |blocks, changed| {
            let is_it = |call: &ToolCall| id.as_ref().is_some_and(|id| call.has_id(id.raw()));
            let change = |call: &mut ToolCall| {
                call.change(update, step.cleared);
                let is_its = |(session, terminal): &mut (Untrusted, Terminal)| {
                    session == step.session && call.shows(terminal.id.raw())
                };
                let shown: Vec<_> = terminals.extract_if(.., is_its).collect();
                call.terminals.extend(shown.into_iter().map(|(_, terminal)| terminal));
            };
            if let Some(at) = last_call(blocks, is_it) {
                return change_call(blocks, at, step, changed, change);
            }
            let mut call = ToolCall { folder, ..ToolCall::default() };
            change(&mut call);
            let progress = progress_of(&call, Progress::Running);
            push(blocks, Block::new(step.seq, kind_of(call), progress), changed);
        });
        self.terminals = terminals;
        changed
    }

    /// Adds or updates a plan. Also returns its current steps.
    pub(super) fn plan(
        &mut self,
        step: &Step<'_>,
        kind: &str,
        mut update: Map<String, Value>,
    ) -> (Vec<Id>, Vec<PlanEntry>) {
        let mut members = match update.remove("plan") {
            Some(Value::Object(plan)) if kind == "plan_update" => plan,
            _ => update,
        };
        let id = text(&members, "planId");
        let is_removed = kind == "plan_removed";
        let entries = lenient::list(lenient::steps(&mut members).as_ref());
        let said = text(&members, "content").or_else(|| text(&members, "uri"));
        let plan = Plan { entries, text: said, id };
        let pinned = plan.entries.clone();
        let changed = self.within(step, |blocks, changed| {
            let same = |block: &Block| matches!(&block.kind, Kind::Plan(old) if old.id == plan.id);
            match blocks.iter().rposition(same) {
                Some(at) if is_removed => changed.push(blocks.remove(at).id),
                Some(at) => {
                    let block = &mut blocks[at];
                    block.last = step.seq;
                    block.kind = Kind::Plan(plan);
                    changed.push(block.id);
                }
                None if is_removed => {}
                None => {
                    let block = Block::new(step.seq, Kind::Plan(plan), Progress::Done);
                    push(blocks, block, changed);
                }
            }
        });
        (changed, pinned)
    }

    pub(super) fn subagent(&mut self, step: &Step<'_>, update: &Map<String, Value>) -> Vec<Id> {
        let Some(session) = text(update, "sessionId") else { return Vec::new() };
        let state = update.get("state").and_then(Value::as_object);
        let state = state.and_then(|state| text(state, "state"));
        let title = text(update, "title");
        let mut changed = Vec::new();
        if !has_subagent(&self.blocks, &session) {
            // The announcement may be in another turn.
            changed = self.within(step, |blocks, changed| {
                push(blocks, subagent(step.seq, &session), changed);
            });
        }
        let rules = (step, self.has_ended);
        inside(&mut self.blocks, &session, rules, &mut changed, |subagent, progress, changed| {
            subagent.title = title.or(subagent.title.take());
            subagent.state = state.or(subagent.state.take());
            *progress = match subagent.state.as_ref().map(Untrusted::raw) {
                Some("idle") => Progress::Done,
                Some("unknown") => Progress::Interrupted,
                _ => Progress::Running,
            };
            if *progress != Progress::Running {
                end_all(&mut subagent.blocks, changed);
            }
        });
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    pub(super) fn compaction(&mut self, step: &Step<'_>, update: &Map<String, Value>) -> Vec<Id> {
        let id = text(update, "compactionId").unwrap_or_default();
        let Some((progress, now)) = notice::compaction(&id, update) else { return Vec::new() };
        self.within(step, |blocks, changed| {
            let is_it = |block: &&mut Block| {
                matches!(&block.kind, Kind::Notice(Notice { topic: Topic::Compaction(it), .. }) if *it == id)
            };
            if let Some(block) = blocks.iter_mut().rev().find(is_it) {
                (block.progress, block.kind, block.last) = (progress, Kind::Notice(now), step.seq);
                changed.push(block.id);
            } else {
                push(blocks, Block::new(step.seq, Kind::Notice(now), progress), changed);
            }
        })
    }

    /// Changes the blocks that a line belongs to: the turn's own or those of a subagent.
    fn within(
        &mut self,
        step: &Step<'_>,
        change: impl FnOnce(&mut Vec<Block>, &mut Vec<Id>),
    ) -> Vec<Id> {
        let (mut changed, has_ended) = (Vec::new(), self.has_ended);
        let change = |blocks: &mut Vec<Block>, changed: &mut Vec<Id>| {
            let mut here = Vec::new();
            change(blocks, &mut here);
            // Changed blocks are mostly near the end.
            let those = blocks.iter_mut().rev().filter(|block| here.contains(&block.id));
            for block in those.take(here.len()) {
                apply_rules(block, has_ended, step.asked);
            }
            changed.extend(here);
        };
        if step.is_own {
            change(&mut self.blocks, &mut changed);
        } else {
            let session = step.session;
            if !has_subagent(&self.blocks, session) {
                // The announcement is in another turn, or before the first line that was read.
                let id = Id::Around(step.seq);
                push(&mut self.blocks, Block { id, ..subagent(step.seq, session) }, &mut changed);
            }
            let change =
                |it: &mut Subagent, _: &mut _, changed: &mut _| change(&mut it.blocks, changed);
            inside(&mut self.blocks, session, (step, has_ended), &mut changed, change);
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }
}

fn last_call(blocks: &[Block], is_it: impl Fn(&ToolCall) -> bool) -> Option<usize> {
    blocks.iter().rposition(|block| block.tool_call().is_some_and(&is_it))
}

fn change_call(
    blocks: &mut [Block],
    at: usize,
    step: &Step<'_>,
    changed: &mut Vec<Id>,
    change: impl FnOnce(&mut ToolCall),
) {
    let block = &mut blocks[at];
    let before = block.progress;
    if let Kind::Call(call) | Kind::Edit(call) | Kind::Command(call) = &mut block.kind {
        change(call);
        let call = std::mem::take(call);
        block.progress = progress_of(&call, before);
        block.kind = kind_of(call);
    }
    block.last = step.seq;
    changed.push(block.id);
    if block.progress != before {
        // Text after a result is a new message; agents with message ids show that themselves.
        let is_nameless = |message: &Message| message.id.is_none();
        end_message(blocks, is_nameless, changed);
    }
}

/// Changes a subagent, and with it the subagents around it.
fn inside(
    blocks: &mut [Block],
    session: &Untrusted,
    (step, has_ended): (&Step<'_>, bool),
    changed: &mut Vec<Id>,
    change: impl FnOnce(&mut Subagent, &mut Progress, &mut Vec<Id>),
) {
    let is_in = |block: &&mut Block| has_subagent(std::slice::from_ref(block), session);
    let Some(block) = blocks.iter_mut().rev().find(is_in) else { return };
    match &mut block.kind {
        Kind::Subagent(it) if it.session == *session => change(it, &mut block.progress, changed),
        Kind::Subagent(it) => inside(&mut it.blocks, session, (step, has_ended), changed, change),
        _ => {}
    }
    block.last = step.seq;
    changed.push(block.id);
    apply_rules(block, has_ended, step.asked);
}

impl Message {
    /// Adds content; adjacent texts are merged.
    fn add(&mut self, mut content: Value) {
        let is_text = content.get("type").and_then(Value::as_str) == Some("text");
        match (self.content.last_mut(), content.get_mut("text")) {
            (Some(Content::Text(text)), Some(Value::String(more))) if is_text => text.push(more),
            (_, Some(Value::String(text))) if is_text => {
                self.content.push(Content::Text(std::mem::take(text).into()));
            }
            _ => self.content.push(Content::Other(content)),
        }
    }
}

fn subagent(seq: u64, session: &Untrusted) -> Block {
    let (session, blocks) = (session.clone(), Vec::new());
    let kind = Kind::Subagent(Subagent { session, title: None, state: None, blocks });
    Block::new(seq, kind, Progress::Running)
}

fn kind_of(call: ToolCall) -> Kind {
    let content = call.members.get("content").and_then(Value::as_array);
    let has = |kind: &str| content.into_iter().flatten().any(|item| item["type"] == *kind);
    if has("diff") {
        Kind::Edit(call)
    } else if call.kind() == Some("execute") || has("terminal") {
        Kind::Command(call)
    } else {
        Kind::Call(call)
    }
}

fn progress_of(call: &ToolCall, before: Progress) -> Progress {
    match call.status() {
        Some("completed") => Progress::Done,
        Some("failed") => Progress::Failed,
        Some("cancelled") => Progress::Interrupted,
        _ => before,
    }
}

fn push(blocks: &mut Vec<Block>, block: Block, changed: &mut Vec<Id>) {
    end_message(blocks, |_| true, changed);
    changed.push(block.id);
    blocks.push(block);
}

fn end_message(blocks: &mut [Block], is_it: impl FnOnce(&Message) -> bool, changed: &mut Vec<Id>) {
    if let Some(last) = blocks.last_mut()
        && last.progress == Progress::Running
        && last.message().is_some_and(is_it)
    {
        last.progress = Progress::Done;
        changed.push(last.id);
    }
}

/// Changes blocks, also those in subagents. Adds the ids of the changed ones and of those around them
/// to `changed`.
fn change_all(
    blocks: &mut [Block],
    changed: &mut Vec<Id>,
    change: &mut impl FnMut(&mut Block) -> bool,
) -> bool {
    let before = changed.len();
    for block in blocks {
        let mut is_new = false;
        if let Kind::Subagent(subagent) = &mut block.kind {
            is_new = change_all(&mut subagent.blocks, changed, change);
        }
        if change(block) || is_new {
            changed.push(block.id);
        }
    }
    changed.len() > before
}

/// Ends running blocks.
fn end_all(blocks: &mut [Block], changed: &mut Vec<Id>) {
    change_all(blocks, changed, &mut |block| {
        let is_running = block.progress == Progress::Running;
        if is_running {
            let is_said = block.message().is_some();
            block.progress = if is_said { Progress::Done } else { Progress::Interrupted };
        }
        is_running
    });
}

/// Sets folding and `is_asked`; returns whether they changed.
fn apply_rules(block: &mut Block, has_ended: bool, asked: &OpenQuestions) -> bool {
    let before = (block.folding, block.is_asked);
    block.is_asked = block.tool_call().is_some_and(|call| asked.contains(&call.id()));
    block.folding = folding(block, has_ended, asked);
    before != (block.folding, block.is_asked)
}

/// Returns the default folding. Blocks that a user must see are open.
fn folding(block: &Block, turn_ended: bool, asked: &OpenQuestions) -> Folding {
    let closed_if = |closed| if closed { Folding::Closed } else { Folding::Open };
    match &block.kind {
        Kind::Prompt(_) => Folding::First(PROMPT_LINES),
        Kind::Answer(_) | Kind::Gap(_) => Folding::Open,
        Kind::Thought(_) if block.progress == Progress::Running => Folding::Last(THOUGHT_LINES),
        Kind::Thought(_) => Folding::Closed,
        _ if block.is_asked => Folding::Open,
        Kind::Call(_) => closed_if(block.progress == Progress::Done || turn_ended),
        Kind::Edit(_) | Kind::Plan(_) => closed_if(turn_ended),
        Kind::Command(_) if turn_ended => Folding::Closed,
        Kind::Command(_) => Folding::Last(OUTPUT_LINES),
        Kind::Question(_) => Folding::Closed,
        Kind::Subagent(subagent) => {
            closed_if(block.progress == Progress::Done && !waits(subagent, asked))
        }
        Kind::Notice(notice) => {
            closed_if(notice.severity == Severity::Info && block.progress != Progress::Failed)
        }
        Kind::Turn(_) => closed_if(block.progress == Progress::Done),
    }
}

/// Returns whether a subagent, or a call or subagent in it, has an open question.
fn waits(subagent: &Subagent, asked: &OpenQuestions) -> bool {
    let inside = |block: &Block| match &block.kind {
        Kind::Subagent(inner) => waits(inner, asked),
        Kind::Call(call) | Kind::Edit(call) | Kind::Command(call) => asked.contains(&call.id()),
        _ => false,
    };
    asked.contains(&subagent.session) || subagent.blocks.iter().any(inside)
}

fn find(blocks: &[Block], id: Id) -> Option<(&Block, Id)> {
    blocks.iter().rev().find_map(|block| {
        let Kind::Subagent(Subagent { blocks, .. }) = &block.kind else { return None };
        let own = blocks.iter().find(|inner| inner.id == id);
        own.map(|inner| (inner, block.id)).or_else(|| find(blocks, id))
    })
}

/// Returns whether a subagent is among the blocks, or in a subagent there.
fn has_subagent(blocks: &[Block], session: &Untrusted) -> bool {
    blocks.iter().rev().any(|block| {
        matches!(&block.kind, Kind::Subagent(it)
            if it.session == *session || has_subagent(&it.blocks, session))
    })
}
