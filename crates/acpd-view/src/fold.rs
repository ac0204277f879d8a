//! Folds the lines of a journal into blocks.

use acpd_api::Untrusted;

use crate::block::{Block, Id};
use crate::header::Header;

/// A session as far as its lines were read.
#[derive(Debug, Clone)]
pub struct State {
    session: Untrusted,
    header: Header,
    turns: Vec<Turn>,
    questions: Vec<Block>,
}

/// A turn, or what was said before the first one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    /// Where, which and when, if its beginning was read.
    pub started: Option<Started>,
    /// From top to bottom; the last one is its end.
    pub blocks: Vec<Block>,
}

/// How a turn began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// The number of its line.
    pub seq: u64,
    /// Its number, from 1.
    pub turn: u64,
    /// When (ms since the epoch).
    pub at: u64,
}

impl State {
    /// Nothing of this session yet.
    pub fn new(session: &Untrusted) -> State {
        State {
            session: session.clone(),
            header: Header::default(),
            turns: Vec::new(),
            questions: Vec::new(),
        }
    }

    /// What the head of a screen shows.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The turns, the oldest first.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// All blocks from top to bottom, without those inside of subagents; open questions are the last ones.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = &Block> {
        self.turns.iter().flat_map(|turn| &turn.blocks).chain(&self.questions)
    }

    /// The open questions, the oldest first.
    pub fn questions(&self) -> &[Block] {
        &self.questions
    }

    /// Takes a line that the daemon has sent: a notification, or a request that asks a question. Returns the blocks
    /// that are new or have changed.
    pub fn fold(&mut self, line: &[u8]) -> Vec<Id> {
        let _ = (line, &self.session);
        Vec::new()
    }
}
