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
    /// The number of jumps, and the last target; none for the live end.
    pub(super) jumps: (u64, Option<Id>),
    asked: Option<Older>,
    /// The beginning was read.
    is_whole: bool,
    /// When each running block was first seen.
    began: HashMap<Id, u64>,
    shows_thoughts: bool,
}

/// A requested page of older lines.
#[derive(Debug)]
struct Older {
    /// The line before it, and its number of lines: some are for other versions.
    after: u64,
    page: u64,
    /// The received part.
    entries: Vec<LogEntry>,
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

    pub(super) fn is_selected(&self, row: Row<'_>) -> bool {
        self.selected == Some(row[0].id)
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
        self.is_whole |= first <= 1;
        if self.is_whole || self.is_asked() {
            return None;
        }
        let after = first.saturating_sub(page + 1);
        self.asked = Some(Older { after, page, entries: Vec::new() });
        Some(after)
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Adds a part of a page. Returns the line before the remaining part.
    pub(super) fn add_older(&mut self, page: LogResult) -> Option<u64> {
        let mut asked = self.asked.take()?;
        let first = self.folded.first().unwrap_or(u64::MAX);
        asked.entries.extend(page.entries.into_iter().filter(|entry| entry.seq < first));
        if let Some(next) = page.next.filter(|next| next + 1 < first) {
            self.asked = Some(asked);
            return Some(next);
        }
        if asked.entries.is_empty() && asked.after > 0 {
            asked.after = asked.after.saturating_sub(asked.page);
            return Some(self.asked.insert(asked).after);
        }
        self.is_whole = asked.after == 0;
        self.folded.earlier(&asked.entries);
        None
    }

    pub(super) fn on_read_failed(&mut self) {
        self.asked = None;
    }

    /// Drops turns far above a row. They are read again when needed.
    pub(super) fn drop_above(&mut self, id: Id) {
        if !self.is_asked() && self.folded.drop_turns_above(id, MAX_TURNS, KEPT_TURNS) {
            self.is_whole = false;
        }
    }

    pub(super) fn scroll(&mut self, by: isize) {
        self.scrolled += by;
    }

    pub(super) fn follow(&mut self) {
        self.selected = None;
        self.jump(None);
    }

    fn jump(&mut self, to: Option<Id>) {
        self.jumps = (self.jumps.0 + 1, to);
    }

    pub(super) fn select_end(&mut self) {
        self.selected = self.rows().last().map(id);
        self.jump(None);
    }

    /// Selects the found row. `find` gets the index of the selected row, or the number of rows.
    pub(super) fn select(
        &mut self,
        find: impl for<'a> FnOnce(&'a [Row<'a>], usize) -> Option<&'a Row<'a>>,
    ) {
        let rows = self.rows();
        let at = rows.iter().position(|row| self.is_selected(row)).unwrap_or(rows.len());
        if let Some(found) = find(&rows, at).map(id) {
            self.choose(found);
        }
    }

    pub(super) fn choose(&mut self, id: Id) {
        self.selected = Some(id);
        self.jump(Some(id));
    }

    pub(super) fn open(&mut self, id: Id) {
        self.choices.insert(id, Folding::Open);
        self.choose(id);
    }

    /// Selects the next match above a row, or above the end. Without a match in the lines that were
    /// read, returns the row above which to continue.
    pub(super) fn find_older(&mut self, words: &str, from: Option<Id>) -> Result<(), Option<Id>> {
        let is_above = |block: &&Block| from.is_none_or(|from| block.id.seq() < from.seq());
        let is_it = |block: &&Block| is_above(block) && block.says(words);
        let Some(id) = self.folded.blocks().rev().find(is_it).map(|block| block.id) else {
            return Err(self.folded.blocks().find(is_above).map(|block| block.id).or(from));
        };
        self.show(id);
        Ok(())
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
            Some(Folding::Open) | None => self.choose(id),
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
            [block] => {
                let is_open = self.folding(block) == Folding::Open;
                vec![(block.id, if is_open { Folding::Closed } else { Folding::Open })]
            }
            blocks => blocks.iter().map(|block| (block.id, Folding::First(GLANCE_ROWS))).collect(),
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
        Some(row.iter().map(of).collect::<Vec<_>>().join("\n"))
    }
}

pub(super) fn is_prompt(row: Row<'_>) -> bool {
    matches!(row, [block] if matches!(block.kind, Kind::Prompt(_)))
}

/// The author's text, not escaped.
pub(super) fn own_text(block: &Block) -> String {
    block.message().map_or_else(|| block.plain(), |message| message.text().into_raw())
}

pub(super) fn id(row: &Row<'_>) -> Id {
    row[0].id
}
