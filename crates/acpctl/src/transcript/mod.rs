//! Transcripts of sessions: the journal is read page by page, and its turns become Markdown
//! ([`markdown`]).

pub(crate) mod markdown;

use std::collections::VecDeque;

use acpd_api::{LogResult, SessionInfo};
use acpd_client::Connection;
use acpd_view::{State, Turn};

use crate::error::Result;
use markdown::{Markdown, Part};

/// The transcript of a session or its end, for an agent that continues it.
#[derive(Debug)]
pub(crate) struct Transcript {
    head: String,
    turns: VecDeque<String>,
    size: usize,
    end: String,
    pub(crate) left_out: usize,
    /// The first turn lacks its beginning.
    pub(crate) is_cut: bool,
}

impl Transcript {
    /// Reads the last turns that fit into `room` bytes; only these are in memory.
    pub(crate) fn read(
        info: &SessionInfo,
        room: usize,
        connection: &mut Connection,
    ) -> Result<Transcript> {
        let head = markdown::head(info).as_str().to_owned();
        let (turns, end) = (VecDeque::new(), String::new());
        let mut all = Transcript { head, turns, size: 0, end, left_out: 0, is_cut: false };
        let mut markdown = Markdown::new(&info.agent);
        read(info, 0, connection, |turn| {
            // There are no messages before the first turn.
            if turn.started.is_some() {
                markdown.restart();
                all.add(raw(markdown.turn(&turn)), room);
            }
            Ok(())
        })?;
        all.end = raw(markdown.end());
        Ok(all)
    }

    fn add(&mut self, text: String, room: usize) {
        self.size += text.len();
        self.turns.push_back(text);
        while self.size > room && self.turns.len() > 1 {
            self.size -= self.turns.pop_front().map_or(0, |turn| turn.len());
            self.left_out += 1;
            self.is_cut = false;
        }
        if self.size > room
            && let Some(turn) = self.turns.front_mut()
        {
            let start = turn.ceil_char_boundary(turn.len() - room);
            turn.drain(..start);
            self.size = turn.len();
            self.is_cut = true;
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.turns.len()
    }

    pub(crate) fn text(&self) -> String {
        let cut = if self.is_cut { "\n[…]\n\n" } else { "" };
        let turns: String = self.turns.iter().map(String::as_str).collect();
        format!("{}{cut}{turns}{}", self.head, self.end)
    }
}

fn raw(parts: impl IntoIterator<Item = Part>) -> String {
    let mut text = String::new();
    for part in parts {
        text.push_str(match &part {
            Part::Ours(text) => text.as_str(),
            Part::Theirs(text) => text.raw(),
        });
    }
    text
}

/// Reads a journal after a line, page by page: only one page and an unfinished turn are in memory.
pub(crate) fn read(
    info: &SessionInfo,
    after: u64,
    connection: &mut Connection,
    mut take: impl FnMut(Turn) -> Result,
) -> Result {
    let mut state = State::new(&info.session_id);
    connection.read_log(info.exactly(), after, |page: LogResult| {
        for entry in page.entries {
            state.fold_entry(entry.seq, entry.line.get());
        }
        state.drain().into_iter().try_for_each(&mut take)
    })?;
    state.into_turns().into_iter().try_for_each(take)
}
