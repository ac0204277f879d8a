//! Blocks of a conversation, and the user's position in it.

use std::collections::HashMap;

use acpd_api::{LogEntry, LogResult, Untrusted};
use acpd_view::text::Text;
use acpd_view::{Block, Change, Folding, Id, Kind, Progress, Role, Row, rows};

/// Rows of a block that was opened from a group.
const GLANCE_ROWS: usize = 3;
const KEPT_TURNS: usize = 100;
/// Turns above the screen at which turns are dropped. A page of older lines has fewer.
const MAX_TURNS: usize = 500;

#[derive(Debug, Default)]
pub(super) struct Conversation {
    pub(super) folded: acpd_view::State,
    choices: HashMap<Id, Folding>,
    /// The first block of the selected row.
    pub(super) selected: Option<Id>,
    /// The sum of all scrolled rows; the layout knows which of them are done.
    pub(super) scrolled: isize,
    /// The number of jumps, and the last target.
    pub(super) jumps: (u64, Jump),
    older: Older,
    /// When each running block was first seen.
    began: HashMap<Id, u64>,
    shows_thoughts: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Jump {
    #[default]
    Live,
    To(Id),
}

#[derive(Debug, Default)]
enum Older {
    #[default]
    Unread,
    /// The received part of a requested page.
    Asked(Vec<LogEntry>),
    None,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum SearchStep {
    Found,
    /// No match in the lines that were read; continue above this row.
    Older(Option<Id>),
}

impl Conversation {
    pub(super) fn new(session: &Untrusted) -> Conversation {
        Conversation { folded: acpd_view::State::new(session), ..Conversation::default() }
    }

    pub(super) fn fold(&mut self, line: &[u8], now: u64) {
        for id in self.folded.fold(line) {
            if self.folded.get(id).is_some_and(|block| block.progress == Progress::Running) {
                self.began.entry(id).or_insert(now);
            }
        }
    }

    pub(super) fn began(&self, id: Id) -> Option<u64> {
        self.began.get(&id).copied()
    }

    /// Returns the user's choice, or the default.
    pub(super) fn folding(&self, block: &Block) -> Folding {
        let rule = match block.kind {
            Kind::Thought(_) if self.shows_thoughts => Folding::Open,
            _ => block.folding,
        };
        self.choices.get(&block.id).copied().unwrap_or(rule)
    }

    pub(super) fn toggle_thoughts(&mut self) {
        self.shows_thoughts = !self.shows_thoughts;
    }

    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let folding = |block: &Block| self.folding(block);
        self.folded.turns().iter().flat_map(|turn| rows(&turn.blocks, folding)).collect()
    }

    pub(super) fn is_selected(&self, row: &Row<'_>) -> bool {
        self.selected == Some(id(row))
    }

    /// The oldest first.
    pub(super) fn prompts(&self) -> Vec<String> {
        let said = self.folded.blocks().filter_map(|block| match &block.kind {
            Kind::Prompt(message) => Some(message.text().into_raw()),
            _ => None,
        });
        let mut said: Vec<String> = said.collect();
        said.dedup();
        said
    }

    /// Returns whether a prompt is after a block of the conversation, and thus no longer queued.
    pub(super) fn has_prompt(&self, text: &str, after: Option<Id>) -> bool {
        let is_it = |block: &Block| match &block.kind {
            Kind::Prompt(message) => message.text().raw().trim() == text.trim(),
            _ => false,
        };
        self.folded.blocks().any(|block| Some(block.id) > after && is_it(block))
    }

    /// Begins to read an older page. Returns the line before it; none if there is no page or one was
    /// requested.
    pub(super) fn begin_older(&mut self, page: u64) -> Option<u64> {
        let first = self.folded.first()?;
        if first <= 1 {
            self.older = Older::None;
        }
        if !matches!(self.older, Older::Unread) {
            return None;
        }
        self.older = Older::Asked(Vec::new());
        Some(first.saturating_sub(page + 1))
    }

    pub(super) fn is_asked(&self) -> bool {
        matches!(self.older, Older::Asked(_))
    }

    /// Adds a part of a page. Returns the line before the remaining part.
    pub(super) fn add_older(&mut self, page: LogResult) -> Option<u64> {
        let Older::Asked(entries) = &mut self.older else { return None };
        entries.extend(page.entries);
        let first = self.folded.first().unwrap_or(u64::MAX);
        let last = entries.last().map_or(0, |entry| entry.seq);
        if let Some(next) = page.next.filter(|_| last + 1 < first) {
            return Some(next);
        }
        let entries = std::mem::take(entries);
        let is_beginning = entries.first().is_none_or(|entry| entry.seq <= 1);
        self.older = if is_beginning { Older::None } else { Older::Unread };
        self.folded.earlier(&entries);
        None
    }

    pub(super) fn on_read_failed(&mut self) {
        if self.is_asked() {
            self.older = Older::Unread;
        }
    }

    /// Drops turns far above a row. They are read again when needed.
    pub(super) fn drop_above(&mut self, id: Id) {
        if !self.is_asked() && self.folded.drop_turns_above(id, MAX_TURNS, KEPT_TURNS) {
            self.older = Older::Unread;
        }
    }

    pub(super) fn scroll(&mut self, by: isize) {
        self.scrolled += by;
    }

    pub(super) fn follow(&mut self) {
        self.selected = None;
        self.jump(Jump::Live);
    }

    fn jump(&mut self, to: Jump) {
        self.jumps = (self.jumps.0 + 1, to);
    }

    pub(super) fn select_last(&mut self) -> bool {
        let last = self.rows().last().map(id);
        self.go(last);
        last.is_some()
    }

    pub(super) fn select_end(&mut self) {
        self.selected = self.rows().last().map(id);
        self.jump(Jump::Live);
    }

    pub(super) fn select_first(&mut self) {
        let first = self.rows().first().map(id);
        self.go(first);
    }

    pub(super) fn select(&mut self, by: isize) {
        let rows = self.rows();
        let at = rows.iter().position(|row| self.is_selected(row)).unwrap_or(rows.len());
        let next = at.saturating_add_signed(by).min(rows.len().saturating_sub(1));
        let next = rows.get(next).map(id);
        self.go(next);
    }

    pub(super) fn select_prompt(&mut self, is_next: bool) {
        let rows = self.rows();
        let at = rows.iter().position(|row| self.is_selected(row)).unwrap_or(rows.len());
        let is_prompt = |row: &&Row<'_>| matches!(row, Row::Block(block) if matches!(block.kind, Kind::Prompt(_)));
        let found = if is_next {
            rows.iter().skip(at + 1).find(is_prompt)
        } else {
            rows.iter().take(at).rev().find(is_prompt)
        };
        let found = found.map(id);
        self.go(found);
    }

    fn go(&mut self, to: Option<Id>) {
        if let Some(to) = to {
            self.selected = Some(to);
            self.jump(Jump::To(to));
        }
    }

    pub(super) fn choose(&mut self, id: Id) {
        self.go(Some(id));
    }

    pub(super) fn open(&mut self, id: Id) {
        self.choices.insert(id, Folding::Open);
        self.go(Some(id));
    }

    /// Selects the next match above a row, or above the end.
    pub(super) fn find_older(&mut self, words: &str, from: Option<Id>) -> SearchStep {
        let is_above = |block: &&Block| from.is_none_or(|from| block.id.seq() < from.seq());
        let mut last = from;
        let mut found = None;
        for block in self.folded.blocks().rev().filter(is_above) {
            if block.says(words) {
                found = Some(block.id);
                break;
            }
            last = Some(block.id);
        }
        match found {
            Some(id) => {
                self.show(id);
                SearchStep::Found
            }
            None => SearchStep::Older(last),
        }
    }

    pub(super) fn find_newer(&mut self, words: &str) -> bool {
        let from = self.selected.map_or(0, Id::seq);
        let is_it = |block: &&Block| block.id.seq() > from && block.says(words);
        let found = self.folded.blocks().find(is_it).map(|block| block.id);
        if let Some(id) = found {
            self.show(id);
        }
        found.is_some()
    }

    fn show(&mut self, id: Id) {
        let folding = self.folded.get(id).map(|block| self.folding(block));
        match folding {
            Some(Folding::Open) | None => self.go(Some(id)),
            Some(_) => self.open(id),
        }
    }

    /// Returns the changed files of the selected row's turn, or of the last turn.
    pub(super) fn changed_files(&self) -> Vec<(Id, Text)> {
        let turns = self.folded.turns();
        let is_in = |turn: &&acpd_view::Turn| {
            let seq = self.selected.map_or(u64::MAX, Id::seq);
            turn.blocks.first().is_some_and(|first| first.id.seq() <= seq)
        };
        let Some(turn) = turns.iter().rev().find(is_in) else { return Vec::new() };
        let mut files: Vec<(Option<Untrusted>, Id, Text)> = Vec::new();
        for block in &turn.blocks {
            let Kind::Edit(call) = &block.kind else { continue };
            let diffs = call.diffs();
            if diffs.is_empty() {
                files.push((None, block.id, block.summary()));
            }
            for diff in diffs {
                let line = Change::of(&call.short(&diff.path), &diff).head;
                match files.iter_mut().find(|(path, ..)| path.as_ref() == Some(&diff.path)) {
                    Some(known) => {
                        (known.1, known.2) = (block.id, line.and(Role::Dim, " (last change)"));
                    }
                    None => files.push((Some(diff.path), block.id, line)),
                }
            }
        }
        files.into_iter().map(|(_, id, line)| (id, line)).collect()
    }

    pub(super) fn fold_selected(&mut self) {
        let rows = self.rows();
        let Some(row) = rows.iter().find(|row| self.is_selected(row)) else { return };
        let choices: Vec<(Id, Folding)> = match row {
            Row::Block(block) => {
                let is_open = self.folding(block) == Folding::Open;
                vec![(block.id, if is_open { Folding::Closed } else { Folding::Open })]
            }
            Row::Group(group) => {
                group.blocks.iter().map(|block| (block.id, Folding::First(GLANCE_ROWS))).collect()
            }
        };
        self.choices.extend(choices);
    }

    pub(super) fn fold_all(&mut self, is_closed: bool) {
        let folding = if is_closed { Folding::Closed } else { Folding::Open };
        let can_fold = |block: &&Block| {
            block.tool_call().is_some() || matches!(block.kind, Kind::Thought(_) | Kind::Plan(_))
        };
        let ids: Vec<Id> = self.folded.blocks().filter(can_fold).map(|block| block.id).collect();
        self.choices.extend(ids.into_iter().map(|id| (id, folding)));
    }

    pub(super) fn of_selected(&self, of: impl Fn(&Block) -> String) -> Option<String> {
        let rows = self.rows();
        let row = rows.iter().find(|row| self.is_selected(row))?;
        let blocks = match row {
            Row::Block(block) => std::slice::from_ref(*block),
            Row::Group(group) => group.blocks,
        };
        Some(blocks.iter().map(of).collect::<Vec<_>>().join("\n"))
    }
}

/// The author's text, not escaped.
pub(super) fn own_text(block: &Block) -> String {
    block.message().map_or_else(|| block.plain(), |message| message.text().into_raw())
}

pub(super) fn id(row: &Row<'_>) -> Id {
    match row {
        Row::Block(block) => block.id,
        Row::Group(group) => group.blocks[0].id,
    }
}
