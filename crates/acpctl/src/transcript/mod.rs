//! Transcripts of sessions, for people and for programs: the journal is read page by page, and its turns
//! become items ([`items`]) or Markdown ([`markdown`]).

pub(crate) mod items;
pub(crate) mod markdown;

use std::collections::VecDeque;

use acpd_api::{LogResult, SessionInfo};
use acpd_client::Connection;
use acpd_view::{State, Turn};

use crate::error::Result;
use markdown::{Markdown, Part};

/// The transcript of a session, or its end, for an agent that continues it.
#[derive(Debug)]
pub(crate) struct Transcript {
    pub(crate) text: String,
    /// Number of its turns.
    pub(crate) turns: usize,
    /// Number of turns before them that are left out.
    pub(crate) left_out: usize,
    /// The first of its turns lacks its beginning.
    pub(crate) is_cut: bool,
}

impl Transcript {
    /// Reads the last turns of a session that fit into `room` bytes. Only they are in memory.
    pub(crate) fn read(
        info: &SessionInfo,
        room: usize,
        connection: &mut Connection,
    ) -> Result<Transcript> {
        let mut turns = Turns::new(info, room);
        read(info, 0, connection, |turn| {
            turns.turn(&turn);
            Ok(())
        })?;
        Ok(turns.end())
    }
}

/// The last turns of a transcript.
#[derive(Debug)]
struct Turns<'a> {
    info: &'a SessionInfo,
    markdown: Markdown,
    room: usize,
    size: usize,
    left_out: usize,
    is_cut: bool,
    texts: VecDeque<String>,
}

impl Turns<'_> {
    fn new(info: &SessionInfo, room: usize) -> Turns<'_> {
        let markdown = Markdown::new(&info.agent);
        let texts = VecDeque::new();
        Turns { info, markdown, room, size: 0, left_out: 0, is_cut: false, texts }
    }

    fn turn(&mut self, turn: &Turn) {
        // No messages come before the first turn.
        if turn.started.is_none() {
            return;
        }
        self.markdown.restart();
        let text = raw(self.markdown.turn(turn));
        self.size += text.len();
        self.texts.push_back(text);
        while self.size > self.room && self.texts.len() > 1 {
            self.size -= self.texts.pop_front().map_or(0, |turn| turn.len());
            self.left_out += 1;
            self.is_cut = false;
        }
        if self.size > self.room
            && let Some(turn) = self.texts.front_mut()
        {
            let start = turn.ceil_char_boundary(turn.len() - self.room);
            turn.drain(..start);
            self.size = turn.len();
            self.is_cut = true;
        }
    }

    fn end(mut self) -> Transcript {
        let turns = self.texts.len();
        let mut text = markdown::head(self.info).as_str().to_owned();
        if self.is_cut {
            text.push_str("\n[…]\n\n");
        }
        text.extend(self.texts);
        text.push_str(&raw(self.markdown.end()));
        Transcript { text, turns, left_out: self.left_out, is_cut: self.is_cut }
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

/// Reads a journal page by page, from behind this line: only one page and the turn that is not over are in memory.
///
/// # Errors
/// When the daemon does not answer, or a turn cannot be taken.
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
