//! A client's lines of a session, compared with the journal.

use std::collections::BTreeMap;

use serde_json::Value;

pub(super) type Heard = Result<(), String>;

#[derive(Debug, Default)]
pub(super) struct View {
    lines: Vec<(u64, Value)>,
    cursor: u64,
    /// Number up to which the view was compared.
    compared: u64,
}

impl View {
    /// Takes a line, whose number must be higher than all before.
    fn take(&mut self, seq: u64, line: Value) -> Heard {
        if seq <= self.cursor {
            return Err(format!("line {seq} came after line {}: {line}", self.cursor));
        }
        self.cursor = seq;
        self.lines.push((seq, line));
        Ok(())
    }

    /// Takes a line of the session's journal, or the notice that everything up to a number has been
    /// sent. Returns whether it was one of them.
    pub(super) fn hear(&mut self, mut message: Value) -> Result<bool, String> {
        if message["method"] == "_acpd/caught_up" {
            self.cursor = self.cursor.max(message["params"]["seq"].as_u64().unwrap_or_default());
            return Ok(true);
        }
        let Some(seq) = take_seq(&mut message) else { return Ok(false) };
        self.take(seq, message).map(|()| true)
    }

    /// The last number that has certainly come.
    pub(super) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Compares with the journal, which has at least all seen lines. `own` says which lines are not
    /// sent to this client.
    pub(super) fn differences(
        &mut self,
        journal: &Journal,
        own: impl Fn(&Value) -> bool,
    ) -> Option<String> {
        let mut seen = std::mem::take(&mut self.lines).into_iter().peekable();
        let from = std::mem::replace(&mut self.compared, self.cursor) + 1;
        let upto = self.cursor;
        for (seq, line) in journal.lines.range(from..).take_while(|(seq, _)| **seq <= upto) {
            match seen.next_if(|(at, _)| at == seq) {
                Some((_, got)) if got == *line => {}
                Some((_, got)) => {
                    return Some(format!("line {seq} is\n      {got}\n  not {line}"));
                }
                None if own(line) => {}
                None => return Some(format!("line {seq} never came: {line}")),
            }
        }
        seen.next().map(|(seq, line)| format!("line {seq} is not in the journal: {line}"))
    }
}

#[derive(Debug, Default)]
pub(super) struct Journal {
    lines: BTreeMap<u64, Value>,
}

impl Journal {
    pub(super) fn last(&self) -> u64 {
        self.lines.last_key_value().map_or(0, |(seq, _)| *seq)
    }

    /// Adds a page. The numbers have no gaps, unless some lines are for other versions.
    pub(super) fn extend(&mut self, entries: &[Value], has_others: bool) -> Heard {
        for entry in entries {
            let seq = entry["seq"].as_u64().ok_or("an entry without a number")?;
            if seq <= self.last() || seq > self.last() + 1 && !has_others {
                return Err(format!("the journal goes on with {seq} after {}", self.last()));
            }
            self.lines.insert(seq, entry["line"].clone());
        }
        Ok(())
    }

    pub(super) fn turns(&self, after: u64) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::new();
        for (_, line) in self.lines.range(after + 1..) {
            if line["method"] == "_acpd/turn_started" {
                turns.push(Turn::default());
            }
            let Some(turn) = turns.last_mut() else { continue };
            if line["method"] == "_acpd/turn_ended" {
                turn.ends += 1;
                turn.outcome = line["params"]["outcome"].clone();
            } else if let Some(text) = text(line, "user_message_chunk") {
                text.split(' ').next().unwrap_or_default().clone_into(&mut turn.tag);
            } else {
                turn.chunks.extend(numbered(line).map(str::to_owned));
            }
        }
        turns
    }

    pub(super) fn chunks(&self) -> Vec<&str> {
        self.lines.values().flat_map(numbered).collect()
    }
}

#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) tag: String,
    pub(super) chunks: Vec<String>,
    /// Number of ends.
    pub(super) ends: u32,
    pub(super) outcome: Value,
}

/// The text of an update of this kind.
pub(super) fn text<'a>(line: &'a Value, kind: &str) -> Option<&'a str> {
    let update = &line["params"]["update"];
    update["content"]["text"].as_str().filter(|_| update["sessionUpdate"] == kind)
}

/// Numbered chunks in a line, `TAG/NUMBER` each: many if it is a folded one.
pub(super) fn numbered(line: &Value) -> impl Iterator<Item = &str> {
    let is_numbered = |chunk: &&str| {
        chunk.split_once('/').is_some_and(|(_, n)| n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    text(line, "agent_message_chunk").unwrap_or_default().lines().filter(is_numbered)
}

/// Removes the number: the rest is the line in the journal.
fn take_seq(line: &mut Value) -> Option<u64> {
    let params = line["params"].as_object_mut()?;
    let meta = params.get_mut("_meta")?.as_object_mut()?;
    let ours = meta.get_mut("_acpd")?.as_object_mut()?;
    let seq = ours.remove("seq")?.as_u64();
    if ours.is_empty() {
        meta.remove("_acpd");
        if meta.is_empty() {
            params.remove("_meta");
        }
    }
    seq
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn journal(last: u64) -> Journal {
        let mut journal = Journal::default();
        let entries: Vec<_> = (1..=last).map(|seq| json!({"seq": seq, "line": seq})).collect();
        journal.extend(&entries, false).unwrap();
        journal
    }

    fn view(lines: &[u64]) -> View {
        let mut view = View::default();
        for seq in lines {
            view.take(*seq, json!(seq)).unwrap();
        }
        view
    }

    #[test]
    fn a_line_that_is_missing_in_a_view_is_found() {
        let journal = journal(4);
        assert!(view(&[1, 2, 4]).differences(&journal, |_| false).is_some());
        assert!(view(&[1, 2, 4]).differences(&journal, |line| *line == json!(3)).is_none());
        assert!(view(&[2, 3, 4]).differences(&journal, |_| false).is_some());
        assert!(view(&[1, 2]).differences(&journal, |_| false).is_none());
    }

    #[test]
    fn a_line_that_comes_twice_or_late_is_refused() {
        assert!(view(&[1, 3]).take(3, json!(3)).is_err());
        assert!(view(&[1, 3]).take(2, json!(2)).is_err());
    }
}
