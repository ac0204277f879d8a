//! Visible lines of a conversation.
//!
//! A position is a row and a line in it, not a number of lines from the start. So rows above are
//! not measured, and older lines move nothing. Only visible rows are wrapped, and cached until they
//! change.

use std::collections::HashMap;
use std::rc::Rc;

use acpd_view::text::Text;
use acpd_view::{
    Block, Consent, Content, Folding, Id, Kind, Markdown, Progress, Role, Row, group_summary,
};

use super::LinkId;
use super::conversation::{Conversation, id};

const MAX_CACHED_LINES: usize = 20_000;
/// Older lines are requested when fewer rows are above the screen.
const AHEAD_ROWS: usize = 60;

#[derive(Debug, Default)]
pub(in crate::app) struct ChatLayout {
    of: Option<LinkId>,
    width: usize,
    kept: HashMap<Id, (Version, Rc<Vec<Text>>)>,
    kept_lines: usize,
    stream: Option<Stream>,
    /// The first row on the screen and its first visible line; none at the live end.
    place: Option<(Id, usize)>,
    scrolled: isize,
    jumps: u64,
}

/// The last line, number of blocks, folding, progress and consent of a row with cached lines.
type Version = (u64, usize, Folding, Progress, Option<Consent>);

/// The index of the row at the top of the screen, and its first visible line.
type Top = (usize, usize);

#[derive(Debug)]
struct Stream {
    id: Id,
    bytes: usize,
    markdown: Markdown,
}

#[derive(Debug)]
pub(super) struct Placed {
    pub(super) line: Text,
    /// None for an empty line between rows.
    pub(super) row: Option<usize>,
    pub(super) is_head: bool,
}

/// A conversation on a screen of this height.
#[derive(Clone, Copy)]
pub(super) struct OnRows<'a> {
    pub(super) conversation: &'a Conversation,
    pub(super) rows: &'a [Row<'a>],
    pub(super) height: usize,
}

#[derive(Debug, Default)]
pub(super) struct Visible {
    pub(super) lines: Vec<Placed>,
    pub(super) is_live: bool,
    pub(super) below: usize,
    pub(super) first: u64,
    pub(super) is_near_beginning: bool,
}

impl ChatLayout {
    /// Returns the visible lines. A jump to a row ends at the first line with the searched `words`.
    pub(super) fn lay_out(
        &mut self,
        link: LinkId,
        of: OnRows<'_>,
        width: usize,
        words: &str,
    ) -> Visible {
        let OnRows { conversation, rows, height } = of;
        if self.of != Some(link) {
            *self = ChatLayout { of: Some(link), ..ChatLayout::default() };
        }
        if self.width != width || self.kept_lines > MAX_CACHED_LINES {
            (self.width, self.kept_lines, self.stream) = (width, 0, None);
            self.kept.clear();
        }
        if rows.is_empty() || height == 0 {
            return Visible { is_live: true, is_near_beginning: true, ..Visible::default() };
        }
        let mut top = self.top(of);
        if conversation.jumps.0 != self.jumps {
            self.jumps = conversation.jumps.0;
            match conversation.jumps.1 {
                None => self.place = None,
                Some(to) => top = self.reveal(of, top, to, words),
            }
            if self.place.is_none() {
                top = self.top(of);
            }
        }
        let by = conversation.scrolled - self.scrolled;
        self.scrolled = conversation.scrolled;
        if by != 0 {
            top = self.moved(of, top, by);
            self.settle(of, top);
            top = self.top(of);
        }
        self.visible(of, top)
    }

    fn visible(&mut self, of: OnRows<'_>, (first, mut skip): Top) -> Visible {
        let OnRows { conversation, rows, height } = of;
        let mut lines = Vec::with_capacity(height);
        let mut at = first;
        while at < rows.len() && lines.len() < height {
            let own = self.lines(conversation, rows[at]);
            let gap = has_gap(rows, at).then_some(None).into_iter();
            let shown = gap.chain(own.iter().enumerate().map(Some)).skip(skip);
            lines.extend(shown.take(height - lines.len()).map(|line| match line {
                None => Placed { line: Text::new(), row: None, is_head: false },
                Some((n, line)) => Placed { line: line.clone(), row: Some(at), is_head: n == 0 },
            }));
            skip = 0;
            at += 1;
        }
        Visible {
            lines,
            is_live: self.place.is_none(),
            below: rows.len() - at,
            first: id(&rows[first]).seq(),
            is_near_beginning: first < AHEAD_ROWS,
        }
    }

    fn top(&mut self, of: OnRows<'_>) -> Top {
        let rows = of.rows;
        if let Some((row, line)) = self.place {
            // A row that joined a group is found by the group.
            let at = rows.iter().rposition(|other| id(other) <= row);
            let at = rows.iter().position(|other| id(other) == row).or(at).unwrap_or(0);
            return (at, line.min(self.height(of, at).saturating_sub(1)));
        }
        let last = rows.len() - 1;
        let end = (last, self.height(of, last));
        self.moved(of, end, -(of.height as isize))
    }

    fn moved(&mut self, of: OnRows<'_>, (mut at, line): Top, by: isize) -> Top {
        let mut line = (line as isize).saturating_add(by);
        while line < 0 {
            if at == 0 {
                return (0, 0);
            }
            at -= 1;
            line += self.height(of, at) as isize;
        }
        loop {
            let own = self.height(of, at) as isize;
            if line < own || at + 1 == of.rows.len() {
                return (at, line.min(own - 1) as usize);
            }
            line -= own;
            at += 1;
        }
    }

    /// Returns the nearest top that shows the whole row, its beginning, or its first line with the
    /// `words`.
    fn reveal(&mut self, of: OnRows<'_>, top: Top, to: Id, words: &str) -> Top {
        let OnRows { conversation, rows, height } = of;
        let Some(wanted) = rows.iter().position(|row| id(row) == to) else { return top };
        let own = self.height(of, wanted);
        let lines = self.lines(conversation, rows[wanted]);
        let has_words = |line: &Text| line.as_str().to_lowercase().contains(words);
        let hit = lines.iter().position(has_words).filter(|_| !words.is_empty());
        let hit = hit.map_or(0, |at| at + usize::from(has_gap(rows, wanted)));
        let new = if own > height && hit >= height {
            (wanted, (hit - height / 2).min(own - height))
        } else if wanted < top.0 || (wanted == top.0 && top.1 > 0) {
            (wanted, 0)
        } else {
            let heights = (top.0..=wanted).map(|at| self.height(of, at));
            let between = heights.sum::<usize>() - top.1;
            if between <= height {
                top
            } else if own >= height {
                (wanted, 0)
            } else {
                self.moved(of, top, (between - height) as isize)
            }
        };
        self.settle(of, new);
        new
    }

    /// Sets the position: the live end if nothing is below the screen.
    fn settle(&mut self, of: OnRows<'_>, (first, skip): Top) {
        let mut lines = 0;
        let is_more = (first..of.rows.len()).any(|at| {
            lines += self.height(of, at);
            lines > of.height + skip
        });
        self.place = is_more.then(|| (id(&of.rows[first]), skip));
    }

    fn height(&mut self, of: OnRows<'_>, at: usize) -> usize {
        usize::from(has_gap(of.rows, at)) + self.lines(of.conversation, of.rows[at]).len()
    }

    fn lines(&mut self, conversation: &Conversation, row: Row<'_>) -> Rc<Vec<Text>> {
        let folding = match row {
            [block] => conversation.folding(block),
            _ => Folding::Closed,
        };
        let block = &row[row.len() - 1];
        let version = (block.last, row.len(), folding, block.progress, block.consent());
        if let Some((_, lines)) = self.kept.get(&row[0].id).filter(|(kept, _)| *kept == version) {
            return Rc::clone(lines);
        }
        let lines = match row {
            [block] => self.wrapped(block, folding),
            blocks => vec![group_summary(blocks).cut(self.width)],
        };
        let lines = if lines.is_empty() { vec![Text::of(Role::Dim, "(nothing)")] } else { lines };
        let lines = Rc::new(lines);
        self.kept_lines += lines.len();
        if let Some((_, before)) = self.kept.insert(row[0].id, (version, Rc::clone(&lines))) {
            self.kept_lines -= before.len();
        }
        lines
    }

    fn wrapped(&mut self, block: &Block, folding: Folding) -> Vec<Text> {
        let Kind::Answer(message) = &block.kind else { return block.lines(self.width, folding) };
        let is_text = message.content.iter().all(|part| matches!(part, Content::Text(_)));
        if block.progress != Progress::Running || !is_text {
            return block.lines(self.width, folding);
        }
        // Finished parts of a growing answer are not parsed again.
        let text = message.text();
        let text = text.raw();
        let fits = |s: &Stream| {
            s.id == block.id && s.bytes <= text.len() && text.is_char_boundary(s.bytes)
        };
        let stream = self.stream.take().filter(fits);
        let mut stream = stream.unwrap_or_else(|| Stream {
            id: block.id,
            bytes: 0,
            markdown: Markdown::new(self.width),
        });
        stream.markdown.push(&text[stream.bytes..].into());
        stream.bytes = text.len();
        let lines = stream.markdown.lines().to_vec();
        self.stream = Some(stream);
        lines
    }
}

fn has_gap(rows: &[Row<'_>], at: usize) -> bool {
    let kind = |row: Row<'_>| match row {
        [block] => match block.kind {
            Kind::Prompt(_) => 0,
            Kind::Answer(_) => 1,
            _ => 2,
        },
        _ => 2,
    };
    at > 0 && (kind(rows[at]) != kind(rows[at - 1]) || kind(rows[at]) == 0)
}
