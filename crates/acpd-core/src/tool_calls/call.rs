//! Tool calls as agents announce them: the newest value of each member.
//!
//! Architecture invariant: a value that is too long to keep is marked as missing. A question that
//! depends on it is not understood.

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::acp::PermissionRequest;
use acp_wire::{locate, remove_member, set_member, str_at};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Maximum length of a member's value.
const MEMBER_BYTES: usize = 256 << 10;

const ID: &str = "toolCallId";
const STATUS: &str = "status";
const INPUT: &str = "rawInput";
const CONTENT: &str = "content";

/// The members that are kept, in the order in which they are shown.
const MEMBERS: [&str; 7] = [ID, "title", "kind", "locations", INPUT, CONTENT, STATUS];

/// The members that decide a question.
const DECIDED_ON: [&str; 5] = ["title", "kind", "locations", INPUT, CONTENT];

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    said: BTreeMap<String, String>,
    lost: BTreeSet<String>,
    /// acpd has removed something from the agent's description, so it may be incomplete.
    #[serde(default)]
    is_cut: bool,
}

impl Call {
    /// A call whose earlier values may be lost.
    pub(crate) fn unknown() -> Call {
        Call { lost: DECIDED_ON.map(str::to_owned).into(), ..Call::default() }
    }

    /// Merges an update. Absent and `null` members stay.
    pub(crate) fn take(&mut self, update: &[u8]) {
        self.take_up_to(update, MEMBER_BYTES);
    }

    /// `limit`: maximum length of a member that is kept.
    pub(crate) fn take_up_to(&mut self, update: &[u8], limit: usize) {
        for member in MEMBERS {
            let Some(value) = value(update, member) else { continue };
            if value.len() <= limit {
                match self.said.get_mut(member) {
                    Some(said) => value.clone_into(said),
                    None => drop(self.said.insert(member.to_owned(), value.to_owned())),
                }
                self.lost.remove(member);
            } else {
                self.said.remove(member);
                self.lost.insert(member.to_owned());
            }
        }
    }

    pub(crate) fn doubt(&mut self) {
        self.is_cut = true;
    }

    /// Returns the JSON of a member.
    pub(crate) fn get(&self, member: &str) -> Option<&str> {
        self.said.get(member).map(String::as_str)
    }

    /// Returns whether a decision about one call covers the other.
    pub(crate) fn asks_the_same(&self, other: &Call) -> bool {
        // Text next to an input says nothing new about the effect.
        let has_input = self.get(INPUT).is_some_and(|input| input != "{}");
        self.lost == other.lost
            && self.is_cut == other.is_cut
            && DECIDED_ON.iter().all(|member| match (*member, has_input) {
                (CONTENT, true) => self.diffs() == other.diffs(),
                (member, _) => self.get(member) == other.get(member),
            })
    }

    /// Returns the diffs in the content as JSON; the whole content if it cannot be read.
    pub(crate) fn diffs(&self) -> Vec<&str> {
        let Some(content) = self.get(CONTENT) else { return Vec::new() };
        match serde_json::from_str::<Vec<&RawValue>>(content) {
            Ok(items) => {
                items.into_iter().map(RawValue::get).filter(|item| is_diff(item)).collect()
            }
            Err(_) => vec![content],
        }
    }

    pub(crate) fn json(&self) -> String {
        let member = |name| Some(format!("\"{name}\":{}", self.get(name)?));
        format!("{{{}}}", MEMBERS.into_iter().filter_map(member).collect::<Vec<_>>().join(","))
    }

    /// Passes the call as a question without options.
    pub(crate) fn with_question<T>(&self, then: impl FnOnce(PermissionRequest<'_>) -> T) -> T {
        let json = RawValue::from_string(self.json());
        let json = json.unwrap_or_else(|_| RawValue::NULL.to_owned());
        let mut question = PermissionRequest::of_call(Some(&json));
        question.unread.extend(MEMBERS.into_iter().filter(|member| self.lost.contains(*member)));
        question.unread.extend(self.is_cut.then_some(""));
        then(question)
    }

    /// Updates a question's call. Values that are not kept are removed, because old ones would be
    /// wrong.
    pub(crate) fn put_into(&self, line: &Bytes) -> Bytes {
        DECIDED_ON.into_iter().fold(line.clone(), |line, member| {
            let path = ["params", "toolCall", member];
            match self.get(member) {
                Some(value) => set_member(&line, &path, value.as_bytes()),
                None if self.lost.contains(member) => remove_member(&line, &path),
                None => line,
            }
        })
    }

    /// Drops most of an ended call, but not the changed files.
    pub(crate) fn shrink_if_over(&mut self) {
        if !matches!(self.get(STATUS), Some("\"completed\"" | "\"failed\"")) {
            return;
        }
        if self.said.remove(INPUT).is_some() {
            self.lost.insert(INPUT.to_owned());
        }
        let content = self.get(CONTENT).and_then(|content| {
            let items = serde_json::from_str::<Vec<&RawValue>>(content).ok()?;
            let diffs = items.into_iter().filter(|item| is_diff(item.get()));
            let paths = diffs.filter_map(|item| value(item.get().as_bytes(), "path"));
            let diffs = paths.map(|path| format!(r#"{{"type":"diff","path":{path}}}"#));
            Some(format!("[{}]", diffs.collect::<Vec<_>>().join(",")))
        });
        if let Some(content) = content {
            self.said.insert(CONTENT.to_owned(), content);
        }
    }
}

pub(crate) fn update_in(line: &[u8]) -> &[u8] {
    locate(line, &["params", "update"]).map_or(b"null", |range| &line[range])
}

/// Returns a member as JSON; `null` counts as absent.
fn value<'a>(object: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(&object[locate(object, &[name])?]).ok()?;
    (text != "null").then_some(text)
}

fn is_diff(item: &str) -> bool {
    str_at(item.as_bytes(), &["type"]).as_deref() == Some("diff")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn call(updates: &[Value]) -> Call {
        let mut call = Call::default();
        for update in updates {
            call.take(update.to_string().as_bytes());
        }
        call
    }

    #[test]
    fn the_newest_of_each_member_counts_and_null_changes_nothing() {
        let call = call(&[
            json!({"toolCallId":"t","title":"a","rawInput":{"command":"ls"}}),
            json!({"title":null,"kind":"execute","rawInput":{"command":"rm"},"extra":1}),
        ]);
        let expected =
            r#"{"toolCallId":"t","title":"a","kind":"execute","rawInput":{"command":"rm"}}"#;
        assert_eq!(call.json(), expected);
    }

    #[test]
    fn a_status_and_text_beside_the_input_change_no_question() {
        let diff = |text: &str| json!({"type":"diff","path":"/w/a","newText":text});
        let text = json!({"type":"content","content":{"type":"text","text":"working"}});
        let asked = json!({"title":"a","rawInput":{"path":"/w/a"},"content":[diff("x")]});
        let before = call(std::slice::from_ref(&asked));
        let same = [json!({"status":"in_progress"}), json!({"content":[text, diff("x")]})];
        for update in same {
            assert!(call(&[asked.clone(), update]).asks_the_same(&before));
        }
        let others = [
            json!({"title":"b"}),
            json!({"kind":"delete"}),
            json!({"rawInput":{"path":"/w/b"}}),
            json!({"content":[diff("y")]}),
            json!({"locations":[{"path":"/etc/passwd"}]}),
        ];
        for update in others {
            let after = call(&[asked.clone(), update.clone()]);
            assert!(!after.asks_the_same(&before), "{update}");
        }
    }

    #[test]
    fn a_call_that_is_over_keeps_its_files() {
        let diff = json!({"type":"diff","path":"/w/a","oldText":"x","newText":"y"});
        let update = json!({"rawInput":{"path":"/w/a"},"content":[diff],"status":"completed"});
        let mut call = call(&[update]);
        call.shrink_if_over();
        let expected = r#"{"content":[{"type":"diff","path":"/w/a"}],"status":"completed"}"#;
        assert_eq!(call.json(), expected);
    }
}
