//! What an agent replays on `session/load`, sorted into known and news.
//!
//! ```text
//!  Before ── last known prompt ─▶ InLast ── another prompt ─▶ News
//!                                   ▲                          │
//!                                   └── last known prompt ─────┘
//! ```
//!
//! A replay carries no marks, so it is compared by its user messages: everything up to and including
//! the turn of the last prompt that acpd dispatched is in the journal already. What follows came
//! about outside acpd and is news. If the last prompt does not occur, the agent has forgotten or
//! rewritten it, and nothing is news: rather too little than a line twice.

use bytes::Bytes;

use crate::turn::hash;

/// News of one replay that are kept in memory at most, in bytes; beyond it they are dropped.
const NEWS_BYTES: usize = 16 << 20;

/// Sorts a replay.
#[derive(Debug)]
pub(crate) struct Replay {
    /// Hash of the last prompt that acpd dispatched.
    last_prompt: u64,
    place: Place,
    /// The user message that is being replayed: its chunks and their text.
    user: Vec<Bytes>,
    text: String,
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
            place: Place::Before,
            user: Vec::new(),
            text: String::new(),
            bytes: 0,
        }
    }

    /// A replayed line; `user` is the text if it is a `user_message_chunk`.
    pub(crate) fn line(&mut self, line: Bytes, user: Option<&str>) {
        if let Some(text) = user {
            self.text.push_str(text);
            self.user.push(line);
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
        let known = hash(&std::mem::take(&mut self.text)) == self.last_prompt;
        match (&self.place, known) {
            (_, true) => {
                self.place = Place::InLast;
                self.bytes = 0;
            }
            (Place::InLast, false) => self.place = Place::News(Vec::new()),
            (Place::Before | Place::News(_), false) => {}
        }
        for line in user {
            self.keep(line);
        }
    }

    /// The replay is over: what of it was news, in order.
    pub(crate) fn finish(mut self) -> Vec<Bytes> {
        self.end_user_message();
        match self.place {
            Place::News(news) => news,
            Place::Before | Place::InLast => Vec::new(),
        }
    }
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
        replay.finish().iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
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
    fn a_prompt_of_several_blocks_is_one_message() {
        let mut replay = Replay::new(hash("ab"));
        replay.line(Bytes::from_static(b"1"), Some("a"));
        replay.line(Bytes::from_static(b"2"), Some("b"));
        replay.line(Bytes::from_static(b"3"), None);
        assert!(replay.finish().is_empty());
    }
}
