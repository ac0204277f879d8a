//! An agent's replay on `session/load`, sorted into known and new lines.
//!
//! ```text
//!  Before ── last known prompt ─▶ InLast ── another prompt ─▶ News
//!                                   ▲                          │
//!                                   └── last known prompt ─────┘
//! ```
//!
//! Lines of a replay have no marks, so user messages are compared: everything up to the turn of the
//! journal's last prompt is known. Later lines happened outside acpd and are new. If the last
//! prompt is missing, the agent has forgotten or rewritten it, and nothing counts as new: better
//! one line too few than one twice. A notice in the conversation then reports what is missing
//! ([`Replay::gap`]).

use std::borrow::Cow;

use acp_wire::{UpdateClass, classify_update, str_at};
use bytes::Bytes;

use crate::hash::hash;
use crate::record::Replayable;

/// Maximum size of an adopted history.
pub(crate) const HISTORY_BYTES: usize = 64 << 20;

/// Maximum size of the new lines in a replay. Later lines are dropped.
const NEWS_BYTES: usize = 16 << 20;

/// Chunks of user messages that are compared together with the last prompt, and their size in
/// bytes. All beginnings and ends among them are compared, so the number must be small. A prompt of
/// more chunks is not recognized, and then nothing counts as new.
const CHUNKS: usize = 16;

const CHUNK_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Replay {
    last_prompt: u64,
    expected: Replayable,
    last_seen: u64,
    place: Place,
    /// The current user message: its chunks and their texts. It may be several messages, because
    /// nothing separates prompts without answers.
    user: Vec<(Bytes, String)>,
    bytes: usize,
    /// Number of user message chunks, at least one per prompt.
    user_chunks: u64,
    has_last: bool,
    has_answers: bool,
    /// A user message was too long to be compared.
    is_unsure: bool,
}

#[derive(Debug, Default)]
enum Place {
    #[default]
    Before,
    InLast,
    News(Vec<Bytes>),
}

impl Replay {
    pub(crate) fn new(last_prompt: u64, expected: Replayable) -> Replay {
        Replay { last_prompt, expected, last_seen: last_prompt, ..Replay::default() }
    }

    /// `user`: the text of a `user_message_chunk`.
    pub(crate) fn line(&mut self, line: Bytes, user: Option<&str>) {
        if let Some(text) = user {
            self.user_chunks += 1;
            self.user.push((line, text.to_owned()));
            let bytes: usize = self.user.iter().map(|(_, text)| text.len()).sum();
            if self.user.len() >= CHUNKS || bytes >= CHUNK_BYTES {
                self.is_unsure = true;
                self.end_user_message();
            }
            return;
        }
        self.has_answers = true;
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
        let all: String = user.iter().map(|(_, text)| text.as_str()).collect();
        self.last_seen = hash(&all);
        let is_known = |text: String| hash(&text) == self.last_prompt;
        let known = (1..=user.len()).rev().find(|end| endings(&user[..*end]).any(is_known));
        // Agents may add white space around a prompt.
        let is_last = |text: String| hash(text.trim()) == self.expected.last;
        self.has_last =
            self.has_last || (1..=user.len()).any(|end| endings(&user[..end]).any(is_last));
        if known.is_some() {
            self.place = Place::InLast;
            self.bytes = 0;
        }
        for (line, _) in user.into_iter().skip(known.unwrap_or_default()) {
            if matches!(self.place, Place::InLast) {
                self.place = Place::News(Vec::new());
            }
            self.keep(line);
        }
    }

    /// Returns what is missing, in words. Compacted turns count, because the agent no longer has
    /// them.
    pub(crate) fn gap(&mut self) -> Option<String> {
        self.end_user_message();
        let Replayable { prompts, answered, .. } = self.expected;
        if prompts == 0 || self.is_unsure {
            return None;
        }
        let some = format!("replayed {} of {prompts} prompts", self.user_chunks);
        let lacks = if self.user_chunks == 0 && !self.has_answers {
            "replayed nothing of it"
        } else if !self.has_last {
            "did not replay the last prompt"
        } else if self.user_chunks < prompts {
            some.as_str()
        } else if answered && !self.has_answers {
            "replayed none of its answers"
        } else {
            return None;
        };
        Some(format!("the agent {lacks}"))
    }

    /// Returns what later replays must contain, once the gap was reported.
    pub(crate) fn seen(&mut self) -> Replayable {
        self.end_user_message();
        let last = if self.has_last { self.expected.last } else { 0 };
        let prompts = if self.has_last { self.user_chunks.min(self.expected.prompts) } else { 0 };
        Replayable { prompts, last, answered: self.expected.answered && self.has_answers }
    }

    pub(crate) fn last_seen(mut self) -> u64 {
        self.end_user_message();
        self.last_seen
    }

    /// Returns the new lines, and the hash of the last prompt that is known now.
    pub(crate) fn finish(mut self) -> (Vec<Bytes>, u64) {
        self.end_user_message();
        match self.place {
            Place::News(news) => (news, self.last_seen),
            Place::Before | Place::InLast => (Vec::new(), self.last_prompt),
        }
    }
}

/// Returns the texts of the last chunk, of the last two, and so on.
fn endings(chunks: &[(Bytes, String)]) -> impl Iterator<Item = String> {
    chunks.iter().rev().scan(String::new(), |text, (_, chunk)| {
        text.insert_str(0, chunk);
        Some(text.clone())
    })
}

/// Returns `None` for an empty prompt or a command such as `/compact`, which agents do not keep.
pub(crate) fn replayed_as(prompt: &str) -> Option<u64> {
    let prompt = prompt.trim();
    (!prompt.is_empty() && !prompt.starts_with('/')).then(|| hash(prompt))
}

pub(crate) fn user_text(line: &[u8]) -> Option<Cow<'_, str>> {
    let update = str_at(line, &["params", "update", "sessionUpdate"]);
    (update.as_deref() == Some("user_message_chunk"))
        .then(|| str_at(line, &["params", "update", "content", "text"]).unwrap_or_default())
}

/// Removes a known conversation from the beginning of a session's lines. New lines begin with the
/// first user message, as no client has prompted yet. An incomplete replay (`cut`) has no new
/// lines, because its last prompt is not the last one. Returns also the hash of the last known
/// prompt.
pub(crate) fn without_replay(lines: Vec<Bytes>, last_prompt: u64, cut: bool) -> (Vec<Bytes>, u64) {
    let mut replay = Replay::new(last_prompt, Replayable::default());
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

    /// A prompt and its answer.
    type Said = (&'static str, &'static str);

    fn replay(last: &str, turns: &[Said]) -> Vec<String> {
        let mut replay = Replay::new(hash(last), Replayable::default());
        for (user, answer) in turns {
            replay.line(Bytes::from(format!("user {user}")), Some(user));
            replay.line(Bytes::from(format!("agent {answer}")), None);
        }
        replay.finish().0.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    #[test]
    fn turns_after_the_last_prompt_are_news() {
        let again = [("go on", "1"), ("x", "2"), ("go on", "3"), ("y", "4")];
        let table: [(&str, &[Said], &[&str]); 4] = [
            ("two", &[("one", "1"), ("two", "2")], &[]),
            ("one", &[("one", "1"), ("elsewhere", "e")], &["user elsewhere", "agent e"]),
            ("forgotten", &[("one", "1"), ("two", "2")], &[]),
            ("go on", &again, &["user y", "agent 4"]),
        ];
        for (last, turns, news) in table {
            assert_eq!(replay(last, turns), news, "{last}");
        }
    }

    #[test]
    fn prompts_without_an_answer_are_told_apart() {
        let mut replay = Replay::new(hash("b"), Replayable::default());
        for user in ["a", "b", "c"] {
            replay.line(Bytes::from(user), Some(user));
        }
        replay.line(Bytes::from_static(b"answer"), None);
        assert_eq!(replay.finish().0, ["c", "answer"]);
    }

    #[test]
    fn a_prompt_of_several_blocks_is_one_message() {
        let mut replay = Replay::new(hash("ab"), Replayable::default());
        replay.line(Bytes::from_static(b"1"), Some("a"));
        replay.line(Bytes::from_static(b"2"), Some("b"));
        replay.line(Bytes::from_static(b"3"), None);
        assert!(replay.finish().0.is_empty());
    }

    /// Returns the missing parts in a replay of the session in which `asked` was answered.
    fn gap(asked: &[&str], replayed: &[Said]) -> Option<String> {
        let last = asked.last().map_or(0, |last| hash(last));
        let expected = Replayable { prompts: asked.len() as u64, last, answered: true };
        let mut replay = Replay::new(last, expected);
        for (user, answer) in replayed {
            replay.line(Bytes::new(), Some(user));
            if !answer.is_empty() {
                replay.line(Bytes::new(), None);
            }
        }
        replay.gap()
    }

    #[test]
    fn gap_is_what_the_replay_lacks() {
        let asked = ["one", "two", "three"];
        let (nothing, no_last) = ("replayed nothing of it", "did not replay the last prompt");
        let table: [(&[Said], Option<&str>); 9] = [
            (&[("one", "1"), ("two", "2"), ("three", "3")], None),
            (&[("one", "1"), ("two", "2"), ("three\n", "3"), ("elsewhere", "4")], None),
            (&[("one", ""), ("two", ""), ("three", "3")], None),
            (&[("one", "1"), ("two", "2"), ("context ", ""), ("three", "3")], None),
            (&[], Some(nothing)),
            (&[("one", "1"), ("two", "2")], Some(no_last)),
            (&[("other", "1"), ("words", "2"), ("here", "3")], Some(no_last)),
            (&[("three", "3")], Some("replayed 1 of 3 prompts")),
            (&[("one", ""), ("two", ""), ("three", "")], Some("replayed none of its answers")),
        ];
        for (replayed, expected) in table {
            let expected = expected.map(|lacks| format!("the agent {lacks}"));
            assert_eq!(gap(&asked, replayed), expected, "{replayed:?}");
        }
        assert_eq!(gap(&[], &[]), None, "nothing is expected");
    }

    #[test]
    fn gap_is_unknown_when_the_prompt_is_too_long_to_compare() {
        let pieces = vec![("x", ""); CHUNKS];
        assert_eq!(gap(&["long"], &pieces), None);
    }
}
