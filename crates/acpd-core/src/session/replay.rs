//! What an agent replays on `session/load`, sorted into known and news.
//!
//! ```text
//!  Before ── last known prompt ─▶ InLast ── another prompt ─▶ News
//!                                   ▲                          │
//!                                   └── last known prompt ─────┘
//! ```
//!
//! A replay carries no marks, so it is compared by its user messages: everything up to and including
//! the turn of the last prompt in the journal is known already. What follows came
//! about outside acpd and is news. If the last prompt does not occur, the agent has forgotten or
//! rewritten it, and nothing is news: rather too little than a line twice.

use std::borrow::Cow;

use acp_wire::{UpdateClass, classify_update, str_at};
use bytes::Bytes;

use crate::hash::hash;

/// Bytes of a history that are taken over at most.
pub(crate) const HISTORY_BYTES: usize = 64 << 20;

/// News of one replay that are kept in memory at most, in bytes; beyond it they are dropped.
const NEWS_BYTES: usize = 16 << 20;

/// Chunks of user messages that are compared with the last prompt together, in number and in bytes
/// of text. Every end and every beginning among them is tried, so there must not be many; a prompt of
/// more chunks is not recognised, and then nothing is news.
const CHUNKS: usize = 16;

const CHUNK_BYTES: usize = 1 << 20;

/// Sorts a replay.
#[derive(Debug)]
pub(crate) struct Replay {
    /// Hash of the last prompt in the journal.
    last_prompt: u64,
    /// Hash of the last prompt that was replayed.
    last_seen: u64,
    place: Place,
    /// The user message that is being replayed: its chunks and their texts. Prompts that were never
    /// answered follow each other without a mark, so it may be several.
    user: Vec<(Bytes, String)>,
    user_bytes: usize,
    bytes: usize,
}

#[derive(Debug)]
enum Place {
    Before,
    InLast,
    News(Vec<Bytes>),
}

impl Replay {
    pub(crate) fn new(last_prompt: u64) -> Replay {
        Replay {
            last_prompt,
            last_seen: last_prompt,
            place: Place::Before,
            user: Vec::new(),
            user_bytes: 0,
            bytes: 0,
        }
    }

    /// A replayed line; `user` is the text if it is a `user_message_chunk`.
    pub(crate) fn line(&mut self, line: Bytes, user: Option<&str>) {
        if let Some(text) = user {
            self.user.push((line, text.to_owned()));
            self.user_bytes += text.len();
            if self.user.len() >= CHUNKS || self.user_bytes >= CHUNK_BYTES {
                self.end_user_message();
            }
            return;
        }
        self.end_user_message();
        self.keep(line);
    }

    fn keep(&mut self, line: Bytes) {
        if let Place::News(news) = &mut self.place {
            self.bytes += line.len();
            if self.bytes <= NEWS_BYTES {
                news.push(line);
            }
        }
    }

    fn end_user_message(&mut self) {
        if self.user.is_empty() {
            return;
        }
        let user = std::mem::take(&mut self.user);
        self.user_bytes = 0;
        let all: String = user.iter().map(|(_, text)| text.as_str()).collect();
        self.last_seen = hash(&all);
        let known = (1..=user.len()).rev().find(|end| self.ends_known(&user[..*end]));
        match (&self.place, known) {
            (_, Some(_)) => {
                self.place = Place::InLast;
                self.bytes = 0;
            }
            (Place::InLast, None) => self.place = Place::News(Vec::new()),
            (Place::Before | Place::News(_), None) => {}
        }
        let news = user.into_iter().skip(known.unwrap_or_default());
        for (nth, (line, _)) in news.enumerate() {
            if nth == 0 && known.is_some() {
                self.place = Place::News(Vec::new());
            }
            self.keep(line);
        }
    }

    /// Whether the last of these chunks are the last known prompt.
    fn ends_known(&self, chunks: &[(Bytes, String)]) -> bool {
        let mut text = String::new();
        chunks.iter().rev().any(|(_, chunk)| {
            text.insert_str(0, chunk);
            hash(&text) == self.last_prompt
        })
    }

    /// The replay is over: the hash of the last prompt in it.
    pub(crate) fn last_seen(mut self) -> u64 {
        self.end_user_message();
        self.last_seen
    }

    /// The replay is over: what of it was news, in order, and the hash of the last prompt that is
    /// known now.
    pub(crate) fn finish(mut self) -> (Vec<Bytes>, u64) {
        self.end_user_message();
        match self.place {
            Place::News(news) => (news, self.last_seen),
            Place::Before | Place::InLast => (Vec::new(), self.last_prompt),
        }
    }
}

/// The text of a line that is a `user_message_chunk`.
pub(crate) fn user_text(line: &[u8]) -> Option<Cow<'_, str>> {
    let update = str_at(line, &["params", "update", "sessionUpdate"]);
    (update.as_deref() == Some("user_message_chunk"))
        .then(|| str_at(line, &["params", "update", "content", "text"]).unwrap_or_default())
}

/// What an agent said about a session that begins with a known conversation, without a replay of
/// that: from the first user message on, as nobody has prompted yet. Nothing of a replay that is cut
/// is news: its last prompt is not the last one. Also the hash of the last prompt that is known then.
pub(crate) fn without_replay(lines: Vec<Bytes>, last_prompt: u64, cut: bool) -> (Vec<Bytes>, u64) {
    let mut replay = Replay::new(last_prompt);
    let (mut kept, mut began) = (Vec::new(), false);
    for line in lines {
        let class = str_at(&line, &["params", "update", "sessionUpdate"]);
        let class = class.map(|update| classify_update(&update));
        let text = user_text(&line).map(Cow::into_owned);
        began |= text.is_some();
        let is_said = matches!(
            class,
            Some(UpdateClass::Conversation | UpdateClass::ToolCall | UpdateClass::Other)
        );
        if began && is_said {
            replay.line(line, text.as_deref());
        } else {
            kept.push(line);
        }
    }
    if cut {
        return (kept, last_prompt);
    }
    let (news, last_prompt) = replay.finish();
    kept.extend(news);
    (kept, last_prompt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(last: &str, turns: &[(&str, &str)]) -> Vec<String> {
        let mut replay = Replay::new(hash(last));
        for (user, answer) in turns {
            replay.line(Bytes::from(format!("user {user}")), Some(user));
            replay.line(Bytes::from(format!("agent {answer}")), None);
        }
        replay.finish().0.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    #[test]
    fn nothing_is_news_when_the_replay_ends_with_the_last_prompt() {
        assert_eq!(replay("two", &[("one", "1"), ("two", "2")]), Vec::<String>::new());
    }

    #[test]
    fn turns_after_the_last_prompt_are_news() {
        let news = replay("one", &[("one", "1"), ("elsewhere", "e")]);
        assert_eq!(news, ["user elsewhere", "agent e"]);
    }

    #[test]
    fn nothing_is_news_when_the_agent_forgot_the_last_prompt() {
        assert_eq!(replay("lost", &[("one", "1"), ("two", "2")]), Vec::<String>::new());
    }

    #[test]
    fn the_last_occurrence_of_the_prompt_counts() {
        let news = replay("go on", &[("go on", "1"), ("x", "2"), ("go on", "3"), ("y", "4")]);
        assert_eq!(news, ["user y", "agent 4"]);
    }

    #[test]
    fn prompts_without_an_answer_are_told_apart() {
        let mut replay = Replay::new(hash("b"));
        for user in ["a", "b", "c"] {
            replay.line(Bytes::from(user), Some(user));
        }
        replay.line(Bytes::from_static(b"answer"), None);
        assert_eq!(replay.finish().0, ["c", "answer"]);
    }

    #[test]
    fn a_prompt_of_several_blocks_is_one_message() {
        let mut replay = Replay::new(hash("ab"));
        replay.line(Bytes::from_static(b"1"), Some("a"));
        replay.line(Bytes::from_static(b"2"), Some("b"));
        replay.line(Bytes::from_static(b"3"), None);
        assert!(replay.finish().0.is_empty());
    }
}
